// SPDX-License-Identifier: GPL-2.0
/* Several perf events sample the same page fault: each sample is as its own event wants it */
#include "common.h"
#include "overflow.h"
#include "ring.h"

#define MAX_IPS 64

struct stack_sample {
	struct perf_event_header header;
	__u64 nr;
	__u64 ips[MAX_IPS];
};

FIXTURE(between) {
	struct area area;
	struct perf_event_attr attr, others;
	struct ring ring;
	int fds[3];
};

FIXTURE_SETUP(between)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	overflow_attr(&self->attr, PERF_TYPE_SOFTWARE);
	self->others = self->attr;
}

FIXTURE_TEARDOWN_PARENT(between)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Faults in the kernel while the event is open, after one of the others and before another */
static int fault_between(FIXTURE_DATA(between) * self)
{
	struct perf_event_attr *attrs[] = { &self->others, &self->attr, &self->others };
	struct ring rings[ARRAY_SIZE(attrs)];
	int i, err;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		self->fds[i] = perf_open(attrs[i], 0, -1);
		err = self->fds[i] < 0 ? self->fds[i] : ring_map(&rings[i], self->fds[i]);
		if (err)
			return err;
	}
	overflow_in_kernel(&self->area);
	self->ring = rings[1];
	return ring_samples(&rings[0]) && ring_samples(&rings[2]) ? 0 : -ENODATA;
}

TEST_F(between, size)
{
	struct perf_event_header header;
	int n = 0;

	self->others.sample_type |= PERF_SAMPLE_CALLCHAIN;
	ASSERT_EQ(0, fault_between(self));
	while (ring_take(&self->ring, &header, sizeof(header)) && ++n)
		EXPECT_EQ(sizeof(header) + sizeof(__u64), header.size);
	EXPECT_LT(0, n);
}

TEST_F(between, id)
{
	struct {
		struct perf_event_header header;
		__u64 id;
	} sample;
	__u64 id;
	int n = 0;

	self->attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	self->others.sample_type = PERF_SAMPLE_IDENTIFIER;
	ASSERT_EQ(0, fault_between(self));
	ASSERT_EQ(0, ioctl(self->fds[1], PERF_EVENT_IOC_ID, &id));
	while (ring_take(&self->ring, &sample, sizeof(sample)) && ++n)
		EXPECT_EQ(id, sample.id);
	EXPECT_LT(0, n);
}

/* How many of the samples have a stack, and how many one of the kernel */
static void count_stacks(struct ring *ring, int *stacks, int *of_kernel)
{
	struct stack_sample sample;
	__u64 i;

	*stacks = 0;
	*of_kernel = 0;
	while (ring_take(ring, &sample, sizeof(sample))) {
		*stacks += !!sample.nr;
		for (i = 0; i < sample.nr && i < MAX_IPS; i++)
			*of_kernel += sample.ips[i] == PERF_CONTEXT_KERNEL;
	}
}

TEST_F(between, stack_without_the_kernel)
{
	int stacks, of_kernel;

	self->attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	self->others = self->attr;
	self->attr.exclude_callchain_kernel = 1;
	ASSERT_EQ(0, fault_between(self));
	count_stacks(&self->ring, &stacks, &of_kernel);
	EXPECT_LT(0, stacks);
	EXPECT_EQ(0, of_kernel);
}

TEST_F(between, stack_with_the_kernel)
{
	int stacks, of_kernel;

	self->attr.sample_type = PERF_SAMPLE_CALLCHAIN;
	self->others = self->attr;
	self->others.exclude_callchain_kernel = 1;
	ASSERT_EQ(0, fault_between(self));
	count_stacks(&self->ring, &stacks, &of_kernel);
	EXPECT_LT(0, of_kernel);
}

TEST_HARNESS_MAIN
