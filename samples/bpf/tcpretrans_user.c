// SPDX-License-Identifier: GPL-2.0
/*
 * tcpretrans - counts the segments that TCP sends again, by destination
 *
 * SYNOPSIS
 *	tcpretrans [-a] [-j] [-d SECONDS] [-i SECONDS] [-v]
 *
 * DESCRIPTION
 *	Attaches BPF programs to the raw tracepoints tcp_retransmit_skb and
 *	tcp_retransmit_synack. Until it is stopped by SIGINT or SIGTERM, they count, for
 *	each address and port, of IPv4 and IPv6, in all network namespaces, the segments
 *	that are sent there again, and how many of them are a SYN or SYN-ACK: where there
 *	are no others, nobody answers. Then tcpretrans prints those with most segments, and
 *	what was not counted. The sum of all is what RetransSegs of /proc/net/snmp has
 *	risen by, without those that could not be sent, which are in TCPRetransFail of
 *	/proc/net/netstat.
 *
 *	To a server, each connection of a client is a destination of its own; -a leaves
 *	the ports out. Those that are more than fit the table are one entry of it.
 *
 *	-a		by address alone, whatever the port
 *	-d SECONDS	stop after that time
 *	-i SECONDS	print what was counted so far every so many seconds, too
 *	-j, --json	print a JSON object a line: all destinations, then one with
 *			"segments", all of them, and "programs", with the hits that they
 *			missed, by reason
 *	-v		show what libbpf has to say
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON. CONFIG_BPF_EVENTS, CONFIG_DEBUG_INFO_BTF.
 *	tcpretrans.bpf.o in the directory of the program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_sample.h"
#include "tcpretrans.h"

#define TOP 20	/* rows of the table */

struct row {
	struct tcpretrans_key		key;
	struct tcpretrans_counts	counts;
};

static const struct tcpretrans_key others;
static __u32 by_address;

static const char usage_text[] =
	"usage: tcpretrans [-a] [-j] [-d SECONDS] [-i SECONDS] [-v]\n"
	"Counts the segments that TCP sends again, by destination, until ^C.\n"
	"  -a          by address alone, whatever the port\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print what was counted so far every so many seconds, too\n"
	"  -j, --json  print JSON, an object a line\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static void option(int opt, const char *arg)
{
	by_address = 1;
}

static bool is_others(const struct row *row)
{
	return !memcmp(&row->key, &others, sizeof(others));
}

static void add(struct tcpretrans_counts *sum, const struct tcpretrans_counts *counts)
{
	sum->segments += counts->segments;
	sum->handshake += counts->handshake;
}

static int by_segments(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->counts.segments < y->counts.segments) -
	       (x->counts.segments > y->counts.segments);
}

/* Returns the number of rows that have segments, which come first. */
static int read_rows(struct bpf_map *map, struct row *rows, int max)
{
	const struct tcpretrans_key *last = NULL;
	struct row *row;
	int n = 0;

	while (n < max && !bpf_map__get_next_key(map, last, &rows[n].key, sizeof(others))) {
		row = &rows[n++];
		last = &row->key;
		if (bpf_map__lookup_elem(map, last, sizeof(*last), &row->counts,
					 sizeof(row->counts), 0))
			sample_fail(SAMPLE_RUN, "reading map destinations", errno);
	}
	qsort(rows, n, sizeof(*rows), by_segments);
	while (n && !rows[n - 1].counts.segments)
		n--;
	return n;
}

static const char *address(const struct tcpretrans_key *key)
{
	static char text[INET6_ADDRSTRLEN];
	bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)key->addr);

	return inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? &key->addr[3] : key->addr, text,
			 sizeof(text));
}

static void print_counts(const struct tcpretrans_counts *counts)
{
	printf("%10llu %10llu  ", counts->segments, counts->handshake);
}

static void print_row(const struct row *row)
{
	const char *text = address(&row->key);

	print_counts(&row->counts);
	if (is_others(row))
		puts("(more than fit the table)");
	else if (by_address)
		puts(text);
	else
		printf(strchr(text, ':') ? "[%s]:%u\n" : "%s:%u\n", text, row->key.port);
}

static void print_table(const struct row *rows, int n)
{
	struct tcpretrans_counts all = {}, rest = {};
	int i;

	printf("%.1f s\n%10s %10s  %s\n", sample_time(), "SEGMENTS", "HANDSHAKE", "DESTINATION");
	for (i = 0; i < n; i++) {
		add(&all, &rows[i].counts);
		if (i < TOP)
			print_row(&rows[i]);
		else
			add(&rest, &rows[i].counts);
	}
	if (n > TOP) {
		print_counts(&rest);
		puts("(all others)");
	}
	print_counts(&all);
	puts("total");
	sample_print_missed();
}

static void print_json(const struct row *rows, int n)
{
	struct tcpretrans_counts all = {};
	const struct row *row;

	for (row = rows; row < rows + n; row++) {
		add(&all, &row->counts);
		printf("{\"segments\": %llu, \"handshake\": %llu", row->counts.segments,
		       row->counts.handshake);
		if (!is_others(row)) {
			sample_print_string("address", address(&row->key));
			if (!by_address)
				printf(", \"port\": %u", row->key.port);
		}
		puts("}");
	}
	printf("{\"seconds\": %.3f, \"segments\": %llu, \"handshake\": %llu", sample_time(),
	       all.segments, all.handshake);
	sample_print_missed();
	puts("}");
}

static void report(struct bpf_map *map)
{
	int max = bpf_map__max_entries(map), n;
	struct row *rows = calloc(max, sizeof(*rows));

	if (!rows)
		sample_fail(SAMPLE_RUN, "the table", ENOMEM);
	n = read_rows(map, rows, max);
	if (sample_json)
		print_json(rows, n);
	else
		print_table(rows, n);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
	free(rows);
}

int main(int argc, char **argv)
{
	static const struct tcpretrans_counts none;
	struct bpf_object *obj;
	struct bpf_map *map;
	int err;

	sample_options(argc, argv, usage_text, "ai:j", option);
	obj = sample_load();
	map = bpf_object__find_map_by_name(obj, "destinations");
	err = bpf_map__update_elem(map, &others, sizeof(others), &none, sizeof(none), BPF_NOEXIST);
	if (err)
		sample_fail(SAMPLE_RUN, "writing to map destinations", err);
	sample_set(obj, "by_address", &by_address, sizeof(by_address));
	sample_attach(obj);
	sample_start("counting");

	while (sample_wait(sample_interval))
		report(map);
	sample_detach();
	report(map);
	bpf_object__close(obj);
	return 0;
}
