// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_TRACING on functions and tracepoints: fentry, fexit, fmod_ret
 * and tp_btf programs, how long they run and the helpers that they share
 */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "tracing.h"

#define COOKIE 0x1122334455667788ULL

FIXTURE(tracing) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_VARIANT(tracing) {
	enum bpf_attach_type attach;
	const char *name;
};

FIXTURE_VARIANT_ADD(tracing, fentry) {
	.attach = BPF_TRACE_FENTRY, .name = FUNC,
};

FIXTURE_VARIANT_ADD(tracing, fexit) {
	.attach = BPF_TRACE_FEXIT, .name = FUNC,
};

FIXTURE_VARIANT_ADD(tracing, fmod_ret) {
	.attach = BPF_MODIFY_RETURN, .name = FUNC,
};

FIXTURE_VARIANT_ADD(tracing, tp_btf) {
	.attach = BPF_TRACE_RAW_TP, .name = "task_rename",
};

FIXTURE_SETUP(tracing)
{
	SKIP_WITHOUT(return, tracing_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	tracing_attr(&self->attr, variant->attach, variant->name);
	ASSERT_LT(0, (int)self->attr.attach_btf_id);
}

FIXTURE_TEARDOWN_PARENT(tracing)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Whether @runs programs run in each of three hits of whichever variant */
static bool hits_run(struct area *area, unsigned int runs)
{
	__u64 before = area_get(area, 0);
	int i;

	for (i = 0; i < 3; i++) {
		hit();
		hit_rename();
	}
	return area_get(area, 0) == before + 3 * runs;
}

TEST_F(tracing, raw_tracepoint_open)
{
	int fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));

	ASSERT_LE(0, fd);
	EXPECT_TRUE(hits_run(&self->area, 1));
	close(fd);
	EXPECT_TRUE(hits_run(&self->area, 0));
}

TEST_F(tracing, link_create)
{
	int prog = own_count_prog(&self->attr, &self->area);
	int fd = tracing_link(prog, variant->attach, 0);

	ASSERT_LE(0, fd);
	close(prog);
	EXPECT_TRUE(hits_run(&self->area, 1));
	close(fd);
	EXPECT_TRUE(hits_run(&self->area, 0));
}

TEST_F(tracing, sigkill)
{
	int pipe_fd, fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));
	pid_t child;

	ASSERT_LE(0, fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(fd);
	EXPECT_TRUE(hits_run(&self->area, 1));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(hits_run(&self->area, 0));
}

TEST_F(tracing, again_after_close)
{
	int fd, i, prog = own_count_prog(&self->attr, &self->area);

	for (i = 0; i < 3; i++) {
		fd = i % 2 ? tracing_open(prog) : tracing_link(prog, variant->attach, 0);
		ASSERT_LE(0, fd);
		EXPECT_TRUE(hits_run(&self->area, 1));
		close(fd);
		EXPECT_TRUE(hits_run(&self->area, 0));
	}
}

TEST_F(tracing, several_programs)
{
	int i, fds[10];

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = tracing_open_drop(own_count_prog(&self->attr, &self->area));
		ASSERT_LE(0, fds[i]);
	}
	EXPECT_TRUE(hits_run(&self->area, ARRAY_SIZE(fds)));
	close(fds[3]);
	EXPECT_TRUE(hits_run(&self->area, ARRAY_SIZE(fds) - 1));
}

TEST_F(tracing, beside_a_kprobe_program)
{
	struct area area;
	struct probe probe;
	int kprobe, fd;

	ASSERT_EQ(0, area_create(&area));
	ASSERT_EQ(0, probe_create(&probe, 0));
	kprobe = attach(&probe, count_prog(&area, 0, 0));
	ASSERT_LE(0, kprobe);
	fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));
	ASSERT_LE(0, fd);
	EXPECT_TRUE(hits_run(&self->area, 1));
	EXPECT_EQ(3, area_get(&area, 0));
	close(kprobe);
	EXPECT_TRUE(hits_run(&self->area, 1));
	EXPECT_EQ(3, area_get(&area, 0));
}

TEST_F(tracing, cookies)
{
	int prog = cookie_prog(&self->attr, &self->area), i, fd;
	const __u64 cookies[] = { COOKIE, 5, 0 };

	for (i = 0; i < ARRAY_SIZE(cookies); i++) {
		fd = tracing_link(prog, variant->attach, cookies[i]);
		ASSERT_LE(0, fd);
		area_set(&self->area, 1, 1);
		EXPECT_TRUE(hits_run(&self->area, 1));
		EXPECT_EQ(cookies[i], area_get(&self->area, 1));
		close(fd);
	}
}

TEST_F(tracing, get_stack)
{
	ASSERT_LE(0, tracing_open_drop(stack_prog(&self->attr, &self->area, 0)));
	EXPECT_TRUE(hits_run(&self->area, 1));
	EXPECT_LE(16, (__s64)area_get(&self->area, 1));
	EXPECT_TRUE(kernel_frames(&self->area.slot[4], 1));
}

TEST_F(tracing, get_stackid)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * STACK_FRAMES, 16, 0);
	__u64 ips[STACK_FRAMES];
	__u32 key;

	ASSERT_LE(0, map);
	ASSERT_LE(0, tracing_open_drop(stackid_prog(&self->attr, &self->area, map, 0)));
	EXPECT_TRUE(hits_run(&self->area, 1));
	key = area_get(&self->area, 1);
	ASSERT_LE(0, (int)key);
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_TRUE(kernel_frames(ips + 2, 1));
}

TEST_F(tracing, perf_event_output)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0), perf, i;
	struct ring ring;
	char raw[16];
	__u32 len;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, pin(0));
	perf = output_open(map);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, ring_map(&ring, perf));
	ASSERT_LE(0, tracing_open_drop(output_prog(&self->attr, &self->area, map)));
	EXPECT_TRUE(hits_run(&self->area, 1));
	EXPECT_EQ(0, area_get(&self->area, 1));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(PERF_RECORD_SAMPLE, ring_read(&ring, raw, sizeof(raw), &len));
		EXPECT_LE(8, len);
		EXPECT_EQ(i, *(__u64 *)raw);
	}
}

TEST_HARNESS_MAIN
