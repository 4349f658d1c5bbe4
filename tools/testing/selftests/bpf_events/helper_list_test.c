// SPDX-License-Identifier: GPL-2.0
/* Which helpers a program may call */
#include "common.h"
#include "tracing.h"
#include "helper_list.h"

FIXTURE(helper_list) {
	unsigned int lacks;	/* of the above, what does not hold */
	unsigned int suffices;	/* and what makes up for it */
};

FIXTURE_VARIANT(helper_list) {
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	const char *target;		/* of a tracing program */
	unsigned int special;		/* what of SPECIAL this kind has */
	const char *license;
	__u32 flags;
	bool no_admin;
};

FIXTURE_VARIANT_ADD(helper_list, plain) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, sleepable) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, kprobe_multi) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_KPROBE_MULTI,
	.special = KPROBE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, kprobe_session) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_KPROBE_SESSION,
	.special = KPROBE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_multi) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_UPROBE_MULTI,
	.special = KPROBE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_multi_sleepable) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_UPROBE_MULTI,
	.special = KPROBE | COOKIE,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_session) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_UPROBE_SESSION,
	.special = KPROBE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_session_sleepable) {
	.type = BPF_PROG_TYPE_KPROBE,
	.attach = BPF_TRACE_UPROBE_SESSION,
	.special = KPROBE | COOKIE,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, other_license) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, other_license_sleepable) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "MIT",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, without_cap_sys_admin) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "GPL",
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, without_cap_sys_admin_sleepable) {
	.type = BPF_PROG_TYPE_KPROBE,
	.special = KPROBE | COOKIE,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, tracepoint) {
	.type = BPF_PROG_TYPE_TRACEPOINT,
	.special = COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, tracepoint_other_license) {
	.type = BPF_PROG_TYPE_TRACEPOINT,
	.special = COOKIE,
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, tracepoint_without_cap_sys_admin) {
	.type = BPF_PROG_TYPE_TRACEPOINT,
	.special = COOKIE,
	.license = "GPL",
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, perf_event) {
	.type = BPF_PROG_TYPE_PERF_EVENT,
	.special = COOKIE | SAMPLE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, perf_event_other_license) {
	.type = BPF_PROG_TYPE_PERF_EVENT,
	.special = COOKIE | SAMPLE,
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, perf_event_without_cap_sys_admin) {
	.type = BPF_PROG_TYPE_PERF_EVENT,
	.special = COOKIE | SAMPLE,
	.license = "GPL",
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, raw_tracepoint) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.special = COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, raw_tracepoint_other_license) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.special = COOKIE,
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, raw_tracepoint_without_cap_sys_admin) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.special = COOKIE,
	.license = "GPL",
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, raw_tracepoint_writable) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE,
	.special = COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, tp_btf) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_RAW_TP,
	.target = "sys_enter",
	.special = TYPED | STORAGE | COOKIE,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, fentry) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FENTRY,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, fentry_sleepable) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FENTRY,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, fexit) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FEXIT,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, fexit_sleepable) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FEXIT,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, fmod_ret) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_MODIFY_RETURN,
	.target = FUNC,
	.special = TYPED | COOKIE | CALL,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, fmod_ret_sleepable) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_MODIFY_RETURN,
	.target = FUNC,
	.special = TYPED | COOKIE | CALL,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, fentry_other_license) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FENTRY,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, fentry_without_cap_sys_admin) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FENTRY,
	.target = FUNC,
	.special = TYPED | STORAGE | COOKIE | CALL,
	.license = "GPL",
	.no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, fentry_where_paths_resolve) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_FENTRY,
	.target = "filp_close",
	.special = TYPED | STORAGE | COOKIE | CALL | PATH,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, iter) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_ITER,
	.target = "bpf_map",
	.special = TYPED | STORAGE | PATH | SEQ,
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, iter_sleepable) {
	.type = BPF_PROG_TYPE_TRACING,
	.attach = BPF_TRACE_ITER,
	.target = "bpf_map",
	.special = TYPED | STORAGE | PATH | SEQ,
	.license = "GPL",
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_SETUP(helper_list)
{
	SKIP_WITHOUT(return, prepare());
	if (access("/proc/config.gz", R_OK))
		SKIP(return, "CONFIG_IKCONFIG_PROC");
	self->lacks = SPECIAL & ~variant->special;
	if (variant->special & SAMPLE)
		self->suffices = SAMPLE_ANY;
	if (!(variant->flags & BPF_F_SLEEPABLE))
		self->lacks |= SLEEPABLE;
	if (strcmp(variant->license, "GPL"))
		self->lacks |= GPL;
	if (!has_override())
		self->lacks |= OVERRIDE;
	if (variant->no_admin) {
		self->lacks |= ADMIN;
		ASSERT_EQ(0, drop_caps(CAP(BPF) | CAP(PERFMON)));
	}
}

FIXTURE_TEARDOWN_PARENT(helper_list)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What the verifier says of a helper that is not for this program */
static bool log_refuses(const char *log)
{
	return strstr(log, "program of this type cannot use helper") ||
	       strstr(log, "invalid func") || strstr(log, "might sleep") ||
	       strstr(log, "helper call is not allowed in probe") ||
	       strstr(log, "cannot call GPL-restricted function");
}

/*
 * Loads a program that calls it without arguments: with most helpers that
 * fails, but not before the verifier has found them to be allowed.
 */
static bool may_call(union bpf_attr *attr, int helper)
{
	static char log[16384];
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(helper),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd;

	attr->insns = (unsigned long)insns;
	attr->insn_cnt = ARRAY_SIZE(insns);
	attr->log_buf = (unsigned long)log;
	attr->log_size = sizeof(log);
	attr->log_level = 1;
	log[0] = '\0';
	fd = sys_bpf(BPF_PROG_LOAD, attr);
	if (fd >= 0)
		close(fd);
	return log[0] && (fd != -EINVAL || !log_refuses(log));
}

TEST_F(helper_list, is_as_documented)
{
	char text[16384] = "";
	union bpf_attr attr;
	size_t len = 0;
	int helper;

	prog_attr(&attr, NULL, 0);
	attr.prog_type = variant->type;
	if (variant->target)
		attr.attach_btf_id = target_id(variant->attach, variant->target);
	attr.license = (unsigned long)variant->license;
	attr.expected_attach_type = variant->attach;
	attr.prog_flags = variant->flags;
	for (helper = 0; helper <= __BPF_FUNC_MAX_ID; helper++) {
		bool expected = listed[helper] && (listed[helper] & self->suffices ||
						   !(listed[helper] & self->lacks));

		if (may_call(&attr, helper) != expected)
			len += snprintf(text + len, sizeof(text) - len, "%s: %s; ",
					expected ? "missing" : "too many",
					names[helper]);
	}
	EXPECT_STREQ("", text);
}

TEST_HARNESS_MAIN
