/* SPDX-License-Identifier: GPL-2.0 */
/* What fsynclat.bpf.c and fsynclat_user.c tell each other. */
#ifndef FSYNCLAT_H
#define FSYNCLAT_H

/**
 * struct fsynclat_key - a process and a file
 * @ino: the inode number
 * @dev: the device of the filesystem, in 12 and 20 bits
 * @pid: the process
 *
 * All are 0 for those that find the table full.
 */
struct fsynclat_key {
	__u64	ino;
	__u32	dev;
	__u32	pid;
};

/* The names of both when the first call was made, the last component of the file's */
struct fsynclat_names {
	char	comm[16];
	char	file[256];
};

struct fsynclat_stats {
	__u64	calls;
	__u64	errors;
	__u64	ns;	/* of all calls */
	__u64	max_ns;
};

/* Slots of the map "totals" */
enum fsynclat_total {
	FSYNCLAT_SHORT,		/* calls below the threshold, which are not in the table */
	FSYNCLAT_LOST_STARTS,	/* calls for whose start there was no room */
	FSYNCLAT_TOTALS
};

#endif
