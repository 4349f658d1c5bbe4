// SPDX-License-Identifier: GPL-2.0
/*
 * tracex2 - who drops packets, and how large the writes are
 *
 * SYNOPSIS
 *	tracex2 [-d SECONDS] [-i SECONDS] [-v]
 *
 * DESCRIPTION
 *	Attaches BPF programs to two kprobes, lets them count until it is
 *	stopped by SIGINT or SIGTERM, detaches them and prints
 *	- the call sites that dropped packets, the busiest first. A call site is
 *	  the address that a call of the kernel's drop function returns to, shown
 *	  as function+offset [module] with the help of /proc/kallsyms. A packet
 *	  that has more than one owner counts each time that one lets go of it;
 *	- a histogram of the sizes that write(2) was asked to write, in powers of
 *	  two. Other calls that write (writev, pwrite64, io_uring) do not count,
 *	  nor do the system calls of 32-bit programs on a 64-bit kernel.
 *
 *	-d SECONDS	stop after that time
 *	-i SECONDS	print what was counted so far every so many seconds, too;
 *			such a report is itself one of the writes
 *	-v		show what libbpf has to say
 *
 *	Exits with 0 when it has printed a report, 1 when it could not count,
 *	2 when it was called wrongly.
 *
 * REQUIREMENTS
 *	CAP_BPF and CAP_PERFMON, and CAP_SYSLOG to see names instead of plain
 *	addresses; so run it as root. CONFIG_BPF_EVENTS, CONFIG_KPROBE_EVENTS and
 *	CONFIG_DEBUG_INFO_BTF. tracex2.bpf.o in the directory of the program.
 *
 * BUILD
 *	At the top of a kernel tree that is built. The variables keep make from
 *	building every other sample as well:
 *
 *	make headers_install
 *	make M=samples/bpf tprogs-y=tracex2 \
 *	     always-y="samples/bpf/tracex2 samples/bpf/tracex2.bpf.o"
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/utsname.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define TOP 10		/* call sites shown one by one */
#define BAR 34		/* characters of the longest bar */
#define NEVER 1e9	/* a number of seconds */

struct site {
	__u64 addr;
	__u64 count;
	__u64 symbol;	/* the nearest one at or below addr, 0: none known */
	char name[128];
};

static struct bpf_object *obj;
static int cpus;
static struct bpf_link *drop_link, *write_link;
static const char *drop_function;	/* NULL if this kernel has none we know */
static bool verbose, attaching;

static const char usage_text[] =
	"usage: tracex2 [-d SECONDS] [-i SECONDS] [-v]\n"
	"Counts dropped packets by caller, and write(2) calls by size, until ^C.\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print what was counted so far every so many seconds, too\n"
	"  -v          show what libbpf has to say\n"
	"  -h          show this\n";

static const char *hint(int err)
{
	switch (err) {
	case EPERM:
		return "it takes CAP_BPF and CAP_PERFMON: run it as root, outside of any container";
	case EACCES:
		return "the verifier refused the program, its log is above";
	case EINVAL:
		if (attaching)
			return "see the end of /sys/kernel/tracing/error_log";
		return "see the log above; if it is empty, this kernel lacks CONFIG_BPF_EVENTS";
	case ENOENT:
		if (attaching)
			return "not in /proc/kallsyms, or this kernel lacks CONFIG_KPROBE_EVENTS";
		return "the file belongs into the same directory as the program";
	case EADDRNOTAVAIL:
		return "/proc/kallsyms has several functions of that name";
	case ESRCH:
		return "this kernel lacks CONFIG_DEBUG_INFO_BTF";
	case ENOMEM:
		return "not enough memory";
	default:
		return "option -v shows what libbpf was doing";
	}
}

static void fail(const char *what, int err)
{
	char reason[128];

	libbpf_strerror(err, reason, sizeof(reason));
	fprintf(stderr, "tracex2: %s: %s\nhint: %s\n", what, reason, hint(abs(err)));
	exit(1);
}

/* That a function cannot be probed is no news while we look for one that can. */
static int show_message(enum libbpf_print_level level, const char *format, va_list args)
{
	if (!verbose && (attaching || level != LIBBPF_WARN))
		return 0;
	return vfprintf(stderr, format, args);
}

static void load_programs(void)
{
	static const __u64 others, none;
	char self[PATH_MAX - 16] = "", path[PATH_MAX];
	int err;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		fail("/proc/self/exe", errno);
	snprintf(path, sizeof(path), "%s/tracex2.bpf.o", dirname(self));

	libbpf_set_print(show_message);
	cpus = libbpf_num_possible_cpus();
	if (cpus < 0)
		fail("/sys/devices/system/cpu/possible", cpus);
	obj = bpf_object__open_file(path, NULL);
	if (!obj)
		fail(path, errno);
	err = bpf_object__load(obj);
	if (err)
		fail("loading the programs", err);
	err = bpf_map__update_elem(bpf_object__find_map_by_name(obj, "drops"),
				   &others, sizeof(others), &none, sizeof(none), BPF_NOEXIST);
	if (err)
		fail("writing to map drops", err);
}

static void attach_programs(void)
{
	static const char section[] = "kprobe/";
	struct bpf_program *prog;

	attaching = true;
	bpf_object__for_each_program(prog, obj) {
		const char *name = bpf_program__section_name(prog);

		if (drop_link || strncmp(name, section, strlen(section)))
			continue;
		drop_link = bpf_program__attach(prog);
		if (drop_link)
			drop_function = name + strlen(section);
		else if (errno != ENOENT && errno != EADDRNOTAVAIL)
			fail(name, errno);
	}
	prog = bpf_object__find_program_by_name(obj, "write_size");
	write_link = bpf_program__attach(prog);
	if (!write_link)
		fail(bpf_program__section_name(prog), errno);
	attaching = false;
}

static double percent(__u64 part, __u64 all)
{
	return all ? 100.0 * part / all : 0;
}

static int by_count(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

/*
 * Finds the function that each address is in. The address behind a call may be
 * that of the next function already, so what counts is the byte before it.
 */
static void name_sites(struct site *sites, int n)
{
	char line[512], type, symbol[128], module[64];
	FILE *f = fopen("/proc/kallsyms", "r");
	__u64 addr;
	char *end;
	int i;

	while (f && fgets(line, sizeof(line), f)) {
		addr = strtoull(line, &end, 16);
		for (i = 0; i < n; i++) {
			if (addr >= sites[i].addr || addr < sites[i].symbol || !addr)
				continue;
			*module = 0;
			if (sscanf(end, " %c %127s %63s", &type, symbol, module) < 2 ||
			    !strchr("tTwW", type))
				continue;
			sites[i].symbol = addr;
			snprintf(sites[i].name, sizeof(sites[i].name), "%.60s+0x%llx%s%s",
				 symbol, sites[i].addr - addr, *module ? " " : "", module);
		}
	}
	if (f)
		fclose(f);
}

static void print_drops(void)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, "drops");
	struct site *sites, *s;
	__u64 total = 0, rest, addr, *last = NULL;
	int max = bpf_map__max_entries(map), n = 0, i;

	if (!drop_function) {
		puts("Dropped packets: not counted, none of the functions we know is here");
		return;
	}
	sites = calloc(max, sizeof(*sites));
	if (!sites)
		fail("reading map drops", ENOMEM);
	while (n < max && !bpf_map__get_next_key(map, last, &addr, sizeof(addr))) {
		s = &sites[n];
		last = &s->addr;
		s->addr = addr;
		if (!bpf_map__lookup_elem(map, &addr, sizeof(addr),
					  &s->count, sizeof(s->count), 0))
			total += s->count;
		snprintf(s->name, sizeof(s->name), addr ? "0x%llx" : "(more than fit the map)",
			 addr);
		n++;
	}
	qsort(sites, n, sizeof(*sites), by_count);
	name_sites(sites, n < TOP ? n : TOP);

	printf("Dropped packets, by caller of %s()\n\n", drop_function);
	printf("  %10s %7s  caller\n", "count", "share");
	rest = total;
	for (i = 0; i < n && i < TOP && sites[i].count; i++) {
		printf("  %10llu %6.1f%%  %s\n", sites[i].count,
		       percent(sites[i].count, total), sites[i].name);
		rest -= sites[i].count;
	}
	if (rest)
		printf("  %10llu %6.1f%%  (all others)\n", rest, percent(rest, total));
	printf("  %10llu          total\n", total);
	free(sites);
}

static __u64 read_slot(struct bpf_map *map, __u32 slot)
{
	__u64 per_cpu[cpus], sum = 0;
	int err, i;

	err = bpf_map__lookup_elem(map, &slot, sizeof(slot), per_cpu, sizeof(per_cpu), 0);
	if (err)
		fail("reading map sizes", err);
	for (i = 0; i < cpus; i++)
		sum += per_cpu[i];
	return sum;
}

static void print_size_range(int slot, bool last)
{
	unsigned long long from = slot ? 1ULL << (slot - 1) : 0;

	if (slot < 2)
		printf("  %23llu", from);
	else if (last)
		printf("  %10llu %-12s", from, "and more");
	else
		printf("  %10llu - %10llu", from, 2 * from - 1);
}

static void print_sizes(void)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, "sizes");
	int slots = bpf_map__max_entries(map), first = slots, last = 0, i;
	__u64 counts[slots], total = 0, most = 1;

	for (i = 0; i < slots; i++) {
		counts[i] = read_slot(map, i);
		total += counts[i];
		if (counts[i] > most)
			most = counts[i];
		if (counts[i])
			last = i;
		if (counts[i] && first > i)
			first = i;
	}

	puts("Calls of write(), by size\n");
	printf("  %23s %10s %7s\n", "bytes", "count", "share");
	for (i = first; i <= last; i++) {
		/* rounded up, so that even a single call can be seen */
		int bar = (counts[i] * BAR + most - 1) / most;

		print_size_range(i, i == slots - 1);
		printf(" %10llu %6.1f%%%s%.*s\n", counts[i], percent(counts[i], total),
		       bar ? " " : "", bar, "##################################");
	}
	printf("  %23s %10llu\n", "total", total);
}

/* What the programs were not run for, because one was running on that CPU. */
static void print_missed(void)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj) {
		struct bpf_prog_info info = {};
		__u32 len = sizeof(info);

		if (!bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len) &&
		    info.recursion_misses)
			printf("\nNot counted: %llu hits of %s\n", info.recursion_misses,
			       bpf_program__section_name(prog));
	}
}

/* Is buffered as a whole, so that it makes one write only. */
static void report(double seconds)
{
	struct utsname host;

	uname(&host);
	printf("tracex2: %.1f s on Linux %s\n\n", seconds, host.release);
	print_drops();
	puts("");
	print_sizes();
	print_missed();
	if (fflush(stdout))
		fail("stdout", errno);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* True if a signal wants us to stop, false at that time. */
static bool stopped_before(double when, const sigset_t *signals)
{
	double left = when - now();
	struct timespec t = {};

	if (left > 0) {
		t.tv_sec = left;
		t.tv_nsec = (left - t.tv_sec) * 1e9;
	}
	return sigtimedwait(signals, NULL, &t) > 0;
}

static double parse_seconds(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds > 0 && seconds < NEVER)) {
		fprintf(stderr, "tracex2: '%s' is not a number of seconds\n%s", text, usage_text);
		exit(2);
	}
	return seconds;
}

int main(int argc, char **argv)
{
	static char report_buffer[1 << 16];
	double duration = NEVER, interval = NEVER, start, end, next;
	sigset_t signals;
	int opt;

	while ((opt = getopt(argc, argv, "d:i:vh")) != -1) {
		switch (opt) {
		case 'd':
			duration = parse_seconds(optarg);
			break;
		case 'i':
			interval = parse_seconds(optarg);
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		default:
			fputs(usage_text, stderr);
			return 2;
		}
	}
	if (optind < argc) {
		fputs(usage_text, stderr);
		return 2;
	}

	/* Blocked for good: they are waited for. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	setvbuf(stdout, report_buffer, _IOFBF, sizeof(report_buffer));

	load_programs();
	attach_programs();
	fprintf(stderr, "tracex2: counting%s\n", duration == NEVER ? ", stop it with ^C" : "");

	start = now();
	next = start + interval;
	end = start + duration;
	while (!stopped_before(next < end ? next : end, &signals) && now() < end) {
		if (now() < next)	/* woken early, by SIGCONT perhaps */
			continue;
		report(now() - start);
		puts("");
		next = now() + interval;
	}

	/* Nothing is counted any more once this has returned. */
	bpf_link__destroy(drop_link);
	bpf_link__destroy(write_link);
	report(now() - start);
	bpf_object__close(obj);
	return 0;
}
