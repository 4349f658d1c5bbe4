// SPDX-License-Identifier: GPL-2.0
/*
 * 32-bit tasks on a 64-bit kernel: programs that read their memory and their
 * stacks, probes in them, and what they attach themselves
 */
#include "common.h"
#include "compat_task.h"
#include "umulti.h"
#include "ways.h"

/* Its system calls */
enum {
	NR_READ = 3,
	NR_WRITE = 4,
	NR_IOCTL = 54,
	NR_SCHED_GET_PRIORITY_MAX = 159,
	NR_BPF = 357,
};

#define COMPAT_FUNC "__ia32_sys_sched_get_priority_max"

#ifdef COMPAT_TASK
asm(".pushsection .rodata\n"
	"compat_image: .incbin \"" COMPAT_TASK "\"\n"
	"compat_image_end:\n"
	".popsection");

static size_t compat_size(void)
{
	return compat_image_end - compat_image;
}

static const char *compat_start(void)
{
	return compat_image;
}
#else
static size_t compat_size(void)
{
	return 0;
}

static const char *compat_start(void)
{
	return NULL;
}
#endif

struct task {
	pid_t pid;
	int requests, results;
	int image;		/* its file */
	unsigned long offset;	/* where in that the table is */
	struct compat_table table;
};

static int image_create(struct task *task)
{
	const char *table = memmem(compat_start(), compat_size(), COMPAT_MAGIC,
				   sizeof(COMPAT_MAGIC));

	if (!table)
		return -ENOENT;
	memcpy(&task->table, table, sizeof(task->table));
	task->offset = table - compat_start();
	task->image = memfd_create("compat_task", 0);
	if (task->image < 0)
		return -errno;
	return write(task->image, compat_start(), compat_size()) == compat_size() ? 0 : -errno;
}

/* Where in its file a function is: before the table */
static unsigned long image_offset(const struct task *task, __u32 addr)
{
	return task->offset - (task->table.table - addr);
}

/* For probes: the file is in /proc/PID/fd of this process */
static const char *image_path(const struct task *task)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), task->image);
	return path;
}

/*
 * Has the task make a call in which it reads @in, or writes @out.  What it returns
 * is a number, or -errno.
 */
static int ask_with(struct task *task, const struct compat_request *r,
		    const void *in, size_t in_size, void *out, size_t out_size)
{
	int ret;

	if (write(task->requests, r, sizeof(*r)) != sizeof(*r) ||
	    write(task->requests, in, in_size) != in_size ||
	    read(task->results, out, out_size) != out_size ||
	    read(task->results, &ret, sizeof(ret)) != sizeof(ret))
		return -EPIPE;
	return ret;
}

static int ask(struct task *task, __u32 nr, __u32 a, __u32 b, __u32 c)
{
	const struct compat_request r = { .nr = nr, .args = { a, b, c } };

	return ask_with(task, &r, NULL, 0, NULL, 0);
}

/* Puts @data into its buffer, and says where it is for the task */
static __u32 put(struct task *task, size_t at, const void *data, size_t size)
{
	const struct compat_request r = {
		.nr = NR_READ, .args = { 0, task->table.buffer + at, size },
	};

	return ask_with(task, &r, data, size, NULL, 0) == size ? r.args[1] : 0;
}

static bool get(struct task *task, __u32 at, void *data, size_t size)
{
	const struct compat_request r = { .nr = NR_WRITE, .args = { 1, at, size } };

	return ask_with(task, &r, NULL, 0, data, size) == size;
}

/* Starts the task, which has those of our descriptors that are not CLOEXEC */
static int task_start(struct task *task)
{
	int in[2], out[2], err;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(image_path(task), "compat_task", NULL);
		err = -errno;
		_exit(write(1, &err, sizeof(err)) != sizeof(err));
	}
	close(in[0]);
	close(out[1]);
	task->pid = pid;
	task->requests = in[1];
	task->results = out[0];
	/* Of a task that is not there what is read is why */
	return ask(task, COMPAT_CALL, -1, 0, 0);
}

/* What the test has while it starts the task, the task has, too */
static void inherit(int fd)
{
	fcntl(fd, F_SETFD, 0);
}

FIXTURE(compat) {
	struct area area;
	struct probe probe;	/* on FUNC */
	struct task task;
	int perf, prog;		/* both are the task's, too */
};

FIXTURE_SETUP(compat)
{
	int err;

	SKIP_WITHOUT(return, ways_prepare());
	if (!compat_size())
		SKIP(return, "a compiler that has -m32");
	ASSERT_EQ(0, image_create(&self->task));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, 0));
	self->perf = probe_open(&self->probe);
	ASSERT_LE(0, self->perf);
	self->prog = count_prog(&self->area, 0, 0);
	ASSERT_LE(0, self->prog);
	inherit(self->perf);
	inherit(self->prog);
	inherit(self->area.fd);
	err = task_start(&self->task);
	if (err == -ENOEXEC)
		SKIP(return, "CONFIG_IA32_EMULATION");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN_PARENT(compat)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Reads memory */

/* Slots: what the helpers returned, and what they read */
enum { READ_RET, STR_RET, READ = 8, STR = 16 };

/* Reads what the first argument of a system call of the task points at */
static int read_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, REGS_ARG),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, offsetof(struct pt_regs, rbx)),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_LDX_MEM(BPF_W, BPF_REG_7, BPF_REG_10, -8),

		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * READ),
		BPF_MOV64_IMM(BPF_REG_2, 16),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_7),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * READ_RET),

		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * STR),
		BPF_MOV64_IMM(BPF_REG_2, 32),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_7),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user_str),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * STR_RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

TEST_F(compat, memory)
{
	static const char text[] = "of a task of 32 bits";
	__u32 at = put(&self->task, 0, text, sizeof(text));
	struct probe probe;
	/* No page is there, nor can one be */
	const __u32 bad[] = { 0, 0xfffffff0 };
	int i;

	ASSERT_NE(0, at);
	ASSERT_EQ(0, probe_create_at(&probe, "compat", COMPAT_FUNC, 0, 0));
	ASSERT_LE(0, attach(&probe, read_prog(&self->area)));
	EXPECT_EQ(-EINVAL, ask(&self->task, NR_SCHED_GET_PRIORITY_MAX, at, 0, 0));
	EXPECT_EQ(0, area_get(&self->area, READ_RET));
	EXPECT_EQ(0, memcmp(text, &self->area.slot[READ], 16));
	EXPECT_EQ(sizeof(text), area_get(&self->area, STR_RET));
	EXPECT_STREQ(text, (char *)&self->area.slot[STR]);

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ask(&self->task, NR_SCHED_GET_PRIORITY_MAX, bad[i], 0, 0);
		EXPECT_EQ(-EFAULT, area_get(&self->area, READ_RET));
		EXPECT_EQ(-EFAULT, area_get(&self->area, STR_RET));
		EXPECT_EQ(0, area_get(&self->area, READ));
	}
}

/* Probes in it */

enum { HITS, IP, RESULT, ARGUMENT, STACK_SIZE, STACK };

/* Counts, notes where it is, what was returned, the argument, and the stack */
static int user_prog(struct area *area, enum bpf_attach_type attach)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_1),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_0, 8 * HITS),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, offsetof(struct pt_regs, rip)),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * IP),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, REGS_RET),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RESULT),

		/* Above the return address */
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * ARGUMENT),
		BPF_MOV64_IMM(BPF_REG_2, 4),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_7, offsetof(struct pt_regs, rsp)),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 4),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user),

		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * STACK),
		BPF_MOV64_IMM(BPF_REG_3, 64),
		BPF_MOV64_IMM(BPF_REG_4, BPF_F_USER_STACK),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * STACK_SIZE),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), attach, 0);
}

FIXTURE(compat_uprobe) {
	FIXTURE_DATA(compat) c;
};

FIXTURE_VARIANT(compat_uprobe) {
	unsigned int flags;
	bool multi;
};

FIXTURE_VARIANT_ADD(compat_uprobe, event) {
	.flags = PROBE_USER,
};

FIXTURE_VARIANT_ADD(compat_uprobe, pmu) {
	.flags = PROBE_USER | PROBE_PMU,
};

FIXTURE_VARIANT_ADD(compat_uprobe, multi) {
	.multi = true,
};

FIXTURE_SETUP(compat_uprobe)
{
	compat_setup(_metadata, &self->c, NULL);
}

FIXTURE_TEARDOWN_PARENT(compat_uprobe)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int attach_in(const FIXTURE_VARIANT(compat_uprobe) * variant,
		     FIXTURE_DATA(compat) * c, __u32 addr, bool at_return)
{
	int prog = user_prog(&c->area, variant->multi ? BPF_TRACE_UPROBE_MULTI : 0);
	unsigned long offset = image_offset(&c->task, addr);
	struct probe probe;
	struct umulti m = {
		.flags = at_return ? BPF_F_UPROBE_MULTI_RETURN : 0,
		.path = image_path(&c->task), .cnt = 1, .offsets = { offset },
	};
	int err;

	if (variant->multi)
		return umulti_link(&m, prog);
	err = uprobe_create_at(&probe, at_return ? "returns" : "calls", image_path(&c->task),
			       offset, 0, variant->flags | (at_return ? PROBE_RETURN : 0));
	return err ?: attach(&probe, prog);
}

TEST_F(compat_uprobe, call)
{
	struct task *task = &self->c.task;
	struct area *area = &self->c.area;
	int fd = attach_in(variant, &self->c, task->table.leaf, false);

	ASSERT_LE(0, fd);
	/* More than 31 bits: nothing is extended by a sign */
	EXPECT_EQ(0x87654322, ask(task, COMPAT_CALL, 0x87654321, 0, 0));
	EXPECT_EQ(1, area_get(area, HITS));
	EXPECT_EQ(task->table.leaf, area_get(area, IP));
	EXPECT_EQ(0x87654321, area_get(area, ARGUMENT));
	close(fd);
	EXPECT_EQ(6, ask(task, COMPAT_CALL, 5, 0, 0));
	EXPECT_EQ(1, area_get(area, HITS));
}

TEST_F(compat_uprobe, return)
{
	struct task *task = &self->c.task;
	struct area *area = &self->c.area;
	int fd = attach_in(variant, &self->c, task->table.leaf, true), i;

	ASSERT_LE(0, fd);
	for (i = 1; i < 4; i++) {
		EXPECT_EQ(0x87654321 + i, ask(task, COMPAT_CALL, 0x87654320 + i, 0, 0));
		EXPECT_EQ(i, area_get(area, HITS));
		EXPECT_EQ(0x87654321 + i, area_get(area, RESULT));
		EXPECT_EQ(task->table.inner_ret, area_get(area, IP));
	}
	close(fd);
	EXPECT_EQ(6, ask(task, COMPAT_CALL, 5, 0, 0));
	EXPECT_EQ(3, area_get(area, HITS));
}

/* Of frame pointers of 32 bits */
TEST_F(compat_uprobe, stack)
{
	struct task *task = &self->c.task;
	struct area *area = &self->c.area;

	ASSERT_LE(0, attach_in(variant, &self->c, task->table.leaf_body, false));
	EXPECT_EQ(6, ask(task, COMPAT_CALL, 5, 0, 0));
	EXPECT_EQ(task->table.leaf_body, area_get(area, IP));
	EXPECT_LE(3 * 8, (__s64)area_get(area, STACK_SIZE));
	EXPECT_EQ(task->table.leaf_body, area_get(area, STACK));
	EXPECT_EQ(task->table.inner_ret, area_get(area, STACK + 1));
	EXPECT_EQ(task->table.outer_ret, area_get(area, STACK + 2));
}

/* Counts the hits of @tgid, or of all, in a slot */
static int count_of(struct area *area, unsigned int slot, enum bpf_prog_type type, int tgid)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(tgid ? BPF_JNE : BPF_JEQ, BPF_REG_0, tgid, 4),
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

/*
 * The events of system calls are those of 64 bits: one by a 32-bit task, with
 * another number, is none of them.  Raw tracepoints see all.
 */
TEST_F(compat, syscall_events)
{
	const char *event = sys_enter_kind.event;
	struct area *area = &self->area;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_period = 1,
	};
	int perf, i;

	ASSERT_TRUE(read_u64(event_file(TRACEFS, event, "id"), (__u64 *)&attr.config));
	perf = perf_open(&attr, -1, 0);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, perf_set_bpf(perf, count_of(area, 1, BPF_PROG_TYPE_TRACEPOINT, 0)));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_LE(0, filter_attach(INSTANCE, event,
				   count_of(area, 2, BPF_PROG_TYPE_RAW_TRACEPOINT, 0)));
	ASSERT_LE(0, raw_tp_open(count_of(area, 3, BPF_PROG_TYPE_RAW_TRACEPOINT,
					  self->task.pid), "sys_enter", 0));
	/* Nobody else makes this call */
	hits(2);
	EXPECT_EQ(2, area_get(area, 1));
	EXPECT_EQ(2, area_get(area, 2));
	EXPECT_EQ(0, area_get(area, 3));
	for (i = 0; i < 3; i++)
		EXPECT_LT(0, ask(&self->task, NR_SCHED_GET_PRIORITY_MAX, SCHED_FIFO, 0, 0));
	EXPECT_EQ(2, area_get(area, 1));
	EXPECT_EQ(2, area_get(area, 2));
	EXPECT_LE(3, area_get(area, 3));
}

/* What it attaches */

TEST_F(compat, set_bpf)
{
	struct query q = { .ids_len = 1 };
	__u32 at;

	EXPECT_EQ(-EBADF, ask(&self->task, NR_IOCTL, self->perf, PERF_EVENT_IOC_SET_BPF, 999));
	EXPECT_EQ(0, ask(&self->task, NR_IOCTL, self->perf, PERF_EVENT_IOC_SET_BPF,
			 self->prog));
	EXPECT_TRUE(runs(&self->area));

	/* The size of a pointer is in the number of this one */
	at = put(&self->task, 0, &q, sizeof(q));
	ASSERT_NE(0, at);
	EXPECT_EQ(0, ask(&self->task, NR_IOCTL, self->perf,
			 _IOWR('$', 10, __u32), at));
	ASSERT_TRUE(get(&self->task, at, &q, sizeof(q)));
	EXPECT_EQ(1, q.prog_cnt);
	EXPECT_EQ(prog_id(self->prog), q.ids[0]);
}

/* An attribute for bpf(2), with what it points at behind it */
static int ask_bpf(struct task *task, int cmd, const union bpf_attr *attr)
{
	__u32 at = put(task, 0, attr, sizeof(*attr));

	return at ? ask(task, NR_BPF, cmd, at, sizeof(*attr)) : -EIO;
}

TEST_F(compat, bpf)
{
	struct task *task = &self->task;
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, &self->area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	static const char license[] = "GPL", func[] = FUNC;
	union bpf_attr attr;
	__u64 sym;
	int prog, link;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.insns = put(task, 1024, insns, sizeof(insns));
	attr.license = put(task, 512, license, sizeof(license));
	prog = ask_bpf(task, BPF_PROG_LOAD, &attr);
	ASSERT_LE(0, prog);
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = prog;
	attr.link_create.target_fd = self->perf;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	link = ask_bpf(task, BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, link);
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(1, query_count(self->perf));

	/* An array of pointers has 64 bits for each of them */
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.expected_attach_type = BPF_TRACE_KPROBE_MULTI;
	attr.insns = put(task, 1024, insns, sizeof(insns));
	attr.license = put(task, 512, license, sizeof(license));
	prog = ask_bpf(task, BPF_PROG_LOAD, &attr);
	ASSERT_LE(0, prog);
	sym = put(task, 1024, func, sizeof(func));
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = prog;
	attr.link_create.attach_type = BPF_TRACE_KPROBE_MULTI;
	attr.link_create.kprobe_multi.syms = put(task, 512, &sym, sizeof(sym));
	attr.link_create.kprobe_multi.cnt = 1;
	ASSERT_LE(0, ask_bpf(task, BPF_LINK_CREATE, &attr));
	area_set(&self->area, 0, 0);
	hits(3);
	EXPECT_EQ(6, area_get(&self->area, 0));

	/* All of it goes with the task */
	kill(task->pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, child_status(task->pid));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_HARNESS_MAIN
