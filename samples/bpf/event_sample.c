// SPDX-License-Identifier: GPL-2.0
/* What most samples of programs on events have in common, see event_sample.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
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

#include "event_filter.h"
#include "event_sample.h"

#define NEVER 1e9	/* a number of seconds */
#define MAX_PROGS 8

static const char *usage_text;
static double start, duration = NEVER;
static bool verbose, attaching;

double sample_interval = NEVER;
bool sample_json;

static int signals = -1;	/* SIGINT and SIGTERM, to be read */

static struct attached {
	struct bpf_link *link;	/* NULL: detached */
	const char *section;
	char fdinfo[1024];	/* of the link, as it was last read */
} attached[MAX_PROGS];

/* Without it, libbpf leaves types out; task storage without types is EINVAL before it is EPERM. */
static bool has_cap_bpf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_LRU_HASH, NULL, 4, 4, 1, NULL);

	if (fd >= 0)
		close(fd);
	return fd != -EPERM;
}

static const char *load_hint(int err)
{
	if (err == EINVAL && !has_cap_bpf())
		err = EPERM;
	switch (err) {
	case EPERM:
		return "it takes CAP_BPF and CAP_PERFMON: run it as root, outside of any container";
	case EACCES:
		return "the verifier refused the program, its log is above";
	case EINVAL:
		return "see the log above; if it is empty, this kernel lacks CONFIG_BPF_EVENTS";
	case ENOENT:
		return "the file belongs into the same directory as the program";
	case ESRCH:
		return "this kernel lacks CONFIG_DEBUG_INFO_BTF, or a function named above";
	default:
		return "option -v shows what libbpf was doing";
	}
}

static const char *attach_hint(int err)
{
	switch (err) {
	case EPERM:
		return "it takes CAP_PERFMON: run it as root";
	case EACCES:
		return "only root may write there; or see /sys/kernel/tracing/error_log";
	case EINVAL:
		return "see /sys/kernel/tracing/error_log; perhaps this kernel lacks BPF filters";
	case ENOENT:
		return "no such event or function, or no tracefs at /sys/kernel/tracing";
	case EEXIST:
		return "a program filters this event already: is another copy running?";
	case EBUSY:
		return "the event is filtered by an expression: write 0 to its filter file";
	default:
		return "see /sys/kernel/tracing/error_log";
	}
}

void sample_fail(enum sample_step step, const char *what, int err)
{
	char reason[128];

	libbpf_strerror(err, reason, sizeof(reason));
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, reason);
	if (step != SAMPLE_RUN)
		fprintf(stderr, "hint: %s\n",
			step == SAMPLE_LOAD ? load_hint(abs(err)) : attach_hint(abs(err)));
	exit(1);
}

void sample_usage(void)
{
	fputs(usage_text, stderr);
	exit(2);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void sample_start(const char *doing)
{
	fprintf(stderr, "%s: %s, stop with ^C\n", program_invocation_short_name, doing);
	start = now();
}

double sample_time(void)
{
	return now() - start;
}

static double parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && seconds > 0 && seconds < NEVER)
		return seconds;
	fprintf(stderr, "%s: '%s' is not a number of seconds\n", program_invocation_short_name,
		text);
	sample_usage();
}

__u64 sample_parse_us(const char *text)
{
	char *end;
	double us = strtod(text, &end);

	if (end != text && !*end && us >= 0 && us < NEVER)
		return us * 1000;
	fprintf(stderr, "%s: '%s' is not a number of microseconds\n",
		program_invocation_short_name, text);
	sample_usage();
}

void sample_options(int argc, char **argv, const char *usage, const char *more,
		    void (*option)(int opt, const char *arg))
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	char known[32];
	sigset_t set;
	int opt;

	usage_text = usage;
	snprintf(known, sizeof(known), "d:vh%s", more);
	while ((opt = getopt_long(argc, argv, known, longs, NULL)) != -1) {
		if (opt == 'd')
			duration = parse_seconds(optarg);
		else if (opt == 'v')
			verbose = true;
		else if (opt == 'h')
			exit(fputs(usage, stdout) < 0);
		else if (!strchr(known, opt) || opt == '?')
			sample_usage();
		else if (opt == 'i')
			sample_interval = parse_seconds(optarg);
		else if (opt == 'j')
			sample_json = true;
		else
			option(opt, optarg);
	}
	if (optind < argc)
		sample_usage();

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		sample_fail(SAMPLE_RUN, "signalfd", errno);
}

/* While attaching, our own words are better. */
static int show_message(enum libbpf_print_level level, const char *format, va_list args)
{
	if (!verbose && (attaching || level != LIBBPF_WARN))
		return 0;
	return vfprintf(stderr, format, args);
}

struct bpf_object *sample_load(void)
{
	char self[PATH_MAX - 16] = "", path[PATH_MAX];
	struct bpf_object *obj;
	int err;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		sample_fail(SAMPLE_LOAD, "/proc/self/exe", errno);
	snprintf(path, sizeof(path), "%s.bpf.o", self);

	libbpf_set_print(show_message);
	err = event_filter_register();
	if (err)
		sample_fail(SAMPLE_LOAD, "registering the sections", err);
	obj = bpf_object__open_file(path, NULL);
	if (!obj)
		sample_fail(SAMPLE_LOAD, path, errno);
	err = bpf_object__load(obj);
	if (err)
		sample_fail(SAMPLE_LOAD, "loading the programs", err);
	return obj;
}

void sample_attach(struct bpf_object *obj)
{
	struct bpf_program *prog;
	struct attached *a = attached;

	atexit(sample_detach);
	attaching = true;
	bpf_object__for_each_program(prog, obj) {
		a->section = bpf_program__section_name(prog);
		a->link = bpf_program__attach(prog);
		if (!a++->link)
			sample_fail(SAMPLE_ATTACH, bpf_program__section_name(prog), errno);
	}
	attaching = false;
}

static void read_fdinfo(struct attached *a)
{
	char path[64];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_link__fd(a->link));
	f = fopen(path, "r");
	if (!f)
		return;
	len = fread(a->fdinfo, 1, sizeof(a->fdinfo) - 1, f);
	a->fdinfo[len] = '\0';
	fclose(f);
}

void sample_detach(void)
{
	struct attached *a;

	for (a = attached; a < attached + MAX_PROGS; a++) {
		if (!a->link)
			continue;
		read_fdinfo(a);
		bpf_link__destroy(a->link);
		a->link = NULL;
	}
}

bool sample_wait_for(int fd, double seconds)
{
	double until = sample_time() + seconds, left;
	struct pollfd fds[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	struct timespec t = {};

	if (until > duration)
		until = duration;
	while ((left = until - sample_time()) > 0) {
		t.tv_sec = left;
		t.tv_nsec = (left - t.tv_sec) * 1e9;
		if (ppoll(fds, 2, &t, NULL) <= 0)
			continue;
		return !fds[0].revents;
	}
	return until < duration;
}

bool sample_wait(double seconds)
{
	return sample_wait_for(-1, seconds);
}

void sample_read_counts(struct bpf_object *obj, const char *map_name, __u64 *counts)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, map_name);
	int cpus = libbpf_num_possible_cpus(), cpu, err;
	__u64 per_cpu[cpus];
	__u32 slot;

	for (slot = 0; slot < bpf_map__max_entries(map); slot++) {
		err = bpf_map__lookup_elem(map, &slot, sizeof(slot), per_cpu, sizeof(per_cpu), 0);
		if (err)
			sample_fail(SAMPLE_RUN, map_name, err);
		counts[slot] = 0;
		for (cpu = 0; cpu < cpus; cpu++)
			counts[slot] += per_cpu[cpu];
	}
}

void sample_set(struct bpf_object *obj, const char *map_name, const void *value, size_t size)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, map_name);
	__u32 slot = 0;
	int err = bpf_map__update_elem(map, &slot, sizeof(slot), value, size, 0);

	if (err)
		sample_fail(SAMPLE_RUN, map_name, err);
}

/* A line of fdinfo that begins with this, or NULL */
static const char *find_line(const char *text, const char *key)
{
	while (strncmp(text, key, strlen(key))) {
		text = strchr(text, '\n');
		if (!text++)
			return NULL;
	}
	return text;
}

static __u64 number_of(const char *fdinfo, const char *key)
{
	const char *line = find_line(fdinfo, key);

	return line ? strtoull(line + strlen(key), NULL, 10) : 0;
}

/* The lines "bpf_missed_REASON:\tCOUNT" */
static void print_reasons(const char *fdinfo)
{
	static const char prefix[] = "bpf_missed_";
	const char *separator = "", *line = fdinfo;
	char reason[32];
	__u64 count;

	for (; (line = find_line(line, prefix)); line += strlen(prefix)) {
		if (sscanf(line + strlen(prefix), "%31[^:]: %llu", reason, &count) < 2 || !count)
			continue;
		printf(sample_json ? "%s\"%s\": %llu" : "%s%s %llu", separator, reason, count);
		separator = ", ";
	}
}

void sample_print_missed(void)
{
	const char *separator = "";
	struct attached *a;
	__u64 missed;

	if (sample_json)
		printf(", \"programs\": [");
	for (a = attached; a < attached + MAX_PROGS; a++) {
		if (a->link)
			read_fdinfo(a);
		missed = number_of(a->fdinfo, "bpf_prog_missed:");
		if (sample_json && find_line(a->fdinfo, "bpf_prog_missed:")) {
			printf("%s{\"hits\": %llu, \"missed\": %llu", separator,
			       number_of(a->fdinfo, "bpf_prog_hits:"), missed);
			sample_print_string("name", a->section);
			printf(", \"reasons\": {");
			print_reasons(a->fdinfo);
			printf("}}");
			separator = ", ";
		} else if (missed) {
			printf("not counted: %llu hits of %s (", missed, a->section);
			print_reasons(a->fdinfo);
			puts(")");
		}
	}
	if (sample_json)
		printf("]");
}

/* How many bytes are one character in UTF-8 other than ASCII, 0: they are none */
static int utf8_len(const unsigned char *c)
{
	int len = *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
	int i;

	for (i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	}
	/* longer than it need be, a surrogate, or beyond the last character */
	if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] >= 0xa0) ||
	    (*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] >= 0x90))
		return 0;
	return len;
}

void sample_print_string(const char *key, const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	int len;

	printf(", \"%s\": \"", key);
	for (; *c; c += len) {
		len = utf8_len(c) ?: 1;
		if (len > 1 || (*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\'))
			printf("%.*s", len, c);
		else
			printf("\\u%04x", *c);
	}
	putchar('"');
}

const char *sample_device(__u32 dev)
{
	static char text[32];

	snprintf(text, sizeof(text), "%u:%u", dev >> 20, dev & 0xfffff);
	return text;
}

char *sample_printable(char *text)
{
	char *c;

	for (c = text; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return text;
}
