// SPDX-License-Identifier: GPL-2.0
/*
 * A program takes a stack into a map, and before the helper has copied it, one on top of it
 * is about to take another: that is refused, and the first is what it was
 */
#include "common.h"
#include "ways.h"

/* What bpf_get_stackid() calls in between */
#define BETWEEN "pcpu_freelist_pop"

/* Slots: runs, and what the helper returned */
enum { RUNS, TOOK };

FIXTURE(nested) {
	struct area below, on_top;
	int map;
};

FIXTURE_SETUP(nested)
{
	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->below));
	ASSERT_EQ(0, area_create(&self->on_top));
	self->map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * STACK_FRAMES, 64, 0);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(nested)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(nested, keeps_its_own)
{
	const struct way *below = way_named("raw tracepoint"), *on_top = way_named("kprobe PMU");
	const __u64 func = ksym(BETWEEN);
	const struct place between = { BETWEEN };
	__u64 ips[STACK_FRAMES] = {};
	union bpf_attr attr;
	__u32 key;
	int i;

	way_attr(below, &own_place, &attr);
	ASSERT_LE(0, way_attach(below, &own_place, NULL,
				stackid_prog(&attr, &self->below, self->map, 0)));
	way_attr(on_top, &between, &attr);
	ASSERT_LE(0, way_attach_at(on_top, &between, "", stack_prog(&attr, &self->on_top, 0)));
	hit_rename();
	ASSERT_EQ(1, area_get(&self->below, RUNS));
	ASSERT_EQ(1, area_get(&self->on_top, RUNS));
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->on_top, TOOK));

	key = area_get(&self->below, TOOK);
	ASSERT_EQ(0, map_lookup(self->map, &key, ips));
	EXPECT_NE(0, ips[0]);
	for (i = 0; i < ARRAY_SIZE(ips); i++)
		EXPECT_FALSE(ips[i] >= func && ips[i] < func + 64);
}

TEST_HARNESS_MAIN
