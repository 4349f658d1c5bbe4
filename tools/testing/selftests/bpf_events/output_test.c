// SPDX-License-Identifier: GPL-2.0
/* The helpers that hand data to user space, and those that read counters */
#include "common.h"
#include "ring.h"
#include "ringbuf.h"

/* Slots: an argument and flags, what the helper returned, a buffer */
enum { ARG, FLAGS, RET, RET2, BUF };

FIXTURE(output) {
	struct rig rig;
};

FIXTURE_SETUP(output)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(output)
{
	EXPECT_STREQ("nothing", leftovers());
}

static __s64 result(struct rig *rig, __u64 arg, __u64 flags)
{
	area_set(&rig->area, ARG, arg);
	area_set(&rig->area, FLAGS, flags);
	area_set(&rig->area, RET, 12345);
	hit();
	return area_get(&rig->area, RET);
}

static int counter_open(__u32 type, __u64 config, int cpu)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.wakeup_events = 1,
	};

	if (config != PERF_COUNT_SW_BPF_OUTPUT)
		attr.sample_period = 0;
	return perf_open(&attr, -1, cpu);
}

TEST_F(output, perf_event_output)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 4, 0);
	int out = counter_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, 0);
	int clock = counter_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * FLAGS),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_5, 24),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u32 len = 0, key = 0;
	char raw[64] = "";
	struct ring ring;
	int i;

	ASSERT_LE(0, out);
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, ring_map(&ring, out));
	ASSERT_EQ(0, map_update(map, &key, &out));
	key = 1;
	ASSERT_EQ(0, map_update(map, &key, &clock));
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));

	memcpy(&self->rig.area.slot[BUF], "twenty-three characters", 24);
	EXPECT_EQ(0, result(&self->rig, 0, BPF_F_CURRENT_CPU));
	EXPECT_EQ(0, result(&self->rig, 0, 0));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(PERF_RECORD_SAMPLE,
			  ring_read(&ring, raw, sizeof(raw), &len));
		EXPECT_LE(24, len);
		EXPECT_STREQ("twenty-three characters", raw);
	}
	EXPECT_EQ(0, ring_read(&ring, NULL, 0, NULL));

	EXPECT_EQ(-EINVAL, result(&self->rig, 0, 1));		/* not an output event */
	EXPECT_EQ(-ENOENT, result(&self->rig, 0, 2));		/* an empty slot */
	EXPECT_EQ(-E2BIG, result(&self->rig, 0, 4));		/* past the array */
	EXPECT_EQ(-EINVAL, result(&self->rig, 0, 1ULL << 63));
	if (!pin(1))
		EXPECT_EQ(-EOPNOTSUPP, result(&self->rig, 0, 0)); /* CPU 0's */
	EXPECT_EQ(0, ring_samples(&ring));
	/* It works as before */
	ASSERT_EQ(0, pin(0));
	EXPECT_EQ(0, result(&self->rig, 0, BPF_F_CURRENT_CPU));
	EXPECT_EQ(1, ring_samples(&ring));
}

TEST_F(output, perf_event_read)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0);
	int clock = counter_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_read),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u32 key = 0;
	__s64 first;

	ASSERT_LE(0, clock);
	ASSERT_EQ(0, map_update(map, &key, &clock));
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	/* The clock may be as coarse as a tick */
	sleep_ms(20);
	first = result(&self->rig, 0, BPF_F_CURRENT_CPU);
	EXPECT_LT(0, first);
	sleep_ms(20);
	EXPECT_LT(first, result(&self->rig, 0, 0));

	EXPECT_EQ(-ENOENT, result(&self->rig, 0, 1));
	EXPECT_EQ(-E2BIG, result(&self->rig, 0, 2));
	EXPECT_EQ(-EINVAL, result(&self->rig, 0, 1ULL << 63));
	if (!pin(1))
		EXPECT_GT(0, result(&self->rig, 0, 0));	/* it is CPU 0's */
}

TEST_F(output, perf_event_read_value)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 2, 0);
	int clock = counter_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 8 * FLAGS),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_4, sizeof(struct bpf_perf_event_value)),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_read_value),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_perf_event_value *val = (void *)&self->rig.area.slot[BUF];
	__u64 first;
	__u32 key = 0;

	ASSERT_LE(0, clock);
	ASSERT_EQ(0, map_update(map, &key, &clock));
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	/* The clock may be as coarse as a tick */
	sleep_ms(20);
	EXPECT_EQ(0, result(&self->rig, 0, BPF_F_CURRENT_CPU));
	first = val->counter;
	EXPECT_LT(0, first);
	EXPECT_LT(0, val->enabled);
	EXPECT_LT(0, val->running);
	sleep_ms(20);
	EXPECT_EQ(0, result(&self->rig, 0, 0));
	EXPECT_LT(first, val->counter);

	/* An error leaves zeroes, not what was there */
	EXPECT_EQ(-ENOENT, result(&self->rig, 0, 1));
	EXPECT_EQ(0, val->counter | val->enabled | val->running);
	EXPECT_EQ(-E2BIG, result(&self->rig, 0, 2));

	/* A size that is not the struct's */
	insns[7].imm = 16;
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	val->counter = 1;
	val->enabled = 1;
	EXPECT_EQ(-EINVAL, result(&self->rig, 0, 0));
	EXPECT_EQ(0, val->counter | val->enabled);
}

TEST_F(output, ringbuf_reserve)
{
	int map = map_create(BPF_MAP_TYPE_RINGBUF, 0, 0, sysconf(_SC_PAGESIZE), 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_IMM(BPF_REG_2, 1000),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_reserve),
		BPF_MOV64_IMM(BPF_REG_7, 0),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 6),
		BPF_MOV64_IMM(BPF_REG_7, 1),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_submit),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_7, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct ringbuf rb;
	const char *rec;
	__u32 len;
	int i;

	ASSERT_EQ(0, ringbuf_map(&rb, map));
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	EXPECT_EQ(1, result(&self->rig, 77, 0));
	rec = ringbuf_read(&rb, &len);
	ASSERT_NE(NULL, rec);
	EXPECT_EQ(1000, len);
	EXPECT_EQ(77, *(__u64 *)rec);
	EXPECT_EQ(NULL, ringbuf_read(&rb, &len));

	/* Four of them fit, then the program gets NULL until one is taken */
	for (i = 0; i < 6; i++)
		EXPECT_EQ(i < 4, result(&self->rig, i, 0));
	for (i = 0; i < 4; i++) {
		rec = ringbuf_read(&rb, &len);
		ASSERT_NE(NULL, rec);
		EXPECT_EQ(i, *(__u64 *)rec);
	}
	EXPECT_EQ(NULL, ringbuf_read(&rb, &len));
	EXPECT_EQ(1, result(&self->rig, 9, 0));
	EXPECT_NE(NULL, ringbuf_read(&rb, &len));

	insns[14] = (struct bpf_insn)BPF_EMIT_CALL(BPF_FUNC_ringbuf_discard);
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	EXPECT_EQ(1, result(&self->rig, 10, 0));
	EXPECT_EQ(NULL, ringbuf_read(&rb, &len));
}

TEST_F(output, ringbuf_output_and_query)
{
	int map = map_create(BPF_MAP_TYPE_RINGBUF, 0, 0, sysconf(_SC_PAGESIZE), 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_3, 1500),
		BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 8 * ARG),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_query),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const unsigned int rec_size = 1504 + BPF_RINGBUF_HDR_SZ;
	struct area *area = &self->rig.area;
	struct ringbuf rb;
	__u32 len;

	ASSERT_EQ(0, ringbuf_map(&rb, map));
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));
	memcpy(&area->slot[BUF], "out it goes", sizeof("out it goes"));
	EXPECT_EQ(0, result(&self->rig, BPF_RB_AVAIL_DATA, 0));
	EXPECT_EQ(rec_size, area_get(area, RET2));
	EXPECT_EQ(0, result(&self->rig, BPF_RB_RING_SIZE, BPF_RB_NO_WAKEUP));
	EXPECT_EQ(sysconf(_SC_PAGESIZE), area_get(area, RET2));
	/* Full */
	EXPECT_EQ(-EAGAIN, result(&self->rig, BPF_RB_CONS_POS, 0));
	EXPECT_EQ(0, area_get(area, RET2));
	EXPECT_EQ(-EINVAL, result(&self->rig, BPF_RB_PROD_POS, 1 << 10));
	EXPECT_EQ(2 * rec_size, area_get(area, RET2));

	EXPECT_STREQ("out it goes", ringbuf_read(&rb, &len));
	EXPECT_EQ(1500, len);
	EXPECT_NE(NULL, ringbuf_read(&rb, &len));
	EXPECT_EQ(NULL, ringbuf_read(&rb, &len));
}

TEST_HARNESS_MAIN
