// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs as filters of trace events.
 *
 * A program that is written to an event's filter file in tracefs is asked about
 * each hit before any space in the ring buffer is taken:
 *
 *	bpf-<fd>	the program behind a descriptor of the writer. It stays
 *			until the filter file is closed that it was written to.
 *	bpf-id:<id>	the program with this id. It stays until 0 is written
 *			to the filter file.
 *
 * Either enables the event, and disables it again in the end, unless it was
 * enabled before. A program and a filter string exclude each other.
 *
 * Events of kprobes and uprobes hand the program struct pt_regs, tracepoints
 * and system calls hand it their arguments as an array of u64.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/filter.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/syscalls.h>
#include <linux/trace_events.h>
#include <trace/syscall.h>

#include "bpf_trace.h"
#include "trace.h"

/* The filter of an event in an instance, that is, of a struct trace_event_file. */
struct bpf_event_filter {
	struct rcu_head				rcu;
	refcount_t				refs;	/* the event's, and while it is cleared */
	struct bpf_attachment			att;
	/*
	 * The open filter file, NULL for bpf-id:<id>. It is compared, not used, and not
	 * held: its release removes the filter.
	 */
	struct file				*owner;
	bool					enabled; /* was it for this filter? */
};

/**
 * bpf_event_filter_run() - ask the filter of a tracepoint's event
 * @file: the event in its instance
 * @args: the arguments
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: false if the event is not to be recorded.
 */
bool bpf_event_filter_run(struct trace_event_file *file, u64 *args)
{
	const struct bpf_event_filter *filter;

	cant_sleep();
	/* Not rcu_dereference_sched(): the event may be one of lockdep's. */
	filter = rcu_dereference_raw(file->bpf_filter);
	return !filter || bpf_attachment_hit_args(&filter->att, args);
}
EXPORT_SYMBOL_GPL(bpf_event_filter_run);

/**
 * bpf_event_filter_run_kprobe() - ask the filter of a kprobe event
 * @file: the event in its instance
 * @regs: the registers at the probe
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: false if the event is not to be recorded.
 */
bool bpf_event_filter_run_kprobe(struct trace_event_file *file, struct pt_regs *regs)
{
	const struct bpf_event_filter *filter;
	const struct bpf_attachment *att;
	bool pass;

	/* Not rcu_dereference_sched(): lockdep's checks can be probed. */
	filter = rcu_dereference_raw(file->bpf_filter);
	if (!filter)
		return true;
	att = &filter->att;
	if (!bpf_guard_enter()) {
		bpf_attachment_missed(att, BPF_MISS_MAP_OP);
		return false;
	}

	pass = bpf_attachment_hit(att, &att->hit, regs);
	bpf_guard_exit();
	return pass;
}

NOKPROBE_SYMBOL(bpf_event_filter_run_kprobe);

/*
 * Would the filter have been asked?  As trace_trigger_soft_disabled(), which can be
 * probed, and calls triggers.
 */
static __always_inline bool filter_is_asked(const struct trace_event_file *file)
{
	if (file->flags & EVENT_FILE_FL_TRIGGER_COND)
		return true;
	if (file->flags & EVENT_FILE_FL_SOFT_DISABLED)
		return false;
	return !(file->flags & EVENT_FILE_FL_PID_FILTER) ||
	       !this_cpu_read(file->tr->array_buffer.data->ignore_pid);
}

/**
 * bpf_event_filter_missed() - account a hit that never got to a probe event
 * @file: the event in its instance
 * @why: the reason
 *
 * bpf_event_missed() for the event's filter, if it has one.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_event_filter_missed(struct trace_event_file *file, enum bpf_miss why)
{
	const struct bpf_event_filter *filter;

	filter = rcu_dereference_raw(file->bpf_filter);
	if (filter && filter_is_asked(file))
		bpf_attachment_missed(&filter->att, why);
}

NOKPROBE_SYMBOL(bpf_event_filter_missed);

#ifdef CONFIG_UPROBES
/**
 * bpf_event_filter_run_uprobe() - ask the filter of a uprobe event
 * @file: the event in its instance
 * @func_ip: where the uprobe is, in the address space of the task
 * @regs: the registers of the task in user space
 *
 * Context: process. Reader of RCU tasks trace.
 * Return: false if the event is not to be recorded.
 */
bool bpf_event_filter_run_uprobe(struct trace_event_file *file, unsigned long func_ip,
				 struct pt_regs *regs)
{
	const struct bpf_hit hit = { .func_ip = func_ip };
	const struct bpf_event_filter *filter;

	guard(rcu)();
	filter = rcu_dereference(file->bpf_filter);
	if (!filter)
		return true;

	return bpf_attachment_hit_uprobe(&filter->att, &hit, regs);
}
#endif

/* What is wrong with what was written: its errno, the word at fault, a text. */
enum filter_error {
	FILTER_BAD_EVENT,
	FILTER_BAD_FD,
	FILTER_BAD_ID,
	FILTER_JUNK,
	FILTER_NO_PERFMON,
	FILTER_NO_ADMIN,
	FILTER_NO_FILE,
	FILTER_NO_PROG,
	FILTER_NO_ID,
	FILTER_WANTS_KPROBE,
	FILTER_WANTS_RAW_TP,
	FILTER_IS_MULTI,
	FILTER_SLEEPS,
	FILTER_OVERRIDES,
	FILTER_TOO_MANY_ARGS,
	FILTER_TWICE,
	FILTER_HAS_STRING,
	FILTER_HAS_PROG,
	FILTER_NOT_ENABLED,
};

static struct tracing_refusal filter_errors[] = {
	[FILTER_BAD_EVENT] = { -EINVAL,
		"This event takes no BPF program; probes, tracepoints and system calls do" },
	[FILTER_BAD_FD] = { -EINVAL, "Not the number of a descriptor" },
	[FILTER_BAD_ID] = { -EINVAL, "Not the id of a program" },
	[FILTER_JUNK] = { -EINVAL, "Nothing can follow a program" },
	[FILTER_NO_PERFMON] = { -EPERM, "A program as filter takes CAP_PERFMON" },
	[FILTER_NO_ADMIN] = { -EPERM, "A program by its id takes CAP_SYS_ADMIN" },
	[FILTER_NO_FILE] = { -EBADF, "No file is open at this descriptor" },
	[FILTER_NO_PROG] = { -EINVAL, "This descriptor is not a BPF program" },
	[FILTER_NO_ID] = { -ENOENT, "No program has this id" },
	[FILTER_WANTS_KPROBE] = { -EINVAL,
		"This event takes programs of type BPF_PROG_TYPE_KPROBE" },
	[FILTER_WANTS_RAW_TP] = { -EINVAL,
		"This event takes programs of type BPF_PROG_TYPE_RAW_TRACEPOINT" },
	[FILTER_IS_MULTI] = { -EINVAL, "This program was loaded for a multi link" },
	[FILTER_SLEEPS] = { -EINVAL, "This program may sleep, a filter must not" },
	[FILTER_OVERRIDES] = { -EINVAL,
		"This program overrides return values, a filter must not" },
	[FILTER_TOO_MANY_ARGS] = { -EACCES,
		"The program reads more arguments than the event has" },
	[FILTER_TWICE] = { -EEXIST,
		"A program filters this event already, write 0 to remove it" },
	[FILTER_HAS_STRING] = { -EBUSY,
		"The event has a filter string, write 0 to clear it first" },
	[FILTER_HAS_PROG] = { -EBUSY,
		"A program filters this event, write 0 to remove it first" },
	[FILTER_NOT_ENABLED] = { 0, "The event could not be enabled" },
};

/* A filter on its way. */
struct filter_request {
	struct trace_event_file	*file;
	struct file		*owner;
	const char		*text;	/* as written, without white space around it */
	struct bpf_prog		*prog;
};

/* @note: about what is wrong, or "" */
static int filter_refused_note(const struct filter_request *req, enum filter_error error,
			       int pos, const char *note)
{
	struct trace_event_call *call = req->file->event_call;
	const char *system = call->class->system, *name = trace_event_name(call);

	return tracing_refuse(req->file->tr, "bpf_filter", &filter_errors[error],
			      strlen(system) + strlen(name) + 2 + pos, "%s:%s %s%s%s",
			      system, name, req->text, *note ? " " : "", note);
}

static int filter_refused(const struct filter_request *req, enum filter_error error,
			  int pos)
{
	return filter_refused_note(req, error, pos, "");
}

static bool is_syscall_enter(const struct trace_event_call *call)
{
#ifdef CONFIG_FTRACE_SYSCALLS
	return call->class == &event_class_syscall_enter;
#else
	return false;
#endif
}

static bool is_syscall_exit(const struct trace_event_call *call)
{
#ifdef CONFIG_FTRACE_SYSCALLS
	return call->class == &event_class_syscall_exit;
#else
	return false;
#endif
}

/* Return: how many arguments the event has, or -1 if it has registers instead. */
static int filter_nr_args(const struct trace_event_call *call)
{
#ifdef CONFIG_FTRACE_SYSCALLS
	if (is_syscall_enter(call))
		return ((struct syscall_metadata *)call->data)->nb_args;
#endif
	if (is_syscall_exit(call))
		return 1;
	if (call->class->bpf_ops->has_regs)
		return -1;
	return call->class->nr_args;
}

static bool filter_takes_progs(const struct trace_event_call *call)
{
	const struct bpf_event_ops *ops = call->class->bpf_ops;

	/*
	 * Of the events of tracepoints, what TRACE_EVENT() makes has arguments for a
	 * program. Synthetic events, user events, and those that modules put on
	 * tracepoints of others have none, and ask none.
	 */
	return ops && (ops->has_regs || call->class->nr_args ||
		       is_syscall_enter(call) || is_syscall_exit(call));
}

static int filter_check_prog(const struct filter_request *req, int pos)
{
	int nr_args = filter_nr_args(req->file->event_call);
	const struct bpf_prog *prog = req->prog;
	enum bpf_prog_type type;
	char note[32];
	int reads;

	type = nr_args < 0 ? BPF_PROG_TYPE_KPROBE : BPF_PROG_TYPE_RAW_TRACEPOINT;
	if (prog->type != type)
		return filter_refused_note(req, nr_args < 0 ? FILTER_WANTS_KPROBE :
							      FILTER_WANTS_RAW_TP,
					   pos, bpf_prog_type_name(prog->type));
	if (is_multi_attach_type(prog->expected_attach_type))
		return filter_refused(req, FILTER_IS_MULTI, pos);
	if (prog->sleepable)
		return filter_refused(req, FILTER_SLEEPS, pos);
	if (prog->kprobe_override)
		return filter_refused(req, FILTER_OVERRIDES, pos);

	reads = DIV_ROUND_UP(prog->aux->max_ctx_offset, sizeof(u64));
	if (nr_args >= 0 && reads > nr_args) {
		snprintf(note, sizeof(note), "reads arg%d of %d", reads, nr_args);
		return filter_refused_note(req, FILTER_TOO_MANY_ARGS, pos, note);
	}
	return 0;
}

static struct bpf_event_filter *filter_of(const struct trace_event_file *file)
{
	return rcu_dereference_protected(file->bpf_filter, lockdep_is_held(&event_mutex));
}

static struct bpf_event_filter *filter_new(const struct filter_request *req)
{
	struct bpf_event_filter *filter = kzalloc(sizeof(*filter), GFP_KERNEL_ACCOUNT);

	if (!filter)
		return NULL;
	if (bpf_attachment_init(&filter->att, req->prog)) {
		kfree(filter);
		return NULL;
	}
	bpf_prog_inc(req->prog);
	filter->owner = req->owner;
	refcount_set(&filter->refs, 1);
	return filter;
}

static void filter_free(struct bpf_event_filter *filter)
{
	bpf_prog_put(filter->att.prog);
	bpf_attachment_exit(&filter->att);
	kfree(filter);
}

static void filter_put(struct bpf_event_filter *filter)
{
	if (refcount_dec_and_test(&filter->refs))
		filter_free(filter);
}

static void filter_put_rcu(struct rcu_head *rcu)
{
	filter_put(container_of(rcu, struct bpf_event_filter, rcu));
}

/* Return: whether the event records now. */
static bool filter_event_is_on(const struct trace_event_file *file)
{
	return file->flags & EVENT_FILE_FL_ENABLED &&
	       !(file->flags & EVENT_FILE_FL_SOFT_DISABLED);
}

/* Hits that begin from now on do not see the filter. */
static void filter_unlink(struct trace_event_file *file)
{
	clear_bit(EVENT_FILE_FL_BPF_FILTER_BIT, &file->flags);
	rcu_assign_pointer(file->bpf_filter, NULL);
}

static int filter_link(const struct filter_request *req)
{
	struct trace_event_file *file = req->file;
	struct bpf_event_filter *filter;
	int err;

	filter = filter_new(req);
	if (!filter)
		return -ENOMEM;

	/* The ring buffer of the top instance is small until an event is enabled. */
	err = tracing_update_buffers(file->tr);
	if (!err) {
		filter->enabled = !filter_event_is_on(file);
		rcu_assign_pointer(file->bpf_filter, filter);
		set_bit(EVENT_FILE_FL_BPF_FILTER_BIT, &file->flags);
		err = trace_event_enable_disable(file, 1, 0);
		/* Hits that began without the filter go on to record. */
		if (!err && !filter->enabled)
			bpf_wait_for_runs();
	}
	if (!err)
		return 0;

	filter_refused(req, FILTER_NOT_ENABLED, 0);
	filter_unlink(file);
	bpf_wait_for_runs();
	filter_put(filter);
	return err;
}

/*
 * Reads what follows "bpf-" into req->prog.
 */
static int filter_get_prog(struct filter_request *req)
{
	static const char by_fd[] = "bpf-", by_id[] = "bpf-id:";
	bool is_id = str_has_prefix(req->text, by_id);
	int pos = is_id ? strlen(by_id) : strlen(by_fd);
	const char *number = req->text + pos;
	char digits[16] = {};
	size_t len;
	u32 val;

	len = strspn(number, "0123456789");
	if (!len || len >= sizeof(digits))
		return filter_refused(req, is_id ? FILTER_BAD_ID : FILTER_BAD_FD, pos);
	if (number[len])
		return filter_refused(req, isspace(number[len]) ? FILTER_JUNK :
				      is_id ? FILTER_BAD_ID : FILTER_BAD_FD, pos + len);
	memcpy(digits, number, len);
	if (kstrtou32(digits, 10, &val))
		return filter_refused(req, is_id ? FILTER_BAD_ID : FILTER_BAD_FD, pos);

	if (!perfmon_capable())
		return filter_refused(req, FILTER_NO_PERFMON, 0);
	if (is_id && !capable(CAP_SYS_ADMIN))
		return filter_refused(req, FILTER_NO_ADMIN, 0);

	req->prog = is_id ? bpf_prog_by_id(val) : bpf_prog_get(val);
	if (!IS_ERR(req->prog)) {
		if (is_id)
			req->owner = NULL;
		return filter_check_prog(req, pos);
	}
	if (is_id)
		return filter_refused(req, FILTER_NO_ID, pos);
	return filter_refused(req, PTR_ERR(req->prog) == -EBADF ? FILTER_NO_FILE :
								  FILTER_NO_PROG, pos);
}

/**
 * bpf_event_filter_set() - a program was written to an event's filter file
 * @file: the event in its instance
 * @owner: the open filter file
 * @text: what was written; begins with "bpf-"
 *
 * On failure nothing has changed, and the instance's error_log tells why.
 *
 * Context: process, with event_mutex held.
 * Return: 0, or
 *
 * * -EINVAL: not a program, not one for this event, or no event for programs
 * * -EBADF, -ENOENT: no such descriptor, no such id
 * * -EPERM: no CAP_PERFMON, or for an id no CAP_SYS_ADMIN
 * * -EACCES: the program reads more arguments than there are
 * * -EEXIST, -EBUSY: there is a program, there is a filter string
 * * -ENOMEM, and why the event could not be enabled
 */
int bpf_event_filter_set(struct trace_event_file *file, struct file *owner,
			 const char *text)
{
	struct filter_request req = { .file = file, .owner = owner, .text = text };
	int err;

	lockdep_assert_held(&event_mutex);

	if (!filter_takes_progs(file->event_call))
		return filter_refused(&req, FILTER_BAD_EVENT, 0);

	err = filter_get_prog(&req);
	if (!err && filter_of(file))
		err = filter_refused(&req, FILTER_TWICE, 0);
	if (!err && file->flags & EVENT_FILE_FL_FILTERED)
		err = filter_refused(&req, FILTER_HAS_STRING, 0);
	if (!err)
		err = filter_link(&req);
	if (!IS_ERR_OR_NULL(req.prog))
		bpf_prog_put(req.prog);
	return err;
}

/**
 * bpf_event_filter_busy() - does a program keep a filter string out?
 * @file: the event in its instance
 * @text: the string that somebody wrote
 *
 * Context: process, with event_mutex held.
 * Return: 0, or -EBUSY if a program is the event's filter; error_log has it.
 */
int bpf_event_filter_busy(struct trace_event_file *file, const char *text)
{
	const struct filter_request req = { .file = file, .text = text };

	return filter_of(file) ? filter_refused(&req, FILTER_HAS_PROG, 0) : 0;
}

/**
 * bpf_event_filter_clear() - take the program away that filters an event
 * @file: the event in its instance
 * @owner: only if it was written to this open file, or NULL for in any case
 *
 * Once this returns, the program does not run on behalf of this event, and
 * what was enabled for it records nothing that it has not seen. The wait for that is
 * without event_mutex, so it holds up the caller alone.
 *
 * Context: process; takes event_mutex, may sleep for RCU grace periods.
 * Return: whether there was one.
 */
bool bpf_event_filter_clear(struct trace_event_file *file, struct file *owner)
{
	struct bpf_event_filter *filter;
	bool on;

	scoped_guard(mutex, &event_mutex) {
		filter = filter_of(file);
		if (!filter || (owner && filter->owner != owner))
			return false;
		refcount_inc(&filter->refs);
		if (filter->enabled) {
			trace_event_enable_disable(file, 0, 0);
			filter->enabled = false;
		}
		on = filter_event_is_on(file);
	}

	/*
	 * Hits that are under way when the event goes off still record, and have asked the
	 * filter, or are about to: it stays until they are done. Where others keep the
	 * event on, what they see without it is theirs.
	 */
	if (!on)
		bpf_wait_for_runs();

	scoped_guard(mutex, &event_mutex) {
		/* Not so if the event went meanwhile, or another write has cleared it. */
		if (filter_of(file) == filter) {
			filter_unlink(file);
			filter_put(filter);
		}
	}

	/* Now for hits that began meanwhile, because the event was turned on again. */
	bpf_wait_for_runs();
	filter_put(filter);
	return true;
}

/**
 * bpf_event_filter_drop() - an event goes away, and with it its filter
 * @file: the event in its instance
 *
 * Context: process, with event_mutex held.
 */
void bpf_event_filter_drop(struct trace_event_file *file)
{
	struct bpf_event_filter *filter = filter_of(file);

	if (!filter)
		return;
	filter_unlink(file);
	call_rcu(&filter->rcu, filter_put_rcu);
}

/**
 * bpf_event_filter_print() - show the program that filters an event
 * @file: the event in its instance
 * @s: where to
 *
 * Context: process, with event_mutex held.
 * Return: whether there is one.
 */
bool bpf_event_filter_print(struct trace_event_file *file, struct trace_seq *s)
{
	const struct bpf_event_filter *filter = filter_of(file);
	const struct bpf_prog_aux *aux;

	if (!filter)
		return false;
	aux = filter->att.prog->aux;
	trace_seq_printf(s, "bpf: id %u%s%s\n", aux->id, *aux->name ? " name " : "",
			 aux->name);
	return true;
}

/**
 * bpf_event_filter_show_fdinfo() - what fdinfo says of an event's filter file
 * @m: where to print
 * @file: the event in its instance
 *
 * Context: process, takes event_mutex.
 */
void bpf_event_filter_show_fdinfo(struct seq_file *m, struct trace_event_file *file)
{
	const struct bpf_event_filter *filter;

	guard(mutex)(&event_mutex);

	filter = filter_of(file);
	if (!filter)
		return;

	seq_printf(m, "bpf_prog_id:\t%u\n", filter->att.prog->aux->id);
	bpf_attachment_show(m, &filter->att);
}
