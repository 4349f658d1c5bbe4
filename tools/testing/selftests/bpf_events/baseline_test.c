// SPDX-License-Identifier: GPL-2.0
/*
 * The control of all other tests, for a kernel without CONFIG_BPF_EVENTS: it
 * refuses programs, while kprobe events and perf work as ever.
 */
#include "common.h"
#include "ring.h"

#define TYPE_KPROBE 2
#define IOC_SET_BPF _IOW('$', 8, __u32)
#define IOC_QUERY_BPF _IOWR('$', 10, void *)

static int load_type(__u32 type, __u32 version)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.kern_version = version;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

FIXTURE(baseline) {
	struct probe probe;
	struct ring ring;
	int fd;
};

FIXTURE_VARIANT(baseline) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(baseline, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(baseline, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(baseline, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(baseline, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(baseline)
{
	prepare();
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->fd = probe_open(&self->probe);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ring_map(&self->ring, self->fd));
}

FIXTURE_TEARDOWN_PARENT(baseline)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(baseline, events_work)
{
	hits(3);
	EXPECT_EQ(3, ring_samples(&self->ring));
}

TEST_F(baseline, set_bpf_is_refused)
{
	int prog = load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0);
	int ret;

	ASSERT_LE(0, prog);
	ret = neg_errno(ioctl(self->fd, IOC_SET_BPF, prog));
	EXPECT_TRUE(ret == -EINVAL || ret == -ENOTTY || ret == -EOPNOTSUPP);
	ret = neg_errno(ioctl(self->fd, IOC_SET_BPF, 999));
	EXPECT_GT(0, ret);
	hits(3);
	EXPECT_EQ(3, ring_samples(&self->ring));
}

TEST_F(baseline, query_bpf_is_refused)
{
	struct query q = { .ids_len = 64 };
	int ret = neg_errno(ioctl(self->fd, IOC_QUERY_BPF, &q));

	EXPECT_TRUE(ret == -EINVAL || ret == -ENOTTY || ret == -EOPNOTSUPP);
}

TEST(program_type_is_refused)
{
	EXPECT_EQ(-EINVAL, load_type(TYPE_KPROBE, kern_version()));
	EXPECT_EQ(-EINVAL, load_type(TYPE_KPROBE, 0));
	EXPECT_EQ(-EINVAL, load_type(BPF_PROG_TYPE_PERF_EVENT, 0));
	/* This is how the other tests notice */
	EXPECT_STREQ("CONFIG_BPF_EVENTS", prepare() ?: "nothing");
	/* Others are not */
	EXPECT_LE(0, load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0));
}

/* It is an expression, and refused as one */
TEST(program_is_no_filter)
{
	char line[256];

	prepare();
	write_file(TRACEFS "/error_log", O_TRUNC, "");
	EXPECT_EQ(-EINVAL, write_file(TRACEFS "/events/task/task_newtask/filter", 0, "bpf-1"));
	EXPECT_TRUE(find_line(TRACEFS "/error_log", "  Command: bpf-1", line, sizeof(line)));
}

TEST(sysctl_is_not_there)
{
	EXPECT_NE(0, access("/proc/sys/kernel/bpf_kprobe_kern_version", F_OK));
}

TEST_HARNESS_MAIN
