// SPDX-License-Identifier: GPL-2.0
/*
 * Why programs have missed hits, in each of the ways to attach them. The counts are exact
 * where nobody else updates hash maps or prints from programs meanwhile.
 */
#include "common.h"
#include "body.h"
#include "hitter.h"
#include "overflow.h"
#include "ways.h"

/* What a record reads memory with, and an event that does so */
static const struct place in_record = { "copy_from_kernel_nofault" };
#define RECORD_ARG "+0(%%sp):u64"

/* Slots: runs of the outer and the inner program */
enum { OUTER, INNER };

/* What makes a record of a miss, and is part of that */
static const struct place in_miss_record = { "perf_tp_event", "bpf_trace", "bpf_prog_missed" };

static bool recording;

static int record(bool enable)
{
	recording = enable;
	return event_enable(INSTANCE, MISS_EVENT, enable);
}

/*
 * The misses of an fdinfo by reason, or "none"; or that there are others, too, or other
 * records of them
 */
static const char *reasons(int fd)
{
	static const char * const names[] = {
		"same_prog", "other_prog", "map_op", "nested", "no_return", "no_rcu",
		"budget",
	};
	static char text[256];
	__u64 n, all = 0;
	int i, len = 0;
	char key[32];

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(key, sizeof(key), "bpf_missed_%s", names[i]);
		n = fdinfo_number(fd, key);
		all += n;
		if (recording && miss_records(fd, names[i]) != n)
			return "other records";
		if (n)
			len += snprintf(text + len, sizeof(text) - len, "%s%s %llu",
					len ? ", " : "", names[i], n);
	}
	if (fdinfo_number(fd, "bpf_prog_missed") != all)
		return "not the sum";
	return len ? text : "none";
}

/* What reasons() says where all have the same one */
static const char *all_for(const char *name, __u64 n)
{
	static char text[64];

	snprintf(text, sizeof(text), n ? "%s %llu" : "none", name, n);
	return text;
}

FIXTURE(missed) {
	struct area area;
	int map;
};

FIXTURE_SETUP(missed)
{
	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->area));
	ASSERT_EQ(0, record(true));
	self->map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	ASSERT_LE(0, self->map);
}

FIXTURE_TEARDOWN_PARENT(missed)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* The event of a probe has a name of its own, for an outer and an inner one */
static int attach_inner(const struct way *way, const struct place *place, struct area *area)
{
	return way_attach_at(way, place, "inner", way_count_prog(way, place, area, INNER));
}

/* What is closed leaves the event of a probe, which the next one needs the name of */
static void detach(int fd)
{
	close(fd);
	event_remove("inner");
	event_remove("outer");
}

TEST_F(missed, same_prog)
{
	int i, prog, inner, outer, runs;
	const struct way *way;

	/* It is on two places, one inside the other, which tracing programs cannot be */
	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (way->kind == BY_TRACING)
			continue;
		area_set(&self->area, OUTER, 0);
		prog = helpers_prog(way, &own_place, &self->area, self->map, self->map);
		ASSERT_LE(0, prog) TH_LOG("%s", way->name);
		inner = way_attach_at(way, &in_helpers, "inner", prog);
		ASSERT_LE(0, inner) TH_LOG("%s", way->name);
		outer = way_attach_at(way, &own_place, "outer", prog);
		ASSERT_LE(0, outer) TH_LOG("%s", way->name);
		hit_own_place();
		hit_own_place();
		runs = 2 * way_runs(way);
		EXPECT_EQ(runs, area_get(&self->area, OUTER)) TH_LOG("%s", way->name);
		EXPECT_STREQ(all_for("same_prog", runs * way_runs(way)), reasons(inner))
			TH_LOG("%s", way->name);
		EXPECT_EQ(0, fdinfo_number(outer, "bpf_prog_missed")) TH_LOG("%s", way->name);
		close(outer);
		detach(inner);
	}
}

/* bpf(2) works on the map */
TEST_F(missed, map_op)
{
	const struct way *way;
	__u64 key = 9;
	int i, n, fd;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (way_has_trampoline(way) || way->tracepoint)
			continue;
		fd = attach_inner(way, &in_helpers, &self->area);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		for (n = 0; n < 4; n++)
			ASSERT_EQ(0, map_update(self->map, &key, &key));
		EXPECT_STREQ(all_for("map_op", 4 * way_runs(way)), reasons(fd))
			TH_LOG("%s", way->name);
		detach(fd);
	}
	EXPECT_EQ(0, area_get(&self->area, INNER));
}

/* An event makes a record, without a program: kprobes drops what hits in there */
TEST_F(missed, nested)
{
	const char *outer = GROUP "/outer";
	const struct way *way;
	int i, fd;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (way_has_trampoline(way) || way->tracepoint || way->kind == BY_MULTI_LINK)
			continue;
		fd = attach_inner(way, &in_record, &self->area);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		ASSERT_EQ(0, event_add("outer", "p %s " RECORD_ARG, FUNC));
		ASSERT_EQ(0, event_enable(INSTANCE, outer, true));
		area_set(&self->area, INNER, 0);
		hits(5);
		EXPECT_EQ(0, area_get(&self->area, INNER)) TH_LOG("%s", way->name);
		EXPECT_STREQ("nested 5", reasons(fd)) TH_LOG("%s", way->name);
		ASSERT_EQ(0, event_enable(INSTANCE, outer, false));
		detach(fd);
	}
}

/* More calls at once than there is room for to note where they return */
TEST_F(missed, no_return)
{
	const struct place place = { WAIT_FUNC };
	int fds[WAYS], missed;
	const struct way *way;
	char event[16];
	unsigned int i;

	/* Each of them makes room for a few calls more */
	if (sysconf(_SC_NPROCESSORS_CONF) > MAX_WAITERS / 4)
		SKIP(return, "fewer CPUs");
	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		fds[i] = -1;
		if (way_has_trampoline(way) || !way_sees_returns(way))
			continue;
		snprintf(event, sizeof(event), "way%d", i);
		fds[i] = way_attach_at(way, &place, event,
				       way_count_prog(way, &place, &self->area, i));
		ASSERT_LE(0, fds[i]) TH_LOG("%s", way->name);
	}
	ASSERT_EQ(0, wait_together(MAX_WAITERS));
	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (fds[i] < 0)
			continue;
		missed = MAX_WAITERS * way_runs(way) - area_get(&self->area, i);
		EXPECT_LT(0, missed) TH_LOG("%s", way->name);
		EXPECT_STREQ(all_for("no_return", missed), reasons(fds[i]))
			TH_LOG("%s", way->name);
	}
}

/* Threads that take each other's CPU away in the middle of anything */
#define STORM_THREADS 3

struct storm {
	int map, rounds;
};

static void *storm_thread(void *arg)
{
	const struct storm *storm = arg;
	int i, clock = interrupt_often();
	__u64 key = 3;

	for (i = 0; i < storm->rounds; i++) {
		hit();
		map_update(storm->map, &key, &key);
	}
	close(clock);
	return NULL;
}

/* All hits are runs or have their reason, counted apart from what the kernel counts */
TEST_F(missed, nothing_else)
{
	struct storm storm = { self->map, rounds(2000) };
	const __u64 calls = STORM_THREADS * storm.rounds;
	pthread_t threads[STORM_THREADS];
	const struct way *way;
	int i, outer, fds[WAYS];
	char event[16];
	__u64 seen;

	ASSERT_EQ(0, record(false)); /* A trace has room for fewer of them */
	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		fds[i] = -1;
		if (way_has_trampoline(way))
			continue;
		snprintf(event, sizeof(event), "way%d", i);
		fds[i] = way_attach_at(way, &in_helpers, event,
				       way_count_prog(way, &in_helpers, &self->area, INNER + i));
		ASSERT_LE(0, fds[i]) TH_LOG("%s", way->name);
	}
	outer = way_attach_at(ways, &own_place, "outer",
			      helpers_prog(ways, &own_place, &self->area, self->map, self->map));
	ASSERT_LE(0, outer);

	for (i = 0; i < STORM_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, storm_thread, &storm));
	for (i = 0; i < STORM_THREADS; i++)
		pthread_join(threads[i], NULL);

	EXPECT_STRNE("not the sum", reasons(outer));
	EXPECT_EQ(area_get(&self->area, OUTER), fdinfo_number(outer, "bpf_prog_hits"));
	EXPECT_EQ(calls, fdinfo_number(outer, "bpf_prog_hits") +
			 fdinfo_number(outer, "bpf_prog_missed"));
	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (fds[i] < 0)
			continue;
		seen = area_get(&self->area, OUTER);
		if (!way->tracepoint)
			seen = (seen + calls) * way_runs(way);
		EXPECT_STRNE("not the sum", reasons(fds[i])) TH_LOG("%s", way->name);
		EXPECT_EQ(area_get(&self->area, INNER + i), fdinfo_number(fds[i], "bpf_prog_hits"))
			TH_LOG("%s", way->name);
		EXPECT_EQ(seen, fdinfo_number(fds[i], "bpf_prog_hits") +
				fdinfo_number(fds[i], "bpf_prog_missed"))
			TH_LOG("%s %s", way->name, reasons(fds[i]));
	}
}

/* A thread has more calls under way than the kernel follows: all ways on user code */
TEST_F(missed, no_return_of_user_code)
{
	int i, runs, fds[UPROBE_WAYS];
	const struct way *way;

	for (i = 0; i < UPROBE_WAYS; i++) {
		way = &uprobe_ways[i];
		fds[i] = -1;
		if (!way_sees_returns(way))
			continue;
		fds[i] = uprobe_way_attach(way, dive,
					   count_prog_as(&self->area, i, 0, way->attach));
		ASSERT_LE(0, fds[i]) TH_LOG("%s", way->name);
	}

	dive(MAX_DEPTH + 5, NULL);
	for (i = 0; i < UPROBE_WAYS; i++) {
		way = &uprobe_ways[i];
		if (fds[i] < 0)
			continue;
		runs = way_runs(way) == 2 ? 2 * MAX_DEPTH + 6 : MAX_DEPTH;
		EXPECT_EQ(runs, area_get(&self->area, i)) TH_LOG("%s", way->name);
		EXPECT_STREQ(all_for("no_return", 6), reasons(fds[i])) TH_LOG("%s", way->name);
	}
}

/* The program of a kprobe reads what a breakpoint is on, whose program has to wait */
TEST_F(missed, overflow)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_LD_IMM64(BPF_REG_3, (unsigned long)&watched),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user),
		BPF_EXIT_INSN(),
	};
	struct perf_event_attr attr;
	struct probe probe;
	int fd;

	overflow_attr(&attr, PERF_TYPE_BREAKPOINT);
	attr.bp_type = HW_BREAKPOINT_RW;
	fd = perf_open(&attr, 0, -1);
	if (fd < 0)
		SKIP(return, "breakpoints");
	ASSERT_EQ(0, perf_set_bpf(fd, overflow_prog(&self->area)));
	ASSERT_EQ(0, probe_create(&probe, 0));
	ASSERT_LE(0, attach(&probe, prog_load(insns, ARRAY_SIZE(insns))));
	hits(3);
	EXPECT_STREQ("other_prog 3", reasons(fd));
}

/*
 * What makes the record of a miss is hit in turn: what is missed there has no record. Nor has
 * what is missed at a breakpoint because of another probe.
 */

FIXTURE(record) {
	struct area area;
	struct optimize optimize;
	int missed;
};

FIXTURE_VARIANT(record) {
	bool body;	/* the hit that is missed is one of a breakpoint */
};

FIXTURE_VARIANT_ADD(record, entry) {
	.body = false,
};

FIXTURE_VARIANT_ADD(record, body) {
	.body = true,
};

FIXTURE_SETUP(record)
{
	const struct way *way = way_named("kprobe PMU"), *event = way_named("tracepoint");
	struct perf_event_attr attr;
	struct probe probe;
	int prog, map;

	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->area));
	ASSERT_EQ(0, event_enable(INSTANCE, MISS_EVENT, true));
	optimize_save(&self->optimize);
	write_file(OPTIMIZE, 0, "0");
	/* Not only ftrace is to have records */
	ASSERT_EQ(0, way_perf_attr(event, &in_miss_record, NULL, &attr));
	ASSERT_LE(0, perf_open(&attr, -1, 0));

	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	prog = helpers_prog(way, &own_place, &self->area, map, map);
	ASSERT_LE(0, way_attach_at(way, &own_place, "outside", prog));
	prog = way_count_prog(way, &in_helpers, &self->area, OUTER);
	ASSERT_EQ(0, site_create(&probe, "missed", in_helpers.func, variant->body, 0));
	self->missed = attach(&probe, prog);
	ASSERT_LE(0, self->missed);
}

FIXTURE_TEARDOWN_PARENT(record)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(record, hit_itself)
{
	const int records_each = variant->body ? 0 : 3;
	const struct way *way;
	int i, fd, runs;
	bool filter;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		fd = attach_inner(way, &in_miss_record, &self->area);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		area_set(&self->area, INNER, 0);
		records(INSTANCE); /* clears the trace */
		hits(3);
		runs = records_each * way_runs(way);
		EXPECT_EQ(way_takes_guard(way) ? 0 : runs, area_get(&self->area, INNER))
			TH_LOG("%s", way->name);
		if (!way_has_trampoline(way)) {
			EXPECT_EQ(way_takes_guard(way) ? runs : 0,
				  fdinfo_number(fd, "bpf_missed_other_prog"))
				TH_LOG("%s", way->name);
			EXPECT_EQ(0, miss_records(fd, "")) TH_LOG("%s", way->name);
		}
		/* As the filter of the event, the program lets no record pass. */
		filter = way->kind == BY_FILTER && way->tracepoint;
		EXPECT_EQ(filter ? 0 : records_each, miss_records(self->missed, "other_prog"))
			TH_LOG("%s", way->name);
		detach(fd);
	}
	EXPECT_EQ(3 * WAYS, fdinfo_number(self->missed, "bpf_missed_other_prog"));
}

TEST_F(record, probes_in_it)
{
	const int records_each = variant->body ? 0 : 3;
	struct probe probe;
	int body, fd;

	for (body = 0; body < 2; body++) {
		ASSERT_EQ(0, site_create(&probe, "inner", in_miss_record.func, body, 0));
		fd = attach(&probe, count_prog(&self->area, INNER, 0));
		ASSERT_LE(0, fd);
		hits(3);
		EXPECT_EQ(0, area_get(&self->area, INNER));
		EXPECT_EQ(records_each, fdinfo_number(fd, "bpf_missed_other_prog"));
		EXPECT_EQ(0, miss_records(fd, ""));
		EXPECT_EQ(records_each, miss_records(self->missed, "other_prog"));
		records(INSTANCE); /* clears the trace */
		detach(fd);
	}
}

/* A clock's interrupts miss their program, which shares scratch with the one below */
TEST_F(missed, in_interrupts)
{
	const int scratch = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0);
	const struct bpf_insn use[] = {
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
		BPF_LD_MAP_FD(BPF_REG_1, scratch),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
	};
	struct bpf_insn outer[ARRAY_SIZE(use) + WAIT_INSNS];
	struct bpf_insn inner[ARRAY_SIZE(use) + 2];
	const struct way *way = way_named("kprobe_multi");
	size_t n = ARRAY_SIZE(use);
	union bpf_attr attr;
	int clock;

	/* Those of hard interrupts */
	ASSERT_EQ(0, write_file(event_file(INSTANCE, MISS_EVENT, "filter"), 0,
				"common_flags & 8"));
	memcpy(outer, use, sizeof(use));
	n += wait_for_slot(outer + n, &self->area, INNER, 30, INNER);
	way_attr(way, &own_place, &attr);
	ASSERT_LE(0, way_attach(way, &own_place, NULL,
				body_load(&attr, &self->area, outer, n)));
	memcpy(inner, use, sizeof(use));
	n = ARRAY_SIZE(use);
	inner[n++] = BPF_MOV64_IMM(BPF_REG_0, 0);
	inner[n++] = BPF_EXIT_INSN();
	clock = interrupt_often();
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, perf_set_bpf(clock, overflow_load(inner, n)));

	EXPECT_TRUE(wait_between(fdinfo_number(clock, "bpf_prog_missed") >= 5, hit()));
	ASSERT_EQ(0, ioctl(clock, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_STREQ(all_for("other_prog", fdinfo_number(clock, "bpf_prog_missed")),
		     reasons(clock));
}

/* On top of another program, by what that one is attached with */

FIXTURE(inside) {
	struct area area;
	int outer;
};

FIXTURE_VARIANT(inside) {
	const char *way;
};

FIXTURE_VARIANT_ADD(inside, kprobe) {
	.way = "kprobe event",
};

FIXTURE_VARIANT_ADD(inside, kretprobe) {
	.way = "kretprobe PMU",
};

FIXTURE_VARIANT_ADD(inside, kprobe_multi) {
	.way = "kprobe_multi",
};

FIXTURE_VARIANT_ADD(inside, kretprobe_multi) {
	.way = "kretprobe_multi",
};

FIXTURE_VARIANT_ADD(inside, filter) {
	.way = "filter of a kprobe",
};

FIXTURE_VARIANT_ADD(inside, tracepoint) {
	.way = "tracepoint",
};

FIXTURE_SETUP(inside)
{
	const struct way *way = way_named(variant->way);
	int prog, map;

	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->area));
	ASSERT_EQ(0, record(true));
	map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 4, 0);
	prog = helpers_prog(way, &own_place, &self->area, map, map);
	ASSERT_LE(0, prog);
	self->outer = way_attach_at(way, &own_place, "outside", prog);
	ASSERT_LE(0, self->outer);
}

FIXTURE_TEARDOWN_PARENT(inside)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(inside, other_prog)
{
	const struct way *way;
	int i, n, fd, missed;

	for (i = 0; i < WAYS; i++) {
		way = &ways[i];
		if (way_has_trampoline(way))
			continue;
		fd = attach_inner(way, &in_helpers, &self->area);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		area_set(&self->area, INNER, 0);
		for (n = 0; n < 3; n++)
			hit_own_place();
		missed = way_takes_guard(way) ? 3 * way_runs(way) : 0;
		EXPECT_EQ(way_takes_guard(way) ? 0 : 3, area_get(&self->area, INNER))
			TH_LOG("%s", way->name);
		EXPECT_STREQ(all_for("other_prog", missed), reasons(fd)) TH_LOG("%s", way->name);
		detach(fd);
	}
	EXPECT_STREQ("none", reasons(self->outer));
}

TEST_HARNESS_MAIN
