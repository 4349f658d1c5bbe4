// SPDX-License-Identifier: GPL-2.0
/*
 * bench [-ent] [-r TEXT] [PROBES...]: what BPF programs on events cost, and what
 * attaching and detaching that many PROBES costs; with -r only what has TEXT in
 * its name, on a kernel that may have nothing else; with -e no cost of programs,
 * and nothing but the events is attached. scripts/bench runs it as the only busy
 * task of a guest with one CPU, in which QEMU counts instructions: there the time
 * stamp counter goes up by one with each instruction, and while the CPU is idle
 * by one with each nanosecond of virtual time. With -n it asks a clock instead,
 * and takes the shortest of many times.
 *
 * With -t, and without -e, a thread on each CPU calls what has a program on each of its
 * probes, HITS times, and nothing is timed: contention.c counts, in QEMU.
 *
 * Writes a line "name <tab> unit <tab> value" for each figure, notes behind "#".
 * Exits with 1 where an event is lost, or a figure does not settle.
 */
#include <math.h>
#include <pthread.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <x86intrin.h>
#include "marks.h"
#include "multi.h" /* these are the selftests', without their harness */
#include "raw_tp.h"
#include "ring.h"
#include "tracing.h"
#include "uprobe.h"

#undef CALLS

/* What call() gets to, and nobody else. */
#define CALLED		SYS_FUNC("personality")

#define CALLS		256	/* timed at once; with 64 programs, too, less than a tick */
#define MAX_PROGS	64
#define MAX_CPUS	8
#define MAX_PROBES	5000
#define TRIES		200
#define HITS		1024	/* of each thread */
#define WARM		16	/* before that */
#define SETTLE_MS	1000	/* what attach and detach leave to do later is done then */

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list args;

	printf("# failed: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(1);
}

static int must(const char *what, int ret)
{
	if (ret < 0)
		die("%s: %s", what, strerror(-ret));
	return ret;
}

static bool real_time;
static bool events_only;
static bool together;

static __u64 now(void)
{
	return real_time ? now_ns() : __rdtsc();
}

/* ---- programs: a body, which leaves in r0 how it went, then the verdict */

static int hash, percpu, stacks, outputs;	/* maps */
static struct area area;		/* where programs count */
static struct ring output_ring;

/* All or, on a kernel that does not know them all yet, none */
static void maps_create(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.wakeup_events = 1 << 30,
	};
	int key = 0, event;

	hash = must("hash", map_create(BPF_MAP_TYPE_HASH, 4, 8, 16, 0));
	percpu = must("per-CPU array", map_create(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0));
	stacks = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 127 * 8, 64, 0);
	if (stacks == -EINVAL)
		return;
	must("stacks", stacks);
	outputs = must("outputs", map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0));
	event = must("output event", perf_open(&attr, -1, 0));
	must("output ring", ring_map(&output_ring, event));
	must("output", map_update(outputs, &key, &event));
}

#define BODY(name, ...)							\
static size_t name(struct bpf_insn *to)					\
{									\
	struct bpf_insn insns[] = { __VA_ARGS__ };			\
									\
	memcpy(to, insns, sizeof(insns));				\
	return ARRAY_SIZE(insns);					\
}

BODY(map_update_body,
	BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
	BPF_ST_MEM(BPF_DW, BPF_REG_10, -16, 0),
	BPF_LD_MAP_FD(BPF_REG_1, hash),
	BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
	BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -16),
	BPF_MOV64_IMM(BPF_REG_4, BPF_ANY),
	BPF_EMIT_CALL(BPF_FUNC_map_update_elem))

BODY(percpu_body,
	BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
	BPF_LD_MAP_FD(BPF_REG_1, percpu),
	BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
	BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
	BPF_MOV64_IMM(BPF_REG_0, 0))

BODY(output_body,
	BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
	BPF_LD_MAP_FD(BPF_REG_2, outputs),
	BPF_MOV32_IMM(BPF_REG_3, -1), /* BPF_F_CURRENT_CPU */
	BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -8),
	BPF_MOV64_IMM(BPF_REG_5, 8),
	BPF_EMIT_CALL(BPF_FUNC_perf_event_output))

BODY(stackid_body,
	BPF_LD_MAP_FD(BPF_REG_2, stacks),
	BPF_MOV64_IMM(BPF_REG_3, 0),
	BPF_EMIT_CALL(BPF_FUNC_get_stackid))

BODY(read_body,
	BPF_MOV64_REG(BPF_REG_3, BPF_REG_1),
	BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
	BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
	BPF_MOV64_IMM(BPF_REG_2, 8),
	BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel))

/* An id of a kfunc, 0 where the kernel does not have it. */
static int fetch_u64;

BODY(fetch_body,
	CALL_KFUNC(fetch_u64),
	BPF_MOV64_IMM(BPF_REG_0, 0))

/* Counts this run in the area, unless the body failed. */
BODY(count_body,
	BPF_JMP_IMM(BPF_JSLT, BPF_REG_0, 0, 4),
	AREA(BPF_REG_1, &area, 0),
	BPF_MOV64_IMM(BPF_REG_2, 1),
	BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_2, 0))

/* ---- hooks: what has a program run in each call */

enum way { WAY_PERF, WAY_LINK, WAY_MULTI, WAY_UMULTI, WAY_FENTRY, WAY_RAW_TP, WAY_FILTER,
	   WAY_STRING };

struct hook {
	struct probe probe;
	void (*call)(void);	/* one event */
	const char *listed;	/* what kprobes/list must say of it */
	struct ring *ring;	/* where what passes the programs is recorded */
	enum way way;		/* how a program, or what is in its place, gets there */
	bool session;		/* its program runs at both ends of a call */
	const char *filter;	/* of WAY_STRING */
};

#define CROWD		12	/* more than a task has in its cache */

#define STRING_OF(x)	#x
#define STRING(x)	STRING_OF(x)

/* Functions: the kernel emulates the first instruction, except for that of bench_lea. */
asm(".text; .type bench_user, @function; bench_user: nop; ret; .size bench_user, . - bench_user");
asm(".text; .type bench_next, @function; bench_next: nop; ret; .size bench_next, . - bench_next");
asm(".text; bench_endbr: endbr64; ret; bench_lea: lea 8(%rdi), %rax; ret");
asm(".text; bench_crowd: .rept " STRING(CROWD) "; nop; ret; .endr");
void bench_user(void);
void bench_next(void);
void bench_endbr(void);
void bench_lea(void);
extern const char bench_crowd[CROWD][2];
/* MAX_PROBES more places, of which none is called. */
asm(".text; bench_places: .skip " STRING(MAX_PROBES) ", 0x90");
extern const char bench_places[MAX_PROBES];

static void call_kernel(void)
{
	personality(0xffffffff);
}

static void call_rename(void)
{
	prctl(PR_SET_NAME, "bench");
}

static void call_both(void)
{
	bench_user();
	bench_next();
}

static void call_crowd(void)
{
	int i;

	for (i = 0; i < CROWD; i++)
		((void (*)(void))bench_crowd[i])();
}

static struct ring hook_ring;
static struct hook entry = { { PROBE_PMU, CALLED }, call_kernel, "[FTRACE]" };
static struct hook entry_ring = { { PROBE_PMU, CALLED }, call_kernel, "[FTRACE]", &hook_ring };
static struct hook body = { { PROBE_PMU, CALLED }, call_kernel, "[OPTIMIZED]" };
static struct hook ret = { { PROBE_PMU | PROBE_RETURN, CALLED }, call_kernel, "[FTRACE]" };
static struct hook shared = { { 0, CALLED, 0, 0, "shared" }, call_kernel, "[FTRACE]" };
static struct hook user = { { PROBE_PMU | PROBE_USER, SELF }, bench_user };
static struct hook user_ret = { { PROBE_PMU | PROBE_USER | PROBE_RETURN, SELF }, bench_user };
static struct hook both = { { PROBE_PMU | PROBE_USER, SELF }, call_both };
static struct hook both_next = { { PROBE_PMU | PROBE_USER, SELF } };
static struct hook endbr = { { PROBE_PMU | PROBE_USER, SELF }, bench_endbr };
static struct hook lea = { { PROBE_PMU | PROBE_USER, SELF }, bench_lea };
static struct hook crowd[CROWD];
static struct hook multi = { { 0, CALLED }, call_kernel, .way = WAY_MULTI };
static struct hook multi_ret = { { PROBE_RETURN, CALLED }, call_kernel, .way = WAY_MULTI };
static struct hook multi_both = { { 0, CALLED }, call_kernel, .way = WAY_MULTI, .session = true };
static struct hook umulti = { { 0, SELF }, bench_user, .way = WAY_UMULTI };
static struct hook umulti_ret = { { PROBE_RETURN, SELF }, bench_user, .way = WAY_UMULTI };
static struct hook umulti_both = { { 0, SELF }, bench_user, .way = WAY_UMULTI, .session = true };
static struct hook fentry = { { 0, CALLED }, call_kernel, .way = WAY_FENTRY };
static struct hook raw_tp = { { 0, "task_rename" }, call_rename, .way = WAY_RAW_TP };
static struct hook recorded = { { 0, CALLED, 0, 0, "shared" }, call_kernel, "[FTRACE]",
				.way = WAY_STRING, .filter = "0" };
static struct hook filtered = { { 0, CALLED, 0, 0, "shared" }, call_kernel, "[FTRACE]",
				.way = WAY_STRING, .filter = "arg1 == 1" };
static struct hook bpf_filtered = { { 0, CALLED, 0, 0, "shared" }, call_kernel, "[FTRACE]",
				    .way = WAY_FILTER };

static const struct {
	const char *name;
	void (*call)(void);
} bare_calls[] = {
	{ "bare call: personality()", call_kernel },
	{ "bare call: prctl(PR_SET_NAME)", call_rename },
	{ "bare call: a function that is a nop", bench_user },
	{ "bare call: two of these", call_both },
	{ "bare call: a function that is an endbr64", bench_endbr },
	{ "bare call: a function that is a lea", bench_lea },
	{ "bare call: 12 functions that are a nop", call_crowd },
};

static enum bpf_attach_type attach_type(const struct hook *hook)
{
	switch (hook->way) {
	case WAY_MULTI:
		return hook->session ? BPF_TRACE_KPROBE_SESSION : BPF_TRACE_KPROBE_MULTI;
	case WAY_UMULTI:
		return hook->session ? BPF_TRACE_UPROBE_SESSION : BPF_TRACE_UPROBE_MULTI;
	default:
		return 0;
	}
}

#define SHARED_EVENT TRACEFS "/events/" GROUP "/shared/"

/* Loads a program for this hook. */
static int program(const struct hook *hook, size_t (*body)(struct bpf_insn *to), int verdict,
		   bool counting)
{
	struct bpf_insn insns[32];
	union bpf_attr attr;
	size_t nr = 0;

	if (body)
		nr += body(insns);
	else if (counting)
		insns[nr++] = BPF_MOV64_IMM(BPF_REG_0, 0);
	if (counting)
		nr += count_body(insns + nr);
	insns[nr++] = BPF_MOV64_IMM(BPF_REG_0, verdict);
	insns[nr++] = BPF_EXIT_INSN();

	if (hook->way == WAY_FENTRY)
		tracing_attr(&attr, BPF_TRACE_FENTRY, hook->probe.func);
	else if (hook->way == WAY_RAW_TP)
		raw_tp_attr(&attr);
	else
		load_attr(&attr, BPF_PROG_TYPE_KPROBE, attach_type(hook), 0);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = nr;
	return must("program", prog_load_attr(&attr));
}

static int open_filter(const struct hook *hook, int prog)
{
	int fd = must("filter", neg_errno(open(SHARED_EVENT "filter", O_RDWR | O_CLOEXEC)));

	if (hook->way == WAY_STRING) {
		must("filter", neg_errno(write(fd, hook->filter, strlen(hook->filter))));
		must("enable", write_file(SHARED_EVENT "enable", 0, "1"));
	} else {
		must("filter", neg_errno(dprintf(fd, "bpf-%d", prog)));
	}
	return fd;
}

/* A uprobe_multi link of as many hooks. Return: its descriptor, or an error. */
static int link_users(const struct hook *hooks, unsigned int nr, int prog)
{
	__u64 offsets[MAX_PROBES];
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.attach_type = attach_type(hooks),
		.link_create.uprobe_multi.path = (unsigned long)SELF,
		.link_create.uprobe_multi.cnt = nr,
		.link_create.uprobe_multi.offsets = (unsigned long)offsets,
		.link_create.uprobe_multi.flags = hooks->probe.flags & PROBE_RETURN ?
						  BPF_F_UPROBE_MULTI_RETURN : 0,
	};
	unsigned int i;

	for (i = 0; i < nr; i++)
		offsets[i] = hooks[i].probe.offset;
	return sys_bpf(BPF_LINK_CREATE, &attr);
}

struct attached {
	int fd;			/* of the event, or of what else runs the program */
	int link;		/* of WAY_LINK */
};

/*
 * As bcc does, or with a link as libbpf does, with an event of its own for each
 * program; "shared" is one event.
 */
static void attach_hook(const struct hook *hook, int prog, struct attached *to)
{
	struct perf_event_attr attr;

	switch (hook->way) {
	case WAY_MULTI:
		to->fd = must("link", multi_link_one(hook->probe.func, attach_type(hook),
						     hook->probe.flags & PROBE_RETURN ?
						     BPF_F_KPROBE_MULTI_RETURN : 0, prog));
		return;
	case WAY_UMULTI:
		to->fd = must("link", link_users(hook, 1, prog));
		return;
	case WAY_FENTRY:
		to->fd = must("fentry", tracing_open(prog));
		return;
	case WAY_RAW_TP:
		to->fd = must("raw_tp", raw_tp_open(prog, hook->probe.func, 0));
		return;
	case WAY_FILTER:
	case WAY_STRING:
		to->fd = open_filter(hook, prog);
		return;
	case WAY_PERF:
	case WAY_LINK:
		break;
	}

	must("event", probe_attr(&hook->probe, &attr));
	if (hook->ring)
		attr.wakeup_events = 1 << 30; /* nobody sleeps on it */
	else
		attr.sample_type = 0;
	to->fd = must(hook->probe.func, perf_open(&attr, -1, 0));
	if (hook->way == WAY_LINK)
		to->link = must("link", perf_link(to->fd, prog));
	else if (prog >= 0)
		must("SET_BPF", perf_set_bpf(to->fd, prog));
	must("ENABLE", neg_errno(ioctl(to->fd, PERF_EVENT_IOC_ENABLE, 0)));
	if (hook->ring)
		must("ring", ring_map(hook->ring, to->fd));
}

static void detach_hook(const struct hook *hook, const struct attached *from)
{
	if (hook->way == WAY_PERF || hook->way == WAY_LINK)
		must("DISABLE", neg_errno(ioctl(from->fd, PERF_EVENT_IOC_DISABLE, 0)));
	if (hook->way == WAY_STRING)
		must("disable", write_file(SHARED_EVENT "enable", 0, "0"));
	must("close", neg_errno(close(from->fd)));
	if (hook->way == WAY_LINK)
		must("close", neg_errno(close(from->link)));
}

/*
 * Is there such a kprobe? The list calls one optimized as soon as that is
 * intended, so look for the jump, too.
 */
static bool listed(const char *how)
{
	FILE *list = fopen(DEBUGFS "/kprobes/list", "re");
	unsigned long addr;
	char line[256];
	bool found = false;

	while (list && fgets(line, sizeof(line), list)) {
		if (strstr(line, " " CALLED "+") && strstr(line, how) &&
		    sscanf(line, "%lx", &addr) == 1)
			found |= strcmp(how, "[OPTIMIZED]") || is_jump(addr);
	}
	if (list)
		fclose(list);
	return found;
}

/* The optimizer takes its time. */
static bool soon_listed(const char *how)
{
	int i;

	if (!how)
		return true;
	for (i = 0; i < 100 && !listed(how); i++)
		sleep_ms(20);
	return i < 100;
}

/* Finds the first instruction behind the entry where a kprobe becomes a jump. */
static void find_body(void)
{
	bool found = false;
	int event;

	while (!found) {
		if (++body.probe.offset == 64)
			die("no place in " CALLED " for an optimized kprobe");
		event = probe_open(&body.probe);
		if (event < 0)
			continue;
		found = soon_listed(body.listed);
		close(event);
	}
	printf("# function body: " CALLED "+%lu\n", body.probe.offset);
}

/* ---- what one event costs */

/*
 * Written of a program to a file of tracefs: then calls by a task in this cgroup do not run it,
 * or once a second at most.
 */
struct limit {
	const char *file;
	const char *text;
	const char *cgroup;
	bool misses;		/* what it keeps out is counted */
};

#define CGROUPS		"/sys/fs/cgroup"

static const struct limit budget = { TRACEFS "/bpf_budget", "1", "/", true };
static const struct limit scope = { TRACEFS "/bpf_scope", "/bench/other", "/bench/own" };

struct row {
	const char *name;
	struct hook *hook;
	unsigned int progs;
	size_t (*body)(struct bpf_insn *to);
	struct ring *ring;	/* where each event must leave one record */
	int verdict;		/* what the programs return */
	bool added;		/* show what comes on top of the first row */
	int *needs;		/* 0 where the kernel does not have what this is about */
	bool no_prog;
	struct hook *next;	/* what is called next, and so on, with a program each */
	const struct limit *limit;
};

static int bpf_filters;		/* does this kernel take programs as filters? */
static int uprobe_sessions;	/* has it got these? */
static int limits;		/* and these? */

static const struct row rows[] = {
	{ "kprobe, function entry", &entry, 1 },
	{ "kprobe, function body (optimized jump)", &body, 1 },
	{ "kretprobe", &ret, 1 },
	{ "kprobe, returns 1, perf ring consumer", &entry_ring, 1, NULL, &hook_ring, .verdict = 1 },
	{ "kprobe, no program, perf ring consumer", &entry_ring, 1, NULL, &hook_ring,
	  .no_prog = true },
	{ "uprobe (on a nop)", &user, 1 },
	{ "two uprobes in turn, both", &both, 2, .next = &both_next },
	{ "12 uprobes in turn, all", crowd, CROWD, .next = &crowd[1] },
	{ "uprobe on an endbr64", &endbr, 1 },
	{ "uprobe on a lea, stepped over", &lea, 1 },
	{ "uretprobe (of a nop)", &user_ret, 1 },
	{ "kprobe_multi", &multi, 1 },
	{ "kretprobe_multi", &multi_ret, 1 },
	{ "kprobe_multi, session", &multi_both, 1 },
	{ "uprobe_multi (on a nop)", &umulti, 1 },
	{ "uretprobe_multi (of a nop)", &umulti_ret, 1 },
	{ "uprobe_multi, session (of a nop)", &umulti_both, 1, .needs = &uprobe_sessions },
	{ "fentry, for reference", &fentry, 1 },
	{ "raw tracepoint, for reference", &raw_tp, 1 },
	{ "two events on one function", &entry, 2 },
	{ "1 program on one event", &shared, 1 },
	{ "2 programs on one event", &shared, 2 },
	{ "8 programs on one event", &shared, 8 },
	{ "64 programs on one event", &shared, 64 },
	{ "map update program (hash)", &entry, 1, map_update_body },
	{ "per-CPU map, kprobe", &entry, 1, percpu_body },
	{ "per-CPU map, uprobe (on a nop)", &user, 1, percpu_body },
	{ "per-CPU map, raw tracepoint", &raw_tp, 1, percpu_body },
	{ "per-CPU map, fentry", &fentry, 1, percpu_body },
	{ "perf_event_output program (8 bytes)", &entry, 1, output_body, &output_ring },
	{ "get_stackid program", &entry, 1, stackid_body },
	{ "probe_read_kernel of 8 bytes, added", &entry, 1, read_body, .added = true },
	{ "fetch_u64, added", &entry, 1, fetch_body, .added = true, .needs = &fetch_u64 },
	{ "kprobe, over its budget", &entry, 1, .needs = &limits, .limit = &budget },
	{ "kprobe, out of scope of its program", &entry, 1, .needs = &limits, .limit = &scope },
	{ "kprobe event, recorded", &recorded, 1, .no_prog = true },
	{ "kprobe event, turned down by a string filter", &filtered, 1, .no_prog = true },
	{ "kprobe event, turned down by a BPF filter", &bpf_filtered, 1, .needs = &bpf_filters },
};

static __u64 timed_calls(void (*call)(void), struct ring *ring)
{
	__u64 start = now(), took;
	int i;

	for (i = 0; i < CALLS; i++)
		call();
	took = now() - start;
	if (ring && ring_samples(ring) != CALLS)
		die("records were lost");
	return took;
}

/*
 * What a call takes. Interrupts only add: the lowest, when it has been seen
 * again and again.
 */
static double settled(const char *name, const struct hook *hook, struct ring *ring)
{
	double took, lowest = INFINITY;
	int tries, seen = 0;

	for (tries = 0; tries < TRIES; tries++) {
		if (hook == &recorded) /* the ring's pages end where they did before */
			must("trace", write_file(TRACEFS "/trace", O_TRUNC, "\n"));
		took = (double)timed_calls(hook->call, ring) / CALLS;
		if (took < lowest - 0.05)
			seen = 0;
		lowest = fmin(took, lowest);
		if (took < lowest + 0.05 && ++seen == 8 && !real_time)
			return lowest;
	}
	if (!real_time)
		die("%s does not settle: %.2f seen %d times", name, lowest, seen);
	return lowest;
}

/*
 * The same before anything is attached. A kprobe in the body of a function goes
 * on costing 49 instructions when it is gone, until the jump to it is taken out;
 * hence the wait.
 */
static double settled_bare(void (*call)(void))
{
	const struct hook bare = { .call = call };

	sleep_ms(SETTLE_MS);
	return settled("bare call", &bare, NULL);
}

static long event_hits(void)
{
	char line[256];
	long hits = 0;

	if (find_line(TRACEFS "/kprobe_profile", "  shared ", line, sizeof(line)))
		sscanf(line, "%*s %ld", &hits);
	return hits;
}

static long events_recorded(void)
{
	char line[256];
	long entries = 0;

	if (find_line(TRACEFS "/per_cpu/cpu0/stats", "entries:", line, sizeof(line)))
		sscanf(line, "entries: %ld", &entries);
	return entries;
}

/* Has each of this many programs run in each call? */
static void check_runs(const char *name, const struct hook *hook, unsigned int progs)
{
	if (events_only)
		return;
	area_set(&area, 0, 0);
	if (hook->session)
		progs *= 2;
	timed_calls(hook->call, NULL);
	if (area_get(&area, 0) != CALLS * progs)
		die("%s: %llu runs, not %u", name, area_get(&area, 0), CALLS * progs);
}

/* Where there is no program: has the event seen each call, and what became of it? */
static void check_hits(const struct row *row)
{
	long records = row->hook == &recorded ? CALLS : 0;
	long hits = event_hits();

	if (row->hook->way != WAY_STRING)
		return;
	must("trace", write_file(TRACEFS "/trace", O_TRUNC, "\n"));
	timed_calls(row->hook->call, NULL);
	if (event_hits() != hits + CALLS || events_recorded() != records)
		die("%s: %ld hits, %ld recorded", row->name, event_hits() - hits,
		    events_recorded());
}

/* What the program of this number is on */
static struct hook *row_hook(const struct row *row, unsigned int i)
{
	return i && row->next ? row->next + i - 1 : row->hook;
}

struct attached_row {
	struct attached attached[MAX_PROGS];
	int progs[MAX_PROGS];
};

static void attach_row(const struct row *row, bool counting, struct attached_row *to)
{
	const char *event = row->hook->probe.event;
	unsigned int i;

	if (*event)
		must("trace event", event_add(event, row->hook->way == WAY_STRING ?
					      "p " CALLED " arg1=%%di" : "p " CALLED));
	for (i = 0; i < row->progs; i++) {
		to->progs[i] = row->no_prog ? -1 :
			       program(row->hook, row->body, row->verdict, counting);
		attach_hook(row_hook(row, i), to->progs[i], &to->attached[i]);
	}
	if (!soon_listed(row->hook->listed))
		die("%s: no kprobe is %s", row->name, row->hook->listed);
}

static void detach_row(const struct row *row, const struct attached_row *from)
{
	const char *event = row->hook->probe.event;
	unsigned int i;

	for (i = 0; i < row->progs; i++) {
		if (row->hook->ring)
			ring_unmap(row->hook->ring);
		detach_hook(row_hook(row, i), &from->attached[i]);
		if (row->no_prog)
			continue;
		if (misses(from->progs[i]))
			die("%s: a program missed events", row->name);
		close(from->progs[i]);
	}
	if (*event)
		must("trace event", event_remove(event)); /* where it is, hits cost more */
}

static void enter_cgroup(const char *cgroup)
{
	char path[64];

	snprintf(path, sizeof(path), CGROUPS "%s/cgroup.procs", cgroup);
	must(path, write_file(path, 0, "0"));
}

/* Of a row whose program ran in each call, until now */
static void limit_row(const struct row *row, const struct attached_row *attached)
{
	const char *file = row->limit->file;
	__u64 missed;

	must(file, write_file(file, 0, "bpf-id:%u %s", prog_id(attached->progs[0]),
			      row->limit->text));
	enter_cgroup(row->limit->cgroup);
	row->hook->call(); /* The budget had this one left. */
	check_runs(row->name, row->hook, 0);
	missed = fdinfo_number(attached->attached->fd, "bpf_missed_budget");
	if (!missed == row->limit->misses)
		die("%s: %llu hits over the budget", row->name, missed);
}

/* With programs that count, proves that all run, else says what a call takes. */
static double row_pass(const struct row *row, bool counting)
{
	struct attached_row attached;
	double took = 0;

	attach_row(row, counting, &attached);
	if (counting && row->no_prog)
		check_hits(row);
	else if (counting)
		check_runs(row->name, row->hook, row->progs);
	if (row->limit)
		limit_row(row, &attached);
	if (row->ring)
		ring_samples(row->ring);
	if (!counting)
		took = settled(row->name, row->hook, row->ring);
	if (row->limit) /* It goes with the program: where one is, hits of all programs cost more. */
		enter_cgroup("/");
	detach_row(row, &attached);
	return took;
}

/* What this kernel may lack, and what only now has an address. */
static void find_abilities(void)
{
	int i, prog, link, id = btf_func_id("bpf_fetch_u64");
	unsigned long first = file_offset(bench_crowd);

	fetch_u64 = id > 0 ? id : 0;
	user.probe.offset = user_ret.probe.offset = file_offset(bench_user);
	umulti.probe.offset = umulti_ret.probe.offset = user.probe.offset;
	both.probe.offset = umulti_both.probe.offset = user.probe.offset;
	both_next.probe.offset = file_offset(bench_next);
	endbr.probe.offset = file_offset(bench_endbr);
	lea.probe.offset = file_offset(bench_lea);
	for (i = 0; i < CROWD; i++) {
		crowd[i] = (struct hook){ { PROBE_PMU | PROBE_USER, SELF }, call_crowd };
		crowd[i].probe.offset = first + i * sizeof(bench_crowd[i]);
	}
	prog = program(&umulti_both, NULL, 0, false);
	link = link_users(&umulti_both, 1, prog);
	uprobe_sessions = link >= 0;
	close(link);
	close(prog);
	must("trace event", event_add("shared", "p " CALLED));
	/* No such program: but is one looked for? */
	bpf_filters = write_file(SHARED_EVENT "filter", 0, "bpf-1000") == -EBADF;
	must("trace event", event_remove("shared"));

	limits = !access(scope.file, F_OK);
	if (limits) {
		mkdir(CGROUPS "/bench", 0755); /* or they are there, of another run */
		mkdir(CGROUPS "/bench/own", 0755);
		mkdir(CGROUPS "/bench/other", 0755);
	}
}

static bool is_wanted(const char *name, const char *wanted)
{
	return !wanted || strstr(name, wanted);
}

static void show_rows(const char *wanted)
{
	const char *unit = real_time ? "ns" : "instr.";
	double first = 0, bare[ARRAY_SIZE(bare_calls)], before, cost;
	const struct row *row;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bare_calls); i++) {
		bare[i] = settled_bare(bare_calls[i].call);
		printf("%s\t%s\t%.1f\n", bare_calls[i].name, unit, bare[i]);
	}
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		if ((row != rows && !is_wanted(row->name, wanted)) ||
		    (row->needs && !*row->needs) || (row->body && !outputs))
			continue;
		if (row->hook == &body)
			find_body();
		row_pass(row, true);
		before = settled_bare(row->hook->call);
		for (i = 0; bare_calls[i].call != row->hook->call; i++)
			;
		if (!real_time && before != bare[i])
			die("%s: without it, a call takes %.2f, not %.2f", row->name, before,
			    bare[i]);
		cost = row_pass(row, false) - before;
		if (row == rows)
			first = cost;
		printf("%s\t%s\t%.1f\n", row->name, unit, cost - (row->added ? first : 0));
	}
}

/* ---- what the CPUs do to each other when all of them hit it */

struct together {
	void (*call)(void);
	unsigned int cpus, ready, done;
	bool go;
};

struct thread {
	pthread_t thread;
	struct together *all;
	int cpu;
};

static void call_times(void (*call)(void), int times)
{
	while (times--)
		call();
}

static void spin_until_all(struct together *all, unsigned int *threads)
{
	while (__atomic_load_n(threads, __ATOMIC_SEQ_CST) < all->cpus)
		;
}

static void *run_thread(void *arg)
{
	struct thread *me = arg;
	struct together *all = me->all;

	must("affinity", pin(me->cpu));
	call_times(all->call, WARM);
	__atomic_fetch_add(&all->ready, 1, __ATOMIC_SEQ_CST);
	if (!me->cpu) {
		spin_until_all(all, &all->ready);
		asm volatile(".ascii \"" MARK_BEGIN "\"" ::: "memory");
		__atomic_store_n(&all->go, true, __ATOMIC_SEQ_CST);
	}
	while (!__atomic_load_n(&all->go, __ATOMIC_SEQ_CST))
		;
	call_times(all->call, HITS);
	__atomic_fetch_add(&all->done, 1, __ATOMIC_SEQ_CST);
	if (!me->cpu) {
		spin_until_all(all, &all->done);
		asm volatile(".ascii \"" MARK_END "\"" ::: "memory");
	}
	return NULL;
}

/*
 * The threads are new: once a grace period of RCU tasks trace has seen a task, that has
 * a barrier more in each hit of a uprobe, until the next one begins.
 */
static void call_together(void (*call)(void), unsigned int cpus)
{
	struct together all = { .call = call, .cpus = cpus };
	struct thread threads[MAX_CPUS];
	unsigned int i;

	for (i = 0; i < cpus; i++) {
		threads[i].all = &all;
		threads[i].cpu = i;
		must("thread", -pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]));
	}
	for (i = 0; i < cpus; i++)
		pthread_join(threads[i].thread, NULL);
}

/* Twice between marks: what counts is the second time, when the program does not. */
static void show_contention(const char *wanted)
{
	unsigned int cpus = fmin(sysconf(_SC_NPROCESSORS_ONLN), MAX_CPUS);
	struct attached_row attached;
	const struct row *row;
	__u64 runs;

	printf("# %u CPUs, %u hits\n", cpus, cpus * HITS);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		if (!is_wanted(row->name, wanted) || (row->needs && !*row->needs) || row->body ||
		    row->ring || row->no_prog || row->limit || (row->progs > 1 && !row->next) ||
		    row->hook == &body)
			continue;
		attach_row(row, true, &attached);
		area_set(&area, 0, 0);
		call_together(row->hook->call, cpus);
		runs = cpus * (HITS + WARM) * row->progs * (row->hook->session ? 2 : 1);
		if (area_get(&area, 0) != runs)
			die("%s: %llu runs, not %llu", row->name, area_get(&area, 0), runs);
		detach_row(row, &attached);
		attach_row(row, false, &attached);
		sleep_ms(SETTLE_MS);
		call_together(row->hook->call, cpus);
		detach_row(row, &attached);
		printf("contention: %s\n", row->name);
	}
}

/* ---- attach and detach */

static struct hook targets[MAX_PROBES], user_targets[MAX_PROBES];
static struct attached target_attached[MAX_PROBES];

/* Is it in a part of the kernel that has nothing to do here? */
static bool idle_function(const char *name)
{
	static const char * const prefixes[] = {
		"tcp_", "udp_", "inet_", "ip_", "fib_", "neigh_", "rtnl_", "netlink_", "genl_",
		"skb_", "sock_", "dev_", "acpi_", "pci_", "virtio_", "p9_", "ovl_",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

/* CALLED, and others that can be probed. */
static void find_targets(unsigned int nr)
{
	FILE *file = fopen(TRACEFS "/available_filter_functions", "re");
	unsigned int found = 1;
	char name[64];
	int event;

	targets[0] = entry;
	while (found < nr) {
		if (!file || fscanf(file, "%63s%*[^\n]", name) < 0)
			die("%u functions to attach to, not %u", found, nr);
		if (!idle_function(name))
			continue;
		probe_create_at(&targets[found].probe, "", name, 0, PROBE_PMU);
		event = probe_open(&targets[found].probe);
		if (event < 0)
			continue;
		close(event);
		found++;
	}
	fclose(file);
}

/* bench_user(), and others of this program. */
static void find_user_targets(unsigned int nr)
{
	unsigned long places = file_offset(bench_places);
	unsigned int i;

	user_targets[0] = user;
	for (i = 1; i < nr; i++) {
		user_targets[i] = user;
		user_targets[i].probe.offset = places + i;
	}
}

static void attach_targets(struct hook *to, unsigned int nr, int prog)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		attach_hook(&to[i], prog, &target_attached[i]);
}

static void detach_targets(struct hook *from, unsigned int nr, int prog)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		detach_hook(&from[i], &target_attached[i]);
}

/* One link to all of them */
static void attach_multi(struct hook *to, unsigned int nr, int prog)
{
	const char *syms[MAX_PROBES];
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi.cnt = nr,
		.link_create.kprobe_multi.syms = (unsigned long)syms,
	};
	unsigned int i;

	for (i = 0; i < nr; i++)
		syms[i] = to[i].probe.func;
	if (nr)
		target_attached->fd = must("link", sys_bpf(BPF_LINK_CREATE, &attr));
}

static void attach_umulti(struct hook *to, unsigned int nr, int prog)
{
	if (nr)
		target_attached->fd = must("link", link_users(to, nr, prog));
}

static void detach_multi(struct hook *from, unsigned int nr, int prog)
{
	if (nr)
		must("close", neg_errno(close(target_attached->fd)));
}

static const struct sweep {
	enum way way;
	struct hook *targets;
	const char *name;
	const char *unit;
	void (*attach)(struct hook *to, unsigned int nr, int prog);
	void (*detach)(struct hook *from, unsigned int nr, int prog);
} sweeps[] = {
	{ WAY_PERF, targets, "SET_BPF", "probe", attach_targets, detach_targets },
	{ WAY_LINK, targets, "links", "probe", attach_targets, detach_targets },
	{ WAY_MULTI, targets, "kprobe_multi", "link", attach_multi, detach_multi },
	{ WAY_PERF, user_targets, "SET_BPF to uprobes", "probe", attach_targets, detach_targets },
	{ WAY_LINK, user_targets, "links to uprobes", "probe", attach_targets, detach_targets },
	{ WAY_UMULTI, user_targets, "uprobe_multi", "link", attach_umulti, detach_multi },
};

/* Return: how many of its unit that is. */
static unsigned int sweep_each(const struct sweep *sweep, unsigned int nr)
{
	return sweep->way == WAY_MULTI || sweep->way == WAY_UMULTI ? 1 : nr;
}

static __u64 idle_ns(void)
{
	unsigned long long ns = 0;
	char line[256];

	if (!find_line("/proc/timer_list", ".idle_sleeptime", line, sizeof(line)) ||
	    sscanf(line, " .idle_sleeptime : %llu", &ns) != 1)
		die("/proc/timer_list does not say how long the CPU was idle");
	return ns;
}

struct cost {
	double ms;		/* of virtual time, until work() returned */
	double instructions;	/* also of what it left to be done later */
};

static struct cost measure(void (*work)(struct hook *hooks, unsigned int nr, int prog),
			   struct hook *hooks, unsigned int nr, int prog)
{
	__u64 idle = idle_ns(), start = now();
	struct cost cost;

	work(hooks, nr, prog);
	cost.ms = (now() - start) / 1e6;
	sleep_ms(SETTLE_MS);
	cost.instructions = now() - start;
	cost.instructions -= idle_ns() - idle;
	return cost;
}

/* What else the kernel does meanwhile can be a tenth of what a link takes: so many are measured. */
#define LINK_ROUNDS 8

static void add_cost(struct cost *sum, struct cost cost, unsigned int rounds)
{
	sum->ms += cost.ms / rounds;
	sum->instructions += cost.instructions / rounds;
}

static void show_cost(const char *what, const struct sweep *sweep, unsigned int nr,
		      struct cost cost, struct cost nothing)
{
	unsigned int each = sweep_each(sweep, nr);

	printf("%s %u probes, %s\tms/%s\t%.3f\n", what, nr, sweep->name, sweep->unit,
	       cost.ms / each);
	if (real_time)
		return;
	printf("%s %u probes, %s\tthousand instr./%s\t%.0f\n", what, nr, sweep->name,
	       sweep->unit, (cost.instructions - nothing.instructions) / 1000 / each);
}

/* Return: a program for targets in this way. */
static int sweep_program(const struct sweep *sweep, unsigned int nr, bool counting)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		sweep->targets[i].way = sweep->way;
	if (events_only)
		return -1;
	return program(sweep->targets, NULL, 0, counting);
}

static void attach_and_detach(const struct sweep *sweep, unsigned int nr, bool show)
{
	unsigned int i, rounds = show && sweep_each(sweep, nr) == 1 ? LINK_ROUNDS : 1;
	struct cost nothing = {}, attached = {}, detached = {};
	int prog = sweep_program(sweep, nr, true);

	for (i = 0; i < rounds; i++) {
		add_cost(&nothing, measure(sweep->attach, sweep->targets, 0, prog), rounds);
		add_cost(&attached, measure(sweep->attach, sweep->targets, nr, prog), rounds);
		check_runs("attached", sweep->targets, 1);
		add_cost(&detached, measure(sweep->detach, sweep->targets, nr, prog), rounds);
		check_runs("detached", sweep->targets, 0);
	}
	if (!real_time && nothing.instructions > SETTLE_MS * 1e6 / 10)
		die("idle, this machine takes %.0f instructions", nothing.instructions);
	close(prog);
	if (!show)
		return;
	show_cost("attach", sweep, nr, attached, nothing);
	show_cost("detach", sweep, nr, detached, nothing);
}

/* ---- the end of a process that has attached a program to all of MAX_PROBES places */

static pid_t owner;

static void do_nothing(struct hook *hooks, unsigned int nr, int prog)
{
}

static void kill_owner(struct hook *hooks, unsigned int nr, int prog)
{
	must("kill", neg_errno(kill(owner, SIGKILL)));
	child_status(owner);
}

static void attach_and_kill(const struct sweep *sweep)
{
	int fds[2], prog = sweep_program(sweep, MAX_PROBES, true);
	struct cost nothing, killed;
	char ready;

	must("pipe", neg_errno(pipe(fds)));
	owner = must("fork", neg_errno(fork()));
	if (!owner) {
		sweep->attach(sweep->targets, MAX_PROBES, prog);
		if (write(fds[1], "", 1) == 1)
			pause();
		exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &ready, 1) != 1)
		die("the owner did not attach");
	check_runs("attached", sweep->targets, 1);
	nothing = measure(do_nothing, sweep->targets, 0, prog);
	killed = measure(kill_owner, sweep->targets, MAX_PROBES, prog);
	check_runs("killed", sweep->targets, 0);
	show_cost("SIGKILL, owner of", sweep, MAX_PROBES, killed, nothing);
	close(fds[0]);
	close(prog);
}

/* ---- which grace periods the caller waits for: perf events of its own, on what waits, count */

static const char * const waits[] = {
	"synchronize_rcu", "synchronize_rcu_expedited", "synchronize_srcu", "synchronize_rcu_tasks",
	"synchronize_rcu_tasks_rude", "synchronize_rcu_tasks_trace", "rcu_barrier",
};

/*
 * Counts calls by this task. Return: a perf event, or less than 0 where there is no
 * such function: some configurations have some only.
 */
static int count_calls(const char *func)
{
	struct perf_event_attr attr;
	struct probe probe;
	int err;

	err = probe_create_at(&probe, func, func, 0, 0) ?: probe_attr(&probe, &attr);
	if (err)
		return err;
	attr.sample_period = 0;
	return must(func, perf_open(&attr, 0, -1));
}

/* Adds to counts how often each was called until now, or with -1 subtracts it. */
static void count_waits(const int *fds, long *counts, int sign)
{
	__u64 calls;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		if (fds[i] >= 0 && read(fds[i], &calls, sizeof(calls)) == sizeof(calls))
			counts[i] += sign * calls;
	}
}

static void show_waits(const struct sweep *sweep, unsigned int nr)
{
	long counts[2][ARRAY_SIZE(waits)] = {};
	int prog = sweep_program(sweep, nr, false);
	int fds[ARRAY_SIZE(waits)];
	size_t i, what;

	for (i = 0; i < ARRAY_SIZE(waits); i++)
		fds[i] = count_calls(waits[i]);
	count_waits(fds, counts[0], -1);
	sweep->attach(sweep->targets, nr, prog);
	count_waits(fds, counts[0], 1);
	count_waits(fds, counts[1], -1);
	sweep->detach(sweep->targets, nr, prog);
	count_waits(fds, counts[1], 1);
	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		close(fds[i]);
		event_remove(waits[i]);
	}
	close(prog);
	for (what = 0; what < 2; what++) {
		for (i = 0; i < ARRAY_SIZE(waits); i++)
			printf("%s, %s: %s\tcalls/%s\t%.1f\n", what ? "detach" : "attach",
			       sweep->name, waits[i], sweep->unit,
			       (double)counts[what][i] / sweep_each(sweep, nr));
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = { 4 * MAX_PROBES, 4 * MAX_PROBES };
	const char *wanted = NULL;
	const struct sweep *sweep;
	unsigned int most = 10;
	int i, opt;

	while ((opt = getopt(argc, argv, "entr:")) != -1) {
		switch (opt) {
		case 'e':
			events_only = true;
			break;
		case 'n':
			real_time = true;
			break;
		case 't':
			together = true;
			break;
		case 'r':
			wanted = optarg;
			break;
		default:
			return 2;
		}
	}

	if (together && events_only)
		return 2;
	setlinebuf(stdout);
	must("affinity", pin(0));
	must("files", neg_errno(setrlimit(RLIMIT_NOFILE, &files)));
	must("area", area_create(&area));
	if (!events_only) {
		maps_create();
		find_abilities();
	}
	if (together) {
		show_contention(wanted);
		return 0;
	}
	if (!events_only)
		show_rows(wanted);

	for (i = optind; i < argc; i++)
		most = fmax(most, atoi(argv[i]));
	if (most > MAX_PROBES)
		die("%u probes, at most %u", most, MAX_PROBES);
	find_targets(most);
	find_user_targets(MAX_PROBES);
	for (sweep = sweeps; sweep < sweeps + ARRAY_SIZE(sweeps); sweep++) {
		if (!is_wanted(sweep->name, wanted))
			continue;
		attach_and_detach(sweep, 10, false); /* warms up */
		for (i = optind; i < argc; i++)
			attach_and_detach(sweep, atoi(argv[i]), true);
		if (sweep->targets == user_targets)
			attach_and_kill(sweep);
	}
	for (sweep = sweeps; !real_time && sweep < sweeps + ARRAY_SIZE(sweeps); sweep++) {
		if (is_wanted(sweep->name, wanted))
			show_waits(sweep, 10);
	}
	return 0;
}
