/* SPDX-License-Identifier: GPL-2.0 */
/* The reader's side of a perf ring buffer */
#ifndef BPF_EVENTS_RING_H
#define BPF_EVENTS_RING_H

#include "sys.h"

#define RING_PAGES 8

struct ring {
	struct perf_event_mmap_page *page;
	char *data;
	size_t page_size;
};

static inline int ring_map(struct ring *ring, int perf)
{
	memset(ring, 0, sizeof(*ring));
	ring->page_size = sysconf(_SC_PAGESIZE);
	ring->page = mmap(NULL, (1 + RING_PAGES) * ring->page_size,
			  PROT_READ | PROT_WRITE, MAP_SHARED, perf, 0);
	if (ring->page == MAP_FAILED)
		return -errno;
	ring->data = (char *)ring->page + ring->page_size;
	return 0;
}

static inline void ring_unmap(struct ring *ring)
{
	munmap(ring->page, (1 + RING_PAGES) * ring->page_size);
}

/* Takes one record off the ring, and copies at most @size bytes.  Returns its type, or 0. */
static inline __u32 ring_take(struct ring *ring, void *record, size_t size)
{
	size_t i, mask = RING_PAGES * ring->page_size - 1;
	__u64 head, tail = ring->page->data_tail;
	struct perf_event_header *header;
	__u32 type;

	head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	if (head == tail)
		return 0;
	header = (struct perf_event_header *)(ring->data + (tail & mask));
	type = header->type;
	for (i = 0; i < header->size && i < size; i++)
		((char *)record)[i] = ring->data[(tail + i) & mask];
	__atomic_store_n(&ring->page->data_tail, tail + header->size,
			 __ATOMIC_RELEASE);
	return type;
}

/* The same, of a PERF_SAMPLE_RAW sample the raw bytes; *@len says how many there are. */
static inline __u32 ring_read(struct ring *ring, void *raw, __u32 size,
			      __u32 *len)
{
	char record[1024];
	const char *content = record + sizeof(struct perf_event_header);
	__u32 type = ring_take(ring, record, sizeof(record));

	if (type == PERF_RECORD_SAMPLE && raw) {
		memcpy(len, content, sizeof(*len));
		memcpy(raw, content + sizeof(*len), *len < size ? *len : size);
	}
	return type;
}

/* Empties the ring and says how many samples there were */
static inline unsigned int ring_samples(struct ring *ring)
{
	unsigned int n = 0;
	__u32 type;

	while ((type = ring_read(ring, NULL, 0, NULL)))
		n += type == PERF_RECORD_SAMPLE;
	return n;
}

#endif /* BPF_EVENTS_RING_H */
