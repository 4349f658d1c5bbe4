/* SPDX-License-Identifier: GPL-2.0 */
/* Places that are hit in softirqs, hard interrupts and NMIs, and what makes these come */
#ifndef BPF_EVENTS_INTERRUPT_H
#define BPF_EVENTS_INTERRUPT_H

#include <pthread.h>
#include <sys/klog.h>
#include <sys/socket.h>

#include "sys.h"

#define SOFTIRQ_PLACE { "process_timeout", "timer", "timer_expire_entry" }
#define HARDIRQ_PLACE { "update_process_times", "timer", "hrtimer_expire_entry" }
#define NMI_PLACE { "__printk_cpu_sync_try_get", "nmi", "nmi_handler" }

/* The tick does the rest */
static inline void wait_tick(void)
{
	__u64 end = now_ns() + 10000000;

	while (now_ns() < end)
		;
}

/* Who reads this takes the lock of the consoles, and prints what is pending */
static inline void print_pending(void)
{
	char consoles[256];

	read_file("/proc/consoles", consoles, sizeof(consoles));
}

/*
 * All CPUs but this one are asked by NMI where they are, and tell the log.  The
 * next request raises the console's level for a moment: nothing is left for that.
 */
static inline void cause_nmi(void)
{
	write_file("/proc/sysrq-trigger", 0, "l");
	print_pending();
}

#define SYSLOG_CONSOLE_LEVEL 8

/* Backtraces are not for the console */
static inline int console_mute(void)
{
	return klogctl(SYSLOG_CONSOLE_LEVEL, NULL, 1);
}

static inline void console_unmute(void)
{
	print_pending();
	klogctl(SYSLOG_CONSOLE_LEVEL, NULL, 7);
}

/* What cause_nmi() lacks, or NULL */
static inline const char *nmi_prepare(void)
{
	if (access("/proc/sysrq-trigger", W_OK))
		return "CONFIG_MAGIC_SYSRQ";
	return sysconf(_SC_NPROCESSORS_ONLN) < 2 ? "CONFIG_SMP, and two CPUs" : NULL;
}

/* Threads that make them come all the time on CPU 0 */
#define TIMERS	1
#define NMIS	2

struct causes {
	pthread_t threads[2];
	unsigned int n;
	bool stop;
};

static inline bool causes_go_on(struct causes *causes)
{
	return !__atomic_load_n(&causes->stop, __ATOMIC_RELAXED);
}

/* The wait has a timer, whose function runs in a softirq */
static inline void *cause_timers(void *arg)
{
	struct timeval wait = { .tv_usec = 1 };
	int fds[2];
	char c;

	if (pin(0) || socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) ||
	    setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
		return "no timers";
	while (causes_go_on(arg))
		recv(fds[0], &c, 1, 0);
	close(fds[0]);
	close(fds[1]);
	return NULL;
}

static inline void *cause_nmis(void *arg)
{
	if (pin(1))
		return "no NMIs";
	while (causes_go_on(arg))
		cause_nmi();
	return NULL;
}

/* @which: a mask */
static inline int causes_start(struct causes *causes, unsigned int which)
{
	int ret = 0;

	*causes = (struct causes){ };
	if (which & TIMERS)
		ret = pthread_create(&causes->threads[causes->n++], NULL, cause_timers, causes);
	if (!ret && which & NMIS)
		ret = pthread_create(&causes->threads[causes->n++], NULL, cause_nmis, causes);
	return ret;
}

/* Return: what could not be caused, or "nothing" */
static inline const char *causes_stop(struct causes *causes)
{
	const char *failed = "nothing";
	void *ret;

	__atomic_store_n(&causes->stop, true, __ATOMIC_RELAXED);
	while (causes->n) {
		if (!pthread_join(causes->threads[--causes->n], &ret) && ret)
			failed = ret;
	}
	return failed;
}

#endif /* BPF_EVENTS_INTERRUPT_H */
