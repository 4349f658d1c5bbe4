/* SPDX-License-Identifier: GPL-2.0 */
/* What a 32-bit task and the test that it is a child of tell each other */
#ifndef BPF_EVENTS_COMPAT_TASK_H
#define BPF_EVENTS_COMPAT_TASK_H

/* A system call, by its number for 32-bit tasks, or a call of the functions */
struct compat_request {
	unsigned int nr;
	unsigned int args[4];
};

#define COMPAT_CALL ~0U

/* Addresses in the task; the table is found in its file, with the functions */
#define COMPAT_MAGIC "bpf_events_compat"

struct compat_table {
	char magic[20];
	unsigned int table;
	unsigned int buffer;
	/* outer() calls inner(), which calls leaf(), which adds one */
	unsigned int leaf;
	unsigned int leaf_body;		/* when its frame is set up */
	unsigned int inner_ret;		/* where leaf() returns to */
	unsigned int outer_ret;
};

#define COMPAT_BUFFER 4096

unsigned int outer(unsigned int arg);

/* The task's file, in the test */
extern const char compat_image[], compat_image_end[];

#endif /* BPF_EVENTS_COMPAT_TASK_H */
