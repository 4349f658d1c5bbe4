// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_PERF_EVENT programs that come and go while their events
 * overflow: in page faults, timers, the scheduler and debug exceptions
 */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "overflow.h"

#define MAX_CPUS 8

FIXTURE(race) {
	struct perf_event_attr attr;
	struct hitters hitters;
	struct area area;
	int cpus;
	int fds[MAX_CPUS];
};

FIXTURE_VARIANT(race) {
	__u32 type;
	__u64 config;
	__u64 period;
};

FIXTURE_VARIANT_ADD(race, faults) {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
	.period = 1,
};

FIXTURE_VARIANT_ADD(race, clock) {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CPU_CLOCK,
	.period = 100000,
};

FIXTURE_VARIANT_ADD(race, switches) {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	.period = 1,
};

FIXTURE_VARIANT_ADD(race, breakpoint) {
	.type = PERF_TYPE_BREAKPOINT,
	.period = 1,
};

/* Does all that makes one of the events overflow */
static long busy(int me)
{
	static char *pages[MAX_HITTERS];
	size_t size = 4 * sysconf(_SC_PAGESIZE);

	if (!pages[me])
		pages[me] = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	touch(pages[me]);
	madvise(pages[me], size, MADV_DONTNEED);
	touch((char *)&watched);
	usleep(1);
	return 0;
}

FIXTURE_SETUP(race)
{
	int fd;

	SKIP_WITHOUT(return, overflow_prepare());
	self->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (self->cpus > MAX_CPUS)
		self->cpus = MAX_CPUS;
	overflow_attr(&self->attr, variant->type);
	self->attr.config = variant->config;
	self->attr.sample_period = variant->period;
	fd = perf_open(&self->attr, -1, 0);
	if (variant->type == PERF_TYPE_BREAKPOINT && fd == -ENOENT)
		SKIP(return, "CONFIG_HAVE_HW_BREAKPOINT, and a CPU with them");
	ASSERT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0, busy));
}

FIXTURE_TEARDOWN_PARENT(race)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* An event on each CPU */
static int open_all(struct perf_event_attr *attr, int *fds, int cpus)
{
	int i;

	for (i = 0; i < cpus; i++) {
		fds[i] = perf_open(attr, -1, i);
		if (fds[i] < 0)
			return fds[i];
	}
	return 0;
}

static int set_all(const int *fds, int cpus, int prog)
{
	int i, err = 0;

	for (i = 0; i < cpus; i++)
		err = err ?: perf_set_bpf(fds[i], prog);
	return err;
}

static int ioctl_all(const int *fds, int cpus, unsigned long cmd)
{
	int i, err = 0;

	for (i = 0; i < cpus; i++)
		err |= ioctl(fds[i], cmd, 0);
	return err;
}

static void close_all(const int *fds, int cpus)
{
	int i;

	for (i = 0; i < cpus; i++)
		close(fds[i]);
}

/* False if the program still runs, although each thread goes on hitting */
static bool is_gone(struct hitters *h)
{
	__u64 runs = area_get(h->area, RUNS), seen[MAX_HITTERS];
	int i;

	for (i = 0; i < h->n; i++)
		seen[i] = area_get(h->area, NUMBER + i);
	for (i = 0; i < h->n; i++) {
		while (area_get(h->area, NUMBER + i) < seen[i] + 3)
			sched_yield();
	}
	return area_get(h->area, RUNS) == runs;
}

TEST_F(race, attach_and_close)
{
	__u64 end = deadline();
	int prog, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = overflow_count_prog(&self->area, RUNS);
		ok = !open_all(&self->attr, self->fds, self->cpus) &&
		     !set_all(self->fds, self->cpus, prog) &&
		     (n % 2 || hitters_wait_run(&self->hitters));
		close(prog);
		close_all(self->fds, self->cpus);
		ok &= is_gone(&self->hitters);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

TEST_F(race, disable_and_enable)
{
	__u64 end = deadline();
	int n, ok = 1;

	ASSERT_EQ(0, open_all(&self->attr, self->fds, self->cpus));
	ASSERT_EQ(0, set_all(self->fds, self->cpus, overflow_count_prog(&self->area, RUNS)));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		ok = hitters_wait_run(&self->hitters) &&
		     !ioctl_all(self->fds, self->cpus, PERF_EVENT_IOC_DISABLE) &&
		     is_gone(&self->hitters) &&
		     !ioctl_all(self->fds, self->cpus, PERF_EVENT_IOC_ENABLE);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

/* The events stay, and overflow all the time; links come and go */
TEST_F(race, replace)
{
	__u64 end = deadline();
	int i, prog, n, ok = 1;
	int links[MAX_CPUS];

	ASSERT_EQ(0, open_all(&self->attr, self->fds, self->cpus));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = overflow_count_prog(&self->area, RUNS);
		for (i = 0; i < self->cpus; i++) {
			links[i] = perf_link(self->fds[i], prog);
			ok &= links[i] >= 0;
		}
		close(prog);
		ok &= n % 2 || hitters_wait_run(&self->hitters);
		close_all(links, self->cpus);
		ok &= is_gone(&self->hitters);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

/* Children hit, too, and are killed with events of their own */
TEST_F(race, fork_and_kill)
{
	__u64 end = deadline();
	pid_t children[4];
	__u64 ran;
	int i, n;

	for (n = 0; n < 2 || now_ns() < end; n++) {
		ran = area_get(&self->area, RUNS);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			ASSERT_LE(0, children[i]);
			while (!children[i]) {
				/* The children share what is in self */
				int fds[MAX_CPUS];
				int prog = overflow_count_prog(&self->area, RUNS);
				int err = open_all(&self->attr, fds, self->cpus) ?:
					  set_all(fds, self->cpus, prog);

				if (err)
					_exit(-err);
				busy(0);
				close_all(fds, self->cpus);
				close(prog);
			}
		}
		/* At any time, or when they have attached */
		EXPECT_TRUE(n % 2 == 0 || wait_until(area_get(&self->area, RUNS) != ran));
		if (n % 2 == 0)
			sleep_ms(1 + n % 7 * 5);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			kill(children[i], SIGKILL);
			EXPECT_EQ(-SIGKILL, child_status(children[i]));
		}
	}
	hitters_stop(&self->hitters);
}

/* Events with children, which have the program of their parent */

FIXTURE(family) {
	struct perf_event_attr attr;
	struct area area;
	int prog;
	int fd;
};

FIXTURE_SETUP(family)
{
	SKIP_WITHOUT(return, overflow_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	overflow_attr(&self->attr, PERF_TYPE_SOFTWARE);
	self->attr.inherit = 1;
	self->fd = perf_open(&self->attr, 0, -1);
	ASSERT_LE(0, self->fd);
	self->prog = overflow_prog(&self->area);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(family)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* A child that overflows once for each byte, which it sends back; drops @perf */
static pid_t overflower(struct area *area, int perf, int fds[2])
{
	int down[2], up[2];
	pid_t child;
	char c;

	if (pipe(down) || pipe(up))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(down[1]);
		close(up[0]);
		close(perf);
		while (read(down[0], &c, 1) == 1) {
			overflow(area, PERF_TYPE_SOFTWARE, 1);
			if (write(up[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(down[0]);
	close(up[1]);
	fds[0] = up[0];
	fds[1] = down[1];
	return child;
}

static __u64 child_overflows(struct area *area, int fds[2])
{
	char c = 0;

	area_set(area, HITS, 0);
	if (write(fds[1], &c, 1) != 1 || read(fds[0], &c, 1) != 1)
		return ~0ULL;
	return area_get(area, HITS);
}

TEST_F(family, child_has_the_program)
{
	int fds[2];

	ASSERT_EQ(0, perf_set_bpf(self->fd, self->prog));
	ASSERT_LT(0, overflower(&self->area, self->fd, fds));
	EXPECT_EQ(1, child_overflows(&self->area, fds));
	EXPECT_EQ(1, child_overflows(&self->area, fds));
	close(self->fd);
	EXPECT_EQ(0, child_overflows(&self->area, fds));
}

TEST_F(family, child_comes_first)
{
	int fds[2], link;

	ASSERT_LT(0, overflower(&self->area, self->fd, fds));
	EXPECT_EQ(0, child_overflows(&self->area, fds));
	link = perf_link(self->fd, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(1, child_overflows(&self->area, fds));
	/* Once it is detached it runs nowhere */
	close(link);
	EXPECT_EQ(0, child_overflows(&self->area, fds));
}

/* Overflows, and goes on in a child of its own now and then */
static void generations(struct area *area, int n)
{
	while (n--) {
		if (fork())
			_exit(0);
		overflow(area, PERF_TYPE_SOFTWARE, 3);
	}
	_exit(0);
}

TEST_F(family, fork_against_detach)
{
	__u64 end = deadline();
	pid_t children[6];
	int i, link, n;

	for (n = 0; n < 2 || now_ns() < end; n++) {
		link = perf_link(self->fd, self->prog);
		ASSERT_LE(0, link);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			ASSERT_LE(0, children[i]);
			if (children[i])
				continue;
			close(link);
			close(self->fd);
			if (i % 2)
				generations(&self->area, 5);
			for (;;)
				overflow(&self->area, PERF_TYPE_SOFTWARE, 3);
		}
		sleep_ms(n % 5);
		close(link);
		if (n % 3 == 2) {
			close(self->fd);
			self->fd = perf_open(&self->attr, 0, -1);
			ASSERT_LE(0, self->fd);
		}
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			kill(children[i], SIGKILL);
			child_status(children[i]);
		}
	}
}

TEST_HARNESS_MAIN
