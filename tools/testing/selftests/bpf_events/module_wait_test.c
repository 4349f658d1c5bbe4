// SPDX-License-Identifier: GPL-2.0
/* Probes that were there before their module: what they find when it comes */
#include <sys/mman.h>
#include <sys/stat.h>

#include "common.h"
#include "module.h"

#define WAITED "bpf_events_waited"
#define CALL "/sys/module/" WAITED "/parameters/call"
#define FORBIDDEN WAITED ":bpf_events_forbidden"
#define REBUILT WAITED ":bpf_events_rebuilt"
#define SIZE 40		/* of that function, at most */

FIXTURE(waits) {
	struct area area;
	int prog;
};

FIXTURE_VARIANT(waits) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(waits, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(waits, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_SETUP(waits)
{
	const char *missing = prepare();

	if (missing || !test_module(WAITED))
		SKIP(return, "%s", missing ?: WAITED);
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = count_prog(&self->area, 0, 1);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(waits)
{
	write_file(LEAVING_LEAVE, 0, "1");
	unload_module(LEAVING_MODULE);
	unload_module(WAITED);
	EXPECT_STREQ("nothing", leftovers());
}

/* Creates the probe, and attaches the program to it */
static int put(struct probe *probe, const char *func, unsigned long offset, unsigned int flags,
	       int prog)
{
	return probe_create_at(probe, "event", func, offset, flags) ?: attach(probe, prog);
}

TEST_F(waits, for_a_function_that_forbids_probes)
{
	struct probe probe, other;
	int fd = put(&probe, FORBIDDEN, 0, variant->flags, self->prog);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, load_module(test_module(WAITED)));
	ASSERT_EQ(0, write_file(CALL, 0, "1"));
	EXPECT_EQ(0, area_get(&self->area, 0));
	close(fd);

	probe_create_at(&other, "other", FORBIDDEN, 0, PROBE_PMU);
	EXPECT_EQ(-EINVAL, probe_open(&other));
}

/* Loads the module as it is, or with eight instructions in place of one */
static int load_build(const char *path, bool rebuilt)
{
	static const __u8 nop[] = { 0x0f, 0x1f, 0x84, 0x00, 0x7a, 0x1c, 0xe5, 0x3b };
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *file, *at;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	file = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return -errno;
	at = memmem(file, st.st_size, nop, sizeof(nop));
	if (at && rebuilt)
		memset(at, 0x90, sizeof(nop));
	err = at ? neg_errno(syscall(__NR_init_module, file, st.st_size, "")) : -ENOEXEC;
	munmap(file, st.st_size);
	return err;
}

static bool takes_probe(unsigned long offset)
{
	struct probe probe;
	int fd;

	probe_create_at(&probe, "probe", REBUILT, offset, PROBE_PMU);
	fd = probe_open(&probe);
	close(fd);
	return fd >= 0;
}

/* An offset that is inside of an instruction, unless the module is rebuilt; or an error */
static long find_offset(const char *path)
{
	bool taken[SIZE];
	long i, err;

	err = load_build(path, false);
	if (err)
		return err;
	for (i = 0; i < SIZE; i++)
		taken[i] = takes_probe(i);
	if (unload_module(WAITED) || load_build(path, true))
		return -EBUSY;
	for (i = 0; i < SIZE && (taken[i] || !takes_probe(i)); i++)
		;
	return unload_module(WAITED) || i == SIZE ? -ENOENT : i;
}

TEST_F(waits, for_the_build_that_takes_it)
{
	const char *path = test_module(WAITED);
	long offset = find_offset(path);
	struct probe probe;
	int fd;

	if (offset == -ENOEXEC)
		SKIP(return, "x86");
	ASSERT_LT(0, offset);

	fd = put(&probe, REBUILT, offset, variant->flags, self->prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, load_build(path, false));
	ASSERT_EQ(0, write_file(CALL, 0, "1"));
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(0, unload_module(WAITED));

	ASSERT_EQ(0, load_build(path, true));
	ASSERT_EQ(0, write_file(CALL, 0, "1"));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
}

TEST_F(waits, from_when_the_module_goes)
{
	const char *path = test_module(LEAVING_MODULE);
	struct probe probe;
	pid_t child;
	int fd;

	if (!path)
		SKIP(return, LEAVING_MODULE);
	ASSERT_EQ(0, load_module(path));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(-unload_module(LEAVING_MODULE));
	ASSERT_TRUE(wait_until(leaving_is("going")));
	fd = put(&probe, LEAVING_MODULE ":" LEAVING_FUNC, 0, variant->flags, self->prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, write_file(LEAVING_LEAVE, 0, "1"));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(0, area_get(&self->area, 0));

	ASSERT_EQ(0, load_module(path));
	ASSERT_EQ(0, write_file(LEAVING_LEAVE, 0, "0"));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
}

/* What no module can be named, and no function of one, is refused as ever */
TEST_F(waits, for_no_module)
{
	static const char *const names[] = {
		":function", "two-words:function", "module:", "module:function:other",
		"module:function+8", "module:function%return", "module:fun ction",
		"of_56_letters__________________________________________m:f",
	};
	struct probe probe;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		probe_create_at(&probe, "event", names[i], 0, PROBE_PMU);
		EXPECT_EQ(-ENOENT, probe_open(&probe))
			TH_LOG("%s", names[i]);
	}
	probe_create_at(&probe, "event", names[i - 1] + 1, 0, PROBE_PMU);
	fd = probe_open(&probe);
	EXPECT_LE(0, fd);
	close(fd);
}

TEST_HARNESS_MAIN
