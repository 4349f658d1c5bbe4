// SPDX-License-Identifier: GPL-2.0
/* Functions that probes wait for. A write to the parameter "call" calls them. */
#include <linux/compiler.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static noinline __noclone void bpf_events_forbidden(void)
{
	asm volatile("");
}

NOKPROBE_SYMBOL(bpf_events_forbidden);

/* module_wait_test makes a row of short instructions of this one, as another build would. */
static noinline __noclone void bpf_events_rebuilt(void)
{
#ifdef CONFIG_X86
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x7a, 0x1c, 0xe5, 0x3b");
#endif
}

static int call_set(const char *val, const struct kernel_param *kp)
{
	bpf_events_forbidden();
	bpf_events_rebuilt();
	return 0;
}

static const struct kernel_param_ops call_ops = {
	.set = call_set,
};

module_param_cb(call, &call_ops, NULL, 0200);
MODULE_PARM_DESC(call, "anything");
MODULE_DESCRIPTION("Tests of probes that wait for a module");
MODULE_LICENSE("GPL");
