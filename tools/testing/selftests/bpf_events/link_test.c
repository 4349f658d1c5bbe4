// SPDX-License-Identifier: GPL-2.0
/* A link keeps a program attached to a perf event until the link goes */
#include <sys/prctl.h>
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "ring.h"

#define PIN BPFFS "/bpf_events_test"

FIXTURE(link) {
	struct probe probe;
	struct area area;
	int perf;
	int link;
};

FIXTURE_VARIANT(link) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(link, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(link, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(link, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(link, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(link)
{
	int prog;

	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->perf = probe_open(&self->probe);
	ASSERT_LE(0, self->perf);
	/* The link's reference is all that holds the program */
	prog = count_prog(&self->area, 0, 1);
	self->link = perf_link(self->perf, prog);
	ASSERT_LE(0, self->link);
	close(prog);
}

FIXTURE_TEARDOWN_PARENT(link)
{
	unlink(PIN);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(link, close)
{
	EXPECT_TRUE(runs(&self->area));
	close(self->link);
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(link, close_after_the_perf_event)
{
	close(self->perf);
	EXPECT_TRUE(runs(&self->area));
	/* The probe is in use */
	if (!(variant->flags & PROBE_PMU))
		EXPECT_EQ(-EBUSY, event_remove("event"));
	close(self->link);
	EXPECT_TRUE(stands_still(&self->area));
	if (!(variant->flags & PROBE_PMU))
		EXPECT_EQ(0, event_remove("event"));
}

TEST_F(link, perf_event_goes_on_without_its_program)
{
	struct ring ring;

	ASSERT_EQ(0, ring_map(&ring, self->perf));
	close(self->link);
	hits(3);
	EXPECT_EQ(3, ring_samples(&ring));
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_F(link, perf_event_takes_the_next_program)
{
	int i, link;

	close(self->link);
	for (i = 1; i <= 3; i++) {
		link = perf_link(self->perf, count_prog(&self->area, i, 0));
		ASSERT_LE(0, link);
		hits(2);
		EXPECT_EQ(2, area_get(&self->area, i));
		close(link);
		hits(2);
		EXPECT_EQ(2, area_get(&self->area, i));
	}

	/* By SET_BPF, too */
	ASSERT_EQ(0, perf_set_bpf(self->perf, count_prog(&self->area, i, 0)));
	hits(2);
	EXPECT_EQ(2, area_get(&self->area, i));
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_F(link, dup)
{
	int link = dup(self->link);

	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	close(link);
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(link, close_on_exec)
{
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->link, F_GETFD));
}

TEST_F(link, exit)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(link, sigkill)
{
	int pipe_fd;
	pid_t child;

	/* Nobody but the child has the perf event, either */
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(self->link);
	close(self->perf);
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(link, pin)
{
	ASSERT_EQ(0, obj_pin(self->link, PIN));
	EXPECT_EQ(-EEXIST, obj_pin(self->link, PIN));
	close(self->link);
	close(self->perf);
	EXPECT_TRUE(runs(&self->area));
	EXPECT_EQ(0, unlink(PIN));
	EXPECT_TRUE(comes_to_a_halt(&self->area));
	EXPECT_EQ(-ENOENT, obj_get(PIN));
}

TEST_F(link, pin_outlives_its_maker)
{
	pid_t child = fork();
	int link;

	ASSERT_LE(0, child);
	if (!child)
		_exit(obj_pin(self->link, PIN) ? 1 : 0);
	EXPECT_EQ(0, child_status(child));
	close(self->link);
	close(self->perf);
	EXPECT_TRUE(runs(&self->area));

	link = obj_get(PIN);
	ASSERT_LE(0, link);
	EXPECT_EQ(0, unlink(PIN));
	EXPECT_TRUE(runs(&self->area));
	close(link);
	EXPECT_TRUE(comes_to_a_halt(&self->area));
}

TEST_F(link, found_by_its_id)
{
	int link, id = link_id(self->link);

	ASSERT_NE(0, id);
	link = link_by_id(id);
	ASSERT_LE(0, link);
	EXPECT_EQ(id, link_id(link));
	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	close(link);
	EXPECT_TRUE(stands_still(&self->area));
	EXPECT_EQ(-ENOENT, link_by_id(id));
}

TEST_F(link, verdict_decides_about_records)
{
	struct ring ring;
	int i;

	ASSERT_EQ(0, ring_map(&ring, self->perf));
	close(self->link);
	self->link = perf_link(self->perf, verdict_prog(&self->area));
	ASSERT_LE(0, self->link);
	for (i = 0; i < 4; i++) {
		area_set(&self->area, 1, i & 1);
		hits(3);
		EXPECT_EQ(i & 1 ? 3 : 0, ring_samples(&ring));
	}
	EXPECT_EQ(12, area_get(&self->area, 0));
}

/* Which libbpf does when it lets go of a link that is pinned */
TEST_F(link, disabled_event_does_not_matter)
{
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(&self->area));

	/* The same, for all events of the task */
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE));
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	EXPECT_TRUE(runs(&self->area));
}

/* close() has returned: the next hit, on whatever CPU, does not run it */
TEST_F(link, nothing_runs_after_close)
{
	struct hitters hitters;
	int i, link, prog, ok = 1;

	close(self->link);
	ASSERT_LE(0, hold_function());
	ASSERT_EQ(0, hitters_start(&hitters, &self->area, 0));
	for (i = 0; ok && i < 5; i++) {
		prog = number_prog(&self->area);
		link = perf_link(self->perf, prog);
		close(prog);
		ok = hitters_close(&hitters, link, true);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&hitters);
}

/* Several programs on one event, by link and by SET_BPF */

FIXTURE(several) {
	FIXTURE_DATA(link) l;
};

FIXTURE_SETUP(several)
{
	link_setup(_metadata, &self->l, &_link_kprobe_event_variant);
}

FIXTURE_TEARDOWN_PARENT(several)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(several, come_and_go_in_any_order)
{
	int fd = attach(&self->l.probe, count_prog(&self->l.area, 1, 1));
	int link = attach_link(&self->l.probe, count_prog(&self->l.area, 2, 1), 0);

	ASSERT_LE(0, fd);
	ASSERT_LE(0, link);
	EXPECT_EQ(3, query_count(self->l.perf));
	hit();
	close(self->l.link);
	EXPECT_EQ(2, query_count(self->l.perf));
	hit();
	close(link);
	hit();
	close(fd);
	hit();
	EXPECT_EQ(1, area_get(&self->l.area, 0));
	EXPECT_EQ(3, area_get(&self->l.area, 1));
	EXPECT_EQ(2, area_get(&self->l.area, 2));
	EXPECT_EQ(0, query_count(self->l.perf));
}

TEST_HARNESS_MAIN
