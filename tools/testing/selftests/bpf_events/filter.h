/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs as filters of trace events.  What is counted are the hits and the
 * records of the test's process, in an instance.
 *
 * An instance takes long to make, so the tests of a program share theirs: the
 * first that wants it makes it, each finds it as new, and the program removes
 * it when it exits.
 */
#ifndef BPF_EVENTS_FILTER_H
#define BPF_EVENTS_FILTER_H

#include <sys/stat.h>

#include "../kselftest.h"
#include "uprobe.h"

#define INSTANCE TRACEFS "/instances/" GROUP
#define INSTANCE2 INSTANCE "_2"

/* Events that have filters */
struct kind {
	const char *event;		/* as a path */
	enum bpf_prog_type type;	/* the programs that it takes */
	bool probe;
	unsigned int flags;		/* of the probe */
	void (*hit)(void);
};

static inline void hit_user(void)
{
	user_hits(1);
}

static const struct kind kprobe_kind = {
	.event = GROUP "/event",
	.type = BPF_PROG_TYPE_KPROBE,
	.probe = true,
	.hit = hit,
};

static const struct kind kretprobe_kind = {
	.event = GROUP "/event",
	.type = BPF_PROG_TYPE_KPROBE,
	.probe = true,
	.flags = PROBE_RETURN,
	.hit = hit,
};

static const struct kind uprobe_kind = {
	.event = GROUP "/event",
	.type = BPF_PROG_TYPE_KPROBE,
	.probe = true,
	.flags = PROBE_USER,
	.hit = hit_user,
};

static const struct kind uretprobe_kind = {
	.event = GROUP "/event",
	.type = BPF_PROG_TYPE_KPROBE,
	.probe = true,
	.flags = PROBE_USER | PROBE_RETURN,
	.hit = hit_user,
};

static const struct kind tracepoint_kind = {
	.event = "task/task_rename",
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.hit = hit_rename,
};

static const struct kind sys_enter_kind = {
	.event = "syscalls/sys_enter_sched_get_priority_max",
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.hit = hit,
};

static const struct kind sys_exit_kind = {
	.event = "syscalls/sys_exit_sched_get_priority_max",
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.hit = hit,
};

static inline int kind_create(const struct kind *kind)
{
	struct probe probe;

	if (!kind->probe)
		return 0;
	return kind->flags & PROBE_USER ? uprobe_create(&probe, kind->flags) :
					  probe_create(&probe, kind->flags);
}

static inline void kind_hits(const struct kind *kind, unsigned int n)
{
	while (n--)
		kind->hit();
}

/* Instances */

/* One that is there already has what it recorded for the test before cleared */
static inline int instance_create(const char *instance)
{
	static const char * const files[] = { "trace", "error_log" };
	char path[256];
	int i, err;

	err = neg_errno(mkdir(instance, 0700));
	if (err != -EEXIST)
		return err;
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", instance, files[i]);
		err = write_file(path, O_TRUNC, "");
		if (err)
			return err;
	}
	return 0;
}

static inline int instance_remove(const char *instance)
{
	return neg_errno(rmdir(instance));
}

/* The program, of which the tests are children */
static pid_t instance_owner;

/* Something that still holds an instance makes the program fail */
static void instances_remove(void)
{
	static const char * const instances[] = { INSTANCE, INSTANCE2 };
	bool left = false;
	int i, err;

	if (getpid() != instance_owner)
		return;
	for (i = 0; i < ARRAY_SIZE(instances); i++) {
		err = instance_remove(instances[i]);
		if (!err || err == -ENOENT)
			continue;
		printf("# %s is left: %s\n", instances[i], strerror(-err));
		left = true;
	}
	fflush(stdout);
	if (left)
		_exit(KSFT_FAIL);
}

__attribute__((constructor)) static void instances_go_at_exit(void)
{
	instance_owner = getpid();
	atexit(instances_remove);
}

/* A file of an event in an instance */
static inline const char *event_file(const char *instance, const char *event,
				     const char *file)
{
	static __thread char path[256];

	snprintf(path, sizeof(path), "%s/events/%s/%s", instance, event, file);
	return path;
}

/* The first line of it */
static inline const char *event_text(const char *instance, const char *event,
				     const char *file)
{
	static char text[512];

	if (read_file(event_file(instance, event, file), text, sizeof(text)) < 0)
		return "cannot be read";
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static inline int filter_open(const char *instance, const char *event)
{
	return neg_errno(open(event_file(instance, event, "filter"),
			      O_RDWR | O_CLOEXEC));
}

static inline int filter_write(int fd, const char *fmt, ...)
{
	char text[128];
	va_list ap;
	int len, ret;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ret = neg_errno(write(fd, text, len));
	return ret == len ? 0 : ret;
}

/* Returns what has to be closed for the filter to go */
static inline int filter_attach(const char *instance, const char *event, int prog)
{
	int err, fd = filter_open(instance, event);

	if (fd < 0)
		return fd;
	err = filter_write(fd, "bpf-%d", prog);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static inline int filter_attach_id(const char *instance, const char *event, __u32 id)
{
	return write_file(event_file(instance, event, "filter"), 0, "bpf-id:%u", id);
}

static inline int filter_clear(const char *instance, const char *event)
{
	return write_file(event_file(instance, event, "filter"), 0, "0");
}

static inline int event_enable(const char *instance, const char *event, bool enable)
{
	return write_file(event_file(instance, event, "enable"), 0, "%d", enable);
}

/* Whether a file of an instance has this text, perhaps after @fix was written */
static inline bool instance_file_is(const char *instance, const char *file,
				    const char *text, int flags, const char *fix)
{
	char path[256], found[64];
	int i;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	for (i = 0; i < 2; i++) {
		if (read_file(path, found, sizeof(found)) < 0)
			return false;
		if (!strcmp(found, text))
			return true;
		write_file(path, flags, "%s", fix);
	}
	return false;
}

static inline void triggers_clear(const char *instance, const char *event)
{
	const char *path = event_file(instance, event, "trigger");
	char line[256];

	while (find_line(path, ":", line, sizeof(line)) && *line != '#' &&
	       !write_file(path, 0, "!%s", line))
		;
}

/* Turns off the first event that is on, which one with a trigger is, too */
static inline bool event_turn_off(const char *instance, char *event, size_t size)
{
	char path[256], *colon;

	snprintf(path, sizeof(path), "%s/set_event", instance);
	if (!find_line(path, ":", event, size))
		return false;
	event[strcspn(event, "\n")] = '\0';
	colon = strchr(event, ':');
	*colon = '/';
	triggers_clear(instance, event);
	filter_clear(instance, event);
	event_enable(instance, event, false);
	return true;
}

/* Events with filters that have a life of their own may keep one when they are off */
static inline const char *filter_left(const char *instance)
{
	static const char * const events[] = {
		"task/task_rename",
		"syscalls/sys_enter_sched_get_priority_max",
		"syscalls/sys_enter_sched_get_priority_min",
		"syscalls/sys_exit_sched_get_priority_max",
	};
	char path[64];
	int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), "events/%s/filter", events[i]);
		if (!instance_file_is(instance, path, "none\n", 0, "0"))
			return events[i];
	}
	return NULL;
}

/*
 * For teardowns: says what is other than in a new instance and stays so, or
 * "nothing"
 */
static inline const char *instance_left(const char *instance)
{
	static char event[128];
	const char *left;
	int i;

	if (access(instance, F_OK))
		return "nothing";
	for (i = 0; event_turn_off(instance, event, sizeof(event)); i++) {
		if (i == 100)
			return event;
	}
	left = filter_left(instance);
	if (left)
		return left;
	if (!instance_file_is(instance, "set_event_pid", "", O_TRUNC, ""))
		return "set_event_pid";
	if (!instance_file_is(instance, "tracing_on", "1\n", 0, "1"))
		return "tracing_on";
	return "nothing";
}

static inline const char *filter_prepare(void)
{
	const char *missing;

	/* Left by a test that died, with events in use */
	instance_left(INSTANCE);
	instance_left(INSTANCE2);
	missing = uprobe_prepare();
	if (!missing && access(TRACEFS "/events/syscalls", F_OK))
		return "CONFIG_FTRACE_SYSCALLS";
	return missing;
}

/* A perf event of this process */
static inline int perf_open_event(const char *event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	__u64 id;

	if (!read_u64(event_file(TRACEFS, event, "id"), &id))
		return -ENOENT;
	attr.config = id;
	return perf_open(&attr, 0, -1);
}

/*
 * Of this process counts the hits in @slot, and returns what is in the slot
 * after it; turns down those of others
 */
static inline int filter_prog(struct area *area, unsigned int slot,
			      enum bpf_prog_type type)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, getpid(), 5),
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 8),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

/*
 * What most tests of filters start with: the event, and as its filter in INSTANCE
 * a program that counts in slot 0 and lets everything pass.  Returns what has to be
 * closed for the filter to go.
 */
static inline int filter_create(const struct kind *kind, struct area *area, int *prog)
{
	int err = kind_create(kind) ?: instance_create(INSTANCE) ?: area_create(area);

	if (err)
		return err;
	area_set(area, 1, 1);
	*prog = filter_prog(area, 0, kind->type);
	return *prog < 0 ? *prog : filter_attach(INSTANCE, kind->event, *prog);
}

/* How many of three hits the program is asked about that counts in @slot */
static inline __u64 asked_in(struct area *area, unsigned int slot, const struct kind *kind)
{
	__u64 before = area_get(area, slot);

	kind_hits(kind, 3);
	return area_get(area, slot) - before;
}

/* How many records with both texts are in the instance */
static inline unsigned int count_records(const char *instance, const char *one,
					 const char *other)
{
	char line[1024], path[256];
	unsigned int n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/trace", instance);
	file = fopen(path, "re");
	if (!file)
		return ~0U;
	while (fgets(line, sizeof(line), file))
		n += *line != '#' && strstr(line, one) && strstr(line, other);
	fclose(file);
	return n;
}

/* The same, and clears them */
static inline unsigned int records_with(const char *instance, const char *one,
					const char *other)
{
	unsigned int n = count_records(instance, one, other);
	char path[256];

	snprintf(path, sizeof(path), "%s/trace", instance);
	write_file(path, O_TRUNC, "");
	return n;
}

/* Of this process */
static inline unsigned int records_of(const char *instance, const char *needle)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "-%d ", getpid());
	return records_with(instance, pid, needle);
}

/* Of all */
static inline unsigned int all_records(const char *instance)
{
	return records_with(instance, "", "");
}

static inline unsigned int records(const char *instance)
{
	return records_of(instance, "");
}

#endif /* BPF_EVENTS_FILTER_H */
