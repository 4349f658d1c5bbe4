/* SPDX-License-Identifier: GPL-2.0 */
/* Functions on which there cannot be a probe, found at run time */
#ifndef BPF_EVENTS_TARGET_H
#define BPF_EVENTS_TARGET_H

#include "sys.h"

#define MAX_ADDRS 16
#define MAX_NAMES 100000

struct target {
	char func[64];
	unsigned long offset;
	unsigned int n;		/* how many there are of an ambiguous name */
	__u64 addrs[MAX_ADDRS];
};

/* How many symbols have this name, and where the first of them are */
static inline unsigned int symbol_addrs(const char *name, __u64 *addrs)
{
	char line[256], found[128];
	unsigned long long addr;
	unsigned int n = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (!strstr(line, name) ||
		    sscanf(line, "%llx %*c %127s", &addr, found) != 2 ||
		    strcmp(found, name))
			continue;
		if (n < MAX_ADDRS)
			addrs[n] = addr;
		n++;
	}
	if (file)
		fclose(file);
	return n;
}

static inline int find_blacklisted(struct target *target)
{
	FILE *file = fopen(DEBUGFS "/kprobes/blacklist", "re");
	int err = -ENOENT;
	char line[256];

	while (err && file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %63s", target->func) == 1 &&
		    symbol_addrs(target->func, target->addrs) == 1)
			err = 0;
	}
	if (file)
		fclose(file);
	return err;
}

static inline int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The functions that can be traced, without those of modules, by name */
static inline unsigned int read_traceable(char (*names)[64])
{
	FILE *file = fopen(TRACEFS "/available_filter_functions", "re");
	unsigned int n = 0;
	char line[256];

	while (file && n < MAX_NAMES && fgets(line, sizeof(line), file)) {
		/* Of weak functions that others replace, ftrace has left no more than the place */
		if (!strchr(line, '[') && strncmp(line, "__ftrace_invalid_address__", 26) &&
		    sscanf(line, "%63s", names[n]) == 1)
			n++;
	}
	if (file)
		fclose(file);
	qsort(names, n, sizeof(*names), compare_names);
	return n;
}

/* A name that several functions have, all of which can be traced */
static inline int find_ambiguous(struct target *target)
{
	char (*names)[64] = calloc(MAX_NAMES, sizeof(*names));
	unsigned int i, same, n = names ? read_traceable(names) : 0;

	for (i = 0; i < n && !target->n; i += same) {
		for (same = 1; i + same < n; same++) {
			if (strcmp(names[i], names[i + same]))
				break;
		}
		if (same > 1 && same <= MAX_ADDRS &&
		    symbol_addrs(names[i], target->addrs) == same) {
			memcpy(target->func, names[i], sizeof(names[i]));
			target->n = same;
		}
	}
	free(names);
	return target->n ? 0 : -ENOENT;
}

#endif /* BPF_EVENTS_TARGET_H */
