// SPDX-License-Identifier: GPL-2.0
/*
 * What BPF_LINK_CREATE to many places of a file refuses: the errno, what
 * tracefs' error_log says, and that no place has a probe afterwards
 */
#include <pthread.h>
#include <sys/stat.h>

#include "common.h"
#include "error_log.h"
#include "multi_error.h"
#include "umulti.h"

#define SESSION_RETURN \
	"A session runs at both ends of a call, and takes no BPF_F_UPROBE_MULTI_RETURN"
#define BAD_SITE \
	"Outside the file, misaligned, or with another reference counter already"

FIXTURE(error) {
	struct area area;
	struct umulti multi;
	union bpf_attr attr;	/* without a mistake */
	int prog;
	char exe[256];
};

FIXTURE_VARIANT(error) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(error, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(error, return) {
	.flags = BPF_F_UPROBE_MULTI_RETURN,
};

FIXTURE_SETUP(error)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_LT(0, readlink(SELF, self->exe, sizeof(self->exe) - 1));
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0);
	ASSERT_LE(0, self->prog);
	umulti_init(&self->multi, variant->flags);
	umulti_count_refs(&self->multi);
	umulti_attr(&self->multi, self->prog, &self->attr);
	ASSERT_EQ(0, user_probes());
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(error)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

static int try_path(const union bpf_attr *good, const char *path)
{
	union bpf_attr attr = *good;

	attr.link_create.uprobe_multi.path = (unsigned long)path;
	return umulti_try(&attr);
}

/* With one place that may be bad */
static int try_place(const struct umulti *good, int prog, unsigned int i,
		     __u64 offset, __u64 ref_ctr_offset)
{
	struct umulti m = *good;
	union bpf_attr attr;

	m.offsets[i] = offset;
	m.ref_ctr_offsets[i] = ref_ctr_offset;
	umulti_attr(&m, prog, &attr);
	return umulti_try(&attr);
}

TEST_F(error, none)
{
	int link = sys_bpf(BPF_LINK_CREATE, &self->attr);

	ASSERT_LE(0, link);
	/* A breakpoint and a counter each, which is what others may not leave */
	EXPECT_EQ(2 * USER_FUNCS, user_probes());
	call_user(0, 1);
	EXPECT_EQ(1, area_get(&self->area, TALLY_RUNS));
	EXPECT_STREQ("", entries());
	close(link);
	EXPECT_EQ(0, user_probes());
}

TEST_F(error, unknown_flags)
{
	union bpf_attr attr = self->attr;

	expect_flags_refused(_metadata, umulti_try, &attr, &attr.link_create.uprobe_multi.flags);
	EXPECT_EQ(0, umulti_try(&self->attr));
}

TEST_F(error, program_of_another_attach_type)
{
	const enum bpf_attach_type types[] = {
		0, BPF_TRACE_FENTRY, BPF_PERF_EVENT, BPF_TRACE_KPROBE_MULTI,
		BPF_TRACE_KPROBE_SESSION, BPF_TRACE_UPROBE_SESSION,
	};

	expect_types_refused(_metadata, umulti_try, &self->attr, types, ARRAY_SIZE(types));
	EXPECT_EQ(0, umulti_try(&self->attr));
}

TEST_F(error, no_program_of_the_type)
{
	expect_programs_refused(_metadata, umulti_try, &self->attr, self->area.fd);
}

TEST_F(error, count)
{
	union bpf_attr attr = self->attr;

	expect_counts_refused(_metadata, umulti_try, &attr, &attr.link_create.uprobe_multi.cnt);

	/* So many would do, but they are not there */
	attr.link_create.uprobe_multi.cnt = MOST;
	attr.link_create.uprobe_multi.offsets = UNREADABLE;
	EXPECT_EQ(-EFAULT, umulti_try(&attr));
	EXPECT_EQ(0, umulti_try(&self->attr));
}

TEST_F(error, nothing_given)
{
	union bpf_attr attr = self->attr;

	attr.link_create.uprobe_multi.path = 0;
	EXPECT_EQ(-EINVAL, umulti_try(&attr));
	attr = self->attr;
	attr.link_create.uprobe_multi.offsets = 0;
	EXPECT_EQ(-EINVAL, umulti_try(&attr));
	/* The others may be left out */
	attr = self->attr;
	attr.link_create.uprobe_multi.ref_ctr_offsets = 0;
	attr.link_create.uprobe_multi.cookies = 0;
	EXPECT_EQ(0, umulti_try(&attr));
}

TEST_F(error, unreadable_memory)
{
	union bpf_attr attr = self->attr;
	__u64 *fields[] = {
		&attr.link_create.uprobe_multi.path,
		&attr.link_create.uprobe_multi.offsets,
		&attr.link_create.uprobe_multi.ref_ctr_offsets,
		&attr.link_create.uprobe_multi.cookies,
	};
	long size = sysconf(_SC_PAGESIZE);
	__u64 *half, good;
	char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	/* The last of the numbers, which are good, is on a page that is not there */
	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + size, size));
	half = (__u64 *)(pages + size) - (USER_FUNCS - 1);
	memcpy(half, self->multi.offsets, 8 * (USER_FUNCS - 1));

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		good = *fields[i];
		*fields[i] = UNREADABLE;
		EXPECT_EQ(-EFAULT, umulti_try(&attr));
		*fields[i] = (unsigned long)half;
		if (i > 0)
			EXPECT_EQ(-EFAULT, umulti_try(&attr));
		*fields[i] = good;
	}
	EXPECT_EQ(0, umulti_try(&attr));
}

TEST_F(error, without_capabilities)
{
	expect_no_caps_needed(_metadata, umulti_try, &self->attr);
}

/* The file and the process */

#define TOO_LONG 4096

TEST_F(error, path)
{
	char path[TOO_LONG + 1];

	EXPECT_EQ(-ENOENT, try_path(&self->attr, "/no/such/file"));
	EXPECT_EQ(-ENOTDIR, try_path(&self->attr, SELF "/x"));
	EXPECT_EQ(-EBADF, try_path(&self->attr, ""));
	EXPECT_EQ(-EBADF, try_path(&self->attr, "/proc"));
	EXPECT_EQ(-EBADF, try_path(&self->attr, "/dev/null"));
	/* A regular file, of which there are no pages */
	EXPECT_EQ(-EIO, try_path(&self->attr, "/proc/self/maps"));

	memset(path, 'a', sizeof(path));
	path[TOO_LONG] = '\0';
	EXPECT_EQ(-EINVAL, try_path(&self->attr, path));
	path[TOO_LONG - 1] = '\0';
	EXPECT_EQ(-ENAMETOOLONG, try_path(&self->attr, path));
	EXPECT_EQ(0, try_path(&self->attr, SELF));
}

static void *stay(void *arg)
{
	__atomic_store_n((pid_t *)arg, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	pause();
	return NULL;
}

TEST_F(error, pid)
{
	union bpf_attr attr = self->attr;
	pid_t tid = 0;
	pthread_t thread;
	pid_t child;

	attr.link_create.uprobe_multi.pid = -1;
	EXPECT_EQ(-EINVAL, umulti_try(&attr));
	attr.link_create.uprobe_multi.pid = 1U << 31;
	EXPECT_EQ(-EINVAL, umulti_try(&attr));
	attr.link_create.uprobe_multi.pid = ~0U >> 1;
	EXPECT_EQ(-ESRCH, umulti_try(&attr));
	child = fork();
	if (!child)
		_exit(0);
	EXPECT_EQ(0, child_status(child));
	attr.link_create.uprobe_multi.pid = child;
	EXPECT_EQ(-ESRCH, umulti_try(&attr));

	/* A process it must be, not one of its threads */
	ASSERT_EQ(0, pthread_create(&thread, NULL, stay, &tid));
	ASSERT_TRUE(wait_until(__atomic_load_n(&tid, __ATOMIC_SEQ_CST)));
	attr.link_create.uprobe_multi.pid = tid;
	EXPECT_EQ(-ESRCH, umulti_try(&attr));
	attr.link_create.uprobe_multi.pid = getpid();
	EXPECT_EQ(0, umulti_try(&attr));
}

/* One place is bad, and those before it lose their probe again */

TEST_F(error, offset)
{
	const struct umulti *m = &self->multi;
	struct stat st;
	__u64 bad[5];
	int i, at;

	ASSERT_EQ(0, stat(SELF, &st));
	bad[0] = ~0ULL;
	bad[1] = 1ULL << 63;
	bad[2] = ~0ULL >> 1;
	bad[3] = 1ULL << 40;
	bad[4] = st.st_size + 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		for (at = 0; at < USER_FUNCS; at++)
			EXPECT_EQ(-EINVAL, try_place(m, self->prog, at, bad[i], 0));
	}
	EXPECT_EQ(0, umulti_try(&self->attr));
}

TEST_F(error, ref_ctr_offset)
{
	const struct umulti *m = &self->multi;
	const __u64 *offsets = m->offsets, *refs = m->ref_ctr_offsets;
	int at;

	for (at = 0; at < USER_FUNCS; at++) {
		EXPECT_EQ(-EINVAL, try_place(m, self->prog, at, offsets[at], refs[at] + 1));
		EXPECT_EQ(-EINVAL, try_place(m, self->prog, at, offsets[at], ~0ULL));
	}
	/* Two counters for one place */
	EXPECT_EQ(-EINVAL, try_place(m, self->prog, 2, offsets[0], refs[2]));
	EXPECT_EQ(-EINVAL, try_place(m, self->prog, 2, offsets[0], 0));
	EXPECT_EQ(0, try_place(m, self->prog, 2, offsets[0], refs[0]));
}

/* Whether error_log has one entry, which tells about this */
static bool told_about(const char *error, const char *fmt, ...)
{
	char what[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return logged(error, "LINK_CREATE uprobe_multi %s", what);
}

TEST_F(error, is_told)
{
	const struct umulti *m = &self->multi;
	union bpf_attr attr = self->attr;
	__u64 outside = 1ULL << 40;
	char path[4097];

	memset(path, 'x', sizeof(path));
	path[4096] = '\0';
	EXPECT_EQ(-EINVAL, try_path(&self->attr, path));
	EXPECT_TRUE(told_about("A path has at most 4096 bytes, its end among them", "(path)"));
	EXPECT_EQ(-ENOENT, try_path(&self->attr, "/no/such/file"));
	EXPECT_TRUE(told_about("There is no such file", "/no/such/file"));
	EXPECT_EQ(-EBADF, try_path(&self->attr, "/dev/null"));
	EXPECT_TRUE(told_about("This is not a regular file", "/dev/null"));
	EXPECT_EQ(-ENOTDIR, try_path(&self->attr, "/dev/null/file"));
	EXPECT_TRUE(told_about("This path cannot be followed to its file", "/dev/null/file"));
	EXPECT_EQ(-EIO, try_path(&self->attr, "/proc/version"));
	EXPECT_TRUE(told_about("Nothing can be read here, or files of this kind are not executed",
			       "/proc/version:0x"));

	attr.link_create.uprobe_multi.pid = ~0U >> 1;
	EXPECT_EQ(-ESRCH, umulti_try(&attr));
	EXPECT_TRUE(told_about("There is no such process", "pid %d", ~0U >> 1));

	EXPECT_EQ(-EINVAL, try_place(m, self->prog, 1, outside, 0));
	EXPECT_TRUE(told_about(BAD_SITE, "%s:0x%llx", self->exe, outside));
	EXPECT_EQ(-EINVAL, try_place(m, self->prog, 1, ~0ULL, 0));
	EXPECT_TRUE(told_about("This offset is negative", "%s:0x%llx", self->exe, ~0ULL));
	EXPECT_EQ(-EINVAL, try_place(m, self->prog, 1, m->offsets[1], 1));
	EXPECT_TRUE(told_about(BAD_SITE, "%s:0x%llx", self->exe, m->offsets[1]));
}

/* It runs at both ends anyway */
TEST_F(error, session)
{
	int prog = tally_prog(&self->area, BPF_TRACE_UPROBE_SESSION, 0);
	struct umulti m = self->multi;
	union bpf_attr attr;

	m.attach = BPF_TRACE_UPROBE_SESSION;
	umulti_attr(&m, prog, &attr);
	EXPECT_EQ(variant->flags ? -EINVAL : 0, umulti_try(&attr));
	if (variant->flags)
		EXPECT_TRUE(told_about(SESSION_RETURN, "flags 0x%x", variant->flags));
	/* A program that was loaded for the other kind of link cannot be one */
	attr.link_create.uprobe_multi.flags = 0;
	attr.link_create.prog_fd = self->prog;
	EXPECT_EQ(-EINVAL, umulti_try(&attr));
}

#ifdef __x86_64__
/* A breakpoint that is there already */
extern const char breakpoint[];
asm(".pushsection .text\nbreakpoint: int3\n.popsection\n");

TEST_F(error, instruction)
{
	const struct umulti *m = &self->multi;
	__u64 offset = file_offset(breakpoint);

	EXPECT_EQ(-NOT_SUPPORTED, try_place(m, self->prog, 1, offset, 0));
	EXPECT_TRUE(told_about("There is no instruction here that can be probed",
			       "%s:0x%llx", self->exe, offset));
}
#endif

/* The log is of the one who may trace; the errno is of everybody */
TEST_F(error, is_not_told_without_perfmon)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		if (drop_caps(CAP(BPF)))
			_exit(1);
		_exit(try_path(&self->attr, "/no/such/file") == -ENOENT ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("", entries());
}

TEST_HARNESS_MAIN
