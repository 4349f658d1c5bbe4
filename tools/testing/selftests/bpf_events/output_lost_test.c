// SPDX-License-Identifier: GPL-2.0
/* What a ring does not take of a program's records is counted in fdinfo of its map */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "ring.h"
#include "ringbuf.h"

/* Slots behind those of the hitters: flags, and what the helper returned */
enum { FLAGS = LAST + MAX_HITTERS, RET };

static __u64 lost(int map)
{
	return fdinfo_number(map, "lost_records");
}

static __s64 result(struct rig *rig, __u64 flags)
{
	area_set(&rig->area, FLAGS, flags);
	area_set(&rig->area, RET, 12345);
	hit();
	return area_get(&rig->area, RET);
}

FIXTURE(perf) {
	struct rig rig;
	struct ring ring;
	int map;
};

static int event_open(__u64 config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = config == PERF_COUNT_SW_BPF_OUTPUT,
	};

	return perf_open(&attr, -1, 0);
}

/* Slot 0 of the map has a ring, 1 another event, 2 nothing */
FIXTURE_SETUP(perf)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 3, 0);
	const char *missing = prepare();
	struct area *area = &self->rig.area;
	int events[2];
	__u32 i;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	events[0] = event_open(PERF_COUNT_SW_BPF_OUTPUT);
	events[1] = event_open(PERF_COUNT_SW_CPU_CLOCK);
	ASSERT_EQ(0, ring_map(&self->ring, events[0]));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, map_update(map, &i, &events[i]));
	self->map = map;

	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * FLAGS),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_5, 100),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	ASSERT_LE(0, rig_attach(&self->rig, prog_load(insns, ARRAY_SIZE(insns))));
}

FIXTURE_TEARDOWN_PARENT(perf)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(perf, ring_is_full)
{
	unsigned int n = 0, i;

	EXPECT_EQ(0, lost(self->map));
	while (!result(&self->rig, BPF_F_CURRENT_CPU))
		n++;
	EXPECT_LT(100, n);
	EXPECT_EQ(1, lost(self->map));
	for (i = 0; i < 9; i++)
		EXPECT_EQ(-ENOSPC, result(&self->rig, 0));
	EXPECT_EQ(10, lost(self->map));
	EXPECT_EQ(n, ring_samples(&self->ring));

	EXPECT_EQ(0, result(&self->rig, 0));
	EXPECT_EQ(1, ring_samples(&self->ring));
	EXPECT_EQ(10, lost(self->map));
}

TEST_F(perf, there_is_no_ring)
{
	EXPECT_EQ(-EINVAL, result(&self->rig, 1));
	EXPECT_EQ(-ENOENT, result(&self->rig, 2));
	EXPECT_EQ(-E2BIG, result(&self->rig, 3));
	EXPECT_EQ(3, lost(self->map));
	if (!pin(1)) {
		EXPECT_EQ(-EOPNOTSUPP, result(&self->rig, 0)); /* CPU 0's */
		EXPECT_EQ(4, lost(self->map));
	}
	EXPECT_EQ(0, ring_samples(&self->ring));
}

#define RECORD 1000	/* bytes, of which four fit into the page */

FIXTURE(ringbuf) {
	struct rig rig;
	struct ringbuf rb;
	int map;
};

FIXTURE_VARIANT(ringbuf) {
	__u32 helper;
};

FIXTURE_VARIANT_ADD(ringbuf, output) {
	.helper = BPF_FUNC_ringbuf_output,
};

FIXTURE_VARIANT_ADD(ringbuf, reserve) {
	.helper = BPF_FUNC_ringbuf_reserve,
};

FIXTURE_VARIANT_ADD(ringbuf, reserve_dynptr) {
	.helper = BPF_FUNC_ringbuf_reserve_dynptr,
};

/* They count in RUNS how often they were run, and leave 0 in RET if the record went in */
static int output_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_1, 8 * RUNS),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_3, RECORD),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

static int reserve_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_1, 8 * RUNS),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_IMM(BPF_REG_2, RECORD),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_reserve),
		BPF_MOV64_IMM(BPF_REG_7, 1),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_submit),
		BPF_MOV64_IMM(BPF_REG_7, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_7, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

static int dynptr_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_1, 8 * RUNS),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_IMM(BPF_REG_2, RECORD),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -16),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_reserve_dynptr),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -16),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_submit_dynptr),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

FIXTURE_SETUP(ringbuf)
{
	const char *missing = prepare();
	struct area *area = &self->rig.area;
	int prog;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	self->map = map_create(BPF_MAP_TYPE_RINGBUF, 0, 0, sysconf(_SC_PAGESIZE), 0);
	ASSERT_EQ(0, ringbuf_map(&self->rb, self->map));
	if (variant->helper == BPF_FUNC_ringbuf_output)
		prog = output_prog(area, self->map);
	else if (variant->helper == BPF_FUNC_ringbuf_reserve)
		prog = reserve_prog(area, self->map);
	else
		prog = dynptr_prog(area, self->map);
	ASSERT_LE(0, rig_attach(&self->rig, prog));
}

FIXTURE_TEARDOWN_PARENT(ringbuf)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Takes all that there are */
static unsigned int records(struct ringbuf *rb)
{
	unsigned int n = 0;
	__u32 len;

	while (ringbuf_read(rb, &len))
		n++;
	return n;
}

TEST_F(ringbuf, is_full)
{
	int i;

	EXPECT_EQ(0, lost(self->map));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(i < 4, !result(&self->rig, 0));
	EXPECT_EQ(6, lost(self->map));
	EXPECT_EQ(4, records(&self->rb));

	EXPECT_EQ(0, result(&self->rig, 0));
	EXPECT_EQ(1, records(&self->rb));
	EXPECT_EQ(6, lost(self->map));
}

/* Under hits from all CPUs, what is read and what is lost are all that there were */
TEST_F(ringbuf, all_add_up)
{
	struct hitters hitters;
	__u64 read = 0, end = deadline();

	ASSERT_EQ(0, hitters_start(&hitters, &self->rig.area, 0));
	do {
		read += records(&self->rb);
		sched_yield();
	} while (now_ns() < end || !read || !lost(self->map));
	hitters_stop(&hitters);
	read += records(&self->rb);
	EXPECT_EQ(area_get(&self->rig.area, RUNS), read + lost(self->map));
}

TEST_HARNESS_MAIN
