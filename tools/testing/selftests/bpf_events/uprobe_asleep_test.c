// SPDX-License-Identifier: GPL-2.0
/*
 * A task sleeps in the handler of a uprobe: its program reads a page that user space
 * does not give it.  Nobody else waits for that, other uprobes come and go, also those
 * in the same place.  What they leave behind stays until the task is awake.
 */
#include <poll.h>
#include <pthread.h>
#include <linux/userfaultfd.h>

#include "common.h"
#include "umulti.h"

/* Slots: runs of the programs that go, of the one that sleeps, of another; links */
enum { RUNS, READS, STAYS, LINKS };

FIXTURE(asleep) {
	struct area area;
	struct probe probe;
	int uffd;
	int perf;		/* of the program that sleeps */
	void *page;		/* which it reads */
	pthread_t sleeper;
};

/* Reads eight bytes at what the function was given, and counts */
static int reader_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, REGS_ARG),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_copy_from_user),
		AREA(BPF_REG_1, area, READS),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_flags(insns, ARRAY_SIZE(insns), BPF_F_SLEEPABLE);
}

/* A page that is there when userfaultfd has been told to */
static int page_create(FIXTURE_DATA(asleep) * self)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	self->uffd = neg_errno(syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	if (self->uffd < 0)
		return self->uffd;
	self->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (self->page == MAP_FAILED || ioctl(self->uffd, UFFDIO_API, &api))
		return -errno;
	range.range.start = (unsigned long)self->page;
	range.range.len = 4096;
	return neg_errno(ioctl(self->uffd, UFFDIO_REGISTER, &range));
}

static void *hit_with_page(void *arg)
{
	user_func(arg);
	return NULL;
}

static bool is_in_fault(FIXTURE_DATA(asleep) * self)
{
	struct pollfd poll_fd = { .fd = self->uffd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLIN;
}

static int fall_asleep(FIXTURE_DATA(asleep) * self)
{
	if (pthread_create(&self->sleeper, NULL, hit_with_page, self->page))
		return -EAGAIN;
	return wait_until(is_in_fault(self)) ? 0 : -ETIME;
}

/* Its program goes on, and counts this read */
static int wake_sleeper(FIXTURE_DATA(asleep) * self)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (unsigned long)self->page, .len = 4096 },
	};

	__u64 reads = area_get(&self->area, READS);

	if (ioctl(self->uffd, UFFDIO_ZEROPAGE, &zero))
		return -errno;
	pthread_join(self->sleeper, NULL);
	return area_get(&self->area, READS) == reads + 1 ? 0 : -EBADMSG;
}

FIXTURE_SETUP(asleep)
{
	const char *missing = uprobe_prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access("/proc/sys/vm/unprivileged_userfaultfd", F_OK))
		SKIP(return, "CONFIG_USERFAULTFD");
	ASSERT_EQ(0, page_create(self));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, 0));
	self->perf = attach(&self->probe, reader_prog(&self->area));
	ASSERT_LE(0, self->perf);
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
};

/* Where the task sleeps, or at another place */
static int leaver_attach(const struct leaver *leaver, struct area *area, bool same_place)
{
	const void *place = same_place ? (void *)user_func : (void *)user_func1;
	struct umulti multi;
	struct probe probe;
	int err;

	if (leaver->way == BY_MULTI) {
		umulti_init(&multi, leaver->flags);
		multi.offsets[0] = file_offset(place);
		multi.cnt = 1;
		return umulti_link(&multi, count_prog_as(area, RUNS, 0, BPF_TRACE_UPROBE_MULTI));
	}
	err = uprobe_create_at(&probe, "leaver", SELF, file_offset(place), 0, leaver->flags);
	if (err)
		return err;
	if (leaver->way == BY_NOTHING)
		return probe_open(&probe);
	return attach_by(&probe, leaver->way == BY_LINK, count_prog(area, RUNS, 0));
}

static void hit_place(bool same_place)
{
	if (same_place)
		user_func(NULL);
	else
		user_func1(0);
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

/* Its exit code; -ETIME if it has not exited, and is still there */
static int status_in_time(pid_t child)
{
	int status;

	if (!wait_until(waitpid(child, &status, WNOHANG) == child))
		return -ETIME;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
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
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, status_in_time(child));
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
	int by_event, by_link, stays;

	if (mainline())
		SKIP(return, "mainline waits for handlers when a program leaves");
	by_event = attach(&self->probe, count_prog(&self->area, RUNS, 0));
	by_link = attach_by(&self->probe, true, count_prog(&self->area, RUNS, 0));
	stays = attach(&self->probe, count_prog(&self->area, STAYS, 0));
	ASSERT_LE(0, by_event);
	ASSERT_LE(0, by_link);
	ASSERT_LE(0, stays);

	ASSERT_EQ(0, fall_asleep(self));
	close(by_event);
	by_event = attach(&self->probe, count_prog(&self->area, RUNS, 0));
	ASSERT_LE(0, by_event);
	close(by_link);
	close(by_event);
	EXPECT_EQ(0, area_get(&self->area, STAYS));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_EQ(1, area_get(&self->area, READS));
	EXPECT_EQ(0, area_get(&self->area, RUNS));
	EXPECT_EQ(1, area_get(&self->area, STAYS));
}

/* Its own program is under way, so who detaches it waits */

struct closer {
	pthread_t thread;
	int fd;
	pid_t tid;
	bool done;
};

static void *close_it(void *arg)
{
	struct closer *closer = arg;

	__atomic_store_n(&closer->tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	close(closer->fd);
	__atomic_store_n(&closer->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool is_done(struct closer *closer)
{
	return __atomic_load_n(&closer->done, __ATOMIC_SEQ_CST);
}

static bool waits(struct closer *closer)
{
	pid_t tid = __atomic_load_n(&closer->tid, __ATOMIC_SEQ_CST);
	int i;

	for (i = 0; i < 10; i++) {
		if (!tid || task_state(tid) != 'D')
			return false;
		sleep_ms(20);
	}
	return true;
}

TEST_F(asleep, its_own_close_waits)
{
	struct closer closer = { .fd = self->perf };

	ASSERT_EQ(0, fall_asleep(self));
	ASSERT_EQ(0, pthread_create(&closer.thread, NULL, close_it, &closer));
	EXPECT_TRUE(wait_until(waits(&closer)));
	EXPECT_FALSE(is_done(&closer));
	EXPECT_EQ(0, area_get(&self->area, READS));
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_TRUE(wait_until(is_done(&closer)));
	EXPECT_EQ(1, area_get(&self->area, READS));
	user_func(NULL);
	EXPECT_EQ(1, area_get(&self->area, READS));
	pthread_join(closer.thread, NULL);
}

/* A child that makes links to a thousand places and closes them, and counts them */
static pid_t link_without_end(struct area *area)
{
	static __u64 offsets[1000];
	union bpf_attr attr = {
		.link_create.prog_fd = count_prog_as(area, RUNS, 0, BPF_TRACE_UPROBE_MULTI),
		.link_create.attach_type = BPF_TRACE_UPROBE_MULTI,
		.link_create.uprobe_multi.path = (unsigned long)SELF,
		.link_create.uprobe_multi.offsets = (unsigned long)offsets,
		.link_create.uprobe_multi.cnt = ARRAY_SIZE(offsets),
	};
	pid_t child;
	int i, link;

	area_set(area, LINKS, 0);
	for (i = 0; i < ARRAY_SIZE(offsets); i++)
		offsets[i] = file_offset(user_func1);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 1; ; i++) {
		link = sys_bpf(BPF_LINK_CREATE, &attr);
		if (link < 0)
			_exit(1);
		close(link);
		area_set(area, LINKS, i);
	}
}

/* The memory for what waits to be freed has a limit */
TEST_F(asleep, what_is_left_is_bounded)
{
	pid_t child;
	__u64 made;

	if (mainline())
		SKIP(return, "mainline waits in each close()");
	ASSERT_EQ(0, fall_asleep(self));
	child = link_without_end(&self->area);
	ASSERT_LE(0, child);
	EXPECT_TRUE(wait_until(makes_none(child, &self->area, LINKS)));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, status_in_time(child));

	child = link_without_end(&self->area);
	ASSERT_LE(0, child);
	EXPECT_TRUE(wait_until(makes_none(child, &self->area, LINKS)));
	made = area_get(&self->area, LINKS);
	ASSERT_EQ(0, wake_sleeper(self));
	EXPECT_TRUE(wait_until(area_get(&self->area, LINKS) > made));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, status_in_time(child));
}

TEST_HARNESS_MAIN
