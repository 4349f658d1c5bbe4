// SPDX-License-Identifier: GPL-2.0
/*
 * bench [PROBES...]: what BPF programs on events cost, and what it costs to
 * attach and to detach that many PROBES. scripts/bench runs it as the only busy
 * task of a one-CPU guest in which QEMU counts instructions: there the time
 * stamp counter goes up by one with each instruction, and while the CPU is idle
 * by one with each nanosecond of virtual time.
 *
 * Writes a line "name <tab> unit <tab> value" for each figure, notes behind "#".
 * Exits with 1 when an event was lost, or a figure does not settle.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/version.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

#define FUNC		"__x64_sys_personality"	/* what call() gets to, and nothing else */
#define TRACEFS		"/sys/kernel/tracing/"
#define DEBUGFS		"/sys/kernel/debug/"
#define CALLS		256	/* in one go: less than a tick, even with 64 programs */
#define MAX_PROGS	64
#define MAX_PROBES	1024
#define JMP32		0xe9	/* the opcode of the jump that an optimized kprobe is */
#define RING_SIZE	(64 * 4096UL)
#define SETTLE_US	1000000	/* in which deferred work of attach and detach is over */

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# failed: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

static int must(const char *what, long ret)
{
	if (ret < 0)
		die("%s: %s", what, strerror(errno));
	return ret;
}

static FILE *open_file(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file)
		die("%s: %s", path, strerror(errno));
	return file;
}

static void write_file(const char *path, const char *text)
{
	int fd = must(path, open(path, O_WRONLY));

	must(text, write(fd, text, strlen(text)));
	close(fd);
}

static unsigned int read_number(const char *path)
{
	FILE *file = open_file(path);
	unsigned int number;

	if (fscanf(file, "%u", &number) != 1)
		die("%s: no number", path);
	fclose(file);
	return number;
}

/* ---- maps and programs */

static int counter, hash, stacks, outputs;	/* maps */

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int map_create(enum bpf_map_type type, __u32 value_size, __u32 entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = 4,
		.value_size = value_size,
		.max_entries = entries,
	};

	return must("map", bpf(BPF_MAP_CREATE, &attr));
}

static int map_op(enum bpf_cmd cmd, int map, void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = map,
		.key = (unsigned long)&key,
		.value = (unsigned long)value,
	};

	return must("map element", bpf(cmd, &attr));
}

struct code {
	struct bpf_insn insns[32];
	unsigned int nr;
};

static void emit(struct code *c, __u8 op, __u8 dst, __u8 src, __s16 off, __s32 imm)
{
	c->insns[c->nr++] = (struct bpf_insn){
		.code = op, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm,
	};
}

static void emit_mov(struct code *c, __u8 dst, __s32 imm)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

static void emit_map(struct code *c, __u8 dst, int map)
{
	emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, BPF_PSEUDO_MAP_FD, 0, map);
	emit(c, 0, 0, 0, 0, 0);
}

static void emit_stack_addr(struct code *c, __u8 dst, __s32 off)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, BPF_REG_10, 0, 0);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, off);
}

static void emit_stack_zero(struct code *c, __s16 off)
{
	emit(c, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, off, 0);
}

static void emit_call(struct code *c, enum bpf_func_id func)
{
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, func);
}

static void body_map_update(struct code *c)
{
	emit_stack_zero(c, -8);
	emit_stack_zero(c, -16);
	emit_map(c, BPF_REG_1, hash);
	emit_stack_addr(c, BPF_REG_2, -8);
	emit_stack_addr(c, BPF_REG_3, -16);
	emit_mov(c, BPF_REG_4, BPF_ANY);
	emit_call(c, BPF_FUNC_map_update_elem);
}

static void body_output(struct code *c)
{
	emit_stack_zero(c, -8);
	emit_map(c, BPF_REG_2, outputs);
	emit(c, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, (__s32)BPF_F_CURRENT_CPU);
	emit_stack_addr(c, BPF_REG_4, -8);
	emit_mov(c, BPF_REG_5, 8);
	emit_call(c, BPF_FUNC_perf_event_output);
}

static void body_stackid(struct code *c)
{
	emit_map(c, BPF_REG_2, stacks);
	emit_mov(c, BPF_REG_3, 0);
	emit_call(c, BPF_FUNC_get_stackid);
}

static void body_read(struct code *c)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_1, 0, 0);
	emit_stack_addr(c, BPF_REG_1, -8);
	emit_mov(c, BPF_REG_2, 8);
	emit_call(c, BPF_FUNC_probe_read_kernel);
}

/* Counts this run, unless the body (what left something in r0) failed. */
static void emit_count(struct code *c)
{
	emit(c, BPF_JMP | BPF_JSLT | BPF_K, BPF_REG_0, 0, 9, 0);
	emit_stack_zero(c, -8);
	emit_map(c, BPF_REG_1, counter);
	emit_stack_addr(c, BPF_REG_2, -8);
	emit_call(c, BPF_FUNC_map_lookup_elem);
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0);
	emit_mov(c, BPF_REG_1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD);
}

/* The version that programs of this type must be made for. */
static __u32 running_version(void)
{
	unsigned int major, minor, patch;
	struct utsname name;

	uname(&name);
	if (sscanf(name.release, "%u.%u.%u", &major, &minor, &patch) != 3)
		die("kernel release %s", name.release);
	return KERNEL_VERSION(major, minor, patch);
}

static int prog_load(enum bpf_prog_type type, const struct code *c)
{
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = type,
		.insns = (unsigned long)c->insns,
		.insn_cnt = c->nr,
		.license = (unsigned long)"GPL",
		.kern_version = running_version(),
		.log_buf = (unsigned long)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int prog = bpf(BPF_PROG_LOAD, &attr);

	if (prog < 0)
		die("program: %s\n%s", strerror(errno), log);
	return prog;
}

static int kprobe_prog(void (*body)(struct code *c), int verdict, bool counting)
{
	struct code c = {};

	if (body)
		body(&c);
	else if (counting)
		emit_mov(&c, BPF_REG_0, 0);
	if (counting)
		emit_count(&c);
	emit_mov(&c, BPF_REG_0, verdict);
	emit(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return prog_load(BPF_PROG_TYPE_KPROBE, &c);
}

/* Return: the byte at a kernel address. */
static __u8 kernel_byte(unsigned long addr)
{
	struct code c = {};
	char packet[14];
	union bpf_attr attr = {
		.test.data_in = (unsigned long)packet,
		.test.data_size_in = sizeof(packet),
	};

	emit_stack_addr(&c, BPF_REG_1, -8);
	emit_mov(&c, BPF_REG_2, 1);
	emit(&c, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_3, 0, 0, addr);
	emit(&c, 0, 0, 0, 0, addr >> 32);
	emit_call(&c, BPF_FUNC_probe_read_kernel);
	emit(&c, BPF_LDX | BPF_MEM | BPF_B, BPF_REG_0, BPF_REG_10, -8, 0);
	emit(&c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	attr.test.prog_fd = prog_load(BPF_PROG_TYPE_SOCKET_FILTER, &c);
	must("test run", bpf(BPF_PROG_TEST_RUN, &attr));
	close(attr.test.prog_fd);
	return attr.test.retval;
}

static unsigned long long prog_misses(int prog)
{
	struct bpf_prog_info info = {};
	union bpf_attr attr = {
		.info.bpf_fd = prog,
		.info.info_len = sizeof(info),
		.info.info = (unsigned long)&info,
	};

	must("program info", bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));
	return info.recursion_misses;
}

/* ---- perf events and their rings */

struct ring {
	struct perf_event_mmap_page *page;
};

static struct ring hook_ring, output_ring;

static int perf_open(struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	return syscall(SYS_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

static void ring_map(struct ring *ring, int event)
{
	void *addr = mmap(NULL, 4096 + RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);

	if (addr == MAP_FAILED)
		die("ring: %s", strerror(errno));
	ring->page = addr;
}

static void ring_unmap(struct ring *ring)
{
	munmap(ring->page, 4096 + RING_SIZE);
	ring->page = NULL;
}

/* Return: how many samples there were; everything is consumed. */
static unsigned int ring_drain(struct ring *ring)
{
	unsigned char *data = (unsigned char *)ring->page + 4096;
	unsigned long head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	unsigned long tail = ring->page->data_tail;
	unsigned int samples = 0;

	while (tail < head) {
		struct perf_event_header *header = (void *)(data + tail % RING_SIZE);

		samples += header->type == PERF_RECORD_SAMPLE;
		tail += header->size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return samples;
}

/* Nobody sleeps on the rings: what waking costs is not the event's. */
static const struct perf_event_attr ringed = {
	.sample_type = PERF_SAMPLE_RAW,
	.watermark = 1,
	.wakeup_watermark = RING_SIZE - 1,
};

static void outputs_open(void)
{
	struct perf_event_attr attr = ringed;
	int event;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	event = must("output event", perf_open(&attr));
	ring_map(&output_ring, event);
	map_op(BPF_MAP_UPDATE_ELEM, outputs, &event);
}

/* ---- hooks: ways to have a program run in each call */

struct hook {
	int (*open)(const struct hook *hook);	/* Return: a perf event of it */
	const char *listed;	/* how kprobes/list must describe it */
	struct ring *ring;	/* where the records go that programs let pass */
	unsigned int offset;
	bool ret;
};

static void call(void)
{
	personality(0xffffffff);
}

static int kprobe_open(const char *func, unsigned int offset, bool ret, struct perf_event_attr attr)
{
	attr.type = read_number("/sys/bus/event_source/devices/kprobe/type");
	attr.config = ret;
	attr.kprobe_func = (unsigned long)func;
	attr.probe_offset = offset;
	return perf_open(&attr);
}

/* An event of its own each time. */
static int hook_open_pmu(const struct hook *hook)
{
	static const struct perf_event_attr plain = { .wakeup_events = 1 };
	int event = kprobe_open(FUNC, hook->offset, hook->ret, hook->ring ? ringed : plain);

	must("kprobe", event);
	if (hook->ring)
		ring_map(hook->ring, event);
	return event;
}

/* The same trace event each time. */
static int hook_open_shared(const struct hook *hook)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = read_number(TRACEFS "events/bench/shared/id"),
		.wakeup_events = 1,
	};

	return must("shared event", perf_open(&attr));
}

static struct hook entry = { hook_open_pmu, "[FTRACE]" };
static struct hook entry_ring = { hook_open_pmu, "[FTRACE]", &hook_ring };
static struct hook body = { hook_open_pmu, "[OPTIMIZED]" };
static struct hook ret = { hook_open_pmu, "[FTRACE]", .ret = true };
static struct hook shared = { hook_open_shared, "[FTRACE]" };

/*
 * Is there such a kprobe in FUNC? The list calls one optimized as soon as that
 * is intended, so look for the jump too.
 */
static bool listed(const char *how)
{
	FILE *list = open_file(DEBUGFS "kprobes/list");
	unsigned long addr;
	char line[256];
	bool found = false;

	while (fgets(line, sizeof(line), list)) {
		if (strstr(line, " " FUNC "+") && strstr(line, how) && sscanf(line, "%lx", &addr) == 1)
			found |= strcmp(how, "[OPTIMIZED]") || kernel_byte(addr) == JMP32;
	}
	fclose(list);
	return found;
}

/* The optimizer takes its time. */
static bool soon_listed(const char *how)
{
	int i;

	for (i = 0; i < 200 && !listed(how); i++)
		usleep(10000);
	return i < 200;
}

/* The first instruction behind the entry where the breakpoint becomes a jump. */
static void find_body(void)
{
	for (body.offset = 5; body.offset < 64; body.offset++) {
		int event = kprobe_open(FUNC, body.offset, false, (struct perf_event_attr){});
		bool found = event >= 0 && soon_listed(body.listed);

		close(event);
		if (found) {
			printf("# function body: " FUNC "+%u\n", body.offset);
			return;
		}
	}
	die("no place in " FUNC " for an optimized kprobe");
}

/* As bcc attaches. */
static int attach(int event, int prog)
{
	must("SET_BPF", ioctl(event, PERF_EVENT_IOC_SET_BPF, prog));
	must("ENABLE", ioctl(event, PERF_EVENT_IOC_ENABLE, 0));
	return event;
}

/* As bcc detaches. */
static void detach(int event)
{
	must("DISABLE", ioctl(event, PERF_EVENT_IOC_DISABLE, 0));
	must("close", close(event));
}

/* ---- what one event costs */

struct row {
	const char *name;
	struct hook *hook;
	unsigned int progs;
	void (*body)(struct code *c);
	int verdict;		/* what the programs return */
	struct ring *ring;	/* where every event must leave a record */
	bool added;		/* show what comes on top of the first row */
};

static const struct row rows[] = {
	{ "kprobe, function entry", &entry, 1 },
	{ "kprobe, function body (optimized jump)", &body, 1 },
	{ "kretprobe", &ret, 1 },
	{ "kprobe, returns 1, perf ring consumer", &entry_ring, 1, .verdict = 1, .ring = &hook_ring },
	{ "two events on one function", &entry, 2 },
	{ "1 program on one event", &shared, 1 },
	{ "2 programs on one event", &shared, 2 },
	{ "8 programs on one event", &shared, 8 },
	{ "64 programs on one event", &shared, 64 },
	{ "map update program (hash)", &entry, 1, body_map_update },
	{ "perf_event_output program (8 bytes)", &entry, 1, body_output, .ring = &output_ring },
	{ "get_stackid program", &entry, 1, body_stackid },
	{ "probe_read_kernel of 8 bytes, added", &entry, 1, body_read, .added = true },
};

static unsigned long long calls(struct ring *ring)
{
	unsigned long long since, took;
	int i;

	since = __rdtsc();
	for (i = 0; i < CALLS; i++)
		call();
	took = __rdtsc() - since;
	if (ring && ring_drain(ring) != CALLS)
		die("records were lost");
	return took;
}

/* A tick only ever adds: the figure is the lowest, seen again and again. */
static double settled(const char *name, struct ring *ring)
{
	double took, lowest = 1e9;
	int tries, seen = 0;

	for (tries = 0; tries < 200; tries++) {
		took = (double)calls(ring) / CALLS;
		if (took < lowest - 0.1)
			seen = 0;
		if (took < lowest)
			lowest = took;
		if (took < lowest + 0.1 && ++seen == 8)
			return lowest;
	}
	die("%s does not settle: %.1f seen %d times", name, lowest, seen);
}

static void must_have_counted(const char *name, unsigned long long expected)
{
	unsigned long long zero = 0, count;

	map_op(BPF_MAP_LOOKUP_ELEM, counter, &count);
	if (count != expected)
		die("%s: %llu of %llu runs were counted", name, count, expected);
	map_op(BPF_MAP_UPDATE_ELEM, counter, &zero);
}

/* With programs that count, proves that all run, else says what a call takes. */
static double row_pass(const struct row *row, bool counting)
{
	int progs[MAX_PROGS], events[MAX_PROGS];
	double figure = 0;
	unsigned int i;

	for (i = 0; i < row->progs; i++) {
		progs[i] = kprobe_prog(row->body, row->verdict, counting);
		events[i] = attach(row->hook->open(row->hook), progs[i]);
	}
	if (!soon_listed(row->hook->listed))
		die("%s: not %s", row->name, row->hook->listed);
	if (row->ring)
		ring_drain(row->ring);

	if (counting) {
		calls(row->ring);
		must_have_counted(row->name, CALLS * row->progs);
	} else {
		figure = settled(row->name, row->ring);
	}

	if (row->hook->ring)
		ring_unmap(row->hook->ring);
	for (i = 0; i < row->progs; i++) {
		detach(events[i]);
		if (prog_misses(progs[i]))
			die("%s: a program missed events", row->name);
		close(progs[i]);
	}
	return figure;
}

static void show_rows(void)
{
	double bare = settled("bare call", NULL), figure, first = 0;
	unsigned int i;

	printf("bare call, nothing attached\tinstructions\t%.1f\n", bare);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		row_pass(&rows[i], true);
		figure = row_pass(&rows[i], false) - bare;
		if (!i)
			first = figure;
		printf("%s\tinstructions\t%.1f\n", rows[i].name, figure - (rows[i].added ? first : 0));
	}
	if (fabs(settled("bare call", NULL) - bare) > 0.1)
		die("the bare call does not cost what it did before");
}

/* ---- attach and detach */

struct span {
	unsigned long long time, idle;
};

static unsigned long long idle_ns(void)
{
	FILE *file = open_file("/proc/timer_list");
	unsigned long long idle = 0;
	char line[256];

	while (fgets(line, sizeof(line), file) && !sscanf(line, " .idle_sleeptime : %llu", &idle))
		;
	fclose(file);
	return idle;
}

static void span_start(struct span *span)
{
	span->idle = idle_ns();
	span->time = __rdtsc();
}

/* Waits until what was deferred is over. Return: the instructions since start. */
static unsigned long long span_busy(const struct span *span)
{
	unsigned long long time;

	usleep(SETTLE_US);
	time = __rdtsc() - span->time;
	return time - (idle_ns() - span->idle);
}

/* Functions that nothing calls here, each once and kprobes can be on it. */
static char *targets[MAX_PROBES];

static bool is_cold(const char *name)
{
	static const char * const prefixes[] = {
		"tcp_", "udp_", "inet_", "ip_", "fib_", "neigh_", "rtnl_", "netlink_", "genl_",
		"skb_", "sock_", "dev_", "acpi_", "pci_", "virtio_", "p9_", "ovl_",
	};
	unsigned int i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

static void find_targets(unsigned int nr)
{
	FILE *file = open_file(TRACEFS "available_filter_functions");
	char name[128];
	int event;

	targets[0] = FUNC;
	while (--nr) {
		do {
			if (fscanf(file, "%127s%*[^\n]", name) < 0)
				die("not enough functions to attach to");
			event = is_cold(name) ? kprobe_open(name, 0, false, (struct perf_event_attr){}) : -1;
		} while (event < 0);
		close(event);
		targets[nr] = strdup(name);
	}
	fclose(file);
}

static void attach_all(unsigned int nr, int prog, int *events)
{
	static const struct perf_event_attr plain = { .wakeup_events = 1 };
	unsigned int i;

	for (i = 0; i < nr; i++)
		events[i] = attach(must(targets[i], kprobe_open(targets[i], 0, false, plain)), prog);
}

static void detach_all(unsigned int nr, int *events)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		detach(events[i]);
}

static void show_span(const char *what, unsigned int nr, unsigned long long time, unsigned long long busy)
{
	printf("%s, per probe, %u probes\tms\t%.3f\n", what, nr, time / 1e6 / nr);
	printf("%s, per probe, %u probes\tinstructions\t%llu\n", what, nr, busy / nr);
}

static void show_attach(unsigned int nr, bool show)
{
	int prog = kprobe_prog(NULL, 0, true), events[MAX_PROBES];
	unsigned long long background, time, busy;
	struct span span;

	span_start(&span);
	background = span_busy(&span);

	span_start(&span);
	attach_all(nr, prog, events);
	time = __rdtsc() - span.time;
	busy = span_busy(&span) - background;
	if (show)
		show_span("attach", nr, time, busy);

	calls(NULL);
	must_have_counted("attached", CALLS);

	span_start(&span);
	detach_all(nr, events);
	time = __rdtsc() - span.time;
	busy = span_busy(&span) - background;
	if (show)
		show_span("detach", nr, time, busy);

	calls(NULL);
	must_have_counted("detached", 0);
	close(prog);
}

/* ---- which grace periods are waited for: kprobe events count the calls */

static const char * const waits[] = {
	"synchronize_rcu", "synchronize_rcu_expedited", "synchronize_srcu",
	"synchronize_rcu_tasks", "synchronize_rcu_tasks_rude", "synchronize_rcu_tasks_trace",
	"rcu_barrier",
};

#define NR_WAITS	(sizeof(waits) / sizeof(waits[0]))

static void count_waits(long *counts)
{
	FILE *file = open_file(TRACEFS "kprobe_profile");
	char name[64];
	unsigned int i;
	long hits;

	while (fscanf(file, "%63s %ld %*d", name, &hits) == 2) {
		for (i = 0; i < NR_WAITS; i++) {
			if (!strcmp(name, waits[i]))
				counts[i] = hits - counts[i];
		}
	}
	fclose(file);
}

static void show_waits(unsigned int nr)
{
	int prog = kprobe_prog(NULL, 0, false), events[MAX_PROBES];
	long attach_waits[NR_WAITS] = {}, detach_waits[NR_WAITS] = {};
	unsigned int i;
	char event[256];

	for (i = 0; i < NR_WAITS; i++) {
		snprintf(event, sizeof(event), "p:waits/%s %s", waits[i], waits[i]);
		write_file(TRACEFS "kprobe_events", event);
	}
	write_file(TRACEFS "events/waits/enable", "1");
	count_waits(attach_waits);
	attach_all(nr, prog, events);
	count_waits(attach_waits);
	count_waits(detach_waits);
	detach_all(nr, events);
	count_waits(detach_waits);
	write_file(TRACEFS "events/waits/enable", "0");
	for (i = 0; i < NR_WAITS; i++) {
		printf("attach, calls of %s\tper probe\t%.1f\n", waits[i], (double)attach_waits[i] / nr);
		printf("detach, calls of %s\tper probe\t%.1f\n", waits[i], (double)detach_waits[i] / nr);
	}
	close(prog);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 2 * MAX_PROBES, 2 * MAX_PROBES };
	unsigned int most = 10;
	cpu_set_t cpus;
	int i;

	setlinebuf(stdout);
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	must("affinity", sched_setaffinity(0, sizeof(cpus), &cpus));
	must("files", setrlimit(RLIMIT_NOFILE, &files));
	for (i = 1; i < argc; i++) {
		if (atoi(argv[i]) < 1 || atoi(argv[i]) > MAX_PROBES)
			die("%s probes: 1 to %u", argv[i], MAX_PROBES);
		if ((unsigned int)atoi(argv[i]) > most)
			most = atoi(argv[i]);
	}

	counter = map_create(BPF_MAP_TYPE_ARRAY, 8, 1);
	hash = map_create(BPF_MAP_TYPE_HASH, 8, 16);
	stacks = map_create(BPF_MAP_TYPE_STACK_TRACE, 127 * 8, 64);
	outputs = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 1);
	outputs_open();
	write_file(TRACEFS "kprobe_events", "p:bench/shared " FUNC);
	find_body();
	show_rows();

	find_targets(most);
	show_attach(10, false);	/* warms up */
	for (i = 1; i < argc; i++)
		show_attach(atoi(argv[i]), true);
	show_waits(10);
	return 0;
}
