// SPDX-License-Identifier: GPL-2.0
/*
 * argctx libbpf FILE: loads argctx.bpf.o with libbpf, as of this kernel.  argctx light: the same program from its light skeleton,
 * which says nothing of a kernel version.  Either counts three calls of write().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <linux/perf_event.h>
#include <bpf/libbpf.h>
#include "argctx.lskel.h"

struct counts {
	unsigned long *len;
	int *pid;
	int *hits;
};

static int failed(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 1;
}

/* Attaches the program to vfs_write() and calls it. */
static int run(const char *name, int prog, const struct counts *counts)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .config1 = (unsigned long)"vfs_write" };
	FILE *type = fopen("/sys/bus/event_source/devices/kprobe/type", "r");
	int perf, pipes[2];

	if (!type || fscanf(type, "%u", &attr.type) != 1 || pipe(pipes))
		return failed("set-up");
	fclose(type);
	perf = syscall(__NR_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf < 0 || ioctl(perf, PERF_EVENT_IOC_SET_BPF, prog))
		return failed("attach");

	*counts->pid = getpid();
	for (int i = 0; i < 3; i++) {
		if (write(pipes[1], "hello", 5) != 5)
			return failed("write");
	}
	close(perf);
	printf("%s: hits %d length %lu\n", name, *counts->hits, *counts->len);
	return 0;
}

static int by_libbpf(const char *file)
{
	struct bpf_object *obj = bpf_object__open_file(file, NULL);
	struct argctx__bss *bss;
	size_t size;

	if (!obj || bpf_object__load(obj))
		return failed(file); /* libbpf has said why */
	bss = bpf_map__initial_value(bpf_object__find_map_by_name(obj, ".bss"), &size);
	return run("libbpf", bpf_program__fd(bpf_object__find_program_by_name(obj, "on_write")),
		   &(struct counts){ &bss->len, &bss->pid, &bss->hits });
}

static int by_skeleton(void)
{
	struct argctx *skel = argctx__open_and_load();

	if (!skel)
		return failed("light skeleton");
	return run("light", skel->progs.on_write.prog_fd,
		   &(struct counts){ &skel->bss->len, &skel->bss->pid, &skel->bss->hits });
}

int main(int argc, char **argv)
{
	return argc > 2 ? by_libbpf(argv[2]) : by_skeleton();
}
