// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_PERF_EVENT: programs on perf events that are not those of a
 * trace event: software events, what the PMU counts, breakpoints. A program
 * runs each time that a sample is due, and says whether there is to be one.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>
#include <linux/perf_event.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"

/*
 * The registers of a precise event are from another moment than the stack. Only
 * what the PMU's driver sampled can be trusted.
 */
static bool pe_event_can_unwind(const struct perf_event_attr *attr)
{
	return !attr->precise_ip ||
	       (attr->sample_type & PERF_SAMPLE_CALLCHAIN &&
		!attr->exclude_callchain_kernel && !attr->exclude_callchain_user);
}

/**
 * bpf_perf_event_check_attach() - may a program run when a perf event overflows?
 * @req: the attach
 *
 * Context: process.
 * Return: 0, or an errno, with the reason in error_log.
 */
int bpf_perf_event_check_attach(const struct bpf_attach_request *req)
{
	if (req->prog->type != BPF_PROG_TYPE_PERF_EVENT)
		return bpf_attach_refuse(req, ATTACH_WANTS_PERF_EVENT);
	if (req->prog->call_get_stack && !pe_event_can_unwind(&req->event->attr))
		return bpf_attach_refuse(req, ATTACH_NO_CALLCHAIN);
	return 0;
}

/*
 * What programs may look at although perf, which fills in what the sample is
 * going to have, has not done so yet.
 */
static void pe_complete_data(const struct bpf_prog *prog, struct perf_event *event,
			     struct perf_sample_data *data, struct pt_regs *regs)
{
	if (!(data->sample_flags & PERF_SAMPLE_ADDR))
		data->addr = 0;

	if (data->sample_flags & PERF_SAMPLE_CALLCHAIN)
		return;
	/* The latter is set where there are tail calls, to any program. */
	if (prog->call_get_stack || prog->cb_access)
		perf_sample_save_callchain(data, event, regs);
	else
		data->callchain = NULL;
}

static bool overflow_run(const struct bpf_attachment *att, struct perf_event *event,
			 struct perf_sample_data *data, struct pt_regs *regs)
{
	struct bpf_perf_event_data_kern ctx = {
		.regs = perf_arch_bpf_user_pt_regs(regs),
		.data = data,
		.event = event,
	};
	struct perf_callchain_entry *held = NULL;
	bool pass;
	int rctx;

	pe_complete_data(att->prog, event, data, regs);
	/*
	 * A stack that is taken while the program runs would fill the buffer of the sample's
	 * anew. One that is taken before, or by a program on what writes the record, still does.
	 */
	if (data->sample_flags & PERF_SAMPLE_CALLCHAIN)
		held = get_callchain_entry(&rctx);
	pass = bpf_attachment_hit(att, &att->hit, &ctx);
	if (held)
		put_callchain_entry(rctx);
	return pass;
}

/**
 * bpf_event_overflow_run() - run the program of a perf event
 * @att: the program, read in the same RCU-sched section
 * @event: the perf event that overflowed, which may be inherited
 * @data: what perf knows of the sample so far
 * @regs: the registers of what was interrupted
 *
 * Overflows come from NMIs, timers, breakpoints, page faults and the scheduler.
 *
 * Context: interrupts disabled; any of task, softirq, hardirq and NMI.
 * Return: true if the program returned non-zero. false otherwise, also if it
 * missed the overflow.
 */
bool bpf_event_overflow_run(const struct bpf_attachment *att,
			    struct perf_event *event,
			    struct perf_sample_data *data, struct pt_regs *regs)
{
	struct bpf_run_below below;
	bool pass;

	if (bpf_guard_enter()) {
		pass = overflow_run(att, event, data, regs);
		bpf_guard_exit();
		return pass;
	}

	/* A breakpoint is an NMI to preempt_count(), and hit by what it is on top of. */
	if (event->attr.type == PERF_TYPE_BREAKPOINT &&
	    __this_cpu_read(bpf_prog_active) & ~BPF_GUARD_APART) {
		bpf_attachment_missed(att, BPF_MISS_MAP_OP);
		return false;
	}
	if (bpf_guard_enter_on_top(&below, att) != BPF_NR_MISSES)
		return false;
	rcu_read_lock();
	pass = overflow_run(att, event, data, regs);
	rcu_read_unlock();
	bpf_guard_exit_on_top(&below);
	return pass;
}

/**
 * bpf_event_overflow_missed() - account an overflow that perf could not handle
 * @event: the perf event that would have overflowed, which may be inherited
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_event_overflow_missed(const struct perf_event *event)
{
	const struct perf_event *owner = event->parent ?: event;
	const struct bpf_attachment *att = rcu_dereference_sched(owner->bpf);

	if (att)
		bpf_attachment_missed(att, BPF_MISS_NESTED);
}

BPF_CALL_3(bpf_perf_prog_read_value, struct bpf_perf_event_data_kern *, ctx,
	   struct bpf_perf_event_value *, buf, u32, size)
{
	int err = -EINVAL;

	if (likely(size == sizeof(*buf)))
		err = perf_event_read_local(ctx->event, &buf->counter,
					    &buf->enabled, &buf->running);
	if (unlikely(err))
		memset(buf, 0, size);
	return err;
}

BPF_CALL_4(bpf_read_branch_records, struct bpf_perf_event_data_kern *, ctx,
	   void *, buf, u32, size, u64, flags)
{
	static const u32 entry_size = sizeof(struct perf_branch_entry);
	const struct perf_sample_data *data = ctx->data;
	u32 have;

	if (unlikely(flags & ~BPF_F_GET_BRANCH_RECORDS_SIZE))
		return -EINVAL;
	if (!(data->sample_flags & PERF_SAMPLE_BRANCH_STACK) || !data->br_stack)
		return -ENOENT;

	have = data->br_stack->nr * entry_size;
	if (flags & BPF_F_GET_BRANCH_RECORDS_SIZE)
		return have;
	if (!buf || size % entry_size)
		return -EINVAL;

	size = min(size, have);
	memcpy(buf, data->br_stack->entries, size);
	return size;
}

static const struct bpf_func_proto bpf_perf_prog_read_value_proto = {
	.func		= bpf_perf_prog_read_value,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg3_type	= ARG_CONST_SIZE,
};

static const struct bpf_func_proto bpf_read_branch_records_proto = {
	.func		= bpf_read_branch_records,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_MEM_OR_NULL | MEM_WRITE,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg4_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto *
pe_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	BUILD_BUG_ON(offsetof(struct bpf_perf_event_data_kern, regs));

	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto_tp;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto_pe;
	case BPF_FUNC_get_stack:
		return &bpf_get_stack_proto_pe;
	case BPF_FUNC_perf_prog_read_value:
		return &bpf_perf_prog_read_value_proto;
	case BPF_FUNC_read_branch_records:
		return &bpf_read_branch_records_proto;
	default:
		return bpf_hit_func_proto(func_id) ?:
		       bpf_tracing_func_proto(func_id, prog);
	}
}

/*
 * The context that programs see is struct bpf_perf_event_data: registers, each
 * read as a whole, and behind them two numbers, of which parts will do.
 */
static const int pe_ctx_numbers = offsetof(struct bpf_perf_event_data, sample_period);

static bool pe_prog_is_valid_access(int off, int size, enum bpf_access_type type,
				    const struct bpf_prog *prog,
				    struct bpf_insn_access_aux *info)
{
	if (type != BPF_READ || off < 0 ||
	    off + size > (int)sizeof(struct bpf_perf_event_data))
		return false;
	if (off < pe_ctx_numbers)
		return size == sizeof(long) && off % size == 0;
	if ((off - pe_ctx_numbers) % size)
		return false;

	bpf_ctx_record_field_size(info, sizeof(u64));
	return bpf_ctx_narrow_access_ok(off, size, sizeof(u64));
}

/* Of the context that there really is, a pointer */
static struct bpf_insn pe_load_ptr(const struct bpf_insn *si, int member)
{
	return BPF_LDX_MEM(BPF_SIZEOF(void *), si->dst_reg, si->src_reg, member);
}

static u32 pe_prog_convert_ctx_access(enum bpf_access_type type,
				      const struct bpf_insn *si,
				      struct bpf_insn *insn, struct bpf_prog *prog,
				      u32 *target_size)
{
	if (si->off < pe_ctx_numbers) {
		insn[0] = pe_load_ptr(si, offsetof(struct bpf_perf_event_data_kern, regs));
		insn[1] = BPF_LDX_MEM(BPF_SIZEOF(long), si->dst_reg, si->dst_reg,
				      si->off);
		return 2;
	}

	insn[0] = pe_load_ptr(si, offsetof(struct bpf_perf_event_data_kern, data));
	if (si->off < (int)offsetof(struct bpf_perf_event_data, addr))
		insn[1] = BPF_LDX_MEM(BPF_DW, si->dst_reg, si->dst_reg,
				      bpf_target_off(struct perf_sample_data, period,
						     sizeof(u64), target_size));
	else
		insn[1] = BPF_LDX_MEM(BPF_DW, si->dst_reg, si->dst_reg,
				      bpf_target_off(struct perf_sample_data, addr,
						     sizeof(u64), target_size));
	return 2;
}

const struct bpf_verifier_ops perf_event_verifier_ops = {
	.get_func_proto		= pe_prog_func_proto,
	.is_valid_access	= pe_prog_is_valid_access,
	.convert_ctx_access	= pe_prog_convert_ctx_access,
};

const struct bpf_prog_ops perf_event_prog_ops = {
};
