// SPDX-License-Identifier: GPL-2.0
/*
 * tracex1: of the packets that are received, only those from lo make it into the
 * trace. tracex1_user.c attaches this and shows the trace.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

extern void *bpf_fetch_ptr(const void *addr__any) __ksym;
extern int bpf_memcmp(const void *addr__any, const void *mem, u32 mem__sz) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} turned_down SEC(".maps");

/* What it returns is whether the event is recorded. */
SEC("events/net/netif_receive_skb")
int from_lo(__u64 *args)
{
	struct sk_buff *skb = (struct sk_buff *)args[0];	/* as in TP_PROTO() */
	struct net_device *dev = bpf_fetch_ptr(&skb->dev);
	char lo[] = "lo";	/* on the stack: what kfuncs get must be writable */
	__u64 *count;
	__u32 zero = 0;

	/* Not equal if there is nothing to read, either. */
	if (!bpf_memcmp(dev->name, lo, sizeof(lo)))
		return 1;

	/* Not atomic: nothing else counts in this map on this CPU meanwhile. */
	count = bpf_map_lookup_elem(&turned_down, &zero);
	if (count)
		(*count)++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
