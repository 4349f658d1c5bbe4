// SPDX-License-Identifier: GPL-2.0
/* Programs on uprobes may sleep: they get user memory that has to be paged in */
#include "common.h"
#include "link.h"
#include "uprobe.h"

#define TEXT 0x1122334455667788ULL

FIXTURE(sleepable) {
	struct probe probe;
	struct area area;
	__u64 *page;	/* of a file, starts with TEXT; nobody has touched it */
};

FIXTURE_VARIANT(sleepable) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(sleepable, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(sleepable, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(sleepable, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(sleepable, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(sleepable, uprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(sleepable, uprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_SETUP(sleepable)
{
	__u64 pair[2] = { TEXT, TEXT };
	int file;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));

	file = syscall(__NR_memfd_create, BPF_NAME, 0);
	ASSERT_LE(0, file);
	ASSERT_EQ(sizeof(pair), write(file, pair, sizeof(pair)));
	self->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	close(file);
}

FIXTURE_TEARDOWN_PARENT(sleepable)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Reads what the argument, or return value, points to into slot 0, and has
 * what the helper returns in slot 1
 */
static int read_prog(struct area *area, bool ret, int helper, __u32 flags)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1,
			    ret ? REGS_RET : REGS_ARG),
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(helper),
		AREA(BPF_REG_1, area, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_flags(insns, ARRAY_SIZE(insns), flags);
}

TEST_F(sleepable, gets_memory_that_is_not_resident)
{
	bool ret = variant->flags & PROBE_RETURN;
	int prog = read_prog(&self->area, ret, BPF_FUNC_copy_from_user,
			     BPF_F_SLEEPABLE);
	int i;

	ASSERT_LE(0, attach_by(&self->probe, variant->link, prog));
	for (i = 0; i < 3; i++) {
		area_set(&self->area, 0, 0);
		area_set(&self->area, 1, 0x5555);
		user_func(self->page);
		EXPECT_EQ(TEXT, area_get(&self->area, 0));
		EXPECT_EQ(0, area_get(&self->area, 1));
		ASSERT_EQ(0, madvise(self->page, 4096, MADV_DONTNEED));
	}
}

/* The page is as it should be for the test above */
TEST_F(sleepable, others_do_not_get_it)
{
	bool ret = variant->flags & PROBE_RETURN;
	int prog = read_prog(&self->area, ret, BPF_FUNC_probe_read_user, 0);

	ASSERT_LE(0, attach_by(&self->probe, variant->link, prog));
	user_func(self->page);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, 1));
	EXPECT_EQ(0, area_get(&self->area, 0));
	/* Now it is resident */
	EXPECT_EQ(TEXT, __atomic_load_n(self->page, __ATOMIC_RELAXED));
	user_func(self->page);
	EXPECT_EQ(0, area_get(&self->area, 1));
	EXPECT_EQ(TEXT, area_get(&self->area, 0));
}

TEST_F(sleepable, memory_that_is_not_there)
{
	bool ret = variant->flags & PROBE_RETURN;
	int prog = read_prog(&self->area, ret, BPF_FUNC_copy_from_user,
			     BPF_F_SLEEPABLE);

	ASSERT_LE(0, attach_by(&self->probe, variant->link, prog));
	area_set(&self->area, 0, 0x5555);
	user_func((__u64 *)64);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, 1));
	EXPECT_EQ(0, area_get(&self->area, 0));

	ASSERT_EQ(0, munmap(self->page, 4096));
	area_set(&self->area, 0, 0x5555);
	user_func(self->page);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, 1));
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_F(sleepable, both_kinds_side_by_side)
{
	bool ret = variant->flags & PROBE_RETURN;
	int sleepable, plain = count_prog(&self->area, 2, 0);

	sleepable = read_prog(&self->area, ret, BPF_FUNC_copy_from_user,
			      BPF_F_SLEEPABLE);
	ASSERT_LE(0, attach_by(&self->probe, variant->link, plain));
	ASSERT_LE(0, attach_by(&self->probe, variant->link, sleepable));
	ASSERT_LE(0, attach_by(&self->probe, variant->link,
			       count_prog(&self->area, 3, 0)));
	user_func(self->page);
	EXPECT_EQ(TEXT, area_get(&self->area, 0));
	EXPECT_EQ(1, area_get(&self->area, 2));
	EXPECT_EQ(1, area_get(&self->area, 3));
}

/* What is refused */

FIXTURE(refused) {
	struct area area;
};

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(refused, helper_of_sleepable_programs)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_3, 64),
		AREA(BPF_REG_1, &self->area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_copy_from_user),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int prog;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_PROG_LOAD, &attr));
	attr.prog_flags = BPF_F_SLEEPABLE;
	prog = sys_bpf(BPF_PROG_LOAD, &attr);
	EXPECT_LE(0, prog);
}

TEST_F(refused, sleepable_program_on_a_kprobe)
{
	int prog = prog_load_type(BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE);
	const unsigned int flags[] = { 0, PROBE_PMU, PROBE_PMU | PROBE_RETURN };
	struct probe probe;
	int i;

	ASSERT_LE(0, prog);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, probe_create(&probe, flags[i]));
		EXPECT_EQ(-EINVAL, attach(&probe, prog));
		EXPECT_EQ(-EINVAL, attach_link(&probe, prog, 0));
	}
	ASSERT_EQ(0, uprobe_create_at(&probe, "user", SELF,
				      file_offset(user_func), 0, 0));
	EXPECT_LE(0, attach(&probe, prog));
}

TEST_HARNESS_MAIN
