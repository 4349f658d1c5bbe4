// SPDX-License-Identifier: GPL-2.0
/*
 * Memory runs out at any one of the allocations on the way, of objects or of
 * pages: a call fails with ENOMEM and changes nothing, or it succeeds.  For
 * kernels with fault injection.
 */
#include <sys/klog.h>

#include "common.h"
#include "uprobe.h"
#include "ways.h"

#define FAILSLAB DEBUGFS "/failslab"
#define FAIL_PAGES DEBUGFS "/fail_page_alloc"
#define FAIL_NTH "/proc/thread-self/fail-nth"
#define MOST 400

static const struct {
	const char *path, *text;
} settings[] = {
	/* No stack dumps; fail what may sleep, and single pages */
	{ FAILSLAB "/verbose", "0" },
	{ FAILSLAB "/ignore-gfp-wait", "N" },
	{ FAIL_PAGES "/verbose", "0" },
	{ FAIL_PAGES "/ignore-gfp-wait", "N" },
	{ FAIL_PAGES "/min-order", "0" },
};

/* What they were before */
struct faults {
	char text[ARRAY_SIZE(settings)][16];
};

static const char *faults_prepare(struct faults *before)
{
	int i;

	if (access(FAIL_NTH, F_OK))
		return "CONFIG_FAULT_INJECTION";
	if (access(FAILSLAB, F_OK))
		return "CONFIG_FAILSLAB, CONFIG_FAULT_INJECTION_DEBUG_FS";
	if (access(FAIL_PAGES, F_OK))
		return "CONFIG_FAIL_PAGE_ALLOC";
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		read_file(settings[i].path, before->text[i], sizeof(before->text[i]));
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (write_file(settings[i].path, 0, settings[i].text))
			return settings[i].path;
	}
	return NULL;
}

static void faults_restore(const struct faults *before)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		write_file(settings[i].path, 0, "%s", before->text[i]);
}

FIXTURE(failslab) {
	struct probe probe;
	struct area area;
	struct faults before;
};

FIXTURE_VARIANT(failslab) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(failslab, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(failslab, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(failslab, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_SETUP(failslab)
{
	SKIP_WITHOUT(return, prepare() ?: faults_prepare(&self->before));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	ASSERT_LE(0, hold_function());
	ASSERT_LE(0, probe_open(&self->probe));
}

FIXTURE_TEARDOWN_PARENT(failslab)
{
	faults_restore(&self->before);
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * The descriptor of this is opened before: an open() or a write() under fault
 * injection would use faults up.
 */
static int fail_nth_fd = -1;

static bool fail_arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (fail_nth_fd < 0)
		fail_nth_fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	return pwrite(fail_nth_fd, text, len, 0) == len;
}

/* Says whether the fault has happened, and calls it off if it has not */
static bool fail_disarm(void)
{
	char text[16] = "";
	bool happened;

	happened = pread(fail_nth_fd, text, sizeof(text) - 1, 0) > 0 &&
		   !atoi(text);
	fail_arm(0);
	return happened;
}

TEST_F(failslab, set_bpf)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd, n, err, failed = 0;
	bool happened = true;
	__u64 before;

	for (n = 1; happened && n < MOST; n++) {
		fd = probe_open(&self->probe);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		err = perf_set_bpf(fd, prog);
		happened = fail_disarm();
		before = area_get(&self->area, 0);
		if (err) {
			ASSERT_EQ(-ENOMEM, err);
			ASSERT_TRUE(happened);
			failed++;
			EXPECT_EQ(0, query_count(fd));
			hits(2);
			EXPECT_EQ(before, area_get(&self->area, 0));
			ASSERT_EQ(0, perf_set_bpf(fd, prog));
		}
		EXPECT_EQ(1, query_count(fd));
		hits(2);
		EXPECT_EQ(before + 2, area_get(&self->area, 0));
		close(fd);
	}
	EXPECT_FALSE(happened);
	EXPECT_LT(0, failed);
}

/* The array of an event that has programs already */
TEST_F(failslab, set_bpf_of_the_next)
{
	int prog = count_prog(&self->area, 1, 1), fd, n, err, first;
	bool happened = true;
	__u64 before;

	first = attach(&self->probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, first);
	for (n = 1; happened && n < MOST; n++) {
		fd = probe_open(&self->probe);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		err = perf_set_bpf(fd, prog);
		happened = fail_disarm();
		if (err)
			ASSERT_EQ(-ENOMEM, err);
		before = area_get(&self->area, 0);
		hit();
		EXPECT_EQ(before + 1, area_get(&self->area, 0));
		close(fd);
	}
	EXPECT_FALSE(happened);
}

/* A program must go, memory or not */
TEST_F(failslab, close)
{
	int prog = count_prog(&self->area, 0, 1);
	int others[2], fd, i, n;
	bool happened = true;
	__u64 before;

	for (i = 0; i < 2; i++) {
		others[i] = attach(&self->probe,
				   count_prog(&self->area, 1 + i, 1));
		ASSERT_LE(0, others[i]);
	}
	for (n = 1; happened && n < MOST; n++) {
		fd = attach(&self->probe, prog);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(fail_arm(n));
		close(fd);
		happened = fail_disarm();
		before = area_get(&self->area, 0);
		hits(2);
		EXPECT_EQ(before, area_get(&self->area, 0));
		for (i = 0; i < 2; i++)
			EXPECT_EQ(2 * n, area_get(&self->area, 1 + i));
	}
	EXPECT_FALSE(happened);
	EXPECT_EQ(variant->flags & PROBE_PMU ? 1 : 2, query_count(others[0]));
}

TEST_F(failslab, open)
{
	struct perf_event_attr attr;
	int fd, n, failed = 0;
	bool happened = true;

	ASSERT_EQ(0, probe_attr(&self->probe, &attr));
	for (n = 1; happened && n < MOST; n++) {
		ASSERT_TRUE(fail_arm(n));
		fd = perf_open(&attr, -1, 0);
		happened = fail_disarm();
		if (fd < 0) {
			ASSERT_EQ(-ENOMEM, fd);
			failed++;
			continue;
		}
		EXPECT_EQ(0, query_count(fd));
		close(fd);
	}
	EXPECT_FALSE(happened);
	EXPECT_LT(0, failed);
}

/* The entry in error_log is a courtesy: the errno stays what it is */
TEST_F(failslab, error)
{
	int fd = probe_open(&self->probe), n;
	bool happened = true;

	ASSERT_LE(0, fd);
	for (n = 1; happened && n < MOST; n++) {
		ASSERT_TRUE(fail_arm(n));
		EXPECT_EQ(-EBADF, perf_set_bpf(fd, 999));
		happened = fail_disarm();
	}
	EXPECT_FALSE(happened);
	ASSERT_EQ(0, perf_set_bpf(fd, count_prog(&self->area, 0, 1)));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
}

/* All the ways to attach */

#define SYSLOG_CONSOLE_LEVEL 8

FIXTURE(ways) {
	struct area area;
	struct faults before;
	int log;	/* of the kernel, from the start of the test */
	struct probe probes[WAYS];
};

FIXTURE_SETUP(ways)
{
	unsigned int i;

	SKIP_WITHOUT(return, ways_prepare() ?: faults_prepare(&self->before));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_LE(0, hold_function());
	/*
	 * The same with tracepoints that the names of tasks are recorded by: on
	 * for this event, they do not come and go with others
	 */
	ASSERT_EQ(0, event_enable(INSTANCE, "task/task_newtask", true));
	for (i = 0; i < WAYS; i++)
		ASSERT_EQ(0, way_create(&ways[i], &own_place, &self->probes[i]));
	self->log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->log);
	ASSERT_EQ(0, lseek(self->log, 0, SEEK_END));
	/* Where vmalloc() has no memory, the stack is not for the console */
	ASSERT_EQ(0, klogctl(SYSLOG_CONSOLE_LEVEL, NULL, 4));
}

FIXTURE_TEARDOWN_PARENT(ways)
{
	klogctl(SYSLOG_CONSOLE_LEVEL, NULL, 7);
	faults_restore(&self->before);
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* What the kernel has complained about that is not memory, or "nothing" */
static const char *complaint(int log)
{
	/* Not words of functions' names: each fault leaves a stack */
	static const char * const texts[] = { "WARNING:", "BUG:" };
	static char record[8192];
	ssize_t n;
	int i;

	while ((n = read(log, record, sizeof(record) - 1)) > 0) {
		record[n] = '\0';
		for (i = 0; i < ARRAY_SIZE(texts); i++) {
			if (strstr(record, texts[i]))
				return record;
		}
	}
	return errno == EAGAIN ? "nothing" : strerror(errno);
}

/* The same as way_attach(), with a fault in what attaches, not in what finds the event */
static int attach_with_fault(const struct way *way, const struct probe *probe, int prog,
			     int n, bool *happened)
{
	struct perf_event_attr attr;
	int ret, fd = -1;

	if (way->kind == BY_FILTER)
		fd = filter_open(INSTANCE, way_event(way, &own_place, probe));
	else if (way->kind == BY_SET_BPF || way->kind == BY_PERF_LINK)
		fd = way_perf_attr(way, &own_place, probe, &attr);
	else
		fd = 0;
	if (fd < 0 || !fail_arm(n))
		return -EIO;

	if (way->kind == BY_FILTER)
		ret = filter_write(fd, "bpf-%d", prog) ?: fd;
	else if (way->kind == BY_SET_BPF || way->kind == BY_PERF_LINK)
		ret = way_perf(way, &attr, prog);
	else
		ret = way_attach(way, &own_place, probe, prog);
	*happened = fail_disarm();
	if (ret < 0 && way->kind == BY_FILTER)
		close(fd);
	return ret;
}

/* How often one hit runs the program */
static __u64 runs_in(struct area *area, unsigned int slot)
{
	__u64 before = area_get(area, slot);

	hit_own_place();
	return area_get(area, slot) - before;
}

static bool is_off(const struct way *way, const struct probe *probe)
{
	const char *event = way_event(way, &own_place, probe);

	return way->kind != BY_FILTER ||
	       (!strcmp("none", event_text(INSTANCE, event, "filter")) &&
		!strcmp("0", event_text(INSTANCE, event, "enable")));
}

TEST_F(ways, attach)
{
	unsigned int i, n, failed;
	const struct way *way;
	bool happened;
	int prog, fd;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		prog = way_count_prog(way, &own_place, &self->area, i);
		ASSERT_LE(0, prog);
		happened = true;
		failed = 0;
		for (n = 1; happened && n < MOST; n++) {
			fd = attach_with_fault(way, &self->probes[i], prog, n, &happened);
			if (fd < 0) {
				ASSERT_EQ(-ENOMEM, fd) TH_LOG("%s, allocation %u", way->name, n);
				ASSERT_TRUE(happened);
				failed++;
				EXPECT_EQ(0, runs_in(&self->area, i));
				EXPECT_TRUE(is_off(way, &self->probes[i]));
				fd = way_attach(way, &own_place, &self->probes[i], prog);
				ASSERT_LE(0, fd) TH_LOG("%s, after allocation %u", way->name, n);
			}
			EXPECT_EQ(way_runs(way), runs_in(&self->area, i))
				TH_LOG("%s, allocation %u", way->name, n);
			close(fd);
			EXPECT_EQ(0, runs_in(&self->area, i));
		}
		EXPECT_FALSE(happened);
		EXPECT_LT(0, failed);
		close(prog);
	}
	EXPECT_STREQ("nothing", complaint(self->log));
}

/* Programs on trampolines cannot go without memory: the kernel warns of that */
static bool needs_memory_to_go(const struct way *way)
{
	return way->attach == BPF_TRACE_FENTRY || way->attach == BPF_TRACE_FEXIT;
}

/* A program must go, memory or not */
TEST_F(ways, close)
{
	const struct way *way;
	unsigned int i, n;
	bool happened;
	int prog, fd;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (needs_memory_to_go(way))
			continue;
		prog = way_count_prog(way, &own_place, &self->area, i);
		happened = true;
		for (n = 1; happened && n < MOST; n++) {
			fd = way_attach(way, &own_place, &self->probes[i], prog);
			ASSERT_LE(0, fd);
			ASSERT_TRUE(fail_arm(n));
			close(fd);
			happened = fail_disarm();
			EXPECT_EQ(0, runs_in(&self->area, i))
				TH_LOG("%s, allocation %u", way->name, n);
			EXPECT_TRUE(is_off(way, &self->probes[i]));
		}
		EXPECT_FALSE(happened);
		close(prog);
	}
	EXPECT_STREQ("nothing", complaint(self->log));
}

TEST_HARNESS_MAIN
