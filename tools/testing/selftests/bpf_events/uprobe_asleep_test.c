// SPDX-License-Identifier: GPL-2.0
/*
 * A task sleeps in the handler of a uprobe: its program reads a page that user space
 * does not give it.  Nobody else waits for that, other uprobes come and go, also those
 * in the same place.  What they leave behind stays until the task is awake.
 */
#include <pthread.h>
#include <linux/membarrier.h>

#include "common.h"
#include "late_page.h"
#include "umulti.h"

/* Slots: runs of the programs that go, of the one that sleeps, of another; what a child did */
enum { RUNS, READS, STAYS, LINKS, LEFT };

/* Descriptors from here on are a child's to close */
#define FIRST	500

FIXTURE(asleep) {
	struct area area;
	struct probe probe;
	int perf;		/* of the program that sleeps */
	__u32 prog_id;		/* of that */
	struct late_page page;	/* which it reads */
	pthread_t sleeper;
};

/* May sleep: reads eight bytes at what the function was given, counts, and lets it pass */
static int reader_prog(struct area *area, unsigned int slot, enum bpf_attach_type attach)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, REGS_ARG),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_copy_from_user),
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), attach, BPF_F_SLEEPABLE);
}

static void *hit_with_page(void *arg)
{
	user_func(arg);
	return NULL;
}

static int fall_asleep(FIXTURE_DATA(asleep) * self)
{
	if (pthread_create(&self->sleeper, NULL, hit_with_page, self->page.mem))
		return -EAGAIN;
	return wait_until(late_page_is_awaited(&self->page)) ? 0 : -ETIME;
}

/* Its program goes on, and counts this read */
static int wake_sleeper(void *arg)
{
	FIXTURE_DATA(asleep) * self = arg;
	__u64 reads = area_get(&self->area, READS);
	int err = late_page_give(&self->page, NULL);

	if (err)
		return err;
	pthread_join(self->sleeper, NULL);
	return area_get(&self->area, READS) == reads + 1 ? 0 : -EBADMSG;
}

FIXTURE_SETUP(asleep)
{
	int prog;

	SKIP_WITHOUT(return, uprobe_prepare() ?: late_page_missing());
	ASSERT_EQ(0, late_page_create(&self->page));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, 0));
	prog = reader_prog(&self->area, READS, 0);
	self->perf = attach(&self->probe, prog);
	ASSERT_LE(0, self->perf);
	self->prog_id = prog_id(prog);
	close(prog);
}

FIXTURE_TEARDOWN_PARENT(asleep)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What comes and goes meanwhile */

enum way { BY_NOTHING, BY_EVENT, BY_LINK, BY_MULTI };

static const struct leaver {
	enum way way;		/* BY_NOTHING: a perf event without a program */
	unsigned int flags;	/* of the probe, or of the multi link */
	bool sleepable;		/* its program */
} leavers[] = {
	{ BY_NOTHING, 0 },
	{ BY_NOTHING, PROBE_PMU },
	{ BY_NOTHING, PROBE_PMU | PROBE_RETURN },
	{ BY_EVENT, 0 },
	{ BY_EVENT, PROBE_PMU },
	{ BY_EVENT, PROBE_PMU | PROBE_RETURN },
	{ BY_LINK, PROBE_PMU },
	{ BY_MULTI, 0 },
	{ BY_MULTI, BPF_F_UPROBE_MULTI_RETURN },
}, sleepable_leavers[] = {
	/* A link releases its perf event late, wherever it stands among these */
	{ BY_LINK, PROBE_PMU, true },
	{ BY_EVENT, PROBE_PMU, true },
	{ BY_LINK, PROBE_PMU, true },
	{ BY_MULTI, 0, true },
};

static int leaver_prog(const struct leaver *leaver, struct area *area)
{
	enum bpf_attach_type attach = leaver->way == BY_MULTI ? BPF_TRACE_UPROBE_MULTI : 0;

	if (leaver->sleepable)
		return reader_prog(area, RUNS, attach);
	return count_prog_as(area, RUNS, 0, attach);
}

static int multi_attach(const void *place, unsigned int flags, int prog)
{
	struct umulti multi;

	umulti_init(&multi, flags);
	multi.offsets[0] = file_offset(place);
	multi.cnt = 1;
	return umulti_link(&multi, prog);
}

/* Where the task sleeps, or at another place */
static int leaver_attach(const struct leaver *leaver, struct area *area, bool same_place)
{
	const void *place = same_place ? (void *)user_func : (void *)user_func1;
	struct probe probe;
	int err;

	if (leaver->way == BY_MULTI)
		return multi_attach(place, leaver->flags, leaver_prog(leaver, area));
	err = uprobe_create_at(&probe, "leaver", SELF, file_offset(place), 0, leaver->flags);
	if (err)
		return err;
	if (leaver->way == BY_NOTHING)
		return probe_open(&probe);
	return attach_by(&probe, leaver->way == BY_LINK, leaver_prog(leaver, area));
}

static void hit_place(bool same_place)
{
	if (same_place)
		user_func(NULL);
	else
		user_func1(0);
}

static __u64 runs_after_hit(FIXTURE_DATA(asleep) * self)
{
	area_set(&self->area, RUNS, 0);
	hit_place(false);
	return area_get(&self->area, RUNS);
}

/* Comes, is hit, goes, and is not hit any more, three times; returns 0 or a line */
static int come_and_go(const struct leaver *leaver, struct area *area, bool same_place)
{
	int i, fd, runs = leaver->way == BY_NOTHING ? 0 : 1;

	for (i = 0; i < 3; i++) {
		area_set(area, RUNS, 0);
		fd = leaver_attach(leaver, area, same_place);
		if (fd < 0)
			return __LINE__;
		hit_place(same_place);
		if (area_get(area, RUNS) != runs)
			return __LINE__;
		close(fd);
		hit_place(same_place);
		if (area_get(area, RUNS) != runs)
			return __LINE__;
		if (leaver->way != BY_MULTI && !(leaver->flags & PROBE_PMU) &&
		    write_file(TRACEFS "/uprobe_events", O_APPEND, "-:" GROUP "/leaver"))
			return __LINE__;
	}
	return 0;
}

/* With mainline's programs, only what has none goes at once */
static bool goes(const struct leaver *leaver)
{
	return !mainline() || leaver->way == BY_NOTHING;
}

static int come_and_go_in_child(const struct leaver *leaver, struct area *area, bool same_place)
{
	pid_t child = fork();

	if (!child)
		_exit(come_and_go(leaver, area, same_place) & 0xff);
	return status_in_time(child);
}

TEST_F(asleep, others_come_and_go)
{
	const struct leaver *leaver;

	ASSERT_EQ(0, fall_asleep(self));
	for (leaver = leavers; leaver < leavers + ARRAY_SIZE(leavers); leaver++) {
		if (!goes(leaver))
			continue;
		EXPECT_EQ(0, come_and_go_in_child(leaver, &self->area, false));
		EXPECT_EQ(0, come_and_go_in_child(leaver, &self->area, true));
	}
	ASSERT_EQ(0, wake_sleeper(self));
}

/* The process has one of each, twenty times, and is killed */
TEST_F(asleep, others_are_killed)
{
	const struct leaver *leaver;
	int i, ready[2];
	pid_t child;
	char c;

	ASSERT_EQ(0, fall_asleep(self));
	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		for (i = 0; i < 20; i++) {
			for (leaver = leavers; leaver < leavers + ARRAY_SIZE(leavers); leaver++) {
				if ((leaver->way == BY_MULTI || leaver->flags & PROBE_PMU) &&
				    goes(leaver) && leaver_attach(leaver, &self->area, i & 1) < 0)
					_exit(1);
			}
		}
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &c, 1));
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
	ASSERT_EQ(0, wake_sleeper(self));
}

/* An event of tracefs that is enabled there */
static int record_and_remove(void)
{
	static const char enable[] = TRACEFS "/events/" GROUP "/leaver/enable";
	struct probe probe;
	int i;

	for (i = 0; i < 3; i++) {
		if (uprobe_create_at(&probe, "leaver", SELF, file_offset(user_func), 0, 0))
			return __LINE__;
		if (write_file(enable, 0, "1"))
			return __LINE__;
		user_func(NULL);
		if (write_file(enable, 0, "0"))
			return __LINE__;
		if (write_file(TRACEFS "/uprobe_events", O_APPEND, "-:" GROUP "/leaver"))
			return __LINE__;
	}
	return 0;
}

TEST_F(asleep, events_of_tracefs_come_and_go)
{
	pid_t child;

	ASSERT_EQ(0, fall_asleep(self));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(record_and_remove() & 0xff);
	EXPECT_EQ(0, status_in_time(child));
	ASSERT_EQ(0, wake_sleeper(self));
}

/* The event's programs after the one that sleeps: the hit runs those that are still there */
TEST_F(asleep, next_programs_leave)
{
	int by_event, by_link, by_task, stays;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	by_event = attach(&self->probe, count_prog(&self->area, RUNS, 0));
	by_link = attach_by(&self->probe, true, count_prog(&self->area, RUNS, 0));
	by_task = attach_task(&self->probe, getpid(), count_prog(&self->area, RUNS, 0));
	stays = attach(&self->probe, count_prog(&self->area, STAYS, 0));
	ASSERT_LE(0, by_event);
	ASSERT_LE(0, by_link);
	ASSERT_LE(0, by_task);
	ASSERT_LE(0, stays);

	ASSERT_EQ(0, fall_asleep(self));
	close(by_event);
	by_event = attach(&self->probe, count_prog(&self->area, RUNS, 0));
	ASSERT_LE(0, by_event);
	close(by_link);
	close(by_task);
	close(by_event);
	/* RCU frees what it can */
	ASSERT_EQ(0, syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
	ASSERT_EQ(0, syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
	EXPECT_EQ(0, area_get(&self->area, STAYS));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_EQ(1, area_get(&self->area, READS));
	EXPECT_EQ(0, area_get(&self->area, RUNS));
	EXPECT_EQ(1, area_get(&self->area, STAYS));
}

/*
 * Programs that may sleep.  A child has the only descriptors, closes all of them, waits, and
 * says that it is back.
 */

static int move_to_child(int fd)
{
	int err = neg_errno(fcntl(fd, F_DUPFD, FIRST));

	close(fd);
	return err;
}

static void close_all_and_pause(void *area)
{
	close_range(FIRST, ~0U, 0);
	area_set(area, LEFT, 1);
	for (;;)
		pause();
}

/* The child is where it waits when this returns */
static pid_t closer_start(FIXTURE_DATA(asleep) * self)
{
	pid_t child;
	int told;

	area_set(&self->area, LEFT, 0);
	child = holder_of(&told, close_all_and_pause, &self->area);
	close_range(FIRST, ~0U, 0);
	close(told);
	return child < 0 || wait_until(blocks(child, 200)) ? child : -ETIME;
}

/* At the place where no task sleeps; each is hit once */
static int attach_sleepable(FIXTURE_DATA(asleep) * self)
{
	const struct leaver *leaver;
	int fd;

	for (leaver = sleepable_leavers;
	     leaver < sleepable_leavers + ARRAY_SIZE(sleepable_leavers); leaver++) {
		fd = leaver_attach(leaver, &self->area, false);
		if (fd >= 0)
			fd = move_to_child(fd);
		if (fd < 0)
			return fd;
	}
	return runs_after_hit(self) == ARRAY_SIZE(sleepable_leavers) ? 0 : -EBADMSG;
}

/* While it waits for the first of them, none runs any more */
TEST_F(asleep, sleepable_leave_together)
{
	pid_t child;

	if (mainline())
		SKIP(return, "mainline waits in each close()");
	ASSERT_EQ(0, attach_sleepable(self));
	ASSERT_EQ(0, fall_asleep(self));
	child = closer_start(self);
	ASSERT_LE(0, child);
	EXPECT_EQ(0, runs_after_hit(self));
	EXPECT_EQ(0, area_get(&self->area, LEFT));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_TRUE(wait_until(area_get(&self->area, LEFT)));
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
}

TEST_F(asleep, sleepable_leave_when_killed)
{
	pid_t child;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	ASSERT_EQ(0, attach_sleepable(self));
	ASSERT_EQ(0, fall_asleep(self));
	child = closer_start(self);
	ASSERT_LE(0, child);
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
	EXPECT_EQ(0, runs_after_hit(self));
	ASSERT_EQ(0, wake_sleeper(self));
}

TEST_F(asleep, sleepable_leave_at_exit)
{
	int told;
	pid_t child;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	ASSERT_EQ(0, attach_sleepable(self));
	ASSERT_EQ(0, fall_asleep(self));
	child = holder(&told);
	ASSERT_LE(0, child);
	close_range(FIRST, ~0U, 0);
	close(told);
	EXPECT_EQ(0, status_in_time(child));
	EXPECT_EQ(0, runs_after_hit(self));
	ASSERT_EQ(0, wake_sleeper(self));
}

/* The program that sleeps leaves itself, a perf event's or that of a link */

static int attach_own(FIXTURE_DATA(asleep) * self, enum way way)
{
	int prog, fd = self->perf;

	if (way == BY_MULTI) {
		close(fd);
		prog = reader_prog(&self->area, READS, BPF_TRACE_UPROBE_MULTI);
		fd = multi_attach(user_func, 0, prog);
		self->prog_id = prog_id(prog);
		close(prog);
	}
	return fd < 0 ? fd : move_to_child(fd);
}

static void own_close_waits(struct __test_metadata *_metadata,
			    FIXTURE_DATA(asleep) * self, enum way way)
{
	pid_t child;

	ASSERT_LE(0, attach_own(self, way));
	ASSERT_EQ(0, fall_asleep(self));
	child = closer_start(self);
	ASSERT_LE(0, child);
	EXPECT_EQ(0, area_get(&self->area, LEFT));
	EXPECT_EQ(0, area_get(&self->area, READS));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_TRUE(wait_until(area_get(&self->area, LEFT)));
	user_func(NULL);
	EXPECT_EQ(1, area_get(&self->area, READS));
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
}

TEST_F(asleep, its_own_close_waits)
{
	own_close_waits(_metadata, self, BY_EVENT);
}

TEST_F(asleep, its_own_link_close_waits)
{
	own_close_waits(_metadata, self, BY_MULTI);
}

/* It has lost all owners when it wakes up, goes on, and is freed then */
static void own_close_is_killed(struct __test_metadata *_metadata,
				FIXTURE_DATA(asleep) * self, enum way way)
{
	pid_t child;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	ASSERT_LE(0, attach_own(self, way));
	ASSERT_EQ(0, fall_asleep(self));
	child = closer_start(self);
	ASSERT_LE(0, child);
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
	EXPECT_TRUE(prog_exists(self->prog_id));
	ASSERT_EQ(0, wake_sleeper(self));
	user_func(NULL);
	EXPECT_EQ(1, area_get(&self->area, READS));
	EXPECT_TRUE(wait_gone(!prog_exists(self->prog_id)));
}

TEST_F(asleep, its_own_close_is_killed)
{
	own_close_is_killed(_metadata, self, BY_EVENT);
}

TEST_F(asleep, its_own_link_close_is_killed)
{
	own_close_is_killed(_metadata, self, BY_MULTI);
}

/* The hit walks on from a link that has left to the next one, which has left, too */
TEST_F(asleep, next_links_leave)
{
	int leaves, stays;
	pid_t child;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	/* The last one that comes is the first one that is run */
	stays = multi_attach(user_func, 0, count_prog_as(&self->area, STAYS, 0,
							 BPF_TRACE_UPROBE_MULTI));
	leaves = multi_attach(user_func, 0, count_prog_as(&self->area, RUNS, 0,
							  BPF_TRACE_UPROBE_MULTI));
	ASSERT_LE(0, stays);
	ASSERT_LE(0, leaves);
	ASSERT_LE(0, attach_own(self, BY_MULTI));

	ASSERT_EQ(0, fall_asleep(self));
	child = closer_start(self);
	ASSERT_LE(0, child);
	EXPECT_EQ(-SIGKILL, kill_in_time(child));
	close(leaves);
	EXPECT_EQ(0, area_get(&self->area, STAYS));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_EQ(0, area_get(&self->area, RUNS));
	EXPECT_EQ(1, area_get(&self->area, STAYS));
}

/* The memory for what waits to be freed has a limit */
TEST_F(asleep, what_is_left_is_bounded)
{
	static __u64 offsets[1000];
	union bpf_attr attr = {
		.link_create.attach_type = BPF_TRACE_UPROBE_MULTI,
		.link_create.uprobe_multi.path = (unsigned long)SELF,
		.link_create.uprobe_multi.offsets = (unsigned long)offsets,
		.link_create.uprobe_multi.cnt = ARRAY_SIZE(offsets),
	};
	__u64 offset = file_offset(user_func1);
	int i;

	if (mainline())
		SKIP(return, "mainline waits in each close()");
	for (i = 0; i < ARRAY_SIZE(offsets); i++)
		offsets[i] = offset;
	attr.link_create.prog_fd = count_prog_as(&self->area, RUNS, 0, BPF_TRACE_UPROBE_MULTI);
	ASSERT_EQ(0, fall_asleep(self));
	EXPECT_EQ(0, links_are_bounded(&attr, &self->area, LINKS, wake_sleeper, self));
}

TEST_HARNESS_MAIN
