/* SPDX-License-Identifier: GPL-2.0 */
/* What newtool.bpf.c and newtool.c tell each other. */
#ifndef NEWTOOL_H
#define NEWTOOL_H

/**
 * struct newtool_event - a call that took long
 * @ns: how long
 * @ret: what it returned
 * @pid: the process that called
 * @comm: the name of the thread that called
 */
struct newtool_event {
	__u64	ns;
	__s32	ret;
	__u32	pid;
	char	comm[16];
};

/**
 * struct newtool_totals - what has been counted since the beginning
 * @calls: calls of which both ends were seen
 * @ns: how long they took together
 * @slow: those of them that took long, with a record or without
 * @lost_records: those for whose record the ring buffer had no room
 * @lost_starts: calls that were not measured, as the map of starts was full
 */
struct newtool_totals {
	__u64	calls;
	__u64	ns;
	__u64	slow;
	__u64	lost_records;
	__u64	lost_starts;
};

#endif
