// SPDX-License-Identifier: GPL-2.0
/* Several threads at one event of tracefs, and at the event's place in tracefs */
#include "common.h"
#include "hitter.h"

#define THREADS 4
#define MAX_PROGS 64

/* For counting among threads */
static int add(int *n)
{
	return __atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

static int get(int *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

struct crowd {
	struct probe probe;
	struct area area;
	pthread_t threads[THREADS];
	pthread_barrier_t barrier;
	__u64 end;
	int fd;			/* a perf event, or */
	int prog;		/* a program that all of them use */
	int fds[THREADS][MAX_PROGS];
	int next, won, exist, full, other;
};

FIXTURE(threads) {
	struct crowd crowd;
};

FIXTURE_SETUP(threads)
{
	struct crowd *c = &self->crowd;

	SKIP_WITHOUT(return, prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&c->area));
	ASSERT_EQ(0, probe_create(&c->probe, 0));
	ASSERT_LE(0, hold_function());
	ASSERT_EQ(0, pthread_barrier_init(&c->barrier, NULL, THREADS));
	c->end = deadline();
}

FIXTURE_TEARDOWN_PARENT(threads)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int threads_run(struct crowd *c, void *(*func)(void *))
{
	int i;

	c->next = 0;
	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&c->threads[i], NULL, func, c))
			return -EAGAIN;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(c->threads[i], NULL);
	return 0;
}

static void count_result(struct crowd *c, int ret)
{
	add(ret >= 0 ? &c->won : ret == -EEXIST ? &c->exist :
	    ret == -E2BIG ? &c->full : &c->other);
}

/* Attaches as many programs as it can, more than there is room for */
static void *attach_many(void *arg)
{
	struct crowd *c = arg;
	int me = add(&c->next) - 1, i, ret;

	for (i = 0; i < MAX_PROGS / THREADS + 4; i++) {
		int prog = count_prog(&c->area, me, 1);

		ret = attach(&c->probe, prog);
		count_result(c, ret);
		c->fds[me][i] = ret;
		close(prog);
		hits(3);
	}
	pthread_barrier_wait(&c->barrier);
	while (i--) {
		if (c->fds[me][i] >= 0)
			close(c->fds[me][i]);
	}
	return NULL;
}

TEST_F(threads, attach_many_programs)
{
	struct crowd *c = &self->crowd;
	__u64 before;
	int n, fd;

	fd = probe_open(&c->probe);
	ASSERT_LE(0, fd);
	for (n = 1; n == 1 || now_ns() < c->end; n++) {
		ASSERT_EQ(0, threads_run(c, attach_many));
		EXPECT_EQ(n * MAX_PROGS, get(&c->won));
		EXPECT_EQ(n * THREADS * 4, get(&c->full));
		EXPECT_EQ(0, get(&c->exist) + get(&c->other));
		EXPECT_EQ(0, query_count(fd));
		before = area_get(&c->area, 0);
		hits(3);
		EXPECT_EQ(before, area_get(&c->area, 0));
	}
}

static void *attach_one_program(void *arg)
{
	struct crowd *c = arg;
	int fd = probe_open(&c->probe);

	pthread_barrier_wait(&c->barrier);
	count_result(c, perf_set_bpf(fd, c->prog));
	pthread_barrier_wait(&c->barrier);
	close(fd);
	return NULL;
}

TEST_F(threads, attach_one_program)
{
	struct crowd *c = &self->crowd;
	int n;

	for (n = 1; n == 1 || now_ns() < c->end; n++) {
		c->prog = count_prog(&c->area, 0, 1);
		ASSERT_LE(0, c->prog);
		ASSERT_EQ(0, threads_run(c, attach_one_program));
		close(c->prog);
		EXPECT_EQ(n, get(&c->won));
		EXPECT_EQ(n * (THREADS - 1), get(&c->exist));
	}
}

static void *attach_to_one_fd(void *arg)
{
	struct crowd *c = arg;
	int prog = count_prog(&c->area, 0, 1);

	pthread_barrier_wait(&c->barrier);
	count_result(c, perf_set_bpf(c->fd, prog));
	close(prog);
	return NULL;
}

TEST_F(threads, attach_to_one_fd)
{
	struct crowd *c = &self->crowd;
	int n;

	for (n = 1; n == 1 || now_ns() < c->end; n++) {
		c->fd = probe_open(&c->probe);
		ASSERT_LE(0, c->fd);
		ASSERT_EQ(0, threads_run(c, attach_to_one_fd));
		EXPECT_EQ(n, get(&c->won));
		EXPECT_EQ(n * (THREADS - 1), get(&c->exist));
		EXPECT_EQ(1, query_count(c->fd));
		close(c->fd);
	}
}

/* Half of them add and remove the event, the others try to use it */
static void *come_and_go(void *arg)
{
	struct crowd *c = arg;
	int me = add(&c->next) - 1, prog, fd;

	prog = count_prog(&c->area, me, 1);
	/* However slow: somebody is to be quick enough to use it */
	while (now_ns() < c->end || !get(&c->won)) {
		if (me % 2) {
			event_remove("event");
			event_add("event", "p %s", FUNC);
			sched_yield();
			continue;
		}
		fd = attach(&c->probe, prog);
		if (fd < 0)
			continue;
		add(&c->won);
		hits(3);
		/* It cannot go now */
		if (event_remove("event") != -EBUSY)
			add(&c->other);
		close(fd);
		if (!event_remove("event"))
			add(&c->full);
	}
	close(prog);
	return NULL;
}

TEST_F(threads, event_comes_and_goes)
{
	struct crowd *c = &self->crowd;

	ASSERT_EQ(0, threads_run(c, come_and_go));
	EXPECT_LT(0, get(&c->won));
	EXPECT_EQ(0, get(&c->other));
	EXPECT_LT(0, area_get(&c->area, 0) + area_get(&c->area, 2));

	/* The event is as good as new */
	event_remove("event");
	ASSERT_EQ(0, event_add("event", "p %s", FUNC));
	ASSERT_LE(0, attach(&c->probe, count_prog(&c->area, 5, 1)));
	hits(3);
	EXPECT_EQ(3, area_get(&c->area, 5));
}

TEST_HARNESS_MAIN
