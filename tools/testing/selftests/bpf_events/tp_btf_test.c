// SPDX-License-Identifier: GPL-2.0
/* tp_btf programs: raw tracepoints whose arguments have types */
#include "common.h"
#include "tracing.h"

FIXTURE(tp_btf) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_SETUP(tp_btf)
{
	SKIP_WITHOUT(return, tracing_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	tracing_attr(&self->attr, BPF_TRACE_RAW_TP, "task_rename");
}

FIXTURE_TEARDOWN_PARENT(tp_btf)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(tp_btf, typed_arguments)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_LDX_MEM(BPF_W, BPF_REG_2, BPF_REG_1, btf_member("task_struct", "tgid")),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 8),
		/* Pointers to follow, the last one may be NULL */
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_1,
			    btf_member("task_struct", "real_parent")),
		BPF_LDX_MEM(BPF_W, BPF_REG_2, BPF_REG_1, btf_member("task_struct", "tgid")),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 16),
	};

	ASSERT_LE(0, tracing_open_drop(body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body))));
	hit_rename();
	EXPECT_EQ(getpid(), area_get(&self->area, 1));
	EXPECT_EQ(getppid(), area_get(&self->area, 2));
}

/* The task goes to helpers that take one */
TEST_F(tp_btf, argument_of_a_helper)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_EMIT_CALL(BPF_FUNC_task_pt_regs),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_0, REGS_ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	ASSERT_LE(0, tracing_open_drop(body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body))));
	hit_rename();
	EXPECT_EQ(PR_SET_NAME, area_get(&self->area, 1));
}

TEST_F(tp_btf, context)
{
	const int load = BPF_LDX | BPF_MEM, store = BPF_STX | BPF_MEM;

	EXPECT_EQ(0, access_try(&self->attr, load | BPF_DW, 8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 16, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 12 * 8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 4, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, -8, false));
	EXPECT_EQ(-EACCES, access_try(&self->attr, store | BPF_DW, 0, false));
}

TEST_F(tp_btf, what_arguments_point_to)
{
	const int load = BPF_LDX | BPF_MEM, store = BPF_STX | BPF_MEM;
	int tgid = btf_member("task_struct", "tgid");

	ASSERT_LT(0, tgid);
	EXPECT_EQ(0, access_try(&self->attr, load | BPF_W, tgid, true));
	/* More than the member, past the struct, before it, to write */
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, tgid, true));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, 32760, true));
	EXPECT_EQ(-EACCES, access_try(&self->attr, load | BPF_DW, -8, true));
	EXPECT_EQ(-EACCES, access_try(&self->attr, store | BPF_W, tgid, true));
}

TEST_HARNESS_MAIN
