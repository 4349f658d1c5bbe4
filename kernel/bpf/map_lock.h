/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks of maps that programs take anywhere. What is called with such a lock held, or on
 * the way to it, can have a probe or a tracepoint, whose program may want a lock of a map,
 * too. If it waited for the one that it is on top of, it would do so for ever; for any
 * other, while another CPU does the same the other way round, both would.
 *
 * So operations that are about to take a lock, or hold one, are counted on each CPU, with
 * interrupts off. The first one waits for its locks, those on top of it only try. That is
 * what keeps them from a deadlock: no CPU waits for a lock on top of an operation, and
 * within one the locks have an order: LRU list, bucket, free list. Task and cgroup storage
 * have a count of their own, and are as busy on top of an operation as on top of themselves
 * and of each other.
 *
 * This does not know of what else programs can wait for on top of an operation: those of
 * type TRACING for the storage of sockets, and for spin locks and timers in values.
 *
 * An NMI in the middle of a change of the count finds it before or after, and leaves it as
 * it was; before, no lock is held yet, and after, there is an operation for it to be on
 * top of.
 */
#ifndef __BPF_MAP_LOCK_H
#define __BPF_MAP_LOCK_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>

DECLARE_PER_CPU(int, bpf_map_ops);
DECLARE_PER_CPU(int, bpf_storage_ops);

/*
 * bpf_map_op_begin() - before an operation takes its first lock; interrupts are off
 *
 * Return: whether it may wait for locks, until bpf_map_op_end().
 */
static __always_inline bool bpf_map_op_begin(void)
{
	return this_cpu_inc_return(bpf_map_ops) == 1;
}

static __always_inline void bpf_map_op_end(void)
{
	this_cpu_dec(bpf_map_ops);
}

/* The same, for a lock that is taken within an operation. */
static __always_inline bool bpf_map_op_waits(void)
{
	return this_cpu_read(bpf_map_ops) == 1;
}

/*
 * bpf_map_op_below() - is this on top of an operation?
 *
 * It stays so until what asks is over, since the operation below has interrupts off. For
 * those that cannot go back once they have tried.
 */
static __always_inline bool bpf_map_op_below(void)
{
	return this_cpu_read(bpf_map_ops);
}

/*
 * bpf_map_wait_lock() - take a lock in an operation that waits, or may not be refused one
 *
 * Lockdep objects when a lock that is used elsewhere is waited for in NMI context, which a
 * program on a breakpoint is in. It cannot know that an operation on top of another does not
 * wait. So there this is raw_spin_lock() without the report to lockdep. raw_spin_unlock()
 * reports nothing in NMI context.
 */
static __always_inline void bpf_map_wait_lock(raw_spinlock_t *lock)
{
	if (IS_ENABLED(CONFIG_LOCKDEP) && in_nmi()) {
		preempt_disable();
		do_raw_spin_lock(lock);
	} else {
		raw_spin_lock(lock);
	}
}

/*
 * The same, for the locks of storages, which are no operations of a map. For tasks and cgroups,
 * bpf_storage_lock() keeps what waits from being on top of the holder. For sockets and inodes
 * nothing does, and lockdep does not see it in NMI context.
 */
static __always_inline void bpf_map_wait_lock_irqsave(raw_spinlock_t *lock, unsigned long *flags)
{
	local_irq_save(*flags);
	bpf_map_wait_lock(lock);
}

/*
 * bpf_map_trylock() - take a lock on top of an operation
 *
 * With CONFIG_SMP=n, raw_spin_trylock() does not know who has it, or takes it for a bug
 * that somebody has.
 */
static __always_inline bool bpf_map_trylock(raw_spinlock_t *lock)
{
	return IS_ENABLED(CONFIG_SMP) && raw_spin_trylock(lock);
}

/*
 * bpf_map_lock() - an operation with one lock: take it, if that can be waited for or it is
 * free
 *
 * Return: whether it is held now, with interrupts off, until bpf_map_unlock().
 */
static __always_inline bool bpf_map_lock(raw_spinlock_t *lock, unsigned long *flags)
{
	preempt_disable();
	local_irq_save(*flags);
	if (likely(bpf_map_op_begin())) {
		bpf_map_wait_lock(lock);
		return true;
	}
	if (bpf_map_trylock(lock))
		return true;

	bpf_map_op_end();
	local_irq_restore(*flags);
	preempt_enable();
	return false;
}

static __always_inline void bpf_map_unlock(raw_spinlock_t *lock, unsigned long flags)
{
	raw_spin_unlock(lock);
	bpf_map_op_end();
	local_irq_restore(flags);
	preempt_enable();	/* last, for what is to run instead */
}

/* bpf_storage_lock() - before an operation on the storage of a task or cgroup that must be done */
static inline void bpf_storage_lock(void)
{
	migrate_disable();
	this_cpu_inc(bpf_storage_ops);
}

static inline void bpf_storage_unlock(void)
{
	this_cpu_dec(bpf_storage_ops);
	migrate_enable();
}

/* bpf_storage_trylock() - before one for a program, which is not done on top of others */
static inline bool bpf_storage_trylock(void)
{
	migrate_disable();
	if (unlikely(this_cpu_inc_return(bpf_storage_ops) != 1 || bpf_map_op_below())) {
		this_cpu_dec(bpf_storage_ops);
		migrate_enable();
		return false;
	}
	return true;
}

#endif /* __BPF_MAP_LOCK_H */
