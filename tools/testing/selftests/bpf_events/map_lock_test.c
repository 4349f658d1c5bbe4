// SPDX-License-Identifier: GPL-2.0
/*
 * A program on a kprobe in the middle of a map operation, with the map's lock held,
 * that works on the same map: it is told so, and does not wait for itself.  The
 * operation is that of a program on a tracepoint, which does not keep kprobes out.
 */
#include "common.h"
#include "map_op.h"
#include "raw_tp.h"

#define HITS 512

FIXTURE(lock) {
	struct area upper;
	struct area lower;
	int map;
};

FIXTURE_VARIANT(lock) {
	enum bpf_map_type type;
	__u32 flags;
	const char *func;	/* which is called with the lock held; NULL: see unlocks */
	bool refuses;		/* there is no other lock to take */
	bool deletes;
};

FIXTURE_VARIANT_ADD(lock, lpm_trie) {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.func = "bpf_map_kmalloc_node", .refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, lru_hash) {
	.type = BPF_MAP_TYPE_LRU_HASH,
	.func = "htab_lru_map_delete_node", .refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, lru_hash_of_each_cpu) {
	.type = BPF_MAP_TYPE_LRU_HASH, .flags = BPF_F_NO_COMMON_LRU,
	.func = "htab_lru_map_delete_node", .refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, lru_percpu_hash) {
	.type = BPF_MAP_TYPE_LRU_PERCPU_HASH,
	.func = "htab_lru_map_delete_node", .refuses = true, .deletes = true,
};

/* No unlock_lpm_trie: a trie takes locks of timers as well, by kfree_rcu(). */

FIXTURE_VARIANT_ADD(lock, unlock_lru_hash) {
	.type = BPF_MAP_TYPE_LRU_HASH, .refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, unlock_hash) { .type = BPF_MAP_TYPE_HASH };

FIXTURE_VARIANT_ADD(lock, unlock_large_hash) {
	.type = BPF_MAP_TYPE_HASH, .flags = BPF_F_NO_PREALLOC,
	.refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, unlock_queue) { .type = BPF_MAP_TYPE_QUEUE, .refuses = true };
FIXTURE_VARIANT_ADD(lock, unlock_stack) { .type = BPF_MAP_TYPE_STACK, .refuses = true };
FIXTURE_VARIANT_ADD(lock, unlock_ring) { .type = BPF_MAP_TYPE_RINGBUF, .refuses = true };
FIXTURE_VARIANT_ADD(lock, unlock_stack_trace) { .type = BPF_MAP_TYPE_STACK_TRACE };

/*
 * What takes and gives back a lock has probes, too.  The functions are one or the other
 * by the options of the kernel, which can also have inlined the one in question.
 */
static const char * const unlocks[] = { "_raw_spin_unlock", "_raw_spin_unlock_irqrestore" };

FIXTURE_SETUP(lock)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (variant->func && !ksym(variant->func))
		SKIP(return, "the compiler has inlined %s()", variant->func);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->upper));
	ASSERT_EQ(0, area_create(&self->lower));
	self->map = op_map(variant->type, variant->flags);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(lock)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(lock, is_not_waited_for)
{
	const char * const *funcs = variant->func ? &variant->func : unlocks;
	struct area *upper = &self->upper, *lower = &self->lower;
	struct probe probes[ARRAY_SIZE(unlocks)];
	union bpf_attr attr;
	char event[16];
	int i, prog;

	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	prog = op_prog(&attr, upper, lower, variant->type, self->map);
	ASSERT_LE(0, prog);
	for (i = 0; i < (variant->func ? 1 : ARRAY_SIZE(unlocks)); i++) {
		if (!ksym(funcs[i]))
			continue;
		snprintf(event, sizeof(event), "event%d", i);
		ASSERT_EQ(0, probe_create_at(&probes[i], event, funcs[i], 0, 0));
		ASSERT_LE(0, attach(&probes[i], prog));
	}
	raw_tp_attr(&attr);
	prog = op_prog(&attr, lower, NULL, variant->type, self->map);
	ASSERT_LE(0, raw_tp_open(prog, "task_rename", 0));

	for (i = 0; i < HITS; i++)
		hit_rename();
	EXPECT_EQ(i, area_get(lower, OPS));
	EXPECT_EQ(0, area_get(lower, REFUSED));
	EXPECT_EQ(0, area_get(lower, DELETE_WAITS));
	if (!variant->refuses)
		EXPECT_GT(i, area_get(upper, WAITS));
	if (variant->refuses && ksym(funcs[0]))
		EXPECT_LT(0, area_get(upper, WAITS));
	if (variant->deletes && ksym(funcs[0]))
		EXPECT_LT(0, area_get(upper, DELETE_WAITS));
}

enum { RESULT = OPS + 1 };

/* Replaces the element of a key */
static int replace_prog(union bpf_attr *attr, struct area *area, int map, int key)
{
	struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, key),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, BPF_EXIST),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * RESULT),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

#define ALLOC "alloc_htab_elem"

/*
 * A preallocated hash map has a spare element on each CPU, which a replacement exchanges
 * for the one that it replaces.  That one is still in the map when the program is hit.
 */
TEST(element_is_not_taken_for_a_spare_one_while_it_is_replaced)
{
	static struct area upper, lower;
	const char *missing = prepare();
	const __u64 keys[] = { 1, 2 };
	union bpf_attr attr;
	struct probe probe;
	__u64 value;
	int i, map;

	if (missing)
		SKIP(return, "%s", missing);
	if (!ksym(ALLOC))
		SKIP(return, "the compiler has inlined " ALLOC "()");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&upper));
	ASSERT_EQ(0, area_create(&lower));
	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 2048, BPF_F_ZERO_SEED);
	ASSERT_LE(0, map);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		ASSERT_EQ(0, map_update(map, &keys[i], &keys[i]));

	ASSERT_EQ(0, probe_create_at(&probe, "event", ALLOC, 0, PROBE_RETURN));
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	ASSERT_LE(0, attach(&probe, replace_prog(&attr, &upper, map, keys[1])));
	raw_tp_attr(&attr);
	ASSERT_LE(0, raw_tp_open(replace_prog(&attr, &lower, map, keys[0]), "task_rename", 0));
	hit_rename();
	EXPECT_EQ(0, area_get(&lower, RESULT));
	EXPECT_EQ(1, area_get(&upper, OPS));
	EXPECT_EQ(-EBUSY, (long)area_get(&upper, RESULT));
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		EXPECT_EQ(0, map_lookup(map, &keys[i], &value)) TH_LOG("key %llu", keys[i]);
}

TEST_HARNESS_MAIN
