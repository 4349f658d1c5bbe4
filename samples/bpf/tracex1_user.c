// SPDX-License-Identifier: GPL-2.0
/*
 * tracex1 - shows the packets that are received from the loopback interface
 *
 * SYNOPSIS
 *	tracex1 [-d SECONDS] [-v]
 *
 * DESCRIPTION
 *	Makes a BPF program the filter of the trace event net:netif_receive_skb,
 *	and copies the trace to stdout until it is stopped by SIGINT or SIGTERM.
 *	The program lets only those events pass whose dev->name is "lo"; all
 *	others are turned down before they take any space in the trace. At its end
 *	tracex1 says how many they were.
 *
 *	The trace is everybody's: if other events are enabled, they are shown, too.
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON, and root's tracefs at /sys/kernel/tracing.
 *	CONFIG_BPF_EVENTS, CONFIG_DEBUG_INFO_BTF. tracex1.bpf.o in the directory
 *	of the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "event_sample.h"

#define TRACE_PIPE "/sys/kernel/tracing/trace_pipe"

static const char usage_text[] =
	"usage: tracex1 [-d SECONDS] [-v]\n"
	"Shows the packets that are received from lo, as trace events, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

/* Copies what is there, but at most @reads times: the trace can fill as fast as it is copied. */
static void copy(int from, int reads)
{
	char text[4096];
	ssize_t len = 0;

	while (reads--) {
		len = read(from, text, sizeof(text));
		if (len <= 0)
			break;
		if (fwrite(text, 1, len, stdout) != len || fflush(stdout))
			sample_fail(SAMPLE_RUN, "stdout", errno);
	}
	if (len < 0 && errno != EAGAIN)
		sample_fail(SAMPLE_RUN, TRACE_PIPE, errno);
}

int main(int argc, char **argv)
{
	struct bpf_object *obj;
	__u64 turned_down;
	int trace;

	sample_options(argc, argv, usage_text, "", NULL);
	obj = sample_load();
	sample_attach(obj);
	trace = open(TRACE_PIPE, O_RDONLY | O_NONBLOCK);
	if (trace < 0)
		sample_fail(SAMPLE_RUN, errno == EBUSY ? "somebody else reads " TRACE_PIPE :
			    TRACE_PIPE, errno);
	sample_start("showing packets from lo");

	while (sample_wait_for(trace, 0.2))
		copy(trace, 256);
	sample_detach();
	copy(trace, 1 << 16);
	sample_read_counts(obj, "turned_down", &turned_down);
	printf("%llu packets on other devices were turned down\n", turned_down);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	bpf_object__close(obj);
	return 0;
}
