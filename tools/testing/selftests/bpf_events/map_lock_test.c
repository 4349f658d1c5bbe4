// SPDX-License-Identifier: GPL-2.0
/*
 * A program on a kprobe in the middle of a map operation, with the map's lock held,
 * that works on the same map: it is told so, and does not wait for itself.  The
 * operation is that of a program which BPF_PROG_TEST_RUN runs: that keeps nothing out.
 */
#include <pthread.h>

#include "common.h"
#include "link.h"
#include "map_op.h"
#include "raw_tp.h"

#define HITS 512

FIXTURE(lock) {
	struct area upper;
	struct area lower;
	int map;
	char func[64];		/* as the compiler has named it */
};

FIXTURE_VARIANT(lock) {
	enum bpf_map_type type;
	enum bpf_map_type upper;	/* of another map, which the kprobe works on */
	__u32 flags;
	const char *func;	/* which is called with the lock held; NULL: see unlocks */
	bool refuses;		/* there is no other lock to take */
	bool deletes;
};

FIXTURE_VARIANT_ADD(lock, lpm_trie) {
	.type = BPF_MAP_TYPE_LPM_TRIE,
	.func = "longest_prefix_match", .refuses = true, .deletes = true,
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

FIXTURE_VARIANT_ADD(lock, lru_hash_and_task_storage) {
	.type = BPF_MAP_TYPE_LRU_HASH, .upper = BPF_MAP_TYPE_TASK_STORAGE,
	.func = "htab_lru_map_delete_node", .refuses = true,
};

/* Counted before it is taken */
FIXTURE_VARIANT_ADD(lock, task_storage_and_cgroup_storage) {
	.type = BPF_MAP_TYPE_TASK_STORAGE, .upper = BPF_MAP_TYPE_CGRP_STORAGE,
	.func = "_raw_spin_lock", .refuses = true,
};

FIXTURE_VARIANT_ADD(lock, unlock_lru_hash) {
	.type = BPF_MAP_TYPE_LRU_HASH, .refuses = true, .deletes = true,
};

FIXTURE_VARIANT_ADD(lock, unlock_hash) { .type = BPF_MAP_TYPE_HASH };

FIXTURE_VARIANT_ADD(lock, unlock_large_hash) {
	.type = BPF_MAP_TYPE_HASH, .flags = BPF_F_NO_PREALLOC,
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

/* Attaches @prog to those of the @n functions that there are; negative is an error */
static int attach_to(const char * const *funcs, int n, int prog)
{
	struct probe probe;
	char event[32];
	int i, err = 0;

	for (i = 0; i < n && err >= 0; i++) {
		if (!ksym(funcs[i]))
			continue;
		snprintf(event, sizeof(event), "event%d_%d", getpid(), i);
		err = probe_create_at(&probe, event, funcs[i], 0, 0) ?: attach(&probe, prog);
	}
	return err;
}

FIXTURE_SETUP(lock)
{
	SKIP_WITHOUT(return, prepare());
	if (variant->func) {
		snprintf(self->func, sizeof(self->func), "%s%s", variant->func,
			 ksym(variant->func) ? "" : ".isra.0");
		if (!ksym(self->func))
			SKIP(return, "the compiler has inlined %s()", variant->func);
	}
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
	const char *func = self->func;
	const char * const *funcs = *func ? &func : unlocks;
	struct area *upper = &self->upper, *lower = &self->lower;
	union bpf_attr attr;
	int i, prog, map = self->map;

	if (variant->upper)
		map = op_map(variant->upper, 0);
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	prog = op_prog(&attr, upper, lower, variant->upper ?: variant->type, map);
	ASSERT_LE(0, prog);
	ASSERT_LE(0, attach_to(funcs, *func ? 1 : ARRAY_SIZE(unlocks), prog));
	raw_tp_attr(&attr);
	prog = op_prog(&attr, lower, NULL, variant->type, self->map);
	ASSERT_LE(0, prog);
	memset(&attr, 0, sizeof(attr));

	for (i = 0; i < HITS; i++)
		ASSERT_EQ(0, test_run(&attr, prog));
	EXPECT_EQ(i, area_get(lower, OPS));
	EXPECT_EQ(0, area_get(lower, REFUSED));
	EXPECT_EQ(0, area_get(lower, DELETE_WAITS));
	if (ksym(funcs[0]))
		EXPECT_LT(0, area_get(upper, OPS));
	/* It has up to four unlocks; another key can share the bucket */
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
	const __u64 keys[] = { 1, 2 };
	union bpf_attr attr;
	struct probe probe;
	__u64 value;
	int i, map;

	SKIP_WITHOUT(return, prepare());
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

/* Makes the storage of the task, or of its cgroup, and says whether there is one */
static int storage_prog(union bpf_attr *attr, struct area *area, int map, bool of_cgroup)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_8, of_cgroup),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_8, 0, 2),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_2, btf_member("task_struct", "cgroups")),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_2, btf_member("css_set", "dfl_cgrp")),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_IMM(BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		BPF_EMIT_CALL(of_cgroup ? BPF_FUNC_cgrp_storage_get : BPF_FUNC_task_storage_get),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 1),
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * RESULT, 1),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

#define STORAGE_FUNC "bpf_local_storage_update"

/* An operation on the storage of a task has no lock yet: that of a cgroup need not wait for any */
TEST(storages_of_tasks_and_cgroups_are_not_each_others)
{
	static struct area upper, lower;
	union bpf_attr attr;
	struct probe probe;
	int task, cgroup;

	SKIP_WITHOUT(return, prepare());
	task = op_map(BPF_MAP_TYPE_TASK_STORAGE, 0);
	ASSERT_LE(0, task);
	cgroup = op_map(BPF_MAP_TYPE_CGRP_STORAGE, 0);
	if (cgroup == -EINVAL)
		SKIP(return, "CONFIG_CGROUPS");
	ASSERT_LE(0, cgroup);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&upper));
	ASSERT_EQ(0, area_create(&lower));
	ASSERT_EQ(0, probe_create_at(&probe, "event", STORAGE_FUNC, 0, 0));
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	ASSERT_LE(0, attach(&probe, storage_prog(&attr, &upper, cgroup, true)));
	raw_tp_attr(&attr);
	ASSERT_LE(0, raw_tp_open(storage_prog(&attr, &lower, task, false), "task_rename", 0));
	hit_rename();
	EXPECT_EQ(1, area_get(&lower, RESULT));
	EXPECT_LE(1, area_get(&upper, OPS));
	EXPECT_EQ(1, area_get(&upper, RESULT));
}

/* Two processes, each with programs that work on two maps: first one, on top the other */
static int hit_across(const int maps[2], pthread_barrier_t *both, int cpu)
{
	struct area upper, lower;
	union bpf_attr attr;
	int i, prog, hits = rounds(4 * HITS), link = -1;

	if (!pin(cpu) && !area_create(&upper) && !area_create(&lower)) {
		load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
		prog = op_prog(&attr, &upper, &lower, BPF_MAP_TYPE_QUEUE, maps[!cpu]);
		link = attach_to(unlocks, ARRAY_SIZE(unlocks), prog);
	}
	if (link >= 0) {
		raw_tp_attr(&attr);
		prog = op_prog(&attr, &lower, NULL, BPF_MAP_TYPE_QUEUE, maps[cpu]);
		link = raw_tp_open(prog, "task_rename", 0);
	}
	pthread_barrier_wait(both);
	if (link < 0)
		return -1;
	for (i = 0; i < hits; i++)
		hit_rename();
	if (ksym(unlocks[0]) && !area_get(&upper, OPS))
		return -1;
	return area_get(&lower, REFUSED) || area_get(&lower, OPS) != i;
}

TEST(two_cpus_do_not_wait_for_each_other)
{
	pthread_barrierattr_t shared;
	pthread_barrier_t *both;
	int maps[2], i;
	pid_t child;

	SKIP_WITHOUT(return, prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU");
	both = mmap(NULL, sizeof(*both), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	ASSERT_NE(MAP_FAILED, both);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	ASSERT_EQ(0, pthread_barrier_init(both, &shared, 2));
	for (i = 0; i < ARRAY_SIZE(maps); i++) {
		maps[i] = op_map(BPF_MAP_TYPE_QUEUE, 0);
		ASSERT_LE(0, maps[i]);
	}
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(hit_across(maps, both, 1));
	EXPECT_EQ(0, hit_across(maps, both, 0));
	EXPECT_EQ(0, child_status(child));
}

/* How many must fit into a map, more than 64 for each CPU, that it is counted by CPU */
static __u64 elems_counted_by_cpu(void)
{
	char list[256] = "", *last;

	read_file("/sys/devices/system/cpu/possible", list, sizeof(list));
	last = strrchr(list, '-');
	return 128 * (last ? atoi(last + 1) + 1 : 1);
}

static int fill(int map, __u64 first, __u64 n)
{
	int err = 0;

	for (; n && !err; first++, n--)
		err = map_update(map, &first, &first);
	return err;
}

/* The last one is more than there is room for */
static int overfill(int map, __u64 elems)
{
	return fill(map, 0, elems) ?: fill(map, elems, 1);
}

/* What one CPU adds and another takes away must not leave room, or none */
TEST(elements_of_a_large_map_are_counted)
{
	const __u64 elems = elems_counted_by_cpu();
	__u64 key, empty, full;
	int map, cpu;

	SKIP_WITHOUT(return, prepare());
	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, elems, BPF_F_NO_PREALLOC);
	ASSERT_LE(0, map);
	empty = fdinfo_number(map, "memlock");
	for (cpu = 0; cpu < 4 && cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		ASSERT_EQ(0, pin(cpu));
		EXPECT_EQ(-E2BIG, overfill(map, elems)) TH_LOG("CPU %d", cpu);
		full = fdinfo_number(map, "memlock");
		/* Of each element at least the key and the value */
		EXPECT_LE(empty + 16 * elems, full);
		key = 5;
		EXPECT_EQ(0, map_update(map, &key, &key));
		EXPECT_EQ(0, map_delete(map, &key));
		EXPECT_EQ(0, fill(map, elems + 1, 1));
		EXPECT_EQ(-E2BIG, map_update(map, &key, &key));
		key = elems + 1;
		EXPECT_EQ(0, map_delete(map, &key));
		ASSERT_EQ(0, pin(0));
		for (key = 0; key < elems; key++)
			EXPECT_EQ(key == 5 ? -ENOENT : 0, map_delete(map, &key));
		EXPECT_EQ(empty, fdinfo_number(map, "memlock"));
	}
}

/* Who reads how large a map is counts its elements; a program comes in between */
TEST(count_is_not_waited_for)
{
	const __u64 elems = elems_counted_by_cpu();
	static struct area area;
	union bpf_attr attr;
	__u64 hits;
	int map;

	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&area));
	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, elems, BPF_F_NO_PREALLOC);
	ASSERT_LE(0, map);
	/* So that each update counts all */
	ASSERT_EQ(-E2BIG, overfill(map, elems));
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
	ASSERT_LE(0, attach_to(unlocks, ARRAY_SIZE(unlocks),
			       replace_prog(&attr, &area, map, 1)));
	hits = area_get(&area, OPS);
	EXPECT_NE(~0ULL, fdinfo_number(map, "memlock"));
	EXPECT_LT(hits, area_get(&area, OPS));
}

#define VALUE 8192	/* bpf_mem_alloc keeps one or two nodes with it at hand, no more */

struct trie_key {
	__u32 bits;
	__u8 data[4];
};

TEST(trie_of_large_values)
{
	const struct trie_key keys[] = {
		{ 32, { 0, 0, 0, 1 } }, { 32, { 0, 0, 0, 2 } }, { 32, { 128, 0, 0, 3 } },
		{ 0 }, { 16, { 0, 0 } }, { 30, { 0, 0, 0, 0 } },
	};
	static __u8 value[VALUE], found[VALUE];
	int map, round, i, j;

	SKIP_WITHOUT(return, prepare());
	map = map_create(BPF_MAP_TYPE_LPM_TRIE, sizeof(*keys), VALUE, 64, BPF_F_NO_PREALLOC);
	ASSERT_LE(0, map);
	for (round = 0; round < 64; round++) {
		/* In another order each time: nodes become intermediate ones, and back */
		for (i = 0; i < ARRAY_SIZE(keys); i++) {
			j = (i + round) % ARRAY_SIZE(keys);
			memset(value, round + j, sizeof(value));
			ASSERT_EQ(0, map_update(map, &keys[j], value))
				TH_LOG("round %d, key %d", round, j);
		}
		for (i = 0; i < ARRAY_SIZE(keys); i++) {
			j = (i * 5 + round / 2) % ARRAY_SIZE(keys);
			memset(value, round + j, sizeof(value));
			ASSERT_EQ(0, map_lookup(map, &keys[j], found));
			EXPECT_EQ(0, memcmp(value, found, sizeof(value)))
				TH_LOG("round %d, key %d", round, j);
			ASSERT_EQ(0, map_delete(map, &keys[j]));
		}
	}
}

TEST_HARNESS_MAIN
