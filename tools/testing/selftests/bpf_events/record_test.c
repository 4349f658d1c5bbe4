// SPDX-License-Identifier: GPL-2.0
/* What a program returns decides whether the hit is recorded */
#include "common.h"
#include "ring.h"

FIXTURE(record) {
	struct probe probe;
	struct area area;
	struct ring ring;
	int fd;
};

FIXTURE_VARIANT(record) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(record, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(record, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(record, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(record, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(record)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->fd = probe_open(&self->probe);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ring_map(&self->ring, self->fd));
}

FIXTURE_TEARDOWN_PARENT(record)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(record, without_a_program)
{
	hits(5);
	EXPECT_EQ(5, ring_samples(&self->ring));
}

TEST_F(record, zero_drops_and_all_else_keeps)
{
	const struct {
		__u64 verdict;
		unsigned int records;
	} cases[] = {
		{ 0, 0 }, { 1, 1 }, { 0, 0 }, { 2, 1 }, { 0x80000000, 1 },
		{ 0xfffffffe, 1 }, { 1, 1 }, { 0, 0 },
	};
	int i;

	if (mainline())
		SKIP(return, "mainline looks at bit 0 of the verdict only");
	ASSERT_EQ(0, perf_set_bpf(self->fd, verdict_prog(&self->area)));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		area_set(&self->area, 1, cases[i].verdict);
		hits(3);
		EXPECT_EQ(3 * cases[i].records, ring_samples(&self->ring))
			TH_LOG("for %llx", cases[i].verdict);
		EXPECT_EQ(3 * (i + 1), area_get(&self->area, 0));
	}
}

TEST_F(record, is_complete)
{
	const __u16 *common_type;
	char raw[64] = "";
	__u32 len = 0;
	__u64 id = 0;

	area_set(&self->area, 1, 1);
	ASSERT_EQ(0, perf_set_bpf(self->fd, verdict_prog(&self->area)));
	hit();
	EXPECT_EQ(PERF_RECORD_SAMPLE,
		  ring_read(&self->ring, raw, sizeof(raw), &len));
	EXPECT_EQ(0, ring_read(&self->ring, NULL, 0, NULL));
	/* The common fields and the probed address, or two of a kretprobe */
	EXPECT_LE(variant->flags & PROBE_RETURN ? 24 : 16, len);
	common_type = (const __u16 *)raw;
	if (!(variant->flags & PROBE_PMU)) {
		ASSERT_EQ(0, event_id(self->probe.event, &id));
		EXPECT_EQ(id, *common_type);
	}
}

/* No buffer space is taken for a hit that is dropped */
TEST_F(record, dropped_hits_take_no_space)
{
	__u64 head;

	ASSERT_EQ(0, perf_set_bpf(self->fd, verdict_prog(&self->area)));
	head = self->ring.page->data_head;
	/* More than the ring could hold */
	hits(4000);
	EXPECT_EQ(4000, area_get(&self->area, 0));
	EXPECT_EQ(head, self->ring.page->data_head);

	area_set(&self->area, 1, 1);
	hit();
	EXPECT_LT(head, self->ring.page->data_head);
	EXPECT_EQ(1, ring_samples(&self->ring));
}

/* Several perf events of one kprobe event */

FIXTURE(shared) {
	FIXTURE_DATA(record) r;
};

FIXTURE_SETUP(shared)
{
	record_setup(_metadata, &self->r, &_record_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(shared)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(shared, records_come_back_when_the_program_goes)
{
	int fd = attach(&self->r.probe, verdict_prog(&self->r.area));

	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(0, ring_samples(&self->r.ring));
	close(fd);
	hits(3);
	EXPECT_EQ(3, ring_samples(&self->r.ring));
	EXPECT_EQ(3, area_get(&self->r.area, 0));
}

/* The event's own trace in tracefs is not a perf record */
TEST_F(shared, tracefs_is_not_filtered)
{
	const char *enable = TRACEFS "/events/" GROUP "/event/enable";
	char line[256];

	ASSERT_EQ(0, write_file(TRACEFS "/tracing_on", 0, "1"));
	ASSERT_EQ(0, write_file(TRACEFS "/trace", O_TRUNC, ""));
	ASSERT_EQ(0, write_file(enable, 0, "1"));
	ASSERT_EQ(0, perf_set_bpf(self->r.fd, verdict_prog(&self->r.area)));
	hit();
	EXPECT_EQ(0, write_file(enable, 0, "0"));
	EXPECT_EQ(1, area_get(&self->r.area, 0));
	EXPECT_EQ(0, ring_samples(&self->r.ring));
	EXPECT_TRUE(find_line(TRACEFS "/trace", ": event: (", line,
			      sizeof(line)));
	EXPECT_EQ(0, write_file(TRACEFS "/trace", O_TRUNC, ""));
}

TEST_HARNESS_MAIN
