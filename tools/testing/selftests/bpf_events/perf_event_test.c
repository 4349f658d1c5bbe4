// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_PERF_EVENT: programs on the overflows of software events and
 * breakpoints
 */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "overflow.h"

#define COOKIE 0x1122334455667788ULL

FIXTURE(overflow) {
	struct area area;
	struct ring ring;
	int perf;
	int prog;
	int link;
};

FIXTURE_VARIANT(overflow) {
	__u32 type;
	bool link;
};

FIXTURE_VARIANT_ADD(overflow, faults_set_bpf) {
	.type = PERF_TYPE_SOFTWARE,
};

FIXTURE_VARIANT_ADD(overflow, faults_link) {
	.type = PERF_TYPE_SOFTWARE, .link = true,
};

FIXTURE_VARIANT_ADD(overflow, breakpoint_set_bpf) {
	.type = PERF_TYPE_BREAKPOINT,
};

FIXTURE_VARIANT_ADD(overflow, breakpoint_link) {
	.type = PERF_TYPE_BREAKPOINT, .link = true,
};

FIXTURE_SETUP(overflow)
{
	SKIP_WITHOUT(return, overflow_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = overflow_open(variant->type);
	if (variant->type == PERF_TYPE_BREAKPOINT &&
	    (self->perf == -ENOENT || self->perf == -ENODEV))
		SKIP(return, "CONFIG_HAVE_HW_BREAKPOINT, and a CPU with them");
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	self->prog = overflow_prog(&self->area);
	ASSERT_LE(0, self->prog);
	ASSERT_EQ(0, overflow_attach(variant->link, self->perf, self->prog, &self->link));
	/* What there was without the program */
	ring_samples(&self->ring);
}

FIXTURE_TEARDOWN_PARENT(overflow)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* How many of @n overflows the program saw */
static __u64 seen_of(struct area *area, __u32 type, unsigned int n)
{
	area_set(area, HITS, 0);
	overflow(area, type, n);
	return area_get(area, HITS);
}

TEST_F(overflow, verdict_decides_about_samples)
{
	int i;

	for (i = 0; i < 4; i++) {
		area_set(&self->area, VERDICT, i & 1);
		EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
		EXPECT_EQ(i & 1 ? 3 : 0, ring_samples(&self->ring));
	}
}

TEST_F(overflow, event_counts_on)
{
	__u64 before, after;

	ASSERT_EQ(8, read(self->perf, &before, 8));
	overflow(&self->area, variant->type, 3);
	ASSERT_EQ(8, read(self->perf, &after, 8));
	EXPECT_LE(before + 3, after);
}

TEST_F(overflow, disable)
{
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
}

TEST_F(overflow, close)
{
	if (variant->link)
		close(self->link);
	ring_unmap(&self->ring);
	close(self->perf);
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
}

TEST_F(overflow, one_program)
{
	int other = overflow_prog(&self->area);

	ASSERT_LE(0, other);
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->perf, self->prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(self->perf, other));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, self->prog));
	EXPECT_EQ(-EEXIST, perf_link(self->perf, other));
	EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
}

/* Closes the event; of two at one address, QEMU's breakpoints report one */
static void drop_event(int perf, struct ring *ring, int link)
{
	ring_unmap(ring);
	close(perf);
	if (link)
		close(link);
}

TEST_F(overflow, period)
{
	struct perf_event_attr attr;
	int link, perf;

	drop_event(self->perf, &self->ring, self->link);
	overflow_attr(&attr, variant->type);
	attr.sample_period = 1000000;
	perf = perf_open(&attr, 0, -1);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, overflow_attach(false, perf, self->prog, &link));
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
	close(perf);

	/* One that only counts */
	attr.sample_period = 0;
	perf = perf_open(&attr, 0, -1);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, overflow_attach(false, perf, self->prog, &link));
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
	close(perf);

	attr.sample_period = 2;
	perf = perf_open(&attr, 0, -1);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, overflow_attach(variant->link, perf, self->prog, &link));
	EXPECT_LE(9, seen_of(&self->area, variant->type, 20));
	EXPECT_GE(11, area_get(&self->area, HITS));
}

TEST_F(overflow, no_trace_event)
{
	union bpf_attr attr = {
		.task_fd_query.pid = getpid(),
		.task_fd_query.fd = self->perf,
	};
	struct query q;

	EXPECT_EQ(-EINVAL, query(self->perf, &q, 64));
	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_TASK_FD_QUERY, &attr));
	attr.task_fd_query.fd = overflow_open(variant->type);
	EXPECT_EQ(-ENOENT, sys_bpf(BPF_TASK_FD_QUERY, &attr));
}

static int signals;

static void count_signal(int sig)
{
	__atomic_fetch_add(&signals, 1, __ATOMIC_SEQ_CST);
}

static int take_signals(void)
{
	return __atomic_exchange_n(&signals, 0, __ATOMIC_SEQ_CST);
}

/* What is turned down is no overflow, and signals none */
TEST_F(overflow, signals)
{
	signal(SIGIO, count_signal);
	ASSERT_EQ(0, fcntl(self->perf, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(self->perf, F_SETFL, O_ASYNC | O_NONBLOCK));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_REFRESH, 2));
	EXPECT_EQ(5, seen_of(&self->area, variant->type, 5));
	EXPECT_EQ(0, take_signals());
	area_set(&self->area, VERDICT, 1);
	EXPECT_EQ(2, seen_of(&self->area, variant->type, 5));
	EXPECT_EQ(2, take_signals());
}

TEST_F(overflow, sigtrap)
{
	struct perf_event_attr attr;
	int i, link, perf;

	signal(SIGTRAP, count_signal);
	overflow_attr(&attr, variant->type);
	attr.sigtrap = 1;
	attr.remove_on_exec = 1;
	attr.exclude_kernel = 1;
	drop_event(self->perf, &self->ring, self->link);
	perf = perf_open(&attr, 0, -1);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, overflow_attach(variant->link, perf, self->prog, &link));
	for (i = 0; i < 2; i++) {
		area_set(&self->area, VERDICT, i);
		take_signals();
		overflow(&self->area, variant->type, 3);
		EXPECT_EQ(i ? 3 : 0, take_signals());
	}
}

TEST_F(overflow, owner_exits)
{
	pid_t child = fork();
	int i, perf;

	/* Both of an exit and of a kill */
	for (i = 0; !child; i++) {
		perf = overflow_open(variant->type);
		if (perf_set_bpf(perf, overflow_prog(&self->area)))
			_exit(1);
		overflow(&self->area, variant->type, 2);
		if (i)
			raise(SIGKILL);
	}
	EXPECT_EQ(-SIGKILL, child_status(child));

	child = fork();
	if (!child) {
		perf = overflow_open(variant->type);
		_exit(perf_set_bpf(perf, overflow_prog(&self->area)) < 0);
	}
	EXPECT_EQ(0, child_status(child));
}

TEST_F(overflow, fdinfo)
{
	struct fdinfo info;

	EXPECT_EQ(4, seen_of(&self->area, variant->type, 4));
	ASSERT_EQ(0, read_fdinfo(self->perf, &info));
	EXPECT_EQ(prog_id(self->prog), info.id);
	/* Others than ours are in, too */
	EXPECT_LE(4, info.hits);
	EXPECT_EQ(0, info.missed);
	if (variant->link)
		EXPECT_LE(4, fdinfo_number(self->link, "bpf_prog_hits"));
}

/* Links */

FIXTURE(linked) {
	struct area area;
	int perf;
	int prog;
	int link;
};

FIXTURE_VARIANT(linked) {
	__u32 type;
	__u64 config;
};

FIXTURE_VARIANT_ADD(linked, faults) {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
};

FIXTURE_VARIANT_ADD(linked, breakpoint) {
	.type = PERF_TYPE_BREAKPOINT,
};

FIXTURE_SETUP(linked)
{
	const struct bpf_insn body[] = { BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie) };

	SKIP_WITHOUT(return, overflow_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = overflow_open(variant->type);
	if (variant->type == PERF_TYPE_BREAKPOINT && self->perf == -ENOENT)
		SKIP(return, "CONFIG_HAVE_HW_BREAKPOINT, and a CPU with them");
	ASSERT_LE(0, self->perf);
	self->prog = overflow_prog_of(&self->area, body, ARRAY_SIZE(body));
	ASSERT_LE(0, self->prog);
	self->link = link_create(self->prog, self->perf, BPF_PERF_EVENT, 0, COOKIE);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(linked)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(linked, keeps_the_event)
{
	close(self->perf);
	EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
	close(self->link);
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
}

TEST_F(linked, event_goes_on_without_it)
{
	struct ring ring;

	ASSERT_EQ(0, ring_map(&ring, self->perf));
	overflow(&self->area, variant->type, 3);
	EXPECT_EQ(0, ring_samples(&ring));
	close(self->link);
	EXPECT_EQ(0, seen_of(&self->area, variant->type, 3));
	EXPECT_LE(3, ring_samples(&ring));

	/* And takes another program */
	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	ring_samples(&ring);
	EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
	EXPECT_EQ(0, ring_samples(&ring));
}

TEST_F(linked, cookie)
{
	overflow(&self->area, variant->type, 1);
	EXPECT_EQ(COOKIE, area_get(&self->area, SEEN));
	close(self->link);
	ASSERT_EQ(0, perf_set_bpf(self->perf, self->prog));
	overflow(&self->area, variant->type, 1);
	EXPECT_EQ(0, area_get(&self->area, SEEN));
}

TEST_F(linked, info)
{
	struct bpf_link_info info = {};

	ASSERT_EQ(0, link_info(self->link, &info));
	EXPECT_EQ(BPF_LINK_TYPE_PERF_EVENT, info.type);
	EXPECT_EQ(prog_id(self->prog), info.prog_id);
	EXPECT_EQ(BPF_PERF_EVENT_EVENT, info.perf_event.type);
	EXPECT_EQ(variant->type, info.perf_event.event.type);
	EXPECT_EQ(variant->config, info.perf_event.event.config);
	EXPECT_EQ(COOKIE, info.perf_event.event.cookie);
}

TEST_F(linked, pinned)
{
	ASSERT_EQ(0, obj_pin(self->link, BPFFS "/" BPF_NAME));
	close(self->link);
	close(self->perf);
	EXPECT_EQ(3, seen_of(&self->area, variant->type, 3));
	ASSERT_EQ(0, unlink(BPFFS "/" BPF_NAME));
}

TEST_HARNESS_MAIN
