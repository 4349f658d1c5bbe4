// SPDX-License-Identifier: GPL-2.0
/* A vector instruction of the kernel does with a kprobe on it what it does without */
#include "common.h"
#include "module.h"

#define TEST_MODULE "bpf_events_vector"
#define RESULTS "/sys/module/" TEST_MODULE "/parameters/results"

FIXTURE(vector) {
	struct area area;
	char expected[4096];
};

FIXTURE_SETUP(vector)
{
	const char *missing = prepare(), *path = test_module(TEST_MODULE);
	int len;

	SKIP_WITHOUT(return, missing);
	if (!path)
		SKIP(return, "test_modules/" TEST_MODULE ".ko, of x86-64");
	ASSERT_EQ(0, load_module(path));
	len = read_file(RESULTS, self->expected, sizeof(self->expected));
	if (len == -ENODEV)
		SKIP(return, "a CPU with AVX2");
	ASSERT_LT(0, len);
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(vector)
{
	unload_module(TEST_MODULE);
	EXPECT_STREQ("nothing", leftovers());
}

/* Where the instructions are begins the lines */
TEST_F(vector, does_what_it_does_unprobed)
{
	char found[sizeof(self->expected)], func[64];
	unsigned long offset;
	const char *line;
	struct probe probe;
	int i, fd, nr = 0;

	for (line = self->expected; *line; line = strchr(line, '\n') + 1) {
		ASSERT_TRUE(sscanf(line, "%63s %lx", func, &offset) == 2);
		ASSERT_EQ(0, probe_create_at(&probe, "event", func, offset, PROBE_PMU));
		area_set(&self->area, 0, 0);
		fd = attach(&probe, count_prog(&self->area, 0, 0));
		ASSERT_LE(0, fd);
		for (i = 1; i <= 2; i++) {
			ASSERT_LT(0, read_file(RESULTS, found, sizeof(found)));
			EXPECT_STREQ(self->expected, found);
			EXPECT_EQ(i, area_get(&self->area, 0));
		}
		close(fd);
		nr++;
	}
	EXPECT_LT(10, nr);
}

TEST_HARNESS_MAIN
