// SPDX-License-Identifier: GPL-2.0
/* The helpers that tell time, task and CPU, and those that print */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "common.h"
#include "call.h"

FIXTURE(helper) {
	struct rig rig;
};

FIXTURE_SETUP(helper)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(helper)
{
	EXPECT_STREQ("nothing", leftovers());
}

static __u64 clock_ns(int clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

TEST_F(helper, clocks)
{
	const struct {
		int helper, clock;
	} clocks[] = {
		{ BPF_FUNC_ktime_get_ns, CLOCK_MONOTONIC },
		{ BPF_FUNC_ktime_get_boot_ns, CLOCK_BOOTTIME },
	};
	__u64 before, after, seen;
	int i;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		ASSERT_LE(0, attach_call(&self->rig, clocks[i].helper));
		before = clock_ns(clocks[i].clock);
		seen = result(&self->rig);
		after = clock_ns(clocks[i].clock);
		EXPECT_LE(before, seen);
		EXPECT_GE(after, seen);
	}
}

TEST_F(helper, random_numbers)
{
	__u64 a, b, c;

	ASSERT_LE(0, attach_call(&self->rig, BPF_FUNC_get_prandom_u32));
	a = result(&self->rig);
	b = result(&self->rig);
	c = result(&self->rig);
	EXPECT_FALSE(a == b && b == c);
	EXPECT_GE(0xffffffff, a | b | c);
}

TEST_F(helper, cpu)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_CONF);

	ASSERT_LE(0, attach_call(&self->rig, BPF_FUNC_get_smp_processor_id));
	for (cpu = 0; cpu < cpus; cpu++) {
		if (!pin(cpu))
			EXPECT_EQ(cpu, result(&self->rig));
	}
}

static void *thread(void *arg)
{
	*(__u64 *)arg = (__u64)getpid() << 32 | gettid();
	hit();
	return NULL;
}

TEST_F(helper, pid_and_tid)
{
	__u64 expected = (__u64)getpid() << 32 | gettid();
	pthread_t other;

	ASSERT_LE(0, attach_call(&self->rig, BPF_FUNC_get_current_pid_tgid));
	EXPECT_EQ(expected, result(&self->rig));

	ASSERT_EQ(0, pthread_create(&other, NULL, thread, &expected));
	pthread_join(other, NULL);
	EXPECT_EQ(expected, area_get(&self->rig.area, RET));
	EXPECT_NE(expected >> 32, (__u32)expected);
}

TEST_F(helper, uid_and_gid)
{
	pid_t child;

	ASSERT_LE(0, attach_call(&self->rig, BPF_FUNC_get_current_uid_gid));
	EXPECT_EQ((__u64)getgid() << 32 | getuid(), result(&self->rig));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (setresgid(2000, 2000, 2000) || setresuid(1000, 1000, 1000))
			_exit(1);
		hit();
		_exit(0);
	}
	ASSERT_EQ(0, child_status(child));
	EXPECT_EQ(2000ULL << 32 | 1000, area_get(&self->rig.area, RET));
}

TEST_F(helper, comm)
{
	struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_2, 16),
		BPF_EMIT_CALL(BPF_FUNC_get_current_comm),
	};
	const char *buf = (const char *)&self->rig.area.slot[BUF];

	ASSERT_EQ(0, prctl(PR_SET_NAME, "bpfev-comm", 0, 0, 0));
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	memset(&self->rig.area.slot[BUF], 0xee, 32);
	EXPECT_EQ(0, result(&self->rig));
	/* The name and zeroes, to the end of the buffer */
	EXPECT_EQ(0, memcmp("bpfev-comm\0\0\0\0\0\0\xee", buf, 17));

	/* One that does not fit is cut off */
	body[2].imm = 6;
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	EXPECT_EQ(0, result(&self->rig));
	EXPECT_STREQ("bpfev", buf);
}

/* The registers of the caller, which the handler of a system call gets too */
TEST_F(helper, task)
{
	struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, REGS_ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_7, 8 * BUF),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * BUF + 8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * BUF + 16),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_EMIT_CALL(BPF_FUNC_task_pt_regs),
	};
	struct area *area = &self->rig.area;

	if (access("/sys/kernel/btf/vmlinux", F_OK))
		SKIP(return, "CONFIG_DEBUG_INFO_BTF");
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	EXPECT_EQ(result(&self->rig), area_get(area, BUF));
	EXPECT_NE(0, area_get(area, BUF + 1));
	EXPECT_EQ(area_get(area, BUF + 1), area_get(area, BUF + 2));
}

/* Cgroups: two, one below the other */

FIXTURE(cgroup) {
	struct rig rig;
	char root[64];
	char outer[96];
	char inner[128];
};

FIXTURE_SETUP(cgroup)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	snprintf(self->root, sizeof(self->root), "/tmp/bpf_events.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
	if (mount("cgroup2", self->root, "cgroup2", 0, NULL)) {
		rmdir(self->root);
		SKIP(return, "CONFIG_CGROUPS");
	}
	snprintf(self->outer, sizeof(self->outer), "%s/bpf_events", self->root);
	snprintf(self->inner, sizeof(self->inner), "%s/in", self->outer);
	ASSERT_EQ(0, mkdir(self->outer, 0755));
	ASSERT_EQ(0, mkdir(self->inner, 0755));
}

FIXTURE_TEARDOWN_PARENT(cgroup)
{
	EXPECT_EQ(0, rmdir(self->inner));
	EXPECT_EQ(0, rmdir(self->outer));
	EXPECT_EQ(0, umount(self->root));
	EXPECT_EQ(0, rmdir(self->root));
	EXPECT_STREQ("nothing", leftovers());
}

static __u64 cgroup_id(const char *dir)
{
	struct stat st;

	return stat(dir, &st) ? 0 : st.st_ino;
}

/* Hits the probe from a task in the cgroup */
static __u64 result_in(struct rig *rig, const char *dir)
{
	char procs[160];
	pid_t child;

	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	child = fork();
	if (!child) {
		if (write_file(procs, 0, "0"))
			_exit(1);
		hit();
		_exit(0);
	}
	return child_status(child) ? 12345 : area_get(&rig->area, RET);
}

TEST_F(cgroup, ids)
{
	struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ARG),
		BPF_EMIT_CALL(BPF_FUNC_get_current_ancestor_cgroup_id),
	};

	ASSERT_LE(0, attach_call(&self->rig, BPF_FUNC_get_current_cgroup_id));
	EXPECT_EQ(cgroup_id(self->outer), result_in(&self->rig, self->outer));
	EXPECT_EQ(cgroup_id(self->inner), result_in(&self->rig, self->inner));

	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	area_set(&self->rig.area, ARG, 1);
	EXPECT_EQ(cgroup_id(self->outer), result_in(&self->rig, self->inner));
	area_set(&self->rig.area, ARG, 2);
	EXPECT_EQ(cgroup_id(self->inner), result_in(&self->rig, self->inner));
	area_set(&self->rig.area, ARG, 3);
	EXPECT_EQ(0, result_in(&self->rig, self->inner));
}

TEST_F(cgroup, task_under)
{
	int map = map_create(BPF_MAP_TYPE_CGROUP_ARRAY, 4, 4, 2, 0);
	struct bpf_insn body[] = {
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_LDX_MEM(BPF_W, BPF_REG_2, BPF_REG_6, 8 * ARG),
		BPF_EMIT_CALL(BPF_FUNC_current_task_under_cgroup),
	};
	__u32 key = 0, dir = open(self->inner, O_RDONLY | O_DIRECTORY);

	ASSERT_LE(0, map);
	ASSERT_EQ(0, map_update(map, &key, &dir));
	close(dir);
	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	EXPECT_EQ(1, result_in(&self->rig, self->inner));
	EXPECT_EQ(0, result_in(&self->rig, self->outer));
	area_set(&self->rig.area, ARG, 1);
	EXPECT_EQ(-EAGAIN, (__s64)result_in(&self->rig, self->inner));
	area_set(&self->rig.area, ARG, 2);
	EXPECT_EQ(-E2BIG, (__s64)result_in(&self->rig, self->inner));
}

/* Printing: the trace has it, the program the length or an error */

FIXTURE(print) {
	struct rig rig;
};

FIXTURE_SETUP(print)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	ASSERT_EQ(0, write_file(TRACEFS "/tracing_on", 0, "1"));
	ASSERT_EQ(0, write_file(TRACEFS "/trace", O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(print)
{
	write_file(TRACEFS "/trace", O_TRUNC, "");
	EXPECT_STREQ("nothing", leftovers());
}

static bool printed(const char *text)
{
	char line[512];

	return find_line(TRACEFS "/trace", text, line, sizeof(line));
}

TEST_F(print, trace_printk)
{
	const char *fmt = (const char *)&self->rig.area.slot[BUF];
	struct bpf_insn body[] = {
		/* "bpfev %d %lx\n" on the stack */
		BPF_LD_IMM64_RAW_FULL(BPF_REG_1, 0, 0, 0, 0x65667062, 0x64252076),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -16),
		BPF_LD_IMM64_RAW_FULL(BPF_REG_1, 0, 0, 0, 0x786c2520, 0x0000000a),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -16),
		BPF_MOV64_IMM(BPF_REG_2, 16),
		BPF_MOV64_IMM(BPF_REG_3, -42),
		BPF_MOV64_IMM(BPF_REG_4, 0x7abc),
		BPF_MOV64_IMM(BPF_REG_5, 0),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
	};
	struct bpf_insn bad[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_MOV64_IMM(BPF_REG_3, 1),
		BPF_MOV64_IMM(BPF_REG_4, 2),
		BPF_MOV64_IMM(BPF_REG_5, 3),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
	};

	ASSERT_LE(0, attach_body(&self->rig, body, ARRAY_SIZE(body)));
	EXPECT_FALSE(printed("bpfev"));
	EXPECT_EQ(strlen("bpfev -42 7abc\n"), result(&self->rig));
	EXPECT_TRUE(printed("bpf_trace_printk: bpfev -42 7abc\n"));

	/* The format may come from a map, so errors show when it runs */
	ASSERT_LE(0, attach_body(&self->rig, bad, ARRAY_SIZE(bad)));
	memcpy((void *)fmt, "ok %d\0\0", 8);
	EXPECT_EQ(4, result(&self->rig));
	memcpy((void *)fmt, "no %q\0\0", 8);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	memcpy((void *)fmt, "no \x01\0\0\0", 8);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	memcpy((void *)fmt, "no end!!", 8);
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	EXPECT_FALSE(printed("bpf_trace_printk: no"));
	EXPECT_TRUE(printed("bpf_trace_printk: ok 1\n"));
}

/* Prints the format in BUF with @bytes of the arguments 1 to 5, more than trace_printk takes */
static int attach_vprintk(struct rig *rig, int bytes)
{
	struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -40, 1),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -32, 2),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -24, 3),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -16, 4),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 5),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_2, 32),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -40),
		BPF_MOV64_IMM(BPF_REG_4, bytes),
		BPF_EMIT_CALL(BPF_FUNC_trace_vprintk),
	};

	return attach_body(rig, body, ARRAY_SIZE(body));
}

TEST_F(print, trace_vprintk)
{
	char *fmt = (char *)&self->rig.area.slot[BUF];

	ASSERT_LE(0, attach_vprintk(&self->rig, 40));
	snprintf(fmt, 32, "%s", "bpfev %d %d %d %d %d");
	EXPECT_EQ(strlen("bpfev 1 2 3 4 5"), result(&self->rig));
	EXPECT_TRUE(printed("bpf_trace_vprintk: bpfev 1 2 3 4 5\n") ||
		    printed("bpf_trace_printk: bpfev 1 2 3 4 5\n"));
	/* More conversions than arguments */
	snprintf(fmt, 32, "%s", "no %d %d %d %d %d %d");
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	EXPECT_FALSE(printed("printk: no"));
}

TEST_F(print, trace_vprintk_half_an_argument)
{
	char *fmt = (char *)&self->rig.area.slot[BUF];

	ASSERT_LE(0, attach_vprintk(&self->rig, 12));
	snprintf(fmt, 32, "%s", "no %d");
	EXPECT_EQ(-EINVAL, (__s64)result(&self->rig));
	EXPECT_FALSE(printed("printk: no"));
}

TEST_HARNESS_MAIN
