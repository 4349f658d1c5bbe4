/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that hit the probe without a pause, and the proof that a program did
 * not run after a certain moment.
 *
 * Each thread numbers its hits: it writes the number to the area, then hits.
 * The program writes the number that it finds to the area in turn.  A hit with
 * a number that was not yet there when the program was gone must not run it,
 * while the hit that was under way may finish whenever it likes.
 */
#ifndef BPF_EVENTS_HITTER_H
#define BPF_EVENTS_HITTER_H

#include <pthread.h>

#include "probe.h"

#define MAX_HITTERS 8

/* A race takes as many milliseconds as BPF_EVENTS_RACE_MS says, or 200, or 500 */
static inline __u64 deadline(void)
{
	const char *env = getenv("BPF_EVENTS_RACE_MS");

	return now_ns() + (env ? atoi(env) : kernel_is_slow() ? 500 : 200) * 1000000ULL;
}

/* Slots of the area: by thread, the number of its hit, and of the last run */
enum { RUNS = 700, NUMBER = 704, LAST = NUMBER + MAX_HITTERS };

struct hitters {
	struct area *area;
	pthread_t threads[MAX_HITTERS];
	int n;
	bool pinned;
	long (*hit)(int arg);
	bool stop;
	int next;
};

/*
 * Interrupts this thread every 200 us, at any instruction of what it calls.
 * Emulated CPUs that take turns change then, not only when the tick comes.
 * A slow kernel would do nothing but that.
 */
static inline int interrupt_often(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = kernel_is_slow() ? 2000000 : 200000,
	};

	return perf_open(&attr, 0, -1);
}

static inline void *hitter(void *arg)
{
	struct hitters *h = arg;
	int me = __atomic_fetch_add(&h->next, 1, __ATOMIC_SEQ_CST);
	int clock = interrupt_often();

	if (h->pinned)
		pin(me);
	while (!__atomic_load_n(&h->stop, __ATOMIC_SEQ_CST)) {
		area_set(h->area, NUMBER + me,
			 area_get(h->area, NUMBER + me) + 1);
		/* The argument tells the program who it is */
		h->hit(me);
	}
	close(clock);
	return NULL;
}

/* One on each CPU, or @n anywhere; @hit is a call of what is probed */
static inline int hitters_start_with(struct hitters *h, struct area *area, int n,
				     long (*hit)(int arg))
{
	int i;

	memset(h, 0, sizeof(*h));
	h->area = area;
	h->hit = hit;
	h->pinned = !n;
	h->n = n ?: sysconf(_SC_NPROCESSORS_ONLN);
	if (h->n > MAX_HITTERS)
		h->n = MAX_HITTERS;
	for (i = 0; i < h->n; i++) {
		if (pthread_create(&h->threads[i], NULL, hitter, h))
			return -EAGAIN;
	}
	return 0;
}

static inline int hitters_start(struct hitters *h, struct area *area, int n)
{
	return hitters_start_with(h, area, n, hit_arg);
}

static inline void hitters_stop(struct hitters *h)
{
	int i;

	__atomic_store_n(&h->stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < h->n; i++)
		pthread_join(h->threads[i], NULL);
}

/*
 * Counts in slot RUNS and notes the number of the hit.  Who hit is in the
 * caller's first argument, which a kretprobe does not have any more, hence
 * task_pt_regs().
 */
static inline int number_prog_load(struct area *area, enum bpf_prog_type type,
				   enum bpf_attach_type attach, __u32 btf_id, __u32 flags)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_EMIT_CALL(BPF_FUNC_task_pt_regs),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_0),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, REGS_ARG),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, -8),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_1, MAX_HITTERS - 1),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_1, 3),
		AREA(BPF_REG_2, area, RUNS),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_3, BPF_REG_1),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_3, 8 * (NUMBER - RUNS)),
		BPF_STX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, 8 * (LAST - RUNS)),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_2, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.expected_attach_type = attach;
	attr.attach_btf_id = btf_id;
	attr.prog_flags = flags;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

static inline int number_prog_as(struct area *area, enum bpf_attach_type attach,
				 __u32 flags)
{
	return number_prog_load(area, BPF_PROG_TYPE_KPROBE, attach, 0, flags);
}

static inline int number_prog_of(struct area *area, enum bpf_prog_type type)
{
	return number_prog_load(area, type, 0, 0, 0);
}

static inline int number_prog_flags(struct area *area, __u32 flags)
{
	return number_prog_as(area, 0, flags);
}

static inline int number_prog(struct area *area)
{
	return number_prog_as(area, 0, 0);
}

/* Works on a map for a while, which nothing but the program holds */
static inline int busy_prog_load(struct area *area, enum bpf_prog_type type,
				 enum bpf_attach_type attach, __u32 btf_id)
{
	int map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 16, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, RUNS),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_6, 100),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_6, -8),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_ALU64_IMM(BPF_SUB, BPF_REG_6, 1),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_6, 0, -9),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int prog;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.expected_attach_type = attach;
	attr.attach_btf_id = btf_id;
	prog = prog_load_attr(&attr);
	close(map);
	return prog;
}

static inline int busy_prog_as(struct area *area, enum bpf_attach_type attach)
{
	return busy_prog_load(area, BPF_PROG_TYPE_KPROBE, attach, 0);
}

static inline int busy_prog(struct area *area)
{
	return busy_prog_as(area, 0);
}

/*
 * Goes on for 60 ms once in a while, at other times not at all, and writes to
 * a map which nothing but the program holds, up to its end
 */
static inline int slow_prog(struct area *area)
{
	int map = map_create(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, RUNS),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_6, BPF_REG_0, 0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, 255),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 9),
		BPF_LD_MAP_VALUE(BPF_REG_8, map, 0),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_0),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_7, 60000000),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 3, 0),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_STX_MEM(BPF_DW, BPF_REG_8, BPF_REG_0, 0),
		BPF_JMP_REG(BPF_JLT, BPF_REG_0, BPF_REG_7, -4),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int prog = prog_load(insns, ARRAY_SIZE(insns));

	close(map);
	return prog;
}

/* Waits until the program has run again */
static inline bool hitters_wait_run(struct hitters *h)
{
	__u64 runs = area_get(h->area, RUNS);

	return wait_between(area_get(h->area, RUNS) != runs, sched_yield());
}

/*
 * To be called when the program is gone: false if one of the next hits of any
 * thread runs it.
 */
static inline bool hitters_check_gone(struct hitters *h)
{
	__u64 seen[MAX_HITTERS];
	int i;

	for (i = 0; i < h->n; i++)
		seen[i] = area_get(h->area, NUMBER + i);
	for (i = 0; i < h->n; i++) {
		while (area_get(h->area, NUMBER + i) < seen[i] + 3)
			sched_yield();
		if (area_get(h->area, LAST + i) > seen[i])
			return false;
	}
	return true;
}

/*
 * Closes what has attached the program, with @wait when it has run.  close() has
 * returned: the next hit, on whatever CPU, does not run it, or this is false.
 */
static inline bool hitters_close(struct hitters *h, int fd, bool wait)
{
	bool ok = fd >= 0 && (!wait || hitters_wait_run(h));

	close(fd);
	return hitters_check_gone(h) && ok;
}

/* A system call that waits, and that nobody else makes */
#define WAIT_FUNC SYS_FUNC("rt_sigtimedwait")

#define MAX_WAITERS 140

/* Waits there for SIGUSR1, having said which thread it is */
static inline void *waiter(void *tid)
{
	const struct timespec limit = { .tv_sec = PATIENCE_NS / 1000000000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	__atomic_store_n((pid_t *)tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	sigtimedwait(&set, NULL, &limit);
	return NULL;
}

/*
 * Has @n calls of WAIT_FUNC, and of waiter(), under way at once, MAX_WAITERS at most,
 * and then @meanwhile done: a kretprobe with one instance, as in "r1 func", misses all
 * but one of them.
 */
static inline int wait_together_with(int n, void (*meanwhile)(void *arg), void *arg)
{
	pthread_t threads[MAX_WAITERS];
	pid_t tids[MAX_WAITERS] = {};
	bool together = true;
	sigset_t set;
	int i, err;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	for (i = 0; i < n; i++) {
		err = pthread_create(&threads[i], NULL, waiter, &tids[i]);
		if (err)
			return -err;
	}
	for (i = 0; i < n; i++)
		together &= wait_until(__atomic_load_n(&tids[i], __ATOMIC_SEQ_CST) &&
				       sleeps(tids[i]));
	if (meanwhile)
		meanwhile(arg);
	for (i = 0; i < n; i++)
		pthread_kill(threads[i], SIGUSR1);
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return together ? 0 : -ETIME;
}

static inline int wait_together(int n)
{
	return wait_together_with(n, NULL, NULL);
}

#endif /* BPF_EVENTS_HITTER_H */
