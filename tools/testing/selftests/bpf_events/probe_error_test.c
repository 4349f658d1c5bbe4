// SPDX-License-Identifier: GPL-2.0
/*
 * A kprobe that cannot be: the errno, and the entry in tracefs' error_log that
 * says why
 */
#include "common.h"
#include "error_log.h"
#include "target.h"

#define AMBIGUOUS "Several functions have this name, choose one by its address"
#define UNKNOWN "The kernel has no symbol of this name; what is inlined has none"
#define MIDDLE "This is in the middle of an instruction"
#define NOTRACE "This function is notrace: events cannot be on it"
#define BLACKLISTED "This function is needed for probes, see kprobes/blacklist"
#define RETURN "A return probe can only be at the start of a function"
#define PLACE "Probes can only be in the code of functions"

#define KPTR_RESTRICT "/proc/sys/kernel/kptr_restrict"

/* Tries to have a probe, 0 if it worked */
static int probe_pmu(const struct target *target, unsigned int flags)
{
	struct probe probe;
	int fd;

	probe_create_at(&probe, "event", target->func, target->offset,
			flags | PROBE_PMU);
	fd = probe_open(&probe);
	return fd < 0 ? fd : close(fd);
}

static int probe_file(const struct target *target, unsigned int flags)
{
	struct probe probe;
	int err = probe_create_at(&probe, "event", target->func, target->offset,
				  flags);

	return err ?: event_remove("event");
}

/* An entry about the probe; @start is what the command has before the place */
static const char *entry_about(const struct target *target, const char *start, const char *why)
{
	size_t len;
	char cmd[512];
	int i;

	len = snprintf(cmd, sizeof(cmd), "%s%s+%lu", start, target->func, target->offset);
	for (i = 0; i < target->n; i++)
		len += snprintf(cmd + len, sizeof(cmd) - len, "%s 0x%llx",
				i ? "" : ":", target->addrs[i]);
	return entry_at("trace_kprobe", why, cmd, strlen(start));
}

/* That of perf_event_open() */
static const char *refusal(const struct target *target, unsigned int flags, const char *why)
{
	return entry_about(target, flags & PROBE_RETURN ? "perf_event_open r " :
							  "perf_event_open p ", why);
}

/* That of a write to kprobe_events */
static const char *file_refusal(const struct target *target, unsigned int flags,
				const char *why)
{
	return entry_about(target, flags & PROBE_RETURN ? "r:" GROUP "/event " :
							  "p:" GROUP "/event ", why);
}

static const char *log_prepare(void)
{
	const char *missing = prepare();

	if (!missing && access(ERROR_LOG, F_OK))
		return "CONFIG_TRACING";
	write_file(ERROR_LOG, O_TRUNC, "");
	return missing;
}

FIXTURE(refused) {
	struct target target;
	unsigned int last_flags;	/* the tests go from 0 up to this */
};

FIXTURE_VARIANT(refused) {
	struct target target;
	int (*find)(struct target *target);	/* if it has no fixed name */
	bool no_return;		/* as a return probe it is another matter */
	int err;		/* of perf_event_open() */
	int file_err;		/* of kprobe_events */
	const char *why;
};

FIXTURE_VARIANT_ADD(refused, unknown) {
	.target.func = "no_such_function", .err = -ENOENT, .file_err = -EINVAL,
	.why = UNKNOWN,
};

FIXTURE_VARIANT_ADD(refused, ambiguous) {
	.find = find_ambiguous, .err = -EADDRNOTAVAIL, .file_err = -EINVAL,
	.why = AMBIGUOUS,
};

FIXTURE_VARIANT_ADD(refused, blacklisted) {
	.find = find_blacklisted, .err = -EINVAL, .file_err = -EINVAL,
	.why = BLACKLISTED,
};

/* The ring buffer of the tracer is not traced itself */
FIXTURE_VARIANT_ADD(refused, notrace) {
	.target.func = "ring_buffer_unlock_commit", .err = -EINVAL,
	.file_err = -EINVAL, .why = NOTRACE,
};

FIXTURE_VARIANT_ADD(refused, middle_of_an_instruction) {
	.target.func = FUNC, .target.offset = 1, .no_return = true, .err = -EILSEQ,
	.file_err = -EILSEQ, .why = MIDDLE,
};

FIXTURE_VARIANT_ADD(refused, data_symbol) {
	.target.func = "linux_proc_banner", .err = -EINVAL, .file_err = -EINVAL,
	.why = PLACE,
};

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, log_prepare());
	self->last_flags = variant->no_return ? 0 : PROBE_RETURN;
	self->target = variant->target;
	if (variant->find)
		ASSERT_EQ(0, variant->find(&self->target));
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(refused, has_the_errno)
{
	unsigned int flags;

	for (flags = 0; flags <= self->last_flags; flags++) {
		EXPECT_EQ(variant->err, probe_pmu(&self->target, flags));
		EXPECT_EQ(variant->file_err, probe_file(&self->target, flags));
	}
}

TEST_F(refused, perf_event_open_leaves_an_entry)
{
	const struct target *target = &self->target;
	unsigned int flags;

	for (flags = 0; flags <= self->last_flags; flags++) {
		probe_pmu(target, flags);
		EXPECT_STREQ(refusal(target, flags, variant->why), entries());
	}
}

TEST_F(refused, kprobe_events_leaves_an_entry)
{
	const struct target *target = &self->target;
	unsigned int flags;

	for (flags = 0; flags <= self->last_flags; flags++) {
		probe_file(target, flags);
		EXPECT_STREQ(file_refusal(target, flags, variant->why), entries());
	}
}

/* What is different in one way or another */

FIXTURE(probe) {
	struct target target;
	__u64 kptr_restrict;
};

FIXTURE_SETUP(probe)
{
	SKIP_WITHOUT(return, log_prepare());
	ASSERT_TRUE(read_u64(KPTR_RESTRICT, &self->kptr_restrict));
}

FIXTURE_TEARDOWN_PARENT(probe)
{
	EXPECT_EQ(0, write_file(KPTR_RESTRICT, 0, "%llu", self->kptr_restrict));
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(probe, return_in_the_middle_of_a_function)
{
	const struct target target = { .func = FUNC, .offset = 8 };

	EXPECT_EQ(-EINVAL, probe_file(&target, PROBE_RETURN));
	EXPECT_STREQ(file_refusal(&target, PROBE_RETURN,
				  "Retprobe address must be an function entry"),
		     entries());
	EXPECT_EQ(-EINVAL, probe_pmu(&target, PROBE_RETURN));
	EXPECT_STREQ(refusal(&target, PROBE_RETURN, RETURN), entries());
}

/* It is kept for when the module comes */
TEST_F(probe, module_that_is_not_loaded)
{
	const struct target target = { .func = "no_such_module:function" };

	EXPECT_EQ(0, probe_file(&target, 0));
	EXPECT_STREQ("", entries());
	EXPECT_EQ(0, probe_pmu(&target, 0));
	EXPECT_STREQ("", entries());
}

/* Opens a probe by address, as the kprobe PMU has it */
static int open_at(__u64 addr, unsigned int flags)
{
	struct probe probe = { .flags = flags | PROBE_PMU };
	struct perf_event_attr attr;
	int err = probe_attr(&probe, &attr);

	attr.kprobe_func = 0;
	attr.kprobe_addr = addr;
	return err ?: perf_open(&attr, -1, 0);
}

TEST_F(probe, address_of_one_of_several)
{
	struct target *target = &self->target;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, find_ambiguous(target));
	for (i = 0; i < target->n; i++) {
		fd = open_at(target->addrs[i], 0);
		EXPECT_LE(0, fd);
		close(fd);
		fd = open_at(target->addrs[i], PROBE_RETURN);
		EXPECT_LE(0, fd);
		close(fd);
		ASSERT_EQ(0, event_add("event", "p 0x%llx", target->addrs[i]));
		ASSERT_EQ(0, event_remove("event"));
	}
	EXPECT_STREQ("", entries());
}

TEST_F(probe, address_in_the_middle_of_an_instruction)
{
	const char *how = "perf_event_open p ";
	__u64 addr = ksym(FUNC) + 1;
	char cmd[64];

	ASSERT_NE(1, addr);
	EXPECT_EQ(-EILSEQ, open_at(addr, 0));
	snprintf(cmd, sizeof(cmd), "%s0x%llx", how, addr);
	EXPECT_STREQ(entry_at("trace_kprobe", MIDDLE, cmd, strlen(how)),
		     entries());
}

/* Reads at the address in slot 1 into slot 0 */
static int read_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* What the kernel patches for its own ends, here the branches of static keys */
TEST_F(probe, code_that_is_patched_by_others)
{
	__u64 entry = ksym("__start___jump_table"), end = ksym("__stop___jump_table");
	__u64 text = ksym("_stext"), etext = ksym("_etext"), code;
	struct probe probe;
	struct area area;
	int n = 0;

	if (!entry || !end)
		SKIP(return, "CONFIG_JUMP_LABEL and CONFIG_KALLSYMS_ALL");
	ASSERT_EQ(0, area_create(&area));
	ASSERT_EQ(0, probe_create(&probe, 0));
	ASSERT_LE(0, attach(&probe, read_prog(&area)));
	/* An entry has the distances to the branch and to its target, and the key */
	for (; entry < end && n < 50; entry += 16) {
		area_set(&area, 1, entry);
		hit();
		code = entry + (__s32)area_get(&area, 0);
		if (code < text || code >= etext)
			continue;
		EXPECT_EQ(-EINVAL, open_at(code, 0));
		n++;
	}
	EXPECT_EQ(50, n);
}

TEST_F(probe, addresses_are_hidden)
{
	struct target *target = &self->target;
	pid_t child;

	ASSERT_EQ(0, find_ambiguous(target));
	target->n = 0;
	ASSERT_EQ(0, write_file(KPTR_RESTRICT, 0, "2"));
	EXPECT_EQ(-EADDRNOTAVAIL, probe_pmu(target, 0));
	EXPECT_STREQ(refusal(target, 0, AMBIGUOUS), entries());

	/* Or only from those without CAP_SYSLOG */
	ASSERT_EQ(0, write_file(KPTR_RESTRICT, 0, "1"));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(PERFMON)))
			_exit(1);
		_exit(probe_pmu(target, 0) == -EADDRNOTAVAIL ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ(refusal(target, 0, AMBIGUOUS), entries());
}

TEST_F(probe, no_entry_without_perfmon)
{
	const struct target target = { .func = "no_such_function" };
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(0))
			_exit(1);
		_exit(probe_pmu(&target, 0) == -EACCES ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("", entries());
}

TEST_F(probe, success_leaves_no_entry)
{
	const struct target target = { .func = FUNC };

	EXPECT_EQ(0, probe_pmu(&target, 0));
	EXPECT_EQ(0, probe_pmu(&target, PROBE_RETURN));
	EXPECT_EQ(0, probe_file(&target, 0));
	EXPECT_EQ(0, probe_file(&target, PROBE_RETURN));
	EXPECT_STREQ("", entries());
}

TEST_HARNESS_MAIN
