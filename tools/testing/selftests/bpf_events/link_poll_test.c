// SPDX-License-Identifier: GPL-2.0
/*
 * A link goes while epoll, which does not have the perf event but takes it for a
 * moment, polls it: the program is gone when close() returns all the same
 */
#include <pthread.h>
#include <sys/epoll.h>

#include "common.h"
#include "hitter.h"
#include "link.h"

/*
 * Slots of the area: the runs of the link's program; the thread that closes, how often
 * it was held at the beginning of fput(); whether epoll is held where it polls, and when
 * it may go on; how long both wait at most, whether epoll waits for the first, and
 * whether it has a CPU of its own
 */
enum { RUN, CLOSER, PUTS, POLLS, CLOSED, PATIENCE, LATE, READY };

struct stage {
	struct area area;
	int epoll;
	int link;
};

FIXTURE(polled) {
	struct stage stage;
	pthread_t poller;
};

/*
 * Counts in one slot, and waits until another is not 0. If @tid, only in the thread
 * that CLOSER names.
 */
static int hold_prog(struct area *area, unsigned int count, unsigned int until, bool tid)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * CLOSER),
		BPF_JMP32_REG(BPF_JNE, BPF_REG_0, BPF_REG_1, 10),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_0, 8 * count),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_LDX_MEM(BPF_DW, BPF_REG_7, BPF_REG_6, 8 * PATIENCE),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_0),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 4, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * until),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, 0, 2),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_JMP_REG(BPF_JLT, BPF_REG_0, BPF_REG_7, -5),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	if (!tid)
		insns[4] = BPF_MOV64_IMM(BPF_REG_1, 0);
	return prog_load(insns, ARRAY_SIZE(insns));
}

static int hold_at(const char *func, int prog)
{
	struct probe probe;
	int err = probe_create_at(&probe, func, func, 0, 0);

	return err ?: attach(&probe, prog);
}

/* Polls once: at once, or when the closer is held */
static void *poller(void *arg)
{
	struct stage *stage = arg;
	struct epoll_event event;

	pin(0);
	area_set(&stage->area, READY, 1);
	while (area_get(&stage->area, LATE) && !area_get(&stage->area, PUTS))
		sched_yield();
	epoll_wait(stage->epoll, &event, 1, 0);
	return NULL;
}

FIXTURE_SETUP(polled)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct stage *stage = &self->stage;
	struct probe probe;
	int prog, perf;

	SKIP_WITHOUT(return, prepare());
	stage->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (stage->epoll < 0)
		SKIP(return, "CONFIG_EPOLL");
	if (pin(1))
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&stage->area));
	area_set(&stage->area, PATIENCE, kernel_is_slow() ? 2000000000 : 500000000);
	ASSERT_LE(0, hold_function());
	ASSERT_LE(0, hold_at("fput", hold_prog(&stage->area, PUTS, POLLS, true)));
	ASSERT_LE(0, hold_at("perf_poll", hold_prog(&stage->area, POLLS, CLOSED, false)));

	ASSERT_EQ(0, probe_create(&probe, 0));
	perf = probe_open(&probe);
	ASSERT_LE(0, perf);
	/* To be added to epoll is to be polled, too */
	area_set(&stage->area, CLOSED, 1);
	ASSERT_EQ(0, epoll_ctl(stage->epoll, EPOLL_CTL_ADD, perf, &event));
	area_set(&stage->area, CLOSED, 0);
	area_set(&stage->area, POLLS, 0);
	prog = count_prog(&stage->area, RUN, 1);
	stage->link = perf_link(perf, prog);
	ASSERT_LE(0, stage->link);
	close(prog);
	close(perf);
}

FIXTURE_TEARDOWN_PARENT(polled)
{
	EXPECT_STREQ("nothing", leftovers());
}

static void close_link(struct stage *stage)
{
	area_set(&stage->area, CLOSER, gettid());
	close(stage->link);
	area_set(&stage->area, CLOSER, 0);
}

/* The link goes when epoll polls, or, if @late, shortly before it does */
static void link_goes(struct __test_metadata *_metadata, FIXTURE_DATA(polled) * self, bool late)
{
	struct area *area = &self->stage.area;

	area_set(area, LATE, late);
	EXPECT_TRUE(runs(area));
	ASSERT_EQ(0, pthread_create(&self->poller, NULL, poller, &self->stage));
	while (!area_get(area, late ? READY : POLLS))
		sched_yield();
	close_link(&self->stage);
	EXPECT_TRUE(stands_still(area));
	EXPECT_LE(1, area_get(area, PUTS));
	area_set(area, CLOSED, 1);
	pthread_join(self->poller, NULL);
	EXPECT_TRUE(stands_still(area));
}

/* While it has the perf event, which then is not the link's alone */
TEST_F(polled, before)
{
	link_goes(_metadata, self, false);
}

/* It comes when the link has found that nobody else has the perf event */
TEST_F(polled, meanwhile)
{
	link_goes(_metadata, self, true);
}

TEST_HARNESS_MAIN
