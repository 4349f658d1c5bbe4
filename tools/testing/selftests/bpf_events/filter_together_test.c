// SPDX-License-Identifier: GPL-2.0
/* Programs as filters, and what else an event can have */
#include "common.h"
#include "ring.h"
#include "uprobe.h"
#include "filter.h"

/* Slots of the area */
enum { HITS, VERDICT, OTHER_HITS, OTHER_VERDICT };

FIXTURE(together) {
	const char *event;
	struct area area;
	int prog;
	int fd;
};

FIXTURE_VARIANT(together) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(together, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(together, kretprobe) { .kind = &kretprobe_kind };
FIXTURE_VARIANT_ADD(together, uprobe) { .kind = &uprobe_kind };
FIXTURE_VARIANT_ADD(together, tracepoint) { .kind = &tracepoint_kind };
FIXTURE_VARIANT_ADD(together, sys_enter) { .kind = &sys_enter_kind };
FIXTURE_VARIANT_ADD(together, sys_exit) { .kind = &sys_exit_kind };

FIXTURE_SETUP(together)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->event = variant->kind->event;
	self->fd = filter_create(variant->kind, &self->area, &self->prog);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(together)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", instance_left(INSTANCE2));
	EXPECT_STREQ("nothing", leftovers());
}

/* How many of three hits the program is asked about */
static __u64 asked(struct area *area, const struct kind *kind)
{
	return asked_in(area, HITS, kind);
}

/* Instances */

TEST_F(together, instances_have_filters_of_their_own)
{
	int other = filter_prog(&self->area, OTHER_HITS, variant->kind->type);
	int fd;

	ASSERT_EQ(0, instance_create(INSTANCE2));
	ASSERT_EQ(0, event_enable(INSTANCE2, self->event, true));
	area_set(&self->area, VERDICT, 0);
	kind_hits(variant->kind, 3);
	EXPECT_EQ(0, records(INSTANCE));
	EXPECT_EQ(3, records(INSTANCE2));
	EXPECT_STREQ("none", event_text(INSTANCE2, self->event, "filter"));

	fd = filter_attach(INSTANCE2, self->event, other);
	ASSERT_LE(0, fd);
	area_set(&self->area, VERDICT, 1);
	kind_hits(variant->kind, 3);
	EXPECT_EQ(3, records(INSTANCE));
	EXPECT_EQ(0, records(INSTANCE2));
	EXPECT_EQ(6, area_get(&self->area, HITS));
	EXPECT_EQ(3, area_get(&self->area, OTHER_HITS));

	close(self->fd);
	area_set(&self->area, OTHER_VERDICT, 1);
	kind_hits(variant->kind, 3);
	EXPECT_EQ(0, records(INSTANCE));
	EXPECT_EQ(3, records(INSTANCE2));
	EXPECT_EQ(6, area_get(&self->area, HITS));
}

TEST_F(together, one_program_in_two_instances)
{
	int fd;

	ASSERT_EQ(0, instance_create(INSTANCE2));
	fd = filter_attach(INSTANCE2, self->event, self->prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(6, asked(&self->area, variant->kind));
	EXPECT_EQ(3, records(INSTANCE));
	EXPECT_EQ(3, records(INSTANCE2));
	close(self->fd);
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	close(fd);
	EXPECT_EQ(0, asked(&self->area, variant->kind));
}

/* Triggers */

/* Whether the instance records, that is, whether traceon or traceoff came last */
static bool is_tracing(void)
{
	__u64 on = 0;

	return read_u64(INSTANCE "/tracing_on", &on) && on;
}

static int trigger(const char *event, const char *text)
{
	return write_file(event_file(INSTANCE, event, "trigger"), 0, text);
}

TEST_F(together, trigger_acts_on_every_hit)
{
	area_set(&self->area, VERDICT, 0);
	ASSERT_EQ(0, write_file(INSTANCE "/tracing_on", 0, "0"));
	ASSERT_EQ(0, trigger(self->event, "traceon"));
	EXPECT_FALSE(is_tracing());
	variant->kind->hit();
	EXPECT_TRUE(is_tracing());
	EXPECT_EQ(1, area_get(&self->area, HITS));
	ASSERT_EQ(0, trigger(self->event, "!traceon"));
}

TEST_F(together, trigger_with_a_condition_acts_on_those_that_pass)
{
	area_set(&self->area, VERDICT, 0);
	ASSERT_EQ(0, write_file(INSTANCE "/tracing_on", 0, "0"));
	ASSERT_EQ(0, trigger(self->event, "traceon if common_pid > 0"));
	kind_hits(variant->kind, 2);
	EXPECT_EQ(2, area_get(&self->area, HITS));
	EXPECT_FALSE(is_tracing());
	area_set(&self->area, VERDICT, 1);
	variant->kind->hit();
	EXPECT_TRUE(is_tracing());
	ASSERT_EQ(0, trigger(self->event, "!traceon if common_pid > 0"));
}

/* This one acts when the record is complete, for it to be there */
TEST_F(together, trigger_after_the_record_acts_on_those_that_pass)
{
	area_set(&self->area, VERDICT, 0);
	ASSERT_EQ(0, trigger(self->event, "traceoff"));
	kind_hits(variant->kind, 2);
	EXPECT_TRUE(is_tracing());
	area_set(&self->area, VERDICT, 1);
	kind_hits(variant->kind, 2);
	EXPECT_FALSE(is_tracing());
	EXPECT_EQ(1, records(INSTANCE));
	ASSERT_EQ(0, trigger(self->event, "!traceoff"));
}

#define STARTER "syscalls/sys_enter_sched_get_priority_min"

static void start(void)
{
	syscall(__NR_sched_get_priority_min, SCHED_RR);
}

/* A trigger of another event that enables this one */
static int start_trigger(const char *event, bool add)
{
	char name[128];

	snprintf(name, sizeof(name), "%s", event);
	*strchr(name, '/') = ':';
	return write_file(event_file(INSTANCE, STARTER, "trigger"), 0,
			  "%senable_event:%s", add ? "" : "!", name);
}

TEST_F(together, soft_disabled_event_does_not_ask)
{
	ASSERT_EQ(0, start_trigger(self->event, true));
	EXPECT_STREQ("1*", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(3, asked(&self->area, variant->kind));

	ASSERT_EQ(0, event_enable(INSTANCE, self->event, false));
	EXPECT_STREQ("0*", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(0, asked(&self->area, variant->kind));
	records(INSTANCE);

	start();
	EXPECT_STREQ("1*", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	EXPECT_EQ(3, records(INSTANCE));
	ASSERT_EQ(0, start_trigger(self->event, false));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
}

TEST_F(together, soft_disabled_before_is_so_after)
{
	close(self->fd);
	ASSERT_EQ(0, start_trigger(self->event, true));
	EXPECT_STREQ("0*", event_text(INSTANCE, self->event, "enable"));
	self->fd = filter_attach(INSTANCE, self->event, self->prog);
	ASSERT_LE(0, self->fd);
	EXPECT_STREQ("1*", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	close(self->fd);
	EXPECT_STREQ("0*", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(0, asked(&self->area, variant->kind));
	ASSERT_EQ(0, start_trigger(self->event, false));
	EXPECT_STREQ("0", event_text(INSTANCE, self->event, "enable"));
}

/* Who and when */

TEST_F(together, set_event_pid)
{
	ASSERT_EQ(0, write_file(INSTANCE "/set_event_pid", O_TRUNC, "%d", getppid()));
	EXPECT_EQ(0, asked(&self->area, variant->kind));
	ASSERT_EQ(0, write_file(INSTANCE "/set_event_pid", O_TRUNC, "%d", getpid()));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	ASSERT_EQ(0, write_file(INSTANCE "/set_event_pid", O_TRUNC, ""));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
}

TEST_F(together, enable_stops_and_goes_on)
{
	char filter[64];
	int i;

	snprintf(filter, sizeof(filter), "bpf: id %u name " BPF_NAME, prog_id(self->prog));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, event_enable(INSTANCE, self->event, false));
		EXPECT_EQ(0, asked(&self->area, variant->kind));
		EXPECT_STREQ(filter, event_text(INSTANCE, self->event, "filter"));
		ASSERT_EQ(0, event_enable(INSTANCE, self->event, true));
		EXPECT_EQ(3, asked(&self->area, variant->kind));
		EXPECT_EQ(3, records(INSTANCE));
	}
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, false));
	close(self->fd);
	EXPECT_STREQ("none", event_text(INSTANCE, self->event, "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, self->event, "enable"));
}

/* Somebody else's filter, perf */

TEST_F(together, expression_for_the_subsystem)
{
	static const char * const others[] = {
		GROUP "/other", "task/task_newtask", STARTER,
	};
	int i, len = strcspn(self->event, "/") + 1;
	const char *other = NULL;
	char path[128], filter[64];

	ASSERT_EQ(0, event_add("other", "p " FUNC2));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		if (!strncmp(others[i], self->event, len))
			other = others[i];
	}
	snprintf(path, sizeof(path), INSTANCE "/events/%.*sfilter", len, self->event);
	snprintf(filter, sizeof(filter), "bpf: id %u name " BPF_NAME, prog_id(self->prog));

	ASSERT_EQ(0, write_file(path, 0, "common_pid == 1"));
	EXPECT_STREQ("common_pid == 1", event_text(INSTANCE, other, "filter"));
	EXPECT_STREQ(filter, event_text(INSTANCE, self->event, "filter"));
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	EXPECT_EQ(3, records(INSTANCE));

	ASSERT_EQ(0, filter_clear(INSTANCE, other));
}

static int perf_prog(struct area *area, const struct kind *kind)
{
	return filter_prog(area, OTHER_HITS,
			   kind->probe ? BPF_PROG_TYPE_KPROBE :
					 BPF_PROG_TYPE_TRACEPOINT);
}

TEST_F(together, perf_event)
{
	struct ring ring;
	int i, perf;

	perf = perf_open_event(self->event);
	/* Uprobe events are for the one or the other */
	if (variant->kind == &uprobe_kind) {
		EXPECT_EQ(-EINTR, perf);
		return;
	}
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, ring_map(&ring, perf));
	ASSERT_EQ(0, perf_set_bpf(perf, perf_prog(&self->area, variant->kind)));

	/* Each decides about its own records */
	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT, i & 1);
		area_set(&self->area, OTHER_VERDICT, i >> 1);
		EXPECT_EQ(3, asked(&self->area, variant->kind));
		EXPECT_EQ(i & 1 ? 3 : 0, records(INSTANCE));
		EXPECT_EQ(i >> 1 ? 3 : 0, ring_samples(&ring));
	}
	EXPECT_EQ(12, area_get(&self->area, OTHER_HITS));

	close(self->fd);
	EXPECT_EQ(0, asked(&self->area, variant->kind));
	EXPECT_EQ(3, ring_samples(&ring));
	self->fd = filter_attach(INSTANCE, self->event, self->prog);
	ASSERT_LE(0, self->fd);
	ring_unmap(&ring);
	close(perf);
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	EXPECT_EQ(15, area_get(&self->area, OTHER_HITS));
}

TEST_HARNESS_MAIN
