// SPDX-License-Identifier: GPL-2.0
/*
 * What BPF_LINK_CREATE to many kernel functions refuses: the errno, what
 * tracefs' error_log says, and that no function has a probe afterwards
 */
#include "common.h"
#include "error_log.h"
#include "multi.h"
#include "multi_error.h"

#define SESSION_RETURN \
	"A session runs at both ends of a call, and takes no BPF_F_KPROBE_MULTI_RETURN"

FIXTURE(error) {
	struct area area;
	struct multi multi;
	union bpf_attr attr;	/* without a mistake */
	int prog;
};

FIXTURE_VARIANT(error) {
	enum bpf_attach_type attach;
	enum bpf_attach_type other;
	__u32 flags;
	bool by_addr;
};

FIXTURE_VARIANT_ADD(error, entry_by_symbol) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.other = BPF_TRACE_KPROBE_SESSION,
	.by_addr = false,
};

FIXTURE_VARIANT_ADD(error, return_by_address) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.other = BPF_TRACE_KPROBE_SESSION,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.by_addr = true,
};

FIXTURE_VARIANT_ADD(error, session_by_symbol) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.other = BPF_TRACE_KPROBE_MULTI,
	.by_addr = false,
};

FIXTURE_VARIANT_ADD(error, session_by_address) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.other = BPF_TRACE_KPROBE_MULTI,
	.by_addr = true,
};

FIXTURE_SETUP(error)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = tally_prog(&self->area, variant->attach, 0);
	ASSERT_LE(0, self->prog);
	multi_init(&self->multi, variant->attach, variant->flags, variant->by_addr);
	multi_attr(&self->multi, self->prog, &self->attr);
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(error)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(error, none)
{
	int link = sys_bpf(BPF_LINK_CREATE, &self->attr);

	ASSERT_LE(0, link);
	make_calls(0, 1);
	EXPECT_LT(0, area_get(&self->area, TALLY_RUNS));
	EXPECT_STREQ("", entries());
}

TEST_F(error, unknown_flags)
{
	union bpf_attr attr = self->attr;

	expect_flags_refused(_metadata, multi_try, &attr, &attr.link_create.kprobe_multi.flags);
	attr = self->attr;
	attr.link_create.flags = 1;
	EXPECT_EQ(-EINVAL, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

/* It runs at the entry, too, whatever the flag asks for */
TEST_F(error, session_at_returns_only)
{
	union bpf_attr attr = self->attr;
	const char *cmd = "LINK_CREATE kprobe_multi flags 0x1";

	attr.link_create.kprobe_multi.flags = BPF_F_KPROBE_MULTI_RETURN;
	if (variant->attach == BPF_TRACE_KPROBE_SESSION) {
		EXPECT_EQ(-EINVAL, multi_try(&attr));
		EXPECT_STREQ(entry_at("bpf_event", SESSION_RETURN, cmd,
				      strlen("LINK_CREATE kprobe_multi ")), entries());
	} else {
		EXPECT_EQ(0, multi_try(&attr));
		EXPECT_STREQ("", entries());
	}
}

TEST_F(error, program_of_another_attach_type)
{
	const enum bpf_attach_type types[] = {
		0, BPF_TRACE_FENTRY, BPF_PERF_EVENT, BPF_TRACE_UPROBE_MULTI,
		variant->other,
	};
	union bpf_attr attr = self->attr;

	expect_types_refused(_metadata, multi_try, &self->attr, types, ARRAY_SIZE(types));
	attr.link_create.attach_type = __MAX_BPF_ATTACH_TYPE;
	EXPECT_EQ(-EINVAL, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

/* Only programs for links to many functions go there, and they go nowhere else */
TEST_F(error, perf_event)
{
	struct probe probe;
	int perf;

	ASSERT_EQ(0, probe_create(&probe, 0));
	perf = probe_open(&probe);
	ASSERT_LE(0, perf);
	EXPECT_EQ(-EINVAL, perf_set_bpf(perf, self->prog));
	EXPECT_STREQ(entry(IS_MULTI, "fd ", "SET_BPF " GROUP ":event fd %d BPF_PROG_TYPE_KPROBE",
			   self->prog), entries());
}

TEST_F(error, no_program_of_the_type)
{
	expect_programs_refused(_metadata, multi_try, &self->attr, self->area.fd);
}

TEST_F(error, sleepable_program)
{
	union bpf_attr attr = self->attr;

	attr.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_KPROBE,
						  variant->attach,
						  BPF_F_SLEEPABLE);
	ASSERT_LE(0, (int)attr.link_create.prog_fd);
	EXPECT_EQ(-EINVAL, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

TEST_F(error, symbols_and_addresses)
{
	union bpf_attr attr = self->attr;

	attr.link_create.kprobe_multi.syms = (unsigned long)self->multi.syms;
	attr.link_create.kprobe_multi.addrs = (unsigned long)self->multi.addrs;
	EXPECT_EQ(-EINVAL, multi_try(&attr));
	attr.link_create.kprobe_multi.syms = 0;
	attr.link_create.kprobe_multi.addrs = 0;
	EXPECT_EQ(-EINVAL, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

TEST_F(error, count)
{
	union bpf_attr attr = self->attr;

	expect_counts_refused(_metadata, multi_try, &attr, &attr.link_create.kprobe_multi.cnt);

	/* So many would do, but they are not there */
	attr.link_create.kprobe_multi.cnt = MOST;
	attr.link_create.kprobe_multi.cookies = UNREADABLE;
	EXPECT_EQ(-EFAULT, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

TEST_F(error, unreadable_memory)
{
	union bpf_attr attr = self->attr;
	long size = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* The last one is on a page that is not there */
	void *half = pages + size - 8 * (CALLS - 1);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + size, size));
	memcpy(half, variant->by_addr ? (void *)self->multi.addrs :
					(void *)self->multi.syms,
	       8 * (CALLS - 1));
	if (variant->by_addr)
		attr.link_create.kprobe_multi.addrs = UNREADABLE;
	else
		attr.link_create.kprobe_multi.syms = UNREADABLE;
	EXPECT_EQ(-EFAULT, multi_try(&attr));
	if (variant->by_addr)
		attr.link_create.kprobe_multi.addrs = (unsigned long)half;
	else
		attr.link_create.kprobe_multi.syms = (unsigned long)half;
	EXPECT_EQ(-EFAULT, multi_try(&attr));

	attr = self->attr;
	attr.link_create.kprobe_multi.cookies = UNREADABLE;
	EXPECT_EQ(-EFAULT, multi_try(&attr));
	attr.link_create.kprobe_multi.cookies = (unsigned long)half;
	EXPECT_EQ(-EFAULT, multi_try(&attr));
	EXPECT_EQ(0, multi_try(&self->attr));
}

TEST_F(error, without_capabilities)
{
	expect_no_caps_needed(_metadata, multi_try, &self->attr);
}

TEST_HARNESS_MAIN
