// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that an interrupt or NMI brings on top of others: which of them run, which have
 * to miss the hit, and that none finds the scratch of another half done
 */
#include "common.h"
#include "body.h"
#include "hitter.h"
#include "interrupt.h"
#include "overflow.h"
#include "types.h"
#include "ways.h"

/* Slots of what both programs count in: runs of the inner one */
enum { INNER };

/* Slots of what only the outer one writes to: the runs of the inner one on top of it */
enum { OUTER, ON_TOP };

#define OUTER_MS 2000
#define REFUSED_MS 30

/* What a program does with a map before anything else */
enum use {
	NOTHING,
	LOOK_UP,	/* it has the value at hand, and reads it */
	STORE,
	ADD_ATOMIC,
	HELPER_STORE,	/* a helper writes into the value */
	PRINT,
	UPDATE,
	TAIL_CALL,
};

#define MAX_USE_INSNS 16

/* R6 is the context. Return: how many instructions */
static size_t use_map(struct bpf_insn *to, enum use use, int map)
{
	const struct bpf_insn begin[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
	};
	const struct bpf_insn ops[][5] = {
		[LOOK_UP] = { BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0) },
		[STORE] = { BPF_ST_MEM(BPF_DW, BPF_REG_0, 0, 1) },
		[ADD_ATOMIC] = {
			BPF_MOV64_IMM(BPF_REG_1, 1),
			BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_0, BPF_REG_1, 0),
		},
		[HELPER_STORE] = {
			BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
			BPF_MOV64_IMM(BPF_REG_2, 8),
			BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
			BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		},
	};
	const struct bpf_insn print[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_LD_MAP_VALUE(BPF_REG_3, use == PRINT ? text_create("text") : -1, 0),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_MOV64_IMM(BPF_REG_5, 0),
		BPF_EMIT_CALL(BPF_FUNC_snprintf),
	};
	const struct bpf_insn *op = use == PRINT ? print : ops[use];
	const struct bpf_insn update[] = {
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
	};
	const struct bpf_insn tail_call[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
	};
	size_t n = 0, cnt;

	if (use == NOTHING)
		return 0;
	if (use == TAIL_CALL) {
		memcpy(to, tail_call, sizeof(tail_call));
		return ARRAY_SIZE(tail_call);
	}
	memcpy(to, begin, sizeof(begin));
	n = ARRAY_SIZE(begin);
	if (use == UPDATE) {
		memcpy(to + n, update, sizeof(update));
		return n + ARRAY_SIZE(update);
	}
	for (cnt = 0; cnt < ARRAY_SIZE(ops[0]) && op[cnt].code; cnt++)
		;
	if (use == PRINT)
		cnt = ARRAY_SIZE(print);
	to[n++] = BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem);
	to[n++] = BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, cnt);
	memcpy(to + n, op, cnt * sizeof(*to));
	return n + cnt;
}

/* Does something with the map, and waits for the inner program */
static int outer_prog(const struct way *way, struct area *own, struct area *common,
		      unsigned int ms, enum use use, int map)
{
	struct bpf_insn body[MAX_USE_INSNS + WAIT_INSNS];
	size_t n = use_map(body, use, map);
	union bpf_attr attr;

	n += wait_for_slot(body + n, common, INNER, ms, ON_TOP);
	way_attr(way, &own_place, &attr);
	return body_load(&attr, own, body, n);
}

/* On a clock's overflow, which is a hard interrupt */
static int inner_prog(struct area *common, enum use use, int map)
{
	const struct bpf_insn count[] = {
		AREA(BPF_REG_1, common, INNER),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn insns[1 + MAX_USE_INSNS + ARRAY_SIZE(count)] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
	};
	size_t n = 1 + use_map(insns + 1, use, map);

	memcpy(insns + n, count, sizeof(count));
	return overflow_load(insns, n + ARRAY_SIZE(count));
}

/* An array of one, a table, or whatever else */
static int a_map(enum bpf_map_type type)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = 4, .value_size = 8, .max_entries = 1,
		.map_name = BPF_NAME,
	};

	if (type == BPF_MAP_TYPE_PROG_ARRAY || type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		attr.value_size = 4;
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		attr.inner_map_fd = a_map(BPF_MAP_TYPE_ARRAY);
	return sys_bpf(BPF_MAP_CREATE, &attr);
}

/* What two programs have in common, and whether one runs on top of the other */

FIXTURE(share) {
	struct area own, common;
	int maps[2];
};

FIXTURE_VARIANT(share) {
	enum bpf_map_type type;
	enum use outer, inner;
	bool apart;			/* each has a map of its own */
	bool runs;
	const char *outer_scratch;
	const char *inner_scratch;
};

#define MAP "map"
#define UNKNOWN "unknown"

FIXTURE_VARIANT_ADD(share, nothing) {
	.type = BPF_MAP_TYPE_ARRAY,
	.runs = true,
};

FIXTURE_VARIANT_ADD(share, percpu_array) {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY, .outer = LOOK_UP, .inner = LOOK_UP,
	.outer_scratch = MAP, .inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, percpu_hash) {
	.type = BPF_MAP_TYPE_PERCPU_HASH, .outer = ADD_ATOMIC, .inner = UPDATE,
	.outer_scratch = MAP, .inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, percpu_lru) {
	.type = BPF_MAP_TYPE_LRU_PERCPU_HASH, .outer = STORE, .inner = LOOK_UP,
	.outer_scratch = MAP, .inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, percpu_arrays_apart) {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY, .outer = STORE, .inner = STORE, .apart = true,
	.runs = true,
	.outer_scratch = MAP, .inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_outer_writes) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = STORE, .inner = LOOK_UP,
	.outer_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_inner_writes) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = LOOK_UP, .inner = STORE,
	.inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_a_helper_writes) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = HELPER_STORE, .inner = LOOK_UP,
	.outer_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_is_printed_to) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = PRINT, .inner = LOOK_UP,
	.outer_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_is_updated) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = LOOK_UP, .inner = UPDATE,
	.inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, array_that_is_read) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = LOOK_UP, .inner = LOOK_UP,
	.runs = true,
};

FIXTURE_VARIANT_ADD(share, array_of_counters) {
	.type = BPF_MAP_TYPE_ARRAY, .outer = ADD_ATOMIC, .inner = ADD_ATOMIC,
	.runs = true,
};

FIXTURE_VARIANT_ADD(share, hash_of_counters) {
	.type = BPF_MAP_TYPE_HASH, .outer = ADD_ATOMIC, .inner = UPDATE,
	.runs = true,
};

FIXTURE_VARIANT_ADD(share, hash_that_inner_writes) {
	.type = BPF_MAP_TYPE_HASH, .outer = LOOK_UP, .inner = STORE,
	.inner_scratch = MAP,
};

FIXTURE_VARIANT_ADD(share, tail_call_of_outer) {
	.type = BPF_MAP_TYPE_PROG_ARRAY, .outer = TAIL_CALL,
	.outer_scratch = UNKNOWN,
};

FIXTURE_VARIANT_ADD(share, map_in_map_of_inner) {
	.type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .inner = LOOK_UP,
	.inner_scratch = UNKNOWN,
};

FIXTURE_SETUP(share)
{
	SKIP_WITHOUT(return, overflow_prepare() ?: multi_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	self->maps[0] = a_map(variant->type);
	self->maps[1] = variant->apart ? a_map(variant->type) : self->maps[0];
	ASSERT_LE(0, self->maps[0]);
}

FIXTURE_TEARDOWN_PARENT(share)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What fdinfo says */
static const char *scratch_text(const char *scratch, __u32 map)
{
	static char text[16];

	if (!scratch)
		return "none";
	if (strcmp(scratch, MAP))
		return scratch;
	snprintf(text, sizeof(text), "%u", map);
	return text;
}

TEST_F(share, on_top)
{
	const unsigned int ms = variant->runs ? OUTER_MS : REFUSED_MS;
	const struct way *way = way_named("kprobe_multi");
	int clock, outer, inner, link;

	outer = outer_prog(way, &self->own, &self->common, ms, variant->outer, self->maps[0]);
	inner = inner_prog(&self->common, variant->inner, self->maps[1]);
	ASSERT_LE(0, outer);
	ASSERT_LE(0, inner);
	EXPECT_STREQ(scratch_text(variant->outer_scratch, map_id(self->maps[0])),
		     fdinfo_text(outer, "scratch_maps"));
	EXPECT_STREQ(scratch_text(variant->inner_scratch, map_id(self->maps[1])),
		     fdinfo_text(inner, "scratch_maps"));

	clock = interrupt_often();
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, perf_set_bpf(clock, inner));
	link = way_attach(way, &own_place, NULL, outer);
	ASSERT_LE(0, link);
	if (variant->runs) {
		EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > 5, hit()));
		EXPECT_EQ(0, fdinfo_number(clock, "bpf_prog_missed"));
	} else {
		EXPECT_TRUE(wait_between(fdinfo_number(clock, "bpf_missed_other_prog") > 5, hit()));
		EXPECT_EQ(0, area_get(&self->own, ON_TOP));
	}
	EXPECT_EQ(fdinfo_number(clock, "bpf_missed_other_prog"),
		  fdinfo_number(clock, "bpf_prog_missed"));
	EXPECT_EQ(0, fdinfo_number(link, "bpf_prog_missed"));
	EXPECT_TRUE(spin_until(area_get(&self->common, INNER)));
}

/* A program of type EXT in the outer one, which is the one that has scratch */

FIXTURE(extended) {
	struct area own, common;
	int types, map;
};

FIXTURE_SETUP(extended)
{
	SKIP_WITHOUT(return, overflow_prepare() ?: multi_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	self->map = a_map(BPF_MAP_TYPE_ARRAY);
	ASSERT_LE(0, self->map);
	self->types = types_load();
	ASSERT_LE(0, self->types);
}

FIXTURE_TEARDOWN_PARENT(extended)
{
	EXPECT_STREQ("nothing", leftovers());
}

static void func_types(union bpf_attr *attr, int types, const struct bpf_func_info *funcs,
		       unsigned int cnt)
{
	attr->prog_btf_fd = types;
	attr->func_info_rec_size = sizeof(*funcs);
	attr->func_info = (unsigned long)funcs;
	attr->func_info_cnt = cnt;
}

/* The function that can be replaced comes last */
static int replaceable_prog(struct area *own, struct area *common, int types)
{
	const struct bpf_insn end[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_func_info funcs[] = { { 0, TYPE_CALLBACK }, { 0, TYPE_PROG } };
	struct bpf_insn body[1 + WAIT_INSNS + ARRAY_SIZE(end)];
	union bpf_attr attr;
	size_t n = 1;

	n += wait_for_slot(body + n, common, INNER, OUTER_MS, ON_TOP);
	memcpy(body + n, end, sizeof(end));
	n += ARRAY_SIZE(end);
	body[0] = BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, n - 3);
	funcs[1].insn_off = BODY_START + n - 2;
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0);
	func_types(&attr, types, funcs, ARRAY_SIZE(funcs));
	return body_load(&attr, own, body, n);
}

static int extension_prog(int target, int map, int types)
{
	const struct bpf_insn end[] = { BPF_MOV64_IMM(BPF_REG_0, 0), BPF_EXIT_INSN() };
	const struct bpf_func_info func = { 0, TYPE_PROG };
	struct bpf_insn insns[MAX_USE_INSNS + ARRAY_SIZE(end)];
	size_t n = use_map(insns, STORE, map);
	union bpf_attr attr;

	memcpy(insns + n, end, sizeof(end));
	load_attr(&attr, BPF_PROG_TYPE_EXT, 0, TYPE_PROG);
	attr.attach_prog_fd = target;
	func_types(&attr, types, &func, 1);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = n + ARRAY_SIZE(end);
	return prog_load_attr(&attr);
}

TEST_F(extended, while_it_is)
{
	int clock, outer, inner, extension, link;
	union bpf_attr attr = { };
	__u64 seen;

	outer = replaceable_prog(&self->own, &self->common, self->types);
	ASSERT_LE(0, outer);
	inner = inner_prog(&self->common, LOOK_UP, self->map);
	ASSERT_LE(0, inner);
	extension = extension_prog(outer, self->map, self->types);
	ASSERT_LE(0, extension);
	clock = interrupt_often();
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, perf_set_bpf(clock, inner));
	ASSERT_LE(0, multi_link_one(FUNC, BPF_TRACE_KPROBE_MULTI, 0, outer));

	EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > 5, hit()));
	EXPECT_EQ(0, fdinfo_number(clock, "bpf_prog_missed"));

	attr.link_create.prog_fd = extension;
	link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, link);
	EXPECT_STREQ("unknown", fdinfo_text(outer, "scratch_maps"));
	seen = area_get(&self->own, ON_TOP);
	EXPECT_TRUE(wait_between(fdinfo_number(clock, "bpf_missed_other_prog") > 5, hit()));
	EXPECT_EQ(seen, area_get(&self->own, ON_TOP));

	close(link);
	EXPECT_TRUE(wait_until(!strcmp(fdinfo_text(outer, "scratch_maps"), "none")));
	seen = area_get(&self->own, ON_TOP);
	EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > seen, hit()));
}

/* Each way to attach on top of each, in softirqs, interrupts and NMIs */

FIXTURE(context) {
	struct area own, common;
	struct probe inner[WAYS];
	struct causes causes;
};

FIXTURE_VARIANT(context) {
	struct place place;
	unsigned int causes;
};

FIXTURE_VARIANT_ADD(context, softirq) {
	.place = SOFTIRQ_PLACE,
	.causes = TIMERS,
};

FIXTURE_VARIANT_ADD(context, hardirq) {
	.place = HARDIRQ_PLACE,
};

FIXTURE_VARIANT_ADD(context, nmi) {
	.place = NMI_PLACE,
	.causes = NMIS,
};

FIXTURE_SETUP(context)
{
	const char *missing = ways_prepare();
	unsigned int i;

	if (!missing && variant->causes & NMIS)
		missing = nmi_prepare();
	SKIP_WITHOUT(return, missing);
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	ASSERT_EQ(0, instance_create(INSTANCE));
	for (i = 0; i < WAYS; i++)
		ASSERT_EQ(0, way_create(&ways[i], &variant->place, &self->inner[i]));
	ASSERT_EQ(0, console_mute());
	ASSERT_EQ(0, causes_start(&self->causes, variant->causes));
	ASSERT_EQ(0, pin(0));
}

FIXTURE_TEARDOWN_PARENT(context)
{
	console_unmute();
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Counts hits on CPU 0, which is where the outer program runs */
static int tick_prog(const struct way *way, const struct place *place, struct area *common)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 4),
		AREA(BPF_REG_1, common, INNER),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, place, insns, ARRAY_SIZE(insns));
}

TEST_F(context, each_way_on_each)
{
	int i, j, outer, prog, fd, tries;
	__u64 before, missed, nested;
	char event[16];

	for (i = 0; i < WAYS; i++) {
		const struct way *way = &ways[i];

		if (!way_exists(way) || !way_takes_guard(way))
			continue;
		snprintf(event, sizeof(event), "outer%d", i);
		outer = way_attach_at(way, &own_place, event,
				      outer_prog(way, &self->own, &self->common, OUTER_MS,
						 NOTHING, -1));
		ASSERT_LE(0, outer) TH_LOG("%s", way->name);
		for (j = 0; j < WAYS; j++) {
			const struct way *on_top = &ways[j];

			if (!way_exists(on_top) || !way_takes_guard(on_top) || !pair_is_tried(i, j))
				continue;
			/* What comes at the beginning or the end of a run is nested. */
			for (nested = 1, tries = 0; nested && tries < 5; tries++) {
				prog = tick_prog(on_top, &variant->place, &self->common);
				fd = way_attach(on_top, &variant->place, &self->inner[j], prog);
				ASSERT_LE(0, fd) TH_LOG("%s", on_top->name);
				before = area_get(&self->own, ON_TOP);
				EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > before,
							 hit_own_place()))
					TH_LOG("%s on top of %s", on_top->name, way->name);
				missed = misses(prog);
				nested = fdinfo_number(fd, "bpf_missed_nested");
				EXPECT_LE(missed, nested)
					TH_LOG("%s on top of %s", on_top->name, way->name);
				close(fd);
				close(prog);
			}
			EXPECT_EQ(0, nested) TH_LOG("%s on top of %s", on_top->name, way->name);
		}
		close(outer);
	}
	EXPECT_STREQ("nothing", causes_stop(&self->causes));
}

/* All four contexts at a time */

#define LEVELS 4

/*
 * Slots: programs unfinished on CPU 0; per level, runs, and those on top of all below it; runs
 * of the next level that programs have seen while they waited
 */
enum { DEPTH, RUN, COMPLETE = RUN + LEVELS, NEXT_SEEN = COMPLETE + LEVELS };

FIXTURE(levels) {
	struct area area;
	struct causes causes;
	int map;
};

FIXTURE_VARIANT(levels) {
	enum use ends;		/* what the first and the last one do with a map */
	unsigned int reached;
};

FIXTURE_VARIANT_ADD(levels, four) {
	.reached = 4,
};

FIXTURE_VARIANT_ADD(levels, four_of_counters) {
	.ends = ADD_ATOMIC,
	.reached = 4,
};

FIXTURE_VARIANT_ADD(levels, three) {
	.ends = STORE,
	.reached = 3,
};

FIXTURE_SETUP(levels)
{
	SKIP_WITHOUT(return, multi_prepare() ?: nmi_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->map = a_map(BPF_MAP_TYPE_ARRAY);
	ASSERT_LE(0, self->map);
	ASSERT_EQ(0, console_mute());
	ASSERT_EQ(0, causes_start(&self->causes, TIMERS | NMIS));
	ASSERT_EQ(0, pin(0));
}

FIXTURE_TEARDOWN_PARENT(levels)
{
	console_unmute();
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * The program of a level from 0 on.  On top of all that are below, it waits for the next
 * one.  What it counts by atomic instructions is no scratch.
 */
static int level_prog(struct area *area, unsigned int level, unsigned int ms, enum use use,
		      int map)
{
	const bool waits = level < LEVELS - 1;
	const struct bpf_insn begin[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		AREA(BPF_REG_7, area, 0),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * (RUN + level)),
		BPF_MOV64_IMM(BPF_REG_9, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_7, BPF_REG_9, 8 * DEPTH),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_9, level, waits ? 2 + WAIT_INSNS : 2),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * (COMPLETE + level)),
	};
	const struct bpf_insn end[] = {
		BPF_MOV64_IMM(BPF_REG_1, -1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * DEPTH),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn insns[MAX_USE_INSNS + ARRAY_SIZE(begin) + WAIT_INSNS + ARRAY_SIZE(end)];
	size_t n = use_map(insns, use, map);

	memcpy(insns + n, begin, sizeof(begin));
	n += ARRAY_SIZE(begin);
	if (waits)
		n += wait_for_slot(insns + n, area, RUN + level + 1, ms, NEXT_SEEN);
	memcpy(insns + n, end, sizeof(end));
	return prog_load_as(insns, n + ARRAY_SIZE(end), BPF_TRACE_KPROBE_MULTI, 0);
}

TEST_F(levels, on_top)
{
	const struct place places[LEVELS] = {
		{ FUNC }, SOFTIRQ_PLACE, HARDIRQ_PLACE, NMI_PLACE,
	};
	const bool all = variant->reached == LEVELS;
	const unsigned int top = COMPLETE + variant->reached - 1;
	int links[LEVELS], i;

	for (i = LEVELS - 1; i >= 0; i--) {
		bool end = !i || i == LEVELS - 1;
		int prog = level_prog(&self->area, i, all ? OUTER_MS : REFUSED_MS,
				      end ? variant->ends : NOTHING, self->map);

		links[i] = multi_link_one(places[i].func, BPF_TRACE_KPROBE_MULTI, 0, prog);
		ASSERT_LE(0, links[i]);
	}
	EXPECT_TRUE(wait_between(area_get(&self->area, top) > 3 &&
				 (all || fdinfo_number(links[LEVELS - 1],
						       "bpf_missed_other_prog") > 10), hit()));
	EXPECT_STREQ("nothing", causes_stop(&self->causes));
	EXPECT_EQ(all, !!area_get(&self->area, COMPLETE + LEVELS - 1));
	for (i = 0; i < variant->reached; i++)
		EXPECT_EQ(0, fdinfo_number(links[i], "bpf_prog_missed")) TH_LOG("level %d", i);
}

/* Probes in the body of a function: breakpoints, or jumps */

FIXTURE(body) {
	struct area own, common;
	struct optimize optimize;
};

FIXTURE_VARIANT(body) {
	bool below, on_top;		/* which of the two is in the body */
	unsigned int flags;		/* of the one on top */
	bool jump;
};

FIXTURE_VARIANT_ADD(body, breakpoint_on_ftrace) {
	.on_top = true,
};

FIXTURE_VARIANT_ADD(body, jump_on_ftrace) {
	.on_top = true, .jump = true,
};

FIXTURE_VARIANT_ADD(body, ftrace_on_jump) {
	.below = true, .jump = true,
};

FIXTURE_VARIANT_ADD(body, jump_on_jump) {
	.below = true, .on_top = true, .jump = true,
};

FIXTURE_VARIANT_ADD(body, return_on_ftrace) {
	.flags = PROBE_RETURN,
};

FIXTURE_SETUP(body)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	if (!optimize_save(&self->optimize) && variant->jump)
		SKIP(return, "jumps: CONFIG_PREEMPTION=n");
	if (self->optimize.saved)
		ASSERT_EQ(0, write_file(OPTIMIZE, 0, "%d", variant->jump));
}

FIXTURE_TEARDOWN_PARENT(body)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", leftovers());
}

/* The optimizer waits for all tasks to sleep. Until it is done, below is a breakpoint. */
static void sleep_and_hit_body(void)
{
	sleep_ms(1);
	hit_body();
}

/* A breakpoint without a program is in the function as well: it changes nothing for these */
TEST_F(body, runs)
{
	const struct place tick = HARDIRQ_PLACE;
	const struct way *way = way_named("kprobe event");
	struct probe below, on_top, beside;
	int prog, fd;

	ASSERT_EQ(0, site_create(&below, "below", BODY_FUNC, variant->below, 0));
	ASSERT_EQ(0, site_create(&on_top, "on_top", tick.func, variant->on_top, variant->flags));
	ASSERT_EQ(0, probe_create_body(&beside, "beside", "sched_tick", 0));
	ASSERT_LE(0, probe_open(&beside));
	prog = tick_prog(way, &tick, &self->common);
	fd = attach(&on_top, prog);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, attach(&below, outer_prog(way, &self->own, &self->common, OUTER_MS,
					       NOTHING, -1)));
	if (variant->jump) {
		EXPECT_TRUE(!variant->below || wait_optimized(BODY_FUNC));
		EXPECT_TRUE(!variant->on_top || wait_optimized(tick.func));
	}
	EXPECT_TRUE(wait_between(area_get(&self->own, ON_TOP) > 5, sleep_and_hit_body()));
	EXPECT_EQ(0, misses(prog));
	EXPECT_EQ(0, fdinfo_number(fd, "bpf_prog_missed"));
}

/* Two phases of a write, and what is on top of it in between */

FIXTURE(torn) {
	struct area own, common;
	int scratch;
};

FIXTURE_SETUP(torn)
{
	SKIP_WITHOUT(return, overflow_prepare() ?: multi_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->own));
	ASSERT_EQ(0, area_create(&self->common));
	self->scratch = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 16, 1, 0);
	ASSERT_LE(0, self->scratch);
}

FIXTURE_TEARDOWN_PARENT(torn)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* TORN: how often one found something else than it has written */
enum { TORN = ON_TOP };

#define PHASES_INSNS 16

/*
 * Writes @value to both words of the scratch, the second one after @turns. R7 is an area.
 * Return: how many instructions
 */
static size_t write_both(struct bpf_insn *to, int scratch, int value, int turns)
{
	const struct bpf_insn phases[] = {
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
		BPF_LD_MAP_FD(BPF_REG_1, scratch),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 9),
		BPF_ST_MEM(BPF_DW, BPF_REG_0, 0, value),
		BPF_MOV64_IMM(BPF_REG_6, turns),
		BPF_ALU64_IMM(BPF_SUB, BPF_REG_6, 1),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_6, 0, -2),
		BPF_ST_MEM(BPF_DW, BPF_REG_0, 8, value),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, value, 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * TORN),
	};

	memcpy(to, phases, sizeof(phases));
	return ARRAY_SIZE(phases);
}

TEST_F(torn, not)
{
	const struct way *way = way_named("kprobe_multi");
	const struct bpf_insn end[] = {
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * INNER),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn outer[PHASES_INSNS], inner[PHASES_INSNS + 2 + ARRAY_SIZE(end)] = {
		AREA(BPF_REG_7, &self->common, 0),
	};
	union bpf_attr attr;
	int clock, link;
	size_t n;

	way_attr(way, &own_place, &attr);
	link = way_attach(way, &own_place, NULL,
			  body_load(&attr, &self->own, outer,
				    write_both(outer, self->scratch, 1, 1000)));
	ASSERT_LE(0, link);
	n = 2 + write_both(inner + 2, self->scratch, 2, 1);
	memcpy(inner + n, end, sizeof(end));
	n += ARRAY_SIZE(end);
	clock = interrupt_often();
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, perf_set_bpf(clock, overflow_load(inner, n)));

	EXPECT_TRUE(wait_between(fdinfo_number(clock, "bpf_prog_missed") > rounds(20), hits(100)));
	EXPECT_TRUE(spin_until(area_get(&self->common, INNER)));
	EXPECT_EQ(0, area_get(&self->own, TORN));
	EXPECT_EQ(0, area_get(&self->common, TORN));
}

/* One program in both places, which is told by where it is what to do */

FIXTURE(same) {
	struct area own, common;
	int map;
};

FIXTURE_VARIANT(same) {
	enum bpf_map_type type;
	bool runs;
};

FIXTURE_VARIANT_ADD(same, counters) {
	.type = BPF_MAP_TYPE_ARRAY,
	.runs = true,
};

FIXTURE_VARIANT_ADD(same, scratch) {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
};

FIXTURE_SETUP(same)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->common));
	self->map = a_map(variant->type);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(same)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Slots of @common: inner runs on CPU 0, and those that the outer ones have seen */
enum { SEEN_INSIDE = INNER + 1 };

TEST_F(same, prog)
{
	const struct place tick = HARDIRQ_PLACE;
	const int ms = variant->runs ? OUTER_MS : REFUSED_MS;
	const struct way *way = way_named("kprobe_multi");
	struct bpf_insn insns[MAX_USE_INSNS + WAIT_INSNS + 16] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
	};
	const struct bpf_insn inner[] = {
		AREA(BPF_REG_7, &self->common, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 1, 6),
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * INNER),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const struct bpf_insn end[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct multi m = {
		.attach = BPF_TRACE_KPROBE_MULTI, .cnt = 2,
		.syms = { FUNC, tick.func }, .cookies = { 1, 2 },
	};
	size_t n = 1 + use_map(insns + 1, ADD_ATOMIC, self->map);
	int prog, link;

	memcpy(insns + n, inner, sizeof(inner));
	n += ARRAY_SIZE(inner);
	n += wait_for_slot(insns + n, &self->common, INNER, ms, SEEN_INSIDE);
	memcpy(insns + n, end, sizeof(end));
	prog = prog_load_as(insns, n + ARRAY_SIZE(end), way->attach, 0);
	ASSERT_LE(0, prog);
	link = multi_link(&m, prog);
	ASSERT_LE(0, link);
	if (variant->runs) {
		EXPECT_TRUE(wait_between(area_get(&self->common, SEEN_INSIDE) > 3, hit()));
		EXPECT_EQ(0, fdinfo_number(link, "bpf_prog_missed"));
	} else {
		EXPECT_TRUE(wait_between(fdinfo_number(link, "bpf_missed_same_prog") > 3, hit()));
		EXPECT_EQ(0, area_get(&self->common, SEEN_INSIDE));
	}
	EXPECT_EQ(fdinfo_number(link, "bpf_missed_same_prog"),
		  fdinfo_number(link, "bpf_prog_missed"));
}

TEST_HARNESS_MAIN
