/* SPDX-License-Identifier: GPL-2.0 */
/* What tracefs tells people about an attach that failed */
#ifndef BPF_EVENTS_ERROR_LOG_H
#define BPF_EVENTS_ERROR_LOG_H

#include "sys.h"

#define ERROR_LOG TRACEFS "/error_log"

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

/* Whether error_log has one entry, and of this command; empties it */
static inline bool logged(const char *fmt, ...)
{
	const char *start = "bpf_event: error: ", *text = entries();
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return !strncmp(text, start, strlen(start)) &&
	       !strstr(text + 1, start) && strstr(text, cmd);
}

#endif /* BPF_EVENTS_ERROR_LOG_H */
