/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BPF programs on perf events: what perf core and the sources of events call.
 */
#ifndef _LINUX_BPF_EVENTS_H
#define _LINUX_BPF_EVENTS_H

#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/jump_label.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/rcupdate_trace.h>
#include <linux/trace_events.h>

struct bpf_attachment;
struct bpf_event_array;
struct bpf_verifier_log;
struct file;
struct trace_event_file;
struct trace_seq;
struct trace_subsystem_dir;
struct perf_event;
struct perf_event_query_bpf;
struct seq_file;

/**
 * enum bpf_miss - why a program did not run for a hit of what it is attached to
 * @BPF_MISS_SAME_PROG: it was running, on this CPU, below the hit
 * @BPF_MISS_OTHER_PROG: another one was, or a run was about to begin or just over
 * @BPF_MISS_MAP_OP: bpf(2) was at work on a map there
 * @BPF_MISS_NESTED: kprobes or perf were handling another hit there
 * @BPF_MISS_NO_RETURN: the return of the call could not be followed
 * @BPF_MISS_NO_RCU: RCU did not watch the CPU
 * @BPF_MISS_BUDGET: it has run as often as it may
 * @BPF_NR_MISSES: how many there are
 */
enum bpf_miss {
	BPF_MISS_SAME_PROG,
	BPF_MISS_OTHER_PROG,
	BPF_MISS_MAP_OP,
	BPF_MISS_NESTED,
	BPF_MISS_NO_RETURN,
	BPF_MISS_NO_RCU,
	BPF_MISS_BUDGET,
	BPF_NR_MISSES
};

/* One program at both ends of a call: see bpf_session_is_return(). */
static inline bool bpf_is_session_type(enum bpf_attach_type type)
{
	return type == BPF_TRACE_KPROBE_SESSION || type == BPF_TRACE_UPROBE_SESSION;
}

/* Called with CONFIG_BPF_EVENTS only: without it, "bpf-" begins an expression. */
int bpf_event_filter_set(struct file *owner, const char *text);
int bpf_system_filter_set(struct trace_subsystem_dir *dir, struct file *owner,
			  const char *text);

#ifdef CONFIG_BPF_EVENTS
void bpf_event_lock(void);
void bpf_event_unlock(void);
int bpf_event_set_prog(struct perf_event *event, u32 prog_fd);
int bpf_event_query(struct perf_event *event,
		    struct perf_event_query_bpf __user *uquery);
void bpf_event_release(struct perf_event *event);
void bpf_event_init(struct perf_event *event);
void bpf_event_begin_pause(struct perf_event *event);
bool bpf_event_pause(struct perf_event *event);
void bpf_event_resume(struct perf_event *event);
void bpf_event_show_fdinfo(struct seq_file *m, struct perf_event *event);

int bpf_perf_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
			 struct bpf_verifier_log *log);
int bpf_kprobe_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
			   struct bpf_verifier_log *log);
int bpf_raw_tp_link_create(struct bpf_prog *prog, const char *name, u64 cookie,
			   struct bpf_verifier_log *log);
const char *bpf_raw_tp_probe_name(const char *name, char *buf);
int bpf_kprobe_check_attach_type(const struct bpf_prog *prog,
				 enum bpf_attach_type type);
int bpf_task_fd_query(const union bpf_attr *attr, union bpf_attr __user *uattr);
void bpf_event_explain_helper(struct bpf_verifier_log *log, const struct bpf_prog *prog,
			      int func_id);
void bpf_event_explain_access(struct bpf_verifier_log *log, const struct bpf_prog *prog);

bool bpf_event_run(const struct bpf_event_array *array, void *ctx);
void bpf_event_missed(struct trace_event_call *call, enum bpf_miss why);
bool bpf_miss_records_hold(void);
void bpf_miss_records_release(void);
bool bpf_event_overrides(struct trace_event_call *call);

bool bpf_prog_is_apart(const struct bpf_prog *prog);
enum bpf_miss bpf_prog_enter_apart(struct bpf_run_below *below, const struct bpf_prog *prog);
void bpf_prog_exit_apart(const struct bpf_run_below *below);
void bpf_abandon_runs(void);
void bpf_abandon_buffers(void);

void bpf_limits_forget(const struct bpf_prog *prog);
int bpf_tramp_limits_init(struct bpf_prog *prog);
void bpf_tramp_limits_start(struct bpf_prog *prog);
void bpf_tramp_limits_free(struct bpf_prog_aux *aux);
void bpf_tramp_limits_show(struct seq_file *m, const struct bpf_prog *prog);
bool bpf_tramp_in_limits(const struct bpf_prog *prog);

DECLARE_STATIC_KEY_FALSE(bpf_limits_key);

/* Called by trampolines, once a program has passed its guard */
static __always_inline bool bpf_tramp_may_run(const struct bpf_prog *prog)
{
	return !static_branch_unlikely(&bpf_limits_key) || bpf_tramp_in_limits(prog);
}

bool bpf_event_overflow_run(const struct bpf_attachment *att,
			    struct perf_event *event,
			    struct perf_sample_data *data, struct pt_regs *regs);
void bpf_event_overflow_missed(const struct perf_event *event);

int bpf_event_filter_busy(struct trace_event_file *file, const char *text);
void bpf_event_filter_clear(struct trace_event_file *file, struct file *owner);
void bpf_event_filter_drop(struct trace_event_file *file);
void bpf_event_filter_keeps(struct trace_event_call *call);
void bpf_event_filter_missed(struct trace_event_file *file, enum bpf_miss why);
bool bpf_event_filter_print(struct trace_event_file *file, struct trace_seq *s);
void bpf_event_filter_show_fdinfo(struct seq_file *m, struct trace_event_file *file);

int bpf_system_filter_busy(struct trace_subsystem_dir *dir, const char *text);
void bpf_system_filter_clear(struct trace_subsystem_dir *dir, struct file *owner);
bool bpf_system_filter_print(struct trace_subsystem_dir *dir, struct trace_seq *s);
void bpf_system_filter_show_fdinfo(struct seq_file *m, struct trace_subsystem_dir *dir,
				   struct file *owner);

bool bpf_uprobe_event_run(const struct bpf_event_array *array,
			  unsigned long func_ip, struct pt_regs *regs);
void bpf_uprobe_event_missed(struct trace_event_call *call);

/**
 * bpf_event_passes() - put a hit of a trace event before its BPF programs
 * @call: the event
 * @ctx: what its programs get as context
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: false if the hit must not become a perf record, because a program
 * turned it down or because the programs could not run. true otherwise, and
 * where the event has no program.
 */
static __always_inline bool bpf_event_passes(struct trace_event_call *call,
					     void *ctx)
{
	const struct bpf_event_array *array;

	array = rcu_dereference_sched(call->bpf_array);
	return likely(!array) || bpf_event_run(array, ctx);
}

/**
 * bpf_event_overflow() - put an overflow of a perf event before its BPF program
 * @event: the perf event; one that was inherited has its parent's program
 * @data: what perf knows of the sample so far
 * @regs: the registers of what the overflow interrupted
 *
 * Programs on trace events have had their say by now, before the record was
 * made.
 *
 * Context: interrupts disabled; any of task, softirq, hardirq and NMI.
 * Return: false if there must be no sample, and no signal either, because the
 * program turned it down or could not run. true otherwise, and where there is
 * no program.
 */
static __always_inline bool bpf_event_overflow(struct perf_event *event,
					       struct perf_sample_data *data,
					       struct pt_regs *regs)
{
	const struct perf_event *owner = event->parent ?: event;
	const struct bpf_attachment *att = rcu_dereference_sched(owner->bpf);

	return likely(!att) || event->tp_event ||
	       bpf_event_overflow_run(att, event, data, regs);
}

/**
 * bpf_uprobe_event_passes() - put a hit of a uprobe event before its programs
 * @call: the event
 * @func_ip: where the uprobe is, in the address space of the task
 * @regs: the registers of the task in user space, the programs' context
 *
 * Context: process, may sleep. Reader of RCU tasks trace.
 * Return: false if the hit must not become a perf record, because a program
 * turned it down. true otherwise, and where the event has no program.
 */
static __always_inline bool
bpf_uprobe_event_passes(struct trace_event_call *call, unsigned long func_ip,
			struct pt_regs *regs)
{
	const struct bpf_event_array *array;

	array = rcu_dereference_check(call->bpf_array, rcu_read_lock_trace_held());
	return likely(!array) || bpf_uprobe_event_run(array, func_ip, regs);
}
#else
static inline int bpf_event_set_prog(struct perf_event *event, u32 prog_fd)
{
	return -EINVAL;
}

static inline int bpf_event_query(struct perf_event *event,
				  struct perf_event_query_bpf __user *uquery)
{
	return -EINVAL;
}

static inline void bpf_event_release(struct perf_event *event) { }

static inline void bpf_event_init(struct perf_event *event) { }
static inline void bpf_event_begin_pause(struct perf_event *event) { }

static inline bool bpf_event_pause(struct perf_event *event)
{
	return true;
}

static inline void bpf_event_resume(struct perf_event *event) { }

static inline void bpf_event_show_fdinfo(struct seq_file *m,
					 struct perf_event *event) { }

static inline bool bpf_prog_is_apart(const struct bpf_prog *prog)
{
	return false;
}

static inline enum bpf_miss bpf_prog_enter_apart(struct bpf_run_below *below,
						 const struct bpf_prog *prog)
{
	return BPF_NR_MISSES;
}

static inline void bpf_prog_exit_apart(const struct bpf_run_below *below) { }
static inline void bpf_abandon_runs(void) { }
static inline void bpf_abandon_buffers(void) { }

static inline void bpf_limits_forget(const struct bpf_prog *prog) { }

static inline int bpf_tramp_limits_init(struct bpf_prog *prog)
{
	return 0;
}

static inline void bpf_tramp_limits_start(struct bpf_prog *prog) { }
static inline void bpf_tramp_limits_free(struct bpf_prog_aux *aux) { }
static inline void bpf_tramp_limits_show(struct seq_file *m, const struct bpf_prog *prog) { }

static inline bool bpf_tramp_may_run(const struct bpf_prog *prog)
{
	return true;
}

static inline int bpf_perf_link_create(const union bpf_attr *attr,
				       struct bpf_prog *prog,
				       struct bpf_verifier_log *log)
{
	return -EINVAL;
}

static inline int bpf_kprobe_link_create(const union bpf_attr *attr,
					 struct bpf_prog *prog,
					 struct bpf_verifier_log *log)
{
	return -EINVAL;
}

static inline int bpf_raw_tp_link_create(struct bpf_prog *prog, const char *name,
					 u64 cookie, struct bpf_verifier_log *log)
{
	return -ENOENT;
}

static inline const char *bpf_raw_tp_probe_name(const char *name, char *buf)
{
	return ERR_PTR(-EINVAL);
}

static inline int bpf_kprobe_check_attach_type(const struct bpf_prog *prog,
					       enum bpf_attach_type type)
{
	return -EINVAL;
}

static inline void bpf_event_explain_helper(struct bpf_verifier_log *log,
					    const struct bpf_prog *prog, int func_id) { }
static inline void bpf_event_explain_access(struct bpf_verifier_log *log,
					    const struct bpf_prog *prog) { }

static inline int bpf_task_fd_query(const union bpf_attr *attr,
				    union bpf_attr __user *uattr)
{
	return -EINVAL;
}

static inline bool bpf_event_passes(struct trace_event_call *call, void *ctx)
{
	return true;
}

static inline bool bpf_event_overflow(struct perf_event *event,
				      struct perf_sample_data *data,
				      struct pt_regs *regs)
{
	return true;
}

static inline void bpf_event_overflow_missed(const struct perf_event *event) { }

static inline bool bpf_uprobe_event_passes(struct trace_event_call *call,
					   unsigned long func_ip,
					   struct pt_regs *regs)
{
	return true;
}

static inline void bpf_event_missed(struct trace_event_call *call, enum bpf_miss why) { }

static inline bool bpf_miss_records_hold(void)
{
	return false;
}

static inline void bpf_miss_records_release(void) { }

static inline void bpf_uprobe_event_missed(struct trace_event_call *call) { }

static inline void bpf_event_lock(void) { }

static inline void bpf_event_unlock(void) { }

static inline bool bpf_event_overrides(struct trace_event_call *call)
{
	return false;
}

static inline int bpf_event_filter_busy(struct trace_event_file *file,
					const char *text)
{
	return 0;
}

static inline void bpf_event_filter_clear(struct trace_event_file *file,
					  struct file *owner) { }

static inline void bpf_event_filter_drop(struct trace_event_file *file) { }

static inline void bpf_event_filter_keeps(struct trace_event_call *call) { }

static inline void bpf_event_filter_missed(struct trace_event_file *file,
					   enum bpf_miss why) { }

static inline bool bpf_event_filter_print(struct trace_event_file *file,
					  struct trace_seq *s)
{
	return false;
}

static inline void bpf_event_filter_show_fdinfo(struct seq_file *m,
						struct trace_event_file *file) { }

static inline int bpf_system_filter_busy(struct trace_subsystem_dir *dir,
					 const char *text)
{
	return 0;
}

static inline void bpf_system_filter_clear(struct trace_subsystem_dir *dir,
					   struct file *owner) { }

static inline bool bpf_system_filter_print(struct trace_subsystem_dir *dir,
					   struct trace_seq *s)
{
	return false;
}

static inline void bpf_system_filter_show_fdinfo(struct seq_file *m,
						 struct trace_subsystem_dir *dir,
						 struct file *owner) { }
#endif /* CONFIG_BPF_EVENTS */

#endif /* _LINUX_BPF_EVENTS_H */
