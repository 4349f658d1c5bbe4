// SPDX-License-Identifier: GPL-2.0
/* A program of each kind that counts its runs. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 5);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static int count(__u32 key)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	return 0;
}

SEC("raw_tracepoint/sys_enter")
int BPF_PROG(raw_tp, struct pt_regs *regs, long id)
{
	return count(0);
}

SEC("tp_btf/task_rename")
int BPF_PROG(tp_btf, struct task_struct *task, const char *comm)
{
	return count(task->pid ? 1 : 0);
}

SEC("tracepoint/task/task_rename")
int tracepoint(void *ctx)
{
	return count(2);
}

SEC("fentry/vfs_read")
int BPF_PROG(on_read, struct file *file)
{
	return count(file->f_op ? 3 : 0);
}

SEC("fexit/vfs_read")
int BPF_PROG(on_read_return, struct file *file, char *buf, size_t size, loff_t *pos, ssize_t ret)
{
	return count(ret <= (ssize_t)size ? 4 : 0);
}

char LICENSE[] SEC("license") = "GPL";
