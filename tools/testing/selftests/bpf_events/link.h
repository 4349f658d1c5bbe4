/* SPDX-License-Identifier: GPL-2.0 */
/* Links of programs to perf events */
#ifndef BPF_EVENTS_LINK_H
#define BPF_EVENTS_LINK_H

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "probe.h"

#define BPFFS "/sys/fs/bpf"

static inline int link_create(int prog, int target, enum bpf_attach_type type,
			      __u32 flags, __u64 cookie)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.target_fd = target,
		.link_create.attach_type = type,
		.link_create.flags = flags,
		.link_create.perf_event.bpf_cookie = cookie,
	};

	return sys_bpf(BPF_LINK_CREATE, &attr);
}

static inline int perf_link(int perf, int prog)
{
	return link_create(prog, perf, BPF_PERF_EVENT, 0, 0);
}

/* Links the program to another perf event of the probe, which the link keeps */
static inline int attach_link(const struct probe *p, int prog, __u64 cookie)
{
	int link, fd = probe_open(p);

	if (fd < 0)
		return fd;
	link = link_create(prog, fd, BPF_PERF_EVENT, 0, cookie);
	close(fd);
	return link;
}

/* In either way; what is returned has to be closed to detach */
static inline int attach_by(const struct probe *p, bool link, int prog)
{
	return link ? attach_link(p, prog, 0) : attach(p, prog);
}

/* What is in @info says where a name is to go */
static inline int link_info(int link, struct bpf_link_info *info)
{
	union bpf_attr attr = {
		.info.bpf_fd = link,
		.info.info_len = sizeof(*info),
		.info.info = (unsigned long)info,
	};

	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static inline __u32 link_id(int link)
{
	struct bpf_link_info info = {};

	return link_info(link, &info) ? 0 : info.id;
}

static inline int link_by_id(__u32 id)
{
	union bpf_attr attr = { .link_id = id };

	return sys_bpf(BPF_LINK_GET_FD_BY_ID, &attr);
}

/* Pins an object, below BPFFS */
static inline int obj_pin(int fd, const char *path)
{
	union bpf_attr attr = {
		.pathname = (unsigned long)path, .bpf_fd = fd,
	};
	struct statfs fs;

	if (statfs(BPFFS, &fs) || fs.f_type != BPF_FS_MAGIC)
		mount("bpf", BPFFS, "bpf", 0, NULL);
	return sys_bpf(BPF_OBJ_PIN, &attr);
}

static inline int obj_get(const char *path)
{
	union bpf_attr attr = { .pathname = (unsigned long)path };

	return sys_bpf(BPF_OBJ_GET, &attr);
}

/* The number, or the text, that fdinfo has of a descriptor; none: NULL, ~0 */
static inline const char *fdinfo_text(int fd, const char *name)
{
	static char line[256];
	char path[64], key[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(key, sizeof(key), "%s:\t", name);
	if (!find_line(path, key, line, sizeof(line)) ||
	    strncmp(line, key, strlen(key)))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return line + strlen(key);
}

static inline __u64 fdinfo_number(int fd, const char *name)
{
	const char *text = fdinfo_text(fd, name);

	return text ? strtoull(text, NULL, 0) : ~0ULL;
}

#endif /* BPF_EVENTS_LINK_H */
