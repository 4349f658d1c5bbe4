/* SPDX-License-Identifier: GPL-2.0 */
/* The reader's side of a BPF ring buffer of one page */
#ifndef BPF_EVENTS_RINGBUF_H
#define BPF_EVENTS_RINGBUF_H

#include "sys.h"

struct ringbuf {
	unsigned long *consumer;
	unsigned long *producer;
	char *data;
};

static inline int ringbuf_map(struct ringbuf *rb, int map)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *mem;

	rb->consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map,
			    0);
	mem = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, map, page);
	if (rb->consumer == MAP_FAILED || mem == MAP_FAILED)
		return -errno;
	rb->producer = (unsigned long *)mem;
	rb->data = mem + page;
	return 0;
}

/* Takes one record that was not discarded; NULL if there is none */
static inline const char *ringbuf_read(struct ringbuf *rb, __u32 *len)
{
	unsigned long at = *rb->consumer, mask = sysconf(_SC_PAGESIZE) - 1;
	const char *found = NULL;
	__u32 header;

	while (!found && at < __atomic_load_n(rb->producer, __ATOMIC_ACQUIRE)) {
		header = *(__u32 *)(rb->data + (at & mask));
		if (header & BPF_RINGBUF_BUSY_BIT)
			break;
		*len = header & ~BPF_RINGBUF_DISCARD_BIT;
		if (!(header & BPF_RINGBUF_DISCARD_BIT))
			found = rb->data + (at & mask) + BPF_RINGBUF_HDR_SZ;
		at += (*len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
	}
	__atomic_store_n(rb->consumer, at, __ATOMIC_RELEASE);
	return found;
}

#endif /* BPF_EVENTS_RINGBUF_H */
