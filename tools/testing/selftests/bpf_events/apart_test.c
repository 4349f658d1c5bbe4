// SPDX-License-Identifier: GPL-2.0
/*
 * Scratch of programs, whichever way they are attached: what an interrupt or NMI brings on top
 * of a program does not find its values half done, nor change them, and runs if its are others
 */
#include "common.h"
#include "body.h"
#include "interrupt.h"
#include "ways.h"

/* Slots of what both programs count in: runs of the inner one, and those on all CPUs */
enum { INNER, INNER_TORN, INNER_ALL };

/* Slots of what only the outer one writes to, besides its runs */
enum { TORN = 1, ON_TOP };

#define APART_MS 2000
#define SHARED_MS 30

FIXTURE(scratch) {
	struct area own, common;
	struct probe inner[WAYS];
	struct causes causes;
	int maps[2];
};

FIXTURE_VARIANT(scratch) {
	struct place place;
	unsigned int causes;
	bool apart;		/* each has a map of its own */
	bool timed;
};

FIXTURE_VARIANT_ADD(scratch, shared_with_hardirq) {
	.place = HARDIRQ_PLACE,
};

FIXTURE_VARIANT_ADD(scratch, shared_with_hardirq_and_timed) {
	.place = HARDIRQ_PLACE,
	.timed = true,
};

FIXTURE_VARIANT_ADD(scratch, shared_with_nmi) {
	.place = NMI_PLACE,
	.causes = NMIS,
};

FIXTURE_VARIANT_ADD(scratch, apart_from_hardirq) {
	.place = HARDIRQ_PLACE,
	.apart = true,
};

FIXTURE_VARIANT_ADD(scratch, apart_from_nmi) {
	.place = NMI_PLACE,
	.causes = NMIS,
	.apart = true,
};

/* One for each mechanism */
static bool way_counts(const struct way *way)
{
	return way_exists(way) && !way->flags && way->kind != BY_PERF_LINK;
}

FIXTURE_SETUP(scratch)
{
	const char *missing = ways_prepare();
	unsigned int i;

	if (!missing && variant->causes & NMIS)
		missing = nmi_prepare();
	SKIP_WITHOUT(return, missing);
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	ASSERT_EQ(0, instance_create(INSTANCE));
	for (i = 0; i < 2; i++)
		self->maps[i] = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 1, 0);
	ASSERT_LE(0, self->maps[1]);
	for (i = 0; i < WAYS; i++)
		ASSERT_EQ(0, way_create(&ways[i], &variant->place, &self->inner[i]));
	if (variant->timed)
		ASSERT_EQ(0, write_file(STATS, 0, "1"));
	ASSERT_EQ(0, console_mute());
	ASSERT_EQ(0, causes_start(&self->causes, variant->causes));
	ASSERT_EQ(0, pin(0));
}

FIXTURE_TEARDOWN_PARENT(scratch)
{
	console_unmute();
	write_file(STATS, 0, "0");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Writes 1 to the first word of its scratch, waits so many milliseconds for the inner program
 * to run, and writes 1 to the second word. TORN: the first one is not what it was.
 */
static int outer_prog(union bpf_attr *attr, struct area *own, struct area *common, int scratch,
		      unsigned int ms)
{
	const struct bpf_insn begin[] = {
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
		BPF_LD_MAP_FD(BPF_REG_1, scratch),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		BPF_MOV64_REG(BPF_REG_9, BPF_REG_0),
		BPF_ST_MEM(BPF_DW, BPF_REG_9, 0, 1),
	};
	const struct bpf_insn end[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_9, 8, 1),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_9, 0),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 1, 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * TORN),
	};
	struct bpf_insn body[ARRAY_SIZE(begin) + WAIT_INSNS + ARRAY_SIZE(end)];
	size_t n = ARRAY_SIZE(begin);

	memcpy(body, begin, sizeof(begin));
	n += wait_for_slot(body + n, common, INNER, ms, ON_TOP);
	memcpy(body + n, end, sizeof(end));
	return body_load(attr, own, body, n + ARRAY_SIZE(end));
}

/* On CPU 0, writes 2 to both words, of which the first one must not be 1 without the second */
static int inner_prog(const struct way *way, const struct place *place, struct area *common,
		      int scratch)
{
	const struct bpf_insn insns[] = {
		AREA(BPF_REG_6, common, INNER),
		BPF_MOV64_IMM(BPF_REG_3, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_3, 8 * INNER_ALL),
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 16),
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
		BPF_LD_MAP_FD(BPF_REG_1, scratch),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 9),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_0, 8),
		BPF_ST_MEM(BPF_DW, BPF_REG_0, 0, 2),
		BPF_ST_MEM(BPF_DW, BPF_REG_0, 8, 2),
		BPF_MOV64_IMM(BPF_REG_3, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_3, 8 * INNER),
		BPF_JMP_REG(BPF_JEQ, BPF_REG_1, BPF_REG_2, 2),
		BPF_MOV64_IMM(BPF_REG_3, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_3, 8 * INNER_TORN),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, place, insns, ARRAY_SIZE(insns));
}

static void hit_all(void)
{
	hit_own_place();
	call_user(0, 1);
}

/* Return: the descriptor that stands for the attachment of an outer program */
static int outer_attach(const struct way *way, bool user, const char *event,
			struct area *own, struct area *common, int scratch, unsigned int ms)
{
	union bpf_attr attr;
	int prog;

	way_attr(way, &own_place, &attr);
	prog = outer_prog(&attr, own, common, scratch, ms);
	if (prog < 0)
		return prog;
	if (user)
		return uprobe_way_attach(way, user_func1, prog);
	return way_attach_at(way, &own_place, event, prog);
}

/* How often a program was not run as another one was below, which trampolines do not tell */
static __u64 refused(const struct way *way, int fd, int prog)
{
	return way_has_trampoline(way) ? misses(prog) :
					 fdinfo_number(fd, "bpf_missed_other_prog");
}

TEST_F(scratch, each_way_on_each)
{
	const unsigned int ms = variant->apart ? APART_MS : SHARED_MS;
	int i, j, outer, prog, fd;
	char event[16];

	for (i = 0; i < WAYS + UPROBE_WAYS; i++) {
		const bool user = i >= WAYS;
		const struct way *way = user ? &uprobe_ways[i - WAYS] : &ways[i];

		if (!way_counts(way))
			continue;
		snprintf(event, sizeof(event), "outer%d", i);
		outer = outer_attach(way, user, event, &self->own, &self->common,
				     self->maps[0], ms);
		ASSERT_LE(0, outer) TH_LOG("%s", way->name);
		for (j = 0; j < WAYS; j++) {
			const struct way *on_top = &ways[j];
			__u64 seen = area_get(&self->own, ON_TOP);

			if (!way_counts(on_top) || !pair_is_tried(i, j))
				continue;
			prog = inner_prog(on_top, &variant->place, &self->common,
					  self->maps[variant->apart]);
			fd = way_attach(on_top, &variant->place, &self->inner[j], prog);
			ASSERT_LE(0, fd) TH_LOG("%s", on_top->name);
			if (variant->apart) {
				ASSERT_TRUE(wait_between(area_get(&self->own, ON_TOP) > seen,
							 hit_all()))
					TH_LOG("%s on top of %s", on_top->name, way->name);
				EXPECT_EQ(0, refused(on_top, fd, prog))
					TH_LOG("%s on top of %s", on_top->name, way->name);
			} else {
				ASSERT_TRUE(wait_between(refused(on_top, fd, prog), hit_all()))
					TH_LOG("%s on top of %s", on_top->name, way->name);
				EXPECT_EQ(seen, area_get(&self->own, ON_TOP))
					TH_LOG("%s on top of %s", on_top->name, way->name);
			}
			close(fd);
			close(prog);
		}
		close(outer);
	}
	EXPECT_STREQ("nothing", causes_stop(&self->causes));
	EXPECT_NE(0, area_get(&self->common, INNER));
	EXPECT_EQ(0, area_get(&self->own, TORN));
	EXPECT_EQ(0, area_get(&self->common, INNER_TORN));
}

/* In the same context: what the helpers of a program hit, which the ways in ways[] differ in */

FIXTURE(helpers) {
	struct area outer, inner;
	int hashes[2], maps[2];
};

FIXTURE_VARIANT(helpers) {
	bool apart;
};

FIXTURE_VARIANT_ADD(helpers, shared) {
};

FIXTURE_VARIANT_ADD(helpers, apart) {
	.apart = true,
};

FIXTURE_SETUP(helpers)
{
	int i;

	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->inner));
	ASSERT_EQ(0, area_create(&self->outer));
	for (i = 0; i < 2; i++) {
		self->hashes[i] = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
		self->maps[i] = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 1, 0);
		ASSERT_LE(0, self->maps[i]);
	}
}

FIXTURE_TEARDOWN_PARENT(helpers)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Where the inner program runs, it hits itself once, which it never sees. */
TEST_F(helpers, each_way_on_each)
{
	int i, j, outer, inner, outer_fd, inner_fd;
	char event[16];

	for (i = 0; i < WAYS; i++) {
		const struct way *way = &ways[i];

		if (!way_counts(way))
			continue;
		snprintf(event, sizeof(event), "outer%d", i);
		outer = helpers_prog(way, &own_place, &self->outer, self->hashes[0],
				     self->maps[0]);
		outer_fd = way_attach_at(way, &own_place, event, outer);
		ASSERT_LE(0, outer_fd) TH_LOG("%s", way->name);
		for (j = 0; j < WAYS; j++) {
			const struct way *on_top = &ways[j];

			if (!way_counts(on_top) || way_takes_guard(on_top))
				continue;
			inner = helpers_prog(on_top, &in_helpers, &self->inner, self->hashes[1],
					     self->maps[variant->apart]);
			inner_fd = way_attach_at(on_top, &in_helpers, "", inner);
			ASSERT_LE(0, inner_fd) TH_LOG("%s", on_top->name);
			area_set(&self->outer, 0, 0);
			area_set(&self->inner, 0, 0);
			hit_own_place();
			EXPECT_EQ(way_runs(way), area_get(&self->outer, 0))
				TH_LOG("%s on top of %s", on_top->name, way->name);
			EXPECT_EQ(variant->apart ? way_runs(way) : 0, area_get(&self->inner, 0))
				TH_LOG("%s on top of %s", on_top->name, way->name);
			EXPECT_EQ(way_runs(way), misses(inner))
				TH_LOG("%s on top of %s", on_top->name, way->name);
			if (!variant->apart)
				EXPECT_EQ(way_runs(way), refused(on_top, inner_fd, inner))
					TH_LOG("%s on top of %s", on_top->name, way->name);
			EXPECT_EQ(0, misses(outer))
				TH_LOG("%s on top of %s", on_top->name, way->name);
			close(inner_fd);
			close(inner);
		}
		close(outer_fd);
		close(outer);
	}
}

/* A tail call gets to programs, and so to values, that the one which makes it does not tell */

FIXTURE(unknown) {
	struct area own, common;
	int progs, values;
};

FIXTURE_VARIANT(unknown) {
	bool values;		/* the inner program has some */
	bool timed;
};

FIXTURE_VARIANT_ADD(unknown, below_values) {
	.values = true,
};

FIXTURE_VARIANT_ADD(unknown, below_none) {
};

FIXTURE_VARIANT_ADD(unknown, below_none_and_timed) {
	.timed = true,
};

FIXTURE_SETUP(unknown)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	self->progs = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	ASSERT_LE(0, self->progs);
	self->values = map_create(variant->values ? BPF_MAP_TYPE_PERCPU_ARRAY :
						    BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0);
	ASSERT_LE(0, self->values);
	if (variant->timed)
		ASSERT_EQ(0, write_file(STATS, 0, "1"));
}

FIXTURE_TEARDOWN_PARENT(unknown)
{
	write_file(STATS, 0, "0");
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(unknown, tail_call)
{
	const struct place tick = HARDIRQ_PLACE;
	struct bpf_insn body[4 + 1 + WAIT_INSNS] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, self->progs),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
	};
	const struct way *way = ways;
	int outer, inner, below, on_top;
	union bpf_attr attr;
	char map[16] = "none";
	__u64 hits, runs;
	long cpus;
	size_t n = 5;

	while (way->kind != BY_RAW_TP)
		way++;
	n += wait_for_slot(body + n, &self->common, INNER,
			   variant->values ? SHARED_MS : APART_MS, ON_TOP);
	way_attr(way, &own_place, &attr);
	outer = body_load(&attr, &self->own, body, n);
	inner = inner_prog(way, &tick, &self->common, self->values);
	EXPECT_STREQ("unknown", fdinfo_text(outer, "scratch_maps"));
	if (variant->values)
		snprintf(map, sizeof(map), "%u", map_id(self->values));
	EXPECT_STREQ(map, fdinfo_text(inner, "scratch_maps"));

	below = way_attach(way, &own_place, NULL, outer);
	ASSERT_LE(0, below);
	on_top = way_attach(way, &tick, NULL, inner);
	ASSERT_LE(0, on_top);
	if (variant->values) {
		EXPECT_TRUE(wait_between(fdinfo_number(on_top, "bpf_missed_other_prog") > 5,
					 hit_own_place()));
		EXPECT_EQ(0, area_get(&self->own, ON_TOP));
		EXPECT_EQ(fdinfo_number(on_top, "bpf_missed_other_prog"),
			  fdinfo_number(on_top, "bpf_prog_missed"));
	} else {
		EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > 5, hit_own_place()));
		EXPECT_EQ(0, fdinfo_number(on_top, "bpf_prog_missed"));
	}
	EXPECT_EQ(0, fdinfo_number(below, "bpf_prog_missed"));
	/* One may be under way on each CPU */
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	runs = area_get(&self->common, INNER_ALL);
	hits = fdinfo_number(on_top, "bpf_prog_hits");
	EXPECT_LE(runs, hits + cpus);
	EXPECT_LE(hits, area_get(&self->common, INNER_ALL) + cpus);
	EXPECT_TRUE(spin_until(area_get(&self->common, INNER)));
}

TEST_HARNESS_MAIN
