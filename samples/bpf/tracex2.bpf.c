// SPDX-License-Identifier: GPL-2.0
/*
 * tracex2: who drops packets, and how large the writes are.
 *
 * This is the half that runs in the kernel: kprobe programs that count into two
 * maps. tracex2_user.c, the other half, attaches them and prints the maps.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * How often each call site dropped a packet, by the address that the call
 * returns to. The entry at address 0 takes those that find the map full;
 * user space puts it there before anything is attached.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} drops SEC(".maps");

/*
 * How many write() calls had a size of n bits: slot 0 is size 0, slot 1 is 1,
 * slot 2 is 2-3, slot 3 is 4-7 and so on. The last slot has all larger sizes.
 */
#define SLOTS 33

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} sizes SEC(".maps");

static __always_inline void count_drop(struct pt_regs *ctx, struct sk_buff *skb)
{
	__u64 caller = 0, zero = 0, *count;

	if (!skb)	/* freeing nothing is allowed */
		return;

	BPF_KPROBE_READ_RET_IP(caller, ctx);
	count = bpf_map_lookup_elem(&drops, &caller);
	if (!count) {
		/* If another CPU is faster, its entry is the one to use. */
		bpf_map_update_elem(&drops, &caller, &zero, BPF_NOEXIST);
		count = bpf_map_lookup_elem(&drops, &caller);
	}
	if (!count)
		count = bpf_map_lookup_elem(&drops, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
}

/*
 * The function that drops a packet has changed its name over time. User space
 * attaches the first of these programs whose function this kernel has.
 *
 * All programs here return 0: no record for the perf event, counting is all.
 */
SEC("kprobe/sk_skb_reason_drop")
int BPF_KPROBE(drop_since_6_11, struct sock *sk, struct sk_buff *skb, int reason)
{
	if (reason != SKB_CONSUMED)	/* reached its receiver */
		count_drop(ctx, skb);
	return 0;
}

SEC("kprobe/kfree_skb_reason")
int BPF_KPROBE(drop_since_5_17, struct sk_buff *skb)
{
	count_drop(ctx, skb);
	return 0;
}

SEC("kprobe/kfree_skb")
int BPF_KPROBE(drop_before, struct sk_buff *skb)
{
	count_drop(ctx, skb);
	return 0;
}

/* ksyscall is a kprobe on the entry of a system call, whatever its name here */
SEC("ksyscall/write")
int BPF_KSYSCALL(write_size, unsigned int fd, const char *buf, size_t size)
{
	__u32 slot = 0;
	__u64 *count;

	while (slot < SLOTS - 1 && size >> slot)
		slot++;

	/* Not atomic: no other program run on this CPU comes in between. */
	count = bpf_map_lookup_elem(&sizes, &slot);
	if (count)
		(*count)++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
