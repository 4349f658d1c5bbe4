// SPDX-License-Identifier: GPL-2.0
/*
 * The stacks of BPF_PROG_TYPE_PERF_EVENT programs: taken on the spot, or from
 * the callchain that the sample has anyway
 */
#include "common.h"
#include "link.h"
#include "overflow.h"
#include "ring.h"

FIXTURE(stack) {
	struct area area;
	struct perf_event_attr attr;
	int first;	/* what there is before the stack: PERF_CONTEXT_* */
	__u64 text;
	__u64 end;
};

FIXTURE_VARIANT(stack) {
	bool callchain;
};

FIXTURE_VARIANT_ADD(stack, on_the_spot) {
	.callchain = false,
};

FIXTURE_VARIANT_ADD(stack, from_callchain) {
	.callchain = true,
};

FIXTURE_SETUP(stack)
{
	SKIP_WITHOUT(return, overflow_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	overflow_attr(&self->attr, PERF_TYPE_SOFTWARE);
	self->first = variant->callchain;
	if (variant->callchain)
		self->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	self->text = ksym("_stext");
	self->end = ksym("_etext");
	ASSERT_NE(0, self->text);
}

FIXTURE_TEARDOWN_PARENT(stack)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int get_stack_prog(struct area *area, int flags)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, 64),
		BPF_MOV64_IMM(BPF_REG_4, flags),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
	};

	return overflow_prog_of(area, body, ARRAY_SIZE(body));
}

static int get_stackid_prog(struct area *area, int map, int flags)
{
	const struct bpf_insn body[] = {
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, flags),
		BPF_EMIT_CALL(BPF_FUNC_get_stackid),
	};

	return overflow_prog_of(area, body, ARRAY_SIZE(body));
}

/* What the program says of a page fault in the kernel */
static __s64 in_kernel(struct area *area, struct perf_event_attr *attr, int prog)
{
	int fd = perf_open(attr, 0, -1);

	area_set(area, SEEN, 12345);
	if (perf_set_bpf(fd, prog))
		return -EBUSY;
	overflow_in_kernel(area);
	close(fd);
	return area_get(area, SEEN);
}

TEST_F(stack, kernel)
{
	__s64 len = in_kernel(&self->area, &self->attr, get_stack_prog(&self->area, 0));
	__u64 first = area_get(&self->area, MORE + self->first);

	EXPECT_LE(16, len);
	EXPECT_GE(64, len);
	EXPECT_LE(self->text, first);
	EXPECT_GT(self->end, first);
}

TEST_F(stack, kernel_without_the_first)
{
	__u64 second;

	EXPECT_LE(16, in_kernel(&self->area, &self->attr, get_stack_prog(&self->area, 0)));
	second = area_get(&self->area, MORE + 1);
	EXPECT_LE(8, in_kernel(&self->area, &self->attr, get_stack_prog(&self->area, 1)));
	EXPECT_EQ(second, area_get(&self->area, MORE));
}

TEST_F(stack, user)
{
	int fd;

	EXPECT_LE(8, in_kernel(&self->area, &self->attr,
			       get_stack_prog(&self->area, BPF_F_USER_STACK)));
	EXPECT_GT(1ULL << 56, area_get(&self->area, MORE + self->first));
	EXPECT_NE(0, area_get(&self->area, MORE + self->first));

	fd = perf_open(&self->attr, 0, -1);
	ASSERT_EQ(0, perf_set_bpf(fd, get_stack_prog(&self->area, BPF_F_USER_STACK)));
	overflow(&self->area, PERF_TYPE_SOFTWARE, 1);
	EXPECT_LE(8, (__s64)area_get(&self->area, SEEN));
	EXPECT_TRUE(in_touch(area_get(&self->area, MORE + self->first)));
	close(fd);

	/* There is no kernel below it */
	fd = perf_open(&self->attr, 0, -1);
	ASSERT_EQ(0, perf_set_bpf(fd, get_stack_prog(&self->area, 0)));
	overflow(&self->area, PERF_TYPE_SOFTWARE, 1);
	EXPECT_EQ(0, area_get(&self->area, SEEN));
}

TEST_F(stack, id)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 32, 64, 0);
	__u64 ips[32];
	__s64 id;
	__u32 key;

	id = in_kernel(&self->area, &self->attr, get_stackid_prog(&self->area, map, 0));
	ASSERT_LE(0, id);
	key = id;
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_LE(self->text, ips[self->first]);
	EXPECT_GT(self->end, ips[self->first]);
	EXPECT_NE(0, ips[self->first + 1]);

	id = in_kernel(&self->area, &self->attr,
		       get_stackid_prog(&self->area, map,
					BPF_F_USER_STACK | BPF_F_REUSE_STACKID));
	ASSERT_LE(0, id);
	key = id;
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_NE(0, ips[self->first]);
	EXPECT_GT(1ULL << 56, ips[self->first]);
}

TEST_F(stack, bad_flags)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 32, 64, 0);

	EXPECT_EQ(-EINVAL, in_kernel(&self->area, &self->attr,
				     get_stack_prog(&self->area, 1 << 16)));
	EXPECT_EQ(0, area_get(&self->area, MORE));
	EXPECT_EQ(-EINVAL, in_kernel(&self->area, &self->attr,
				     get_stack_prog(&self->area, BPF_F_USER_BUILD_ID)));
	EXPECT_EQ(-EINVAL, in_kernel(&self->area, &self->attr,
				     get_stackid_prog(&self->area, map, 1 << 16)));
}

/* Whom the program calls takes the stack, which it does not itself */
TEST_F(stack, after_tail_call)
{
	int map = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	int callee = get_stack_prog(&self->area, 0);
	const struct bpf_insn body[] = {
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, -1),
	};
	__u32 key = 0;

	ASSERT_EQ(0, map_update(map, &key, &callee));
	EXPECT_LE(16, in_kernel(&self->area, &self->attr,
				overflow_prog_of(&self->area, body, ARRAY_SIZE(body))));
	EXPECT_LE(self->text, area_get(&self->area, MORE + self->first));
	EXPECT_EQ(1, area_get(&self->area, HITS));
	EXPECT_EQ(0, map_delete(map, &key));
}

/* A record with the callchain, which the program has looked at */

FIXTURE(record) {
	struct area area;
	struct ring ring;
	int perf;
};

FIXTURE_VARIANT(record) {
	enum bpf_func_id helper;	/* after a first one, which takes a part of the callchain */
};

FIXTURE_VARIANT_ADD(record, more_of_the_stack) {
	BPF_FUNC_get_stack,
};

FIXTURE_VARIANT_ADD(record, stack_of_the_task) {
	BPF_FUNC_get_task_stack,
};

static int records_prog(struct area *area, enum bpf_func_id helper)
{
	const bool of_task = helper == BPF_FUNC_get_task_stack;
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_1),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		BPF_MOV64_IMM(BPF_REG_4, BPF_F_USER_STACK),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_1, of_task ? BPF_REG_0 : BPF_REG_7),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, 64),
		BPF_MOV64_IMM(BPF_REG_4, of_task ? 0 : BPF_F_USER_STACK),
		BPF_EMIT_CALL(helper),
	};

	return overflow_prog_of(area, body, ARRAY_SIZE(body));
}

FIXTURE_SETUP(record)
{
	struct perf_event_attr attr;

	SKIP_WITHOUT(return, overflow_prepare());
	if (mainline() && variant->helper == BPF_FUNC_get_task_stack)
		SKIP(return, "mainline takes another stack into the buffer of the sample's");
	ASSERT_EQ(0, area_create(&self->area));
	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	attr.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CPU;
	self->perf = perf_open(&attr, 0, -1);
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	area_set(&self->area, VERDICT, 1);
	ASSERT_EQ(0, perf_set_bpf(self->perf, records_prog(&self->area, variant->helper)));
	ring_samples(&self->ring); /* from before there was a program */
}

FIXTURE_TEARDOWN_PARENT(record)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(record, has_all_of_the_callchain)
{
	struct {
		struct perf_event_header header;
		__u32 cpu, reserved;
		__u64 nr, chain[256];
	} record;
	const bool of_task = variant->helper == BPF_FUNC_get_task_stack;
	int i, n = 0;
	__s64 took;

	overflow(&self->area, PERF_TYPE_SOFTWARE, 1);
	/* The buffer is busy, or all of the callchain is there still */
	took = area_get(&self->area, SEEN);
	EXPECT_TRUE(of_task ? took == -EFAULT : took >= 16) TH_LOG("%lld", took);
	while (ring_take(&self->ring, &record, sizeof(record)) == PERF_RECORD_SAMPLE) {
		EXPECT_EQ(record.header.size, sizeof(record.header) + 16 + 8 * record.nr);
		EXPECT_EQ(PERF_CONTEXT_USER, record.chain[0]);
		for (i = 0; i < record.nr && i < ARRAY_SIZE(record.chain); i++)
			n += in_touch(record.chain[i]);
	}
	EXPECT_EQ(1, n);
}

TEST_HARNESS_MAIN
