// SPDX-License-Identifier: GPL-2.0
/*
 * A session: one program runs on the entry and on the return of functions, and
 * passes a number from the one to the other
 */
#include "common.h"
#include "hitter.h"
#include "types.h"
#include "multi.h"

#define IS_RETURN "bpf_session_is_return"
#define COOKIE_FUNC "bpf_session_cookie"
/* A function that the one of sched_rr_get_interval(2) calls */
#define INNER_FUNC "put_timespec64"

/* Slots: for each function of the link */
enum {
	ENTRIES,
	RETURNS = ENTRIES + TALLIES,
	MATCHES = RETURNS + TALLIES,	/* the return found what the entry left */
	COOKIES = MATCHES + TALLIES,	/* of the attachment, as seen on return */
	VERDICT = COOKIES + TALLIES,	/* what the entry returns */
	TGID = VERDICT + TALLIES,		/* of whom to count, 0: of all */
};

FIXTURE(session) {
	struct area area;
	struct multi multi;
	int prog;
	int link;
};

FIXTURE_VARIANT(session) {
	bool by_addr;
};

FIXTURE_VARIANT_ADD(session, by_symbol) {
	.by_addr = false,
};

FIXTURE_VARIANT_ADD(session, by_address) {
	.by_addr = true,
};

/*
 * The entry leaves a number that only this call has: the thread's, and the
 * function's in place of the process'.
 */
static int session_prog(struct area *area, int is_return, int cookie)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		AREA(BPF_REG_7, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * TGID),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, 1),
		BPF_JMP_REG(BPF_JNE, BPF_REG_1, BPF_REG_0, 28),

		/* R9 is the cookie, R7 the function's slot 0, R8 the number */
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_MOV64_REG(BPF_REG_9, BPF_REG_0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, TALLIES - 1),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_0, 3),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_0, 32),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_8, 32),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_8, 32),
		BPF_ALU64_REG(BPF_OR, BPF_REG_8, BPF_REG_0),
		CALL_KFUNC(cookie),
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_0),
		CALL_KFUNC(is_return),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 6),

		/* Entry: it counts if no other call has left a number here */
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_8, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_2, 0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * ENTRIES),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, 8 * VERDICT),
		BPF_JMP_A(6),

		/* Return */
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * RETURNS),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_9, 8 * COOKIES),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
		BPF_JMP_REG(BPF_JNE, BPF_REG_2, BPF_REG_8, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * MATCHES),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), BPF_TRACE_KPROBE_SESSION, 0);
}

FIXTURE_SETUP(session)
{
	const char *missing = multi_prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access(VMLINUX_BTF, F_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = session_prog(&self->area, btf_func_id(IS_RETURN),
				  btf_func_id(COOKIE_FUNC));
	ASSERT_LE(0, self->prog);
	multi_init(&self->multi, BPF_TRACE_KPROBE_SESSION, 0, variant->by_addr);
	self->link = multi_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(session)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What there is of one function: "entries returns matches" */
static const char *counts(struct area *area, unsigned int i)
{
	static char text[128];

	snprintf(text, sizeof(text), "%llu %llu %llu",
		 area_get(area, ENTRIES + i), area_get(area, RETURNS + i),
		 area_get(area, MATCHES + i));
	return text;
}

TEST_F(session, runs_on_entry_and_return)
{
	int i;

	for (i = 0; i < CALLS; i++)
		make_calls(i, i + 1);
	EXPECT_STREQ("1 1 1", counts(&self->area, 0));
	EXPECT_STREQ("2 2 2", counts(&self->area, 1));
	EXPECT_STREQ("3 3 3", counts(&self->area, 2));
	EXPECT_STREQ("4 4 4", counts(&self->area, 3));
	EXPECT_STREQ("5 5 5", counts(&self->area, 4));
	for (i = 0; i < CALLS; i++)
		EXPECT_EQ(COOKIE(i), area_get(&self->area, COOKIES + i));

	close(self->link);
	for (i = 0; i < CALLS; i++)
		make_calls(i, 3);
	EXPECT_STREQ("1 1 1", counts(&self->area, 0));
	EXPECT_STREQ("5 5 5", counts(&self->area, 4));
}

/* The entry decides for its own call only */
TEST_F(session, entry_skips_the_return)
{
	int i;

	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT + 1, i & 1);
		make_calls(0, 1);
		make_calls(1, 3);
	}
	EXPECT_STREQ("4 4 4", counts(&self->area, 0));
	EXPECT_STREQ("12 6 6", counts(&self->area, 1));
}

TEST_F(session, sees_arguments_and_the_return_value)
{
	int link, prog = tally_prog(&self->area, BPF_TRACE_KPROBE_SESSION, 0);
	long ret;

	close(self->link);
	link = multi_link(&self->multi, prog);
	ASSERT_LE(0, link);
	ret = neg_errno(hit_arg(SCHED_FIFO));
	EXPECT_EQ(99, ret);
	/* The last run was the return's */
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(ret, area_get(&self->area, TALLY_RET));
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, TALLY_IP));
	EXPECT_EQ(COOKIE(0), area_get(&self->area, TALLY_COOKIE));

	close(link);
	link = multi_link(&self->multi, tally_prog(&self->area,
						   BPF_TRACE_KPROBE_SESSION, 1));
	ASSERT_LE(0, link);
	/* And here there is the entry's alone */
	hit_arg(SCHED_RR);
	EXPECT_EQ(3, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(SCHED_RR, area_get(&self->area, TALLY_SYS_ARG));
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, TALLY_IP));
	EXPECT_EQ(COOKIE(0), area_get(&self->area, TALLY_COOKIE));
}

/* A function of the link calls another one */
TEST_F(session, nested_calls)
{
	struct multi m = {
		.attach = BPF_TRACE_KPROBE_SESSION, .by_addr = variant->by_addr,
		.cnt = 2, .syms = { INNER_FUNC, BODY_FUNC },
		.addrs = { ksym(INNER_FUNC), ksym(BODY_FUNC) },
		.cookies = { COOKIE(10), COOKIE(11) },
	};

	close(self->link);
	area_set(&self->area, TGID, getpid());
	self->link = multi_link(&m, self->prog);
	ASSERT_LE(0, self->link);
	make_calls(2, 10);
	EXPECT_STREQ("10 10 10", counts(&self->area, 10));
	EXPECT_STREQ("10 10 10", counts(&self->area, 11));

	/* Without the return of the outer one */
	area_set(&self->area, VERDICT + 11, 1);
	make_calls(2, 10);
	EXPECT_STREQ("20 20 20", counts(&self->area, 10));
	EXPECT_STREQ("20 10 10", counts(&self->area, 11));
}

TEST_F(session, calls_of_several_threads_at_once)
{
	int link = multi_link_one(WAIT_FUNC, BPF_TRACE_KPROBE_SESSION, 0,
				  self->prog);

	ASSERT_LE(0, link);
	ASSERT_EQ(0, wait_together(3));
	EXPECT_STREQ("3 3 3", counts(&self->area, 0));
}

/* Each of two sessions on a function has a number of its own */
TEST_F(session, two_links)
{
	int link, i;

	for (i = 0; i < CALLS; i++)
		self->multi.cookies[i] += CALLS;
	link = multi_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	area_set(&self->area, VERDICT + 1, 1);
	make_calls(0, 10);
	make_calls(1, 10);
	EXPECT_STREQ("10 10 10", counts(&self->area, 0));
	EXPECT_STREQ("10 10 10", counts(&self->area, CALLS));
	EXPECT_STREQ("10 0 0", counts(&self->area, 1));
	EXPECT_STREQ("10 10 10", counts(&self->area, CALLS + 1));
	close(self->link);
	make_calls(0, 10);
	EXPECT_STREQ("10 10 10", counts(&self->area, 0));
	EXPECT_STREQ("20 20 20", counts(&self->area, CALLS));
}

/* What only a session may do */

FIXTURE(load) {
	int is_return;
	int cookie;
};

FIXTURE_SETUP(load)
{
	const char *missing = multi_prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access(VMLINUX_BTF, F_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	self->is_return = btf_func_id(IS_RETURN);
	ASSERT_LT(0, self->is_return);
	self->cookie = btf_func_id(COOKIE_FUNC);
	ASSERT_LT(0, self->cookie);
}

FIXTURE_TEARDOWN_PARENT(load)
{
	EXPECT_STREQ("nothing", leftovers());
}

static char log_text[4096];

/* Loads without a word to stderr, but into log_text */
static int load_quietly(const struct bpf_insn *insns, size_t cnt,
			enum bpf_attach_type attach)
{
	union bpf_attr attr;

	prog_attr(&attr, insns, cnt);
	attr.expected_attach_type = attach;
	attr.log_buf = (unsigned long)log_text;
	attr.log_size = sizeof(log_text);
	attr.log_level = 1;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

TEST_F(load, kfuncs_are_of_sessions)
{
	const enum bpf_attach_type others[] = {
		0, BPF_PERF_EVENT, BPF_TRACE_KPROBE_MULTI, BPF_TRACE_UPROBE_MULTI,
	};
	const struct {
		int id;
		const char *name;
	} kfuncs[] = {
		{ self->is_return, IS_RETURN }, { self->cookie, COOKIE_FUNC },
	};
	int i, prog;

	for (i = 0; i < 2 * ARRAY_SIZE(others); i++) {
		struct bpf_insn insns[] = {
			CALL_KFUNC(kfuncs[i % 2].id),
			BPF_MOV64_IMM(BPF_REG_0, 0),
			BPF_EXIT_INSN(),
		};

		EXPECT_EQ(-EACCES, load_quietly(insns, ARRAY_SIZE(insns),
						others[i / 2]));
		EXPECT_NE(NULL, strstr(log_text, kfuncs[i % 2].name));
		EXPECT_NE(NULL, strstr(log_text, "is not allowed"));
		prog = load_quietly(insns, ARRAY_SIZE(insns),
				    BPF_TRACE_KPROBE_SESSION);
		EXPECT_LE(0, prog);
		close(prog);
	}
}

TEST_F(load, returns_zero_or_one)
{
	const struct {
		int ret, result;
	} rets[] = {
		{ 0, 0 }, { 1, 0 }, { 2, -EINVAL }, { -1, -EINVAL },
	};
	int i, prog;

	for (i = 0; i < ARRAY_SIZE(rets); i++) {
		struct bpf_insn insns[] = {
			BPF_MOV64_IMM(BPF_REG_0, rets[i].ret),
			BPF_EXIT_INSN(),
		};

		prog = load_quietly(insns, ARRAY_SIZE(insns),
				    BPF_TRACE_KPROBE_SESSION);
		EXPECT_EQ(rets[i].result, prog < 0 ? prog : 0);
		close(prog);
		/* Anything will do for the others */
		prog = load_quietly(insns, ARRAY_SIZE(insns),
				    BPF_TRACE_KPROBE_MULTI);
		EXPECT_LE(0, prog);
		close(prog);
	}
}

/* The number is 64 bits, and not one byte of it is beyond them */
TEST_F(load, cookie_has_eight_bytes)
{
	const struct {
		int off, result;
	} offs[] = {
		{ 0, 0 }, { -8, -EACCES }, { 1, -EACCES }, { 8, -EACCES },
	};
	int i, prog;

	for (i = 0; i < ARRAY_SIZE(offs); i++) {
		struct bpf_insn insns[] = {
			CALL_KFUNC(self->cookie),
			BPF_ST_MEM(BPF_DW, BPF_REG_0, offs[i].off, 1),
			BPF_MOV64_IMM(BPF_REG_0, 0),
			BPF_EXIT_INSN(),
		};

		prog = load_quietly(insns, ARRAY_SIZE(insns),
				    BPF_TRACE_KPROBE_SESSION);
		EXPECT_EQ(offs[i].result, prog < 0 ? prog : 0);
		close(prog);
	}
}

TEST_HARNESS_MAIN
