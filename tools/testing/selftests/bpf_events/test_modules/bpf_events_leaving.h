/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bpf_events_leaving

#if !defined(_BPF_EVENTS_LEAVING_H) || defined(TRACE_HEADER_MULTI_READ)
#define _BPF_EVENTS_LEAVING_H

#include <linux/tracepoint.h>

TRACE_EVENT(bpf_events_left,
	    TP_PROTO(int err),
	    TP_ARGS(err),
	    TP_STRUCT__entry(__field(int, err)),
	    TP_fast_assign(__entry->err = err;),
	    TP_printk("err=%d", __entry->err)
);

#endif /* _BPF_EVENTS_LEAVING_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE bpf_events_leaving
#include <trace/define_trace.h>
