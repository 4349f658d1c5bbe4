// SPDX-License-Identifier: GPL-2.0
/*
 * What a program turns down stays turned down while it leaves: by the time that
 * it does not run any more, its event is off.  No record, no wakeup and no signal
 * slips out in between.
 */
#include <linux/membarrier.h>

#include "common.h"
#include "link.h"
#include "ring.h"
#include "uprobe.h"
#include "filter.h"
#include "overflow.h"
#include "hitter.h"

/* How often each of them leaves */
#define TIMES rounds(8)

/* What is hit, without a pause, by a thread on CPU 0 */
struct source {
	const char *event;	/* of tracefs, */
	__u64 config;		/* or a software event, */
	unsigned int flags;	/* or of a probe */
	enum bpf_prog_type prog;
	long (*hit)(int arg);
};

static char *fault_page;

static long fault(int arg)
{
	touch(fault_page);
	return madvise(fault_page, 1, MADV_DONTNEED);
}

static long spin(int arg)
{
	return arg;
}

static long rename_arg(int arg)
{
	hit_rename();
	return 0;
}

/* How the program leaves */
enum leave {
	CLOSE,		/* the last descriptor of its event is closed */
	CLOSE_LINK,	/* the same, of its link, which keeps the event */
	DISABLE,	/* its event is disabled */
	EXIT,		/* its owner exits */
	EXIT_LINK,
	KILL,		/* its owner is killed */
	KILL_LINK,
};

static bool has_link(enum leave way)
{
	return way == CLOSE_LINK || way == EXIT_LINK || way == KILL_LINK;
}

struct stage {
	struct probe probe;
	struct area area;
	struct hitters hitters;
	struct ring ring;
	int sink;
	int prog;
};

FIXTURE(leave) {
	struct stage stage;
};

FIXTURE_VARIANT(leave) {
	struct source source;
};

FIXTURE_VARIANT_ADD(leave, kprobe_event) {
	.source = { .prog = BPF_PROG_TYPE_KPROBE, .hit = hit_arg },
};

FIXTURE_VARIANT_ADD(leave, kretprobe_event) {
	.source = { .flags = PROBE_RETURN, .prog = BPF_PROG_TYPE_KPROBE, .hit = hit_arg },
};

FIXTURE_VARIANT_ADD(leave, kprobe_pmu) {
	.source = { .flags = PROBE_PMU, .prog = BPF_PROG_TYPE_KPROBE, .hit = hit_arg },
};

FIXTURE_VARIANT_ADD(leave, uprobe_event) {
	.source = { .flags = PROBE_USER, .prog = BPF_PROG_TYPE_KPROBE, .hit = user_hit_arg },
};

FIXTURE_VARIANT_ADD(leave, uprobe_pmu) {
	.source = { .flags = PROBE_USER | PROBE_PMU, .prog = BPF_PROG_TYPE_KPROBE,
		    .hit = user_hit_arg },
};

FIXTURE_VARIANT_ADD(leave, tracepoint) {
	.source = { .event = "task/task_rename", .prog = BPF_PROG_TYPE_TRACEPOINT,
		    .hit = rename_arg },
};

FIXTURE_VARIANT_ADD(leave, sys_enter) {
	.source = { .event = "syscalls/sys_enter_sched_get_priority_max",
		    .prog = BPF_PROG_TYPE_TRACEPOINT, .hit = hit_arg },
};

FIXTURE_VARIANT_ADD(leave, sys_exit) {
	.source = { .event = "syscalls/sys_exit_sched_get_priority_max",
		    .prog = BPF_PROG_TYPE_TRACEPOINT, .hit = hit_arg },
};

FIXTURE_VARIANT_ADD(leave, faults) {
	.source = { .config = PERF_COUNT_SW_PAGE_FAULTS, .prog = BPF_PROG_TYPE_PERF_EVENT,
		    .hit = fault },
};

FIXTURE_VARIANT_ADD(leave, clock) {
	.source = { .config = PERF_COUNT_SW_CPU_CLOCK, .prog = BPF_PROG_TYPE_PERF_EVENT,
		    .hit = spin },
};

static int source_attr(const struct source *source, const struct probe *probe,
		       struct perf_event_attr *attr)
{
	if (source->prog == BPF_PROG_TYPE_PERF_EVENT) {
		overflow_attr(attr, PERF_TYPE_SOFTWARE);
		attr->config = source->config;
		if (source->config == PERF_COUNT_SW_CPU_CLOCK)
			attr->sample_period = 1000000;
		return 0;
	}
	if (!source->event)
		return probe_attr(probe, attr);

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->sample_type = PERF_SAMPLE_RAW;
	attr->sample_period = 1;
	return read_u64(event_file(TRACEFS, source->event, "id"), (__u64 *)&attr->config) ?
		       0 : -ENOENT;
}

/* A ring that gets the samples of events that come and go */
static int sink_open(struct ring *ring)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
	};
	int err, fd = perf_open(&attr, -1, 0);

	if (fd < 0)
		return fd;
	err = ring_map(ring, fd);
	return err ?: fd;
}

FIXTURE_SETUP(leave)
{
	const struct source *source = &variant->source;
	const char *missing = filter_prepare();
	struct stage *stage = &self->stage;

	if (!missing && source->prog == BPF_PROG_TYPE_PERF_EVENT)
		missing = overflow_prepare();
	SKIP_WITHOUT(return, missing);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");

	fault_page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, area_create(&stage->area));
	if (source->flags & PROBE_USER) {
		ASSERT_EQ(0, uprobe_create(&stage->probe, source->flags));
	} else if (source->prog == BPF_PROG_TYPE_KPROBE) {
		ASSERT_EQ(0, probe_create(&stage->probe, source->flags));
		ASSERT_LE(0, hold_function());
	}

	stage->sink = sink_open(&stage->ring);
	ASSERT_LE(0, stage->sink);
	stage->prog = count_prog_of(source->prog, 0, &stage->area, RUNS, 0);
	ASSERT_LE(0, stage->prog);
	ASSERT_EQ(0, hitters_start_with(&stage->hitters, &stage->area, 0, source->hit));
	pin(1);
}

FIXTURE_TEARDOWN_PARENT(leave)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Opens an event that is off, gives it the program and the ring, and turns it on.
 * Returns what has to be closed for the program to leave.
 *
 * A link's program runs although the event is off: once the hits are over that were
 * under way when it came, which membarrier() waits for, it sees them all.
 */
static int come(struct stage *stage, const struct source *source, bool by_link)
{
	struct perf_event_attr attr;
	int fd, link = -1;

	if (source_attr(source, &stage->probe, &attr))
		return -ENOENT;
	attr.disabled = 1;
	fd = perf_open(&attr, -1, 0);
	if (fd < 0)
		return fd;
	if (overflow_attach(by_link, fd, stage->prog, &link) ||
	    (by_link && syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) ||
	    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, stage->sink) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	if (!by_link)
		return fd;
	close(fd);
	return link;
}

/* The same in a process that goes in one of two ways */
static bool owner_goes(struct stage *stage, const struct source *source, enum leave way)
{
	bool dies = way == KILL || way == KILL_LINK;
	pid_t owner = fork();
	int ok;

	if (!owner) {
		ok = come(stage, source, has_link(way)) >= 0 &&
		     hitters_wait_run(&stage->hitters);
		if (ok && dies)
			raise(SIGKILL);
		_exit(!ok);
	}
	return child_status(owner) == (dies ? -SIGKILL : 0);
}

static bool goes(struct stage *stage, const struct source *source, enum leave way)
{
	bool ok;
	int fd;

	if (way >= EXIT)
		return owner_goes(stage, source, way);

	fd = come(stage, source, has_link(way));
	ok = fd >= 0 && hitters_wait_run(&stage->hitters);
	if (way == DISABLE)
		ok &= !ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	close(fd);
	return ok;
}

/*
 * How many samples there may be.  A program on a trace event that came by SET_BPF is
 * paused as long as its event is off, so one each time can be of a hit that was under
 * way when the event came on, and had passed before.  Where hits are on a uprobe, which
 * may sleep, membarrier() does not wait for them.
 */
static unsigned int unseen(const struct source *source, enum leave way)
{
	if (source->prog == BPF_PROG_TYPE_PERF_EVENT)
		return 0;
	return has_link(way) && !(source->flags & PROBE_USER) ? 0 : TIMES;
}

/* How many samples there were, or a very large number */
static unsigned int samples(struct stage *stage, const struct source *source, enum leave way)
{
	bool ok = true;
	int i;

	for (i = 0; ok && i < TIMES; i++)
		ok = goes(stage, source, way);
	hitters_stop(&stage->hitters);
	return ok ? ring_samples(&stage->ring) : ~0U;
}

TEST_F(leave, close)
{
	EXPECT_GE(unseen(&variant->source, CLOSE),
		  samples(&self->stage, &variant->source, CLOSE));
}

TEST_F(leave, close_link)
{
	EXPECT_GE(unseen(&variant->source, CLOSE_LINK),
		  samples(&self->stage, &variant->source, CLOSE_LINK));
}

TEST_F(leave, disable)
{
	EXPECT_GE(unseen(&variant->source, DISABLE),
		  samples(&self->stage, &variant->source, DISABLE));
}

TEST_F(leave, exit)
{
	EXPECT_GE(unseen(&variant->source, EXIT),
		  samples(&self->stage, &variant->source, EXIT));
}

TEST_F(leave, exit_link)
{
	EXPECT_GE(unseen(&variant->source, EXIT_LINK),
		  samples(&self->stage, &variant->source, EXIT_LINK));
}

TEST_F(leave, kill)
{
	EXPECT_GE(unseen(&variant->source, KILL),
		  samples(&self->stage, &variant->source, KILL));
}

TEST_F(leave, kill_link)
{
	EXPECT_GE(unseen(&variant->source, KILL_LINK),
		  samples(&self->stage, &variant->source, KILL_LINK));
}

/*
 * Processes that are watched, and would die of a signal: of page faults, one that the
 * event is on, and one that has inherited it.
 */

struct watch {
	struct area area;
	pid_t child;
	int go;
	int prog;
};

FIXTURE(watched) {
	struct watch watch;
};

FIXTURE_VARIANT(watched) {
	enum leave way;
	bool inherit;
};

FIXTURE_VARIANT_ADD(watched, close) {
	.way = CLOSE,
};

FIXTURE_VARIANT_ADD(watched, close_link) {
	.way = CLOSE_LINK,
};

FIXTURE_VARIANT_ADD(watched, disable) {
	.way = DISABLE,
};

FIXTURE_VARIANT_ADD(watched, exit) {
	.way = EXIT,
};

FIXTURE_VARIANT_ADD(watched, exit_link) {
	.way = EXIT_LINK,
};

FIXTURE_VARIANT_ADD(watched, kill) {
	.way = KILL,
};

FIXTURE_VARIANT_ADD(watched, kill_link) {
	.way = KILL_LINK,
};

FIXTURE_VARIANT_ADD(watched, inherited_close) {
	.way = CLOSE, .inherit = true,
};

FIXTURE_VARIANT_ADD(watched, inherited_close_link) {
	.way = CLOSE_LINK, .inherit = true,
};

FIXTURE_VARIANT_ADD(watched, inherited_disable) {
	.way = DISABLE, .inherit = true,
};

FIXTURE_VARIANT_ADD(watched, inherited_exit) {
	.way = EXIT, .inherit = true,
};

FIXTURE_VARIANT_ADD(watched, inherited_kill) {
	.way = KILL, .inherit = true,
};

static int stop_faults;

static void on_stop(int sig)
{
	__atomic_store_n(&stop_faults, 1, __ATOMIC_RELAXED);
}

/* Faults until it is told to stop, and exits with 0, or dies of SIGTRAP */
static void fault_on(void)
{
	while (!__atomic_load_n(&stop_faults, __ATOMIC_RELAXED))
		fault(0);
	_exit(0);
}

/* Children that fault a little and exit, as long as their parent faults */
static void fault_in_children(void)
{
	int i, status;
	pid_t child;

	while (!__atomic_load_n(&stop_faults, __ATOMIC_RELAXED)) {
		child = fork();
		for (i = 0; i < 500 && !child; i++)
			fault(0);
		if (!child)
			_exit(0);
		while (waitpid(child, &status, 0) != child)
			;
		if (status)
			_exit(1);
	}
	_exit(0);
}

/* A process that starts with a byte in *@go, and stops with SIGUSR1 */
static pid_t watched_start(bool inherit, int *go)
{
	int fds[2];
	pid_t child;
	char c;

	if (pipe(fds))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, on_stop);
		pin(0);
		if (read(fds[0], &c, 1) != 1)
			_exit(2);
		if (inherit)
			fault_in_children();
		fault_on();
	}
	close(fds[0]);
	*go = fds[1];
	return child;
}

FIXTURE_SETUP(watched)
{
	struct watch *w = &self->watch;

	SKIP_WITHOUT(return, overflow_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	fault_page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, area_create(&w->area));
	w->prog = count_prog_of(BPF_PROG_TYPE_PERF_EVENT, 0, &w->area, RUNS, 0);
	ASSERT_LE(0, w->prog);
	pin(1);
}

FIXTURE_TEARDOWN_PARENT(watched)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int watch_open(struct watch *w, bool by_link, bool inherit)
{
	struct perf_event_attr attr;
	int err, fd, link;

	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.inherit = inherit;
	attr.disabled = 1;
	fd = perf_open(&attr, w->child, -1);
	if (fd < 0)
		return fd;
	err = overflow_attach(by_link, fd, w->prog, &link);
	if (err)
		return err;
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) || write(w->go, "", 1) != 1)
		return -errno;
	if (!by_link)
		return fd;
	close(fd);
	return link;
}

/* Waits until the program has turned some faults down */
static bool turned_down(struct watch *w)
{
	return wait_until(area_get(&w->area, RUNS) >= 100);
}

static bool watch_and_go(struct watch *w, enum leave way, bool inherit)
{
	pid_t owner = way >= EXIT ? fork() : 0;
	bool dies = way == KILL || way == KILL_LINK, ok;
	int fd;

	if (owner)
		return child_status(owner) == (dies ? -SIGKILL : 0);

	fd = watch_open(w, has_link(way), inherit);
	ok = fd >= 0 && turned_down(w);
	if (way == DISABLE)
		ok &= !ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (ok && dies)
		raise(SIGKILL);
	if (way >= EXIT)
		_exit(!ok);
	close(fd);
	return ok;
}

TEST_F(watched, lives_on)
{
	struct watch *w = &self->watch;
	int i;

	for (i = 0; i < TIMES; i++) {
		area_set(&w->area, RUNS, 0);
		w->child = watched_start(variant->inherit, &w->go);
		ASSERT_LT(0, w->child);
		EXPECT_TRUE(watch_and_go(w, variant->way, variant->inherit));
		kill(w->child, SIGUSR1);
		EXPECT_EQ(0, child_status(w->child));
		close(w->go);
	}
}

TEST_HARNESS_MAIN
