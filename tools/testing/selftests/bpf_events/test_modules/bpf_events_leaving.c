// SPDX-License-Identifier: GPL-2.0
/*
 * A module whose exit waits until 1 is written to its parameter "leave". As long as
 * that takes it is going away, and its functions can still be found.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static bool leave;

static int bpf_events_leaving_set(const char *val, const struct kernel_param *kp)
{
	return param_set_bool(val, kp);
}

static const struct kernel_param_ops leave_ops = {
	.set = bpf_events_leaving_set,
};

static int __init leaving_init(void)
{
	return 0;
}
module_init(leaving_init);

static void __exit leaving_exit(void)
{
	while (!READ_ONCE(leave))
		msleep(20);
}
module_exit(leaving_exit);

module_param_cb(leave, &leave_ops, &leave, 0200);
MODULE_PARM_DESC(leave, "1: go");
MODULE_DESCRIPTION("Tests of probes on a module that is going away");
MODULE_LICENSE("GPL");
