/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The helpers and kfuncs of tracing programs, and which programs have them.
 */
#ifndef _KERNEL_TRACE_BPF_TRACE_HELPERS_H
#define _KERNEL_TRACE_BPF_TRACE_HELPERS_H

#include <linux/bpf.h>

/* bpf_trace_hit.c: the hit itself */
const struct bpf_func_proto *bpf_hit_func_proto(enum bpf_func_id func_id);

extern const struct bpf_func_proto bpf_get_attach_cookie_proto_tracing;

/* bpf_trace_read.c: reads of kernel and user memory that may fault */
const struct bpf_func_proto *bpf_read_func_proto(enum bpf_func_id func_id);

extern const struct bpf_func_proto bpf_probe_read_user_proto;
extern const struct bpf_func_proto bpf_probe_read_user_str_proto;
extern const struct bpf_func_proto bpf_probe_read_kernel_proto;
extern const struct bpf_func_proto bpf_probe_read_kernel_str_proto;

#ifdef CONFIG_BPF_KPROBE_OVERRIDE
/* bpf_trace_override.c: what the probed function returns */
extern const struct bpf_func_proto bpf_override_return_proto;
#endif

/* bpf_trace_task.c: the current task */
const struct bpf_func_proto *bpf_task_func_proto(enum bpf_func_id func_id);

extern const struct bpf_func_proto bpf_get_current_task_proto;
extern const struct bpf_func_proto bpf_get_current_task_btf_proto;
extern const struct bpf_func_proto bpf_task_pt_regs_proto;

/* bpf_trace_perf.c: perf counters and perf rings reached through a map */
const struct bpf_func_proto *bpf_perf_func_proto(enum bpf_func_id func_id);

extern const struct bpf_func_proto bpf_perf_event_output_proto;
void bpf_output_abandon(void);
u64 bpf_regs_output(struct pt_regs *regs, struct bpf_map *map, u64 flags, void *data, u64 size,
		    unsigned long ip);

/* bpf_trace_tracing.c: the function of a trampoline */
extern const struct bpf_func_proto bpf_get_func_ip_proto_tracing;

/* bpf_trace_printk.c: into the seq_file of an iterator */
extern const struct bpf_func_proto bpf_seq_printf_proto;
extern const struct bpf_func_proto bpf_seq_write_proto;
extern const struct bpf_func_proto bpf_seq_printf_btf_proto;

/* net/core/filter.c */
extern const struct bpf_func_proto bpf_skb_output_proto;
extern const struct bpf_func_proto bpf_xdp_output_proto;
extern const struct bpf_func_proto bpf_xdp_get_buff_len_trace_proto;

/* bpf_trace_keys.c: kfuncs, for programs only */
struct bpf_key *bpf_lookup_user_key(u32 serial, u64 flags);
struct bpf_key *bpf_lookup_system_key(u64 id);
void bpf_key_put(struct bpf_key *bkey);
int bpf_verify_pkcs7_signature(struct bpf_dynptr *data_p, struct bpf_dynptr *sig_p,
			       struct bpf_key *trusted_keyring);

/* bpf_trace_tp.c: to a ring, for contexts that begin with a pointer to registers */
extern const struct bpf_func_proto bpf_perf_event_output_proto_tp;

/* kernel/bpf/stackmap.c */
u64 bpf_get_stackid(u64 regs, u64 map, u64 flags, u64 r4, u64 r5);
u64 bpf_get_stack(u64 regs, u64 buf, u64 size, u64 flags, u64 r5);

/* bpf_trace_hit.c: kfuncs, for programs only */
bool bpf_session_is_return(void);
__u64 *bpf_session_cookie(void);

/* bpf_trace_fetch.c: kfuncs, for programs only */
u8 bpf_fetch_u8(const void *addr__any);
u16 bpf_fetch_u16(const void *addr__any);
u32 bpf_fetch_u32(const void *addr__any);
u64 bpf_fetch_u64(const void *addr__any);
void *bpf_fetch_ptr(const void *addr__any);
int bpf_memcmp(const void *addr__any, const void *mem, u32 mem__sz);
void bpf_dump_stack(void);

/* bpf_trace_helpers.c: of all these, what every tracing program has */
const struct bpf_func_proto *
bpf_tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog);

#endif /* _KERNEL_TRACE_BPF_TRACE_HELPERS_H */
