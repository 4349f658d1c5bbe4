// SPDX-License-Identifier: GPL-2.0
/*
 * Why an attach is refused: an errno for the caller, and for people a text that
 * points at what is wrong, in the caller's log and in tracefs' error_log.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/stringify.h>

#include "bpf_trace.h"
#include "trace.h"

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
 * bpf_refuse() - say why a command of bpf(2), or PERF_EVENT_IOC_SET_BPF, fails
 * @log: the caller's log, or NULL
 * @why: errno and text; static, since error_log keeps the pointer
 * @pos: the position in the command that the text is about
 * @fmt: the command, in words
 *
 * The text goes to @log, and, of callers with CAP_PERFMON or CAP_SYS_ADMIN, to the error_log
 * of tracefs' top instance.
 *
 * Context: process.
 * Return: the errno of @why.
 */
int bpf_refuse(struct bpf_verifier_log *log, struct tracing_refusal *why, int pos,
	       const char *fmt, ...)
{
	va_list ap;
	char *cmd;

	va_start(ap, fmt);
	cmd = kvasprintf(GFP_KERNEL, fmt, ap);
	va_end(ap);
	if (!cmd)
		return why->err;

	/* The log cuts off each text at its own limit, so one for each line. */
	bpf_log(log, "%s\n", why->text);
	bpf_log(log, "  %s", cmd);
	bpf_log(log, "\n  %*s\n", pos + 1, "^");
	tracing_refuse(NULL, "bpf_event", why, pos, "%s", cmd);
	kfree(cmd);
	return why->err;
}

/**
 * bpf_refuse_link_flags() - refuse BPF_LINK_CREATE with flags of links
 * @log: the caller's log, or NULL
 * @flags: link_create.flags, which no link here has
 *
 * Context: process.
 * Return: -EINVAL.
 */
int bpf_refuse_link_flags(struct bpf_verifier_log *log, u32 flags)
{
	static struct tracing_refusal why = { -EINVAL,
		"link_create.flags has to be 0, flags of multi links are in a field of their own" };

	return bpf_refuse(log, &why, strlen("LINK_CREATE flags "), "LINK_CREATE flags 0x%x",
			  flags);
}

enum attach_word { WORD_EVENT, WORD_FD, WORD_TYPE, NR_WORDS };

static struct {
	struct tracing_refusal	why;
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
 * bpf_attach_refuse() - refuse to attach a program to a perf event
 * @req: the attach
 * @error: why
 *
 * Context: process.
 * Return: the errno.
 */
int bpf_attach_refuse(const struct bpf_attach_request *req, enum bpf_attach_error error)
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

	return bpf_refuse(req->log, &attach_errors[error].why, pos[attach_errors[error].word],
			  "%s %s%s%s fd %d%s%s", req->cmd, system, colon, name,
			  req->prog_fd, *type ? " " : "", type);
}
