// SPDX-License-Identifier: GPL-2.0
/* bpf_get_func_ip() tells a program which function was hit */
#include "common.h"
#include "link.h"

FIXTURE(func_ip) {
	struct area area;
	int prog;
};

FIXTURE_VARIANT(func_ip) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(func_ip, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(func_ip, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(func_ip, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(func_ip, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(func_ip)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = func_ip_prog(&self->area);
	ASSERT_LE(0, self->prog);
	area_set(&self->area, 0, 0x5555);
}

FIXTURE_TEARDOWN_PARENT(func_ip)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(func_ip, symbol)
{
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, variant->flags));
	ASSERT_LE(0, attach(&probe, self->prog));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, 0));
}

TEST_F(func_ip, link)
{
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, variant->flags));
	ASSERT_LE(0, attach_link(&probe, self->prog, 0));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, 0));
}

TEST_F(func_ip, two_events_of_one_program)
{
	struct probe probes[2];

	ASSERT_EQ(0, probe_create_at(&probes[0], "max", FUNC, 0,
				     variant->flags));
	ASSERT_EQ(0, probe_create_at(&probes[1], "min", FUNC2, 0,
				     variant->flags));
	ASSERT_LE(0, attach(&probes[0], self->prog));
	ASSERT_LE(0, attach(&probes[1], self->prog));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, 0));
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_EQ(ksym(FUNC2), area_get(&self->area, 0));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->area, 0));
}

/* Probes other than at a symbol */

FIXTURE(place) {
	FIXTURE_DATA(func_ip) f;
	struct optimize optimize;
};

FIXTURE_SETUP(place)
{
	func_ip_setup(_metadata, &self->f, &_func_ip_kprobe_event_variant);
	optimize_save(&self->optimize);
}

FIXTURE_TEARDOWN_PARENT(place)
{
	optimize_restore(&self->optimize);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(place, address)
{
	struct probe probe = { .event = "event" };

	ASSERT_EQ(0, event_add("event", "p 0x%llx", ksym(FUNC)));
	ASSERT_LE(0, attach(&probe, self->f.prog));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->f.area, 0));
}

TEST_F(place, address_pmu)
{
	struct probe probe = { .flags = PROBE_PMU };
	struct perf_event_attr attr;
	int fd;

	ASSERT_EQ(0, probe_attr(&probe, &attr));
	attr.kprobe_func = 0;
	attr.kprobe_addr = ksym(FUNC);
	fd = perf_open(&attr, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_set_bpf(fd, self->f.prog));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->f.area, 0));
}

TEST_F(place, event_with_two_probes)
{
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, 0));
	ASSERT_EQ(0, event_add("event", "p %s", FUNC2));
	ASSERT_LE(0, attach(&probe, self->f.prog));
	hit();
	EXPECT_EQ(ksym(FUNC), area_get(&self->f.area, 0));
	syscall(__NR_sched_get_priority_min, SCHED_FIFO);
	EXPECT_EQ(ksym(FUNC2), area_get(&self->f.area, 0));
}

/* Inside a function, which may be a breakpoint or a jump: nobody can tell */
TEST_F(place, inside_a_function)
{
	struct probe probe;

	write_file(OPTIMIZE, 0, "0");
	ASSERT_EQ(0, probe_create_body(&probe, "event", BODY_FUNC, 0));
	ASSERT_LE(0, attach(&probe, self->f.prog));
	hit_body();
	EXPECT_EQ(0, area_get(&self->f.area, 0));

	write_file(OPTIMIZE, 0, "1");
	wait_optimized(BODY_FUNC);
	area_set(&self->f.area, 0, 0x5555);
	hit_body();
	EXPECT_EQ(0, area_get(&self->f.area, 0));
}

TEST_F(place, inside_a_function_pmu)
{
	struct probe probe;

	ASSERT_EQ(0, probe_create_body(&probe, "event", FUNC, 0));
	probe.flags = PROBE_PMU;
	ASSERT_LE(0, attach(&probe, self->f.prog));
	hit();
	EXPECT_EQ(0, area_get(&self->f.area, 0));
}

TEST_HARNESS_MAIN
