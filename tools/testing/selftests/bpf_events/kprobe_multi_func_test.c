// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that a kprobe_multi link cannot be about: the errno, which of the
 * many it was, and that none of the others has a probe afterwards
 */
#include "common.h"
#include "error_log.h"
#include "module.h"
#include "multi.h"

#define UNREADABLE 8
#define LONGEST 511
#define NO_SUCH_FUNC "bpf_events_no_such_function"
/* A function that ftrace cannot trace, nor can it trace what is no function */
#define NOTRACE_FUNC "register_fprobe_ips"
#define VARIABLE "jiffies"
/* A function that programs may not make fail */
#define FORBIDDEN_FUNC "htab_map_update_elem"

#define NO_SYMBOL "The kernel has no symbol of this name; what is inlined has none"
#define NOT_TRACED "This cannot be traced, available_filter_functions lists what can"
#define BAD_ADDR "Not the start of a function that can be traced"
#define SYMBOL_TWICE "This symbol is in the list twice"
#define MODULE_GOES "The module of this function is not loaded yet, or goes away"

struct functions {
	struct area area;
	struct multi multi;	/* good ones */
	int prog;
};

static int functions_create(struct functions *f, enum bpf_attach_type attach,
			    bool by_addr)
{
	int err = area_create(&f->area);

	if (err)
		return err;
	f->prog = tally_prog(&f->area, attach, 0);
	if (f->prog < 0)
		return f->prog;
	multi_init(&f->multi, attach, 0, by_addr);
	return write_file(ERROR_LOG, O_TRUNC, "");
}

static int try_good(const struct functions *f)
{
	union bpf_attr attr;

	multi_attr(&f->multi, f->prog, &attr);
	return multi_try(&attr);
}

/* With another function in one place, as a name or an address */
static int try_func(const struct functions *f, unsigned int i, const char *name,
		    __u64 addr)
{
	struct functions other = *f;

	other.multi.syms[i] = name;
	other.multi.addrs[i] = addr;
	return try_good(&other);
}

/* Whether error_log has one entry, which tells about this function */
static bool told_about(const char *error, const char *func)
{
	return logged(error, "LINK_CREATE kprobe_multi %s", func);
}

FIXTURE(symbol) {
	struct functions f;
};

FIXTURE_VARIANT(symbol) {
	enum bpf_attach_type attach;
};

FIXTURE_VARIANT_ADD(symbol, of_many) {
	.attach = BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(symbol, of_session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
};

FIXTURE_SETUP(symbol)
{
	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, functions_create(&self->f, variant->attach, false));
}

FIXTURE_TEARDOWN_PARENT(symbol)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

static const struct {
	const char *name;
	const char *why;
} bad_symbols[] = {
	{ NO_SUCH_FUNC, NO_SYMBOL },
	{ NOTRACE_FUNC, NOT_TRACED },
	{ VARIABLE, NOT_TRACED },
	{ FUNC "+0x4", NO_SYMBOL },
	{ FUNC " ", NO_SYMBOL },
};

TEST_F(symbol, not_of_a_function)
{
	int i, at;

	for (i = 0; i < ARRAY_SIZE(bad_symbols); i++) {
		for (at = 0; at < CALLS; at += CALLS / 2)
			EXPECT_EQ(-ESRCH, try_func(&self->f, at, bad_symbols[i].name, 0));
	}
	EXPECT_EQ(-ESRCH, try_func(&self->f, 1, "", 0));
	EXPECT_EQ(0, try_good(&self->f));
}

TEST_F(symbol, too_long)
{
	char name[LONGEST + 2];

	memset(name, 'a', sizeof(name));
	name[LONGEST + 1] = '\0';
	EXPECT_EQ(-E2BIG, try_func(&self->f, 1, name, 0));
	name[LONGEST] = '\0';
	EXPECT_EQ(-ESRCH, try_func(&self->f, 1, name, 0));
}

TEST_F(symbol, unreadable)
{
	EXPECT_EQ(-EFAULT, try_func(&self->f, 0, NULL, 0));
	EXPECT_EQ(-EFAULT, try_func(&self->f, CALLS - 1, (char *)UNREADABLE, 0));
}

TEST_F(symbol, twice)
{
	EXPECT_EQ(-ESRCH, try_func(&self->f, 0, self->f.multi.syms[1], 0));
	EXPECT_EQ(-ESRCH, try_func(&self->f, 0, self->f.multi.syms[CALLS - 1], 0));
	EXPECT_EQ(0, try_good(&self->f));
}

/* What kprobes must stay away from, ftrace need not */
TEST_F(symbol, that_kprobes_refuse)
{
	char line[256];

	ASSERT_TRUE(find_line(DEBUGFS "/kprobes/blacklist", "\tkprobes_inc_nmissed_count\n",
			      line, sizeof(line)));
	EXPECT_EQ(0, try_func(&self->f, 1, "kprobes_inc_nmissed_count", 0));
}

TEST_F(symbol, is_told)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bad_symbols); i++) {
		EXPECT_EQ(-ESRCH, try_func(&self->f, 1, bad_symbols[i].name, 0));
		EXPECT_TRUE(told_about(bad_symbols[i].why, bad_symbols[i].name));
	}
	EXPECT_EQ(-ESRCH, try_func(&self->f, 0, self->f.multi.syms[2], 0));
	EXPECT_TRUE(told_about(SYMBOL_TWICE, self->f.multi.syms[2]));

	/* What a terminal would do as it is told to */
	EXPECT_EQ(-ESRCH, try_func(&self->f, 1, "no\033such\nfunction", 0));
	EXPECT_TRUE(told_about(NO_SYMBOL, "no?such?function\n"));
}

/* The log is of the one who may trace; the errno is of everybody */
TEST_F(symbol, is_not_told_without_perfmon)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)))
			_exit(1);
		_exit(try_func(&self->f, 1, NO_SUCH_FUNC, 0) == -ESRCH ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("", entries());
}

static int override_prog(enum bpf_attach_type attach)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_override_return),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.expected_attach_type = attach;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

/* System calls may be made to fail, other functions only if the kernel lists them */
TEST_F(symbol, that_may_not_be_overridden)
{
	self->f.prog = override_prog(variant->attach);
	if (self->f.prog == -EINVAL)
		SKIP(return, "CONFIG_BPF_KPROBE_OVERRIDE");
	ASSERT_LE(0, self->f.prog);
	EXPECT_EQ(0, try_good(&self->f));
	EXPECT_EQ(-EINVAL, try_func(&self->f, 2, FORBIDDEN_FUNC, 0));
	EXPECT_TRUE(told_about(OVERRIDES, "0x"));
}

/* A module takes no probes while it comes or goes, though its functions can be found */

FIXTURE(leaving) {
	struct functions f;
};

FIXTURE_SETUP(leaving)
{
	const char *missing = multi_prepare(), *path = test_module(LEAVING_MODULE);

	SKIP_WITHOUT(return, missing);
	if (!path)
		SKIP(return, LEAVING_MODULE);
	ASSERT_EQ(0, functions_create(&self->f, BPF_TRACE_KPROBE_MULTI, false));
}

FIXTURE_TEARDOWN_PARENT(leaving)
{
	write_file(LEAVING_LEAVE, 0, "1");
	unload_module(LEAVING_MODULE);
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(leaving, module)
{
	pid_t child;

	ASSERT_EQ(0, load_module(test_module(LEAVING_MODULE)));
	EXPECT_EQ(0, try_func(&self->f, 1, LEAVING_FUNC, 0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(-unload_module(LEAVING_MODULE));
	ASSERT_TRUE(wait_until(leaving_is("going")));

	EXPECT_EQ(-EINVAL, try_func(&self->f, 1, LEAVING_FUNC, 0));
	EXPECT_TRUE(told_about(MODULE_GOES, "0x"));

	ASSERT_EQ(0, write_file(LEAVING_LEAVE, 0, "1"));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(-ESRCH, try_func(&self->f, 1, LEAVING_FUNC, 0));
	EXPECT_TRUE(told_about(NO_SYMBOL, LEAVING_FUNC));
}

/* One whose init fails in the end goes, whatever refers to it */
TEST_F(leaving, module_that_does_not_come)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		_exit(-load_module_with(test_module(LEAVING_MODULE), LEAVING_REFUSES));
	ASSERT_TRUE(wait_until(leaving_is("coming")));

	EXPECT_EQ(-EINVAL, try_func(&self->f, 1, LEAVING_FUNC, 0));
	EXPECT_TRUE(told_about(MODULE_GOES, "0x"));

	ASSERT_EQ(0, write_file(LEAVING_LEAVE, 0, "1"));
	EXPECT_EQ(ENODEV, child_status(child));
}

/* By its address */

FIXTURE(address) {
	struct functions f;
	__u64 bad[8];
};

FIXTURE_VARIANT(address) {
	enum bpf_attach_type attach;
};

FIXTURE_VARIANT_ADD(address, of_many) {
	.attach = BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(address, of_session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
};

FIXTURE_SETUP(address)
{
	const char * const names[] = { NOTRACE_FUNC, VARIABLE };
	__u64 addrs[ARRAY_SIZE(names)];

	SKIP_WITHOUT(return, multi_prepare());
	ASSERT_EQ(0, functions_create(&self->f, variant->attach, true));
	ksyms(names, addrs, ARRAY_SIZE(names));
	self->bad[0] = 0;
	self->bad[1] = UNREADABLE;
	self->bad[2] = (unsigned long)make_calls;
	self->bad[3] = addrs[0];
	self->bad[4] = addrs[1];
	/* In the middle of functions */
	self->bad[5] = self->f.multi.addrs[0] - 1;
	self->bad[6] = self->f.multi.addrs[2] + 32;
	self->bad[7] = ~0ULL;
}

FIXTURE_TEARDOWN_PARENT(address)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(address, not_of_a_function)
{
	int i, at;

	for (i = 0; i < ARRAY_SIZE(self->bad); i++) {
		for (at = 0; at < CALLS; at += CALLS / 2)
			EXPECT_EQ(-EINVAL, try_func(&self->f, at, NULL, self->bad[i]));
	}
	EXPECT_EQ(0, try_good(&self->f));
}

/* It is no mistake, and the program runs once all the same */
TEST_F(address, twice)
{
	int ends = variant->attach == BPF_TRACE_KPROBE_SESSION ? 2 : 1;
	struct multi m = self->f.multi;

	m.addrs[0] = m.addrs[1];
	ASSERT_LE(0, multi_link(&m, self->f.prog));
	make_calls(0, 2);
	make_calls(1, 3);
	EXPECT_EQ(3 * ends, area_get(&self->f.area, TALLY_RUNS) +
			    area_get(&self->f.area, TALLY_RUNS + 1));
}

TEST_F(address, is_told)
{
	char hex[32];
	int i;

	for (i = 0; i < ARRAY_SIZE(self->bad); i++) {
		EXPECT_EQ(-EINVAL, try_func(&self->f, 1, NULL, self->bad[i]));
		snprintf(hex, sizeof(hex), "0x%llx", self->bad[i]);
		EXPECT_TRUE(told_about(BAD_ADDR, hex));
	}
}

TEST_HARNESS_MAIN
