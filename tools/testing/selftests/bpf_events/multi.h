/* SPDX-License-Identifier: GPL-2.0 */
/* One program on many functions, and a tally of what it finds there */
#ifndef BPF_EVENTS_MULTI_H
#define BPF_EVENTS_MULTI_H

#include "link.h"
#include "prepare.h"

/* Functions to probe, see FUNC, and the system calls that get there */
static const struct call {
	long nr;
	const char *func;
} calls[] = {
	{ __NR_sched_get_priority_max, FUNC },
	{ __NR_sched_get_priority_min, FUNC2 },
	{ __NR_sched_rr_get_interval, BODY_FUNC },
	{ __NR_sched_getparam, SYS_FUNC("sched_getparam") },
	{ __NR_sched_getscheduler, SYS_FUNC("sched_getscheduler") },
};

#define CALLS ARRAY_SIZE(calls)

static inline void make_calls(unsigned int i, unsigned int n)
{
	char result[64];

	while (n--)
		syscall(calls[i].nr, 0, result);
}

/* What a kprobe_multi link is made of */
struct multi {
	enum bpf_attach_type attach;
	__u32 flags;
	bool by_addr;
	__u32 cnt;
	const char *syms[CALLS];
	__u64 addrs[CALLS];
	__u64 cookies[CALLS];
};

/* Cookies may be any 64 bits; of ours the last ones say where to tally */
#define TALLIES 64
#define COOKIE(i) (0xc00c1e00abcd0000ULL + (i))

/* All of calls[] */
static inline void multi_init(struct multi *m, enum bpf_attach_type attach,
			      __u32 flags, bool by_addr)
{
	unsigned int i;

	memset(m, 0, sizeof(*m));
	m->attach = attach;
	m->flags = flags;
	m->by_addr = by_addr;
	m->cnt = CALLS;
	for (i = 0; i < CALLS; i++) {
		m->syms[i] = calls[i].func;
		m->cookies[i] = COOKIE(i);
	}
	if (by_addr)
		ksyms(m->syms, m->addrs, CALLS);
}

static inline void multi_attr(const struct multi *m, int prog,
			      union bpf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->link_create.prog_fd = prog;
	attr->link_create.attach_type = m->attach;
	attr->link_create.kprobe_multi.flags = m->flags;
	attr->link_create.kprobe_multi.cnt = m->cnt;
	attr->link_create.kprobe_multi.cookies = (unsigned long)m->cookies;
	if (m->by_addr)
		attr->link_create.kprobe_multi.addrs = (unsigned long)m->addrs;
	else
		attr->link_create.kprobe_multi.syms = (unsigned long)m->syms;
}

static inline int multi_link(const struct multi *m, int prog)
{
	union bpf_attr attr;

	multi_attr(m, prog, &attr);
	return sys_bpf(BPF_LINK_CREATE, &attr);
}

static inline const char *multi_prepare(void)
{
	const char *missing = prepare();
	struct multi none = { .attach = BPF_TRACE_KPROBE_MULTI };
	int prog, ret;

	if (missing)
		return missing;
	prog = prog_load_type(BPF_PROG_TYPE_KPROBE, none.attach, 0);
	ret = multi_link(&none, prog);
	close(prog);
	return ret == -EOPNOTSUPP ? "CONFIG_FPROBE" : NULL;
}

/* Links the program to one function of the kernel */
static inline int multi_link_one(const char *func, enum bpf_attach_type attach,
				 __u32 flags, int prog)
{
	struct multi m = {
		.attach = attach, .flags = flags, .cnt = 1,
		.syms = { func }, .cookies = { COOKIE(0) },
	};

	return multi_link(&m, prog);
}

/* A child, on CPU 0, that makes and closes links, and counts them in a slot */
static inline pid_t link_without_end(union bpf_attr *attr, struct area *area,
				     unsigned int slot)
{
	pid_t child;
	int i, link;

	area_set(area, slot, 0);
	child = fork();
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(0);
	for (i = 1; ; i++) {
		link = sys_bpf(BPF_LINK_CREATE, attr);
		if (link < 0)
			_exit(1);
		close(link);
		area_set(area, slot, i);
	}
}

/* For two seconds it waits, and makes none */
static inline bool makes_none(pid_t child, const struct area *area, unsigned int slot)
{
	__u64 made = area_get(area, slot);

	return blocks(child, 2000) && area_get(area, slot) == made;
}

/* So many are without bounds on any machine */
#define MAX_LINKS_MADE 10000

/* Does it come to make none?  Until then it goes on, however long one takes. */
static inline bool comes_to_wait(pid_t child, const struct area *area, unsigned int slot)
{
	__u64 made;

	do {
		made = area_get(area, slot);
		wait_until(area_get(area, slot) > made || makes_none(child, area, slot));
	} while (area_get(area, slot) > made && made < MAX_LINKS_MADE);
	return makes_none(child, area, slot);
}

/*
 * While a task is in the way, links that are closed leave memory behind: tasks that make
 * more come to wait, and can be killed. @leave has the task go. Returns 0 or a line.
 */
static inline int links_are_bounded(union bpf_attr *attr, struct area *area, unsigned int slot,
				    int (*leave)(void *arg), void *arg)
{
	pid_t child = link_without_end(attr, area, slot);
	__u64 made;

	if (child < 0 || !comes_to_wait(child, area, slot))
		return __LINE__;
	if (kill_in_time(child) != -SIGKILL)
		return __LINE__;
	child = link_without_end(attr, area, slot);
	if (child < 0 || !comes_to_wait(child, area, slot))
		return __LINE__;
	made = area_get(area, slot);
	if (leave(arg))
		return __LINE__;
	if (!wait_until(area_get(area, slot) > made))
		return __LINE__;
	return kill_in_time(child) == -SIGKILL ? 0 : __LINE__;
}

static inline __u64 link_missed(int link)
{
	struct bpf_link_info info = {};

	return link_info(link, &info) ? ~0ULL : info.kprobe_multi.missed;
}

/* All functions that ftrace has been asked to trace, and who asked */
static inline const char *traced(void)
{
	static char text[65536];

	text[0] = '\0';
	read_file(TRACEFS "/enabled_functions", text, sizeof(text));
	return text;
}

/*
 * What the kernel says of an attempt to link; or -EUCLEAN, which it does not
 * say, if something is left of one that failed
 */
static inline int multi_try(const union bpf_attr *attr)
{
	union bpf_attr copy = *attr;
	char *before = strdup(traced());
	int ret = sys_bpf(BPF_LINK_CREATE, &copy);

	if (ret >= 0) {
		close(ret);
		ret = 0;
	} else if (strcmp(before, traced())) {
		ret = -EUCLEAN;
	}
	free(before);
	return ret;
}

/* Has runs counted and timed until what it returns is closed */
static inline int stats_enable(void)
{
	union bpf_attr attr = { .enable_stats.type = BPF_STATS_RUN_TIME };

	return sys_bpf(BPF_ENABLE_STATS, &attr);
}

/* Slots: for each function, what the program found there the last time */
enum {
	TALLY_RUNS,
	TALLY_COOKIE = TALLY_RUNS + TALLIES,
	TALLY_IP = TALLY_COOKIE + TALLIES,
	TALLY_ARG = TALLY_IP + TALLIES,		/* registers */
	TALLY_RET = TALLY_ARG + TALLIES,
	TALLY_SYS_ARG = TALLY_RET + TALLIES,	/* of the caller of a system call */
	TALLY_TGID = TALLY_SYS_ARG + TALLIES,	/* of whom to tally, 0: of all */
};

/* A program that tallies and returns @ret, loaded with @flags */
static inline int tally_prog_with(struct area *area, enum bpf_attach_type attach,
				  int ret, __u32 flags)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		AREA(BPF_REG_7, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * TALLY_TGID),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, 1),
		BPF_JMP_REG(BPF_JNE, BPF_REG_1, BPF_REG_0, 21),

		/* The cookie says where the function has its slots: R7 */
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_1, TALLIES - 1),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_1, 3),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * TALLY_COOKIE),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * TALLY_IP),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, REGS_RET),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 8 * TALLY_RET),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, REGS_ARG),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_3, 8 * TALLY_ARG),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, REGS_ARG),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * TALLY_SYS_ARG),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0,
			      8 * TALLY_RUNS),
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), attach, flags);
}

static inline int tally_prog(struct area *area, enum bpf_attach_type attach,
			     int ret)
{
	return tally_prog_with(area, attach, ret, 0);
}

/* How often each of the functions was hit so far, as in "1 2 3 4 5" */
static inline const char *tally(struct area *area)
{
	static char text[256];
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < CALLS; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%llu",
				i ? " " : "", area_get(area, TALLY_RUNS + i));
	return text;
}

#endif /* BPF_EVENTS_MULTI_H */
