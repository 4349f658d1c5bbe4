// SPDX-License-Identifier: GPL-2.0
/*
 * Attach programs to events: PERF_EVENT_IOC_SET_BPF and links. The kind of event says
 * whether a program fits, the programs that it has whether there is room.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/trace_events.h>

#include "bpf_trace.h"

/**
 * bpf_event_runs_progs() - can an event run programs at all?
 * @event: a perf event
 *
 * Return: whether it is of a kind that does.
 */
bool bpf_event_runs_progs(const struct perf_event *event)
{
	const struct trace_event_call *call = event->tp_event;

	return !call || call->class->bpf_ops;
}

static bool event_allows_override(struct trace_event_call *call)
{
	const struct bpf_event_ops *ops = call->class->bpf_ops;

	return ops->allows_override && ops->allows_override(call);
}

/*
 * Does the program fit to what the event has now? Caller holds bpf_event_lock().
 * Return: why not, a bpf_attach_error; or -1 if it does
 */
static int event_check_others(const struct bpf_attach_request *req)
{
	struct trace_event_call *call = req->event->tp_event;
	const struct bpf_attachment *att;
	bool twice = false;
	u32 pos = 0, nr = 0;

	if (req->prog->kprobe_override && !event_allows_override(call))
		return ATTACH_OVERRIDES;
	if (bpf_event_attachment(req->event))
		return ATTACH_FD_TAKEN;
	if (!call)
		return -1;

	while ((att = bpf_event_next_attachment(call, &pos))) {
		nr++;
		if (att->prog == req->prog)
			twice = true;
	}
	if (nr == BPF_EVENT_MAX_PROGS)
		return ATTACH_FULL;
	return twice ? ATTACH_TWICE : -1;
}

static int event_attach_prog(const struct bpf_attach_request *req)
{
	const struct trace_event_call *call = req->event->tp_event;
	int err, error;

	if (!bpf_event_runs_progs(req->event))
		return bpf_attach_refuse(req, ATTACH_BAD_EVENT);

	if (call)
		err = call->class->bpf_ops->check_attach(req);
	else
		err = bpf_perf_event_check_attach(req);
	if (err)
		return err;

	scoped_guard(bpf_event) {
		error = event_check_others(req);
		if (error < 0)
			return bpf_event_add(req->event, req->prog, req->cookie, req->by_link);
	}
	/* The caller's log may be memory that takes long to come: not under the lock. */
	return bpf_attach_refuse(req, error);
}

/**
 * bpf_event_attach_link() - attach a program for a link
 * @event: the perf event that is going to own the attachment
 * @prog_fd: the descriptor the program came by, for the error_log
 * @prog: the program; the attachment takes a reference of its own
 * @cookie: what bpf_get_attach_cookie() is to return
 * @log: the caller's log, or NULL
 *
 * On failure nothing has changed; @log and tracefs' error_log tell why.
 *
 * Context: process.
 * Return: 0, or
 *
 * * -EINVAL: the event cannot run programs, or not this one
 * * -EEXIST: the perf event has a program, or the trace event has this one
 * * -E2BIG: the trace event has BPF_EVENT_MAX_PROGS programs
 * * -EACCES: the program reads past the end of the event's record
 * * -EPROTO: the program takes stacks that the event does not have
 * * -ENOMEM
 */
int bpf_event_attach_link(struct perf_event *event, int prog_fd, struct bpf_prog *prog,
			  u64 cookie, struct bpf_verifier_log *log)
{
	const struct bpf_attach_request req = {
		.cmd = "LINK_CREATE",
		.by_link = true,
		.event = event,
		.prog_fd = prog_fd,
		.prog = prog,
		.cookie = cookie,
		.log = log,
	};
	int err;

	err = event_attach_prog(&req);
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
 * Return: 0, what bpf_event_attach_link() returns, or
 *
 * * -EINVAL: the descriptor is not a program
 * * -EBADF: the descriptor is not open
 */
int bpf_event_set_prog(struct perf_event *event, u32 prog_fd)
{
	struct bpf_attach_request req = {
		.cmd = "SET_BPF",
		.event = event,
		.prog_fd = prog_fd,
	};
	struct bpf_prog *prog;
	int err;

	prog = bpf_prog_get(prog_fd);
	if (IS_ERR(prog))
		return bpf_attach_refuse(&req, PTR_ERR(prog) == -EBADF ?
						       ATTACH_NO_FILE : ATTACH_NO_PROG);
	req.prog = prog;
	err = event_attach_prog(&req);
	if (err)
		bpf_prog_put(prog);
	return err;
}
