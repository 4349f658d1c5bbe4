// SPDX-License-Identifier: GPL-2.0
/* A bug where a program prints, for tasks of one name: they die inside of the helper. */
#include <linux/compiler.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

static struct tracepoint *printk_tp;
static int *nowhere;

static void find_printk_tp(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "bpf_trace_printk"))
		printk_tp = tp;
}

static void die_in_printk(void *unused, const char *line)
{
	if (!strcmp(current->comm, "bpf_events_die"))
		*READ_ONCE(nowhere) = 1;
}

static int __init dying_init(void)
{
	for_each_kernel_tracepoint(find_printk_tp, NULL);
	return printk_tp ? tracepoint_probe_register(printk_tp, die_in_printk, NULL) : -ENOENT;
}
module_init(dying_init);

static void __exit dying_exit(void)
{
	tracepoint_probe_unregister(printk_tp, die_in_printk, NULL);
	tracepoint_synchronize_unregister();
}
module_exit(dying_exit);

MODULE_DESCRIPTION("Tests of tasks that die inside of a program");
MODULE_LICENSE("GPL");
