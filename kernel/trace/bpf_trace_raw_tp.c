// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_RAW_TRACEPOINT: programs whose context is the array of a
 * tracepoint's arguments, as u64.
 *
 * They run as filters of trace events, see bpf_trace_filter.c.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>
#include <linux/perf_event.h>

#include "bpf_trace.h"

/* No registers came with the hit, so take those of the way here. */
BPF_CALL_5(bpf_perf_event_output_raw_tp, void *, ctx, struct bpf_map *, map,
	   u64, flags, void *, data, u64, size)
{
	if (unlikely(flags & ~BPF_F_INDEX_MASK))
		return -EINVAL;
	return bpf_event_output(map, flags, data, size, NULL, 0, NULL);
}

BPF_CALL_3(bpf_get_stackid_raw_tp, void *, ctx, struct bpf_map *, map, u64, flags)
{
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	return bpf_get_stackid((unsigned long)&regs, (unsigned long)map, flags, 0, 0);
}

BPF_CALL_4(bpf_get_stack_raw_tp, void *, ctx, void *, buf, u32, size, u64, flags)
{
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	return bpf_get_stack((unsigned long)&regs, (unsigned long)buf, size, flags, 0);
}

static const struct bpf_func_proto bpf_perf_event_output_proto_raw_tp = {
	.func		= bpf_perf_event_output_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
	.arg4_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg5_type	= ARG_CONST_SIZE_OR_ZERO,
};

static const struct bpf_func_proto bpf_get_stackid_proto_raw_tp = {
	.func		= bpf_get_stackid_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_get_stack_proto_raw_tp = {
	.func		= bpf_get_stack_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg4_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto *
raw_tp_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto_raw_tp;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto_raw_tp;
	case BPF_FUNC_get_stack:
		return &bpf_get_stack_proto_raw_tp;
	default:
		return bpf_tracing_func_proto(func_id, prog);
	}
}

/* Which arguments there are is checked when the program meets its tracepoint. */
static bool raw_tp_prog_is_valid_access(int off, int size, enum bpf_access_type type,
					const struct bpf_prog *prog,
					struct bpf_insn_access_aux *info)
{
	return type == BPF_READ && off >= 0 && off % size == 0 &&
	       off + size <= MAX_BPF_FUNC_ARGS * sizeof(u64);
}

const struct bpf_verifier_ops raw_tracepoint_verifier_ops = {
	.get_func_proto		= raw_tp_prog_func_proto,
	.is_valid_access	= raw_tp_prog_is_valid_access,
};

const struct bpf_prog_ops raw_tracepoint_prog_ops = {
};
