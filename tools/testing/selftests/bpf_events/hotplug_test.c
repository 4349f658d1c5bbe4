// SPDX-License-Identifier: GPL-2.0
/* Programs on CPUs that go and come, attached in each of the ways */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "overflow.h"
#include "uprobe.h"
#include "ways.h"

#define CPU1 "/sys/devices/system/cpu/cpu1/online"

FIXTURE(hotplug) {
	struct area area;
	struct probe probes[WAYS];
	int progs[WAYS];
	int fds[WAYS];
};

FIXTURE_SETUP(hotplug)
{
	unsigned int i;

	SKIP_WITHOUT(return, ways_prepare());
	if (access(CPU1, F_OK))
		SKIP(return, "CONFIG_HOTPLUG_CPU, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	for (i = 0; i < WAYS; i++) {
		ASSERT_EQ(0, way_create(&ways[i], &own_place, &self->probes[i]));
		self->progs[i] = way_count_prog(&ways[i], &own_place, &self->area, i);
		ASSERT_LE(0, self->progs[i]) TH_LOG("%s", ways[i].name);
	}
}

FIXTURE_TEARDOWN_PARENT(hotplug)
{
	write_file(CPU1, 0, "1");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static int cpu1(bool online)
{
	return write_file(CPU1, 0, "%d", online);
}

static int attach_all(FIXTURE_DATA(hotplug) * self)
{
	unsigned int i;

	for (i = 0; i < WAYS; i++) {
		self->fds[i] = way_attach(&ways[i], &own_place, &self->probes[i],
					  self->progs[i]);
		if (self->fds[i] < 0) {
			fprintf(stderr, "# %s: %d\n", ways[i].name, self->fds[i]);
			return self->fds[i];
		}
	}
	return 0;
}

static void close_all(FIXTURE_DATA(hotplug) * self)
{
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		close(self->fds[i]);
}

/* The way to attach whose program does not run, or not once a hit; "none" */
static const char *wrong(FIXTURE_DATA(hotplug) * self, int cpu, bool attached)
{
	__u64 before[WAYS];
	unsigned int i;

	if (pin(cpu))
		return "pin";
	for (i = 0; i < WAYS; i++)
		before[i] = area_get(&self->area, i);
	hit_own_place();
	for (i = 0; i < WAYS; i++) {
		if (area_get(&self->area, i) - before[i] != attached * way_runs(&ways[i]))
			return ways[i].name;
	}
	return "none";
}

TEST_F(hotplug, stays)
{
	ASSERT_EQ(0, attach_all(self));
	EXPECT_STREQ("none", wrong(self, 1, true));
	EXPECT_STREQ("none", wrong(self, 0, true));
	ASSERT_EQ(0, cpu1(false));
	EXPECT_STREQ("none", wrong(self, 0, true));
	ASSERT_EQ(0, cpu1(true));
	EXPECT_STREQ("none", wrong(self, 1, true));
	EXPECT_STREQ("none", wrong(self, 0, true));
	close_all(self);
	EXPECT_STREQ("none", wrong(self, 1, false));
}

TEST_F(hotplug, comes_while_the_cpu_is_gone)
{
	ASSERT_EQ(0, cpu1(false));
	ASSERT_EQ(0, attach_all(self));
	EXPECT_STREQ("none", wrong(self, 0, true));
	ASSERT_EQ(0, cpu1(true));
	EXPECT_STREQ("none", wrong(self, 1, true));
	close_all(self);
	EXPECT_STREQ("none", wrong(self, 1, false));
	EXPECT_STREQ("none", wrong(self, 0, false));
}

TEST_F(hotplug, goes_while_the_cpu_is_gone)
{
	ASSERT_EQ(0, attach_all(self));
	EXPECT_STREQ("none", wrong(self, 1, true));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, cpu1(false));
	close_all(self);
	EXPECT_STREQ("none", wrong(self, 0, false));
	ASSERT_EQ(0, cpu1(true));
	EXPECT_STREQ("none", wrong(self, 1, false));
	/* All can be attached as before */
	ASSERT_EQ(0, attach_all(self));
	EXPECT_STREQ("none", wrong(self, 1, true));
	close_all(self);
}

static void *hit_both(void *stop)
{
	while (!__atomic_load_n((bool *)stop, __ATOMIC_SEQ_CST))
		hit_own_place();
	return NULL;
}

TEST_F(hotplug, goes_and_comes_against_hits)
{
	__u64 before[WAYS], end = deadline();
	pthread_t threads[2];
	bool stop = false;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, hit_both, &stop));
	for (n = 0; n < 2 || now_ns() < end; n++) {
		for (i = 0; i < WAYS; i++)
			before[i] = area_get(&self->area, i);
		ASSERT_EQ(0, attach_all(self));
		ASSERT_EQ(0, cpu1(n % 2));
		for (i = 0; i < WAYS; i++)
			EXPECT_TRUE(wait_until(area_get(&self->area, i) > before[i]))
				TH_LOG("%s", ways[i].name);
		close_all(self);
	}
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	EXPECT_STREQ("none", wrong(self, 0, false));
}

/* An event of the CPU itself goes with it, and its program */

static int clock_open(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr), .sample_period = 1000000,
	};

	return perf_open(&attr, -1, cpu);
}

static bool clock_runs(struct area *area)
{
	__u64 before = area_get(area, 0);

	return wait_until(area_get(area, 0) > before);
}

static bool clock_stands_still(struct area *area)
{
	__u64 before = area_get(area, 0);

	sleep_ms(200);
	return area_get(area, 0) == before;
}

FIXTURE(clock) {
	struct area area;
	int prog, fd;
};

FIXTURE_VARIANT(clock) {
	bool link;
};

FIXTURE_VARIANT_ADD(clock, set_bpf) {
	.link = false,
};

FIXTURE_VARIANT_ADD(clock, link) {
	.link = true,
};

FIXTURE_SETUP(clock)
{
	pid_t child;
	int perf;

	SKIP_WITHOUT(return, overflow_prepare());
	if (access(CPU1, F_OK))
		SKIP(return, "CONFIG_HOTPLUG_CPU, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = overflow_count_prog(&self->area, 0);
	ASSERT_LE(0, self->prog);
	perf = clock_open(1);
	ASSERT_LE(0, perf);
	if (variant->link) {
		self->fd = perf_link(perf, self->prog);
		ASSERT_LE(0, self->fd);
		close(perf);
	} else {
		self->fd = perf;
		ASSERT_EQ(0, perf_set_bpf(perf, self->prog));
	}
	/* The clock of an idle CPU stands still */
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		for (;;)
			;
	}
	ASSERT_EQ(0, pin(0));
}

FIXTURE_TEARDOWN_PARENT(clock)
{
	write_file(CPU1, 0, "1");
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(clock, goes_with_its_cpu)
{
	__u64 runs;
	int fd;

	EXPECT_TRUE(clock_runs(&self->area));
	ASSERT_EQ(0, cpu1(false));
	EXPECT_TRUE(clock_stands_still(&self->area));
	EXPECT_EQ(-ENODEV, clock_open(1));
	ASSERT_EQ(0, cpu1(true));
	close(self->fd);
	EXPECT_TRUE(clock_stands_still(&self->area));

	fd = clock_open(1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	/* Who was on the CPU has been moved away */
	ASSERT_EQ(0, pin(1));
	runs = area_get(&self->area, 0);
	EXPECT_TRUE(spin_until(area_get(&self->area, 0) > runs));
}

TEST_F(clock, closed_while_the_cpu_is_gone)
{
	EXPECT_TRUE(clock_runs(&self->area));
	ASSERT_EQ(0, cpu1(false));
	close(self->fd);
	ASSERT_EQ(0, cpu1(true));
	EXPECT_TRUE(clock_stands_still(&self->area));
}

TEST_HARNESS_MAIN
