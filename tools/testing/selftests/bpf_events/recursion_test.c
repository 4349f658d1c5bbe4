// SPDX-License-Identifier: GPL-2.0
/* A run that has to be skipped is counted: no loss is silent */
#include "common.h"
#include "filter.h"
#include "hitter.h"

/* A function that the timer interrupt calls */
#define IRQ_FUNC "update_process_times"

/* Slots: runs of the outer and the inner program */
enum { OUTER, INNER };

/*
 * A program on a function that runs while another program does.  How the
 * kernel gets to either of them decides who notices.
 */

FIXTURE(nested) {
	struct area area;
	int map;
	struct optimize optimize;
};

FIXTURE_VARIANT(nested) {
	bool outer_body;	/* in the body of the function: no ftrace */
	bool inner_body;
	unsigned int inner_flags;
	bool optimize;		/* a jump instead of a breakpoint */
};

FIXTURE_VARIANT_ADD(nested, ftrace_in_ftrace) {
	.outer_body = false, .inner_body = false,
};

FIXTURE_VARIANT_ADD(nested, breakpoint_in_ftrace) {
	.outer_body = false, .inner_body = true,
};

FIXTURE_VARIANT_ADD(nested, ftrace_in_breakpoint) {
	.outer_body = true, .inner_body = false,
};

FIXTURE_VARIANT_ADD(nested, breakpoint_in_breakpoint) {
	.outer_body = true, .inner_body = true,
};

FIXTURE_VARIANT_ADD(nested, jump_in_ftrace) {
	.outer_body = false, .inner_body = true, .optimize = true,
};

FIXTURE_VARIANT_ADD(nested, ftrace_in_jump) {
	.outer_body = true, .inner_body = false, .optimize = true,
};

FIXTURE_VARIANT_ADD(nested, jump_in_jump) {
	.outer_body = true, .inner_body = true, .optimize = true,
};

FIXTURE_VARIANT_ADD(nested, kretprobe_in_ftrace) {
	.outer_body = false, .inner_flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(nested, kretprobe_in_breakpoint) {
	.outer_body = true, .inner_flags = PROBE_RETURN,
};

FIXTURE_SETUP(nested)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	if (optimize_save(&self->optimize))
		ASSERT_EQ(0, write_file(OPTIMIZE, 0, "%d", variant->optimize));
	ASSERT_EQ(0, area_create(&self->area));
	self->map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(nested)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(nested, hit_inside_a_helper_is_counted)
{
	int outer, inner, outer_fd, inner_fd, i;
	struct probe outer_probe, inner_probe;
	__u64 key = 9, val = 1;
	struct fdinfo info;

	if (mainline())
		SKIP(return, "mainline does not count such a hit as missed");
	inner = count_prog(&self->area, INNER, 0);
	outer = map_update_prog(&self->area, OUTER, self->map, 0);
	ASSERT_EQ(0, site_create(&outer_probe, "outer", BODY_FUNC,
				 variant->outer_body, 0));
	ASSERT_EQ(0, site_create(&inner_probe, "inner", UPDATE_FUNC,
				 variant->inner_body, variant->inner_flags));
	inner_fd = attach(&inner_probe, inner);
	ASSERT_LE(0, inner_fd);
	outer_fd = attach(&outer_probe, outer);
	ASSERT_LE(0, outer_fd);
	if (variant->optimize && variant->outer_body)
		wait_optimized(BODY_FUNC);
	if (variant->optimize && variant->inner_body)
		wait_optimized(UPDATE_FUNC);

	hit_body();
	EXPECT_EQ(1, misses(inner));
	for (i = 0; i < 19; i++)
		hit_body();
	EXPECT_EQ(20, misses(inner));
	EXPECT_EQ(20, area_get(&self->area, OUTER));
	EXPECT_EQ(0, area_get(&self->area, INNER));
	EXPECT_EQ(0, misses(outer));
	ASSERT_EQ(0, read_fdinfo(inner_fd, &info));
	EXPECT_EQ(0, info.hits);
	EXPECT_EQ(20, info.missed);
	ASSERT_EQ(0, read_fdinfo(outer_fd, &info));
	EXPECT_EQ(20, info.hits);
	EXPECT_EQ(0, info.missed);

	/* bpf(2) holds programs off while it works on a map */
	for (i = 1; i <= 5; i++)
		ASSERT_EQ(0, map_update(self->map, &key, &val));
	EXPECT_EQ(0, area_get(&self->area, INNER));
	EXPECT_EQ(25, misses(inner));

	/* The count outlives the attachment, and ends with it */
	close(inner_fd);
	ASSERT_EQ(0, map_update(self->map, &key, &val));
	hit_body();
	EXPECT_EQ(25, misses(inner));
}

/* Two programs share the fate of a hit */
TEST_F(nested, all_programs_of_the_event_miss)
{
	int outer, inner[2], i;
	struct probe outer_probe, inner_probe;

	if (mainline())
		SKIP(return, "mainline does not count such a hit as missed");
	outer = map_update_prog(&self->area, OUTER, self->map, 0);
	ASSERT_EQ(0, site_create(&outer_probe, "outer", BODY_FUNC,
				 variant->outer_body, 0));
	ASSERT_EQ(0, site_create(&inner_probe, "inner", UPDATE_FUNC,
				 variant->inner_body, variant->inner_flags));
	for (i = 0; i < 2; i++) {
		inner[i] = count_prog(&self->area, INNER, 0);
		ASSERT_LE(0, attach(&inner_probe, inner[i]));
	}
	ASSERT_LE(0, attach(&outer_probe, outer));
	for (i = 0; i < 5; i++)
		hit_body();
	EXPECT_EQ(5, area_get(&self->area, OUTER));
	EXPECT_EQ(0, area_get(&self->area, INNER));
	EXPECT_EQ(5, misses(inner[0]));
	EXPECT_EQ(5, misses(inner[1]));
}

/* The function tracer is no kprobe: it sees what a program calls, from whatever probe */
TEST_F(nested, function_tracer)
{
	struct probe outer;

	if (access(TRACEFS "/set_ftrace_filter", F_OK))
		SKIP(return, "CONFIG_FUNCTION_TRACER");
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, write_file(INSTANCE "/set_ftrace_filter", 0, UPDATE_FUNC));
	ASSERT_EQ(0, write_file(INSTANCE "/current_tracer", 0, "function"));
	ASSERT_EQ(0, site_create(&outer, "outer", BODY_FUNC, variant->outer_body, 0));
	ASSERT_LE(0, attach(&outer, map_update_prog(&self->area, OUTER, self->map, 0)));
	if (variant->optimize && variant->outer_body)
		wait_optimized(BODY_FUNC);
	hit_body();
	EXPECT_EQ(1, area_get(&self->area, OUTER));
	EXPECT_EQ(1, records_of(INSTANCE, UPDATE_FUNC " <-"));
	EXPECT_EQ(0, write_file(INSTANCE "/current_tracer", 0, "nop"));
	EXPECT_EQ(0, write_file(INSTANCE "/set_ftrace_filter", O_TRUNC, ""));
}

/* Other ways to miss */

FIXTURE(missed) {
	struct area area;
};

FIXTURE_SETUP(missed)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(missed)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(missed, interrupt_on_top_of_a_program)
{
	struct probe slow, tick;
	struct fdinfo info;
	int prog, fd;

	if (mainline())
		SKIP(return, "mainline does not count such a hit as missed");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, probe_create(&slow, 0));
	ASSERT_EQ(0, probe_create_at(&tick, "tick", IRQ_FUNC, 0, 0));
	prog = count_prog(&self->area, INNER, 0);
	fd = attach(&tick, prog);
	ASSERT_LE(0, fd);
	/* What it stores is scratch to it, which the other one uses, too */
	ASSERT_LE(0, attach(&slow, long_prog(&self->area, OUTER)));

	/* It runs where it can */
	EXPECT_TRUE(wait_between(misses(prog) && area_get(&self->area, INNER), hit()));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(wait_until(!read_fdinfo(fd, &info) &&
			       info.hits == area_get(&self->area, INNER)));
	EXPECT_EQ(misses(prog), info.missed);
}

TEST_F(missed, kretprobe_without_a_free_instance)
{
	struct probe probe = { .event = "rets" };
	struct fdinfo info;
	int prog, fd;

	/* One call at a time, as maxactive says */
	ASSERT_EQ(0, event_add("rets", "r1 %s", WAIT_FUNC));
	prog = count_prog(&self->area, INNER, 0);
	fd = attach(&probe, prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, wait_together(3));

	EXPECT_EQ(1, area_get(&self->area, INNER));
	if (mainline()) /* which counts them for the event only */
		return;
	EXPECT_EQ(2, misses(prog));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(1, info.hits);
	EXPECT_EQ(2, info.missed);
}

/* The one instance is free again, wherever the call was that had it */
TEST_F(missed, kretprobe_with_its_instance_on_another_cpu)
{
	struct probe probe = { .event = "rets" };
	int prog, i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, event_add("rets", "r1 %s", FUNC));
	prog = count_prog(&self->area, INNER, 0);
	ASSERT_LE(0, attach(&probe, prog));
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, pin(i % 2));
		hits(2);
	}
	EXPECT_EQ(12, area_get(&self->area, INNER));
	EXPECT_EQ(0, misses(prog));
}

TEST_HARNESS_MAIN
