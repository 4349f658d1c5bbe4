// SPDX-License-Identifier: GPL-2.0
/*
 * A kprobe event with one program and nothing else to do hands its hits to the
 * program by a short cut.  Here other consumers of the same hits come and go:
 * each hit still runs the program once, or counts as missed.
 */
#include "common.h"
#include "hitter.h"
#include "multi.h"
#include "ring.h"

#define EVENT TRACEFS "/events/" GROUP "/event/"

FIXTURE(change) {
	struct probe probe;
	struct area area;
	int fd;
};

FIXTURE_VARIANT(change) {
	unsigned int flags;
	bool body;
};

FIXTURE_VARIANT_ADD(change, kprobe) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(change, kretprobe) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(change, body) {
	.body = true,
};

static long hit_body_arg(int pid)
{
	struct timespec ts;

	return syscall(__NR_sched_rr_get_interval, pid, &ts);
}

FIXTURE_SETUP(change)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, variant->body ?
			     probe_create_body(&self->probe, "event", BODY_FUNC, 0) :
			     probe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(change)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What can come: returns a descriptor to close when it goes, 0, or an errno */
struct consumer {
	const char *name;
	int (*come)(const struct probe *probe, struct area *area);
	int (*go)(void);
};

static int trace_come(const struct probe *probe, struct area *area)
{
	return write_file(EVENT "enable", 0, "1");
}

static int trace_go(void)
{
	return write_file(EVENT "enable", 0, "0");
}

static int string_come(const struct probe *probe, struct area *area)
{
	return write_file(EVENT "filter", 0, "common_pid == 0") ?: trace_come(probe, area);
}

static int string_go(void)
{
	return trace_go() ?: write_file(EVENT "filter", 0, "0");
}

static int trigger_come(const struct probe *probe, struct area *area)
{
	return write_file(EVENT "trigger", 0, "traceon");
}

static int trigger_go(void)
{
	return write_file(EVENT "trigger", 0, "!traceon");
}

static int perf_come(const struct probe *probe, struct area *area)
{
	return probe_open(probe);
}

enum { OTHER_RUNS = 100 };

static int second_program_come(const struct probe *probe, struct area *area)
{
	int prog = count_prog(area, OTHER_RUNS, 1), fd = attach(probe, prog);

	close(prog);
	return fd;
}

static int filter_program_come(const struct probe *probe, struct area *area)
{
	int prog = count_prog(area, OTHER_RUNS, 0), fd, err;

	fd = neg_errno(open(EVENT "filter", O_RDWR | O_CLOEXEC));
	err = fd < 0 ? fd : neg_errno(dprintf(fd, "bpf-%d", prog));
	close(prog);
	return err < 0 ? err : fd;
}

/* Another event at the same place: the two kprobes share what is armed */
static int second_kprobe_come(const struct probe *probe, struct area *area)
{
	struct probe other;
	int err = probe_create_at(&other, "other", probe->func, probe->offset, probe->flags);

	return err ?: second_program_come(&other, area);
}

static int second_kprobe_go(void)
{
	return event_remove("other");
}

static int multi_come(const struct probe *probe, struct area *area)
{
	int prog = count_prog_as(area, OTHER_RUNS, 0, BPF_TRACE_KPROBE_MULTI), link;

	link = multi_link_one(probe->func, BPF_TRACE_KPROBE_MULTI, 0, prog);
	close(prog);
	return link == -EOPNOTSUPP ? 0 : link;
}

static int stats_come(const struct probe *probe, struct area *area)
{
	return stats_enable();
}

static const struct consumer consumers[] = {
	{ "trace", trace_come, trace_go },
	{ "string filter", string_come, string_go },
	{ "trigger", trigger_come, trigger_go },
	{ "perf event", perf_come },
	{ "second program", second_program_come },
	{ "filter program", filter_program_come },
	{ "second kprobe", second_kprobe_come, second_kprobe_go },
	{ "kprobe_multi", multi_come },
	{ "statistics", stats_come },
};

static int consumer_go(const struct consumer *c, int fd)
{
	if (fd > 0)
		close(fd);
	return c->go ? c->go() : 0;
}

#define HITS 20

static void hit_probe(bool body, unsigned int n)
{
	while (n--)
		body ? hit_body_arg(0) : hit_arg(0);
}

TEST_F(change, each_hit_once)
{
	unsigned long hits, missed, total = 0;
	int i, fd;

	self->fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, self->fd);
	for (i = 0; i < ARRAY_SIZE(consumers); i++) {
		fd = consumers[i].come(&self->probe, &self->area);
		ASSERT_LE(0, fd)
			TH_LOG("%s: %s", consumers[i].name, strerror(-fd));
		hit_probe(variant->body, HITS);
		total += HITS;
		EXPECT_EQ(total, area_get(&self->area, 0))
			TH_LOG("with: %s", consumers[i].name);
		ASSERT_EQ(0, consumer_go(&consumers[i], fd))
			TH_LOG("%s", consumers[i].name);
		hit_probe(variant->body, HITS);
		total += HITS;
		EXPECT_EQ(total, area_get(&self->area, 0))
			TH_LOG("after: %s", consumers[i].name);
	}
	ASSERT_TRUE(event_profile("event", &hits, &missed));
	EXPECT_EQ(total, hits);
	EXPECT_EQ(0, missed);
	close(self->fd);
}

/* The consumer gets what it came for, whatever the program returns */
TEST_F(change, records)
{
	int i, ret, samples;
	struct ring ring;

	for (i = 0; i < 4; i++) {
		ret = i & 1;
		self->fd = attach(&self->probe, count_prog(&self->area, 0, ret));
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, pin(0));
		ASSERT_EQ(0, ring_map(&ring, self->fd));
		if (i & 2)
			ASSERT_EQ(0, trace_come(&self->probe, &self->area));
		hit_probe(variant->body, HITS);
		samples = ring_samples(&ring);
		EXPECT_EQ(ret ? HITS : 0, samples);
		if (i & 2)
			ASSERT_EQ(0, trace_go());
		hit_probe(variant->body, HITS);
		samples = ring_samples(&ring);
		EXPECT_EQ(ret ? HITS : 0, samples);
		ring_unmap(&ring);
		close(self->fd);
	}
	EXPECT_EQ(4 * 2 * HITS, area_get(&self->area, 0));
}

static long trace_records(void)
{
	size_t size;
	char *text = read_all(TRACEFS "/trace", &size), *at = text;
	long n = 0;

	while (at && (at = strstr(at, " event: (")))
		n++, at++;
	free(text);
	return n;
}

TEST_F(change, traced)
{
	self->fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, self->fd);
	hit_probe(variant->body, HITS);
	ASSERT_EQ(0, write_file(TRACEFS "/trace", O_TRUNC, "\n"));
	ASSERT_EQ(0, trace_come(&self->probe, &self->area));
	hit_probe(variant->body, HITS);
	ASSERT_EQ(0, trace_go());
	hit_probe(variant->body, HITS);
	EXPECT_EQ(HITS, trace_records());
	EXPECT_EQ(3 * HITS, area_get(&self->area, 0));
	close(self->fd);
}

/* Other consumers are there when the program comes */
TEST_F(change, program_second)
{
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(consumers); i++) {
		fd = consumers[i].come(&self->probe, &self->area);
		ASSERT_LE(0, fd)
			TH_LOG("%s: %s", consumers[i].name, strerror(-fd));
		area_set(&self->area, 0, 0);
		self->fd = attach(&self->probe, count_prog(&self->area, 0, 0));
		ASSERT_LE(0, self->fd);
		hit_probe(variant->body, HITS);
		ASSERT_EQ(0, consumer_go(&consumers[i], fd));
		hit_probe(variant->body, HITS);
		EXPECT_EQ(2 * HITS, area_get(&self->area, 0))
			TH_LOG("%s", consumers[i].name);
		close(self->fd);
		hit_probe(variant->body, HITS);
		EXPECT_EQ(2 * HITS, area_get(&self->area, 0))
			TH_LOG("%s, gone", consumers[i].name);
	}
}

/* A pause holds whichever way a hit takes, and none of it is a miss */
TEST_F(change, pause)
{
	struct fdinfo info;
	unsigned long hits, missed;
	int i;

	self->fd = attach(&self->probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, self->fd);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
		hit_probe(variant->body, HITS);
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
		hit_probe(variant->body, HITS);
		if (!i)
			ASSERT_EQ(0, trace_come(&self->probe, &self->area));
	}
	ASSERT_EQ(0, trace_go());
	EXPECT_EQ(2 * HITS, area_get(&self->area, 0));
	ASSERT_EQ(0, read_fdinfo(self->fd, &info));
	EXPECT_EQ(2 * HITS, info.hits);
	EXPECT_EQ(0, info.missed);
	ASSERT_TRUE(event_profile("event", &hits, &missed));
	EXPECT_EQ(4 * HITS, hits);
	close(self->fd);
}

/* The hits that all hitters have made */
static __u64 hits_made(const struct hitters *h)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < h->n; i++)
		sum += area_get(h->area, NUMBER + i);
	return sum;
}

TEST_F(change, under_load)
{
	unsigned long hits, missed;
	struct hitters hitters;
	__u64 end = deadline();
	struct fdinfo info;
	int i, fd;

	self->fd = attach(&self->probe, number_prog(&self->area));
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, hitters_start_with(&hitters, &self->area, 0,
					variant->body ? hit_body_arg : hit_arg));
	do {
		for (i = 0; i < ARRAY_SIZE(consumers); i++) {
			fd = consumers[i].come(&self->probe, &self->area);
			ASSERT_LE(0, fd)
				TH_LOG("%s: %s", consumers[i].name, strerror(-fd));
			EXPECT_TRUE(hitters_wait_run(&hitters))
				TH_LOG("with: %s", consumers[i].name);
			ASSERT_EQ(0, consumer_go(&consumers[i], fd))
				TH_LOG("%s", consumers[i].name);
			EXPECT_TRUE(hitters_wait_run(&hitters))
				TH_LOG("after: %s", consumers[i].name);
		}
	} while (now_ns() < end);
	hitters_stop(&hitters);

	ASSERT_EQ(0, read_fdinfo(self->fd, &info));
	EXPECT_EQ(info.hits, area_get(&self->area, RUNS));
	EXPECT_EQ(hits_made(&hitters), info.hits + info.missed);
	ASSERT_TRUE(event_profile("event", &hits, &missed));
	EXPECT_EQ(hits_made(&hitters), hits + missed);
	close(self->fd);
}

TEST_HARNESS_MAIN
