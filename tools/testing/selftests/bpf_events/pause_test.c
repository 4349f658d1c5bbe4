// SPDX-License-Identifier: GPL-2.0
/*
 * The owner of a perf event pauses and resumes its program: what resumes the
 * event resumes the program, and what merely keeps it from counting does not
 * pause it
 */
#include "common.h"
#include "ring.h"

#define EXEC_ENV "BPF_EVENTS_EXEC"

/* What a child of a test is for that has become another program, once it may go on */
static __attribute__((constructor)) void hit_and_exit(void)
{
	const char *go = getenv(EXEC_ENV);
	char c;

	if (!go)
		return;
	if (read(atoi(go), &c, 1) != 1)
		_exit(1);
	hits(3);
	_exit(0);
}

/* Become another program, which waits until it can read from @go, hits three times */
static void exec_and_hit(int go)
{
	char env[32], *argv[] = { "child", NULL }, *envp[] = { env, NULL };

	snprintf(env, sizeof(env), EXEC_ENV "=%d", go);
	execve("/proc/self/exe", argv, envp);
	_exit(2);
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
	SKIP_WITHOUT(return, prepare());
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
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		exec_and_hit(go[0]);
	}
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	fd = perf_open(&self->attr, child, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(2, write(go[1], "12", 2));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(3, area_get(&self->area, 0));
	EXPECT_TRUE(runs(&self->area));
}

/* One that a task has inherited turns on the program of its parent */
TEST_F(pause, enable_on_exec_inherited)
{
	struct perf_event_attr other = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(other),
		.config = PERF_COUNT_SW_DUMMY,
	};
	int fd, go[2];
	pid_t child;

	ASSERT_EQ(0, pipe(go));
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	self->attr.inherit = 1;
	fd = perf_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	/* Not inherited, so that perf cannot swap what the two tasks have */
	ASSERT_LE(0, perf_open(&other, 0, -1));
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(stands_still(&self->area));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		exec_and_hit(go[0]);
	ASSERT_EQ(1, write(go[1], "", 1));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(3, event_count(fd));
	EXPECT_EQ(3, area_get(&self->area, 0));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(3, event_count(fd));
}

/*
 * exec() while all that inherited the event are turned off one after another:
 * whether it comes before or after that, the program does what the event does
 */

#define EXECS 24
#define OTHERS 100

/* How long it took, but for what the host did in between */
static __u64 span(__u64 start)
{
	__u64 ns = now_ns() - start, most = kernel_is_slow() ? 1000000000 : 200000000;

	return ns < most ? ns : most;
}

static bool has_execed(pid_t pid)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	return read_file(path, comm, sizeof(comm)) > 0 && !strcmp(comm, "exe\n");
}

TEST_F(pause, disable_during_exec)
{
	pid_t children[EXECS], others[OTHERS];
	__u64 ran = 0, counted = 0, start, exec_ns = 0;
	int fd, i, starts[EXECS][2], go[2];
	char c;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pipe(go));
	self->attr.disabled = 1;
	self->attr.enable_on_exec = 1;
	self->attr.inherit = 1;
	fd = perf_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));

	/* Those that exec() are turned off first, and then there is some time left */
	for (i = 0; i < EXECS; i++) {
		ASSERT_EQ(0, pipe(starts[i]));
		children[i] = fork();
		ASSERT_LE(0, children[i]);
		if (children[i])
			continue;
		if (pin(1) || read(starts[i][0], &c, 1) != 1)
			_exit(3);
		exec_and_hit(go[0]);
	}
	for (i = 0; i < OTHERS; i++) {
		others[i] = fork();
		ASSERT_LE(0, others[i]);
		if (!others[i]) {
			pause();
			_exit(0);
		}
	}

	/* How long an exec() takes is seen the first time; then each is met at another point */
	for (i = 0; i < EXECS; i++) {
		/* To turn off one that is off takes no time */
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		start = now_ns();
		ASSERT_EQ(1, write(starts[i][1], "", 1));
		if (!i) {
			ASSERT_TRUE(spin_until(has_execed(children[i])));
			exec_ns = span(start);
		}
		while (now_ns() < start + exec_ns * i / EXECS)
			;
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ(1, write(go[1], "", 1));
		ASSERT_LT(0, wait(NULL));
		EXPECT_EQ(event_count(fd) - counted, area_get(&self->area, 0) - ran);
		counted = event_count(fd);
		ran = area_get(&self->area, 0);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		EXPECT_TRUE(stands_still(&self->area));
	}
	for (i = 0; i < OTHERS; i++) {
		ASSERT_EQ(0, kill(others[i], SIGKILL));
		EXPECT_EQ(-SIGKILL, child_status(others[i]));
	}
}

/*
 * The same with fork(), in a task that has inherited the event itself: what it passes on
 * goes off with the others
 */

#define FORKS 200

/* Forks each time that it can read from @start; says so, and that the child has hit */
static void fork_to_hit(int start, int go, int done)
{
	char c;

	pin(1);
	while (read(start, &c, 1) == 1) {
		if (!fork()) {
			if (read(go, &c, 1) == 1)
				hits(3);
			_exit(0);
		}
		if (write(done, "f", 1) != 1 || wait(NULL) < 0 || write(done, "h", 1) != 1)
			break;
	}
	_exit(1);
}

TEST_F(pause, disable_during_fork)
{
	__u64 ran = 0, counted = 0, start, fork_ns = 0;
	int fd, i, starts[2], go[2], done[2];
	pid_t forker;
	char c;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pipe(starts));
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(done));
	self->attr.disabled = 1;
	self->attr.inherit = 1;
	fd = perf_open(&self->attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	forker = fork();
	ASSERT_LE(0, forker);
	if (!forker)
		fork_to_hit(starts[0], go[0], done[1]);

	for (i = 0; i < FORKS; i++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		start = now_ns();
		ASSERT_EQ(1, write(starts[1], "", 1));
		if (!i) {
			ASSERT_EQ(1, read(done[0], &c, 1));
			fork_ns = span(start);
		}
		while (now_ns() < start + fork_ns * i / FORKS)
			;
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ(1, write(go[1], "", 1));
		do {
			ASSERT_EQ(1, read(done[0], &c, 1));
		} while (c != 'h');
		EXPECT_EQ(event_count(fd) - counted, area_get(&self->area, 0) - ran)
			TH_LOG("fork %d", i);
		counted = event_count(fd);
		ran = area_get(&self->area, 0);
	}
	EXPECT_EQ(-SIGKILL, kill_in_time(forker));
}

/* Groups */

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
	count = event_count(fd);
	EXPECT_EQ(3, count);

	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(count, event_count(fd));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(count + 3, event_count(fd));
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
	EXPECT_EQ(0, event_count(fd));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(3, event_count(fd));
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
	EXPECT_EQ(0, event_count(fd));
	ASSERT_EQ(0, ioctl(fd2, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, event_count(fd));
	EXPECT_EQ(0, event_count(fd2));

	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(3, event_count(fd));
	EXPECT_EQ(3, event_count(fd2));
}

TEST_HARNESS_MAIN
