/* SPDX-License-Identifier: GPL-2.0 */
/* Limits of programs: bpf_budget and bpf_scope in tracefs */
#ifndef BPF_EVENTS_LIMITS_H
#define BPF_EVENTS_LIMITS_H

#include "error_log.h"
#include "overflow.h"
#include "ways.h"

#define BUDGET TRACEFS "/bpf_budget"
#define SCOPE TRACEFS "/bpf_scope"

#define BAD_ID "Not the id of a program, write bpf-id:ID"
#define NO_ADMIN "To limit programs takes CAP_SYS_ADMIN"
#define NO_PROG "No program has this id"
#define NOT_ON_EVENTS "Only programs on probes, tracepoints, perf events, fentry and fexit have limits"

static inline int set_limit(const char *file, int prog, const char *limit)
{
	return write_file(file, 0, "bpf-id:%u %s\n", prog_id(prog), limit);
}

static inline const char *limits(const char *file)
{
	static char text[1024];

	return read_file(file, text, sizeof(text)) < 0 ? "nothing" : text;
}

/* @what is written and refused, with the caret at @pos, and the file has @still */
static inline bool limit_refused(const char *file, const char *still, const char *what, int err,
				 const char *error, int pos)
{
	const char *entry = entry_at(strrchr(file, '/') + 1, error, what, pos);
	int ret = write_file(file, 0, "%s", what);
	const char *got = entries();

	if (ret == -err && !strcmp(entry, got) && !strcmp(still, limits(file)))
		return true;
	fprintf(stderr, "# %s: %d, %s# %s", what, ret, got, limits(file));
	return false;
}

/* The ways to attach a program that can have a limit, by number, and NULL after the last */
static inline const struct way *limited_way(int nr)
{
	if (nr < WAYS)
		return &ways[nr];
	nr -= WAYS;
	return nr < UPROBE_WAYS ? &uprobe_ways[nr] : NULL;
}

/* How often a program ran. Trampolines do not count that: then slot 0 of @area has it. */
static inline __u64 limited_runs(int fd, struct area *area)
{
	__u64 hits = fdinfo_number(fd, "bpf_prog_hits");

	return hits == ~0ULL ? area_get(area, 0) : hits;
}

/* A program that is attached in one of them to what the test alone hits, or to a tracepoint */
struct limited {
	int prog, fd;
	void (*hit)(void);
};

static inline void hit_user_func(void)
{
	call_user(0, 1);
}

static inline int limited_attach(struct limited *l, const struct way *way, struct area *area,
				 const char *file, const char *limit)
{
	const struct place *place = &own_place;
	struct probe probe;
	int err;

	if (way_is_user(way)) {
		l->hit = hit_user_func;
		l->prog = count_prog_as(area, 0, 0, way->attach);
		err = set_limit(file, l->prog, limit);
		l->fd = err ?: uprobe_way_attach(way, user_func1, l->prog);
	} else {
		l->hit = way->tracepoint ? hit_rename : hit;
		l->prog = way_count_prog(way, place, area, 0);
		err = set_limit(file, l->prog, limit) ?: way_create(way, place, &probe);
		l->fd = err ?: way_attach(way, place, &probe, l->prog);
	}
	return l->fd < 0 ? l->fd : 0;
}

static inline void limited_detach(const struct limited *l)
{
	close(l->fd);
	close(l->prog);
}

#endif /* BPF_EVENTS_LIMITS_H */
