// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_TRACEPOINT: programs on the perf events of tracepoints and of
 * system calls. Their context is the record, as the event's format file has it,
 * but for the common fields: in their place, and out of a program's reach, are
 * the registers for the helpers that need some.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/trace_events.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"
#include "trace.h"

/* Return: where the part of the record ends that all hits have. */
static u32 tp_record_size(struct trace_event_call *call)
{
	struct ftrace_event_field *field;
	u32 end = 0;

	list_for_each_entry(field, trace_get_fields(call), link)
		end = max_t(u32, end, field->offset + field->size);
	return end;
}

static int tp_check_attach(const struct bpf_attach_request *req)
{
	if (req->prog->type != BPF_PROG_TYPE_TRACEPOINT)
		return bpf_attach_refuse(req, ATTACH_WANTS_TP);
	if (req->prog->aux->max_ctx_offset > tp_record_size(req->event->tp_event))
		return bpf_attach_refuse(req, ATTACH_PAST_RECORD);
	return 0;
}

static int tp_target(struct trace_event_call *call, struct bpf_event_target *target)
{
	*target = (struct bpf_event_target) {
		.type = BPF_PERF_EVENT_TRACEPOINT,
		.name = kstrdup(trace_event_name(call), GFP_KERNEL),
	};
	return target->name ? 0 : -ENOMEM;
}

/* Of the events whose programs get the record: tracepoints, system calls, user events */
const struct bpf_event_ops bpf_tp_event_ops = {
	.check_attach	= tp_check_attach,
	.target		= tp_target,
	.call_rcu	= call_rcu,
	.wait_readers	= bpf_wait_for_runs,
};
EXPORT_SYMBOL_GPL(bpf_tp_event_ops);

static struct pt_regs *tp_ctx_regs(void *ctx)
{
	return *(struct pt_regs **)ctx;
}

/**
 * perf_trace_tp_alloc() - get space for a record of a tracepoint
 * @call: the event
 * @size: the size of the record in bytes
 * @regs: is set to where to put the registers
 * @rctxp: is set to the recursion context
 *
 * A hit inside the handling of another event in the same context gets none:
 * what is there is in use. The programs of the event, which see the record, miss
 * this hit.
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 * Return: the space, or NULL.
 */
void *perf_trace_tp_alloc(struct trace_event_call *call, int size,
			  struct pt_regs **regs, int *rctxp)
{
	void *record = perf_trace_buf_alloc(size, regs, rctxp);

	if (unlikely(!record))
		bpf_event_missed(call, BPF_MISS_NESTED);
	return record;
}
EXPORT_SYMBOL_GPL(perf_trace_tp_alloc);

/**
 * perf_trace_tp_submit() - put a record before the event's programs, then to perf
 * @record: the record, whose common fields are not filled in yet
 * @size: its size in bytes
 * @rctx: the recursion context that it was allocated in
 * @call: the event
 * @count: how many events it stands for
 * @regs: the registers for perf and for the programs' helpers
 * @head: the perf events of this CPU
 * @task: whose perf events get it, too, or NULL
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void perf_trace_tp_submit(void *record, int size, int rctx,
			  struct trace_event_call *call, u64 count,
			  struct pt_regs *regs, struct hlist_head *head,
			  struct task_struct *task)
{
	*(struct pt_regs **)record = regs;
	if (bpf_event_passes(call, record) && (task || !hlist_empty(head)))
		perf_tp_event(call->event.type, count, record, size, regs, head, rctx, task);
	else
		perf_swevent_put_recursion_context(rctx);
}
EXPORT_SYMBOL_GPL(perf_trace_tp_submit);

BPF_CALL_5(bpf_perf_event_output_tp, void *, ctx, struct bpf_map *, map, u64, flags,
	   void *, data, u64, size)
{
	return bpf_regs_output(tp_ctx_regs(ctx), map, flags, data, size, _RET_IP_);
}

BPF_CALL_3(bpf_get_stackid_tp, void *, ctx, struct bpf_map *, map, u64, flags)
{
	return bpf_get_stackid((unsigned long)tp_ctx_regs(ctx), (unsigned long)map, flags,
			       0, 0);
}

BPF_CALL_4(bpf_get_stack_tp, void *, ctx, void *, buf, u32, size, u64, flags)
{
	return bpf_get_stack((unsigned long)tp_ctx_regs(ctx), (unsigned long)buf, size,
			     flags, 0);
}

const struct bpf_func_proto bpf_perf_event_output_proto_tp = {
	.func		= bpf_perf_event_output_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
	.arg4_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg5_type	= ARG_CONST_SIZE_OR_ZERO,
};

static const struct bpf_func_proto bpf_get_stackid_proto_tp = {
	.func		= bpf_get_stackid_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_get_stack_proto_tp = {
	.func		= bpf_get_stack_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg4_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto *
tp_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto_tp;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto_tp;
	case BPF_FUNC_get_stack:
		return &bpf_get_stack_proto_tp;
	case BPF_FUNC_get_attach_cookie:
		return bpf_hit_func_proto(func_id);
	default:
		return bpf_tracing_func_proto(func_id, prog);
	}
}

/* How long the record is, is checked when the program meets its event. */
static bool tp_prog_is_valid_access(int off, int size, enum bpf_access_type type,
				    const struct bpf_prog *prog,
				    struct bpf_insn_access_aux *info)
{
	BUILD_BUG_ON(sizeof(struct trace_entry) < sizeof(struct pt_regs *));

	return type == BPF_READ && off >= (int)sizeof(struct trace_entry) &&
	       off % size == 0 && off + size <= PERF_MAX_TRACE_SIZE;
}

const struct bpf_verifier_ops tracepoint_verifier_ops = {
	.get_func_proto		= tp_prog_func_proto,
	.is_valid_access	= tp_prog_is_valid_access,
};

const struct bpf_prog_ops tracepoint_prog_ops = {
};
