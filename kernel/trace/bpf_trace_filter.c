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
 * What is written to the filter file of a system is for all of its events that take
 * the program: each gets a filter of its own, or, if there is a reason against one,
 * none does.
 *
 * Events of kprobes and uprobes hand the program struct pt_regs, tracepoints
 * and system calls hand it their arguments as an array of u64.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/filter.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/security.h>
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
	union {
		struct rcu_head			rcu;
		struct bpf_event_filter		*next;	/* of those that are to be freed */
	};
	struct bpf_attachment			att;
	/*
	 * The open filter file, NULL for bpf-id:<id>. It is compared, not used, and not
	 * held: its release removes the filter.
	 */
	struct file				*owner;
	bool					enabled; /* the event, for this filter */
	u64					leaves;	/* 0, or since which removal */
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
	if (!bpf_guard_enter())
		return bpf_attachment_hit_on_top(att, regs);

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
	FILTER_OK,
	FILTER_BAD_EVENT,
	FILTER_BAD_FD,
	FILTER_BAD_ID,
	FILTER_JUNK,
	FILTER_NO_PERFMON,
	FILTER_NO_ADMIN,
	FILTER_NO_FILE,
	FILTER_NO_PROG,
	FILTER_NO_ID,
	FILTER_DENIED,
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
	FILTER_NO_EVENT,
};

static struct tracing_refusal filter_errors[] = {
	[FILTER_BAD_EVENT] = { -EINVAL,
		"This event takes no BPF program; probes, tracepoints and system calls do" },
	[FILTER_BAD_FD] = { -EINVAL,
		"Not the number of a descriptor, write bpf-FD or bpf-id:ID" },
	[FILTER_BAD_ID] = { -EINVAL, "Not the id of a program, write bpf-id:ID" },
	[FILTER_JUNK] = { -EINVAL, "Nothing can follow a program" },
	[FILTER_NO_PERFMON] = { -EPERM, "A program as filter takes CAP_PERFMON" },
	[FILTER_NO_ADMIN] = { -EPERM, "A program by its id takes CAP_SYS_ADMIN" },
	[FILTER_NO_FILE] = { -EBADF, "No file is open at this descriptor" },
	[FILTER_NO_PROG] = { -EINVAL, "This descriptor is not a BPF program" },
	[FILTER_NO_ID] = { -ENOENT, "No program has this id" },
	[FILTER_DENIED] = { 0, "A security module denies this program" },
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
	[FILTER_NO_EVENT] = { -EINVAL, "No event of this system takes this program" },
};

/* The events that a write is for, in an instance; and of their filters, which. */
struct filter_range {
	struct trace_array		*tr;
	struct trace_subsystem_dir	*dir;	/* all events of a system, or */
	struct trace_event_file		*file;	/* this one, or without both all */
	struct file			*owner;	/* what was written to it, NULL for all */
	struct bpf_prog			*prog;	/* those with it, NULL for all */
};

/* Return: the event of @range after @file, or the first for NULL. */
static struct trace_event_file *event_next(const struct filter_range *range,
					   struct trace_event_file *file)
{
	struct list_head *events = &range->tr->events;

	if (range->file)
		return file ? NULL : range->file;
	file = list_prepare_entry(file, events, list);
	list_for_each_entry_continue(file, events, list) {
		if (!range->dir || file->system == range->dir)
			return file;
	}
	return NULL;
}

static struct bpf_event_filter *filter_of(const struct trace_event_file *file)
{
	return rcu_dereference_protected(file->bpf_filter, lockdep_is_held(&event_mutex));
}

/* Return: the filter of an event, if it is one of @range. */
static struct bpf_event_filter *filter_of_range(const struct filter_range *range,
						const struct trace_event_file *file)
{
	struct bpf_event_filter *filter = filter_of(file);

	if (!filter || (range->owner && filter->owner != range->owner) ||
	    (range->prog && filter->att.prog != range->prog))
		return NULL;
	return filter;
}

/* Return: the event of @range after @file that has such a filter, or the first for NULL. */
static struct trace_event_file *filtered_next(const struct filter_range *range,
					      struct trace_event_file *file)
{
	do {
		file = event_next(range, file);
	} while (file && !filter_of_range(range, file));
	return file;
}

/* A filter on its way. */
struct filter_request {
	struct filter_range	range;
	const char		*text;	/* as written, without white space around it */
	int			pos;	/* in @text, of the number */
	unsigned int		nr;	/* events that take the program */
	bool			had_hits; /* one of them may have, which did not ask it */
	struct trace_event_file	*file;	/* that is at fault, NULL for the system */
	char			note[192]; /* about what is wrong, or "" */
};

static int filter_refused(const struct filter_request *req, enum filter_error error, int pos)
{
	const char *system, *name;

	if (req->file) {
		system = req->file->event_call->class->system;
		name = trace_event_name(req->file->event_call);
	} else {
		system = req->range.dir->subsystem->name;
		name = "*";
	}
	return tracing_refuse(req->range.tr, "bpf_filter", &filter_errors[error],
			      strlen(system) + strlen(name) + 2 + pos, "%s:%s %s%s%s",
			      system, name, req->text, *req->note ? " " : "", req->note);
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

/* Return: what there is against the program for an event, with req->note, or FILTER_OK. */
static enum filter_error filter_objection(struct filter_request *req,
					  const struct trace_event_file *file)
{
	const struct bpf_prog *prog = req->range.prog;
	enum bpf_prog_type type;
	int nr_args, reads;

	*req->note = '\0';
	if (!filter_takes_progs(file->event_call))
		return FILTER_BAD_EVENT;

	nr_args = filter_nr_args(file->event_call);
	type = nr_args < 0 ? BPF_PROG_TYPE_KPROBE : BPF_PROG_TYPE_RAW_TRACEPOINT;
	if (prog->type != type) {
		strscpy(req->note, bpf_prog_type_name(prog->type));
		return nr_args < 0 ? FILTER_WANTS_KPROBE : FILTER_WANTS_RAW_TP;
	}
	if (is_multi_attach_type(prog->expected_attach_type))
		return FILTER_IS_MULTI;
	if (prog->sleepable)
		return FILTER_SLEEPS;
	if (prog->kprobe_override)
		return FILTER_OVERRIDES;

	reads = DIV_ROUND_UP(prog->aux->max_ctx_offset, sizeof(u64));
	if (nr_args >= 0 && reads > nr_args) {
		snprintf(req->note, sizeof(req->note), "reads arg%d of %d", reads, nr_args);
		return FILTER_TOO_MANY_ARGS;
	}
	return FILTER_OK;
}

/* Is there an event that takes the program, and nothing in the way of those that do? */
static int filter_check(struct filter_request *req)
{
	struct trace_event_file *file, *objects = NULL;
	enum filter_error error, objection = FILTER_OK;
	const struct bpf_event_filter *filter;
	char note[48] = "";

	for (file = event_next(&req->range, NULL); file; file = event_next(&req->range, file)) {
		filter = filter_of(file);
		error = filter_objection(req, file);
		/* One open file is for one program, as its fdinfo is. */
		if (filter && (!error || (req->range.owner && filter->owner == req->range.owner)))
			error = FILTER_TWICE;
		else if (!error && file->flags & EVENT_FILE_FL_FILTERED)
			error = FILTER_HAS_STRING;
		if (error == FILTER_TWICE || error == FILTER_HAS_STRING) {
			*req->note = '\0';
			req->file = file;
			return filter_refused(req, error, 0);
		}
		if (!error) {
			req->nr++;
		} else if (!objects || objection == FILTER_BAD_EVENT) {
			objects = file;
			objection = error;
			strscpy(note, req->note);
		}
	}
	if (req->nr)
		return 0;
	if (!req->range.dir)
		return filter_refused(req, objection, req->pos);
	snprintf(req->note, sizeof(req->note), "(%s: %s%s%s)",
		 trace_event_name(objects->event_call), filter_errors[objection].text,
		 *note ? ", " : "", note);
	return filter_refused(req, FILTER_NO_EVENT, req->pos);
}

static struct bpf_event_filter *filter_new(const struct filter_range *range)
{
	struct bpf_event_filter *filter = kzalloc(sizeof(*filter), GFP_KERNEL_ACCOUNT);

	if (!filter)
		return NULL;
	if (bpf_attachment_init(&filter->att, range->prog)) {
		kfree(filter);
		return NULL;
	}
	bpf_prog_inc(range->prog);
	filter->owner = range->owner;
	return filter;
}

static void filter_free(struct bpf_event_filter *filter)
{
	bpf_prog_put(filter->att.prog);
	bpf_attachment_exit(&filter->att);
	kfree(filter);
}

static void filter_free_rcu(struct rcu_head *rcu)
{
	filter_free(container_of(rcu, struct bpf_event_filter, rcu));
}

static void filters_free(struct bpf_event_filter *filter)
{
	struct bpf_event_filter *next;

	for (; filter; filter = next) {
		next = filter->next;
		filter_free(filter);
	}
}

/* Return: whether the event records now. */
static bool filter_event_is_on(const struct trace_event_file *file)
{
	return file->flags & EVENT_FILE_FL_ENABLED &&
	       !(file->flags & EVENT_FILE_FL_SOFT_DISABLED);
}

static void filter_link(struct trace_event_file *file, struct bpf_event_filter *filter)
{
	if (!(file->event_call->flags & TRACE_EVENT_FL_KPROBE))
		bpf_attachment_keep_apart(&filter->att);
	rcu_assign_pointer(file->bpf_filter, filter);
	set_bit(EVENT_FILE_FL_BPF_FILTER_BIT, &file->flags);
}

/* After this RCU grace period, no filter runs that has been unlinked. Under event_mutex. */
static unsigned long filters_unlinked;

/* Hits that begin from now on do not see the filter. */
static void filter_unlink(struct trace_event_file *file)
{
	clear_bit(EVENT_FILE_FL_BPF_FILTER_BIT, &file->flags);
	rcu_assign_pointer(file->bpf_filter, NULL);
	filters_unlinked = get_state_synchronize_rcu();
}

/*
 * Removals are counted. A filter that leaves has the number of the first one that wants
 * to see it gone: its event is off since then, as far as it was on for the filter.
 */
static u64 filter_removals;

/*
 * Turns off the events that are on for filters of @range, which stay.
 * Return: how many filters there are. @off: is a hit of theirs to be waited for?
 */
static unsigned int filters_disable(const struct filter_range *range, u64 removal, bool *off)
{
	struct bpf_event_filter *filter;
	struct trace_event_file *file;
	unsigned int nr = 0;

	*off = false;
	for (file = filtered_next(range, NULL); file; file = filtered_next(range, file)) {
		filter = filter_of(file);
		nr++;
		if (filter->enabled)
			trace_event_enable_disable(file, 0, 0);
		filter->enabled = false;
		if (!filter->leaves)
			filter->leaves = removal;
		*off |= !filter_event_is_on(file);
	}
	return nr;
}

/*
 * Return: filters of @range, which hits that begin from now on do not see. Not those
 * that leave since a later removal only, whose waiting is not over.
 */
static struct bpf_event_filter *filters_unlink(const struct filter_range *range, u64 removal)
{
	struct bpf_event_filter *filter, *gone = NULL;
	struct trace_event_file *file;

	for (file = filtered_next(range, NULL); file; file = filtered_next(range, file)) {
		filter = filter_of(file);
		if (!filter->leaves || filter->leaves > removal)
			continue;
		filter_unlink(file);
		filter->next = gone;
		gone = filter;
	}
	return gone;
}

/*
 * Hits that are under way when an event goes off still record, and have asked the filter,
 * or are about to: it stays until they are done. Where others keep the event on, what they
 * see without it is theirs. The waits are without event_mutex, so they hold up the caller
 * alone.
 */
static void filters_clear(const struct filter_range *range)
{
	struct bpf_event_filter *gone;
	unsigned long unlinked;
	unsigned int nr;
	u64 removal;
	bool off;

	scoped_guard(mutex, &event_mutex) {
		removal = ++filter_removals;
		nr = filters_disable(range, removal, &off);
		unlinked = filters_unlinked;
	}
	if (!nr) {
		/*
		 * Another removal, or the end of an event, may have been first, and its
		 * wait not be over. A file that is open for reading never had a filter.
		 */
		if ((!range->owner || range->owner->f_mode & FMODE_WRITE) &&
		    !poll_state_synchronize_rcu(unlinked))
			bpf_wait_for_runs();
		return;
	}
	if (off)
		bpf_wait_for_runs();

	/* Events can go meanwhile, and other removals be first. */
	scoped_guard(mutex, &event_mutex)
		gone = filters_unlink(range, removal);

	/* Now for hits that began meanwhile, because the event was turned on again. */
	bpf_wait_for_runs();
	filters_free(gone);
}

/* One of the events could not be enabled. With event_mutex held: no write comes between. */
static void filters_take_back(const struct filter_request *req)
{
	u64 removal = ++filter_removals;
	struct bpf_event_filter *gone;
	bool off;

	if (!filters_disable(&req->range, removal, &off))
		return;
	if (off)
		bpf_wait_for_runs();
	gone = filters_unlink(&req->range, removal);
	bpf_wait_for_runs();
	filters_free(gone);
}

/*
 * First the events that are off, of which one may refuse to go on. Those that are on lose
 * no hit to a program that then has to be taken back.
 */
static int filters_link(struct filter_request *req, struct bpf_event_filter **spare)
{
	struct bpf_event_filter *filter;
	struct trace_event_file *file;
	int err;

	/* The ring buffer of the top instance is small until an event is enabled. */
	err = tracing_update_buffers(req->range.tr);
	if (err)
		return err;

	for (file = event_next(&req->range, NULL); file; file = event_next(&req->range, file)) {
		if (filter_objection(req, file) || filter_event_is_on(file))
			continue;
		filter = *spare;
		*spare = filter->next;
		/*
		 * An event that is off may have hits: for triggers, or from before it was
		 * switched off, which does not wait for them.
		 */
		req->had_hits |= file->flags & EVENT_FILE_FL_WAS_ENABLED;
		filter_link(file, filter);
		err = trace_event_enable_disable(file, 1, 0);
		if (err) {
			filters_take_back(req);
			req->file = file;
			filter_refused(req, FILTER_NOT_ENABLED, 0);
			return err;
		}
		filter->enabled = true;
	}
	for (file = event_next(&req->range, NULL); file; file = event_next(&req->range, file)) {
		if (filter_objection(req, file) || filter_of(file))
			continue;
		filter = *spare;
		*spare = filter->next;
		filter_link(file, filter);
		req->had_hits = true;
	}
	return 0;
}

static int filters_set(struct filter_request *req)
{
	struct bpf_event_filter *filter, *spare = NULL;
	unsigned int n;
	int err = -ENOMEM;

	for (n = 0; n < req->nr; n++) {
		filter = filter_new(&req->range);
		if (!filter)
			break;
		filter->next = spare;
		spare = filter;
	}
	if (n == req->nr)
		err = filters_link(req, &spare);
	filters_free(spare);
	return err;
}

static struct bpf_prog *filter_prog_by_fd(struct filter_request *req, u32 fd, int pos)
{
	struct bpf_prog *prog = bpf_prog_get(fd);

	if (IS_ERR(prog))
		return ERR_PTR(filter_refused(req, PTR_ERR(prog) == -EBADF ? FILTER_NO_FILE :
					      FILTER_NO_PROG, pos));
	return prog;
}

static struct bpf_prog *filter_prog_by_id(struct filter_request *req, u32 id, int pos)
{
	struct bpf_prog *prog;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return ERR_PTR(filter_refused(req, FILTER_NO_ADMIN, 0));
	prog = bpf_prog_by_id(id);
	if (IS_ERR(prog))
		return ERR_PTR(filter_refused(req, FILTER_NO_ID, pos));
	/* A descriptor has come by this already. */
	err = security_bpf_prog(prog);
	if (err) {
		bpf_prog_put(prog);
		filter_refused(req, FILTER_DENIED, pos);
		return ERR_PTR(err);
	}
	return prog;
}

/*
 * Reads what follows "bpf-" into req->range.prog.
 */
static int filter_get_prog(struct filter_request *req)
{
	static const char by_fd[] = "bpf-", by_id[] = "bpf-id:";
	bool is_id = str_has_prefix(req->text, by_id);
	enum filter_error bad = is_id ? FILTER_BAD_ID : FILTER_BAD_FD;
	int pos = is_id ? strlen(by_id) : strlen(by_fd);
	const char *number = req->text + pos;
	struct bpf_prog *prog;
	char digits[16] = {};
	size_t len;
	u32 val;

	len = strspn(number, "0123456789");
	if (!len || len >= sizeof(digits))
		return filter_refused(req, bad, pos);
	if (number[len])
		return filter_refused(req, isspace(number[len]) ? FILTER_JUNK : bad, pos + len);
	memcpy(digits, number, len);
	if (kstrtou32(digits, 10, &val))
		return filter_refused(req, bad, pos);

	if (!perfmon_capable())
		return filter_refused(req, FILTER_NO_PERFMON, 0);
	prog = is_id ? filter_prog_by_id(req, val, pos) : filter_prog_by_fd(req, val, pos);
	if (IS_ERR(prog))
		return PTR_ERR(prog);
	if (is_id)
		req->range.owner = NULL;
	req->range.prog = prog;
	req->pos = pos;
	return 0;
}

/* Hits that began without the filter go on to record. Without event_mutex. */
static void filters_wait(const struct filter_request *req)
{
	if (req->had_hits)
		bpf_wait_for_runs();
}

static int filter_set(struct filter_request *req)
{
	int err = filter_get_prog(req);

	if (err)
		return err;
	err = filter_check(req) ?: filters_set(req);
	bpf_prog_put(req->range.prog);
	return err;
}

/**
 * bpf_event_filter_set() - a program was written to an event's filter file
 * @owner: the open filter file
 * @text: what was written; begins with "bpf-"
 *
 * On failure nothing has changed, and the instance's error_log tells why, unless it is
 * for want of memory.
 *
 * Context: process; takes event_mutex, may sleep for an RCU grace period.
 * Return: 0, or
 *
 * * -ENODEV: the event is gone
 * * -EINVAL: not a program, not one for this event, or no event for programs
 * * -EBADF, -ENOENT: no such descriptor, no such id
 * * -EPERM: no CAP_PERFMON, or for an id no CAP_SYS_ADMIN
 * * -EACCES: the program reads more arguments than there are
 * * what a security module returns that denies a program by its id
 * * -EEXIST, -EBUSY: there is a program, there is a filter string
 * * -ENOMEM, and why the event could not be enabled
 */
int bpf_event_filter_set(struct file *owner, const char *text)
{
	struct filter_request req = { .text = text };
	struct trace_event_file *file;
	int err;

	scoped_guard(mutex, &event_mutex) {
		file = event_file_file(owner);
		if (!file)
			return -ENODEV;
		req.range = (struct filter_range) {
			.tr = file->tr, .file = file, .owner = owner
		};
		req.file = file;
		if (!filter_takes_progs(file->event_call))
			return filter_refused(&req, FILTER_BAD_EVENT, 0);
		err = filter_set(&req);
	}
	filters_wait(&req);
	return err;
}

/**
 * bpf_system_filter_set() - a program was written to a system's filter file
 * @dir: the system in its instance
 * @owner: the open filter file
 * @text: what was written; begins with "bpf-"
 *
 * All events of the system that take the program get it as their filter, or, on
 * failure, none does. What those have recorded that were enabled before one could not be,
 * stays. Events that come to the system later do not get the program.
 *
 * Context: process; takes event_mutex, may sleep for an RCU grace period.
 * Return: 0, -ENODEV if the system has no events any more, or as
 * bpf_event_filter_set(), with one entry in the instance's error_log; -EINVAL if no
 * event takes the program.
 */
int bpf_system_filter_set(struct trace_subsystem_dir *dir, struct file *owner,
			  const char *text)
{
	struct filter_request req = {
		.range = { .tr = dir->tr, .dir = dir, .owner = owner },
		.text = text,
	};
	int err;

	scoped_guard(mutex, &event_mutex)
		err = dir->nr_events ? filter_set(&req) : -ENODEV;
	filters_wait(&req);
	return err;
}

/* Return: 0, or -EBUSY if all events of @range have programs. */
static int filters_busy(const struct filter_range *range, const char *text)
{
	const struct filter_request req = {
		.range = *range,
		.text = text,
		.file = event_next(range, NULL),
	};
	struct trace_event_file *file;

	for (file = req.file; file; file = event_next(range, file)) {
		if (!filter_of(file))
			return 0;
	}
	return filter_refused(&req, FILTER_HAS_PROG, 0);
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
	const struct filter_range range = { .tr = file->tr, .file = file };

	return filters_busy(&range, text);
}

/**
 * bpf_system_filter_busy() - do programs keep a filter string out of all events?
 * @dir: the system in its instance, with at least one event
 * @text: the string that somebody wrote
 *
 * Context: process, with event_mutex held.
 * Return: 0 if an event of the system has no program, or -EBUSY; error_log has the first
 * of them.
 */
int bpf_system_filter_busy(struct trace_subsystem_dir *dir, const char *text)
{
	const struct filter_range range = { .tr = dir->tr, .dir = dir };

	return filters_busy(&range, text);
}

/**
 * bpf_event_filter_clear() - take the program away that filters an event
 * @file: the event in its instance
 * @owner: only if it was written to this open file, or NULL for in any case
 *
 * Once this returns, the program does not run on behalf of this event, and
 * what was enabled for it records nothing that it has not seen.
 *
 * Context: process; takes event_mutex, may sleep for RCU grace periods.
 */
void bpf_event_filter_clear(struct trace_event_file *file, struct file *owner)
{
	const struct filter_range range = { .tr = file->tr, .file = file, .owner = owner };

	filters_clear(&range);
}

/**
 * bpf_system_filter_clear() - take the programs away that filter events of a system
 * @dir: the system in its instance
 * @owner: those that were written to this open file of the system, or NULL for all
 *
 * As bpf_event_filter_clear() for each of the events, with the grace periods of one.
 *
 * Context: process; takes event_mutex, may sleep for RCU grace periods.
 */
void bpf_system_filter_clear(struct trace_subsystem_dir *dir, struct file *owner)
{
	const struct filter_range range = { .tr = dir->tr, .dir = dir, .owner = owner };

	filters_clear(&range);
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
	call_rcu(&filter->rcu, filter_free_rcu);
}

static void filter_print_prog(const struct bpf_prog *prog, struct trace_seq *s)
{
	const struct bpf_prog_aux *aux = prog->aux;

	trace_seq_printf(s, "bpf: id %u%s%s", aux->id, *aux->name ? " name " : "", aux->name);
}

/**
 * bpf_event_filter_keeps() - why can an event not be removed, which is enabled?
 * @call: the event
 *
 * If programs that filter it are the only ones it is enabled for, error_log of the top
 * instance has the first of them, and its instance.
 *
 * Context: process, with event_mutex held.
 */
void bpf_event_filter_keeps(struct trace_event_call *call)
{
	struct bpf_event_filter *filter, *keeps = NULL;
	const char *instance = NULL;
	struct trace_event_file *file;
	struct filter_range all = {};

	guard(mutex)(&trace_types_lock);

	if (call->perf_refcount)
		return;
	list_for_each_entry(all.tr, &ftrace_trace_arrays, list) {
		for (file = event_next(&all, NULL); file; file = event_next(&all, file)) {
			if (file->event_call != call || !(file->flags & EVENT_FILE_FL_ENABLED))
				continue;
			filter = filter_of(file);
			if (!filter || !filter->enabled)
				return;
			if (!keeps) {
				keeps = filter;
				instance = all.tr->name;
			}
		}
	}
	if (keeps)
		tracing_refuse(top_trace_array(), "bpf_filter", &filter_errors[FILTER_HAS_PROG], 2,
			       "-:%s/%s (id %u, instance %s)", call->class->system,
			       trace_event_name(call),
			       keeps->att.prog->aux->id, instance ?: "-");
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

	if (!filter)
		return false;
	filter_print_prog(filter->att.prog, s);
	trace_seq_putc(s, '\n');
	return true;
}

/* Return: how many events of a system a program filters, 0 if one before @first. */
static unsigned int filter_count_from(const struct filter_range *range,
				      const struct trace_event_file *first)
{
	struct trace_event_file *file;
	unsigned int nr = 0;

	for (file = filtered_next(range, NULL); file; file = filtered_next(range, file)) {
		if (!nr && file != first)
			return 0;
		nr++;
	}
	return nr;
}

/**
 * bpf_system_filter_print() - show the programs that filter events of a system
 * @dir: the system in its instance
 * @s: where to: a line for each program, with the number of its events
 *
 * Context: process, with event_mutex held.
 * Return: whether there are any.
 */
bool bpf_system_filter_print(struct trace_subsystem_dir *dir, struct trace_seq *s)
{
	const struct filter_range all = { .tr = dir->tr, .dir = dir };
	struct filter_range same = all;
	struct bpf_event_filter *filter;
	struct trace_event_file *file;
	bool found = false;
	unsigned int nr;

	for (file = filtered_next(&all, NULL); file; file = filtered_next(&all, file)) {
		filter = filter_of(file);
		found = true;
		same.prog = filter->att.prog;
		nr = filter_count_from(&same, file);
		if (!nr)
			continue;
		filter_print_prog(same.prog, s);
		trace_seq_printf(s, ", %u of %d events\n", nr, dir->nr_events);
	}
	return found;
}

/* What fdinfo says of the filters of @range together, which have the same program. */
static void filters_show(struct seq_file *m, const struct filter_range *range)
{
	struct bpf_attachment_stats sum = {};
	const struct bpf_prog *prog = NULL;
	struct bpf_event_filter *filter;
	struct trace_event_file *file;

	guard(mutex)(&event_mutex);

	for (file = filtered_next(range, NULL); file; file = filtered_next(range, file)) {
		filter = filter_of(file);
		prog = filter->att.prog;
		bpf_attachment_sum(&filter->att, &sum);
	}
	if (!prog)
		return;
	seq_printf(m, "bpf_prog_id:\t%u\n", prog->aux->id);
	bpf_stats_show(m, &sum);
	bpf_limits_show(m, prog);
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
	const struct filter_range range = { .tr = file->tr, .file = file };

	filters_show(m, &range);
}

/**
 * bpf_system_filter_show_fdinfo() - what fdinfo says of a system's filter file
 * @m: where to print
 * @dir: the system in its instance
 * @owner: the open file; of what was written to it, all events together
 *
 * Context: process, takes event_mutex.
 */
void bpf_system_filter_show_fdinfo(struct seq_file *m, struct trace_subsystem_dir *dir,
				   struct file *owner)
{
	const struct filter_range range = { .tr = dir->tr, .dir = dir, .owner = owner };

	filters_show(m, &range);
}

/* bpf_filters in tracefs: the filters of all instances, a line each. */
static int filters_seq_show(struct seq_file *m, void *unused)
{
	struct trace_event_file *file;
	struct filter_range all = {};

	seq_printf(m, "%-40s %6s %-15s %12s %12s %s\n", "# event", "prog", "name", "hits",
		   "missed", "instance");

	guard(mutex)(&event_mutex);
	guard(mutex)(&trace_types_lock);

	list_for_each_entry(all.tr, &ftrace_trace_arrays, list) {
		for (file = filtered_next(&all, NULL); file; file = filtered_next(&all, file)) {
			const struct bpf_event_filter *filter = filter_of(file);
			const struct bpf_prog_aux *aux = filter->att.prog->aux;
			struct bpf_attachment_stats sum = {};
			unsigned long missed = bpf_attachment_sum(&filter->att, &sum);
			char event[128];

			snprintf(event, sizeof(event), "%s:%s",
				 file->event_call->class->system,
				 trace_event_name(file->event_call));
			seq_printf(m, "%-40s %6u %-15s %12lu %12lu ", event, aux->id,
				   *aux->name ? aux->name : "-", sum.hits, missed);
			seq_escape(m, all.tr->name ?: "-", "\n\\");
			seq_putc(m, '\n');
		}
	}
	return 0;
}

static int filters_seq_open(struct inode *inode, struct file *file)
{
	return tracing_check_open_get_tr(NULL) ?: single_open(file, filters_seq_show, NULL);
}

static const struct file_operations filters_fops = {
	.open = filters_seq_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
};

static int __init filters_init(void)
{
	if (!tracing_init_dentry())
		trace_create_file("bpf_filters", TRACE_MODE_READ, NULL, NULL, &filters_fops);
	return 0;
}
fs_initcall(filters_init);
