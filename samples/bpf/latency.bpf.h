/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs have in common that measure how long calls of a function take, by a session
 * of kprobes. The one that includes this says how many TOTALS it has, and what it keeps of
 * the start of a call, in struct start.
 */
#ifndef LATENCY_BPF_H
#define LATENCY_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TOTALS);
	__type(key, __u32);
	__type(value, __u64);
} totals SEC(".maps");

/*
 * By thread, as calls do not nest. It goes with the thread, also where the return of a call is
 * missed.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct start);
} starts SEC(".maps");

/* The threshold, in ns */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} threshold SEC(".maps");

/* NULL where there is no memory, or storage is busy: then the return is not of interest */
static __always_inline struct start *new_start(void)
{
	return bpf_task_storage_get(&starts, bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline struct start *old_start(void)
{
	return bpf_task_storage_get(&starts, bpf_get_current_task_btf(), NULL, 0);
}

/* Not atomic: one program on a kprobe runs on a CPU at a time. */
static __always_inline void add_total(__u32 slot)
{
	__u64 *total = bpf_map_lookup_elem(&totals, &slot);

	if (total)
		(*total)++;
}

static __always_inline bool is_short(__u64 ns)
{
	__u32 zero = 0;
	__u64 *min = bpf_map_lookup_elem(&threshold, &zero);

	return min && ns < *min;
}

#endif
