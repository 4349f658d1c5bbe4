// SPDX-License-Identifier: GPL-2.0
/*
 * Which uprobe is at an address changes when another part of a file is mapped
 * there: a task that hit the old one last hits the new one next
 */
#include "common.h"
#include "link.h"
#include "uprobe.h"

#include <pthread.h>

#define PAGE 4096
#define NR 2

/* nop; mov $N, %eax; ret: in page N of a file */
static const unsigned char code[] = { 0x90, 0xb8, 0, 0, 0, 0, 0xc3 };

typedef long (*func_t)(void);

FIXTURE(remap) {
	char path[NR][32];
	int file[NR];
	struct area area;
	struct probe probe[NR];
	func_t func;
};

FIXTURE_VARIANT(remap) {
	unsigned int flags;
	bool one_file;
};

FIXTURE_VARIANT_ADD(remap, uprobes_of_two_files) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(remap, uretprobes_of_two_files) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(remap, uprobes_of_one_file) {
	.flags = PROBE_PMU, .one_file = true,
};

static int code_file(char *path, size_t len)
{
	unsigned char page[PAGE];
	int fd, i;

	snprintf(path, len, "/tmp/remap-XXXXXX");
	fd = mkstemp(path);
	for (i = 0; fd >= 0 && i < NR; i++) {
		memset(page, 0xcc, sizeof(page));
		memcpy(page, code, sizeof(code));
		page[2] = i;
		if (pwrite(fd, page, PAGE, i * PAGE) != PAGE)
			return -1;
	}
	return fd;
}

static void *map_page(int file, int page, void *addr)
{
	return mmap(addr, PAGE, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | (addr ? MAP_FIXED : 0), file, page * PAGE);
}

FIXTURE_SETUP(remap)
{
	const char *missing = uprobe_prepare();
	int i, file;

	if (missing)
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, area_create(&self->area));
	for (i = 0; i < NR; i++) {
		file = variant->one_file ? 0 : i;
		if (file == i)
			self->file[i] = code_file(self->path[i], sizeof(self->path[i]));
		else
			self->file[i] = self->file[file];
		ASSERT_LE(0, self->file[i]);
		ASSERT_EQ(0, uprobe_create_at(&self->probe[i], "event", self->path[file],
					      i * PAGE, 0, variant->flags));
		ASSERT_LE(0, attach_by(&self->probe[i], false,
				       count_prog(&self->area, i, 0)));
	}
	self->func = map_page(self->file[0], 0, NULL);
	ASSERT_NE(MAP_FAILED, (void *)self->func);
}

FIXTURE_TEARDOWN_PARENT(remap)
{
	int i;

	for (i = 0; i < NR; i++) {
		if (self->path[i][0])
			unlink(self->path[i]);
	}
	EXPECT_STREQ("nothing", leftovers());
}

/* How the other page gets to the same address */
enum way { OVER, AFTER_UNMAP, MOVED, NR_WAYS };

static void *replace(int file, int page, void *addr, enum way way)
{
	void *other;

	if (way == MOVED) {
		other = map_page(file, page, NULL);
		return other == MAP_FAILED ? other :
		       mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, addr);
	}
	if (way == AFTER_UNMAP)
		munmap(addr, PAGE);
	return map_page(file, page, addr);
}

TEST_F(remap, the_one_that_is_there_is_hit)
{
	__u64 hits[NR] = {};
	int i, round;

	for (round = 0; round < 4 * NR_WAYS; round++) {
		i = round % NR;
		ASSERT_EQ(self->func, replace(self->file[i], i, self->func,
					      round / NR % NR_WAYS));
		EXPECT_EQ(i, self->func());
		EXPECT_EQ(i, self->func());
		hits[i] += 2;
		EXPECT_EQ(hits[0], area_get(&self->area, 0));
		EXPECT_EQ(hits[1], area_get(&self->area, 1));
	}
}

struct caller {
	func_t func;
	bool stop;
	__u64 calls;
};

static void *call(void *arg)
{
	struct caller *caller = arg;

	do {
		caller->func();
		caller->calls++;
	} while (!__atomic_load_n(&caller->stop, __ATOMIC_RELAXED));
	return NULL;
}

/*
 * Another thread maps them. A call may come between what is mapped and its
 * breakpoint; it hits nothing then, and what comes later does.
 */
TEST_F(remap, while_it_is_hit)
{
	struct caller caller = { .func = self->func };
	pthread_t thread;
	__u64 hits;
	int i, n = rounds(2000);

	ASSERT_EQ(0, pthread_create(&thread, NULL, call, &caller));
	for (i = 0; i < n; i++) {
		if (replace(self->file[i % NR], i % NR, self->func, OVER) != self->func)
			break;
		if (i % 16 == 0)
			sched_yield();
	}
	__atomic_store_n(&caller.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(n, i);
	EXPECT_GE(caller.calls, area_get(&self->area, 0) + area_get(&self->area, 1));

	hits = area_get(&self->area, 1);
	EXPECT_EQ(1, self->func());
	EXPECT_EQ(hits + 1, area_get(&self->area, 1));
}

TEST_HARNESS_MAIN
