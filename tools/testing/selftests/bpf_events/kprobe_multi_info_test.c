// SPDX-License-Identifier: GPL-2.0
/* What a kprobe_multi link tells: BPF_OBJ_GET_INFO_BY_FD, fdinfo, statistics */
#include "common.h"
#include "multi.h"

#define KPTR_RESTRICT "/proc/sys/kernel/kptr_restrict"
#define UNTOUCHED 0x5555555555555555ULL
#define ROOM 8

struct told {
	struct multi multi;
	int link;
	__u64 addrs[ROOM], cookies[ROOM];
	struct bpf_link_info info;
};

FIXTURE(info) {
	struct area area;
	struct told t;
	int prog;
	__u64 kptr_restrict;
};

FIXTURE_VARIANT(info) {
	enum bpf_attach_type attach;
	__u32 flags;
	int ends;	/* of a call, on each of which it runs */
};

FIXTURE_VARIANT_ADD(info, entry) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = 0,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(info, return) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(info, session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
	.ends = 2,
};

FIXTURE_SETUP(info)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_TRUE(read_u64(KPTR_RESTRICT, &self->kptr_restrict));
	ASSERT_EQ(0, area_create(&self->area));
	multi_init(&self->t.multi, variant->attach, variant->flags, true);
	self->prog = tally_prog(&self->area, variant->attach, 0);
	self->t.link = multi_link(&self->t.multi, self->prog);
	ASSERT_LE(0, self->t.link);
}

FIXTURE_TEARDOWN_PARENT(info)
{
	write_file(KPTR_RESTRICT, 0, "%llu", self->kptr_restrict);
	EXPECT_STREQ("nothing", leftovers());
}

/* Asks with these buffers and says how much fits into them */
static int ask(struct told *t, void *addrs, void *cookies,
	       __u32 count)
{
	memset(t->addrs, 0x55, sizeof(t->addrs));
	memset(t->cookies, 0x55, sizeof(t->cookies));
	memset(&t->info, 0, sizeof(t->info));
	t->info.kprobe_multi.addrs = (unsigned long)addrs;
	t->info.kprobe_multi.cookies = (unsigned long)cookies;
	t->info.kprobe_multi.count = count;
	return link_info(t->link, &t->info);
}

static int ask_all(struct told *t)
{
	return ask(t, t->addrs, t->cookies, CALLS);
}

/* How many of the functions are in the buffers, each with its cookie */
static int found(struct told *t)
{
	int i, j, n = 0;

	for (i = 0; i < CALLS; i++) {
		for (j = 0; j < ROOM; j++)
			n += t->addrs[j] == t->multi.addrs[i] &&
			     t->cookies[j] == t->multi.cookies[i];
	}
	return n;
}

TEST_F(info, functions_and_cookies)
{
	struct told *t = &self->t;

	ASSERT_EQ(0, ask_all(t));
	EXPECT_EQ(BPF_LINK_TYPE_KPROBE_MULTI, t->info.type);
	EXPECT_NE(0, t->info.id);
	EXPECT_EQ(prog_id(self->prog), t->info.prog_id);
	EXPECT_EQ(CALLS, t->info.kprobe_multi.count);
	EXPECT_EQ(variant->flags, t->info.kprobe_multi.flags);
	EXPECT_EQ(0, t->info.kprobe_multi.missed);
	EXPECT_EQ(CALLS, found(t));

	/* More room than needed */
	ASSERT_EQ(0, ask(t, t->addrs, t->cookies, ROOM));
	EXPECT_EQ(CALLS, t->info.kprobe_multi.count);
	EXPECT_EQ(CALLS, found(t));
	EXPECT_EQ(UNTOUCHED, t->addrs[CALLS]);
	EXPECT_EQ(UNTOUCHED, t->cookies[CALLS]);
}

TEST_F(info, without_buffers)
{
	struct told *t = &self->t;

	ASSERT_EQ(0, ask(t, NULL, NULL, 0));
	EXPECT_EQ(BPF_LINK_TYPE_KPROBE_MULTI, t->info.type);
	EXPECT_EQ(CALLS, t->info.kprobe_multi.count);
	EXPECT_EQ(variant->flags, t->info.kprobe_multi.flags);

	/* The cookies are asked for with the addresses or not at all */
	ASSERT_EQ(0, ask(t, t->addrs, NULL, CALLS));
	EXPECT_EQ(CALLS, t->info.kprobe_multi.count);
	EXPECT_EQ(UNTOUCHED, t->cookies[0]);
	EXPECT_NE(UNTOUCHED, t->addrs[CALLS - 1]);
}

TEST_F(info, link_without_cookies)
{
	struct told *t = &self->t;
	union bpf_attr attr;
	int i;

	close(t->link);
	multi_attr(&t->multi, self->prog, &attr);
	attr.link_create.kprobe_multi.cookies = 0;
	t->link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, t->link);
	ASSERT_EQ(0, ask_all(t));
	for (i = 0; i < CALLS; i++)
		EXPECT_EQ(0, t->cookies[i]);
	memset(t->multi.cookies, 0, sizeof(t->multi.cookies));
	EXPECT_EQ(CALLS, found(t));
}

TEST_F(info, too_little_room)
{
	struct told *t = &self->t;
	int i;

	for (i = 1; i < CALLS; i++) {
		EXPECT_EQ(-ENOSPC, ask(t, t->addrs, t->cookies, i));
		/* As much as there is room for is there */
		EXPECT_EQ(i, found(t));
		EXPECT_EQ(UNTOUCHED, t->addrs[i]);
		EXPECT_EQ(UNTOUCHED, t->cookies[i]);
	}
}

TEST_F(info, buffers_and_counts_that_do_not_match)
{
	struct told *t = &self->t;

	EXPECT_EQ(-EINVAL, ask(t, NULL, NULL, CALLS));
	EXPECT_EQ(-EINVAL, ask(t, t->addrs, NULL, 0));
	EXPECT_EQ(-EINVAL, ask(t, t->addrs, t->cookies, 0));
	EXPECT_EQ(-EINVAL, ask(t, NULL, t->cookies, 0));
	EXPECT_EQ(-EINVAL, ask(t, NULL, t->cookies, CALLS));
	EXPECT_EQ(-EFAULT, ask(t, (void *)8, t->cookies, CALLS));
	EXPECT_EQ(-EFAULT, ask(t, t->addrs, (void *)8, CALLS));
	EXPECT_EQ(0, ask_all(t));
	EXPECT_EQ(CALLS, found(t));
}

/* How many addresses a caller with these capabilities gets to see */
static int seen_with(struct told *t, __u64 caps)
{
	pid_t child = fork();

	if (!child) {
		if (drop_caps(caps) || ask_all(t))
			_exit(100);
		_exit(found(t));
	}
	return child_status(child);
}

TEST_F(info, addresses_are_shown_to_who_may_see_them)
{
	struct told *t = &self->t;
	int i;

	ASSERT_EQ(0, write_file(KPTR_RESTRICT, 0, "1"));
	EXPECT_EQ(CALLS, seen_with(t, CAP(SYSLOG)));
	EXPECT_EQ(0, seen_with(t, CAP(BPF) | CAP(PERFMON)));

	ASSERT_EQ(0, write_file(KPTR_RESTRICT, 0, "2"));
	EXPECT_EQ(0, seen_with(t, CAP(SYSLOG)));
	/* The rest is no secret */
	ASSERT_EQ(0, ask_all(t));
	EXPECT_EQ(CALLS, t->info.kprobe_multi.count);
	for (i = 0; i < CALLS; i++) {
		EXPECT_EQ(0, t->addrs[i]);
		EXPECT_EQ(COOKIE(0), t->cookies[i] & ~0xfULL);
	}
}

TEST_F(info, fdinfo)
{
	struct told *t = &self->t;

	EXPECT_STREQ("kprobe_multi", fdinfo_text(t->link, "link_type"));
	EXPECT_EQ(link_id(t->link), fdinfo_number(t->link, "link_id"));
	EXPECT_EQ(prog_id(self->prog), fdinfo_number(t->link, "prog_id"));
}

TEST_F(info, fdinfo_counts_hits)
{
	struct told *t = &self->t;
	int other = multi_link(&t->multi, self->prog);

	ASSERT_LE(0, other);
	EXPECT_EQ(0, fdinfo_number(t->link, "bpf_prog_hits"));
	make_calls(0, 2);
	make_calls(1, 3);
	close(other);
	make_calls(2, 2);
	EXPECT_EQ(7 * variant->ends, fdinfo_number(t->link, "bpf_prog_hits"));
	EXPECT_EQ(0, fdinfo_number(t->link, "bpf_prog_missed"));
}

TEST_F(info, run_statistics)
{
	struct bpf_prog_info info;
	int stats;

	make_calls(0, 2);
	stats = stats_enable();
	ASSERT_LE(0, stats);
	make_calls(0, 5);
	make_calls(4, 5);
	close(stats);
	make_calls(0, 2);
	ASSERT_EQ(0, prog_info(self->prog, &info));
	EXPECT_EQ(10 * variant->ends, info.run_cnt);
	EXPECT_EQ(0, info.recursion_misses);
}

TEST_HARNESS_MAIN
