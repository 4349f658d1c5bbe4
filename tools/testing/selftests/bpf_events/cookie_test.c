// SPDX-License-Identifier: GPL-2.0
/* bpf_get_attach_cookie() tells a program which of its attachments was hit */
#include "common.h"
#include "link.h"
#include "uprobe.h"

FIXTURE(cookie) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(cookie) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(cookie, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(cookie, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(cookie, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(cookie, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(cookie, uprobe_event) {
	.flags = PROBE_USER,
};

FIXTURE_VARIANT_ADD(cookie, uretprobe_event) {
	.flags = PROBE_USER | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(cookie, uprobe_pmu) {
	.flags = PROBE_USER | PROBE_PMU,
};

FIXTURE_VARIANT_ADD(cookie, uretprobe_pmu) {
	.flags = PROBE_USER | PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(cookie)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, variant->flags & PROBE_USER ?
			     uprobe_create(&self->probe, variant->flags) :
			     probe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(cookie)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Hits what is probed, whichever it is */
static void hit_both(void)
{
	hit();
	user_hits(1);
}

/* Writes its cookie to a slot */
static int cookie_prog(struct area *area, unsigned int slot)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		AREA(BPF_REG_1, area, slot),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

TEST_F(cookie, any_64_bits)
{
	const __u64 cookies[] = { 1, 0, ~0ULL, 1ULL << 63, 0x123456789abcdef0 };
	int prog = cookie_prog(&self->area, 0), link, i;

	for (i = 0; i < ARRAY_SIZE(cookies); i++) {
		area_set(&self->area, 0, 0x5555);
		link = attach_link(&self->probe, prog, cookies[i]);
		ASSERT_LE(0, link);
		hit_both();
		EXPECT_EQ(cookies[i], area_get(&self->area, 0));
		close(link);
	}
}

TEST_F(cookie, zero_by_default)
{
	int prog = cookie_prog(&self->area, 0);

	area_set(&self->area, 0, 0x5555);
	ASSERT_LE(0, attach(&self->probe, prog));
	hit_both();
	EXPECT_EQ(0, area_get(&self->area, 0));
}

TEST_F(cookie, each_program_on_the_place_has_its_own)
{
	int i;

	/* One of them by SET_BPF, in the middle */
	for (i = 0; i < 5; i++) {
		int prog = cookie_prog(&self->area, i);

		area_set(&self->area, i, 0x5555);
		ASSERT_LE(0, i == 2 ? attach(&self->probe, prog) :
				      attach_link(&self->probe, prog, 100 + i));
	}
	hit_both();
	for (i = 0; i < 5; i++)
		EXPECT_EQ(i == 2 ? 0 : 100 + i, area_get(&self->area, i));
}

/* One program on several events, which is what cookies are for */

FIXTURE(shared) {
	struct area area;
	int prog;
};

FIXTURE_SETUP(shared)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = cookie_prog(&self->area, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(shared)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(shared, tells_the_events_apart)
{
	struct probe probes[4];
	int i;

	ASSERT_EQ(0, probe_create_at(&probes[0], "max", FUNC, 0, 0));
	ASSERT_EQ(0, probe_create_at(&probes[1], "min", FUNC2, 0, PROBE_RETURN));
	ASSERT_EQ(0, probe_create_at(&probes[2], "", BODY_FUNC, 0, PROBE_PMU));
	ASSERT_EQ(0, uprobe_create(&probes[3], 0));
	for (i = 0; i < 4; i++)
		ASSERT_LE(0, attach_link(&probes[i], self->prog, 10 + i));

	for (i = 0; i < 3; i++) {
		hit();
		EXPECT_EQ(10, area_get(&self->area, 0));
		syscall(__NR_sched_get_priority_min, SCHED_FIFO);
		EXPECT_EQ(11, area_get(&self->area, 0));
		hit_body();
		EXPECT_EQ(12, area_get(&self->area, 0));
		user_hits(1);
		EXPECT_EQ(13, area_get(&self->area, 0));
	}
}

/* A program that is called by a program on the event */
TEST_F(shared, holds_across_a_tail_call)
{
	int progs = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_2, progs),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct probe probe;
	__u32 key = 0;

	ASSERT_LE(0, progs);
	ASSERT_EQ(0, map_update(progs, &key, &self->prog));
	ASSERT_EQ(0, probe_create(&probe, 0));
	ASSERT_LE(0, attach_link(&probe, prog_load(insns, ARRAY_SIZE(insns)), 77));
	hit();
	EXPECT_EQ(77, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
