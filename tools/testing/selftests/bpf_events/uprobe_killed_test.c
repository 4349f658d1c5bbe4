// SPDX-License-Identifier: GPL-2.0
/*
 * A task that is killed while it detaches from uprobes, or attaches to them, leaves no
 * breakpoint in other processes, and no reference counter up
 */
#include <sys/time.h>

#include "common.h"
#include "umulti.h"

/* Descriptors from here on are a child's to close */
#define FIRST	500

FIXTURE(killed) {
	struct area area;
};

FIXTURE_VARIANT(killed) {
	struct user_way way;
};

FIXTURE_VARIANT_ADD(killed, uprobe_event) {};

FIXTURE_VARIANT_ADD(killed, uprobe_pmu) {
	.way.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(killed, uretprobe_pmu) {
	.way.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(killed, uprobe_pmu_link) {
	.way = { .flags = PROBE_PMU, .link = true },
};

FIXTURE_VARIANT_ADD(killed, uprobe_multi) {
	.way.multi = true,
};

FIXTURE_SETUP(killed)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(killed)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Closes all that is to close. The first one that is released is the end of a pipe, and
 * the signal about that is fatal, but comes to nothing before all the others are released.
 */
static void close_killed(void *arg)
{
	int last, fds[2];

	last = pipe(fds) ? -1 : fcntl(fds[1], F_DUPFD, FIRST);
	if (last < 0 || fcntl(fds[0], F_SETOWN, getpid()) || fcntl(fds[0], F_SETFL, O_ASYNC))
		_exit(1);
	close(fds[1]);
	close_range(FIRST, last, 0);
}

/* A child has the last descriptor and closes it; returns its status, or -errno */
static int closed_killed(int fd)
{
	int told, own = neg_errno(fcntl(fd, F_DUPFD, FIRST));
	pid_t child;

	close(fd);
	if (own < 0)
		return own;
	child = holder_of(&told, close_killed, NULL);
	close(own);
	close(told);
	return child < 0 ? child : child_status(child);
}

static void close_is_killed(struct __test_metadata *_metadata, FIXTURE_DATA(killed) * self,
			    const FIXTURE_VARIANT(killed) * variant, bool counted)
{
	unsigned int i, probes = (variant->way.multi ? USER_FUNCS : 1) * (counted ? 2 : 1);
	struct umulti multi;
	int fd;

	umulti_init(&multi, 0);
	if (counted)
		umulti_count_refs(&multi);
	for (i = 0; i < 3; i++) {
		area_set(&self->area, 0, 0);
		fd = umulti_attach(&multi, &variant->way, &self->area);
		ASSERT_LE(0, fd);
		call_user(0, 2);
		EXPECT_EQ(2, area_get(&self->area, 0));
		EXPECT_EQ(probes, user_probes());
		EXPECT_EQ(-SIGIO, closed_killed(fd));
		EXPECT_EQ(0, user_probes());
		call_user(0, 2);
		EXPECT_EQ(2, area_get(&self->area, 0));
	}
}

TEST_F(killed, in_close)
{
	close_is_killed(_metadata, self, variant, false);
}

TEST_F(killed, in_close_with_counter)
{
	close_is_killed(_metadata, self, variant, true);
}

/* Another task has a perf event of the same probe, which stays */

FIXTURE(shared) {
	struct area area;
	struct probe probe;
};

FIXTURE_SETUP(shared)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&self->probe, "event", SELF, file_offset(user_func1), 0, 0));
}

FIXTURE_TEARDOWN_PARENT(shared)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(shared, killed_in_close)
{
	int told, fd;
	pid_t other;

	other = holder(&told);
	ASSERT_LT(0, other);
	ASSERT_LE(0, attach_task(&self->probe, other, count_prog(&self->area, 0, 0)));
	EXPECT_EQ(0, user_probes());
	fd = attach_task(&self->probe, getpid(), count_prog(&self->area, 1, 0));
	ASSERT_LE(0, fd);
	call_user(0, 2);
	EXPECT_EQ(2, area_get(&self->area, 1));
	EXPECT_EQ(1, user_probes());
	EXPECT_EQ(-SIGIO, closed_killed(fd));
	EXPECT_EQ(0, user_probes());
	call_user(0, 2);
	EXPECT_EQ(2, area_get(&self->area, 1));
}

/* A link with many probes takes a while to make, and its maker is killed meanwhile */

#define PROBES	2000

FIXTURE(attaching) {
	struct area area;
	union bpf_attr attr;
};

FIXTURE_SETUP(attaching)
{
	static __u64 offsets[PROBES], refs[PROBES];
	struct umulti multi;
	int i;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, area_create(&self->area));
	umulti_init(&multi, 0);
	umulti_attr(&multi, prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI, 0),
		    &self->attr);
	/* One of the functions has a reference counter */
	multi.ref_ctr_offsets[0] = file_offset(&ref_ctrs[0]);
	for (i = 0; i < PROBES; i++) {
		offsets[i] = multi.offsets[i % USER_FUNCS];
		refs[i] = multi.ref_ctr_offsets[i % USER_FUNCS];
	}
	self->attr.link_create.uprobe_multi.offsets = (unsigned long)offsets;
	self->attr.link_create.uprobe_multi.ref_ctr_offsets = (unsigned long)refs;
	self->attr.link_create.uprobe_multi.cookies = 0;
	self->attr.link_create.uprobe_multi.cnt = PROBES;
}

FIXTURE_TEARDOWN_PARENT(attaching)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Attaches until SIGALRM ends the task, and says when it has */
static void attach_for(FIXTURE_DATA(attaching) * self, __u64 ns)
{
	struct itimerval timer = {
		.it_value.tv_sec = ns / 1000000000,
		.it_value.tv_usec = ns / 1000 % 1000000,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setitimer(ITIMER_REAL, &timer, NULL))
		_exit(1);
	sys_bpf(BPF_LINK_CREATE, &self->attr);
	area_set(&self->area, 0, 1);
	for (;;)
		pause();
}

TEST_F(attaching, killed)
{
	__u64 start = now_ns(), whole;
	int i, link = sys_bpf(BPF_LINK_CREATE, &self->attr), in_time = 0;
	pid_t child;

	whole = now_ns() - start;
	ASSERT_LE(0, link);
	EXPECT_EQ(USER_FUNCS + 1, user_probes());
	close(link);
	ASSERT_EQ(0, user_probes());
	/* After a tenth of the time that it took, after two tenths, and so on */
	for (i = 0; in_time < 5 && now_ns() < start + PATIENCE_NS; i++) {
		area_set(&self->area, 0, 0);
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			attach_for(self, whole * (i % 9 + 1) / 10);
		ASSERT_EQ(-SIGALRM, status_in_time(child));
		ASSERT_EQ(0, user_probes());
		if (!area_get(&self->area, 0)) {
			in_time++;
		} else if (i % 9 == 0 && whole > 10000000) {
			/* It took as long as that only because the host stood still: again */
			whole /= 2;
			i--;
		}
	}
	if (in_time < 5)
		say_slow();
	EXPECT_EQ(5, in_time);
}

TEST_HARNESS_MAIN
