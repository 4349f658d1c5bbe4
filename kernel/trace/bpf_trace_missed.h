/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bpf_trace

#if !defined(_TRACE_BPF_TRACE_MISSED_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BPF_TRACE_MISSED_H

#include <linux/tracepoint.h>
#include "bpf_trace.h"

/* A program missed a hit, for one of bpf_miss_names[]. */
TRACE_EVENT(bpf_prog_missed,
	    TP_PROTO(const struct bpf_prog *prog, enum bpf_miss why), TP_ARGS(prog, why),
	    TP_STRUCT__entry(__field(u32, bpf_prog_id)
			     __string(reason, bpf_miss_names[why])),
	    TP_fast_assign(__entry->bpf_prog_id = prog->aux->id;
			   __assign_str(reason);),
	    TP_printk("bpf_prog_id=%u reason=%s", __entry->bpf_prog_id, __get_str(reason))
);

#endif /* _TRACE_BPF_TRACE_MISSED_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE bpf_trace_missed
#include <trace/define_trace.h>
