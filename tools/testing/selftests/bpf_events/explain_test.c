// SPDX-License-Identifier: GPL-2.0
/* What the verifier's log says that a program could do instead of what is refused */
#include "common.h"
#include "helper_list.h"
#include "load_log.h"
#include "tracing.h"

/* By the names in the log, and what of SPECIAL they have */
static const struct {
	const char *name;
	unsigned int special;
} kinds[] = {
	{ "kprobe", KPROBE | COOKIE },
	{ "tracepoint", COOKIE },
	{ "perf_event", COOKIE | SAMPLE },
	{ "raw_tracepoint", COOKIE },
	{ "tp_btf", TYPED | COOKIE },
	{ "fentry", TYPED | COOKIE | CALL },
	{ "fexit", TYPED | COOKIE | CALL },
	{ "fmod_ret", TYPED | COOKIE | CALL },
	{ "iter", TYPED | SEQ },
};

/* The line about a helper, without its end, as the documented list has it */
static void expected_line(char *line, size_t size, int helper)
{
	unsigned int needs = listed[helper] & SPECIAL;
	bool somewhere = needs & (PATH | STORAGE);
	size_t i, len = 0;

	if (somewhere)
		needs = TYPED;
	if (listed[helper] & OVERRIDE && !has_override()) {
		snprintf(line, size, "it needs CONFIG_BPF_KPROBE_OVERRIDE");
		return;
	}
	for (i = 0; listed[helper] && i < ARRAY_SIZE(kinds); i++) {
		if (!(needs & ~kinds[i].special))
			len += snprintf(line + len, size - len, "%s%s",
					len ? ", " : "these can: ", kinds[i].name);
	}
	snprintf(line + len, size - len, "%s",
		 !len ? "no program on an event can" : somewhere ? ", in some places" : "");
}

static int load_call(union bpf_attr *attr, int helper)
{
	const struct bpf_insn insns[] = {
		BPF_EMIT_CALL(helper),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	attr->insns = (unsigned long)insns;
	attr->insn_cnt = ARRAY_SIZE(insns);
	return load_log(attr);
}

/* The line of the log after the one with @text, or NULL without that one */
static const char *line_after(const char *text)
{
	static char line[256];
	const char *found = strstr(log_text, text), *end = found ? strchr(found, '\n') : NULL;

	if (!end)
		return NULL;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
	return line;
}

FIXTURE(helper) {
	union bpf_attr attr;
};

FIXTURE_VARIANT(helper) {
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	const char *target;
};

FIXTURE_VARIANT_ADD(helper, kprobe) {
	.type = BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(helper, uprobe_multi) {
	.type = BPF_PROG_TYPE_KPROBE, .attach = BPF_TRACE_UPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(helper, tracepoint) {
	.type = BPF_PROG_TYPE_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(helper, perf_event) {
	.type = BPF_PROG_TYPE_PERF_EVENT,
};

FIXTURE_VARIANT_ADD(helper, raw_tracepoint) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(helper, raw_tracepoint_writable) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE,
};

FIXTURE_VARIANT_ADD(helper, tp_btf) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_RAW_TP, .target = "sys_enter",
};

FIXTURE_VARIANT_ADD(helper, fentry) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_FENTRY, .target = FUNC,
};

FIXTURE_VARIANT_ADD(helper, fmod_ret) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_MODIFY_RETURN, .target = FUNC,
};

FIXTURE_VARIANT_ADD(helper, iter) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_ITER, .target = "bpf_map",
};

FIXTURE_SETUP(helper)
{
	SKIP_WITHOUT(return, prepare() ?: tracing_prepare());
	if (access("/proc/config.gz", R_OK))
		SKIP(return, "CONFIG_IKCONFIG_PROC");
	prog_attr(&self->attr, NULL, 0);
	self->attr.prog_type = variant->type;
	self->attr.expected_attach_type = variant->attach;
	if (variant->target)
		self->attr.attach_btf_id = target_id(variant->attach, variant->target);
}

FIXTURE_TEARDOWN_PARENT(helper)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(helper, is_for)
{
	int helper, refused = 0;
	char expected[256];
	const char *line;

	for (helper = 1; helper < __BPF_FUNC_MAX_ID; helper++) {
		close(load_call(&self->attr, helper));
		line = line_after("program of this type cannot use helper");
		if (!line)
			continue;
		refused++;
		expected_line(expected, sizeof(expected), helper);
		EXPECT_STREQ(expected, line) TH_LOG("%s", names[helper]);
	}
	EXPECT_LT(50, refused);
}

TEST_F(helper, takes_admin)
{
	ASSERT_EQ(0, drop_caps(CAP(BPF) | CAP(PERFMON)));
	EXPECT_EQ(-EINVAL, load_call(&self->attr, BPF_FUNC_probe_write_user));
	EXPECT_STREQ("writes to the memory of processes take CAP_SYS_ADMIN",
		     line_after("cannot use helper bpf_probe_write_user"));
}

/* What is no program on an event has the log that it had */
TEST(other_types)
{
	union bpf_attr attr;
	const char *line;

	if (prepare())
		SKIP(return, "%s", prepare());
	prog_attr(&attr, NULL, 0);
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	EXPECT_EQ(-EINVAL, load_call(&attr, BPF_FUNC_get_stackid));
	line = line_after("cannot use helper bpf_get_stackid");
	ASSERT_NE(NULL, line);
	EXPECT_EQ(0, strncmp(line, "processed ", strlen("processed "))) TH_LOG("%s", log_text);
}

/* Context */

FIXTURE(context) {
};

FIXTURE_VARIANT(context) {
	enum bpf_prog_type type;
	int first, end;		/* the bytes that can be read */
	const char *text;
};

FIXTURE_VARIANT_ADD(context, kprobe) {
	.type = BPF_PROG_TYPE_KPROBE, .end = REGS_SIZE,
	.text = "allowed here: aligned reads of struct pt_regs, bytes",
};

FIXTURE_VARIANT_ADD(context, tracepoint) {
	.type = BPF_PROG_TYPE_TRACEPOINT, .first = 8, .end = 8192,
	.text = "allowed here: aligned reads of the record, bytes",
};

FIXTURE_VARIANT_ADD(context, perf_event) {
	.type = BPF_PROG_TYPE_PERF_EVENT, .end = REGS_SIZE,
	.text = "allowed here: reads of whole registers, bytes",
};

FIXTURE_VARIANT_ADD(context, raw_tracepoint) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .end = 12 * 8,
	.text = "allowed here: aligned reads of arguments, bytes",
};

FIXTURE_VARIANT_ADD(context, raw_tracepoint_writable) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE, .end = 12 * 8,
	.text = "allowed here: aligned reads of arguments, bytes",
};

FIXTURE_SETUP(context)
{
	SKIP_WITHOUT(return, prepare());
}

FIXTURE_TEARDOWN_PARENT(context)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(context, can_be_read)
{
	const int after = variant->type == BPF_PROG_TYPE_PERF_EVENT ? 16 : 0;
	const struct {
		__u8 code;
		int off;
	} refused[] = {
		{ BPF_STX | BPF_MEM | BPF_DW, variant->first },
		{ BPF_LDX | BPF_MEM | BPF_DW, variant->end + after },
		{ BPF_LDX | BPF_MEM | BPF_W, variant->first + 2 },
	};
	char expected[256], access[64];
	union bpf_attr attr;
	unsigned int i;
	int len;

	len = snprintf(expected, sizeof(expected), "%s %d to %d", variant->text,
		       variant->first, variant->end - 1);
	if (after)
		snprintf(expected + len, sizeof(expected) - len,
			 ", and of sample_period and addr, bytes %d to %d",
			 variant->end, variant->end + after - 1);
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		bool load_insn = BPF_CLASS(refused[i].code) == BPF_LDX;
		const struct bpf_insn insns[] = {
			BPF_MOV64_IMM(BPF_REG_0, 0),
			BPF_RAW_INSN(refused[i].code, load_insn ? BPF_REG_2 : BPF_REG_1,
				     load_insn ? BPF_REG_1 : BPF_REG_0, refused[i].off, 0),
			BPF_EXIT_INSN(),
		};

		prog_attr(&attr, insns, ARRAY_SIZE(insns));
		attr.prog_type = variant->type;
		EXPECT_EQ(-EACCES, load_log(&attr));
		snprintf(access, sizeof(access), "invalid bpf_context access off=%d size=%d\n",
			 refused[i].off, refused[i].code & BPF_DW ? 8 : 4);
		EXPECT_STREQ(expected, line_after(access)) TH_LOG("%s", log_text);
	}
}

TEST_HARNESS_MAIN
