/* SPDX-License-Identifier: GPL-2.0 */
/* Modules that come and go, and those in test_modules/ */
#ifndef BPF_EVENTS_TEST_MODULE_H
#define BPF_EVENTS_TEST_MODULE_H

static inline int load_module(const char *path)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	err = neg_errno(syscall(__NR_finit_module, fd, "", 0));
	close(fd);
	return err;
}

static inline int unload_module(const char *name)
{
	return neg_errno(syscall(__NR_delete_module, name, O_NONBLOCK));
}

/* The file of one in test_modules/, or NULL */
static inline const char *test_module(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "test_modules/%s.ko", name);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "/lib/modules/%s.ko", name);
	return access(path, R_OK) ? NULL : path;
}

#endif /* BPF_EVENTS_TEST_MODULE_H */
