/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TRACEX3_H
#define TRACEX3_H

/*
 * Latencies are counted in slots, four to each power of two of nanoseconds:
 *
 *	slot	0	1	2	3	4	...	63
 *	from	8192	10240	12288	14336	16384	...	469762048 ns
 *
 * The first slot takes all that are shorter, the last one all that are longer.
 */
#define SLOTS		64
#define FIRST_POWER	13

#endif
