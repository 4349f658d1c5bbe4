// SPDX-License-Identifier: GPL-2.0
/* What the program is given that filters an event */
#include "common.h"
#include "link.h"
#include "uprobe.h"
#include "filter.h"

#include <sys/uio.h>

#define CTX_ARGS 12

FIXTURE(context) {
	struct area area;
};

FIXTURE_SETUP(context)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(context)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * In this process, and if argument @which is @value, copies @n arguments to the
 * area
 */
static int args_prog(struct area *area, unsigned int n, unsigned int which, int value)
{
	struct bpf_insn insns[64] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * (which - 1)),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, value, 0),
		AREA(BPF_REG_1, area, 0),
	};
	unsigned int i, len = 8;

	for (i = 0; i < n; i++) {
		insns[len++] = BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * i);
		insns[len++] = BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 8 * i);
	}
	insns[3].off = len - 4;
	insns[5].off = len - 6;
	insns[len++] = BPF_MOV64_IMM(BPF_REG_0, 0);
	insns[len++] = BPF_EXIT_INSN();
	return prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, len);
}

/* The whole array, past the arguments that a program may load */
static int array_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 5),
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8 * CTX_ARGS),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	unsigned int i;

	for (i = 0; i < CTX_ARGS; i++)
		area_set(area, i, ~0ULL);
	return prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
}

/* The kernel has a copy of a long vector in memory that it allocates */
#define VECS 101
#define VECS_SIZE (VECS * sizeof(struct iovec))

static void allocate(void)
{
	struct iovec vecs[VECS] = {};
	int fd = open("/dev/null", O_RDONLY);

	readv(fd, vecs, VECS);
	close(fd);
}

TEST_F(context, six_arguments_of_a_tracepoint)
{
	const __u64 *arg = self->area.slot - 1;
	int fd, prog = args_prog(&self->area, 6, 3, VECS_SIZE);

	ASSERT_LE(0, prog);
	fd = filter_attach(INSTANCE, "kmem/kmalloc", prog);
	ASSERT_LE(0, fd);
	allocate();
	close(fd);

	/* Where, what, how much is wanted, and had, how, and on which node */
	EXPECT_LE(ksym("_stext"), arg[1]);
	EXPECT_GT(ksym("_etext"), arg[1]);
	EXPECT_GT(0, (long)arg[2]);
	EXPECT_EQ(0, arg[2] % 8);
	EXPECT_EQ(VECS_SIZE, arg[3]);
	EXPECT_LE(arg[3], arg[4]);
	EXPECT_GE(4096, arg[4]);
	EXPECT_NE(0, arg[5]);
	EXPECT_EQ(0, arg[5] >> 32);
	/* NUMA_NO_NODE, an int: nothing above its 32 bits */
	EXPECT_EQ((__u32)-1, arg[6]);
}

TEST_F(context, first_two_of_a_tracepoint)
{
	/* The new name of the task, in kernel memory */
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 9),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task),
		AREA(BPF_REG_1, &self->area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 8),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 16),
		BPF_MOV64_IMM(BPF_REG_2, 16),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_7),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int prog = prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));

	ASSERT_LE(0, prog);
	ASSERT_LE(0, filter_attach(INSTANCE, tracepoint_kind.event, prog));
	hit_rename();
	EXPECT_NE(0, area_get(&self->area, 0));
	EXPECT_EQ(area_get(&self->area, 1), area_get(&self->area, 0));
	EXPECT_STREQ("bpf_events_test", (char *)&self->area.slot[2]);
}

TEST_F(context, unused_of_a_tracepoint)
{
	int i, prog = array_prog(&self->area);

	ASSERT_LE(0, prog);
	ASSERT_LE(0, filter_attach(INSTANCE, tracepoint_kind.event, prog));
	hit_rename();
	EXPECT_NE(0, area_get(&self->area, 0));
	EXPECT_NE(0, area_get(&self->area, 1));
	for (i = 2; i < CTX_ARGS; i++)
		EXPECT_EQ(0, area_get(&self->area, i));
}

TEST_F(context, six_arguments_of_a_system_call)
{
	/* A length of 0 is an error before anything is looked at */
	const __u64 args[] = { 0x1122334455667788, 0, 3, 4, -5, 6UL << 12 };
	int i, prog = args_prog(&self->area, 6, 3, args[2]);

	ASSERT_LE(0, prog);
	ASSERT_LE(0, filter_attach(INSTANCE, "syscalls/sys_enter_mmap", prog));
	EXPECT_EQ(-1, syscall(__NR_mmap, args[0], args[1], args[2], args[3], args[4],
			      args[5]));
	for (i = 0; i < ARRAY_SIZE(args); i++)
		EXPECT_EQ(args[i], area_get(&self->area, i));
}

TEST_F(context, unused_of_a_system_call)
{
	int i, prog = array_prog(&self->area);

	ASSERT_LE(0, prog);
	ASSERT_LE(0, filter_attach(INSTANCE, sys_enter_kind.event, prog));
	syscall(__NR_sched_get_priority_max, SCHED_RR, 11, 12, 13, 14, 15);
	EXPECT_EQ(SCHED_RR, area_get(&self->area, 0));
	for (i = 1; i < CTX_ARGS; i++)
		EXPECT_EQ(0, area_get(&self->area, i));
}

TEST_F(context, return_value_of_a_system_call)
{
	int i, prog = array_prog(&self->area);

	ASSERT_LE(0, prog);
	ASSERT_LE(0, filter_attach(INSTANCE, sys_exit_kind.event, prog));
	EXPECT_EQ(99, hit_arg(SCHED_RR));
	EXPECT_EQ(99, area_get(&self->area, 0));
	EXPECT_EQ(-1, hit_arg(-1));
	EXPECT_EQ(-EINVAL, (long)area_get(&self->area, 0));
	for (i = 1; i < CTX_ARGS; i++)
		EXPECT_EQ(0, area_get(&self->area, i));
}

/* Loads that are not of a whole argument */
TEST_F(context, parts_of_an_argument)
{
	const struct {
		int size, off;
		__u64 value;
	} parts[] = {
		{ BPF_DW, 0, 0x1122334455667788 },
		{ BPF_W, 0, 0x55667788 },
		{ BPF_W, 4, 0x11223344 },
		{ BPF_H, 2, 0x5566 },
		{ BPF_B, 7, 0x11 },
	};
	int i, fd, prog;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		struct bpf_insn insns[] = {
			BPF_LDX_MEM(parts[i].size, BPF_REG_0, BPF_REG_1, parts[i].off),
			AREA(BPF_REG_1, &self->area, 0),
			BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
			BPF_MOV64_IMM(BPF_REG_0, 0),
			BPF_EXIT_INSN(),
		};

		prog = prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns,
				    ARRAY_SIZE(insns));
		ASSERT_LE(0, prog);
		fd = filter_attach(INSTANCE, sys_enter_kind.event, prog);
		ASSERT_LE(0, fd);
		syscall(__NR_sched_get_priority_max, 0x1122334455667788);
		EXPECT_EQ(parts[i].value, area_get(&self->area, 0));
		close(fd);
	}
}

static int load_access(__u8 code, int off)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_RAW_INSN(code, BPF_CLASS(code) == BPF_LDX ? BPF_REG_0 : BPF_REG_1,
			     BPF_CLASS(code) == BPF_LDX ? BPF_REG_1 : BPF_REG_0, off, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd = prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST_F(context, bounds_of_arguments)
{
	const int load = BPF_LDX | BPF_MEM;

	EXPECT_EQ(0, load_access(load | BPF_DW, 8 * (CTX_ARGS - 1)));
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, 8 * CTX_ARGS));
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, -8));
	EXPECT_EQ(-EACCES, load_access(load | BPF_B, -1));
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, 4));
	EXPECT_EQ(-EACCES, load_access(load | BPF_W, 2));
	EXPECT_EQ(-EACCES, load_access(BPF_STX | BPF_MEM | BPF_DW, 0));
}

/* Registers */

static int attach_regs(const struct kind *kind, struct area *area, int off)
{
	int err = kind_create(kind);

	return err ?: filter_attach(INSTANCE, kind->event, reg_prog(area, off));
}

TEST_F(context, registers_of_a_kprobe)
{
	/* The argument of the function: the caller's registers */
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, REGS_ARG),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, REGS_ARG),
		AREA(BPF_REG_1, &self->area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	ASSERT_EQ(0, kind_create(&kprobe_kind));
	ASSERT_LE(0, filter_attach(INSTANCE, kprobe_kind.event,
				   prog_load(insns, ARRAY_SIZE(insns))));
	hit_arg(SCHED_RR);
	EXPECT_EQ(SCHED_RR, area_get(&self->area, 0));
	hit_arg(77);
	EXPECT_EQ(77, area_get(&self->area, 0));
}

TEST_F(context, registers_of_a_kretprobe)
{
	ASSERT_LE(0, attach_regs(&kretprobe_kind, &self->area, REGS_RET));
	hit_arg(SCHED_RR);
	EXPECT_EQ(99, area_get(&self->area, 0));
	hit_arg(-1);
	EXPECT_EQ(-EINVAL, (long)area_get(&self->area, 0));
}

TEST_F(context, registers_of_a_uprobe)
{
	__u64 pair[2];

	ASSERT_LE(0, attach_regs(&uprobe_kind, &self->area, REGS_ARG));
	user_func(pair);
	EXPECT_EQ((unsigned long)pair, area_get(&self->area, 0));
}

TEST_F(context, registers_of_a_uretprobe)
{
	__u64 pair[2];

	ASSERT_LE(0, attach_regs(&uretprobe_kind, &self->area, REGS_RET));
	user_func(pair);
	EXPECT_EQ((unsigned long)&pair[1], area_get(&self->area, 0));
}

/* What helpers say about the hit */

TEST_F(context, function_of_a_kprobe)
{
	ASSERT_EQ(0, kind_create(&kprobe_kind));
	ASSERT_LE(0, filter_attach(INSTANCE, kprobe_kind.event,
				   func_ip_prog(&self->area)));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, 0));
}

TEST_F(context, function_of_a_uprobe)
{
	ASSERT_EQ(0, kind_create(&uprobe_kind));
	ASSERT_LE(0, filter_attach(INSTANCE, uprobe_kind.event,
				   func_ip_prog(&self->area)));
	user_hits(1);
	EXPECT_EQ((unsigned long)user_func, area_get(&self->area, 0));
}

TEST_F(context, function_of_a_uretprobe)
{
	ASSERT_EQ(0, kind_create(&uretprobe_kind));
	ASSERT_LE(0, filter_attach(INSTANCE, uretprobe_kind.event,
				   func_ip_prog(&self->area)));
	user_hits(1);
	EXPECT_EQ((unsigned long)user_func, area_get(&self->area, 0));
}

static int cookie_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		AREA(BPF_REG_1, area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	area_set(area, 0, ~0ULL);
	return prog_load(insns, ARRAY_SIZE(insns));
}

/* A filter has no cookie, and that of a perf event on the same probe is not its own */
TEST_F(context, no_cookie)
{
	struct probe probe = { .event = "event" };

	ASSERT_EQ(0, kind_create(&kprobe_kind));
	ASSERT_LE(0, attach_link(&probe, count_prog(&self->area, 1, 0), 123));
	ASSERT_LE(0, filter_attach(INSTANCE, kprobe_kind.event,
				   cookie_prog(&self->area)));
	ASSERT_EQ(0, pin(0));
	hit();
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(1, area_get(&self->area, 1));
}

TEST_F(context, no_cookie_of_a_uprobe)
{
	ASSERT_EQ(0, kind_create(&uprobe_kind));
	ASSERT_LE(0, filter_attach(INSTANCE, uprobe_kind.event,
				   cookie_prog(&self->area)));
	user_hits(1);
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
