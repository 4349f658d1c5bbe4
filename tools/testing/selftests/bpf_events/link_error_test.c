// SPDX-License-Identifier: GPL-2.0
/*
 * What BPF_LINK_CREATE refuses, and what links do not do: the errno, and that
 * nothing has changed by it
 */
#include "common.h"
#include "error_log.h"
#include "link.h"

#define MAX_PROGS 64

FIXTURE(link_error) {
	struct probe probe;
	struct area area;
	int perf;
	int prog;
	int other;	/* another program */
};

FIXTURE_VARIANT(link_error) {
	unsigned int flags;
	const char *event;	/* its name in error_log */
};

FIXTURE_VARIANT_ADD(link_error, kprobe_event) {
	.flags = 0,
	.event = GROUP ":event",
};

FIXTURE_VARIANT_ADD(link_error, kretprobe_event) {
	.flags = PROBE_RETURN,
	.event = GROUP ":event",
};

FIXTURE_VARIANT_ADD(link_error, kprobe_pmu) {
	.flags = PROBE_PMU,
	.event = "kprobes:" FUNC,
};

FIXTURE_VARIANT_ADD(link_error, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.event = "kprobes:" FUNC,
};

FIXTURE_SETUP(link_error)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->perf = probe_open(&self->probe);
	ASSERT_LE(0, self->perf);
	self->prog = count_prog(&self->area, 0, 1);
	ASSERT_LE(0, self->prog);
	self->other = count_prog(&self->area, 1, 1);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(link_error)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

/* Whether the perf event is as good as new: it takes a program, which runs */
static bool is_untouched(struct area *area, int perf, int prog)
{
	int link;

	if (!stands_still(area))
		return false;
	link = perf_link(perf, prog);
	if (link < 0 || !runs(area))
		return false;
	close(link);
	return stands_still(area);
}

TEST_F(link_error, flags)
{
	int i;

	for (i = 0; i < 32; i++)
		EXPECT_EQ(-EINVAL, link_create(self->prog, self->perf,
					       BPF_PERF_EVENT, 1U << i, 0));
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

TEST_F(link_error, attach_type)
{
	const int types[] = {
		0, BPF_TRACE_RAW_TP, BPF_TRACE_FENTRY, BPF_TRACE_ITER,
		BPF_TRACE_KPROBE_MULTI, BPF_TRACE_KPROBE_SESSION,
		BPF_TRACE_UPROBE_MULTI, BPF_TRACE_UPROBE_SESSION,
		__MAX_BPF_ATTACH_TYPE, -1,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		EXPECT_EQ(-EINVAL, link_create(self->prog, self->perf,
					       types[i], 0, 0))
			TH_LOG("for type %d", types[i]);
	}
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

TEST_F(link_error, target_is_no_perf_event)
{
	const int fds[] = {
		999, -1, open("/dev/null", O_RDONLY), self->area.fd, self->prog,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		EXPECT_EQ(-EBADF, perf_link(fds[i], self->prog));
}

TEST_F(link_error, fd_is_no_program)
{
	const int fds[] = {
		open("/dev/null", O_RDONLY), self->area.fd, self->perf,
	};
	int i;

	EXPECT_EQ(-EBADF, perf_link(self->perf, 999));
	EXPECT_EQ(-EBADF, perf_link(self->perf, -1));
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		EXPECT_EQ(-EINVAL, perf_link(self->perf, fds[i]));
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

TEST_F(link_error, program_of_another_kind)
{
	const int progs[] = {
		prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0),
		prog_load_type(BPF_PROG_TYPE_SCHED_CLS, 0, 0),
		prog_load_type(BPF_PROG_TYPE_XDP, 0, 0),
		prog_load_type(BPF_PROG_TYPE_CGROUP_SKB,
			       BPF_CGROUP_INET_INGRESS, 0),
		/* Loaded for a link to many functions */
		prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0),
		prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI, 0),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(progs); i++) {
		ASSERT_LE(0, progs[i]);
		EXPECT_EQ(-EINVAL, perf_link(self->perf, progs[i]))
			TH_LOG("for program %d", i);
	}
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

/* What user space can be made to wait for, a kprobe cannot */
TEST_F(link_error, sleepable_program)
{
	int prog = prog_load_type(BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE);

	ASSERT_LE(0, prog);
	EXPECT_EQ(-EINVAL, perf_link(self->perf, prog));
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, prog));
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

TEST_F(link_error, second_program_on_one_perf_event)
{
	int link = perf_link(self->perf, self->prog);

	ASSERT_LE(0, link);
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->other));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->perf, self->other));
	EXPECT_TRUE(runs(&self->area));
	close(link);

	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->other));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->prog));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(link_error, update)
{
	union bpf_attr attr = { .link_update.new_prog_fd = self->other };
	int link = perf_link(self->perf, self->prog);

	ASSERT_LE(0, link);
	attr.link_update.link_fd = link;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(link_error, detach)
{
	int link = perf_link(self->perf, self->prog);
	union bpf_attr attr = { .link_detach.link_fd = link };

	ASSERT_LE(0, link);
	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_LINK_DETACH, &attr));
	EXPECT_TRUE(runs(&self->area));
}

/* The two descriptors are permission enough */
TEST_F(link_error, none_for_want_of_capabilities)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(0))
			_exit(1);
		if (perf_link(self->perf, self->prog) < 0)
			_exit(2);
		_exit(runs(&self->area) ? 0 : 3);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(is_untouched(&self->area, self->perf, self->prog));
}

TEST_F(link_error, reason_is_in_error_log)
{
	int sleepable = prog_load_type(BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE);

	EXPECT_EQ(-EINVAL, perf_link(self->perf, sleepable));
	EXPECT_TRUE(logged(SLEEPS, "LINK_CREATE %s fd %d", variant->event, sleepable));
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, sleepable));
	EXPECT_TRUE(logged(SLEEPS, "SET_BPF %s fd %d", variant->event, sleepable));
	ASSERT_LE(0, perf_link(self->perf, self->prog));
	EXPECT_STREQ("", entries());
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->other));
	EXPECT_TRUE(logged(FD_TAKEN, "LINK_CREATE %s fd %d", variant->event, self->other));
}

/* Several perf events of one kprobe event */

FIXTURE(many) {
	FIXTURE_DATA(link_error) e;
};

FIXTURE_SETUP(many)
{
	link_error_setup(_metadata, &self->e, &_link_error_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(many)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(many, same_program_on_the_event)
{
	int fd = probe_open(&self->e.probe);

	ASSERT_LE(0, fd);
	ASSERT_LE(0, perf_link(self->e.perf, self->e.prog));
	EXPECT_EQ(-EEXIST, perf_link(fd, self->e.prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, self->e.prog));
	EXPECT_TRUE(runs(&self->e.area));
	EXPECT_LE(0, perf_link(fd, self->e.other));
	EXPECT_EQ(2, query_count(fd));
}

TEST_F(many, same_program_is_in_error_log)
{
	ASSERT_LE(0, attach_link(&self->e.probe, self->e.prog, 0));
	EXPECT_EQ(-EEXIST, perf_link(self->e.perf, self->e.prog));
	EXPECT_TRUE(logged(TWICE, "LINK_CREATE " GROUP ":event fd %d", self->e.prog));
}

TEST_F(many, sixty_fifth_program)
{
	int i, link = attach_link(&self->e.probe, self->e.prog, 0);

	ASSERT_LE(0, link);
	for (i = 1; i < MAX_PROGS; i++)
		ASSERT_LE(0, attach_link(&self->e.probe,
					 count_prog(&self->e.area, 2, 1), i));
	EXPECT_EQ(-E2BIG, perf_link(self->e.perf, self->e.other));
	hit();
	EXPECT_EQ(1, area_get(&self->e.area, 0));
	EXPECT_EQ(MAX_PROGS - 1, area_get(&self->e.area, 2));

	close(link);
	ASSERT_LE(0, perf_link(self->e.perf, self->e.other));
	hit();
	EXPECT_EQ(1, area_get(&self->e.area, 0));
	EXPECT_EQ(1, area_get(&self->e.area, 1));
}

/* A perf event that runs no programs of this type */
TEST_F(many, event_of_another_kind)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
	};
	int fd = perf_open(&attr, 0, -1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, perf_link(fd, self->e.prog));
	close(fd);

	ASSERT_TRUE(read_u64(TRACEFS "/events/sched/sched_process_exit/id",
			     (__u64 *)&attr.config));
	attr.type = PERF_TYPE_TRACEPOINT;
	fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, perf_link(fd, self->e.prog));
}

TEST_F(many, event_of_another_kind_is_in_error_log)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
	};

	EXPECT_EQ(-EINVAL, perf_link(perf_open(&attr, 0, -1), self->e.prog));
	EXPECT_TRUE(logged("This event takes programs of type BPF_PROG_TYPE_PERF_EVENT",
			   "LINK_CREATE software fd %d", self->e.prog));
}

TEST_HARNESS_MAIN
