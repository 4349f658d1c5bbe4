// SPDX-License-Identifier: GPL-2.0
/*
 * Which uprobe is at an address changes when another part of a file is mapped
 * there: a task that hit the old one last hits the new one next
 */
#include "common.h"
#include "link.h"
#include "uprobe.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define PAGE 4096
#define NR 2

/* mov $N, %eax; ret: in page N of a file */
static const unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0xc3 };

typedef long (*func_t)(void);

FIXTURE(remap) {
	char dir[32];
	char path[NR][64];
	struct area area;
	struct probe probe[NR];
	func_t func;
};

FIXTURE_VARIANT(remap) {
	unsigned int flags;
	bool one_file;
	bool overlay;
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

/* Its files have files below them, which are what is mapped */
FIXTURE_VARIANT_ADD(remap, uprobes_of_an_overlay) {
	.flags = PROBE_PMU, .overlay = true,
};

static int code_file(const char *path)
{
	unsigned char page[PAGE];
	int fd, i, err = 0;

	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	for (i = 0; i < NR; i++) {
		memset(page, 0xcc, sizeof(page));
		memcpy(page, code, sizeof(code));
		page[1] = i;
		if (pwrite(fd, page, PAGE, i * PAGE) != PAGE)
			err = -EIO;
	}
	close(fd);
	return err;
}

/* Of a file that nobody has open: it is closed when it is unmapped */
static void *map_pages(const char *path, int page, int nr, void *addr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *mem = mmap(addr, nr * PAGE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | (addr ? MAP_FIXED : 0), fd, page * PAGE);

	close(fd);
	return mem;
}

static const char * const dirs[] = { "lower", "empty", "merged" };

FIXTURE_SETUP(remap)
{
	char name[16];
	int i;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	snprintf(self->dir, sizeof(self->dir), "/tmp/remap-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->dir));
	ASSERT_EQ(0, chdir(self->dir));
	for (i = 0; i < ARRAY_SIZE(dirs); i++)
		ASSERT_EQ(0, mkdir(dirs[i], 0700));
	if (variant->overlay && mount("overlay", "merged", "overlay", 0, "lowerdir=lower:empty")) {
		ASSERT_EQ(ENODEV, errno);
		SKIP(return, "CONFIG_OVERLAY_FS");
	}
	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "lower/%d", i);
		ASSERT_EQ(0, code_file(name));
		snprintf(self->path[i], sizeof(self->path[i]), "%s/%d",
			 variant->overlay ? "merged" : "lower", variant->one_file ? 0 : i);
		ASSERT_EQ(0, uprobe_create_at(&self->probe[i], "event", self->path[i],
					      i * PAGE, 0, variant->flags));
		ASSERT_LE(0, attach_by(&self->probe[i], false,
				       count_prog(&self->area, i, 0)));
	}
	self->func = map_pages(self->path[0], 0, 1, NULL);
	ASSERT_NE(MAP_FAILED, (void *)self->func);
}

FIXTURE_TEARDOWN_PARENT(remap)
{
	int i;

	if (self->dir[0] && !chdir(self->dir)) {
		umount("merged");
		unlink("lower/0");
		unlink("lower/1");
		for (i = 0; i < ARRAY_SIZE(dirs); i++)
			EXPECT_EQ(0, rmdir(dirs[i]));
		EXPECT_EQ(0, chdir("/"));
		EXPECT_EQ(0, rmdir(self->dir));
	}
	EXPECT_STREQ("nothing", leftovers());
}

/* How the other page gets to the same address */
enum way { OVER, AFTER_UNMAP, MOVED, NR_WAYS };

static void *replace(const char *path, int page, void *addr, enum way way)
{
	void *other;

	if (way == MOVED) {
		other = map_pages(path, page, 1, NULL);
		return other == MAP_FAILED ? other :
		       mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, addr);
	}
	if (way == AFTER_UNMAP)
		munmap(addr, PAGE);
	return map_pages(path, page, 1, addr);
}

TEST_F(remap, the_one_that_is_there_is_hit)
{
	__u64 hits[NR] = {};
	int i, round;

	for (round = 0; round < 4 * NR_WAYS; round++) {
		i = round % NR;
		ASSERT_EQ(self->func, replace(self->path[i], i, self->func,
					      round / NR % NR_WAYS));
		EXPECT_EQ(i, self->func());
		EXPECT_EQ(i, self->func());
		hits[i] += 2;
		EXPECT_EQ(hits[0], area_get(&self->area, 0));
		EXPECT_EQ(hits[1], area_get(&self->area, 1));
	}
}

/* Calls until it is to stop, and then once more */
struct caller {
	pthread_t thread;
	func_t func;
	struct area *area;
	bool stop;
	__u64 calls;
	__u64 hits;	/* of the program of page 1, before the last call */
	long last;	/* what that gave */
};

static void *call(void *arg)
{
	struct caller *caller = arg;

	while (!__atomic_load_n(&caller->stop, __ATOMIC_ACQUIRE)) {
		caller->func();
		caller->calls++;
	}
	caller->hits = area_get(caller->area, 1);
	caller->last = caller->func();
	caller->calls++;
	return NULL;
}

/* Where the hits are counted; this thread goes to another CPU, if there is one */
static int caller_start(struct caller *caller)
{
	int err = -pthread_create(&caller->thread, NULL, call, caller);

	pin(1);
	return err;
}

static void caller_stop(struct caller *caller)
{
	__atomic_store_n(&caller->stop, true, __ATOMIC_RELEASE);
	pthread_join(caller->thread, NULL);
}

/*
 * Another thread maps them. A call may come between what is mapped and its
 * breakpoint; it hits nothing then, and what comes later does.
 */
TEST_F(remap, while_it_is_hit)
{
	struct caller caller = { .func = self->func, .area = &self->area };
	int i, n = 2 * rounds(250);

	ASSERT_EQ(0, caller_start(&caller));
	for (i = 0; i < n; i++) {
		if (replace(self->path[i % NR], i % NR, self->func, OVER) != self->func)
			break;
		if (i % 16 == 0)
			sched_yield();
	}
	caller_stop(&caller);
	EXPECT_EQ(n, i);
	EXPECT_GE(caller.calls, area_get(&self->area, 0) + area_get(&self->area, 1));
	EXPECT_EQ(1, caller.last);
	EXPECT_EQ(caller.hits + 1, area_get(&self->area, 1));
}

/*
 * Where in the file the code is, the VMA says: also while that is split and merged. Who
 * takes the start of the one and the offset of the other for it finds the probe of page 0.
 */
TEST_F(remap, while_its_mapping_is_split)
{
	char *mem = map_pages(self->path[1], 0, NR, NULL);
	struct caller caller = { .func = (func_t)(mem + PAGE), .area = &self->area };
	int i, n = rounds(500), err = 0;

	ASSERT_NE(MAP_FAILED, (void *)mem);
	ASSERT_EQ(0, caller_start(&caller));
	for (i = 0; i < n && !err; i++) {
		err = mprotect(mem, PAGE, i % 2 ? PROT_READ | PROT_EXEC : PROT_READ);
		if (i % 16 == 0)
			sched_yield();
	}
	caller_stop(&caller);
	EXPECT_EQ(0, err);
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(caller.calls, area_get(&self->area, 1));
}

TEST_HARNESS_MAIN
