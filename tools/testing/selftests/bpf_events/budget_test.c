// SPDX-License-Identifier: GPL-2.0
/* How often programs run at most: bpf_budget in tracefs */
#include <linux/limits.h>

#include "common.h"
#include "limits.h"

/* Runs a second, as a number and as it is written */
#define LIMIT 500
#define LIMIT_TEXT "500"

/* How many can follow each other at once, and so many that most cannot */
#define BURST (LIMIT / 20)
#define ENOUGH (4 * BURST)

#define BAD_LINE "Write bpf-id:ID or default, and a limit"
#define BAD_LIMIT "A limit is 1 to 10000000 runs a second, or max for none; a program can have default"

/*
 * How many runs there can be since @start. Where the CPU that counts jiffies is held up,
 * what is due comes late, and is a second burst.
 */
static __u64 most_runs(__u64 start)
{
	return 2 * BURST + (now_ns() - start) * LIMIT / 1000000000 + 1;
}

/*
 * Hits a program with the limit LIMIT until it ran ENOUGH and missed some: what is wrong
 * with that, or "nothing". @alone: nobody else hits it.
 */
static const char *wrong(int fd, struct area *area, void (*hit_it)(void),
			 unsigned int runs_of_hit, bool alone)
{
	const __u64 start = now_ns(), before = limited_runs(fd, area);
	__u64 runs, missed, all_missed, most, hits = 0;
	static char text[128];
	int i;

	do {
		for (i = 0; i < 10; i++)
			hit_it();
		hits += 10 * runs_of_hit;
		runs = limited_runs(fd, area) - before;
		missed = fdinfo_number(fd, "bpf_missed_budget");
	} while ((runs < ENOUGH || !missed) && now_ns() - start < PATIENCE_NS);
	most = most_runs(start);
	if (runs < ENOUGH || !missed)
		say_slow();

	snprintf(text, sizeof(text), "%llu hits: %llu runs, %llu at most, %llu missed", hits,
		 runs, most, missed);
	if (runs < ENOUGH || runs > most || !missed)
		return text;
	all_missed = fdinfo_number(fd, "bpf_prog_missed");
	if (alone)
		return runs + missed == hits &&
		       (all_missed == missed || all_missed == ~0ULL) ? "nothing" : text;
	return runs + missed >= hits ? "nothing" : text;
}

FIXTURE(budget) {
	struct area area;
};

FIXTURE_SETUP(budget)
{
	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, ways_start(&self->area));
	write_file(BUDGET, 0, "default max"); /* What did not come to its end may have left one. */
	ASSERT_STREQ("default max\n", limits(BUDGET));
	entries();
}

FIXTURE_TEARDOWN_PARENT(budget)
{
	write_file(BUDGET, 0, "default max");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(budget, every_way)
{
	const struct way *way;
	struct limited l;
	int i;

	for (i = 0; (way = limited_way(i)); i++) {
		ASSERT_EQ(0, limited_attach(&l, way, &self->area, BUDGET, LIMIT_TEXT))
			TH_LOG("%s", way->name);
		EXPECT_STREQ("nothing",
			     wrong(l.fd, &self->area, l.hit, way_runs(way), !way->tracepoint))
			TH_LOG("%s", way->name);
		limited_detach(&l);
	}
}

/* What is over the budget has records like what is missed otherwise, of both ends of a session */
TEST_F(budget, recorded)
{
	const struct way *way;
	struct limited l;
	int i;

	ASSERT_EQ(0, event_enable(INSTANCE, MISS_EVENT, true));
	for (i = 0; (way = limited_way(i)); i++) {
		ASSERT_EQ(0, limited_attach(&l, way, &self->area, BUDGET, "1"))
			TH_LOG("%s", way->name);
		EXPECT_TRUE(wait_between(fdinfo_number(l.fd, "bpf_missed_budget") >= 2, l.hit()))
			TH_LOG("%s", way->name);
		/* Others can hit a tracepoint meanwhile. */
		EXPECT_TRUE(wait_until(fdinfo_number(l.fd, "bpf_missed_budget") ==
				       miss_records(l.fd, "budget")))
			TH_LOG("%s", way->name);
		limited_detach(&l);
	}
}

/* Programs that trampolines run in other ways than that of fentry */
static const struct {
	enum bpf_attach_type attach;
	__u32 flags;
	bool values; /* of each CPU, which are kept apart */
} tramp_progs[] = {
	{ BPF_TRACE_FENTRY, BPF_F_SLEEPABLE },
	{ BPF_TRACE_FEXIT, BPF_F_SLEEPABLE },
	{ BPF_TRACE_FENTRY, .values = true },
};

TEST_F(budget, trampolines)
{
	int i, fd, prog, map = map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0);

	ASSERT_LE(0, map);
	for (i = 0; i < ARRAY_SIZE(tramp_progs); i++) {
		const struct bpf_insn body[] = {
			BPF_LD_MAP_FD(BPF_REG_1, map),
		};
		union bpf_attr attr;

		tracing_attr(&attr, tramp_progs[i].attach, FUNC);
		attr.prog_flags = tramp_progs[i].flags;
		prog = body_load(&attr, &self->area, body, 2 * tramp_progs[i].values);
		ASSERT_LE(0, prog) TH_LOG("%d", i);
		ASSERT_EQ(0, set_limit(BUDGET, prog, LIMIT_TEXT));
		fd = tracing_open_drop(prog);
		ASSERT_LE(0, fd) TH_LOG("%d", i);
		EXPECT_STREQ("nothing", wrong(fd, &self->area, hit, 1, true)) TH_LOG("%d", i);
		close(fd);
	}
}

/* What another link missed is not missed in this one, also where it fails to attach meanwhile */
TEST_F(budget, attached_again)
{
	const struct way *way = way_named("fentry");
	int i, fd, prog = way_count_prog(way, &own_place, &self->area, 0);
	__u64 missed;

	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	for (i = 0; i < 2; i++) {
		fd = tracing_open(prog);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, fdinfo_number(fd, "bpf_missed_budget"));
		hits(100);
		missed = fdinfo_number(fd, "bpf_missed_budget");
		EXPECT_LT(0, missed);
		EXPECT_EQ(-EBUSY, tracing_open(prog));
		EXPECT_EQ(missed, fdinfo_number(fd, "bpf_missed_budget"));
		close(fd);
	}
}

static void overflow_once(void)
{
	touch((char *)&watched);
}

TEST_F(budget, perf_event)
{
	int fd, prog = overflow_prog(&self->area);

	fd = overflow_open(PERF_TYPE_BREAKPOINT);
	if (fd < 0)
		SKIP(return, "breakpoints");
	ASSERT_EQ(0, set_limit(BUDGET, prog, LIMIT_TEXT));
	ASSERT_EQ(0, perf_set_bpf(fd, prog));
	/* QEMU takes some writes beside it for hits, too. */
	EXPECT_STREQ("nothing", wrong(fd, &self->area, overflow_once, 1, false));
	close(fd);
}

/* Hits on a CPU until there are ENOUGH runs on all; how often is in the slot of the CPU */
static bool hits_on(int cpu, struct area *area)
{
	bool enough;
	int n = 0;

	if (pin(cpu))
		return false;
	enough = wait_between(area_get(area, 0) >= ENOUGH, (hits(10), n += 10));
	area_set(area, 1 + cpu, n);
	return enough;
}

/* CPUs share it. Where they hit less often than LIMIT, nothing is missed. */
TEST_F(budget, two_cpus)
{
	int status, fd, prog = count_prog(&self->area, 0, 0);
	struct probe probe;
	__u64 start, runs;
	bool enough;
	pid_t child;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, set_limit(BUDGET, prog, LIMIT_TEXT));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	fd = attach_link(&probe, prog, 0);
	ASSERT_LE(0, fd);

	start = now_ns();
	child = fork();
	ASSERT_LE(0, child);
	enough = hits_on(!child, &self->area);
	if (!child)
		_exit(enough ? 0 : 1);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(enough);
	EXPECT_EQ(0, status);
	runs = area_get(&self->area, 0);
	EXPECT_GE(most_runs(start), runs);
	EXPECT_EQ(area_get(&self->area, 1) + area_get(&self->area, 2),
		  runs + fdinfo_number(fd, "bpf_missed_budget"));
}

/* Programs of other types can have the attach type of sessions, which says nothing there */
TEST_F(budget, no_session)
{
	static const enum bpf_prog_type types[] = {
		BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_PROG_TYPE_TRACEPOINT,
	};
	int i, fd, prog;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		const struct way *way = ways;

		while (way->type != types[i])
			way++;
		prog = count_prog_of(types[i], BPF_TRACE_KPROBE_SESSION, &self->area, i, 0);
		ASSERT_LE(0, prog);
		ASSERT_EQ(0, set_limit(BUDGET, prog, LIMIT_TEXT));
		fd = way_attach(way, &own_place, NULL, prog);
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		EXPECT_STREQ("nothing", wrong(fd, &self->area, hit_rename, 1, false))
			TH_LOG("%s", way->name);
		close(fd);
	}
}

/* Each attachment has a budget of its own, those that come later too */
TEST_F(budget, of_each_attachment)
{
	int i, fds[2], prog = count_prog(&self->area, 0, 0);
	struct probe probe;

	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = attach_link(&probe, prog, 0);
		ASSERT_LE(0, fds[i]);
	}
	hit();
	EXPECT_EQ(2, area_get(&self->area, 0));
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		EXPECT_EQ(0, fdinfo_number(fds[i], "bpf_missed_budget"));
		EXPECT_EQ(1, fdinfo_number(fds[i], "bpf_budget"));
	}
}

/* A session does not miss the return alone */
TEST_F(budget, both_ends_of_a_call)
{
	int fd, prog = count_prog_as(&self->area, 0, 0, BPF_TRACE_KPROBE_SESSION);

	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	fd = multi_link_one(FUNC, BPF_TRACE_KPROBE_SESSION, 0, prog);
	ASSERT_LE(0, fd);
	hit();
	EXPECT_EQ(2, area_get(&self->area, 0));
	hit();
	EXPECT_EQ(0, area_get(&self->area, 0) % 2);
	EXPECT_EQ(4, area_get(&self->area, 0) + fdinfo_number(fd, "bpf_missed_budget"));
}

/* What is over the budget is turned down, as any hit that a program missed */
TEST_F(budget, no_record)
{
	int fd, prog = count_prog(&self->area, 0, 1);
	struct probe probe;

	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	ASSERT_EQ(0, probe_create(&probe, 0));
	fd = filter_attach(INSTANCE, GROUP "/event", prog);
	ASSERT_LE(0, fd);
	hits(100);
	EXPECT_LT(0, fdinfo_number(fd, "bpf_missed_budget"));
	EXPECT_EQ(100, area_get(&self->area, 0) + fdinfo_number(fd, "bpf_missed_budget"));
	EXPECT_EQ(area_get(&self->area, 0), records(INSTANCE));
}

/* Whether as many of 1000 hits run the program as with that limit, none or a run a second */
static bool is_limited(struct area *area, bool limited)
{
	const __u64 start = now_ns(), before = area_get(area, 0);
	__u64 runs;

	hits(1000);
	runs = area_get(area, 0) - before;
	return limited ? runs <= 2 + (now_ns() - start) / 1000000000 : runs == 1000;
}

/* What holds for all, and for a program that has another limit, from now on */
TEST_F(budget, default_and_own)
{
	int fd, prog = count_prog(&self->area, 0, 0);
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	fd = attach_link(&probe, prog, 0);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(is_limited(&self->area, false));

	ASSERT_EQ(0, write_file(BUDGET, 0, "default 1"));
	EXPECT_TRUE(is_limited(&self->area, true));
	ASSERT_EQ(0, set_limit(BUDGET, prog, "max"));
	EXPECT_TRUE(is_limited(&self->area, false));
	EXPECT_STREQ("none", fdinfo_text(fd, "bpf_budget") ?: "none");
	ASSERT_EQ(0, set_limit(BUDGET, prog, "default"));
	EXPECT_TRUE(is_limited(&self->area, true));
	EXPECT_EQ(1, fdinfo_number(fd, "bpf_budget"));
	ASSERT_EQ(0, write_file(BUDGET, 0, "default max"));
	EXPECT_TRUE(is_limited(&self->area, false));
}

/* Nothing of what was left before is left when a limit is lowered */
TEST_F(budget, lowered)
{
	int prog = count_prog(&self->area, 0, 0);
	struct probe probe;

	ASSERT_EQ(0, set_limit(BUDGET, prog, "10000000"));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	ASSERT_LE(0, attach_link(&probe, prog, 0));
	EXPECT_TRUE(is_limited(&self->area, false));
	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	sleep_ms(20); /* a tick */
	EXPECT_TRUE(is_limited(&self->area, true));
}

TEST_F(budget, listed)
{
	int one = count_prog(&self->area, 0, 0), other = count_prog(&self->area, 0, 0);
	char text[128];

	ASSERT_EQ(0, set_limit(BUDGET, one, "10000000"));
	ASSERT_EQ(0, set_limit(BUDGET, other, "max"));
	ASSERT_EQ(0, write_file(BUDGET, 0, "default 1\n"));
	snprintf(text, sizeof(text), "default 1\nbpf-id:%u 10000000\nbpf-id:%u max\n",
		 prog_id(one), prog_id(other));
	EXPECT_STREQ(text, limits(BUDGET));
	ASSERT_EQ(0, set_limit(BUDGET, one, "default"));
	close(other);
	EXPECT_TRUE(wait_gone(!strcmp("default 1\n", limits(BUDGET)))) TH_LOG("%s", limits(BUDGET));
}

static bool refused(const char *what, int err, const char *error, int pos)
{
	return limit_refused(BUDGET, "default 7\n", what, err, error, pos);
}

/* A limit for a program that has no budget */
static bool refused_for(int prog)
{
	char line[64];

	snprintf(line, sizeof(line), "bpf-id:%u 100", prog_id(prog));
	return refused(line, EINVAL, NOT_ON_EVENTS, 7);
}

TEST_F(budget, refusals)
{
	int hook = btf_func_id("bpf_lsm_task_getscheduler");
	char long_line[PATH_MAX + 2] = "default 100";
	int file = open(BUDGET, O_WRONLY | O_CLOEXEC);
	union bpf_attr attr;

	ASSERT_LE(0, file);
	memset(long_line + strlen(long_line), ' ', PATH_MAX - strlen(long_line));
	long_line[PATH_MAX] = 'x';
	ASSERT_EQ(0, write_file(BUDGET, 0, "  default   7  "));
	EXPECT_TRUE(refused("100", EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("bpf-7 100", EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("defaults 100", EINVAL, BAD_LINE, 0));
	EXPECT_EQ(-EINVAL, neg_errno(write(file, long_line, sizeof(long_line) - 1)));
	EXPECT_TRUE(logged_in(ERROR_LOG, "bpf_budget", BAD_LINE, "default 100"));
	EXPECT_TRUE(refused("default", EINVAL, BAD_LIMIT, 7));
	EXPECT_TRUE(refused("default 0", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default 10000001", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default 4294967297", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default +5", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default default", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default 10 20", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("default ten", EINVAL, BAD_LIMIT, 8));
	EXPECT_TRUE(refused("bpf-id: 100", EINVAL, BAD_ID, 7));
	EXPECT_TRUE(refused("bpf-id:one 100", EINVAL, BAD_ID, 7));
	EXPECT_TRUE(refused("bpf-id:2147483647 100", ENOENT, NO_PROG, 7));
	EXPECT_TRUE(refused("bpf-id:2147483647 none", EINVAL, BAD_LIMIT, 18));

	EXPECT_TRUE(refused_for(count_prog_of(BPF_PROG_TYPE_SOCKET_FILTER, 0, &self->area, 0, 0)));
	EXPECT_TRUE(refused_for(tracing_try(BPF_TRACE_ITER, target_id(BPF_TRACE_ITER, "task"), 0)));
	EXPECT_TRUE(refused_for(tracing_try(BPF_MODIFY_RETURN,
					    btf_func_id("bpf_modify_return_test"), 0)));
	if (hook > 0) { /* CONFIG_BPF_LSM */
		load_attr(&attr, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, hook);
		EXPECT_TRUE(refused_for(body_load(&attr, &self->area, NULL, 0)));
	}
}

TEST_F(budget, takes_cap_sys_admin)
{
	int file = open(BUDGET, O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, file);
	ASSERT_EQ(0, drop_caps(CAP(PERFMON) | CAP(BPF)));
	EXPECT_EQ(-EPERM, neg_errno(write(file, "default 5", 9)));
	EXPECT_STREQ("default max\n", limits(BUDGET));
	EXPECT_STREQ(entry_at("bpf_budget", NO_ADMIN, "default 5", 0), entries());
}

TEST_HARNESS_MAIN
