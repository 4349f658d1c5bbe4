// SPDX-License-Identifier: GPL-2.0
/*
 * A hit is under way on another CPU when its event is switched off and removed: the event
 * and what the hit records to are there until the hit has ended
 */
#include "common.h"
#include "elsewhere.h"
#include "tracing.h"

/* Not by a file of the event: that would keep what belongs to it */
static int turn(bool on)
{
	return write_file(INSTANCE "/set_event", O_APPEND, "%s" GROUP ":event\n", on ? "" : "!");
}

/* The hit is slow since a program is on what copies its string */
static int by_string(const struct kind *kind, struct area *area)
{
	union bpf_attr attr;

	tracing_attr(&attr, BPF_TRACE_FENTRY, "strncpy_from_kernel_nofault");
	return event_add("event", "%c %s @linux_banner:string",
			 kind->flags & PROBE_RETURN ? 'r' : 'p', FUNC) ?:
	       turn(true) ?: tracing_open(elsewhere_prog(&attr, area, TOLD_MS, 0));
}

/* Its filter is, which lets it be recorded */
static int by_filter(const struct kind *kind, struct area *area)
{
	union bpf_attr attr;

	load_attr(&attr, kind->type, 0, 0);
	return kind_create(kind) ?: turn(true) ?:
	       filter_attach(INSTANCE, GROUP, elsewhere_prog(&attr, area, TOLD_MS, 1));
}

FIXTURE(removal) {
	struct area area;
	int slow;
};

FIXTURE_VARIANT(removal) {
	const struct kind *kind;
	int (*make_slow)(const struct kind *kind, struct area *area);
};

FIXTURE_VARIANT_ADD(removal, kprobe) {
	&kprobe_kind, by_string,
};

FIXTURE_VARIANT_ADD(removal, kretprobe) {
	&kretprobe_kind, by_string,
};

FIXTURE_VARIANT_ADD(removal, kprobe_filter) {
	&kprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, kretprobe_filter) {
	&kretprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, uprobe_filter) {
	&uprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, uretprobe_filter) {
	&uretprobe_kind, by_filter,
};

FIXTURE_SETUP(removal)
{
	SKIP_WITHOUT(return, filter_prepare() ?: tracing_prepare());
	if (variant->make_slow == by_filter && mainline())
		SKIP(return, "mainline has no programs as filters");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	self->slow = variant->make_slow(variant->kind, &self->area);
	ASSERT_LE(0, self->slow);
}

FIXTURE_TEARDOWN_PARENT(removal)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static int remove_event(int unused)
{
	return write_file(TRACEFS "/dynamic_events", O_APPEND, "-:" GROUP "/event\n");
}

TEST_F(removal, waits_for_hits)
{
	struct elsewhere e;

	ASSERT_EQ(0, elsewhere_hit(&e, &self->area, variant->kind));
	EXPECT_EQ(0, turn(false));
	ASSERT_EQ(0, elsewhere_call(&e, remove_event, 0));
	EXPECT_TRUE(elsewhere_waits(&e));
	EXPECT_TRUE(elsewhere_end(&e));
	EXPECT_EQ(0, e.result);
	EXPECT_EQ(1, area_get(&self->area, BEGUN));
}

TEST_HARNESS_MAIN
