// SPDX-License-Identifier: GPL-2.0
/*
 * How BPF programs run on uprobes.
 *
 * The task is on its way from or to user space and could sleep, so here
 * programs may that were loaded as sleepable. All others run with preemption
 * off, one at a time on a CPU. Programs on kprobes can interrupt any of them, unless they
 * have per-CPU values in common.
 *
 * Uprobes call their handlers as readers of RCU tasks trace. That keeps arrays of
 * programs, attachments and links, and sleepable programs with their maps. Perf events,
 * and all other programs, are used in sections of RCU, too, which begin with a look
 * whether the attachment is released. The end of one waits for these sections, and for
 * handlers, in which tasks may sleep, only if its program may.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/filter.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/trace_events.h>

#include "bpf_trace.h"

static __always_inline u32
bpf_attachment_run_unless_released(const struct bpf_attachment *att, struct pt_regs *regs)
{
	return READ_ONCE(att->released) ? 1 : bpf_attachment_run(att, regs);
}

static __always_inline u32
attachment_hit_uprobe(const struct bpf_attachment *att, const struct bpf_hit *hit,
		      struct pt_regs *regs)
{
	struct bpf_uprobe_run_ctx run = { .hit = hit };
	struct bpf_run_ctx *outer;
	u32 ret;

	outer = bpf_set_run_ctx(&run.run_ctx);
	if (att->sleepable) {
		might_fault();
		migrate_disable();
		ret = bpf_attachment_run_unless_released(att, regs);
		migrate_enable();
	} else {
		guard(rcu)();
		guard(preempt)();
		ret = bpf_attachment_run_unless_released(att, regs);
	}
	bpf_reset_run_ctx(outer);
	return ret;
}

/**
 * bpf_attachment_hit_uprobe() - run a program on a uprobe
 * @att: the program
 * @hit: what the program may ask about; @func_ip of it is not 0
 * @regs: the registers of the task in user space, the program's context
 *
 * One that is released is not run: the task may have slept since it found it, in a
 * program that ran before.
 *
 * Context: process. Reader of RCU tasks trace, which keeps @att; for filters, of RCU.
 * Return: what the program returns; 1 if it is released, 0 (1 of a session) if it is over
 * its limits.
 */
u32 bpf_attachment_hit_uprobe(const struct bpf_attachment *att, const struct bpf_hit *hit,
			      struct pt_regs *regs)
{
	return attachment_hit_uprobe(att, hit, regs);
}

/**
 * bpf_attachment_missed_uprobe() - account a return that cannot run a program
 * @att: the program
 *
 * Context: process. Reader of RCU tasks trace, which keeps @att.
 */
void bpf_attachment_missed_uprobe(const struct bpf_attachment *att)
{
	guard(rcu)();
	guard(preempt)();
	/* Its program may be gone. */
	if (!READ_ONCE(att->released))
		bpf_attachment_missed(att, BPF_MISS_NO_RETURN);
}

/*
 * A perf event that watches one task does not run its program for other tasks, also
 * where another perf event has the uprobe event hit by them.
 */
static bool bpf_uprobe_covers_current(const struct bpf_attachment *att)
{
	struct perf_event *event = bpf_perf_attachment(att)->event;
	const struct mm_struct *mm;

	if (!bpf_perf_attachment(att)->for_task)
		return true;

	guard(rcu)();
	if (READ_ONCE(att->released))
		return false;
	mm = READ_ONCE(event->hw.target->mm);
	if (mm == current->mm)
		return true;
	/* A thread that has exited has none, while others of its process go on. */
	return (event->attr.inherit || !mm) &&
	       event->tp_event->class->bpf_ops->covers_current(event);
}

static bool bpf_uprobe_runs_here(const struct bpf_attachment *att)
{
	return att != &bpf_idle_attachment && bpf_uprobe_covers_current(att);
}

static bool bpf_uprobe_slot_passes(const struct bpf_event_slot *slot,
				   unsigned long func_ip, struct pt_regs *regs)
{
	const struct bpf_attachment *att = READ_ONCE(slot->active);
	const struct bpf_hit hit = { .cookie = att->hit.cookie, .func_ip = func_ip };

	return !bpf_uprobe_runs_here(att) || attachment_hit_uprobe(att, &hit, regs);
}

/**
 * bpf_uprobe_event_run() - run the programs of a uprobe event
 * @array: the event's programs
 * @func_ip: where the uprobe is, in the address space of the task
 * @regs: the registers of the task in user space, the programs' context
 *
 * Context: process, may sleep. Reader of RCU tasks trace.
 * Return: false if one of the programs returned 0, or must not run by its limits.
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

/**
 * bpf_uprobe_event_missed() - account a hit that never got to a uprobe event's programs
 * @call: the event
 *
 * Context: process. Reader of RCU tasks trace.
 */
void bpf_uprobe_event_missed(struct trace_event_call *call)
{
	const struct bpf_event_array *array;
	const struct bpf_attachment *att;
	u32 i;

	array = rcu_dereference_check(call->bpf_array, rcu_read_lock_trace_held());
	if (!array)
		return;

	for (i = 0; i < array->nr; i++) {
		att = READ_ONCE(array->slots[i].active);
		if (bpf_uprobe_runs_here(att))
			bpf_attachment_missed_uprobe(att);
	}
}
