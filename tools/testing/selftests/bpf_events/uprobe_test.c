// SPDX-License-Identifier: GPL-2.0
/* A program attached to a perf event of a uprobe or uretprobe runs */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "uprobe.h"

FIXTURE(uprobe) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(uprobe) {
	unsigned int flags;
	bool link;
};

FIXTURE_VARIANT_ADD(uprobe, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(uprobe, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(uprobe, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(uprobe, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(uprobe, uprobe_event_link) {
	.flags = 0, .link = true,
};

FIXTURE_VARIANT_ADD(uprobe, uretprobe_event_link) {
	.flags = PROBE_RETURN, .link = true,
};

FIXTURE_VARIANT_ADD(uprobe, uprobe_pmu_link) {
	.flags = PROBE_PMU, .link = true,
};

FIXTURE_VARIANT_ADD(uprobe, uretprobe_pmu_link) {
	.flags = PROBE_PMU | PROBE_RETURN, .link = true,
};

FIXTURE_SETUP(uprobe)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(uprobe)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(uprobe, runs_on_every_hit)
{
	int fd, prog = count_prog(&self->area, 0, 0);

	user_hits(3);
	fd = attach_by(&self->probe, variant->link, prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, area_get(&self->area, 0));
	user_hits(5);
	EXPECT_EQ(5, area_get(&self->area, 0));
	if (!pin(1)) {
		user_hits(2);
		EXPECT_EQ(7, area_get(&self->area, 0));
	}
	close(fd);
	user_hits(3);
	EXPECT_EQ(7, area_get(&self->area, 0));
}

TEST_F(uprobe, runs_in_every_process)
{
	int fd = attach_by(&self->probe, variant->link,
			   count_prog(&self->area, 0, 0));

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, child_hits(4));
	EXPECT_EQ(4, area_get(&self->area, 0));
	user_hits(1);
	EXPECT_EQ(5, area_get(&self->area, 0));
}

TEST_F(uprobe, sees_the_argument_or_the_return_value)
{
	bool ret = variant->flags & PROBE_RETURN;
	__u64 pairs[3][2];
	int i;

	ASSERT_LE(0, attach_by(&self->probe, variant->link,
			       reg_prog(&self->area, ret ? REGS_RET : REGS_ARG)));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(pairs[i] + 1, user_func(pairs[i]));
		EXPECT_EQ((unsigned long)(ret ? pairs[i] + 1 : pairs[i]),
			  area_get(&self->area, 0));
	}
}

/* Reads what the register at @off points to into slot 0 */
static int deref_prog(struct area *area, int off)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, off),
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_user),
		AREA(BPF_REG_1, area, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

TEST_F(uprobe, reads_user_memory)
{
	bool ret = variant->flags & PROBE_RETURN;
	__u64 pair[2] = { 0x1111222233334444, 0x5555666677778888 };

	ASSERT_LE(0, attach_by(&self->probe, variant->link,
			       deref_prog(&self->area, ret ? REGS_RET : REGS_ARG)));
	user_func(pair);
	EXPECT_EQ(pair[ret], area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, 1));

	/* There is nothing at a small address */
	user_func((__u64 *)64);
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(-EFAULT, (__s64)area_get(&self->area, 1));
}

TEST_F(uprobe, get_func_ip)
{
	ASSERT_LE(0, attach_by(&self->probe, variant->link,
			       func_ip_prog(&self->area)));
	user_hits(1);
	EXPECT_EQ((unsigned long)user_func, area_get(&self->area, 0));
}

TEST_F(uprobe, verdict_decides_about_records)
{
	int prog = verdict_prog(&self->area), fd = probe_open(&self->probe), i;
	struct ring ring;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_map(&ring, fd));
	user_hits(3);
	EXPECT_EQ(3, ring_samples(&ring));

	ASSERT_LE(0, variant->link ? perf_link(fd, prog) :
				     perf_set_bpf(fd, prog));
	for (i = 0; i < 4; i++) {
		area_set(&self->area, 1, i & 1);
		user_hits(3);
		EXPECT_EQ(i & 1 ? 3 : 0, ring_samples(&ring));
	}
	EXPECT_EQ(12, area_get(&self->area, 0));
}

TEST_F(uprobe, any_verdict_but_zero_keeps_the_record)
{
	int prog = verdict_prog(&self->area), fd = probe_open(&self->probe);
	struct ring ring;

	if (mainline())
		SKIP(return, "mainline looks at bit 0 of the verdict only");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_map(&ring, fd));
	ASSERT_LE(0, variant->link ? perf_link(fd, prog) :
				     perf_set_bpf(fd, prog));
	area_set(&self->area, 1, 2);
	user_hits(3);
	EXPECT_EQ(3, ring_samples(&ring));
}

TEST_F(uprobe, disable_pauses_and_enable_resumes)
{
	int prog = count_prog(&self->area, 0, 0), fd = probe_open(&self->probe);

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	ASSERT_LE(0, fd);
	ASSERT_LE(0, variant->link ? perf_link(fd, prog) :
				     perf_set_bpf(fd, prog));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	user_hits(3);
	/* A link is no matter of the event's state */
	EXPECT_EQ(variant->link ? 3 : 0, area_get(&self->area, 0));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	user_hits(3);
	EXPECT_EQ(variant->link ? 6 : 3, area_get(&self->area, 0));
}

TEST_F(uprobe, fdinfo_counts_hits)
{
	int prog = count_prog(&self->area, 0, 0), fd = probe_open(&self->probe);
	struct fdinfo info;

	if (mainline())
		SKIP(return, "mainline's fdinfo has no program");
	ASSERT_LE(0, fd);
	ASSERT_LE(0, variant->link ? perf_link(fd, prog) :
				     perf_set_bpf(fd, prog));
	user_hits(6);
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(prog_id(prog), info.id);
	EXPECT_EQ(6, info.hits);
	EXPECT_EQ(0, info.missed);
}

/* A uprobe inside a function.  Where it is counts, unlike with a kprobe. */

FIXTURE(inside) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(inside) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(inside, uprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(inside, uprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_SETUP(inside)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&self->probe, "event", SELF,
				      file_offset(user_body), 0,
				      variant->flags));
}

FIXTURE_TEARDOWN_PARENT(inside)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(inside, get_func_ip)
{
	ASSERT_LE(0, attach(&self->probe, func_ip_prog(&self->area)));
	user_hits(1);
	EXPECT_EQ((unsigned long)user_body, area_get(&self->area, 0));
}

/* What a link says of a uprobe */

FIXTURE(info) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(info) {
	unsigned int flags;
	enum bpf_perf_event_type type;
};

FIXTURE_VARIANT_ADD(info, uprobe_event) {
	.flags = 0,
	.type = BPF_PERF_EVENT_UPROBE,
};

FIXTURE_VARIANT_ADD(info, uretprobe_event) {
	.flags = PROBE_RETURN,
	.type = BPF_PERF_EVENT_URETPROBE,
};

FIXTURE_VARIANT_ADD(info, uprobe_pmu) {
	.flags = PROBE_PMU,
	.type = BPF_PERF_EVENT_UPROBE,
};

FIXTURE_VARIANT_ADD(info, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
	.type = BPF_PERF_EVENT_URETPROBE,
};

FIXTURE_SETUP(info)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(info)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(info, says_what_is_probed)
{
	int prog = count_prog(&self->area, 0, 0);
	struct bpf_link_info info = {};
	char name[128];
	int link = attach_link(&self->probe, prog, 0xabcdef);

	ASSERT_LE(0, link);
	info.perf_event.uprobe.file_name = (unsigned long)name;
	info.perf_event.uprobe.name_len = sizeof(name);
	ASSERT_EQ(0, link_info(link, &info));
	EXPECT_EQ(BPF_LINK_TYPE_PERF_EVENT, info.type);
	EXPECT_EQ(prog_id(prog), info.prog_id);
	EXPECT_EQ(variant->type, info.perf_event.type);
	EXPECT_STREQ(SELF, name);
	EXPECT_EQ(sizeof(SELF), info.perf_event.uprobe.name_len);
	EXPECT_EQ(self->probe.offset, info.perf_event.uprobe.offset);
	EXPECT_EQ(0xabcdef, info.perf_event.uprobe.cookie);
}

TEST_F(info, room_for_the_name)
{
	int link = attach_link(&self->probe, count_prog(&self->area, 0, 0), 0);
	struct bpf_link_info info = {};
	char name[16] = "xxxxxxxx";

	ASSERT_LE(0, link);
	info.perf_event.uprobe.file_name = (unsigned long)name;
	EXPECT_EQ(-EINVAL, link_info(link, &info));
	info.perf_event.uprobe.name_len = 5;
	EXPECT_EQ(-ENOSPC, link_info(link, &info));
	EXPECT_STREQ("/pro", name);
	EXPECT_EQ('x', name[5]);
	info.perf_event.uprobe.file_name = 0;
	EXPECT_EQ(-EINVAL, link_info(link, &info));
	info.perf_event.uprobe.name_len = 0;
	EXPECT_EQ(0, link_info(link, &info));
	EXPECT_EQ(sizeof(SELF), info.perf_event.uprobe.name_len);
}

/* A file that begins with the code of user_func() */
static int code_file(void)
{
	int fd = neg_errno(syscall(__NR_memfd_create, BPF_NAME, 0));
	long page = sysconf(_SC_PAGESIZE);

	if (fd < 0 || ftruncate(fd, page))
		return -errno;
	return pwrite(fd, user_func, 256, 0) == 256 ? fd : -EIO;
}

FIXTURE(files) {
	struct area area;
	int fds[2];
};

FIXTURE_VARIANT(files) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(files, uprobe) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(files, uretprobe) {
	.flags = PROBE_RETURN,
};

FIXTURE_SETUP(files)
{
	struct probe probe;
	char path[64];
	int i;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	for (i = 0; i < 2; i++) {
		self->fds[i] = code_file();
		ASSERT_LE(0, self->fds[i]);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fds[i]);
		ASSERT_EQ(0, uprobe_create_at(&probe, i ? "event2" : "event", path, 0, 0,
					      variant->flags));
		ASSERT_LE(0, attach(&probe, count_prog(&self->area, i, 0)));
	}
}

FIXTURE_TEARDOWN_PARENT(files)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What is hit is the probe of the file that is mapped there now */
TEST_F(files, two_files_at_one_address)
{
	long page = sysconf(_SC_PAGESIZE);
	__u64 *(*func)(__u64 *arg);
	void *at = NULL;
	__u64 pair[2];
	int i;

	for (i = 0; i < 6; i++) {
		at = mmap(at, page, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | (at ? MAP_FIXED : 0), self->fds[i % 2], 0);
		ASSERT_NE(MAP_FAILED, at);
		func = at;
		EXPECT_EQ(pair + 1, func(pair));
		EXPECT_EQ(pair + 1, func(pair));
		EXPECT_EQ(2 * (i / 2 + 1), area_get(&self->area, 0));
		EXPECT_EQ(2 * ((i + 1) / 2), area_get(&self->area, 1));
	}
}

/* Its calls have the same stack pointer, and longjmp() leaves every other one */
static void leave_and_stay(void)
{
	static unsigned int i;	/* not in a register, which the jump would restore */

	for (i = 0; i < 3; i++) {
		if (!setjmp(before_the_dive()))
			dive(0, leave_the_dive);
		dive(0, NULL);
	}
}

FIXTURE(left) {
	struct area area;
	struct probe probe;
	int prog;
	int fd;
};

FIXTURE_VARIANT(left) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(left, uretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(left, uretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(left)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&self->probe, "event", SELF, file_offset(dive), 0,
				      variant->flags));
	self->prog = count_prog(&self->area, 0, 0);
	self->fd = attach(&self->probe, self->prog);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(left)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(left, calls_that_were_left_make_room)
{
	static unsigned int i;

	for (i = 0; i < 4; i++) {
		if (!setjmp(before_the_dive()))
			dive(MAX_DEPTH - 4 + 4 * i, leave_the_dive);
		EXPECT_EQ(5 * i, area_get(&self->area, 0));
		EXPECT_EQ(4, dive(4, NULL));
		EXPECT_EQ(5 * (i + 1), area_get(&self->area, 0));
	}
}

TEST_F(left, the_last_of_the_room_is_left)
{
	EXPECT_EQ(MAX_DEPTH - 2, dive(MAX_DEPTH - 2, leave_and_stay));
	EXPECT_EQ(MAX_DEPTH - 1 + 3, area_get(&self->area, 0));
	/* Now there is none but for those that stay */
	EXPECT_EQ(MAX_DEPTH - 1, dive(MAX_DEPTH - 1, leave_and_stay));
	EXPECT_EQ(MAX_DEPTH - 1 + 3 + MAX_DEPTH, area_get(&self->area, 0));
}

/* By whose program would have run: not by one that is paused, or of another process */
TEST_F(left, returns_that_are_not_followed_are_missed)
{
	int pipe_fd, fd, prog = count_prog(&self->area, 1, 0);
	pid_t child;

	if (mainline())
		SKIP(return, "mainline does not count what it misses there");
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	fd = attach_task(&self->probe, child, prog);
	ASSERT_LE(0, fd);
	dive(MAX_DEPTH + 5, NULL);
	EXPECT_EQ(MAX_DEPTH, area_get(&self->area, 0));
	EXPECT_EQ(6, misses(self->prog));
	EXPECT_EQ(6, fdinfo_number(self->fd, "bpf_prog_missed"));

	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	dive(MAX_DEPTH + 5, NULL);
	EXPECT_EQ(MAX_DEPTH, area_get(&self->area, 0));
	EXPECT_EQ(6, misses(self->prog));
	EXPECT_EQ(0, misses(prog));
	EXPECT_EQ(0, area_get(&self->area, 1));
	close(pipe_fd);
	child_status(child);
}

/* Functions that do nothing, one after the other: more than a task remembers at a time */
#define PLACES 32

FUNCS(places, PLACES, "nop");

FIXTURE(places) {
	struct area area;
	int fds[PLACES];
};

FIXTURE_SETUP(places)
{
	struct probe probe;
	unsigned int i;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	for (i = 0; i < PLACES; i++) {
		ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF, file_offset(func_at(places, i)), 0,
					      PROBE_PMU));
		self->fds[i] = attach_by(&probe, false, count_prog(&self->area, i, 0));
		ASSERT_LE(0, self->fds[i]);
	}
}

FIXTURE_TEARDOWN_PARENT(places)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* @n of them in turn, so many times */
static void call_places(unsigned int n, unsigned int times)
{
	unsigned int i;

	while (times--) {
		for (i = 0; i < n; i++)
			call_func(func_at(places, i), 0);
	}
}

TEST_F(places, are_hit_in_turn)
{
	unsigned int i, n, hits[PLACES] = {};

	for (n = 1; n <= PLACES; n *= 2) {
		call_places(n, 3);
		for (i = 0; i < n; i++) {
			hits[i] += 3;
			EXPECT_EQ(hits[i], area_get(&self->area, i));
		}
	}
}

TEST_F(places, every_other_one_goes)
{
	unsigned int i;

	call_places(PLACES, 2);
	for (i = 0; i < PLACES; i += 2)
		close(self->fds[i]);
	call_places(PLACES, 2);
	for (i = 0; i < PLACES; i++)
		EXPECT_EQ(i % 2 ? 4 : 2, area_get(&self->area, i));
}

TEST_HARNESS_MAIN
