// SPDX-License-Identifier: GPL-2.0
/*
 * How often programs run at most, and for which tasks: bpf_budget and bpf_scope in tracefs.
 *
 * Each attachment of a program has a budget of its own, so many runs a second on all CPUs
 * together. A hit over the budget is missed, and counted as such. The file has a line for
 * what holds for all programs, and one for each program that has another limit:
 *
 *	default max
 *	bpf-id:13 500
 *
 * Such a line, written, sets the limit: a number of runs, "max" for none, or "default".
 * It holds for attachments that there are, and for those that come.
 *
 * bpf_scope has a line for each program that only runs for tasks in a cgroup, or below it:
 *
 *	bpf-id:13 /user.slice
 *
 * A hit of another task ends as if the program had returned 0. It is not counted, and takes
 * nothing from the budget.
 *
 * Programs on fentry and fexit, which trampolines run, keep their budget themselves. Those on
 * fmod_ret, of type LSM, and extensions have no limits.
 */
#include <linux/atomic.h>
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/workqueue.h>

#include "bpf_trace.h"
#include "trace.h"

/* Limits, in runs a second */
#define BUDGET_DEFAULT	0	/* of a program: budget_default holds */
#define BUDGET_HIGHEST	10000000
#define BUDGET_NONE	UINT_MAX

/* As many runs as so many jiffies bring can follow each other at once. */
#define BUDGET_BURST	(HZ / 20)

/* Credit counts 1/HZ of a run, so a jiffy brings as much as the limit is. */
static_assert((u64)BUDGET_HIGHEST * BUDGET_BURST <= INT_MAX);

DEFINE_STATIC_KEY_FALSE(bpf_limits_key);

/* Serializes reads and writes of the files. */
static DEFINE_MUTEX(limits_mutex);
static unsigned int budget_default = BUDGET_NONE;

static nokprobe_inline unsigned int prog_budget(const struct bpf_prog *prog)
{
	return READ_ONCE(prog->aux->budget) ?: READ_ONCE(budget_default);
}

static nokprobe_inline int budget_most(unsigned int limit)
{
	return max_t(int, limit * BUDGET_BURST, HZ);
}

/* The first hit in a jiffy adds what is due. */
static void budget_fill(struct bpf_budget *budget, unsigned int limit)
{
	/* In this order, jiffies are not older than what another CPU has filled up to. */
	unsigned long last = smp_load_acquire(&budget->filled);
	unsigned long now = jiffies;
	int credit;
	s64 due;

	if (now == last || !try_cmpxchg(&budget->filled, &last, now))
		return;

	due = min_t(u64, (u64)(now - last) * limit, INT_MAX);
	credit = atomic_read(&budget->credit);
	while (!atomic_try_cmpxchg(&budget->credit, &credit,
				   min_t(s64, credit + due, budget_most(limit))))
		;
}

NOKPROBE_SYMBOL(budget_fill);

/*
 * Takes a run from the budget, if there is one, or it @must be. That can take the credit below
 * 0, but not far below -budget_most(): so many calls may be under way that what all of their
 * returns take would not be made up for in hours.
 */
static nokprobe_inline bool budget_take(struct bpf_budget *budget, unsigned int limit, bool must)
{
	int credit;

	budget_fill(budget, limit);
	credit = atomic_read(&budget->credit);
	if (credit < HZ && !must)
		return false;
	if (credit > -budget_most(limit))
		atomic_sub(HZ, &budget->credit);
	return true;
}

/*
 * A session that ran at the entry of a call runs at its return, too, whatever the credit is.
 */
static noinline u32 attachment_run_limited(const struct bpf_attachment *att, void *ctx,
					   unsigned int limit)
{
	bool session = bpf_prog_is_session(att->prog);

	if (!budget_take(att->budget, limit, session && bpf_hit_is_return())) {
		this_cpu_add(att->stats->missed[BPF_MISS_BUDGET], session ? 2 : 1);
		bpf_trace_missed(att->prog, BPF_MISS_BUDGET);
		if (session)
			bpf_trace_missed(att->prog, BPF_MISS_BUDGET);
		return session;
	}
	return bpf_attachment_run_unlimited(att, ctx);
}

NOKPROBE_SYMBOL(attachment_run_limited);

static __always_inline u32 attachment_run_in_budget(const struct bpf_attachment *att, void *ctx,
						    const struct bpf_prog *prog)
{
	const struct bpf_budget *budget = att->budget;
	unsigned int limit = prog_budget(prog);
	unsigned long now = jiffies;

	if (limit == BUDGET_NONE)
		return bpf_attachment_run_unlimited(att, ctx);

	/*
	 * Where there is a limit, most hits are over it. They are counted here as well as in
	 * attachment_run_limited() on purpose: one function for both would save registers,
	 * and take 12 instructions more for such a hit on x86.
	 */
	if (atomic_read(&budget->credit) < HZ && READ_ONCE(budget->filled) == now &&
	    !bpf_prog_is_session(prog)) {
		this_cpu_inc(att->stats->missed[BPF_MISS_BUDGET]);
		bpf_trace_missed(prog, BPF_MISS_BUDGET);
		return 0;
	}
	return attachment_run_limited(att, ctx, limit);
}

/* On 32 bits a hit beside a write can find a half of it. No cgroup has such an id. */
static nokprobe_inline u64 prog_scope(const struct bpf_prog *prog)
{
	return IS_ENABLED(CONFIG_CGROUPS) ? READ_ONCE(prog->aux->scope) : 0;
}

#ifdef CONFIG_CGROUPS
/* Is the task in the cgroup with this id, of the default hierarchy, or below it? */
static bool scope_has_current(u64 id)
{
	const struct cgroup *cgrp;
	bool found = false;
	int level;

	/* For RCU, which keeps the cgroups: hits on uprobes can come with preemption on. */
	preempt_disable_notrace();
	cgrp = rcu_dereference_raw(current->cgroups)->dfl_cgrp;
	for (level = cgrp->level; level >= 0 && !found; level--)
		found = cgroup_id(cgrp->ancestors[level]) == id;
	preempt_enable_notrace();
	return found;
}

NOKPROBE_SYMBOL(scope_has_current);

static void scope_show_cgroup(struct seq_file *m, u64 id)
{
	struct cgroup_namespace *ns = current->nsproxy->cgroup_ns;
	struct cgroup *cgrp = cgroup_get_from_id(id);
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);
	int len = 0;

	if (!IS_ERR(cgrp)) {
		if (path)
			len = kernfs_path_from_node(cgrp->kn, ns->root_cset->dfl_cgrp->kn, path,
						    PATH_MAX);
		cgroup_put(cgrp);
	}
	/* One that fills all of it may have been cut off. */
	if (len > 0 && len < PATH_MAX - 1)
		seq_puts(m, path);
	else
		seq_printf(m, "cgroup-id:%llu", id);
	kfree(path);
}

#else
static bool scope_has_current(u64 id)
{
	return true;
}

static void scope_show_cgroup(struct seq_file *m, u64 id)
{
}
#endif

/* A session that ran at the entry of a call runs at its return, too, wherever the task is. */
static noinline u32 attachment_run_in_scope(const struct bpf_attachment *att, void *ctx)
{
	bool session = bpf_prog_is_session(att->prog);
	u64 scope = prog_scope(att->prog);

	if (scope && !scope_has_current(scope) && !(session && bpf_hit_is_return()))
		return session;
	return attachment_run_in_budget(att, ctx, att->prog);
}

NOKPROBE_SYMBOL(attachment_run_in_scope);

/**
 * bpf_attachment_run_limited() - run a program, within its limits
 * @att: the attachment; may be bpf_idle_attachment
 * @ctx: what the program gets as context
 *
 * What bpf_attachment_run() does while there is a limit. A hit over the budget is counted as
 * missed, one out of the scope is not.
 *
 * The credit may become less than nothing, by CPUs that take the last run at the same time,
 * and by returns of sessions. Then these runs are missing later.
 *
 * Context: that of the run. Until it begins, all that is called is out of bounds for kprobes.
 * Return: what the program returns. If it does not run, 0, or, of a session, 1, which leaves
 * out the return.
 */
u32 bpf_attachment_run_limited(const struct bpf_attachment *att, void *ctx)
{
	const struct bpf_prog *prog = att->prog;

	if (!prog)
		return bpf_attachment_run_unlimited(att, ctx);
	if (prog_scope(prog))
		return attachment_run_in_scope(att, ctx);
	return attachment_run_in_budget(att, ctx, prog);
}

NOKPROBE_SYMBOL(bpf_attachment_run_limited);

/**
 * bpf_limits_show() - the lines about the limits of a program in an fdinfo, if it has any
 * @m: where to print
 * @prog: the program
 */
void bpf_limits_show(struct seq_file *m, const struct bpf_prog *prog)
{
	unsigned int limit = prog_budget(prog);
	u64 scope = prog_scope(prog);

	if (limit != BUDGET_NONE)
		seq_printf(m, "bpf_budget:\t%u\n", limit);
	if (scope) {
		seq_puts(m, "bpf_scope:\t");
		scope_show_cgroup(m, scope);
		seq_putc(m, '\n');
	}
}

/*
 * What a program that trampolines run has in place of an attachment. It can have one link at a
 * time, so its budget is that of the link.
 */
struct bpf_tramp_limits {
	struct bpf_budget	budget;
	unsigned long __percpu	*missed;	/* in all links that the program has had */
	unsigned long		before_attach;	/* of these, before the last try to attach */
	unsigned long		before_link;	/* and before its link was there */
};

/*
 * What a program on fmod_ret or of type LSM decides must not depend on how often it is asked, and
 * an extension is a part of the program that it extends.
 */
static bool prog_has_tramp_limits(const struct bpf_prog *prog)
{
	return prog->type == BPF_PROG_TYPE_TRACING &&
	       (prog->expected_attach_type == BPF_TRACE_FENTRY ||
		prog->expected_attach_type == BPF_TRACE_FEXIT);
}

static unsigned long tramp_missed(const struct bpf_tramp_limits *limits)
{
	unsigned long missed = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		missed += READ_ONCE(*per_cpu_ptr(limits->missed, cpu));
	return missed;
}

static struct bpf_tramp_limits *tramp_limits_new(void)
{
	struct bpf_tramp_limits *limits = kzalloc(sizeof(*limits), GFP_KERNEL_ACCOUNT);

	if (!limits)
		return NULL;
	limits->missed = alloc_percpu_gfp(unsigned long, GFP_KERNEL_ACCOUNT);
	if (!limits->missed) {
		kfree(limits);
		return NULL;
	}
	return limits;
}

/**
 * bpf_tramp_limits_init() - before a trampoline runs a program: let it look at its limits
 * @prog: the program; another link may have it already, so that this one fails
 *
 * Context: process; serialized by bpf_prog_aux::dst_mutex.
 * Return: 0 or -ENOMEM.
 */
int bpf_tramp_limits_init(struct bpf_prog *prog)
{
	struct bpf_tramp_limits *limits = prog->aux->tramp_limits;

	if (!prog_has_tramp_limits(prog))
		return 0;
	if (!limits) {
		limits = tramp_limits_new();
		if (!limits)
			return -ENOMEM;
		prog->aux->tramp_limits = limits;
	}
	limits->before_attach = tramp_missed(limits);
	return 0;
}

/**
 * bpf_tramp_limits_start() - once it does: the link has a budget of its own, and its misses are
 * counted from before that
 * @prog: the program
 *
 * Context: as bpf_tramp_limits_init().
 */
void bpf_tramp_limits_start(struct bpf_prog *prog)
{
	struct bpf_tramp_limits *limits = prog->aux->tramp_limits;

	if (!limits)
		return;
	WRITE_ONCE(limits->before_link, limits->before_attach);
	atomic_set(&limits->budget.credit, 0);
	WRITE_ONCE(limits->budget.filled, jiffies - HZ);
}

/**
 * bpf_tramp_limits_free() - free what bpf_tramp_limits_init() has allocated
 * @aux: of a program that nothing runs any more
 */
void bpf_tramp_limits_free(struct bpf_prog_aux *aux)
{
	if (!aux->tramp_limits)
		return;
	free_percpu(aux->tramp_limits->missed);
	kfree(aux->tramp_limits);
}

/**
 * bpf_tramp_in_limits() - may a trampoline run this program, by its limits?
 * @prog: the program, which has passed its guard
 *
 * What bpf_tramp_may_run() asks while there is a limit. A hit over the budget is counted as
 * missed, one out of the scope is not.
 *
 * Context: migration disabled; that of the run. All that is called is out of bounds for kprobes.
 * Return: whether it may.
 */
bool bpf_tramp_in_limits(const struct bpf_prog *prog)
{
	struct bpf_tramp_limits *limits = prog->aux->tramp_limits;
	unsigned int limit = prog_budget(prog);
	u64 scope = prog_scope(prog);

	if (!limits)
		return true;
	if (scope && !scope_has_current(scope))
		return false;
	if (limit == BUDGET_NONE || budget_take(&limits->budget, limit, false))
		return true;

	this_cpu_inc(*limits->missed);
	bpf_trace_missed(prog, BPF_MISS_BUDGET);
	return false;
}

NOKPROBE_SYMBOL(bpf_tramp_in_limits);

/**
 * bpf_tramp_limits_show() - the lines in the fdinfo of a link about what its program missed by
 * its limits, and about these
 * @m: where to print
 * @prog: the program, which a trampoline runs
 */
void bpf_tramp_limits_show(struct seq_file *m, const struct bpf_prog *prog)
{
	const struct bpf_tramp_limits *limits = prog->aux->tramp_limits;

	if (!limits)
		return;
	seq_printf(m, "bpf_missed_budget:\t%lu\n",
		   tramp_missed(limits) - READ_ONCE(limits->before_link));
	bpf_limits_show(m, prog);
}

enum limits_error {
	LIMITS_NO_ADMIN,
	LIMITS_BAD_ID,
	LIMITS_NO_PROG,
	LIMITS_NOT_ON_EVENTS,
	BUDGET_BAD_LINE,
	BUDGET_BAD_LIMIT,
	SCOPE_BAD_LINE,
	SCOPE_NO_CGROUP,
};

static struct tracing_refusal limits_errors[] = {
	[LIMITS_NO_ADMIN] = { -EPERM, "To limit programs takes CAP_SYS_ADMIN" },
	[LIMITS_BAD_ID] = { -EINVAL, "Not the id of a program, write bpf-id:ID" },
	[LIMITS_NO_PROG] = { -ENOENT, "No program has this id" },
	[LIMITS_NOT_ON_EVENTS] = { -EINVAL,
		"Only programs on probes, tracepoints, perf events, fentry and fexit have limits" },
	[BUDGET_BAD_LINE] = { -EINVAL, "Write bpf-id:ID or default, and a limit" },
	[BUDGET_BAD_LIMIT] = { -EINVAL, "A limit is 1 to " __stringify(BUDGET_HIGHEST)
		" runs a second, or max for none; a program can have default" },
	[SCOPE_BAD_LINE] = { -EINVAL,
		"Write bpf-id:ID, and a cgroup as /proc/PID/cgroup has it behind 0::, or all" },
	[SCOPE_NO_CGROUP] = { -ENOENT, "Cgroup v2 has no cgroup with this path" },
};

static const char by_id[] = "bpf-id:";

/* A file in tracefs with lines "bpf-id:ID LIMIT". Its functions are called with limits_mutex. */
struct limits_file {
	const char *name;
	enum limits_error bad_line;
	/* @words is a copy of @line, and is cut up. */
	int (*set)(const char *line, char *words);
	/* The line of @prog, if it has one, or what comes before the first. */
	void (*show)(struct seq_file *m, const struct bpf_prog *prog);
};

static bool prog_has_limits(const struct bpf_prog *prog)
{
	switch (prog->type) {
	case BPF_PROG_TYPE_KPROBE:
	case BPF_PROG_TYPE_TRACEPOINT:
	case BPF_PROG_TYPE_PERF_EVENT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
		return true;
	case BPF_PROG_TYPE_TRACING:
		return prog->expected_attach_type == BPF_TRACE_RAW_TP ||
		       prog_has_tramp_limits(prog);
	default:
		return false;
	}
}

static bool prog_is_limited(const struct bpf_prog *prog)
{
	return prog_scope(prog) ||
	       (prog->aux->budget != BUDGET_DEFAULT && prog->aux->budget != BUDGET_NONE);
}

/* Hits look for limits only while there is one. */
static void limits_update_key(void)
{
	bool any = budget_default != BUDGET_NONE;
	struct bpf_prog *prog;
	u32 id = 0;

	for (; !any && (prog = bpf_prog_get_curr_or_next(&id)); id++) {
		any = prog_is_limited(prog);
		bpf_prog_put(prog);
	}
	if (any)
		static_branch_enable(&bpf_limits_key);
	else
		static_branch_disable(&bpf_limits_key);
}

static void limits_work_fn(struct work_struct *work)
{
	guard(mutex)(&limits_mutex);
	limits_update_key();
}

static DECLARE_WORK(limits_work, limits_work_fn);

/**
 * bpf_limits_forget() - a program goes: is there another one that has a limit?
 * @prog: the program, which has no id any more, so that nobody can set a limit
 *
 * A worker looks, since the caller may be atomic, or have locks that code is not patched under.
 *
 * Context: process or softirq.
 */
void bpf_limits_forget(const struct bpf_prog *prog)
{
	if (prog_is_limited(prog))
		schedule_work(&limits_work);
}

static int limits_refused(const struct limits_file *file, enum limits_error error,
			  const char *line, int pos)
{
	return tracing_refuse(top_trace_array(), file->name, &limits_errors[error], pos, "%s",
			      line);
}

static bool limits_parse_number(const char *text, u32 *val)
{
	return !text[strspn(text, "0123456789")] && !kstrtou32(text, 10, val);
}

/*
 * The program that the first word of @line names. Reads that behind by_id, at @id.
 * Return: the program, with a reference, or an error that has been logged.
 */
static struct bpf_prog *limits_get_prog(const struct limits_file *file, const char *line,
					const char *id)
{
	const int pos = strlen(by_id);
	struct bpf_prog *prog;
	u32 nr;

	if (!limits_parse_number(id, &nr))
		return ERR_PTR(limits_refused(file, LIMITS_BAD_ID, line, pos));
	prog = bpf_prog_by_id(nr);
	if (IS_ERR(prog))
		return ERR_PTR(limits_refused(file, LIMITS_NO_PROG, line, pos));
	if (prog_has_limits(prog))
		return prog;
	bpf_prog_put(prog);
	return ERR_PTR(limits_refused(file, LIMITS_NOT_ON_EVENTS, line, pos));
}

static const struct limits_file budget_file;

static bool budget_parse_limit(const char *text, bool of_prog, u32 *limit)
{
	if (!strcmp(text, "max"))
		*limit = BUDGET_NONE;
	else if (of_prog && !strcmp(text, "default"))
		*limit = BUDGET_DEFAULT;
	else
		return limits_parse_number(text, limit) && *limit && *limit <= BUDGET_HIGHEST;
	return true;
}

static int budget_set(const char *line, char *words)
{
	const char *start = words, *what = strsep(&words, " "), *text;
	bool of_prog = str_has_prefix(what, by_id);
	struct bpf_prog *prog;
	u32 limit;

	if (!of_prog && strcmp(what, "default"))
		return limits_refused(&budget_file, BUDGET_BAD_LINE, line, 0);
	text = words ? strim(words) : start + strlen(start);
	if (!budget_parse_limit(text, of_prog, &limit))
		return limits_refused(&budget_file, BUDGET_BAD_LIMIT, line, text - start);

	if (!of_prog) {
		WRITE_ONCE(budget_default, limit);
		return 0;
	}
	prog = limits_get_prog(&budget_file, line, what + strlen(by_id));
	if (IS_ERR(prog))
		return PTR_ERR(prog);
	WRITE_ONCE(prog->aux->budget, limit);
	bpf_prog_put(prog);
	return 0;
}

static void budget_show(struct seq_file *m, const struct bpf_prog *prog)
{
	unsigned int limit = prog ? prog->aux->budget : budget_default;

	if (limit == BUDGET_DEFAULT)
		return;
	if (prog)
		seq_printf(m, "%s%u", by_id, prog->aux->id);
	else
		seq_puts(m, "default");
	if (limit == BUDGET_NONE)
		seq_puts(m, " max\n");
	else
		seq_printf(m, " %u\n", limit);
}

static const struct limits_file budget_file = {
	.name = "bpf_budget",
	.bad_line = BUDGET_BAD_LINE,
	.set = budget_set,
	.show = budget_show,
};

#ifdef CONFIG_CGROUPS
static const struct limits_file scope_file;

/*
 * The id is enough, so a program does not keep its cgroup. It is not given to another one: it
 * has a generation.
 */
static int scope_set(const char *line, char *words)
{
	const char *start = words, *what = strsep(&words, " "), *path;
	struct cgroup *cgrp;
	struct bpf_prog *prog;
	u64 scope = 0;

	path = words ? skip_spaces(words) : "";
	if (!str_has_prefix(what, by_id) || (*path != '/' && strcmp(path, "all")))
		return limits_refused(&scope_file, SCOPE_BAD_LINE, line, 0);
	prog = limits_get_prog(&scope_file, line, what + strlen(by_id));
	if (IS_ERR(prog))
		return PTR_ERR(prog);
	if (*path == '/') {
		cgrp = cgroup_get_from_path(path);
		if (IS_ERR(cgrp)) {
			bpf_prog_put(prog);
			return limits_refused(&scope_file, SCOPE_NO_CGROUP, line, path - start);
		}
		scope = cgroup_id(cgrp);
		cgroup_put(cgrp);
	}
	WRITE_ONCE(prog->aux->scope, scope);
	bpf_prog_put(prog);
	return 0;
}

static void scope_show(struct seq_file *m, const struct bpf_prog *prog)
{
	u64 scope = prog ? prog_scope(prog) : 0;

	if (!scope)
		return;
	seq_printf(m, "%s%u ", by_id, prog->aux->id);
	scope_show_cgroup(m, scope);
	seq_putc(m, '\n');
}

static const struct limits_file scope_file = {
	.name = "bpf_scope",
	.bad_line = SCOPE_BAD_LINE,
	.set = scope_set,
	.show = scope_show,
};
#endif

/* @buf has what was written, or the beginning of it */
static int limits_set(const struct limits_file *file, char *buf, size_t written)
{
	size_t len = strlen(buf);
	char *line, *words;
	int err;

	if (len && buf[len - 1] == '\n')
		buf[len - 1] = '\0';
	line = skip_spaces(buf);
	if (!capable(CAP_SYS_ADMIN))
		return limits_refused(file, LIMITS_NO_ADMIN, line, 0);
	if (len != written)
		return limits_refused(file, file->bad_line, line, 0);
	words = kstrdup(line, GFP_KERNEL);
	if (!words)
		return -ENOMEM;

	mutex_lock(&limits_mutex);
	err = file->set(line, words);
	if (!err)
		limits_update_key();
	mutex_unlock(&limits_mutex);
	kfree(words);
	return err;
}

static ssize_t limits_write(struct file *filp, const char __user *ubuf, size_t cnt, loff_t *pos)
{
	char *buf = memdup_user_nul(ubuf, min(cnt, PATH_MAX));
	int err;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = limits_set(file_inode(filp)->i_private, buf, cnt);
	kfree(buf);
	return err ?: cnt;
}

static int limits_seq_show(struct seq_file *m, void *unused)
{
	const struct limits_file *file = m->private;
	struct bpf_prog *prog;
	u32 id;

	guard(mutex)(&limits_mutex);
	file->show(m, NULL);
	for (id = 0; (prog = bpf_prog_get_curr_or_next(&id)); id++) {
		file->show(m, prog);
		bpf_prog_put(prog);
	}
	return 0;
}

static int limits_open(struct inode *inode, struct file *filp)
{
	return tracing_check_open_get_tr(NULL) ?:
	       single_open(filp, limits_seq_show, inode->i_private);
}

static const struct file_operations limits_fops = {
	.open = limits_open,
	.read = seq_read,
	.write = limits_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static void __init limits_create_file(const struct limits_file *file)
{
	trace_create_file(file->name, TRACE_MODE_WRITE, NULL, (void *)file, &limits_fops);
}

static int __init limits_init(void)
{
	if (tracing_init_dentry())
		return 0;
	limits_create_file(&budget_file);
#ifdef CONFIG_CGROUPS
	limits_create_file(&scope_file);
#endif
	return 0;
}
fs_initcall(limits_init);
