// SPDX-License-Identifier: GPL-2.0
/* Uprobes that cannot be, and programs that do not go onto one */
#include <sys/stat.h>

#include "common.h"
#include "error_log.h"
#include "link.h"
#include "uprobe.h"

#define MAX_PROGS 64

FIXTURE(place) {
	unsigned long offset;
};

FIXTURE_VARIANT(place) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(place, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(place, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(place, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(place, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(place)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	self->offset = file_offset(user_func);
	ASSERT_NE(0, self->offset);
}

FIXTURE_TEARDOWN_PARENT(place)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What comes of an attempt to make a uprobe and to open a perf event of it */
static int try(const char *path, unsigned long offset, unsigned long ref_ctr,
	       unsigned int flags)
{
	struct probe probe;
	int err = uprobe_create_at(&probe, "event", path, offset, ref_ctr,
				   flags);
	int fd;

	if (err)
		return err;
	fd = probe_open(&probe);
	if (fd >= 0)
		close(fd);
	if (!(flags & PROBE_PMU))
		write_file(TRACEFS "/uprobe_events", O_APPEND,
			   "-:" GROUP "/event\n");
	return fd < 0 ? fd : 0;
}

TEST_F(place, good)
{
	EXPECT_EQ(0, try(SELF, self->offset, 0, variant->flags));
}

TEST_F(place, no_such_file)
{
	EXPECT_EQ(-ENOENT, try("/nonexistent", self->offset, 0, variant->flags));
	EXPECT_EQ(-ENOTDIR, try(SELF "/x", self->offset, 0, variant->flags));
}

TEST_F(place, no_regular_file)
{
	EXPECT_EQ(-EINVAL, try("/proc/self", self->offset, 0, variant->flags));
	EXPECT_EQ(-EINVAL, try("/", self->offset, 0, variant->flags));
	EXPECT_EQ(-EINVAL, try("/dev/null", self->offset, 0, variant->flags));
}

TEST_F(place, outside_the_file)
{
	struct stat st;

	ASSERT_EQ(0, stat(SELF, &st));
	EXPECT_EQ(-EINVAL, try(SELF, st.st_size + 1, 0, variant->flags));
	EXPECT_EQ(-EINVAL, try(SELF, 1UL << 40, 0, variant->flags));
}

TEST_F(place, counter_at_a_bad_place)
{
	/* Not aligned */
	EXPECT_EQ(-EINVAL, try(SELF, self->offset, 1, variant->flags));
	EXPECT_EQ(-EINVAL, try(SELF, self->offset, 0x1003, variant->flags));
}

/* The path of a perf event comes from memory */

FIXTURE(pmu) {
	struct probe probe;
	struct perf_event_attr attr;
	struct area area;
};

FIXTURE_SETUP(pmu)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, PROBE_PMU));
	ASSERT_EQ(0, probe_attr(&self->probe, &self->attr));
}

FIXTURE_TEARDOWN_PARENT(pmu)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(pmu, bad_path)
{
	static char path[8192];

	self->attr.uprobe_path = 0;
	EXPECT_EQ(-EINVAL, perf_open(&self->attr, -1, 0));
	self->attr.uprobe_path = 8;
	EXPECT_EQ(-EFAULT, perf_open(&self->attr, -1, 0));
	self->attr.uprobe_path = (unsigned long)"";
	EXPECT_EQ(-EINVAL, perf_open(&self->attr, -1, 0));
	memset(path, 'x', sizeof(path) - 1);
	self->attr.uprobe_path = (unsigned long)path;
	EXPECT_EQ(-E2BIG, perf_open(&self->attr, -1, 0));
}

TEST_F(pmu, needs_sys_admin)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(PERFMON) | CAP(BPF)))
			_exit(1);
		_exit(perf_open(&self->attr, getpid(), -1) == -EACCES ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
}

/* One place in a file has one counter, and all that probe it agree on that */
TEST_F(pmu, counters_differ)
{
	int fd = probe_open(&self->probe);

	ASSERT_LE(0, fd);
	self->attr.config = (__u64)(self->probe.offset & ~1UL) << 32;
	EXPECT_EQ(-EINVAL, perf_open(&self->attr, -1, 0));
	close(fd);
}

/* Programs that an event refuses */

FIXTURE(refused) {
	struct probe probe;
	struct area area;
	int perf;
	int prog;
	int other;	/* another program */
};

FIXTURE_VARIANT(refused) {
	unsigned int flags;
	const char *event;	/* its name in error_log, or the start of it */
};

FIXTURE_VARIANT_ADD(refused, uprobe_event) {
	.flags = 0,
	.event = GROUP ":event ",
};

FIXTURE_VARIANT_ADD(refused, uretprobe_event) {
	.flags = PROBE_RETURN,
	.event = GROUP ":event ",
};

FIXTURE_VARIANT_ADD(refused, uprobe_pmu) {
	.flags = PROBE_PMU,
	.event = "uprobes:",
};

FIXTURE_VARIANT_ADD(refused, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.event = "uprobes:",
};

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));
	self->perf = probe_open(&self->probe);
	ASSERT_LE(0, self->perf);
	self->prog = count_prog(&self->area, 0, 1);
	ASSERT_LE(0, self->prog);
	self->other = count_prog(&self->area, 1, 1);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(refused, program_of_another_kind)
{
	const int progs[] = {
		prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0),
		prog_load_type(BPF_PROG_TYPE_XDP, 0, 0),
		/* Loaded for a link to many functions */
		prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI, 0),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(progs); i++) {
		ASSERT_LE(0, progs[i]);
		EXPECT_EQ(-EINVAL, perf_link(self->perf, progs[i]));
	}
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, progs[0]));
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, progs[1]));
	EXPECT_EQ(-EBADF, perf_set_bpf(self->perf, 999));
	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, self->area.fd));

	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));
}

TEST_F(refused, second_program_on_one_perf_event)
{
	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->perf, self->other));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->other));
	user_hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(refused, reason_is_in_error_log)
{
	int filter = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);

	EXPECT_EQ(-EINVAL, perf_set_bpf(self->perf, filter));
	EXPECT_TRUE(logged(WANTS_KPROBE, "SET_BPF %s", variant->event));
	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	EXPECT_STREQ("", entries());
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->perf, self->other));
	EXPECT_TRUE(logged(FD_TAKEN, "SET_BPF %s", variant->event));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->other));
	EXPECT_TRUE(logged(FD_TAKEN, "LINK_CREATE %s", variant->event));
}

/* Several perf events of one uprobe event */

FIXTURE(many) {
	FIXTURE_DATA(refused) r;
};

FIXTURE_SETUP(many)
{
	refused_setup(_metadata, &self->r, &_refused_uprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(many)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(many, same_program_on_the_event)
{
	ASSERT_EQ(0, perf_set_bpf(self->r.perf, self->r.prog));
	EXPECT_EQ(-EEXIST, attach(&self->r.probe, self->r.prog));
	EXPECT_EQ(-EEXIST, attach_link(&self->r.probe, self->r.prog, 0));
	user_hits(1);
	EXPECT_EQ(1, area_get(&self->r.area, 0));
}

TEST_F(many, sixty_fifth_program)
{
	int i;

	ASSERT_EQ(0, perf_set_bpf(self->r.perf, self->r.prog));
	for (i = 1; i < MAX_PROGS; i++)
		ASSERT_LE(0, attach_by(&self->r.probe, i & 1,
				       count_prog(&self->r.area, 2, 1)));
	EXPECT_EQ(-E2BIG, attach(&self->r.probe, self->r.other));
	EXPECT_EQ(-E2BIG, attach_link(&self->r.probe, self->r.other, 0));
	user_hits(1);
	EXPECT_EQ(1, area_get(&self->r.area, 0));
	EXPECT_EQ(0, area_get(&self->r.area, 1));
	EXPECT_EQ(MAX_PROGS - 1, area_get(&self->r.area, 2));
}

TEST_HARNESS_MAIN
