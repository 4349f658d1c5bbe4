// SPDX-License-Identifier: GPL-2.0
/*
 * Programs of uprobe_multi links may sleep: they get user memory that has to be
 * paged in
 */
#include "common.h"
#include "umulti.h"

#define TEXT 0x1122334455667788ULL

/* Slots */
enum { MEMORY, RESULT, COUNT };

FIXTURE(sleepable) {
	struct area area;
	struct umulti multi;
	__u64 *page;	/* of a file, starts with TEXT; nobody has touched it */
};

FIXTURE_VARIANT(sleepable) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(sleepable, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(sleepable, return) {
	.flags = BPF_F_UPROBE_MULTI_RETURN,
};

FIXTURE_SETUP(sleepable)
{
	__u64 text[2] = { TEXT, TEXT };
	int file;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	umulti_init(&self->multi, variant->flags);

	file = syscall(__NR_memfd_create, BPF_NAME, 0);
	ASSERT_LE(0, file);
	ASSERT_EQ(sizeof(text), write(file, text, sizeof(text)));
	self->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	close(file);
}

FIXTURE_TEARDOWN_PARENT(sleepable)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Reads 8 bytes of what the argument points to, or else the returned number */
static int read_prog(struct area *area, __u32 flags, int helper, __u32 load_flags)
{
	bool ret = flags & BPF_F_UPROBE_MULTI_RETURN;
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1,
			    ret ? REGS_RET : REGS_ARG),
		/* user_func1() has added one */
		BPF_ALU64_IMM(BPF_SUB, BPF_REG_3, ret),
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(helper),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RESULT),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), BPF_TRACE_UPROBE_MULTI,
			    load_flags);
}

static int sleepable_prog(struct area *area, __u32 flags)
{
	return read_prog(area, flags, BPF_FUNC_copy_from_user, BPF_F_SLEEPABLE);
}

TEST_F(sleepable, gets_memory_that_is_not_resident)
{
	int i, prog = sleepable_prog(&self->area, variant->flags);

	ASSERT_LE(0, umulti_link(&self->multi, prog));
	for (i = 0; i < 3; i++) {
		area_set(&self->area, MEMORY, 0);
		area_set(&self->area, RESULT, 0x5555);
		user_func1((unsigned long)self->page);
		EXPECT_EQ(TEXT, area_get(&self->area, MEMORY));
		EXPECT_EQ(0, area_get(&self->area, RESULT));
		ASSERT_EQ(0, madvise(self->page, 4096, MADV_DONTNEED));
	}
}

/* The page is as it should be for the test above */
TEST_F(sleepable, others_do_not_get_it)
{
	int prog = read_prog(&self->area, variant->flags,
			     BPF_FUNC_probe_read_user, 0);

	ASSERT_LE(0, umulti_link(&self->multi, prog));
	user_func1((unsigned long)self->page);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, RESULT));
	EXPECT_EQ(0, area_get(&self->area, MEMORY));
	/* Now it is resident */
	EXPECT_EQ(TEXT, __atomic_load_n(self->page, __ATOMIC_SEQ_CST));
	user_func1((unsigned long)self->page);
	EXPECT_EQ(0, area_get(&self->area, RESULT));
	EXPECT_EQ(TEXT, area_get(&self->area, MEMORY));
}

TEST_F(sleepable, memory_that_is_not_there)
{
	int prog = sleepable_prog(&self->area, variant->flags);

	ASSERT_LE(0, umulti_link(&self->multi, prog));
	ASSERT_EQ(0, munmap(self->page, 4096));
	area_set(&self->area, MEMORY, 0x5555);
	user_func1((unsigned long)self->page);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, RESULT));
	EXPECT_EQ(0, area_get(&self->area, MEMORY));
}

TEST_F(sleepable, both_kinds_side_by_side)
{
	int plain[2], links[2], link, prog, i;

	for (i = 0; i < 2; i++) {
		plain[i] = count_prog_as(&self->area, COUNT + i, 0,
					 BPF_TRACE_UPROBE_MULTI);
		ASSERT_LE(0, plain[i]);
	}
	prog = sleepable_prog(&self->area, variant->flags);
	links[0] = umulti_link(&self->multi, plain[0]);
	ASSERT_LE(0, links[0]);
	link = umulti_link(&self->multi, prog);
	ASSERT_LE(0, link);
	links[1] = umulti_link(&self->multi, plain[1]);
	ASSERT_LE(0, links[1]);

	user_func1((unsigned long)self->page);
	EXPECT_EQ(TEXT, area_get(&self->area, MEMORY));
	EXPECT_EQ(1, area_get(&self->area, COUNT));
	EXPECT_EQ(1, area_get(&self->area, COUNT + 1));
	close(link);
	area_set(&self->area, MEMORY, 0x5555);
	user_func1((unsigned long)self->page);
	EXPECT_EQ(0x5555, area_get(&self->area, MEMORY));
	EXPECT_EQ(2, area_get(&self->area, COUNT));
	EXPECT_EQ(2, area_get(&self->area, COUNT + 1));
}

/* And they know where they are, and may use what the others use */
TEST_F(sleepable, function_and_cookie)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		AREA(BPF_REG_7, &self->area, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * MEMORY),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * RESULT),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int i, prog = prog_load_as(insns, ARRAY_SIZE(insns),
				   BPF_TRACE_UPROBE_MULTI, BPF_F_SLEEPABLE);

	ASSERT_LE(0, umulti_link(&self->multi, prog));
	for (i = 0; i < USER_FUNCS; i++) {
		call_user(i, 1);
		EXPECT_EQ((unsigned long)user_funcs[i],
			  area_get(&self->area, MEMORY));
		EXPECT_EQ(COOKIE(i), area_get(&self->area, RESULT));
	}
}

TEST_HARNESS_MAIN
