// SPDX-License-Identifier: GPL-2.0
/*
 * openslow: which opens take long. This program measures them and sends a record of
 * those that do; openslow_user.c attaches it and prints the records.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "openslow.h"

struct start {
	__u64	ns;
	__u64	path;	/* struct filename * */
};

#define TOTALS OPENSLOW_TOTALS
#include "latency.bpf.h"

#define MAX_ERRNO 4095

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1024 * 1024);
} events SEC(".maps");

/* Where a record is made: it is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct openslow_event);
} scratch SEC(".maps");

extern bool bpf_session_is_return(void)
	__ksym;

/* @file: what was opened, or an errno in a pointer */
static __always_inline void send(struct filename *path, struct file *file, __u64 ns)
{
	bool failed = (__u64)file >= (__u64)-MAX_ERRNO;
	struct openslow_event *event;
	__u32 zero = 0;
	__u64 len;

	event = bpf_map_lookup_elem(&scratch, &zero);
	if (!event)
		return;
	event->ns = ns;
	event->pid = bpf_get_current_pid_tgid() >> 32;
	event->error = failed ? -(__u64)file : 0;
	event->ino = failed ? 0 : BPF_CORE_READ(file, f_inode, i_ino);
	event->dev = failed ? 0 : BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	len = bpf_probe_read_kernel_str(event->path, sizeof(event->path),
					BPF_CORE_READ(path, name));
	if (len > sizeof(event->path)) {	/* it could not be read */
		event->path[0] = '\0';
		len = 1;
	}
	if (bpf_ringbuf_output(&events, event, offsetof(struct openslow_event, path) + len, 0))
		add_total(OPENSLOW_LOST_RECORDS);
}

/* Runs at both ends of a call, or at none. */
SEC("kprobe.session/do_filp_open")
int measure(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct start *start;

	if (!bpf_session_is_return()) {
		start = new_start();
		if (!start) {
			add_total(OPENSLOW_LOST_STARTS);
			return 1;
		}
		start->ns = now;
		start->path = PT_REGS_PARM2(ctx);
		return 0;
	}

	start = old_start();
	if (!start || !start->ns) {	/* another open inside of it has overwritten it */
		add_total(OPENSLOW_LOST_STARTS);
		return 0;
	}
	add_total(OPENSLOW_CALLS);
	if (!is_short(now - start->ns)) {
		add_total(OPENSLOW_SLOW);
		send((struct filename *)start->path, (struct file *)PT_REGS_RC(ctx),
		     now - start->ns);
	}
	start->ns = 0;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
