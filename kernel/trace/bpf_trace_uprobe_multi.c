// SPDX-License-Identifier: GPL-2.0
/*
 * Links of one kprobe program to many places in one file, or, with
 * BPF_F_UPROBE_MULTI_RETURN, to the returns from the functions that are there,
 * or, as a session, to both.
 *
 *	uprobe, at sites[].offset --> sites[].consumer
 *	link --> path, task	the file, and the only process to run for
 *	     --> sites[]	in the order that user space has them in
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/namei.h>
#include <linux/overflow.h>
#include <linux/path.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uprobes.h>

#include "bpf_trace.h"
#include "trace.h"

/* How many places one link takes at most. ABI. */
#define UPROBE_MULTI_MAX_SITES	1048576

struct bpf_uprobe_multi_link;

struct uprobe_multi_site {
	struct uprobe_consumer		consumer;
	struct bpf_uprobe_multi_link	*link;
	struct uprobe			*uprobe;
	loff_t				offset;
	u64				ref_ctr_offset;
	u64				cookie;
};

struct bpf_uprobe_multi_link {
	struct bpf_link				link;
	struct bpf_attachment			att;
	refcount_t				refs;	/* its own, and each registered site's */
	struct path				path;	/* held until dealloc */
	struct task_struct			*task;	/* held until it is freed; NULL: any */
	u32					flags;
	u32					nr_sites;
	struct uprobe_multi_site		sites[] __counted_by(nr_sites);
};

static struct bpf_uprobe_multi_link *uprobe_multi_link(const struct bpf_link *link)
{
	return container_of(link, struct bpf_uprobe_multi_link, link);
}

static struct uprobe_multi_site *uprobe_multi_site(struct uprobe_consumer *consumer)
{
	return container_of(consumer, struct uprobe_multi_site, consumer);
}

static bool uprobe_multi_is_session(const struct bpf_uprobe_multi_link *link)
{
	return link->link.prog->expected_attach_type == BPF_TRACE_UPROBE_SESSION;
}

static void uprobe_multi_put(struct bpf_uprobe_multi_link *link)
{
	if (!refcount_dec_and_test(&link->refs))
		return;
	if (link->task)
		put_task_struct(link->task);
	bpf_attachment_exit(&link->att);
	kvfree(link);
}

static void uprobe_multi_site_gone(struct uprobe_consumer *consumer)
{
	uprobe_multi_put(uprobe_multi_site(consumer)->link);
}

static bool uprobe_multi_covers_current(const struct bpf_uprobe_multi_link *link)
{
	return !link->task || same_thread_group(link->task, current);
}

/* Return: 1 if it is another task's; else what bpf_attachment_hit_uprobe() returns. */
static __always_inline u32
uprobe_multi_run(struct uprobe_consumer *consumer, unsigned long func_ip, struct pt_regs *regs,
		 bool is_return, u64 *session_cookie)
{
	struct uprobe_multi_site *site = uprobe_multi_site(consumer);
	const struct bpf_session_hit hit = {
		.hit.cookie = site->cookie,
		.hit.func_ip = func_ip,
		.is_return = is_return,
		.cookie = session_cookie,
	};

	if (!uprobe_multi_covers_current(site->link))
		return 1;

	return bpf_attachment_hit_uprobe(&site->link->att, &hit.hit, regs);
}

/* What the program returns says nothing: its uprobe stays where it is. */
static int uprobe_multi_entry(struct uprobe_consumer *consumer, struct pt_regs *regs)
{
	uprobe_multi_run(consumer, instruction_pointer(regs), regs, false, NULL);
	return 0;
}

static int uprobe_multi_return(struct uprobe_consumer *consumer, unsigned long func,
			       struct pt_regs *regs)
{
	uprobe_multi_run(consumer, func, regs, true, NULL);
	return 0;
}

/*
 * The program leaves out the return of a call for which it returns 1. One that did not
 * run at the entry does not get to see the return alone.
 */
static int uprobe_session_entry(struct uprobe_consumer *consumer, struct pt_regs *regs)
{
	u64 cookie = 0;

	if (uprobe_multi_run(consumer, instruction_pointer(regs), regs, false, &cookie))
		return UPROBE_HANDLER_NO_RETURN;
	if (uprobe_follow_call(consumer, cookie))
		return 0;

	bpf_attachment_missed_uprobe(&uprobe_multi_site(consumer)->link->att);
	return UPROBE_HANDLER_NO_RETURN;
}

static int uprobe_session_return(struct uprobe_consumer *consumer, unsigned long func,
				 struct pt_regs *regs)
{
	u64 *cookie = uprobe_followed_call(consumer);

	if (cookie)
		uprobe_multi_run(consumer, func, regs, true, cookie);
	return 0;
}

/* A return that cannot be probed is missed by those that would have run there. */
static void uprobe_multi_missed(struct uprobe_consumer *consumer)
{
	const struct bpf_uprobe_multi_link *link = uprobe_multi_site(consumer)->link;

	/* A session has told whether it wants this return. */
	if (consumer->handler && !uprobe_followed_call(consumer))
		return;
	if (uprobe_multi_covers_current(link))
		bpf_attachment_missed_uprobe(&link->att);
}

/*
 * Which address space gets the breakpoint. The first thread of a process has
 * none any more when it exits before the others do.
 */
static bool uprobe_multi_filter(struct uprobe_consumer *consumer, struct mm_struct *mm)
{
	struct task_struct *thread;

	guard(rcu)();
	for_each_thread(uprobe_multi_site(consumer)->link->task, thread) {
		if (READ_ONCE(thread->mm) == mm)
			return true;
	}
	return false;
}

enum uprobe_multi_error {
	UPROBE_MULTI_FLAGS,
	UPROBE_MULTI_BAD_PID,
	UPROBE_MULTI_OVERRIDES,
	UPROBE_MULTI_NOWHERE,
	UPROBE_MULTI_MANY,
	UPROBE_MULTI_LONG_PATH,
	UPROBE_MULTI_NO_PATH,
	UPROBE_MULTI_BAD_PATH,
	UPROBE_MULTI_NO_FILE,
	UPROBE_MULTI_NO_TASK,
	UPROBE_MULTI_BAD_OFFSET,
	UPROBE_MULTI_NO_INSN,
	UPROBE_MULTI_BAD_SITE,
	UPROBE_MULTI_BAD_INSN,
	UPROBE_MULTI_CHANGED,
	UPROBE_MULTI_SESSION_RETURN,
};

static struct tracing_refusal uprobe_multi_errors[] = {
	[UPROBE_MULTI_FLAGS] = { -EINVAL,
		"The only flag of a uprobe_multi link is BPF_F_UPROBE_MULTI_RETURN" },
	[UPROBE_MULTI_BAD_PID] = { -EINVAL, "This is no pid; 0 is for all processes" },
	[UPROBE_MULTI_OVERRIDES] = { -EINVAL,
		"The program overrides return values, which is for functions of the kernel" },
	[UPROBE_MULTI_NOWHERE] = { -EINVAL, "A link needs a path, offsets, and their count" },
	[UPROBE_MULTI_MANY] = { -E2BIG,
		"A link takes " __stringify(UPROBE_MULTI_MAX_SITES) " places at most" },
	[UPROBE_MULTI_LONG_PATH] = { -EINVAL,
		"A path has at most " __stringify(PATH_MAX) " bytes, its end among them" },
	[UPROBE_MULTI_NO_PATH] = { -ENOENT, "There is no such file" },
	[UPROBE_MULTI_BAD_PATH] = { 0, "This path cannot be followed to its file" },
	[UPROBE_MULTI_NO_FILE] = { -EBADF, "This is not a regular file" },
	[UPROBE_MULTI_NO_TASK] = { -ESRCH, "There is no such process" },
	[UPROBE_MULTI_BAD_OFFSET] = { -EINVAL, "This offset is negative" },
	[UPROBE_MULTI_NO_INSN] = { -EIO,
		"Nothing can be read here, or files of this kind are not executed" },
	[UPROBE_MULTI_BAD_SITE] = { -EINVAL,
		"Outside the file, misaligned, or with another reference counter already" },
	[UPROBE_MULTI_BAD_INSN] = { -ENOTSUPP,
		"There is no instruction here that can be probed" },
	[UPROBE_MULTI_CHANGED] = { -ESTALE,
		"The file has changed here since somebody probed it, who has to end that first" },
	[UPROBE_MULTI_SESSION_RETURN] = { -EINVAL,
		"A session runs at both ends of a call, and takes no BPF_F_UPROBE_MULTI_RETURN" },
};

#define UPROBE_MULTI_CMD "LINK_CREATE uprobe_multi "

#define uprobe_multi_refuse(_log, _error, _fmt, ...)				\
	bpf_refuse(_log, &uprobe_multi_errors[_error], strlen(UPROBE_MULTI_CMD),	\
		   UPROBE_MULTI_CMD _fmt, __VA_ARGS__)

static int uprobe_multi_get_path(struct bpf_uprobe_multi_link *link, u64 upath,
				 struct bpf_verifier_log *log)
{
	char *name;
	int err;

	name = strndup_user(u64_to_user_ptr(upath), PATH_MAX);
	if (IS_ERR(name)) {
		/* what strndup_user() says of a string that is too long */
		if (PTR_ERR(name) == -EINVAL)
			uprobe_multi_refuse(log, UPROBE_MULTI_LONG_PATH, "%s", "(path)");
		return PTR_ERR(name);
	}

	err = kern_path(name, LOOKUP_FOLLOW, &link->path);
	if (err && err != -ENOMEM)
		uprobe_multi_refuse(log, err == -ENOENT ? UPROBE_MULTI_NO_PATH :
				    UPROBE_MULTI_BAD_PATH, "%s", name);
	if (!err && !d_is_reg(link->path.dentry))
		err = uprobe_multi_refuse(log, UPROBE_MULTI_NO_FILE, "%s", name);
	kfree(name);
	return err;
}

static int uprobe_multi_get_task(struct bpf_uprobe_multi_link *link, pid_t pid,
				 struct bpf_verifier_log *log)
{
	if (!pid)
		return 0;

	scoped_guard(rcu)
		link->task = get_pid_task(find_vpid(pid), PIDTYPE_TGID);
	if (!link->task)
		return bpf_refuse(log, &uprobe_multi_errors[UPROBE_MULTI_NO_TASK],
				  strlen(UPROBE_MULTI_CMD "pid "),
				  UPROBE_MULTI_CMD "pid %d", pid);
	return 0;
}

/* "path:offset", as uprobe_events has it */
static int uprobe_multi_refuse_site(struct bpf_verifier_log *log,
				    const struct uprobe_multi_site *site,
				    enum uprobe_multi_error error)
{
	const char *path = ERR_PTR(-ENOMEM);
	char *buf;
	int err;

	buf = kmalloc(PATH_MAX, GFP_KERNEL);
	if (buf)
		path = d_path(&site->link->path, buf, PATH_MAX);
	if (IS_ERR(path))
		path = "?";
	err = bpf_refuse(log, &uprobe_multi_errors[error],
			 strlen(UPROBE_MULTI_CMD) + strlen(path) + 1,
			 UPROBE_MULTI_CMD "%s:0x%llx(0x%llx)", path, site->offset,
			 site->ref_ctr_offset);
	kfree(buf);
	return err;
}

static int uprobe_multi_get_sites(struct bpf_uprobe_multi_link *link, const union bpf_attr *attr,
				  struct bpf_verifier_log *log)
{
	const u64 __user *urefs = u64_to_user_ptr(attr->link_create.uprobe_multi.ref_ctr_offsets);
	const u64 __user *ucookies = u64_to_user_ptr(attr->link_create.uprobe_multi.cookies);
	const u64 __user *uoffsets = u64_to_user_ptr(attr->link_create.uprobe_multi.offsets);
	bool is_session = uprobe_multi_is_session(link);
	struct uprobe_multi_site *site;
	u32 i;

	for (i = 0; i < link->nr_sites; i++) {
		site = &link->sites[i];
		site->link = link;
		if (get_user(site->offset, uoffsets + i) ||
		    (urefs && get_user(site->ref_ctr_offset, urefs + i)) ||
		    (ucookies && get_user(site->cookie, ucookies + i)))
			return -EFAULT;
		if (site->offset < 0)
			return uprobe_multi_refuse_site(log, site, UPROBE_MULTI_BAD_OFFSET);

		if (is_session) {
			site->consumer.handler = uprobe_session_entry;
			site->consumer.ret_handler = uprobe_session_return;
		} else if (link->flags & BPF_F_UPROBE_MULTI_RETURN) {
			site->consumer.ret_handler = uprobe_multi_return;
		} else {
			site->consumer.handler = uprobe_multi_entry;
		}
		if (site->consumer.ret_handler)
			site->consumer.missed = uprobe_multi_missed;
		if (link->task)
			site->consumer.filter = uprobe_multi_filter;
		site->consumer.gone = uprobe_multi_site_gone;
	}
	return 0;
}

/* One wait serves all uprobes: for runs of the program that are under way. */
static void uprobe_multi_unregister(struct bpf_uprobe_multi_link *link)
{
	u32 i;

	WRITE_ONCE(link->att.released, true);
	for (i = 0; i < link->nr_sites && link->sites[i].uprobe; i++)
		uprobe_unregister_nowait(link->sites[i].uprobe, &link->sites[i].consumer);
	if (!i)
		return;
	if (link->att.sleepable)
		bpf_wait_for_sleepers();
	else
		bpf_wait_for_runs();
}

static int uprobe_multi_register(struct bpf_uprobe_multi_link *link,
				 struct bpf_verifier_log *log)
{
	struct inode *inode = d_real_inode(link->path.dentry);
	struct uprobe_multi_site *site;
	struct uprobe *uprobe;
	u32 i;
	int err;

	for (i = 0; i < link->nr_sites; i++) {
		site = &link->sites[i];
		uprobe = uprobe_register(inode, site->offset, site->ref_ctr_offset,
					 &site->consumer);
		if (IS_ERR(uprobe)) {
			err = PTR_ERR(uprobe);
			uprobe_multi_unregister(link);
			if (err == -EINVAL)
				uprobe_multi_refuse_site(log, site, UPROBE_MULTI_BAD_SITE);
			else if (err == -ENOTSUPP || err == -ENOEXEC)
				uprobe_multi_refuse_site(log, site, UPROBE_MULTI_BAD_INSN);
			else if (err == -ESTALE)
				uprobe_multi_refuse_site(log, site, UPROBE_MULTI_CHANGED);
			else if (err == -EIO)
				uprobe_multi_refuse_site(log, site, UPROBE_MULTI_NO_INSN);
			return err;
		}
		site->uprobe = uprobe;
		refcount_inc(&link->refs);
	}
	return 0;
}

static void uprobe_multi_release(struct bpf_link *bpf_link)
{
	uprobe_multi_unregister(uprobe_multi_link(bpf_link));
}

static void uprobe_multi_dealloc(struct bpf_link *bpf_link)
{
	struct bpf_uprobe_multi_link *link = uprobe_multi_link(bpf_link);

	path_put(&link->path);
	uprobe_multi_put(link);
}

static void uprobe_multi_show_fdinfo(const struct bpf_link *bpf_link, struct seq_file *m)
{
	const struct bpf_uprobe_multi_link *link = uprobe_multi_link(bpf_link);

	seq_printf(m, "uprobe_cnt:\t%u\n", link->nr_sites);
	bpf_attachment_show(m, &link->att);
}

static int uprobe_multi_fill_path(const struct bpf_uprobe_multi_link *link,
				  struct bpf_link_info *info)
{
	char __user *upath = u64_to_user_ptr(info->uprobe_multi.path);
	u32 size, room = min_t(u32, info->uprobe_multi.path_size, PATH_MAX);
	const char *path;
	char *buf;
	int err;

	if (!upath != !room)
		return -EINVAL;

	buf = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;

	path = d_path(&link->path, buf, room ?: PATH_MAX);
	err = PTR_ERR_OR_ZERO(path);
	if (err)
		goto out;

	size = strlen(path) + 1;
	info->uprobe_multi.path_size = size;
	if (upath && copy_to_user(upath, path, size))
		err = -EFAULT;
out:
	kfree(buf);
	return err;
}

static int uprobe_multi_fill_info(const struct bpf_link *bpf_link, struct bpf_link_info *info)
{
	u64 __user *urefs = u64_to_user_ptr(info->uprobe_multi.ref_ctr_offsets);
	u64 __user *ucookies = u64_to_user_ptr(info->uprobe_multi.cookies);
	u64 __user *uoffsets = u64_to_user_ptr(info->uprobe_multi.offsets);
	const struct bpf_uprobe_multi_link *link = uprobe_multi_link(bpf_link);
	const struct uprobe_multi_site *site;
	u32 i, room = info->uprobe_multi.count;
	int err;

	if (!room && (uoffsets || urefs || ucookies))
		return -EINVAL;

	err = uprobe_multi_fill_path(link, info);
	if (err)
		return err;
	info->uprobe_multi.count = link->nr_sites;
	info->uprobe_multi.flags = link->flags;
	info->uprobe_multi.pid = 0;
	if (link->task)
		info->uprobe_multi.pid = task_tgid_nr_ns(link->task,
							 task_active_pid_ns(current));

	for (i = 0; i < min(room, link->nr_sites); i++) {
		site = &link->sites[i];
		if ((uoffsets && put_user((u64)site->offset, uoffsets + i)) ||
		    (urefs && put_user(site->ref_ctr_offset, urefs + i)) ||
		    (ucookies && put_user(site->cookie, ucookies + i)))
			return -EFAULT;
	}
	if (!uoffsets && !urefs && !ucookies)
		return 0;
	return room < link->nr_sites ? -ENOSPC : 0;
}

static const struct bpf_link_ops uprobe_multi_link_ops = {
	.release	= uprobe_multi_release,
	.dealloc	= uprobe_multi_dealloc,
	.show_fdinfo	= uprobe_multi_show_fdinfo,
	.fill_link_info	= uprobe_multi_fill_info,
};

static int uprobe_multi_check(const union bpf_attr *attr, const struct bpf_prog *prog,
			      struct bpf_verifier_log *log)
{
	bool path = attr->link_create.uprobe_multi.path;
	bool offsets = attr->link_create.uprobe_multi.offsets;
	u32 flags = attr->link_create.uprobe_multi.flags;
	u32 nr = attr->link_create.uprobe_multi.cnt;
	pid_t pid = attr->link_create.uprobe_multi.pid;

	if (attr->link_create.flags)
		return bpf_refuse_link_flags(log, attr->link_create.flags);
	if (pid < 0)
		return uprobe_multi_refuse(log, UPROBE_MULTI_BAD_PID, "pid %d", pid);
	if (prog->kprobe_override)
		return uprobe_multi_refuse(log, UPROBE_MULTI_OVERRIDES, "prog_fd %d",
					   attr->link_create.prog_fd);
	if (flags & ~BPF_F_UPROBE_MULTI_RETURN)
		return uprobe_multi_refuse(log, UPROBE_MULTI_FLAGS, "flags 0x%x", flags);
	if (flags && prog->expected_attach_type == BPF_TRACE_UPROBE_SESSION)
		return uprobe_multi_refuse(log, UPROBE_MULTI_SESSION_RETURN, "flags 0x%x",
					   flags);
	if (!path || !offsets || !nr)
		return uprobe_multi_refuse(log, UPROBE_MULTI_NOWHERE, "%s, %s, cnt %u",
					   path ? "path" : "no path",
					   offsets ? "offsets" : "no offsets", nr);
	if (nr > UPROBE_MULTI_MAX_SITES)
		return uprobe_multi_refuse(log, UPROBE_MULTI_MANY, "cnt %u", nr);
	return 0;
}

/**
 * bpf_uprobe_multi_link_create() - BPF_LINK_CREATE to many places of one file
 * @attr: what user space asks for
 * @prog: the program, loaded for the attach type of @attr
 * @log: the caller's log, or NULL
 *
 * What is wrong with a place in the list is in @log and in tracefs' error_log.
 *
 * Context: process.
 * Return: the descriptor of the link, or
 *
 * * -EINVAL: a program that overrides return values; unknown flags, or
 *   BPF_F_UPROBE_MULTI_RETURN of a session; no path, offsets or count; a path of more
 *   than PATH_MAX bytes; a negative pid or offset; a place outside the file or
 *   misaligned, or with a reference counter that is not the one it has already
 * * -E2BIG: more than UPROBE_MULTI_MAX_SITES places
 * * -EBADF: the path is not of a regular file
 * * -EIO: nothing can be read at a place, or the file is of a kind that is not executed
 * * -ESRCH: no such process
 * * -EOPNOTSUPP: a kernel of 32 bits
 * * -EFAULT, -ENOMEM, and what path lookup and uprobe_register() return
 */
int bpf_uprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
				 struct bpf_verifier_log *log)
{
	u32 flags = attr->link_create.uprobe_multi.flags;
	u32 nr = attr->link_create.uprobe_multi.cnt;
	pid_t pid = attr->link_create.uprobe_multi.pid;
	struct bpf_uprobe_multi_link *link;
	struct bpf_link_primer primer;
	int err;

	if (!IS_ENABLED(CONFIG_64BIT))
		return -EOPNOTSUPP;
	err = uprobe_multi_check(attr, prog, log);
	if (err)
		return err;

	link = kvzalloc(struct_size(link, sites, nr), GFP_KERNEL_ACCOUNT);
	if (!link)
		return -ENOMEM;
	link->nr_sites = nr;
	link->flags = flags;
	refcount_set(&link->refs, 1);
	bpf_link_init(&link->link, BPF_LINK_TYPE_UPROBE_MULTI, &uprobe_multi_link_ops, prog);

	err = bpf_attachment_init(&link->att, prog) ?:
	      uprobe_multi_get_path(link, attr->link_create.uprobe_multi.path, log) ?:
	      uprobe_multi_get_task(link, pid, log) ?:
	      uprobe_multi_get_sites(link, attr, log) ?:
	      bpf_link_prime(&link->link, &primer);
	if (err)
		goto free_link;

	bpf_attachment_keep_apart(&link->att);
	err = uprobe_multi_register(link, log);
	if (err) {
		bpf_link_cleanup(&primer);
		return err;
	}
	return bpf_link_settle(&primer);

free_link:
	uprobe_multi_dealloc(&link->link);
	return err;
}
