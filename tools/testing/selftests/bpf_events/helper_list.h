/* SPDX-License-Identifier: GPL-2.0 */
/* The helpers of the programs that trace, and which of these programs have them */
#ifndef BPF_EVENTS_HELPER_LIST_H
#define BPF_EVENTS_HELPER_LIST_H

#include <stdbool.h>
#include <stdlib.h>
#include <linux/bpf.h>

enum {
	YES = 1,
	SLEEPABLE = 2,	/* programs that may sleep may call it */
	GPL = 4,	/* if their license is */
	ADMIN = 8,	/* if CAP_SYS_ADMIN loads them */
	OVERRIDE = 16,	/* with CONFIG_BPF_KPROBE_OVERRIDE */

	/* What only some kinds of programs have, see the variants */
	KPROBE = 32,
	COOKIE = 64,	/* a cookie of the attachment */
	TYPED = 128,	/* arguments with types */
	CALL = 256,	/* the call of a function */
	PATH = 512,	/* one of the few functions that may resolve paths */
	SEQ = 1024,	/* a file to write to */
	STORAGE = 2048,	/* what is kept with a socket */
	SAMPLE = 4096,	/* a sample of a perf event */
	SPECIAL = KPROBE | COOKIE | TYPED | CALL | PATH | SEQ | STORAGE | SAMPLE,

	SAMPLE_ANY = 8192,	/* with a sample, any license will do */
};

/* What a program must have to call them */
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
	[BPF_FUNC_get_stackid] = YES | GPL | SAMPLE_ANY,
	[BPF_FUNC_get_current_task] = YES | GPL,
	[BPF_FUNC_probe_write_user] = YES | GPL | ADMIN,
	[BPF_FUNC_current_task_under_cgroup] = YES,
	[BPF_FUNC_get_numa_node_id] = YES,
	[BPF_FUNC_probe_read_str] = YES | GPL,
	[BPF_FUNC_get_socket_cookie] = YES | TYPED,
	[BPF_FUNC_perf_event_read_value] = YES | GPL,
	[BPF_FUNC_perf_prog_read_value] = YES | GPL | SAMPLE,
	[BPF_FUNC_override_return] = YES | GPL | OVERRIDE | KPROBE,
	[BPF_FUNC_get_stack] = YES | GPL,
	[BPF_FUNC_get_current_cgroup_id] = YES,
	[BPF_FUNC_map_push_elem] = YES,
	[BPF_FUNC_map_pop_elem] = YES,
	[BPF_FUNC_map_peek_elem] = YES,
	[BPF_FUNC_spin_lock] = YES,
	[BPF_FUNC_spin_unlock] = YES,
	[BPF_FUNC_strtol] = YES,
	[BPF_FUNC_strtoul] = YES,
	[BPF_FUNC_sk_storage_get] = YES | STORAGE,
	[BPF_FUNC_sk_storage_delete] = YES | STORAGE,
	[BPF_FUNC_send_signal] = YES,
	[BPF_FUNC_skb_output] = YES | TYPED | GPL,
	[BPF_FUNC_probe_read_user] = YES | GPL,
	[BPF_FUNC_probe_read_kernel] = YES | GPL,
	[BPF_FUNC_probe_read_user_str] = YES | GPL,
	[BPF_FUNC_probe_read_kernel_str] = YES | GPL,
	[BPF_FUNC_send_signal_thread] = YES,
	[BPF_FUNC_jiffies64] = YES,
	[BPF_FUNC_read_branch_records] = YES | GPL | SAMPLE,
	[BPF_FUNC_get_ns_current_pid_tgid] = YES,
	[BPF_FUNC_xdp_output] = YES | TYPED | GPL,
	[BPF_FUNC_get_current_ancestor_cgroup_id] = YES,
	[BPF_FUNC_ktime_get_boot_ns] = YES,
	[BPF_FUNC_seq_printf] = YES | SEQ | GPL,
	[BPF_FUNC_seq_write] = YES | SEQ | GPL,
	[BPF_FUNC_ringbuf_output] = YES,
	[BPF_FUNC_ringbuf_reserve] = YES,
	[BPF_FUNC_ringbuf_submit] = YES,
	[BPF_FUNC_ringbuf_discard] = YES,
	[BPF_FUNC_ringbuf_query] = YES,
	[BPF_FUNC_skc_to_tcp6_sock] = YES | TYPED,
	[BPF_FUNC_skc_to_tcp_sock] = YES | TYPED,
	[BPF_FUNC_skc_to_tcp_timewait_sock] = YES | TYPED,
	[BPF_FUNC_skc_to_tcp_request_sock] = YES | TYPED,
	[BPF_FUNC_skc_to_udp6_sock] = YES | TYPED,
	[BPF_FUNC_get_task_stack] = YES,
	[BPF_FUNC_d_path] = YES | TYPED | PATH,
	[BPF_FUNC_copy_from_user] = SLEEPABLE,
	[BPF_FUNC_snprintf_btf] = YES,
	[BPF_FUNC_seq_printf_btf] = YES | SEQ | GPL,
	[BPF_FUNC_per_cpu_ptr] = YES,
	[BPF_FUNC_this_cpu_ptr] = YES,
	[BPF_FUNC_task_storage_get] = YES,
	[BPF_FUNC_task_storage_delete] = YES,
	[BPF_FUNC_get_current_task_btf] = YES | GPL,
	[BPF_FUNC_sock_from_file] = YES | TYPED,
	[BPF_FUNC_for_each_map_elem] = YES,
	[BPF_FUNC_snprintf] = YES | GPL,
	[BPF_FUNC_timer_init] = YES | GPL,
	[BPF_FUNC_timer_set_callback] = YES | GPL,
	[BPF_FUNC_timer_start] = YES | GPL,
	[BPF_FUNC_timer_cancel] = YES | GPL,
	[BPF_FUNC_get_func_ip] = YES | GPL,
	[BPF_FUNC_get_attach_cookie] = YES | COOKIE,
	[BPF_FUNC_task_pt_regs] = YES | GPL,
	[BPF_FUNC_get_branch_snapshot] = YES | GPL,
	[BPF_FUNC_trace_vprintk] = YES | GPL,
	[BPF_FUNC_skc_to_unix_sock] = YES | TYPED,
	[BPF_FUNC_find_vma] = YES,
	[BPF_FUNC_loop] = YES,
	[BPF_FUNC_strncmp] = YES,
	[BPF_FUNC_get_func_arg] = YES | CALL,
	[BPF_FUNC_get_func_ret] = YES | CALL,
	[BPF_FUNC_get_func_arg_cnt] = YES | CALL,
	[BPF_FUNC_xdp_get_buff_len] = YES | TYPED,
	[BPF_FUNC_copy_from_user_task] = SLEEPABLE | GPL,
	[BPF_FUNC_kptr_xchg] = YES,
	[BPF_FUNC_map_lookup_percpu_elem] = YES,
	[BPF_FUNC_skc_to_mptcp_sock] = YES | TYPED,
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

static const char * const names[__BPF_FUNC_MAX_ID + 1] = {
	___BPF_FUNC_MAPPER(HELPER_NAME)
	[__BPF_FUNC_MAX_ID] = "(one past the last)",
};

/* Whether /proc/config.gz has it */
static inline bool has_override(void)
{
	return !system("zcat /proc/config.gz | grep -q ^CONFIG_BPF_KPROBE_OVERRIDE=y");
}

#endif /* BPF_EVENTS_HELPER_LIST_H */
