// SPDX-License-Identifier: GPL-2.0
/* A program on a uprobe runs in the processes that its perf event is about */
#include <pthread.h>

#include "common.h"
#include "link.h"
#include "uprobe.h"

FIXTURE(scope) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(scope) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(scope, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(scope, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(scope, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(scope, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(scope, uprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(scope, uprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_SETUP(scope)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(scope)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* A program that counts in @slot, on a perf event about one process */
static int attach_for(const struct probe *p, bool link, struct area *area,
		      unsigned int slot, pid_t pid, bool inherit)
{
	struct perf_event_attr attr = {};
	int fd, err = probe_attr(p, &attr);
	int prog = count_prog(area, slot, 0);

	attr.inherit = inherit;
	fd = err ?: perf_open(&attr, pid, -1);
	if (fd < 0)
		return fd;
	err = link ? perf_link(fd, prog) : perf_set_bpf(fd, prog);
	return err < 0 ? err : fd;
}

/*
 * A process that hits the probe as often as the byte says that it gets, and
 * sends it back
 */
static pid_t other_process(int *fd_to, int *fd_from)
{
	int to[2], from[2];
	pid_t child;
	char n;

	if (pipe(to) || pipe(from))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		while (read(to[0], &n, 1) == 1) {
			user_hits(n);
			if (write(from[1], &n, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	*fd_to = to[1];
	*fd_from = from[0];
	return child;
}

static bool other_hits(int fd_to, int fd_from, char n)
{
	return write(fd_to, &n, 1) == 1 && read(fd_from, &n, 1) == 1;
}

TEST_F(scope, one_process)
{
	int to, from;
	pid_t other = other_process(&to, &from);

	ASSERT_LT(0, other);
	ASSERT_LE(0, attach_for(&self->probe, variant->link, &self->area, 0,
				getpid(), false));
	ASSERT_TRUE(other_hits(to, from, 7));
	EXPECT_EQ(0, area_get(&self->area, 0));
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));
	/* A process that comes with a copy of the memory that is probed */
	EXPECT_EQ(0, child_hits(7));
	EXPECT_EQ(2, area_get(&self->area, 0));
	ASSERT_TRUE(other_hits(to, from, 7));
	user_hits(2);
	EXPECT_EQ(4, area_get(&self->area, 0));
}

TEST_F(scope, another_process)
{
	int to, from;
	pid_t other = other_process(&to, &from);

	ASSERT_LT(0, other);
	ASSERT_LE(0, attach_for(&self->probe, variant->link, &self->area, 0,
				other, false));
	user_hits(7);
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_TRUE(other_hits(to, from, 2));
	EXPECT_EQ(2, area_get(&self->area, 0));

	close(to);
	EXPECT_EQ(0, child_status(other));
	EXPECT_EQ(0, child_hits(7));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

static void *thread(void *arg)
{
	user_hits(3);
	return NULL;
}

TEST_F(scope, every_thread_of_the_process)
{
	pthread_t threads[2];
	int i;

	ASSERT_EQ(0, pthread_create(&threads[0], NULL, thread, NULL));
	ASSERT_LE(0, attach_for(&self->probe, variant->link, &self->area, 0,
				getpid(), false));
	pthread_join(threads[0], NULL);
	area_set(&self->area, 0, 0);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, thread, NULL));
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(6, area_get(&self->area, 0));
}

TEST_F(scope, children_that_inherit)
{
	int fd;

	fd = attach_for(&self->probe, variant->link, &self->area, 0, getpid(), true);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, child_hits(3));
	EXPECT_EQ(3, area_get(&self->area, 0));
	user_hits(1);
	EXPECT_EQ(4, area_get(&self->area, 0));
	/* What the program turns down */
	EXPECT_EQ(0, event_count(fd));
}

/* It could not open the perf event itself. */
TEST_F(scope, child_of_a_process_without_rights)
{
	pid_t child;
	int fds[2];
	char byte;

	ASSERT_EQ(0, pipe(fds));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(fds[0], &byte, 1) != 1 || setresuid(65534, 65534, 65534))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child_hits(2));
	}
	ASSERT_LE(0, attach_for(&self->probe, variant->link, &self->area, 0, child, true));
	ASSERT_EQ(1, write(fds[1], "", 1));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* Hits when the first thread of the process has exited, also by who borrows its memory */
static void *last_thread(void *arg)
{
	pid_t child;

	while (task_state(getpid()) != 'Z')
		sleep_ms(1);
	user_hits(3);
	child = vfork();
	if (!child) {
		user_hits(2);
		_exit(0);
	}
	_exit(child_status(child));
}

TEST_F(scope, without_its_first_thread)
{
	pthread_t thread;
	pid_t child;
	int fds[2];
	char byte;

	ASSERT_EQ(0, pipe(fds));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(fds[0], &byte, 1) == 1 &&
		    !pthread_create(&thread, NULL, last_thread, NULL))
			syscall(__NR_exit, 0);
		_exit(1);
	}
	ASSERT_LE(0, attach_for(&self->probe, variant->link, &self->area, 0, child, false));
	ASSERT_EQ(1, write(fds[1], "", 1));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(5, area_get(&self->area, 0));
}

#define OVERCOMMIT "/proc/sys/vm/overcommit_"

/* A task that has inherited events, and that fork() does not get to make for lack of memory */
TEST_F(scope, a_fork_that_fails)
{
	struct probe probes[2] = { self->probe };
	__u64 memory, ratio;
	int i, failed = 0;
	pid_t child;

	ASSERT_EQ(0, uprobe_create_at(&probes[1], "other_end", SELF, file_offset(user_func), 0,
				      variant->flags ^ PROBE_RETURN));
	for (i = 0; i < 2; i++)
		ASSERT_LE(0, attach_for(&probes[i], false, &self->area, i, getpid(), true));
	ASSERT_TRUE(read_u64(OVERCOMMIT "memory", &memory));
	ASSERT_TRUE(read_u64(OVERCOMMIT "ratio", &ratio));
	write_file(OVERCOMMIT "ratio", 0, "0");
	write_file(OVERCOMMIT "memory", 0, "2");
	for (i = 0; i < 10; i++) {
		child = fork();
		if (!child)
			_exit(0);
		failed += child == -1 && errno == ENOMEM;
	}
	write_file(OVERCOMMIT "memory", 0, "%llu", memory);
	write_file(OVERCOMMIT "ratio", 0, "%llu", ratio);
	EXPECT_EQ(10, failed) TH_LOG("Has this system swap?");
	user_hits(2);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(2, area_get(&self->area, i));
	EXPECT_EQ(0, child_hits(3));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(5, area_get(&self->area, i));
}

/* Several perf events of one uprobe event */

FIXTURE(several) {
	FIXTURE_DATA(scope) s;
};

FIXTURE_SETUP(several)
{
	scope_setup(_metadata, &self->s, &_scope_uprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(several)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(several, all_of_them_run)
{
	struct query q;
	int i, fds[3];

	for (i = 0; i < 3; i++) {
		fds[i] = attach(&self->s.probe, count_prog(&self->s.area, i, 0));
		ASSERT_LE(0, fds[i]);
	}
	user_hits(2);
	close(fds[1]);
	user_hits(2);
	EXPECT_EQ(4, area_get(&self->s.area, 0));
	EXPECT_EQ(2, area_get(&self->s.area, 1));
	EXPECT_EQ(4, area_get(&self->s.area, 2));
	ASSERT_EQ(0, query(fds[0], &q, 64));
	EXPECT_EQ(2, q.prog_cnt);
}

TEST_F(several, no_child_that_was_there_before)
{
	int to, from;
	pid_t other = other_process(&to, &from);

	ASSERT_LT(0, other);
	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0,
				getpid(), true));
	ASSERT_TRUE(other_hits(to, from, 7));
	EXPECT_EQ(0, area_get(&self->s.area, 0));
}

/* Mainline detaches the program when the first of the children exits */
TEST_F(several, goes_on_when_the_children_exit)
{
	int i;

	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0,
				getpid(), true));
	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(0, child_hits(2));
		user_hits(1);
		EXPECT_EQ(3 * i, area_get(&self->s.area, 0));
	}
}

/* One that is enabled by an exec only, and was there first */
TEST_F(several, beside_one_that_waits_for_exec)
{
	struct perf_event_attr attr = {};

	ASSERT_EQ(0, probe_attr(&self->s.probe, &attr));
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	ASSERT_LE(0, perf_open(&attr, getpid(), -1));
	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0, getpid(), false));
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->s.area, 0));
}

static bool pass_byte(int from, int to)
{
	char byte;

	return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
}

/*
 * Two children take turns on a CPU, at which perf swaps the contexts of such children, and
 * one exits. Before the other one runs, the first sleeps, so that no swap takes that back.
 */
TEST_F(several, children_that_take_turns)
{
	const struct sched_param before_the_other = { .sched_priority = 1 };
	int i, first[2], second[2], back[2];
	pid_t children[2];
	char byte = 0;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pin(0));
	ASSERT_FALSE(pipe(first) || pipe(second) || pipe(back));
	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0, getpid(), true));
	for (i = 0; i < 2; i++) {
		children[i] = fork();
		ASSERT_LE(0, children[i]);
		if (children[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!i && (sched_setscheduler(0, SCHED_FIFO, &before_the_other) ||
			   !pass_byte(first[0], second[1]) || !pass_byte(first[0], back[1])))
			_exit(1);
		if (i && (!pass_byte(second[0], back[1]) || !pass_byte(second[0], back[1])))
			_exit(1);
		if (i)
			user_hits(3);
		_exit(0);
	}
	ASSERT_EQ(0, pin(1));
	ASSERT_TRUE(wait_until(sleeps(children[0]) && sleeps(children[1])));
	ASSERT_EQ(1, write(first[1], &byte, 1));
	ASSERT_EQ(1, read(back[0], &byte, 1));
	ASSERT_TRUE(wait_until(sleeps(children[1])));
	ASSERT_EQ(1, write(first[1], &byte, 1));
	EXPECT_EQ(0, child_status(children[0]));
	ASSERT_EQ(1, write(second[1], &byte, 1));
	EXPECT_EQ(0, child_status(children[1]));
	EXPECT_EQ(3, area_get(&self->s.area, 0));
}

/*
 * Each program runs in its own process.  Mainline probes the processes of all
 * perf events, and there runs the programs of all.
 */
TEST_F(several, each_in_its_own_process)
{
	int to, from;
	pid_t other = other_process(&to, &from);

	ASSERT_LT(0, other);
	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0,
				getpid(), false));
	ASSERT_LE(0, attach_for(&self->s.probe, true, &self->s.area, 1,
				other, false));
	user_hits(3);
	EXPECT_EQ(3, area_get(&self->s.area, 0));
	EXPECT_EQ(0, area_get(&self->s.area, 1));
	ASSERT_TRUE(other_hits(to, from, 2));
	EXPECT_EQ(3, area_get(&self->s.area, 0));
	EXPECT_EQ(2, area_get(&self->s.area, 1));
}

/* One of them about a process, the other about all */
TEST_F(several, one_process_among_all)
{
	ASSERT_LE(0, attach_for(&self->s.probe, false, &self->s.area, 0,
				getpid(), false));
	ASSERT_LE(0, attach(&self->s.probe, count_prog(&self->s.area, 1, 0)));
	EXPECT_EQ(0, child_hits(3));
	EXPECT_EQ(0, area_get(&self->s.area, 0));
	EXPECT_EQ(3, area_get(&self->s.area, 1));
	user_hits(1);
	EXPECT_EQ(1, area_get(&self->s.area, 0));
	EXPECT_EQ(4, area_get(&self->s.area, 1));
}

TEST_HARNESS_MAIN
