// SPDX-License-Identifier: GPL-2.0
/*
 * fsynclat - how long fsync() and fdatasync() take, by process and file
 *
 * SYNOPSIS
 *	fsynclat [-j] [-d SECONDS] [-i SECONDS] [-m US] [-v]
 *
 * DESCRIPTION
 *	Attaches a BPF program to both ends of the two system calls by a session of
 *	kprobes. Until it is stopped by SIGINT or SIGTERM, the program counts, for each
 *	process and file, the calls, those that failed, their time and the longest. Then
 *	fsynclat prints those that took most time together, and what was not counted.
 *
 *	A file has the name that it has in its directory; files of one name are told
 *	apart by the device of their filesystem and the inode number. Processes and files
 *	that are more than fit the table are one entry of it.
 *
 *	Writes to files with O_SYNC, msync(), sync_file_range(), and fsync by io_uring and
 *	aio do not count, nor do the calls of 32-bit programs on a 64-bit kernel, nor
 *	those with a descriptor that is not open.
 *
 *	-d SECONDS	stop after that time
 *	-i SECONDS	print what was counted so far every so many seconds, too
 *	-j, --json	print a JSON object a line: all processes and files, then one with
 *			"calls", all of them; "short", those below US; "lost_starts"; and
 *			"programs", with their hits, two a call, and those that
 *			they missed, by reason
 *	-m US		only calls that took so many microseconds are in the table
 *	-v		show what libbpf has to say
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON. CONFIG_BPF_EVENTS, CONFIG_FPROBE, CONFIG_DEBUG_INFO_BTF.
 *	fsynclat.bpf.o in the directory of the program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_sample.h"
#include "fsynclat.h"

#define TOP 20	/* rows of the table */

struct row {
	struct fsynclat_key	key;
	struct fsynclat_names	names;
	struct fsynclat_stats	stats;
};

static const struct fsynclat_key others;
static __u64 min_ns;

static const char usage_text[] =
	"usage: fsynclat [-j] [-d SECONDS] [-i SECONDS] [-m US] [-v]\n"
	"Measures fsync() and fdatasync(), by process and file, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print what was counted so far every so many seconds, too\n"
	"  -j, --json  print JSON, an object a line\n"
	"  -m US       only calls that took so many microseconds are in the table\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static void option(int opt, const char *arg)
{
	min_ns = sample_parse_us(arg);
}

static bool is_others(const struct row *row)
{
	return !memcmp(&row->key, &others, sizeof(others));
}

static void add(struct fsynclat_stats *sum, const struct fsynclat_stats *stats)
{
	sum->calls += stats->calls;
	sum->errors += stats->errors;
	sum->ns += stats->ns;
	if (sum->max_ns < stats->max_ns)
		sum->max_ns = stats->max_ns;
}

static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->stats.ns < y->stats.ns) - (x->stats.ns > y->stats.ns);
}

/* Returns the number of rows that have calls, which come first. */
static int read_rows(struct bpf_object *obj, struct row *rows, int max)
{
	struct bpf_map *stats = bpf_object__find_map_by_name(obj, "stats");
	struct bpf_map *names = bpf_object__find_map_by_name(obj, "names");
	int cpus = libbpf_num_possible_cpus(), n = 0, cpu;
	struct fsynclat_stats per_cpu[cpus];
	const struct fsynclat_key *last = NULL;
	struct row *row;

	while (n < max && !bpf_map__get_next_key(stats, last, &rows[n].key, sizeof(others))) {
		row = &rows[n++];
		last = &row->key;
		if (bpf_map__lookup_elem(stats, last, sizeof(*last), per_cpu, sizeof(per_cpu), 0))
			sample_fail(SAMPLE_RUN, "reading map stats", errno);
		for (cpu = 0; cpu < cpus; cpu++)
			add(&row->stats, &per_cpu[cpu]);
		if (!is_others(row))
			bpf_map__lookup_elem(names, last, sizeof(*last), &row->names,
					     sizeof(row->names), 0);
	}
	qsort(rows, n, sizeof(*rows), by_time);
	while (n && !rows[n - 1].stats.calls)
		n--;
	return n;
}

static double us(__u64 ns)
{
	return ns / 1e3;
}

static void print_stats(const struct fsynclat_stats *s)
{
	printf("%9llu %7llu %12.1f %12.1f", s->calls, s->errors,
	       s->calls ? us(s->ns) / s->calls : 0, us(s->max_ns));
}

static void print_row(struct row *row)
{
	const struct fsynclat_key *key = &row->key;

	print_stats(&row->stats);
	if (is_others(row)) {
		puts("  (more than fit the table)");
		return;
	}
	printf(" %7u %-15s %7s %9llu %s\n", key->pid, sample_printable(row->names.comm),
	       sample_device(key->dev), key->ino, sample_printable(row->names.file));
}

static void print_table(struct row *rows, int n, const __u64 *totals)
{
	struct fsynclat_stats all = {}, rest = {};
	int i;

	printf("%.1f s\n%9s %7s %12s %12s %7s %-15s %7s %9s %s\n", sample_time(), "CALLS",
	       "ERRORS", "AVERAGE us", "MAX us", "PID", "COMMAND", "DEVICE", "INODE", "FILE");
	for (i = 0; i < n; i++) {
		add(&all, &rows[i].stats);
		if (i < TOP)
			print_row(&rows[i]);
		else
			add(&rest, &rows[i].stats);
	}
	if (n > TOP) {
		print_stats(&rest);
		puts("  (all others)");
	}
	print_stats(&all);
	puts("  total");
	if (min_ns)
		printf("not in the table: %llu calls of less than %g us\n",
		       totals[FSYNCLAT_SHORT], us(min_ns));
	if (totals[FSYNCLAT_LOST_STARTS])
		printf("not counted: %llu calls, there was no room for their start\n",
		       totals[FSYNCLAT_LOST_STARTS]);
	sample_print_missed();
}

static void print_json(const struct row *rows, int n, const __u64 *totals)
{
	__u64 calls = totals[FSYNCLAT_SHORT] + totals[FSYNCLAT_LOST_STARTS];
	const struct row *row;

	for (row = rows; row < rows + n; row++) {
		const struct fsynclat_stats *s = &row->stats;

		calls += s->calls;
		printf("{\"calls\": %llu, \"errors\": %llu", s->calls, s->errors);
		printf(", \"ns\": %llu, \"average_ns\": %llu, \"max_ns\": %llu", s->ns,
		       s->ns / s->calls, s->max_ns);
		if (!is_others(row)) {
			printf(", \"pid\": %u", row->key.pid);
			sample_print_string("comm", row->names.comm);
			sample_print_string("device", sample_device(row->key.dev));
			printf(", \"inode\": %llu", row->key.ino);
			sample_print_string("file", row->names.file);
		}
		puts("}");
	}
	printf("{\"seconds\": %.3f, \"calls\": %llu, \"short\": %llu, \"lost_starts\": %llu",
	       sample_time(), calls, totals[FSYNCLAT_SHORT], totals[FSYNCLAT_LOST_STARTS]);
	sample_print_missed();
	puts("}");
}

static void report(struct bpf_object *obj)
{
	int max = bpf_map__max_entries(bpf_object__find_map_by_name(obj, "stats")), n;
	struct row *rows = calloc(max, sizeof(*rows));
	__u64 totals[FSYNCLAT_TOTALS];

	if (!rows)
		sample_fail(SAMPLE_RUN, "the table", ENOMEM);
	n = read_rows(obj, rows, max);
	sample_read_counts(obj, "totals", totals);
	if (sample_json)
		print_json(rows, n, totals);
	else
		print_table(rows, n, totals);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	free(rows);
}

static void add_others(struct bpf_object *obj)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct fsynclat_stats none[cpus];

	memset(none, 0, sizeof(none));
	err = bpf_map__update_elem(bpf_object__find_map_by_name(obj, "stats"), &others,
				   sizeof(others), none, sizeof(none), BPF_NOEXIST);
	if (err)
		sample_fail(SAMPLE_RUN, "writing to map stats", err);
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;

	sample_options(argc, argv, usage_text, "i:jm:", option);
	obj = sample_load();
	add_others(obj);
	sample_set(obj, "threshold", &min_ns, sizeof(min_ns));
	sample_attach(obj);
	sample_start("measuring");

	while (sample_wait(sample_interval))
		report(obj);
	sample_detach();
	report(obj);
	bpf_object__close(obj);
	return 0;
}
