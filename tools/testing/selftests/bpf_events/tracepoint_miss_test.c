// SPDX-License-Identifier: GPL-2.0
/*
 * Hits of a tracepoint inside the handling of another event: its programs
 * cannot run there, which is counted for each of them
 */
#include "common.h"
#include "link.h"
#include "body.h"
#include "uprobe.h"
#include "filter.h"

#define RENAME "task/task_rename"
#define ENTER "syscalls/sys_enter_sched_get_priority_max"
/* What a program hits that prints */
#define PRINTK "bpf_trace/bpf_trace_printk"

FIXTURE(nested) {
	struct area area;
	int prog;
	int perf;
};

FIXTURE_VARIANT(nested) {
	const char *outer;	/* NULL: a kprobe */
	void (*hit)(void);
	bool link;
};

FIXTURE_VARIANT_ADD(nested, in_tracepoint) {
	.outer = RENAME, .hit = hit_rename,
};

FIXTURE_VARIANT_ADD(nested, in_tracepoint_by_link) {
	.outer = RENAME, .hit = hit_rename, .link = true,
};

FIXTURE_VARIANT_ADD(nested, in_sys_enter) {
	.outer = ENTER, .hit = hit,
};

FIXTURE_VARIANT_ADD(nested, in_kprobe) {
	.hit = hit,
};

FIXTURE_SETUP(nested)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = perf_open_event(PRINTK);
	ASSERT_LE(0, self->perf);
}

FIXTURE_TEARDOWN_PARENT(nested)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int attach_to(int perf, int prog, bool link)
{
	int fd;

	if (!link)
		return perf_set_bpf(perf, prog) ?: perf;
	fd = link_create(prog, perf, BPF_PERF_EVENT, 0, 0);
	close(perf);
	return fd;
}

/* Counts in slot 0, and prints */
static int print_prog(struct area *area, enum bpf_prog_type type)
{
	const struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 'x'),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 2),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
	};
	union bpf_attr attr;

	load_attr(&attr, type, 0, 0);
	return body_load(&attr, area, body, ARRAY_SIZE(body));
}

TEST_F(nested, is_counted)
{
	int inner = count_prog_of(BPF_PROG_TYPE_TRACEPOINT, 0, &self->area, 1, 1);
	int fd, i, perf, outer, runs = 5;
	struct probe probe;

	ASSERT_LE(0, inner);
	fd = attach_to(self->perf, inner, variant->link);
	ASSERT_LE(0, fd);
	if (variant->outer) {
		outer = print_prog(&self->area, BPF_PROG_TYPE_TRACEPOINT);
		perf = perf_open_event(variant->outer);
		ASSERT_LE(0, perf);
		ASSERT_LE(0, attach_to(perf, outer, variant->link));
	} else {
		outer = print_prog(&self->area, BPF_PROG_TYPE_KPROBE);
		ASSERT_EQ(0, probe_create(&probe, 0));
		ASSERT_LE(0, attach(&probe, outer));
	}
	for (i = 0; i < runs; i++)
		variant->hit();
	EXPECT_EQ(runs, area_get(&self->area, 0));
	EXPECT_EQ(0, misses(outer));
	/* None is lost between the runs and the misses */
	EXPECT_EQ(runs, area_get(&self->area, 1) + misses(inner));
	EXPECT_EQ(area_get(&self->area, 1), fdinfo_number(fd, "bpf_prog_hits"));
	EXPECT_EQ(misses(inner), fdinfo_number(fd, "bpf_prog_missed"));
}

/* Programs that are paused miss nothing */
TEST_F(nested, paused)
{
	int perf, inner = count_prog_of(BPF_PROG_TYPE_TRACEPOINT, 0, &self->area, 1, 1);
	struct probe probe;

	ASSERT_EQ(0, perf_set_bpf(self->perf, inner));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_DISABLE, 0));
	if (variant->outer) {
		perf = perf_open_event(variant->outer);
		ASSERT_LE(0, perf);
		ASSERT_EQ(0, perf_set_bpf(perf, print_prog(&self->area,
							   BPF_PROG_TYPE_TRACEPOINT)));
	} else {
		ASSERT_EQ(0, probe_create(&probe, 0));
		ASSERT_LE(0, attach(&probe, print_prog(&self->area, BPF_PROG_TYPE_KPROBE)));
	}
	variant->hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, 1));
	EXPECT_EQ(0, misses(inner));
}

TEST_HARNESS_MAIN
