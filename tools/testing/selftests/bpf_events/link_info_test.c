// SPDX-License-Identifier: GPL-2.0
/* What a link tells about itself: BPF_OBJ_GET_INFO_BY_FD and fdinfo */
#include "common.h"
#include "hitter.h"
#include "link.h"

#define COOKIE 0x123456789abcdef0ULL
#define KPTR_RESTRICT "/proc/sys/kernel/kptr_restrict"

FIXTURE(info) {
	struct probe probe;
	struct area area;
	int prog;
	int link;
	__u64 kptr_restrict;
};

FIXTURE_VARIANT(info) {
	unsigned int flags;
	enum bpf_perf_event_type type;
};

FIXTURE_VARIANT_ADD(info, kprobe_event) {
	.flags = 0,
	.type = BPF_PERF_EVENT_KPROBE,
};

FIXTURE_VARIANT_ADD(info, kretprobe_event) {
	.flags = PROBE_RETURN,
	.type = BPF_PERF_EVENT_KRETPROBE,
};

FIXTURE_VARIANT_ADD(info, kprobe_pmu) {
	.flags = PROBE_PMU,
	.type = BPF_PERF_EVENT_KPROBE,
};

FIXTURE_VARIANT_ADD(info, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.type = BPF_PERF_EVENT_KRETPROBE,
};

FIXTURE_SETUP(info)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_TRUE(read_u64(KPTR_RESTRICT, &self->kptr_restrict));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
	self->prog = count_prog(&self->area, 0, 0);
	self->link = attach_link(&self->probe, self->prog, COOKIE);
	ASSERT_LE(0, self->link);
}

FIXTURE_TEARDOWN_PARENT(info)
{
	write_file(KPTR_RESTRICT, 0, "%llu", self->kptr_restrict);
	EXPECT_STREQ("nothing", leftovers());
}

/* Asks with a buffer for the name, which is left with the rest in @info */
static int info_of(int link, struct bpf_link_info *info, char *name,
		   size_t size)
{
	memset(info, 0, sizeof(*info));
	info->perf_event.kprobe.func_name = (unsigned long)name;
	info->perf_event.kprobe.name_len = size;
	return link_info(link, info);
}

TEST_F(info, says_what_is_probed)
{
	struct bpf_link_info info;
	char name[128];

	ASSERT_EQ(0, info_of(self->link, &info, name, sizeof(name)));
	EXPECT_EQ(BPF_LINK_TYPE_PERF_EVENT, info.type);
	EXPECT_NE(0, info.id);
	EXPECT_EQ(prog_id(self->prog), info.prog_id);
	EXPECT_EQ(variant->type, info.perf_event.type);
	EXPECT_STREQ(FUNC, name);
	EXPECT_EQ(sizeof(FUNC), info.perf_event.kprobe.name_len);
	EXPECT_EQ(0, info.perf_event.kprobe.offset);
	EXPECT_EQ(ksym(FUNC), info.perf_event.kprobe.addr);
	EXPECT_EQ(0, info.perf_event.kprobe.missed);
	EXPECT_EQ(COOKIE, info.perf_event.kprobe.cookie);
}

TEST_F(info, address_is_shown_to_who_may_see_it)
{
	struct bpf_link_info info;
	char name[128];

	ASSERT_EQ(0, write_file(KPTR_RESTRICT, 0, "2"));
	ASSERT_EQ(0, info_of(self->link, &info, name, sizeof(name)));
	EXPECT_EQ(0, info.perf_event.kprobe.addr);
	EXPECT_STREQ(FUNC, name);
	EXPECT_EQ(COOKIE, info.perf_event.kprobe.cookie);
}

TEST_F(info, room_for_the_name)
{
	const size_t sizes[] = { 1, 2, 5, sizeof(FUNC) - 1 };
	struct bpf_link_info info;
	char name[128];
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(name, 'x', sizeof(name));
		EXPECT_EQ(-ENOSPC, info_of(self->link, &info, name, sizes[i]));
		EXPECT_EQ(sizes[i] - 1, strlen(name));
		EXPECT_EQ(0, strncmp(FUNC, name, sizes[i] - 1));
		EXPECT_EQ('x', name[sizes[i]]);
	}
	memset(name, 'x', sizeof(name));
	EXPECT_EQ(0, info_of(self->link, &info, name, sizeof(FUNC)));
	EXPECT_STREQ(FUNC, name);
	EXPECT_EQ('x', name[sizeof(FUNC)]);

	/* No buffer at all: says how large it ought to be */
	EXPECT_EQ(0, info_of(self->link, &info, NULL, 0));
	EXPECT_EQ(sizeof(FUNC), info.perf_event.kprobe.name_len);
	EXPECT_EQ(COOKIE, info.perf_event.kprobe.cookie);
}

TEST_F(info, bad_buffer)
{
	struct bpf_link_info info;
	char name[128] = "";

	EXPECT_EQ(-EINVAL, info_of(self->link, &info, NULL, sizeof(name)));
	EXPECT_EQ(-EINVAL, info_of(self->link, &info, name, 0));
	EXPECT_EQ(-EFAULT, info_of(self->link, &info, (char *)8, sizeof(name)));
	EXPECT_STREQ("", name);
	EXPECT_EQ(0, info_of(self->link, &info, name, sizeof(name)));
	EXPECT_STREQ(FUNC, name);
}

TEST_F(info, fdinfo)
{
	EXPECT_STREQ("perf", fdinfo_text(self->link, "link_type"));
	EXPECT_EQ(link_id(self->link), fdinfo_number(self->link, "link_id"));
	EXPECT_EQ(prog_id(self->prog), fdinfo_number(self->link, "prog_id"));
}

TEST_F(info, fdinfo_counts_hits)
{
	EXPECT_EQ(COOKIE, fdinfo_number(self->link, "bpf_cookie"));
	EXPECT_EQ(0, fdinfo_number(self->link, "bpf_prog_hits"));
	hits(5);
	EXPECT_EQ(5, fdinfo_number(self->link, "bpf_prog_hits"));
	EXPECT_EQ(0, fdinfo_number(self->link, "bpf_prog_missed"));
}

/* The perf event of a link says it, too, as that of SET_BPF does */
TEST_F(info, fdinfo_of_the_perf_event)
{
	int prog = count_prog(&self->area, 0, 0);
	int link, perf = probe_open(&self->probe);
	struct fdinfo info;

	ASSERT_LE(0, perf);
	EXPECT_EQ(-ENOENT, read_fdinfo(perf, &info));
	link = perf_link(perf, prog);
	ASSERT_LE(0, link);
	hits(3);
	ASSERT_EQ(0, read_fdinfo(perf, &info));
	EXPECT_EQ(prog_id(prog), info.id);
	EXPECT_EQ(3, info.hits);
	EXPECT_EQ(0, info.missed);
	EXPECT_EQ(0, fdinfo_number(link, "bpf_cookie"));
	close(link);
	EXPECT_EQ(-ENOENT, read_fdinfo(perf, &info));
}

/* Probes that are not at the start of a function, or have no name */

FIXTURE(place) {
	struct probe probe;
	struct area area;
};

FIXTURE_SETUP(place)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(place)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(place, symbol_and_offset)
{
	struct bpf_link_info info;
	char name[128];
	int link;

	ASSERT_EQ(0, probe_create_body(&self->probe, "event", FUNC, 0));
	link = attach_link(&self->probe, count_prog(&self->area, 0, 0), 0);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, info_of(link, &info, name, sizeof(name)));
	EXPECT_STREQ(FUNC, name);
	EXPECT_EQ(self->probe.offset, info.perf_event.kprobe.offset);
	EXPECT_EQ(ksym(FUNC) + self->probe.offset, info.perf_event.kprobe.addr);
}

TEST_F(place, address)
{
	struct perf_event_attr attr;
	struct bpf_link_info info;
	char name[128];
	int perf, link;

	self->probe.flags = PROBE_PMU;
	ASSERT_EQ(0, probe_attr(&self->probe, &attr));
	attr.kprobe_func = 0;
	attr.kprobe_addr = ksym(FUNC);
	perf = perf_open(&attr, -1, 0);
	ASSERT_LE(0, perf);
	link = perf_link(perf, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, link);
	ASSERT_EQ(0, info_of(link, &info, name, sizeof(name)));
	EXPECT_STREQ("", name);
	EXPECT_EQ(1, info.perf_event.kprobe.name_len);
	EXPECT_EQ(0, info.perf_event.kprobe.offset);
	EXPECT_EQ(ksym(FUNC), info.perf_event.kprobe.addr);
	EXPECT_TRUE(runs(&self->area));
}

TEST_F(place, misses)
{
	struct probe probe = { .event = "rets" };
	struct bpf_link_info info;
	char name[128];
	int link;

	/* One call at a time, as maxactive says */
	ASSERT_EQ(0, event_add("rets", "r1 %s", WAIT_FUNC));
	link = attach_link(&probe, count_prog(&self->area, 0, 0), 0);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, wait_together(3));
	ASSERT_EQ(0, info_of(link, &info, name, sizeof(name)));
	EXPECT_STREQ(WAIT_FUNC, name);
	EXPECT_EQ(2, info.perf_event.kprobe.missed);
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_F(place, fdinfo_counts_misses)
{
	struct probe probe = { .event = "rets" };
	int link;

	ASSERT_EQ(0, event_add("rets", "r1 %s", WAIT_FUNC));
	link = attach_link(&probe, count_prog(&self->area, 0, 0), 0);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, wait_together(3));
	EXPECT_EQ(1, fdinfo_number(link, "bpf_prog_hits"));
	EXPECT_EQ(2, fdinfo_number(link, "bpf_prog_missed"));
}

/* Who counts all hits can tell that those of the link are these */
TEST_F(place, fdinfo_of_the_event_names_the_way)
{
	int perf, prog = count_prog(&self->area, 0, 0), link;
	struct probe probe;

	ASSERT_EQ(0, probe_create_at(&probe, "way", FUNC, 0, 0));
	perf = probe_open(&probe);
	link = perf_link(perf, prog);
	ASSERT_LE(0, link);
	EXPECT_STREQ("link", fdinfo_text(perf, "bpf_attached_by"));
	close(link);
	EXPECT_EQ(NULL, fdinfo_text(perf, "bpf_attached_by"));
	ASSERT_EQ(0, perf_set_bpf(perf, prog));
	EXPECT_STREQ("ioctl", fdinfo_text(perf, "bpf_attached_by"));
}

TEST_HARNESS_MAIN
