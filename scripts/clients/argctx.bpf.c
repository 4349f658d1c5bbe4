// SPDX-License-Identifier: GPL-2.0
/* A program whose context is handed on to a global function, as what the verifier is told that it is: __arg_ctx. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

unsigned long len;
int pid, hits;

int count(void *ctx __arg_ctx)
{
	len = PT_REGS_PARM3((struct pt_regs *)ctx);
	return ++hits;
}

SEC("kprobe/vfs_write")
int on_write(struct pt_regs *ctx)
{
	return bpf_get_current_pid_tgid() >> 32 == pid ? count(ctx) : 0;
}

char LICENSE[] SEC("license") = "GPL";
