// SPDX-License-Identifier: GPL-2.0
/* A record that a ring does not take is counted in fdinfo of its map and of the program */
#include <sys/socket.h>

#include "common.h"
#include "hitter.h"
#include "link.h"
#include "ring.h"
#include "ringbuf.h"
#include "ways.h"

/* Slots behind those of the hitters: flags, and what the helper returned */
enum { FLAGS = LAST + MAX_HITTERS, RET };

/* What both say, or ~0 */
static __u64 lost(int map, int prog)
{
	__u64 n = fdinfo_number(map, "lost_records");

	return fdinfo_number(prog, "lost_records") == n ? n : ~0ULL;
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
	int map, prog;
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
	struct area *area = &self->rig.area;
	int events[2];
	__u32 i;

	SKIP_WITHOUT(return, prepare());
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
	self->prog = prog_load(insns, ARRAY_SIZE(insns));
	ASSERT_LE(0, rig_attach(&self->rig, dup(self->prog)));
}

FIXTURE_TEARDOWN_PARENT(perf)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(perf, ring_is_full)
{
	unsigned int n = 0, i;

	EXPECT_EQ(0, lost(self->map, self->prog));
	while (!result(&self->rig, BPF_F_CURRENT_CPU))
		n++;
	EXPECT_LT(100, n);
	EXPECT_EQ(1, lost(self->map, self->prog));
	for (i = 0; i < 9; i++)
		EXPECT_EQ(-ENOSPC, result(&self->rig, 0));
	EXPECT_EQ(10, lost(self->map, self->prog));
	EXPECT_EQ(n, ring_samples(&self->ring));

	EXPECT_EQ(0, result(&self->rig, 0));
	EXPECT_EQ(1, ring_samples(&self->ring));
	EXPECT_EQ(10, lost(self->map, self->prog));
}

TEST_F(perf, there_is_no_ring)
{
	EXPECT_EQ(-EINVAL, result(&self->rig, 1));
	EXPECT_EQ(-ENOENT, result(&self->rig, 2));
	EXPECT_EQ(-E2BIG, result(&self->rig, 3));
	EXPECT_EQ(3, lost(self->map, self->prog));
	if (!pin(1)) {
		EXPECT_EQ(-EOPNOTSUPP, result(&self->rig, 0)); /* CPU 0's */
		EXPECT_EQ(4, lost(self->map, self->prog));
	}
	EXPECT_EQ(0, ring_samples(&self->ring));
}

#define RECORD 1000	/* bytes, of which four fit into the page */

FIXTURE(ringbuf) {
	struct rig rig;
	struct ringbuf rb;
	int map, prog;
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
static int write_prog(struct area *area, int map)
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
	struct area *area = &self->rig.area;

	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, rig_create(&self->rig, 0));
	self->map = map_create(BPF_MAP_TYPE_RINGBUF, 0, 0, sysconf(_SC_PAGESIZE), 0);
	ASSERT_EQ(0, ringbuf_map(&self->rb, self->map));
	if (variant->helper == BPF_FUNC_ringbuf_output)
		self->prog = write_prog(area, self->map);
	else if (variant->helper == BPF_FUNC_ringbuf_reserve)
		self->prog = reserve_prog(area, self->map);
	else
		self->prog = dynptr_prog(area, self->map);
	ASSERT_LE(0, rig_attach(&self->rig, dup(self->prog)));
}

FIXTURE_TEARDOWN_PARENT(ringbuf)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Takes all that there are */
static unsigned int take_records(struct ringbuf *rb)
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

	EXPECT_EQ(0, lost(self->map, self->prog));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(i < 4, !result(&self->rig, 0));
	EXPECT_EQ(6, lost(self->map, self->prog));
	EXPECT_EQ(4, take_records(&self->rb));

	EXPECT_EQ(0, result(&self->rig, 0));
	EXPECT_EQ(1, take_records(&self->rb));
	EXPECT_EQ(6, lost(self->map, self->prog));
}

/* Under hits from all CPUs, what is read and what is lost are all that there were */
TEST_F(ringbuf, all_add_up)
{
	struct hitters hitters;
	__u64 read = 0, end = deadline();

	ASSERT_EQ(0, hitters_start(&hitters, &self->rig.area, 0));
	do {
		read += take_records(&self->rb);
		sched_yield();
	} while (now_ns() < end || !read || !fdinfo_number(self->map, "lost_records"));
	hitters_stop(&hitters);
	read += take_records(&self->rb);
	EXPECT_EQ(area_get(&self->rig.area, RUNS), read + lost(self->map, self->prog));
}

/* Programs that share a ring have counts of their own; a subprogram's are those of its program */
TEST_F(ringbuf, of_each_program)
{
	struct bpf_insn insns[] = {
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		/* the subprogram */
		AREA(BPF_REG_2, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, self->map),
		BPF_MOV64_IMM(BPF_REG_3, RECORD),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_output),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int prog = prog_load(insns, ARRAY_SIZE(insns));
	struct probe probe;

	ASSERT_LE(0, prog);
	hits(10);
	EXPECT_EQ(6, lost(self->map, self->prog));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	ASSERT_LE(0, attach(&probe, prog));
	hits(3);
	EXPECT_EQ(12, fdinfo_number(self->map, "lost_records"));
	EXPECT_EQ(9, fdinfo_number(self->prog, "lost_records"));
	EXPECT_EQ(3, fdinfo_number(prog, "lost_records"));
}

/* The helper for the ring of perf is another one for each context that programs have */

FIXTURE(context) {
	struct area area;
	int map;	/* without a ring */
};

FIXTURE_SETUP(context)
{
	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->area));
	self->map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(context)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Outputs one record in a hit */
static int one_record(union bpf_attr *attr, struct area *area, int map)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_7),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * RET),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

TEST_F(context, of_all_ways)
{
	__u64 all = 0, runs = 0;
	union bpf_attr attr;
	char event[16];
	size_t i;

	for (i = 0; i < WAYS; i++) {
		const struct way *way = &ways[i];
		int prog, fd;

		way_attr(way, &own_place, &attr);
		prog = one_record(&attr, &self->area, self->map);
		snprintf(event, sizeof(event), "outputs%zu", i);
		fd = way_attach_at(way, &own_place, event, prog);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		hit_own_place();
		close(fd);
		runs = area_get(&self->area, 0) - all;
		all += runs;
		EXPECT_LT(0, runs);
		EXPECT_EQ(runs, fdinfo_number(prog, "lost_records")) TH_LOG("%s", way->name);
		EXPECT_EQ(all, fdinfo_number(self->map, "lost_records"));
		EXPECT_EQ(-ENOENT, (__s64)area_get(&self->area, RET));
		close(prog);
	}
}

/* Runs a program of that type once, with a packet or a lookup that goes nowhere */
static int run_once(int prog, enum bpf_prog_type type)
{
	struct bpf_sk_lookup lookup = { .family = AF_INET };
	union bpf_attr attr = { 0 };
	char packet[64] = { 0 };

	if (type == BPF_PROG_TYPE_SK_LOOKUP) {
		attr.test.ctx_in = (unsigned long)&lookup;
		attr.test.ctx_size_in = sizeof(lookup);
	} else {
		attr.test.data_in = (unsigned long)packet;
		attr.test.data_size_in = sizeof(packet);
	}
	return test_run(&attr, prog);
}

TEST_F(context, of_the_network)
{
	static const struct {
		enum bpf_prog_type type;
		enum bpf_attach_type attach;
	} types[] = {
		{ BPF_PROG_TYPE_SOCKET_FILTER },
		{ BPF_PROG_TYPE_XDP },
		{ BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP },
	};
	const struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->area, 0),
		BPF_LD_MAP_FD(BPF_REG_2, self->map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	size_t i;
	int prog;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		load_attr(&attr, types[i].type, types[i].attach, 0);
		attr.insns = (unsigned long)insns;
		attr.insn_cnt = ARRAY_SIZE(insns);
		prog = prog_load_attr(&attr);
		ASSERT_LE(0, prog);
		area_set(&self->area, RET, 0);
		ASSERT_EQ(0, run_once(prog, types[i].type));
		EXPECT_EQ(-ENOENT, (__s64)area_get(&self->area, RET));
		EXPECT_EQ(1, fdinfo_number(prog, "lost_records"));
		EXPECT_EQ(i + 1, fdinfo_number(self->map, "lost_records"));
		close(prog);
	}
}

TEST_HARNESS_MAIN
