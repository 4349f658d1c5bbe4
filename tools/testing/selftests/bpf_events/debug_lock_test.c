// SPDX-License-Identifier: GPL-2.0
/*
 * Programs on the tracepoints of lockdep, which RCU hits whenever somebody
 * begins to read or stops: what runs a program may not do that before it has made
 * sure that the program does not run on top of itself.  For kernels with lockdep.
 */
#include "common.h"
#include "ways.h"

FIXTURE(lock) {
	struct area area;
};

FIXTURE_VARIANT(lock) {
	struct place place;
};

FIXTURE_VARIANT_ADD(lock, acquire) { { .group = "lock", .event = "lock_acquire" } };
FIXTURE_VARIANT_ADD(lock, release) { { .group = "lock", .event = "lock_release" } };

FIXTURE_SETUP(lock)
{
	const char *missing = ways_prepare();

	if (missing)
		SKIP(return, "%s", missing);
	if (access(TRACEFS "/events/lock/lock_acquire", F_OK))
		SKIP(return, "CONFIG_LOCKDEP");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
}

FIXTURE_TEARDOWN_PARENT(lock)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(lock, each_way_to_attach)
{
	struct probe probe;
	unsigned int i;
	int fd, prog;
	__u64 runs;

	for (i = 0; i < WAYS; i++) {
		if (!ways[i].tracepoint)
			continue;
		prog = way_count_prog(&ways[i], &variant->place, &self->area, i);
		ASSERT_LE(0, prog) TH_LOG("%s", ways[i].name);
		fd = way_attach(&ways[i], &variant->place, &probe, prog);
		ASSERT_LE(0, fd) TH_LOG("%s", ways[i].name);
		hit_rename();
		EXPECT_LT(0, area_get(&self->area, i)) TH_LOG("%s", ways[i].name);
		/* Those hits that the run itself makes */
		EXPECT_LT(0, misses(prog)) TH_LOG("%s", ways[i].name);
		close(fd);
		close(prog);
		runs = area_get(&self->area, i);
		hit_rename();
		EXPECT_EQ(runs, area_get(&self->area, i)) TH_LOG("%s", ways[i].name);
	}
}

TEST_HARNESS_MAIN
