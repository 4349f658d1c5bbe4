// SPDX-License-Identifier: GPL-2.0
/* A program runs as long as its perf event has a file, and not a hit longer */
#include <sys/socket.h>

#include "common.h"
#include "hitter.h"
#include "ring.h"

FIXTURE(lifetime) {
	struct probe probe;
	struct area area;
	int fd;
};

FIXTURE_VARIANT(lifetime) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(lifetime, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(lifetime, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(lifetime, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(lifetime, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(lifetime)
{
	int prog;

	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	/* The event's reference is all that holds the program */
	prog = count_prog(&self->area, 0, 1);
	self->fd = attach(&self->probe, prog);
	ASSERT_LE(0, self->fd);
	close(prog);
}

FIXTURE_TEARDOWN_PARENT(lifetime)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(lifetime, close)
{
	EXPECT_TRUE(runs(&self->area));
	close(self->fd);
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(lifetime, dup)
{
	int fd = dup(self->fd);

	close(self->fd);
	EXPECT_TRUE(runs(&self->area));
	close(fd);
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(lifetime, mapping)
{
	struct ring ring;

	/* A mapping holds the file as a descriptor does */
	ASSERT_EQ(0, ring_map(&ring, self->fd));
	close(self->fd);
	EXPECT_TRUE(runs(&self->area));
	ring_unmap(&ring);
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(lifetime, exit)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->fd);
	EXPECT_TRUE(runs(&self->area));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(lifetime, sigkill)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->fd);
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(lifetime, exec)
{
	int pipe_fd[2];
	pid_t child;

	/* The descriptor is CLOEXEC */
	ASSERT_EQ(0, pipe(pipe_fd));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		dup2(pipe_fd[0], 0);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		execl("/bin/sh", "sh", "-c", "read line", NULL);
		_exit(127);
	}
	close(pipe_fd[0]);
	close(self->fd);
	/* The shell may be a while in coming */
	EXPECT_TRUE(comes_to_a_halt(&self->area));
	EXPECT_EQ(0, waitpid(child, NULL, WNOHANG));
	close(pipe_fd[1]);
	EXPECT_LE(0, child_status(child));
}

TEST_F(lifetime, passed_through_a_socket)
{
	char c = 'x', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int sock[2], fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &self->fd, sizeof(int));
	ASSERT_EQ(1, sendmsg(sock[0], &msg, 0));
	close(self->fd);
	/* It is on its way */
	EXPECT_TRUE(runs(&self->area));

	msg.msg_controllen = sizeof(control);
	ASSERT_EQ(1, recvmsg(sock[1], &msg, 0));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(1, send(sock[1], &c, 1, 0));

	/* Back again, and nobody takes it */
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	msg.msg_controllen = sizeof(control);
	ASSERT_EQ(1, sendmsg(sock[0], &msg, 0));
	close(fd);
	EXPECT_TRUE(runs(&self->area));
	close(sock[0]);
	close(sock[1]);
	EXPECT_TRUE(stands_still(&self->area));
}

/* A perf event of a task outlives the task, and its program with it */
TEST_F(lifetime, task_of_the_event_exits)
{
	int pipe_fd, fd;
	pid_t child;

	close(self->fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	fd = attach_task(&self->probe, child, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, fd);
	EXPECT_TRUE(runs(&self->area));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(runs(&self->area));
	close(fd);
	EXPECT_TRUE(stands_still(&self->area));
}

/* Children get perf events of their own, without a program */
TEST_F(lifetime, children_of_the_task_exit)
{
	struct perf_event_attr attr;
	int i, fd, pipe_fd;
	pid_t child;

	close(self->fd);
	ASSERT_EQ(0, probe_attr(&self->probe, &attr));
	attr.inherit = 1;
	fd = perf_open(&attr, getpid(), -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, count_prog(&self->area, 0, 1)));
	for (i = 0; i < 3; i++) {
		child = holder(&pipe_fd);
		ASSERT_LT(0, child);
		EXPECT_TRUE(runs(&self->area));
		close(pipe_fd);
		EXPECT_EQ(0, child_status(child));
		EXPECT_TRUE(runs(&self->area));
	}
	close(fd);
	EXPECT_TRUE(stands_still(&self->area));
}

/* close() has returned: the next hit, on whatever CPU, does not run it */
TEST_F(lifetime, nothing_runs_after_close)
{
	struct hitters hitters;
	int i, fd, prog, ok = 1;

	ASSERT_LE(0, hold_function());
	ASSERT_EQ(0, hitters_start(&hitters, &self->area, 0));
	for (i = 0; ok && i < 5; i++) {
		prog = number_prog(&self->area);
		fd = attach(&self->probe, prog);
		close(prog);
		ok = hitters_close(&hitters, fd, true);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&hitters);
}

/* The event in tracefs, which others may want to remove */

FIXTURE(event) {
	FIXTURE_DATA(lifetime) l;
};

FIXTURE_SETUP(event)
{
	lifetime_setup(_metadata, &self->l, &_lifetime_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(event)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(event, cannot_be_removed_while_in_use)
{
	char line[256];

	EXPECT_EQ(-EBUSY, event_remove("event"));
	EXPECT_TRUE(find_line(TRACEFS "/kprobe_events", GROUP "/event", line,
			      sizeof(line)));
	EXPECT_TRUE(runs(&self->l.area));
	/* Nor all of them at once */
	EXPECT_EQ(-EBUSY, write_file(TRACEFS "/kprobe_events", O_TRUNC, ""));
	EXPECT_TRUE(runs(&self->l.area));

	close(self->l.fd);
	EXPECT_EQ(0, event_remove("event"));
	EXPECT_FALSE(find_line(TRACEFS "/kprobe_events", GROUP "/event", line,
			       sizeof(line)));
	EXPECT_TRUE(stands_still(&self->l.area));
}

TEST_F(event, comes_back_without_its_programs)
{
	__u64 id, old_id;
	int fd;

	ASSERT_EQ(0, event_id("event", &old_id));
	close(self->l.fd);
	ASSERT_EQ(0, event_remove("event"));
	EXPECT_EQ(-ENOENT, event_id("event", &id));
	ASSERT_EQ(0, event_add("event", "p %s", FUNC));
	EXPECT_TRUE(stands_still(&self->l.area));

	fd = attach(&self->l.probe, count_prog(&self->l.area, 0, 1));
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, query_count(fd));
	EXPECT_TRUE(runs(&self->l.area));
}

TEST_F(event, has_two_probes)
{
	int fd;

	close(self->l.fd);
	/* One event with two places: a hit of either runs the program once */
	ASSERT_EQ(0, event_add("event", "p %s", FUNC2));
	fd = attach(&self->l.probe, count_prog(&self->l.area, 0, 1));
	ASSERT_LE(0, fd);
	EXPECT_TRUE(runs(&self->l.area));
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_EQ(4, area_get(&self->l.area, 0));
	close(fd);
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_TRUE(stands_still(&self->l.area));
	EXPECT_EQ(4, area_get(&self->l.area, 0));
}

TEST_HARNESS_MAIN
