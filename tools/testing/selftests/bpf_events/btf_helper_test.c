// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers that need types of the program: they keep data of a task, and
 * call a function of the program with a mapping
 */
#include <pthread.h>

#include "common.h"
#include "call.h"
#include "types.h"

/* More slots */
enum { FLAGS = BUF, DATA, FOUND };

#define UNKNOWN_FLAG 0x10000000000ULL

FIXTURE(btf) {
	struct rig rig;
	int types;
};

FIXTURE_SETUP(btf)
{
	SKIP_WITHOUT(return, prepare());
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	self->types = types_load();
	ASSERT_LE(0, self->types);
}

FIXTURE_TEARDOWN_PARENT(btf)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Keeps a count for each task: it starts with what is in DATA */
static int attach_storage(struct rig *rig, int map)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8 * DATA),
		BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_get),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 0),
		BPF_MOV64_REG(BPF_REG_0, BPF_REG_1),
	};

	return attach_body(rig, body, ARRAY_SIZE(body));
}

static int attach_storage_delete(struct rig *rig, int map)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_delete),
	};

	return attach_body(rig, body, ARRAY_SIZE(body));
}

static void *result_of_thread(void *arg)
{
	return (void *)result(arg);
}

TEST_F(btf, task_storage)
{
	int map = storage_create(BPF_MAP_TYPE_TASK_STORAGE, self->types);
	int pidfd = syscall(__NR_pidfd_open, getpid(), 0);
	struct area *area = &self->rig.area;
	pthread_t thread;
	void *ret;
	__u64 val;

	ASSERT_LE(0, map);
	ASSERT_LE(0, pidfd);
	ASSERT_LE(0, attach_storage(&self->rig, map));
	area_set(area, DATA, 100);
	EXPECT_EQ(0, result(&self->rig));
	EXPECT_EQ(-ENOENT, map_lookup(map, &pidfd, &val));

	area_set(area, FLAGS, BPF_LOCAL_STORAGE_GET_F_CREATE);
	EXPECT_EQ(101, result(&self->rig));
	EXPECT_EQ(102, result(&self->rig));
	/* Each thread has its own */
	ASSERT_EQ(0, pthread_create(&thread, NULL, result_of_thread,
				    &self->rig));
	pthread_join(thread, &ret);
	EXPECT_EQ(101, (unsigned long)ret);
	EXPECT_EQ(103, result(&self->rig));
	ASSERT_EQ(0, map_lookup(map, &pidfd, &val));
	EXPECT_EQ(103, val);
	area_set(area, FLAGS, 0);
	EXPECT_EQ(104, result(&self->rig));
	area_set(area, FLAGS, UNKNOWN_FLAG);
	EXPECT_EQ(0, result(&self->rig));

	ASSERT_LE(0, attach_storage_delete(&self->rig, map));
	EXPECT_EQ(0, result(&self->rig));
	EXPECT_EQ(-ENOENT, (__s64)result(&self->rig));
	EXPECT_EQ(-ENOENT, map_lookup(map, &pidfd, &val));
}

/* Stores where the mapping that ARG points into starts in FOUND */
static int find_vma_prog(struct area *area, int types)
{
	const struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, getpid(), 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		AREA(BPF_REG_6, area, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 8 * ARG),
		/* The function at the end, 10 instructions after these two */
		BPF_LD_IMM64_RAW_FULL(BPF_REG_3, BPF_PSEUDO_FUNC, 0, 0, 10, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_5, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_find_vma),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_10, -8),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 8 * FOUND),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		/* vm_start is the first in struct vm_area_struct */
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_2, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_3, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const struct bpf_func_info funcs[] = {
		{ .insn_off = 0, .type_id = TYPE_PROG },
		{ .insn_off = ARRAY_SIZE(insns) - 4, .type_id = TYPE_CALLBACK },
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_btf_fd = types;
	attr.func_info_rec_size = sizeof(*funcs);
	attr.func_info = (unsigned long)funcs;
	attr.func_info_cnt = ARRAY_SIZE(funcs);
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

static __s64 find_vma(struct rig *rig, const void *addr, __u64 flags)
{
	area_set(&rig->area, ARG, (unsigned long)addr);
	area_set(&rig->area, FLAGS, flags);
	return result(rig);
}

TEST_F(btf, find_vma)
{
	struct rig *rig = &self->rig;
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_LE(0, rig_attach(rig, find_vma_prog(&rig->area, self->types)));
	EXPECT_EQ(0, find_vma(rig, pages + 2 * 4096 + 5, 0));
	EXPECT_EQ((unsigned long)pages, area_get(&rig->area, FOUND));

	ASSERT_EQ(0, munmap(pages + 4096, 4096));
	EXPECT_EQ(0, find_vma(rig, pages + 2 * 4096 + 5, 0));
	EXPECT_EQ((unsigned long)pages + 2 * 4096, area_get(&rig->area, FOUND));
	EXPECT_EQ(-ENOENT, find_vma(rig, pages + 4096, 0));
	EXPECT_EQ(-ENOENT, find_vma(rig, NULL, 0));
	EXPECT_EQ(0, area_get(&rig->area, FOUND));

	EXPECT_EQ(-EINVAL, find_vma(rig, pages, 1));
	EXPECT_EQ(-EINVAL, find_vma(rig, pages, UNKNOWN_FLAG));
	EXPECT_EQ(0, area_get(&rig->area, FOUND));
}

/* A program does not wait for the lock that mmap() holds */
TEST_F(btf, find_vma_within_mmap)
{
	struct rig *rig = &self->rig;

	ASSERT_EQ(0, event_remove(rig->probe.event));
	ASSERT_EQ(0, probe_create_at(&rig->probe, "event", "do_mmap", 0, 0));
	area_set(&rig->area, ARG, (unsigned long)&types);
	ASSERT_LE(0, rig_attach(rig, find_vma_prog(&rig->area, self->types)));
	area_set(&rig->area, RET, NOT_CALLED);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-EBUSY, (__s64)area_get(&rig->area, RET));
}

TEST_HARNESS_MAIN
