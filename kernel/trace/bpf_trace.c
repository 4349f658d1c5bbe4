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
#include <linux/tick.h>
#include <linux/uprobes.h>

#include "bpf_trace.h"
#include "trace.h"
#include "trace_probe.h"

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
	.func	= idle_attachment_run,
};

/* Return: whether there was a program that should have run. */
static bool event_array_missed(const struct bpf_event_array *array)
{
	bool any = false;
	u32 i;

	for (i = 0; i < array->nr; i++) {
		const struct bpf_attachment *att = READ_ONCE(array->slots[i].runs);

		if (att == &bpf_idle_attachment)
			continue;
		any = true;
		bpf_attachment_missed(att);
	}
	return any;
}

NOKPROBE_SYMBOL(event_array_missed);

/**
 * bpf_run_timed() - run a program, with account of how long that takes
 * @prog: the program
 * @ctx: its context
 *
 * Context: that of bpf_guard_enter().
 * Return: what the program returns.
 */
u32 bpf_run_timed(const struct bpf_prog *prog, void *ctx)
{
	return bpf_prog_run(prog, ctx);
}

NOKPROBE_SYMBOL(bpf_run_timed);

/**
 * bpf_event_missed() - account a hit that never got to the event's programs
 * @call: the event
 *
 * For event sources that have to drop a hit, say because it came from inside
 * the handling of another. Everything it calls is out of bounds for kprobes:
 * the hit being dropped may be in the middle of handling one.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_event_missed(struct trace_event_call *call)
{
	const struct bpf_event_array *array;

	/* Not rcu_dereference_sched(): lockdep's checks can be probed. */
	array = rcu_dereference_raw(call->bpf_array);
	if (array)
		event_array_missed(array);
}

NOKPROBE_SYMBOL(bpf_event_missed);

static __always_inline bool
event_array_run(const struct bpf_event_array *array, void *ctx, bool timed)
{
	const struct bpf_event_slot *slot = array->slots;
	const struct bpf_event_slot *end = slot + array->nr;
	bool pass = true;

	for (; slot < end; slot++) {
		if (!__bpf_attachment_run(READ_ONCE(slot->runs), ctx, timed))
			pass = false;
	}
	return pass;
}

/**
 * bpf_event_run() - run the programs of an event
 * @array: the event's programs, read in the same RCU-sched section
 * @ctx: what the programs get as context
 *
 * Programs that are turned away by the guard are told of a miss.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: true if all of the programs that ran returned non-zero, or none ran
 * since all are paused. false otherwise, also if one of them missed this hit.
 */
bool bpf_event_run(const struct bpf_event_array *array, void *ctx)
{
	bool pass;

	if (!bpf_guard_enter())
		return !event_array_missed(array);

	cant_migrate();
	if (static_branch_unlikely(&bpf_stats_enabled_key))
		pass = event_array_run(array, ctx, true);
	else
		pass = event_array_run(array, ctx, false);
	bpf_guard_exit();
	return pass;
}

NOKPROBE_SYMBOL(bpf_event_run);

static struct bpf_attachment *event_attachment(const struct perf_event *event)
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

static void event_slot_set_runs(struct bpf_event_slot *slot)
{
	const struct bpf_attachment *att = slot->att;
	bool idle = !att || (!att->by_link && att->event->bpf_paused);

	lockdep_assert_held(&bpf_hits_lock);
	WRITE_ONCE(slot->runs, idle ? &bpf_idle_attachment : att);
}

static void event_array_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct bpf_event_array, rcu));
}

/*
 * Point to the program of a kprobe event whose hits have nothing else to do than to
 * run it. A program that overrides return values is none of these: the registers
 * have to be looked at after its run.
 */
static void event_update_sole(struct trace_event_call *call)
{
	const struct bpf_event_array *array = event_array_of_hits(call);
	const struct bpf_attachment *sole = NULL;
	struct trace_probe_event *event;

	if (!(call->flags & TRACE_EVENT_FL_KPROBE))
		return;

	event = trace_probe_event_from_call(call);
	if (array && array->nr == 1 && array->slots[0].runs != &bpf_idle_attachment &&
	    !array->slots[0].att->prog->kprobe_override &&
	    !(READ_ONCE(event->flags) & TP_FLAG_TRACE))
		sole = array->slots[0].runs;
	rcu_assign_pointer(event->sole, sole);
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
			event_slot_set_runs(&new->slots[i]);
		rcu_assign_pointer(call->bpf_array, new);
		event_update_sole(call);
	}
	if (!old)
		return;
	if (call->flags & TRACE_EVENT_FL_UPROBE)
		bpf_uprobe_call_rcu(&old->rcu, event_array_free);
	else
		kfree_rcu(old, rcu);
}

static bool event_array_has_prog(const struct bpf_event_array *array,
				 const struct bpf_prog *prog)
{
	u32 i;

	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->prog == prog)
			return true;
	}
	return false;
}

static struct bpf_attachment *bpf_attachment_new(const struct bpf_attach_request *req)
{
	struct bpf_attachment *att;

	att = kzalloc(sizeof(*att), GFP_KERNEL_ACCOUNT);
	if (!att)
		return NULL;

	att->stats = alloc_percpu_gfp(struct bpf_attachment_stats, GFP_KERNEL_ACCOUNT);
	if (!att->stats) {
		kfree(att);
		return NULL;
	}
	att->hit.cookie = req->cookie;
	att->func = req->prog->bpf_func;
	att->insns = req->prog->insnsi;
	att->prog = req->prog;
	att->event = req->event;
	att->by_link = req->by_link;
	return att;
}

static void bpf_attachment_free(struct bpf_attachment *att)
{
	free_percpu(att->stats);
	kfree(att);
}

static bool event_allows_override(struct trace_event_call *call)
{
	return IS_ENABLED(CONFIG_BPF_KPROBE_OVERRIDE) &&
	       call->flags & TRACE_EVENT_FL_KPROBE &&
	       trace_kprobe_allows_override(call);
}

static int event_attach_to_trace_event(const struct bpf_attach_request *req)
{
	struct perf_event *event = req->event;
	struct bpf_event_array *old, *new;
	struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	old = event_array(event->tp_event);
	if (req->prog->kprobe_override && !event_allows_override(event->tp_event))
		return bpf_attach_refuse(req, ATTACH_OVERRIDES);
	if (event_attachment(event))
		return bpf_attach_refuse(req, ATTACH_FD_TAKEN);
	if (event_array_live(old) == BPF_EVENT_MAX_PROGS)
		return bpf_attach_refuse(req, ATTACH_FULL);
	if (event_array_has_prog(old, req->prog))
		return bpf_attach_refuse(req, ATTACH_TWICE);

	att = bpf_attachment_new(req);
	if (!att)
		return -ENOMEM;

	new = event_array_next(old, NULL, att);
	if (IS_ERR(new)) {
		bpf_attachment_free(att);
		return PTR_ERR(new);
	}

	rcu_assign_pointer(event->bpf, att);
	event_set_array(event->tp_event, new);
	return 0;
}

static int event_attach_to_perf_event(const struct bpf_attach_request *req)
{
	struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	if (event_attachment(req->event))
		return bpf_attach_refuse(req, ATTACH_FD_TAKEN);
	att = bpf_attachment_new(req);
	if (!att)
		return -ENOMEM;
	rcu_assign_pointer(req->event->bpf, att);
	return 0;
}

/**
 * bpf_event_runs_progs() - can an event run programs at all?
 * @event: a perf event
 *
 * Return: whether it is of a kind that does.
 */
bool bpf_event_runs_progs(const struct perf_event *event)
{
	const struct trace_event_call *call = event->tp_event;

	return !call || call->flags & TRACE_EVENT_FL_UKPROBE || bpf_tp_has_record(call);
}

/**
 * bpf_event_lock_probes() - begin to change which probes an event has
 *
 * Meanwhile no program is attached. Not event_mutex, under which that is for the
 * rest of a change: programs are attached with a perf context locked, and while
 * event_mutex is held CPUs may be waited for that come and lock theirs.
 *
 * Context: process; until bpf_event_unlock_probes(), nothing but the list of
 * probes is to be changed.
 */
void bpf_event_lock_probes(void)
{
	mutex_lock(&bpf_event_mutex);
}

/**
 * bpf_event_unlock_probes() - the end of bpf_event_lock_probes()
 */
void bpf_event_unlock_probes(void)
{
	mutex_unlock(&bpf_event_mutex);
}

/**
 * bpf_event_overrides() - may programs of an event override return values?
 * @call: the event
 *
 * Context: process, between bpf_event_lock_probes() and its end.
 * Return: whether there is one that calls bpf_override_return().
 */
bool bpf_event_overrides(struct trace_event_call *call)
{
	const struct bpf_event_array *array;
	u32 i;

	array = event_array(call);
	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->prog->kprobe_override)
			return true;
	}
	return false;
}

static int event_attach_prog(const struct bpf_attach_request *req)
{
	struct trace_event_call *call = req->event->tp_event;
	int err;

	if (!bpf_event_runs_progs(req->event))
		return bpf_attach_refuse(req, ATTACH_BAD_EVENT);
	if (!call)
		return bpf_perf_event_check_attach(req) ?: event_attach_to_perf_event(req);

	if (bpf_tp_has_record(call))
		err = bpf_tp_check_attach(req);
	else
		err = bpf_kprobe_check_attach(req);
	return err ?: event_attach_to_trace_event(req);
}

/**
 * bpf_event_attach() - make a program one of those that an event runs
 * @event: the perf event that is going to own the attachment
 * @prog_fd: the descriptor the program came by, for the error_log
 * @prog: the program; the attachment takes a reference of its own
 * @cookie: what bpf_get_attach_cookie() is to return
 *
 * On failure nothing has changed, and tracefs' error_log tells why.
 *
 * Context: process.
 * Return: 0, or
 * * -EINVAL: the event cannot run programs, or not this one
 * * -EEXIST: the perf event has a program, or the trace event has this one
 * * -E2BIG: the trace event has BPF_EVENT_MAX_PROGS programs
 * * -EACCES: the program reads past the end of the event's record
 * * -EPROTO: the program takes stacks that the event does not have
 * * -ENOMEM
 */
int bpf_event_attach(struct perf_event *event, int prog_fd, struct bpf_prog *prog,
		     u64 cookie)
{
	const struct bpf_attach_request req = {
		.cmd = "LINK_CREATE",
		.by_link = true,
		.event = event,
		.prog_fd = prog_fd,
		.prog = prog,
		.cookie = cookie,
	};
	int err;

	err = event_attach_prog(&req);
	if (!err)
		bpf_prog_inc(prog);
	return err;
}

/**
 * bpf_event_set_prog() - PERF_EVENT_IOC_SET_BPF
 * @event: the perf event the ioctl came to
 * @prog_fd: descriptor of the program
 *
 * On success the event holds a reference on the program until it is released.
 * On failure nothing has changed, and tracefs' error_log tells why.
 *
 * Context: process, with the event's ctx->mutex held.
 * Return: 0, what bpf_event_attach() returns, or
 * * -EINVAL: the descriptor is not a program
 * * -EBADF: the descriptor is not open
 */
int bpf_event_set_prog(struct perf_event *event, u32 prog_fd)
{
	struct bpf_attach_request req = {
		.cmd = "SET_BPF",
		.event = event,
		.prog_fd = prog_fd,
	};
	struct bpf_prog *prog;
	int err;

	prog = bpf_prog_get(prog_fd);
	if (IS_ERR(prog))
		return bpf_attach_refuse(&req, PTR_ERR(prog) == -EBADF ?
						       ATTACH_NO_FILE : ATTACH_NO_PROG);
	req.prog = prog;
	err = event_attach_prog(&req);
	if (err)
		bpf_prog_put(prog);
	return err;
}

/**
 * bpf_wait_for_runs() - wait for runs of programs that are under way
 *
 * Of those that run with preemption disabled, or as readers of RCU. The grace period
 * is an expedited one, since agents close many attachments one after another. It
 * interrupts each CPU that is neither idle nor, with nohz_full, in user space, once.
 * Where there are CPUs that want no interrupts this might be their only one, so
 * there close() takes longer.
 *
 * Context: process, may sleep.
 */
void bpf_wait_for_runs(void)
{
	if (tick_nohz_full_enabled())
		synchronize_rcu();
	else
		synchronize_rcu_expedited();
}

/* Wait for readers of an attachment that its event has lost. */
static void event_wait_for_readers(const struct trace_event_call *call)
{
	if (call && call->flags & TRACE_EVENT_FL_UPROBE)
		uprobe_unregister_sync();
	else if (call && call->flags & TRACE_EVENT_FL_KPROBE)
		synchronize_rcu_expedited(); /* to disarm it interrupts all CPUs anyway */
	else
		bpf_wait_for_runs();
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
		event_slot_set_runs(&array->slots[i]);
		event_update_sole(call);
	}
}

/**
 * bpf_event_release() - end the attachment of a perf event, if it has one
 * @event: the perf event; off, unless it is to go on without the program
 *
 * Once this returns no run of the program starts on behalf of this event on
 * any CPU, and none is under way.
 *
 * Context: process, may sleep for an RCU grace period; no locks held.
 */
void bpf_event_release(struct perf_event *event)
{
	struct bpf_attachment *att;

	if (!rcu_access_pointer(event->bpf))
		return;

	scoped_guard(mutex, &bpf_event_mutex) {
		att = event_attachment(event);
		if (event->tp_event)
			event_array_drop(event->tp_event, att);
		RCU_INIT_POINTER(event->bpf, NULL);
	}

	event_wait_for_readers(event->tp_event);
	bpf_prog_put(att->prog);
	bpf_attachment_free(att);
}

/* Make the slot of @event, if it has one, what @event->bpf_paused says. */
static void event_update_slot(const struct perf_event *event)
{
	struct trace_event_call *call = event->tp_event;
	struct bpf_event_array *array;
	u32 i;

	if (!call)
		return;

	array = event_array_of_hits(call);
	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->event == event)
			event_slot_set_runs(&array->slots[i]);
	}
	event_update_sole(call);
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
		event->bpf_resumed = false;
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
 * @event: the perf event, or one that was inherited from it, which is off still; by
 *	exec() with the context of @event locked
 *
 * An event that a task inherited has the program of its parent.
 *
 * Context: any but NMI.
 */
void bpf_event_resume(struct perf_event *event)
{
	struct perf_event *owner = event->parent ?: event;

	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		owner->bpf_resumed = true;
		if (owner->bpf_paused) {
			owner->bpf_paused = false;
			event_update_slot(owner);
		}
	}
}

/**
 * bpf_event_prog_ids() - which programs does a trace event run?
 * @call: the event
 * @ids: room for the ids of BPF_EVENT_MAX_PROGS programs, in the order in which
 *	they run
 *
 * Context: process.
 * Return: how many there are.
 */
u32 bpf_event_prog_ids(const struct trace_event_call *call, u32 *ids)
{
	const struct bpf_event_array *array;
	u32 i, nr = 0;

	guard(mutex)(&bpf_event_mutex);

	array = event_array(call);
	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att)
			ids[nr++] = array->slots[i].att->prog->aux->id;
	}
	return nr;
}

/**
 * bpf_event_attachment_info() - what a perf event has brought
 * @event: the perf event
 * @info: is filled in
 *
 * Context: process.
 * Return: whether there is a program.
 */
bool bpf_event_attachment_info(const struct perf_event *event,
			       struct bpf_attachment_info *info)
{
	const struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	att = event_attachment(event);
	if (!att)
		return false;
	info->prog_id = att->prog->aux->id;
	info->cookie = att->hit.cookie;
	info->stats = bpf_stats_sum(att->stats);
	return true;
}
