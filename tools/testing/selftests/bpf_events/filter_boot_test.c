// SPDX-License-Identifier: GPL-2.0
/*
 * A filter that enables the first event since boot for which the top instance
 * records: its ring buffer is small until then.  To be run before all others; once
 * another has enabled an event there, this one passes whatever filters do.
 */
#include "common.h"
#include "filter.h"

#define RECORDS 3000

FIXTURE(boot) {
	struct area area;
};

FIXTURE_SETUP(boot)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, 1, 1);
}

FIXTURE_TEARDOWN_PARENT(boot)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(boot, keeps_all_records)
{
	int fd, prog = filter_prog(&self->area, 0, sys_enter_kind.type);
	char size[64];

	ASSERT_LE(0, prog);
	fd = filter_attach(TRACEFS, sys_enter_kind.event, prog);
	ASSERT_LE(0, fd);
	ASSERT_LT(0, read_file(TRACEFS "/buffer_size_kb", size, sizeof(size)));
	EXPECT_EQ(NULL, strstr(size, "expanded")) TH_LOG("%s", size);
	kind_hits(&sys_enter_kind, RECORDS);
	EXPECT_EQ(RECORDS, area_get(&self->area, 0));
	EXPECT_EQ(RECORDS, records(TRACEFS));
	close(fd);
}

TEST_HARNESS_MAIN
