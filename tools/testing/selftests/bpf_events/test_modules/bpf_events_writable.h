/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM bpf_events_writable

#if !defined(_BPF_EVENTS_WRITABLE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _BPF_EVENTS_WRITABLE_H

#include <linux/tracepoint.h>

/* Only what makes the table of raw tracepoints has the macro */
#undef DECLARE_BARE
#ifdef DECLARE_TRACE_WRITABLE
#define DECLARE_BARE(call, proto, args, size)				\
	DECLARE_TRACE_WRITABLE(call, PARAMS(proto), PARAMS(args), size)
#else
#define DECLARE_BARE(call, proto, args, ...)				\
	DECLARE_TRACE(call, PARAMS(proto), PARAMS(args))
#endif

DECLARE_BARE(bpf_events_writable, TP_PROTO(struct bpf_events_verdict *verdict),
	     TP_ARGS(verdict), sizeof(struct bpf_events_verdict));

#endif /* _BPF_EVENTS_WRITABLE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE bpf_events_writable
#include <trace/define_trace.h>
