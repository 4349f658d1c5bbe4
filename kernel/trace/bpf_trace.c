// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs on kprobe and uprobe events, tracepoints and system calls.
 *
 * A program is attached to a trace event through a perf event (SET_BPF, or a
 * link); the perf event owns the attachment, and its release, or the link's,
 * ends it. The programs of a trace event stand in one array, which the event
 * reads on each hit:
 *
 *	trace_event_call
 *	    bpf_array --> bpf_event_array	replaced whole, freed after RCU
 *			    slots[0] --> bpf_attachment <-- perf_event (its owner)
 *			    slots[1]	    prog, stats	      bpf_paused
 *			    ...
 *
 * What a hit runs for a slot is its attachment, or, while the owner has it paused,
 * one that does nothing: so a hit asks nobody, and runs what it finds.
 *
 * While a kprobe event has one program, not paused, and nothing else to do,
 * trace_probe_event has a pointer to the attachment, too, by which a hit gets to
 * the program in one step.
 *
 * Readers take no lock. Kprobes walk the array with preemption disabled,
 * uprobes as readers of RCU tasks trace. Writers hold bpf_event_mutex. What is
 * paused changes in contexts that cannot wait for it, so what hits look at (the
 * pointer to the array, the slots in it, the pointer to the sole attachment) changes
 * under bpf_hits_lock.
 *
 * A perf event that is not one of a trace event has no array: on overflow it
 * runs the one program that it owns (bpf_trace_perf_event.c).
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/filter.h>
#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/syscalls.h>
#include <linux/sysctl.h>
#include <linux/tick.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>
#include <linux/version.h>

#include "bpf_trace.h"
#include "trace.h"
#include "trace_probe.h"

/* How many programs one event runs, and QUERY_BPF reports, at most. ABI. */
#define BPF_EVENT_MAX_PROGS	64

/* Serializes changes of every event's array and of perf_event::bpf. */
static DEFINE_MUTEX(bpf_event_mutex);

/* Protects what hits look at. Taken last, also with a perf context locked. */
static DEFINE_RAW_SPINLOCK(bpf_hits_lock);

DEFINE_PER_CPU(const struct bpf_hit *, bpf_current_hit);

static unsigned int let_pass(const void *ctx, const struct bpf_insn *insns)
{
	return 1;
}

NOKPROBE_SYMBOL(let_pass);

/* Nobody reads them. */
static DEFINE_PER_CPU(struct bpf_attachment_stats, idle_stats);

const struct bpf_attachment bpf_idle_attachment = {
	.stats	= &idle_stats,
	.func	= let_pass,
};

/* Return: whether there was a program that should have run. */
static bool array_missed(const struct bpf_event_array *array)
{
	bool any = false;
	u32 i;

	for (i = 0; i < array->nr; i++) {
		const struct bpf_attachment *att = READ_ONCE(array->slots[i].runs);

		if (att == &bpf_idle_attachment)
			continue;
		any = true;
		bpf_attachment_missed(att);
	}
	return any;
}

NOKPROBE_SYMBOL(array_missed);

/**
 * bpf_run_timed() - run a program, with account of how long that takes
 * @prog: the program
 * @ctx: its context
 *
 * Context: that of bpf_event_run().
 * Return: what the program returns.
 */
u32 bpf_run_timed(const struct bpf_prog *prog, void *ctx)
{
	return bpf_prog_run(prog, ctx);
}

NOKPROBE_SYMBOL(bpf_run_timed);

/**
 * bpf_event_missed() - account a hit that never got to the event's programs
 * @call: the event
 *
 * For event sources that have to drop a hit, say because it came from inside
 * the handling of another. Everything it calls is out of bounds for kprobes:
 * the hit being dropped may be in the middle of handling one.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_event_missed(struct trace_event_call *call)
{
	const struct bpf_event_array *array;

	/* Not rcu_dereference_sched(): lockdep's checks can be probed. */
	array = rcu_dereference_raw(call->bpf_array);
	if (array)
		array_missed(array);
}

NOKPROBE_SYMBOL(bpf_event_missed);

static __always_inline bool
array_run(const struct bpf_event_array *array, void *ctx, bool timed)
{
	const struct bpf_event_slot *slot = array->slots;
	const struct bpf_event_slot *end = slot + array->nr;
	bool pass = true;

	for (; slot < end; slot++) {
		if (!__bpf_attachment_run(READ_ONCE(slot->runs), ctx, timed))
			pass = false;
	}
	__this_cpu_write(bpf_current_hit, NULL);
	return pass;
}

/**
 * bpf_event_run() - run the programs of an event
 * @array: the event's programs, read in the same RCU-sched section
 * @ctx: what the programs get as context
 *
 * Kprobes call this from a breakpoint, an ftrace call or a jump, so anywhere:
 * with any lock held, on top of any interrupt or NMI. Preemption is off, which
 * pins the CPU and, being an RCU-sched reader, keeps the array, the programs
 * and their maps; rcu_read_lock() is for those who check for it by name.
 *
 * bpf_prog_active is the one recursion guard. It is per CPU and counts every
 * context alike, so these programs never run on top of each other, or on top
 * of a map operation of bpf(2): they cannot spin on a lock of a map that the
 * code below them holds. Programs on uprobes and those of other types, which do
 * not take the guard, can be below; for them, maps have guards of their own.
 * Whoever is turned away is accounted as missed.
 *
 * Return: true if all of the programs that ran returned non-zero, or none ran
 * since all are paused. false otherwise, also if one of them missed this hit.
 */
bool bpf_event_run(const struct bpf_event_array *array, void *ctx)
{
	bool pass;

	cant_sleep();
	cant_migrate();
	rcu_read_lock();
	if (unlikely(__this_cpu_inc_return(bpf_prog_active) != 1))
		pass = !array_missed(array);
	else if (static_branch_unlikely(&bpf_stats_enabled_key))
		pass = array_run(array, ctx, true);
	else
		pass = array_run(array, ctx, false);
	__this_cpu_dec(bpf_prog_active);
	rcu_read_unlock();
	return pass;
}

NOKPROBE_SYMBOL(bpf_event_run);

/* Why an attach fails: its errno, and for people the word at fault and a text. */
enum attach_error {
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

enum attach_word { WORD_EVENT, WORD_FD, WORD_TYPE, NR_WORDS };

static struct {
	struct bpf_refusal	why;
	enum attach_word	word;
} attach_errors[] = {
	[ATTACH_BAD_EVENT] = { { -EINVAL,
		"This event cannot run BPF programs; kprobe, uprobe and trace events can" },
	  WORD_EVENT },
	[ATTACH_NO_FILE] = { { -EBADF,
		"No file is open at this descriptor" }, WORD_FD },
	[ATTACH_NO_PROG] = { { -EINVAL,
		"This descriptor is not a BPF program" }, WORD_FD },
	[ATTACH_WANTS_KPROBE] = { { -EINVAL,
		"This event takes programs of type BPF_PROG_TYPE_KPROBE" }, WORD_TYPE },
	[ATTACH_WANTS_TP] = { { -EINVAL,
		"This event takes programs of type BPF_PROG_TYPE_TRACEPOINT" }, WORD_TYPE },
	[ATTACH_WANTS_PERF_EVENT] = { { -EINVAL,
		"This event takes programs of type BPF_PROG_TYPE_PERF_EVENT" }, WORD_TYPE },
	[ATTACH_NO_CALLCHAIN] = { { -EPROTO,
		"The program takes stacks; a precise event must sample callchains for it, whole" },
	  WORD_EVENT },
	[ATTACH_PAST_RECORD] = { { -EACCES,
		"The program reads past the end of the event's record, see its format" },
	  WORD_FD },
	[ATTACH_IS_MULTI] = { { -EINVAL,
		"This program was loaded for a multi link, which is not a perf event" }, WORD_FD },
	[ATTACH_SLEEPS] = { { -EINVAL,
		"This program may sleep, which only uprobe events allow" }, WORD_FD },
	[ATTACH_OVERRIDES] = { { -EINVAL,
		"The program overrides return values, the function forbids it" }, WORD_EVENT },
	[ATTACH_FD_TAKEN] = { { -EEXIST,
		"This perf event has a program already, open another for the next" }, WORD_EVENT },
	[ATTACH_TWICE] = { { -EEXIST,
		"This program is attached to the event already" }, WORD_FD },
	[ATTACH_FULL] = { { -E2BIG,
		"This event runs " __stringify(BPF_EVENT_MAX_PROGS)
		" programs already, no more fit" }, WORD_EVENT },
};

/**
 * bpf_prog_type_name() - a program type as user space calls it
 * @type: the type
 *
 * Return: its name in the headers.
 */
const char *bpf_prog_type_name(enum bpf_prog_type type)
{
	static const char * const names[] = {
#define BPF_PROG_TYPE(_id, ...) \
		[_id] = #_id,
#define BPF_MAP_TYPE(...)
#define BPF_LINK_TYPE(...)
#include <linux/bpf_types.h>
#undef BPF_PROG_TYPE
#undef BPF_MAP_TYPE
#undef BPF_LINK_TYPE
	};

	return type < ARRAY_SIZE(names) && names[type] ? names[type] : "unknown";
}

/**
 * bpf_printable() - keep terminals and lines of a log from what a user wrote
 * @text: the text, whose control characters are overwritten
 *
 * Return: @text.
 */
char *bpf_printable(char *text)
{
	char *p;

	for (p = text; *p; p++) {
		if (!isprint(*p))
			*p = '?';
	}
	return text;
}

/**
 * bpf_refuse() - put the reason of a failed attach where a person can read it
 * @why: errno and text; static, since tracefs' error_log keeps the pointer
 * @pos: the position in the command line that the text is about
 * @fmt: the command line, as its user might have written it
 *
 * The log is short and its readers are privileged, so what others do must not
 * push entries out of it.
 *
 * Context: process.
 * Return: the errno of @why.
 */
int bpf_refuse(struct bpf_refusal *why, int pos, const char *fmt, ...)
{
	char *cmd;
	va_list ap;

	/* Nothing is denied to anyone here, so there is nothing to audit. */
	if (!ns_capable_noaudit(&init_user_ns, CAP_PERFMON) &&
	    !ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		return why->err;

	va_start(ap, fmt);
	cmd = kvasprintf(GFP_KERNEL, fmt, ap);
	va_end(ap);
	if (cmd)
		tracing_log_err(NULL, "bpf_event", bpf_printable(cmd), &why->text, 0, pos);
	kfree(cmd);
	return why->err;
}

/* An attach on its way: what came from user space, and the program once found. */
struct attach_request {
	const char		*cmd;
	struct perf_event	*event;
	int			prog_fd;
	struct bpf_prog		*prog;
	u64			cookie;
	bool			by_link;
};

static int attach_failed(const struct attach_request *req, enum attach_error error)
{
	struct trace_event_call *call = req->event->tp_event;
	const char *system = "", *colon = "", *name = req->event->pmu->name;
	const char *type = "";
	int pos[NR_WORDS];

	if (call) {
		system = call->class->system;
		colon = ":";
		name = trace_event_name(call);
	}
	if (req->prog)
		type = bpf_prog_type_name(req->prog->type);

	pos[WORD_EVENT] = strlen(req->cmd) + 1;
	pos[WORD_FD] = pos[WORD_EVENT] + strlen(system) + strlen(colon) + strlen(name) + 1;
	pos[WORD_TYPE] = pos[WORD_FD] + snprintf(NULL, 0, "fd %d ", req->prog_fd);

	return bpf_refuse(&attach_errors[error].why, pos[attach_errors[error].word],
			  "%s %s%s%s fd %d%s%s", req->cmd, system, colon, name,
			  req->prog_fd, *type ? " " : "", type);
}

static struct bpf_attachment *event_attachment(const struct perf_event *event)
{
	return rcu_dereference_protected(event->bpf,
					 lockdep_is_held(&bpf_event_mutex));
}

static struct bpf_event_array *event_array(const struct trace_event_call *call)
{
	return rcu_dereference_protected(call->bpf_array,
					 lockdep_is_held(&bpf_event_mutex));
}

/* The same, for those who change nothing but what hits look at */
static struct bpf_event_array *hit_array(const struct trace_event_call *call)
{
	return rcu_dereference_protected(call->bpf_array,
					 lockdep_is_held(&bpf_hits_lock));
}

static u32 array_live(const struct bpf_event_array *array)
{
	u32 i, live = 0;

	for (i = 0; array && i < array->nr; i++)
		live += !!array->slots[i].att;
	return live;
}

/*
 * Make the array that follows @old: its attachments in their order without
 * @leaving, then @coming, each of which may be NULL.
 * Return: the array, NULL where it would be empty, or -ENOMEM.
 */
static struct bpf_event_array *
array_next(const struct bpf_event_array *old,
	   const struct bpf_attachment *leaving, struct bpf_attachment *coming)
{
	u32 nr = array_live(old) - !!leaving + !!coming;
	struct bpf_event_array *new;
	u32 i, to = 0;

	if (!nr)
		return NULL;

	new = kzalloc(struct_size(new, slots, nr), GFP_KERNEL);
	if (!new)
		return ERR_PTR(-ENOMEM);

	new->nr = nr;
	for (i = 0; old && i < old->nr; i++) {
		if (old->slots[i].att && old->slots[i].att != leaving)
			new->slots[to++].att = old->slots[i].att;
	}
	if (coming)
		new->slots[to].att = coming;
	return new;
}

static void slot_set_runs(struct bpf_event_slot *slot)
{
	const struct bpf_attachment *att = slot->att;
	bool idle = !att || (!att->by_link && att->event->bpf_paused);

	lockdep_assert_held(&bpf_hits_lock);
	WRITE_ONCE(slot->runs, idle ? &bpf_idle_attachment : att);
}

static void free_array(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct bpf_event_array, rcu));
}

/*
 * If all that hits of a kprobe event are for is to run one program, point to
 * it. One that overrides return values does not count: whoever runs it has to
 * look at the registers afterwards.
 */
static void event_find_sole(struct trace_event_call *call)
{
	const struct bpf_event_array *array = hit_array(call);
	const struct bpf_attachment *sole = NULL;
	struct trace_probe_event *event;

	if (!(call->flags & TRACE_EVENT_FL_KPROBE))
		return;

	event = trace_probe_event_from_call(call);
	if (array && array->nr == 1 && array->slots[0].runs != &bpf_idle_attachment &&
	    !array->slots[0].att->prog->kprobe_override &&
	    !(READ_ONCE(event->flags) & TP_FLAG_TRACE))
		sole = array->slots[0].runs;
	rcu_assign_pointer(event->sole, sole);
}

/**
 * bpf_event_find_sole() - look again who wants the hits of a kprobe event
 * @call: the event, whose flags say that tracing of it has begun or ceased
 *
 * Hits that are under way may still be handled as before.
 *
 * Context: any but NMI.
 */
void bpf_event_find_sole(struct trace_event_call *call)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bpf_hits_lock, flags);
	event_find_sole(call);
	raw_spin_unlock_irqrestore(&bpf_hits_lock, flags);
}

static void event_set_array(struct trace_event_call *call,
			    struct bpf_event_array *new)
{
	struct bpf_event_array *old = event_array(call);
	u32 i;

	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		for (i = 0; new && i < new->nr; i++)
			slot_set_runs(&new->slots[i]);
		rcu_assign_pointer(call->bpf_array, new);
		event_find_sole(call);
	}
	if (!old)
		return;
	if (call->flags & TRACE_EVENT_FL_UPROBE)
		bpf_uprobe_call_rcu(&old->rcu, free_array);
	else
		kfree_rcu(old, rcu);
}

static bool array_has_prog(const struct bpf_event_array *array,
			   const struct bpf_prog *prog)
{
	u32 i;

	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->prog == prog)
			return true;
	}
	return false;
}

static struct bpf_attachment *attachment_new(const struct attach_request *req)
{
	struct bpf_attachment *att;

	att = kzalloc(sizeof(*att), GFP_KERNEL);
	if (!att)
		return NULL;

	att->stats = alloc_percpu(struct bpf_attachment_stats);
	if (!att->stats) {
		kfree(att);
		return NULL;
	}
	att->hit.cookie = req->cookie;
	att->func = req->prog->bpf_func;
	att->insns = req->prog->insnsi;
	att->prog = req->prog;
	att->event = req->event;
	att->by_link = req->by_link;
	return att;
}

static void attachment_free(struct bpf_attachment *att)
{
	free_percpu(att->stats);
	kfree(att);
}

static bool event_allows_override(struct trace_event_call *call)
{
	return IS_ENABLED(CONFIG_BPF_KPROBE_OVERRIDE) &&
	       call->flags & TRACE_EVENT_FL_KPROBE &&
	       trace_kprobe_allows_override(call);
}

static int event_attach(const struct attach_request *req)
{
	struct perf_event *event = req->event;
	struct bpf_event_array *old, *new;
	struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	old = event_array(event->tp_event);
	if (req->prog->kprobe_override && !event_allows_override(event->tp_event))
		return attach_failed(req, ATTACH_OVERRIDES);
	if (event_attachment(event))
		return attach_failed(req, ATTACH_FD_TAKEN);
	if (array_has_prog(old, req->prog))
		return attach_failed(req, ATTACH_TWICE);
	if (array_live(old) == BPF_EVENT_MAX_PROGS)
		return attach_failed(req, ATTACH_FULL);

	att = attachment_new(req);
	if (!att)
		return -ENOMEM;

	new = array_next(old, NULL, att);
	if (IS_ERR(new)) {
		attachment_free(att);
		return PTR_ERR(new);
	}

	rcu_assign_pointer(event->bpf, att);
	event_set_array(event->tp_event, new);
	return 0;
}

static int overflow_attach(const struct attach_request *req)
{
	struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	if (event_attachment(req->event))
		return attach_failed(req, ATTACH_FD_TAKEN);
	att = attachment_new(req);
	if (!att)
		return -ENOMEM;
	rcu_assign_pointer(req->event->bpf, att);
	return 0;
}

/* Tracepoints and system calls: their programs get the record. */
static bool event_has_record(const struct trace_event_call *call)
{
	if (call->flags & (TRACE_EVENT_FL_CUSTOM | TRACE_EVENT_FL_FPROBE))
		return false;
#ifdef CONFIG_FTRACE_SYSCALLS
	if (call->class == &event_class_syscall_enter ||
	    call->class == &event_class_syscall_exit)
		return true;
#endif
	return call->flags & TRACE_EVENT_FL_TRACEPOINT;
}

/* Return: where the part of the record ends that all hits have. */
static u32 record_size(struct trace_event_call *call)
{
	struct ftrace_event_field *field;
	u32 end = 0;

	list_for_each_entry(field, trace_get_fields(call), link)
		end = max_t(u32, end, field->offset + field->size);
	return end;
}

/* Can this event run programs at all? */
static bool event_runs_progs(const struct perf_event *event)
{
	const struct trace_event_call *call = event->tp_event;

	return !call || call->flags & TRACE_EVENT_FL_UKPROBE || event_has_record(call);
}

/**
 * bpf_event_lock_probes() - begin to change which probes an event has
 *
 * Meanwhile no program is attached. Not event_mutex, under which that is for the
 * rest of a change: programs are attached with a perf context locked, and while
 * event_mutex is held CPUs may be waited for that come and lock theirs.
 *
 * Context: process; until bpf_event_unlock_probes(), nothing but the list of
 * probes is to be changed.
 */
void bpf_event_lock_probes(void)
{
	mutex_lock(&bpf_event_mutex);
}

/**
 * bpf_event_unlock_probes() - the end of bpf_event_lock_probes()
 */
void bpf_event_unlock_probes(void)
{
	mutex_unlock(&bpf_event_mutex);
}

/**
 * bpf_event_overrides() - may programs of an event override return values?
 * @call: the event
 *
 * Context: process, between bpf_event_lock_probes() and its end.
 * Return: whether there is one that calls bpf_override_return().
 */
bool bpf_event_overrides(struct trace_event_call *call)
{
	const struct bpf_event_array *array;
	u32 i;

	array = event_array(call);
	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->prog->kprobe_override)
			return true;
	}
	return false;
}

/*
 * The registers of a precise event are from another moment than the stack. Only
 * what the PMU's driver sampled can be trusted.
 */
static bool event_can_unwind(const struct perf_event_attr *attr)
{
	return !attr->precise_ip ||
	       (attr->sample_type & PERF_SAMPLE_CALLCHAIN &&
		!attr->exclude_callchain_kernel && !attr->exclude_callchain_user);
}

static int attach_overflow_prog(const struct attach_request *req)
{
	if (req->prog->type != BPF_PROG_TYPE_PERF_EVENT)
		return attach_failed(req, ATTACH_WANTS_PERF_EVENT);
	if (req->prog->call_get_stack && !event_can_unwind(&req->event->attr))
		return attach_failed(req, ATTACH_NO_CALLCHAIN);
	return overflow_attach(req);
}

/* Of a kind of program and a kind of event: do they fit together? */
static int attach_prog(const struct attach_request *req)
{
	struct trace_event_call *call = req->event->tp_event;
	const struct bpf_prog *prog = req->prog;

	if (!call)
		return attach_overflow_prog(req);

	if (event_has_record(call)) {
		if (prog->type != BPF_PROG_TYPE_TRACEPOINT)
			return attach_failed(req, ATTACH_WANTS_TP);
		if (prog->aux->max_ctx_offset > record_size(call))
			return attach_failed(req, ATTACH_PAST_RECORD);
		return event_attach(req);
	}

	if (prog->type != BPF_PROG_TYPE_KPROBE)
		return attach_failed(req, ATTACH_WANTS_KPROBE);
	if (is_multi_attach_type(prog->expected_attach_type))
		return attach_failed(req, ATTACH_IS_MULTI);
	if (prog->sleepable && call->flags & TRACE_EVENT_FL_KPROBE)
		return attach_failed(req, ATTACH_SLEEPS);
	return event_attach(req);
}

/**
 * bpf_event_attach() - make a program one of those that an event runs
 * @event: the perf event that is going to own the attachment
 * @prog_fd: the descriptor the program came by, for the error_log
 * @prog: the program; the attachment takes a reference of its own
 * @cookie: what bpf_get_attach_cookie() is to return
 *
 * On failure nothing has changed, and tracefs' error_log tells why.
 *
 * Context: process.
 * Return: 0, or
 * * -EINVAL: the event cannot run programs, or not this one
 * * -EEXIST: the perf event has a program, or the trace event has this one
 * * -E2BIG: the trace event has BPF_EVENT_MAX_PROGS programs
 * * -EACCES: the program reads past the end of the event's record
 * * -EPROTO: the program takes stacks that the event does not have
 * * -ENOMEM
 */
int bpf_event_attach(struct perf_event *event, int prog_fd, struct bpf_prog *prog,
		     u64 cookie)
{
	const struct attach_request req = {
		.cmd = "LINK_CREATE",
		.by_link = true,
		.event = event,
		.prog_fd = prog_fd,
		.prog = prog,
		.cookie = cookie,
	};
	int err;

	if (!event_runs_progs(event))
		return attach_failed(&req, ATTACH_BAD_EVENT);

	err = attach_prog(&req);
	if (!err)
		bpf_prog_inc(prog);
	return err;
}

/**
 * bpf_event_set_prog() - PERF_EVENT_IOC_SET_BPF
 * @event: the perf event the ioctl came to
 * @prog_fd: descriptor of the program
 *
 * On success the event holds a reference on the program until it is released.
 * On failure nothing has changed, and tracefs' error_log tells why.
 *
 * Context: process, with the event's ctx->mutex held.
 * Return: 0, what bpf_event_attach() returns, or
 * * -EINVAL: the descriptor is not a program
 * * -EBADF: the descriptor is not open
 */
int bpf_event_set_prog(struct perf_event *event, u32 prog_fd)
{
	struct attach_request req = {
		.cmd = "SET_BPF",
		.event = event,
		.prog_fd = prog_fd,
	};
	struct bpf_prog *prog;
	int err;

	if (!event_runs_progs(event))
		return attach_failed(&req, ATTACH_BAD_EVENT);

	prog = bpf_prog_get(prog_fd);
	if (IS_ERR(prog))
		return attach_failed(&req, PTR_ERR(prog) == -EBADF ? ATTACH_NO_FILE :
								     ATTACH_NO_PROG);
	req.prog = prog;
	err = attach_prog(&req);
	if (err)
		bpf_prog_put(prog);
	return err;
}

/*
 * Whoever still sees an attachment that its event has lost.
 *
 * But for uprobes, what runs programs has preemption disabled. The grace period is
 * an expedited one, since those who detach many probes close one after another. It
 * interrupts each CPU that is neither idle nor, with nohz_full, in user space, once.
 * To disarm a kprobe, which is next if nobody else has the event, interrupts them
 * all, several times. For other events it might be the only interrupt, so where
 * there are CPUs that want none, those who close them wait longer.
 */
static void wait_for_readers(const struct trace_event_call *call)
{
	bool is_kprobe = call && call->flags & TRACE_EVENT_FL_KPROBE;

	if (call && call->flags & TRACE_EVENT_FL_UPROBE)
		uprobe_unregister_sync();
	else if (tick_nohz_full_enabled() && !is_kprobe)
		synchronize_rcu();
	else
		synchronize_rcu_expedited();
}

static void array_drop(struct trace_event_call *call,
		       const struct bpf_attachment *leaving)
{
	struct bpf_event_array *array = event_array(call), *next;
	u32 i;

	next = array_next(array, leaving, NULL);
	if (!IS_ERR(next)) {
		event_set_array(call, next);
		return;
	}

	/* Leaving needs no memory, only tidying up does. */
	for (i = 0; array->slots[i].att != leaving; i++)
		;
	scoped_guard(raw_spinlock_irqsave, &bpf_hits_lock) {
		array->slots[i].att = NULL;
		slot_set_runs(&array->slots[i]);
		event_find_sole(call);
	}
}

/**
 * bpf_event_release() - end the attachment of a perf event, if it has one
 * @event: the perf event; off, unless it is to go on without the program
 *
 * Once this returns no run of the program starts on behalf of this event on
 * any CPU, and none is under way.
 *
 * Context: process, may sleep for an RCU grace period; no locks held.
 */
void bpf_event_release(struct perf_event *event)
{
	struct bpf_attachment *att;

	if (!rcu_access_pointer(event->bpf))
		return;

	scoped_guard(mutex, &bpf_event_mutex) {
		att = event_attachment(event);
		if (event->tp_event)
			array_drop(event->tp_event, att);
		RCU_INIT_POINTER(event->bpf, NULL);
	}

	wait_for_readers(event->tp_event);
	bpf_prog_put(att->prog);
	attachment_free(att);
}

/**
 * bpf_event_pause() - pause or resume the program of a perf event
 * @event: the perf event
 * @pause: what its owner asks for
 *
 * perf_event::state does not tell: events also go off when their task exits,
 * their CPU goes offline or their group moves, and none of that is a reason
 * for the program, which serves all tasks and CPUs, to stop or to start.
 *
 * A link is in force for as long as there is one. Whoever created it may disable
 * the perf event when he lets go: libbpf does, also where the link is pinned.
 *
 * Context: any but NMI.
 */
void bpf_event_pause(struct perf_event *event, bool pause)
{
	struct trace_event_call *call = event->tp_event;
	struct bpf_event_array *array;
	unsigned long flags;
	u32 i;

	if (!call) {
		event->bpf_paused = pause;
		return;
	}

	raw_spin_lock_irqsave(&bpf_hits_lock, flags);
	event->bpf_paused = pause;
	array = hit_array(call);
	for (i = 0; array && i < array->nr; i++) {
		if (array->slots[i].att && array->slots[i].att->event == event)
			slot_set_runs(&array->slots[i]);
	}
	event_find_sole(call);
	raw_spin_unlock_irqrestore(&bpf_hits_lock, flags);
}

/**
 * bpf_event_query() - PERF_EVENT_IOC_QUERY_BPF
 * @event: the perf event the ioctl came to
 * @uquery: ids_len says how many ids fit; prog_cnt and ids are filled in with
 *	the programs of the trace event, in the order in which they run
 *
 * Context: process, with the event's ctx->mutex held.
 * Return: 0, or
 * * -EPERM: no CAP_PERFMON
 * * -EINVAL: the event is not a trace event, or one that cannot run programs
 * * -E2BIG: ids_len is over BPF_EVENT_MAX_PROGS
 * * -ENOSPC: ids_len is not 0 but too small; as many ids as fit were written
 * * -EFAULT
 */
int bpf_event_query(struct perf_event *event,
		    struct perf_event_query_bpf __user *uquery)
{
	const struct bpf_event_array *array;
	u32 ids[BPF_EVENT_MAX_PROGS];
	u32 i, len, cnt = 0;

	if (!perfmon_capable())
		return -EPERM;
	if (!event->tp_event || !event_runs_progs(event))
		return -EINVAL;
	if (get_user(len, &uquery->ids_len))
		return -EFAULT;
	if (len > BPF_EVENT_MAX_PROGS)
		return -E2BIG;

	scoped_guard(mutex, &bpf_event_mutex) {
		array = event_array(event->tp_event);
		for (i = 0; array && i < array->nr; i++) {
			if (array->slots[i].att)
				ids[cnt++] = array->slots[i].att->prog->aux->id;
		}
	}

	if (put_user(cnt, &uquery->prog_cnt) ||
	    copy_to_user(uquery->ids, ids, min(cnt, len) * sizeof(*ids)))
		return -EFAULT;
	return len && len < cnt ? -ENOSPC : 0;
}

/**
 * bpf_stats_sum() - hits and misses on all CPUs
 * @stats: of an attachment
 *
 * Return: the sum, which hits that come meanwhile may or may not be in.
 */
struct bpf_attachment_stats
bpf_stats_sum(const struct bpf_attachment_stats __percpu *stats)
{
	struct bpf_attachment_stats sum = {};
	int cpu;

	for_each_possible_cpu(cpu) {
		sum.hits += READ_ONCE(per_cpu_ptr(stats, cpu)->hits);
		sum.missed += READ_ONCE(per_cpu_ptr(stats, cpu)->missed);
	}
	return sum;
}

/**
 * bpf_event_target() - what does an event probe?
 * @event: a perf event of a trace event that can run programs
 * @target: is filled in
 *
 * Context: process.
 * Return: 0, -ENOENT if the probe is gone, or -ENOMEM.
 */
int bpf_event_target(struct perf_event *event, struct trace_probe_target *target)
{
	struct trace_event_call *call = event->tp_event;

	if (IS_ENABLED(CONFIG_UPROBE_EVENTS) && call->flags & TRACE_EVENT_FL_UPROBE)
		return trace_uprobe_target(call, target);
	if (IS_ENABLED(CONFIG_KPROBE_EVENTS) && call->flags & TRACE_EVENT_FL_KPROBE)
		return trace_kprobe_target(call, target);

	*target = (struct trace_probe_target) {
		.name = kstrdup(trace_event_name(call), GFP_KERNEL),
	};
	return target->name ? 0 : -ENOMEM;
}

/**
 * bpf_event_prog_id() - which program did a perf event bring?
 * @event: the perf event
 *
 * Context: process.
 * Return: its id, 0 if there is none.
 */
u32 bpf_event_prog_id(struct perf_event *event)
{
	const struct bpf_attachment *att;

	guard(mutex)(&bpf_event_mutex);

	att = event_attachment(event);
	return att ? att->prog->aux->id : 0;
}

/**
 * bpf_event_show_fdinfo() - what /proc/PID/fdinfo says of an attachment
 * @m: where to print
 * @event: the perf event behind the descriptor
 *
 * Context: process.
 */
void bpf_event_show_fdinfo(struct seq_file *m, struct perf_event *event)
{
	const struct bpf_attachment *att;
	struct bpf_attachment_stats sum;

	guard(mutex)(&bpf_event_mutex);

	att = event_attachment(event);
	if (!att)
		return;

	sum = bpf_stats_sum(att->stats);
	seq_printf(m, "bpf_prog_id:\t%u\n"
		      "bpf_prog_hits:\t%lu\n"
		      "bpf_prog_missed:\t%lu\n"
		      "bpf_cookie:\t%llu\n",
		   att->prog->aux->id, sum.hits, sum.missed, att->hit.cookie);
}

/*
 * The program type. Programs name the kernel they were built for, since what
 * they read of its memory has no ABI.
 */
static int kern_version_check = 1;

static int kprobe_prog_check_load(const union bpf_attr *attr,
				  struct bpf_verifier_log *log)
{
	const u32 running = KERNEL_VERSION(LINUX_VERSION_MAJOR,
					   LINUX_VERSION_PATCHLEVEL,
					   LINUX_VERSION_SUBLEVEL);
	u32 built = attr->kern_version;

	/* Programs with types are relocated to those of the running kernel. */
	if (!built && attr->func_info_cnt)
		return 0;
	if (built == running || !READ_ONCE(kern_version_check))
		return 0;
	/* Multi links came when loaders had stopped to fill in the field. */
	if (!built && is_multi_attach_type(attr->expected_attach_type))
		return 0;

	bpf_log(log, "kern_version 0x%06x (%u.%u.%u) does not match ",
		built, built >> 16, (built >> 8) & 0xff, built & 0xff);
	bpf_log(log, "the running kernel 0x%06x (%u.%u.%u)\n", running,
		LINUX_VERSION_MAJOR, LINUX_VERSION_PATCHLEVEL, LINUX_VERSION_SUBLEVEL);
	if (!built) {
		bpf_log(log, "A program without BTF must state it; ");
		bpf_log(log, "sysctl kernel.bpf_kprobe_kern_version=0 turns the check off\n");
	}
	return -EINVAL;
}

/* The context is struct pt_regs: aligned reads inside it, nothing else. */
static bool kprobe_prog_is_valid_access(int off, int size,
					enum bpf_access_type type,
					const struct bpf_prog *prog,
					struct bpf_insn_access_aux *info)
{
	return type == BPF_READ && off >= 0 && off % size == 0 &&
	       off + size <= sizeof(struct pt_regs);
}

/**
 * bpf_tracing_func_proto() - helpers that do not depend on a program's context
 * @func_id: the helper
 * @prog: the program, of a type that is here or in a file beside
 *
 * Return: the helper's prototype, or NULL.
 */
const struct bpf_func_proto *
bpf_tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	const struct bpf_func_proto *proto;

	switch (func_id) {
	case BPF_FUNC_get_smp_processor_id:
		return &bpf_get_smp_processor_id_proto;
	case BPF_FUNC_get_current_uid_gid:
		return &bpf_get_current_uid_gid_proto;
	case BPF_FUNC_get_current_comm:
		return &bpf_get_current_comm_proto;
#ifdef CONFIG_CGROUPS
	case BPF_FUNC_current_task_under_cgroup:
		return &bpf_current_task_under_cgroup_proto;
#endif
	case BPF_FUNC_task_storage_get:
		return &bpf_task_storage_get_recur_proto;
	case BPF_FUNC_task_storage_delete:
		return &bpf_task_storage_delete_recur_proto;
	case BPF_FUNC_find_vma:
		return &bpf_find_vma_proto;
	case BPF_FUNC_get_func_ip: /* the verifier knows who has one */
		return &bpf_get_func_ip_proto_tracing;
	case BPF_FUNC_get_task_stack:
		return prog->sleepable ? &bpf_get_task_stack_sleepable_proto :
					 &bpf_get_task_stack_proto;
	case BPF_FUNC_copy_from_user:
		return &bpf_copy_from_user_proto;
	case BPF_FUNC_copy_from_user_task:
		return &bpf_copy_from_user_task_proto;
	default:
		break;
	}

	proto = bpf_read_func_proto(func_id) ?: bpf_perf_func_proto(func_id);
	proto = proto ?: bpf_task_func_proto(func_id);
	return proto ?: bpf_base_func_proto(func_id, prog);
}

static const struct bpf_func_proto *
kprobe_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto;
	case BPF_FUNC_get_stack:
		return prog->sleepable ? &bpf_get_stack_sleepable_proto :
					 &bpf_get_stack_proto;
#ifdef CONFIG_BPF_KPROBE_OVERRIDE
	case BPF_FUNC_override_return:
		return &bpf_override_return_proto;
#endif
	default:
		return bpf_hit_func_proto(func_id) ?:
		       bpf_tracing_func_proto(func_id, prog);
	}
}

const struct bpf_verifier_ops kprobe_verifier_ops = {
	.check_load		= kprobe_prog_check_load,
	.get_func_proto		= kprobe_prog_func_proto,
	.is_valid_access	= kprobe_prog_is_valid_access,
};

const struct bpf_prog_ops kprobe_prog_ops = {
};

static struct ctl_table bpf_event_sysctls[] = {
	{
		.procname	= "bpf_kprobe_kern_version",
		.data		= &kern_version_check,
		.maxlen		= sizeof(kern_version_check),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
};

static int __init bpf_event_init(void)
{
	register_sysctl_init("kernel", bpf_event_sysctls);
	return 0;
}
late_initcall(bpf_event_init);
