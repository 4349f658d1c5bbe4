// SPDX-License-Identifier: GPL-2.0
/*
 * How often programs run at most: bpf_budget in tracefs.
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
 * Programs that run from trampolines (fentry, fexit, fmod_ret, LSM) have no budget.
 */
#include <linux/atomic.h>
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/uaccess.h>

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

DEFINE_STATIC_KEY_FALSE(bpf_budget_key);

/* Serializes writes of bpf_budget. */
static DEFINE_MUTEX(budget_mutex);
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
 * A session that ran at the entry of a call runs at its return, too, whatever the credit is.
 * That can take the credit below 0, but not far below -budget_most(): so many calls may be under
 * way that what all of their returns take would not be made up for in hours.
 */
static noinline u32 attachment_run_limited(const struct bpf_attachment *att, void *ctx,
					   unsigned int limit)
{
	struct bpf_budget *budget = att->budget;
	bool session = bpf_prog_is_session(att->prog);
	int credit;

	budget_fill(budget, limit);
	credit = atomic_read(&budget->credit);
	if (credit < HZ && !(session && bpf_hit_is_return())) {
		this_cpu_add(att->stats->missed[BPF_MISS_BUDGET], session ? 2 : 1);
		return session;
	}
	if (credit > -budget_most(limit))
		atomic_sub(HZ, &budget->credit);
	return bpf_attachment_run_unlimited(att, ctx);
}

NOKPROBE_SYMBOL(attachment_run_limited);

/**
 * bpf_attachment_run_limited() - run a program, unless it is over its budget
 * @att: the attachment; may be bpf_idle_attachment
 * @ctx: what the program gets as context
 *
 * What bpf_attachment_run() does while there is a limit. A hit over the budget is counted as
 * missed.
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
	const struct bpf_budget *budget = att->budget;
	unsigned long now = jiffies;
	unsigned int limit;

	limit = prog ? prog_budget(prog) : BUDGET_NONE;
	if (limit == BUDGET_NONE)
		return bpf_attachment_run_unlimited(att, ctx);

	/*
	 * Where there is a limit, most hits are over it. They are counted here as well as in
	 * attachment_run_limited() on purpose: one function for both would save registers, and
	 * take 38 instructions for such a hit on x86 in place of 26.
	 */
	if (atomic_read(&budget->credit) < HZ && READ_ONCE(budget->filled) == now &&
	    !bpf_prog_is_session(prog)) {
		this_cpu_inc(att->stats->missed[BPF_MISS_BUDGET]);
		return 0;
	}
	return attachment_run_limited(att, ctx, limit);
}

NOKPROBE_SYMBOL(bpf_attachment_run_limited);

/**
 * bpf_budget_show() - the line about the limit of a program in an fdinfo, if it has one
 * @m: where to print
 * @prog: the program
 */
void bpf_budget_show(struct seq_file *m, const struct bpf_prog *prog)
{
	unsigned int limit = prog_budget(prog);

	if (limit != BUDGET_NONE)
		seq_printf(m, "bpf_budget:\t%u\n", limit);
}

enum budget_error {
	BUDGET_BAD_LINE,
	BUDGET_BAD_ID,
	BUDGET_BAD_LIMIT,
	BUDGET_NO_ADMIN,
	BUDGET_NO_PROG,
	BUDGET_NOT_ON_EVENTS,
};

static struct tracing_refusal budget_errors[] = {
	[BUDGET_BAD_LINE] = { -EINVAL, "Write bpf-id:ID or default, and a limit" },
	[BUDGET_BAD_ID] = { -EINVAL, "Not the id of a program, write bpf-id:ID" },
	[BUDGET_BAD_LIMIT] = { -EINVAL, "A limit is 1 to " __stringify(BUDGET_HIGHEST)
		" runs a second, or max for none; a program can have default" },
	[BUDGET_NO_ADMIN] = { -EPERM, "To limit programs takes CAP_SYS_ADMIN" },
	[BUDGET_NO_PROG] = { -ENOENT, "No program has this id" },
	[BUDGET_NOT_ON_EVENTS] = { -EINVAL,
		"Programs on probes, tracepoints and perf events have a budget, this is none" },
};

static bool prog_has_budget(const struct bpf_prog *prog)
{
	switch (prog->type) {
	case BPF_PROG_TYPE_KPROBE:
	case BPF_PROG_TYPE_TRACEPOINT:
	case BPF_PROG_TYPE_PERF_EVENT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
		return true;
	case BPF_PROG_TYPE_TRACING:
		return prog->expected_attach_type == BPF_TRACE_RAW_TP;
	default:
		return false;
	}
}

/* Hits look at budgets only while there is one. */
static void budget_update_key(void)
{
	bool any = budget_default != BUDGET_NONE;
	struct bpf_prog *prog;
	u32 id = 0;

	for (; !any && (prog = bpf_prog_get_curr_or_next(&id)); id++) {
		any = prog->aux->budget != BUDGET_DEFAULT && prog->aux->budget != BUDGET_NONE;
		bpf_prog_put(prog);
	}
	if (any)
		static_branch_enable(&bpf_budget_key);
	else
		static_branch_disable(&bpf_budget_key);
}

static bool budget_parse_number(const char *text, u32 *val)
{
	return !text[strspn(text, "0123456789")] && !kstrtou32(text, 10, val);
}

static bool budget_parse_limit(const char *text, bool of_prog, u32 *limit)
{
	if (!strcmp(text, "max"))
		*limit = BUDGET_NONE;
	else if (of_prog && !strcmp(text, "default"))
		*limit = BUDGET_DEFAULT;
	else
		return budget_parse_number(text, limit) && *limit && *limit <= BUDGET_HIGHEST;
	return true;
}

static int budget_refused(enum budget_error error, const char *line, int pos)
{
	return tracing_refuse(top_trace_array(), "bpf_budget", &budget_errors[error], pos, "%s",
			      line);
}

/* @words is a copy of @line, and is cut up. */
static int budget_set(const char *line, char *words)
{
	static const char by_id[] = "bpf-id:";
	const char *start = words, *what = strsep(&words, " "), *text;
	bool of_prog = str_has_prefix(what, by_id);
	struct bpf_prog *prog;
	u32 id, limit;
	int err = 0;

	if (!of_prog && strcmp(what, "default"))
		return budget_refused(BUDGET_BAD_LINE, line, 0);
	if (of_prog && !budget_parse_number(what + strlen(by_id), &id))
		return budget_refused(BUDGET_BAD_ID, line, strlen(by_id));
	text = words ? skip_spaces(words) : start + strlen(start);
	if (!budget_parse_limit(text, of_prog, &limit))
		return budget_refused(BUDGET_BAD_LIMIT, line, text - start);

	if (!of_prog) {
		WRITE_ONCE(budget_default, limit);
		return 0;
	}
	prog = bpf_prog_by_id(id);
	if (IS_ERR(prog))
		return budget_refused(BUDGET_NO_PROG, line, strlen(by_id));
	if (prog_has_budget(prog))
		WRITE_ONCE(prog->aux->budget, limit);
	else
		err = budget_refused(BUDGET_NOT_ON_EVENTS, line, strlen(by_id));
	bpf_prog_put(prog);
	return err;
}

static ssize_t budget_write(struct file *file, const char __user *ubuf, size_t cnt, loff_t *pos)
{
	char buf[64], words[sizeof(buf)], *line;
	size_t len = min(cnt, sizeof(buf) - 1);
	int err;

	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	buf[len] = '\0';
	len = strlen(buf);
	line = strim(buf);
	if (!capable(CAP_SYS_ADMIN))
		return budget_refused(BUDGET_NO_ADMIN, line, 0);
	if (len != cnt)
		return budget_refused(BUDGET_BAD_LINE, line, 0);
	strscpy(words, line);

	guard(mutex)(&budget_mutex);
	err = budget_set(line, words);
	if (err)
		return err;
	budget_update_key();
	return cnt;
}

static void budget_show_limit(struct seq_file *m, unsigned int limit)
{
	if (limit == BUDGET_NONE)
		seq_puts(m, " max\n");
	else
		seq_printf(m, " %u\n", limit);
}

static int budget_seq_show(struct seq_file *m, void *unused)
{
	struct bpf_prog *prog;
	unsigned int limit;
	u32 id;

	guard(mutex)(&budget_mutex);

	seq_puts(m, "default");
	budget_show_limit(m, budget_default);
	for (id = 0; (prog = bpf_prog_get_curr_or_next(&id)); id++) {
		limit = prog->aux->budget;
		bpf_prog_put(prog);
		if (limit == BUDGET_DEFAULT)
			continue;
		seq_printf(m, "bpf-id:%u", id);
		budget_show_limit(m, limit);
	}
	budget_update_key(); /* Programs may be gone that had a limit. */
	return 0;
}

static int budget_open(struct inode *inode, struct file *file)
{
	return tracing_check_open_get_tr(NULL) ?: single_open(file, budget_seq_show, NULL);
}

static const struct file_operations budget_fops = {
	.open = budget_open,
	.read = seq_read,
	.write = budget_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int __init budget_init(void)
{
	if (!tracing_init_dentry())
		trace_create_file("bpf_budget", TRACE_MODE_WRITE, NULL, NULL, &budget_fops);
	return 0;
}
fs_initcall(budget_init);
