// SPDX-License-Identifier: GPL-2.0
/*
 * dropmon - counts dropped packets by the place that drops them
 *
 * SYNOPSIS
 *	dropmon [-d SECONDS] [-i SECONDS]
 *
 * DESCRIPTION
 *	Makes a BPF program the filter of the trace event skb:kfree_skb. The
 *	program is written in BPF assembly, is loaded without an object file, and
 *	turns down every event; it only counts, by the address that the event has
 *	as its location. That is in an instance of the trace, so that all others
 *	get the events. Until it is stopped by SIGINT or SIGTERM, dropmon prints
 *	every second what was counted since it was started, and the drops that the
 *	program missed, if any. The functions have the names of that time, so start
 *	it after the modules.
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON, and root's tracefs at /sys/kernel/tracing;
 *	CAP_SYSLOG to see names instead of plain addresses. CONFIG_BPF_EVENTS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>

#include "bpf_insn.h"
#include "event_sample.h"

#define INSTANCE	"/sys/kernel/tracing/instances/dropmon"
#define FILTER		INSTANCE "/events/skb/kfree_skb/filter"
#define MAX		1024	/* locations */

/* The functions of the kernel that /proc/kallsyms names, by address */
static struct symbol {
	__u64	addr;
	char	name[64];
} *symbols;
static size_t nr_symbols;


static const char usage_text[] =
	"usage: dropmon [-d SECONDS] [-i SECONDS]\n"
	"Counts dropped packets by the place that drops them, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print the counts so often, instead of every second\n"
	"  -h          show this\n";

/*
 * int count_drop(__u64 *args)	// of kfree_skb: skb, location, reason, rx_sk
 * {
 *	__u64 location = args[1], one = 1, *count;
 *
 *	count = bpf_map_lookup_elem(&map, &location);
 *	if (count)
 *		goto add;
 *	if (!bpf_map_update_elem(&map, &location, &one, BPF_NOEXIST))
 *		return 0;	// the event is not recorded
 *
 *	// another CPU was first, or there is no room: 0 is for all other locations
 *	count = bpf_map_lookup_elem(&map, &location);
 *	if (count)
 *		goto add;
 *	location = 0;
 *	count = bpf_map_lookup_elem(&map, &location);
 *	if (count)
 * add:		__sync_fetch_and_add(count, 1);
 *	return 0;
 * }
 */
static int load_program(int map)
{
	static char log[1 << 16];
	struct bpf_insn prog[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, 8),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_2, -8),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 23),

		BPF_ST_MEM(BPF_DW, BPF_REG_10, -16, 1),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, -16),
		BPF_MOV64_IMM(BPF_REG_4, BPF_NOEXIST),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_update_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 15),

		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 7),

		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 2),

		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_0, BPF_REG_1, 0),

		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = sizeof(log));
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "count_drop", "GPL", prog,
			       sizeof(prog) / sizeof(*prog), &opts);

	if (fd < 0) {
		fputs(log, stderr);
		sample_fail(SAMPLE_LOAD, "loading the program", errno);
	}
	return fd;
}

static int attach(int prog)
{
	bool made = !mkdir(INSTANCE, 0755);
	int filter, err;

	if (!made && errno != EEXIST)
		sample_fail(SAMPLE_ATTACH, INSTANCE, errno);
	filter = open(FILTER, O_WRONLY);
	if (filter >= 0 && dprintf(filter, "bpf-%d", prog) >= 0)
		return filter;	/* the program is the filter until this is closed */
	err = errno;
	close(filter);
	if (made)
		rmdir(INSTANCE);
	sample_fail(SAMPLE_ATTACH, FILTER, err);
}

static void detach(int filter)
{
	close(filter);
	rmdir(INSTANCE);
}

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void read_symbols(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	struct symbol symbol;
	char line[512], type;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %c %63s", &symbol.addr, &type, symbol.name) < 3 ||
		    !symbol.addr || !strchr("tTwW", type))
			continue;
		if (!(nr_symbols & (nr_symbols - 1)))	/* is full */
			symbols = realloc(symbols, (2 * nr_symbols ?: 1) * sizeof(*symbols));
		if (!symbols)
			sample_fail(SAMPLE_RUN, "/proc/kallsyms", ENOMEM);
		symbols[nr_symbols++] = symbol;
	}
	if (f)
		fclose(f);
	qsort(symbols, nr_symbols, sizeof(*symbols), by_addr);
}

/* The function that an address is in, as NAME+0xOFFSET, or the plain address. */
static const char *name_of(__u64 addr)
{
	size_t from = 0, to = nr_symbols, middle;
	static char name[96];

	while (from < to) {	/* those before are at or below it, those behind above */
		middle = from + (to - from) / 2;
		if (symbols[middle].addr <= addr)
			from = middle + 1;
		else
			to = middle;
	}
	snprintf(name, sizeof(name), "0x%llx", addr);
	if (from)
		snprintf(name, sizeof(name), "%s+0x%llx", symbols[from - 1].name,
			 addr - symbols[from - 1].addr);
	return name;
}

/* What the program missed, which fdinfo of its filter says, on a kernel that counts it */
static __u64 missed_by(int filter)
{
	static const char key[] = "bpf_prog_missed:";
	char path[64], text[1024];
	const char *at;
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", filter);
	fd = open(path, O_RDONLY);
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	at = strstr(text, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void report(int map, __u64 missed)
{
	__u64 addr, count, total = 0, *last = NULL;

	printf("%7.1f s\n", sample_time());
	while (!bpf_map_get_next_key(map, last, &addr)) {
		last = &addr;
		if (bpf_map_lookup_elem(map, &addr, &count) || !count)
			continue;
		printf("%9llu  %s\n", count, addr ? name_of(addr) : "other places");
		total += count;
	}
	printf("%9llu  total\n", total);
	if (missed)
		printf("%9llu  missed\n", missed);
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
}

int main(int argc, char **argv)
{
	__u64 other = 0, missed;
	int map, filter;

	sample_interval = 1;
	sample_options(argc, argv, usage_text, "i:", NULL);
	map = bpf_map_create(BPF_MAP_TYPE_HASH, "drops", sizeof(__u64), sizeof(__u64), MAX + 1,
			     NULL);
	if (map < 0 || bpf_map_update_elem(map, &other, &other, BPF_ANY))
		sample_fail(SAMPLE_LOAD, "creating the map", errno);
	read_symbols();
	filter = attach(load_program(map));
	sample_start("counting");

	while (sample_wait(sample_interval))
		report(map, missed_by(filter));
	missed = missed_by(filter);
	detach(filter);
	report(map, missed);
	return 0;
}
