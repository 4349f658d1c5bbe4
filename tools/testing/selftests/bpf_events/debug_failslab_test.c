// SPDX-License-Identifier: GPL-2.0
/*
 * Memory runs out at any one of the allocations on the way: a call fails with
 * ENOMEM and changes nothing, or it succeeds.  For kernels with fault injection.
 */
#include "common.h"

#define FAILSLAB DEBUGFS "/failslab"
#define FAIL_NTH "/proc/thread-self/fail-nth"
#define MOST 400

FIXTURE(failslab) {
	struct probe probe;
	struct area area;
	char verbose[16], ignore[16];
};

FIXTURE_VARIANT(failslab) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(failslab, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(failslab, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(failslab, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_SETUP(failslab)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access(FAIL_NTH, F_OK))
		SKIP(return, "CONFIG_FAULT_INJECTION");
	if (access(FAILSLAB, F_OK))
		SKIP(return, "CONFIG_FAILSLAB, CONFIG_FAULT_INJECTION_DEBUG_FS");
	ASSERT_LT(0, read_file(FAILSLAB "/verbose", self->verbose,
			       sizeof(self->verbose)));
	ASSERT_LT(0, read_file(FAILSLAB "/ignore-gfp-wait", self->ignore,
			       sizeof(self->ignore)));
	/* No stack dumps; fail what may sleep */
	ASSERT_EQ(0, write_file(FAILSLAB "/verbose", 0, "0"));
	ASSERT_EQ(0, write_file(FAILSLAB "/ignore-gfp-wait", 0, "N"));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	ASSERT_LE(0, hold_function());
	ASSERT_LE(0, probe_open(&self->probe));
}

FIXTURE_TEARDOWN_PARENT(failslab)
{
	write_file(FAILSLAB "/verbose", 0, "%s", self->verbose);
	write_file(FAILSLAB "/ignore-gfp-wait", 0, "%s", self->ignore);
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * The descriptor of this is opened before: an open() or a write() under fault
 * injection would use faults up.
 */
static int fail_nth_fd = -1;

static bool fail_arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (fail_nth_fd < 0)
		fail_nth_fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	return pwrite(fail_nth_fd, text, len, 0) == len;
}

/* Says whether the fault has happened, and calls it off if it has not */
static bool fail_disarm(void)
{
	char text[16] = "";
	bool happened;

	happened = pread(fail_nth_fd, text, sizeof(text) - 1, 0) > 0 &&
		   !atoi(text);
	fail_arm(0);
	return happened;
}

TEST_F_TIMEOUT(failslab, set_bpf, 120)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd, n, err, failed = 0;
	bool happened = true;
	__u64 before;

	for (n = 1; happened && n < MOST; n++) {
		fd = probe_open(&self->probe);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		err = perf_set_bpf(fd, prog);
		happened = fail_disarm();
		before = area_get(&self->area, 0);
		if (err) {
			ASSERT_EQ(-ENOMEM, err);
			ASSERT_TRUE(happened);
			failed++;
			EXPECT_EQ(0, query_count(fd));
			hits(2);
			EXPECT_EQ(before, area_get(&self->area, 0));
			ASSERT_EQ(0, perf_set_bpf(fd, prog));
		}
		EXPECT_EQ(1, query_count(fd));
		hits(2);
		EXPECT_EQ(before + 2, area_get(&self->area, 0));
		close(fd);
	}
	EXPECT_FALSE(happened);
	EXPECT_LT(0, failed);
}

/* The array of an event that has programs already */
TEST_F_TIMEOUT(failslab, set_bpf_of_the_next, 120)
{
	int prog = count_prog(&self->area, 1, 1), fd, n, err, first;
	bool happened = true;
	__u64 before;

	first = attach(&self->probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, first);
	for (n = 1; happened && n < MOST; n++) {
		fd = probe_open(&self->probe);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		err = perf_set_bpf(fd, prog);
		happened = fail_disarm();
		if (err)
			ASSERT_EQ(-ENOMEM, err);
		before = area_get(&self->area, 0);
		hit();
		EXPECT_EQ(before + 1, area_get(&self->area, 0));
		close(fd);
	}
	EXPECT_FALSE(happened);
}

/* A program must go, memory or not */
TEST_F_TIMEOUT(failslab, close, 120)
{
	int prog = count_prog(&self->area, 0, 1);
	int others[2], fd, i, n;
	bool happened = true;
	__u64 before;

	for (i = 0; i < 2; i++) {
		others[i] = attach(&self->probe,
				   count_prog(&self->area, 1 + i, 1));
		ASSERT_LE(0, others[i]);
	}
	for (n = 1; happened && n < MOST; n++) {
		fd = attach(&self->probe, prog);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		close(fd);
		happened = fail_disarm();
		before = area_get(&self->area, 0);
		hits(2);
		EXPECT_EQ(before, area_get(&self->area, 0));
		for (i = 0; i < 2; i++)
			EXPECT_EQ(2 * n, area_get(&self->area, 1 + i));
	}
	EXPECT_FALSE(happened);
	EXPECT_EQ(variant->flags & PROBE_PMU ? 1 : 2, query_count(others[0]));
}

TEST_F_TIMEOUT(failslab, open, 120)
{
	struct perf_event_attr attr;
	int fd, n, failed = 0;
	bool happened = true;

	ASSERT_EQ(0, probe_attr(&self->probe, &attr));
	for (n = 1; happened && n < MOST; n++) {
		ASSERT_TRUE(fail_arm(n));
		fd = perf_open(&attr, -1, 0);
		happened = fail_disarm();
		if (fd < 0) {
			ASSERT_EQ(-ENOMEM, fd);
			failed++;
			continue;
		}
		EXPECT_EQ(0, query_count(fd));
		close(fd);
	}
	EXPECT_FALSE(happened);
	EXPECT_LT(0, failed);
}

/* The entry in error_log is a courtesy: the errno stays what it is */
TEST_F_TIMEOUT(failslab, error, 120)
{
	int fd = probe_open(&self->probe), n;
	bool happened = true;

	ASSERT_LE(0, fd);
	for (n = 1; happened && n < MOST; n++) {
		ASSERT_TRUE(fail_arm(n));
		EXPECT_EQ(-EBADF, perf_set_bpf(fd, 999));
		happened = fail_disarm();
	}
	EXPECT_FALSE(happened);
	ASSERT_EQ(0, perf_set_bpf(fd, count_prog(&self->area, 0, 1)));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
