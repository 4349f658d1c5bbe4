// SPDX-License-Identifier: GPL-2.0
/* Names that several functions have: a kprobe_multi link is on all of them */
#include "common.h"
#include "module.h"
#include "multi.h"
#include "target.h"

#define SAME_MODULE "bpf_events_same"
#define SAME_FUNC "bpf_events_same"
#define SAME_CALL "/sys/module/" SAME_MODULE "/parameters/call"
/* As many names as make the kernel look through all its symbols */
#define MANY 1100

FIXTURE(name) {
	struct area area;
	int prog;
};

FIXTURE_VARIANT(name) {
	enum bpf_attach_type attach;
	__u32 flags;
	int ends;	/* of a call, on each of which it runs */
};

FIXTURE_VARIANT_ADD(name, entry) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = 0,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(name, return) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(name, session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
	.ends = 2,
};

FIXTURE_SETUP(name)
{
	SKIP_WITHOUT(return, multi_prepare());
	unload_module(SAME_MODULE);
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = tally_prog(&self->area, variant->attach, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(name)
{
	EXPECT_STREQ("nothing", leftovers());
	unload_module(SAME_MODULE);
}

/* What the link's info says: how many functions; which, if there are arrays */
static unsigned int link_funcs(int link, __u64 *addrs, __u64 *cookies)
{
	struct bpf_link_info info = {};
	int err;

	info.kprobe_multi.addrs = (unsigned long)addrs;
	info.kprobe_multi.cookies = (unsigned long)cookies;
	info.kprobe_multi.count = addrs ? CALLS + MAX_ADDRS : 0;
	err = link_info(link, &info);
	return err ? 0 : info.kprobe_multi.count;
}

TEST_F(name, of_two_functions_of_a_module)
{
	const char *path = test_module(SAME_MODULE);
	__u64 addrs[CALLS + MAX_ADDRS], cookies[CALLS + MAX_ADDRS], want[MAX_ADDRS];
	int link;

	if (!path)
		SKIP(return, SAME_MODULE);
	ASSERT_EQ(0, load_module(path));
	if (symbol_addrs(SAME_FUNC, want) != 2)
		SKIP(return, "a compiler that leaves two functions of one name");
	link = multi_link_one(SAME_FUNC, variant->attach, variant->flags, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(2, fdinfo_number(link, "func_cnt"));
	ASSERT_EQ(2, link_funcs(link, addrs, cookies));
	EXPECT_TRUE((addrs[0] == want[0] && addrs[1] == want[1]) ||
		    (addrs[0] == want[1] && addrs[1] == want[0]));
	EXPECT_EQ(COOKIE(0), cookies[0]);
	EXPECT_EQ(COOKIE(0), cookies[1]);

	ASSERT_EQ(0, write_file(SAME_CALL, 0, "1"));
	EXPECT_EQ(2 * variant->ends, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(COOKIE(0), area_get(&self->area, TALLY_COOKIE));
	EXPECT_EQ(-EAGAIN, unload_module(SAME_MODULE));
	close(link);
	ASSERT_EQ(0, write_file(SAME_CALL, 0, "1"));
	EXPECT_EQ(2 * variant->ends, area_get(&self->area, TALLY_RUNS));
}

/* In a list of others, each of which keeps its cookie */
TEST_F(name, of_several_functions_of_the_kernel)
{
	struct target target = {};
	struct multi multi;
	__u64 addrs[CALLS + MAX_ADDRS], cookies[CALLS + MAX_ADDRS];
	unsigned int i, j, n, found = 0;
	int link;

	if (find_ambiguous(&target))
		SKIP(return, "a name that several functions have");
	multi_init(&multi, variant->attach, variant->flags, false);
	multi.syms[2] = target.func;
	link = multi_link(&multi, self->prog);
	ASSERT_LE(0, link);
	n = link_funcs(link, addrs, cookies);
	EXPECT_EQ(CALLS - 1 + target.n, n);
	for (i = 0; i < n; i++) {
		for (j = 0; j < target.n; j++)
			found += addrs[i] == target.addrs[j] && cookies[i] == COOKIE(2);
	}
	EXPECT_EQ(target.n, found);
	for (i = 0; i < CALLS; i++) {
		if (i == 2)
			continue;
		make_calls(i, 1);
		EXPECT_EQ(variant->ends, area_get(&self->area, TALLY_RUNS + i));
		EXPECT_EQ(ksym(calls[i].func), area_get(&self->area, TALLY_IP + i));
		EXPECT_EQ(COOKIE(i), area_get(&self->area, TALLY_COOKIE + i));
	}
}

/* What the kernel has is not taken from a module, also if others are looked for there. */
TEST_F(name, of_a_function_of_the_kernel_and_of_a_module)
{
	struct multi both = {
		.attach = variant->attach, .flags = variant->flags, .cnt = 2,
		.syms = { FUNC2, SAME_FUNC }, .cookies = { COOKIE(0), COOKIE(1) },
	};
	const char *path = test_module(SAME_MODULE);
	__u64 addrs[MAX_ADDRS];
	int link;

	if (!path)
		SKIP(return, SAME_MODULE);
	ASSERT_EQ(0, load_module(path));
	if (symbol_addrs(FUNC2, addrs) != 2)
		SKIP(return, "x86");
	link = multi_link(&both, self->prog);
	ASSERT_LE(0, link);
	EXPECT_EQ(3, link_funcs(link, NULL, NULL));
	ASSERT_EQ(0, write_file(SAME_CALL, 0, "1"));
	EXPECT_EQ(0, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(2 * variant->ends, area_get(&self->area, TALLY_RUNS + 1));
	make_calls(1, 1);
	EXPECT_EQ(variant->ends, area_get(&self->area, TALLY_RUNS));
	close(link);

	/* Nor does a module make two of a name that is in the list twice. */
	both.syms[1] = FUNC2;
	EXPECT_EQ(-ESRCH, multi_link(&both, self->prog));
}

TEST_F(name, in_a_long_list)
{
	char (*names)[64] = calloc(MAX_NAMES, sizeof(*names));
	unsigned int i, n, all = 0, cnt = 0;
	const char *syms[MANY];
	union bpf_attr attr = {};
	int link;

	ASSERT_NE(NULL, names);
	n = read_traceable(names);
	for (i = 0; i + 1 < n && strcmp(names[i], names[i + 1]); i++)
		;
	if (i + MANY >= n)
		SKIP(return, "a name that several functions have");
	for (; i < n; i++) {
		if (strlen(names[i]) == sizeof(names[i]) - 1)
			continue;	/* cut off */
		if (!cnt || strcmp(names[i], syms[cnt - 1])) {
			if (cnt == MANY)
				break;
			syms[cnt++] = names[i];
		}
		all++;
	}
	ASSERT_EQ(MANY, cnt);
	ASSERT_LT(MANY, all);
	/* Its cookies are 0, and so is where it tallies */
	attr.link_create.prog_fd = self->prog;
	attr.link_create.attach_type = variant->attach;
	attr.link_create.kprobe_multi.flags = variant->flags;
	attr.link_create.kprobe_multi.cnt = cnt;
	attr.link_create.kprobe_multi.syms = (unsigned long)syms;
	area_set(&self->area, TALLY_TGID, getpid());
	link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, link);
	EXPECT_EQ(all, link_funcs(link, NULL, NULL));
	close(link);
}

TEST_HARNESS_MAIN
