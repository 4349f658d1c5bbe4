// SPDX-License-Identifier: GPL-2.0
/* The helper that prints what a pointer points to, by its type */
#include "common.h"
#include "types.h"
#include "call.h"

/* More slots; ARG is the id of the type */
enum { FLAGS = BUF, DATA, DATA2, LARGE_BUF = 16 };

#define UNKNOWN_FLAG 0x10000000000ULL
/* Nothing is ever mapped at the very end of the address space */
#define UNMAPPED_KERNEL (~0UL - 8191)

FIXTURE(print) {
	struct rig rig;
};

FIXTURE_SETUP(print)
{
	SKIP_WITHOUT(return, prepare());
	if (access(VMLINUX_BTF, R_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(print)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Prints what @where puts into R0 as the type in ARG */
static int attach_print(struct rig *rig, const struct bpf_insn where[2],
			unsigned int size, unsigned int ptr_size)
{
	const struct bpf_insn body[] = {
		where[0],
		where[1],
		/* A struct btf_ptr on the stack */
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_0, -16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * LARGE_BUF),
		BPF_MOV64_IMM(BPF_REG_2, size),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -16),
		BPF_MOV64_IMM(BPF_REG_4, ptr_size),
		BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_snprintf_btf),
	};

	return attach_body(rig, body, ARRAY_SIZE(body));
}

static const struct bpf_insn at_data[2] = {
	BPF_MOV64_REG(BPF_REG_0, BPF_REG_6),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_0, 8 * DATA),
};

static const struct bpf_insn at_current[2] = {
	BPF_EMIT_CALL(BPF_FUNC_get_current_task),
	BPF_MOV64_REG(BPF_REG_0, BPF_REG_0),
};

/* Wherever DATA points */
static const struct bpf_insn at_address[2] = {
	BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * DATA),
	BPF_MOV64_REG(BPF_REG_0, BPF_REG_0),
};

TEST_F(print, a_struct)
{
	const struct {
		__u64 flags;
		const char *text;
	} prints[] = {
		{ BTF_F_COMPACT, "(struct timespec64){.tv_sec = (time64_t)5,}" },
		{ BTF_F_COMPACT | BTF_F_NONAME, "{5,}" },
		{ BTF_F_COMPACT | BTF_F_NONAME | BTF_F_ZERO, "{5,0,}" },
		{ 0, "(struct timespec64){\n .tv_sec = (time64_t)5,\n}\n" },
	};
	struct area *area = &self->rig.area;
	const char *text = (const char *)&area->slot[LARGE_BUF];
	int i, id = btf_type_id(BTF_KIND_STRUCT, "timespec64");

	ASSERT_LT(0, id);
	area_set(area, ARG, id);
	area_set(area, DATA, 5);
	area_set(area, DATA2, 0);
	ASSERT_LE(0, attach_print(&self->rig, at_data, 256, 16));
	for (i = 0; i < ARRAY_SIZE(prints); i++) {
		area_set(area, FLAGS, prints[i].flags);
		EXPECT_EQ(strlen(prints[i].text), result(&self->rig));
		EXPECT_STREQ(prints[i].text, text);
	}

	/* What does not fit is cut off, the length is that of all of it */
	area_set(area, FLAGS, BTF_F_COMPACT);
	ASSERT_LE(0, attach_print(&self->rig, at_data, 8, 16));
	EXPECT_EQ(strlen(prints[0].text), result(&self->rig));
	EXPECT_STREQ("(struct", text);
}

TEST_F(print, the_current_task)
{
	struct area *area = &self->rig.area;
	const char *text = (const char *)&area->slot[LARGE_BUF];
	int id = btf_type_id(BTF_KIND_STRUCT, "task_struct");
	char pids[64];

	ASSERT_LT(0, id);
	area_set(area, ARG, id);
	area_set(area, FLAGS, BTF_F_COMPACT);
	ASSERT_LE(0, attach_print(&self->rig, at_current, 7168, 16));
	EXPECT_LT(0, (__s64)result(&self->rig));
	snprintf(pids, sizeof(pids), ".pid = (pid_t)%d,.tgid = (pid_t)%d,",
		 gettid(), getpid());
	EXPECT_NE(NULL, strstr(text, pids))
		TH_LOG("%s", text);
}

TEST_F(print, errors)
{
	struct area *area = &self->rig.area;
	int id = btf_type_id(BTF_KIND_STRUCT, "timespec64");

	ASSERT_LT(0, id);
	ASSERT_LE(0, attach_print(&self->rig, at_data, 256, 16));
	area_set(area, ARG, id);
	area_set(area, FLAGS, 1 << 4);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	area_set(area, FLAGS, UNKNOWN_FLAG);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));

	area_set(area, FLAGS, 0);
	area_set(area, ARG, 0);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	area_set(area, ARG, 0x7fffffff);
	EXPECT_EQ(-ENOENT, (__s64)result(&self->rig));

	area_set(area, ARG, id);
	ASSERT_LE(0, attach_print(&self->rig, at_data, 256, 12));
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
}

TEST_F(print, bad_address)
{
	struct area *area = &self->rig.area;
	int id = btf_type_id(BTF_KIND_STRUCT, "timespec64");

	ASSERT_LT(0, id);
	ASSERT_LE(0, attach_print(&self->rig, at_address, 256, 16));
	area_set(area, ARG, id);
	/* An address that cannot be one of the kernel's, and one that is not */
	area_set(area, DATA, (unsigned long)&id);
	EXPECT_EQ(-ERANGE, (__s64)result(&self->rig));
	area_set(area, DATA, UNMAPPED_KERNEL);
	EXPECT_EQ(-EFAULT, (__s64)result(&self->rig));
}

TEST_HARNESS_MAIN
