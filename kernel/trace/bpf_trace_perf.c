// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers for perf events that stand in a BPF_MAP_TYPE_PERF_EVENT_ARRAY:
 * reading counters, and writing records to the rings of BPF_OUTPUT events. And
 * one for what the PMU knows of branches.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/lockdep.h>
#include <linux/perf_event.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include "bpf_trace_helpers.h"

/*
 * The entry that @flags asks for. Callers have preemption off, which keeps it.
 * Return: the entry, -E2BIG if the map has no such slot, -ENOENT if it is empty.
 */
static struct bpf_event_entry *perf_map_entry(struct bpf_map *map, u64 flags)
{
	struct bpf_array *array = container_of(map, struct bpf_array, map);
	u64 index = flags & BPF_F_INDEX_MASK;
	struct bpf_event_entry *entry;

	lockdep_assert_preemption_disabled();
	if (index == BPF_F_CURRENT_CPU)
		index = raw_smp_processor_id();
	if (unlikely(index >= array->map.max_entries))
		return ERR_PTR(-E2BIG);

	entry = READ_ONCE(array->ptrs[index]);
	return entry ?: ERR_PTR(-ENOENT);
}

static int perf_map_read_counter(struct bpf_map *map, u64 flags,
				 struct bpf_perf_event_value *value)
{
	struct bpf_event_entry *entry;

	if (unlikely(flags & ~BPF_F_INDEX_MASK))
		return -EINVAL;

	/* A program that may sleep gets at the map by way of a map of maps. */
	guard(preempt)();
	entry = perf_map_entry(map, flags);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	return perf_event_read_local(entry->event, &value->counter,
				     &value->enabled, &value->running);
}

/* ABI: the counter and the errors share the return value. */
BPF_CALL_2(bpf_perf_event_read, struct bpf_map *, map, u64, flags)
{
	struct bpf_perf_event_value value;
	int err;

	err = perf_map_read_counter(map, flags, &value);
	return err ?: value.counter;
}

BPF_CALL_4(bpf_perf_event_read_value, struct bpf_map *, map, u64, flags,
	   struct bpf_perf_event_value *, buf, u32, size)
{
	int err = -EINVAL;

	if (likely(size == sizeof(*buf)))
		err = perf_map_read_counter(map, flags, buf);
	if (unlikely(err))
		memset(buf, 0, size);
	return err;
}

/*
 * What one record needs while it is written. In each of task, softirq, hardirq and NMI
 * context there can be a writer, and on top of it a program on a kprobe, which runs once
 * in a context.
 */
struct output_slot {
	struct perf_sample_data	data;
	struct pt_regs		regs;
};

#define OUTPUT_SLOTS	8

static DEFINE_PER_CPU(struct output_slot [OUTPUT_SLOTS], output_slots);
static DEFINE_PER_CPU(int, output_depth);

/* @regs: what the record says of registers and stack, NULL for "here" */
static int perf_map_output(struct bpf_map *map, u64 flags,
			   struct perf_raw_record *raw, struct pt_regs *regs)
{
	struct bpf_event_entry *entry;
	struct perf_event *event;
	struct output_slot *slot;
	int depth, ret;

	/* Not every program type that gets here has it off already. */
	guard(preempt)();

	depth = this_cpu_inc_return(output_depth);
	ret = -EBUSY;
	/* Programs of fentry may call this from inside each other, as many as there are. */
	if (unlikely(depth > OUTPUT_SLOTS))
		goto out;
	slot = this_cpu_ptr(&output_slots[depth - 1]);

	entry = perf_map_entry(map, flags);
	ret = PTR_ERR(entry);
	if (IS_ERR(entry))
		goto out;

	event = entry->event;
	ret = -EINVAL;
	if (unlikely(event->attr.type != PERF_TYPE_SOFTWARE ||
		     event->attr.config != PERF_COUNT_SW_BPF_OUTPUT))
		goto out;
	/* A ring has one writing CPU. */
	ret = -EOPNOTSUPP;
	if (unlikely(event->oncpu != smp_processor_id()))
		goto out;

	if (!regs) {
		regs = &slot->regs;
		perf_fetch_caller_regs(regs);
	}
	perf_sample_data_init(&slot->data, 0, 0);
	perf_sample_save_raw_data(&slot->data, event, raw);
	ret = perf_event_output(event, &slot->data, regs);
out:
	if (unlikely(ret))
		atomic_long_inc(&map->lost);
	this_cpu_dec(output_depth);
	return ret;
}

/**
 * bpf_output_abandon() - give back the slots of writers that do not return on this CPU
 *
 * Context: task, with preemption disabled; the task dies.
 */
void bpf_output_abandon(void)
{
	__this_cpu_write(output_depth, 0);
}

/**
 * bpf_regs_output() - write a record with the registers that a program's context has
 * @regs: the registers
 * @map: a perf event array
 * @flags: the slot of @map, BPF_F_CURRENT_CPU for that of this CPU
 * @data: the record
 * @size: its size in bytes
 * @ip: what the helper returns to
 *
 * Context: that of a helper.
 * Return: as bpf_event_output(), or -EINVAL if @flags is not valid.
 */
u64 bpf_regs_output(struct pt_regs *regs, struct bpf_map *map, u64 flags, void *data, u64 size,
		    unsigned long ip)
{
	struct perf_raw_record raw = {
		.frag = {
			.size = size,
			.data = data,
		},
	};

	if (unlikely(flags & ~BPF_F_INDEX_MASK))
		return -EINVAL;
	return bpf_count_lost(perf_map_output(map, flags, &raw, regs), ip);
}

BPF_CALL_5(bpf_perf_event_output, struct pt_regs *, regs, struct bpf_map *, map,
	   u64, flags, void *, data, u64, size)
{
	return bpf_regs_output(regs, map, flags, data, size, _RET_IP_);
}

/**
 * bpf_event_output() - write a record on behalf of a program
 * @map: a perf event array
 * @flags: the slot of @map, BPF_F_CURRENT_CPU for that of this CPU
 * @meta: first part of the record
 * @meta_size: its size in bytes
 * @ctx: second part of the record, handed to @ctx_copy
 * @ctx_size: its size in bytes, 0 if there is none
 * @ctx_copy: copies from @ctx to the ring
 *
 * Serves the program types whose context is not struct pt_regs.
 *
 * Context: RCU reader; task, softirq, hardirq or NMI.
 * Return: 0, -E2BIG or -ENOENT if @map has no event there, -EINVAL if it is
 * not a BPF_OUTPUT event, -EOPNOTSUPP if it is not active on this CPU, -EBUSY
 * if too many writers are nested, or what perf_event_output() returns.
 */
u64 bpf_event_output(struct bpf_map *map, u64 flags, void *meta, u64 meta_size,
		     void *ctx, u64 ctx_size, bpf_ctx_copy_t ctx_copy)
{
	struct perf_raw_frag ctx_frag = {
		.copy = ctx_copy,
		.size = ctx_size,
		.data = ctx,
	};
	struct perf_raw_record raw = {
		.frag = {
			.size = meta_size,
			.data = meta,
		},
	};

	if (ctx_size)
		raw.frag.next = &ctx_frag;
	return perf_map_output(map, flags, &raw, NULL);
}

/* The last branches that this CPU took, as its PMU recorded them. */
BPF_CALL_3(bpf_get_branch_snapshot, void *, buf, u32, size, u64, flags)
{
	static const u32 entry_size = sizeof(struct perf_branch_entry);
	int nr;

	if (unlikely(flags))
		return -EINVAL;

	nr = static_call(perf_snapshot_branch_stack)(buf, size / entry_size);
	return nr ? nr * entry_size : -ENOENT;
}

static const struct bpf_func_proto bpf_get_branch_snapshot_proto = {
	.func		= bpf_get_branch_snapshot,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg2_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg3_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_perf_event_read_proto = {
	.func		= bpf_perf_event_read,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_CONST_MAP_PTR,
	.arg2_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_perf_event_read_value_proto = {
	.func		= bpf_perf_event_read_value,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_CONST_MAP_PTR,
	.arg2_type	= ARG_ANYTHING,
	.arg3_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg4_type	= ARG_CONST_SIZE,
};

const struct bpf_func_proto bpf_perf_event_output_proto = {
	.func		= bpf_perf_event_output,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
	.arg4_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg5_type	= ARG_CONST_SIZE_OR_ZERO,
};

/**
 * bpf_perf_func_proto() - the perf helpers that do not depend on the context
 * @func_id: the helper
 *
 * Return: the helper's prototype, NULL if it is none of these.
 */
const struct bpf_func_proto *bpf_perf_func_proto(enum bpf_func_id func_id)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_read:
		return &bpf_perf_event_read_proto;
	case BPF_FUNC_perf_event_read_value:
		return &bpf_perf_event_read_value_proto;
	case BPF_FUNC_get_branch_snapshot:
		return &bpf_get_branch_snapshot_proto;
	default:
		return NULL;
	}
}
