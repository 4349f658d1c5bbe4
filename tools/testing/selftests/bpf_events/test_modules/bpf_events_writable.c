// SPDX-License-Identifier: GPL-2.0
/*
 * A tracepoint whose argument programs may write to, and which has no event in
 * tracefs. Writing to the parameter "hit" hits it, and fails as programs say.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>

/* Not in the header, which is read several times */
struct bpf_events_verdict {
	int err;
};

#define CREATE_TRACE_POINTS
#include "bpf_events_writable.h"

static int hit_set(const char *val, const struct kernel_param *kp)
{
	struct bpf_events_verdict verdict = {};

	trace_bpf_events_writable(&verdict);
	return verdict.err;
}

static const struct kernel_param_ops hit_ops = {
	.set = hit_set,
};

module_param_cb(hit, &hit_ops, NULL, 0200);
MODULE_PARM_DESC(hit, "hit the tracepoint");
MODULE_DESCRIPTION("Tests of writable raw tracepoints");
MODULE_LICENSE("GPL");
