// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that come on top of others.
 *
 * The guard of bpf_guard_enter() is held while a program runs. A hit that it turns away can
 * still run its program, on top of the one below, if
 *
 * - it is in a higher context: a softirq, interrupt or NMI came on top of the run below.
 *   So there are at most four runs under the guard on top of each other, and the hits of
 *   what a program calls itself are missed. A program on a breakpoint runs in NMI context,
 *   and has none on top of it;
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
 *
 * Programs on the arguments of tracepoints, those that trampolines call, and those on uprobes,
 * do not take the guard. All but themselves can be below the former two, in the same context,
 * too; none is below a program on a uprobe, as the task was in user space, but all others can
 * be on top of it. Those with values of each CPU are kept apart: they ask what is below, and
 * are on the list runs_below, so that what comes on top, in any context, can ask for them.
 * Those without ask nothing. Stores into other maps do not count here: there has never been a
 * guard that programs could rely on. Those that bpf_prog_has_scratch() does not name are not
 * kept apart, nor what an extension brings into a program that has no such values itself.
 */
#include <linux/bpf.h>
#include <linux/hardirq.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"

/* The innermost run on this CPU that is on top of another, or does not take the guard */
static DEFINE_PER_CPU(const struct bpf_run_below *, runs_below);

/* Is one of the first @nr_a maps of @a among the first @nr_b of @b? */
static nokprobe_inline bool
maps_meet(const struct bpf_prog_scratch *a, u32 nr_a, const struct bpf_prog_scratch *b, u32 nr_b)
{
	u32 i, j;

	for (i = 0; i < nr_a; i++) {
		for (j = 0; j < nr_b; j++) {
			if (a->maps[i] == b->maps[j])
				return true;
		}
	}
	return false;
}

static nokprobe_inline bool is_extended(const struct bpf_prog *prog)
{
	return READ_ONCE(prog->aux->nr_extensions);
}

/* May these two, which take the guard, be unfinished on one CPU at the same time? */
static bool progs_nest(const struct bpf_prog *a, const struct bpf_prog *b)
{
	const struct bpf_prog_scratch *x = a->aux->scratch, *y = b->aux->scratch;

	if (x->any || y->any || is_extended(a) || is_extended(b))
		return false;
	return !maps_meet(x, x->nr, y, y->nr_scratch) && !maps_meet(x, x->nr_scratch, y, y->nr);
}

NOKPROBE_SYMBOL(progs_nest);

static nokprobe_inline bool has_any_percpu(const struct bpf_prog *prog)
{
	return prog->aux->scratch->any_percpu || is_extended(prog);
}

/* May they have values of this CPU in common? */
static bool progs_share_percpu(const struct bpf_prog *a, const struct bpf_prog *b)
{
	const struct bpf_prog_scratch *x = a->aux->scratch, *y = b->aux->scratch;

	if (has_any_percpu(a))
		return y->nr_percpu || has_any_percpu(b);
	if (has_any_percpu(b))
		return x->nr_percpu;
	return maps_meet(x, x->nr_percpu, y, y->nr_percpu);
}

NOKPROBE_SYMBOL(progs_share_percpu);

/* The program under the guard that @below leads to, if it has begun: it has a hit then. */
static const struct bpf_prog *guarded_prog(const struct bpf_run_below *below)
{
	if (!(below->guard & BPF_GUARD_HELD) || !below->hit)
		return NULL;
	return bpf_hit_attachment(below->hit)->prog;
}

NOKPROBE_SYMBOL(guarded_prog);

static nokprobe_inline enum bpf_miss
miss_on(const struct bpf_prog *below, const struct bpf_prog *prog, enum bpf_miss why)
{
	return below == prog || why == BPF_MISS_SAME_PROG ? BPF_MISS_SAME_PROG :
							    BPF_MISS_OTHER_PROG;
}

/* Why may the program not be on top of all that is below? BPF_NR_MISSES: it may. */
static enum bpf_miss
why_missed(const struct bpf_run_below *below, const struct bpf_prog *prog, bool guarded)
{
	enum bpf_miss why = BPF_NR_MISSES;

	for (; below; below = below->next) {
		const struct bpf_prog *under = guarded_prog(below), *above = below->above;

		if (under && (guarded ? !progs_nest(prog, under) :
					progs_share_percpu(prog, under)))
			why = miss_on(under, prog, why);
		if (above && progs_share_percpu(prog, above))
			why = miss_on(above, prog, why);
	}
	return why;
}

NOKPROBE_SYMBOL(why_missed);

/* What comes on top in the middle of this leaves all as it was. */
static nokprobe_inline void look_below(struct bpf_run_below *below)
{
	below->next = __this_cpu_read(runs_below);
	below->hit = __this_cpu_read(bpf_current_hit);
	below->guard = __this_cpu_read(bpf_prog_active);
	below->above = NULL;
}

/* The guard is in the way of a program in a context that is not higher, and of bpf(2). */
static nokprobe_inline bool guard_refuses(int guard)
{
	if (!(guard & ~BPF_GUARD_APART))
		return false;
	return !(guard & BPF_GUARD_HELD) ||
	       interrupt_context_level_of(kprobe_hit_preempt_count()) <=
	       interrupt_context_level_of(guard);
}

/**
 * bpf_guard_enter_on_top() - begin to run a program where bpf_guard_enter() said no
 * @below: what bpf_guard_exit_on_top() has to put back
 * @att: the program
 *
 * What comes on top in the middle of this leaves all as it was, and finds each run below
 * once or twice.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: BPF_NR_MISSES: the program may run, under rcu_read_lock(), until
 * bpf_guard_exit_on_top(). Else the hit has been counted as missed, for this reason.
 */
enum bpf_miss
bpf_guard_enter_on_top(struct bpf_run_below *below, const struct bpf_attachment *att)
{
	enum bpf_miss why;

	look_below(below);
	if (guard_refuses(below->guard))
		why = BPF_MISS_MAP_OP; /* or what is below: bpf_attachment_missed() */
	else
		why = why_missed(below, att->prog, true);
	if (why != BPF_NR_MISSES) {
		bpf_attachment_missed(att, why);
		return why;
	}

	barrier();	/* *below is there before what leads to it */
	__this_cpu_write(runs_below, below);
	barrier();	/* before the guard says that a run is here, which has no hit yet */
	__this_cpu_write(bpf_prog_active, preempt_count() | BPF_GUARD_HELD);
	cant_sleep();
	return BPF_NR_MISSES;
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

	if (bpf_guard_enter_on_top(&below, att) != BPF_NR_MISSES)
		return false;
	rcu_read_lock();
	ret = bpf_attachment_hit(att, &att->hit, ctx);
	rcu_read_unlock();
	bpf_guard_exit_on_top(&below);
	return ret;
}

NOKPROBE_SYMBOL(bpf_attachment_hit_on_top);

/**
 * bpf_prog_is_apart() - is the program one of those that are kept apart?
 * @prog: the program, which does not take the guard where it is attached
 *
 * It has values of each CPU. Others can be on top of it, and it on top of others, at any time,
 * so that it asks what is below, and tells what is on top.
 */
bool bpf_prog_is_apart(const struct bpf_prog *prog)
{
	const struct bpf_prog_scratch *scratch = prog->aux->scratch;

	return scratch && (scratch->nr_percpu || scratch->any_percpu);
}

static nokprobe_inline void
begin_apart(struct bpf_run_below *below, const struct bpf_prog *prog)
{
	below->above = prog;
	barrier();	/* *below is there before what leads to it */
	__this_cpu_write(runs_below, below);
	barrier();	/* before what takes the guard has to ask */
	__this_cpu_write(bpf_prog_active, below->guard | BPF_GUARD_APART);
}

static nokprobe_inline void end_apart(const struct bpf_run_below *below)
{
	__this_cpu_write(bpf_prog_active, below->guard);
	barrier();
	__this_cpu_write(runs_below, below->next);
}

static noinline enum bpf_miss
enter_apart_on_top(struct bpf_run_below *below, const struct bpf_prog *prog)
{
	enum bpf_miss why = why_missed(below, prog, false);

	if (why == BPF_NR_MISSES)
		begin_apart(below, prog);
	return why;
}

NOKPROBE_SYMBOL(enter_apart_on_top);

/**
 * bpf_prog_enter_apart() - begin to run a program that bpf_prog_is_apart()
 * @below: what bpf_prog_exit_apart() has to put back
 * @prog: the program
 *
 * Where bpf_prog_active is 0, no run is unfinished that takes the guard, or is kept apart.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: BPF_NR_MISSES: it may run; else why not. bpf_prog_exit_apart() follows, either way.
 */
enum bpf_miss bpf_prog_enter_apart(struct bpf_run_below *below, const struct bpf_prog *prog)
{
	look_below(below);
	if (unlikely(below->guard))
		return enter_apart_on_top(below, prog);
	begin_apart(below, prog);
	return BPF_NR_MISSES;
}

NOKPROBE_SYMBOL(bpf_prog_enter_apart);

/**
 * bpf_prog_exit_apart() - the end of what bpf_prog_enter_apart() has let begin, or not
 * @below: what that has filled in
 */
void bpf_prog_exit_apart(const struct bpf_run_below *below)
{
	if (below->above)
		end_apart(below);
}

NOKPROBE_SYMBOL(bpf_prog_exit_apart);

/* attachment_run_apart() where something is below, or is to be timed */
static noinline unsigned int
attachment_run_apart_slowly(const void *ctx, const struct bpf_attachment *att)
{
	struct bpf_run_below below;
	enum bpf_miss why = bpf_prog_enter_apart(&below, att->prog);
	unsigned int ret;

	if (why != BPF_NR_MISSES) {
		bpf_attachment_missed(att, why);
		return 0;
	}
	this_cpu_inc(att->stats->hits);
	ret = bpf_prog_run(att->prog, ctx);
	end_apart(&below);
	return ret;
}

NOKPROBE_SYMBOL(attachment_run_apart_slowly);

/* In the place of the program: @insns is the attachment. */
static unsigned int attachment_run_apart(const void *ctx, const struct bpf_insn *insns)
{
	const struct bpf_attachment *att = (const void *)insns;
	const struct bpf_prog *prog = att->prog;
	struct bpf_run_below below = { .next = __this_cpu_read(runs_below) };
	unsigned int ret;

	if (unlikely(__this_cpu_read(bpf_prog_active)) ||
	    static_branch_unlikely(&bpf_stats_enabled_key))
		return attachment_run_apart_slowly(ctx, att);
	begin_apart(&below, prog);
	this_cpu_inc(att->stats->hits);
	ret = bpf_dispatcher_nop_func(ctx, prog->insnsi, prog->bpf_func);
	end_apart(&below);
	return ret;
}

NOKPROBE_SYMBOL(attachment_run_apart);

/**
 * bpf_attachment_keep_apart() - for hits that do not take the guard
 * @att: was filled in by bpf_attachment_init()
 */
void bpf_attachment_keep_apart(struct bpf_attachment *att)
{
	if (!bpf_prog_is_apart(att->prog))
		return;
	att->func = attachment_run_apart;
	att->insns = (const void *)att;
	att->hits = bpf_idle_attachment.hits;	/* @func counts those that are not missed */
}

/**
 * bpf_abandon_runs() - forget the programs that this task is in the midst of: it dies
 *
 * A helper that hits a bug of the kernel does not return, and the run never ends. Its records
 * are on the stack of the task and in attachments, which are freed soon: nothing may follow
 * pointers to them any more. So programs run on this CPU as if none were below. One exception:
 * prog->active of a program on a raw tracepoint or trampoline stays raised on this CPU, where it
 * misses each hit from then on. Locks that the run held stay locked: what waits for one hangs,
 * as after any oops.
 *
 * Runs that take the guard, or are kept apart, have preemption off. So in task context, all
 * that are unfinished on this CPU are of this task. What interrupts here puts back what it has
 * found. A bug in an interrupt or NMI is a panic: then nothing is done.
 *
 * Context: any, before the stack is left.
 */
void bpf_abandon_runs(void)
{
	int guard;

	if (in_interrupt())
		return;
	preempt_disable_notrace();
	__this_cpu_write(runs_below, NULL);
	__this_cpu_write(bpf_current_hit, NULL);
	/* bpf(2), which has no run below it, stays counted */
	guard = __this_cpu_read(bpf_prog_active);
	__this_cpu_write(bpf_prog_active, guard & BPF_GUARD_HELD ? 0 : guard & ~BPF_GUARD_APART);
	bpf_miss_records_release(); /* where the task was in the midst of one */
	preempt_enable_notrace();
}

/**
 * bpf_abandon_buffers() - give back the buffers of helpers that this task is in: it dies
 *
 * Not with bpf_abandon_runs(): a debugger may let the task go on after that, and then it gives
 * them back itself. Holders of buffers have preemption off. So in task context, all that are
 * held on this CPU are of this task.
 *
 * Context: task, before preemption is enabled for its end.
 */
void bpf_abandon_buffers(void)
{
	preempt_disable_notrace();
	bpf_bprintf_abandon();
	bpf_output_abandon();
	perf_callchain_abandon();
	preempt_enable_notrace();
}
