// SPDX-License-Identifier: GPL-2.0
/*
 * The trace event bpf_prog_missed: which program misses a hit, why, and, by what trace events
 * have anyway, when, in which task and with which stack.
 */
#include <linux/bits.h>
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

#include "bpf_trace.h"

#define CREATE_TRACE_POINTS
#include "bpf_trace_missed.h"

const char * const bpf_miss_names[BPF_NR_MISSES] = {
	[BPF_MISS_SAME_PROG]	= "same_prog",
	[BPF_MISS_OTHER_PROG]	= "other_prog",
	[BPF_MISS_MAP_OP]	= "map_op",
	[BPF_MISS_NESTED]	= "nested",
	[BPF_MISS_NO_RETURN]	= "no_return",
	[BPF_MISS_NO_RCU]	= "no_rcu",
	[BPF_MISS_BUDGET]	= "budget",
};

/* The contexts of this CPU in which a miss leaves no record, a bit for each */
static DEFINE_PER_CPU(u8, contexts_held);

/**
 * bpf_miss_records_hold() - make no records in this context, until bpf_miss_records_release()
 *
 * Higher contexts go on to make records, and leave @contexts_held as it was.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: false if that is so already; then it is for somebody else to release.
 */
bool bpf_miss_records_hold(void)
{
	u8 context = BIT(interrupt_context_level());

	if (__this_cpu_read(contexts_held) & context)
		return false;
	__this_cpu_or(contexts_held, context);
	return true;
}

NOKPROBE_SYMBOL(bpf_miss_records_hold);

/**
 * bpf_miss_records_release() - the end of bpf_miss_records_hold()
 */
void bpf_miss_records_release(void)
{
	__this_cpu_and(contexts_held, ~BIT(interrupt_context_level()));
}

NOKPROBE_SYMBOL(bpf_miss_records_release);

/* Is this on top of a breakpoint that is on top of another one? Kprobes has no room for a third. */
static nokprobe_inline bool kprobe_is_reentered(void)
{
#ifdef CONFIG_KPROBES
	return kprobe_running() && get_kprobe_ctlblk()->kprobe_status == KPROBE_REENTER;
#else
	return false;
#endif
}

/**
 * __bpf_trace_missed() - make a record of a miss, where the event is enabled
 * @prog: the program
 * @why: the reason
 *
 * What makes the record can be probed, and programs can be on the event. What these miss in
 * this context leaves no record, else there would be no end. Until that is so, nothing is
 * called that can be probed. The rest is as where a program calls helpers: kprobes may be
 * handling a hit, and can take others.
 *
 * There is no record where RCU is not watching, which trace events need.
 *
 * Context: any of task, softirq, hardirq and NMI.
 */
void __bpf_trace_missed(const struct bpf_prog *prog, enum bpf_miss why)
{
	preempt_disable_notrace();
	if (bpf_miss_records_hold()) {
		if (rcu_is_watching() && !kprobe_is_reentered())
			trace_bpf_prog_missed(prog, why);
		bpf_miss_records_release();
	}
	preempt_enable_notrace();
}

NOKPROBE_SYMBOL(__bpf_trace_missed);
