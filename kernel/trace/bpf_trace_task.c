// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers for the task that a program interrupted.
 */
#include <linux/bpf.h>
#include <linux/btf_ids.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "bpf_trace.h"

BTF_ID_LIST_SINGLE(pt_regs_btf_id, struct, pt_regs)

BPF_CALL_0(bpf_get_current_task)
{
	return (unsigned long)current;
}

BPF_CALL_0(bpf_get_current_task_btf)
{
	return (unsigned long)current;
}

BPF_CALL_1(bpf_task_pt_regs, struct task_struct *, task)
{
	return (unsigned long)task_pt_regs(task);
}

/* To a program the first is a number, the second an object with a type. */
const struct bpf_func_proto bpf_get_current_task_proto = {
	.func		= bpf_get_current_task,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
};

const struct bpf_func_proto bpf_get_current_task_btf_proto = {
	.func		= bpf_get_current_task_btf,
	.gpl_only	= true,
	.ret_type	= RET_PTR_TO_BTF_ID_TRUSTED,
	.ret_btf_id	= &btf_tracing_ids[BTF_TRACING_TYPE_TASK],
};

const struct bpf_func_proto bpf_task_pt_regs_proto = {
	.func		= bpf_task_pt_regs,
	.gpl_only	= true,
	.ret_type	= RET_PTR_TO_BTF_ID,
	.ret_btf_id	= &pt_regs_btf_id[0],
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &btf_tracing_ids[BTF_TRACING_TYPE_TASK],
};
