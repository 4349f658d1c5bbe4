// SPDX-License-Identifier: GPL-2.0
/*
 * Raw tracepoints: what is refused, what is said about them, and runs without
 * a tracepoint
 */
#include "common.h"
#include "error_log.h"
#include "link.h"
#include "raw_tp.h"
#include "uprobe.h"
#include "filter.h"

#define RENAME "task_rename"
#define COOKIE 0x1122334455667788ULL

FIXTURE(raw_tp_error) {
	union bpf_attr attr;
	struct area area;
	int prog;
};

FIXTURE_VARIANT(raw_tp_error) {
	enum bpf_prog_type type;
};

FIXTURE_VARIANT_ADD(raw_tp_error, plain) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(raw_tp_error, writable) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE,
};

FIXTURE_SETUP(raw_tp_error)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	load_attr(&self->attr, variant->type, 0, 0);
	self->prog = own_count_prog(&self->attr, &self->area);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(raw_tp_error)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(raw_tp_error, names)
{
	char name[256];

	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, "no_such_tracepoint", 0));
	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, "", 0));
	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, "task:task_rename", 0));
	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, "task_renamed", 0));
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, name, 0));
	EXPECT_EQ(-EFAULT, raw_tp_open(self->prog, NULL, 0));
	EXPECT_EQ(-EFAULT, raw_tp_open(self->prog, (char *)8, 0));
	hit_rename();
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_F(raw_tp_error, programs)
{
	EXPECT_EQ(-EBADF, raw_tp_open(-1, RENAME, 0));
	EXPECT_EQ(-EBADF, raw_tp_open(999, RENAME, 0));
	EXPECT_EQ(-EINVAL, raw_tp_open(self->area.fd, RENAME, 0));
	EXPECT_EQ(-EINVAL, raw_tp_open(open("/dev/null", O_RDONLY), RENAME, 0));
	EXPECT_EQ(-EINVAL, raw_tp_open(count_prog(&self->area, 1, 0), RENAME, 0));
	EXPECT_EQ(-EINVAL, raw_tp_open(prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0),
				       RENAME, 0));
	EXPECT_EQ(-EINVAL, raw_tp_open(prog_load_type(BPF_PROG_TYPE_TRACEPOINT, 0, 0),
				       RENAME, 0));
}

TEST_F(raw_tp_error, more_than_the_attributes)
{
	union bpf_attr attr = {
		.raw_tracepoint.name = (unsigned long)RENAME,
		.raw_tracepoint.prog_fd = self->prog,
	};

	((__u64 *)&attr)[3] = 1;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
	((__u64 *)&attr)[3] = 0;
	EXPECT_LE(0, sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
}

TEST_F(raw_tp_error, link_create)
{
	EXPECT_EQ(-EINVAL, link_create(self->prog, 0, 0, 0, 0));
	EXPECT_EQ(-EINVAL, link_create(self->prog, 0, BPF_TRACE_RAW_TP, 0, 0));
	EXPECT_EQ(-EINVAL, link_create(self->prog, 0, BPF_PERF_EVENT, 0, 0));
}

/* Whether error_log has one entry, with this error, about opening this tracepoint */
static bool open_logged(const char *error, const char *name)
{
	return logged(error, "RAW_TRACEPOINT_OPEN %s\n", name);
}

TEST_F(raw_tp_error, reason_is_in_error_log)
{
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
	EXPECT_EQ(-ENOENT, raw_tp_open(self->prog, "task:task_rename", 0));
	EXPECT_TRUE(open_logged("No tracepoint has this name", "task:task_rename"));
	EXPECT_EQ(-EINVAL, raw_tp_open(args_prog(&self->attr, &self->area, 3), RENAME, 0));
	EXPECT_TRUE(open_logged("The program reads more arguments than the tracepoint has",
				RENAME));
	EXPECT_LE(0, raw_tp_open(args_prog(&self->attr, &self->area, 2), RENAME, 0));
	EXPECT_STREQ("", entries());
}

/* More arguments than the tracepoint has, which is known when it is opened */
TEST_F(raw_tp_error, arguments)
{
	const struct {
		const char *name;
		unsigned int args;
	} tps[] = { { RENAME, 2 }, { "sys_enter", 2 }, { "sched_switch", 4 } };
	int i;

	for (i = 0; i < ARRAY_SIZE(tps); i++) {
		EXPECT_LE(0, raw_tp_open(args_prog(&self->attr, &self->area, tps[i].args),
					 tps[i].name, 0));
		EXPECT_EQ(-EINVAL, raw_tp_open(args_prog(&self->attr, &self->area,
							 tps[i].args + 1),
					       tps[i].name, 0));
	}
}

TEST_F(raw_tp_error, context)
{
	const int load = BPF_LDX | BPF_MEM, store = BPF_STX | BPF_MEM;

	EXPECT_EQ(0, access_try(&self->attr, load | BPF_DW, 0, false));
	EXPECT_EQ(0, access_try(&self->attr, load | BPF_DW, 11 * 8, false));
	EXPECT_EQ(0, access_try(&self->attr, load | BPF_W, 8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 12 * 8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 4, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, -8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, store | BPF_DW, 0, false));
}

/* What the first argument points to is for writable programs only */
TEST_F(raw_tp_error, what_arguments_point_to)
{
	bool writable = variant->type == BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE;
	const int load = BPF_LDX | BPF_MEM, store = BPF_STX | BPF_MEM;

	EXPECT_EQ(writable ? 0 : -EACCES, access_try(&self->attr, load | BPF_W, 0, true));
	EXPECT_EQ(writable ? 0 : -EACCES, access_try(&self->attr, store | BPF_W, 0, true));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_W, -4, true));
	EXPECT_EQ(-EACCES, access_try(&self->attr, store | BPF_W, -4, true));
}

TEST_F(raw_tp_error, needs_capabilities)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)) ||
		    prog_load_type(variant->type, 0, 0) != -EPERM)
			_exit(1);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(child));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF) | CAP(PERFMON)))
			_exit(1);
		_exit(raw_tp_open(self->prog, RENAME, 0) < 0);
	}
	EXPECT_EQ(0, child_status(child));
}

/* What is said */

TEST_F(raw_tp_error, link_info)
{
	int fd = raw_tp_open(self->prog, RENAME, COOKIE);
	struct bpf_link_info info = {};
	char name[64];
	__u32 id;

	ASSERT_LE(0, fd);
	/* Without a buffer, its size */
	ASSERT_EQ(0, link_info(fd, &info));
	EXPECT_EQ(BPF_LINK_TYPE_RAW_TRACEPOINT, info.type);
	EXPECT_EQ(prog_id(self->prog), info.prog_id);
	EXPECT_EQ(sizeof(RENAME), info.raw_tracepoint.tp_name_len);
	id = info.id;
	info.raw_tracepoint.tp_name = (unsigned long)name;
	info.raw_tracepoint.tp_name_len = sizeof(name);
	ASSERT_EQ(0, link_info(fd, &info));
	EXPECT_STREQ(RENAME, name);
	EXPECT_EQ(sizeof(RENAME), info.raw_tracepoint.tp_name_len);
	EXPECT_EQ(id, info.id);
	EXPECT_LE(0, link_by_id(id));
}

TEST_F(raw_tp_error, room_for_the_name)
{
	int i, fd = raw_tp_open(self->prog, RENAME, 0);
	const __u32 sizes[] = { 1, 2, sizeof(RENAME) - 1 };
	struct bpf_link_info info;
	char name[64];

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(&info, 0, sizeof(info));
		memset(name, 'x', sizeof(name));
		info.raw_tracepoint.tp_name = (unsigned long)name;
		info.raw_tracepoint.tp_name_len = sizes[i];
		EXPECT_EQ(-ENOSPC, link_info(fd, &info));
		EXPECT_EQ(sizes[i] - 1, strlen(name));
		EXPECT_EQ(0, strncmp(RENAME, name, sizes[i] - 1));
		EXPECT_EQ('x', name[sizes[i]]);
	}
	memset(&info, 0, sizeof(info));
	info.raw_tracepoint.tp_name = (unsigned long)name;
	EXPECT_EQ(-EINVAL, link_info(fd, &info));
	info.raw_tracepoint.tp_name = 0;
	info.raw_tracepoint.tp_name_len = 5;
	EXPECT_EQ(-EINVAL, link_info(fd, &info));
	info.raw_tracepoint.tp_name = 8;
	EXPECT_EQ(-EFAULT, link_info(fd, &info));
}

TEST_F(raw_tp_error, fdinfo)
{
	int fd = raw_tp_open(self->prog, RENAME, 0);

	ASSERT_LE(0, fd);
	EXPECT_STREQ("raw_tracepoint", fdinfo_text(fd, "link_type"));
	EXPECT_EQ(link_id(fd), fdinfo_number(fd, "link_id"));
	EXPECT_EQ(prog_id(self->prog), fdinfo_number(fd, "prog_id"));
	EXPECT_STREQ(RENAME, fdinfo_text(fd, "tp_name"));
}

TEST_F(raw_tp_error, task_fd_query)
{
	int fd = raw_tp_open(self->prog, RENAME, 0);
	union bpf_attr attr;
	char name[64];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fd_query(getpid(), fd, name, sizeof(name), &attr));
	EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
	EXPECT_EQ(BPF_FD_TYPE_RAW_TRACEPOINT, attr.task_fd_query.fd_type);
	EXPECT_STREQ(RENAME, name);
	EXPECT_EQ(strlen(RENAME), attr.task_fd_query.buf_len);
	EXPECT_EQ(0, attr.task_fd_query.probe_offset);
	EXPECT_EQ(0, attr.task_fd_query.probe_addr);
	EXPECT_EQ(-ENOSPC, fd_query(getpid(), fd, name, 5, &attr));
	EXPECT_STREQ("task", name);
}

TEST_F(raw_tp_error, link_update_and_detach)
{
	int fd = raw_tp_open(self->prog, RENAME, 0);
	union bpf_attr attr = {
		.link_update.link_fd = fd, .link_update.new_prog_fd = self->prog,
	};

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
	memset(&attr, 0, sizeof(attr));
	attr.link_detach.link_fd = fd;
	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_LINK_DETACH, &attr));
}

/* BPF_PROG_TEST_RUN: a run without a tracepoint; returns the sum of two arguments */

static int sum_prog(union bpf_attr *attr, struct area *area)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 16),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_0, BPF_REG_1),
		BPF_EXIT_INSN(),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

static void run_attr(union bpf_attr *attr, const __u64 *args, __u32 size)
{
	memset(attr, 0, sizeof(*attr));
	attr->test.ctx_in = (unsigned long)args;
	attr->test.ctx_size_in = size;
}

TEST_F(raw_tp_error, test_run)
{
	__u64 args[12] = { 1, 0x1000, 0x234 };
	union bpf_attr attr;
	int prog;

	prog = sum_prog(&self->attr, &self->area);
	ASSERT_LE(0, prog);
	run_attr(&attr, args, 24);
	if (variant->type != BPF_PROG_TYPE_RAW_TRACEPOINT) {
		EXPECT_EQ(-NOT_SUPPORTED, test_run(&attr, prog));
		return;
	}
	ASSERT_EQ(0, test_run(&attr, prog));
	EXPECT_EQ(0x1234, attr.test.retval);
	run_attr(&attr, args, sizeof(args));
	EXPECT_EQ(0, test_run(&attr, prog));
	/* A program that needs no arguments */
	run_attr(&attr, NULL, 0);
	EXPECT_EQ(0, test_run(&attr, self->prog));
	EXPECT_EQ(1 + 2, area_get(&self->area, 0));

	/* Fewer arguments than the program reads, more than there can be */
	run_attr(&attr, args, 16);
	EXPECT_EQ(-EINVAL, test_run(&attr, prog));
	run_attr(&attr, args, sizeof(args) + 8);
	EXPECT_EQ(-EINVAL, test_run(&attr, prog));
	run_attr(&attr, (__u64 *)8, 24);
	EXPECT_EQ(-EFAULT, test_run(&attr, prog));
	EXPECT_EQ(3, area_get(&self->area, 0));
}

TEST_F(raw_tp_error, test_run_on_a_cpu)
{
	__u64 args[3] = { 0 }, runs;
	union bpf_attr attr;
	int prog, cpu;

	if (variant->type != BPF_PROG_TYPE_RAW_TRACEPOINT)
		return;
	prog = sum_prog(&self->attr, &self->area);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, pin(0));
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		run_attr(&attr, args, sizeof(args));
		attr.test.flags = BPF_F_TEST_RUN_ON_CPU;
		attr.test.cpu = cpu;
		runs = area_get(&self->area, 0);
		ASSERT_EQ(0, test_run(&attr, prog));
		/* The other CPU has another task */
		EXPECT_EQ(runs + !cpu, area_get(&self->area, 0));
		EXPECT_EQ(0, area_get(&self->area, 1));
	}
	attr.test.cpu = 12345;
	EXPECT_EQ(-ENXIO, test_run(&attr, prog));
	attr.test.cpu = 1;
	attr.test.flags = 0;
	EXPECT_EQ(-EINVAL, test_run(&attr, prog));
	attr.test.cpu = 0;
	attr.test.repeat = 1;
	EXPECT_EQ(-EINVAL, test_run(&attr, prog));
	attr.test.repeat = 0;
	attr.test.data_in = (unsigned long)args;
	attr.test.data_size_in = 8;
	EXPECT_EQ(-EINVAL, test_run(&attr, prog));
}

TEST_HARNESS_MAIN
