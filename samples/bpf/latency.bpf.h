/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What programs have in common that measure how long calls of a function take, by a session
 * of kprobes. The one that includes this says how many TOTALS it has.
 */
#ifndef LATENCY_BPF_H
#define LATENCY_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TOTALS);
	__type(key, __u32);
	__type(value, __u64);
} totals SEC(".maps");

/* The threshold, in ns */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} threshold SEC(".maps");

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
