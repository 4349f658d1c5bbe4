// SPDX-License-Identifier: GPL-2.0
/*
 * A page fault that comes, as far as perf knows, inside the handling of another
 * event of the same task. An address that is written to the parameter "touch" is
 * stored to.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

static int touch_set(const char *val, const struct kernel_param *kp)
{
	unsigned long addr;
	int rctx, err;

	err = kstrtoul(val, 0, &addr);
	if (err)
		return err;

	/* In task context, and of the task: it may be scheduled meanwhile */
	rctx = perf_swevent_get_recursion_context();
	if (rctx < 0)
		return -EBUSY;
	err = put_user(1, (char __user *)addr);
	barrier();
	current->perf_recursion[rctx]--;
	return err;
}

static const struct kernel_param_ops touch_ops = {
	.set = touch_set,
};

module_param_cb(touch, &touch_ops, NULL, 0200);
MODULE_PARM_DESC(touch, "an address of the caller's");
MODULE_DESCRIPTION("Tests of software events inside the handling of others");
MODULE_LICENSE("GPL");
