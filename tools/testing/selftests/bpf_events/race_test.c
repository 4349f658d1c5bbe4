// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching, pausing and detaching against hits, and against tasks and CPUs
 * that come and go
 */
#include "common.h"
#include "hitter.h"

#define CPU1 "/sys/devices/system/cpu/cpu1/online"

FIXTURE(race) {
	struct probe probe;
	struct area area;
	struct hitters hitters;
};

/* Where the function is not held, each program that goes disarms its probe */
FIXTURE_VARIANT(race) {
	unsigned int flags;
	bool hold;
	bool body;
};

FIXTURE_VARIANT_ADD(race, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(race, kprobe_event_beside_another) {
	.flags = 0,
	.hold = true,
};

FIXTURE_VARIANT_ADD(race, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(race, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(race, kretprobe_pmu_beside_another) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.hold = true,
};

FIXTURE_VARIANT_ADD(race, kprobe_event_in_the_body) {
	.body = true,
};

static long hit_here_and_there(int arg)
{
	struct timespec ts;

	syscall(__NR_sched_rr_get_interval, arg, &ts);
	return hit_arg(arg);
}

FIXTURE_SETUP(race)
{
	SKIP_WITHOUT(return, prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, variant->body ?
		     probe_create_body(&self->probe, "event", BODY_FUNC, variant->flags) :
		     probe_create(&self->probe, variant->flags));
	if (variant->hold)
		ASSERT_LE(0, hold_function());
}

FIXTURE_TEARDOWN_PARENT(race)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int start(FIXTURE_DATA(race) * self, int n)
{
	return hitters_start_with(&self->hitters, &self->area, n, hit_here_and_there);
}

TEST_F(race, attach_and_close_against_hits)
{
	__u64 end = deadline();
	int fd, prog, n, ok = 1;

	ASSERT_EQ(0, start(self, 0));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = number_prog(&self->area);
		fd = attach(&self->probe, prog);
		close(prog);
		ok = hitters_close(&self->hitters, fd, !(n % 2));
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

TEST_F(race, close_against_running_programs)
{
	__u64 end = deadline();
	int fd, prog, n, ok = 1;

	ASSERT_EQ(0, start(self, 0));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = busy_prog(&self->area);
		fd = attach(&self->probe, prog);
		close(prog);
		ok = fd >= 0 && hitters_wait_run(&self->hitters);
		/* Both CPUs are likely in it now */
		close(fd);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* The wait for runs of the program is long, and other programs come meanwhile */
TEST_F(race, close_against_slow_programs)
{
	__u64 end = deadline();
	int fd, next, n, ok = 1;

	ASSERT_EQ(0, start(self, 0));
	for (n = 0; ok && (n < 4 || now_ns() < end); n++) {
		/* The first of 256 runs is slow */
		area_set(&self->area, RUNS, 0);
		next = slow_prog(&self->area);
		fd = attach(&self->probe, next);
		close(next);
		ok = fd >= 0 && hitters_wait_run(&self->hitters);
		close(fd);
		next = number_prog(&self->area);
		fd = attach(&self->probe, next);
		close(next);
		ok &= hitters_close(&self->hitters, fd, !(n % 2));
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

/* In the body it is a breakpoint that becomes a jump after a while, or never */
TEST_F(race, close_of_a_jump)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	ASSERT_EQ(0, start(self, 0));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = attach(&self->probe, number_prog(&self->area));
		if (variant->body)
			wait_optimized(BODY_FUNC);
		ok = hitters_close(&self->hitters, fd, true);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

TEST_F(race, pause_against_hits)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	fd = attach(&self->probe, number_prog(&self->area));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, start(self, 0));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		ok = hitters_wait_run(&self->hitters) &&
		     !ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) &&
		     hitters_check_gone(&self->hitters) &&
		     !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/*
 * Children attach programs of their own, and exit or are killed without a
 * close().
 */
TEST_F(race, fork_and_exit)
{
	__u64 end = deadline();
	pid_t children[6];
	int i, fd, n, programs;

	ASSERT_EQ(0, start(self, 1));
	for (n = 0; n < 1 || now_ns() < end; n++) {
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			ASSERT_LE(0, children[i]);
			if (children[i])
				continue;
			/* An event has room for 64 */
			for (programs = 0; programs <= i % 2 * 8; programs++) {
				if (attach(&self->probe,
					   count_prog(&self->area, 0, 1)) < 0)
					_exit(1);
				hits(5);
			}
			while (i % 2)
				hits(5);
			_exit(0);
		}
		sleep_ms(1 + n % 7 * 5);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			if (i % 2)
				kill(children[i], SIGKILL);
		}
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			if (i % 2)
				child_status(children[i]);
			else
				EXPECT_EQ(0, child_status(children[i]));
		}
	}
	hitters_stop(&self->hitters);
	if (mainline()) /* its query fails where there is no program */
		return;
	fd = probe_open(&self->probe);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, query_count(fd));
}

TEST_F(race, cpu_goes_and_comes)
{
	__u64 end = deadline(), runs;
	struct perf_event_attr attr;
	int fd, fd1, n;

	if (access(CPU1, F_OK))
		SKIP(return, "CONFIG_HOTPLUG_CPU");
	ASSERT_EQ(0, start(self, 2));
	for (n = 0; n < 2 || now_ns() < end; n++) {
		ASSERT_EQ(0, probe_attr(&self->probe, &attr));
		fd1 = perf_open(&attr, -1, 1);
		ASSERT_LE(0, fd1);
		ASSERT_EQ(0, perf_set_bpf(fd1, number_prog(&self->area)));
		fd = attach(&self->probe, count_prog(&self->area, 0, 1));
		ASSERT_LE(0, fd);

		ASSERT_EQ(0, write_file(CPU1, 0, "0"));
		/* The program of the perf event of CPU 1 runs on CPU 0 */
		EXPECT_TRUE(hitters_wait_run(&self->hitters));
		runs = area_get(&self->area, 0);
		EXPECT_TRUE(hitters_wait_run(&self->hitters));
		if (n % 2) {
			close(fd1);
			EXPECT_TRUE(hitters_check_gone(&self->hitters));
		}
		ASSERT_EQ(0, write_file(CPU1, 0, "1"));
		if (!(n % 2)) {
			EXPECT_TRUE(hitters_wait_run(&self->hitters));
			close(fd1);
			EXPECT_TRUE(hitters_check_gone(&self->hitters));
		}
		EXPECT_TRUE(wait_until(area_get(&self->area, 0) != runs));
		close(fd);
	}
	hitters_stop(&self->hitters);
}

TEST_HARNESS_MAIN
