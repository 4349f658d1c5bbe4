// SPDX-License-Identifier: GPL-2.0
/*
 * A section handler for libbpf: programs as filters of trace events, see
 * event_filter.h and Documentation/trace/bpf-filter.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/libbpf.h>

/* for struct bpf_link; of the kernel's headers that this needs, one is not installed */
#define __must_check
#include <bpf/libbpf_internal.h>

#include "event_filter.h"

#define TRACEFS	"/sys/kernel/tracing/"
#define KPROBES	"events/kprobes/"
#define UPROBES	"events/uprobes/"

static char instance[128];	/* its directory, with a / at the end, if there is one */

struct filter_link {
	struct bpf_link link;	/* its fd is the filter file */
	const char *kprobe;	/* the event that was defined for the link, or NULL */
};

/* Returns the file, still open, or a negative errno. */
static int open_and_write(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags), err;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) >= 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int change_kprobes(const char *format, const char *name)
{
	char text[256];
	int fd;

	snprintf(text, sizeof(text), format, name, name);
	fd = open_and_write(TRACEFS "kprobe_events", O_APPEND, text);
	return fd < 0 ? fd : close(fd);
}

static int define_kprobe(struct filter_link *filter, const char *name)
{
	int err = change_kprobes("p:kprobes/%s %s", name);

	if (!err)
		filter->kprobe = name;
	return err;
}

static int undefine_kprobe(struct filter_link *filter)
{
	return filter->kprobe ? change_kprobes("-:kprobes/%s", filter->kprobe) : 0;
}

/* Returns 1 if it was not there. */
static int make_instance(void)
{
	if (!*instance)
		return 0;
	if (!mkdir(instance, 0755))
		return 1;
	return errno == EEXIST ? 0 : -errno;
}

static int detach_filter(struct bpf_link *link)
{
	int err;

	close(link->fd);
	err = undefine_kprobe((struct filter_link *)link);
	if (*instance)	/* stays if others are in it */
		rmdir(instance);
	return err;
}

static int attach_filter(const struct bpf_program *prog, long cookie, struct bpf_link **link)
{
	const char *event = bpf_program__section_name(prog);
	struct filter_link *filter;
	char path[PATH_MAX], text[32];
	int made, err, fd = -1;

	filter = calloc(1, sizeof(*filter));
	if (!filter)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s%s/filter", *instance ? instance : TRACEFS, event);
	snprintf(text, sizeof(text), "bpf-%d", bpf_program__fd(prog));

	made = make_instance();
	err = made < 0 ? made : 0;
	if (!err && !strncmp(event, KPROBES, strlen(KPROBES)) && access(path, F_OK))
		err = define_kprobe(filter, event + strlen(KPROBES));
	if (!err)
		fd = open_and_write(path, 0, text);
	if (fd >= 0) {
		filter->link.fd = fd;
		filter->link.detach = detach_filter;
		*link = &filter->link;
		return 0;
	}
	undefine_kprobe(filter);
	if (made > 0)
		rmdir(instance);
	free(filter);
	return err ?: fd;
}

void event_filter_instance(const char *name)
{
	snprintf(instance, sizeof(instance), TRACEFS "instances/%s/", name);
}

int event_filter_register(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_attach_fn = attach_filter);
	static const struct {
		const char *section;
		enum bpf_prog_type type;
	} handlers[] = {	/* the first that matches is used */
		{ KPROBES, BPF_PROG_TYPE_KPROBE },
		{ UPROBES, BPF_PROG_TYPE_KPROBE },
		{ "events/", BPF_PROG_TYPE_RAW_TRACEPOINT },
	};
	int id, i;

	for (i = 0; i < 3; i++) {
		id = libbpf_register_prog_handler(handlers[i].section, handlers[i].type, 0, &opts);
		if (id < 0)
			return id;
	}
	return 0;
}
