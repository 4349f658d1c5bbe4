// SPDX-License-Identifier: GPL-2.0
/*
 * A module whose exit waits until 1 is written to its parameter "leave". As long as
 * that takes it is going away, and its functions can still be found. With "refuse"
 * its init waits as well, and fails. It has a tracepoint.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#define CREATE_TRACE_POINTS
#include "bpf_events_leaving.h"

static bool leave, refuse;

static int bpf_events_leaving_set(const char *val, const struct kernel_param *kp)
{
	return param_set_bool(val, kp);
}

static const struct kernel_param_ops leave_ops = {
	.set = bpf_events_leaving_set,
};

static void wait_to_leave(void)
{
	while (!READ_ONCE(leave))
		msleep(20);
}

static int __init leaving_init(void)
{
	if (!refuse)
		return 0;
	wait_to_leave();
	trace_bpf_events_left(-ENODEV);
	return -ENODEV;
}
module_init(leaving_init);

static void __exit leaving_exit(void)
{
	wait_to_leave();
	trace_bpf_events_left(0);
}
module_exit(leaving_exit);

module_param_cb(leave, &leave_ops, &leave, 0200);
MODULE_PARM_DESC(leave, "1: go");
module_param(refuse, bool, 0);
MODULE_PARM_DESC(refuse, "1: do not be loaded, but wait first");
MODULE_DESCRIPTION("Tests of probes on a module that is going away");
MODULE_LICENSE("GPL");
