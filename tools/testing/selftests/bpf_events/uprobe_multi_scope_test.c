// SPDX-License-Identifier: GPL-2.0
/*
 * A uprobe_multi link is about one process, if it is told which, or else about
 * every one that maps the file
 */
#include <pthread.h>

#include "common.h"
#include "umulti.h"

#define TARGET_ENV "BPF_EVENTS_TARGET"

/* Another process that does what it is told to, letter by letter */
struct target {
	pid_t pid;
	int to, from;
	pthread_t leader;
};

enum {
	HIT = 'h',	/* in the thread that reads the letter */
	THREAD = 't',	/* in a thread of its own */
	FORK = 'f',	/* in a process of its own */
	EXEC = 'x',	/* nothing, but the process starts anew */
	LEAVE = 'l',	/* the first thread exits, another one takes over */
	REFS = 'r',	/* says what is in a counter */
};

static void *hit_once(void *arg)
{
	call_user(0, 1);
	return NULL;
}

static void *serve(void *arg);

/* A thread that goes on when the first one is gone */
static void *take_over(void *arg)
{
	struct target *t = arg;
	char letter = LEAVE;

	pthread_join(t->leader, NULL);
	if (write(t->from, &letter, 1) != 1)
		_exit(1);
	return serve(t);
}

static char obey(struct target *t, char letter)
{
	pthread_t thread;
	char fds[32];
	pid_t child;

	switch (letter) {
	case THREAD:
		pthread_create(&thread, NULL, hit_once, NULL);
		pthread_join(thread, NULL);
		break;
	case FORK:
		child = fork();
		if (!child) {
			hit_once(NULL);
			_exit(0);
		}
		child_status(child);
		break;
	case EXEC:
		snprintf(fds, sizeof(fds), "%d %d", t->to, t->from);
		setenv(TARGET_ENV, fds, true);
		/* SELF is of the first thread, which may be gone */
		execl("/proc/thread-self/exe", "target", NULL);
		_exit(1);
	case LEAVE:
		t->leader = pthread_self();
		pthread_create(&thread, NULL, take_over, t);
		pthread_exit(NULL);
	case REFS:
		return ref_ctr(0) + 1;
	default:
		hit_once(NULL);
	}
	return letter;
}

/* Answers each letter with one when it is done, until there are no more */
static void *serve(void *arg)
{
	struct target *t = arg;
	char letter;

	while (read(t->to, &letter, 1) == 1) {
		letter = obey(t, letter);
		if (write(t->from, &letter, 1) != 1)
			break;
	}
	_exit(0);
}

/* Instead of main(), after an exec: says so, and goes on */
static __attribute__((constructor)) void serve_again(void)
{
	const char *fds = getenv(TARGET_ENV);
	struct target t;
	char letter = EXEC;

	if (fds && sscanf(fds, "%d %d", &t.to, &t.from) == 2 &&
	    write(t.from, &letter, 1) == 1)
		serve(&t);
}

static int target_start(struct target *t)
{
	int to[2], from[2];
	pid_t child;

	if (pipe(to) || pipe(from))
		return -errno;
	child = fork();
	if (!child) {
		/* @t may be in memory that we share */
		struct target own = { .to = to[0], .from = from[1] };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		serve(&own);
	}
	close(to[0]);
	close(from[1]);
	t->pid = child;
	t->to = to[1];
	t->from = from[0];
	return child < 0 ? -errno : 0;
}

static int target_tell(const struct target *t, char letter)
{
	if (write(t->to, &letter, 1) != 1 || read(t->from, &letter, 1) != 1)
		return -EPIPE;
	return letter;
}

/* It exits */
static void target_stop(const struct target *t)
{
	close(t->to);
	child_status(t->pid);
	close(t->from);
}

FIXTURE(scope) {
	struct area area;
	struct umulti multi;
	struct target target;
	int prog;
};

FIXTURE_VARIANT(scope) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(scope, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(scope, return) {
	.flags = BPF_F_UPROBE_MULTI_RETURN,
};

FIXTURE_SETUP(scope)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	umulti_init(&self->multi, variant->flags);
	umulti_count_refs(&self->multi);
	self->prog = tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0);
	ASSERT_LE(0, self->prog);
	ASSERT_EQ(0, target_start(&self->target));
}

FIXTURE_TEARDOWN_PARENT(scope)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* How many runs there are of what the target does */
static __u64 runs_of(struct area *area, const struct target *t, char letter)
{
	__u64 before = area_get(area, TALLY_RUNS);

	if (target_tell(t, letter) != letter)
		return ~0ULL;
	return area_get(area, TALLY_RUNS) - before;
}

static __u64 own_runs(struct area *area)
{
	__u64 before = area_get(area, TALLY_RUNS);

	call_user(0, 1);
	return area_get(area, TALLY_RUNS) - before;
}

TEST_F(scope, every_process)
{
	int link = umulti_link(&self->multi, self->prog);
	struct target *t = &self->target, late;

	ASSERT_LE(0, link);
	EXPECT_EQ(1, own_runs(&self->area));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(1, runs_of(&self->area, t, THREAD));
	EXPECT_EQ(1, runs_of(&self->area, t, FORK));
	EXPECT_EQ(0, runs_of(&self->area, t, EXEC));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	ASSERT_EQ(0, target_start(&late));
	EXPECT_EQ(1, runs_of(&self->area, &late, HIT));
	/* It has the link, too, until then */
	EXPECT_EQ(0, runs_of(&self->area, &late, EXEC));
	EXPECT_EQ(1, runs_of(&self->area, &late, HIT));

	close(link);
	EXPECT_EQ(0, own_runs(&self->area));
	EXPECT_EQ(0, runs_of(&self->area, t, HIT));
	EXPECT_EQ(0, runs_of(&self->area, t, FORK));
	EXPECT_EQ(0, runs_of(&self->area, &late, HIT));
	target_stop(&late);
}

TEST_F(scope, another_process)
{
	struct target *t = &self->target, late;
	int link;

	self->multi.pid = t->pid;
	link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(0, own_runs(&self->area));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(1, runs_of(&self->area, t, THREAD));
	/* A process that comes with a copy of the memory that is probed */
	EXPECT_EQ(0, runs_of(&self->area, t, FORK));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	ASSERT_EQ(0, target_start(&late));
	EXPECT_EQ(0, runs_of(&self->area, &late, HIT));
	target_stop(&late);

	close(link);
	EXPECT_EQ(0, runs_of(&self->area, t, HIT));
	EXPECT_EQ(0, runs_of(&self->area, t, THREAD));
}

TEST_F(scope, own_process)
{
	struct target *t = &self->target, late;
	pthread_t thread;

	self->multi.pid = getpid();
	ASSERT_LE(0, umulti_link(&self->multi, self->prog));
	EXPECT_EQ(1, own_runs(&self->area));
	EXPECT_EQ(0, runs_of(&self->area, t, HIT));
	ASSERT_EQ(0, target_start(&late));
	EXPECT_EQ(0, runs_of(&self->area, &late, HIT));
	target_stop(&late);
	ASSERT_EQ(0, pthread_create(&thread, NULL, hit_once, NULL));
	pthread_join(thread, NULL);
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS));
}

/* It is the same process that maps the file again */
TEST_F(scope, process_that_execs)
{
	struct target *t = &self->target;

	self->multi.pid = t->pid;
	ASSERT_LE(0, umulti_link(&self->multi, self->prog));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(0, runs_of(&self->area, t, EXEC));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(0, runs_of(&self->area, t, FORK));
	EXPECT_EQ(1, runs_of(&self->area, t, THREAD));
}

TEST_F(scope, process_that_exits)
{
	struct target *t = &self->target;
	int link;

	self->multi.pid = t->pid;
	link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	target_stop(t);
	EXPECT_EQ(0, own_runs(&self->area));
	close(link);
	EXPECT_EQ(-ESRCH, umulti_link(&self->multi, self->prog));
}

TEST_F(scope, process_whose_first_thread_exits)
{
	struct target *t = &self->target;
	struct bpf_link_info info = {};
	int link;

	self->multi.pid = t->pid;
	link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(0, runs_of(&self->area, t, LEAVE));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	EXPECT_EQ(1, runs_of(&self->area, t, THREAD));
	EXPECT_EQ(0, own_runs(&self->area));
	/* Another thread takes its pid */
	EXPECT_EQ(0, runs_of(&self->area, t, EXEC));
	EXPECT_EQ(1, runs_of(&self->area, t, HIT));
	ASSERT_EQ(0, link_info(link, &info));
	EXPECT_EQ(t->pid, info.uprobe_multi.pid);
}

/* What the target has in its counter */
static int refs_of(const struct target *t)
{
	return target_tell(t, REFS) - 1;
}

TEST_F(scope, ref_counters)
{
	struct target *t = &self->target;
	int link, all;

	EXPECT_EQ(0, ref_ctr(0));
	EXPECT_EQ(0, refs_of(t));
	self->multi.pid = t->pid;
	link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(0, ref_ctr(0));
	EXPECT_EQ(1, refs_of(t));

	self->multi.pid = 0;
	all = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, all);
	EXPECT_EQ(1, ref_ctr(0));
	EXPECT_EQ(1, refs_of(t));
	/* A new program image has a counter of its own */
	EXPECT_EQ(0, runs_of(&self->area, t, EXEC));
	EXPECT_EQ(1, refs_of(t));

	close(all);
	EXPECT_EQ(0, ref_ctr(0));
	EXPECT_EQ(1, refs_of(t));
	close(link);
	EXPECT_EQ(0, ref_ctr(0));
	EXPECT_EQ(0, refs_of(t));
}

TEST_HARNESS_MAIN
