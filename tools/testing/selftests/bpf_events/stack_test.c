// SPDX-License-Identifier: GPL-2.0
/* The helpers that walk the stack, the kernel's and the user's */
#include "common.h"

/* Slots: flags, what the helper returned, a buffer */
enum { FLAGS, RET, BUF };

FIXTURE(stack) {
	struct rig rig;
};

FIXTURE_SETUP(stack)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(stack)
{
	EXPECT_STREQ("nothing", leftovers());
}

static __s64 result(struct rig *rig, __u64 flags)
{
	area_set(&rig->area, FLAGS, flags);
	area_set(&rig->area, RET, 12345);
	hit();
	return area_get(&rig->area, RET);
}

TEST_F(stack, get_stackid)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 32, 16, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_get_stackid),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u64 ips[32], func = ksym(FUNC);
	__s64 id;
	__u32 key;

	ASSERT_NE(0, func);
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	id = result(&self->rig, 0);
	ASSERT_LE(0, id);
	key = id;
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_LE(func, ips[0]);
	EXPECT_GT(func + 16, ips[0]);
	EXPECT_NE(0, ips[1]);
	/* The same stack has the same id */
	EXPECT_EQ(id, result(&self->rig, 0));

	/* Another stack may have the same hash */
	ASSERT_EQ(0, map_delete(map, &key));
	id = result(&self->rig, BPF_F_USER_STACK);
	ASSERT_LE(0, id);
	key = id;
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_NE(0, ips[0]);
	EXPECT_GT(1ULL << 56, ips[0]);

	EXPECT_EQ(-EINVAL, result(&self->rig, 1ULL << 40));
}

TEST_F(stack, get_stack)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_3, 8 * 32),
		BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u64 *ips = &self->rig.area.slot[BUF], func = ksym(FUNC), second;
	__s64 size;

	ASSERT_NE(0, func);
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	size = result(&self->rig, 0);
	EXPECT_LE(16, size);
	EXPECT_EQ(0, size % 8);
	EXPECT_LE(func, ips[0]);
	EXPECT_GT(func + 16, ips[0]);
	second = ips[1];
	/* Skip one frame */
	EXPECT_EQ(size - 8, result(&self->rig, 1));
	EXPECT_EQ(second, ips[0]);

	EXPECT_LE(8, result(&self->rig, BPF_F_USER_STACK));
	EXPECT_NE(0, ips[0]);
	EXPECT_GT(1ULL << 56, ips[0]);

	EXPECT_EQ(-EINVAL, result(&self->rig, 1ULL << 40));
	insns[4].imm = 12;	/* not a whole number of frames */
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	EXPECT_EQ(-EINVAL, result(&self->rig, 0));
}

TEST_HARNESS_MAIN
