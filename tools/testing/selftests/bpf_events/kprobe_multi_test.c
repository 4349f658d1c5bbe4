// SPDX-License-Identifier: GPL-2.0
/* A kprobe_multi link runs one program on many functions */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "multi.h"

#define PIN BPFFS "/bpf_events_multi"

FIXTURE(multi) {
	struct area area;
	struct multi multi;
	int prog;
	int link;
};

FIXTURE_VARIANT(multi) {
	__u32 flags;
	bool by_addr;
};

FIXTURE_VARIANT_ADD(multi, entry_by_symbol) {
	.flags = 0,
	.by_addr = false,
};

FIXTURE_VARIANT_ADD(multi, entry_by_address) {
	.flags = 0,
	.by_addr = true,
};

FIXTURE_VARIANT_ADD(multi, return_by_symbol) {
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.by_addr = false,
};

FIXTURE_VARIANT_ADD(multi, return_by_address) {
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.by_addr = true,
};

FIXTURE_SETUP(multi)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	multi_init(&self->multi, BPF_TRACE_KPROBE_MULTI, variant->flags,
		   variant->by_addr);
	self->prog = tally_prog(&self->area, BPF_TRACE_KPROBE_MULTI, 0);
	self->link = multi_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(multi)
{
	unlink(PIN);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(multi, runs_on_every_hit_of_every_function)
{
	int i;

	for (i = 0; i < CALLS; i++)
		make_calls(i, i + 1);
	EXPECT_STREQ("1 2 3 4 5", tally(&self->area));
	for (i = CALLS - 1; i >= 0; i--)
		make_calls(i, 10);
	EXPECT_STREQ("11 12 13 14 15", tally(&self->area));

	close(self->link);
	for (i = 0; i < CALLS; i++)
		make_calls(i, 3);
	EXPECT_STREQ("11 12 13 14 15", tally(&self->area));
}

TEST_F(multi, runs_on_every_cpu)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_CONF), pinned = 0;

	for (cpu = 0; cpu < cpus; cpu++) {
		if (pin(cpu))
			continue;
		make_calls(0, 2);
		EXPECT_EQ(2 * ++pinned, area_get(&self->area, TALLY_RUNS));
	}
	EXPECT_LE(1, pinned);
}

TEST_F(multi, knows_the_function_and_its_cookie)
{
	__u64 addrs[CALLS];
	int i;

	ksyms(self->multi.syms, addrs, CALLS);
	for (i = 0; i < CALLS; i++)
		make_calls(i, 1);
	for (i = 0; i < CALLS; i++) {
		EXPECT_EQ(COOKIE(i), area_get(&self->area, TALLY_COOKIE + i));
		EXPECT_EQ(addrs[i], area_get(&self->area, TALLY_IP + i));
	}
}

TEST_F(multi, cookies_are_zero_unless_given)
{
	union bpf_attr attr;
	__u64 addrs[CALLS];
	int i;

	ksyms(self->multi.syms, addrs, CALLS);
	close(self->link);
	area_set(&self->area, TALLY_COOKIE, 0x5555);
	multi_attr(&self->multi, self->prog, &attr);
	attr.link_create.kprobe_multi.cookies = 0;
	self->link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, self->link);
	for (i = 0; i < CALLS; i++) {
		make_calls(i, 2);
		EXPECT_EQ(0, area_get(&self->area, TALLY_COOKIE));
		EXPECT_EQ(addrs[i], area_get(&self->area, TALLY_IP));
	}
	EXPECT_STREQ("10 0 0 0 0", tally(&self->area));
}

TEST_F(multi, sees_arguments_or_the_return_value)
{
	const int args[] = { SCHED_FIFO, SCHED_OTHER, SCHED_RR, 12345 };
	int i, slot = variant->flags ? TALLY_RET : TALLY_SYS_ARG;

	for (i = 0; i < ARRAY_SIZE(args); i++) {
		long ret = neg_errno(hit_arg(args[i]));

		EXPECT_EQ(variant->flags ? ret : args[i],
			  (__s64)area_get(&self->area, slot));
	}
	EXPECT_EQ(-EINVAL, neg_errno(hit_arg(12345)));
}

TEST_F(multi, what_the_program_returns_does_not_matter)
{
	const int rets[] = { 0, 1, 2, -1 };
	int i, links[ARRAY_SIZE(rets)];

	for (i = 0; i < ARRAY_SIZE(rets); i++) {
		links[i] = multi_link(&self->multi,
				      tally_prog(&self->area,
						 BPF_TRACE_KPROBE_MULTI, rets[i]));
		ASSERT_LE(0, links[i]);
	}
	/* All of them run, and with the first one there are five */
	EXPECT_EQ(neg_errno(hit_arg(SCHED_FIFO)), 99);
	EXPECT_EQ(neg_errno(hit_arg(12345)), -EINVAL);
	EXPECT_STREQ("10 0 0 0 0", tally(&self->area));
	for (i = 0; i < ARRAY_SIZE(rets); i++) {
		close(links[i]);
		make_calls(1, 1);
	}
	EXPECT_STREQ("10 10 0 0 0", tally(&self->area));
}

/* One program twice, on functions some of which both links have */
TEST_F(multi, two_links_of_one_program)
{
	struct multi other = {
		.attach = BPF_TRACE_KPROBE_MULTI, .flags = variant->flags,
		.cnt = 2, .syms = { calls[4].func, calls[2].func },
		.cookies = { COOKIE(14), COOKIE(12) },
	};
	int i, link = multi_link(&other, self->prog);

	ASSERT_LE(0, link);
	for (i = 0; i < CALLS; i++)
		make_calls(i, 2);
	EXPECT_STREQ("2 2 2 2 2", tally(&self->area));
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS + 12));
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS + 14));

	close(self->link);
	for (i = 0; i < CALLS; i++)
		make_calls(i, 2);
	EXPECT_STREQ("2 2 2 2 2", tally(&self->area));
	EXPECT_EQ(4, area_get(&self->area, TALLY_RUNS + 12));
	EXPECT_EQ(4, area_get(&self->area, TALLY_RUNS + 14));
}

/* Beside a probe that came by other means */
TEST_F(multi, shares_a_function_with_a_kprobe)
{
	struct probe probe;
	int fd;

	ASSERT_EQ(0, probe_create(&probe, variant->flags ? PROBE_RETURN : 0));
	fd = attach(&probe, count_prog(&self->area, TALLIES - 1, 0));
	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(3, area_get(&self->area, TALLIES - 1));
	close(self->link);
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(6, area_get(&self->area, TALLIES - 1));
}

/* Several calls of one function are under way, and each returns once */
TEST_F(multi, calls_that_sleep)
{
	int link = multi_link_one(WAIT_FUNC, BPF_TRACE_KPROBE_MULTI,
				  variant->flags, self->prog);

	ASSERT_LE(0, link);
	ASSERT_EQ(0, wait_together(3));
	EXPECT_EQ(3, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(ksym(WAIT_FUNC), area_get(&self->area, TALLY_IP));
}

TEST_F(multi, exit)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(multi, sigkill)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(stands_still(&self->area));
}

TEST_F(multi, pin)
{
	int link;

	ASSERT_EQ(0, obj_pin(self->link, PIN));
	close(self->link);
	EXPECT_TRUE(runs(&self->area));
	link = obj_get(PIN);
	ASSERT_LE(0, link);
	EXPECT_EQ(0, unlink(PIN));
	EXPECT_TRUE(runs(&self->area));
	close(link);
	EXPECT_TRUE(comes_to_a_halt(&self->area));
}

/* Such a link cannot be detached but by its end, nor get another program */
TEST_F(multi, detach_and_update)
{
	union bpf_attr attr = { .link_detach.link_fd = self->link };

	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_LINK_DETACH, &attr));
	memset(&attr, 0, sizeof(attr));
	attr.link_update.link_fd = self->link;
	attr.link_update.new_prog_fd = tally_prog(&self->area,
						  BPF_TRACE_KPROBE_MULTI, 0);
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
	EXPECT_TRUE(runs(&self->area));
}

/* All system calls at once: hundreds of functions */

#define MOST 1024
/* Where calls that are not in calls[] are tallied */
#define OTHERS (TALLIES - 1)

FIXTURE(many) {
	struct area area;
	__u32 cnt;
	char *syms[MOST];
	__u64 cookies[MOST];
};

FIXTURE_VARIANT(many) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(many, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(many, return) {
	.flags = BPF_F_KPROBE_MULTI_RETURN,
};

static __u64 cookie_of(const char *func)
{
	int i;

	for (i = 0; i < CALLS && strcmp(calls[i].func, func); i++)
		;
	return COOKIE(i < CALLS ? i : OTHERS);
}

FIXTURE_SETUP(many)
{
	char line[256];
	FILE *file;

	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	file = fopen(TRACEFS "/available_filter_functions", "re");
	ASSERT_NE(NULL, file);
	while (self->cnt < MOST && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n ")] = '\0';
		if (strncmp(line, SYS_FUNC(""), strlen(SYS_FUNC(""))))
			continue;
		self->syms[self->cnt] = strdup(line);
		self->cookies[self->cnt++] = cookie_of(line);
	}
	fclose(file);
	ASSERT_LT(200, self->cnt);
}

FIXTURE_TEARDOWN_PARENT(many)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(many, each_hit_is_counted)
{
	union bpf_attr attr = {
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi = {
			.flags = variant->flags,
			.cnt = self->cnt,
			.syms = (unsigned long)self->syms,
			.cookies = (unsigned long)self->cookies,
		},
	};
	int i, n, link, prog = tally_prog(&self->area, BPF_TRACE_KPROBE_MULTI, 0);
	__u64 others;

	attr.link_create.prog_fd = prog;
	area_set(&self->area, TALLY_TGID, getpid());
	link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, link);
	for (n = 1; n <= 100; n++) {
		for (i = 0; i < CALLS; i++)
			make_calls(i, i + 1);
	}
	EXPECT_STREQ("100 200 300 400 500", tally(&self->area));

	/* Nobody makes another call in between */
	others = area_get(&self->area, TALLY_RUNS + OTHERS);
	for (n = 0; n < 7; n++)
		syscall(__NR_getpgid, 0);
	EXPECT_EQ(others + 7, area_get(&self->area, TALLY_RUNS + OTHERS));

	close(link);
	others = area_get(&self->area, TALLY_RUNS + OTHERS);
	for (n = 0; n < 7; n++)
		syscall(__NR_getpgid, 0);
	EXPECT_EQ(others, area_get(&self->area, TALLY_RUNS + OTHERS));
	EXPECT_EQ(0, misses(prog));
}

TEST_HARNESS_MAIN
