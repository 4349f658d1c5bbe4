// SPDX-License-Identifier: GPL-2.0
/*
 * Links of programs to perf events.
 *
 * A link owns what SET_BPF leaves with the file of the perf event: it can be
 * pinned, it has a cookie, and when it goes, the perf event may go on without
 * the program. While it is there it keeps the file, so that closing the last
 * descriptor of the perf event does not end the attachment.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/eventpoll.h>
#include <linux/file.h>
#include <linux/perf_event.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bpf_trace.h"
#include "trace.h"

struct bpf_perf_link {
	struct bpf_link		link;
	struct file		*perf_file;
	u64			cookie;
};

static struct bpf_perf_link *perf_link(const struct bpf_link *link)
{
	return container_of(link, struct bpf_perf_link, link);
}

static struct perf_event *perf_link_event(const struct bpf_link *link)
{
	return perf_event_of_file(perf_link(link)->perf_file);
}

/*
 * A perf event that has other users goes on without the program. Otherwise it goes as
 * well, and it has to be off by the time that its program is: so that is left to the
 * release of the file, which is before a task returns to user space. A worker leaves it
 * to another worker, but nothing waits for the first, either.
 *
 * What is counted are references, and some are only held for a moment, by what finds
 * the file without having it:
 *
 * - epoll does not have the files that it watches, and takes one while it polls it.
 *   After the count was 1, it must not find the file any more: it would drop it last,
 *   and release it in its own time, when the close() here has returned already.
 *   eventpoll_release() waits for a poll that is under way, and makes it forget the
 *   file. To have it watched again takes a descriptor.
 *
 * - a system call looks up a descriptor which another thread closes meanwhile, or a
 *   reader of /proc/PID/fdinfo does. If it takes the file after the count was 1, it
 *   sees that the descriptor is gone, and drops the file at once. It is the last then,
 *   and releases the file before it returns to user space: a call on the perf event
 *   that goes on for a little longer than this one.
 *
 * If such a reference is counted, it is one like any other: the attachment has ended
 * when this returns, see bpf_event_release(), and the perf event is gone, without it,
 * when the reference is.
 */
static void perf_link_release(struct bpf_link *link)
{
	struct file *file = perf_link(link)->perf_file;

	if (file_count(file) > 1)
		bpf_event_release(perf_link_event(link));
	else
		eventpoll_release(file);
	fput(file);
}

static void perf_link_dealloc(struct bpf_link *link)
{
	kfree(perf_link(link));
}

static void perf_link_show_fdinfo(const struct bpf_link *link, struct seq_file *m)
{
	bpf_event_show_fdinfo(m, perf_link_event(link));
}

static int perf_link_fill_trace_event(struct perf_event *event, u64 cookie,
				      struct bpf_link_info *info)
{
	struct trace_event_call *call = event->tp_event;
	struct bpf_event_target target;
	int err;

	err = call->class->bpf_ops->target(call, &target);
	if (err)
		return err;

	info->perf_event.type = target.type;
	switch (target.type) {
	case BPF_PERF_EVENT_UPROBE:
	case BPF_PERF_EVENT_URETPROBE:
		info->perf_event.uprobe.offset = target.offset;
		info->perf_event.uprobe.cookie = cookie;
		err = bpf_copy_name(info->perf_event.uprobe.file_name,
				    &info->perf_event.uprobe.name_len, target.name);
		break;
	case BPF_PERF_EVENT_KPROBE:
	case BPF_PERF_EVENT_KRETPROBE:
		info->perf_event.kprobe.offset = target.offset;
		info->perf_event.kprobe.addr = target.addr;
		info->perf_event.kprobe.missed = target.missed;
		info->perf_event.kprobe.cookie = cookie;
		err = bpf_copy_name(info->perf_event.kprobe.func_name,
				    &info->perf_event.kprobe.name_len, target.name);
		break;
	case BPF_PERF_EVENT_TRACEPOINT:
		info->perf_event.tracepoint.cookie = cookie;
		err = bpf_copy_name(info->perf_event.tracepoint.tp_name,
				    &info->perf_event.tracepoint.name_len, target.name);
		break;
	default:
		break;
	}
	kfree(target.name);
	return err;
}

static int perf_link_fill_info(const struct bpf_link *link, struct bpf_link_info *info)
{
	struct perf_event *event = perf_link_event(link);
	u64 cookie = perf_link(link)->cookie;

	if (event->tp_event)
		return perf_link_fill_trace_event(event, cookie, info);

	info->perf_event.type = BPF_PERF_EVENT_EVENT;
	info->perf_event.event.type = event->attr.type;
	info->perf_event.event.config = event->attr.config;
	info->perf_event.event.cookie = cookie;
	return 0;
}

static const struct bpf_link_ops perf_link_ops = {
	.release	= perf_link_release,
	.dealloc	= perf_link_dealloc,
	.show_fdinfo	= perf_link_show_fdinfo,
	.fill_link_info	= perf_link_fill_info,
};

/**
 * bpf_perf_link_create() - BPF_LINK_CREATE to a perf event
 * @attr: what user space asks for
 * @prog: the program, whose reference goes to the link on success
 * @log: the caller's log, or NULL
 *
 * Context: process.
 * Return: the descriptor of the link, -EINVAL for flags, -EBADF if it is not a
 * perf event, -ENOMEM, or what bpf_event_attach_link() returns.
 */
int bpf_perf_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
			 struct bpf_verifier_log *log)
{
	struct bpf_link_primer primer;
	struct bpf_perf_link *link;
	struct file *file;
	int err;

	static struct tracing_refusal no_event = { -EBADF,
		"This descriptor is not a perf event" };
	int fd = attr->link_create.target_fd;

	if (attr->link_create.flags)
		return bpf_refuse_link_flags(log, attr->link_create.flags);

	file = perf_event_get(fd);
	if (IS_ERR(file))
		return bpf_refuse(log, &no_event, strlen("LINK_CREATE target_fd "),
				  "LINK_CREATE target_fd %d", fd);

	err = -ENOMEM;
	link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	if (!link)
		goto put_file;
	bpf_link_init(&link->link, BPF_LINK_TYPE_PERF_EVENT, &perf_link_ops, prog);
	link->perf_file = file;
	link->cookie = attr->link_create.perf_event.bpf_cookie;

	err = bpf_link_prime(&link->link, &primer);
	if (err) {
		kfree(link);
		goto put_file;
	}

	err = bpf_event_attach_link(perf_event_of_file(file), attr->link_create.prog_fd,
				    prog, link->cookie, log);
	if (err) {
		bpf_link_cleanup(&primer);
		goto put_file;
	}
	return bpf_link_settle(&primer);

put_file:
	fput(file);
	return err;
}
