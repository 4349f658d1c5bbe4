// SPDX-License-Identifier: GPL-2.0
/*
 * A session: one program runs on the entry and on the return of functions, and
 * passes a number from the one to the other
 */
#include "common.h"
#include "hitter.h"
#include "load_log.h"
#include "multi.h"
#include "session.h"

/* A function that the one of sched_rr_get_interval(2) calls */
#define INNER_FUNC "put_timespec64"

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

FIXTURE_SETUP(session)
{
	SKIP_WITHOUT(return, multi_prepare());
	if (access(VMLINUX_BTF, F_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = session_prog(&self->area, BPF_TRACE_KPROBE_SESSION, 0);
	ASSERT_LE(0, self->prog);
	multi_init(&self->multi, BPF_TRACE_KPROBE_SESSION, 0, variant->by_addr);
	self->link = multi_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(session)
{
	EXPECT_STREQ("nothing", leftovers());
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

FIXTURE_VARIANT(load) {
	enum bpf_attach_type attach;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(load, kprobe) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
};

FIXTURE_VARIANT_ADD(load, uprobe) {
	.attach = BPF_TRACE_UPROBE_SESSION,
	.flags = 0,
};

FIXTURE_VARIANT_ADD(load, uprobe_sleepable) {
	.attach = BPF_TRACE_UPROBE_SESSION,
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_SETUP(load)
{
	SKIP_WITHOUT(return, prepare());
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

/* Loads without a word to stderr, but into log_text */
static int load_quietly(const struct bpf_insn *insns, size_t cnt,
			enum bpf_attach_type attach, __u32 flags)
{
	union bpf_attr attr;

	prog_attr(&attr, insns, cnt);
	attr.expected_attach_type = attach;
	attr.prog_flags = flags;
	return load_log(&attr);
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
						others[i / 2], variant->flags));
		EXPECT_TRUE(logged(kfuncs[i % 2].name));
		EXPECT_TRUE(logged("is not allowed"));
		prog = load_quietly(insns, ARRAY_SIZE(insns), variant->attach,
				    variant->flags);
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

		prog = load_quietly(insns, ARRAY_SIZE(insns), variant->attach,
				    variant->flags);
		EXPECT_EQ(rets[i].result, prog < 0 ? prog : 0);
		close(prog);
		/* Anything will do for the others */
		prog = load_quietly(insns, ARRAY_SIZE(insns),
				    BPF_TRACE_KPROBE_MULTI, 0);
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

		prog = load_quietly(insns, ARRAY_SIZE(insns), variant->attach,
				    variant->flags);
		EXPECT_EQ(offs[i].result, prog < 0 ? prog : 0);
		close(prog);
	}
}

TEST_HARNESS_MAIN
