/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the heart of BPF events (bpf_trace.c) and the files around it share.
 */
#ifndef _KERNEL_TRACE_BPF_TRACE_H
#define _KERNEL_TRACE_BPF_TRACE_H

#include <linux/bpf.h>

/* bpf_trace_read.c: reads of kernel and user memory that may fault */
const struct bpf_func_proto *bpf_read_func_proto(enum bpf_func_id func_id);

extern const struct bpf_func_proto bpf_probe_read_user_proto;
extern const struct bpf_func_proto bpf_probe_read_user_str_proto;
extern const struct bpf_func_proto bpf_probe_read_kernel_proto;
extern const struct bpf_func_proto bpf_probe_read_kernel_str_proto;

/* bpf_trace_task.c: the current task */
extern const struct bpf_func_proto bpf_get_current_task_proto;
extern const struct bpf_func_proto bpf_get_current_task_btf_proto;
extern const struct bpf_func_proto bpf_task_pt_regs_proto;

/* bpf_trace_perf.c: perf counters and perf rings reached through a map */
const struct bpf_func_proto *bpf_perf_func_proto(enum bpf_func_id func_id);

#endif /* _KERNEL_TRACE_BPF_TRACE_H */
