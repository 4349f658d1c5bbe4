// SPDX-License-Identifier: GPL-2.0
/*
 * A session on functions of a process: one program runs on their entry and on
 * their return, and passes a number from the one to the other
 */
#include "common.h"
#include "hitter.h"
#include "session.h"
#include "umulti.h"

/* Slots of depth_prog(), behind those of session_prog() */
enum {
	DEPTH = TGID + 1,	/* how many calls have not returned */
	WRONG,			/* returns that found another number than theirs */
	SEEN,			/* returns */
};

FIXTURE(session) {
	struct area area;
	struct umulti multi;
	int prog;
};

FIXTURE_VARIANT(session) {
	__u32 flags;	/* of the program */
};

FIXTURE_VARIANT_ADD(session, plain) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(session, sleepable) {
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_SETUP(session)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	if (access(VMLINUX_BTF, F_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = session_prog(&self->area, BPF_TRACE_UPROBE_SESSION, variant->flags);
	ASSERT_LE(0, self->prog);
	umulti_init(&self->multi, 0);
	self->multi.attach = BPF_TRACE_UPROBE_SESSION;
}

FIXTURE_TEARDOWN_PARENT(session)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Links a program to one function, with the slots of the tally */
static int link_one(const void *func, unsigned int slots, int prog)
{
	return umulti_link_one(func, BPF_TRACE_UPROBE_SESSION, 0, slots, prog);
}

TEST_F(session, runs_on_entry_and_return)
{
	int i, link = umulti_link(&self->multi, self->prog);

	ASSERT_LE(0, link);
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, i + 1);
	EXPECT_STREQ("1 1 1", counts(&self->area, 0));
	EXPECT_STREQ("2 2 2", counts(&self->area, 1));
	EXPECT_STREQ("3 3 3", counts(&self->area, 2));
	for (i = 0; i < USER_FUNCS; i++)
		EXPECT_EQ(COOKIE(i), area_get(&self->area, COOKIES + i));

	close(link);
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, 3);
	EXPECT_STREQ("1 1 1", counts(&self->area, 0));
	EXPECT_STREQ("3 3 3", counts(&self->area, 2));
}

/* The entry decides for its own call only */
TEST_F(session, entry_skips_the_return)
{
	int i;

	ASSERT_LE(0, umulti_link(&self->multi, self->prog));
	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT + 1, i & 1);
		call_user(0, 1);
		call_user(1, 3);
	}
	EXPECT_STREQ("4 4 4", counts(&self->area, 0));
	EXPECT_STREQ("12 6 6", counts(&self->area, 1));
}

extern const char __executable_start[], etext[];

/* Not so while its return is probed */
static bool returns_to_us(void)
{
	const char *to = __builtin_return_address(0);

	return to >= __executable_start && to < etext;
}

TEST_F(session, return_that_nobody_wants_is_not_probed)
{
	int other = session_prog(&self->area, BPF_TRACE_UPROBE_SESSION, variant->flags);
	int link;

	ASSERT_LE(0, link_one(returns_to_us, 0, self->prog));
	EXPECT_FALSE(returns_to_us());
	area_set(&self->area, VERDICT, 1);
	EXPECT_TRUE(returns_to_us());
	link = link_one(returns_to_us, 1, other);
	ASSERT_LE(0, link);
	EXPECT_FALSE(returns_to_us());
	close(link);
	EXPECT_TRUE(returns_to_us());
	EXPECT_STREQ("4 1 1", counts(&self->area, 0));
	EXPECT_STREQ("1 1 1", counts(&self->area, 1));
}

TEST_F(session, sees_arguments_and_the_return_value)
{
	const __u64 arg = 0x123456789abcdef0;
	int progs[2], link, i;
	__u64 ret;

	for (i = 0; i < 2; i++)
		progs[i] = tally_prog_with(&self->area, BPF_TRACE_UPROBE_SESSION, i,
					   variant->flags);
	link = umulti_link(&self->multi, progs[0]);
	ASSERT_LE(0, link);
	ret = user_func2(arg);
	EXPECT_EQ(arg + 2, ret);
	/* The last run was the return's */
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS + 1));
	EXPECT_EQ(ret, area_get(&self->area, TALLY_RET + 1));
	EXPECT_EQ((unsigned long)user_func2, area_get(&self->area, TALLY_IP + 1));
	EXPECT_EQ(COOKIE(1), area_get(&self->area, TALLY_COOKIE + 1));

	close(link);
	ASSERT_LE(0, umulti_link(&self->multi, progs[1]));
	/* And here there is the entry's alone */
	user_func2(arg + 5);
	EXPECT_EQ(3, area_get(&self->area, TALLY_RUNS + 1));
	EXPECT_EQ(arg + 5, area_get(&self->area, TALLY_ARG + 1));
	EXPECT_EQ((unsigned long)user_func2, area_get(&self->area, TALLY_IP + 1));
	EXPECT_EQ(COOKIE(1), area_get(&self->area, TALLY_COOKIE + 1));
}

/* The number that a call keeps is how deep it is */
static int depth_prog(struct area *area, __u32 flags)
{
	int is_return = btf_func_id(IS_RETURN), cookie = btf_func_id(COOKIE_FUNC);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_7, area, 0),
		CALL_KFUNC(cookie),
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_0),
		CALL_KFUNC(is_return),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * DEPTH),
		BPF_MOV64_IMM(BPF_REG_3, 1),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 5),

		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 8 * DEPTH),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),

		/* Return: nobody else may find it */
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_6, 0, 0),
		BPF_JMP_REG(BPF_JEQ, BPF_REG_2, BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_3, 8 * WRONG),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_3, 8 * SEEN),
		BPF_ALU64_IMM(BPF_SUB, BPF_REG_1, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 8 * DEPTH),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), BPF_TRACE_UPROBE_SESSION, flags);
}

/* What depth_prog() has found: "depth wrong seen" */
static const char *depths(struct area *area)
{
	static char text[128];

	snprintf(text, sizeof(text), "%llu %llu %llu", area_get(area, DEPTH),
		 area_get(area, WRONG), area_get(area, SEEN));
	return text;
}

TEST_F(session, nested_calls)
{
	ASSERT_LE(0, link_one(dive, 0, depth_prog(&self->area, variant->flags)));
	EXPECT_EQ(9, dive(9, NULL));
	EXPECT_STREQ("0 0 10", depths(&self->area));
	EXPECT_EQ(MAX_DEPTH - 1, dive(MAX_DEPTH - 1, NULL));
	EXPECT_STREQ("0 0 74", depths(&self->area));
}

TEST_F(session, calls_that_longjmp_has_left)
{
	static unsigned int i;	/* not in a register, which the jump would restore */

	ASSERT_LE(0, link_one(dive, 0, depth_prog(&self->area, variant->flags)));
	for (i = 0; i < 4; i++) {
		if (!setjmp(before_the_dive()))
			dive(30 * i + 4, leave_the_dive);
		area_set(&self->area, DEPTH, 0);
		EXPECT_EQ(4, dive(4, NULL));
	}
	EXPECT_STREQ("0 0 20", depths(&self->area));
}

/* Their returns are counted as missed: by a link to returns, too */
TEST_F(session, calls_that_are_too_many)
{
	int links[] = {
		link_one(dive, 0, self->prog),
		umulti_link_one(dive, BPF_TRACE_UPROBE_MULTI, BPF_F_UPROBE_MULTI_RETURN, 0,
				count_prog_as(&self->area, SEEN, 0, BPF_TRACE_UPROBE_MULTI)),
		link_one(dive, 1, session_prog(&self->area, BPF_TRACE_UPROBE_SESSION,
					       variant->flags)),
	};
	const __u64 hits[] = { 164, 64, 100 }, missed[] = { 36, 36, 0 };
	int i;

	/* The third one does not want to see the return */
	area_set(&self->area, VERDICT + 1, 1);
	EXPECT_EQ(MAX_DEPTH + 35, dive(MAX_DEPTH + 35, NULL));
	EXPECT_STREQ("100 64 64", counts(&self->area, 0));
	EXPECT_STREQ("100 0 0", counts(&self->area, 1));
	EXPECT_EQ(MAX_DEPTH, area_get(&self->area, SEEN));
	for (i = 0; i < ARRAY_SIZE(links); i++) {
		EXPECT_EQ(hits[i], fdinfo_number(links[i], "bpf_prog_hits"));
		EXPECT_EQ(missed[i], fdinfo_number(links[i], "bpf_prog_missed"));
	}

	/* And that was all */
	EXPECT_EQ(1, dive(1, NULL));
	EXPECT_STREQ("102 66 66", counts(&self->area, 0));
	for (i = 0; i < ARRAY_SIZE(links); i++)
		EXPECT_EQ(missed[i], fdinfo_number(links[i], "bpf_prog_missed"));
}

#ifdef __x86_64__
/* A function that ends with a jump to another one, which returns for both */
extern char jumping[], jumped_to[];
asm(".text; jumping: jmp jumped_to; jumped_to: ret");

TEST_F(session, tail_call)
{
	void (*func)(void) = (void *)jumping;
	int i;

	ASSERT_LE(0, link_one(jumping, 0, self->prog));
	ASSERT_LE(0, link_one(jumped_to, 1, self->prog));
	for (i = 0; i < 3; i++)
		func();
	EXPECT_STREQ("3 3 3", counts(&self->area, 0));
	EXPECT_STREQ("3 3 3", counts(&self->area, 1));
}
#endif

/* Each has a number of its own */
TEST_F(session, many_links)
{
	int i, links[20];

	for (i = 0; i < ARRAY_SIZE(links); i++) {
		links[i] = link_one(user_func1, i, self->prog);
		ASSERT_LE(0, links[i]);
	}
	area_set(&self->area, VERDICT + 7, 1);
	call_user(0, 3);
	for (i = 0; i < ARRAY_SIZE(links); i++)
		EXPECT_STREQ(i == 7 ? "3 0 0" : "3 3 3", counts(&self->area, i));

	for (i = 0; i < ARRAY_SIZE(links); i += 2)
		close(links[i]);
	call_user(0, 1);
	EXPECT_STREQ("3 3 3", counts(&self->area, 0));
	EXPECT_STREQ("4 4 4", counts(&self->area, 19));
}

TEST_F(session, calls_of_several_threads_at_once)
{
	ASSERT_LE(0, link_one(waiter, 0, self->prog));
	ASSERT_EQ(0, wait_together(8));
	EXPECT_STREQ("8 8 8", counts(&self->area, 0));
}

struct change {
	int link, prog;
	int news[16];
};

/* One may get the memory of the one that goes, where it is free early enough */
static void change_links(void *arg)
{
	struct change *c = arg;
	unsigned int i;

	close(c->link);
	for (i = 0; i < ARRAY_SIZE(c->news); i++) {
		sleep_ms(20);
		c->news[i] = link_one(waiter, 2, c->prog);
	}
}

/* A return is for links that have seen the entry, and are still there */
TEST_F(session, links_change_during_a_call)
{
	struct change change = {
		.link = link_one(waiter, 0, self->prog),
		.prog = self->prog,
	};
	int i;

	ASSERT_LE(0, change.link);
	ASSERT_LE(0, link_one(waiter, 1, self->prog));
	ASSERT_EQ(0, wait_together_with(3, change_links, &change));
	for (i = 0; i < ARRAY_SIZE(change.news); i++)
		EXPECT_LE(0, change.news[i]);
	EXPECT_STREQ("3 0 0", counts(&self->area, 0));
	EXPECT_STREQ("3 3 3", counts(&self->area, 1));
	EXPECT_STREQ("0 0 0", counts(&self->area, 2));
}

/* Not even the place stays probed meanwhile */
TEST_F(session, only_link_changes_during_a_call)
{
	struct change change = {
		.link = link_one(waiter, 0, self->prog),
		.prog = self->prog,
	};

	ASSERT_LE(0, change.link);
	ASSERT_EQ(0, wait_together_with(3, change_links, &change));
	EXPECT_STREQ("3 0 0", counts(&self->area, 0));
	EXPECT_STREQ("0 0 0", counts(&self->area, 2));
}

static struct area *fork_area;

/* The child returns first, with nothing but what is its own */
static void fork_here(void)
{
	__u64 depth = area_get(fork_area, DEPTH);
	pid_t child = fork();

	if (!child)
		return;
	if (child_status(child))
		_exit(1);
	area_set(fork_area, DEPTH, depth);
}

/* Both return, and each with what the entries have left */
TEST_F(session, fork)
{
	pid_t parent = getpid();

	fork_area = &self->area;
	ASSERT_LE(0, link_one(dive, 0, depth_prog(&self->area, variant->flags)));
	dive(2, fork_here);
	if (getpid() != parent)
		_exit(0);
	EXPECT_STREQ("0 0 6", depths(&self->area));
}

TEST_F(session, of_one_process)
{
	pid_t child;

	self->multi.pid = getpid();
	ASSERT_LE(0, umulti_link(&self->multi, self->prog));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		call_user(0, 3);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(child));
	call_user(0, 2);
	EXPECT_STREQ("2 2 2", counts(&self->area, 0));
}

TEST_HARNESS_MAIN
