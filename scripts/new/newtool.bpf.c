// SPDX-License-Identifier: GPL-2.0
/*
 * newtool: which calls of a function take long.
 *
 * This is the half that runs in the kernel. on_entry() runs when the function is
 * called and keeps the time, on_return() runs when it returns and sends a record to
 * newtool.c, the other half, if the call took long. newtool.c chooses the function.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "newtool.h"

/* Global variables are shared with newtool.c, as skel->bss->NAME. */
__u64 min_ns;
struct newtool_totals totals;

/*
 * When the call of each thread began. A start whose return was missed is overwritten
 * by the next call of that thread. Of a function that calls itself, only the innermost
 * call is measured.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u64);
} starts SEC(".maps");

/* max_entries is its size in bytes: a power of two, and whole pages */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

/* The arguments of the function can be added: BPF_KPROBE(on_entry, struct file *file) */
SEC("kprobe")
int BPF_KPROBE(on_entry)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u64 now = bpf_ktime_get_ns();

	if (bpf_map_update_elem(&starts, &thread, &now, BPF_ANY))
		__sync_fetch_and_add(&totals.lost_starts, 1);
	return 0;
}

/* ret has the type that the function returns, and its record should have the same. */
SEC("kretprobe")
int BPF_KRETPROBE(on_return, int ret)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), ns, *start;
	struct newtool_event *event;
	__u32 thread = id;

	start = bpf_map_lookup_elem(&starts, &thread);
	if (!start)	/* the call was there before the program, or is not in the map */
		return 0;
	ns = now - *start;
	bpf_map_delete_elem(&starts, &thread);

	__sync_fetch_and_add(&totals.calls, 1);
	__sync_fetch_and_add(&totals.ns, ns);
	if (ns < min_ns)
		return 0;
	__sync_fetch_and_add(&totals.slow, 1);

	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&totals.lost_records, 1);
		return 0;
	}
	event->ns = ns;
	event->ret = ret;
	event->pid = id >> 32;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	bpf_ringbuf_submit(event, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
