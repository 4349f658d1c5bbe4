// SPDX-License-Identifier: GPL-2.0
/*
 * How BPF programs run on uprobes.
 *
 * The task is on its way from or to user space and could sleep, so here
 * programs may that were loaded as sleepable. All others run with preemption
 * off, one at a time on a CPU. Programs on kprobes can interrupt any of them.
 *
 * Uprobes call their handlers as readers of RCU tasks trace. That keeps arrays of
 * programs and links, and the attachments and maps of sleepable programs. All other
 * attachments are used in a section of RCU, too. The end of an attachment waits for
 * these sections, and not for handlers, in which tasks may sleep.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/filter.h>
#include <linux/preempt.h>
#include <linux/rcupdate_trace.h>
#include <linux/sched.h>
#include <linux/trace_events.h>

#include "bpf_trace.h"

/**
 * bpf_attachment_hit_uprobe() - run a program on a uprobe
 * @att: the program
 * @cookie: what bpf_get_attach_cookie() is to return
 * @func_ip: what bpf_get_func_ip() is to return
 * @regs: the registers of the task in user space, the program's context
 *
 * Context: process. @att is kept by RCU or, if the program may sleep, by RCU tasks trace.
 * Return: what the program returns.
 */
u32 bpf_attachment_hit_uprobe(const struct bpf_attachment *att, u64 cookie,
			      unsigned long func_ip, struct pt_regs *regs)
{
	struct bpf_uprobe_run_ctx run = {
		.hit = {
			.cookie = cookie,
			.func_ip = func_ip,
		},
	};
	struct bpf_run_ctx *outer;
	u32 ret;

	outer = bpf_set_run_ctx(&run.run_ctx);
	if (att->prog->sleepable) {
		might_fault();
		migrate_disable();
		ret = bpf_attachment_run(att, regs);
		migrate_enable();
	} else {
		guard(preempt)();
		ret = bpf_attachment_run(att, regs);
	}
	bpf_reset_run_ctx(outer);
	return ret;
}

/*
 * A perf event that watches one task does not run its program for other tasks, also
 * where another perf event has the uprobe event hit by them. One that is released does
 * not run it at all: the task may have slept since it got the array, in a program before
 * this one.
 */
static bool bpf_uprobe_covers_current(const struct bpf_attachment *att)
{
	struct perf_event *event = READ_ONCE(bpf_perf_attachment(att)->event);

	if (!event)
		return false;
	if (!event->hw.target || event->hw.target->mm == current->mm)
		return true;
	return event->attr.inherit &&
	       event->tp_event->class->bpf_ops->covers_current(event);
}

static bool bpf_uprobe_slot_passes(const struct bpf_event_slot *slot,
				   unsigned long func_ip, struct pt_regs *regs)
{
	const struct bpf_attachment *att;

	scoped_guard(rcu) {
		att = READ_ONCE(slot->active);
		if (att == &bpf_idle_attachment || !bpf_uprobe_covers_current(att))
			return true;
		if (!att->prog->sleepable)
			return bpf_attachment_hit_uprobe(att, att->hit.cookie, func_ip, regs);
	}
	return bpf_attachment_hit_uprobe(att, att->hit.cookie, func_ip, regs);
}

/**
 * bpf_uprobe_event_run() - run the programs of a uprobe event
 * @array: the event's programs
 * @func_ip: where the uprobe is, in the address space of the task
 * @regs: the registers of the task in user space, the programs' context
 *
 * Context: process, may sleep. Reader of RCU tasks trace.
 * Return: false if one of the programs that ran returned 0.
 */
bool bpf_uprobe_event_run(const struct bpf_event_array *array,
			  unsigned long func_ip, struct pt_regs *regs)
{
	bool pass = true;
	u32 i;

	for (i = 0; i < array->nr; i++) {
		if (!bpf_uprobe_slot_passes(&array->slots[i], func_ip, regs))
			pass = false;
	}
	return pass;
}
