/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the heart of BPF events (bpf_trace.c) and the files around it share.
 */
#ifndef _KERNEL_TRACE_BPF_TRACE_H
#define _KERNEL_TRACE_BPF_TRACE_H

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>

struct trace_event_call;
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
	struct bpf_attachment_stats __percpu	*stats;
	bpf_func_t				func;	/* of @prog, at hand */
	const struct bpf_insn			*insns;
	struct bpf_prog				*prog;
	struct perf_event			*event;
	bool					by_link;
};

/* One of the programs of a trace event, and what hits run for it. */
struct bpf_event_slot {
	const struct bpf_attachment	*runs;	/* @att, or bpf_idle_attachment */
	struct bpf_attachment		*att;	/* NULL once its owner is gone */
};

struct bpf_event_array {
	struct rcu_head		rcu;
	u32			nr;
	struct bpf_event_slot	slots[] __counted_by(nr);
};

/* Stands for programs that are paused, or gone: it lets everything pass. */
extern const struct bpf_attachment bpf_idle_attachment;

struct bpf_attachment_stats
bpf_stats_sum(const struct bpf_attachment_stats __percpu *stats);

/* Inlined: it is called where there must be no kprobes. */
static __always_inline void
bpf_count_miss(struct bpf_prog *prog, struct bpf_attachment_stats __percpu *stats)
{
	bpf_prog_inc_misses_counter(prog);
	this_cpu_inc(stats->missed);
}

u32 bpf_run_timed(const struct bpf_prog *prog, void *ctx);

/* bpf_prog_run(), with what is seldom needed out of the way */
static __always_inline u32 bpf_run_quickly(const struct bpf_prog *prog, void *ctx)
{
	cant_migrate();
	if (static_branch_unlikely(&bpf_stats_enabled_key))
		return bpf_run_timed(prog, ctx);
	return bpf_dispatcher_nop_func(ctx, prog->insnsi, prog->bpf_func);
}

#ifdef CONFIG_BPF_EVENTS
/*
 * Under bpf_prog_active; the caller clears bpf_current_hit in the end. Whether runs
 * are @timed is to be known at compile time.
 */
static __always_inline u32
__bpf_attachment_run(const struct bpf_attachment *att, void *ctx, bool timed)
{
	this_cpu_inc(att->stats->hits);
	__this_cpu_write(bpf_current_hit, &att->hit);
	if (timed && att->prog)
		return bpf_run_timed(att->prog, ctx);
	return bpf_dispatcher_nop_func(ctx, att->insns, att->func);
}

static __always_inline u32
bpf_attachment_run(const struct bpf_attachment *att, void *ctx)
{
	cant_migrate();
	return static_branch_unlikely(&bpf_stats_enabled_key) ?
		__bpf_attachment_run(att, ctx, true) : __bpf_attachment_run(att, ctx, false);
}

static __always_inline void
bpf_attachment_missed(const struct bpf_attachment *att)
{
	bpf_count_miss(att->prog, att->stats);
}

void bpf_event_find_sole(struct trace_event_call *call);

/**
 * bpf_event_run_sole() - run the program of an event that has one
 * @att: the event's only attachment, read in the same RCU-sched section
 * @ctx: what the program gets as context
 * @pass: if the program ran: whether it returned non-zero
 *
 * bpf_event_run() for the usual case. Contexts, guards and accounting are the
 * same, and so are the reasons why they suffice. If bpf_prog_active is 0 here,
 * it stays so until it is set: whatever interrupts puts it back.
 *
 * Return: whether the program ran. If not, nothing has happened, and the hit
 * is one for bpf_event_run().
 */
static __always_inline bool
bpf_event_run_sole(const struct bpf_attachment *att, void *ctx, bool *pass)
{
	if (unlikely(__this_cpu_read(bpf_prog_active)))
		return false;

	cant_sleep();
	rcu_read_lock();
	__this_cpu_write(bpf_prog_active, 1);
	*pass = bpf_attachment_run(att, ctx);
	__this_cpu_write(bpf_current_hit, NULL);
	__this_cpu_write(bpf_prog_active, 0);
	rcu_read_unlock();
	return true;
}
#else
static inline void bpf_event_find_sole(struct trace_event_call *call) { }

static inline bool
bpf_event_run_sole(const struct bpf_attachment *att, void *ctx, bool *pass)
{
	return false;
}
#endif

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

/*
 * bpf_trace_raw_tp.c: programs that get the arguments of a tracepoint
 */

/**
 * bpf_args_prog_run() - run a program on a tracepoint's arguments
 * @prog: the program
 * @cookie: what bpf_get_attach_cookie() returns meanwhile
 * @stats: of the attachment
 * @args: the arguments
 *
 * These programs have no lock in common with what is below them but those of
 * maps, which have guards of their own, as for other tracing programs. So only
 * a program that comes on top of itself is turned away, and counted as missed.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: what the program returns, 0 if it was turned away.
 */
static __always_inline u32
bpf_args_prog_run(struct bpf_prog *prog, u64 cookie,
		  struct bpf_attachment_stats __percpu *stats, u64 *args)
{
	struct bpf_trace_run_ctx run_ctx = { .bpf_cookie = cookie };
	struct bpf_run_ctx *old;
	u32 ret = 0;

	rcu_read_lock();
	if (likely(this_cpu_inc_return(*prog->active) == 1)) {
		this_cpu_inc(stats->hits);
		old = bpf_set_run_ctx(&run_ctx.run_ctx);
		ret = bpf_run_quickly(prog, args);
		bpf_reset_run_ctx(old);
	} else {
		bpf_count_miss(prog, stats);
	}
	this_cpu_dec(*prog->active);
	rcu_read_unlock();
	return ret;
}

const struct bpf_func_proto *
bpf_raw_tp_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog);

const char *bpf_raw_tp_link_name(const struct bpf_link *link);

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

extern const struct bpf_func_proto bpf_get_attach_cookie_proto_tracing;

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

/* bpf_trace_fetch.c: kfuncs, for programs only */
u8 bpf_fetch_u8(const void *addr__any);
u16 bpf_fetch_u16(const void *addr__any);
u32 bpf_fetch_u32(const void *addr__any);
u64 bpf_fetch_u64(const void *addr__any);
void *bpf_fetch_ptr(const void *addr__any);
int bpf_memcmp(const void *addr__any, const void *mem, u32 mem__sz);
void bpf_dump_stack(void);

/* bpf_trace.c: of all these, what every tracing program has */
const struct bpf_func_proto *
bpf_tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog);

#endif /* _KERNEL_TRACE_BPF_TRACE_H */
