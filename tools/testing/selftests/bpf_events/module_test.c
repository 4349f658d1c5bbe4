// SPDX-License-Identifier: GPL-2.0
/*
 * A function that goes away with its module: a file of test_udelay calls into
 * it
 */
#include "common.h"
#include "module.h"
#include "multi.h"

/* With its name in front the event finds the module when it comes back */
#define EVENT_FUNC MODULE ":" MODULE_FUNC

FIXTURE(module) {
	struct probe probe;
	struct area area;
	const char *path;
};

FIXTURE_VARIANT(module) {
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(module, kprobe_event) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(module, kretprobe_event) {
	.flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(module, kprobe_pmu) {
	.flags = PROBE_PMU,
};

FIXTURE_VARIANT_ADD(module, kretprobe_pmu) {
	.flags = PROBE_PMU | PROBE_RETURN,
};

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT(return, module_prepare(&self->path));
	ASSERT_EQ(0, load_module(self->path));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, probe_create_at(&self->probe, "event", EVENT_FUNC, 0,
				     variant->flags));
}

FIXTURE_TEARDOWN_PARENT(module)
{
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

TEST_F(module, is_unloaded_before_the_event_goes)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd = attach(&self->probe, prog);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2, area_get(&self->area, 0));

	/* The probe does not hold the module */
	ASSERT_EQ(0, module_unload());
	EXPECT_EQ(-ENOENT, module_hit());

	/* The perf event is dead, and everything about it works */
	EXPECT_EQ(1, query_count(fd));
	EXPECT_EQ(-EEXIST, perf_set_bpf(fd, prog));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	close(fd);
}

TEST_F(module, is_unloaded_after_the_event)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 1));

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	close(fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_EQ(0, module_unload());
}

/* An event that is defined with the name of its module finds it again, and runs its program */
TEST_F(module, comes_back_to_its_program)
{
	int fd = attach(&self->probe, count_prog(&self->area, 0, 1));
	int i, runs = 1;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, module_unload());
		ASSERT_EQ(0, load_module(self->path));
		ASSERT_EQ(0, module_hit());
		EXPECT_EQ(++runs, area_get(&self->area, 0));
	}
	close(fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(runs, area_get(&self->area, 0));
	ASSERT_EQ(0, module_unload());
}

TEST_F(module, comes_after_its_program)
{
	int prog = count_prog(&self->area, 0, 1), fd;

	ASSERT_EQ(0, module_unload());
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);
	close(fd);	/* nothing is left for the module to find */
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);

	ASSERT_EQ(0, load_module(self->path));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2, area_get(&self->area, 0));
	close(fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2, area_get(&self->area, 0));
	ASSERT_EQ(0, module_unload());
}

/* A program is disabled while its module is not there */
TEST_F(module, comes_to_a_disabled_event)
{
	int fd;

	ASSERT_EQ(0, module_unload());
	fd = attach(&self->probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, load_module(self->path));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	ASSERT_EQ(0, module_unload());
}

/* Whether the function exists is known once the module is there */
TEST_F(module, has_no_such_function)
{
	const char *func = MODULE ":no_such_function";
	struct probe probe;
	int fd = probe_create_at(&probe, "none", func, 0, variant->flags) ?: probe_open(&probe);

	EXPECT_EQ(variant->flags & PROBE_PMU ? -ENOENT : -EINVAL, fd);

	ASSERT_EQ(0, module_unload());
	ASSERT_EQ(0, probe_create_at(&probe, "none", func, 0, variant->flags));
	fd = attach(&probe, count_prog(&self->area, 0, 1));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, load_module(self->path));
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(0, area_get(&self->area, 0));
	close(fd);
	ASSERT_EQ(0, module_unload());
}

TEST_F(module, comes_back)
{
	int prog = count_prog(&self->area, 0, 1);
	int fd = attach(&self->probe, prog);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_unload());
	close(fd);
	ASSERT_EQ(0, load_module(self->path));
	fd = attach(&self->probe, prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	ASSERT_EQ(0, module_unload());
}

/*
 * Places in the body of its function, of which some become jumps, and some are inside of the
 * jumps of others. These are still there for some time after the probes have gone.
 */

#define BODY_SIZE 48

FIXTURE(body) {
	const char *path;
};

FIXTURE_SETUP(body)
{
	SKIP_WITHOUT(return, module_prepare(&self->path));
}

FIXTURE_TEARDOWN_PARENT(body)
{
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

/* Opens and closes a probe at each place, and returns a bit for each that is possible */
static __u64 probe_body(void)
{
	unsigned long offset;
	struct probe probe;
	__u64 taken = 0;
	int fd;

	for (offset = 0; offset < BODY_SIZE; offset++) {
		probe_create_at(&probe, "event", EVENT_FUNC, offset, PROBE_PMU);
		fd = probe_open(&probe);
		if (fd >= 0)
			taken |= 1ULL << offset;
		close(fd);
	}
	return taken;
}

TEST_F(body, is_free_when_the_module_goes_at_once)
{
	__u64 taken = 0;
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, load_module(self->path));
		if (!i)
			taken = probe_body();
		EXPECT_NE(0, taken);
		EXPECT_EQ(taken, probe_body());
		ASSERT_EQ(0, module_unload());
	}
}

/* A kprobe_multi link holds the module, as it cannot lose a function */

FIXTURE(multi_module) {
	struct area area;
	const char *path;
	int prog;
};

FIXTURE_VARIANT(multi_module) {
	__u32 flags;
	enum bpf_attach_type attach;
};

FIXTURE_VARIANT_ADD(multi_module, entry) {
	.flags = 0,
	.attach = BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(multi_module, return) {
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.attach = BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(multi_module, session) {
	.flags = 0,
	.attach = BPF_TRACE_KPROBE_SESSION,
};

FIXTURE_SETUP(multi_module)
{
	SKIP_WITHOUT(return, module_prepare(&self->path));
	ASSERT_EQ(0, area_create(&self->area));
	self->prog = tally_prog(&self->area, variant->attach, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(multi_module)
{
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

TEST_F(multi_module, stays_while_it_is_linked)
{
	int runs = variant->attach == BPF_TRACE_KPROBE_SESSION ? 2 : 1, link;

	ASSERT_EQ(0, load_module(self->path));
	link = multi_link_one(MODULE_FUNC, variant->attach, variant->flags,
			      self->prog);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(runs, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(ksym(MODULE_FUNC), area_get(&self->area, TALLY_IP));
	EXPECT_EQ(COOKIE(0), area_get(&self->area, TALLY_COOKIE));

	EXPECT_EQ(-EAGAIN, module_unload());
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2 * runs, area_get(&self->area, TALLY_RUNS));
	close(link);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2 * runs, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(0, module_unload());
}

TEST_F(multi_module, is_one_of_several_owners)
{
	struct multi m = {
		.attach = variant->attach, .flags = variant->flags,
		.by_addr = true, .cnt = 3,
		.syms = { FUNC, MODULE_FUNC, FUNC2 },
		.cookies = { COOKIE(0), COOKIE(1), COOKIE(2) },
	};
	int link, runs = variant->attach == BPF_TRACE_KPROBE_SESSION ? 2 : 1;

	ASSERT_EQ(0, load_module(self->path));
	ksyms(m.syms, m.addrs, m.cnt);
	link = multi_link(&m, self->prog);
	ASSERT_LE(0, link);
	make_calls(0, 2);
	make_calls(1, 3);
	ASSERT_EQ(0, module_hit());
	EXPECT_EQ(2 * runs, area_get(&self->area, TALLY_RUNS));
	EXPECT_EQ(1 * runs, area_get(&self->area, TALLY_RUNS + 1));
	EXPECT_EQ(3 * runs, area_get(&self->area, TALLY_RUNS + 2));
	EXPECT_EQ(-EAGAIN, module_unload());
	close(link);
	EXPECT_EQ(0, module_unload());
}

TEST_F(multi_module, is_gone)
{
	struct multi m = {
		.attach = variant->attach, .flags = variant->flags,
		.by_addr = true, .cnt = 1,
	};

	ASSERT_EQ(0, load_module(self->path));
	m.addrs[0] = ksym(MODULE_FUNC);
	ASSERT_NE(0, m.addrs[0]);
	ASSERT_EQ(0, module_unload());
	EXPECT_EQ(-ESRCH, multi_link_one(MODULE_FUNC, variant->attach,
					 variant->flags, self->prog));
	EXPECT_EQ(-EINVAL, multi_link(&m, self->prog));
}

TEST_HARNESS_MAIN
