/* SPDX-License-Identifier: GPL-2.0 */
/* Loads of programs with a log, which the test reads */
#ifndef BPF_EVENTS_LOAD_LOG_H
#define BPF_EVENTS_LOAD_LOG_H

#include "prog.h"

static char log_text[65536];

static inline int load_log(union bpf_attr *attr)
{
	memset(log_text, 0, sizeof(log_text));
	attr->log_buf = (unsigned long)log_text;
	attr->log_size = sizeof(log_text);
	attr->log_level = 1;
	return sys_bpf(BPF_PROG_LOAD, attr);
}

/* Is the text in the log? */
static inline bool logged(const char *text)
{
	if (strstr(log_text, text))
		return true;
	fprintf(stderr, "# the log is:\n%s", log_text);
	return false;
}

#endif /* BPF_EVENTS_LOAD_LOG_H */
