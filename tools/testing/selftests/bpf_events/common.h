/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What each test of BPF programs on events includes: the harness, on top of
 * what all tests share.  From the bottom up, each includes the one before:
 *
 *  - sys.h: system calls, processes, files
 *  - prog.h: programs and maps
 *  - probe.h: functions to probe, hits, and events on them
 *  - prepare.h: what the kernel has to have, and what is left in it
 *
 * The other headers are about a way to attach, or are for some tests only.  They
 * include what they need of these, and nothing of the harness; headers with
 * expectations of a test, as multi_error.h, include this one.
 */
#ifndef BPF_EVENTS_COMMON_H
#define BPF_EVENTS_COMMON_H

#include "sys.h"

/* The harness sets the time of a test by this: more of it where all is slow */
#define alarm(seconds) alarm((seconds) * patience())

#include "../kselftest_harness.h"
#include "prepare.h"

/*
 * Seconds after which a test counts as hung: more than any needs, also on a debug
 * kernel in an emulator on a busy machine.
 */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 300

/* Skips a test by @statement, unless @missing, what the kernel or the machine lacks, is NULL */
#define SKIP_WITHOUT(statement, missing)			\
	do {							\
		const char *lacking = missing;			\
								\
		if (lacking)					\
			SKIP(statement, "%s", lacking);		\
	} while (0)

#endif /* BPF_EVENTS_COMMON_H */
