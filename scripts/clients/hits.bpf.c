// SPDX-License-Identifier: GPL-2.0
/*
 * One program for each kind of probe.  Each of its hits is counted in a hash, and sent through a ring buffer and through a perf
 * buffer, with the cookie of the attachment.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "hits.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SOURCES);
	__type(key, __u32);
	__type(value, struct hit);
} hits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(int));
	__uint(value_size, sizeof(int));
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64[STACK_DEPTH]));
} stacks SEC(".maps");

__u32 tgid;	/* of the process whose hits are reported */

static int hit(void *ctx, __u32 source, __u64 cookie, __u64 value, __u64 stack_flags)
{
	struct hit new = { .source = source, .cookie = cookie, .value = value }, *old;

	if (bpf_get_current_pid_tgid() >> 32 != tgid)
		return 0;
	old = bpf_map_lookup_elem(&hits, &source);
	new.count = old ? old->count + 1 : 1;
	new.stack = bpf_get_stackid(ctx, &stacks, stack_flags);
	bpf_map_update_elem(&hits, &source, &new, BPF_ANY);
	bpf_ringbuf_output(&ring, &new, sizeof(new), 0);
	bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &new, sizeof(new));
	return 0;
}

SEC("kprobe/vfs_write")
int BPF_KPROBE(on_write, struct file *file, const char *buf, size_t count)
{
	return hit(ctx, KPROBE, bpf_get_attach_cookie(ctx), count, 0);
}

SEC("kretprobe/vfs_write")
int BPF_KRETPROBE(on_write_return, ssize_t written)
{
	return hit(ctx, KRETPROBE, bpf_get_attach_cookie(ctx), written, 0);
}

SEC("ksyscall/write")
int BPF_KSYSCALL(on_write_syscall, int fd, const char *buf, size_t count)
{
	return hit(ctx, KSYSCALL, bpf_get_attach_cookie(ctx), count, 0);
}

SEC("uprobe")
int BPF_KPROBE(on_trigger, int argument)
{
	return hit(ctx, UPROBE, bpf_get_attach_cookie(ctx), argument, BPF_F_USER_STACK);
}

SEC("uretprobe")
int BPF_KRETPROBE(on_trigger_return, int value)
{
	return hit(ctx, URETPROBE, bpf_get_attach_cookie(ctx), value, BPF_F_USER_STACK);
}

SEC("kprobe.multi")
int BPF_KPROBE(on_any)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	return hit(ctx, cookie & 0xff, cookie, bpf_get_func_ip(ctx), 0);
}

char LICENSE[] SEC("license") = "GPL";
