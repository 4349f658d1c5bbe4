// SPDX-License-Identifier: GPL-2.0
/*
 * tracex3 - how long block devices take, as a moving heatmap
 *
 * SYNOPSIS
 *	tracex3 [-c COLOURS] [-d SECONDS] [-i SECONDS] [-v]
 *
 * DESCRIPTION
 *	Makes BPF programs the filters of the trace events block:block_rq_issue
 *	and block:block_rq_complete. They turn down every event, and count the
 *	requests by the time between the two; that is in an instance of the trace,
 *	so that all others get the events.
 *
 *	Every second, tracex3 prints a row for the requests that were completed in
 *	that second. From left to right they took longer, on a logarithmic scale
 *	from 8 us to half a second; the brighter a spot, the more of them took
 *	that long. White is the most in this row. Rows scroll up until tracex3 is
 *	stopped by SIGINT or SIGTERM; then it sums up.
 *
 *	-c COLOURS	256 for 24 shades of grey, 16 for 4 of them, 0 for characters.
 *			The default is what fits the terminal ($TERM); 0 if stdout
 *			is none.
 *	-d SECONDS	stop after that time
 *	-i SECONDS	print a row so often, instead of every second
 *	-v		show what libbpf has to say
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON, and root's tracefs at /sys/kernel/tracing.
 *	CONFIG_BPF_EVENTS, CONFIG_DEBUG_INFO_BTF. tracex3.bpf.o in the directory
 *	of the program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_filter.h"
#include "event_sample.h"
#include "tracex3.h"

#define ROWS_PER_AXIS 20

static int colours = -1;

static const char usage_text[] =
	"usage: tracex3 [-c COLOURS] [-d SECONDS] [-i SECONDS] [-v]\n"
	"Draws a heatmap of how long block devices take, row by row, until ^C.\n"
	"  -c COLOURS  256, 16 or 0, instead of what fits the terminal\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print a row so often, instead of every second\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static void option(int opt, const char *arg)
{
	colours = atoi(arg);
	if (strcmp(arg, "0") && colours != 16 && colours != 256)
		sample_usage();
}

static int colours_of_terminal(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return 0;
	return strstr(term, "256color") || getenv("COLORTERM") ? 256 : 16;
}

static const char characters[] = " .:-=+*#%@";
static const int greys[] = { 40, 100, 47, 107 };	/* SGR: black to white */

static int shades(void)
{
	return colours == 256 ? 24 : colours == 16 ? 4 : sizeof(characters) - 1;
}

static void print_shade(int shade)
{
	if (colours == 256)
		printf("\033[48;5;%dm ", 232 + shade);
	else if (colours == 16)
		printf("\033[%dm ", greys[shade]);
	else
		putchar(characters[shade]);
}

static void end_shades(void)
{
	if (colours)
		fputs("\033[0m", stdout);
}

/* Where a slot begins. */
static const char *time_text(int slot)
{
	double us = ((4ULL + slot % 4) << (FIRST_POWER - 2 + slot / 4)) / 1e3;
	double value = us < 1000 ? us : us / 1000;
	static char text[16];

	snprintf(text, sizeof(text), "%.*f%s", value < 10, value, us < 1000 ? "us" : "ms");
	return text;
}

static void print_axis(void)
{
	int slot;

	printf("%6s ", "s");
	for (slot = 0; slot < SLOTS; slot += 8)
		printf("|%-7s", time_text(slot));
	printf("%8s\n", "requests");
}

static void print_legend(void)
{
	int shade;

	fputs("none ", stdout);
	for (shade = 0; shade < shades(); shade++)
		print_shade(shade);
	end_shades();
	puts(" most requests of the row took that long");
}

static void print_row(const __u64 *counts)
{
	__u64 most = 1, sum = 0;
	int slot;

	for (slot = 0; slot < SLOTS; slot++) {
		sum += counts[slot];
		if (counts[slot] > most)
			most = counts[slot];
	}
	printf("%6.1f ", sample_time());
	for (slot = 0; slot < SLOTS; slot++)	/* rounded up: even one is seen */
		print_shade((counts[slot] * (shades() - 1) + most - 1) / most);
	end_shades();
	printf("%8llu\n", sum);
}

/* What has been counted since the last time, @now is all that has been so far. */
static void count_since(struct bpf_object *obj, __u64 *now, __u64 *since)
{
	__u64 before[SLOTS];
	int slot;

	memcpy(before, now, sizeof(before));
	sample_read_counts(obj, "latencies", now);
	for (slot = 0; slot < SLOTS; slot++)
		since[slot] = now[slot] - before[slot];
}

/* The end of the slot that the request at this share of all is in. */
static const char *within(const __u64 *counts, __u64 total, double share)
{
	__u64 sum = 0;
	int slot;

	for (slot = 0; slot < SLOTS - 1; slot++) {
		sum += counts[slot];
		if (sum >= total * share)
			break;
	}
	return time_text(slot + 1);
}

static void summary(const __u64 *counts)
{
	__u64 total = 0;
	int slot;

	for (slot = 0; slot < SLOTS; slot++)
		total += counts[slot];
	printf("%llu requests", total);
	if (total) {
		printf(", half of them took less than %s", within(counts, total, 0.5));
		printf(", 99%% less than %s", within(counts, total, 0.99));
	}
	puts("");
}

int main(int argc, char **argv)
{
	__u64 all[SLOTS] = {}, row[SLOTS];
	struct bpf_object *obj;
	bool more = true;
	int rows = 0;

	sample_interval = 1;
	sample_options(argc, argv, usage_text, "c:i:", option);
	if (colours < 0)
		colours = colours_of_terminal();
	obj = sample_load();
	event_filter_instance("tracex3");
	sample_attach(obj);
	sample_start("measuring");

	print_legend();
	while (more) {
		if (rows++ % ROWS_PER_AXIS == 0)
			print_axis();
		fflush(stdout);
		more = sample_wait(sample_interval);
		if (!more)
			sample_detach();
		count_since(obj, all, row);
		print_row(row);
	}
	summary(all);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	bpf_object__close(obj);
	return 0;
}
