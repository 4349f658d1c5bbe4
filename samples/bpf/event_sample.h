/* SPDX-License-Identifier: GPL-2.0 */
/* What most samples of programs on events have in common: everything but their purpose. */
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

/* Options that most samples have: -i SECONDS, which each has its own default of, and --json */
extern double sample_interval;
extern bool sample_json;

/*
 * Options -d SECONDS, -v and -h, and those in @more. Of these, i: and j are as above, and the
 * others go to @option. From now on SIGINT and SIGTERM only end sample_wait().
 */
void sample_options(int argc, char **argv, const char *usage, const char *more,
		    void (*option)(int opt, const char *arg));
/* Microseconds, as nanoseconds */
__u64 sample_parse_us(const char *text);

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
/* The same, and returns true as soon as there is something to read from @fd. */
bool sample_wait_for(int fd, double seconds);

/* Sums up all CPUs in a per-CPU array of __u64. */
void sample_read_counts(struct bpf_object *obj, const char *map_name, __u64 *counts);
/* Writes slot 0 of an array, before the programs are attached. */
void sample_set(struct bpf_object *obj, const char *map_name, const void *value, size_t size);

/*
 * Says how many hits each program missed, and why, so far or until it was detached;
 * nothing on a kernel that does not count them. With --json it is a member, "programs".
 */
void sample_print_missed(void);
/* Prints a member of a JSON object that is not the first. */
void sample_print_string(const char *key, const char *text);
/* MAJOR:MINOR of what the kernel has in s_dev, until the next call */
const char *sample_device(__u32 dev);
/* Replaces what a terminal might take for commands. Returns text. */
char *sample_printable(char *text);

#endif
