/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a BPF program that filters a tracepoint's event gets as its context: the
 * arguments of the tracepoint, each extended to 64 bits.
 */
#undef __bpf_filter_passes
#undef _TRACE_BPF_INIT

#ifdef CONFIG_BPF_EVENTS

#include <linux/args.h>

#define __bpf_u64(arg)							\
({									\
	union {								\
		__typeof__(arg)	val;					\
		u8		b;					\
		u16		h;					\
		u32		w;					\
		u64		dw;					\
	} __arg = { .val = (arg) };					\
									\
	sizeof(arg) == 1 ? __arg.b : sizeof(arg) == 2 ? __arg.h :	\
	sizeof(arg) == 4 ? __arg.w : __arg.dw;				\
})

#define __bpf_args_0()			{ }
#define __bpf_args_1(a)			{ __bpf_u64(a) }
#define __bpf_args_2(a, b)		{ __bpf_u64(a), __bpf_u64(b) }
#define __bpf_args_3(a, b, c)		{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c) }
#define __bpf_args_4(a, b, c, d) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d) }
#define __bpf_args_5(a, b, c, d, e) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e) }
#define __bpf_args_6(a, b, c, d, e, f) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f) }
#define __bpf_args_7(a, b, c, d, e, f, g) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g) }
#define __bpf_args_8(a, b, c, d, e, f, g, h) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g), __bpf_u64(h) }
#define __bpf_args_9(a, b, c, d, e, f, g, h, i) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g), __bpf_u64(h), \
	  __bpf_u64(i) }
#define __bpf_args_10(a, b, c, d, e, f, g, h, i, j) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g), __bpf_u64(h), \
	  __bpf_u64(i), __bpf_u64(j) }
#define __bpf_args_11(a, b, c, d, e, f, g, h, i, j, k) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g), __bpf_u64(h), \
	  __bpf_u64(i), __bpf_u64(j), __bpf_u64(k) }
#define __bpf_args_12(a, b, c, d, e, f, g, h, i, j, k, l) \
	{ __bpf_u64(a), __bpf_u64(b), __bpf_u64(c), __bpf_u64(d), \
	  __bpf_u64(e), __bpf_u64(f), __bpf_u64(g), __bpf_u64(h), \
	  __bpf_u64(i), __bpf_u64(j), __bpf_u64(k), __bpf_u64(l) }

#define __bpf_args(...)	CONCATENATE(__bpf_args_, COUNT_ARGS(__VA_ARGS__))(__VA_ARGS__)

#define __bpf_filter_passes(file, ...)					\
({									\
	struct trace_event_file *__file = (file);			\
	bool __passes = true;						\
									\
	if (__file->flags & EVENT_FILE_FL_BPF_FILTER) {			\
		u64 __bpf_args[BPF_EVENT_FILTER_ARGS] =			\
			__bpf_args(__VA_ARGS__);			\
									\
		__passes = bpf_event_filter_run(__file, __bpf_args);	\
	}								\
	__passes;							\
})

#define _TRACE_BPF_INIT(...)						\
	.nr_args		= COUNT_ARGS(__VA_ARGS__),

#else

#define __bpf_filter_passes(file, ...)	((void)(file), true)
#define _TRACE_BPF_INIT(...)

#endif /* CONFIG_BPF_EVENTS */
