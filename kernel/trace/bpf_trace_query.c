// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_TASK_FD_QUERY: which program stands behind a descriptor of a task.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bpf_trace.h"
#include "trace_probe.h"

static u32 fd_type(const struct trace_event_call *call, bool is_return)
{
	if (!(call->flags & TRACE_EVENT_FL_UKPROBE))
		return BPF_FD_TYPE_TRACEPOINT;
	if (call->flags & TRACE_EVENT_FL_UPROBE)
		return is_return ? BPF_FD_TYPE_URETPROBE : BPF_FD_TYPE_UPROBE;
	return is_return ? BPF_FD_TYPE_KRETPROBE : BPF_FD_TYPE_KPROBE;
}

/* A buffer that is too short gets the start of the name all the same. */
static int put_answer(const union bpf_attr *attr, union bpf_attr __user *uattr,
		      u32 prog_id, u32 type, const struct trace_probe_target *target)
{
	u32 len = attr->task_fd_query.buf_len;
	int err = 0;

	if (len && attr->task_fd_query.buf)
		err = bpf_copy_name(attr->task_fd_query.buf, &len, target->name);
	if (err && err != -ENOSPC)
		return err;

	if (put_user((u32)strlen(target->name), &uattr->task_fd_query.buf_len) ||
	    put_user(prog_id, &uattr->task_fd_query.prog_id) ||
	    put_user(type, &uattr->task_fd_query.fd_type) ||
	    put_user(target->offset, &uattr->task_fd_query.probe_offset) ||
	    put_user(target->addr, &uattr->task_fd_query.probe_addr))
		return -EFAULT;
	return err;
}

static int query_event(struct perf_event *event, const union bpf_attr *attr,
		       union bpf_attr __user *uattr)
{
	struct trace_probe_target target;
	u32 prog_id;
	int err;

	prog_id = bpf_event_prog_id(event);
	if (!prog_id)
		return -ENOENT;
	if (!event->tp_event)
		return -EOPNOTSUPP; /* there is no probe to tell about */

	err = bpf_event_target(event, &target);
	if (err)
		return err;
	err = put_answer(attr, uattr, prog_id,
			 fd_type(event->tp_event, target.is_return), &target);
	kfree(target.name);
	return err;
}

static int query_link(const struct bpf_link *link, const union bpf_attr *attr,
		      union bpf_attr __user *uattr)
{
	const struct trace_probe_target target = {
		.name = bpf_raw_tp_link_name(link),
	};

	if (!target.name)
		return -ENOTSUPP;
	return put_answer(attr, uattr, link->prog->aux->id, BPF_FD_TYPE_RAW_TRACEPOINT,
			  &target);
}

/**
 * bpf_task_fd_query() - BPF_TASK_FD_QUERY
 * @attr: which task, as the caller knows it, and which of its descriptors
 * @uattr: where the answer goes
 *
 * Context: process.
 * Return: 0, or
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
		err = query_event(perf_event_of_file(file), attr, uattr);
	else if (bpf_link_of_file(file))
		err = query_link(bpf_link_of_file(file), attr, uattr);
	fput(file);
	return err;
}
