/* SPDX-License-Identifier: GPL-2.0 */
/* Modules that come and go: those in test_modules/, and some of the kernel's own */
#ifndef BPF_EVENTS_MODULE_H
#define BPF_EVENTS_MODULE_H

#include "prepare.h"

static inline int load_module_with(const char *path, const char *params)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	err = neg_errno(syscall(__NR_finit_module, fd, params, 0));
	close(fd);
	return err;
}

static inline int load_module(const char *path)
{
	return load_module_with(path, "");
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

/* A file of test_udelay calls into it */
#define MODULE_ENV "BPF_EVENTS_TEST_MODULE"
#define MODULE "test_udelay"
#define MODULE_FILE DEBUGFS "/udelay_test"
#define MODULE_FUNC "udelay_test_write"

static inline int module_unload(void)
{
	return unload_module(MODULE);
}

static inline int module_hit(void)
{
	return write_file(MODULE_FILE, 0, "1 1");
}

/* Prepares the test and says what is missing; *@path is the module's file */
static inline const char *module_prepare(const char **path)
{
	const char *missing = prepare();

	*path = getenv(MODULE_ENV);
	if (!missing && !*path)
		return MODULE_ENV " is not set, CONFIG_TEST_UDELAY=m makes the file";
	module_unload();
	return missing;
}

/*
 * It is going away from when it is unloaded until 1 is written to its parameter; loaded with
 * LEAVING_REFUSES, it is coming until then, and does not come
 */
#define LEAVING_MODULE "bpf_events_leaving"
#define LEAVING_FUNC "bpf_events_leaving_set"
#define LEAVING_LEAVE "/sys/module/" LEAVING_MODULE "/parameters/leave"
#define LEAVING_REFUSES "refuse=1"

static inline bool leaving_is(const char *now)
{
	char state[16] = "";

	read_file("/sys/module/" LEAVING_MODULE "/initstate", state, sizeof(state));
	return !strncmp(state, now, strlen(now));
}

/* The module whose events are hit about once a second each */
#define SAMPLE_MODULE_ENV "BPF_EVENTS_SAMPLE_MODULE"
#define SAMPLE_MODULE "trace_events_sample"
#define SAMPLE_EVENT "sample-trace/foo_bar"
#define NO_SAMPLE_MODULE "CONFIG_SAMPLE_TRACE_EVENTS=m, " SAMPLE_MODULE_ENV " says where"

/* Its file, or NULL */
static inline const char *sample_module(void)
{
	const char *path = getenv(SAMPLE_MODULE_ENV);

	if (!path)
		path = "/lib/modules/trace-events-sample.ko";
	return access(path, R_OK) ? NULL : path;
}

static inline int sample_unload(void)
{
	return unload_module(SAMPLE_MODULE);
}

/* The module that has put a custom event on a tracepoint of the scheduler */
#define CUSTOM_MODULE_ENV "BPF_EVENTS_CUSTOM_MODULE"
#define CUSTOM_MODULE "trace_custom_sched"
#define CUSTOM_EVENT "custom/sched_switch"
#define NO_CUSTOM_MODULE "CONFIG_SAMPLE_TRACE_CUSTOM_EVENTS=m, " CUSTOM_MODULE_ENV " says where"

/* Its file, or NULL */
static inline const char *custom_module(void)
{
	const char *path = getenv(CUSTOM_MODULE_ENV) ?: "/lib/modules/trace_custom_sched.ko";

	return access(path, R_OK) ? NULL : path;
}

/* A filter that counts all hits, which are not this process's, and lets none pass */
static inline int sample_prog(struct area *area, unsigned int slot)
{
	return count_prog_of(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, area, slot, 0);
}

static inline bool sample_wait_hit(struct area *area, unsigned int slot)
{
	__u64 before = area_get(area, slot);

	return wait_until(area_get(area, slot) != before);
}

#endif /* BPF_EVENTS_MODULE_H */
