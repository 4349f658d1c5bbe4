// SPDX-License-Identifier: GPL-2.0
/*
 * newtool: which calls of a function take long.
 *
 * This is the half that one starts. It loads and attaches newtool.bpf.c, prints the
 * records that come from there, and says at the end what was lost: the records and
 * starts that newtool.bpf.c counts, and the hits that its programs missed, which are
 * in the fdinfo of their links where the kernel counts them.
 */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "newtool.h"
#include "newtool.skel.h"

static const char *function = "vfs_fsync_range";
static double min_ms = 10, interval = INFINITY, duration = INFINITY;
static bool json, verbose;

static const struct argp_option options[] = {
	{ "function", 'f', "NAME", 0, "Measure this function of the kernel (vfs_fsync_range)" },
	{ "min", 'm', "MS", 0, "Print the calls that take so many milliseconds or more (10)" },
	{ "interval", 'i', "SECONDS", 0, "Print what was counted so far every so often" },
	{ "duration", 'd', "SECONDS", 0, "Stop after that time" },
	{ "json", 'j', NULL, 0, "Print a JSON object a line; the last one has the totals" },
	{ "verbose", 'v', NULL, 0, "Show what libbpf has to say" },
	{}
};

static double parse(const char *arg, struct argp_state *state)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value >= 0 && value <= 1e9))
		argp_error(state, "'%s' is not a number from 0 to 1e9", arg);
	return value;
}

static error_t option(int key, char *arg, struct argp_state *state)
{
	if (key == 'f')
		function = arg;
	else if (key == 'm')
		min_ms = parse(arg, state);
	else if (key == 'i')
		interval = parse(arg, state) ?: INFINITY;
	else if (key == 'd')
		duration = parse(arg, state) ?: INFINITY;
	else if (key == 'j')
		json = true;
	else if (key == 'v')
		verbose = true;
	else	/* an argument that is no option */
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static struct newtool_bpf *skel;

/* An attached program: in the end, what the kernel says of it, and is it one that does? */
static struct probe {
	const char *name;
	struct bpf_link *link;
	bool told;
	__u64 hits, missed;
	char reasons[256];
} probes[] = { { "entry" }, { "return" } }, *const probes_end = probes + 2;

static int fail(const char *what, int err)
{
	const char *hint = "the reason is above or in /sys/kernel/tracing/error_log; try -v";

	if (err == EPERM)
		hint = "run it as root, or with CAP_BPF and CAP_PERFMON";
	else if (access("/sys/kernel/btf/vmlinux", F_OK))
		hint = "this kernel has no BTF, which takes CONFIG_DEBUG_INFO_BTF";
	else if (access("/sys/bus/event_source/devices/kprobe", F_OK))
		hint = "this kernel has no kprobes, which take CONFIG_KPROBE_EVENTS";
	else if (err == ENOENT)
		hint = "/proc/kallsyms has the functions there are; see also error_log in tracefs";
	fprintf(stderr, "newtool: %s: %s\nhint: %s\n", what, strerror(err), hint);
	return 1;
}

static int show_message(enum libbpf_print_level level, const char *format, va_list args)
{
	return verbose || level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int print_event(void *ctx, void *data, size_t size)
{
	struct newtool_event event = *(struct newtool_event *)data;
	static unsigned int count;
	char *c;

	/* A thread can have any name, also one that a terminal or JSON take for something else. */
	for (c = event.comm; *c; c++) {
		if (*c < ' ' || *c > '~' || strchr("\"\\", *c))
			*c = '?';
	}
	printf(json ? "{\"pid\": %u, \"comm\": \"%s\", \"ns\": %llu, \"ret\": %d}\n" :
	       "%7u %-16s %13llu ns  returned %d\n", event.pid, event.comm, event.ns, event.ret);
	/* If records come faster than they are printed: time and signals have their turn, too. */
	return ++count % 1024 ? 0 : -EAGAIN;
}

static void read_fdinfo(struct probe *p)
{
	char path[64], line[256], key[32];
	size_t len = 0;
	__u64 value;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_link__fd(p->link));
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%31[^:]: %llu", key, &value) != 2)
			continue;
		if (!strcmp(key, "bpf_prog_hits"))
			p->hits = value;
		else if (!strcmp(key, "bpf_prog_missed"))
			p->missed = value, p->told = true;
		else if (value && !strncmp(key, "bpf_missed_", 11) && len < sizeof(p->reasons))
			len += snprintf(p->reasons + len, sizeof(p->reasons) - len,
					json ? "%s\"%s\": %llu" : "%s%s %llu", len ? ", " : "",
					key + 11, value);
	}
	if (file)
		fclose(file);
}

static void print_json(const char *name, double seconds, const struct newtool_totals *t)
{
	const struct probe *p;

	printf("{\"%s\": {\"seconds\": %.3f, \"calls\": %llu, \"ns\": %llu, \"slow\": %llu",
	       name, seconds, t->calls, t->ns, t->slow);
	printf(", \"lost_records\": %llu, \"lost_starts\": %llu", t->lost_records, t->lost_starts);
	for (p = probes; p < probes_end; p++) {
		if (p->told)
			printf(", \"%s\": {\"hits\": %llu, \"missed\": %llu, \"reasons\": {%s}}",
			       p->name, p->hits, p->missed, p->reasons);
	}
	puts("}}");
}

static void print_text(const char *name, double seconds, const struct newtool_totals *t)
{
	const struct probe *p;

	printf("%s: %.1f s, %llu calls, %llu ns on average, %llu slow\n", name, seconds, t->calls,
	       t->calls ? t->ns / t->calls : 0, t->slow);
	if (t->lost_records)
		printf("  lost records: %llu, the ring buffer was full\n", t->lost_records);
	if (t->lost_starts)
		printf("  lost starts: %llu, their map was full\n", t->lost_starts);
	for (p = probes; p < probes_end; p++) {
		if (p->told)
			printf("  %s: %llu hits, %llu missed  %s\n", p->name, p->hits, p->missed,
			       p->reasons);
	}
}

static void print_totals(const char *name, double seconds)
{
	const struct newtool_totals totals = skel->bss->totals;

	(json ? print_json : print_text)(name, seconds, &totals);
}

int main(int argc, char **argv)
{
	static const struct argp argp = { options, option, NULL,
		"Prints the calls of a function of the kernel that take long, until ^C." };
	double start, end, report, left;
	struct pollfd fds[2] = {};
	struct ring_buffer *ring;
	sigset_t signals;
	struct probe *p;
	int err;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	libbpf_set_print(show_message);
	skel = newtool_bpf__open();
	if (!skel)
		return fail("newtool.bpf.c", errno);
	skel->bss->min_ns = min_ms * 1e6;
	err = newtool_bpf__load(skel);
	if (err)
		return fail("loading the programs", -err);
	ring = ring_buffer__new(bpf_map__fd(skel->maps.events), print_event, NULL, NULL);
	if (!ring)
		return fail("the ring buffer", errno);

	if (!verbose)	/* the hint says more */
		libbpf_set_print(NULL);
	probes[0].link = bpf_program__attach_kprobe(skel->progs.on_entry, false, function);
	if (!probes[0].link)
		return fail(function, errno);
	probes[1].link = bpf_program__attach_kprobe(skel->progs.on_return, true, function);
	if (!probes[1].link)
		return fail(function, errno);

	/* Signals are read, as records are, and so never come in between. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fds[0] = (struct pollfd){ .fd = ring_buffer__epoll_fd(ring), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = signalfd(-1, &signals, SFD_CLOEXEC), .events = POLLIN };
	fprintf(stderr, "newtool: measuring %s, stop with ^C\n", function);

	start = now();
	end = start + duration;
	report = start + interval;
	while (now() < end && !fds[1].revents) {
		left = (end < report ? end : report) - now();
		poll(fds, 2, left < 0 ? 0 : left < 1000 ? left * 1000 + 1 : 1000000);
		ring_buffer__consume(ring);
		if (now() >= report) {
			print_totals("so far", now() - start);
			report += interval;
		}
		if (fflush(stdout))
			break;
	}

	for (p = probes; p < probes_end; p++) {
		read_fdinfo(p);
		bpf_link__destroy(p->link);
	}
	while (ring_buffer__consume(ring) == -EAGAIN)
		;	/* what is left */
	print_totals("totals", now() - start);
	ring_buffer__free(ring);
	newtool_bpf__destroy(skel);
	return fflush(stdout) || ferror(stdout);
}
