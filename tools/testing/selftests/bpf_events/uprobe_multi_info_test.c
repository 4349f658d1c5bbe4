// SPDX-License-Identifier: GPL-2.0
/* What a uprobe_multi link tells: BPF_OBJ_GET_INFO_BY_FD, fdinfo, statistics */
#include "common.h"
#include "umulti.h"

#define UNTOUCHED 0x5555555555555555ULL
#define ROOM 8

struct told {
	struct umulti multi;
	int link;
	char path[256];
	__u64 offsets[ROOM], ref_ctr_offsets[ROOM], cookies[ROOM];
	struct bpf_link_info info;
};

FIXTURE(info) {
	struct area area;
	struct told t;
	int prog;
	char exe[256];
};

FIXTURE_VARIANT(info) {
	__u32 flags;
};

FIXTURE_VARIANT_ADD(info, entry) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(info, return) {
	.flags = BPF_F_UPROBE_MULTI_RETURN,
};

FIXTURE_SETUP(info)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_LT(0, readlink(SELF, self->exe, sizeof(self->exe) - 1));
	ASSERT_EQ(0, area_create(&self->area));
	umulti_init(&self->t.multi, variant->flags);
	umulti_count_refs(&self->t.multi);
	self->prog = tally_prog(&self->area, BPF_TRACE_UPROBE_MULTI, 0);
	self->t.link = umulti_link(&self->t.multi, self->prog);
	ASSERT_LE(0, self->t.link);
}

FIXTURE_TEARDOWN_PARENT(info)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Prepares to ask without any buffer */
static struct bpf_link_info *ask_for(struct told *t)
{
	memset(t->path, 'x', sizeof(t->path));
	memset(t->offsets, 0x55, sizeof(t->offsets));
	memset(t->ref_ctr_offsets, 0x55, sizeof(t->ref_ctr_offsets));
	memset(t->cookies, 0x55, sizeof(t->cookies));
	return memset(&t->info, 0, sizeof(t->info));
}

static int ask_path(struct told *t, void *path, __u32 size)
{
	struct bpf_link_info *info = ask_for(t);

	info->uprobe_multi.path = (unsigned long)path;
	info->uprobe_multi.path_size = size;
	return link_info(t->link, info);
}

static int ask_places(struct told *t, void *offsets,
		      void *ref_ctr_offsets, void *cookies, __u32 count)
{
	struct bpf_link_info *info = ask_for(t);

	info->uprobe_multi.offsets = (unsigned long)offsets;
	info->uprobe_multi.ref_ctr_offsets = (unsigned long)ref_ctr_offsets;
	info->uprobe_multi.cookies = (unsigned long)cookies;
	info->uprobe_multi.count = count;
	return link_info(t->link, info);
}

/* How many of the places are in the buffers, in order and from the first on */
static int places_found(struct told *t)
{
	int i;

	for (i = 0; i < USER_FUNCS; i++) {
		if (t->offsets[i] != t->multi.offsets[i] ||
		    t->ref_ctr_offsets[i] != t->multi.ref_ctr_offsets[i] ||
		    t->cookies[i] != t->multi.cookies[i])
			break;
	}
	return i;
}

TEST_F(info, path)
{
	struct told *t = &self->t;
	size_t size = strlen(self->exe) + 1;

	ASSERT_EQ(0, ask_path(t, t->path, sizeof(t->path)));
	EXPECT_EQ(BPF_LINK_TYPE_UPROBE_MULTI, t->info.type);
	EXPECT_NE(0, t->info.id);
	EXPECT_EQ(prog_id(self->prog), t->info.prog_id);
	EXPECT_STREQ(self->exe, t->path);
	EXPECT_EQ(size, t->info.uprobe_multi.path_size);
	EXPECT_EQ(USER_FUNCS, t->info.uprobe_multi.count);
	EXPECT_EQ(variant->flags, t->info.uprobe_multi.flags);
	EXPECT_EQ(0, t->info.uprobe_multi.pid);

	EXPECT_EQ(0, ask_path(t, t->path, size));
	EXPECT_STREQ(self->exe, t->path);
	EXPECT_EQ('x', t->path[size]);
	EXPECT_EQ(-ENAMETOOLONG, ask_path(t, t->path, size - 1));
	EXPECT_EQ(-ENAMETOOLONG, ask_path(t, t->path, 1));
	EXPECT_EQ('x', t->path[1]);

	/* No buffer at all: says how large it ought to be */
	EXPECT_EQ(0, ask_path(t, NULL, 0));
	EXPECT_EQ(size, t->info.uprobe_multi.path_size);
	EXPECT_EQ(-EINVAL, ask_path(t, NULL, size));
	EXPECT_EQ(-EINVAL, ask_path(t, t->path, 0));
	EXPECT_EQ(-EFAULT, ask_path(t, (void *)8, size));
}

TEST_F(info, places)
{
	struct told *t = &self->t;
	int i;

	ASSERT_EQ(0, ask_places(t, t->offsets, t->ref_ctr_offsets,
				t->cookies, ROOM));
	EXPECT_EQ(USER_FUNCS, t->info.uprobe_multi.count);
	EXPECT_EQ(USER_FUNCS, places_found(t));
	EXPECT_EQ(UNTOUCHED, t->offsets[USER_FUNCS]);
	EXPECT_EQ(UNTOUCHED, t->ref_ctr_offsets[USER_FUNCS]);
	EXPECT_EQ(UNTOUCHED, t->cookies[USER_FUNCS]);

	for (i = 1; i < USER_FUNCS; i++) {
		EXPECT_EQ(-ENOSPC, ask_places(t, t->offsets,
					      t->ref_ctr_offsets,
					      t->cookies, i));
		EXPECT_EQ(i, places_found(t));
		EXPECT_EQ(UNTOUCHED, t->offsets[i]);
		EXPECT_EQ(UNTOUCHED, t->ref_ctr_offsets[i]);
		EXPECT_EQ(UNTOUCHED, t->cookies[i]);
	}
}

TEST_F(info, some_of_the_buffers)
{
	struct told *t = &self->t;

	/* None: how many places there are */
	EXPECT_EQ(0, ask_places(t, NULL, NULL, NULL, 1));
	EXPECT_EQ(USER_FUNCS, t->info.uprobe_multi.count);
	EXPECT_EQ(0, ask_places(t, t->offsets, NULL, NULL, USER_FUNCS));
	EXPECT_EQ(t->multi.offsets[2], t->offsets[2]);
	EXPECT_EQ(0, ask_places(t, NULL, t->ref_ctr_offsets, NULL,
				USER_FUNCS));
	EXPECT_EQ(t->multi.ref_ctr_offsets[2], t->ref_ctr_offsets[2]);
	EXPECT_EQ(0, ask_places(t, NULL, NULL, t->cookies, USER_FUNCS));
	EXPECT_EQ(t->multi.cookies[2], t->cookies[2]);
	EXPECT_EQ(0, ask_places(t, NULL, NULL, NULL, USER_FUNCS));
	EXPECT_EQ(USER_FUNCS, t->info.uprobe_multi.count);

	EXPECT_EQ(-EINVAL, ask_places(t, t->offsets, NULL, NULL, 0));
	EXPECT_EQ(-EINVAL, ask_places(t, NULL, t->ref_ctr_offsets, NULL, 0));
	EXPECT_EQ(-EINVAL, ask_places(t, NULL, NULL, t->cookies, 0));
	EXPECT_EQ(-EFAULT, ask_places(t, (void *)8, NULL, NULL, USER_FUNCS));
	EXPECT_EQ(-EFAULT, ask_places(t, NULL, (void *)8, NULL, USER_FUNCS));
	EXPECT_EQ(-EFAULT, ask_places(t, NULL, NULL, (void *)8, USER_FUNCS));
}

TEST_F(info, link_with_less)
{
	struct told *t = &self->t;
	union bpf_attr attr;

	close(t->link);
	umulti_attr(&t->multi, self->prog, &attr);
	attr.link_create.uprobe_multi.ref_ctr_offsets = 0;
	attr.link_create.uprobe_multi.cookies = 0;
	attr.link_create.uprobe_multi.pid = getpid();
	t->link = sys_bpf(BPF_LINK_CREATE, &attr);
	ASSERT_LE(0, t->link);
	memset(t->multi.ref_ctr_offsets, 0, sizeof(t->multi.ref_ctr_offsets));
	memset(t->multi.cookies, 0, sizeof(t->multi.cookies));
	ASSERT_EQ(0, ask_places(t, t->offsets, t->ref_ctr_offsets,
				t->cookies, USER_FUNCS));
	EXPECT_EQ(USER_FUNCS, places_found(t));
	EXPECT_EQ(getpid(), t->info.uprobe_multi.pid);
}

TEST_F(info, fdinfo)
{
	struct told *t = &self->t;

	EXPECT_STREQ("uprobe_multi", fdinfo_text(t->link, "link_type"));
	EXPECT_EQ(link_id(t->link), fdinfo_number(t->link, "link_id"));
	EXPECT_EQ(prog_id(self->prog), fdinfo_number(t->link, "prog_id"));
}

TEST_F(info, fdinfo_counts_hits)
{
	struct told *t = &self->t;
	int other = umulti_link(&t->multi, self->prog);

	ASSERT_LE(0, other);
	EXPECT_EQ(0, fdinfo_number(t->link, "bpf_prog_hits"));
	call_user(0, 2);
	call_user(1, 3);
	close(other);
	call_user(2, 2);
	EXPECT_EQ(7, fdinfo_number(t->link, "bpf_prog_hits"));
	EXPECT_EQ(0, fdinfo_number(t->link, "bpf_prog_missed"));
}

TEST_F(info, run_statistics)
{
	struct bpf_prog_info info;
	int stats;

	call_user(0, 2);
	stats = stats_enable();
	ASSERT_LE(0, stats);
	call_user(0, 5);
	call_user(2, 5);
	close(stats);
	call_user(0, 2);
	ASSERT_EQ(0, prog_info(self->prog, &info));
	EXPECT_EQ(10, info.run_cnt);
	EXPECT_EQ(0, info.recursion_misses);
}

TEST_HARNESS_MAIN
