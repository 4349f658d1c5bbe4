// SPDX-License-Identifier: GPL-2.0
/*
 * A program on a kprobe in the middle of a map operation, with the map's lock held,
 * that works on the same map: it is told so, and does not wait for itself.  The
 * operation is that of a program on a tracepoint, which does not keep kprobes out.
 */
#include "common.h"
#include "map_op.h"
#include "raw_tp.h"

/* Slots of a program: after its runs, what helpers returned */
enum { UPDATE = OPS + 1, DELETE };

#define ENTRIES 64

FIXTURE(lock) {
	struct area upper;
	struct area lower;
	int map;
};

FIXTURE_VARIANT(lock) {
	enum bpf_map_type type;
	__u32 flags;
	const char *func;	/* which is called with the lock held */
	int hits;
};

FIXTURE_VARIANT_ADD(lock, lpm_trie) {
	.type = BPF_MAP_TYPE_LPM_TRIE, .flags = BPF_F_NO_PREALLOC,
	.func = "bpf_map_kmalloc_node", .hits = ENTRIES,
};

FIXTURE_VARIANT_ADD(lock, lru_hash) {
	.type = BPF_MAP_TYPE_LRU_HASH, .func = "htab_lru_map_delete_node",
	.hits = 8 * ENTRIES,
};

FIXTURE_VARIANT_ADD(lock, lru_hash_of_each_cpu) {
	.type = BPF_MAP_TYPE_LRU_HASH, .flags = BPF_F_NO_COMMON_LRU,
	.func = "htab_lru_map_delete_node",
	.hits = 8 * ENTRIES,
};

FIXTURE_VARIANT_ADD(lock, lru_percpu_hash) {
	.type = BPF_MAP_TYPE_LRU_PERCPU_HASH, .func = "htab_lru_map_delete_node",
	.hits = 8 * ENTRIES,
};

FIXTURE_SETUP(lock)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->upper));
	ASSERT_EQ(0, area_create(&self->lower));
	self->map = map_create(variant->type, 8, 8, ENTRIES, variant->flags);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(lock)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Adds one element after the other: a prefix of 32 bits, the number of the operation */
static int lower_prog(struct area *area, int map)
{
	struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, 8 * OPS),
		BPF_STX_MEM(BPF_W, BPF_REG_10, BPF_REG_0, -4),
		BPF_ST_MEM(BPF_W, BPF_REG_10, -8, 32),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * UPDATE),
	};
	union bpf_attr attr;

	raw_tp_attr(&attr);
	return body_load(&attr, area, body, ARRAY_SIZE(body));
}

/* Wants to add one, too, and to remove it again */
static int upper_prog(struct area *area, int map)
{
	struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, -1),
		BPF_ST_MEM(BPF_W, BPF_REG_10, -8, 32),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * UPDATE),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_EMIT_CALL(BPF_FUNC_map_delete_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * DELETE),
	};
	union bpf_attr attr;

	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	return body_load(&attr, area, body, ARRAY_SIZE(body));
}

TEST_F(lock, is_not_waited_for)
{
	struct area *upper = &self->upper, *lower = &self->lower;
	struct probe probe;
	int i;

	ASSERT_EQ(0, probe_create_at(&probe, "event", variant->func, 0, 0));
	ASSERT_LE(0, attach(&probe, upper_prog(upper, self->map)));
	ASSERT_LE(0, raw_tp_open(lower_prog(lower, self->map), "task_rename", 0));
	for (i = 0; i < variant->hits; i++)
		hit_rename();
	EXPECT_EQ(i, area_get(lower, OPS));
	EXPECT_EQ(0, area_get(lower, UPDATE));
	EXPECT_LT(0, area_get(upper, OPS));
	EXPECT_EQ(-EBUSY, (long)area_get(upper, UPDATE));
	EXPECT_EQ(-EBUSY, (long)area_get(upper, DELETE));
}

/*
 * What takes and gives back a lock has probes, too.  The functions are one or the other
 * by the options of the kernel, which can also have inlined the one in question.
 */
static const char * const unlocks[] = { "_raw_spin_unlock_irqrestore", "_raw_spin_unlock" };

FIXTURE(unlock) {
	struct area upper;
	struct area lower;
	int map;
};

FIXTURE_VARIANT(unlock) {
	enum bpf_map_type type;
	bool refuses;	/* there is no other lock to take */
};

FIXTURE_VARIANT_ADD(unlock, queue) { .type = BPF_MAP_TYPE_QUEUE, .refuses = true };
FIXTURE_VARIANT_ADD(unlock, stack) { .type = BPF_MAP_TYPE_STACK, .refuses = true };
FIXTURE_VARIANT_ADD(unlock, ring) { .type = BPF_MAP_TYPE_RINGBUF, .refuses = true };
FIXTURE_VARIANT_ADD(unlock, stack_trace) { .type = BPF_MAP_TYPE_STACK_TRACE };

FIXTURE_SETUP(unlock)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->upper));
	ASSERT_EQ(0, area_create(&self->lower));
	self->map = op_map(variant->type);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(unlock)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(unlock, is_not_waited_for)
{
	struct area *upper = &self->upper, *lower = &self->lower;
	struct probe probes[ARRAY_SIZE(unlocks)];
	union bpf_attr attr;
	char event[16];
	int i, prog;

	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	prog = op_prog(&attr, upper, lower, variant->type, self->map);
	ASSERT_LE(0, prog);
	for (i = 0; i < ARRAY_SIZE(unlocks); i++) {
		if (!ksym(unlocks[i]))
			continue;
		snprintf(event, sizeof(event), "event%d", i);
		ASSERT_EQ(0, probe_create_at(&probes[i], event, unlocks[i], 0, 0));
		ASSERT_LE(0, attach(&probes[i], prog));
	}
	raw_tp_attr(&attr);
	prog = op_prog(&attr, lower, NULL, variant->type, self->map);
	ASSERT_LE(0, raw_tp_open(prog, "task_rename", 0));

	for (i = 0; i < ENTRIES; i++)
		hit_rename();
	EXPECT_EQ(i, area_get(lower, OPS));
	EXPECT_EQ(0, area_get(lower, REFUSED));
	if (ksym("_raw_spin_unlock") && variant->refuses)
		EXPECT_LE(i, area_get(upper, REFUSED));
}

TEST_HARNESS_MAIN
