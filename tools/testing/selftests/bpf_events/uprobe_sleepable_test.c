// SPDX-License-Identifier: GPL-2.0
/* Programs on uprobes may sleep: they get user memory that has to be paged in */
#include "common.h"
#include "link.h"
#include "uprobe.h"

#define CGROUP "/sys/fs/cgroup"
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

/*
 * Maps that they do not take themselves, but get out of a map of maps: what is in these is
 * kept by RCU, which such a program is no reader of
 */

FIXTURE(inner) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(inner) {
	enum bpf_map_type type;
	int helper;
};

FIXTURE_VARIANT_ADD(inner, cgroups) {
	.type = BPF_MAP_TYPE_CGROUP_ARRAY, .helper = BPF_FUNC_current_task_under_cgroup,
};

FIXTURE_VARIANT_ADD(inner, counters) {
	.type = BPF_MAP_TYPE_PERF_EVENT_ARRAY, .helper = BPF_FUNC_perf_event_read,
};

FIXTURE_SETUP(inner)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	if (variant->type == BPF_MAP_TYPE_CGROUP_ARRAY && access(CGROUP "/cgroup.procs", F_OK))
		SKIP(return, "cgroup2 on " CGROUP);
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, 0));
}

FIXTURE_TEARDOWN_PARENT(inner)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* A counter of this task, or the cgroup that all are under */
static int open_element(enum bpf_map_type type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK,
		.size = sizeof(attr),
	};

	return type == BPF_MAP_TYPE_CGROUP_ARRAY ? open(CGROUP, O_RDONLY | O_DIRECTORY) :
						   perf_open(&attr, 0, -1);
}

/* Calls the helper for the first element of the first of @maps, with what it returns in slot 0 */
static int inner_prog(struct area *area, int maps, int helper)
{
	const struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, maps),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(helper),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_flags(insns, ARRAY_SIZE(insns), BPF_F_SLEEPABLE);
}

TEST_F(inner, map)
{
	int map = map_create(variant->type, 4, 4, 1, 0), element = open_element(variant->type);
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4, .value_size = 4,
		.max_entries = 1, .inner_map_fd = map,
	};
	int maps = sys_bpf(BPF_MAP_CREATE, &attr), prog;
	__u32 key = 0;

	ASSERT_EQ(0, map_update(map, &key, &element));
	ASSERT_EQ(0, map_update(maps, &key, &map));
	prog = inner_prog(&self->area, maps, variant->helper);
	ASSERT_LE(0, prog);
	ASSERT_LE(0, attach(&self->probe, prog));
	user_func(NULL);
	/* True, or the time that the task has taken */
	EXPECT_LT(0, (__s64)area_get(&self->area, 0));
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
