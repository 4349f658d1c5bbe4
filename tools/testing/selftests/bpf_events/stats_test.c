// SPDX-License-Identifier: GPL-2.0
/* Runs and their time, by program and by attachment */
#include "common.h"

FIXTURE(stats) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(stats) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(stats, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(stats, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(stats, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(stats, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(stats)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(stats)
{
	EXPECT_EQ(0, write_file(STATS, 0, "0"));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(stats, run_cnt)
{
	int prog = count_prog(&self->area, 0, 0);
	union bpf_attr attr = { .enable_stats.type = BPF_STATS_RUN_TIME };
	struct bpf_prog_info info;
	int stats;

	ASSERT_LE(0, attach(&self->probe, prog));
	hits(5);
	ASSERT_EQ(0, prog_info(prog, &info));
	EXPECT_EQ(0, info.run_cnt);
	EXPECT_EQ(0, info.run_time_ns);

	ASSERT_EQ(0, write_file(STATS, 0, "1"));
	hits(5);
	ASSERT_EQ(0, write_file(STATS, 0, "0"));
	ASSERT_EQ(0, prog_info(prog, &info));
	EXPECT_EQ(5, info.run_cnt);

	stats = sys_bpf(BPF_ENABLE_STATS, &attr);
	ASSERT_LE(0, stats);
	hits(2);
	close(stats);
	hits(2);
	ASSERT_EQ(0, prog_info(prog, &info));
	EXPECT_EQ(7, info.run_cnt);
	EXPECT_EQ(0, info.recursion_misses);
	EXPECT_EQ(14, area_get(&self->area, 0));
}

TEST_F(stats, run_time)
{
	struct bpf_prog_info info;
	int prog = long_prog(&self->area, 1);

	ASSERT_LE(0, attach(&self->probe, prog));
	ASSERT_EQ(0, write_file(STATS, 0, "1"));
	hit();
	ASSERT_EQ(0, prog_info(prog, &info));
	EXPECT_EQ(1, info.run_cnt);
	/* 30 ms, by a clock that may be as coarse as a tick of 10 */
	EXPECT_LE(10000000, info.run_time_ns);
}

TEST_F(stats, fdinfo)
{
	int prog = count_prog(&self->area, 0, 0);
	int fd = probe_open(&self->probe);
	struct fdinfo info;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-ENOENT, read_fdinfo(fd, &info));
	ASSERT_EQ(0, perf_set_bpf(fd, prog));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(prog_id(prog), info.id);
	EXPECT_EQ(0, info.hits);
	EXPECT_EQ(0, info.missed);

	hits(7);
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(7, info.hits);
	EXPECT_EQ(0, info.missed);
	if (!pin(1))
		hits(3);
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(area_get(&self->area, 0), info.hits);

	/* A pause is no miss */
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	hits(3);
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(area_get(&self->area, 0), info.hits);
	EXPECT_EQ(0, info.missed);
}

TEST_F(stats, fdinfo_is_of_the_attachment)
{
	int prog = count_prog(&self->area, 0, 0);
	struct fdinfo info;
	struct probe other;
	int fd, fd2;

	ASSERT_EQ(0, probe_create_at(&other, "event2", FUNC2, 0,
				     variant->flags));
	fd = attach(&self->probe, prog);
	fd2 = attach(&other, prog);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, fd2);
	hits(3);
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);

	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(3, info.hits);
	ASSERT_EQ(0, read_fdinfo(fd2, &info));
	EXPECT_EQ(1, info.hits);
	EXPECT_EQ(4, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
