// SPDX-License-Identifier: GPL-2.0
/* What becomes of a filter when its instance, event or module goes away */
#include "common.h"
#include "error_log.h"
#include "uprobe.h"
#include "filter.h"
#include "module.h"

/* Slots of the area */
enum { HITS, VERDICT };

FIXTURE(event) {
	const char *event;
	struct area area;
	int prog;
	int fd;
};

FIXTURE_VARIANT(event) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(event, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(event, kretprobe) { .kind = &kretprobe_kind };
FIXTURE_VARIANT_ADD(event, uprobe) { .kind = &uprobe_kind };

FIXTURE_SETUP(event)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->event = variant->kind->event;
	self->fd = filter_create(variant->kind, &self->area, &self->prog);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(event)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* How many of three hits the program is asked about */
static __u64 asked(struct area *area, const struct kind *kind)
{
	return asked_in(area, HITS, kind);
}

TEST_F(event, instance_is_removed)
{
	__u32 id = prog_id(self->prog);

	/* An open file holds the instance */
	EXPECT_EQ(-EBUSY, instance_remove(INSTANCE));
	close(self->fd);
	ASSERT_EQ(0, filter_attach_id(INSTANCE, self->event, id));
	close(self->prog);
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	ASSERT_EQ(0, instance_remove(INSTANCE));
	EXPECT_EQ(0, asked(&self->area, variant->kind));
	EXPECT_TRUE(prog_is_freed(id));
}

static int remove_event(void)
{
	return write_file(TRACEFS "/dynamic_events", O_APPEND, "-:" GROUP "/event\n");
}

TEST_F(event, in_use)
{
	EXPECT_EQ(-EBUSY, remove_event());
	EXPECT_EQ(3, asked(&self->area, variant->kind));
	close(self->fd);
	EXPECT_EQ(0, remove_event());
}

TEST_F(event, is_removed_while_disabled)
{
	__u32 id = prog_id(self->prog);

	close(self->fd);
	ASSERT_EQ(0, filter_attach_id(INSTANCE, self->event, id));
	close(self->prog);
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, false));
	ASSERT_EQ(0, remove_event());
	EXPECT_TRUE(prog_is_freed(id));

	/* One of the same name is another event */
	ASSERT_EQ(0, kind_create(variant->kind));
	EXPECT_STREQ("none", event_text(INSTANCE, self->event, "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(0, asked(&self->area, variant->kind));
}

TEST_F(event, is_removed_under_an_open_file)
{
	__u32 id = prog_id(self->prog);
	struct fdinfo info;

	ASSERT_EQ(0, event_enable(INSTANCE, self->event, false));
	ASSERT_EQ(0, remove_event());
	EXPECT_EQ(-ENODEV, filter_write(self->fd, "bpf-%d", self->prog));
	EXPECT_EQ(-ENODEV, filter_write(self->fd, "0"));
	EXPECT_EQ(-ENOENT, read_fdinfo(self->fd, &info));
	close(self->prog);
	EXPECT_TRUE(prog_is_freed(id));
	close(self->fd);
}

FIXTURE(uprobe) {
	FIXTURE_DATA(event) t;
};

FIXTURE_SETUP(uprobe)
{
	event_setup(_metadata, &self->t, &_event_uprobe_variant);
}

FIXTURE_TEARDOWN_PARENT(uprobe)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* An event that cannot be enabled has no filter, and goes on as it was */
TEST_F(uprobe, cannot_be_enabled)
{
	int perf;

	close(self->t.fd);
	perf = perf_open_event(self->t.event);
	ASSERT_LE(0, perf);
	EXPECT_EQ(-EINTR, filter_attach(INSTANCE, self->t.event, self->t.prog));
	EXPECT_STREQ("none", event_text(INSTANCE, self->t.event, "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, self->t.event, "enable"));
	EXPECT_TRUE(logged_in(INSTANCE "/error_log", "bpf_filter",
			      "The event could not be enabled", GROUP ":event bpf-"));
	close(perf);
	self->t.fd = filter_attach(INSTANCE, self->t.event, self->t.prog);
	ASSERT_LE(0, self->t.fd);
	EXPECT_EQ(3, asked(&self->t.area, &uprobe_kind));
}

/* Modules */

FIXTURE(module) {
	struct area area;
	const char *path;
	int prog;
};

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->path = sample_module();
	if (!self->path)
		SKIP(return, NO_SAMPLE_MODULE);
	sample_unload();
	ASSERT_EQ(0, load_module(self->path));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = sample_prog(&self->area, HITS);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(module)
{
	EXPECT_EQ(-ENOENT, sample_unload());
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(module, is_unloaded_before_close)
{
	__u32 id = prog_id(self->prog);
	int fd = filter_attach(INSTANCE, SAMPLE_EVENT, self->prog);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(sample_wait_hit(&self->area, HITS));
	ASSERT_EQ(0, sample_unload());
	EXPECT_EQ(-ENODEV, filter_write(fd, "bpf-%d", self->prog));
	close(self->prog);
	EXPECT_TRUE(prog_is_freed(id));
	close(fd);
}

TEST_F(module, is_unloaded_after_close)
{
	int fd = filter_attach(INSTANCE, SAMPLE_EVENT, self->prog);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(sample_wait_hit(&self->area, HITS));
	close(fd);
	ASSERT_EQ(0, sample_unload());
}

TEST_F(module, comes_back_without_the_filter)
{
	__u32 id = prog_id(self->prog);
	__u64 before;

	ASSERT_EQ(0, filter_attach_id(INSTANCE, SAMPLE_EVENT, id));
	ASSERT_EQ(0, sample_unload());
	ASSERT_EQ(0, load_module(self->path));
	EXPECT_STREQ("none", event_text(INSTANCE, SAMPLE_EVENT, "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, SAMPLE_EVENT, "enable"));
	before = area_get(&self->area, HITS);
	sleep_ms(1500);
	EXPECT_EQ(before, area_get(&self->area, HITS));

	ASSERT_EQ(0, filter_attach_id(INSTANCE, SAMPLE_EVENT, id));
	EXPECT_TRUE(sample_wait_hit(&self->area, HITS));
	ASSERT_EQ(0, sample_unload());
	close(self->prog);
	EXPECT_TRUE(prog_is_freed(id));
}

TEST_HARNESS_MAIN
