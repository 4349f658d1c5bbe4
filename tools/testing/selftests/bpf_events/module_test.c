// SPDX-License-Identifier: GPL-2.0
/*
 * A function that goes away with its module: a file of test_udelay calls into
 * it
 */
#include "common.h"

#define MODULE_ENV "BPF_EVENTS_TEST_MODULE"
#define MODULE "test_udelay"
#define MODULE_FILE DEBUGFS "/udelay_test"
/* With its name in front the event finds the module when it comes back */
#define MODULE_FUNC MODULE ":udelay_test_write"

FIXTURE(module) {
	struct probe probe;
	struct area area;
	const char *path;
};

FIXTURE_VARIANT(module) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(module, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(module, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(module, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(module, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

static int module_load(const char *path)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	err = neg_errno(syscall(__NR_finit_module, fd, "", 0));
	close(fd);
	return err;
}

static int module_unload(void)
{
	return neg_errno(syscall(__NR_delete_module, MODULE, O_NONBLOCK));
}

static int module_hit(void)
{
	return write_file(MODULE_FILE, 0, "1 1");
}

FIXTURE_SETUP(module)
{
	const char *missing = prepare();

	if (missing)
		SKIP(return, "%s", missing);
	self->path = getenv(MODULE_ENV);
	if (!self->path)
		SKIP(return, MODULE_ENV " is not set, CONFIG_TEST_UDELAY=m makes the file");
	module_unload();
	ASSERT_EQ(0, module_load(self->path));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create_at(&self->probe, "event", MODULE_FUNC, 0,
				     variant->flags));
}

FIXTURE_TEARDOWN_PARENT(module)
{
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

TEST_F(module, is_unloaded_before_the_event_goes)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd = attach(&self->probe, prog);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2, area_get(&self->area, 0));

	/* The probe does not hold the module */
	ASSERT_EQ(0, module_unload());
	EXPECT_EQ(-ENOENT, module_hit());

	/* The perf event is dead, and everything about it works */
	EXPECT_EQ(1, query_count(fd));
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, prog));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	close(fd);
}

TEST_F(module, is_unloaded_after_the_event)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 1));

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	close(fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_EQ(0, module_unload());
}

TEST_F(module, comes_back)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd = attach(&self->probe, prog);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_unload());
	close(fd);
	ASSERT_EQ(0, module_load(self->path));
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	ASSERT_EQ(0, module_unload());
}

TEST_HARNESS_MAIN
