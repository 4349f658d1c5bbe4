// SPDX-License-Identifier: GPL-2.0
/*
 * What the samples of a kprobe event with a program have in them, and when
 * there is one
 */
#include "common.h"
#include "ring.h"

#define STACK_SIZE 512
#define MARKER 0x5ca1ab1e0ddba115ULL

/* What a sample says, in the order in which it does */
struct sample {
	__u64 identifier, ip, time, addr, id, stream_id, period;
	__u32 pid, tid, cpu;
	struct {
		__u64 value, enabled, running, id;
	} read;
	__u64 callchain[128];
	__u32 raw_size;
	__u16 raw_type;
	__u64 regs_abi;
	__u64 stack_size, stack_used;
	bool marked;	/* the stack is that of the hit */
};

/* A record as it stands in the ring, which is emptied of it; its type or 0 */
static __u32 take_record(struct ring *ring, void *record, size_t size)
{
	size_t i, mask = RING_PAGES * ring->page_size - 1;
	__u64 head, tail = ring->page->data_tail;
	struct perf_event_header *header;

	head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	if (head == tail)
		return 0;
	header = (struct perf_event_header *)(ring->data + (tail & mask));
	for (i = 0; i < header->size && i < size; i++)
		((char *)record)[i] = ring->data[(tail + i) & mask];
	header = record;
	__atomic_store_n(&ring->page->data_tail, tail + header->size,
			 __ATOMIC_RELEASE);
	return header->type;
}

static void get(const char **at, void *to, size_t size)
{
	if (to)
		memcpy(to, *at, size);
	*at += size;
}

static void get_raw(const char **at, struct sample *s)
{
	get(at, &s->raw_size, 4);
	memcpy(&s->raw_type, *at, 2);
	get(at, NULL, s->raw_size);
}

static void get_stack(const char **at, struct sample *s)
{
	const __u64 marker = MARKER;
	size_t i;

	get(at, &s->stack_size, 8);
	for (i = 0; i + 8 <= s->stack_size; i += 8)
		s->marked |= !memcmp(*at + i, &marker, 8);
	get(at, NULL, s->stack_size);
	if (s->stack_size)
		get(at, &s->stack_used, 8);
}

/* Takes the record apart, and says how long it is by what is in it */
static size_t parse(const void *record, __u64 type, struct sample *s)
{
	const struct {
		__u64 type;
		void *to;
		size_t size;
	} fields[] = {
		{ PERF_SAMPLE_IDENTIFIER, &s->identifier, 8 },
		{ PERF_SAMPLE_IP, &s->ip, 8 },
		{ PERF_SAMPLE_TID, &s->pid, 4 },
		{ PERF_SAMPLE_TID, &s->tid, 4 },
		{ PERF_SAMPLE_TIME, &s->time, 8 },
		{ PERF_SAMPLE_ADDR, &s->addr, 8 },
		{ PERF_SAMPLE_ID, &s->id, 8 },
		{ PERF_SAMPLE_STREAM_ID, &s->stream_id, 8 },
		{ PERF_SAMPLE_CPU, &s->cpu, 4 },
		{ PERF_SAMPLE_CPU, NULL, 4 },
		{ PERF_SAMPLE_PERIOD, &s->period, 8 },
		{ PERF_SAMPLE_READ, &s->read, sizeof(s->read) },
	};
	const char *at = (const char *)record + sizeof(struct perf_event_header);
	__u64 nr;
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		if (type & fields[i].type)
			get(&at, fields[i].to, fields[i].size);
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		get(&at, &nr, 8);
		get(&at, nr <= ARRAY_SIZE(s->callchain) ? s->callchain : NULL, nr * 8);
	}
	if (type & PERF_SAMPLE_RAW)
		get_raw(&at, s);
	if (type & PERF_SAMPLE_REGS_USER) {
		get(&at, &s->regs_abi, 8);
		get(&at, NULL, s->regs_abi ? 8 : 0);
	}
	if (type & PERF_SAMPLE_STACK_USER)
		get_stack(&at, s);
	return at - (const char *)record;
}

FIXTURE(sample) {
	struct probe probe;
	struct area area;
	struct ring ring;
	struct perf_event_attr attr;
	int fd;
};

FIXTURE_VARIANT(sample) {
	__u64 type;
};

FIXTURE_VARIANT_ADD(sample, nothing) {
	.type = 0,
};

FIXTURE_VARIANT_ADD(sample, identifier) {
	.type = PERF_SAMPLE_IDENTIFIER,
};

FIXTURE_VARIANT_ADD(sample, ip) {
	.type = PERF_SAMPLE_IP,
};

FIXTURE_VARIANT_ADD(sample, tid) {
	.type = PERF_SAMPLE_TID,
};

FIXTURE_VARIANT_ADD(sample, time) {
	.type = PERF_SAMPLE_TIME,
};

FIXTURE_VARIANT_ADD(sample, addr) {
	.type = PERF_SAMPLE_ADDR,
};

FIXTURE_VARIANT_ADD(sample, id) {
	.type = PERF_SAMPLE_ID,
};

FIXTURE_VARIANT_ADD(sample, stream_id) {
	.type = PERF_SAMPLE_STREAM_ID,
};

FIXTURE_VARIANT_ADD(sample, cpu) {
	.type = PERF_SAMPLE_CPU,
};

FIXTURE_VARIANT_ADD(sample, period) {
	.type = PERF_SAMPLE_PERIOD,
};

FIXTURE_VARIANT_ADD(sample, read) {
	.type = PERF_SAMPLE_READ,
};

FIXTURE_VARIANT_ADD(sample, callchain) {
	.type = PERF_SAMPLE_CALLCHAIN,
};

FIXTURE_VARIANT_ADD(sample, raw) {
	.type = PERF_SAMPLE_RAW,
};

FIXTURE_VARIANT_ADD(sample, regs_user) {
	.type = PERF_SAMPLE_REGS_USER,
};

FIXTURE_VARIANT_ADD(sample, stack_user) {
	.type = PERF_SAMPLE_STACK_USER,
};

FIXTURE_VARIANT_ADD(sample, before_raw) {
	.type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
};

FIXTURE_VARIANT_ADD(sample, around_raw) {
	.type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_STACK_USER,
};

FIXTURE_VARIANT_ADD(sample, all) {
	.type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
		PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
		PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
		PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
};

/* Opens the event with a program that lets all pass */
static int sample_open(struct probe *probe, struct area *area, struct perf_event_attr *attr,
		       struct ring *ring)
{
	int fd = perf_open(attr, -1, 0);

	if (fd < 0)
		return fd;
	return perf_set_bpf(fd, count_prog(area, 0, 1)) ?: ring_map(ring, fd) ?: fd;
}

FIXTURE_SETUP(sample)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, 0));
	ASSERT_EQ(0, probe_attr(&self->probe, &self->attr));
	self->attr.sample_type = variant->type;
	self->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
				 PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
	self->attr.use_clockid = 1;
	self->attr.clockid = CLOCK_MONOTONIC;
	if (variant->type & PERF_SAMPLE_REGS_USER)
		self->attr.sample_regs_user = 1;
	if (variant->type & PERF_SAMPLE_STACK_USER)
		self->attr.sample_stack_user = STACK_SIZE;
	self->fd = sample_open(&self->probe, &self->area, &self->attr, &self->ring);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(sample)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* On a stack that can be known again */
static void hit_marked(void)
{
	__u64 marker[4] = { MARKER, MARKER, MARKER, MARKER };

	hit();
	asm volatile("" : : "m" (marker));
}

/* So many that they are across the ends of pages and of the ring */
TEST_F(sample, has_what_was_asked_for)
{
	__u64 type = variant->type, func = 0, id, event, before, after;
	struct perf_event_header *header;
	char record[4096];
	struct sample s;
	unsigned int i;

	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ID, &id));
	ASSERT_EQ(0, event_id("event", &event));
	if (type & PERF_SAMPLE_IP)
		func = ksym(FUNC);
	header = (struct perf_event_header *)record;
	for (i = 1; i <= 100; i++) {
		before = now_ns();
		hit_marked();
		after = now_ns();
		ASSERT_EQ(PERF_RECORD_SAMPLE,
			  take_record(&self->ring, record, sizeof(record)));
		ASSERT_EQ(header->size, parse(record, type, &s));
		ASSERT_EQ(PERF_RECORD_MISC_KERNEL,
			  header->misc & PERF_RECORD_MISC_CPUMODE_MASK);

		if (type & PERF_SAMPLE_IDENTIFIER)
			ASSERT_EQ(id, s.identifier);
		if (type & PERF_SAMPLE_IP)
			ASSERT_GT(16, s.ip - func);
		if (type & PERF_SAMPLE_TID) {
			ASSERT_EQ(getpid(), s.pid);
			ASSERT_EQ(getpid(), s.tid);
		}
		if (type & PERF_SAMPLE_TIME) {
			/* What perf reads may be off by a little */
			ASSERT_LE(before, s.time + 1000000);
			ASSERT_GE(after + 1000000, s.time);
		}
		if (type & PERF_SAMPLE_ADDR)
			ASSERT_EQ(0, s.addr);
		if (type & PERF_SAMPLE_ID)
			ASSERT_EQ(id, s.id);
		if (type & PERF_SAMPLE_STREAM_ID)
			ASSERT_EQ(id, s.stream_id);
		if (type & PERF_SAMPLE_CPU)
			ASSERT_EQ(0, s.cpu);
		if (type & PERF_SAMPLE_PERIOD)
			ASSERT_EQ(1, s.period);
		if (type & PERF_SAMPLE_READ) {
			ASSERT_EQ(i, s.read.value);
			ASSERT_EQ(id, s.read.id);
			ASSERT_LT(0, s.read.running);
			ASSERT_LE(s.read.running, s.read.enabled);
		}
		if (type & PERF_SAMPLE_CALLCHAIN)
			ASSERT_EQ(PERF_CONTEXT_KERNEL, s.callchain[0]);
		if (type & PERF_SAMPLE_RAW) {
			ASSERT_LE(16, s.raw_size);
			ASSERT_EQ(event, s.raw_type);
		}
		if (type & PERF_SAMPLE_REGS_USER)
			ASSERT_LT(0, s.regs_abi);
		if (type & PERF_SAMPLE_STACK_USER) {
			ASSERT_EQ(STACK_SIZE, s.stack_size);
			ASSERT_EQ(STACK_SIZE, s.stack_used);
			ASSERT_TRUE(s.marked);
		}
	}
	EXPECT_EQ(0, take_record(&self->ring, record, sizeof(record)));
	EXPECT_EQ(i - 1, area_get(&self->area, 0));
}

/* When there is a sample */

FIXTURE(when) {
	struct probe probe;
	struct area area;
	struct ring ring;
	struct perf_event_attr attr;
};

FIXTURE_SETUP(when)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, 0));
	ASSERT_EQ(0, probe_attr(&self->probe, &self->attr));
}

FIXTURE_TEARDOWN_PARENT(when)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(when, one_in_three)
{
	self->attr.sample_period = 3;
	ASSERT_LE(0, sample_open(&self->probe, &self->area, &self->attr, &self->ring));
	hits(30);
	EXPECT_EQ(10, ring_samples(&self->ring));
	EXPECT_EQ(30, area_get(&self->area, 0));
}

/* Of a software event that samples its period, each hit is a sample */
TEST_F(when, each_with_its_own_period)
{
	char record[1024];
	struct sample s;
	int i;

	self->attr.sample_period = 3;
	self->attr.sample_type = PERF_SAMPLE_PERIOD;
	ASSERT_LE(0, sample_open(&self->probe, &self->area, &self->attr, &self->ring));
	hits(30);
	for (i = 0; i < 30; i++) {
		ASSERT_EQ(PERF_RECORD_SAMPLE,
			  take_record(&self->ring, record, sizeof(record)));
		parse(record, PERF_SAMPLE_PERIOD, &s);
		ASSERT_EQ(1, s.period);
	}
	EXPECT_EQ(0, take_record(&self->ring, record, sizeof(record)));
}

/* Of hits that come much more often, and the periods tell how many they were */
TEST_F(when, hundred_a_second)
{
	__u64 start = now_ns(), sum = 0, longest = 0, made = 0;
	unsigned int samples = 0;
	char record[1024];
	struct sample s;

	self->attr.freq = 1;
	self->attr.sample_freq = 100;
	self->attr.sample_type = PERF_SAMPLE_PERIOD;
	ASSERT_LE(0, sample_open(&self->probe, &self->area, &self->attr, &self->ring));
	/* It takes some samples until the period is right */
	while (now_ns() < start + 500000000 ||
	       ((samples < 3 || sum < made / 4) && now_ns() < start + PATIENCE_NS)) {
		hits(100);
		made += 100;
		while (take_record(&self->ring, record, sizeof(record))) {
			parse(record, PERF_SAMPLE_PERIOD, &s);
			sum += s.period;
			longest = s.period > longest ? s.period : longest;
			samples++;
		}
	}
	if (samples < 3 || sum < made / 4)
		say_slow();
	EXPECT_LT(2, samples);
	EXPECT_GT(made / 4, samples);
	EXPECT_LT(1, longest);
	EXPECT_GE(made + longest, sum);
	EXPECT_LE(made / 4, sum);
	EXPECT_EQ(made, area_get(&self->area, 0));
}

/* A ring that is full says later how many it did not take, and of which event */
TEST_F(when, lost)
{
	struct {
		struct perf_event_header header;
		__u64 id, lost;
		char rest[1024];
	} record;
	unsigned int taken, round;
	__u64 id;
	int fd;

	fd = sample_open(&self->probe, &self->area, &self->attr, &self->ring);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ID, &id));
	for (round = 0; round < 3; round++) {
		hits(3000);
		taken = ring_samples(&self->ring);
		EXPECT_LT(0, taken);
		EXPECT_GT(3000, taken);
		hit();
		ASSERT_EQ(PERF_RECORD_LOST, take_record(&self->ring, &record, sizeof(record)));
		EXPECT_EQ(24, record.header.size);
		EXPECT_EQ(id, record.id);
		EXPECT_EQ(3000 - taken, record.lost);
		EXPECT_EQ(1, ring_samples(&self->ring));
	}
}

TEST_HARNESS_MAIN
