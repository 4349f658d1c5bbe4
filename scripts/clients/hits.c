// SPDX-License-Identifier: GPL-2.0
/*
 * Attaches the programs of hits.bpf.c to functions that it then calls, and says what each of them saw.  With an argument it
 * stays attached until it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "hits.h"
#include "hits.skel.h"

#define CALLS 3
#define ARGUMENT 21
#define BYTES 80
#define COOKIE(source) (0xc0de00 + (source))

static const char * const names[SOURCES] = {
	"kprobe", "kretprobe", "ksyscall", "uprobe", "uretprobe", "multi vfs_read", "multi vfs_write",
};

static const char * const functions[] = { "vfs_read", "vfs_write" };
static const __u64 cookies[] = { COOKIE(MULTI_READ), COOKIE(MULTI_WRITE) };
static int ring_hits[SOURCES], record_hits[SOURCES], null;

/* Is probed: must not be inlined. */
int trigger(int argument)
{
	char buf[BYTES] = "";

	if (read(null, buf, BYTES) || write(null, buf, BYTES) != BYTES)
		return -1;
	return argument * 2;
}

static int on_ring(void *unused, void *data, size_t size)
{
	ring_hits[((struct hit *)data)->source]++;
	return 0;
}

static void on_record(void *unused, int cpu, void *data, __u32 size)
{
	record_hits[((struct hit *)data)->source]++;
}

static int attach(struct hits_bpf *skel)
{
	LIBBPF_OPTS(bpf_kprobe_opts, kprobe, .bpf_cookie = COOKIE(KPROBE));
	LIBBPF_OPTS(bpf_kprobe_opts, kretprobe, .bpf_cookie = COOKIE(KRETPROBE), .retprobe = true);
	LIBBPF_OPTS(bpf_ksyscall_opts, ksyscall, .bpf_cookie = COOKIE(KSYSCALL));
	LIBBPF_OPTS(bpf_uprobe_opts, uprobe, .bpf_cookie = COOKIE(UPROBE), .func_name = "trigger");
	LIBBPF_OPTS(bpf_uprobe_opts, uretprobe, .bpf_cookie = COOKIE(URETPROBE), .func_name = "trigger",
		    .retprobe = true);
	LIBBPF_OPTS(bpf_kprobe_multi_opts, multi, .syms = (const char **)functions, .cookies = cookies, .cnt = 2);

	return bpf_program__attach_kprobe_opts(skel->progs.on_write, "vfs_write", &kprobe) &&
	       bpf_program__attach_kprobe_opts(skel->progs.on_write_return, "vfs_write", &kretprobe) &&
	       bpf_program__attach_ksyscall(skel->progs.on_write_syscall, "write", &ksyscall) &&
	       bpf_program__attach_uprobe_opts(skel->progs.on_trigger, -1, "/proc/self/exe", 0, &uprobe) &&
	       bpf_program__attach_uprobe_opts(skel->progs.on_trigger_return, -1, "/proc/self/exe", 0, &uretprobe) &&
	       bpf_program__attach_kprobe_multi_opts(skel->progs.on_any, NULL, &multi) ? 0 : -errno;
}

static int call_and_receive(struct hits_bpf *skel)
{
	struct perf_buffer *records = perf_buffer__new(bpf_map__fd(skel->maps.records), 8, on_record, NULL, NULL, NULL);
	struct ring_buffer *ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), on_ring, NULL, NULL);
	int i, failed = 0;

	null = open("/dev/null", O_RDWR);
	if (!records || !ring || null < 0)
		return -errno;
	skel->bss->tgid = getpid();
	for (i = 0; i < CALLS; i++)
		failed |= trigger(ARGUMENT) != 2 * ARGUMENT;
	skel->bss->tgid = 0;
	ring_buffer__consume(ring);
	perf_buffer__consume(records);
	return failed ? -EIO : 0;
}

static void print(struct hits_bpf *skel)
{
	__u64 stack[STACK_DEPTH];
	struct hit hit;
	__u32 source;

	printf("trigger is at %p\n", trigger);
	for (source = 0; source < SOURCES; source++) {
		memset(&hit, 0, sizeof(hit));
		memset(stack, 0, sizeof(stack));
		bpf_map__lookup_elem(skel->maps.hits, &source, sizeof(source), &hit, sizeof(hit), 0);
		bpf_map__lookup_elem(skel->maps.stacks, &hit.stack, sizeof(hit.stack), stack, sizeof(stack), 0);
		printf("%s: hits %llu ring %d records %d cookie %llx value %llx stack %llx\n", names[source], hit.count,
		       ring_hits[source], record_hits[source], hit.cookie, hit.value, stack[0]);
	}
}

int main(int argc, char **argv)
{
	struct hits_bpf *skel = hits_bpf__open_and_load();
	int err = skel ? attach(skel) ?: call_and_receive(skel) : -errno;

	if (err) {
		fprintf(stderr, "hits: %s\n", strerror(-err));
		return 1;
	}
	print(skel);
	fflush(stdout);
	if (argc > 1)
		pause();
	return 0;
}
