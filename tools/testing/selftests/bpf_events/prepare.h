/* SPDX-License-Identifier: GPL-2.0 */
/* What tests need of the kernel, and what they leave in it */
#ifndef BPF_EVENTS_PREPARE_H
#define BPF_EVENTS_PREPARE_H

#include <sys/mount.h>

#include "probe.h"

static inline bool bpf_left(int next_cmd, int open_cmd, char *text, size_t size)
{
	bool map = next_cmd == BPF_MAP_GET_NEXT_ID;
	struct bpf_prog_info prog;
	struct bpf_map_info info;
	union bpf_attr attr;
	const char *name;
	__u32 id = 0;
	int fd, err;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (sys_bpf(next_cmd, &attr))
			return false;
		id = attr.next_id;

		memset(&attr, 0, sizeof(attr));
		attr.map_id = id;
		fd = sys_bpf(open_cmd, &attr);
		if (fd < 0)
			continue;
		memset(&attr, 0, sizeof(attr));
		memset(&prog, 0, sizeof(prog));
		memset(&info, 0, sizeof(info));
		attr.info.bpf_fd = fd;
		attr.info.info_len = map ? sizeof(info) : sizeof(prog);
		attr.info.info = map ? (unsigned long)&info :
				       (unsigned long)&prog;
		err = sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
		close(fd);
		name = map ? info.name : prog.name;
		if (!err && !strcmp(name, BPF_NAME)) {
			snprintf(text, size, "%s %u", map ? "map" : "program", id);
			return true;
		}
	}
}

/* Removes our events, of kernel and user space; one in use is left */
static inline bool event_left(char *text, size_t size)
{
	char line[256], *name;

	while (find_line(TRACEFS "/dynamic_events", ":" GROUP "/", line,
			 sizeof(line))) {
		name = strchr(line, '/') + 1;
		name[strcspn(name, "\n ")] = '\0';
		if (write_file(TRACEFS "/dynamic_events", O_APPEND,
			       "-:" GROUP "/%s\n", name)) {
			snprintf(text, size, "event %s, in use", name);
			return true;
		}
	}
	return false;
}

static inline bool kprobe_left(char *text, size_t size)
{
	char line[256];

	if (!find_line(DEBUGFS "/kprobes/list", SYS_FUNC("sched_"), line,
		       sizeof(line)))
		return false;
	line[strcspn(line, "\n")] = '\0';
	snprintf(text, size, "kprobe %s", line);
	return true;
}

static inline bool ftrace_left(char *text, size_t size)
{
	char line[256];

	if (!find_line(TRACEFS "/enabled_functions", SYS_FUNC("sched_"), line,
		       sizeof(line)))
		return false;
	snprintf(text, size, "ftrace %s", line);
	return true;
}

/*
 * For teardowns, which run when the processes of the test have exited: says
 * what they left, or "nothing".  Programs and maps are freed a while after
 * their last use, hence the wait.
 */
static inline const char *leftovers(void)
{
	static char text[320];
	bool none = wait_gone(!event_left(text, sizeof(text)) &&
			      !kprobe_left(text, sizeof(text)) &&
			      !ftrace_left(text, sizeof(text)) &&
			      !bpf_left(BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID, text,
					 sizeof(text)) &&
			      !bpf_left(BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID, text,
					 sizeof(text)));

	return none ? "nothing" : text;
}

/*
 * Is this mainline's BPF on events? It has the same ABI; tests of what differs are
 * skipped there. Documentation/bpf/prog_kprobe.rst has a table of the differences.
 */
static inline bool mainline(void)
{
	return access("/proc/sys/kernel/bpf_kprobe_kern_version", F_OK);
}

/*
 * For the start of each fixture: mounts what is needed, removes the events of
 * a test that died, and says which option the kernel lacks, or NULL.
 */
static inline const char *prepare(void)
{
	char text[320];
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	if (access(TRACEFS "/kprobe_events", F_OK))
		mount("tracefs", TRACEFS, "tracefs", 0, NULL);
	if (access(DEBUGFS "/tracing", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	if (access(TRACEFS "/kprobe_events", F_OK))
		return "CONFIG_KPROBE_EVENTS";
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		return "CONFIG_BPF_SYSCALL";
	event_left(text, sizeof(text));

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd == -EINVAL)
		return "CONFIG_BPF_EVENTS";
	if (fd >= 0)
		close(fd);
	return NULL;
}

#endif /* BPF_EVENTS_PREPARE_H */
