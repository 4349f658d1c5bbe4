// SPDX-License-Identifier: GPL-2.0
/*
 * What user space can ask about programs on events: PERF_EVENT_IOC_QUERY_BPF,
 * BPF_TASK_FD_QUERY, /proc/PID/fdinfo.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bpf_trace.h"

/*
 * Fill in @ids, which has room for BPF_EVENT_MAX_PROGS, in the order in which the
 * programs run.
 * Return: how many there are.
 */
static u32 event_prog_ids(const struct trace_event_call *call, u32 *ids)
{
	const struct bpf_attachment *att;
	u32 pos = 0, nr = 0;

	guard(bpf_event)();

	while ((att = bpf_event_next_attachment(call, &pos)))
		ids[nr++] = att->prog->aux->id;
	return nr;
}

/**
 * bpf_copy_name() - hand a name to user space
 * @uptr: the user's buffer as it stands in an attribute, or 0
 * @ulen: in: the size of the buffer, or 0; out: how many bytes the name takes,
 *	the terminating NUL included
 * @name: the name
 *
 * Context: process.
 * Return: 0, -EINVAL if the buffer has no size or the size no buffer, -ENOSPC
 * if the name had to be cut, or -EFAULT.
 */
int bpf_copy_name(u64 uptr, u32 *ulen, const char *name)
{
	char __user *ubuf = u64_to_user_ptr(uptr);
	u32 room = *ulen, size = strlen(name) + 1;

	if (!ubuf != !room)
		return -EINVAL;

	*ulen = size;
	if (!ubuf)
		return 0;
	if (size <= room)
		return copy_to_user(ubuf, name, size) ? -EFAULT : 0;
	if (copy_to_user(ubuf, name, room - 1) || put_user('\0', ubuf + room - 1))
		return -EFAULT;
	return -ENOSPC;
}

/**
 * bpf_event_query() - PERF_EVENT_IOC_QUERY_BPF
 * @event: the perf event the ioctl came to
 * @uquery: ids_len says how many ids fit; prog_cnt and ids are filled in with
 *	the programs of the trace event, in the order in which they run
 *
 * Context: process, with the event's ctx->mutex held.
 * Return: 0, or
 *
 * * -EPERM: no CAP_PERFMON
 * * -EINVAL: the event is not a trace event, or one that cannot run programs
 * * -E2BIG: ids_len is over BPF_EVENT_MAX_PROGS
 * * -ENOSPC: ids_len is not 0 but too small; as many ids as fit were written
 * * -EFAULT
 */
int bpf_event_query(struct perf_event *event,
		    struct perf_event_query_bpf __user *uquery)
{
	u32 ids[BPF_EVENT_MAX_PROGS];
	u32 len, cnt;

	if (!perfmon_capable())
		return -EPERM;
	if (!event->tp_event || !bpf_event_runs_progs(event))
		return -EINVAL;
	if (get_user(len, &uquery->ids_len))
		return -EFAULT;
	if (len > BPF_EVENT_MAX_PROGS)
		return -E2BIG;

	cnt = event_prog_ids(event->tp_event, ids);
	if (put_user(cnt, &uquery->prog_cnt) ||
	    copy_to_user(uquery->ids, ids, min(cnt, len) * sizeof(*ids)))
		return -EFAULT;
	return len && len < cnt ? -ENOSPC : 0;
}

/**
 * bpf_attachment_sum() - hits and misses on all CPUs
 * @att: the attachment
 * @sum: the sums are added to it; hits that come meanwhile may or may not be in
 *
 * Return: all misses together.
 */
unsigned long bpf_attachment_sum(const struct bpf_attachment *att,
				 struct bpf_attachment_stats *sum)
{
	const struct bpf_attachment_stats *stats;
	unsigned long missed, all = 0;
	enum bpf_miss why;
	int cpu;

	for_each_possible_cpu(cpu) {
		stats = per_cpu_ptr(att->stats, cpu);
		sum->hits += READ_ONCE(stats->hits);
		for (why = 0; why < BPF_NR_MISSES; why++) {
			missed = READ_ONCE(stats->missed[why]);
			sum->missed[why] += missed;
			all += missed;
		}
	}
	return all;
}

/**
 * bpf_stats_show() - the lines about hits and misses in an fdinfo
 * @m: where to print
 * @sum: of all CPUs, and all attachments that it is about
 */
void bpf_stats_show(struct seq_file *m, const struct bpf_attachment_stats *sum)
{
	unsigned long missed = 0;
	enum bpf_miss why;

	for (why = 0; why < BPF_NR_MISSES; why++)
		missed += sum->missed[why];
	seq_printf(m, "bpf_prog_hits:\t%lu\nbpf_prog_missed:\t%lu\n", sum->hits, missed);
	for (why = 0; why < BPF_NR_MISSES; why++)
		seq_printf(m, "bpf_missed_%s:\t%lu\n", bpf_miss_names[why], sum->missed[why]);
}

/**
 * bpf_attachment_show() - these lines for one attachment
 * @m: where to print
 * @att: the attachment
 */
void bpf_attachment_show(struct seq_file *m, const struct bpf_attachment *att)
{
	struct bpf_attachment_stats sum = {};

	bpf_attachment_sum(att, &sum);
	bpf_stats_show(m, &sum);
	bpf_limits_show(m, att->prog);
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

	guard(bpf_event)();

	att = bpf_event_attachment(event);
	if (!att)
		return;
	seq_printf(m, "bpf_prog_id:\t%u\n", att->prog->aux->id);
	bpf_attachment_show(m, att);
	seq_printf(m, "bpf_cookie:\t%llu\n", att->hit.cookie);
	seq_printf(m, "bpf_attached_by:\t%s\n",
		   bpf_perf_attachment(att)->by_link ? "link" : "ioctl");
}

static const u32 task_fd_types[] = {
	[BPF_PERF_EVENT_UPROBE]		= BPF_FD_TYPE_UPROBE,
	[BPF_PERF_EVENT_URETPROBE]	= BPF_FD_TYPE_URETPROBE,
	[BPF_PERF_EVENT_KPROBE]		= BPF_FD_TYPE_KPROBE,
	[BPF_PERF_EVENT_KRETPROBE]	= BPF_FD_TYPE_KRETPROBE,
	[BPF_PERF_EVENT_TRACEPOINT]	= BPF_FD_TYPE_TRACEPOINT,
};

/* A buffer without a length, or the other way round, asks for no name. */
static u64 task_fd_buf(const union bpf_attr *attr, u32 *len)
{
	*len = attr->task_fd_query.buf ? attr->task_fd_query.buf_len : 0;
	return *len ? attr->task_fd_query.buf : 0;
}

/* Return: the id of the program that a perf event has, or 0. */
static u32 event_prog_id(const struct perf_event *event)
{
	const struct bpf_attachment *att;

	guard(bpf_event)();

	att = bpf_event_attachment(event);
	return att ? att->prog->aux->id : 0;
}

/* @size: what bpf_copy_name() has said of the name */
static int task_fd_put_answer(union bpf_attr __user *uattr, u32 prog_id, u32 type,
			      u32 size, u64 offset, u64 addr)
{
	if (put_user(size - 1, &uattr->task_fd_query.buf_len) ||
	    put_user(prog_id, &uattr->task_fd_query.prog_id) ||
	    put_user(type, &uattr->task_fd_query.fd_type) ||
	    put_user(offset, &uattr->task_fd_query.probe_offset) ||
	    put_user(addr, &uattr->task_fd_query.probe_addr))
		return -EFAULT;
	return 0;
}

/* A buffer that is too short gets the start of the name all the same. */
static int task_fd_query_event(struct perf_event *event, const union bpf_attr *attr,
			       union bpf_attr __user *uattr)
{
	struct trace_event_call *call = event->tp_event;
	u32 size, prog_id = event_prog_id(event);
	u64 buf = task_fd_buf(attr, &size);
	struct bpf_event_target target;
	int err;

	if (!prog_id)
		return -ENOENT;
	if (!call)
		return -EOPNOTSUPP; /* there is no probe to tell about */

	err = call->class->bpf_ops->target(call, &target);
	if (err)
		return err;

	err = bpf_copy_name(buf, &size, target.name);
	kfree(target.name);
	if (err && err != -ENOSPC)
		return err;
	return task_fd_put_answer(uattr, prog_id, task_fd_types[target.type], size,
				  target.offset, target.addr) ?: err;
}

static int task_fd_query_link(const struct bpf_link *link, const union bpf_attr *attr,
			      union bpf_attr __user *uattr)
{
	struct bpf_link_info info = {};
	int err;

	if (link->type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		return -ENOTSUPP;

	info.raw_tracepoint.tp_name = task_fd_buf(attr, &info.raw_tracepoint.tp_name_len);
	err = link->ops->fill_link_info(link, &info);
	if (err && err != -ENOSPC)
		return err;
	return task_fd_put_answer(uattr, link->prog->aux->id, BPF_FD_TYPE_RAW_TRACEPOINT,
				  info.raw_tracepoint.tp_name_len, 0, 0) ?: err;
}

/**
 * bpf_task_fd_query() - BPF_TASK_FD_QUERY
 * @attr: which task, as the caller knows it, and which of its descriptors
 * @uattr: where the answer goes
 *
 * Context: process.
 * Return: 0, or
 *
 * * -EPERM: no CAP_SYS_ADMIN
 * * -EINVAL: flags, of which there are none
 * * -ENOENT: no such task, or no program on the perf event
 * * -EBADF: the task has no such descriptor
 * * -ENOTSUPP: it is not one of a perf event or of a tracepoint's link
 * * -EOPNOTSUPP: the perf event is not one of a trace event
 * * -ENOSPC: the name did not fit, everything else was filled in
 * * -EFAULT, -ENOMEM
 */
int bpf_task_fd_query(const union bpf_attr *attr, union bpf_attr __user *uattr)
{
	struct task_struct *task;
	struct file *file;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (attr->task_fd_query.flags)
		return -EINVAL;

	task = find_get_task_by_vpid(attr->task_fd_query.pid);
	if (!task)
		return -ENOENT;
	file = fget_task(task, attr->task_fd_query.fd);
	put_task_struct(task);
	if (!file)
		return -EBADF;

	err = -ENOTSUPP; /* what bpftool takes for an answer */
	if (perf_event_of_file(file))
		err = task_fd_query_event(perf_event_of_file(file), attr, uattr);
	else if (bpf_link_of_file(file))
		err = task_fd_query_link(bpf_link_of_file(file), attr, uattr);
	fput(file);
	return err;
}
