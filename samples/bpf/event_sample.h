/* SPDX-License-Identifier: GPL-2.0 */
/* What dropmon, lostcat and tracex1, 3 and 4 have in common: everything but their purpose. */
#ifndef EVENT_SAMPLE_H
#define EVENT_SAMPLE_H

#include <stdbool.h>
#include <stdnoreturn.h>
#include <bpf/libbpf.h>

enum sample_step { SAMPLE_LOAD, SAMPLE_ATTACH, SAMPLE_RUN };

/* Says what failed and why, gives a hint what to do about it, exits with 1. */
noreturn void sample_fail(enum sample_step step, const char *what, int err);
/* Says how the sample is to be called, exits with 2. */
noreturn void sample_usage(void);

/*
 * Options -d SECONDS, -v and -h, and those in @more, which go to @option; --json is j.
 * From now on SIGINT and SIGTERM only end sample_wait().
 */
void sample_options(int argc, char **argv, const char *usage, const char *more,
		    void (*option)(int opt, const char *arg));
double sample_parse_seconds(const char *text);

/* Loads NAME.bpf.o from the directory of the program NAME. */
struct bpf_object *sample_load(void);
/* Makes each program the filter of the event that its section is named after. */
void sample_attach(struct bpf_object *obj);
void sample_detach(void);

/* Says what the sample is doing now, and starts its clock. */
void sample_start(const char *doing);
/* Seconds since sample_start(). */
double sample_time(void);
/* Returns true after so many seconds, false once the sample is to end. */
bool sample_wait(double seconds);

/* Sums up all CPUs in a per-CPU array of __u64. */
void sample_read_counts(struct bpf_object *obj, const char *map_name, __u64 *counts);

#endif
