// SPDX-License-Identifier: GPL-2.0
/*
 * tracex4: how large the writes are, asked at a function and at the system call.
 * tracex4_user.c attaches these programs and prints the maps.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * How many calls had a size of n bits: slot 0 is size 0, slot 1 is 1, slot 2 is
 * 2-3, slot 3 is 4-7 and so on. The last slot has all larger sizes.
 */
#define SLOTS 33

struct sizes {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u64);
};

struct sizes kprobe SEC(".maps");
struct sizes syscall SEC(".maps");

/* Returns 0: no record in the trace, counting is all. */
static __always_inline int count(void *map, __u64 size)
{
	__u32 slot = 0;
	__u64 *count;

	while (slot < SLOTS - 1 && size >> slot)
		slot++;

	/* Not atomic: nothing else counts in this map on this CPU meanwhile. */
	count = bpf_map_lookup_elem(map, &slot);
	if (count)
		(*count)++;
	return 0;
}

SEC("events/kprobes/ksys_write")
int BPF_KPROBE(count_kprobe, unsigned int fd, const char *buf, size_t size)
{
	return count(&kprobe, size);
}

SEC("events/syscalls/sys_enter_write")
int count_syscall(__u64 *args)
{
	return count(&syscall, args[2]);
}

char LICENSE[] SEC("license") = "GPL";
