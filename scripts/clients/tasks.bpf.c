// SPDX-License-Identifier: GPL-2.0
/* A line for each task. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

SEC("iter/task")
int list(struct bpf_iter__task *ctx)
{
	static const char format[] = "%s %d\n";
	struct task_struct *task = ctx->task;
	__u64 args[2];

	if (!task)
		return 0;
	args[0] = (unsigned long)task->comm;
	args[1] = task->pid;
	bpf_seq_printf(ctx->meta->seq, format, sizeof(format), args, sizeof(args));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
