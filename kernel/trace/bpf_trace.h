/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the heart of BPF events (bpf_trace.c) and the files around it share.
 */
#ifndef _KERNEL_TRACE_BPF_TRACE_H
#define _KERNEL_TRACE_BPF_TRACE_H

#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/cleanup.h>
#include <linux/container_of.h>
#include <linux/filter.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/tracepoint-defs.h>

struct seq_file;
struct trace_event_call;
struct tracing_refusal;

/*
 * bpf_trace.c: programs on trace events
 */

/* What a running program may ask about the hit that it was run for. */
struct bpf_hit {
	u64		cookie;		/* what the owner of the attachment chose */
	unsigned long	func_ip;	/* 0: that of the kprobe which is running */
};

/* A hit of a session can be either end of a call, and has a word for both. */
struct bpf_session_hit {
	struct bpf_hit	hit;
	bool		is_return;
	u64		*cookie;
	const struct bpf_attachment *att; /* of kprobes: whose hit it is */
};

/*
 * The hit of the program which runs on this CPU under bpf_prog_active, the innermost.
 * NULL where there is none: what runs then is on a uprobe, and current->bpf_ctx
 * tells.
 */
DECLARE_PER_CPU(const struct bpf_hit *, bpf_current_hit);

/* Hits that reached, and that did not reach, the program. */
struct bpf_attachment_stats {
	unsigned long		hits;
	unsigned long		missed[BPF_NR_MISSES];
};

/* What is left for runs of a program, for all CPUs: bpf_trace_limits.c */
struct bpf_budget {
	unsigned long	filled;	/* in jiffies: up to when @credit has what was due */
	atomic_t	credit;
} ____cacheline_aligned_in_smp;

/* How many programs one event runs, and QUERY_BPF reports, at most. ABI. */
#define BPF_EVENT_MAX_PROGS	64

/*
 * A program, and what its hits need: part of what owns it, which is an attachment of a
 * perf event, a link or a filter. It does not change while it can be hit,
 * but for @released.
 */
struct bpf_attachment {
	struct bpf_hit				hit;
	struct bpf_attachment_stats __percpu	*stats;
	unsigned long __percpu			*hits;	/* of @stats */
	struct bpf_budget			*budget;
	bpf_func_t				func;	/* of @prog, at hand */
	const struct bpf_insn			*insns;	/* what @func gets, too */
	struct bpf_prog				*prog;
	bool					sleepable; /* has a reference to @prog */
	bool					released; /* hits on uprobes do not run it */
};

/*
 * Hits in kprobe_multi links name their attachment, and have a func_ip; the others that
 * programs run for under the guard are part of theirs.
 */
static __always_inline const struct bpf_attachment *bpf_hit_attachment(const struct bpf_hit *hit)
{
	return hit->func_ip ? container_of(hit, struct bpf_session_hit, hit)->att :
			      container_of(hit, struct bpf_attachment, hit);
}

/*
 * The attachment of a perf event. perf_event::bpf and a slot point to @att, from its
 * attach to bpf_event_release(), which frees it after the grace period of its readers:
 * that of RCU, for uprobe events that of RCU tasks trace.
 */
struct bpf_perf_attachment {
	struct bpf_attachment	att;
	struct perf_event	*event;
	bool			for_task; /* @event watches one task */
	bool			by_link;
	struct rcu_head		rcu;
};

static inline struct bpf_perf_attachment *
bpf_perf_attachment(const struct bpf_attachment *att)
{
	return container_of(att, struct bpf_perf_attachment, att);
}

/*
 * One of the programs of a trace event. @att changes under bpf_event_mutex and
 * bpf_hits_lock; @active, which hits read without a lock, under the latter.
 */
struct bpf_event_slot {
	const struct bpf_attachment	*active; /* @att, or bpf_idle_attachment */
	struct bpf_attachment		*att;	/* NULL once its owner is gone */
};

/*
 * trace_event_call::bpf_array. It is replaced as a whole, under bpf_event_mutex,
 * and freed after a grace period as above; but for @slots it does not change.
 */
struct bpf_event_array {
	struct rcu_head		rcu;
	u32			nr;
	struct bpf_event_slot	slots[] __counted_by(nr);
};

/* Stands for programs that are paused, or gone: it lets everything pass. */
extern const struct bpf_attachment bpf_idle_attachment;

#ifdef CONFIG_BPF_EVENTS
/*
 * Set in bpf_prog_active while programs run; the rest of it is preempt_count() of where they
 * do. Without it, that is how often bpf_disable_instrumentation() has been called.
 */
#define BPF_GUARD_HELD BIT(31)

/*
 * Set in it, too, while a program runs that is kept apart: what takes the guard asks for that
 * one, and clears this while it runs.
 */
#define BPF_GUARD_APART BIT(30)

void bpf_attachment_missed(const struct bpf_attachment *att, enum bpf_miss why);

/**
 * bpf_guard_enter() - begin to run programs
 *
 * Those of kprobes, of ftrace and of perf events run in a breakpoint, an ftrace
 * call, a jump or an overflow, so anywhere: with any lock held, on top of any
 * interrupt or NMI. Preemption is off, which pins the CPU and, being an RCU-sched
 * reader, keeps the attachments, the programs and their maps; rcu_read_lock() is
 * for what checks for it by name.
 *
 * bpf_prog_active is the one recursion guard. It is per CPU and counts every
 * context alike, so a program does not begin here on top of another, or on top of a
 * map operation of bpf(2). Those that may be on top of another begin in
 * bpf_guard_enter_on_top(). Programs on uprobes and those of other types, which do
 * not take the guard, can be below and on top as well: maps whose locks are taken here
 * have guards of their own, see kernel/bpf/map_lock.h.
 *
 * If it is 0 here, it stays so until it is set: what interrupts in between puts it
 * back. It is set before, and cleared after, all that can be traced: that may be
 * one of the functions whose hits this is about.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: whether programs may run, until bpf_guard_exit(). If not, the hit is
 * one for bpf_guard_enter_on_top().
 */
static __always_inline bool bpf_guard_enter(void)
{
	if (unlikely(__this_cpu_read(bpf_prog_active)))
		return false;

	__this_cpu_write(bpf_prog_active, preempt_count() | BPF_GUARD_HELD);
	cant_sleep();
	rcu_read_lock();
	return true;
}

/**
 * bpf_guard_exit() - the end of what bpf_guard_enter() has let begin
 */
static __always_inline void bpf_guard_exit(void)
{
	__this_cpu_write(bpf_current_hit, NULL);
	rcu_read_unlock();
	__this_cpu_write(bpf_prog_active, 0);
}

/*
 * bpf_trace_nest.c: what bpf_guard_enter() turned away
 */

enum bpf_miss bpf_guard_enter_on_top(struct bpf_run_below *below,
				     const struct bpf_attachment *att);
void bpf_guard_exit_on_top(const struct bpf_run_below *below);
bool bpf_attachment_hit_on_top(const struct bpf_attachment *att, void *ctx);
void bpf_attachment_keep_apart(struct bpf_attachment *att);

u32 bpf_run_timed(const struct bpf_attachment *att, void *ctx);

/* bpf_trace_limits.c: how often programs run at most, and for which tasks */
u32 bpf_attachment_run_limited(const struct bpf_attachment *att, void *ctx);
void bpf_limits_show(struct seq_file *m, const struct bpf_prog *prog);

/*
 * Count a hit, and run the program for it. @timed is a compile-time constant.
 *
 * The callers, what keeps @att for them, and which programs can be unfinished on this CPU
 * while this one runs:
 *
 * bpf_attachment_hit()		preemption off		those without the guard, and those
 *							that bpf_trace_nest.c lets be below
 * bpf_attachment_hit_args()	preemption off		all but the same program, and those that
 *							share per-CPU values with it
 * bpf_attachment_hit_uprobe()	RCU tasks trace		those of tasks that were preempted,
 *							or that sleep
 */
static __always_inline u32
__bpf_attachment_run(const struct bpf_attachment *att, void *ctx, bool timed)
{
	this_cpu_inc(*att->hits);
	if (timed && att->prog)
		return bpf_run_timed(att, ctx);
	return bpf_dispatcher_nop_func(ctx, att->insns, att->func);
}

static __always_inline u32
bpf_attachment_run_unlimited(const struct bpf_attachment *att, void *ctx)
{
	return static_branch_unlikely(&bpf_stats_enabled_key) ?
		__bpf_attachment_run(att, ctx, true) : __bpf_attachment_run(att, ctx, false);
}

static __always_inline u32
bpf_attachment_run(const struct bpf_attachment *att, void *ctx)
{
	cant_migrate();
	return static_branch_unlikely(&bpf_limits_key) ?
		bpf_attachment_run_limited(att, ctx) : bpf_attachment_run_unlimited(att, ctx);
}

/* Caller holds the guard. @hit is what the program may ask about. */
static __always_inline u32
bpf_attachment_hit(const struct bpf_attachment *att, const struct bpf_hit *hit, void *ctx)
{
	barrier(); /* what interrupts from here on looks at *hit: bpf_hit_attachment() */
	__this_cpu_write(bpf_current_hit, hit);
	return bpf_attachment_run(att, ctx);
}

/**
 * bpf_attachment_hit_args() - run a program on a tracepoint's arguments
 * @att: the program
 * @args: the arguments
 *
 * These programs have no lock in common with what is below them but those of
 * maps, which have guards of their own, as for other tracing programs. So a
 * program that comes on top of itself is turned away, and counted as missed,
 * and one that has per-CPU values in common with what is below: see
 * bpf_attachment_keep_apart().
 *
 * Preemption is off, which keeps @att; rcu_read_lock() is for what checks for it by
 * name. It hits lockdep's tracepoints, so it is taken where such a hit is turned away.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: what the program returns, 0 if it was turned away.
 */
static __always_inline u32
bpf_attachment_hit_args(const struct bpf_attachment *att, u64 *args)
{
	struct bpf_trace_run_ctx run_ctx = { .bpf_cookie = att->hit.cookie };
	int __percpu *active = att->prog->active;
	struct bpf_run_ctx *old;
	u32 ret = 0;

	if (likely(this_cpu_inc_return(*active) == 1)) {
		rcu_read_lock();
		old = bpf_set_run_ctx(&run_ctx.run_ctx);
		ret = bpf_attachment_run(att, args);
		bpf_reset_run_ctx(old);
		rcu_read_unlock();
	} else {
		bpf_attachment_missed(att, BPF_MISS_SAME_PROG);
	}
	this_cpu_dec(*active);
	return ret;
}

void bpf_event_update_sole(struct trace_event_call *call);

/**
 * bpf_event_run_sole() - run the program of an event that has one
 * @att: the event's only attachment, read in the same RCU-sched section
 * @ctx: what the program gets as context
 * @pass: whether it returned non-zero
 *
 * bpf_event_run() for the usual case.
 *
 * Return: whether the program ran, or must not by its limits. If not, nothing has
 * happened, and the hit is one for bpf_event_run().
 */
static __always_inline bool
bpf_event_run_sole(const struct bpf_attachment *att, void *ctx, bool *pass)
{
	if (!bpf_guard_enter())
		return false;
	*pass = bpf_attachment_hit(att, &att->hit, ctx);
	bpf_guard_exit();
	return true;
}
#else
static inline void bpf_event_update_sole(struct trace_event_call *call) { }

static inline bool
bpf_event_run_sole(const struct bpf_attachment *att, void *ctx, bool *pass)
{
	return false;
}
#endif

static inline bool is_multi_attach_type(enum bpf_attach_type type)
{
	return type == BPF_TRACE_KPROBE_MULTI || type == BPF_TRACE_UPROBE_MULTI ||
	       bpf_is_session_type(type);
}

/*
 * The attach type alone does not tell: programs of other types, as of raw tracepoints, load
 * with any. What replaces a function of a session (BPF_PROG_TYPE_EXT) counts as one.
 */
static __always_inline bool bpf_prog_is_session(const struct bpf_prog *prog)
{
	return bpf_is_session_type(prog->expected_attach_type) &&
	       resolve_prog_type(prog) == BPF_PROG_TYPE_KPROBE;
}

DEFINE_LOCK_GUARD_0(bpf_event, bpf_event_lock(), bpf_event_unlock())

int bpf_attachment_init(struct bpf_attachment *att, struct bpf_prog *prog);
void bpf_attachment_exit(struct bpf_attachment *att);

struct bpf_attachment *bpf_event_attachment(const struct perf_event *event);
const struct bpf_attachment *
bpf_event_next_attachment(const struct trace_event_call *call, u32 *pos);
int bpf_event_add(struct perf_event *event, struct bpf_prog *prog, u64 cookie,
		  bool by_link);

/*
 * bpf_trace_wait.c: when no run of a program is under way any more
 */
void bpf_wait_for_runs(void);
void bpf_wait_for_sleepers(void);

/*
 * What is asked of the source of an event: trace_kprobe.c, trace_uprobe.c, bpf_trace_tp.c
 */

/**
 * struct bpf_event_target - what an event stands for, as its maker named it
 * @type: what it is
 * @name: symbol, file or tracepoint, empty where the maker gave only an address;
 *	kfree() it
 * @offset: in bytes, from the symbol or the start of the file
 * @addr: of a kprobe, 0 if the asking task must not see kernel addresses
 * @missed: how many hits the kprobe missed
 */
struct bpf_event_target {
	enum bpf_perf_event_type	type;
	const char			*name;
	u64				offset;
	u64				addr;
	unsigned long			missed;
};

struct bpf_attach_request;

/**
 * struct bpf_event_ops - how programs run on events of one kind
 * @has_regs: what filters get is struct pt_regs; false: arguments, if there are any
 * @check_attach: may the program be attached? In process context; returns 0, or an
 *	errno, with the reason in error_log
 * @allows_override: may programs override return values? Called between
 *	bpf_event_lock() and bpf_event_unlock(). NULL: they may not
 * @target: fill in what the event stands for. In process context, may take
 *	event_mutex; returns 0, -ENOENT if the probe is gone, or -ENOMEM
 * @set_sole: @sole is the one program that the event has to run, NULL if there is none,
 *	several, or one that needs more than a run. Called with a raw spinlock held.
 *	NULL: the event does not need to know
 * @call_rcu: call a function when hits that are under way no longer use the array
 * @wait_readers: wait until hits that are under way no longer use an attachment. In
 *	process context, may sleep
 * @covers_current: was a perf event, or one that a child of its task inherited from it,
 *	opened for a task with the address space of current? Called in process context,
 *	for events that were opened for one task. NULL: hits of other tasks run the
 *	program, too
 */
struct bpf_event_ops {
	bool has_regs;
	int (*check_attach)(const struct bpf_attach_request *req);
	bool (*allows_override)(struct trace_event_call *call);
	int (*target)(struct trace_event_call *call, struct bpf_event_target *target);
	void (*set_sole)(struct trace_event_call *call,
			 const struct bpf_attachment *sole);
	void (*call_rcu)(struct rcu_head *head, rcu_callback_t func);
	void (*wait_readers)(void);
	bool (*covers_current)(struct perf_event *event);
};

/*
 * bpf_trace_attach.c: how programs get to events
 */
bool bpf_event_runs_progs(const struct perf_event *event);
int bpf_event_attach_link(struct perf_event *event, int prog_fd, struct bpf_prog *prog,
			  u64 cookie, struct bpf_verifier_log *log);

/*
 * bpf_trace_refuse.c: why something is not attached
 */

/* Why an attach to a perf event fails */
enum bpf_attach_error {
	ATTACH_BAD_EVENT,
	ATTACH_NO_FILE,
	ATTACH_NO_PROG,
	ATTACH_WANTS_KPROBE,
	ATTACH_WANTS_TP,
	ATTACH_WANTS_PERF_EVENT,
	ATTACH_NO_CALLCHAIN,
	ATTACH_PAST_RECORD,
	ATTACH_IS_MULTI,
	ATTACH_SLEEPS,
	ATTACH_OVERRIDES,
	ATTACH_FD_TAKEN,
	ATTACH_TWICE,
	ATTACH_FULL,
};

/* An attach on its way: what came from user space, and the program once found. */
struct bpf_attach_request {
	const char		*cmd;
	struct perf_event	*event;
	int			prog_fd;
	struct bpf_prog		*prog;
	u64			cookie;
	bool			by_link;
	struct bpf_verifier_log	*log;
};

int bpf_attach_refuse(const struct bpf_attach_request *req,
		      enum bpf_attach_error error);

__printf(4, 5)
int bpf_refuse(struct bpf_verifier_log *log, struct tracing_refusal *why, int pos,
	       const char *fmt, ...);
int bpf_refuse_link_flags(struct bpf_verifier_log *log, u32 flags);

const char *bpf_prog_type_name(enum bpf_prog_type type);

/*
 * Which program fits to which event: bpf_trace_kprobe.c, bpf_trace_perf_event.c
 */
int bpf_kprobe_check_attach(const struct bpf_attach_request *req);
int bpf_uprobe_check_attach(const struct bpf_attach_request *req);
int bpf_perf_event_check_attach(const struct bpf_attach_request *req);

/*
 * bpf_trace_missed.c: a trace event for misses
 */
extern const char * const bpf_miss_names[BPF_NR_MISSES];

DECLARE_TRACEPOINT(bpf_prog_missed);
void __bpf_trace_missed(const struct bpf_prog *prog, enum bpf_miss why);

static __always_inline void bpf_trace_missed(const struct bpf_prog *prog, enum bpf_miss why)
{
	if (tracepoint_enabled(bpf_prog_missed))
		__bpf_trace_missed(prog, why);
}

/*
 * bpf_trace_query.c: what user space can ask
 */
unsigned long bpf_attachment_sum(const struct bpf_attachment *att,
				 struct bpf_attachment_stats *sum);
void bpf_stats_show(struct seq_file *m, const struct bpf_attachment_stats *sum);
void bpf_attachment_show(struct seq_file *m, const struct bpf_attachment *att);
int bpf_copy_name(u64 uptr, u32 *ulen, const char *name);

/*
 * bpf_trace_raw_tp.c: programs that get the arguments of a tracepoint
 */

const struct bpf_func_proto *
bpf_raw_tp_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog);

/* bpf_trace_hit.c */
bool bpf_hit_is_return(void);
#ifdef CONFIG_X86_KERNEL_IBT
unsigned long bpf_func_start(unsigned long ip);
#else
/* A function's address, from that of the place in it which is probed for entry. */
static inline unsigned long bpf_func_start(unsigned long ip)
{
	return ip;
}
#endif

/* bpf_trace_kprobe_multi.c */
#ifdef CONFIG_FPROBE
int bpf_kprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
				 struct bpf_verifier_log *log);
#else
static inline int bpf_kprobe_multi_link_create(const union bpf_attr *attr,
					       struct bpf_prog *prog,
					       struct bpf_verifier_log *log)
{
	return -EOPNOTSUPP;
}
#endif

/*
 * bpf_trace_uprobe.c, bpf_trace_uprobe_multi.c: programs on uprobes
 */

/* current->bpf_ctx of a program on a uprobe. */
struct bpf_uprobe_run_ctx {
	struct bpf_run_ctx	run_ctx;
	const struct bpf_hit	*hit;
};

#ifdef CONFIG_UPROBES
int bpf_uprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
				 struct bpf_verifier_log *log);
#else
static inline int bpf_uprobe_multi_link_create(const union bpf_attr *attr,
					       struct bpf_prog *prog,
					       struct bpf_verifier_log *log)
{
	return -EOPNOTSUPP;
}
#endif

u32 bpf_attachment_hit_uprobe(const struct bpf_attachment *att, const struct bpf_hit *hit,
			      struct pt_regs *regs);
void bpf_attachment_missed_uprobe(const struct bpf_attachment *att);

#endif /* _KERNEL_TRACE_BPF_TRACE_H */
