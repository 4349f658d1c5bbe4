/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A run that is under way on CPU 1 until it is told to end, and a call here that has
 * to wait for that
 */
#ifndef BPF_EVENTS_ELSEWHERE_H
#define BPF_EVENTS_ELSEWHERE_H

#include <pthread.h>

#include "body.h"
#include "filter.h"

/* Slots of the area, behind the one that counts runs */
enum { BEGUN = 1, MAY_END, TOLD, ENDED };

/* As long as it takes until a run is told to end, also where other programs have the host */
#define TOLD_MS 60000

/*
 * The first run of the program goes on until it is told to end, but for @ms at most; others do
 * nothing. It returns @ret.
 */
static inline int elsewhere_prog(union bpf_attr *attr, struct area *area, unsigned int ms, int ret)
{
	struct bpf_insn body[7 + WAIT_INSNS] = {
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_7, BPF_REG_1, 8 * BEGUN),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, 0, WAIT_INSNS + 2),
	};
	size_t n = 3;

	n += wait_for_slot(body + n, area, MAY_END, ms, TOLD);
	body[n++] = BPF_MOV64_IMM(BPF_REG_1, 1);
	body[n++] = BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * ENDED);
	body[n++] = BPF_MOV64_IMM(BPF_REG_0, ret);
	body[n++] = BPF_EXIT_INSN();
	return body_load(attr, area, body, n);
}

struct elsewhere {
	struct area *area;
	const struct kind *kind;
	int (*call)(int arg);
	int arg;
	int result;		/* of the call */
	bool late;		/* the run had ended before the call */
	bool ended;		/* the run, when the call returned */
	bool returned;		/* the call */
	pid_t caller;		/* once it is about to call */
	pthread_t hit_thread, call_thread;
};

static inline void *elsewhere_hit_thread(void *arg)
{
	struct elsewhere *e = arg;

	pin(1);
	e->kind->hit();
	return NULL;
}

/* Hits @kind there once. Returns 0 when the run is under way. */
static inline int elsewhere_hit(struct elsewhere *e, struct area *area, const struct kind *kind)
{
	*e = (struct elsewhere) { .area = area, .kind = kind };
	return -pthread_create(&e->hit_thread, NULL, elsewhere_hit_thread, e) ?:
	       wait_until(area_get(area, BEGUN)) ? 0 : -ETIME;
}

static inline void *elsewhere_call_thread(void *arg)
{
	struct elsewhere *e = arg;

	__atomic_store_n(&e->caller, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	e->late = area_get(e->area, ENDED);
	e->result = e->call(e->arg);
	e->ended = area_get(e->area, ENDED);
	__atomic_store_n(&e->returned, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static inline int elsewhere_call(struct elsewhere *e, int (*call)(int arg), int arg)
{
	e->call = call;
	e->arg = arg;
	return -pthread_create(&e->call_thread, NULL, elsewhere_call_thread, e);
}

static inline bool elsewhere_caller_is_asleep(const struct elsewhere *e)
{
	pid_t caller = __atomic_load_n(&e->caller, __ATOMIC_SEQ_CST);

	return caller && task_state(caller) == 'D';
}

static inline bool elsewhere_has_returned(const struct elsewhere *e)
{
	return __atomic_load_n(&e->returned, __ATOMIC_SEQ_CST);
}

/* Is the call waiting, before long, while the run is under way? */
static inline bool elsewhere_waits(const struct elsewhere *e)
{
	return wait_until(elsewhere_caller_is_asleep(e) || elsewhere_has_returned(e)) &&
	       !elsewhere_has_returned(e) && !area_get(e->area, ENDED);
}

/* True if the run had ended when the call returned */
static inline bool elsewhere_join(struct elsewhere *e)
{
	pthread_join(e->call_thread, NULL);
	pthread_join(e->hit_thread, NULL);
	return e->ended;
}

/* Tells the run to end, as often as it is called: the run may not have begun to look. Has it? */
static inline bool elsewhere_tell(const struct elsewhere *e)
{
	area_set(e->area, MAY_END, area_get(e->area, MAY_END) + 1);
	return area_get(e->area, ENDED);
}

/* Lets the run end first */
static inline bool elsewhere_end(struct elsewhere *e)
{
	bool ended = wait_until(elsewhere_tell(e));

	return elsewhere_join(e) && ended;
}

#endif /* BPF_EVENTS_ELSEWHERE_H */
