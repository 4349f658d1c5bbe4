// SPDX-License-Identifier: GPL-2.0
/*
 * What the verifier's log says about programs on events beyond that something is refused:
 * what they could do instead.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/trace_events.h>

/* Kinds of programs with helpers of their own, by the names that libbpf has for them */
static const struct event_prog_kind {
	const char		*name;
	enum bpf_prog_type	type;
	enum bpf_attach_type	attach;
} event_prog_kinds[] = {
	{ "kprobe", BPF_PROG_TYPE_KPROBE },
	{ "tracepoint", BPF_PROG_TYPE_TRACEPOINT },
	{ "perf_event", BPF_PROG_TYPE_PERF_EVENT },
	{ "raw_tracepoint", BPF_PROG_TYPE_RAW_TRACEPOINT },
	{ "tp_btf", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP },
	{ "fentry", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY },
	{ "fexit", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT },
	{ "fmod_ret", BPF_PROG_TYPE_TRACING, BPF_MODIFY_RETURN },
	{ "iter", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER },
};

/* Those for which the questions of this file have an answer */
static const struct bpf_verifier_ops *event_prog_ops(enum bpf_prog_type type)
{
	switch (type) {
	case BPF_PROG_TYPE_KPROBE:
		return &kprobe_verifier_ops;
	case BPF_PROG_TYPE_TRACEPOINT:
		return &tracepoint_verifier_ops;
	case BPF_PROG_TYPE_PERF_EVENT:
		return &perf_event_verifier_ops;
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
		return &raw_tracepoint_verifier_ops;
	case BPF_PROG_TYPE_TRACING:
		return &tracing_verifier_ops;
	default:
		return NULL;
	}
}

/* The helper as programs of this kind have it, or NULL */
static const struct bpf_func_proto *
kind_func_proto(const struct event_prog_kind *kind, const struct bpf_prog *prog, int func_id)
{
	const struct bpf_prog as = {
		.type = kind->type, .expected_attach_type = kind->attach, .aux = prog->aux,
	};
	const struct bpf_func_proto *proto;

	proto = event_prog_ops(kind->type)->get_func_proto(func_id, &as);
	return proto && proto->func ? proto : NULL;
}

/**
 * bpf_event_explain_helper() - say which programs have a helper that was refused to this one
 * @log: where to
 * @prog: the program; nothing is said if it is not one on events
 * @func_id: the helper
 *
 * Context: process.
 */
void bpf_event_explain_helper(struct bpf_verifier_log *log, const struct bpf_prog *prog,
			      int func_id)
{
	const struct bpf_func_proto *proto;
	bool any = false, conditional = false;
	int i;

	if (!event_prog_ops(resolve_prog_type(prog)) || !bpf_verifier_log_needed(log))
		return;
	if (func_id == BPF_FUNC_probe_write_user) {
		bpf_log(log, capable(CAP_SYS_ADMIN) ?
			"lockdown forbids programs to write to the memory of processes\n" :
			"writes to the memory of processes take CAP_SYS_ADMIN\n");
		return;
	}
	if (func_id == BPF_FUNC_override_return && !IS_ENABLED(CONFIG_BPF_KPROBE_OVERRIDE)) {
		bpf_log(log, "it needs CONFIG_BPF_KPROBE_OVERRIDE\n");
		return;
	}

	for (i = 0; i < ARRAY_SIZE(event_prog_kinds); i++) {
		proto = kind_func_proto(&event_prog_kinds[i], prog, func_id);
		if (!proto)
			continue;
		bpf_log(log, "%s%s", any ? ", " : "these can: ", event_prog_kinds[i].name);
		any = true;
		conditional |= !!proto->allowed;
	}
	if (any)
		bpf_log(log, conditional ? ", in some places\n" : "\n");
	else
		bpf_log(log, "no program on an event can\n");
}

/**
 * bpf_event_explain_access() - say what a program can read of its context
 * @log: where to
 * @prog: the program, whose access to something else was refused; nothing is said if it is not
 *	one on events, nor for contexts whose types the BTF tells: there the verifier says more
 */
void bpf_event_explain_access(struct bpf_verifier_log *log, const struct bpf_prog *prog)
{
	const int numbers = offsetof(struct bpf_perf_event_data, sample_period);

	switch (resolve_prog_type(prog)) {
	case BPF_PROG_TYPE_KPROBE:
		bpf_log(log, "allowed here: aligned reads of struct pt_regs, bytes 0 to %zu\n",
			sizeof(struct pt_regs) - 1);
		break;
	case BPF_PROG_TYPE_TRACEPOINT:
		bpf_log(log, "allowed here: aligned reads of the record, bytes %zu to %d\n",
			sizeof(struct trace_entry), PERF_MAX_TRACE_SIZE - 1);
		break;
	case BPF_PROG_TYPE_PERF_EVENT:
		bpf_log(log, "allowed here: reads of whole registers, bytes 0 to %d, and",
			numbers - 1);
		bpf_log(log, " of sample_period and addr, bytes %d to %zu\n",
			numbers, sizeof(struct bpf_perf_event_data) - 1);
		break;
	case BPF_PROG_TYPE_RAW_TRACEPOINT:
	case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
		bpf_log(log, "allowed here: aligned reads of arguments, bytes 0 to %zu\n",
			sizeof(u64) * MAX_BPF_FUNC_ARGS - 1);
		break;
	default:
		break;
	}
}
