/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Perf events that are not those of a trace event, what makes them overflow,
 * and programs on them
 */
#ifndef BPF_EVENTS_OVERFLOW_H
#define BPF_EVENTS_OVERFLOW_H

#include <asm/bpf_perf_event.h>
#include <linux/bpf_perf_event.h>
#include <linux/hw_breakpoint.h>

#include "link.h"
#include "prepare.h"

#define CTX_REG(reg) offsetof(struct bpf_perf_event_data, regs.reg)
#define CTX_PERIOD offsetof(struct bpf_perf_event_data, sample_period)
#define CTX_ADDR offsetof(struct bpf_perf_event_data, addr)
#define CTX_SIZE sizeof(struct bpf_perf_event_data)

#if defined(__x86_64__)
#define CTX_IP CTX_REG(rip)
#elif defined(__aarch64__)
#define CTX_IP CTX_REG(pc)
#endif

/*
 * Slots of the area: what counts runs, what the program returns, the addresses
 * that are ours, and what the program under test has found
 */
enum { HITS, VERDICT, LOW, HIGH, SEEN, MORE };

/* What a breakpoint is on */
static __u64 watched;

static inline void touch(char *at)
{
	__atomic_store_n(at, 1, __ATOMIC_RELAXED);
}

/* Is it where touch() is? */
static inline bool in_touch(__u64 ip)
{
	return ip - (unsigned long)touch < 64;
}

/* An event that overflows whenever one of our addresses is hit */
static inline void overflow_attr(struct perf_event_attr *attr, __u32 type)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->type = type;
	attr->sample_type = PERF_SAMPLE_IP;
	attr->sample_period = 1;
	attr->wakeup_events = 1;
	if (type == PERF_TYPE_BREAKPOINT) {
		attr->bp_type = HW_BREAKPOINT_W;
		attr->bp_addr = (unsigned long)&watched;
		attr->bp_len = HW_BREAKPOINT_LEN_8;
	} else {
		attr->config = PERF_COUNT_SW_PAGE_FAULTS;
	}
}

/* For this process */
static inline int overflow_open(__u32 type)
{
	struct perf_event_attr attr;

	overflow_attr(&attr, type);
	return perf_open(&attr, 0, -1);
}

/* New pages, which are ours */
static inline char *new_pages(struct area *area, unsigned int n)
{
	size_t size = n * sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	area_set(area, LOW, (unsigned long)pages);
	area_set(area, HIGH, (unsigned long)pages + size);
	return pages;
}

static inline void overflow(struct area *area, __u32 type, unsigned int n)
{
	size_t i, page = sysconf(_SC_PAGESIZE);
	char *pages;

	if (type == PERF_TYPE_BREAKPOINT) {
		area_set(area, LOW, (unsigned long)&watched);
		area_set(area, HIGH, (unsigned long)(&watched + 1));
		while (n--)
			touch((char *)&watched);
		return;
	}
	pages = new_pages(area, n);
	for (i = 0; i < n; i++)
		touch(pages + i * page);
	munmap(pages, n * page);
}

/* The same in the kernel: a page fault, with the kernel's stack */
static inline void overflow_in_kernel(struct area *area)
{
	int zero = open("/dev/zero", O_RDONLY);
	char *page = new_pages(area, 1);

	if (read(zero, page, 1) != 1)
		fprintf(stderr, "# read: %s\n", strerror(errno));
	close(zero);
	munmap(page, sysconf(_SC_PAGESIZE));
}

static inline int overflow_load(const struct bpf_insn *insns, size_t cnt)
{
	static char log[65536];
	union bpf_attr attr;
	int fd;

	prog_attr(&attr, insns, cnt);
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.log_buf = (unsigned long)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		fprintf(stderr, "# load: %s\n%s", strerror(-fd), log);
	return fd;
}

#define MAX_OVERFLOW_BODY 32

/*
 * A program that on our addresses, and on no other, goes through @body, in
 * which R1 is the context and R6 the area.  R0 goes to slot SEEN.
 */
static inline int overflow_prog_of(struct area *area, const struct bpf_insn *body,
				   size_t cnt)
{
	struct bpf_insn insns[MAX_OVERFLOW_BODY + 14] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, CTX_ADDR),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * LOW),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_JMP_REG(BPF_JLT, BPF_REG_2, BPF_REG_3, 2),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * HIGH),
		BPF_JMP_REG(BPF_JLT, BPF_REG_2, BPF_REG_3, 1),
		BPF_EXIT_INSN(),
	};
	const struct bpf_insn end[] = {
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * SEEN),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_0, 8 * HITS),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * VERDICT),
		BPF_EXIT_INSN(),
	};

	memcpy(insns + 9, body, cnt * sizeof(*body));
	memcpy(insns + 9 + cnt, end, sizeof(end));
	return overflow_load(insns, 9 + cnt + ARRAY_SIZE(end));
}

/* A program that counts hits of our addresses and returns what is in VERDICT */
static inline int overflow_prog(struct area *area)
{
	return overflow_prog_of(area, NULL, 0);
}

/* A program that counts whatever it sees, in @slot */
static inline int overflow_count_prog(struct area *area, unsigned int slot)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return overflow_load(insns, ARRAY_SIZE(insns));
}

/* By link or by SET_BPF; the link goes to *@link */
static inline int overflow_attach(bool by_link, int perf, int prog, int *link)
{
	if (!by_link)
		return perf_set_bpf(perf, prog);
	*link = link_create(prog, perf, BPF_PERF_EVENT, 0, 0);
	return *link < 0 ? *link : 0;
}

static inline void spin_ms(unsigned int ms)
{
	__u64 end = now_ns() + ms * 1000000ULL;

	while (now_ns() < end)
		;
}

/* What the kernel lacks, or NULL */
static inline const char *overflow_prepare(void)
{
	const char *missing = prepare();
	int fd;

	if (missing)
		return missing;
	fd = prog_load_type(BPF_PROG_TYPE_PERF_EVENT, 0, 0);
	if (fd < 0)
		return "CONFIG_BPF_EVENTS, with BPF_PROG_TYPE_PERF_EVENT";
	close(fd);
	return NULL;
}

#endif /* BPF_EVENTS_OVERFLOW_H */
