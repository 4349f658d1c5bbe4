// SPDX-License-Identifier: GPL-2.0
/*
 * tracex4 - how large the writes are
 *
 * SYNOPSIS
 *	tracex4 [-d SECONDS] [-v]
 *
 * DESCRIPTION
 *	Makes BPF programs the filters of two trace events: a kprobe on
 *	ksys_write(), the function behind write(2), and the entry of the system
 *	call. They turn down every event, and count; that is in an instance of the
 *	trace, so that all others get the events. When it is stopped by SIGINT or
 *	SIGTERM, tracex4 prints both counts by size, in powers of two.
 *
 *	The two differ by calls that were under way when counting began or ended,
 *	and by those of 32-bit programs on a 64-bit kernel, which are no system
 *	calls to the trace.
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON, and root's tracefs at /sys/kernel/tracing.
 *	CONFIG_BPF_EVENTS, CONFIG_KPROBE_EVENTS, CONFIG_FTRACE_SYSCALLS,
 *	CONFIG_DEBUG_INFO_BTF. tracex4.bpf.o in the directory of the program.
 */
#include <errno.h>
#include <stdio.h>

#include "event_filter.h"
#include "event_sample.h"

#define BAR 24		/* characters of the longest bar */

static const char usage_text[] =
	"usage: tracex4 [-d SECONDS] [-v]\n"
	"Counts calls of write(2) by size, by kprobe and by system call, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static void print_range(int slot, bool last)
{
	__u64 from = slot ? 1ULL << (slot - 1) : 0;

	if (slot < 2)
		printf("  %23llu", from);
	else if (last)
		printf("  %10llu %-12s", from, "and more");
	else
		printf("  %10llu - %10llu", from, 2 * from - 1);
}

static void report(struct bpf_object *obj)
{
	int slots = bpf_map__max_entries(bpf_object__find_map_by_name(obj, "kprobe"));
	__u64 kprobe[slots], syscall[slots], most = 1, totals[2] = {};
	int first = slots, last = 0, i;

	sample_read_counts(obj, "kprobe", kprobe);
	sample_read_counts(obj, "syscall", syscall);
	for (i = 0; i < slots; i++) {
		totals[0] += kprobe[i];
		totals[1] += syscall[i];
		if (kprobe[i] > most)
			most = kprobe[i];
		if (!kprobe[i] && !syscall[i])
			continue;
		last = i;
		if (first > i)
			first = i;
	}

	printf("  %23s %11s %15s\n", "bytes", "ksys_write", "sys_enter_write");
	for (i = first; i <= last; i++) {
		/* rounded up, so that even a single call can be seen */
		int bar = (kprobe[i] * BAR + most - 1) / most;

		print_range(i, i == slots - 1);
		printf(" %11llu %15llu%s%.*s\n", kprobe[i], syscall[i], bar ? "  " : "", bar,
		       "########################");
	}
	printf("  %23s %11llu %15llu\n", "total", totals[0], totals[1]);
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;

	sample_options(argc, argv, usage_text, "", NULL);
	obj = sample_load();
	event_filter_instance("tracex4");
	sample_attach(obj);
	sample_start("counting");

	while (sample_wait(1))
		;
	sample_detach();
	report(obj);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	bpf_object__close(obj);
	return 0;
}
