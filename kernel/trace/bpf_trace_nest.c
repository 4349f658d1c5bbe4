// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that come on top of others.
 *
 * The guard of bpf_guard_enter() is held while a program runs. A hit that it turns away can
 * still run its program, on top of the one below, if
 *
 * - it is in a higher context: a softirq, interrupt or NMI came on top of the run below.
 *   So there are at most four runs on top of each other, and the hits of what a program
 *   calls itself are missed. A program on a breakpoint runs in NMI context, and has none on
 *   top of it;
 *
 * - it shares no scratch with any of the runs below. Programs keep records that they are
 *   about to write in per-CPU maps, and count on it that nothing else works on these
 *   meanwhile. So do those that write into values of other maps, but for atomic
 *   instructions. The verifier notes which maps these are: struct bpf_prog_scratch.
 *
 * All else that programs can use is safe on top of itself. They have the same helpers as
 * programs on raw tracepoints and those that trampolines call, which do not take the guard,
 * and have always been on top of others and below them: locks of maps have the guards of
 * kernel/bpf/map_lock.h, buffers of helpers are one a level, or busy.
 *
 * bpf(2) at work on a map, which the guard counts too, is no run: on top of that no program
 * runs.
 */
#include <linux/bpf.h>
#include <linux/hardirq.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "bpf_trace.h"

/* The innermost run on top of another on this CPU */
static DEFINE_PER_CPU(const struct bpf_run_below *, runs_below);

static nokprobe_inline bool
uses_scratch_of(const struct bpf_prog_scratch *a, const struct bpf_prog_scratch *b)
{
	u32 i, j;

	for (i = 0; i < b->nr_scratch; i++) {
		for (j = 0; j < a->nr; j++) {
			if (a->maps[j] == b->maps[i])
				return true;
		}
	}
	return false;
}

/* May these two be unfinished on one CPU at the same time? */
static bool progs_nest(const struct bpf_prog *a, const struct bpf_prog *b)
{
	const struct bpf_prog_scratch *x = a->aux->scratch, *y = b->aux->scratch;

	if (!x || !y || READ_ONCE(a->aux->nr_extensions) ||
	    READ_ONCE(b->aux->nr_extensions))
		return false;
	return !uses_scratch_of(x, y) && !uses_scratch_of(y, x);
}

NOKPROBE_SYMBOL(progs_nest);

/*
 * Why may the program not be on top of the one that runs for @hit, or is about to if there
 * is none?  BPF_NR_MISSES: it may.
 */
static enum bpf_miss miss_on(const struct bpf_prog *prog, const struct bpf_hit *hit)
{
	const struct bpf_prog *below = hit ? bpf_hit_attachment(hit)->prog : NULL;

	if (!below || progs_nest(prog, below))
		return BPF_NR_MISSES;
	return below == prog ? BPF_MISS_SAME_PROG : BPF_MISS_OTHER_PROG;
}

NOKPROBE_SYMBOL(miss_on);

/* @below: what the run would be on top of, and what that is on top of */
static enum bpf_miss why_missed(const struct bpf_prog *prog, const struct bpf_run_below *below)
{
	enum bpf_miss why = BPF_NR_MISSES;

	if (!(below->guard & BPF_GUARD_HELD) ||
	    interrupt_context_level_of(kprobe_hit_preempt_count()) <=
	    interrupt_context_level_of(below->guard))
		return BPF_MISS_MAP_OP; /* or what is below: bpf_attachment_missed() */

	for (; below && why != BPF_MISS_SAME_PROG; below = below->next) {
		enum bpf_miss here = miss_on(prog, below->hit);

		if (here != BPF_NR_MISSES)
			why = here;
	}
	return why;
}

NOKPROBE_SYMBOL(why_missed);

/**
 * bpf_guard_enter_on_top() - begin to run a program where bpf_guard_enter() said no
 * @below: what bpf_guard_exit_on_top() has to put back
 * @att: the program
 *
 * What comes on top in the middle of this leaves all as it was, and finds each run below
 * once or twice.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: whether the program may run, under rcu_read_lock(), until
 * bpf_guard_exit_on_top(). If not, the hit is counted as missed.
 */
bool bpf_guard_enter_on_top(struct bpf_run_below *below, const struct bpf_attachment *att)
{
	enum bpf_miss why;

	below->next = __this_cpu_read(runs_below);
	below->hit = __this_cpu_read(bpf_current_hit);
	below->guard = __this_cpu_read(bpf_prog_active);
	why = why_missed(att->prog, below);
	if (why != BPF_NR_MISSES) {
		bpf_attachment_missed(att, why);
		return false;
	}

	barrier();	/* *below is there before what leads to it */
	__this_cpu_write(runs_below, below);
	barrier();	/* before the guard says that a run is here, which has no hit yet */
	__this_cpu_write(bpf_prog_active, preempt_count() | BPF_GUARD_HELD);
	cant_sleep();
	return true;
}

NOKPROBE_SYMBOL(bpf_guard_enter_on_top);

/**
 * bpf_guard_exit_on_top() - the end of what bpf_guard_enter_on_top() has let begin
 * @below: what that has filled in
 */
void bpf_guard_exit_on_top(const struct bpf_run_below *below)
{
	__this_cpu_write(bpf_prog_active, below->guard);
	barrier();
	__this_cpu_write(bpf_current_hit, below->hit);
	barrier();
	__this_cpu_write(runs_below, below->next);
}

NOKPROBE_SYMBOL(bpf_guard_exit_on_top);

/**
 * bpf_attachment_hit_on_top() - run a program under bpf_guard_enter_on_top()
 * @att: the program
 * @ctx: what it gets as context
 *
 * Context: that of bpf_guard_enter_on_top().
 * Return: whether the program ran, and returned non-zero.
 */
bool bpf_attachment_hit_on_top(const struct bpf_attachment *att, void *ctx)
{
	struct bpf_run_below below;
	u32 ret;

	if (!bpf_guard_enter_on_top(&below, att))
		return false;
	rcu_read_lock();
	ret = bpf_attachment_hit(att, &att->hit, ctx);
	rcu_read_unlock();
	bpf_guard_exit_on_top(&below);
	return ret;
}

NOKPROBE_SYMBOL(bpf_attachment_hit_on_top);
