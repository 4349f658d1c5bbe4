// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs on kprobe and uprobe events, tracepoints and system calls.
 *
 * A program is attached to a trace event through a perf event (SET_BPF, or a
 * link); the perf event owns the attachment, and its release, or the link's,
 * ends it. The programs of a trace event stand in one array, which the event
 * reads on each hit:
 *
 *	trace_event_call
 *	    bpf_array --> bpf_event_array	replaced whole, freed after RCU
 *			    slots[0] --> bpf_attachment <-- perf_event (its owner)
 *			    slots[1]	    prog, stats	      bpf_paused
 *			    ...
 *
 * A slot points to the attachment, or to bpf_idle_attachment while the owner has it
 * paused. So a hit tests no state, and runs what it finds.
 *
 * While a kprobe event has one program, not paused, and nothing else to do,
 * trace_probe_event has a pointer to the attachment, too, by which a hit gets to
 * the program in one step.
 *
 * Readers take no lock. Kprobes walk the array with preemption disabled,
 * uprobes as readers of RCU tasks trace. Writers hold bpf_event_mutex. What is
 * paused changes in contexts that cannot wait for it, so what hits look at (the
 * pointer to the array, the slots in it, the pointer to the sole attachment) changes
 * under bpf_hits_lock.
 *
 * A perf event that is not one of a trace event has no array: on overflow it
 * runs the one program that it owns (bpf_trace_perf_event.c).
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/filter.h>
#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "bpf_trace.h"

/*
 * bpf_event_mutex serializes changes of every event's array and of
 * perf_event::bpf; bpf_hits_lock those of what hits look at. The order is
 *
 *	perf_event_context::mutex, or event_mutex, or none
 *	    bpf_event_mutex
 *		tracing_err_log_lock
 *		bpf_hits_lock, also with perf_event_context::lock held
 */
static DEFINE_MUTEX(bpf_event_mutex);
static DEFINE_RAW_SPINLOCK(bpf_hits_lock);

DEFINE_PER_CPU(const struct bpf_hit *, bpf_current_hit);

static unsigned int idle_attachment_run(const void *ctx, const struct bpf_insn *insns)
{
	return 1;
}

NOKPROBE_SYMBOL(idle_attachment_run);

/* Written, never read. */
static DEFINE_PER_CPU(struct bpf_attachment_stats, idle_stats);

const struct bpf_attachment bpf_idle_attachment = {
	.stats	= &idle_stats,
	.hits	= &idle_stats.hits,
	.func	= idle_attachment_run,
};

/* Is it a run of a program under the guard that a hit is on top of? */
static enum bpf_miss miss_on_top(const struct bpf_attachment *att, enum bpf_miss otherwise)
{
	const struct bpf_hit *hit = __this_cpu_read(bpf_current_hit);

	if (!(__this_cpu_read(bpf_prog_active) & BPF_GUARD_HELD))
		return otherwise;
	if (!hit)
		return BPF_MISS_OTHER_PROG;
	return bpf_hit_attachment(hit)->prog == att->prog ? BPF_MISS_SAME_PROG :
							    BPF_MISS_OTHER_PROG;
}

NOKPROBE_SYMBOL(miss_on_top);

/**
 * bpf_attachment_missed() - account a hit that a program misses
 * @att: the program
 * @why: the reason; where a program is below, that replaces BPF_MISS_MAP_OP and
 *	BPF_MISS_NESTED
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_attachment_missed(const struct bpf_attachment *att, enum bpf_miss why)
{
	if (why == BPF_MISS_MAP_OP || why == BPF_MISS_NESTED)
		why = miss_on_top(att, why);
	this_cpu_inc(att->stats->missed[why]);
	bpf_prog_inc_misses_counter(att->prog);
	bpf_trace_missed(att->prog, why);
}

NOKPROBE_SYMBOL(bpf_attachment_missed);

static void event_array_missed(const struct bpf_event_array *array, enum bpf_miss why)
{
	u32 i;

	for (i = 0; i < array->nr; i++) {
		const struct bpf_attachment *att = READ_ONCE(array->slots[i].active);

		if (att != &bpf_idle_attachment)
			bpf_attachment_missed(att, why);
	}
}

NOKPROBE_SYMBOL(event_array_missed);

/**
 * bpf_run_timed() - run a program, with account of how long that takes
 * @att: the program
 * @ctx: its context
 *
 * Context: that of bpf_guard_enter().
 * Return: what the program returns.
 */
u32 bpf_run_timed(const struct bpf_attachment *att, void *ctx)
{
	if (att->func != att->prog->bpf_func)
		return att->func(ctx, att->insns);
	return bpf_prog_run(att->prog, ctx);
}

NOKPROBE_SYMBOL(bpf_run_timed);

/**
 * bpf_event_missed() - account a hit that never got to the event's programs
 * @call: the event
 * @why: the reason
 *
 * For event sources that have to drop a hit, say because it came from inside
 * the handling of another. Everything it calls is out of bounds for kprobes:
 * the hit being dropped may be in the middle of handling one. What makes a
 * record of it is not; see __bpf_trace_missed(), and bpf_miss_records_hold()
 * for who cannot have that.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_event_missed(struct trace_event_call *call, enum bpf_miss why)
{
	const struct bpf_event_array *array;

	/* Not rcu_dereference_sched(): lockdep's checks can be probed. */
	array = rcu_dereference_raw(call->bpf_array);
	if (array)
		event_array_missed(array, why);
}

NOKPROBE_SYMBOL(bpf_event_missed);

/* How a hit runs its programs, by the static key that is on */
enum run_mode { RUN_PLAIN, RUN_TIMED, RUN_LIMITED };

/* @mode is a compile-time constant. */
static __always_inline bool
event_array_run(const struct bpf_event_array *array, void *ctx, enum run_mode mode)
{
	const struct bpf_event_slot *slot = array->slots;
	const struct bpf_event_slot *end = slot + array->nr;
	bool pass = true;

	for (; slot < end; slot++) {
		const struct bpf_attachment *att = READ_ONCE(slot->active);

		__this_cpu_write(bpf_current_hit, &att->hit);
		if (!(mode == RUN_LIMITED ? bpf_attachment_run_limited(att, ctx) :
		      __bpf_attachment_run(att, ctx, mode == RUN_TIMED)))
			pass = false;
	}
	return pass;
}

/* As bpf_event_run(), where the guard is taken. */
static bool event_array_run_on_top(const struct bpf_event_array *array, void *ctx)
{
	bool pass = true;
	u32 i;

	for (i = 0; i < array->nr; i++) {
		const struct bpf_attachment *att = READ_ONCE(array->slots[i].active);

		if (att != &bpf_idle_attachment && !bpf_attachment_hit_on_top(att, ctx))
			pass = false;
	}
	return pass;
}

NOKPROBE_SYMBOL(event_array_run_on_top);

/**
 * bpf_event_run() - run the programs of an event
 * @array: the event's programs, read in the same RCU-sched section
 * @ctx: what the programs get as context
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: true if all of the programs that ran returned non-zero, or none ran
 * since all are paused. false otherwise, also if one of them missed this hit.
 */
bool bpf_event_run(const struct bpf_event_array *array, void *ctx)
{
	bool pass;

	if (!bpf_guard_enter())
		return event_array_run_on_top(array, ctx);

	cant_migrate();
	if (static_branch_unlikely(&bpf_limits_key))
		pass = event_array_run(array, ctx, RUN_LIMITED);
	else if (static_branch_unlikely(&bpf_stats_enabled_key))
		pass = event_array_run(array, ctx, RUN_TIMED);
	else
		pass = event_array_run(array, ctx, RUN_PLAIN);
	bpf_guard_exit();
	return pass;
}

NOKPROBE_SYMBOL(bpf_event_run);

/**
 * bpf_event_lock() - begin to change which programs events have
 *
 * Or what that depends on: a kprobe event's list of probes. event_mutex, under which that
 * is for the rest of a change, will not do. Programs are attached with a perf context
 * locked, and while event_mutex is held CPUs may be waited for that come and lock theirs.
 *
 * Context: process; until bpf_event_unlock().
 */
void bpf_event_lock(void)
{
	mutex_lock(&bpf_event_mutex);
}

/**
 * bpf_event_unlock() - the end of bpf_event_lock()
 */
void bpf_event_unlock(void)
{
	mutex_unlock(&bpf_event_mutex);
}

/**
 * bpf_event_attachment() - find the attachment of a perf event
 * @event: the perf event
 *
 * Context: between bpf_event_lock() and bpf_event_unlock().
 * Return: the attachment that the perf event owns, or NULL.
 */
struct bpf_attachment *bpf_event_attachment(const struct perf_event *event)
{
	return rcu_dereference_protected(event->bpf,
					 lockdep_is_held(&bpf_event_mutex));
}

static struct bpf_event_array *event_array(const struct trace_event_call *call)
{
	return rcu_dereference_protected(call->bpf_array,
					 lockdep_is_held(&bpf_event_mutex));
}

/* The same, for holders of bpf_hits_lock */
static struct bpf_event_array *event_array_of_hits(const struct trace_event_call *call)
{
	return rcu_dereference_protected(call->bpf_array,
					 lockdep_is_held(&bpf_hits_lock));
}

static u32 event_array_live(const struct bpf_event_array *array)
{
	u32 i, live = 0;

	for (i = 0; array && i < array->nr; i++)
		live += !!array->slots[i].att;
	return live;
}

/**
 * bpf_event_next_attachment() - walk the attachments of a trace event
 * @call: the event
 * @pos: 0 for the first one; is set to where the next one is to be looked for
 *
 * Context: between bpf_event_lock() and bpf_event_unlock().
 * Return: the next attachment, in the order in which they run, or NULL.
 */
const struct bpf_attachment *
bpf_event_next_attachment(const struct trace_event_call *call, u32 *pos)
{
	const struct bpf_event_array *array = event_array(call);
	const struct bpf_attachment *att = NULL;

	while (!att && array && *pos < array->nr)
		att = array->slots[(*pos)++].att;
	return att;
}

/**
 * bpf_event_overrides() - may programs of an event override return values?
 * @call: the event
 *
 * Context: between bpf_event_lock() and bpf_event_unlock().
 * Return: whether there is one that calls bpf_override_return().
 */
bool bpf_event_overrides(struct trace_event_call *call)
{
	const struct bpf_attachment *att;
	u32 pos = 0;

	while ((att = bpf_event_next_attachment(call, &pos))) {
		if (att->prog->kprobe_override)
			return true;
	}
	return false;
}

/*
 * Make the array that follows @old: its attachments in their order without
 * @leaving, then @coming, each of which may be NULL.
 * Return: the array, NULL where it would be empty, or -ENOMEM.
 */
static struct bpf_event_array *
event_array_next(const struct bpf_event_array *old,
		 const struct bpf_attachment *leaving, struct bpf_attachment *coming)
{
	u32 nr = event_array_live(old) - !!leaving + !!coming;
	struct bpf_event_array *new;
	u32 i, to = 0;

	if (!nr)
		return NULL;

	new = kzalloc(struct_size(new, slots, nr), GFP_KERNEL);
	if (!new)
		return ERR_PTR(-ENOMEM);

	new->nr = nr;
	for (i = 0; old && i < old->nr; i++) {
		if (old->slots[i].att && old->slots[i].att != leaving)
			new->slots[to++].att = old->slots[i].att;
	}
	if (coming)
		new->slots[to].att = coming;
	return new;
}

static bool attachment_is_paused(const struct bpf_attachment *att)
{
	const struct bpf_perf_attachment *perf = bpf_perf_attachment(att);

	return !perf->by_link && perf->event->bpf_paused;
}

static void event_slot_set_active(struct bpf_event_slot *slot)
{
	const struct bpf_attachment *att = slot->att;
	bool idle = !att || attachment_is_paused(att);

	lockdep_assert_held(&bpf_hits_lock);
	WRITE_ONCE(slot->active, idle ? &bpf_idle_attachment : att);
}

static void event_array_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct bpf_event_array, rcu));
}

/*
 * Tell an event whose hits can have nothing else to do than to run one program which
 * program that is. A program that overrides return values is none of these: the
 * registers have to be looked at after its run.
 */
static void event_update_sole(struct trace_event_call *call)
{
	const struct bpf_event_array *array = event_array_of_hits(call);
	const struct bpf_event_ops *ops = call->class->bpf_ops;
	const struct bpf_attachment *sole = NULL;

	if (!ops->set_sole)
		return;

	if (array && array->nr == 1 && array->slots[0].active != &bpf_idle_attachment &&
	    !array->slots[0].att->prog->kprobe_override)
		sole = array->slots[0].active;
	ops->set_sole(call, sole);
}

/**
 * bpf_event_update_sole() - find out again what the hits of a kprobe event are for
 * @call: the event, whose flags say that tracing of it has begun or ceased
 *
 * Hits that are under way may still be handled as before.
 *
 * Context: any but NMI.
 */
void bpf_event_update_sole(struct trace_event_call *call)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bpf_hits_lock, flags);
	event_update_sole(call);
	raw_spin_unlock_irqrestore(&bpf_hits_lock, flags);
}

static void event_set_array(struct trace_event_call *call,
			    struct bpf_event_array *new)
{
	struct bpf_event_array *old = event_array(call);
	u32 i;

	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		for (i = 0; new && i < new->nr; i++)
			event_slot_set_active(&new->slots[i]);
		rcu_assign_pointer(call->bpf_array, new);
		event_update_sole(call);
	}
	if (old)
		call->class->bpf_ops->call_rcu(&old->rcu, event_array_free);
}

/**
 * bpf_attachment_init() - prepare the attachment of a program
 * @att: is filled in, but for @att->hit, which is 0
 * @prog: the program; what @att is part of holds a reference, and if the program may
 *	sleep, @att another one
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int bpf_attachment_init(struct bpf_attachment *att, struct bpf_prog *prog)
{
	att->stats = alloc_percpu_gfp(struct bpf_attachment_stats, GFP_KERNEL_ACCOUNT);
	att->budget = kzalloc(sizeof(*att->budget), GFP_KERNEL_ACCOUNT);
	if (!att->stats || !att->budget) {
		bpf_attachment_exit(att);
		return -ENOMEM;
	}
	att->budget->filled = jiffies - HZ;

	att->hits = &att->stats->hits;
	att->func = prog->bpf_func;
	att->insns = prog->insnsi;
	att->prog = prog;
	att->sleepable = prog->sleepable;
	if (att->sleepable)
		bpf_prog_inc(prog);
	return 0;
}

/**
 * bpf_attachment_exit() - free what bpf_attachment_init() has allocated
 * @att: the attachment, which is not hit any more; may be zeroed instead
 *
 * Context: any but hardirq and NMI.
 */
void bpf_attachment_exit(struct bpf_attachment *att)
{
	if (att->sleepable)
		bpf_prog_put(att->prog);
	free_percpu(att->stats);
	kfree(att->budget);
	att->stats = NULL;
	att->budget = NULL;
}

static struct bpf_attachment *
perf_attachment_new(struct perf_event *event, struct bpf_prog *prog, u64 cookie,
		    bool by_link)
{
	struct bpf_perf_attachment *perf;

	perf = kzalloc(sizeof(*perf), GFP_KERNEL_ACCOUNT);
	if (!perf)
		return NULL;
	if (bpf_attachment_init(&perf->att, prog)) {
		kfree(perf);
		return NULL;
	}
	perf->att.hit.cookie = cookie;
	perf->event = event;
	perf->for_task = event->hw.target;
	perf->by_link = by_link;
	return &perf->att;
}

static void perf_attachment_free(struct bpf_attachment *att)
{
	bpf_attachment_exit(att);
	kfree(bpf_perf_attachment(att));
}

static void perf_attachment_free_rcu(struct rcu_head *rcu)
{
	perf_attachment_free(&container_of(rcu, struct bpf_perf_attachment, rcu)->att);
}

/**
 * bpf_event_add() - add a program to those that an event runs
 * @event: the perf event that is going to own the attachment; it has none
 * @prog: the program, whose reference goes to the attachment
 * @cookie: what bpf_get_attach_cookie() is to return
 * @by_link: a link owns it, so DISABLE does not pause it
 *
 * Context: between bpf_event_lock() and bpf_event_unlock().
 * Return: 0 or -ENOMEM.
 */
int bpf_event_add(struct perf_event *event, struct bpf_prog *prog, u64 cookie,
		  bool by_link)
{
	struct trace_event_call *call = event->tp_event;
	struct bpf_event_array *new = NULL;
	struct bpf_attachment *att;

	att = perf_attachment_new(event, prog, cookie, by_link);
	if (!att)
		return -ENOMEM;

	if (call && call->flags & TRACE_EVENT_FL_UPROBE)
		bpf_attachment_keep_apart(att);
	if (call)
		new = event_array_next(event_array(call), NULL, att);
	if (IS_ERR(new)) {
		perf_attachment_free(att);
		return PTR_ERR(new);
	}

	rcu_assign_pointer(event->bpf, att);
	if (call)
		event_set_array(call, new);
	return 0;
}

/* Wait for readers of an attachment that its event has lost. */
static void event_wait_for_readers(const struct trace_event_call *call,
				   const struct bpf_attachment *att)
{
	if (call)
		call->class->bpf_ops->wait_readers();
	else
		bpf_wait_for_runs();
	if (att->sleepable)
		bpf_wait_for_sleepers();
}

static void event_array_drop(struct trace_event_call *call,
			     const struct bpf_attachment *leaving)
{
	struct bpf_event_array *array = event_array(call), *next;
	u32 i;

	next = event_array_next(array, leaving, NULL);
	if (!IS_ERR(next)) {
		event_set_array(call, next);
		return;
	}

	/* Leaving needs no memory, only tidying up does. */
	for (i = 0; array->slots[i].att != leaving; i++)
		;
	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		array->slots[i].att = NULL;
		event_slot_set_active(&array->slots[i]);
		event_update_sole(call);
	}
}

/**
 * bpf_event_release() - end the attachment of a perf event, if it has one
 * @event: the perf event; off, unless it is to go on without the program
 *
 * Once this returns no run of the program starts on behalf of this event on
 * any CPU, and none is under way. Of a program that may sleep, none is once the task is
 * back in user space, see bpf_wait_for_sleepers().
 *
 * Context: process, may sleep for an RCU grace period; no locks held.
 */
void bpf_event_release(struct perf_event *event)
{
	struct trace_event_call *call = event->tp_event;
	struct bpf_attachment *att;

	if (!rcu_access_pointer(event->bpf))
		return;

	scoped_guard(bpf_event) {
		att = bpf_event_attachment(event);
		if (call)
			event_array_drop(call, att);
		WRITE_ONCE(att->released, true);
		RCU_INIT_POINTER(event->bpf, NULL);
	}

	event_wait_for_readers(call, att);
	bpf_prog_put(att->prog);
	/* Arrays that are replaced, but in use, have it for as long as that. */
	if (call)
		call->class->bpf_ops->call_rcu(&bpf_perf_attachment(att)->rcu,
					       perf_attachment_free_rcu);
	else
		perf_attachment_free(att);
}

/* Make the slot of @event, if it has one, what @event->bpf_paused says. */
static void event_update_slot(const struct perf_event *event)
{
	struct trace_event_call *call = event->tp_event;
	const struct bpf_attachment *att;
	struct bpf_event_array *array;
	u32 i;

	array = call ? event_array_of_hits(call) : NULL;
	if (!array)
		return;

	for (i = 0; i < array->nr; i++) {
		att = array->slots[i].att;
		if (att && bpf_perf_attachment(att)->event == event)
			event_slot_set_active(&array->slots[i]);
	}
	event_update_sole(call);
}

/**
 * bpf_event_init() - pause the program of a perf event that begins disabled
 * @event: the perf event, which nothing else knows yet
 *
 * Context: any.
 */
void bpf_event_init(struct perf_event *event)
{
	event->bpf_paused = event->attr.disabled;
}

/**
 * bpf_event_begin_pause() - its owner turns off a perf event
 * @event: the perf event, which is on still
 *
 * Followed by bpf_event_pause(), once the event and those that were inherited from it
 * are off.
 *
 * Context: any but NMI, one caller at a time.
 */
void bpf_event_begin_pause(struct perf_event *event)
{
	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock)
		WRITE_ONCE(event->bpf_resumed, false);
}

/**
 * bpf_event_pause() - pause the program of a perf event
 * @event: the perf event
 *
 * perf_event::state does not tell: events also go off when their task exits,
 * their CPU goes offline or their group moves, and none of that is a reason
 * for the program, which serves all tasks and CPUs, to stop or to start.
 *
 * The program is paused last, since what it turns down must not be let pass to an
 * event that is still on: the perf event, or one that was inherited from it. While they
 * go off one by one, an exec() may turn one on again that was off already. It is
 * not off then, and neither is the program.
 *
 * A link is in force for as long as there is one. DISABLE does not pause it: libbpf
 * disables the perf event when it closes a link, also where the link is pinned.
 *
 * Context: any but NMI.
 * Return: false if bpf_event_resume() came after bpf_event_begin_pause(), and nothing
 * has changed.
 */
bool bpf_event_pause(struct perf_event *event)
{
	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		if (event->bpf_resumed)
			return false;
		event->bpf_paused = true;
		event_update_slot(event);
	}
	return true;
}

/**
 * bpf_event_resume() - resume the program of a perf event
 * @event: the perf event, or one that was inherited from it, which is off still, or to stay
 *	on; by exec() with the context of @event locked
 *
 * An event that a task inherited has the program of its parent.
 *
 * Context: any but NMI.
 */
void bpf_event_resume(struct perf_event *event)
{
	struct perf_event *owner = event->parent ?: event;

	/*
	 * Events without a program come here, too, from all CPUs. What begins a pause after
	 * this look turns @event off again before it pauses: exec() holds the lock of its
	 * context, ENABLE and DISABLE its mutex.
	 */
	if (smp_load_acquire(&owner->bpf_resumed))
		return;

	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		if (owner->bpf_paused) {
			owner->bpf_paused = false;
			event_update_slot(owner);
		}
		/* When others see it, hits do. */
		smp_store_release(&owner->bpf_resumed, true);
	}
}
