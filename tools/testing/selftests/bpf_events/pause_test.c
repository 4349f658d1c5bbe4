// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a program runs is up to whoever has its perf event: what resumes the
 * event resumes the program, and what merely keeps it from counting does not
 * pause it
 */
#include "common.h"
#include "ring.h"

#define EXEC_ENV "BPF_EVENTS_EXEC"

/* What a child of a test is for that has become another program */
static __attribute__((constructor)) void hit_and_exit(void)
{
	if (!getenv(EXEC_ENV))
		return;
	hits(3);
	_exit(0);
}

FIXTURE(pause) {
	struct probe probe;
	struct area area;
	struct perf_event_attr attr;
	int prog;
};

FIXTURE_VARIANT(pause) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(pause, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(pause, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(pause, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_SETUP(pause)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	ASSERT_EQ(0, probe_attr(&self->probe, &self->attr));
	self->prog = count_prog(&self->area, 0, 1);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(pause)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* The event goes off after the samples that were asked for, the program goes on */
TEST_F(pause, refresh)
{
	struct ring ring;
	int fd;

	self->attr.disabled = 1;
	fd = perf_open(&self->attr, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	ASSERT_EQ(0, ring_map(&ring, fd));
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(0, ring_samples(&ring));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(2, ring_samples(&ring));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(stands_still(&self->area));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(1, ring_samples(&ring));
}

TEST_F(pause, enable_on_exec)
{
	int fd, go[2];
	pid_t child;
	char c;

	ASSERT_EQ(0, pipe(go));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (read(go[0], &c, 1) != 1 || setenv(EXEC_ENV, "1", 1))
			_exit(1);
		execl("/proc/self/exe", "child", NULL);
		_exit(2);
	}
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	fd = perf_open(&self->attr, child, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(1, write(go[1], "", 1));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(3, area_get(&self->area, 0));
	EXPECT_TRUE(runs(&self->area));
}

/* Groups */

static __u64 count_of(int fd)
{
	__u64 count;

	return read(fd, &count, 8) == 8 ? count : ~0ULL;
}

/* The leader of a group on CPU 0, whose function nobody hits; of the same PMU */
static int leader_open(unsigned int flags, bool disabled)
{
	struct perf_event_attr attr;
	struct probe probe;
	int err = probe_create_at(&probe, "leader", FUNC2, 0, flags);

	err = err ?: probe_attr(&probe, &attr);
	attr.disabled = disabled;
	return err ?: perf_open(&attr, -1, 0);
}

static int sibling_open(struct perf_event_attr *attr, int leader)
{
	return neg_errno(syscall(__NR_perf_event_open, attr, -1, 0, leader,
				 PERF_FLAG_FD_CLOEXEC));
}

/* A paused leader keeps its group from counting, and no program from running */
TEST_F(pause, leader)
{
	int leader = leader_open(variant->flags, false), fd;
	__u64 count;

	ASSERT_LE(0, leader);
	fd = sibling_open(&self->attr, leader);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(runs(&self->area));
	count = count_of(fd);
	EXPECT_EQ(3, count);

	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(count, count_of(fd));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(count + 3, count_of(fd));
}

TEST_F(pause, group)
{
	int leader = leader_open(variant->flags, false), fd;

	ASSERT_LE(0, leader);
	fd = sibling_open(&self->attr, leader);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(0, count_of(fd));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(3, count_of(fd));
}

/* One that joins a group whose leader is paused, or is enabled in it */
TEST_F(pause, joins_a_paused_group)
{
	int leader = leader_open(variant->flags, true), fd, fd2;

	ASSERT_LE(0, leader);
	fd = sibling_open(&self->attr, leader);
	ASSERT_LE(0, fd);
	self->attr.disabled = 1;
	fd2 = sibling_open(&self->attr, leader);
	ASSERT_LE(0, fd2);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, count_of(fd));
	ASSERT_EQ(0, ioctl(fd2, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, count_of(fd));
	EXPECT_EQ(0, count_of(fd2));

	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(3, count_of(fd));
	EXPECT_EQ(3, count_of(fd2));
}

TEST_HARNESS_MAIN
