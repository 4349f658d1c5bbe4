/* SPDX-License-Identifier: GPL-2.0 */
/* What hits.bpf.c tells hits.c. */
#ifndef HITS_H
#define HITS_H

enum source { KPROBE, KRETPROBE, KSYSCALL, UPROBE, URETPROBE, MULTI_READ, MULTI_WRITE, SOURCES };

#define STACK_DEPTH 32

struct hit {
	__u32 source;
	__s32 stack;	/* its id in the map "stacks" */
	__u64 count;
	__u64 cookie;
	__u64 value;	/* an argument, or what was returned */
};

#endif
