// SPDX-License-Identifier: GPL-2.0
/* PERF_EVENT_IOC_QUERY_BPF tells the programs of an event */
#include "common.h"

#define PROGS 3

FIXTURE(query) {
	struct probe probe;
	struct area area;
	int fds[PROGS];
	__u32 ids[PROGS];
};

FIXTURE_VARIANT(query) {
	unsigned int flags;
	int progs;
};

FIXTURE_VARIANT_ADD(query, kprobe_event) {
	.flags = 0,
	.progs = PROGS,
};

FIXTURE_VARIANT_ADD(query, kretprobe_event) {
	.flags = PROBE_RETURN,
	.progs = PROGS,
};

/* Each perf event of the PMU is a probe of its own */
FIXTURE_VARIANT_ADD(query, kprobe_pmu) {
	.flags = PROBE_PMU,
	.progs = 1,
};

FIXTURE_VARIANT_ADD(query, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.progs = 1,
};

FIXTURE_SETUP(query)
{
	int i, prog;

	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	for (i = 0; i < variant->progs; i++) {
		prog = count_prog(&self->area, i, 1);
		self->ids[i] = prog_id(prog);
		ASSERT_NE(0, self->ids[i]);
		self->fds[i] = attach(&self->probe, prog);
		ASSERT_LE(0, self->fds[i]);
	}
}

FIXTURE_TEARDOWN_PARENT(query)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(query, ids_in_the_order_they_came)
{
	struct query q;
	int i, j;

	for (i = 0; i < variant->progs; i++) {
		ASSERT_EQ(0, query(self->fds[i], &q, 64));
		EXPECT_EQ(variant->progs, q.prog_cnt);
		for (j = 0; j < variant->progs; j++)
			EXPECT_EQ(self->ids[j], q.ids[j]);
		EXPECT_EQ(0x55555555, q.ids[j]);
	}
}

TEST_F(query, a_buffer_just_large_enough)
{
	struct query q;

	ASSERT_EQ(0, query(self->fds[0], &q, variant->progs));
	EXPECT_EQ(variant->progs, q.prog_cnt);
	EXPECT_EQ(self->ids[variant->progs - 1], q.ids[variant->progs - 1]);
	EXPECT_EQ(0x55555555, q.ids[variant->progs]);
}

TEST_F(query, count_only)
{
	struct query q;

	ASSERT_EQ(0, query(self->fds[0], &q, 0));
	EXPECT_EQ(variant->progs, q.prog_cnt);
	EXPECT_EQ(0x55555555, q.ids[0]);
}

TEST_F(query, too_long_buffer)
{
	struct query q;

	EXPECT_EQ(-E2BIG, query(self->fds[0], &q, 65));
	EXPECT_EQ(-E2BIG, query(self->fds[0], &q, ~0U));
	EXPECT_EQ(0x55555555, q.prog_cnt);
	EXPECT_EQ(0x55555555, q.ids[0]);
}

TEST_F(query, event_without_a_program)
{
	struct query q;
	int i, fd;

	for (i = 0; i < variant->progs; i++)
		close(self->fds[i]);
	fd = probe_open(&self->probe);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, query(fd, &q, 64));
	EXPECT_EQ(0, q.prog_cnt);
	EXPECT_EQ(0x55555555, q.ids[0]);
}

TEST_F(query, event_that_cannot_have_one)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
	};
	int fd = perf_open(&attr, 0, -1);
	struct query q;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, query(fd, &q, 64));
	EXPECT_EQ(0x55555555, q.prog_cnt);
}

TEST_F(query, bad_memory)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct query *q = (struct query *)(page + 4096 - 8);

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	EXPECT_EQ(-EFAULT, neg_errno(ioctl(self->fds[0],
					   PERF_EVENT_IOC_QUERY_BPF, NULL)));
	/* The header is there, the ids are not */
	q->ids_len = 64;
	EXPECT_EQ(-EFAULT, neg_errno(ioctl(self->fds[0],
					   PERF_EVENT_IOC_QUERY_BPF, q)));
	q->ids_len = 0;
	EXPECT_EQ(0, neg_errno(ioctl(self->fds[0],
				     PERF_EVENT_IOC_QUERY_BPF, q)));
	EXPECT_EQ(variant->progs, q->prog_cnt);
}

TEST_F(query, needs_perfmon)
{
	struct query q;
	pid_t child;

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)))
			_exit(1);
		if (query(self->fds[0], &q, 64) != -EPERM)
			_exit(2);
		_exit(q.prog_cnt == 0x55555555 ? 0 : 3);
	}
	EXPECT_EQ(0, child_status(child));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(PERFMON)))
			_exit(1);
		_exit(query(self->fds[0], &q, 64) ? 2 : 0);
	}
	EXPECT_EQ(0, child_status(child));
}

/* Only an event of tracefs has several programs */

FIXTURE(several) {
	FIXTURE_DATA(query) q;
};

FIXTURE_SETUP(several)
{
	query_setup(_metadata, &self->q, &_query_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(several)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(several, short_buffer)
{
	struct query q;
	int i;

	for (i = 1; i < PROGS; i++) {
		ASSERT_EQ(-ENOSPC, query(self->q.fds[0], &q, i));
		EXPECT_EQ(PROGS, q.prog_cnt);
		EXPECT_EQ(self->q.ids[i - 1], q.ids[i - 1]);
		EXPECT_EQ(0x55555555, q.ids[i]);
	}
}

TEST_HARNESS_MAIN
