// SPDX-License-Identifier: GPL-2.0
/*
 * A helper hits a bug of the kernel, and the task dies inside of the program. What leads to
 * the program on its stack is gone: nobody looks for it, and others run on this CPU as before.
 *
 * This makes the kernel oops, after which parts of it are off: it is for a machine that is
 * thrown away afterwards.
 */
#include <sys/wait.h>

#include "common.h"
#include "interrupt.h"
#include "module.h"
#include "ways.h"

#define DYING_MODULE "bpf_events_dying"
#define DYING_NAME "bpf_events_die"	/* of a task */
#define SYSCTL "/proc/sys/kernel/"

/* What looks for complaints on the console expects one oops between these lines. */
#define MEANT_BEGINS "bpf_events: an oops is meant\n"
#define MEANT_ENDS "bpf_events: that was it\n"

/* Slots: runs of what hits the function, a cookie, ticks that it has seen, and those of CPU 1 */
enum { RUNS, SEEN_COOKIE, SEEN_TICKS, TICKS, DYING, IN_RECORD };

FIXTURE(oops) {
	struct area area;
	int map;
	char printk[64];
	__u64 panics;
};

/* The way to attach the program that the task dies in */
FIXTURE_VARIANT(oops) {
	const char *way;
	bool in_record;	/* of a miss: it dies in one on the event of that */
};

FIXTURE_VARIANT_ADD(oops, in_fentry) {
	.way = "fentry",
};

FIXTURE_VARIANT_ADD(oops, in_kprobe_multi) {
	.way = "kprobe_multi",
};

FIXTURE_VARIANT_ADD(oops, in_kprobe_event) {
	.way = "kprobe event",
};

FIXTURE_VARIANT_ADD(oops, in_a_record) {
	.way = "kprobe PMU",
	.in_record = true,
};

FIXTURE_SETUP(oops)
{
	const char *missing = ways_prepare(), *path = test_module(DYING_MODULE);

	SKIP_WITHOUT(return, missing);
	if (!path)
		SKIP(return, "no " DYING_MODULE ".ko");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	self->map = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0);
	ASSERT_LE(0, self->map);
	ASSERT_LT(0, read_file(SYSCTL "printk", self->printk, sizeof(self->printk)));
	ASSERT_TRUE(read_u64(SYSCTL "panic_on_oops", &self->panics));
	ASSERT_EQ(0, pin(1));
	ASSERT_EQ(0, load_module(path));
	EXPECT_EQ(0, write_file(SYSCTL "panic_on_oops", 0, "0"));
}

FIXTURE_TEARDOWN_PARENT(oops)
{
	EXPECT_EQ(0, unload_module(DYING_MODULE));
	write_file(SYSCTL "printk", 0, "%s", self->printk);
	write_file(SYSCTL "panic_on_oops", 0, "%llu", self->panics);
	write_file(TRACEFS "/tracing_on", 0, "1");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Uses the map, counts in the slot, and prints, which the module does not survive */
static int dying_prog(const struct way *way, int map, struct area *area, unsigned int slot)
{
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_1, map),
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 'x'),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 2),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, &own_place, insns, ARRAY_SIZE(insns));
}

/* Of an interrupt: uses the map, and counts on CPU 1 */
static int tick_prog(struct area *area, int map)
{
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 1, 4),
		AREA(BPF_REG_1, area, TICKS),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), BPF_TRACE_KPROBE_MULTI, 0);
}

/*
 * Has the way's program, before it dies in printing, come by a kprobe whose program misses that,
 * and one die that is on the event of misses. Return: false if that cannot be.
 */
static bool die_in_record(struct area *area, int fds[2])
{
	static const struct place printing = { "bpf_bprintf_prepare" }, record = {
		NULL, "bpf_trace", "bpf_prog_missed"
	};
	const struct way *kprobe = way_named("kprobe PMU"), *raw = way_named("raw tracepoint");
	int map = map_create(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0); /* no scratch of the one below */

	fds[0] = way_attach(raw, &record, NULL, dying_prog(raw, map, area, IN_RECORD));
	fds[1] = way_attach_at(kprobe, &printing, "",
			       way_count_prog(kprobe, &printing, area, RUNS));
	return fds[0] >= 0 && fds[1] >= 0;
}

/* More than a CPU has buffers for what is printed */
#define DEATHS 5

/* A child of the name hits the function on this CPU. Return: does it die? */
static bool child_dies(void)
{
	int status;
	bool dies;
	pid_t child;

	write_file("/dev/kmsg", 0, MEANT_BEGINS);
	child = fork();
	if (!child) {
		prctl(PR_SET_NAME, DYING_NAME);
		hit();
		_exit(0);
	}
	dies = waitpid(child, &status, 0) == child && WIFSIGNALED(status);
	write_file("/dev/kmsg", 0, MEANT_ENDS);
	return dies;
}

TEST_F(oops, others_go_on)
{
	struct bpf_insn body[WAIT_INSNS];
	size_t n = wait_for_slot(body, &self->area, TICKS, 2000, SEEN_TICKS);
	const struct way *way = way_named(variant->way);
	const struct place tick = HARDIRQ_PLACE;
	int dying, prog, link, fds[2], map, i;
	union bpf_attr attr;

	prog = dying_prog(way, self->map, &self->area, DYING);
	ASSERT_LE(0, prog);
	dying = way_attach_at(way, &own_place, "dying", prog);
	ASSERT_LE(0, dying);
	if (variant->in_record)
		ASSERT_TRUE(die_in_record(&self->area, fds));
	for (i = 0; i < DEATHS; i++)
		EXPECT_TRUE(child_dies());
	EXPECT_EQ(DEATHS, area_get(&self->area, DYING));
	/* After that it is missed on this CPU, as one on a raw tracepoint, and the other dies */
	EXPECT_EQ(variant->in_record, area_get(&self->area, IN_RECORD));
	if (variant->in_record) {
		close(fds[0]);
		close(fds[1]);
	}
	close(dying);
	close(prog);

	/* One on a uprobe, with a hit of its own */
	load_attr(&attr, BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI, 0);
	prog = cookie_prog(&attr, &self->area);
	ASSERT_LE(0, prog);
	link = umulti_link_one(user_func, BPF_TRACE_UPROBE_MULTI, 0, 1, prog);
	ASSERT_LE(0, link);
	user_hits(1);
	EXPECT_EQ(COOKIE(1), area_get(&self->area, SEEN_COOKIE));
	close(link);
	close(prog);

	/* One of an interrupt, with the same map, then the same on top of another one */
	link = multi_link_one(tick.func, BPF_TRACE_KPROBE_MULTI, 0,
			      tick_prog(&self->area, self->map));
	ASSERT_LE(0, link);
	EXPECT_TRUE(spin_until(area_get(&self->area, TICKS) > 3));
	way = way_named("kprobe event");
	way_attr(way, &own_place, &attr);
	prog = body_load(&attr, &self->area, body, n);
	ASSERT_LE(0, prog);
	area_set(&self->area, RUNS, 0);
	ASSERT_LE(0, way_attach_at(way, &own_place, "outer", prog));
	EXPECT_TRUE(wait_between(area_get(&self->area, SEEN_TICKS) > 3, hit()));
	EXPECT_LT(0, area_get(&self->area, RUNS));
	EXPECT_EQ(0, misses(prog));
	EXPECT_EQ(0, fdinfo_number(link, "bpf_prog_missed"));

	/* One that calls a helper, which another one is on: that misses it, and has a record */
	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	ASSERT_LE(0, way_attach_at(way, &own_place, "calls",
				   helpers_prog(way, &own_place, &self->area, map, map)));
	link = way_attach_at(way, &in_helpers, "missed",
			     way_count_prog(way, &in_helpers, &self->area, RUNS));
	ASSERT_LE(0, link);
	ASSERT_EQ(0, event_enable(INSTANCE, MISS_EVENT, true));
	hits(3);
	EXPECT_LE(3, fdinfo_number(link, "bpf_missed_other_prog"));
	EXPECT_EQ(fdinfo_number(link, "bpf_missed_other_prog"), miss_records(link, "other_prog"));
}

TEST_HARNESS_MAIN
