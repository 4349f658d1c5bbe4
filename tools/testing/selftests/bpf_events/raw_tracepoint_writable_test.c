// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE: programs that may write what the
 * first argument points to, here the result of BPF_PROG_TEST_RUN
 */
#include "common.h"
#include "error_log.h"
#include "raw_tp.h"
#include "module.h"
#include "types.h"

#define TEST_MODULE "bpf_events_writable"
#define TEST_HIT "/sys/module/" TEST_MODULE "/parameters/hit"
#define RENAME "task_rename"

FIXTURE(writable) {
	struct area area;
	int target;
};

FIXTURE_SETUP(writable)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->target = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);
	ASSERT_LE(0, self->target);
}

FIXTURE_TEARDOWN_PARENT(writable)
{
	unload_module(TEST_MODULE);
	EXPECT_STREQ("nothing", leftovers());
}

static int socket_run(int prog)
{
	char data[64] = "";
	union bpf_attr attr = {
		.test.data_in = (unsigned long)data, .test.data_size_in = sizeof(data),
	};

	return test_run(&attr, prog);
}

/* Writes what is in slot 1 to the place that the first argument points to */
static int write_prog(struct area *area, int off)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_7, 8),
		BPF_LDX_MEM(BPF_W, BPF_REG_3, BPF_REG_1, off),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_3, 16),
		BPF_STX_MEM(BPF_W, BPF_REG_1, BPF_REG_2, off),
	};
	union bpf_attr attr;

	load_attr(&attr, BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, 0, 0);
	return body_load(&attr, area, body, ARRAY_SIZE(body));
}

TEST_F(writable, what_is_written_counts)
{
	int prog = write_prog(&self->area, 0);
	int fd;

	ASSERT_LE(0, prog);
	EXPECT_EQ(0, socket_run(self->target));
	fd = raw_tp_open(prog, "bpf_test_finish", 0);
	ASSERT_LE(0, fd);
	area_set(&self->area, 1, -EDOM);
	area_set(&self->area, 2, 1);
	EXPECT_EQ(-EDOM, socket_run(self->target));
	EXPECT_EQ(0, area_get(&self->area, 2));
	area_set(&self->area, 1, 0);
	EXPECT_EQ(0, socket_run(self->target));
	area_set(&self->area, 1, -EDOM);
	close(fd);
	EXPECT_EQ(0, socket_run(self->target));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

TEST_F(writable, more_than_there_is)
{
	int prog = write_prog(&self->area, 4);

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
	EXPECT_EQ(-EINVAL, raw_tp_open(prog, "bpf_test_finish", 0));
	EXPECT_STREQ(entry("The program reaches past what the tracepoint lets it write",
			   "bpf_test", "RAW_TRACEPOINT_OPEN bpf_test_finish"), entries());
}

/* Nobody could tell to which tracepoint what is called, or replaces another, goes */
TEST_F(writable, tail_call)
{
	int progs = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	int prog = write_prog(&self->area, 0);
	__u32 key = 0;

	ASSERT_LE(0, progs);
	ASSERT_LE(0, prog);
	EXPECT_EQ(-EINVAL, map_update(progs, &key, &prog));
	prog = prog_load_type(BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, 0, 0);
	EXPECT_EQ(0, map_update(progs, &key, &prog));
}

/* With @write, it writes where its first argument points to. */
static int extension_try(int target, int types, bool write)
{
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1, 0),
		write ? BPF_ST_MEM(BPF_W, BPF_REG_1, 0, 0) : BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	load_attr(&attr, BPF_PROG_TYPE_EXT, 0, TYPE_RAW);
	attr.attach_prog_fd = target;
	prog_types(&attr, types, TYPE_RAW);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST_F(writable, extension)
{
	const struct bpf_insn insns[] = { BPF_MOV64_IMM(BPF_REG_0, 0), BPF_EXIT_INSN() };
	int target, types = types_load();
	union bpf_attr attr;

	ASSERT_LE(0, types);
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE;
	prog_types(&attr, types, TYPE_RAW);
	target = prog_load_attr(&attr);
	ASSERT_LE(0, target);
	EXPECT_EQ(0, extension_try(target, types, false));
	EXPECT_EQ(-EACCES, extension_try(target, types, true));
}

/* A module's, declared as one that has no event in tracefs */
TEST_F(writable, of_a_module)
{
	const char *path = test_module(TEST_MODULE);
	int fd, prog = write_prog(&self->area, 0);

	if (!path)
		SKIP(return, "test_modules/" TEST_MODULE ".ko is not built");
	ASSERT_LE(0, prog);
	unload_module(TEST_MODULE);
	EXPECT_EQ(-ENOENT, raw_tp_open(prog, TEST_MODULE, 0));
	ASSERT_EQ(0, load_module(path));
	EXPECT_EQ(0, write_file(TEST_HIT, 0, "1"));
	/* No more than its argument has */
	EXPECT_EQ(-EINVAL, raw_tp_open(write_prog(&self->area, 4), TEST_MODULE, 0));

	fd = raw_tp_open(prog, TEST_MODULE, 0);
	ASSERT_LE(0, fd);
	area_set(&self->area, 1, -EDOM);
	area_set(&self->area, 2, 1);
	EXPECT_EQ(-EDOM, write_file(TEST_HIT, 0, "1"));
	EXPECT_EQ(0, area_get(&self->area, 2));
	EXPECT_EQ(1, area_get(&self->area, 0));
	/* It stays for as long as it is used */
	EXPECT_EQ(-EAGAIN, unload_module(TEST_MODULE));
	close(fd);
	EXPECT_EQ(0, write_file(TEST_HIT, 0, "1"));
	EXPECT_EQ(0, unload_module(TEST_MODULE));
	EXPECT_EQ(-ENOENT, raw_tp_open(prog, TEST_MODULE, 0));
}

TEST_F(writable, tracepoint_that_is_not)
{
	int prog = write_prog(&self->area, 0);

	ASSERT_LE(0, prog);
	EXPECT_EQ(-EINVAL, raw_tp_open(prog, RENAME, 0));
	/* One that writes nothing may be anywhere */
	EXPECT_LE(0, raw_tp_open(prog_load_type(BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, 0, 0),
				 RENAME, 0));
}

TEST_HARNESS_MAIN
