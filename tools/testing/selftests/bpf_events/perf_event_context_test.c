// SPDX-License-Identifier: GPL-2.0
/* What a BPF_PROG_TYPE_PERF_EVENT program is given, and the helpers about that */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "overflow.h"

FIXTURE(context) {
	struct area area;
	__u32 type;
};

FIXTURE_VARIANT(context) {
	__u32 type;
};

FIXTURE_VARIANT_ADD(context, faults) {
	.type = PERF_TYPE_SOFTWARE,
};

FIXTURE_VARIANT_ADD(context, breakpoint) {
	.type = PERF_TYPE_BREAKPOINT,
};

static const char *missing_event(__u32 type)
{
	const char *missing = overflow_prepare();
	int fd;

	if (missing)
		return missing;
	fd = overflow_open(type);
	if (type == PERF_TYPE_BREAKPOINT && fd == -ENOENT)
		return "CONFIG_HAVE_HW_BREAKPOINT, and a CPU with them";
	close(fd);
	return NULL;
}

FIXTURE_SETUP(context)
{
	SKIP_WITHOUT(return, missing_event(variant->type));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(context)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* The value that the program has after its only instruction and one overflow */
static __u64 value_of(struct area *area, __u32 type, struct bpf_insn insn)
{
	struct perf_event_attr attr;
	int fd, prog = overflow_prog_of(area, &insn, 1);

	overflow_attr(&attr, type);
	area_set(area, SEEN, ~0ULL);
	fd = perf_open(&attr, 0, -1);
	if (perf_set_bpf(fd, prog))
		return -EINVAL;
	overflow(area, type, 1);
	close(fd);
	close(prog);
	return area_get(area, SEEN);
}

static __u64 load(struct area *area, __u32 type, int size, int off)
{
	struct bpf_insn insn = BPF_LDX_MEM(size, BPF_REG_0, BPF_REG_1, off);

	return value_of(area, type, insn);
}

TEST_F(context, registers)
{
	__u64 ip = load(&self->area, variant->type, BPF_DW, CTX_IP);

	EXPECT_TRUE(in_touch(ip));
#ifdef __x86_64__
	EXPECT_EQ(3, load(&self->area, variant->type, BPF_DW, CTX_REG(cs)) & 3);
#endif
}

TEST_F(context, numbers)
{
	const bool little = *(__u8 *)&(__u16){ 1 };
	__u64 addr = load(&self->area, variant->type, BPF_DW, CTX_ADDR);
	int i;

	EXPECT_LE(area_get(&self->area, LOW), addr);
	EXPECT_GT(area_get(&self->area, HIGH), addr);
	EXPECT_EQ(1, load(&self->area, variant->type, BPF_DW, CTX_PERIOD));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i == (little ? 0 : 3),
			  load(&self->area, variant->type, BPF_H, CTX_PERIOD + 2 * i));
	}
	/* The address of the pages is another one each time */
	for (i = 0; i < 8; i++) {
		addr = load(&self->area, variant->type, BPF_B, CTX_ADDR + i);
		if (variant->type == PERF_TYPE_BREAKPOINT)
			EXPECT_EQ(((__u8 *)&(__u64){ (unsigned long)&watched })[i], addr);
	}
}

/* A clock that goes off is at no address */
TEST_F(context, no_address)
{
	struct perf_event_attr attr;
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, CTX_ADDR),
		AREA(BPF_REG_1, &self->area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 8 * SEEN),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 8 * HITS),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd;

	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 1000000;
	area_set(&self->area, SEEN, ~0ULL);
	area_set(&self->area, HITS, 0);
	fd = perf_open(&attr, 0, -1);
	ASSERT_EQ(0, perf_set_bpf(fd, overflow_load(insns, ARRAY_SIZE(insns))));
	EXPECT_TRUE(spin_until(area_get(&self->area, HITS)));
	EXPECT_EQ(0, area_get(&self->area, SEEN));
}

TEST_F(context, of_the_overflow_before)
{
	struct bpf_insn insn = BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, CTX_PERIOD);
	struct perf_event_attr attr;
	int fd;

	overflow_attr(&attr, variant->type);
	attr.sample_period = 3;
	fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, overflow_prog_of(&self->area, &insn, 1)));
	overflow(&self->area, variant->type, 6);
	EXPECT_EQ(3, area_get(&self->area, SEEN));
}

/* Loads and stores that the verifier accepts, or does not */

static int load_access(__u8 code, int off)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_RAW_INSN(code, BPF_CLASS(code) == BPF_LDX ? BPF_REG_0 : BPF_REG_1,
			     BPF_CLASS(code) == BPF_LDX ? BPF_REG_1 : BPF_REG_0, off, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST(accesses)
{
	static const int codes[] = { BPF_B, BPF_H, BPF_W, BPF_DW };
	int i, off, size;
	bool ok;

	SKIP_WITHOUT(return, overflow_prepare());
	for (i = 0; i < ARRAY_SIZE(codes); i++) {
		size = 1 << i;
		for (off = -16; off < (int)CTX_SIZE + 16; off++) {
			ok = off >= 0 && off + size <= (int)CTX_SIZE && off % size == 0 &&
			     (size == 8 || off >= (int)CTX_PERIOD);
			EXPECT_EQ(ok ? 0 : -EACCES,
				  load_access(BPF_LDX | BPF_MEM | codes[i], off)) {
				TH_LOG("%d bytes at %d", size, off);
			}
		}
		EXPECT_EQ(-EACCES, load_access(BPF_STX | BPF_MEM | codes[i], 0));
		EXPECT_EQ(-EACCES, load_access(BPF_STX | BPF_MEM | codes[i], CTX_PERIOD));
		EXPECT_EQ(-EACCES, load_access(BPF_STX | BPF_MEM | codes[i], CTX_ADDR));
	}
}

/* Helpers */

static int read_value_prog(struct area *area, int size)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, size),
		BPF_EMIT_CALL(BPF_FUNC_perf_prog_read_value),
	};

	return overflow_prog_of(area, body, ARRAY_SIZE(body));
}

TEST_F(context, read_value)
{
	__u64 *value = &self->area.slot[MORE];
	int fd = overflow_open(variant->type);

	ASSERT_EQ(0, perf_set_bpf(fd, read_value_prog(&self->area, 24)));
	overflow(&self->area, variant->type, 5);
	EXPECT_EQ(5, area_get(&self->area, HITS));
	EXPECT_EQ(0, area_get(&self->area, SEEN));
	EXPECT_LE(5, value[0]);
	EXPECT_LT(0, value[1]);
	EXPECT_LE(value[2], value[1]);
}

TEST_F(context, read_value_of_another_size)
{
	int i, fd;

	for (i = 8; i <= 32; i += 8) {
		memset(&self->area.slot[MORE], 0x55, 64);
		fd = overflow_open(variant->type);
		ASSERT_EQ(0, perf_set_bpf(fd, read_value_prog(&self->area, i)));
		overflow(&self->area, variant->type, 1);
		EXPECT_EQ(i == 24 ? 0 : -EINVAL, (int)area_get(&self->area, SEEN));
		EXPECT_EQ(i == 24, !!area_get(&self->area, MORE));
		EXPECT_EQ(0x5555555555555555, area_get(&self->area, MORE + i / 8));
		close(fd);
	}
}

TEST_F(context, read_value_of_family)
{
	struct perf_event_attr attr;
	int fd;

	memset(&self->area.slot[MORE], 0x55, 64);
	overflow_attr(&attr, variant->type);
	attr.inherit = 1;
	fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, read_value_prog(&self->area, 24)));
	overflow(&self->area, variant->type, 1);
	EXPECT_EQ(-EOPNOTSUPP, (int)area_get(&self->area, SEEN));
	EXPECT_EQ(0, area_get(&self->area, MORE));
	EXPECT_EQ(0, area_get(&self->area, MORE + 2));
}

static __s64 branch_records(struct area *area, __u32 type, int size, int flags)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, size),
		BPF_MOV64_IMM(BPF_REG_4, flags),
		BPF_EMIT_CALL(BPF_FUNC_read_branch_records),
	};
	int fd = overflow_open(type);

	if (perf_set_bpf(fd, overflow_prog_of(area, body, ARRAY_SIZE(body))))
		return -EBUSY;
	overflow(area, type, 1);
	close(fd);
	return area_get(area, SEEN);
}

TEST_F(context, no_branch_records)
{
	EXPECT_EQ(-ENOENT, branch_records(&self->area, variant->type, 24, 0));
	EXPECT_EQ(-ENOENT, branch_records(&self->area, variant->type, 25, 0));
	EXPECT_EQ(-ENOENT, branch_records(&self->area, variant->type, 0,
					  BPF_F_GET_BRANCH_RECORDS_SIZE));
	EXPECT_EQ(-EINVAL, branch_records(&self->area, variant->type, 24, 2));
	EXPECT_EQ(-EINVAL, branch_records(&self->area, variant->type, 24, 3));
}

TEST_F(context, output)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1, .wakeup_events = 1,
	};
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 4, 0);
	const struct bpf_insn body[] = {
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LD_IMM64(BPF_REG_3, BPF_F_CURRENT_CPU),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_5, 24),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
	};
	__u32 key = 0, len = 0;
	struct ring ring;
	char raw[64] = "";
	int fd, out;

	ASSERT_EQ(0, pin(0));
	out = perf_open(&attr, -1, 0);
	ASSERT_LE(0, out);
	ASSERT_EQ(0, ring_map(&ring, out));
	ASSERT_EQ(0, map_update(map, &key, &out));
	fd = overflow_open(variant->type);
	ASSERT_EQ(0, perf_set_bpf(fd, overflow_prog_of(&self->area, body, ARRAY_SIZE(body))));
	memcpy(&self->area.slot[MORE], "twenty-three characters", 24);
	overflow(&self->area, variant->type, 1);
	EXPECT_EQ(0, area_get(&self->area, SEEN));
	EXPECT_EQ(PERF_RECORD_SAMPLE, ring_read(&ring, raw, sizeof(raw), &len));
	EXPECT_LE(24, len);
	EXPECT_STREQ("twenty-three characters", raw);
}

/*
 * Programs must not run on top of each other: one on a kprobe reads what a
 * breakpoint is on
 */
TEST(turned_away)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_LD_IMM64(BPF_REG_3, (unsigned long)&watched),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};
	struct perf_event_attr attr;
	struct area area;
	struct probe probe;
	struct ring ring;
	int fd, prog;
	__u64 before, after;

	SKIP_WITHOUT(return, missing_event(PERF_TYPE_BREAKPOINT));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&area));
	ASSERT_EQ(0, probe_create(&probe, 0));
	ASSERT_LE(0, attach(&probe, prog_load(insns, ARRAY_SIZE(insns))));
	overflow_attr(&attr, PERF_TYPE_BREAKPOINT);
	attr.bp_type = HW_BREAKPOINT_RW;
	fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_map(&ring, fd));
	prog = overflow_prog(&area);
	ASSERT_EQ(0, perf_set_bpf(fd, prog));
	overflow(&area, PERF_TYPE_BREAKPOINT, 0);
	area_set(&area, VERDICT, 1);
	ring_samples(&ring);

	ASSERT_EQ(8, read(fd, &before, 8));
	hits(3);
	ASSERT_EQ(8, read(fd, &after, 8));
	EXPECT_EQ(before + 3, after);
	EXPECT_EQ(0, area_get(&area, HITS));
	EXPECT_EQ(0, ring_samples(&ring));
	EXPECT_EQ(3, misses(prog));
	touch((char *)&watched);
	EXPECT_EQ(1, area_get(&area, HITS));
	EXPECT_EQ(1, ring_samples(&ring));
	EXPECT_EQ(3, fdinfo_number(fd, "bpf_prog_missed"));
}

TEST_HARNESS_MAIN
