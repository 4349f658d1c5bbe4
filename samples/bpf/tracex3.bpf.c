// SPDX-License-Identifier: GPL-2.0
/*
 * tracex3: how long block devices take. These programs count, and keep the events
 * out of the trace; tracex3_user.c attaches them and draws the counts.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "tracex3.h"

/*
 * When each request was issued. A device has a fixed set of requests that it uses
 * over and over, so those that are never completed do not fill the map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} issued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} latencies SEC(".maps");

static __always_inline __u32 slot_of(__u64 ns)
{
	__u32 power = 0, shift, slot;

	for (shift = 32; shift; shift /= 2)
		if (ns >> power >> shift)
			power += shift;
	if (power < FIRST_POWER)
		return 0;
	slot = (power - FIRST_POWER) * 4 + (ns >> (power - 2) & 3);
	return slot < SLOTS ? slot : SLOTS - 1;
}

SEC("events/block/block_rq_issue")
int issue(__u64 *args)
{
	__u64 request = args[0], now = bpf_ktime_get_ns();

	bpf_map_update_elem(&issued, &request, &now, BPF_ANY);
	return 0;
}

/* A request that is completed in parts counts with its first one. */
SEC("events/block/block_rq_complete")
int complete(__u64 *args)
{
	__u64 request = args[0], *since, *count;
	__u32 slot;

	since = bpf_map_lookup_elem(&issued, &request);
	if (!since)	/* issued before we came */
		return 0;
	slot = slot_of(bpf_ktime_get_ns() - *since);
	bpf_map_delete_elem(&issued, &request);

	count = bpf_map_lookup_elem(&latencies, &slot);
	if (count)	/* an interrupt may be in between */
		__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
