// SPDX-License-Identifier: GPL-2.0
/* The helpers of maps, called by a program on an event */
#include "common.h"

FIXTURE(helpers) {
	struct rig rig;
};

FIXTURE_SETUP(helpers)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, rig_create(&self->rig, 0));
}

FIXTURE_TEARDOWN_PARENT(helpers)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Slots of the area: a key and a value for the helper, flags of an update, what
 * the helper returned, and what a lookup found
 */
enum { KEY, VALUE, FLAGS, RET, FOUND, BACK, OTHER };

static int update_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, 8 * VALUE),
		BPF_LDX_MEM(BPF_DW, BPF_REG_4, BPF_REG_6, 8 * FLAGS),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

static int delete_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_map_delete_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* Looks the key up, keeps the value it finds and adds one to it in the map */
static int lookup_prog(struct area *area, int map)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_MOV64_IMM(BPF_REG_1, -1),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_1),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_0, BPF_REG_2, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 8 * FOUND),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* Runs the program once: attaches it, hits the probe and detaches it */
static int run(struct rig *rig, int prog)
{
	int fd = attach(&rig->probe, prog);

	if (fd < 0)
		return fd;
	hit();
	close(fd);
	return 0;
}

static void set(struct rig *rig, __u64 key, __u64 value, __u64 flags)
{
	area_set(&rig->area, KEY, key);
	area_set(&rig->area, VALUE, value);
	area_set(&rig->area, FLAGS, flags);
	area_set(&rig->area, RET, 12345);
	area_set(&rig->area, FOUND, 12345);
}

TEST_F(helpers, hash)
{
	int map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 2, 0);
	int update = update_prog(&self->rig.area, map);
	int lookup = lookup_prog(&self->rig.area, map);
	int delete = delete_prog(&self->rig.area, map);
	__u64 key = 7, val = 0;

	set(&self->rig, 7, 100, 0);
	ASSERT_EQ(0, run(&self->rig, lookup));
	EXPECT_EQ(-1, (__s64)area_get(&self->rig.area, FOUND));

	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	EXPECT_EQ(0, map_lookup(map, &key, &val));
	EXPECT_EQ(100, val);

	ASSERT_EQ(0, run(&self->rig, lookup));
	EXPECT_EQ(100, area_get(&self->rig.area, FOUND));
	EXPECT_EQ(0, map_lookup(map, &key, &val));
	EXPECT_EQ(101, val);

	set(&self->rig, 7, 200, BPF_NOEXIST);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(-EEXIST, (__s64)area_get(&self->rig.area, RET));
	set(&self->rig, 8, 200, BPF_EXIST);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(-ENOENT, (__s64)area_get(&self->rig.area, RET));
	set(&self->rig, 8, 200, 1 << 10);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(-EINVAL, (__s64)area_get(&self->rig.area, RET));

	/* Two entries fit */
	set(&self->rig, 8, 200, 0);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	set(&self->rig, 9, 300, 0);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(-E2BIG, (__s64)area_get(&self->rig.area, RET));
	EXPECT_EQ(0, map_lookup(map, &key, &val));
	EXPECT_EQ(101, val);

	set(&self->rig, 7, 0, 0);
	ASSERT_EQ(0, run(&self->rig, delete));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	EXPECT_EQ(-ENOENT, map_lookup(map, &key, &val));
	ASSERT_EQ(0, run(&self->rig, delete));
	EXPECT_EQ(-ENOENT, (__s64)area_get(&self->rig.area, RET));
}

TEST_F(helpers, array)
{
	int map = map_create(BPF_MAP_TYPE_ARRAY, 4, 8, 2, 0);
	int update = update_prog(&self->rig.area, map);
	int lookup = lookup_prog(&self->rig.area, map);
	int delete = delete_prog(&self->rig.area, map);
	__u32 key = 1;
	__u64 val = 0;

	set(&self->rig, 1, 100, 0);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	ASSERT_EQ(0, run(&self->rig, lookup));
	EXPECT_EQ(100, area_get(&self->rig.area, FOUND));
	EXPECT_EQ(0, map_lookup(map, &key, &val));
	EXPECT_EQ(101, val);

	set(&self->rig, 2, 100, 0);
	ASSERT_EQ(0, run(&self->rig, update));
	EXPECT_EQ(-E2BIG, (__s64)area_get(&self->rig.area, RET));
	ASSERT_EQ(0, run(&self->rig, lookup));
	EXPECT_EQ(-1, (__s64)area_get(&self->rig.area, FOUND));
	set(&self->rig, 1, 0, 0);
	ASSERT_EQ(0, run(&self->rig, delete));
	EXPECT_EQ(-EINVAL, (__s64)area_get(&self->rig.area, RET));
}

TEST_F(helpers, percpu_array)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu;
	int map = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0);
	int lookup = lookup_prog(&self->rig.area, map);
	int fd = attach(&self->rig.probe, lookup);
	__u64 vals[256];
	__u32 key = 0;

	ASSERT_LE(0, fd);
	ASSERT_GE(ARRAY_SIZE(vals), cpus);
	for (cpu = 0; cpu < cpus; cpu++) {
		if (!pin(cpu))
			hits(cpu + 3);
	}
	ASSERT_EQ(0, map_lookup(map, &key, vals));
	EXPECT_EQ(3, vals[0]);
	if (!pin(1))
		EXPECT_EQ(4, vals[1]);
}

TEST_F(helpers, queue)
{
	int map = map_create(BPF_MAP_TYPE_QUEUE, 0, 8, 1, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->rig.area, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * VALUE),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_push_elem),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn *arg = insns + 5, *flags = insns + 6, *call = insns + 7;
	int push, peek, pop;

	push = prog_load(insns, ARRAY_SIZE(insns));
	*arg = BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * FOUND);
	*flags = BPF_MOV64_IMM(BPF_REG_0, 0);
	*call = BPF_EMIT_CALL(BPF_FUNC_map_peek_elem);
	peek = prog_load(insns, ARRAY_SIZE(insns));
	*call = BPF_EMIT_CALL(BPF_FUNC_map_pop_elem);
	pop = prog_load(insns, ARRAY_SIZE(insns));

	set(&self->rig, 0, 55, 0);
	ASSERT_EQ(0, run(&self->rig, push));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	ASSERT_EQ(0, run(&self->rig, push));
	EXPECT_EQ(-E2BIG, (__s64)area_get(&self->rig.area, RET));

	ASSERT_EQ(0, run(&self->rig, peek));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	EXPECT_EQ(55, area_get(&self->rig.area, FOUND));
	set(&self->rig, 0, 0, 0);
	ASSERT_EQ(0, run(&self->rig, pop));
	EXPECT_EQ(0, area_get(&self->rig.area, RET));
	EXPECT_EQ(55, area_get(&self->rig.area, FOUND));
	ASSERT_EQ(0, run(&self->rig, pop));
	EXPECT_EQ(-ENOENT, (__s64)area_get(&self->rig.area, RET));
}

/* Slot RET counts the runs, BACK those that came back, OTHER another program's */
TEST_F(helpers, tail_call)
{
	int map = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 2, 0);
	struct bpf_insn insns[] = {
		AREA(BPF_REG_2, &self->rig.area, RET),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_2, BPF_REG_0, 0),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
		AREA(BPF_REG_2, &self->rig.area, BACK),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_2, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn plain[] = {
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};
	int other, self_call, filter;
	union bpf_attr attr;
	__u32 key = 0;

	other = count_prog(&self->rig.area, OTHER, 0);
	ASSERT_LE(0, rig_attach(&self->rig,
				prog_load(insns, ARRAY_SIZE(insns))));

	/* Nothing there: it goes on */
	area_set(&self->rig.area, RET, 0);
	hit();
	EXPECT_EQ(1, area_get(&self->rig.area, RET));
	EXPECT_EQ(1, area_get(&self->rig.area, BACK));
	EXPECT_EQ(0, area_get(&self->rig.area, OTHER));

	/* Another program: it does not come back */
	ASSERT_EQ(0, map_update(map, &key, &other));
	hit();
	EXPECT_EQ(2, area_get(&self->rig.area, RET));
	EXPECT_EQ(1, area_get(&self->rig.area, BACK));
	EXPECT_EQ(1, area_get(&self->rig.area, OTHER));

	/* One of another type is refused, the map has the old one */
	prog_attr(&attr, plain, ARRAY_SIZE(plain));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	filter = sys_bpf(BPF_PROG_LOAD, &attr);
	ASSERT_LE(0, filter);
	EXPECT_EQ(-EINVAL, map_update(map, &key, &filter));
	hit();
	EXPECT_EQ(2, area_get(&self->rig.area, OTHER));

	/* Itself, for ever: 33 calls are the most */
	self_call = prog_load(insns, ARRAY_SIZE(insns));
	ASSERT_EQ(0, map_update(map, &key, &self_call));
	area_set(&self->rig.area, RET, 0);
	area_set(&self->rig.area, BACK, 0);
	hit();
	EXPECT_EQ(34, area_get(&self->rig.area, RET));
	EXPECT_EQ(1, area_get(&self->rig.area, BACK));
	/* The array holds the program, the program the array */
	EXPECT_EQ(0, map_delete(map, &key));
}

TEST_HARNESS_MAIN
