// SPDX-License-Identifier: GPL-2.0
/*
 * What helpers of a BPF_PROG_TYPE_TRACEPOINT program make of the registers at a
 * hit: those are the kernel's own, at the entry and exit of system calls, too
 */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "body.h"
#include "uprobe.h"
#include "filter.h"

FIXTURE(stack) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_VARIANT(stack) {
	const char *event;
	void (*hit)(void);
};

FIXTURE_VARIANT_ADD(stack, tracepoint) {
	.event = "task/task_rename",
	.hit = hit_rename,
};

FIXTURE_VARIANT_ADD(stack, sys_enter) {
	.event = "syscalls/sys_enter_sched_get_priority_max",
	.hit = hit,
};

FIXTURE_VARIANT_ADD(stack, sys_exit) {
	.event = "syscalls/sys_exit_sched_get_priority_max",
	.hit = hit,
};

FIXTURE_SETUP(stack)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	load_attr(&self->attr, BPF_PROG_TYPE_TRACEPOINT, 0, 0);
}

FIXTURE_TEARDOWN_PARENT(stack)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Attaches a program, and hits the event once */
static int run_once(const char *event, void (*hit)(void), int prog)
{
	int err, perf = perf_open_event(event);

	if (perf < 0)
		return perf;
	err = perf_set_bpf(perf, prog);
	if (!err)
		hit();
	close(perf);
	close(prog);
	return err;
}

TEST_F(stack, get_stack)
{
	int prog = stack_prog(&self->attr, &self->area, 0);

	ASSERT_EQ(0, run_once(variant->event, variant->hit, prog));
	EXPECT_EQ(1, area_get(&self->area, 0));
	/* Two frames at least */
	EXPECT_LE(16, (long)area_get(&self->area, 1));
	EXPECT_TRUE(kernel_frames(&self->area.slot[2], 2));
}

TEST_F(stack, get_stackid)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * STACK_FRAMES, 16, 0);
	__u64 ips[STACK_FRAMES];
	__u32 key;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, run_once(variant->event, variant->hit,
			      stackid_prog(&self->attr, &self->area, map, 0)));
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_LE(0, (long)area_get(&self->area, 1));
	key = area_get(&self->area, 1);
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_TRUE(kernel_frames(ips, 2));
}

/* The stack of the process is there as well */
TEST_F(stack, user_stack)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * STACK_FRAMES, 16, 0);

	ASSERT_LE(0, map);
	ASSERT_EQ(0, run_once(variant->event, variant->hit,
			      stack_prog(&self->attr, &self->area, BPF_F_USER_STACK)));
	ASSERT_LE(8, (long)area_get(&self->area, 1));
	EXPECT_NE(0, area_get(&self->area, 2));
	EXPECT_GT(1ULL << 56, area_get(&self->area, 2));
	ASSERT_EQ(0, run_once(variant->event, variant->hit,
			      stackid_prog(&self->attr, &self->area, map, BPF_F_USER_STACK)));
	EXPECT_LE(0, (long)area_get(&self->area, 1));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

static struct area *dive_area;
static __u64 hits_meanwhile;

static void leave_and_dive(void)
{
	if (!setjmp(before_the_dive()))
		dive(9, leave_the_dive);
	hits_meanwhile = area_get(dive_area, 0);
	dive(0, NULL);
	hits_meanwhile = area_get(dive_area, 0) - hits_meanwhile;
}

static void hit_kfree(void)
{
	dive(9, leave_and_dive);
}

/*
 * A call whose return is probed has the kernel free what it had for those that
 * longjmp() has left. Meanwhile it knows where the others return to: KASAN tells.
 */
TEST(user_stack_while_calls_are_forgotten)
{
	union bpf_attr attr;
	struct probe probe;
	struct area area;

	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&area));
	dive_area = &area;
	load_attr(&attr, BPF_PROG_TYPE_TRACEPOINT, 0, 0);
	ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF, file_offset(dive), 0,
				      PROBE_PMU | PROBE_RETURN));
	ASSERT_LE(0, attach(&probe, count_prog(&area, 2 + STACK_FRAMES, 0)));
	ASSERT_EQ(0, run_once("kmem/kfree", hit_kfree,
			      stack_prog(&attr, &area, BPF_F_USER_STACK)));
	/* Of ten that are forgotten, the kernel may keep one */
	EXPECT_LE(9, hits_meanwhile);
	EXPECT_EQ(10 + 1, area_get(&area, 2 + STACK_FRAMES));
}

/* A record of the program's own says where it was written */
TEST_F(stack, perf_event_output)
{
	int perf, map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr), .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	struct ring ring;
	int key = 0;
	__u32 ip[2];

	ASSERT_LE(0, map);
	perf = perf_open(&attr, -1, 0);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, map_update(map, &key, &perf));
	ASSERT_EQ(0, ring_map(&ring, perf));
	ASSERT_EQ(0, run_once(variant->event, variant->hit,
			      output_prog(&self->attr, &self->area, map)));
	EXPECT_EQ(0, (long)area_get(&self->area, 1));
	/* The address stands where other records have their size */
	ASSERT_EQ(PERF_RECORD_SAMPLE, ring_read(&ring, &ip[1], sizeof(ip[1]), &ip[0]));
	EXPECT_TRUE(kernel_frames(&(__u64){ (__u64)ip[1] << 32 | ip[0] }, 1));
}

TEST_HARNESS_MAIN
