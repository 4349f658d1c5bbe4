// SPDX-License-Identifier: GPL-2.0
/* Which helpers a program may call */
#include "common.h"

enum {
	YES = 1,
	SLEEPABLE = 2,	/* programs that may sleep may call it */
	GPL = 4,	/* if their license is */
	ADMIN = 8,	/* if CAP_SYS_ADMIN loads them */
	OVERRIDE = 16,	/* with CONFIG_BPF_KPROBE_OVERRIDE */
};

static const unsigned int listed[__BPF_FUNC_MAX_ID + 1] = {
	[BPF_FUNC_map_lookup_elem] = YES,
	[BPF_FUNC_map_update_elem] = YES,
	[BPF_FUNC_map_delete_elem] = YES,
	[BPF_FUNC_probe_read] = YES | GPL,
	[BPF_FUNC_ktime_get_ns] = YES,
	[BPF_FUNC_trace_printk] = YES | GPL,
	[BPF_FUNC_get_prandom_u32] = YES,
	[BPF_FUNC_get_smp_processor_id] = YES,
	[BPF_FUNC_tail_call] = YES,
	[BPF_FUNC_get_current_pid_tgid] = YES,
	[BPF_FUNC_get_current_uid_gid] = YES,
	[BPF_FUNC_get_current_comm] = YES,
	[BPF_FUNC_perf_event_read] = YES | GPL,
	[BPF_FUNC_perf_event_output] = YES | GPL,
	[BPF_FUNC_get_stackid] = YES | GPL,
	[BPF_FUNC_get_current_task] = YES | GPL,
	[BPF_FUNC_probe_write_user] = YES | GPL | ADMIN,
	[BPF_FUNC_current_task_under_cgroup] = YES,
	[BPF_FUNC_get_numa_node_id] = YES,
	[BPF_FUNC_probe_read_str] = YES | GPL,
	[BPF_FUNC_perf_event_read_value] = YES | GPL,
	[BPF_FUNC_override_return] = YES | GPL | OVERRIDE,
	[BPF_FUNC_get_stack] = YES | GPL,
	[BPF_FUNC_get_current_cgroup_id] = YES,
	[BPF_FUNC_map_push_elem] = YES,
	[BPF_FUNC_map_pop_elem] = YES,
	[BPF_FUNC_map_peek_elem] = YES,
	[BPF_FUNC_spin_lock] = YES,
	[BPF_FUNC_spin_unlock] = YES,
	[BPF_FUNC_strtol] = YES,
	[BPF_FUNC_strtoul] = YES,
	[BPF_FUNC_send_signal] = YES,
	[BPF_FUNC_probe_read_user] = YES | GPL,
	[BPF_FUNC_probe_read_kernel] = YES | GPL,
	[BPF_FUNC_probe_read_user_str] = YES | GPL,
	[BPF_FUNC_probe_read_kernel_str] = YES | GPL,
	[BPF_FUNC_send_signal_thread] = YES,
	[BPF_FUNC_jiffies64] = YES,
	[BPF_FUNC_get_ns_current_pid_tgid] = YES,
	[BPF_FUNC_get_current_ancestor_cgroup_id] = YES,
	[BPF_FUNC_ktime_get_boot_ns] = YES,
	[BPF_FUNC_ringbuf_output] = YES,
	[BPF_FUNC_ringbuf_reserve] = YES,
	[BPF_FUNC_ringbuf_submit] = YES,
	[BPF_FUNC_ringbuf_discard] = YES,
	[BPF_FUNC_ringbuf_query] = YES,
	[BPF_FUNC_get_task_stack] = YES,
	[BPF_FUNC_copy_from_user] = SLEEPABLE,
	[BPF_FUNC_snprintf_btf] = YES,
	[BPF_FUNC_per_cpu_ptr] = YES,
	[BPF_FUNC_this_cpu_ptr] = YES,
	[BPF_FUNC_task_storage_get] = YES,
	[BPF_FUNC_task_storage_delete] = YES,
	[BPF_FUNC_get_current_task_btf] = YES | GPL,
	[BPF_FUNC_for_each_map_elem] = YES,
	[BPF_FUNC_snprintf] = YES | GPL,
	[BPF_FUNC_timer_init] = YES | GPL,
	[BPF_FUNC_timer_set_callback] = YES | GPL,
	[BPF_FUNC_timer_start] = YES | GPL,
	[BPF_FUNC_timer_cancel] = YES | GPL,
	[BPF_FUNC_get_func_ip] = YES | GPL,
	[BPF_FUNC_get_attach_cookie] = YES,
	[BPF_FUNC_task_pt_regs] = YES | GPL,
	[BPF_FUNC_get_branch_snapshot] = YES | GPL,
	[BPF_FUNC_trace_vprintk] = YES | GPL,
	[BPF_FUNC_find_vma] = YES,
	[BPF_FUNC_loop] = YES,
	[BPF_FUNC_strncmp] = YES,
	[BPF_FUNC_copy_from_user_task] = SLEEPABLE | GPL,
	[BPF_FUNC_kptr_xchg] = YES,
	[BPF_FUNC_map_lookup_percpu_elem] = YES,
	[BPF_FUNC_dynptr_from_mem] = YES,
	[BPF_FUNC_ringbuf_reserve_dynptr] = YES,
	[BPF_FUNC_ringbuf_submit_dynptr] = YES,
	[BPF_FUNC_ringbuf_discard_dynptr] = YES,
	[BPF_FUNC_dynptr_read] = YES,
	[BPF_FUNC_dynptr_write] = YES,
	[BPF_FUNC_dynptr_data] = YES,
	[BPF_FUNC_ktime_get_tai_ns] = YES,
	[BPF_FUNC_user_ringbuf_drain] = YES,
	[BPF_FUNC_cgrp_storage_get] = YES,
	[BPF_FUNC_cgrp_storage_delete] = YES,
};

#define HELPER_NAME(name, id, ...) \
	[id] = #name,

static const char *const names[__BPF_FUNC_MAX_ID + 1] = {
	___BPF_FUNC_MAPPER(HELPER_NAME)
	[__BPF_FUNC_MAX_ID] = "(one past the last)",
};

FIXTURE(helper_list) {
	unsigned int lacks;	/* of the above, what does not hold */
};

FIXTURE_VARIANT(helper_list) {
	enum bpf_attach_type attach;
	__u32 flags;
	const char *license;
	bool no_admin;
};

FIXTURE_VARIANT_ADD(helper_list, plain) {
	.license = "GPL",
};

FIXTURE_VARIANT_ADD(helper_list, sleepable) {
	.license = "GPL", .flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, kprobe_multi) {
	.license = "GPL", .attach = BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(helper_list, kprobe_session) {
	.license = "GPL", .attach = BPF_TRACE_KPROBE_SESSION,
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_multi) {
	.license = "GPL", .attach = BPF_TRACE_UPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(helper_list, uprobe_multi_sleepable) {
	.license = "GPL", .attach = BPF_TRACE_UPROBE_MULTI,
	.flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, other_license) {
	.license = "MIT",
};

FIXTURE_VARIANT_ADD(helper_list, other_license_sleepable) {
	.license = "MIT", .flags = BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(helper_list, without_cap_sys_admin) {
	.license = "GPL", .no_admin = true,
};

FIXTURE_VARIANT_ADD(helper_list, without_cap_sys_admin_sleepable) {
	.license = "GPL", .no_admin = true, .flags = BPF_F_SLEEPABLE,
};

/* Whether /proc/config.gz has it */
static bool has_override(void)
{
	return !system("zcat /proc/config.gz | grep -q ^CONFIG_BPF_KPROBE_OVERRIDE=y");
}

FIXTURE_SETUP(helper_list)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access("/proc/config.gz", R_OK))
		SKIP(return, "CONFIG_IKCONFIG_PROC");
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
	attr.license = (unsigned long)variant->license;
	attr.expected_attach_type = variant->attach;
	attr.prog_flags = variant->flags;
	for (helper = 0; helper <= __BPF_FUNC_MAX_ID; helper++) {
		bool expected = listed[helper] && !(listed[helper] & self->lacks);

		if (may_call(&attr, helper) != expected)
			len += snprintf(text + len, sizeof(text) - len, "%s: %s; ",
					expected ? "missing" : "too many",
					names[helper]);
	}
	EXPECT_STREQ("", text);
}

TEST_HARNESS_MAIN
