/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Locks of maps that programs take anywhere. What is called with such a lock held, or on
 * the way to it, can have a probe or a tracepoint, whose program may want the same lock and
 * would wait for what it interrupts. On top of another holder, as in an NMI, locks are
 * tried only.
 */
#ifndef __BPF_MAP_LOCK_H
#define __BPF_MAP_LOCK_H

#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>

DECLARE_PER_CPU(int, bpf_map_locks);

/*
 * bpf_map_locks_enter() - before a lock is taken; interrupts are disabled
 *
 * Return: whether to wait for it. Otherwise it may be held by what this is on top of.
 */
static __always_inline bool bpf_map_locks_enter(void)
{
	return this_cpu_inc_return(bpf_map_locks) == 1 && !in_nmi();
}

static __always_inline void bpf_map_locks_exit(void)
{
	this_cpu_dec(bpf_map_locks);
}

/*
 * bpf_map_lock() - take a lock, if that can be waited for or it is free
 *
 * Return: whether it is held now, with interrupts disabled, until bpf_map_unlock().
 */
static __always_inline bool bpf_map_lock(raw_spinlock_t *lock, unsigned long *flags)
{
	local_irq_save(*flags);
	if (bpf_map_locks_enter()) {
		raw_spin_lock(lock);
		return true;
	}
	if (raw_spin_trylock(lock))
		return true;

	bpf_map_locks_exit();
	local_irq_restore(*flags);
	return false;
}

static __always_inline void bpf_map_unlock(raw_spinlock_t *lock, unsigned long flags)
{
	raw_spin_unlock(lock);
	bpf_map_locks_exit();
	local_irq_restore(flags);
}

#endif /* __BPF_MAP_LOCK_H */
