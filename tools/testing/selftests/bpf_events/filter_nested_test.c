// SPDX-License-Identifier: GPL-2.0
/* Hits of an event with a filter on top of a program */
#include "common.h"
#include "uprobe.h"
#include "filter.h"
#include "hitter.h"

/* Slots of the area: hits, and what the program returns */
enum { HITS, VERDICT };

FIXTURE(nested) {
	struct area area;
};

FIXTURE_SETUP(nested)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, kind_create(&kprobe_kind));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VERDICT, 1);
}

FIXTURE_TEARDOWN_PARENT(nested)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", instance_left(INSTANCE2));
	EXPECT_STREQ("nothing", leftovers());
}

/* Prints a line, which is a hit of the event bpf_trace_printk */
static int print_prog(void)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_1, 'x'),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 4),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
}

/* Works on a map, in a function that can be probed */
static int update_prog(enum bpf_prog_type type, int map)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_1, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -8),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 7),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

/* A tracepoint: only the same program is in its own way */
TEST_F(nested, tracepoint)
{
	int outer = print_prog(), inner = print_prog();
	struct fdinfo info;
	int fd;

	ASSERT_LE(0, inner);
	fd = filter_attach(INSTANCE, "bpf_trace/bpf_trace_printk", inner);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, filter_attach(INSTANCE, sys_enter_kind.event, outer));
	hit();
	EXPECT_EQ(1, records_of(INSTANCE, "bpf_trace_printk: x"));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(1, info.hits);
	EXPECT_EQ(1, info.missed);
	EXPECT_EQ(1, misses(inner));
	EXPECT_EQ(0, misses(outer));
}

/*
 * A kprobe: not while a program on another kprobe runs, or bpf(2) keeps those
 * off; a program on a tracepoint is not in the way
 */
TEST_F(nested, kprobe)
{
	int map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 1, 0);
	int inner = filter_prog(&self->area, HITS, BPF_PROG_TYPE_KPROBE);
	struct fdinfo info;
	__u64 key = 0;
	int fd;

	ASSERT_EQ(0, event_add("inner", "p htab_map_update_elem"));
	fd = filter_attach(INSTANCE, GROUP "/inner", inner);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, map_update(map, &key, &key));
	EXPECT_EQ(0, records(INSTANCE));
	EXPECT_EQ(0, area_get(&self->area, HITS));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(0, info.hits);
	EXPECT_EQ(1, info.missed);
	EXPECT_EQ(1, misses(inner));

	ASSERT_LE(0, filter_attach(INSTANCE, sys_enter_kind.event,
				   update_prog(BPF_PROG_TYPE_RAW_TRACEPOINT, map)));
	hit();
	EXPECT_EQ(1, area_get(&self->area, HITS));
	EXPECT_EQ(1, records_of(INSTANCE, "inner:"));
	EXPECT_EQ(1, misses(inner));
}

/*
 * Hits that kprobes itself drops are those of the filters, too: of each that would
 * have been asked
 */

TEST_F(nested, kprobe_in_a_kprobe)
{
	int map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 1, 0);
	int inner = filter_prog(&self->area, HITS, BPF_PROG_TYPE_KPROBE);
	int other = filter_prog(&self->area, HITS, BPF_PROG_TYPE_KPROBE);
	struct fdinfo info;
	int fd, i;

	ASSERT_EQ(0, event_add("inner", "p htab_map_update_elem"));
	fd = filter_attach(INSTANCE, GROUP "/inner", inner);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, filter_attach(TRACEFS, GROUP "/inner", other));
	ASSERT_EQ(0, instance_create(INSTANCE2));
	ASSERT_LE(0, filter_attach(INSTANCE2, GROUP "/event",
				   update_prog(BPF_PROG_TYPE_KPROBE, map)));
	for (i = 0; i < 10; i++)
		hit();
	EXPECT_EQ(10, records_of(INSTANCE2, "event:"));
	EXPECT_EQ(0, area_get(&self->area, HITS));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(0, info.hits);
	EXPECT_EQ(10, info.missed);
	EXPECT_EQ(10, misses(inner));
	EXPECT_EQ(10, misses(other));

	/* One instance wants only those of a process that is not this one */
	ASSERT_EQ(0, write_file(INSTANCE "/set_event_pid", 0, "1"));
	hit();
	EXPECT_EQ(10, misses(inner));
	EXPECT_EQ(11, misses(other));
	ASSERT_EQ(0, write_file(INSTANCE "/set_event_pid", 0, "%d", getpid()));
	hit();
	EXPECT_EQ(11, misses(inner));
	EXPECT_EQ(12, misses(other));
}

TEST_F(nested, kretprobe_without_a_free_instance)
{
	int prog = filter_prog(&self->area, HITS, BPF_PROG_TYPE_KPROBE);
	struct fdinfo info;
	int fd;

	/* One call at a time, as maxactive says */
	ASSERT_EQ(0, event_add("rets", "r1 %s", WAIT_FUNC));
	fd = filter_attach(INSTANCE, GROUP "/rets", prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, wait_together(3));
	EXPECT_EQ(1, area_get(&self->area, HITS));
	EXPECT_EQ(1, all_records(INSTANCE));
	EXPECT_EQ(2, misses(prog));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(1, info.hits);
	EXPECT_EQ(2, info.missed);
}

TEST_HARNESS_MAIN
