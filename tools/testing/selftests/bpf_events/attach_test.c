// SPDX-License-Identifier: GPL-2.0
/* A program attached to a perf event of a kprobe or kretprobe runs */
#include <sys/prctl.h>
#include "common.h"
#include "ring.h"

FIXTURE(attach) {
	struct probe probe;
	struct area area;
};

FIXTURE_VARIANT(attach) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(attach, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(attach, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(attach, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(attach, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(attach)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create(&self->probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(attach)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(attach, runs_on_every_hit)
{
	int prog = count_prog(&self->area, 0, 0);
	int fd = probe_open(&self->probe);

	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(0, area_get(&self->area, 0));

	ASSERT_EQ(0, perf_set_bpf(fd, prog));
	hits(5);
	EXPECT_EQ(5, area_get(&self->area, 0));

	/* The event needs no ENABLE, and one does no harm */
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	hits(2);
	EXPECT_EQ(7, area_get(&self->area, 0));

	close(fd);
	hits(3);
	EXPECT_EQ(7, area_get(&self->area, 0));
}

TEST_F(attach, runs_on_every_cpu)
{
	int cpu, cpus = sysconf(_SC_NPROCESSORS_CONF), pinned = 0;
	int fd = attach(&self->probe, count_prog(&self->area, 0, 0));

	ASSERT_LE(0, fd);
	/* The perf event is one of CPU 0 */
	for (cpu = 0; cpu < cpus; cpu++) {
		if (pin(cpu))
			continue;
		hits(2);
		EXPECT_EQ(2 * ++pinned, area_get(&self->area, 0));
	}
	EXPECT_LE(1, pinned);
}

TEST_F(attach, runs_in_every_task)
{
	pid_t child;

	/* The perf event is one of this task */
	ASSERT_LE(0, attach_task(&self->probe, getpid(), count_prog(&self->area, 0, 0)));
	hits(2);
	EXPECT_EQ(2, area_get(&self->area, 0));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		hits(3);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(5, area_get(&self->area, 0));
}

TEST_F(attach, disabled_event_waits_for_enable)
{
	int fd;

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	self->probe.flags |= PROBE_DISABLED;
	fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(0, area_get(&self->area, 0));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, 0));
}

TEST_F(attach, enabled_before_the_program_comes)
{
	int fd;

	self->probe.flags |= PROBE_DISABLED;
	fd = probe_open(&self->probe);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, perf_set_bpf(fd, count_prog(&self->area, 0, 0)));
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, 0));
}

TEST_F(attach, disable_pauses_and_enable_resumes)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	int i;

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	ASSERT_LE(0, fd);
	for (i = 1; i <= 3; i++) {
		hits(2);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		hits(3);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		/* Twice is as good as once */
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		hits(3);
		EXPECT_EQ(2 * i, area_get(&self->area, 0));
		EXPECT_EQ(1, query_count(fd));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	}

	/* A paused program detaches like any other */
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	close(fd);
	hits(3);
	EXPECT_EQ(6, area_get(&self->area, 0));
}

/* prctl(2) is that ioctl, on each of the events that the task has opened */
TEST_F(attach, task_disables_its_events)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	struct probe other;
	pid_t child;

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE));
	hits(3);
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, 0));

	/* A child has the descriptor, but has not opened the event */
	ASSERT_EQ(0, probe_create_at(&other, "other", FUNC, 0, self->probe.flags));
	child = fork();
	if (!child) {
		if (attach(&other, count_prog(&self->area, 1, 0)) < 0 ||
		    prctl(PR_TASK_PERF_EVENTS_DISABLE))
			_exit(1);
		hits(3);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(6, area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(attach, pause_counts_on_every_cpu)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 0));

	if (mainline())
		SKIP(return, "mainline runs the program of a disabled event");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	if (!pin(1))
		hits(3);
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, 0));
}

/*
 * The handler of a system call gets the caller's registers: slot 0 is the
 * first of its arguments.
 */
static int arg_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, REGS_ARG),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, REGS_ARG),
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

TEST_F(attach, sees_arguments_or_the_return_value)
{
	bool ret = variant->flags & PROBE_RETURN;
	const int args[] = { SCHED_FIFO, SCHED_OTHER, SCHED_RR, 12345 };
	int fd, i;

	fd = attach(&self->probe, ret ? reg_prog(&self->area, REGS_RET) :
					arg_prog(&self->area));
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(args); i++) {
		long expected = neg_errno(hit_arg(args[i]));

		if (!ret)
			expected = args[i];
		EXPECT_EQ(expected, (__s64)area_get(&self->area, 0));
	}
	EXPECT_EQ(-EINVAL, neg_errno(hit_arg(12345)));
}

TEST_F(attach, one_program_on_two_events)
{
	int prog = count_prog(&self->area, 0, 0);
	struct probe other;
	int fd, fd2;

	ASSERT_EQ(0, probe_create_at(&other, "event2", FUNC2, 0,
				     variant->flags));
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);
	fd2 = attach(&other, prog);
	ASSERT_LE(0, fd2);

	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_EQ(2, area_get(&self->area, 0));
	close(fd);
	hit();
	EXPECT_EQ(2, area_get(&self->area, 0));
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_EQ(3, area_get(&self->area, 0));
}

/* A probe in the middle of a function: a breakpoint or a jump */

FIXTURE(body) {
	struct probe probe;
	struct area area;
	struct optimize optimize;
};

FIXTURE_SETUP(body)
{
	SKIP_WITHOUT(return, prepare());
	optimize_save(&self->optimize);
	write_file(OPTIMIZE, 0, "0");
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create_body(&self->probe, "body", BODY_FUNC, 0));
}

FIXTURE_TEARDOWN_PARENT(body)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(body, runs_by_breakpoint_and_jump)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 0));

	ASSERT_LE(0, fd);
	hit_body();
	EXPECT_EQ(1, area_get(&self->area, 0));
	write_file(OPTIMIZE, 0, "1");
	hit_body();
	EXPECT_EQ(2, area_get(&self->area, 0));
	wait_optimized(BODY_FUNC);
	hit_body();
	EXPECT_EQ(3, area_get(&self->area, 0));
	write_file(OPTIMIZE, 0, "0");
	hit_body();
	EXPECT_EQ(4, area_get(&self->area, 0));
}

/* What is on again before its jump is gone keeps it: a breakpoint would be all there is. */
TEST_F(body, stays_a_jump)
{
	int i, fd, prog = count_prog(&self->area, 0, 0);

	if (!self->optimize.saved)
		SKIP(return, "CONFIG_OPTPROBES");
	write_file(OPTIMIZE, 0, "1");
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(wait_optimized(BODY_FUNC));
	for (i = 1; i <= 3; i++) {
		close(fd);
		fd = attach(&self->probe, prog);
		ASSERT_LE(0, fd);
		EXPECT_TRUE(wait_optimized(BODY_FUNC));
		hit_body();
		EXPECT_EQ(i, area_get(&self->area, 0));
	}
}

/* The calls of bcc's hello_world, one by one */

FIXTURE(bcc) {
	struct area area;
};

FIXTURE_SETUP(bcc)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, event_add("event", "p %s", FUNC));
}

FIXTURE_TEARDOWN_PARENT(bcc)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(bcc, hello_world)
{
	struct perf_event_attr attr = {};
	struct ring ring;
	int fd, prog;
	__u64 id;

	prog = count_prog(&self->area, 0, 0);
	ASSERT_EQ(0, event_id("event", &id));
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.size = 0;
	attr.config = id;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	attr.wakeup_events = 1;
	fd = syscall(__NR_perf_event_open, &attr, -1, 0, -1,
		     PERF_FLAG_FD_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ring_map(&ring, fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	close(prog);

	hits(4);
	EXPECT_EQ(4, area_get(&self->area, 0));
	EXPECT_EQ(0, ring_samples(&ring));
	ring_unmap(&ring);
	close(fd);
	hits(4);
	EXPECT_EQ(4, area_get(&self->area, 0));
}

TEST_HARNESS_MAIN
