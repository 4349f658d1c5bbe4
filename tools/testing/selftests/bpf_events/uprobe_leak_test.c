// SPDX-License-Identifier: GPL-2.0
/*
 * A uprobe leaves also where its page has been truncated, its reference counter is wrong,
 * or its process cannot get memory. One that does not would keep the instruction that was
 * there, for whatever is probed in that place later. One that stays is not for a process
 * that maps other contents of the file.
 */
#include <sys/mman.h>

#include "common.h"
#include "cgroup.h"
#include "error_log.h"
#include "umulti.h"

#define CHANGED "The file has changed here since somebody probed it, who has to end that first"

#define CODE_SIZE	64
#define PAGE		4096

FIXTURE(leak) {
	struct area area;
	char path[32];
	int file;
};

FIXTURE_VARIANT(leak) {
	struct user_way way;
};

FIXTURE_VARIANT_ADD(leak, uprobe_event) {};

FIXTURE_VARIANT_ADD(leak, uprobe_pmu) {
	.way.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(leak, uprobe_pmu_link) {
	.way = { .flags = PROBE_PMU, .link = true },
};

FIXTURE_VARIANT_ADD(leak, uprobe_multi) {
	.way.multi = true,
};

FIXTURE_SETUP(leak)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, area_create(&self->area));
	self->file = memfd_create("library", 0);
	ASSERT_LE(0, self->file);
	snprintf(self->path, sizeof(self->path), "/proc/self/fd/%d", self->file);
}

FIXTURE_TEARDOWN_PARENT(leak)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* To the code at @offset of a file, with a reference counter in the same file or 0 */
static int leak_attach(FIXTURE_DATA(leak) * self, const FIXTURE_VARIANT(leak) * variant,
		       const char *path, unsigned long offset, unsigned long ref_ctr)
{
	struct umulti multi = {
		.path = path,
		.cnt = 1,
		.offsets = { offset },
		.ref_ctr_offsets = { ref_ctr },
	};

	return umulti_attach(&multi, &variant->way, &self->area);
}

/* Two versions of a function, and the instruction in which they differ */
static int version1(void)
{
	asm volatile("in_version1:");
	return 1;
}

static int version2(void)
{
	asm volatile("in_version2:");
	return 2;
}

extern const char in_version1[];

/* Two pages: code that does as @func, and zeroes */
static int install(int file, int (*func)(void))
{
	if (ftruncate(file, 0) || ftruncate(file, 2 * PAGE))
		return -errno;
	return pwrite(file, (void *)func, CODE_SIZE, 0) == CODE_SIZE ? 0 : -EIO;
}

TEST_F(leak, file_is_replaced)
{
	unsigned long place = in_version1 - (const char *)version1;
	int (*code)(void);
	int i, fd;

	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, code);
	for (i = 1; i <= 4; i++) {
		ASSERT_EQ(0, install(self->file, i % 2 ? version1 : version2));
		EXPECT_EQ(i % 2 ? 1 : 2, code());
		fd = leak_attach(self, variant, self->path, place, 0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(i % 2 ? 1 : 2, code());
		EXPECT_EQ(i, area_get(&self->area, 0));
		ASSERT_EQ(0, ftruncate(self->file, 0));
		close(fd);
	}
}

/* As for a process that starts now: returns what the function says that the file has */
static int run_mapped(int file)
{
	int (*code)(void);
	int version;

	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (code == MAP_FAILED)
		return -errno;
	version = code();
	munmap(code, PAGE);
	return version;
}

TEST_F(leak, file_is_replaced_while_the_probe_stays)
{
	unsigned long place = in_version1 - (const char *)version1;
	int i, fd;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, install(self->file, version1));
		fd = leak_attach(self, variant, self->path, place, 0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(1, run_mapped(self->file));
		EXPECT_EQ(3 * i + 1, area_get(&self->area, 0));

		/* The new contents run as they are, and are not probed */
		ASSERT_EQ(0, install(self->file, version2));
		EXPECT_EQ(2, run_mapped(self->file));
		EXPECT_EQ(3 * i + 1, area_get(&self->area, 0));

		/* The probe is still there for the old ones */
		ASSERT_EQ(0, install(self->file, version1));
		EXPECT_EQ(1, run_mapped(self->file));
		EXPECT_EQ(3 * i + 2, area_get(&self->area, 0));

		ASSERT_EQ(0, install(self->file, version2));
		close(fd);
		fd = leak_attach(self, variant, self->path, place, 0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(2, run_mapped(self->file));
		EXPECT_EQ(3 * i + 3, area_get(&self->area, 0));
		close(fd);
	}
}

/* What has been mapped goes on as it was; what is probed now would be something else */
TEST_F(leak, file_is_written_to_while_the_probe_stays)
{
	unsigned long place = in_version1 - (const char *)version1;
	int (*code)(void);
	int fd;

	ASSERT_EQ(0, install(self->file, version1));
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, code);
	fd = leak_attach(self, variant, self->path, place, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(CODE_SIZE, pwrite(self->file, (void *)version2, CODE_SIZE, 0));
	EXPECT_EQ(1, code());
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(2, run_mapped(self->file));
	EXPECT_EQ(1, area_get(&self->area, 0));

	close(fd);
	EXPECT_EQ(1, code());
	EXPECT_EQ(1, area_get(&self->area, 0));
	munmap(code, PAGE);
	EXPECT_EQ(2, run_mapped(self->file));
}

/* It would have to be the same uprobe */
TEST_F(leak, changed_file_is_probed_once_more)
{
	unsigned long place = in_version1 - (const char *)version1;
	int (*code)(void);
	int fd;

	ASSERT_EQ(0, install(self->file, version1));
	fd = leak_attach(self, variant, self->path, place, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, run_mapped(self->file));
	ASSERT_EQ(0, install(self->file, version2));
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, code);
	entries();
	EXPECT_EQ(-ESTALE, leak_attach(self, variant, self->path, place, 0));
	if (variant->way.multi && !mainline())
		EXPECT_TRUE(logged(CHANGED, "LINK_CREATE uprobe_multi "));
	EXPECT_EQ(2, code());
	EXPECT_EQ(1, area_get(&self->area, 0));

	close(fd);
	fd = leak_attach(self, variant, self->path, place, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(2, code());
	EXPECT_EQ(2, area_get(&self->area, 0));
	close(fd);
}

/* Calls that have not returned do not keep the place for an earlier probe */

static int held(int (*wait)(int fd), int fd)
{
	return wait(fd);
}

static int wait_for_byte(int fd)
{
	char c;

	return read(fd, &c, 1);
}

static int leak_attach_return(FIXTURE_DATA(leak) * self,
			      const FIXTURE_VARIANT(leak) * variant, unsigned long ref_ctr)
{
	struct user_way way = variant->way;
	struct umulti multi = {
		.flags = BPF_F_UPROBE_MULTI_RETURN,
		.path = self->path,
		.cnt = 1,
		.ref_ctr_offsets = { ref_ctr },
	};

	way.flags |= PROBE_RETURN;
	return umulti_attach(&multi, &way, &self->area);
}

/* In a child, which returns what comes through the pipe: 1 */
static pid_t start_call(int file, int read_fd, int unwanted_fd)
{
	int (*code)(int (*wait)(int fd), int fd);
	pid_t child;

	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	child = code == MAP_FAILED ? -1 : fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(unwanted_fd);
		_exit(code(wait_for_byte, read_fd));
	}
	if (child > 0 && !wait_until(sleeps(child)))
		return -ETIME;
	return child;
}

/* A call in a child, whose return is probed */
struct held_call {
	int probe;	/* descriptor */
	int to;		/* write a byte, and it returns */
	pid_t child;
};

/* Returns 0 or a line */
static int call_probed(FIXTURE_DATA(leak) * self, const FIXTURE_VARIANT(leak) * variant,
		       unsigned long ref_ctr, struct held_call *call)
{
	int fds[2];

	if (install(self->file, (void *)held) || pipe(fds))
		return __LINE__;
	call->to = fds[1];
	call->probe = leak_attach_return(self, variant, ref_ctr);
	if (call->probe < 0)
		return __LINE__;
	call->child = start_call(self->file, fds[0], call->probe);
	return call->child > 0 ? 0 : __LINE__;
}

TEST_F(leak, a_call_has_not_returned)
{
	/* A uprobe event outlives its descriptors, and no other one may differ in this */
	bool has_counter = variant->way.multi || variant->way.flags & PROBE_PMU;
	struct held_call call;
	int fd;

	ASSERT_EQ(0, call_probed(self, variant, has_counter ? PAGE + sizeof(__u16) : 0, &call));
	close(call.probe);

	/* Another instruction, and another counter */
	ASSERT_EQ(0, install(self->file, version2));
	fd = leak_attach_return(self, variant, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(2, run_mapped(self->file));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	EXPECT_EQ(-SIGKILL, kill_in_time(call.child));
}

/* The return is not one of the probe that comes to the same place meanwhile */
TEST_F(leak, the_next_probe_comes_before_the_return)
{
	struct held_call call;
	int fd;

	ASSERT_EQ(0, call_probed(self, variant, 0, &call));
	close(call.probe);
	fd = leak_attach_return(self, variant, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, write(call.to, "", 1));
	EXPECT_EQ(1, status_in_time(call.child));
	EXPECT_EQ(0, area_get(&self->area, 0));
	close(fd);
}

/* Other probes come and go meanwhile: the return is one of the probe that stays */
TEST_F(leak, another_probe_goes_before_the_return)
{
	struct held_call call;
	int other;

	ASSERT_EQ(0, call_probed(self, variant, 0, &call));
	other = leak_attach(self, variant, SELF, file_offset(user_func1), 0);
	ASSERT_LE(0, other);
	close(other);
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(1, write(call.to, "", 1));
	EXPECT_EQ(1, status_in_time(call.child));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(call.probe);
}

/* That of the counter, which the code does not need */
TEST_F(leak, page_of_the_counter_is_gone)
{
	unsigned char *code, before;
	__u16 *counter;
	int i, fd;

	ASSERT_EQ(0, install(self->file, version1));
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self->file, 0);
	counter = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->file, PAGE);
	ASSERT_NE(MAP_FAILED, code);
	ASSERT_NE(MAP_FAILED, counter);
	before = *code;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ftruncate(self->file, 2 * PAGE));
		EXPECT_EQ(0, counter[1]);
		fd = leak_attach(self, variant, self->path, 0, PAGE + sizeof(*counter));
		ASSERT_LE(0, fd);
		EXPECT_NE(before, *code);
		EXPECT_EQ(1, counter[1]);
		ASSERT_EQ(0, ftruncate(self->file, PAGE));
		close(fd);
		EXPECT_EQ(before, *code);
	}
}

/* As after a process has set its data to what they were at first */
TEST_F(leak, counter_is_zero)
{
	int i, fd;

	for (i = 0; i < 2; i++) {
		fd = leak_attach(self, variant, SELF, file_offset(user_func1),
				 file_offset(&ref_ctrs[0]));
		ASSERT_LE(0, fd);
		EXPECT_EQ(2, user_probes());
		__atomic_store_n(&ref_ctrs[0], 0, __ATOMIC_SEQ_CST);
		close(fd);
		EXPECT_EQ(0, user_probes());
	}
}

/* A process that cannot get any more memory */

FIXTURE(no_memory) {
	struct memcg memcg;
	struct area area;
};

FIXTURE_SETUP(no_memory)
{
	SKIP_WITHOUT(return, uprobe_prepare() ?: memcg_create(&self->memcg));
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(no_memory)
{
	EXPECT_EQ(0, memcg_remove(&self->memcg));
	EXPECT_STREQ("nothing", leftovers());
}

/* Of three functions, two neighbours are in one page */
static unsigned int first_of_a_page(void)
{
	return (unsigned long)user_funcs[0] / PAGE != (unsigned long)user_funcs[1] / PAGE;
}

/* What it has now is its limit: memory.high makes CPUs give back what they have reserved */
static int memcg_limit(const struct memcg *memcg)
{
	return memcg_write(memcg, "memory.high", "0") ?:
	       memcg_write(memcg, "memory.max", "%llu", memcg_read(memcg, "memory.current")) ?:
	       memcg_write(memcg, "memory.high", "max");
}

static void say_probes(void *arg)
{
	_exit(user_probes());
}

static void no_memory_close(struct __test_metadata *_metadata, FIXTURE_DATA(no_memory) * self,
			    bool can_be_killed)
{
	unsigned int i, first = first_of_a_page();
	struct probe probe;
	int told, fds[2];
	char path[64];
	pid_t child;

	/* Its memory is not ours: it gets its pages in the cgroup */
	child = holder_of(&told, say_probes, NULL);
	ASSERT_LT(0, child);
	ASSERT_EQ(0, memcg_write(&self->memcg, "cgroup.procs", "%d", child));
	ASSERT_TRUE(wait_until(sleeps(child)));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF,
					      file_offset(user_funcs[first + i]), 0, PROBE_PMU));
		fds[i] = attach_by(&probe, false, count_prog(&self->area, i, 0));
		ASSERT_LE(0, fds[i]);
	}
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", child);
	ASSERT_EQ(0, write_file(path, 0, can_be_killed ? "0" : "-1000"));
	ASSERT_EQ(0, memcg_limit(&self->memcg));
	/* The page stays another one than that in the file, for the second probe */
	close(fds[0]);
	ASSERT_EQ(0, memcg_write(&self->memcg, "memory.max", "max"));
	call_user(first, 1);
	call_user(first + 1, 1);
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(1, area_get(&self->area, 1));
	EXPECT_EQ(1, write(told, "", 1));
	EXPECT_EQ(1, child_status(child));
	close(fds[1]);
}

TEST_F(no_memory, nothing_to_kill)
{
	no_memory_close(_metadata, self, false);
}

TEST_F(no_memory, nothing_is_killed)
{
	no_memory_close(_metadata, self, true);
}

TEST_HARNESS_MAIN
