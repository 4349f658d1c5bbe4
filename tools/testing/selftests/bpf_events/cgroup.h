/* SPDX-License-Identifier: GPL-2.0 */
/* A cgroup with a memory controller */
#ifndef BPF_EVENTS_CGROUP_H
#define BPF_EVENTS_CGROUP_H

#include <sys/mount.h>
#include <sys/stat.h>

#include "sys.h"

struct memcg {
	char root[64], dir[96];
};

/* Into one of its files */
#define memcg_write(memcg, file, ...)						\
({										\
	char __path[128];							\
										\
	snprintf(__path, sizeof(__path), "%s/" file, (memcg)->dir);		\
	write_file(__path, 0, __VA_ARGS__);					\
})

/* 0 if there is no such file, or it holds no number */
static inline __u64 memcg_read(const struct memcg *memcg, const char *file)
{
	char path[128];
	__u64 val;

	snprintf(path, sizeof(path), "%s/%s", memcg->dir, file);
	return read_u64(path, &val) ? val : 0;
}

/* The processes in it have exited by then */
static inline int memcg_remove(const struct memcg *memcg)
{
	char subtree[128];

	snprintf(subtree, sizeof(subtree), "%s/cgroup.subtree_control", memcg->root);
	write_file(subtree, 0, "-memory");
	if (rmdir(memcg->dir) || umount(memcg->root) || rmdir(memcg->root))
		return -errno;
	return 0;
}

/* Returns what is missing for it, or NULL */
static inline const char *memcg_create(struct memcg *memcg)
{
	char subtree[128];

	snprintf(memcg->root, sizeof(memcg->root), "/tmp/bpf_events.XXXXXX");
	if (!mkdtemp(memcg->root))
		return "a directory in /tmp";
	if (mount("cgroup2", memcg->root, "cgroup2", 0, NULL)) {
		rmdir(memcg->root);
		return "CONFIG_CGROUPS";
	}
	snprintf(memcg->dir, sizeof(memcg->dir), "%s/bpf_events", memcg->root);
	snprintf(subtree, sizeof(subtree), "%s/cgroup.subtree_control", memcg->root);
	if (mkdir(memcg->dir, 0755) || write_file(subtree, 0, "+memory")) {
		memcg_remove(memcg);
		return "CONFIG_MEMCG";
	}
	return NULL;
}

#endif /* BPF_EVENTS_CGROUP_H */
