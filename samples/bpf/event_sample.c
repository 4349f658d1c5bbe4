// SPDX-License-Identifier: GPL-2.0
/* What dropmon, lostcat, tracex1, tracex3 and tracex4 have in common, see event_sample.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static struct bpf_link *links[MAX_PROGS];

static const char *load_hint(int err)
{
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

double sample_parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && seconds > 0 && seconds < NEVER)
		return seconds;
	fprintf(stderr, "%s: '%s' is not a number of seconds\n", program_invocation_short_name,
		text);
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
	sigset_t signals;
	int opt;

	usage_text = usage;
	snprintf(known, sizeof(known), "d:vh%s", more);
	while ((opt = getopt_long(argc, argv, known, longs, NULL)) != -1) {
		if (opt == 'd')
			duration = sample_parse_seconds(optarg);
		else if (opt == 'v')
			verbose = true;
		else if (opt == 'h')
			exit(fputs(usage, stdout) < 0);
		else if (!strchr(known, opt) || opt == '?')
			sample_usage();
		else
			option(opt, optarg);
	}
	if (optind < argc)
		sample_usage();

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
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
	int n = 0;

	atexit(sample_detach);
	attaching = true;
	bpf_object__for_each_program(prog, obj) {
		links[n] = bpf_program__attach(prog);
		if (!links[n++])
			sample_fail(SAMPLE_ATTACH, bpf_program__section_name(prog), errno);
	}
	attaching = false;
}

void sample_detach(void)
{
	int i;

	for (i = 0; i < MAX_PROGS; i++) {
		bpf_link__destroy(links[i]);
		links[i] = NULL;
	}
}

bool sample_wait(double seconds)
{
	double until = sample_time() + seconds, left;
	struct timespec t = {};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	if (until > duration)
		until = duration;
	while ((left = until - sample_time()) > 0) {
		t.tv_sec = left;
		t.tv_nsec = (left - t.tv_sec) * 1e9;
		if (sigtimedwait(&signals, NULL, &t) > 0)
			return false;
	}
	return until < duration;
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
