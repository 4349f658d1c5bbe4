/* SPDX-License-Identifier: GPL-2.0 */
/* A module that comes and goes: a file of test_udelay calls into it */
#ifndef BPF_EVENTS_MODULE_H
#define BPF_EVENTS_MODULE_H

#include "test_module.h"

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

#endif /* BPF_EVENTS_MODULE_H */
