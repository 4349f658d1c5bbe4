/* SPDX-License-Identifier: GPL-2.0 */
/* Probes on a function of the test itself */
#ifndef BPF_EVENTS_UPROBE_H
#define BPF_EVENTS_UPROBE_H

#include <setjmp.h>

#include "linux/stringify.h"
#include "prepare.h"

#define SELF "/proc/self/exe"

/*
 * The function to probe: what it is given and what it returns point at two
 * neighbours, so that each can be read and neither is taken for the other.
 */
static __u64 *user_func(__u64 *arg)
{
	/* A place inside the function */
	asm volatile("user_body: nop");
	return arg + 1;
}

extern const char user_body[];

static inline void user_hits(unsigned int n)
{
	__u64 pair[2];

	while (n--)
		user_func(pair);
}

/* For hitters_start_with() */
static inline long user_hit_arg(int arg)
{
	return (long)user_func((__u64 *)(long)arg);
}

/* The kernel follows so many calls of a thread at a time */
#define MAX_DEPTH 64

/* A function that calls itself, and another one at the end */
static inline int dive(unsigned int n, void (*func)(void))
{
	if (n)
		return dive(n - 1, func) + 1;
	if (func)
		func();
	return 0;
}

/* That other one can leave all these calls to where setjmp() was called with this */
static inline struct __jmp_buf_tag *before_the_dive(void)
{
	static jmp_buf env;

	return env;
}

static inline void leave_the_dive(void)
{
	longjmp(before_the_dive(), 1);
}

/* Another process, with the same binary, that hits the probe @n times */
static inline int child_hits(unsigned int n)
{
	pid_t child = fork();

	if (!child) {
		user_hits(n);
		_exit(0);
	}
	return child_status(child);
}

/* So many functions of 16 bytes each, of which @insns know by i which one they are in */
#define FUNCS(name, nr, insns)							\
	asm(".text; .balign 16; i = 0; " #name ": .rept " __stringify(nr) "; "	\
	    insns "; ret; .balign 16; i = i + 1; .endr"); extern const char name[]

static inline const char *func_at(const char *funcs, unsigned int i)
{
	return funcs + 16 * i;
}

static inline __u64 call_func(const char *func, __u64 arg)
{
	return ((__u64 (*)(__u64))func)(arg);
}

/* Where in its file the memory at @addr is, or 0 */
static inline unsigned long file_offset(const void *addr)
{
	unsigned long start, end, offset, at = (unsigned long)addr, found = 0;
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    start <= at && at < end)
			found = at - start + offset;
	}
	if (file)
		fclose(file);
	return found;
}

static inline int uprobe_create_at(struct probe *p, const char *event,
				   const char *path, unsigned long offset,
				   unsigned long ref_ctr, unsigned int flags)
{
	memset(p, 0, sizeof(*p));
	p->flags = flags | PROBE_USER;
	p->offset = offset;
	p->ref_ctr = ref_ctr;
	snprintf(p->func, sizeof(p->func), "%s", path);
	snprintf(p->event, sizeof(p->event), "%s", event);
	if (flags & PROBE_PMU)
		return 0;
	return write_file(TRACEFS "/uprobe_events", O_APPEND,
			  ref_ctr ? "%c:" GROUP "/%s %s:0x%lx(0x%lx)\n" :
				    "%c:" GROUP "/%s %s:0x%lx\n",
			  flags & PROBE_RETURN ? 'r' : 'p', event, path, offset,
			  ref_ctr);
}

static inline int uprobe_create(struct probe *p, unsigned int flags)
{
	return uprobe_create_at(p, "event", SELF, file_offset(user_func), 0,
				flags);
}

static inline const char *uprobe_prepare(void)
{
	const char *missing = prepare();

	if (!missing && access(TRACEFS "/uprobe_events", F_OK))
		return "CONFIG_UPROBE_EVENTS";
	return missing;
}

#endif /* BPF_EVENTS_UPROBE_H */
