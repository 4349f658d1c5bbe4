// SPDX-License-Identifier: GPL-2.0
/*
 * tcpretrans: which destinations TCP has to send segments to again. These programs
 * count them; tcpretrans_user.c attaches them and prints the table.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tcpretrans.h"

#define AF_INET6	10
#define TCPHDR_SYN	0x02

/* User space adds the entry at key 0, which takes those that find the map full. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tcpretrans_key);
	__type(value, struct tcpretrans_counts);
} destinations SEC(".maps");

/* Are destinations addresses alone, whatever the port? */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} by_address SEC(".maps");

/* A kernel without IPv6 has no such field. */
struct sock_common___ipv6 {
	struct in6_addr skc_v6_daddr;
} __attribute__((preserve_access_index));

static __always_inline struct tcpretrans_counts *counts_of(struct tcpretrans_key *key)
{
	struct tcpretrans_counts none = {}, *counts;
	struct tcpretrans_key others = {};

	counts = bpf_map_lookup_elem(&destinations, key);
	if (counts)
		return counts;
	/* If another CPU is faster, its entry is the one to use. */
	bpf_map_update_elem(&destinations, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&destinations, key) ?:
	       bpf_map_lookup_elem(&destinations, &others);
}

/* @sk: a socket, or the request for one */
static __always_inline void count(struct sock_common *sk, __u32 segments, bool handshake)
{
	struct sock_common___ipv6 *sk6 = (void *)sk;
	struct tcpretrans_counts *counts;
	struct tcpretrans_key key = {};
	__u32 zero = 0, *no_port;

	if (BPF_CORE_READ(sk, skc_family) == AF_INET6 && bpf_core_field_exists(sk6->skc_v6_daddr)) {
		BPF_CORE_READ_INTO(&key.addr, sk6, skc_v6_daddr);
	} else {
		key.addr[2] = bpf_htonl(0xffff);
		key.addr[3] = BPF_CORE_READ(sk, skc_daddr);
	}
	no_port = bpf_map_lookup_elem(&by_address, &zero);
	if (no_port && !*no_port)
		key.port = bpf_ntohs(BPF_CORE_READ(sk, skc_dport));

	counts = counts_of(&key);
	if (!counts)
		return;
	__sync_fetch_and_add(&counts->segments, segments);
	if (handshake)
		__sync_fetch_and_add(&counts->handshake, segments);
}

/* An skb that is split by the device is several segments. */
SEC("raw_tp/tcp_retransmit_skb")
int segment(struct bpf_raw_tracepoint_args *ctx)
{
	struct sock *sk = (struct sock *)ctx->args[0];
	struct sk_buff *skb = (struct sk_buff *)ctx->args[1];
	struct tcp_skb_cb *cb = (struct tcp_skb_cb *)&skb->cb;

	count(&sk->__sk_common, BPF_CORE_READ(cb, tcp_gso_segs),
	      BPF_CORE_READ(cb, tcp_flags) & TCPHDR_SYN);
	return 0;
}

SEC("raw_tp/tcp_retransmit_synack")
int synack(struct bpf_raw_tracepoint_args *ctx)
{
	struct request_sock *request = (struct request_sock *)ctx->args[1];

	count(&request->__req_common, 1, true);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
