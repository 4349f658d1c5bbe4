// SPDX-License-Identifier: GPL-2.0
/*
 * Which perf events take a BPF_PROG_TYPE_PERF_EVENT program, which do not, and
 * what they say
 */
#include "common.h"
#include "error_log.h"
#include "link.h"
#include "uprobe.h"
#include "overflow.h"

#define WANTS "This event takes programs of type BPF_PROG_TYPE_PERF_EVENT"
#define NO_CALLCHAIN \
	"The program takes stacks; a precise event must sample callchains for it, whole"

FIXTURE(kinds) {
	struct area area;
	int prog;
};

FIXTURE_SETUP(kinds)
{
	SKIP_WITHOUT(return, overflow_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = overflow_count_prog(&self->area, HITS);
	ASSERT_LE(0, self->prog);
	write_file(ERROR_LOG, O_TRUNC, "");
}

FIXTURE_TEARDOWN_PARENT(kinds)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

static int software_open(__u64 config, __u64 period, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = config, .size = sizeof(attr),
		.sample_type = PERF_SAMPLE_IP, .sample_period = period,
	};

	return perf_open(&attr, pid, cpu);
}

TEST_F(kinds, every_software_event)
{
	__u64 config;
	int fd, link;

	for (config = 0; config < PERF_COUNT_SW_MAX; config++) {
		fd = software_open(config, 1, 0, -1);
		if (fd == -ENOENT || fd == -EINVAL || fd == -EOPNOTSUPP)
			continue;
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, perf_set_bpf(fd, self->prog));
		close(fd);
		fd = software_open(config, 0, 0, -1);
		link = perf_link(fd, self->prog);
		EXPECT_LE(0, link);
		close(link);
		close(fd);
	}
	EXPECT_LT(PERF_COUNT_SW_DUMMY, config);
}

TEST_F(kinds, clocks)
{
	static const __u64 clocks[] = { PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK };
	int i, fd;

	ASSERT_EQ(0, pin(0));
	for (i = 0; i < 4; i++) {
		/* One of this process, one of a CPU */
		fd = software_open(clocks[i / 2], 200000, i % 2 ? -1 : 0, i % 2 ? 0 : -1);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
		area_set(&self->area, HITS, 0);
		EXPECT_TRUE(spin_until(area_get(&self->area, HITS) > 5));

		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		area_set(&self->area, HITS, 0);
		spin_ms(20);
		EXPECT_EQ(0, area_get(&self->area, HITS));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		EXPECT_TRUE(spin_until(area_get(&self->area, HITS) > 5));

		close(fd);
		area_set(&self->area, HITS, 0);
		spin_ms(20);
		EXPECT_EQ(0, area_get(&self->area, HITS));
	}
}

TEST_F(kinds, context_switches)
{
	int i, fd;

	ASSERT_EQ(0, pin(0));
	fd = software_open(PERF_COUNT_SW_CONTEXT_SWITCHES, 1, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	for (i = 0; i < 10; i++)
		sleep_ms(1);
	EXPECT_LE(10, area_get(&self->area, HITS));
}

TEST_F(kinds, of_another_cpu)
{
	int fd;

	if (pin(1))
		SKIP(return, "CONFIG_SMP, and two CPUs");
	fd = software_open(PERF_COUNT_SW_CPU_CLOCK, 200000, -1, 1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_TRUE(spin_until(area_get(&self->area, HITS) > 5));
	close(fd);
	area_set(&self->area, HITS, 0);
	spin_ms(20);
	EXPECT_EQ(0, area_get(&self->area, HITS));
}

TEST_F(kinds, several_events)
{
	int i, fds[3], prog = overflow_prog(&self->area);

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = overflow_open(PERF_TYPE_SOFTWARE);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, perf_set_bpf(fds[i], prog));
	}
	overflow(&self->area, PERF_TYPE_SOFTWARE, 2);
	EXPECT_EQ(6, area_get(&self->area, HITS));
	close(fds[1]);
	overflow(&self->area, PERF_TYPE_SOFTWARE, 2);
	EXPECT_EQ(10, area_get(&self->area, HITS));
}

TEST_F(kinds, other_programs)
{
	const int progs[] = {
		count_prog(&self->area, 8, 1),
		prog_load_type(BPF_PROG_TYPE_TRACEPOINT, 0, 0),
		prog_load_type(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0),
		prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0),
	};
	int i, fd = overflow_open(PERF_TYPE_SOFTWARE);

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(progs); i++) {
		ASSERT_LE(0, progs[i]);
		EXPECT_EQ(-EINVAL, perf_set_bpf(fd, progs[i]));
		EXPECT_EQ(-EINVAL, perf_link(fd, progs[i]));
	}
	EXPECT_EQ(-EBADF, perf_set_bpf(fd, 999));
	EXPECT_EQ(-EINVAL, perf_set_bpf(fd, self->area.fd));
	EXPECT_EQ(0, perf_set_bpf(fd, self->prog));
}

TEST_F(kinds, bad_links)
{
	int fd = overflow_open(PERF_TYPE_SOFTWARE);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, link_create(self->prog, fd, 0, 0, 0));
	EXPECT_EQ(-EINVAL, link_create(self->prog, fd, BPF_TRACE_KPROBE_MULTI, 0, 0));
	EXPECT_EQ(-EINVAL, link_create(self->prog, fd, BPF_PERF_EVENT, 1, 0));
	EXPECT_EQ(-EBADF, link_create(self->prog, 999, BPF_PERF_EVENT, 0, 0));
	EXPECT_EQ(-EBADF, link_create(self->prog, self->area.fd, BPF_PERF_EVENT, 0, 0));
	EXPECT_LE(0, perf_link(fd, self->prog));
}

TEST_F(kinds, trace_events)
{
	static const unsigned int flags[] = {
		0, PROBE_RETURN, PROBE_PMU, PROBE_PMU | PROBE_RETURN,
	};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_period = 1,
	};
	struct probe probe;
	int i, fd;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, probe_create(&probe, flags[i]));
		fd = probe_open(&probe);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-EINVAL, perf_set_bpf(fd, self->prog));
		EXPECT_EQ(-EINVAL, perf_link(fd, self->prog));
		close(fd);
		if (!(flags[i] & PROBE_PMU))
			EXPECT_EQ(0, event_remove("event"));
	}
	ASSERT_EQ(0, uprobe_create(&probe, 0));
	fd = probe_open_for(&probe, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, perf_set_bpf(fd, self->prog));
	user_hits(1);

	ASSERT_TRUE(read_u64(TRACEFS "/events/task/task_rename/id", (__u64 *)&attr.config));
	fd = perf_open(&attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, perf_set_bpf(fd, self->prog));
	EXPECT_EQ(-EINVAL, perf_link(fd, self->prog));
	EXPECT_EQ(0, area_get(&self->area, HITS));
}

TEST_F(kinds, load)
{
	int fd = prog_load_type(BPF_PROG_TYPE_PERF_EVENT, BPF_PERF_EVENT, 0);

	EXPECT_LE(0, fd);
	EXPECT_EQ(-EINVAL, prog_load_type(BPF_PROG_TYPE_PERF_EVENT, 0, BPF_F_SLEEPABLE));
	ASSERT_EQ(0, drop_caps(CAP(BPF)));
	EXPECT_EQ(-EPERM, prog_load_type(BPF_PROG_TYPE_PERF_EVENT, 0, 0));
}

/* Programs that take stacks, of which a precise event is no good source */

static int stack_prog(struct area *area, bool stackid)
{
	const struct bpf_insn stack[] = {
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 8 * MORE),
		BPF_MOV64_IMM(BPF_REG_3, 64),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
	};
	const struct bpf_insn id[] = {
		BPF_LD_MAP_FD(BPF_REG_2, map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 64, 8, 0)),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_stackid),
	};

	return stackid ? overflow_prog_of(area, id, ARRAY_SIZE(id)) :
			 overflow_prog_of(area, stack, ARRAY_SIZE(stack));
}

TEST_F(kinds, precise)
{
	int i, fd, prog, expected;
	struct perf_event_attr attr;

	for (i = 0; i < 32; i++) {
		prog = stack_prog(&self->area, i & 1);
		ASSERT_LE(0, prog);
		overflow_attr(&attr, PERF_TYPE_SOFTWARE);
		attr.precise_ip = i & 2 ? 1 : 0;
		attr.sample_type |= i & 4 ? PERF_SAMPLE_CALLCHAIN : 0;
		attr.exclude_callchain_kernel = !!(i & 8);
		attr.exclude_callchain_user = !!(i & 16);
		fd = perf_open(&attr, 0, -1);
		ASSERT_LE(0, fd);
		expected = !(i & 2) || (i & 28) == 4 ? 0 : -EPROTO;
		EXPECT_EQ(expected, perf_set_bpf(fd, prog)) {
			TH_LOG("i %d", i);
		}
		if (expected)
			EXPECT_EQ(expected, perf_link(fd, prog));
		/* Others do not mind */
		EXPECT_EQ(expected ? 0 : -EEXIST, perf_set_bpf(fd, self->prog));
		close(fd);
		close(prog);
	}
}

/* error_log */

TEST_F(kinds, errors_are_explained)
{
	int fd = overflow_open(PERF_TYPE_SOFTWARE);
	int other = count_prog(&self->area, 8, 1);
	int stack = stack_prog(&self->area, false);
	struct perf_event_attr attr;
	int precise;

	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	attr.precise_ip = 1;
	precise = perf_open(&attr, 0, -1);
	ASSERT_LE(0, precise);

	EXPECT_EQ(-EINVAL, perf_set_bpf(fd, other));
	EXPECT_STREQ(entry(WANTS, "BPF_PROG", "SET_BPF software fd %d BPF_PROG_TYPE_KPROBE",
			   other), entries());
	EXPECT_EQ(-EINVAL, perf_link(fd, other));
	EXPECT_STREQ(entry(WANTS, "BPF_PROG", "LINK_CREATE software fd %d BPF_PROG_TYPE_KPROBE",
			   other), entries());
	EXPECT_EQ(-EPROTO, perf_set_bpf(precise, stack));
	EXPECT_STREQ(entry(NO_CALLCHAIN, "software",
			   "SET_BPF software fd %d BPF_PROG_TYPE_PERF_EVENT", stack),
		     entries());
	ASSERT_EQ(0, perf_set_bpf(fd, self->prog));
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, self->prog));
	EXPECT_STREQ(entry(FD_TAKEN, "software",
			   "SET_BPF software fd %d BPF_PROG_TYPE_PERF_EVENT", self->prog),
		     entries());
}

TEST_HARNESS_MAIN
