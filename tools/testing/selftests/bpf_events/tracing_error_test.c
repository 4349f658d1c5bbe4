// SPDX-License-Identifier: GPL-2.0
/* Tracing programs: what is refused, and what is said about them */
#include "common.h"
#include "link.h"
#include "tracing.h"

/* As many as a function can have */
#define MAX_PROGRAMS 38

FIXTURE(tracing_error) {
	union bpf_attr attr;
	struct area area;
	int func;	/* a BTF id */
	int prog;
};

FIXTURE_SETUP(tracing_error)
{
	SKIP_WITHOUT(return, tracing_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	tracing_attr(&self->attr, BPF_TRACE_FENTRY, FUNC);
	self->func = self->attr.attach_btf_id;
	ASSERT_LT(0, self->func);
	self->prog = own_count_prog(&self->attr, &self->area);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(tracing_error)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(tracing_error, btf_id)
{
	int type = btf_type_id(BTF_KIND_STRUCT, "task_struct");
	int tp = target_id(BPF_TRACE_RAW_TP, "task_rename");

	ASSERT_LT(0, type);
	ASSERT_LT(0, tp);
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, 0, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, 0x7fffffff, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, type, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, tp, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_RAW_TP, 0, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_RAW_TP, type, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_RAW_TP, self->func, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_RAW_TP,
				       btf_type_id(BTF_KIND_TYPEDEF, "pid_t"), 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_ITER, self->func, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_ITER, type, 0));
}

TEST_F(tracing_error, attach_type)
{
	const enum bpf_attach_type types[] = {
		0, BPF_TRACE_KPROBE_MULTI, BPF_PERF_EVENT, 1000,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		EXPECT_EQ(-EINVAL, tracing_try(types[i], self->func, 0));
	EXPECT_EQ(-EINVAL, tracing_link(self->prog, BPF_TRACE_FEXIT, 0));
	EXPECT_EQ(-EINVAL, tracing_link(self->prog, BPF_TRACE_RAW_TP, 0));
	EXPECT_EQ(-EINVAL, tracing_link(self->prog, BPF_PERF_EVENT, 0));
}

/* Functions that programs themselves need, and those that do not return */
TEST_F(tracing_error, function_that_is_not_for_tracing)
{
	int func = btf_func_id("migrate_disable"), exits = btf_func_id("do_exit");

	ASSERT_LT(0, exits);
	if (func > 0)
		EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, func, 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FEXIT, exits, 0));
	EXPECT_LE(0, tracing_try(BPF_TRACE_FENTRY, exits, 0));
}

/* What ftrace leaves out cannot be attached to, which shows then */
TEST_F(tracing_error, function_that_is_not_traceable)
{
	int func = btf_func_id("native_sched_clock"), prog;

	if (func < 0)
		SKIP(return, "no such function");
	prog = tracing_try(BPF_TRACE_FENTRY, func, 0);
	ASSERT_LE(0, prog);
	EXPECT_EQ(-EBUSY, tracing_open(prog));
	EXPECT_EQ(-EBUSY, tracing_link(prog, BPF_TRACE_FENTRY, 0));
}

TEST_F(tracing_error, fmod_ret)
{
	/* System calls, the hooks of security modules, what tests may modify */
	EXPECT_LE(0, tracing_try(BPF_MODIFY_RETURN, self->func, 0));
	EXPECT_LE(0, tracing_try(BPF_MODIFY_RETURN, btf_func_id("security_file_open"), 0));
	EXPECT_LE(0, tracing_try(BPF_MODIFY_RETURN, btf_func_id("bpf_modify_return_test"), 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_MODIFY_RETURN, btf_func_id("bpf_fentry_test2"), 0));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_MODIFY_RETURN, btf_func_id("vfs_read"), 0));
}

TEST_F(tracing_error, sleepable)
{
	int func = btf_func_id("vfs_read");
	const __u32 flags = BPF_F_SLEEPABLE;

	ASSERT_LT(0, func);
	EXPECT_LE(0, tracing_try(BPF_TRACE_FENTRY, self->func, flags));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FENTRY, func, flags));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_FEXIT, func, flags));
	EXPECT_EQ(-EINVAL, tracing_try(BPF_TRACE_RAW_TP,
				       target_id(BPF_TRACE_RAW_TP, "task_rename"), flags));
}

/* What must be returned, by kind of program */
static int return_try(enum bpf_attach_type attach, const char *name, int ret)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	tracing_attr(&attr, attach, name);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	return fd < 0 ? fd : close(fd);
}

TEST_F(tracing_error, return_value)
{
	EXPECT_EQ(0, return_try(BPF_TRACE_FENTRY, FUNC, 0));
	EXPECT_EQ(-EINVAL, return_try(BPF_TRACE_FENTRY, FUNC, 1));
	EXPECT_EQ(-EINVAL, return_try(BPF_TRACE_FEXIT, FUNC, -1));
	EXPECT_EQ(0, return_try(BPF_MODIFY_RETURN, FUNC, -1));
	EXPECT_EQ(0, return_try(BPF_TRACE_RAW_TP, "task_rename", 1));
	EXPECT_EQ(0, return_try(BPF_TRACE_ITER, "task", 1));
	EXPECT_EQ(-EINVAL, return_try(BPF_TRACE_ITER, "task", 2));
}

TEST_F(tracing_error, arguments)
{
	union bpf_attr attr;
	const struct {
		enum bpf_attach_type attach;
		unsigned int max;
	} kinds[] = {
		{ BPF_TRACE_FENTRY, 6 }, { BPF_TRACE_FEXIT, 7 },
	};
	const int load = BPF_LDX | BPF_MEM;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		tracing_attr(&attr, kinds[i].attach, "bpf_fentry_test6");
		EXPECT_EQ(0, access_try(&attr, load | BPF_DW, 8 * kinds[i].max - 8, false));
		EXPECT_EQ(-EACCES, access_try(&attr, load | BPF_DW, 8 * kinds[i].max, false));
		EXPECT_EQ(-EACCES, access_try(&attr, load | BPF_DW, -8, false));
		EXPECT_EQ(-EACCES, access_try(&attr, BPF_STX | BPF_MEM | BPF_DW, 0, false));
	}
}

TEST_F(tracing_error, needs_capabilities)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)))
			_exit(1);
		_exit(tracing_try(BPF_TRACE_FENTRY, self->func, 0) != -EPERM);
	}
	EXPECT_EQ(0, child_status(child));
}

TEST_F(tracing_error, the_same_program_twice)
{
	int fd = tracing_open(self->prog);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, tracing_open(self->prog));
	EXPECT_EQ(-EBUSY, tracing_link(self->prog, BPF_TRACE_FENTRY, 0));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_F(tracing_error, thirty_eight_programs_and_no_more)
{
	int i, fd;

	for (i = 0; i < MAX_PROGRAMS; i++) {
		fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));
		ASSERT_LE(0, fd);
	}
	EXPECT_EQ(-E2BIG, tracing_open(self->prog));
	hit();
	EXPECT_EQ(MAX_PROGRAMS, area_get(&self->area, 0));
	close(fd);
	EXPECT_LE(0, tracing_open(self->prog));
	hit();
	EXPECT_EQ(2 * MAX_PROGRAMS, area_get(&self->area, 0));
}

TEST_F(tracing_error, attributes)
{
	union bpf_attr attr = {
		.raw_tracepoint.prog_fd = self->prog,
		.raw_tracepoint.name = (unsigned long)FUNC,
	};

	/* The target is known from the load */
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr));
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = self->prog;
	attr.link_create.attach_type = BPF_TRACE_FENTRY;
	attr.link_create.target_fd = self->prog;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_CREATE, &attr));
	attr.link_create.target_fd = 0;
	attr.link_create.target_btf_id = self->func;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_CREATE, &attr));
	attr.link_create.target_btf_id = 0;
	EXPECT_LE(0, sys_bpf(BPF_LINK_CREATE, &attr));
}

/* What is said */

TEST_F(tracing_error, program_info)
{
	struct bpf_prog_info info;

	ASSERT_EQ(0, prog_info(self->prog, &info));
	EXPECT_EQ(BPF_PROG_TYPE_TRACING, info.type);
	EXPECT_EQ(self->func, info.attach_btf_id);
	EXPECT_NE(0, info.attach_btf_obj_id);
}

TEST_F(tracing_error, link_info)
{
	int fd = tracing_open(self->prog);
	struct bpf_link_info info = {};
	struct bpf_prog_info prog;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, link_info(fd, &info));
	ASSERT_EQ(0, prog_info(self->prog, &prog));
	EXPECT_EQ(BPF_LINK_TYPE_TRACING, info.type);
	EXPECT_EQ(prog.id, info.prog_id);
	EXPECT_EQ(BPF_TRACE_FENTRY, info.tracing.attach_type);
	EXPECT_EQ(prog.attach_btf_obj_id, info.tracing.target_obj_id);
	EXPECT_EQ(self->func, info.tracing.target_btf_id);
	EXPECT_LE(0, link_by_id(info.id));
	EXPECT_STREQ("tracing", fdinfo_text(fd, "link_type"));
	EXPECT_EQ(prog.id, fdinfo_number(fd, "prog_id"));
	EXPECT_EQ(BPF_TRACE_FENTRY, fdinfo_number(fd, "attach_type"));
	EXPECT_EQ(prog.attach_btf_obj_id, fdinfo_number(fd, "target_obj_id"));
	EXPECT_EQ(self->func, fdinfo_number(fd, "target_btf_id"));
}

TEST_F(tracing_error, link_info_of_tp_btf)
{
	struct bpf_link_info info = {};
	union bpf_attr attr;
	char name[64];
	int fd;

	tracing_attr(&attr, BPF_TRACE_RAW_TP, "task_rename");
	fd = tracing_open(own_count_prog(&attr, &self->area));
	ASSERT_LE(0, fd);
	info.raw_tracepoint.tp_name = (unsigned long)name;
	info.raw_tracepoint.tp_name_len = sizeof(name);
	ASSERT_EQ(0, link_info(fd, &info));
	EXPECT_EQ(BPF_LINK_TYPE_RAW_TRACEPOINT, info.type);
	EXPECT_STREQ("task_rename", name);
	ASSERT_EQ(0, fd_query(getpid(), fd, name, sizeof(name), &attr));
	EXPECT_EQ(BPF_FD_TYPE_RAW_TRACEPOINT, attr.task_fd_query.fd_type);
	EXPECT_STREQ("task_rename", name);
	/* The other links have no name to query */
	fd = tracing_open(self->prog);
	EXPECT_EQ(-NOT_SUPPORTED, fd_query(getpid(), fd, name, sizeof(name), &attr));
}

TEST_F(tracing_error, link_update_and_detach)
{
	int fd = tracing_open(self->prog);
	union bpf_attr attr = {
		.link_update.link_fd = fd, .link_update.new_prog_fd = self->prog,
	};

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
	memset(&attr, 0, sizeof(attr));
	attr.link_detach.link_fd = fd;
	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_LINK_DETACH, &attr));
}

TEST_HARNESS_MAIN
