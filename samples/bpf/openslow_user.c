// SPDX-License-Identifier: GPL-2.0
/*
 * openslow - shows the opens that take long
 *
 * SYNOPSIS
 *	openslow [-j] [-d SECONDS] [-m US] [-v]
 *
 * DESCRIPTION
 *	Attaches a BPF program to both ends of do_filp_open() by a session of kprobes:
 *	open(), openat(), openat2() and creat(), those of 32-bit programs and of io_uring,
 *	and exec all go through it. Until it is stopped by SIGINT or SIGTERM, openslow
 *	prints each open that took long when it is over: the process, the name of the
 *	thread, the time, the errno, the device and inode number of what was opened, and
 *	the path as the caller gave it. At its end it says how many there were, and what
 *	was lost.
 *
 *	An errno above 511 is the kernel's own; a signal interrupts a call with one.
 *
 *	-d SECONDS	stop after that time
 *	-j, --json	print a JSON object a line; the last one has "calls", all that
 *			were measured; "slow", those that took long; "lost_records" of
 *			them; "lost_starts", which were not measured; and "programs", with
 *			their hits, two a call, and those that they missed, by reason
 *	-m US		that many microseconds are long, instead of 1000; 0 shows all
 *	-v		show what libbpf has to say
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON. CONFIG_BPF_EVENTS, CONFIG_FPROBE, CONFIG_DEBUG_INFO_BTF.
 *	openslow.bpf.o in the directory of the program.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "event_sample.h"
#include "openslow.h"

static __u64 min_ns = 1000 * 1000;

static const char usage_text[] =
	"usage: openslow [-j] [-d SECONDS] [-m US] [-v]\n"
	"Shows the opens that take long, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -j, --json  print JSON, an object a line\n"
	"  -m US       that many microseconds are long, instead of 1000\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static void option(int opt, const char *arg)
{
	min_ns = sample_parse_us(arg);
}

static void print_json(const struct openslow_event *event)
{
	printf("{\"pid\": %u", event->pid);
	sample_print_string("comm", event->comm);
	printf(", \"ns\": %llu, \"error\": %u", event->ns, event->error);
	if (!event->error) {
		sample_print_string("device", sample_device(event->dev));
		printf(", \"inode\": %llu", event->ino);
	}
	sample_print_string("path", event->path);
	puts("}");
}

static void print_line(struct openslow_event *event)
{
	char inode[32] = "-";

	if (!event->error)
		snprintf(inode, sizeof(inode), "%llu", event->ino);
	printf("%7u %-15s %12.1f %5u %7s %9s %s\n", event->pid, sample_printable(event->comm),
	       event->ns / 1e3, event->error, event->error ? "-" : sample_device(event->dev),
	       inode, sample_printable(event->path));
}

static int print_event(void *ctx, void *data, size_t size)
{
	static struct openslow_event event;
	static unsigned int count;

	memcpy(&event, data, size);
	if (sample_json)
		print_json(&event);
	else
		print_line(&event);
	/* If records come faster than they are printed: time and signals have their turn, too. */
	return ++count % 1024 ? 0 : -EAGAIN;
}

static void print_totals(const __u64 *totals)
{
	if (sample_json) {
		printf("{\"seconds\": %.3f, \"calls\": %llu, \"slow\": %llu", sample_time(),
		       totals[OPENSLOW_CALLS], totals[OPENSLOW_SLOW]);
		printf(", \"lost_records\": %llu, \"lost_starts\": %llu",
		       totals[OPENSLOW_LOST_RECORDS], totals[OPENSLOW_LOST_STARTS]);
		sample_print_missed();
		puts("}");
		return;
	}
	printf("%.1f s, %llu opens, %llu of them took %g us or more\n", sample_time(),
	       totals[OPENSLOW_CALLS], totals[OPENSLOW_SLOW], min_ns / 1e3);
	if (totals[OPENSLOW_LOST_RECORDS])
		printf("not shown: %llu of these, there was no room for their record\n",
		       totals[OPENSLOW_LOST_RECORDS]);
	if (totals[OPENSLOW_LOST_STARTS])
		printf("not measured: %llu opens, there was no room for their start\n",
		       totals[OPENSLOW_LOST_STARTS]);
	sample_print_missed();
}

int main(int argc, char **argv)
{
	__u64 totals[OPENSLOW_TOTALS];
	struct ring_buffer *ring;
	struct bpf_object *obj;
	int fd;

	sample_options(argc, argv, usage_text, "jm:", option);
	obj = sample_load();
	sample_set(obj, "threshold", &min_ns, sizeof(min_ns));
	fd = bpf_object__find_map_fd_by_name(obj, "events");
	ring = ring_buffer__new(fd, print_event, NULL, NULL);
	if (!ring)
		sample_fail(SAMPLE_RUN, "the ring buffer", errno);
	sample_attach(obj);
	sample_start("measuring");

	if (!sample_json)
		printf("%7s %-15s %12s %5s %7s %9s %s\n", "PID", "COMMAND", "us", "ERRNO",
		       "DEVICE", "INODE", "PATH");
	do {
		ring_buffer__consume(ring);
		if (fflush(stdout))
			sample_fail(SAMPLE_RUN, "stdout", errno);
	} while (sample_wait_for(ring_buffer__epoll_fd(ring), INFINITY));
	sample_detach();
	while (ring_buffer__consume(ring) == -EAGAIN)
		;	/* what is left */
	sample_read_counts(obj, "totals", totals);
	print_totals(totals);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	ring_buffer__free(ring);
	bpf_object__close(obj);
	return 0;
}
