// SPDX-License-Identifier: GPL-2.0
/* Two functions of one name, and one that has the name of a system call's: "call" calls them. */
#include <linux/compiler.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "bpf_events_same.h"

/* As kernel symbols have it on x86; elsewhere it is only another function */
static noinline __noclone void same_as_kernel(void)
	asm("__x64_sys_sched_get_priority_min");

static noinline __noclone void bpf_events_same(void)
{
	asm volatile("");
}

static noinline __noclone void same_as_kernel(void)
{
	asm volatile("nop");	/* or the compiler makes one function of the two */
}

static int call_set(const char *val, const struct kernel_param *kp)
{
	bpf_events_same();
	bpf_events_call_other();
	same_as_kernel();
	return 0;
}

static const struct kernel_param_ops call_ops = {
	.set = call_set,
};

module_param_cb(call, &call_ops, NULL, 0200);
MODULE_PARM_DESC(call, "anything");
MODULE_DESCRIPTION("Tests of links to functions of one name");
MODULE_LICENSE("GPL");
