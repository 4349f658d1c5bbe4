// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers for the task that a program interrupted: to know it, to write to
 * its memory, and to send it a signal.
 */
#include <linux/bpf.h>
#include <linux/btf_ids.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/security.h>
#include <linux/uaccess.h>

#include "bpf_trace_helpers.h"

BTF_ID_LIST_SINGLE(pt_regs_btf_id, struct, pt_regs)

BPF_CALL_0(bpf_get_current_task)
{
	return (unsigned long)current;
}

BPF_CALL_0(bpf_get_current_task_btf)
{
	return (unsigned long)current;
}

BPF_CALL_1(bpf_task_pt_regs, struct task_struct *, task)
{
	return (unsigned long)task_pt_regs(task);
}

/* To a program the first is a number, the second an object with a type. */
const struct bpf_func_proto bpf_get_current_task_proto = {
	.func		= bpf_get_current_task,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
};

const struct bpf_func_proto bpf_get_current_task_btf_proto = {
	.func		= bpf_get_current_task_btf,
	.gpl_only	= true,
	.ret_type	= RET_PTR_TO_BTF_ID_TRUSTED,
	.ret_btf_id	= &btf_tracing_ids[BTF_TRACING_TYPE_TASK],
};

const struct bpf_func_proto bpf_task_pt_regs_proto = {
	.func		= bpf_task_pt_regs,
	.gpl_only	= true,
	.ret_type	= RET_PTR_TO_BTF_ID,
	.ret_btf_id	= &pt_regs_btf_id[0],
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &btf_tracing_ids[BTF_TRACING_TYPE_TASK],
};

/* Is there a user space below, which a program may change something in? */
static bool current_is_user(void)
{
	return !(current->flags & (PF_KTHREAD | PF_EXITING));
}

BPF_CALL_3(bpf_probe_write_user, void *, dst, const void *, src, u32, size)
{
	/* What an interrupt finds is a task that has nothing to do with it. */
	if (unlikely(in_interrupt() || !current_is_user() || !nmi_uaccess_okay()))
		return -EPERM;
	return copy_to_user_nofault((void __user *)dst, src, size);
}

static const struct bpf_func_proto bpf_probe_write_user_proto = {
	.func		= bpf_probe_write_user,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_ANYTHING,
	.arg2_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg3_type	= ARG_CONST_SIZE,
};

static const struct bpf_func_proto *get_probe_write_user_proto(void)
{
	if (!capable(CAP_SYS_ADMIN) || security_locked_down(LOCKDOWN_BPF_WRITE_USER) < 0)
		return NULL;

	pr_warn_ratelimited("%s[%d] loads a BPF program that can write to the memory of processes\n",
			    current->comm, task_pid_nr(current));
	return &bpf_probe_write_user_proto;
}

/* A signal on its way to where it can be sent from. */
struct signal_work {
	struct irq_work		work;
	struct task_struct	*task;	/* NULL: there is none, it can be claimed */
	enum pid_type		type;
	int			sig;
};

static void signal_work_send(struct irq_work *work)
{
	struct signal_work *sw = container_of(work, struct signal_work, work);
	struct task_struct *task = sw->task;

	group_send_sig_info(sw->sig, SEND_SIG_PRIV, task, sw->type);
	/* Only now: the next user of this slot overwrites what has just been read. */
	smp_store_release(&sw->task, NULL);
	put_task_struct(task);
}

static DEFINE_PER_CPU(struct signal_work, signal_work) = {
	.work = IRQ_WORK_INIT(signal_work_send),
};

/*
 * With interrupts off, the code below may hold the locks that sending takes.
 * On PREEMPT_RT these sleep, which programs do not.
 */
static int send_signal(u32 sig, enum pid_type type)
{
	struct signal_work *sw;

	if (unlikely(!current_is_user() || is_global_init(current) ||
		     !nmi_uaccess_okay()))
		return -EPERM;
	if (!valid_signal(sig))
		return -EINVAL;

	if (!irqs_disabled() && !IS_ENABLED(CONFIG_PREEMPT_RT))
		return group_send_sig_info(sig, SEND_SIG_PRIV, current, type);

	/*
	 * A program on a uprobe has interrupts on, and others on top of it. An NMI
	 * has them on top of any program, at any point from here: so the first step
	 * is to claim the work. It is queued on this CPU, and so not done before
	 * current has its reference.
	 */
	guard(irqsave)();
	sw = this_cpu_ptr(&signal_work);
	if (cmpxchg(&sw->task, NULL, current))
		return -EBUSY;

	get_task_struct(current);
	sw->type = type;
	sw->sig = sig;
	irq_work_queue(&sw->work);
	return 0;
}

BPF_CALL_1(bpf_send_signal, u32, sig)
{
	return send_signal(sig, PIDTYPE_TGID);
}

BPF_CALL_1(bpf_send_signal_thread, u32, sig)
{
	return send_signal(sig, PIDTYPE_PID);
}

static const struct bpf_func_proto bpf_send_signal_proto = {
	.func		= bpf_send_signal,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_send_signal_thread_proto = {
	.func		= bpf_send_signal_thread,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_ANYTHING,
};

/**
 * bpf_task_func_proto() - the helpers that do something to the current task
 * @func_id: the helper
 *
 * Context: process.
 * Return: the helper's prototype, NULL if it is none of these, or one that the
 * loading task must not use.
 */
const struct bpf_func_proto *bpf_task_func_proto(enum bpf_func_id func_id)
{
	switch (func_id) {
	case BPF_FUNC_probe_write_user:
		return get_probe_write_user_proto();
	case BPF_FUNC_send_signal:
		return &bpf_send_signal_proto;
	case BPF_FUNC_send_signal_thread:
		return &bpf_send_signal_thread_proto;
	default:
		return NULL;
	}
}
