/* SPDX-License-Identifier: GPL-2.0 */
/* Raw tracepoints */
#ifndef BPF_EVENTS_RAW_TP_H
#define BPF_EVENTS_RAW_TP_H

#include "body.h"

static inline int raw_tp_open(int prog, const char *name, __u64 cookie)
{
	union bpf_attr attr = {
		.raw_tracepoint.name = (unsigned long)name,
		.raw_tracepoint.prog_fd = prog,
		.raw_tracepoint.cookie = cookie,
	};

	return sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static inline void raw_tp_attr(union bpf_attr *attr)
{
	load_attr(attr, BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0);
}

#endif /* BPF_EVENTS_RAW_TP_H */
