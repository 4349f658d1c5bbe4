// SPDX-License-Identifier: GPL-2.0
/*
 * lostcat - shows what BPF programs on events lose
 *
 * SYNOPSIS
 *	lostcat [-a] [-j] [-d SECONDS] [-i SECONDS]
 *
 * DESCRIPTION
 *	Until it is stopped by SIGINT or SIGTERM, lostcat prints every second what was
 *	lost since it was attached or made: the hits that programs missed, by reason, of
 *	each perf event and link that a process has open or that is pinned, and of the
 *	filter of each event, and the records that ring buffers and perf event arrays had no
 *	room for. What a program missed elsewhere, through attachments that are gone, say, has
 *	a line of its own. On a terminal the table is drawn in place. See
 *	Documentation/bpf/probe_losses.rst for the reasons.
 *
 *	With -j, each report is an array of JSON objects on a line of its own. There are
 *	"kind"; "id", of a link or map; "prog_id"; "name", of the program or map; "pid" and
 *	"comm", if a process has it open; "hits" and "lost", with "reasons".
 *
 * REQUIREMENTS
 *	CAP_SYS_ADMIN, and CAP_SYS_PTRACE for the processes of others; for filters, tracefs at
 *	/sys/kernel/tracing. To read what filters missed, lostcat opens their files: an instance
 *	cannot be removed at that moment (EBUSY).
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/kcmp.h>
#include <bpf/bpf.h>

#include "event_sample.h"

#define TRACEFS "/sys/kernel/tracing/"
#define MAX_REASONS 8

enum kind { EVENT, FILTER, LINK, MAP, PROGRAM };

static const char * const kinds[] = { "event", "filter", "link", "map", "program" };

struct loss {
	enum kind	kind;
	__u32		id;	/* of a link or map, else 0 */
	__u32		prog;	/* 0: a map */
	int		pid;	/* 0: pinned */
	int		fd;	/* of it */
	bool		has_hits;
	__u64		hits;
	__u64		lost;
	char		name[BPF_OBJ_NAME_LEN];	/* of the program or map */
	char		comm[16];
	struct {
		char	name[24];
		__u64	count;
	} reasons[MAX_REASONS];	/* those that there are come first */
};

struct prog_misses {
	__u32 id;
	__u64 misses;
};

/* A process that has the filter file of an event, or of all of its system, open */
struct opener {
	int pid;
	char path[256];	/* below tracefs */
};

static struct loss *losses;
static struct prog_misses *progs;
static struct opener *openers;
static size_t nr_losses, nr_progs, nr_openers;

static bool all;

static const char usage_text[] =
	"usage: lostcat [-a] [-j] [-d SECONDS] [-i SECONDS]\n"
	"Shows the hits that BPF programs missed and the records that maps had no room for,\n"
	"until ^C.\n"
	"  -a          show also what has lost nothing\n"
	"  -d SECONDS  stop after that time\n"
	"  -i SECONDS  print so often, instead of every second\n"
	"  -j, --json  print JSON, a line each time\n"
	"  -h          show this\n";

static void option(int opt, const char *arg)
{
	all = true;
}

/* The number behind a key at the start of a line, which an fdinfo need not have */
static bool number(const char *text, const char *key, __u64 *val)
{
	const char *at = text;
	size_t len = strlen(key);

	while (at && strncmp(at, key, len)) {
		at = strchr(at, '\n');
		at += !!at;
	}
	if (at)
		*val = strtoull(at + len, NULL, 10);
	return at;
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);

	close(fd);
	if (len < 0)
		return false;
	text[len] = '\0';
	return true;
}

/* Lines as "bpf_missed_REASON:\tCOUNT" */
static void read_reasons(const char *text, struct loss *loss)
{
	static const char prefix[] = "\nbpf_missed_";
	size_t i = 0, len;
	const char *at;
	__u64 count;

	for (at = strstr(text, prefix); at && i < MAX_REASONS; at = strstr(at, prefix)) {
		at += strlen(prefix);
		len = strcspn(at, ":");
		if (!at[len])
			break;
		count = strtoull(at + len + 1, NULL, 10);
		if (!count || len >= sizeof(loss->reasons[i].name))
			continue;
		memcpy(loss->reasons[i].name, at, len);
		loss->reasons[i++].count = count;
	}
}

/* Of the program, or of the map */
static void find_name(struct loss *loss)
{
	struct bpf_prog_info prog = {};
	struct bpf_map_info map = {};
	bool is_map = loss->kind == MAP;
	__u32 len = is_map ? sizeof(map) : sizeof(prog);
	int fd = is_map ? bpf_map_get_fd_by_id(loss->id) : bpf_prog_get_fd_by_id(loss->prog);

	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, is_map ? (void *)&map : &prog, &len))
		memcpy(loss->name, is_map ? map.name : prog.name, sizeof(loss->name));
	close(fd);
}

/*
 * Links and maps have ids. What a process inherited has the same number in both; that
 * will do where the kernel cannot compare them.
 */
static bool is_same(const struct loss *a, const struct loss *b)
{
	if (a->kind != b->kind || a->id != b->id || a->prog != b->prog || a->kind == FILTER)
		return false;
	if (a->id)
		return true;
	if (a->fd != b->fd || a->pid == b->pid)
		return false;
	return syscall(__NR_kcmp, a->pid, b->pid, KCMP_FILE, a->fd, b->fd) <= 0;
}

/* Makes room for one more */
static void *grow(void *array, size_t nr, size_t size)
{
	array = realloc(array, (nr + 1) * size);
	if (!array)
		sample_fail(SAMPLE_RUN, "the table", ENOMEM);
	return array;
}

static void add(const struct loss *loss)
{
	size_t i;

	for (i = 0; i < nr_losses; i++) {
		if (is_same(&losses[i], loss))
			return;
	}
	losses = grow(losses, nr_losses, sizeof(*losses));
	losses[nr_losses++] = *loss;
}

/* What the fdinfo of a descriptor says, if it is about something that can lose */
static void add_fdinfo(const char *path, enum kind kind, int pid, int fd)
{
	struct loss loss = { .kind = kind, .pid = pid, .fd = fd };
	char text[4096], comm[64];
	__u64 id = 0, prog = 0;

	if (!read_text(path, text, sizeof(text)))
		return;
	if (number(text, "map_id:", &id)) {
		loss.kind = MAP;
		if (!number(text, "lost_records:", &loss.lost))
			return;
	} else if (strstr(text, "\nbpf_attached_by:\tlink\n")) {
		return; /* the link says the same */
	} else if (number(text, "bpf_prog_missed:", &loss.lost) ||
		   number(text, "bpf_missed_budget:", &loss.lost)) { /* fentry and fexit */
		if (number(text, "link_id:", &id))
			loss.kind = LINK;
		if (!number(text, "bpf_prog_id:", &prog))
			number(text, "prog_id:", &prog);
		loss.has_hits = number(text, "bpf_prog_hits:", &loss.hits);
		read_reasons(text, &loss);
	} else {
		return;
	}

	loss.id = id;
	loss.prog = prog;
	if (pid) {
		snprintf(comm, sizeof(comm), "/proc/%d/comm", pid);
		if (read_text(comm, loss.comm, sizeof(loss.comm)))
			loss.comm[strcspn(loss.comm, "\n")] = '\0';
	}
	add(&loss);
}

/* A file that is below tracefs, where that is mounted as "tracing" */
static void add_opener(int pid, const char *path)
{
	static const char mount[] = "/tracing/";
	const char *below = strstr(path, mount);

	if (!below)
		return;
	openers = grow(openers, nr_openers, sizeof(*openers));
	openers[nr_openers].pid = pid;
	snprintf(openers[nr_openers++].path, sizeof(openers->path), "%s", below + strlen(mount));
}

static int find_opener(const char *path)
{
	size_t i;

	for (i = 0; i < nr_openers; i++) {
		if (!strcmp(openers[i].path, path))
			return openers[i].pid;
	}
	return 0;
}

/* The filter of an event in an instance. No process has to have the file open. */
static void add_filter(const char *instance, const char *system, const char *event)
{
	bool top = !strcmp(instance, "-");
	char dir[320], path[640], of_system[512], fdinfo[64];
	int fd, pid;

	snprintf(dir, sizeof(dir), "%s%s%s", top ? "" : "instances/", top ? "" : instance,
		 top ? "" : "/");
	snprintf(path, sizeof(path), TRACEFS "%sevents/%s/%s/filter", dir, system, event);
	snprintf(of_system, sizeof(of_system), "%sevents/%s/filter", dir, system);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* gone meanwhile */
	snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
	pid = find_opener(path + strlen(TRACEFS)) ?: find_opener(of_system);
	add_fdinfo(fdinfo, FILTER, pid, fd);
	close(fd);
}

static void add_filters(void)
{
	char line[512], system[128], event[128];
	FILE *list = fopen(TRACEFS "bpf_filters", "re");
	int instance;

	while (list && fgets(line, sizeof(line), list)) {
		instance = 0;
		if (sscanf(line, "%127[^:# ]:%127s %*s %*s %*s %*s %n", system, event,
			   &instance) < 2 || !instance)
			continue;
		line[strcspn(line, "\n")] = '\0';
		add_filter(line + instance, system, event);
	}
	if (list)
		fclose(list);
}

static void add_processes(void)
{
	char path[64], fdinfo[64], target[PATH_MAX];
	struct dirent *process, *entry;
	DIR *proc = opendir("/proc"), *fds;
	ssize_t len;
	int pid, fd;

	if (!proc)
		sample_fail(SAMPLE_RUN, "/proc", errno);
	while ((process = readdir(proc))) {
		pid = atoi(process->d_name);
		if (!pid || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		fds = opendir(path);
		while (fds && (entry = readdir(fds))) {
			if (!isdigit(entry->d_name[0]))
				continue;
			len = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
			if (len < 0)
				continue;
			target[len] = '\0';
			if (strstr(target, "/filter"))
				add_opener(pid, target);
			/* Others are many. */
			if (!strstr(target, "bpf") && !strstr(target, "perf_event"))
				continue;
			fd = atoi(entry->d_name);
			snprintf(fdinfo, sizeof(fdinfo), "/proc/%d/fdinfo/%d", pid, fd);
			add_fdinfo(fdinfo, EVENT, pid, fd);
		}
		if (fds)
			closedir(fds);
	}
	closedir(proc);
}

/* The descriptor of the next one that there is, or -1 */
static int open_next(int (*next)(__u32 id, __u32 *next_id), int (*get)(__u32 id), __u32 *id)
{
	int fd;

	while (!next(*id, id)) {
		fd = get(*id);
		if (fd >= 0)
			return fd;
		/* Gone meanwhile, or a link that is not there yet */
		if (errno != ENOENT && errno != EAGAIN)
			break;
		errno = ENOENT;
	}
	if (errno != ENOENT)
		sample_fail(SAMPLE_RUN, "finding programs and maps, which takes CAP_SYS_ADMIN",
			    errno);
	return -1;
}

/* Those that no process has open, but a file of bpffs, or another object of the kernel */
static void add_pinned(int (*next)(__u32 id, __u32 *next_id), int (*get)(__u32 id))
{
	char fdinfo[64];
	__u32 id = 0;
	int fd;

	while ((fd = open_next(next, get, &id)) >= 0) {
		snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", fd);
		add_fdinfo(fdinfo, EVENT, 0, fd);
		close(fd);
	}
}

/* First of all: what is counted later in the table is not among this */
static void read_progs(void)
{
	struct bpf_prog_info info;
	__u32 id = 0, len;
	int fd;

	nr_progs = 0;
	while ((fd = open_next(bpf_prog_get_next_id, bpf_prog_get_fd_by_id, &id)) >= 0) {
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.recursion_misses) {
			progs = grow(progs, nr_progs, sizeof(*progs));
			progs[nr_progs].id = id;
			progs[nr_progs++].misses = info.recursion_misses;
		}
		close(fd);
	}
}

/* Of misses for want of RCU or of budget, the program does not know. */
static __u64 missed_of_prog(const struct loss *loss)
{
	__u64 missed = loss->lost;
	int i;

	for (i = 0; i < MAX_REASONS; i++) {
		if (!strcmp(loss->reasons[i].name, "no_rcu") ||
		    !strcmp(loss->reasons[i].name, "budget"))
			missed -= loss->reasons[i].count;
	}
	return missed;
}

/* What a program missed besides what is in the table already */
static void add_progs(void)
{
	struct loss loss = { .kind = PROGRAM };
	size_t i, k, nr = nr_losses;
	__u64 missed;

	for (k = 0; k < nr_progs; k++) {
		loss.prog = progs[k].id;
		loss.lost = progs[k].misses;
		for (i = 0; i < nr; i++) {
			if (losses[i].prog != loss.prog)
				continue;
			missed = missed_of_prog(&losses[i]);
			loss.lost -= missed < loss.lost ? missed : loss.lost;
		}
		if (loss.lost)
			add(&loss);
	}
}

static int compare(const void *a, const void *b)
{
	const struct loss *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return x->kind != y->kind ? (int)x->kind - (int)y->kind : (int)x->id - (int)y->id;
}

static void print_json(const struct loss *loss)
{
	int i;

	printf("{\"kind\": \"%s\"", kinds[loss->kind]);
	if (loss->id)
		printf(", \"id\": %u", loss->id);
	if (loss->prog)
		printf(", \"prog_id\": %u", loss->prog);
	sample_print_string("name", loss->name);
	if (loss->pid) {
		printf(", \"pid\": %d", loss->pid);
		sample_print_string("comm", loss->comm);
	}
	if (loss->has_hits)
		printf(", \"hits\": %llu", loss->hits);
	printf(", \"lost\": %llu, \"reasons\": {", loss->lost);
	for (i = 0; i < MAX_REASONS && loss->reasons[i].count; i++)
		printf("%s\"%s\": %llu", i ? ", " : "", loss->reasons[i].name,
		       loss->reasons[i].count);
	printf("}}");
}

static void print_line(const struct loss *loss)
{
	char where[32], hits[32] = "-", pid[16], comm[sizeof(loss->comm)];
	int i;

	snprintf(where, sizeof(where), "%s %u", kinds[loss->kind], loss->id ?: loss->prog);
	if (loss->has_hits)
		snprintf(hits, sizeof(hits), "%llu", loss->hits);
	printf("%10llu %12s  %-13s %-15s ", loss->lost, hits, where, loss->name);
	memcpy(comm, loss->comm, sizeof(comm));
	snprintf(pid, sizeof(pid), loss->pid ? "%d" : "-", loss->pid);
	printf("%7s %-15s ", pid, sample_printable(comm));
	for (i = 0; i < MAX_REASONS && loss->reasons[i].count; i++)
		printf("%s%s %llu", i ? ", " : "", loss->reasons[i].name, loss->reasons[i].count);
	putchar('\n');
}

static void report(void)
{
	const char *separator = "";
	size_t i;

	nr_losses = 0;
	nr_openers = 0;
	read_progs();
	add_processes();
	add_filters();
	add_pinned(bpf_link_get_next_id, bpf_link_get_fd_by_id);
	add_pinned(bpf_map_get_next_id, bpf_map_get_fd_by_id);
	add_progs();
	qsort(losses, nr_losses, sizeof(*losses), compare);

	if (sample_json)
		printf("[");
	else
		printf("%s%7.1f s\n%10s %12s  %-13s %-15s %7s %-15s %s\n",
		       isatty(STDOUT_FILENO) ? "\033[H\033[J" : "", sample_time(),
		       "LOST", "HITS", "WHERE", "NAME", "PID", "COMMAND", "WHY");
	for (i = 0; i < nr_losses && (all || losses[i].lost); i++) {
		find_name(&losses[i]);
		if (sample_json) {
			printf("%s", separator);
			print_json(&losses[i]);
			separator = ", ";
		} else {
			print_line(&losses[i]);
		}
	}
	if (sample_json)
		puts("]");
	if (fflush(stdout))
		sample_fail(SAMPLE_RUN, "stdout", errno);
}

int main(int argc, char **argv)
{
	sample_interval = 1;
	sample_options(argc, argv, usage_text, "aji:", option);
	sample_start("looking for losses");
	while (sample_wait(sample_interval))
		report();
	report();
	return 0;
}
