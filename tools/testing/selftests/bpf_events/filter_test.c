// SPDX-License-Identifier: GPL-2.0
/* A program is the filter of an event until the file it came through is closed */
#include "common.h"
#include "uprobe.h"
#include "filter.h"

/* Slots of the area: hits, and what the program returns */
enum { HITS, VERDICT };

FIXTURE(filter) {
	const char *event;
	struct area area;
	int prog;
	int fd;
};

FIXTURE_VARIANT(filter) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(filter, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(filter, kretprobe) { .kind = &kretprobe_kind };
FIXTURE_VARIANT_ADD(filter, uprobe) { .kind = &uprobe_kind };
FIXTURE_VARIANT_ADD(filter, uretprobe) { .kind = &uretprobe_kind };
FIXTURE_VARIANT_ADD(filter, tracepoint) { .kind = &tracepoint_kind };
FIXTURE_VARIANT_ADD(filter, sys_enter) { .kind = &sys_enter_kind };
FIXTURE_VARIANT_ADD(filter, sys_exit) { .kind = &sys_exit_kind };

FIXTURE_SETUP(filter)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->event = variant->kind->event;
	self->fd = filter_create(variant->kind, &self->area, &self->prog);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(filter)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Whether three hits are in the program's count, and in the trace */
static bool asked(struct area *area, const struct kind *kind)
{
	__u64 before = area_get(area, HITS);

	kind_hits(kind, 3);
	return area_get(area, HITS) == before + 3 && records(INSTANCE) == 3;
}

/* Whether there is no filter, and nothing is recorded */
static bool gone(struct area *area, const struct kind *kind)
{
	__u64 before = area_get(area, HITS);

	kind_hits(kind, 3);
	return area_get(area, HITS) == before && records(INSTANCE) == 0 &&
	       !strcmp(event_text(INSTANCE, kind->event, "enable"), "0") &&
	       !strcmp(event_text(INSTANCE, kind->event, "filter"), "none");
}

TEST_F(filter, write_enables_and_close_disables)
{
	EXPECT_STREQ("1", event_text(INSTANCE, self->event, "enable"));
	EXPECT_TRUE(asked(&self->area, variant->kind));
	close(self->fd);
	EXPECT_TRUE(gone(&self->area, variant->kind));
}

TEST_F(filter, verdict_decides)
{
	int i;

	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT, i & 1);
		kind_hits(variant->kind, 3);
		EXPECT_EQ(i & 1 ? 3 : 0, records(INSTANCE));
	}
	EXPECT_EQ(12, area_get(&self->area, HITS));

	/* A verdict has 32 bits */
	area_set(&self->area, VERDICT, 0x80000000);
	kind_hits(variant->kind, 1);
	EXPECT_EQ(1, records(INSTANCE));
}

/* Empties the pipe and says how many lines of this process were in it */
static unsigned int pipe_lines(int fd)
{
	char text[4096], pid[16], *at;
	unsigned int n = 0;
	ssize_t len;

	snprintf(pid, sizeof(pid), "-%d ", getpid());
	while ((len = read(fd, text, sizeof(text) - 1)) > 0) {
		text[len] = '\0';
		for (at = text; (at = strstr(at, pid)); at++)
			n++;
	}
	return n;
}

TEST_F(filter, trace_pipe)
{
	int i, fd = open(INSTANCE "/trace_pipe", O_RDONLY | O_NONBLOCK);

	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT, i & 1);
		kind_hits(variant->kind, 3);
		EXPECT_EQ(i & 1 ? 3 : 0, pipe_lines(fd));
	}
	close(fd);
}

/* Where no space is to be had, the program is asked all the same */
TEST_F(filter, asked_before_space_is_taken)
{
	ASSERT_EQ(0, write_file(INSTANCE "/tracing_on", 0, "0"));
	kind_hits(variant->kind, 3);
	EXPECT_EQ(3, area_get(&self->area, HITS));
	EXPECT_EQ(0, records(INSTANCE));
	ASSERT_EQ(0, write_file(INSTANCE "/tracing_on", 0, "1"));
	EXPECT_TRUE(asked(&self->area, variant->kind));
}

TEST_F(filter, reads_as_the_program)
{
	char text[64];

	snprintf(text, sizeof(text), "bpf: id %u name " BPF_NAME, prog_id(self->prog));
	EXPECT_STREQ(text, event_text(INSTANCE, self->event, "filter"));
}

TEST_F(filter, fdinfo)
{
	int other = filter_open(INSTANCE, self->event);
	struct fdinfo info;

	ASSERT_LE(0, other);
	kind_hits(variant->kind, 2);
	area_set(&self->area, VERDICT, 0);
	kind_hits(variant->kind, 3);
	ASSERT_EQ(0, read_fdinfo(self->fd, &info));
	EXPECT_EQ(prog_id(self->prog), info.id);
	EXPECT_LE(5, info.hits);
	EXPECT_EQ(0, info.missed);
	/* The lines are those of the event, in each file that is open */
	ASSERT_EQ(0, read_fdinfo(other, &info));
	EXPECT_EQ(prog_id(self->prog), info.id);

	close(self->fd);
	EXPECT_EQ(-ENOENT, read_fdinfo(other, &info));
}

TEST_F(filter, holds_the_program)
{
	__u32 id = prog_id(self->prog);
	int prog;

	close(self->prog);
	prog = prog_by_id(id);
	ASSERT_LE(0, prog);
	close(prog);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	close(self->fd);
	EXPECT_EQ(-ENOENT, prog_by_id(id));
}

TEST_F(filter, dup)
{
	int fd = dup(self->fd);

	close(self->fd);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	close(fd);
	EXPECT_TRUE(gone(&self->area, variant->kind));
}

TEST_F(filter, child_keeps_it)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->fd);
	close(self->prog);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(gone(&self->area, variant->kind));
}

TEST_F(filter, sigkill)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->fd);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(gone(&self->area, variant->kind));
}

/* Closing another open file of the same filter is nothing to it */
TEST_F(filter, owner_is_an_open_file)
{
	int fd = filter_open(INSTANCE, self->event);

	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_TRUE(asked(&self->area, variant->kind));
}

TEST_F(filter, zero_removes_it)
{
	int prog = filter_prog(&self->area, HITS, variant->kind->type);

	ASSERT_EQ(0, filter_clear(INSTANCE, self->event));
	EXPECT_TRUE(gone(&self->area, variant->kind));
	/* Nothing is left to remove, and that is no error */
	ASSERT_EQ(0, filter_clear(INSTANCE, self->event));

	/* The same file can bring the next one */
	ASSERT_EQ(0, filter_write(self->fd, "bpf-%d\n", prog));
	EXPECT_TRUE(asked(&self->area, variant->kind));
	ASSERT_EQ(0, filter_write(self->fd, "0\n"));
	EXPECT_TRUE(gone(&self->area, variant->kind));

	/* A filter that came otherwise is not this file's */
	ASSERT_EQ(0, filter_attach_id(INSTANCE, self->event, prog_id(prog)));
	close(self->fd);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	ASSERT_EQ(0, filter_clear(INSTANCE, self->event));
}

TEST_F(filter, enabled_before_stays_enabled)
{
	close(self->fd);
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, true));
	self->fd = filter_attach(INSTANCE, self->event, self->prog);
	ASSERT_LE(0, self->fd);
	area_set(&self->area, VERDICT, 0);
	kind_hits(variant->kind, 3);
	EXPECT_EQ(0, records(INSTANCE));
	close(self->fd);
	EXPECT_STREQ("1", event_text(INSTANCE, self->event, "enable"));
	kind_hits(variant->kind, 3);
	EXPECT_EQ(3, records(INSTANCE));
	EXPECT_EQ(3, area_get(&self->area, HITS));
}

TEST_F(filter, by_id_stays_until_it_is_removed)
{
	__u32 id = prog_id(self->prog);
	pid_t child;

	close(self->fd);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(filter_attach_id(INSTANCE, self->event, id) ? 1 : 0);
	EXPECT_EQ(0, child_status(child));
	close(self->prog);
	EXPECT_TRUE(asked(&self->area, variant->kind));
	EXPECT_EQ(0, filter_clear(INSTANCE, self->event));
	EXPECT_TRUE(gone(&self->area, variant->kind));
	EXPECT_EQ(-ENOENT, prog_by_id(id));
}

TEST_F(filter, expressions_work_before_and_after)
{
	close(self->fd);
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, true));
	ASSERT_EQ(0, write_file(event_file(INSTANCE, self->event, "filter"), 0,
				"common_pid != %d", getpid()));
	kind_hits(variant->kind, 3);
	EXPECT_EQ(0, records(INSTANCE));
	ASSERT_EQ(0, filter_clear(INSTANCE, self->event));
	kind_hits(variant->kind, 3);
	EXPECT_EQ(3, records(INSTANCE));
	self->fd = filter_attach(INSTANCE, self->event, self->prog);
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(asked(&self->area, variant->kind));
}

TEST_HARNESS_MAIN
