// SPDX-License-Identifier: GPL-2.0
/*
 * The BPF helper that makes the probed function return at once.
 *
 * The function must be marked for that, which is checked when the program is
 * attached, see kprobe_override.
 */
#include <linux/bpf.h>
#include <linux/error-injection.h>
#include <linux/filter.h>
#include <linux/ptrace.h>

#include "bpf_trace_helpers.h"

BPF_CALL_2(bpf_override_return, struct pt_regs *, regs, unsigned long, rc)
{
	regs_set_return_value(regs, rc);
	override_function_with_return(regs);
	return 0;
}

const struct bpf_func_proto bpf_override_return_proto = {
	.func		= bpf_override_return,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_ANYTHING,
};
