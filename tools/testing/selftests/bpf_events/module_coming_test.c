// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoint of a module whose init has not ended, and then fails: nothing that would
 * refer to it from then on is attached
 */
#include "common.h"
#include "filter.h"
#include "module.h"
#include "raw_tp.h"

#define EVENT LEAVING_MODULE "/bpf_events_left"

FIXTURE(coming) {
	struct area area;
	pid_t child;
};

FIXTURE_SETUP(coming)
{
	const char *missing = filter_prepare(), *path = test_module(LEAVING_MODULE);
	pid_t child;

	SKIP_WITHOUT(return, missing);
	if (!path)
		SKIP(return, LEAVING_MODULE);
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(-load_module_with(path, LEAVING_REFUSES));
	self->child = child;
	ASSERT_TRUE(wait_until(leaving_is("coming")));
}

FIXTURE_TEARDOWN_PARENT(coming)
{
	write_file(LEAVING_LEAVE, 0, "1");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Returns how its init failed */
static int end_init(pid_t child)
{
	return write_file(LEAVING_LEAVE, 0, "1") ?: child_status(child);
}

TEST_F(coming, perf_event)
{
	EXPECT_EQ(-EINVAL, perf_open_event(EVENT));
	EXPECT_EQ(ENODEV, end_init(self->child));
}

TEST_F(coming, raw_tracepoint)
{
	union bpf_attr attr;
	int prog;

	raw_tp_attr(&attr);
	prog = body_load(&attr, &self->area, NULL, 0);
	ASSERT_LE(0, prog);
	EXPECT_EQ(-ENOENT, raw_tp_open(prog, "bpf_events_left", 0));
	EXPECT_EQ(ENODEV, end_init(self->child));
}

TEST_F(coming, trigger_of_another_event)
{
	const char *trigger = event_file(INSTANCE, "sched/sched_switch", "trigger");

	EXPECT_EQ(-EBUSY, write_file(trigger, 0, "enable_event:%s:bpf_events_left",
				     LEAVING_MODULE));
	EXPECT_EQ(ENODEV, end_init(self->child));
}

/* It refers to nothing: the event takes it along */
TEST_F(coming, filter)
{
	int filter;

	filter = filter_attach(INSTANCE, EVENT,
			       filter_prog(&self->area, 0, BPF_PROG_TYPE_RAW_TRACEPOINT));
	ASSERT_LE(0, filter);
	EXPECT_EQ(ENODEV, end_init(self->child));
	EXPECT_EQ(-1, access(event_file(INSTANCE, EVENT, "filter"), F_OK));
	close(filter);
}

TEST_HARNESS_MAIN
