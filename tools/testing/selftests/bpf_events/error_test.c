// SPDX-License-Identifier: GPL-2.0
/*
 * What SET_BPF refuses: the errno, the entry in tracefs' error_log, and that
 * nothing has changed by it
 */
#include "common.h"
#include "error_log.h"

#define KPROBE "BPF_PROG_TYPE_KPROBE"
#define MAX_PROGS 64

#define NOT_OPEN "No file is open at this descriptor"
#define NOT_A_PROG "This descriptor is not a BPF program"
#define BAD_EVENT "This event cannot run BPF programs; kprobe, uprobe and trace events can"
#define FULL "This event runs 64 programs already, no more fit"

/* Slots */
enum { FIRST, OTHER, MANY };

FIXTURE(error) {
	struct probe probe;
	struct area area;
	int fd;		/* a perf event of the probe */
	int prog;
	int other;	/* another program */
};

FIXTURE_VARIANT(error) {
	unsigned int flags;
	const char *event;	/* its name in error_log */
};

FIXTURE_VARIANT_ADD(error, kprobe_event) {
	.flags = 0,
	.event = GROUP ":event",
};

FIXTURE_VARIANT_ADD(error, kretprobe_event) {
	.flags = PROBE_RETURN,
	.event = GROUP ":event",
};

FIXTURE_VARIANT_ADD(error, kprobe_pmu) {
	.flags = PROBE_PMU,
	.event = "kprobes:" FUNC,
};

FIXTURE_VARIANT_ADD(error, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.event = "kprobes:" FUNC,
};

FIXTURE_SETUP(error)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->fd = probe_open(&self->probe);
	ASSERT_LE(0, self->fd);
	self->prog = count_prog(&self->area, FIRST, 1);
	ASSERT_LE(0, self->prog);
	self->other = count_prog(&self->area, OTHER, 1);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(error)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

/* Says how often each of the two programs runs on a hit, as in "1 0" */
static const char *who_runs(struct area *area)
{
	static char text[64];
	__u64 first = area_get(area, FIRST);
	__u64 other = area_get(area, OTHER);

	hit();
	snprintf(text, sizeof(text), "%llu %llu",
		 area_get(area, FIRST) - first, area_get(area, OTHER) - other);
	return text;
}

TEST_F(error, success_leaves_no_entry)
{
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ("1 0", who_runs(&self->area));
	EXPECT_STREQ("", entries());
}

TEST_F(error, fd_that_is_not_open)
{
	EXPECT_EQ(-EBADF, perf_set_bpf(self->fd, 999));
	EXPECT_STREQ(entry(NOT_OPEN, "fd ", "SET_BPF %s fd 999", variant->event),
		     entries());
	EXPECT_STREQ("0 0", who_runs(&self->area));
	EXPECT_EQ(0, query_count(self->fd));

	/* The fd is as good as new */
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ("1 0", who_runs(&self->area));
}

TEST_F(error, fd_that_is_not_a_program)
{
	int fds[3] = {
		open("/dev/null", O_RDONLY), self->area.fd, self->fd,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		EXPECT_EQ(-EINVAL, perf_set_bpf(self->fd, fds[i]));
		EXPECT_STREQ(entry(NOT_A_PROG, "fd ", "SET_BPF %s fd %d",
				   variant->event, fds[i]), entries());
	}
	EXPECT_STREQ("0 0", who_runs(&self->area));
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ("1 0", who_runs(&self->area));
}

TEST_F(error, program_of_another_type)
{
	const struct {
		enum bpf_prog_type type;
		const char *name;
		enum bpf_attach_type attach;
	} types[] = {
		{ BPF_PROG_TYPE_SOCKET_FILTER, "BPF_PROG_TYPE_SOCKET_FILTER" },
		{ BPF_PROG_TYPE_SCHED_CLS, "BPF_PROG_TYPE_SCHED_CLS" },
		{ BPF_PROG_TYPE_XDP, "BPF_PROG_TYPE_XDP" },
		{ BPF_PROG_TYPE_CGROUP_SKB, "BPF_PROG_TYPE_CGROUP_SKB",
		  BPF_CGROUP_INET_INGRESS },
	};
	int i, prog;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		prog = prog_load_type(types[i].type, types[i].attach, 0);
		ASSERT_LE(0, prog);
		EXPECT_EQ(-EINVAL, perf_set_bpf(self->fd, prog));
		EXPECT_STREQ(entry(WANTS_KPROBE, types[i].name, "SET_BPF %s fd %d %s",
				   variant->event, prog, types[i].name),
			     entries());
	}
	EXPECT_STREQ("0 0", who_runs(&self->area));
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ("1 0", who_runs(&self->area));
}

TEST_F(error, second_program_on_one_fd)
{
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->fd, self->other));
	EXPECT_STREQ(entry(FD_TAKEN, variant->event, "SET_BPF %s fd %d " KPROBE,
			   variant->event, self->other), entries());
	EXPECT_STREQ("1 0", who_runs(&self->area));

	/* Also if it is the same program again */
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ(entry(FD_TAKEN, variant->event, "SET_BPF %s fd %d " KPROBE,
			   variant->event, self->prog), entries());
	EXPECT_STREQ("1 0", who_runs(&self->area));
	EXPECT_EQ(1, query_count(self->fd));
}

TEST_F(error, order_of_checks)
{
	int filter = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);

	/* The fd and the type count before what is attached already */
	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	EXPECT_EQ(-EBADF, perf_set_bpf(self->fd, 999));
	EXPECT_STREQ(entry(NOT_OPEN, "fd ", "SET_BPF %s fd 999", variant->event),
		     entries());
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->fd, filter));
	EXPECT_STREQ(entry(WANTS_KPROBE, "BPF_PROG_TYPE_SOCKET_FILTER",
			   "SET_BPF %s fd %d BPF_PROG_TYPE_SOCKET_FILTER",
			   variant->event, filter), entries());
	EXPECT_STREQ("1 0", who_runs(&self->area));
}

/* The log is of the one who may trace; the errno is of everybody */
TEST_F(error, no_entry_without_perfmon)
{
	pid_t child = fork();
	int i, ret = 0;

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)))
			_exit(1);
		if (perf_set_bpf(self->fd, 999) != -EBADF)
			ret = 2;
		if (perf_set_bpf(self->fd, self->area.fd) != -EINVAL)
			ret = 3;
		_exit(ret);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("", entries());

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(PERFMON)))
			_exit(1);
		_exit(perf_set_bpf(self->fd, 999) == -EBADF ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STRNE("", entries());

	/* One entry an error */
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-EBADF, perf_set_bpf(self->fd, 999));
	EXPECT_EQ(3 * strlen(entry(NOT_OPEN, "fd ", "SET_BPF %s fd 999",
				   variant->event)), strlen(entries()));
}

/* Several perf events of one kprobe event */

FIXTURE(many) {
	FIXTURE_DATA(error) e;
};

FIXTURE_SETUP(many)
{
	error_setup(_metadata, &self->e, &_error_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(many)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(many, same_program_on_the_event)
{
	int fd;

	fd = probe_open(&self->e.probe);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(self->e.fd, self->e.prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, self->e.prog));
	EXPECT_STREQ(entry(TWICE, "fd ", "SET_BPF %s fd %d " KPROBE, GROUP ":event",
			   self->e.prog), entries());
	EXPECT_STREQ("1 0", who_runs(&self->e.area));
	ASSERT_EQ(0, perf_set_bpf(fd, self->e.other));
	EXPECT_STREQ("1 1", who_runs(&self->e.area));
}

TEST_F(many, sixty_fifth_program)
{
	int i, fd;

	ASSERT_EQ(0, perf_set_bpf(self->e.fd, self->e.prog));
	for (i = 1; i < MAX_PROGS; i++) {
		fd = attach(&self->e.probe, count_prog(&self->e.area, MANY, 1));
		ASSERT_LE(0, fd);
	}
	EXPECT_STREQ("", entries());

	fd = probe_open(&self->e.probe);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-E2BIG, perf_set_bpf(fd, self->e.other));
	EXPECT_STREQ(entry(FULL, GROUP ":event", "SET_BPF %s fd %d " KPROBE,
			   GROUP ":event", self->e.other), entries());
	/* That comes before the question whether it is there already */
	EXPECT_EQ(-E2BIG, perf_set_bpf(fd, self->e.prog));
	EXPECT_STREQ(entry(FULL, GROUP ":event", "SET_BPF %s fd %d " KPROBE,
			   GROUP ":event", self->e.prog), entries());
	EXPECT_STREQ("1 0", who_runs(&self->e.area));
	EXPECT_EQ(MAX_PROGS - 1, area_get(&self->e.area, MANY));
}

/* Events that run no programs */

FIXTURE(other_event) {
	struct area area;
	int fd;
	int prog;
};

FIXTURE_VARIANT(other_event) {
	const char *path;
	const char *event;
};

FIXTURE_VARIANT_ADD(other_event, function) {
	.path = "ftrace/function",
	.event = "ftrace:function",
};

FIXTURE_SETUP(other_event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
	};
	char path[256];

	SKIP_WITHOUT(return, prepare());
	snprintf(path, sizeof(path), TRACEFS "/events/%s/id", variant->path);
	if (!read_u64(path, (__u64 *)&attr.config))
		SKIP(return, "CONFIG_FUNCTION_TRACER");
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = count_prog(&self->area, 0, 1);
	ASSERT_LE(0, self->prog);
	self->fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(other_event)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(other_event, takes_no_program)
{
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->fd, self->prog));
	EXPECT_STREQ(entry(BAD_EVENT, variant->event, "SET_BPF %s fd %d " KPROBE,
			   variant->event, self->prog), entries());

	/* The fd comes before the event */
	EXPECT_EQ(-EBADF, perf_set_bpf(self->fd, 999));
	EXPECT_STREQ(entry(NOT_OPEN, "fd ", "SET_BPF %s fd 999", variant->event), entries());

	/* And the event goes on as it did */
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
