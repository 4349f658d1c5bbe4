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
 * within one the locks have an order: LRU list, bucket, free list.
 *
 * The locks of storages of tasks, cgroups, sockets and inodes are counted by themselves. On
 * top of one, or of an operation, programs do nothing to storages of tasks and cgroups that
 * takes a lock; but LSM programs and iterators, which are never there.
 *
 * This does not know of what else programs can wait for on top of either: those of type
 * TRACING for the storage of sockets, and for spin locks and timers in values.
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
DECLARE_PER_CPU(int, bpf_storage_locks);

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

/*
 * bpf_storage_lock() - take a lock of a storage: wait for it
 *
 * For storages of tasks and cgroups, bpf_storage_lock_below() has kept programs from being on
 * top of what they could wait for. For those of sockets and inodes nothing does, and lockdep
 * does not see it in NMI context. Held with interrupts off, until bpf_storage_unlock().
 */
static __always_inline void bpf_storage_lock(raw_spinlock_t *lock, unsigned long *flags)
{
	preempt_disable();
	local_irq_save(*flags);
	this_cpu_inc(bpf_storage_locks);
	bpf_map_wait_lock(lock);
}

static __always_inline void bpf_storage_unlock(raw_spinlock_t *lock, unsigned long flags)
{
	raw_spin_unlock(lock);
	this_cpu_dec(bpf_storage_locks);
	local_irq_restore(flags);
	preempt_enable();	/* last, for what is to run instead */
}

/* Is this on top of a lock of a storage, or of an operation on a map? */
static inline bool bpf_storage_lock_below(void)
{
	return bpf_map_op_below() || this_cpu_read(bpf_storage_locks);
}

#endif /* __BPF_MAP_LOCK_H */
