/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the heart of BPF events (bpf_trace.c) and the files around it share.
 */
#ifndef _KERNEL_TRACE_BPF_TRACE_H
#define _KERNEL_TRACE_BPF_TRACE_H

#include <linux/bpf.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>

struct trace_probe_target;

/*
 * bpf_trace.c: programs on trace events
 */

/* What a running program may ask about the hit that it was run for. */
struct bpf_hit {
	u64		cookie;		/* what the owner of the attachment chose */
	unsigned long	func_ip;	/* 0: that of the kprobe which is running */
};

/*
 * The hit of the program which runs on this CPU under bpf_prog_active. NULL
 * where there is none: what runs then is on a uprobe, and current->bpf_ctx
 * tells.
 */
DECLARE_PER_CPU(const struct bpf_hit *, bpf_current_hit);

/* Hits that reached, and that did not reach, the program. */
struct bpf_attachment_stats {
	unsigned long		hits;
	unsigned long		missed;
};

/* A program on a trace event; owned by the perf event that brought it. */
struct bpf_attachment {
	struct bpf_hit				hit;
	struct bpf_prog				*prog;
	struct perf_event			*event;
	struct bpf_attachment_stats __percpu	*stats;
};

/* The programs of a trace event. A slot is NULL once its owner is gone. */
struct bpf_event_array {
	struct rcu_head		rcu;
	u32			nr;
	struct bpf_attachment	*att[] __counted_by(nr);
};

struct bpf_attachment_stats
bpf_stats_sum(const struct bpf_attachment_stats __percpu *stats);

static __always_inline bool
bpf_attachment_runs(const struct bpf_attachment *att)
{
	return att && !READ_ONCE(att->event->bpf_paused);
}

static inline bool is_multi_attach_type(enum bpf_attach_type type)
{
	return type == BPF_TRACE_KPROBE_MULTI || type == BPF_TRACE_KPROBE_SESSION ||
	       type == BPF_TRACE_UPROBE_MULTI;
}

/* What goes wrong with an attach: for programs, and for people. */
struct bpf_refusal {
	int		err;
	const char	*text;
};

char *bpf_printable(char *text);
const char *bpf_prog_type_name(enum bpf_prog_type type);

__printf(3, 4)
int bpf_refuse(struct bpf_refusal *why, int pos, const char *fmt, ...);

int bpf_event_attach(struct perf_event *event, int prog_fd, struct bpf_prog *prog,
		     u64 cookie);

u32 bpf_event_prog_id(struct perf_event *event);
int bpf_event_target(struct perf_event *event, struct trace_probe_target *target);

/* bpf_trace_link.c */
int bpf_copy_name(u64 uptr, u32 *ulen, const char *name);

/* bpf_trace_kprobe_multi.c */
#ifdef CONFIG_FPROBE
int bpf_kprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog);
#else
static inline int bpf_kprobe_multi_link_create(const union bpf_attr *attr,
					       struct bpf_prog *prog)
{
	return -EOPNOTSUPP;
}
#endif

/* For programs only */
bool bpf_session_is_return(void);
__u64 *bpf_session_cookie(void);

/*
 * bpf_trace_uprobe.c, bpf_trace_uprobe_multi.c: programs on uprobes
 */

/* current->bpf_ctx of a program on a uprobe. */
struct bpf_uprobe_run_ctx {
	struct bpf_run_ctx	run_ctx;
	struct bpf_hit		hit;
};

#ifdef CONFIG_UPROBES
int bpf_uprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog);
#else
static inline int bpf_uprobe_multi_link_create(const union bpf_attr *attr,
					       struct bpf_prog *prog)
{
	return -EOPNOTSUPP;
}
#endif

u32 bpf_uprobe_prog_run(const struct bpf_prog *prog, u64 cookie,
			unsigned long func_ip, struct pt_regs *regs);

/*
 * Helpers
 */

/* bpf_trace_hit.c: the hit itself */
const struct bpf_func_proto *bpf_hit_func_proto(enum bpf_func_id func_id);

#ifdef CONFIG_X86_KERNEL_IBT
unsigned long bpf_func_start(unsigned long ip);
#else
/* A function's address, from that of the place in it which is probed for entry. */
static inline unsigned long bpf_func_start(unsigned long ip)
{
	return ip;
}
#endif

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
u64 bpf_perf_event_output(u64 regs, u64 map, u64 flags, u64 data, u64 size);

/* kernel/bpf/stackmap.c */
u64 bpf_get_stackid(u64 regs, u64 map, u64 flags, u64 r4, u64 r5);
u64 bpf_get_stack(u64 regs, u64 buf, u64 size, u64 flags, u64 r5);

/* bpf_trace_fetch.c: kfuncs, for programs only */
u8 bpf_fetch_u8(const void *addr__ign);
u16 bpf_fetch_u16(const void *addr__ign);
u32 bpf_fetch_u32(const void *addr__ign);
u64 bpf_fetch_u64(const void *addr__ign);
void *bpf_fetch_ptr(const void *addr__ign);
int bpf_memcmp(const void *addr__ign, const void *mem, u32 mem__sz);
void bpf_dump_stack(void);

/* bpf_trace.c: of all these, what every tracing program has */
const struct bpf_func_proto *
bpf_tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog);

#endif /* _KERNEL_TRACE_BPF_TRACE_H */
