/* SPDX-License-Identifier: GPL-2.0 */
/* What openslow.bpf.c and openslow_user.c tell each other. */
#ifndef OPENSLOW_H
#define OPENSLOW_H

#define OPENSLOW_PATH 4096	/* PATH_MAX */

/**
 * struct openslow_event - an open that took long
 * @ns: how long
 * @ino: the inode number of the file, 0 if it was not opened
 * @dev: the device of its filesystem, in 12 and 20 bits
 * @pid: the process
 * @error: the errno, 0 if it was opened
 * @comm: the name of the thread
 * @path: what was to be opened, as the caller named it; the record ends with it
 */
struct openslow_event {
	__u64	ns;
	__u64	ino;
	__u32	dev;
	__u32	pid;
	__u32	error;
	char	comm[16];
	char	path[OPENSLOW_PATH];
};

/* Slots of the map "totals" */
enum openslow_total {
	OPENSLOW_CALLS,		/* that were measured */
	OPENSLOW_SLOW,		/* those that took long, with a record or without */
	OPENSLOW_LOST_RECORDS,	/* those for whose record there was no room */
	OPENSLOW_LOST_STARTS,	/* not measured: there was no room for their start */
	OPENSLOW_TOTALS
};

#endif
