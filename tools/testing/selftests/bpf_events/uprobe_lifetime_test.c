// SPDX-License-Identifier: GPL-2.0
/*
 * A program on a uprobe, the breakpoint in the user's code and the reference
 * counter go with the descriptor
 */
#include <pthread.h>

#include "common.h"
#include "hitter.h"
#include "link.h"
#include "uprobe.h"

FIXTURE(lifetime) {
	struct probe probe;
	struct area area;
	unsigned char code;	/* the first byte of what is probed */
};

FIXTURE_VARIANT(lifetime) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(lifetime, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(lifetime, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(lifetime, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(lifetime, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(lifetime, uprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(lifetime, uretprobe_event_link) {
	.flags = PROBE_RETURN, .link = true,
};

FIXTURE_VARIANT_ADD(lifetime, uprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_VARIANT_ADD(lifetime, uretprobe_pmu_link) {
	.flags = PROBE_PMU | PROBE_RETURN, .link = true,
};

static unsigned char first_byte(void)
{
	return __atomic_load_n((unsigned char *)user_func, __ATOMIC_RELAXED);
}

FIXTURE_SETUP(lifetime)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	self->code = first_byte();
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(lifetime)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(lifetime, probe_dies_with_its_fd)
{
	int fd, prog = count_prog(&self->area, 0, 0), i;

	for (i = 1; i <= 3; i++) {
		fd = attach_by(&self->probe, variant->link, prog);
		ASSERT_LE(0, fd);
		EXPECT_NE(self->code, first_byte());
		user_hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		close(fd);
		EXPECT_EQ(self->code, first_byte());
		user_hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
	}
}

TEST_F(lifetime, probe_dies_with_its_owner)
{
	int pipe_fd, fd;
	pid_t child;

	fd = attach_by(&self->probe, variant->link,
		       count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(fd);
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_EQ(self->code, first_byte());
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* A process that is in the middle of hitting it */
TEST_F(lifetime, probe_outlives_who_hits_it)
{
	int i, fd = attach_by(&self->probe, variant->link,
			      count_prog(&self->area, 0, 0));
	__u64 before;
	pid_t child;

	ASSERT_LE(0, fd);
	for (i = 0; i < 5; i++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child) {
			for (;;)
				user_hits(1);
		}
		before = area_get(&self->area, 0);
		while (area_get(&self->area, 0) < before + 3)
			sched_yield();
		ASSERT_EQ(0, kill(child, SIGKILL));
		EXPECT_EQ(-SIGKILL, child_status(child));
		before = area_get(&self->area, 0);
		user_hits(2);
		EXPECT_EQ(before + 2, area_get(&self->area, 0));
	}
}

/* close() has returned: the next hit, on whatever CPU, does not run it */
TEST_F(lifetime, nothing_runs_after_close)
{
	struct hitters hitters;
	int i, fd, prog, closes = rounds(6), ok = 1;

	ASSERT_EQ(0, hitters_start_with(&hitters, &self->area, 0, user_hit_arg));
	for (i = 0; ok && i < closes; i++) {
		prog = number_prog_flags(&self->area, i & 1 ? BPF_F_SLEEPABLE : 0);
		fd = attach_by(&self->probe, variant->link, prog);
		close(prog);
		ok = hitters_close(&hitters, fd, true);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&hitters);
}

/* A probe of an event that has another one can go while the event is on */

FIXTURE(sibling) {
	struct area area;
	unsigned long body;
	int fd;
};

FIXTURE_SETUP(sibling)
{
	struct probe probe;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	self->body = file_offset(user_body);
	ASSERT_EQ(0, uprobe_create(&probe, 0));
	ASSERT_EQ(0, write_file(TRACEFS "/uprobe_events", O_APPEND,
				"p:" GROUP "/event " SELF ":0x%lx", self->body));
	self->fd = attach(&probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(sibling)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(sibling, goes)
{
	user_hits(3);
	EXPECT_EQ(6, area_get(&self->area, 0));
	ASSERT_EQ(0, write_file(TRACEFS "/uprobe_events", O_APPEND,
				"-:" GROUP "/event " SELF ":0x%016lx", self->body));
	user_hits(3);
	EXPECT_EQ(9, area_get(&self->area, 0));
	EXPECT_EQ(9, event_count(self->fd));
}

/*
 * A probe that joins an event which is enabled is not hit until that is enabled anew.
 * Perf events for other tasks, which change what processes have a breakpoint, leave it
 * alone.
 */

FIXTURE(joined) {
	struct area area;
	struct probe probe;
	int pipe_fd;
};

FIXTURE_SETUP(joined)
{
	pid_t child;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, 0));
	child = holder(&self->pipe_fd);
	ASSERT_LT(0, child);
	ASSERT_LE(0, probe_open_for(&self->probe, child));
	ASSERT_EQ(0, write_file(TRACEFS "/uprobe_events", O_APPEND,
				"p:" GROUP "/event " SELF ":0x%lx", file_offset(user_body)));
}

FIXTURE_TEARDOWN_PARENT(joined)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(joined, is_left_alone)
{
	int i, fd, prog = count_prog(&self->area, 0, 1);

	for (i = 1; i <= 3; i++) {
		fd = attach_task(&self->probe, getpid(), prog);
		ASSERT_LE(0, fd);
		user_hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		close(fd);
		user_hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
	}
}

/*
 * A hit that goes on while its probe goes, and the next one comes to the same place. A
 * program on a function of the kernel holds the hit up there.
 */

/* Slots of such a program */
enum { IS_HELD, LET_GO, HAS_GONE, HOLD_SLOTS };

FIXTURE(handover) {
	struct area area;
	pthread_t thread;
	pid_t tid;	/* of that: whose hits are held up */
	int told;	/* what it waits for: 1: hit once, 2: twice more */
};

/* Goes round until it is told not to, for a second or so at most */
static int hold_prog(struct area *area, pid_t tid)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_MOV32_REG(BPF_REG_0, BPF_REG_0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, tid, 7),
		AREA(BPF_REG_6, area, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_6, 8 * IS_HELD, 1),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 2, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * LET_GO),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, -3),
		BPF_ST_MEM(BPF_DW, BPF_REG_6, 8 * HAS_GONE, 1),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

static int hold_at(FIXTURE_DATA(handover) * self, const char *func)
{
	struct probe probe;
	int i;

	for (i = 0; i < HOLD_SLOTS; i++)
		area_set(&self->area, i, 0);
	probe_create_at(&probe, "hold", func, 0, PROBE_PMU);
	return attach(&probe, hold_prog(&self->area, self->tid));
}

static void user_step(void)
{
#ifdef __x86_64__
	/* No kernel emulates this one */
	asm volatile("user_step_insn: lea 8(%%rsp), %%rax" ::: "rax");
#else
	asm volatile("user_step_insn: nop");
#endif
}

extern const char user_step_insn[];

static void *hit_when_told(void *arg)
{
	FIXTURE_DATA(handover) * self = arg;

	pin(1);
	__atomic_store_n(&self->tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&self->told, __ATOMIC_SEQ_CST) < 1)
		sched_yield();
	user_step();
	while (__atomic_load_n(&self->told, __ATOMIC_SEQ_CST) < 2)
		sched_yield();
	user_step();
	user_step();
	return NULL;
}

static int hitter_create(FIXTURE_DATA(handover) * self)
{
	self->tid = 0;
	self->told = 0;
	if (pthread_create(&self->thread, NULL, hit_when_told, self))
		return -ENOMEM;
	return wait_until(__atomic_load_n(&self->tid, __ATOMIC_SEQ_CST)) ? 0 : -ETIME;
}

static void tell(FIXTURE_DATA(handover) * self, int what)
{
	__atomic_store_n(&self->told, what, __ATOMIC_SEQ_CST);
}

FIXTURE_SETUP(handover)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	if (!ksym("_raw_read_lock") || !ksym("_raw_write_lock"))
		SKIP(return, "locks that are functions");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(handover)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * When the hit looks at the tasks of the perf event, that is gone. It leaves the breakpoint
 * alone, which is that of the next one. Returns this, or -EAGAIN if the hit was over early.
 */
static int hand_over_hit(FIXTURE_DATA(handover) * self, const struct probe *probe)
{
	int hold, first, next;

	if (hitter_create(self))
		return -EBADMSG;
	first = probe_open_for(probe, self->tid);
	hold = hold_at(self, "_raw_read_lock");
	tell(self, 2);
	if (first < 0 || hold < 0 || !spin_until(area_get(&self->area, IS_HELD)))
		return -EBADMSG;
	close(first);
	next = probe_open(probe);
	if (area_get(&self->area, HAS_GONE)) {
		close(next);
		next = -EAGAIN;
	}
	area_set(&self->area, LET_GO, 1);
	pthread_join(self->thread, NULL);
	close(hold);
	return next;
}

TEST_F(handover, the_hit_leaves_the_next_breakpoint)
{
	struct probe probe;
	int next;

	ASSERT_EQ(0, uprobe_create_at(&probe, "event", SELF, file_offset(user_step_insn), 0,
				      PROBE_PMU));
	ASSERT_TRUE(wait_until((next = hand_over_hit(self, &probe)) != -EAGAIN));
	ASSERT_LE(0, next);
	user_step();
	user_step();
	EXPECT_EQ(2, event_count(next));
}

/*
 * Before the instruction of the second hit is stepped over, the probe goes, and the next
 * one comes, to which the third hit goes.
 */
static int hand_over_step(FIXTURE_DATA(handover) * self, const struct probe *probe)
{
	int hold, first, next;

	if (hitter_create(self))
		return -EBADMSG;
	first = probe_open_for(probe, self->tid);
	tell(self, 1);
	if (first < 0 || !wait_until(event_count(first) == 1))
		return -EBADMSG;
	hold = hold_at(self, "arch_uprobe_pre_xol");
	tell(self, 2);
	if (hold < 0 || !spin_until(area_get(&self->area, IS_HELD)))
		return -EBADMSG;
	close(first);
	next = probe_open_for(probe, self->tid);
	if (area_get(&self->area, HAS_GONE)) {
		close(next);
		next = -EAGAIN;
	}
	area_set(&self->area, LET_GO, 1);
	pthread_join(self->thread, NULL);
	close(hold);
	return next;
}

TEST_F(handover, the_next_hit_finds_the_next_probe)
{
	struct probe probe;
	int next;

	if (!ksym("arch_uprobe_pre_xol"))
		SKIP(return, "uprobes that step over instructions");
	ASSERT_EQ(0, uprobe_create_at(&probe, "event", SELF, file_offset(user_step_insn), 0,
				      PROBE_PMU));
	ASSERT_TRUE(wait_until((next = hand_over_step(self, &probe)) != -EAGAIN));
	ASSERT_LE(0, next);
	EXPECT_EQ(1, event_count(next));
}

/*
 * The counter by which a program knows that somebody watches one of its USDT
 * probes.  Data that are all zero are in no file, and the kernel finds the
 * counter by its place in the file.
 */
static struct {
	unsigned short counter;
	unsigned short not_zero;
} usdt = { .not_zero = 1 };

static unsigned short counter(void)
{
	return __atomic_load_n(&usdt.counter, __ATOMIC_RELAXED);
}

FIXTURE(ref_ctr) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(ref_ctr) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(ref_ctr, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(ref_ctr, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(ref_ctr, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(ref_ctr, uprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(ref_ctr, uprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_SETUP(ref_ctr)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&self->probe, "event", SELF,
				      file_offset(user_func),
				      file_offset(&usdt.counter),
				      variant->flags));
}

FIXTURE_TEARDOWN_PARENT(ref_ctr)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(ref_ctr, is_up_while_attached)
{
	int i, fd;

	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(0, counter());
		fd = attach_by(&self->probe, variant->link,
			       count_prog(&self->area, 0, 0));
		ASSERT_LE(0, fd);
		EXPECT_EQ(1, counter());
		user_hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		EXPECT_EQ(1, counter());
		close(fd);
		EXPECT_EQ(0, counter());
	}
}

TEST_F(ref_ctr, is_up_until_the_last_one_goes)
{
	int fd = attach_by(&self->probe, variant->link,
			   count_prog(&self->area, 0, 0));
	int fd2 = attach_by(&self->probe, variant->link,
			    count_prog(&self->area, 1, 0));

	ASSERT_LE(0, fd);
	ASSERT_LE(0, fd2);
	EXPECT_LT(0, counter());
	close(fd);
	EXPECT_LT(0, counter());
	close(fd2);
	EXPECT_EQ(0, counter());
}

TEST_F(ref_ctr, is_down_when_the_owner_dies)
{
	int pipe_fd, fd;
	pid_t child;

	fd = attach_by(&self->probe, variant->link,
		       count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(fd);
	EXPECT_EQ(1, counter());
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_EQ(0, counter());
}

TEST_F(ref_ctr, is_that_of_the_process)
{
	int pipe_fd, fd;
	pid_t child = holder(&pipe_fd);

	/* A perf event about somebody else */
	ASSERT_LT(0, child);
	fd = attach_task(&self->probe, child, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, counter());
	user_hits(2);
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
