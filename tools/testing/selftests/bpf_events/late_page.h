/* SPDX-License-Identifier: GPL-2.0 */
/* A page that is there when the test says so: until then, tasks wait for it */
#ifndef BPF_EVENTS_LATE_PAGE_H
#define BPF_EVENTS_LATE_PAGE_H

#include <poll.h>
#include <linux/userfaultfd.h>

#include "common.h"

#define LATE_PAGE_SIZE 4096

struct late_page {
	void *mem;	/* behind a page that is there */
	int uffd;
};

/* What the kernel lacks, or NULL */
static inline const char *late_page_missing(void)
{
	return access("/proc/sys/vm/unprivileged_userfaultfd", F_OK) ? "CONFIG_USERFAULTFD" : NULL;
}

static inline int late_page_create(struct late_page *page)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	page->uffd = neg_errno(syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK));
	if (page->uffd < 0)
		return page->uffd;
	page->mem = mmap(NULL, 2 * LATE_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page->mem == MAP_FAILED || ioctl(page->uffd, UFFDIO_API, &api))
		return -errno;
	page->mem += LATE_PAGE_SIZE;
	range.range.start = (unsigned long)page->mem;
	range.range.len = LATE_PAGE_SIZE;
	return neg_errno(ioctl(page->uffd, UFFDIO_REGISTER, &range));
}

/* A task waits for it */
static inline bool late_page_is_awaited(const struct late_page *page)
{
	struct pollfd poll_fd = { .fd = page->uffd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLIN;
}

/* With NULL, all zeroes */
static inline int late_page_give(const struct late_page *page, const void *data)
{
	static const char zeroes[LATE_PAGE_SIZE];
	struct uffdio_copy copy = {
		.dst = (unsigned long)page->mem,
		.src = (unsigned long)(data ?: zeroes),
		.len = LATE_PAGE_SIZE,
	};

	return neg_errno(ioctl(page->uffd, UFFDIO_COPY, &copy));
}

#endif /* BPF_EVENTS_LATE_PAGE_H */
