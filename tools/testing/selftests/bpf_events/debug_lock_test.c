// SPDX-License-Identifier: GPL-2.0
/*
 * Programs on the tracepoints of lockdep, which RCU hits whenever somebody
 * begins to read or stops: what runs a program may not do that before it has made
 * sure that the program does not run on top of itself.  For kernels with lockdep.
 */
#include "common.h"
#include "map_op.h"
#include "ways.h"

FIXTURE(lock) {
	struct area area;
};

FIXTURE_VARIANT(lock) {
	struct place place;
};

FIXTURE_VARIANT_ADD(lock, acquire) { { .group = "lock", .event = "lock_acquire" } };
FIXTURE_VARIANT_ADD(lock, release) { { .group = "lock", .event = "lock_release" } };

FIXTURE_SETUP(lock)
{
	SKIP_WITHOUT(return, ways_prepare());
	if (access(TRACEFS "/events/lock/lock_acquire", F_OK))
		SKIP(return, "CONFIG_LOCKDEP");
	ASSERT_EQ(0, ways_start(&self->area));
}

FIXTURE_TEARDOWN_PARENT(lock)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(lock, each_way_to_attach)
{
	struct probe probe;
	unsigned int i;
	int fd, prog;
	__u64 runs;

	for (i = 0; i < WAYS; i++) {
		if (!ways[i].tracepoint)
			continue;
		prog = way_count_prog(&ways[i], &variant->place, &self->area, i);
		ASSERT_LE(0, prog) TH_LOG("%s", ways[i].name);
		fd = way_attach(&ways[i], &variant->place, &probe, prog);
		ASSERT_LE(0, fd) TH_LOG("%s", ways[i].name);
		hit_rename();
		EXPECT_LT(0, area_get(&self->area, i)) TH_LOG("%s", ways[i].name);
		/* Those hits that the run itself makes */
		EXPECT_LT(0, misses(prog)) TH_LOG("%s", ways[i].name);
		close(fd);
		close(prog);
		runs = area_get(&self->area, i);
		hit_rename();
		EXPECT_EQ(runs, area_get(&self->area, i)) TH_LOG("%s", ways[i].name);
	}
}

/* Each unlocks a map, where the other is hit, with the lock still held */
TEST_F(lock, two_programs_with_one_map)
{
	const enum bpf_map_type types[] = {
		BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_RINGBUF, BPF_MAP_TYPE_STACK_TRACE,
		BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LRU_HASH,
	};
	int i, j, map, links[2];
	union bpf_attr attr;

	raw_tp_attr(&attr);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		map = op_map(types[i], 0);
		ASSERT_LE(0, map);
		for (j = 0; j < ARRAY_SIZE(links); j++) {
			links[j] = raw_tp_open(op_prog(&attr, &self->area, NULL, types[i], map),
					       variant->place.event, 0);
			ASSERT_LE(0, links[j]);
		}
		area_set(&self->area, OPS, 0);
		hit_rename();
		EXPECT_LT(0, area_get(&self->area, OPS)) TH_LOG("map type %d", types[i]);
		for (j = 0; j < ARRAY_SIZE(links); j++)
			close(links[j]);
	}
}

FIXTURE(breakpoint) {
	struct area area;
	struct optimize optimize;
};

FIXTURE_SETUP(breakpoint)
{
	SKIP_WITHOUT(return, prepare());
	if (access(TRACEFS "/events/lock/lock_acquire", F_OK))
		SKIP(return, "CONFIG_LOCKDEP");
	ASSERT_EQ(0, area_create(&self->area));
	optimize_save(&self->optimize);
	write_file(OPTIMIZE, 0, "0");
}

FIXTURE_TEARDOWN_PARENT(breakpoint)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Lockdep takes a breakpoint for an NMI, which must not wait for a lock that is used
 * elsewhere: the program is on top of no operation, and waits, without a report
 */
TEST_F(breakpoint, works_on_maps)
{
	const struct {
		enum bpf_map_type type;
		__u32 flags;
	} maps[] = {
		{ BPF_MAP_TYPE_QUEUE }, { BPF_MAP_TYPE_STACK }, { BPF_MAP_TYPE_RINGBUF },
		{ BPF_MAP_TYPE_STACK_TRACE }, { BPF_MAP_TYPE_HASH },
		{ BPF_MAP_TYPE_HASH, BPF_F_NO_PREALLOC }, { BPF_MAP_TYPE_LRU_HASH },
		{ BPF_MAP_TYPE_LRU_HASH, BPF_F_NO_COMMON_LRU }, { BPF_MAP_TYPE_LPM_TRIE },
		{ BPF_MAP_TYPE_TASK_STORAGE },
	};
	struct area *area = &self->area;
	union bpf_attr attr;
	int i, j, map, prog, fd;
	struct probe probe;

	ASSERT_EQ(0, probe_create_body(&probe, "event", BODY_FUNC, 0));
	for (i = 0; i < ARRAY_SIZE(maps); i++) {
		map = op_map(maps[i].type, maps[i].flags);
		ASSERT_LE(0, map);
		area_set(area, OPS, 0);
		area_set(area, REFUSED, 0);
		/* First elsewhere, with all locks that maps of the type have */
		raw_tp_attr(&attr);
		prog = op_prog(&attr, area, NULL, maps[i].type, map);
		fd = raw_tp_open(prog, "task_rename", 0);
		ASSERT_LE(0, fd);
		hit_rename();
		hit_rename();
		close(fd);
		/* This task has storage in the first one */
		if (maps[i].type == BPF_MAP_TYPE_TASK_STORAGE)
			map = op_map(maps[i].type, maps[i].flags);
		ASSERT_LE(0, map);
		load_attr(&attr, BPF_PROG_TYPE_KPROBE, 0, 0);
		fd = attach(&probe, op_prog(&attr, area, NULL, maps[i].type, map));
		ASSERT_LE(0, fd);
		for (j = 2; j < 100; j++)
			hit_body();
		EXPECT_EQ(j, area_get(area, OPS)) TH_LOG("map %d", i);
		EXPECT_EQ(0, area_get(area, REFUSED)) TH_LOG("map %d", i);
		close(fd);
	}
}

TEST_HARNESS_MAIN
