// SPDX-License-Identifier: GPL-2.0
/*
 * Runs that a kprobe_multi link has to skip are counted, and what makes them
 * necessary, a program that calls the functions it is about, does no harm
 */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "multi.h"

/* Where the outer program counts, the inner one has the other tallies */
#define OUTER (TALLIES - 1)

FIXTURE(miss) {
	struct area area;
	int map;
	int prog;
	int link;
};

FIXTURE_VARIANT(miss) {
	enum bpf_attach_type attach;
	__u32 flags;
	int ends;	/* of a call, on each of which it runs or misses */
};

FIXTURE_VARIANT_ADD(miss, entry) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = 0,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(miss, return) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(miss, session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
	.ends = 2,
};

FIXTURE_SETUP(miss)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	self->map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	ASSERT_LE(0, self->map);
	self->prog = tally_prog(&self->area, variant->attach, 0);
	self->link = multi_link_one(UPDATE_FUNC, variant->attach, variant->flags,
				    self->prog);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(miss)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(miss, inside_a_helper)
{
	int outer = map_update_prog(&self->area, OUTER, self->map,
				    BPF_TRACE_KPROBE_MULTI);
	int link = multi_link_one(BODY_FUNC, BPF_TRACE_KPROBE_MULTI, 0, outer);

	ASSERT_LE(0, link);
	hit_body();
	EXPECT_EQ(variant->ends, misses(self->prog));
	make_calls(2, 19);
	EXPECT_EQ(20 * variant->ends, misses(self->prog));
	EXPECT_EQ(20, area_get(&self->area, OUTER));
	EXPECT_EQ(0, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(0, misses(outer));
	EXPECT_EQ(0, link_missed(link));
}

/* bpf(2) holds programs off while it works on a map */
TEST_F(miss, inside_bpf)
{
	__u64 key = 9;
	int i;

	for (i = 1; i <= 5; i++)
		ASSERT_EQ(0, map_update(self->map, &key, &key));
	EXPECT_EQ(5 * variant->ends, misses(self->prog));
	EXPECT_EQ(0, area_get(&self->area, TALLY_RUNS));
}

/* The program calls the very function that it is on */
TEST_F(miss, inside_itself)
{
	int prog = map_update_prog(&self->area, OUTER, self->map, variant->attach);
	struct multi m = {
		.attach = variant->attach, .flags = variant->flags, .cnt = 2,
		.syms = { BODY_FUNC, UPDATE_FUNC },
	};
	int link, runs = 10 * variant->ends;

	close(self->link);
	link = multi_link(&m, prog);
	ASSERT_LE(0, link);
	make_calls(2, 10);
	EXPECT_EQ(runs, area_get(&self->area, OUTER));
	EXPECT_EQ(runs * variant->ends, misses(prog));
}

/* The program of a kprobe in the body of a function: no ftrace */
TEST_F(miss, inside_a_kprobe)
{
	struct probe probe;
	int fd;

	ASSERT_EQ(0, probe_create_body(&probe, "outer", BODY_FUNC, 0));
	fd = attach(&probe, map_update_prog(&self->area, OUTER, self->map, 0));
	ASSERT_LE(0, fd);
	make_calls(2, 10);
	EXPECT_EQ(10, area_get(&self->area, OUTER));
	EXPECT_EQ(10 * variant->ends, misses(self->prog));
	EXPECT_EQ(0, area_get(&self->area, TALLY_RUNS));
}

TEST_F(miss, fdinfo_counts_misses)
{
	__u64 key = 9;
	int i;

	for (i = 1; i <= 5; i++)
		ASSERT_EQ(0, map_update(self->map, &key, &key));
	EXPECT_EQ(5 * variant->ends, fdinfo_number(self->link, "bpf_prog_missed"));
	EXPECT_EQ(0, fdinfo_number(self->link, "bpf_prog_hits"));
}

/* More calls at once than a kernel may have set room aside for */
TEST_F(miss, no_room_to_note_where_to_return)
{
	int link, all, before = misses(self->prog);
	__u64 missed;

	close(self->link);
	self->link = multi_link_one(WAIT_FUNC, variant->attach, variant->flags,
				    self->prog);
	ASSERT_LE(0, self->link);
	all = count_prog_as(&self->area, OUTER, 0, BPF_TRACE_KPROBE_MULTI);
	link = multi_link_one(WAIT_FUNC, BPF_TRACE_KPROBE_MULTI, 0, all);
	ASSERT_LE(0, link);

	ASSERT_EQ(0, wait_together(MAX_WAITERS));
	EXPECT_EQ(MAX_WAITERS, area_get(&self->area, OUTER));

	missed = link_missed(self->link);
	EXPECT_EQ(MAX_WAITERS * variant->ends, area_get(&self->area, TALLY_RUNS) + missed);
	EXPECT_EQ(missed, misses(self->prog) - before);
	EXPECT_EQ(0, link_missed(link));
}

/* What kernels of one configuration or another call while they handle a hit */
static const char * const inside_hits[] = {
	"__cant_migrate", "__cant_sleep", "__rcu_read_lock", "__rcu_read_unlock",
	"_find_next_bit", "call_rcu", "copy_from_kernel_nofault", "rcu_read_lock_any_held",
};

/* It comes to an end, and to nobody else's expense */
TEST_F(miss, functions_that_hits_call)
{
	int all = count_prog_as(&self->area, OUTER, 0, BPF_TRACE_KPROBE_MULTI);
	int prog = count_prog_as(&self->area, OUTER - 1, 0, variant->attach);
	int links = 0, link, runs;
	size_t i;

	close(self->link);
	ASSERT_LE(0, multi_link_one(WAIT_FUNC, BPF_TRACE_KPROBE_MULTI, 0, all));
	self->link = multi_link_one(WAIT_FUNC, variant->attach, variant->flags,
				    self->prog);
	ASSERT_LE(0, self->link);
	for (i = 0; i < ARRAY_SIZE(inside_hits); i++) {
		link = multi_link_one(inside_hits[i], variant->attach, variant->flags, prog);
		links += link >= 0;
	}
	ASSERT_LT(0, links);

	ASSERT_EQ(0, wait_together(MAX_WAITERS));
	EXPECT_EQ(MAX_WAITERS, area_get(&self->area, OUTER));

	runs = area_get(&self->area, TALLY_RUNS) / variant->ends;
	EXPECT_LT(0, runs);
	EXPECT_GE(MAX_WAITERS, runs);
	EXPECT_LT(0, area_get(&self->area, OUTER - 1));
}

TEST_HARNESS_MAIN
