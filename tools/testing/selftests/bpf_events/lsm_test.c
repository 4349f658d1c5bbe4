// SPDX-License-Identifier: GPL-2.0
/* BPF_PROG_TYPE_LSM, which has the helpers of tracing programs */
#include <sched.h>
#include "common.h"
#include "hitter.h"
#include "tracing.h"
#include "types.h"

#define HOOK "bpf_lsm_task_getscheduler"

FIXTURE(lsm) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_SETUP(lsm)
{
	int id;

	SKIP_WITHOUT(return, tracing_prepare());
	id = btf_func_id(HOOK);
	if (id <= 0)
		SKIP(return, "CONFIG_BPF_LSM");
	if (!lsm_runs_programs())
		SKIP(return, "CONFIG_LSM without bpf");
	ASSERT_EQ(0, area_create(&self->area));
	load_attr(&self->attr, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, id);
}

FIXTURE_TEARDOWN_PARENT(lsm)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Returns @ret to this process; slot 1 becomes the cookie */
static int lsm_prog(union bpf_attr *attr, struct area *area, int ret)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

TEST_F(lsm, denies)
{
	int prog = lsm_prog(&self->attr, &self->area, -EPERM), fd;

	ASSERT_LE(0, prog);
	EXPECT_EQ(SCHED_OTHER, sched_getscheduler(0));
	fd = tracing_open_drop(prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, sched_getscheduler(0));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	EXPECT_EQ(SCHED_OTHER, sched_getscheduler(0));
}

TEST_F(lsm, allows)
{
	int prog = lsm_prog(&self->attr, &self->area, 0), fd;

	ASSERT_LE(0, prog);
	fd = tracing_link(prog, BPF_LSM_MAC, 77);
	ASSERT_LE(0, fd);
	EXPECT_EQ(SCHED_OTHER, sched_getscheduler(0));
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(77, area_get(&self->area, 1));
	close(prog);
	close(fd);
}

TEST_F(lsm, returns_nothing_but_errors)
{
	EXPECT_EQ(-EINVAL, lsm_prog(&self->attr, &self->area, 1));
}

/* Slots: storage that was not made, and that was not deleted */
enum { NOT_MADE = 1, NOT_DELETED };

static int storage_prog(union bpf_attr *attr, struct area *area, int map)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_9, 1),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_8),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_IMM(BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_get),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_9, 8 * NOT_MADE),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_8),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_delete),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_9, 8 * NOT_DELETED),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

static void *ask_without_end(void *arg)
{
	__u64 end = deadline();

	pin(0);
	while (now_ns() < end)
		sched_getscheduler(0);
	return NULL;
}

/* One that was preempted inside an operation on its storage does not keep others from theirs */
TEST_F(lsm, storage_of_a_task_is_its_own)
{
	pthread_t threads[8];
	int i, map, prog, link;

	map = storage_create(BPF_MAP_TYPE_TASK_STORAGE, types_load());
	ASSERT_LE(0, map);
	prog = storage_prog(&self->attr, &self->area, map);
	ASSERT_LE(0, prog);
	link = tracing_open_drop(prog);
	ASSERT_LE(0, link);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, ask_without_end, NULL));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	close(link);
	EXPECT_LT(0, area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, NOT_MADE));
	EXPECT_EQ(0, area_get(&self->area, NOT_DELETED));
}

TEST_F(lsm, is_for_hooks)
{
	self->attr.attach_btf_id = btf_func_id(FUNC);
	ASSERT_LT(0, (int)self->attr.attach_btf_id);
	EXPECT_EQ(-EINVAL, lsm_prog(&self->attr, &self->area, 0));
}

TEST_HARNESS_MAIN
