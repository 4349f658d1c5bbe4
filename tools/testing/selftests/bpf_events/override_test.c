// SPDX-License-Identifier: GPL-2.0
/* bpf_override_return() makes a probed function fail, where that is allowed */
#include <sys/sysmacros.h>
#include <sys/stat.h>

#include "common.h"
#include "error_log.h"
#include "link.h"
#include "uprobe.h"

#define LIST DEBUGFS "/error_injection/list"
/* Functions that are not there: one of maps, and what nanosleep(2) calls */
#define OTHER_FUNC "htab_map_update_elem"
#define SLEEP_FUNC "hrtimer_nanosleep"

/* Slots: runs of the program, what it returns for the function, and to whom */
enum { RUNS, VALUE, WHOM };

/*
 * Overrides BODY_FUNC in the process that slot WHOM names.  -EINVAL: the kernel
 * knows no such helper.
 */
static int override_prog(struct area *area, const char *license)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		AREA(BPF_REG_7, area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * RUNS),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * WHOM),
		BPF_JMP_REG(BPF_JNE, BPF_REG_0, BPF_REG_1, 3),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_7, 8 * VALUE),
		BPF_EMIT_CALL(BPF_FUNC_override_return),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	area_set(area, WHOM, getpid());
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.license = (unsigned long)license;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

/* Calls BODY_FUNC, and says whether it did its work */
static long call(bool *worked)
{
	struct timespec ts = { -1, -1 };
	long ret = syscall(__NR_sched_rr_get_interval, 0, &ts);

	*worked = ts.tv_nsec != -1;
	return neg_errno(ret);
}

FIXTURE(override) {
	struct probe probe;
	struct area area;
	int prog;
};

FIXTURE_VARIANT(override) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(override, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(override, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(override, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(override, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(override, kprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(override, kprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_SETUP(override)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create_at(&self->probe, "event", BODY_FUNC, 0,
				     variant->flags));
	self->prog = override_prog(&self->area, "GPL");
	if (self->prog == -EINVAL)
		SKIP(return, "CONFIG_BPF_KPROBE_OVERRIDE");
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(override)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(override, function_returns_what_the_program_says)
{
	const long values[] = { -EPERM, -EIO, -1, 0, 1, 12345, -4095 };
	bool worked;
	int i, fd;

	fd = attach_by(&self->probe, variant->link, self->prog);
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		area_set(&self->area, VALUE, values[i]);
		EXPECT_EQ(values[i], call(&worked));
		/* When it returns, it has worked */
		EXPECT_EQ(!!(variant->flags & PROBE_RETURN), worked);
		EXPECT_EQ(i + 1, area_get(&self->area, RUNS));
	}

	close(fd);
	EXPECT_EQ(0, call(&worked));
	EXPECT_TRUE(worked);
}

TEST_F(override, only_where_the_program_wants_it)
{
	bool worked;
	pid_t child;
	int i;

	ASSERT_LE(0, attach_by(&self->probe, variant->link, self->prog));
	area_set(&self->area, VALUE, -EIO);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(call(&worked) || !worked);
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(-EIO, call(&worked));

	for (i = 0; i < 3; i++) {
		area_set(&self->area, WHOM, i & 1 ? getpid() : 0);
		EXPECT_EQ(i & 1 ? -EIO : 0, call(&worked));
	}
	EXPECT_EQ(5, area_get(&self->area, RUNS));
}

/*
 * A function of a module, which reads of a device in memory call: a program on an
 * event that names the module overrides it also when the module has come back
 */

#define MODULES_ENV "BPF_EVENTS_MODULES"
#define MTD_MAJOR 90
#define MTD_FUNC "mtd:mtd_read"

FIXTURE(module) {
	struct probe probe;
	struct area area;
	char node[64];
	int prog;
};

FIXTURE_VARIANT(module) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(module, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(module, kprobe_event_link) {
	.link = true,
};

FIXTURE_VARIANT_ADD(module, kretprobe_event) {
	.flags = PROBE_RETURN,
};

static int load(const char *module)
{
	const char *dir = getenv(MODULES_ENV) ?: "/lib/modules";
	char path[256];
	int err, fd;

	snprintf(path, sizeof(path), "%s/%s.ko", dir, module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = neg_errno(syscall(__NR_finit_module, fd, "", 0));
	close(fd);
	return err;
}

static int load_all(void)
{
	return load("mtd") ?: load("mtdram");
}

static int unload(const char *module)
{
	return neg_errno(syscall(__NR_delete_module, module, O_NONBLOCK));
}

static int unload_all(void)
{
	return unload("mtdram") ?: unload("mtd");
}

/* One byte; 1, or why not */
static int read_device(const char *node)
{
	int ret, fd = open(node, O_RDONLY | O_CLOEXEC);
	char c;

	if (fd < 0)
		return -errno;
	ret = neg_errno(read(fd, &c, 1));
	close(fd);
	return ret;
}

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT(return, prepare());
	unload_all();
	if (load_all() == -ENOENT)
		SKIP(return, "CONFIG_MTD=m, CONFIG_MTD_MTDRAM=m, " MODULES_ENV " says where");
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VALUE, -EIO);
	snprintf(self->node, sizeof(self->node), "/tmp/bpf_events.%d", getpid());
	ASSERT_EQ(0, mknod(self->node, S_IFCHR | 0600, makedev(MTD_MAJOR, 0)));
	ASSERT_EQ(0, probe_create_at(&self->probe, "event", MTD_FUNC, 0, variant->flags));
	self->prog = override_prog(&self->area, "GPL");
	if (self->prog == -EINVAL)
		SKIP(return, "CONFIG_BPF_KPROBE_OVERRIDE");
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN(module)
{
	unlink(self->node);
}

TEST_F(module, comes_back)
{
	int i, fd;

	ASSERT_EQ(1, read_device(self->node));
	fd = attach_by(&self->probe, variant->link, self->prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EIO, read_device(self->node));
	for (i = 2; i < 4; i++) {
		ASSERT_EQ(0, unload_all());
		ASSERT_EQ(0, load_all());
		EXPECT_EQ(-EIO, read_device(self->node));
		EXPECT_EQ(i, area_get(&self->area, RUNS));
	}
	close(fd);
	EXPECT_EQ(1, read_device(self->node));
	EXPECT_EQ(0, unload_all());
}

/* What it is not for */

FIXTURE(refused) {
	struct probe probe;
	struct area area;
	int prog;
};

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = override_prog(&self->area, "GPL");
	if (self->prog == -EINVAL)
		SKIP(return, "CONFIG_BPF_KPROBE_OVERRIDE");
	ASSERT_LE(0, self->prog);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(refused, function_that_is_not_on_the_list)
{
	const unsigned int flags[] = { 0, PROBE_PMU, PROBE_PMU | PROBE_RETURN };
	char line[256];
	int i;

	ASSERT_TRUE(find_line(LIST, BODY_FUNC "\t", line, sizeof(line)));
	ASSERT_FALSE(find_line(LIST, OTHER_FUNC "\t", line, sizeof(line)));
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, probe_create_at(&self->probe, "event", OTHER_FUNC,
					     0, flags[i]));
		EXPECT_EQ(-EINVAL, attach(&self->probe, self->prog));
		EXPECT_EQ(-EINVAL, attach_link(&self->probe, self->prog, 0));
	}
}

/* An event with two probes.  Mainline looks at the first one only. */
TEST_F(refused, one_function_of_two_is_not_on_the_list)
{
	const char *funcs[2][2] = {
		{ BODY_FUNC, OTHER_FUNC }, { OTHER_FUNC, BODY_FUNC },
	};
	bool worked;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, probe_create_at(&self->probe, "event", funcs[i][0],
					     0, 0));
		ASSERT_EQ(0, event_add("event", "p %s", funcs[i][1]));
		EXPECT_EQ(-EINVAL, attach(&self->probe, self->prog));
		EXPECT_EQ(-EINVAL, attach_link(&self->probe, self->prog, 0));
		EXPECT_EQ(0, call(&worked));
		ASSERT_EQ(0, event_remove("event"));
	}
}

/* Whether it may join the event or not, it is not overridden */
TEST_F(refused, function_that_comes_after_the_program)
{
	struct timespec ts = { .tv_nsec = 1000 };
	bool worked;
	char line[256];

	ASSERT_FALSE(find_line(LIST, SLEEP_FUNC "\t", line, sizeof(line)));
	ASSERT_EQ(0, probe_create_at(&self->probe, "event", BODY_FUNC, 0, 0));
	ASSERT_LE(0, attach(&self->probe, self->prog));
	area_set(&self->area, VALUE, -EIO);
	event_add("event", "p %s", SLEEP_FUNC);
	EXPECT_EQ(0, neg_errno(syscall(__NR_nanosleep, &ts, NULL)));
	EXPECT_EQ(-EIO, call(&worked));
}

TEST_F(refused, inside_a_function)
{
	bool worked;

	ASSERT_EQ(0, probe_create_body(&self->probe, "event", BODY_FUNC, 0));
	EXPECT_EQ(-EINVAL, attach(&self->probe, self->prog));
	EXPECT_EQ(-EINVAL, attach_link(&self->probe, self->prog, 0));
	self->probe.flags = PROBE_PMU;
	EXPECT_EQ(-EINVAL, attach(&self->probe, self->prog));
	EXPECT_EQ(-EINVAL, attach_link(&self->probe, self->prog, 0));
	EXPECT_EQ(0, call(&worked));
	EXPECT_TRUE(worked);
}

TEST_F(refused, uprobe)
{
	const unsigned int flags[] = { 0, PROBE_PMU, PROBE_PMU | PROBE_RETURN };
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, uprobe_create(&self->probe, flags[i]));
		EXPECT_EQ(-EINVAL, attach(&self->probe, self->prog));
		EXPECT_EQ(-EINVAL, attach_link(&self->probe, self->prog, 0));
	}
}

/* Nobody could tell where a program that is called will run */
TEST_F(refused, tail_call)
{
	int progs = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	__u32 key = 0;

	ASSERT_LE(0, progs);
	EXPECT_EQ(-EINVAL, map_update(progs, &key, &self->prog));
}

TEST_F(refused, license)
{
	EXPECT_EQ(-EINVAL, override_prog(&self->area, "Proprietary"));
}

TEST_F(refused, reason_is_in_error_log)
{
	int perf;

	ASSERT_EQ(0, probe_create_at(&self->probe, "event", OTHER_FUNC, 0, 0));
	perf = probe_open(&self->probe);
	ASSERT_LE(0, perf);
	EXPECT_EQ(-EINVAL, perf_set_bpf(perf, self->prog));
	EXPECT_TRUE(logged(OVERRIDES, "SET_BPF " GROUP ":event fd %d", self->prog));
	EXPECT_EQ(-EINVAL, perf_link(perf, self->prog));
	EXPECT_TRUE(logged(OVERRIDES, "LINK_CREATE " GROUP ":event fd %d", self->prog));
}

TEST_F(refused, reason_that_a_probe_comes_too_late)
{
	const char *cmd = "p:" GROUP "/event " SLEEP_FUNC;

	ASSERT_EQ(0, probe_create_at(&self->probe, "event", BODY_FUNC, 0, 0));
	ASSERT_LE(0, attach(&self->probe, self->prog));
	EXPECT_EQ(-EBUSY, event_add("event", "p %s", SLEEP_FUNC));
	EXPECT_STREQ(entry_at("trace_kprobe",
			      "The event runs programs that override return values",
			      cmd, strstr(cmd, SLEEP_FUNC) - cmd), entries());
}

TEST_HARNESS_MAIN
