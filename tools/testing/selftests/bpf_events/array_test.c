// SPDX-License-Identifier: GPL-2.0
/* Several programs on one event: up to 64 run, in the order they came */
#include "common.h"
#include "ring.h"

#define MAX_PROGS 64

FIXTURE(array) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(array) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(array, kprobe) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(array, kretprobe) {
	.flags = PROBE_RETURN,
};

FIXTURE_SETUP(array)
{
	SKIP_WITHOUT(return, prepare());
	/* Samples are wanted of what happens here */
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(array)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * A program that writes its number to the next place of a list: slot 0 counts,
 * the list is in the 64 slots from 1 on.
 */
static int list_prog(struct area *area, int number)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_1, BPF_REG_2,
			      0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_2, 127),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_2, 3),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_1, BPF_REG_2),
		BPF_ST_MEM(BPF_DW, BPF_REG_1, 8, number),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* Hits the probe once and says what ran, as in "1 2 3 " */
static const char *who_runs(struct area *area)
{
	static char text[1024];
	int i, n, len = 0;

	area_set(area, 0, 0);
	hit();
	n = area_get(area, 0);
	text[0] = '\0';
	for (i = 1; i <= n && i <= 128; i++)
		len += snprintf(text + len, sizeof(text) - len, "%llu ",
				area_get(area, i));
	return text;
}

TEST_F(array, all_run_in_the_order_they_came)
{
	int i, fds[4];

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = attach(&self->probe, list_prog(&self->area, i + 1));
		ASSERT_LE(0, fds[i]);
	}
	EXPECT_STREQ("1 2 3 4 ", who_runs(&self->area));

	close(fds[1]);
	EXPECT_STREQ("1 3 4 ", who_runs(&self->area));
	close(fds[3]);
	EXPECT_STREQ("1 3 ", who_runs(&self->area));
	fds[1] = attach(&self->probe, list_prog(&self->area, 5));
	ASSERT_LE(0, fds[1]);
	EXPECT_STREQ("1 3 5 ", who_runs(&self->area));
	close(fds[0]);
	EXPECT_STREQ("3 5 ", who_runs(&self->area));
	close(fds[2]);
	close(fds[1]);
	EXPECT_STREQ("", who_runs(&self->area));
}

TEST_F(array, sixty_four_and_no_more)
{
	int i, extra, fds[MAX_PROGS + 1];

	for (i = 0; i < MAX_PROGS; i++) {
		fds[i] = attach(&self->probe, count_prog(&self->area, i, 1));
		ASSERT_LE(0, fds[i]);
	}
	fds[i] = probe_open(&self->probe);
	ASSERT_LE(0, fds[i]);
	extra = count_prog(&self->area, i, 1);
	EXPECT_EQ(-E2BIG, perf_set_bpf(fds[i], extra));
	EXPECT_EQ(MAX_PROGS, query_count(fds[i]));

	hits(2);
	for (i = 0; i < MAX_PROGS; i++)
		EXPECT_EQ(2, area_get(&self->area, i));
	EXPECT_EQ(0, area_get(&self->area, i));

	/* When one goes the next fits, on the very fd that was refused */
	close(fds[31]);
	ASSERT_EQ(0, perf_set_bpf(fds[i], extra));
	hits(1);
	for (i = 0; i < MAX_PROGS; i++)
		EXPECT_EQ(i == 31 ? 2 : 3, area_get(&self->area, i));
	EXPECT_EQ(1, area_get(&self->area, i));
}

TEST_F(array, same_program_twice)
{
	int prog = list_prog(&self->area, 1);
	int fd = attach(&self->probe, prog);
	int fd2 = probe_open(&self->probe);

	ASSERT_LE(0, fd);
	ASSERT_LE(0, fd2);
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd2, prog));
	EXPECT_STREQ("1 ", who_runs(&self->area));

	/* The refused fd takes another program, or this one when it is free */
	close(fd);
	EXPECT_STREQ("", who_runs(&self->area));
	EXPECT_EQ(0, perf_set_bpf(fd2, prog));
	EXPECT_STREQ("1 ", who_runs(&self->area));
}

TEST_F(array, second_program_on_one_fd)
{
	int fd = attach(&self->probe, list_prog(&self->area, 1));
	int prog = list_prog(&self->area, 2);
	int fd2;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, prog));
	EXPECT_STREQ("1 ", who_runs(&self->area));

	fd2 = attach(&self->probe, prog);
	ASSERT_LE(0, fd2);
	EXPECT_STREQ("1 2 ", who_runs(&self->area));
}

TEST_F(array, pause_is_of_one_fd)
{
	int i, fds[3];

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = attach(&self->probe, list_prog(&self->area, i + 1));
		ASSERT_LE(0, fds[i]);
	}
	ASSERT_EQ(0, ioctl(fds[1], PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_STREQ("1 3 ", who_runs(&self->area));
	ASSERT_EQ(0, ioctl(fds[0], PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_STREQ("3 ", who_runs(&self->area));
	/* It keeps its place */
	ASSERT_EQ(0, ioctl(fds[1], PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_STREQ("2 3 ", who_runs(&self->area));
	EXPECT_EQ(3, query_count(fds[2]));
}

TEST_F(array, all_must_agree_on_a_record)
{
	int i, watch, fds[2], progs[2][2];
	struct ring ring;

	watch = probe_open(&self->probe);
	ASSERT_LE(0, watch);
	ASSERT_EQ(0, ring_map(&ring, watch));
	for (i = 0; i < 4; i++) {
		progs[i / 2][i % 2] = count_prog(&self->area, i / 2, i % 2);
		ASSERT_LE(0, progs[i / 2][i % 2]);
	}

	for (i = 0; i < 4; i++) {
		fds[0] = attach(&self->probe, progs[0][i / 2]);
		ASSERT_LE(0, fds[0]);
		fds[1] = attach(&self->probe, progs[1][i % 2]);
		ASSERT_LE(0, fds[1]);
		hits(2);
		EXPECT_EQ(i == 3 ? 2 : 0, ring_samples(&ring));
		close(fds[0]);
		close(fds[1]);
	}
	/* One that says no does not keep the other from running */
	EXPECT_EQ(8, area_get(&self->area, 0));
	EXPECT_EQ(8, area_get(&self->area, 1));
}

TEST_F(array, paused_program_has_no_vote)
{
	struct ring ring;
	int watch, fd;

	watch = probe_open(&self->probe);
	ASSERT_LE(0, watch);
	ASSERT_EQ(0, ring_map(&ring, watch));
	fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(0, ring_samples(&ring));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	hits(3);
	EXPECT_EQ(3, ring_samples(&ring));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	hits(3);
	EXPECT_EQ(0, ring_samples(&ring));
	EXPECT_EQ(6, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
