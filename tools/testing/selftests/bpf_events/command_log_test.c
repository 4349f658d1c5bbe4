// SPDX-License-Identifier: GPL-2.0
/*
 * The log that any command of bpf(2) takes, see struct bpf_common_attr: what is said
 * there of programs, types and maps that do not load, and of links that are refused
 */
#include <limits.h>
#include <pthread.h>
#include <linux/btf.h>

#include "common.h"
#include "error_log.h"
#include "late_page.h"
#include "link.h"
#include "multi.h"
#include "raw_tp.h"
#include "types.h"
#include "umulti.h"

#define UNPRIV "/proc/sys/kernel/unprivileged_bpf_disabled"
#define UNREADABLE 8
#define NO_SUCH_TRACEPOINT "no_such_tracepoint"
#define COMMON_SIZE sizeof(struct bpf_common_attr)

/* The log, and behind it what must stay as it is */
static char text[8192];

static struct bpf_common_attr log_attr(size_t size, __u32 level)
{
	memset(text, 'x', sizeof(text) - 1);
	return (struct bpf_common_attr) {
		.log_buf = (unsigned long)text,
		.log_size = size,
		.log_level = level,
		.log_true_size = ~0U,
	};
}

static bool begins(const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static int bpf_with(int cmd, union bpf_attr *attr, const void *common, size_t size)
{
	return neg_errno(syscall(__NR_bpf, cmd | BPF_COMMON_ATTRS, attr, sizeof(*attr), common,
				 size));
}

/* With a log that has room; leaves it in @text, and checks what is said of its size */
static int bpf_logged(struct __test_metadata *_metadata, int cmd, const union bpf_attr *attr)
{
	struct bpf_common_attr common = log_attr(4096, 1);
	union bpf_attr copy = *attr;
	int ret = bpf_with(cmd, &copy, &common, sizeof(common));

	EXPECT_EQ(*text ? strlen(text) + 1 : 0, common.log_true_size);
	return ret;
}

FIXTURE(log) {
	struct area area;
	union bpf_attr none;	/* to open a tracepoint that does not exist */
	union bpf_attr map;
	int prog;
};

FIXTURE_SETUP(log)
{
	SKIP_WITHOUT(return, multi_prepare() ?: uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	raw_tp_attr(&self->none);
	self->prog = own_count_prog(&self->none, &self->area);
	ASSERT_LE(0, self->prog);
	self->none = (union bpf_attr) {
		.raw_tracepoint.name = (unsigned long)NO_SUCH_TRACEPOINT,
		.raw_tracepoint.prog_fd = self->prog,
	};
	self->map = (union bpf_attr) {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8,
		.max_entries = 1, .map_name = BPF_NAME,
	};
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(log)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

/* libbpf takes -EFAULT for yes */
TEST_F(log, does_the_kernel_know_it)
{
	union bpf_attr attr = {};

	EXPECT_EQ(-EFAULT, bpf_with(BPF_PROG_LOAD, &attr, NULL, COMMON_SIZE));
	EXPECT_EQ(-EFAULT, bpf_with(BPF_PROG_LOAD, &attr, (void *)UNREADABLE, COMMON_SIZE));
	/* Without the bit, nobody looks there */
	EXPECT_EQ(-ENOENT, neg_errno(syscall(__NR_bpf, BPF_RAW_TRACEPOINT_OPEN, &self->none,
					     sizeof(self->none), UNREADABLE, COMMON_SIZE)));
}

/* A second program for a perf event, whose log goes to where nobody can write yet */
struct second {
	union bpf_attr attr;
	struct bpf_common_attr common;
	int ret;
};

static void *link_second(void *arg)
{
	struct second *s = arg;

	s->ret = bpf_with(BPF_LINK_CREATE, &s->attr, &s->common, sizeof(s->common));
	return NULL;
}

TEST_F(log, memory_that_comes_late)
{
	struct second second = {};
	struct late_page page;
	struct probe probe;
	pthread_t thread;
	pid_t child;
	int event;

	SKIP_WITHOUT(return, late_page_missing());
	ASSERT_EQ(0, late_page_create(&page));
	ASSERT_EQ(0, probe_create_at(&probe, "event", FUNC, 0, 0));
	event = attach(&probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, event);
	second.attr.link_create.prog_fd = count_prog(&self->area, 0, 0);
	second.attr.link_create.target_fd = event;
	second.attr.link_create.attach_type = BPF_PERF_EVENT;
	second.common = log_attr(4096, 1);
	second.common.log_buf = (unsigned long)page.mem - 1;
	ASSERT_EQ(0, pthread_create(&thread, NULL, link_second, &second));
	ASSERT_TRUE(wait_until(late_page_is_awaited(&page)));

	/* Nobody else waits for it */
	child = fork();
	if (!child)
		_exit(perf_set_bpf(event, second.attr.link_create.prog_fd) == -EEXIST);
	EXPECT_EQ(1, status_in_time(child));
	ASSERT_EQ(0, late_page_give(&page, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(-EEXIST, second.ret);
	EXPECT_STREQ("This perf event has a program already, open another for the next",
		     strtok(page.mem - 1, "\n"));
	close(event);
	EXPECT_EQ(0, event_remove(probe.event));
}

TEST_F(log, more_than_the_kernel_knows)
{
	struct {
		struct bpf_common_attr common;
		__u64 more;
	} big = { log_attr(4096, 1), 0 };

	EXPECT_EQ(-ENOENT, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &big, sizeof(big)));
	big.more = 1;
	EXPECT_EQ(-E2BIG, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &big, sizeof(big)));
	EXPECT_EQ(-E2BIG, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &big, 1 << 20));
}

TEST_F(log, less_than_the_kernel_knows)
{
	const size_t size = offsetof(struct bpf_common_attr, log_true_size);
	struct bpf_common_attr common = log_attr(4096, 1);

	EXPECT_EQ(-ENOENT, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &common, size));
	EXPECT_TRUE(begins("No tracepoint has this name\n"));
	EXPECT_EQ(~0U, common.log_true_size);
	/* No log at all */
	EXPECT_EQ(-ENOENT, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &common, 0));
}

TEST_F(log, bad)
{
	const int cmds[] = { BPF_MAP_CREATE, BPF_RAW_TRACEPOINT_OPEN };
	const union bpf_attr *attrs[] = { &self->map, &self->none };
	struct bpf_common_attr common;
	union bpf_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		attr = *attrs[i];
		common = log_attr(4096, 0);
		EXPECT_EQ(-EINVAL, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
		common = log_attr(0, 1);
		EXPECT_EQ(-EINVAL, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
		common = log_attr(4096, 16);
		EXPECT_EQ(-EINVAL, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
		common = log_attr(~0U, 1);
		EXPECT_EQ(-EINVAL, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
		common = log_attr(4096, 1);
		common.log_buf = 0;
		EXPECT_EQ(-EINVAL, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
		common.log_buf = UNREADABLE;
		EXPECT_EQ(-EFAULT, bpf_with(cmds[i], &attr, &common, COMMON_SIZE));
	}
	EXPECT_STREQ("", entries());
}

TEST_F(log, is_empty_where_nothing_is_wrong)
{
	union bpf_attr attr = self->none;

	EXPECT_LE(0, bpf_logged(_metadata, BPF_MAP_CREATE, &self->map));
	EXPECT_STREQ("", text);
	attr.raw_tracepoint.name = (unsigned long)"task_rename";
	EXPECT_LE(0, bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &attr));
	EXPECT_STREQ("", text);
	/* A command that has nothing to say */
	attr = (union bpf_attr) { .start_id = INT_MAX - 1 };
	EXPECT_EQ(-ENOENT, bpf_logged(_metadata, BPF_PROG_GET_NEXT_ID, &attr));
	EXPECT_STREQ("", text);
}

/* The two commands with a log of their own */

FIXTURE(own_log) {
	union bpf_attr attr;	/* wrong in a way that the log tells */
	__u64 *buf;
	__u32 *size, *level, *true_size;
};

FIXTURE_VARIANT(own_log) {
	int cmd;
};

FIXTURE_VARIANT_ADD(own_log, program) {
	.cmd = BPF_PROG_LOAD,
};

FIXTURE_VARIANT_ADD(own_log, types) {
	.cmd = BPF_BTF_LOAD,
};

FIXTURE_SETUP(own_log)
{
	static const struct bpf_insn insns[] = { BPF_EXIT_INSN() };
	static const struct btf_header head = { .magic = BTF_MAGIC, .version = BTF_VERSION + 1 };
	union bpf_attr *attr = &self->attr;

	SKIP_WITHOUT(return, prepare());
	if (variant->cmd == BPF_PROG_LOAD) {
		prog_attr(attr, insns, ARRAY_SIZE(insns));
		self->buf = (__u64 *)&attr->log_buf;
		self->size = &attr->log_size;
		self->level = &attr->log_level;
		self->true_size = &attr->log_true_size;
	} else {
		memset(attr, 0, sizeof(*attr));
		attr->btf = (unsigned long)&head;
		attr->btf_size = sizeof(head);
		self->buf = (__u64 *)&attr->btf_log_buf;
		self->size = &attr->btf_log_size;
		self->level = &attr->btf_log_level;
		self->true_size = &attr->btf_log_true_size;
	}
}

FIXTURE_TEARDOWN_PARENT(own_log)
{
	EXPECT_STREQ("nothing", leftovers());
}

static void own_log_set(FIXTURE_DATA(own_log) * self, const struct bpf_common_attr *common)
{
	*self->buf = common->log_buf;
	*self->size = common->log_size;
	*self->level = common->log_level;
}

TEST_F(own_log, says_the_same)
{
	struct bpf_common_attr common = log_attr(4096, 1);
	char own[4096];
	int err;

	own_log_set(self, &common);
	err = sys_bpf(variant->cmd, &self->attr);
	EXPECT_GT(0, err);
	EXPECT_LT(1, strlen(text));
	EXPECT_EQ(strlen(text) + 1, *self->true_size);
	memcpy(own, text, sizeof(own));

	own_log_set(self, &(struct bpf_common_attr) {});
	*self->true_size = 0;
	common = log_attr(4096, 1);
	EXPECT_EQ(err, bpf_with(variant->cmd, &self->attr, &common, COMMON_SIZE));
	EXPECT_STREQ(own, text);
	EXPECT_EQ(strlen(own) + 1, common.log_true_size);
	EXPECT_EQ(strlen(own) + 1, *self->true_size);

	/* Only asked how long it is */
	common = log_attr(0, 1);
	common.log_buf = 0;
	EXPECT_EQ(err, bpf_with(variant->cmd, &self->attr, &common, COMMON_SIZE));
	EXPECT_EQ(strlen(own) + 1, common.log_true_size);
}

TEST_F(own_log, in_both_places)
{
	struct bpf_common_attr common = log_attr(4096, 1), other = common;
	int err;

	own_log_set(self, &common);
	err = sys_bpf(variant->cmd, &self->attr);
	common = log_attr(4096, 1);
	EXPECT_EQ(err, bpf_with(variant->cmd, &self->attr, &common, COMMON_SIZE));
	EXPECT_EQ(strlen(text) + 1, common.log_true_size);

	other.log_size--;
	EXPECT_EQ(-EINVAL, bpf_with(variant->cmd, &self->attr, &other, COMMON_SIZE));
	other = common;
	other.log_buf++;
	EXPECT_EQ(-EINVAL, bpf_with(variant->cmd, &self->attr, &other, COMMON_SIZE));
	other = common;
	other.log_level = 2;
	EXPECT_EQ(-EINVAL, bpf_with(variant->cmd, &self->attr, &other, COMMON_SIZE));
	/* None there */
	other = (struct bpf_common_attr) {};
	EXPECT_EQ(err, bpf_with(variant->cmd, &self->attr, &other, COMMON_SIZE));
	EXPECT_EQ(strlen(text) + 1, other.log_true_size);
}

TEST_F(own_log, is_cut_off)
{
	struct bpf_common_attr common = log_attr(8, 1);

	EXPECT_EQ(-ENOSPC, bpf_with(variant->cmd, &self->attr, &common, COMMON_SIZE));
	EXPECT_LT(8, common.log_true_size);
	EXPECT_EQ(7, strlen(text));
	EXPECT_EQ('x', text[8]);
}

/* Maps */

static void expect_map_refused(struct __test_metadata *_metadata, int err, const char *why,
			       const union bpf_attr *attr)
{
	EXPECT_EQ(err, bpf_logged(_metadata, BPF_MAP_CREATE, attr));
	EXPECT_STREQ(why, text);
}

#define expect_map(err, why, field, val) ({				\
	union bpf_attr attr_ = self->map;				\
									\
	attr_.field = val;						\
	expect_map_refused(_metadata, err, why, &attr_);		\
})

TEST_F(log, why_a_map_is_refused)
{
	expect_map(-EINVAL, "This kernel knows no map type 12345\n", map_type, 12345);
	expect_map(-EINVAL, "This kernel is built without map type 0\n", map_type, 0);
	expect_map(-EINVAL, "Sizes, max_entries or flags do not fit this type of map\n",
		   key_size, 3);
	expect_map(-EINVAL, "map_extra is for bloom filters and arenas\n", map_extra, 1);
	expect_map(-EINVAL, "btf_key_type_id needs btf_value_type_id\n", btf_key_type_id, 1);
	expect_map(-EINVAL, "btf_vmlinux_value_type_id is for struct_ops maps alone\n",
		   btf_vmlinux_value_type_id, 1);
	expect_map(-EINVAL, "BPF_F_RDONLY excludes BPF_F_WRONLY\n", map_flags,
		   BPF_F_RDONLY | BPF_F_WRONLY);
	self->map.numa_node = 1023;
	expect_map(-EINVAL, "NUMA node 1023 is not online\n", map_flags, BPF_F_NUMA_NODE);
}

/* In a child with these capabilities alone */
static void expect_map_without(struct __test_metadata *_metadata, __u64 caps,
			       const char *why, const union bpf_attr *attr)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(caps) || bpf_logged(_metadata, BPF_MAP_CREATE, attr) != -EPERM)
			_exit(1);
		_exit(strcmp(why, text) ? 2 : 0);
	}
	EXPECT_EQ(0, child_status(child)) TH_LOG("%s", why);
}

TEST_F(log, which_capability_a_map_needs)
{
	__u64 disabled;

	ASSERT_TRUE(read_u64(UNPRIV, &disabled));
	self->map.map_type = BPF_MAP_TYPE_DEVMAP;
	self->map.value_size = 4;
	expect_map_without(_metadata, CAP(BPF), "A map of this type needs CAP_NET_ADMIN\n",
			   &self->map);
	self->map.map_type = BPF_MAP_TYPE_LRU_HASH;
	if (!disabled) {
		expect_map_without(_metadata, 0, "A map of this type needs CAP_BPF\n", &self->map);
		EXPECT_EQ(0, write_file(UNPRIV, 0, "2"));
	}
	expect_map_without(_metadata, 0,
			   "kernel.unprivileged_bpf_disabled is set, so this needs CAP_BPF\n",
			   &self->map);
	if (!disabled)
		EXPECT_EQ(0, write_file(UNPRIV, 0, "0"));
}

/* Links */

/* The entry that error_log should have, by what the log says */
static const char *as_entry(void)
{
	char error[256], cmd[512], caret[512];

	if (sscanf(text, "%255[^\n]\n  %511[^\n]%*1[\n]%511[ ^]\n", error, cmd, caret) != 3)
		return text;
	return entry_at("bpf_event", error, cmd, strlen(caret) - strlen("  ^"));
}

static void expect_link_refused(struct __test_metadata *_metadata, int err, const char *why,
				int cmd, const union bpf_attr *attr)
{
	EXPECT_EQ(err, bpf_logged(_metadata, cmd, attr));
	EXPECT_TRUE(begins(why)) TH_LOG("%s, not %s", text, why);
	EXPECT_STREQ(as_entry(), entries());
}

TEST_F(log, why_a_tracepoint_is_refused)
{
	expect_link_refused(_metadata, -ENOENT, "No tracepoint has this name\n",
			    BPF_RAW_TRACEPOINT_OPEN, &self->none);
	EXPECT_STREQ("No tracepoint has this name\n"
		     "  RAW_TRACEPOINT_OPEN no_such_tracepoint\n"
		     "                      ^\n", text);
}

TEST_F(log, why_a_perf_event_is_refused)
{
	struct probe probe;
	union bpf_attr attr = {
		.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_KPROBE, 0,
						      BPF_F_SLEEPABLE),
		.link_create.attach_type = BPF_PERF_EVENT,
	};

	ASSERT_EQ(0, probe_create(&probe, 0));
	attr.link_create.target_fd = probe_open(&probe);
	expect_link_refused(_metadata, -EINVAL, SLEEPS "\n", BPF_LINK_CREATE, &attr);
}

TEST_F(log, why_a_function_is_refused)
{
	static const char * const syms[] = { FUNC, FUNC };
	__u64 addrs[] = { 0x1000 };
	union bpf_attr attr = {
		.link_create.prog_fd = tally_prog(&self->area, BPF_TRACE_KPROBE_MULTI, 0),
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi.syms = (unsigned long)syms,
		.link_create.kprobe_multi.cnt = ARRAY_SIZE(syms),
	};

	expect_link_refused(_metadata, -ESRCH,
			    "This symbol is in the list twice\n",
			    BPF_LINK_CREATE, &attr);
	attr.link_create.kprobe_multi.syms = 0;
	attr.link_create.kprobe_multi.addrs = (unsigned long)addrs;
	attr.link_create.kprobe_multi.cnt = ARRAY_SIZE(addrs);
	expect_link_refused(_metadata, -EINVAL,
			    "Not the start of a function that can be traced\n",
			    BPF_LINK_CREATE, &attr);
}

TEST_F(log, why_a_place_is_refused)
{
	struct umulti umulti;
	union bpf_attr attr;

	umulti_init(&umulti, 0);
	umulti.offsets[1] = -1;
	umulti_attr(&umulti, tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0), &attr);
	expect_link_refused(_metadata, -EINVAL, "This offset is negative\n", BPF_LINK_CREATE,
			    &attr);
	umulti_init(&umulti, 0);
	umulti.offsets[1] = 1ULL << 40;
	umulti_attr(&umulti, attr.link_create.prog_fd, &attr);
	expect_link_refused(_metadata, -EINVAL, "Outside the file, ", BPF_LINK_CREATE, &attr);
}

/* What is wrong with a field, @val in @field of @good */
#define expect_link(err, why, good, field, val) ({				\
	union bpf_attr attr_ = good;						\
										\
	attr_.link_create.field = val;						\
	expect_link_refused(_metadata, err, why "\n", BPF_LINK_CREATE, &attr_);	\
})

#define LINK_FLAGS \
	"link_create.flags has to be 0, flags of multi links are in a field of their own"
#define WHERE "Functions are given by either syms or addrs"
#define NOWHERE "A link needs a path, offsets, and their count"

TEST_F(log, why_a_kprobe_multi_link_is_refused)
{
	static char name[513];	/* longer than the kernel's KSYM_NAME_LEN */
	static const char * const syms[] = { FUNC }, * const names[] = { FUNC, name };
	const __u64 addrs[] = { 0 };
	union bpf_attr good = {
		.link_create.prog_fd = tally_prog(&self->area, BPF_TRACE_KPROBE_MULTI, 0),
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi.syms = (unsigned long)syms,
		.link_create.kprobe_multi.cnt = 1,
	};

	expect_link(-EINVAL, LINK_FLAGS, good, flags, 1);
	expect_link(-EINVAL, "The only flag of a kprobe_multi link is BPF_F_KPROBE_MULTI_RETURN",
		    good, kprobe_multi.flags, 2);
	expect_link(-EINVAL, "This program may sleep, which only uprobes allow", good, prog_fd,
		    prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI,
				   BPF_F_SLEEPABLE));
	expect_link(-EINVAL, WHERE, good, kprobe_multi.syms, 0);
	EXPECT_TRUE(!!strstr(text, "  LINK_CREATE kprobe_multi no syms, no addrs\n"));
	expect_link(-EINVAL, WHERE, good, kprobe_multi.addrs, (unsigned long)addrs);
	EXPECT_TRUE(!!strstr(text, "  LINK_CREATE kprobe_multi syms, addrs\n"));
	expect_link(-EINVAL, "A link needs a function at least", good, kprobe_multi.cnt, 0);
	expect_link(-E2BIG, "A link takes 1048576 functions at most", good, kprobe_multi.cnt,
		    1048577);
	memset(name, 'x', sizeof(name) - 1);
	good.link_create.kprobe_multi.syms = (unsigned long)names;
	expect_link(-E2BIG, "No symbol has a name of this length", good, kprobe_multi.cnt, 2);
	EXPECT_TRUE(!!strstr(text, "  LINK_CREATE kprobe_multi syms[1]\n"));
}

TEST_F(log, why_a_uprobe_multi_link_is_refused)
{
	const struct bpf_insn override[] = {
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_override_return),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct umulti umulti;
	union bpf_attr good;

	umulti_init(&umulti, 0);
	umulti_attr(&umulti, tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0), &good);
	expect_link(-EINVAL, LINK_FLAGS, good, flags, 1);
	expect_link(-EINVAL, "The only flag of a uprobe_multi link is BPF_F_UPROBE_MULTI_RETURN",
		    good, uprobe_multi.flags, 2);
	expect_link(-EINVAL, "This is no pid; 0 is for all processes", good, uprobe_multi.pid, -1);
	expect_link(-EINVAL,
		    "The program overrides return values, which is for functions of the kernel",
		    good, prog_fd, prog_load_as(override, ARRAY_SIZE(override),
						BPF_TRACE_UPROBE_MULTI, 0));
	expect_link(-EINVAL, NOWHERE, good, uprobe_multi.path, 0);
	EXPECT_TRUE(!!strstr(text, "  LINK_CREATE uprobe_multi no path, offsets, cnt "));
	expect_link(-EINVAL, NOWHERE, good, uprobe_multi.offsets, 0);
	expect_link(-EINVAL, NOWHERE, good, uprobe_multi.cnt, 0);
	expect_link(-E2BIG, "A link takes 1048576 places at most", good, uprobe_multi.cnt,
		    1048577);
}

TEST_F(log, why_a_link_to_a_perf_event_is_refused)
{
	struct probe probe;
	union bpf_attr good = {
		.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_KPROBE, 0, 0),
		.link_create.attach_type = BPF_PERF_EVENT,
	};

	ASSERT_EQ(0, probe_create(&probe, 0));
	good.link_create.target_fd = probe_open(&probe);
	expect_link(-EINVAL, LINK_FLAGS, good, flags, 1);
	expect_link(-EBADF, "This descriptor is not a perf event", good, target_fd, 999);
	expect_link(-EBADF, "This descriptor is not a perf event", good, target_fd,
		    self->area.fd);
}

/* Before it is known what it is to be attached to, which error_log says */
TEST_F(log, why_a_program_takes_no_link)
{
	union bpf_attr open = { .raw_tracepoint.prog_fd = 999 };
	static char name[1024];
	union bpf_attr attr = {
		.link_create.prog_fd = 999,
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
	};

	EXPECT_EQ(-EBADF, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_STREQ("prog_fd 999 is not a BPF program\n", text);
	EXPECT_EQ(-EBADF, bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &open));
	EXPECT_STREQ("prog_fd 999 is not a BPF program\n", text);
	open.raw_tracepoint.prog_fd = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);
	EXPECT_EQ(-EINVAL, bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &open));
	EXPECT_STREQ("Programs of type 1 do not go to tracepoints\n", text);
	memset(name, 'x', sizeof(name) - 1);
	open = self->none;
	open.raw_tracepoint.name = (unsigned long)name;
	EXPECT_EQ(-ENOENT, bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &open));
	EXPECT_STREQ("No tracepoint has a name of this length\n", text);
	attr.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_KPROBE, 0, 0);
	EXPECT_EQ(-EINVAL, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_TRUE(begins("A program of type 2, loaded for attach_type 0, cannot be linked as "))
		TH_LOG("%s", text);
	EXPECT_STREQ("", entries());
}

/* What programs of type TRACING and EXT are linked to: the log alone says why not */
TEST_F(log, why_a_link_to_a_function_is_refused)
{
	union bpf_attr fentry, ext, open = {}, attr = {
		.link_create.attach_type = BPF_TRACE_FENTRY,
	};
	int link, types;

	load_attr(&fentry, BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, btf_func_id(FUNC));
	attr.link_create.prog_fd = own_count_prog(&fentry, &self->area);
	ASSERT_LE(0, (int)attr.link_create.prog_fd);
	attr.link_create.target_fd = self->prog;
	EXPECT_EQ(-EINVAL, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_STREQ("target_fd and target_btf_id go together\n", text);
	attr.link_create.target_btf_id = 1;
	EXPECT_EQ(-EINVAL, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_STREQ("target_fd is for programs of type EXT alone\n", text);
	open = self->none;
	open.raw_tracepoint.prog_fd = attr.link_create.prog_fd;
	EXPECT_EQ(-EINVAL, bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &open));
	EXPECT_STREQ("This program has its place since it was loaded\n", text);
	attr.link_create.target_fd = 0;
	attr.link_create.target_btf_id = 0;
	link = bpf_logged(_metadata, BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, link);
	EXPECT_STREQ("", text);
	EXPECT_EQ(-EBUSY, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_STREQ("This program is there already, or the place is replaced\n", text);
	close(link);

	types = types_load();
	load_attr(&ext, BPF_PROG_TYPE_EXT, 0, TYPE_FILTER);
	filter_types(&ext, types);
	ext.attach_prog_fd = target_load(types);
	attr = (union bpf_attr) { .link_create.prog_fd = own_count_prog(&ext, &self->area) };
	ASSERT_LE(0, (int)attr.link_create.prog_fd);
	attr.link_create.target_fd = 999;
	attr.link_create.target_btf_id = TYPE_FILTER;
	EXPECT_EQ(-EBADF, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_STREQ("target_fd 999 is not a BPF program\n", text);
	/* Found by the verifier's function, with its own words */
	attr.link_create.target_fd = target_load(-1);
	EXPECT_GT(0, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_NE(0, *text);
	EXPECT_STREQ("", entries());
}

/* A command that is longer than what the log takes at once is cut off, and nothing else */
TEST_F(log, of_a_long_command)
{
	static const char start[] = "There is no such file\n  LINK_CREATE uprobe_multi /./././.";
	struct umulti umulti;
	union bpf_attr attr;
	char path[3001];
	int i;

	for (i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 ? '.' : '/';
	path[i - 1] = 'x';
	path[i] = '\0';
	umulti_init(&umulti, 0);
	umulti_attr(&umulti, tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0), &attr);
	attr.link_create.uprobe_multi.path = (unsigned long)path;
	EXPECT_EQ(-ENOENT, bpf_logged(_metadata, BPF_LINK_CREATE, &attr));
	EXPECT_TRUE(begins(start)) TH_LOG("%s", text);
	EXPECT_STREQ("\n                           ^\n", strrchr(text, '/') + 2) TH_LOG("%s", text);
}

/* The errno stays, and says more than -ENOSPC would */
TEST_F(log, is_cut_off)
{
	struct bpf_common_attr common = log_attr(8, 1);

	EXPECT_EQ(-ENOENT, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &common, COMMON_SIZE));
	EXPECT_STREQ("      ^\n" + 1, text);
	EXPECT_EQ('x', text[8]);
	EXPECT_LT(64, common.log_true_size);

	common = log_attr(8, 1 | 8);	/* BPF_LOG_FIXED: its beginning */
	EXPECT_EQ(-ENOENT, bpf_with(BPF_RAW_TRACEPOINT_OPEN, &self->none, &common, COMMON_SIZE));
	EXPECT_STREQ("No trac", text);
	EXPECT_EQ('x', text[8]);
	EXPECT_LT(64, common.log_true_size);
}

/* What others read, only the privileged may write to; this is the caller's own */
TEST_F(log, takes_no_capability)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(0) ||
		    bpf_logged(_metadata, BPF_RAW_TRACEPOINT_OPEN, &self->none) != -ENOENT)
			_exit(1);
		_exit(begins("No tracepoint has this name\n") ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("", entries());
}

TEST_HARNESS_MAIN
