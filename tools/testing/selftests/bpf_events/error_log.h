/* SPDX-License-Identifier: GPL-2.0 */
/* What tracefs tells people about an attach that failed */
#ifndef BPF_EVENTS_ERROR_LOG_H
#define BPF_EVENTS_ERROR_LOG_H

#include "sys.h"

#define ERROR_LOG TRACEFS "/error_log"

/* Why attaches fail, as several tests expect it */
#define WANTS_KPROBE "This event takes programs of type BPF_PROG_TYPE_KPROBE"
#define IS_MULTI "This program was loaded for a multi link, which is not a perf event"
#define SLEEPS "This program may sleep, which only uprobe events allow"
#define OVERRIDES "The program overrides return values, the function forbids it"
#define FD_TAKEN "This perf event has a program already, open another for the next"
#define TWICE "This program is attached to the event already"

/* All of an error_log but the time stamps; empties it */
static inline const char *entries_of(const char *log)
{
	static char text[8192];
	char line[512], *start;
	FILE *file = fopen(log, "re");
	size_t len = 0;

	if (!file)
		return "error_log cannot be read";
	text[0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		start = line;
		if (*line == '[')
			start = strchr(line, ']') + 2;
		len += snprintf(text + len, sizeof(text) - len, "%s", start);
	}
	fclose(file);
	write_file(log, O_TRUNC, "");
	return text;
}

static inline const char *entries(void)
{
	return entries_of(ERROR_LOG);
}

/* One entry of error_log, with the caret at @pos of the command */
static inline const char *entry_at(const char *source, const char *error,
				   const char *cmd, int pos)
{
	static char text[1024];

	snprintf(text, sizeof(text), "%s: error: %s\n  Command: %s\n%*s^\n",
		 source, error, cmd, (int)strlen("  Command: ") + pos, "");
	return text;
}

/* One about an attach, with the caret under @word of the command */
static inline const char *entry(const char *error, const char *word, const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return entry_at("bpf_event", error, cmd, strstr(cmd, word) - cmd);
}

/*
 * Whether an error_log has one entry, with this error, and of a command that starts like
 * this; empties it
 */
static inline bool logged_in(const char *log, const char *source, const char *error,
			     const char *cmd)
{
	const char *text = entries_of(log);
	char start[512];

	snprintf(start, sizeof(start), "%s: error: %s\n  Command: %s", source, error, cmd);
	return !strncmp(text, start, strlen(start)) &&
	       !strstr(text + strlen(start), "\n  Command: ");
}

/* Of an attach */
static inline bool logged(const char *error, const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return logged_in(ERROR_LOG, "bpf_event", error, cmd);
}

#endif /* BPF_EVENTS_ERROR_LOG_H */
