/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions that do nothing, and that nothing else has: nopl DISPLACEMENT(%rax).
 * Between the two, the plugin contention.c counts.
 */
#define NOPL		"\x0f\x1f\x80"	/* and 4 bytes of displacement */
#define MARK_BEGIN	NOPL "begn"
#define MARK_END	NOPL "end "
