/* SPDX-License-Identifier: GPL-2.0 */
/* What tcpretrans.bpf.c and tcpretrans_user.c tell each other. */
#ifndef TCPRETRANS_H
#define TCPRETRANS_H

/**
 * struct tcpretrans_key - a destination
 * @addr: an IPv6 address, or ::ffff:a.b.c.d for IPv4, in network byte order
 * @port: in host byte order, 0 if destinations are addresses alone
 *
 * All are 0 for those that find the table full.
 */
struct tcpretrans_key {
	__u32	addr[4];
	__u32	port;
};

struct tcpretrans_counts {
	__u64	segments;	/* all of them */
	__u64	handshake;	/* those that are a SYN or SYN-ACK */
};

#endif
