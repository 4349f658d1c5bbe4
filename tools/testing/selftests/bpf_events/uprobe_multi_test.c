// SPDX-License-Identifier: GPL-2.0
/* A uprobe_multi link runs one program on many functions of a file */
#include "common.h"
#include "hitter.h"
#include "umulti.h"

#define PIN BPFFS "/bpf_events_umulti"

FIXTURE(umulti) {
	struct area area;
	struct umulti multi;
	int prog;
	int link;
};

FIXTURE_VARIANT(umulti) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(umulti, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(umulti, return) {
	.flags = BPF_F_UPROBE_MULTI_RETURN,
};

FIXTURE_SETUP(umulti)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	umulti_init(&self->multi, variant->flags);
	self->prog = tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0);
	self->link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(umulti)
{
	unlink(PIN);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(umulti, runs_on_every_hit_of_every_function)
{
	int i;

	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, i + 1);
	EXPECT_STREQ("1 2 3 0 0", tally(&self->area));
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, 10);
	EXPECT_STREQ("11 12 13 0 0", tally(&self->area));

	close(self->link);
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, 3);
	EXPECT_STREQ("11 12 13 0 0", tally(&self->area));
}

TEST_F(umulti, knows_the_function_and_its_cookie)
{
	int i;

	for (i = 0; i < USER_FUNCS; i++) {
		call_user(i, 1);
		EXPECT_EQ(COOKIE(i), area_get(&self->area, TALLY_COOKIE + i));
		EXPECT_EQ((unsigned long)user_funcs[i],
			  area_get(&self->area, TALLY_IP + i));
	}
}

TEST_F(umulti, cookies_are_zero_unless_given)
{
	union bpf_attr attr;
	int i;

	close(self->link);
	area_set(&self->area, TALLY_COOKIE, 0x5555);
	umulti_attr(&self->multi, self->prog, &attr);
	attr.link_create.uprobe_multi.cookies = 0;
	attr.link_create.uprobe_multi.ref_ctr_offsets = 0;
	self->link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, self->link);
	for (i = 0; i < USER_FUNCS; i++) {
		call_user(i, 2);
		EXPECT_EQ(0, area_get(&self->area, TALLY_COOKIE));
		EXPECT_EQ((unsigned long)user_funcs[i],
			  area_get(&self->area, TALLY_IP));
	}
	EXPECT_STREQ("6 0 0 0 0", tally(&self->area));
}

TEST_F(umulti, sees_arguments_or_the_return_value)
{
	int i, slot = variant->flags ? TALLY_RET : TALLY_ARG;
	const __u64 args[] = { 7, 0, ~0ULL, 1ULL << 63 };
	__u64 ret;

	for (i = 0; i < ARRAY_SIZE(args); i++) {
		ret = user_func2(args[i]);
		EXPECT_EQ(args[i] + 2, ret);
		EXPECT_EQ(variant->flags ? ret : args[i],
			  area_get(&self->area, slot + 1));
	}
}

TEST_F(umulti, what_the_program_returns_does_not_matter)
{
	const int rets[] = { 0, 1, 2, -1 };
	int i, link;

	close(self->link);
	for (i = 0; i < ARRAY_SIZE(rets); i++) {
		link = umulti_link(&self->multi,
				   tally_prog(&self->area,
					      BPF_TRACE_UPROBE_MULTI, rets[i]));
		ASSERT_LE(0, link);
		call_user(0, 3);
		call_user(1, 1);
		close(link);
		EXPECT_EQ(3 * (i + 1), area_get(&self->area, TALLY_RUNS));
	}
	EXPECT_STREQ("12 4 0 0 0", tally(&self->area));
}

/* One program twice, on functions some of which both links have */
TEST_F(umulti, two_links_of_one_program)
{
	struct umulti other = self->multi;
	int i, link;

	other.cnt = 2;
	other.cookies[0] = COOKIE(10);
	other.cookies[1] = COOKIE(11);
	link = umulti_link(&other, self->prog);
	ASSERT_LE(0, link);
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, 2);
	EXPECT_STREQ("2 2 2 0 0", tally(&self->area));
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS + 10));
	EXPECT_EQ(2, area_get(&self->area, TALLY_RUNS + 11));

	close(self->link);
	for (i = 0; i < USER_FUNCS; i++)
		call_user(i, 2);
	EXPECT_STREQ("2 2 2 0 0", tally(&self->area));
	EXPECT_EQ(4, area_get(&self->area, TALLY_RUNS + 10));
	EXPECT_EQ(4, area_get(&self->area, TALLY_RUNS + 11));
}

TEST_F(umulti, one_link_twice_on_one_offset)
{
	close(self->link);
	self->multi.offsets[2] = self->multi.offsets[0];
	self->link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
	call_user(0, 2);
	call_user(2, 2);
	EXPECT_STREQ("2 0 2 0 0", tally(&self->area));
}

TEST_F(umulti, ref_counters)
{
	int link, i;

	close(self->link);
	umulti_count_refs(&self->multi);
	for (i = 0; i < USER_FUNCS; i++)
		EXPECT_EQ(0, ref_ctr(i));
	self->link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, self->link);
	for (i = 0; i < USER_FUNCS; i++)
		EXPECT_EQ(1, ref_ctr(i));
	/* The counter is of the place, and a place can have one only */
	self->multi.cnt = 1;
	link = umulti_link(&self->multi, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(1, ref_ctr(0));
	self->multi.ref_ctr_offsets[0] += sizeof(__u16);
	EXPECT_EQ(-EINVAL, umulti_link(&self->multi, self->prog));
	call_user(0, 1);
	EXPECT_STREQ("2 0 0 0 0", tally(&self->area));

	close(self->link);
	EXPECT_EQ(1, ref_ctr(0));
	EXPECT_EQ(0, ref_ctr(1));
	EXPECT_EQ(0, ref_ctr(2));
	close(link);
	EXPECT_EQ(0, ref_ctr(0));
}

static bool user_runs(struct area *area)
{
	__u64 before = area_get(area, TALLY_RUNS);

	call_user(0, 3);
	return area_get(area, TALLY_RUNS) == before + 3;
}

static bool user_stands_still(struct area *area)
{
	__u64 before = area_get(area, TALLY_RUNS);

	call_user(0, 3);
	return area_get(area, TALLY_RUNS) == before;
}

TEST_F(umulti, exit)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->link);
	EXPECT_TRUE(user_runs(&self->area));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(user_stands_still(&self->area));
}

TEST_F(umulti, sigkill)
{
	int pipe_fd;
	pid_t child = holder(&pipe_fd);

	ASSERT_LT(0, child);
	close(self->link);
	EXPECT_TRUE(user_runs(&self->area));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(user_stands_still(&self->area));
}

TEST_F(umulti, pin)
{
	int link;

	ASSERT_EQ(0, obj_pin(self->link, PIN));
	close(self->link);
	EXPECT_TRUE(user_runs(&self->area));
	link = obj_get(PIN);
	ASSERT_LE(0, link);
	EXPECT_EQ(0, unlink(PIN));
	EXPECT_TRUE(user_runs(&self->area));
	close(link);
	EXPECT_TRUE(wait_until(user_stands_still(&self->area)));
}

TEST_F(umulti, detach_and_update)
{
	union bpf_attr attr = { .link_detach.link_fd = self->link };

	EXPECT_EQ(-EOPNOTSUPP, sys_bpf(BPF_LINK_DETACH, &attr));
	memset(&attr, 0, sizeof(attr));
	attr.link_update.link_fd = self->link;
	attr.link_update.new_prog_fd = tally_prog(&self->area,
						  BPF_TRACE_UPROBE_MULTI, 0);
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
	EXPECT_TRUE(user_runs(&self->area));
}

static long user_hit(int arg)
{
	return user_func1(arg);
}

/* close() has returned: the next hit, on whatever CPU, does not run it */
TEST_F(umulti, nothing_runs_after_close)
{
	struct hitters hitters;
	int i, link, prog, ok = 1;

	close(self->link);
	ASSERT_EQ(0, hitters_start_with(&hitters, &self->area, 0, user_hit));
	for (i = 0; ok && i < 5; i++) {
		prog = number_prog_as(&self->area, BPF_TRACE_UPROBE_MULTI, 0);
		link = umulti_link(&self->multi, prog);
		close(prog);
		ok = hitters_close(&hitters, link, true);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&hitters);
}

TEST_HARNESS_MAIN
