/* SPDX-License-Identifier: GPL-2.0 */
/* One program on many functions of the test itself */
#ifndef BPF_EVENTS_UMULTI_H
#define BPF_EVENTS_UMULTI_H

#include "multi.h"
#include "uprobe.h"

/* Functions to probe: each returns something else, and the argument says what */
static __u64 user_func1(__u64 arg)
{
	asm volatile("");
	return arg + 1;
}

static __u64 user_func2(__u64 arg)
{
	asm volatile("");
	return arg + 2;
}

static __u64 user_func3(__u64 arg)
{
	asm volatile("");
	return arg + 3;
}

static __u64 (*const user_funcs[])(__u64 arg) = {
	user_func1, user_func2, user_func3,
};

#define USER_FUNCS ARRAY_SIZE(user_funcs)

/*
 * Counters that the kernel keeps for them where it is told to.  They have to be
 * in the file, which they would not with nothing but zeroes.
 */
static __u16 ref_ctrs[USER_FUNCS + 1] = { [USER_FUNCS] = 1 };

static inline __u16 ref_ctr(unsigned int i)
{
	return __atomic_load_n(&ref_ctrs[i], __ATOMIC_SEQ_CST);
}

static inline void call_user(unsigned int i, unsigned int n)
{
	while (n--)
		user_funcs[i](n);
}

/* What a uprobe_multi link is made of */
struct umulti {
	enum bpf_attach_type attach;	/* 0: BPF_TRACE_UPROBE_MULTI */
	__u32 flags;
	__u32 pid;
	const char *path;
	__u32 cnt;
	__u64 offsets[USER_FUNCS];
	__u64 ref_ctr_offsets[USER_FUNCS];
	__u64 cookies[USER_FUNCS];
};

/* All of user_funcs[], without counters */
static inline void umulti_init(struct umulti *m, __u32 flags)
{
	unsigned int i;

	memset(m, 0, sizeof(*m));
	m->flags = flags;
	m->path = SELF;
	m->cnt = USER_FUNCS;
	for (i = 0; i < USER_FUNCS; i++) {
		m->offsets[i] = file_offset(user_funcs[i]);
		m->cookies[i] = COOKIE(i);
	}
}

static inline void umulti_count_refs(struct umulti *m)
{
	unsigned int i;

	for (i = 0; i < USER_FUNCS; i++)
		m->ref_ctr_offsets[i] = file_offset(&ref_ctrs[i]);
}

static inline void umulti_attr(const struct umulti *m, int prog,
			       union bpf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->link_create.prog_fd = prog;
	attr->link_create.attach_type = m->attach ?: BPF_TRACE_UPROBE_MULTI;
	attr->link_create.uprobe_multi.path = (unsigned long)m->path;
	attr->link_create.uprobe_multi.offsets = (unsigned long)m->offsets;
	attr->link_create.uprobe_multi.ref_ctr_offsets =
		(unsigned long)m->ref_ctr_offsets;
	attr->link_create.uprobe_multi.cookies = (unsigned long)m->cookies;
	attr->link_create.uprobe_multi.cnt = m->cnt;
	attr->link_create.uprobe_multi.flags = m->flags;
	attr->link_create.uprobe_multi.pid = m->pid;
}

static inline int umulti_link(const struct umulti *m, int prog)
{
	union bpf_attr attr;

	umulti_attr(m, prog, &attr);
	return sys_bpf(BPF_LINK_CREATE, &attr);
}

/* Links the program to one function */
static inline int umulti_link_one(const void *func, enum bpf_attach_type attach, __u32 flags,
				  unsigned int slots, int prog)
{
	const struct umulti m = {
		.attach = attach, .flags = flags, .path = SELF, .cnt = 1,
		.offsets = { file_offset(func) }, .cookies = { COOKIE(slots) },
	};

	return umulti_link(&m, prog);
}

/* The ways to attach to user code */
struct user_way {
	unsigned int flags;	/* of the probe */
	bool link;
	bool multi;		/* to all that there is in struct umulti, not the first only */
};

/* Counts hits in slot 0; returns the descriptor with which it goes */
static inline int umulti_attach(const struct umulti *m, const struct user_way *way,
				struct area *area)
{
	static int next_event;
	struct probe probe;
	char event[16];
	int err;

	if (way->multi)
		return umulti_link(m, count_prog_as(area, 0, 0, BPF_TRACE_UPROBE_MULTI));
	snprintf(event, sizeof(event), "event%d", next_event++);
	err = uprobe_create_at(&probe, event, m->path, m->offsets[0], m->ref_ctr_offsets[0],
			       way->flags);
	return err ?: attach_by(&probe, way->link, count_prog(area, 0, 0));
}

/* How many breakpoints there are, and what the counters say, all together */
static inline unsigned int user_probes(void)
{
	static unsigned char starts[USER_FUNCS];
	unsigned int i, n = 0;

	for (i = 0; i < USER_FUNCS; i++) {
		unsigned char *text = (unsigned char *)user_funcs[i];
		unsigned char now = __atomic_load_n(text, __ATOMIC_SEQ_CST);

		/* The first time there is no probe */
		if (!starts[i])
			starts[i] = now;
		n += (now != starts[i]) + ref_ctr(i);
	}
	return n;
}

/* See multi_try() */
static inline int umulti_try(const union bpf_attr *attr)
{
	unsigned int before = user_probes();
	union bpf_attr copy = *attr;
	int ret = sys_bpf(BPF_LINK_CREATE, &copy);

	if (ret < 0)
		return user_probes() == before ? ret : -EUCLEAN;
	close(ret);
	return 0;
}

#endif /* BPF_EVENTS_UMULTI_H */
