/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All the ways to attach a program to a function or to a tracepoint of the kernel, and
 * to a function of the test itself
 */
#ifndef BPF_EVENTS_WAYS_H
#define BPF_EVENTS_WAYS_H

#include "body.h"
#include "filter.h"
#include "link.h"
#include "multi.h"
#include "raw_tp.h"
#include "tracing.h"
#include "umulti.h"

enum way_kind {
	BY_SET_BPF,	/* on a perf event */
	BY_PERF_LINK,
	BY_MULTI_LINK,
	BY_RAW_TP,
	BY_TRACING,
	BY_FILTER,	/* in INSTANCE */
};

static const struct way {
	const char *name;
	enum way_kind kind;
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	unsigned int flags;	/* of the probe, or of the multi link */
	bool tracepoint;	/* on that, not on the function */
} ways[] = {
	{ "kprobe event", BY_SET_BPF, BPF_PROG_TYPE_KPROBE },
	{ "kretprobe event", BY_SET_BPF, BPF_PROG_TYPE_KPROBE, .flags = PROBE_RETURN },
	{ "kprobe PMU", BY_SET_BPF, BPF_PROG_TYPE_KPROBE, .flags = PROBE_PMU },
	{ "kretprobe PMU", BY_SET_BPF, BPF_PROG_TYPE_KPROBE,
	  .flags = PROBE_PMU | PROBE_RETURN },
	{ "kprobe link", BY_PERF_LINK, BPF_PROG_TYPE_KPROBE, .flags = PROBE_PMU },
	{ "kretprobe link", BY_PERF_LINK, BPF_PROG_TYPE_KPROBE,
	  .flags = PROBE_PMU | PROBE_RETURN },
	{ "kprobe_multi", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI },
	{ "kretprobe_multi", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI,
	  .flags = BPF_F_KPROBE_MULTI_RETURN },
	{ "kprobe session", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_SESSION },
	{ "fentry", BY_TRACING, BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY },
	{ "fexit", BY_TRACING, BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT },
	{ "filter of a kprobe", BY_FILTER, BPF_PROG_TYPE_KPROBE },
	{ "filter of a kretprobe", BY_FILTER, BPF_PROG_TYPE_KPROBE, .flags = PROBE_RETURN },
	{ "tracepoint", BY_SET_BPF, BPF_PROG_TYPE_TRACEPOINT, .tracepoint = true },
	{ "tracepoint link", BY_PERF_LINK, BPF_PROG_TYPE_TRACEPOINT, .tracepoint = true },
	{ "raw tracepoint", BY_RAW_TP, BPF_PROG_TYPE_RAW_TRACEPOINT, .tracepoint = true },
	{ "tp_btf", BY_TRACING, BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP,
	  .tracepoint = true },
	{ "filter of a tracepoint", BY_FILTER, BPF_PROG_TYPE_RAW_TRACEPOINT,
	  .tracepoint = true },
};

#define WAYS ARRAY_SIZE(ways)

/*
 * Is the pair of these ways to be tried?  On a slow kernel one of three is: each way still
 * is below some of the others, and on top of some.
 */
static inline bool pair_is_tried(unsigned int below, unsigned int on_top)
{
	return !kernel_is_slow() || (below + on_top) % 3 == 0;
}

/* BPF_TRACE_UPROBE_SESSION, which the headers of a released 6.12 do not have */
#define UPROBE_SESSION ((enum bpf_attach_type)(BPF_TRACE_KPROBE_SESSION + 1))

/* The same for user code */
static const struct way uprobe_ways[] = {
	{ "uprobe event", BY_SET_BPF, BPF_PROG_TYPE_KPROBE },
	{ "uretprobe event", BY_SET_BPF, BPF_PROG_TYPE_KPROBE, .flags = PROBE_RETURN },
	{ "uprobe link", BY_PERF_LINK, BPF_PROG_TYPE_KPROBE, .flags = PROBE_PMU },
	{ "uretprobe link", BY_PERF_LINK, BPF_PROG_TYPE_KPROBE,
	  .flags = PROBE_PMU | PROBE_RETURN },
	{ "uprobe_multi", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI },
	{ "uretprobe_multi", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI,
	  .flags = BPF_F_UPROBE_MULTI_RETURN },
	{ "uprobe session", BY_MULTI_LINK, BPF_PROG_TYPE_KPROBE, UPROBE_SESSION },
	{ "filter of a uprobe", BY_FILTER, BPF_PROG_TYPE_KPROBE },
	{ "filter of a uretprobe", BY_FILTER, BPF_PROG_TYPE_KPROBE, .flags = PROBE_RETURN },
};

#define UPROBE_WAYS ARRAY_SIZE(uprobe_ways)

static inline bool way_is_user(const struct way *way)
{
	return way >= uprobe_ways && way < uprobe_ways + UPROBE_WAYS;
}

static inline const struct way *way_named(const char *name)
{
	const struct way *way = ways;

	while (strcmp(way->name, name))
		way++;
	return way;
}

static inline bool way_exists(const struct way *way)
{
	return way->kind != BY_FILTER || !mainline();
}

/* Of ways[]: two that take the guard are not on top of each other in the same context */
static inline bool way_takes_guard(const struct way *way)
{
	return way->type == BPF_PROG_TYPE_KPROBE || way->type == BPF_PROG_TYPE_TRACEPOINT;
}

/* What runs from a trampoline does not count its hits, nor but for the budget why it misses any */
static inline bool way_has_trampoline(const struct way *way)
{
	return way->kind == BY_TRACING && !way->tracepoint;
}

/* What is attached to, depending on the way */
struct place {
	const char *func;
	const char *group, *event;	/* a tracepoint */
};

static inline void way_attr(const struct way *way, const struct place *place,
			    union bpf_attr *attr)
{
	load_attr(attr, way->type, way->attach, 0);
	if (way->kind == BY_TRACING)
		attr->attach_btf_id = target_id(way->attach,
						way->tracepoint ? place->event : place->func);
}

static inline int way_load(const struct way *way, const struct place *place,
			   const struct bpf_insn *insns, size_t cnt)
{
	union bpf_attr attr;

	way_attr(way, place, &attr);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = cnt;
	return prog_load_attr(&attr);
}

/* Adds one to a slot for each hit of this process */
static inline int way_count_prog(const struct way *way, const struct place *place,
				 struct area *area, unsigned int slot)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, getpid(), 4),
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, place, insns, ARRAY_SIZE(insns));
}

/* A place that nobody else comes by, but for the tracepoint */
static const struct place own_place = { FUNC, "task", "task_rename" };

/* Where programs come by that call two helpers */
static const struct place in_helpers = { UPDATE_FUNC, "bpf_trace", "bpf_trace_printk" };

/* Counts in slot 0, and calls the helpers of in_helpers, with a hash map; uses another one, too */
static inline int helpers_prog(const struct way *way, const struct place *place,
			       struct area *area, int map, int other)
{
	const struct bpf_insn body[] = {
		BPF_LD_MAP_FD(BPF_REG_1, other),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 'x'),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 2),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
	};
	union bpf_attr attr;

	way_attr(way, place, &attr);
	return body_load(&attr, area, body, ARRAY_SIZE(body));
}

static inline void hit_own_place(void)
{
	hit();
	hit_rename();
}

/* How often a program runs in one hit of its place */
static inline unsigned int way_runs(const struct way *way)
{
	return way->attach == BPF_TRACE_KPROBE_SESSION ||
	       way->attach == UPROBE_SESSION ? 2 : 1;
}

/* PROBE_RETURN is BPF_F_KPROBE_MULTI_RETURN and BPF_F_UPROBE_MULTI_RETURN, too */
static inline bool way_sees_returns(const struct way *way)
{
	return way->flags & PROBE_RETURN || way->attach == BPF_TRACE_FEXIT || way_runs(way) == 2;
}

/* An event of tracefs, where the way needs one: one for each of the ways */
static inline int way_create(const struct way *way, const struct place *place,
			     struct probe *probe)
{
	char event[64];

	snprintf(event, sizeof(event), "way%d", (int)(way - ways));
	if (way->tracepoint || way->kind == BY_MULTI_LINK || way->kind == BY_TRACING)
		return 0;
	return probe_create_at(probe, event, place->func, 0, way->flags);
}

static inline int way_perf_attr(const struct way *way, const struct place *place,
				const struct probe *probe, struct perf_event_attr *attr)
{
	char path[64];

	if (!way->tracepoint)
		return probe_attr(probe, attr);
	snprintf(path, sizeof(path), "%s/%s", place->group, place->event);
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	return read_u64(event_file(TRACEFS, path, "id"), (__u64 *)&attr->config) ? 0 : -ENOENT;
}

static inline int way_perf(const struct way *way, struct perf_event_attr *attr, int prog)
{
	int ret, fd = perf_open(attr, -1, 0);

	if (fd < 0)
		return fd;
	if (way->kind == BY_PERF_LINK) {
		ret = perf_link(fd, prog);
		close(fd);
		return ret;
	}
	ret = perf_set_bpf(fd, prog);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* The event, as a path, of those ways that have one in tracefs */
static inline const char *way_event(const struct way *way, const struct place *place,
				    const struct probe *probe)
{
	static __thread char event[128];

	snprintf(event, sizeof(event), "%s/%s", way->tracepoint ? place->group : GROUP,
		 way->tracepoint ? place->event : probe->event);
	return event;
}

/* What is returned has to be closed to detach */
static inline int way_attach(const struct way *way, const struct place *place,
			     const struct probe *probe, int prog)
{
	struct perf_event_attr attr;

	switch (way->kind) {
	case BY_MULTI_LINK:
		return multi_link_one(place->func, way->attach, way->flags, prog);
	case BY_RAW_TP:
		return raw_tp_open(prog, place->event, 0);
	case BY_TRACING:
		return tracing_open(prog);
	case BY_FILTER:
		return filter_attach(INSTANCE, way_event(way, place, probe), prog);
	default:
		return way_perf_attr(way, place, probe, &attr) ?: way_perf(way, &attr, prog);
	}
}

/* The same, with a new event of that name where one is needed */
static inline int way_attach_at(const struct way *way, const struct place *place,
				const char *event, int prog)
{
	struct probe probe;

	if (!way->tracepoint && way->kind != BY_MULTI_LINK && way->kind != BY_TRACING &&
	    probe_create_at(&probe, event, place->func, 0, way->flags))
		return -EINVAL;
	return way_attach(way, place, &probe, prog);
}

/* The same with one of uprobe_ways[], to a function of the test */
static inline int uprobe_way_attach(const struct way *way, const void *func, int prog)
{
	struct probe probe;
	char event[16];

	if (way->kind == BY_MULTI_LINK)
		return umulti_link_one(func, way->attach, way->flags, 0, prog);
	snprintf(event, sizeof(event), "user%d", (int)(way - uprobe_ways));
	if (uprobe_create_at(&probe, event, SELF, file_offset(func), 0, way->flags))
		return -EINVAL;
	if (way->kind == BY_FILTER)
		return filter_attach(INSTANCE, way_event(way, NULL, &probe), prog);
	return attach_by(&probe, way->kind == BY_PERF_LINK, prog);
}

static inline const char *ways_prepare(void)
{
	const char *missing = filter_prepare() ?: tracing_prepare();

	return missing ?: multi_prepare();
}

/* The trace event that has a record of each miss */
#define MISS_EVENT "bpf_trace/bpf_prog_missed"

/* Those in INSTANCE of the program of an fdinfo, for a reason, or "" for any */
static inline unsigned int miss_records(int fd, const char *reason)
{
	const char *id = fdinfo_text(fd, "prog_id") ?: fdinfo_text(fd, "bpf_prog_id");
	char text[64];

	snprintf(text, sizeof(text), "bpf_prog_id=%s reason=%s%s", id, reason,
		 *reason ? "\n" : "");
	return count_records(INSTANCE, "bpf_prog_missed: ", text);
}

/* What tests on one CPU start with, where nothing is missing */
static inline int ways_start(struct area *area)
{
	return pin(0) ?: area_create(area) ?: instance_create(INSTANCE);
}

#endif /* BPF_EVENTS_WAYS_H */
