// SPDX-License-Identifier: GPL-2.0
/* BPF_TASK_FD_QUERY: which program and which probe are behind a descriptor */
#include "common.h"
#include "link.h"
#include "uprobe.h"

FIXTURE(task_fd) {
	struct probe probe;
	struct area area;
	int prog;
	int fd;
};

FIXTURE_VARIANT(task_fd) {
	unsigned int flags;
	enum bpf_task_fd_type type;
};

FIXTURE_VARIANT_ADD(task_fd, kprobe_event) {
	.flags = 0,
	.type = BPF_FD_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, kretprobe_event) {
	.flags = PROBE_RETURN,
	.type = BPF_FD_TYPE_KRETPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, kprobe_pmu) {
	.flags = PROBE_PMU,
	.type = BPF_FD_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.type = BPF_FD_TYPE_KRETPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, uprobe_event) {
	.flags = PROBE_USER,
	.type = BPF_FD_TYPE_UPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, uretprobe_event) {
	.flags = PROBE_USER | PROBE_RETURN,
	.type = BPF_FD_TYPE_URETPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, uprobe_pmu) {
	.flags = PROBE_USER | PROBE_PMU,
	.type = BPF_FD_TYPE_UPROBE,
};

FIXTURE_VARIANT_ADD(task_fd, uretprobe_pmu) {
	.flags = PROBE_USER | PROBE_PMU | PROBE_RETURN,
	.type = BPF_FD_TYPE_URETPROBE,
};

FIXTURE_SETUP(task_fd)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, variant->flags & PROBE_USER ?
			     uprobe_create(&self->probe, variant->flags) :
			     probe_create(&self->probe, variant->flags));
	self->prog = count_prog(&self->area, 0, 0);
	self->fd = attach(&self->probe, self->prog);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(task_fd)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(task_fd, says_what_is_probed)
{
	union bpf_attr attr;
	char name[128];

	ASSERT_EQ(0, fd_query(getpid(), self->fd, name, sizeof(name), &attr));
	EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
	EXPECT_EQ(variant->type, attr.task_fd_query.fd_type);
	EXPECT_STREQ(self->probe.func, name);
	EXPECT_EQ(strlen(name), attr.task_fd_query.buf_len);
	EXPECT_EQ(self->probe.offset, attr.task_fd_query.probe_offset);
	/* Where a file is in the memory of a process is the process's */
	EXPECT_EQ(variant->flags & PROBE_USER ? 0 : ksym(FUNC),
		  attr.task_fd_query.probe_addr);
}

TEST_F(task_fd, program_by_link)
{
	int fd, prog = count_prog(&self->area, 1, 0);
	union bpf_attr attr;
	char name[128];

	close(self->fd);
	fd = probe_open(&self->probe);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, perf_link(fd, prog));
	ASSERT_EQ(0, fd_query(getpid(), fd, name, sizeof(name), &attr));
	EXPECT_EQ(prog_id(prog), attr.task_fd_query.prog_id);
	EXPECT_EQ(variant->type, attr.task_fd_query.fd_type);
	EXPECT_STREQ(self->probe.func, name);
}

TEST_F(task_fd, of_another_process)
{
	union bpf_attr attr;
	char name[128];
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->fd);
	EXPECT_EQ(-EBADF, fd_query(getpid(), self->fd, name, sizeof(name), &attr));
	ASSERT_EQ(0, fd_query(child, self->fd, name, sizeof(name), &attr));
	EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
	EXPECT_EQ(variant->type, attr.task_fd_query.fd_type);
	EXPECT_STREQ(self->probe.func, name);

	/* A process that has exited has nothing open, then it is no more */
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_EQ(-ENOENT, fd_query(child, self->fd, name, sizeof(name), &attr));
}

TEST_F(task_fd, room_for_the_name)
{
	size_t len = strlen(self->probe.func);
	const size_t sizes[] = { 1, 2, 5, len };
	union bpf_attr attr;
	char name[128];
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(name, 'x', sizeof(name));
		EXPECT_EQ(-ENOSPC, fd_query(getpid(), self->fd, name, sizes[i],
					    &attr));
		EXPECT_EQ(sizes[i] - 1, strlen(name));
		EXPECT_EQ(0, strncmp(self->probe.func, name, sizes[i] - 1));
		EXPECT_EQ('x', name[sizes[i]]);
		/* The rest of the answer is there */
		EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
		EXPECT_EQ(variant->type, attr.task_fd_query.fd_type);
		EXPECT_EQ(len, attr.task_fd_query.buf_len);
	}
	memset(name, 'x', sizeof(name));
	EXPECT_EQ(0, fd_query(getpid(), self->fd, name, len + 1, &attr));
	EXPECT_STREQ(self->probe.func, name);
	EXPECT_EQ('x', name[len + 1]);
}

TEST_F(task_fd, no_room_for_the_name)
{
	const struct {
		bool buf;
		__u32 size;
	} rooms[] = { { false, 0 }, { false, 128 }, { true, 0 } };
	union bpf_attr attr;
	char name[128] = "";
	int i;

	for (i = 0; i < ARRAY_SIZE(rooms); i++) {
		ASSERT_EQ(0, fd_query(getpid(), self->fd,
				      rooms[i].buf ? name : NULL,
				      rooms[i].size, &attr));
		EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
		EXPECT_EQ(strlen(self->probe.func), attr.task_fd_query.buf_len);
		EXPECT_STREQ("", name);
	}
}

TEST_F(task_fd, bad_buffer)
{
	union bpf_attr attr;

	EXPECT_EQ(-EFAULT, fd_query(getpid(), self->fd, (char *)8, 128, &attr));
	EXPECT_EQ(0, attr.task_fd_query.prog_id);
}

TEST_F(task_fd, event_without_a_program)
{
	int fd = probe_open(&self->probe);
	union bpf_attr attr;
	char name[128] = "";

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, fd_query(getpid(), fd, name, sizeof(name), &attr));
	EXPECT_STREQ("", name);
}

TEST_F(task_fd, needs_sys_admin)
{
	pid_t parent = getpid(), child = fork();
	union bpf_attr attr;
	char name[128];

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF) | CAP(PERFMON)))
			_exit(1);
		if (fd_query(parent, self->fd, name, sizeof(name), &attr) != -EPERM)
			_exit(2);
		_exit(attr.task_fd_query.prog_id ? 3 : 0);
	}
	EXPECT_EQ(0, child_status(child));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(SYS_ADMIN)))
			_exit(1);
		_exit(fd_query(parent, self->fd, name, sizeof(name), &attr) ? 2 : 0);
	}
	EXPECT_EQ(0, child_status(child));
}

/* Bad input, and probes that have no name or are inside a function */

FIXTURE(place) {
	struct area area;
	int prog;
};

FIXTURE_SETUP(place)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = count_prog(&self->area, 0, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(place)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(place, symbol_and_offset)
{
	unsigned int flags[] = { 0, PROBE_PMU };
	union bpf_attr attr;
	struct probe probe;
	char name[128];
	int i, fd;

	/* The place is found with tracefs, which says what it does not like */
	ASSERT_EQ(0, probe_create_body(&probe, "event", FUNC, 0));
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		probe.flags = flags[i];
		fd = attach(&probe, self->prog);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, fd_query(getpid(), fd, name, sizeof(name), &attr));
		EXPECT_EQ(BPF_FD_TYPE_KPROBE, attr.task_fd_query.fd_type);
		EXPECT_STREQ(FUNC, name);
		EXPECT_EQ(probe.offset, attr.task_fd_query.probe_offset);
		EXPECT_EQ(ksym(FUNC) + probe.offset,
			  attr.task_fd_query.probe_addr);
	}
}

TEST_F(place, address)
{
	struct probe probe = { .flags = PROBE_PMU };
	__u64 addr = ksym(FUNC);
	struct perf_event_attr event;
	union bpf_attr attr;
	char name[128] = "x";
	int fd, ret;

	for (ret = 0; ret < 2; ret++) {
		ASSERT_EQ(0, probe_attr(&probe, &event));
		event.config = ret;
		event.kprobe_func = 0;
		event.kprobe_addr = addr;
		fd = perf_open(&event, -1, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
		ASSERT_EQ(0, fd_query(getpid(), fd, name, sizeof(name), &attr));
		EXPECT_EQ(ret ? BPF_FD_TYPE_KRETPROBE : BPF_FD_TYPE_KPROBE,
			  attr.task_fd_query.fd_type);
		EXPECT_STREQ("", name);
		EXPECT_EQ(0, attr.task_fd_query.buf_len);
		EXPECT_EQ(0, attr.task_fd_query.probe_offset);
		EXPECT_EQ(addr, attr.task_fd_query.probe_addr);
	}
}

TEST_F(place, bad_input)
{
	struct perf_event_attr software = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(software),
	};
	int null = open("/dev/null", O_RDONLY), link, fd;
	pid_t me = getpid();
	union bpf_attr attr;
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, 0));
	fd = probe_open(&probe);
	ASSERT_LE(0, fd);
	link = perf_link(fd, self->prog);
	ASSERT_LE(0, link);

	memset(&attr, 0, sizeof(attr));
	attr.task_fd_query.pid = me;
	attr.task_fd_query.fd = fd;
	attr.task_fd_query.flags = 1;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_TASK_FD_QUERY, &attr));
	attr.task_fd_query.flags = 0;
	EXPECT_EQ(0, sys_bpf(BPF_TASK_FD_QUERY, &attr));

	EXPECT_EQ(-EBADF, fd_query(me, 999, NULL, 0, &attr));
	EXPECT_EQ(-ENOENT, fd_query(0, fd, NULL, 0, &attr));
	EXPECT_EQ(-ENOENT, fd_query(-1, fd, NULL, 0, &attr));
	/* Files of other kinds */
	EXPECT_EQ(-NOT_SUPPORTED, fd_query(me, null, NULL, 0, &attr));
	EXPECT_EQ(-NOT_SUPPORTED, fd_query(me, self->prog, NULL, 0, &attr));
	EXPECT_EQ(-NOT_SUPPORTED, fd_query(me, self->area.fd, NULL, 0, &attr));
	EXPECT_EQ(-NOT_SUPPORTED, fd_query(me, link, NULL, 0, &attr));
	fd = perf_open(&software, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, fd_query(me, fd, NULL, 0, &attr));
}

TEST_HARNESS_MAIN
