// SPDX-License-Identifier: GPL-2.0
/* fentry, fexit and fmod_ret programs: what they are given, what they decide */
#include "common.h"
#include "ring.h"
#include "tracing.h"

/* A function that BPF_PROG_TEST_RUN calls: six arguments of 16, 17 ..., the sum */
#define SIX "bpf_fentry_test6"
#define SIX_ARGS 6
#define SIX_SUM 111

FIXTURE(function) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_SETUP(function)
{
	SKIP_WITHOUT(return, tracing_prepare());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(function)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Has BPF_PROG_TEST_RUN call its functions, also those it has a program for */
static int call_functions(void)
{
	int prog = tracing_try(BPF_TRACE_FENTRY, btf_func_id("bpf_fentry_test1"), 0), ret;
	union bpf_attr attr = {};

	ret = prog < 0 ? prog : test_run(&attr, prog);
	close(prog);
	return ret;
}

TEST_F(function, arguments)
{
	int i;

	tracing_attr(&self->attr, BPF_TRACE_FENTRY, SIX);
	ASSERT_LE(0, tracing_open_drop(args_prog(&self->attr, &self->area, SIX_ARGS)));
	ASSERT_EQ(0, call_functions());
	EXPECT_EQ(1, area_get(&self->area, 0));
	for (i = 0; i < SIX_ARGS; i++)
		EXPECT_EQ(16 + i, area_get(&self->area, 1 + i));
}

TEST_F(function, arguments_and_what_is_returned)
{
	int i;

	tracing_attr(&self->attr, BPF_TRACE_FEXIT, SIX);
	ASSERT_LE(0, tracing_open_drop(args_prog(&self->attr, &self->area, SIX_ARGS + 1)));
	ASSERT_EQ(0, call_functions());
	for (i = 0; i < SIX_ARGS; i++)
		EXPECT_EQ(16 + i, area_get(&self->area, 1 + i));
	EXPECT_EQ(SIX_SUM, area_get(&self->area, 1 + SIX_ARGS));
}

TEST_F(function, system_call)
{
	const struct bpf_insn body[] = {
		/* The registers are typed: no helper is needed */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1, REGS_ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 16),
	};

	tracing_attr(&self->attr, BPF_TRACE_FEXIT, FUNC);
	ASSERT_LE(0, tracing_open_drop(body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body))));
	EXPECT_EQ(99, hit_arg(SCHED_RR));
	EXPECT_EQ(SCHED_RR, area_get(&self->area, 1));
	EXPECT_EQ(99, area_get(&self->area, 2));
	hit_arg(77);
	EXPECT_EQ(77, area_get(&self->area, 1));
	EXPECT_EQ(-EINVAL, (__s64)area_get(&self->area, 2));
}

/* Slots from 1: each helper's result, and its value if it stores one */
static int func_helpers_prog(union bpf_attr *attr, struct area *area, bool returns)
{
	struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_func_arg_cnt),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 16),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_2, 3),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_func_arg),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 24),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, -8),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 32),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_2, SIX_ARGS),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_func_arg),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 40),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ret),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 48),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, -8),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 56),
	};

	return body_load(attr, area, body, returns ? ARRAY_SIZE(body) : ARRAY_SIZE(body) - 7);
}

TEST_F(function, helpers_that_tell_of_the_call)
{
	int i, fd;

	for (i = 0; i < 2; i++) {
		memset(self->area.slot, 0, AREA_SIZE);
		tracing_attr(&self->attr, i ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY, SIX);
		fd = tracing_open_drop(func_helpers_prog(&self->attr, &self->area, i));
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, call_functions());
		close(fd);
		EXPECT_EQ(SIX_ARGS, area_get(&self->area, 1));
		EXPECT_EQ(ksym(SIX), area_get(&self->area, 2));
		EXPECT_EQ(0, area_get(&self->area, 3));
		EXPECT_EQ(19, area_get(&self->area, 4));
		EXPECT_EQ(-EINVAL, (__s64)area_get(&self->area, 5));
	}
	EXPECT_EQ(0, area_get(&self->area, 6));
	EXPECT_EQ(SIX_SUM, area_get(&self->area, 7));
	/* What a function returns is not known when it starts */
	tracing_attr(&self->attr, BPF_TRACE_FENTRY, SIX);
	ASSERT_LE(0, tracing_open_drop(func_helpers_prog(&self->attr, &self->area, true)));
	ASSERT_EQ(0, call_functions());
	EXPECT_EQ(-EOPNOTSUPP, (__s64)area_get(&self->area, 6));
}

/* Returns @ret after it has put the number of its turn, slot 1, into @slot */
static int turn_prog(union bpf_attr *attr, struct area *area, int slot, int ret)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_RAW_INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_0, 8,
			     BPF_ADD | BPF_FETCH),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * slot),
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* Before, instead, after; of each kind, the latest first */
TEST_F(function, order_of_programs)
{
	const enum bpf_attach_type came[] = {
		BPF_TRACE_FEXIT, BPF_MODIFY_RETURN, BPF_TRACE_FENTRY,
		BPF_TRACE_FENTRY, BPF_MODIFY_RETURN, BPF_TRACE_FEXIT,
	};
	const int turns[] = { 5, 3, 1, 0, 2, 4 };
	int i;

	for (i = 0; i < ARRAY_SIZE(came); i++) {
		tracing_attr(&self->attr, came[i], FUNC);
		ASSERT_LE(0, tracing_open_drop(turn_prog(&self->attr, &self->area, 10 + i, 0)));
	}
	EXPECT_EQ(99, hit_arg(SCHED_RR));
	for (i = 0; i < ARRAY_SIZE(came); i++)
		EXPECT_EQ(turns[i], area_get(&self->area, 10 + i));
}

TEST_F(function, fmod_ret_decides)
{
	int fd, fexit;

	tracing_attr(&self->attr, BPF_MODIFY_RETURN, FUNC);
	/* The first one that does makes the rest superfluous, but not fexit */
	ASSERT_LE(0, tracing_open_drop(turn_prog(&self->attr, &self->area, 11, 0)));
	fd = tracing_open_drop(turn_prog(&self->attr, &self->area, 10, -EDOM));
	ASSERT_LE(0, fd);
	tracing_attr(&self->attr, BPF_TRACE_FEXIT, FUNC);
	fexit = args_prog(&self->attr, &self->area, 2);
	ASSERT_LE(0, tracing_open_drop(fexit));

	EXPECT_EQ(-1, hit_arg(SCHED_RR));
	EXPECT_EQ(EDOM, errno);
	EXPECT_EQ(2, area_get(&self->area, 0));
	EXPECT_EQ(-EDOM, (int)area_get(&self->area, 2));
	close(fd);
	EXPECT_EQ(99, hit_arg(SCHED_RR));
	EXPECT_EQ(99, area_get(&self->area, 2));
}

TEST_F(function, test_run_of_fmod_ret)
{
	union bpf_attr run = {};
	int prog, fd;

	tracing_attr(&self->attr, BPF_MODIFY_RETURN, "bpf_modify_return_test");
	prog = turn_prog(&self->attr, &self->area, 10, 5);
	ASSERT_LE(0, prog);
	/* 4 and 29, both have been there */
	ASSERT_EQ(0, test_run(&run, prog));
	EXPECT_EQ(2 << 16 | (4 + 29), run.test.retval);
	fd = tracing_open(prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, test_run(&run, prog));
	EXPECT_EQ(1 << 16 | (5 + 29), run.test.retval);
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_F(function, test_run_errors)
{
	union bpf_attr run = {};
	int prog;

	tracing_attr(&self->attr, BPF_TRACE_FENTRY, SIX);
	prog = own_count_prog(&self->attr, &self->area);
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, test_run(&run, prog));
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_LE(0, tracing_open(prog));
	ASSERT_EQ(0, test_run(&run, prog));
	EXPECT_EQ(1, area_get(&self->area, 0));
	run.test.flags = BPF_F_TEST_RUN_ON_CPU;
	EXPECT_EQ(-EINVAL, test_run(&run, prog));
	run.test.flags = 0;
	run.test.cpu = 1;
	EXPECT_EQ(-EINVAL, test_run(&run, prog));
	run.test.cpu = 0;
	run.test.batch_size = 1;
	EXPECT_EQ(-EINVAL, test_run(&run, prog));
}

TEST_F(function, sleepable)
{
	static char text[16] = "user memory";
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 16),
		BPF_MOV64_IMM(BPF_REG_2, sizeof(text)),
		BPF_LD_IMM64(BPF_REG_3, (unsigned long)text),
		BPF_EMIT_CALL(BPF_FUNC_copy_from_user),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};
	const enum bpf_attach_type types[] = {
		BPF_TRACE_FENTRY, BPF_TRACE_FEXIT, BPF_MODIFY_RETURN,
	};
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		tracing_attr(&self->attr, types[i], FUNC);
		self->attr.prog_flags = BPF_F_SLEEPABLE;
		memset(self->area.slot, 0, AREA_SIZE);
		fd = tracing_open_drop(body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body)));
		ASSERT_LE(0, fd);
		hit();
		EXPECT_EQ(0, area_get(&self->area, 1));
		EXPECT_STREQ(text, (char *)&self->area.slot[2]);
		close(fd);
	}
}

/* A function that the program itself gets to */
TEST_F(function, own_function)
{
	int prog, map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	__u64 key = 1;
	const struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 5),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
	};
	const enum bpf_attach_type types[] = { BPF_TRACE_FENTRY, BPF_TRACE_FEXIT };
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		tracing_attr(&self->attr, types[i], UPDATE_FUNC);
		prog = body_load(&self->attr, &self->area, body, ARRAY_SIZE(body));
		fd = tracing_open(prog);
		ASSERT_LE(0, fd);
		area_set(&self->area, 0, 0);
		ASSERT_EQ(0, map_update(map, &key, &key));
		EXPECT_EQ(1, area_get(&self->area, 0));
		EXPECT_EQ(1, misses(prog));
		close(fd);
	}
}

/* What makes a tail call may not sleep, and so does not get to what may */
TEST_F(function, no_tail_call_to_sleepable)
{
	int plain, sleepable, key = 0, map = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);

	tracing_attr(&self->attr, BPF_TRACE_FENTRY, FUNC);
	plain = own_count_prog(&self->attr, &self->area);
	self->attr.prog_flags = BPF_F_SLEEPABLE;
	sleepable = own_count_prog(&self->attr, &self->area);
	ASSERT_LE(0, plain);
	ASSERT_LE(0, sleepable);
	EXPECT_EQ(-EINVAL, map_update(map, &key, &sleepable));
	EXPECT_EQ(0, map_update(map, &key, &plain));
	EXPECT_EQ(-EINVAL, map_update(map, &key, &sleepable));
}

/*
 * What samples are made with: a program there that makes one is under way when the
 * next one is hit.  Each makes one if it is the deepest so far.
 */
#define NESTED 9
enum { DEPTH = 1, NESTED_RET = 8 };

static int nested_output_prog(union bpf_attr *attr, struct area *area, int map, int depth)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * DEPTH),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, depth, 10),
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * DEPTH, depth + 1),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LD_IMM64(BPF_REG_3, BPF_F_CURRENT_CPU),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_7),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * (NESTED_RET + depth)),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* The ninth finds no room, says so, and that is all that happens */
TEST_F(function, samples_inside_samples)
{
	int i, key = 0, map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TID,
		.sample_period = 1,
	};
	struct ring ring;
	int fd;

	ASSERT_EQ(0, pin(0));
	fd = perf_open(&attr, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, map_update(map, &key, &fd));
	ASSERT_EQ(0, ring_map(&ring, fd));
	area_set(&self->area, DEPTH, NESTED);
	for (i = 0; i < NESTED; i++) {
		area_set(&self->area, NESTED_RET + i, 12345);
		tracing_attr(&self->attr, BPF_TRACE_FENTRY, "__task_pid_nr_ns");
		ASSERT_LE(0, tracing_open_drop(nested_output_prog(&self->attr, &self->area,
								  map, i)));
	}
	area_set(&self->area, DEPTH, 0);
	syscall(__NR_getpid);
	EXPECT_EQ(NESTED, area_get(&self->area, DEPTH));
	for (i = 0; i < NESTED; i++)
		EXPECT_EQ(i < NESTED - 1 ? 0 : -EBUSY,
			  (__s64)area_get(&self->area, NESTED_RET + i));
	EXPECT_EQ(NESTED - 1, ring_samples(&ring));
}

TEST_HARNESS_MAIN
