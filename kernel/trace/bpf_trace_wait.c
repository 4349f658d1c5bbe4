// SPDX-License-Identifier: GPL-2.0
/*
 * How the end of an attachment waits for runs of its program that are under way. None
 * begins any more.
 */
#include <linux/atomic.h>
#include <linux/bpf.h>
#include <linux/container_of.h>
#include <linux/rcupdate.h>
#include <linux/rcupdate_trace.h>
#include <linux/rcupdate_wait.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/tick.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bpf_trace.h"

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

/*
 * Runs of programs that may sleep are readers of RCU tasks trace. A worker waits for
 * these, since no signal can end such a wait. Each wait serves all tasks that have asked
 * before it began.
 */
static atomic64_t sleepers_asked;
static atomic64_t sleepers_done;	/* the last asker for whom the wait is over */
static DECLARE_WAIT_QUEUE_HEAD(sleepers_askers);

static void sleepers_work_fn(struct work_struct *work)
{
	s64 asked = atomic64_read(&sleepers_asked);

	/* As synchronize_rcu_tasks_trace(), but long waits are no hung tasks. */
	wait_rcu_gp_state(TASK_IDLE, call_rcu_tasks_trace);
	atomic64_set(&sleepers_done, asked);
	wake_up_all(&sleepers_askers);
}

static DECLARE_WORK(sleepers_work, sleepers_work_fn);

static bool sleepers_are_done(s64 asker)
{
	return atomic64_read(&sleepers_done) >= asker;
}

static void sleepers_wait(void)
{
	s64 asker = atomic64_inc_return(&sleepers_asked);
	long limit = MAX_SCHEDULE_TIMEOUT;

	/* A task that dies has taken its SIGKILL already, and gets no other one. */
	if (current->flags & PF_EXITING || current->signal->flags & SIGNAL_GROUP_EXIT)
		limit = HZ;
	queue_work(system_unbound_wq, &sleepers_work);
	wait_event_killable_timeout(sleepers_askers, sleepers_are_done(asker), limit);
}

struct sleepers_task_work {
	struct callback_head	work;
	bool			is_last; /* no release has asked since it was queued */
};

static void sleepers_task_work_fn(struct callback_head *work);

static struct sleepers_task_work *sleepers_task_work_get(void)
{
	struct callback_head *work = task_work_cancel_func(current, sleepers_task_work_fn);

	return work ? container_of(work, struct sleepers_task_work, work) : NULL;
}

/*
 * Works that run together with this one are not in the task's list any more. So the
 * releases among them that asked before this one was run have queued a second one.
 */
static void sleepers_task_work_fn(struct callback_head *work)
{
	struct sleepers_task_work *wait = container_of(work, struct sleepers_task_work, work);
	struct sleepers_task_work *second = sleepers_task_work_get();

	if (second || !wait->is_last) {
		wait->is_last = !second;
		kfree(second);
		if (!task_work_add(current, work, TWA_RESUME))
			return;
	}
	kfree(wait);
	sleepers_wait();
}

/**
 * bpf_wait_for_sleepers() - have the task wait for runs of programs that may sleep
 *
 * It does so before it returns to user space, or while it exits, and behind the
 * releases of all files that it closes together, so once for all of them. Releases are
 * task works, too. The one that is queued last is run first, and may queue others, so
 * the wait is queued a second time when it is run.
 *
 * SIGKILL ends the wait. A task that exits waits for a second at most. What is under way
 * after that still uses its program and its attachment, which are freed later. A kernel
 * thread does not wait: close() returns to nobody.
 *
 * Context: process, may sleep.
 */
void bpf_wait_for_sleepers(void)
{
	struct sleepers_task_work *wait;

	if (current->flags & PF_KTHREAD)
		return;

	wait = sleepers_task_work_get() ?: kmalloc(sizeof(*wait), GFP_KERNEL);
	if (wait) {
		init_task_work(&wait->work, sleepers_task_work_fn);
		wait->is_last = false;
		if (!task_work_add(current, &wait->work, TWA_RESUME))
			return;
		kfree(wait);
	}
	sleepers_wait();
}
