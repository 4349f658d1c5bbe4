// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of one process at uprobes: however many they hit in turn, they do not take the
 * lock of their address space; and more of them step over instructions at once than there
 * are places for copies
 */
#include <pthread.h>

#include "common.h"
#include "late_page.h"
#include "uprobe.h"

#ifndef __x86_64__
TEST(threads)
{
	SKIP(return, "a test of instructions of x86-64");
}
#else

/* More than a task remembers, and than a page has places for copies */
#define NR	40

/* The first instruction is emulated, or stepped over */
FUNCS(emulated, NR, "nop; mov $i, %eax");
FUNCS(stepped, NR, "mov $i, %eax");
/* What steps over these waits for a page */
FUNCS(loads, NR, "mov 8*i(%rdi), %rax");

/* Returns how many gave what they should */
static int call_funcs(const char *funcs)
{
	int i, right = 0;

	for (i = 0; i < NR; i++)
		right += call_func(func_at(funcs, i), 0) == i;
	return right;
}

FIXTURE(turn) {
	struct area area;
};

FIXTURE_VARIANT(turn) {
	const char *funcs;
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(turn, emulated) {
	.funcs = emulated,
};

FIXTURE_VARIANT_ADD(turn, stepped) {
	.funcs = stepped,
};

FIXTURE_VARIANT_ADD(turn, returns) {
	.funcs = emulated, .flags = PROBE_RETURN,
};

/* Hits of all are counted together */
static int attach_funcs(struct area *area, int slot, const char *funcs, unsigned int flags)
{
	int i, err, prog = count_prog(area, slot, 0);
	unsigned long offset = file_offset(funcs);
	struct probe probe;

	for (i = 0; i < NR; i++) {
		err = uprobe_create_at(&probe, "", SELF, offset + (func_at(funcs, i) - funcs), 0,
				       PROBE_PMU | flags) ?: attach(&probe, prog);
		if (err < 0)
			return err;
	}
	return 0;
}

FIXTURE_SETUP(turn)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, attach_funcs(&self->area, 0, variant->funcs, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(turn)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Counts how often this thread is about to take the lock of an address space */
static int count_locks(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };

	if (!read_u64(TRACEFS "/events/mmap_lock/mmap_lock_start_locking/id",
		      (__u64 *)&attr.config))
		return -ENOENT;
	return perf_open(&attr, 0, -1);
}

TEST_F(turn, takes_no_lock)
{
	int i, locks = count_locks();
	__u64 before;

	if (locks == -ENOENT)
		SKIP(return, "tracepoints of mmap_lock");
	ASSERT_LE(0, locks);
	EXPECT_EQ(NR, call_funcs(variant->funcs));
	before = event_count(locks);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(NR, call_funcs(variant->funcs));
	/* Few do for reasons of their own, as to balance the nodes */
	EXPECT_GT(before + NR, event_count(locks));
	EXPECT_EQ(11 * NR, area_get(&self->area, 0));
	before = event_count(locks);
	munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	EXPECT_LE(before + 2, event_count(locks));
}

FIXTURE(crowd) {
	struct area area;
	pthread_t threads[NR];
};

FIXTURE_SETUP(crowd)
{
	SKIP_WITHOUT(return, uprobe_prepare() ?: late_page_missing());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, attach_funcs(&self->area, 0, stepped, 0));
	ASSERT_EQ(0, attach_funcs(&self->area, 1, loads, 0));
}

FIXTURE_TEARDOWN_PARENT(crowd)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* A thread for each function, which it is given */
static int start(FIXTURE_DATA(crowd) * self, void *(*run)(void *), const char *funcs)
{
	int i, err = 0;

	for (i = 0; i < NR && !err; i++)
		err = -pthread_create(&self->threads[i], NULL, run, (void *)func_at(funcs, i));
	return err;
}

/* Returns the sum of what they returned */
static long join(FIXTURE_DATA(crowd) * self)
{
	long sum = 0;
	void *ret;
	int i;

	for (i = 0; i < NR; i++)
		sum += pthread_join(self->threads[i], &ret) ? -1 : (long)ret;
	return sum;
}

static struct late_page page;
static pid_t tids[NR];

/* Returns whether it loaded what is there for it */
static void *load(void *func)
{
	int nr = ((char *)func - loads) / 16;

	__atomic_store_n(&tids[nr], gettid(), __ATOMIC_RELEASE);
	return (void *)(long)(call_func(func, (__u64)page.mem) == nr);
}

/* Do those that got a place wait for the page, and the others for a place? */
static bool all_wait(void)
{
	int i, for_page = 0, for_place = 0;

	for (i = 0; i < NR; i++) {
		char state = task_state(__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE));

		for_page += state == 'S';
		for_place += state == 'D';
	}
	return for_page && for_place && for_page + for_place == NR;
}

TEST_F(crowd, sleeps_while_it_steps)
{
	static __u64 data[LATE_PAGE_SIZE / 8];
	int i;

	for (i = 0; i < NR; i++)
		data[i] = i;
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, late_page_create(&page));
		ASSERT_EQ(0, start(self, load, loads));
		ASSERT_TRUE(wait_until(area_get(&self->area, 1) == (i + 1) * NR && all_wait()));
		ASSERT_EQ(0, late_page_give(&page, data));
		EXPECT_EQ(NR, join(self));
		EXPECT_EQ(NR, call_funcs(stepped));
	}
	EXPECT_EQ(3 * NR, area_get(&self->area, 0));
}

static void wait_in_crowd(FIXTURE_DATA(crowd) * self)
{
	if (!late_page_create(&page) && !start(self, load, loads) &&
	    wait_until(area_get(&self->area, 1) == NR && all_wait()))
		area_set(&self->area, 2, 1);
	for (;;)
		pause();
}

TEST_F(crowd, is_killed_while_it_steps)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wait_in_crowd(self);
	}
	ASSERT_LT(0, child);
	EXPECT_TRUE(wait_until(area_get(&self->area, 2)));
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
}

/* Those that have no place take over one that another thread keeps */
static void *call_stepped(void *func)
{
	int i, nr = ((char *)func - stepped) / 16, n = rounds(400);
	long right = 0;

	for (i = 0; i < n; i++) {
		right += call_func(func, 0) == nr;
		if (i % 8 == nr % 8)
			sched_yield();
	}
	return (void *)right;
}

TEST_F(crowd, takes_turns)
{
	int n = rounds(400);

	ASSERT_EQ(0, start(self, call_stepped, stepped));
	EXPECT_EQ(NR * n, join(self));
	EXPECT_EQ(NR * n, area_get(&self->area, 0));
}

#endif

TEST_HARNESS_MAIN
