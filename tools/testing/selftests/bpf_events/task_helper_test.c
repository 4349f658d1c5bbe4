// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers that are about the current task: its memory, its stack, its ids
 * in a namespace and the branches it took
 */
#include <sys/stat.h>

#include "common.h"
#include "call.h"
#include "uprobe.h"

/* More slots: what else is given to a helper, and its buffer far behind */
enum { ARG2 = BUF, ARG3, LARGE_BUF = 64 };

#define UNKNOWN_FLAG 0x10000000000ULL
#define OLD 0x1111111111111111ULL
#define NEW 0x2222222222222222ULL

FIXTURE(task) {
	struct rig rig;
};

FIXTURE_SETUP(task)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(task)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Writes the eight bytes in ARG2 to where ARG points */
static const struct bpf_insn write_body[] = {
	BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ARG),
	BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * ARG2),
	BPF_MOV64_IMM(BPF_REG_3, 8),
	BPF_EMIT_CALL(BPF_FUNC_probe_write_user),
};

static __s64 write_user(struct rig *rig, const void *to)
{
	area_set(&rig->area, ARG, (unsigned long)to);
	area_set(&rig->area, ARG2, NEW);
	return result(rig);
}

TEST_F(task, probe_write_user)
{
	__u64 word[2] = { OLD, OLD };

	ASSERT_LE(0, attach_body(&self->rig, write_body,
				 ARRAY_SIZE(write_body)));
	EXPECT_EQ(0, write_user(&self->rig, &word[0]));
	EXPECT_EQ(NEW, word[0]);
	EXPECT_EQ(OLD, word[1]);
}

TEST_F(task, probe_write_user_to_a_bad_address)
{
	__u64 *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	__u64 banner = ksym("linux_proc_banner");

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_NE(0, banner);
	ASSERT_LE(0, attach_body(&self->rig, write_body,
				 ARRAY_SIZE(write_body)));

	/* Not there yet: programs on kprobes do not page in */
	EXPECT_EQ(-EFAULT, write_user(&self->rig, page));
	EXPECT_EQ(0, *page);
	*page = OLD;
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, write_user(&self->rig, page));
	EXPECT_EQ(OLD, *page);
	ASSERT_EQ(0, munmap(page, 4096));
	EXPECT_EQ(-EFAULT, write_user(&self->rig, page));

	EXPECT_EQ(-EFAULT, write_user(&self->rig, NULL));
	EXPECT_EQ(-EFAULT, write_user(&self->rig, (void *)banner));
}

TEST_F(task, probe_write_user_in_a_kernel_thread)
{
	struct rig *rig = &self->rig;
	__u64 word = OLD;

	ASSERT_EQ(0, event_remove(rig->probe.event));
	ASSERT_EQ(0, probe_create_at(&rig->probe, "event", KTHREAD_FUNC, 0, 0));
	area_set(&rig->area, RET, NOT_CALLED);
	area_set(&rig->area, ARG, (unsigned long)&word);
	ASSERT_LE(0, attach_body(rig, write_body, ARRAY_SIZE(write_body)));
	ASSERT_EQ(0, kthread_hit());
	EXPECT_EQ(-EPERM, wait_result(rig));
	EXPECT_EQ(OLD, word);
}

/* A program can change what the user's function finds in memory */
TEST_F(task, probe_write_user_from_a_uprobe)
{
	__u64 word = OLD;

	if (uprobe_prepare())
		SKIP(return, "%s", uprobe_prepare());
	ASSERT_EQ(0, uprobe_create(&self->rig.probe, 0));
	ASSERT_LE(0, attach_body(&self->rig, write_body,
				 ARRAY_SIZE(write_body)));
	area_set(&self->rig.area, ARG, (unsigned long)&word);
	area_set(&self->rig.area, ARG2, NEW);
	user_hits(1);
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	EXPECT_EQ(NEW, word);

	area_set(&self->rig.area, ARG, 0);
	user_hits(1);
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->rig.area, RET));
}

static bool is_in(const __u64 *ips, __s64 size, __u64 start, __u64 end)
{
	__s64 i;

	for (i = 0; i < size / 8; i++) {
		if (start <= ips[i] && ips[i] < end)
			return true;
	}
	return false;
}

TEST_F(task, get_task_stack)
{
	struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * LARGE_BUF),
		BPF_MOV64_IMM(BPF_REG_3, 8 * 64),
		BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 8 * ARG),
		BPF_EMIT_CALL(BPF_FUNC_get_task_stack),
	};
	struct area *area = &self->rig.area;
	__u64 *ips = &area->slot[LARGE_BUF], func = ksym(FUNC), second;
	__s64 size;

	ASSERT_NE(0, func);
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	size = result(&self->rig);
	EXPECT_LE(16, size);
	EXPECT_EQ(0, size % 8);
	EXPECT_TRUE(is_in(ips, size, func, func + 32));
	second = ips[1];

	/* Skip one frame */
	area_set(area, ARG, 1);
	EXPECT_EQ(size - 8, (__s64)result(&self->rig));
	EXPECT_EQ(second, ips[0]);

	area_set(area, ARG, BPF_F_USER_STACK);
	size = result(&self->rig);
	EXPECT_LE(8, size);
	EXPECT_TRUE(is_in(ips, 8, 1, 1ULL << 56));

	area_set(area, ARG, UNKNOWN_FLAG);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	area_set(area, ARG, 0);
	body[4].imm = 12;	/* not a whole number of frames */
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
}

TEST_F(task, get_branch_snapshot)
{
	struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * LARGE_BUF),
		BPF_MOV64_IMM(BPF_REG_2, 8 * 96),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * ARG),
		BPF_EMIT_CALL(BPF_FUNC_get_branch_snapshot),
	};
	__s64 ret;

	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	ret = result(&self->rig);
	/* Most CPUs keep no record of branches, virtual ones hardly ever do */
	if (ret != -ENOENT) {
		EXPECT_LT(0, ret);
		EXPECT_EQ(0, ret % sizeof(struct perf_branch_entry));
	}
	area_set(&self->rig.area, ARG, 1);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	area_set(&self->rig.area, ARG, UNKNOWN_FLAG);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
}

/* Which the pid namespace is goes to ARG (device) and ARG2 (inode) */
static int attach_ns(struct rig *rig, unsigned int size)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ARG),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 8 * ARG2),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8 * LARGE_BUF),
		BPF_MOV64_IMM(BPF_REG_4, size),
		BPF_EMIT_CALL(BPF_FUNC_get_ns_current_pid_tgid),
	};

	return attach_body(rig, body, ARRAY_SIZE(body));
}

static bool set_ns(struct rig *rig)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return false;
	area_set(&rig->area, ARG, st.st_dev);
	area_set(&rig->area, ARG2, st.st_ino);
	return true;
}

/* As "errno pid tgid" */
static const char *ns_result(struct rig *rig)
{
	static char text[64];
	const struct bpf_pidns_info *info = (void *)&rig->area.slot[LARGE_BUF];

	area_set(&rig->area, LARGE_BUF, OLD);
	hit();
	snprintf(text, sizeof(text), "%d %u %u",
		 (int)area_get(&rig->area, RET), info->pid, info->tgid);
	return text;
}

static const char *ns_error(int err)
{
	static char text[64];

	snprintf(text, sizeof(text), "%d 0 0", -err);
	return text;
}

TEST_F(task, get_ns_current_pid_tgid)
{
	struct rig *rig = &self->rig;
	char own[64];

	snprintf(own, sizeof(own), "0 %d %d", gettid(), getpid());
	if (!set_ns(rig))
		SKIP(return, "CONFIG_PID_NS");
	ASSERT_LE(0, attach_ns(rig, sizeof(struct bpf_pidns_info)));
	EXPECT_STREQ(own, ns_result(rig));

	area_set(&rig->area, ARG2, area_get(&rig->area, ARG2) + 1000);
	EXPECT_STREQ(ns_error(EINVAL), ns_result(rig));
	ASSERT_TRUE(set_ns(rig));
	area_set(&rig->area, ARG, area_get(&rig->area, ARG) + 1);
	EXPECT_STREQ(ns_error(EINVAL), ns_result(rig));
	ASSERT_TRUE(set_ns(rig));
	area_set(&rig->area, ARG, area_get(&rig->area, ARG) | 1ULL << 32);
	EXPECT_STREQ(ns_error(EINVAL), ns_result(rig));

	ASSERT_TRUE(set_ns(rig));
	ASSERT_LE(0, attach_ns(rig, sizeof(struct bpf_pidns_info) - 4));
	hit();
	EXPECT_EQ(-EINVAL, (__s64)area_get(&rig->area, RET));
}

/* The first process in a new pid namespace; 0 if the helper is right there */
static int check_new_ns(struct rig *rig)
{
	/* It is not in the one of its parent, although that has a pid for it */
	if (strcmp(ns_error(EINVAL), ns_result(rig)))
		return 1;
	if (!set_ns(rig))
		return 2;
	return strcmp("0 1 1", ns_result(rig)) ? 3 : 0;
}

TEST_F(task, get_ns_current_pid_tgid_in_another)
{
	pid_t child;

	if (!set_ns(&self->rig))
		SKIP(return, "CONFIG_PID_NS");
	ASSERT_LE(0, attach_ns(&self->rig, sizeof(struct bpf_pidns_info)));
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* The /proc of before knows it as well */
		_exit(check_new_ns(&self->rig));
	}
	EXPECT_EQ(0, child_status(child));
	/* This process itself is where it was */
	EXPECT_STREQ(ns_error(EINVAL), ns_result(&self->rig));
}

TEST_HARNESS_MAIN
