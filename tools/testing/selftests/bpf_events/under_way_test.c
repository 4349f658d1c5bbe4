// SPDX-License-Identifier: GPL-2.0
/*
 * A run that is under way on another CPU when its attachment goes: close()
 * returns when the run has ended, not before
 */
#include "common.h"
#include "elsewhere.h"
#include "umulti.h"
#include "overflow.h"

/*
 * Each of these attaches the program, and something else to the same place that
 * stays: nobody has to wait for code to be patched.
 */
static int by_perf(const struct kind *kind, int prog)
{
	int fd = perf_open_event(kind->event), err = perf_open_event(kind->event);

	err = fd < 0 ? fd : err < 0 ? err : perf_set_bpf(fd, prog);
	return err ?: fd;
}

/* The perf event stays as well */
static int by_perf_link(const struct kind *kind, int prog)
{
	int fd = perf_open_event(kind->event);

	return fd < 0 ? fd : perf_link(fd, prog);
}

static int by_filter(const struct kind *kind, int prog)
{
	int err = instance_create(INSTANCE);

	return err ?: event_enable(INSTANCE, kind->event, true) ?:
	       filter_attach(INSTANCE, kind->event, prog);
}

/* Nobody else wants the event there: it goes off with the filter */
static int by_lone_filter(const struct kind *kind, int prog)
{
	int err = instance_create(INSTANCE) ?: instance_create(INSTANCE2);

	return err ?: event_enable(INSTANCE2, kind->event, true) ?:
	       filter_attach(INSTANCE, kind->event, prog);
}

/* For whatever faults on the other CPU */
static int by_overflow(const struct kind *kind, int prog)
{
	struct perf_event_attr attr;
	int fd;

	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	fd = perf_open(&attr, -1, 1);
	return fd < 0 ? fd : perf_set_bpf(fd, prog) ?: fd;
}

static int multi_both(enum bpf_attach_type attach, __u32 flags, int prog)
{
	int other = multi_link_one(FUNC, attach, flags,
				   prog_load_type(BPF_PROG_TYPE_KPROBE, attach, 0));

	return other < 0 ? other : multi_link_one(FUNC, attach, flags, prog);
}

static int by_kprobe_multi(const struct kind *kind, int prog)
{
	return multi_both(BPF_TRACE_KPROBE_MULTI, 0, prog);
}

static int by_kretprobe_multi(const struct kind *kind, int prog)
{
	return multi_both(BPF_TRACE_KPROBE_MULTI, BPF_F_KPROBE_MULTI_RETURN, prog);
}

static int by_session(const struct kind *kind, int prog)
{
	return multi_both(BPF_TRACE_KPROBE_SESSION, 0, prog);
}

static int by_uprobe_multi(const struct kind *kind, int prog)
{
	struct umulti m;
	int other;

	umulti_init(&m, 0);
	other = umulti_link(&m, prog_load_type(BPF_PROG_TYPE_KPROBE,
					       BPF_TRACE_UPROBE_MULTI, 0));
	return other < 0 ? other : umulti_link(&m, prog);
}

static void hit_user_funcs(void)
{
	call_user(0, 1);
}

static void fault(void)
{
	char *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	touch(page);
	munmap(page, sysconf(_SC_PAGESIZE));
}

static const struct kind fault_kind = { .hit = fault };
static const struct kind user_funcs_kind = { .hit = hit_user_funcs };
static const struct kind func_kind = { .hit = hit };

FIXTURE(under_way) {
	struct area area;
};

FIXTURE_VARIANT(under_way) {
	const struct kind *kind;
	int (*attach)(const struct kind *kind, int prog);
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type;
	__u32 flags;		/* of the program */
};

FIXTURE_VARIANT_ADD(under_way, kprobe) {
	&kprobe_kind, by_perf, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, kretprobe) {
	&kretprobe_kind, by_perf, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, kprobe_link) {
	&kprobe_kind, by_perf_link, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, uprobe) {
	&uprobe_kind, by_perf, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, uretprobe) {
	&uretprobe_kind, by_perf, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, uprobe_sleepable) {
	&uprobe_kind, by_perf, BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(under_way, tracepoint) {
	&tracepoint_kind, by_perf, BPF_PROG_TYPE_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(under_way, sys_enter) {
	&sys_enter_kind, by_perf, BPF_PROG_TYPE_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(under_way, faults) {
	&fault_kind, by_overflow, BPF_PROG_TYPE_PERF_EVENT,
};

FIXTURE_VARIANT_ADD(under_way, kprobe_multi) {
	&func_kind, by_kprobe_multi, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(under_way, kretprobe_multi) {
	&func_kind, by_kretprobe_multi, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(under_way, kprobe_session) {
	&func_kind, by_session, BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_SESSION,
};

FIXTURE_VARIANT_ADD(under_way, uprobe_multi) {
	&user_funcs_kind, by_uprobe_multi, BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI,
};

FIXTURE_VARIANT_ADD(under_way, uprobe_multi_sleepable) {
	&user_funcs_kind, by_uprobe_multi, BPF_PROG_TYPE_KPROBE, BPF_TRACE_UPROBE_MULTI,
	BPF_F_SLEEPABLE,
};

FIXTURE_VARIANT_ADD(under_way, kprobe_filter) {
	&kprobe_kind, by_filter, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, uprobe_filter) {
	&uprobe_kind, by_filter, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, tracepoint_filter) {
	&tracepoint_kind, by_filter, BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(under_way, sys_enter_filter) {
	&sys_enter_kind, by_filter, BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(under_way, kprobe_lone_filter) {
	&kprobe_kind, by_lone_filter, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, uprobe_lone_filter) {
	&uprobe_kind, by_lone_filter, BPF_PROG_TYPE_KPROBE,
};

FIXTURE_VARIANT_ADD(under_way, tracepoint_lone_filter) {
	&tracepoint_kind, by_lone_filter, BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_VARIANT_ADD(under_way, sys_enter_lone_filter) {
	&sys_enter_kind, by_lone_filter, BPF_PROG_TYPE_RAW_TRACEPOINT,
};

FIXTURE_SETUP(under_way)
{
	SKIP_WITHOUT(return, filter_prepare() ?: multi_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, kind_create(variant->kind));
}

FIXTURE_TEARDOWN_PARENT(under_way)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", instance_left(INSTANCE2));
	EXPECT_STREQ("nothing", leftovers());
}

/* And other users of events do not wait: it holds no lock of theirs then */
TEST_F(under_way, close_waits)
{
	/* In an overflow interrupts are off: close() spins, and there is no CPU for us */
	bool spins = variant->type == BPF_PROG_TYPE_PERF_EVENT;
	__u64 end = now_ns() + PATIENCE_NS;
	union bpf_attr attr;
	struct elsewhere e;
	int prog, fd;

	do {
		area_set(&self->area, BEGUN, 0);
		area_set(&self->area, ENDED, 0);
		load_attr(&attr, variant->type, variant->attach_type, 0);
		attr.prog_flags = variant->flags;
		prog = elsewhere_prog(&attr, &self->area, spins ? 300 : TOLD_MS, 0);
		ASSERT_LE(0, prog);
		fd = variant->attach(variant->kind, prog);
		ASSERT_LE(0, fd);
		close(prog);
		ASSERT_EQ(0, elsewhere_hit(&e, &self->area, variant->kind));
		ASSERT_EQ(0, elsewhere_call(&e, close, fd));
		if (spins) {
			EXPECT_TRUE(elsewhere_join(&e));
		} else {
			EXPECT_TRUE(elsewhere_waits(&e));
			EXPECT_STREQ("none", event_text(TRACEFS, "task/task_newtask", "filter"));
			EXPECT_TRUE(elsewhere_end(&e));
		}
	} while (spins && e.late && now_ns() < end);
	if (spins && e.late)
		say_slow();
	EXPECT_FALSE(e.late);
}

FIXTURE(filter) {
	struct area area;
	struct elsewhere elsewhere;
};

FIXTURE_SETUP(filter)
{
	SKIP_WITHOUT(return, filter_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, instance_create(INSTANCE2));
}

FIXTURE_TEARDOWN_PARENT(filter)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", instance_left(INSTANCE2));
	EXPECT_STREQ("nothing", leftovers());
}

enum { ASKED = 8 };

static const struct kind *const kind = &tracepoint_kind;

static int attach_slow(const char *instance, struct area *area)
{
	union bpf_attr attr;

	load_attr(&attr, kind->type, 0, 0);
	return filter_attach(instance, kind->event, elsewhere_prog(&attr, area, TOLD_MS, 0));
}

static int attach_here(int prog)
{
	return filter_attach(INSTANCE, kind->event, prog);
}

/*
 * A hit that has not come to the filter yet, since it is with that of another
 * instance: the filter is asked all the same, or the hit would be recorded unseen
 */
TEST_F(filter, is_asked_by_hits_before_it)
{
	int fd;

	ASSERT_LE(0, attach_slow(INSTANCE2, &self->area));
	fd = attach_here(filter_prog(&self->area, ASKED, kind->type));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, elsewhere_hit(&self->elsewhere, &self->area, kind));
	ASSERT_EQ(0, elsewhere_call(&self->elsewhere, close, fd));
	EXPECT_TRUE(elsewhere_waits(&self->elsewhere));
	EXPECT_EQ(0, area_get(&self->area, ASKED));

	EXPECT_TRUE(elsewhere_end(&self->elsewhere));
	EXPECT_EQ(1, area_get(&self->area, ASKED));
	EXPECT_EQ(0, records(INSTANCE));
}

static bool filter_is_gone(void)
{
	return !strcmp("none", event_text(INSTANCE, kind->event, "filter"));
}

static void *clear_thread(void *unused)
{
	filter_clear(INSTANCE, kind->event);
	return NULL;
}

/* 0 has removed the filter and waits for its run. close() finds none, and waits, too */
TEST_F(filter, close_waits_for_what_0_has_removed)
{
	pthread_t clearer;
	int fd;

	/* Stays on, so that the filter is removed before the wait */
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	fd = attach_slow(INSTANCE, &self->area);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, elsewhere_hit(&self->elsewhere, &self->area, kind));
	ASSERT_EQ(0, pthread_create(&clearer, NULL, clear_thread, NULL));
	EXPECT_TRUE(wait_until(filter_is_gone()));
	ASSERT_EQ(0, elsewhere_call(&self->elsewhere, close, fd));
	EXPECT_TRUE(elsewhere_waits(&self->elsewhere));
	EXPECT_TRUE(elsewhere_end(&self->elsewhere));
	pthread_join(clearer, NULL);
}

/* A program that comes waits for hits that have not asked it, and holds no lock then */
TEST_F(filter, what_comes_holds_up_nobody)
{
	int prog = filter_prog(&self->area, ASKED, kind->type);

	ASSERT_LE(0, prog);
	ASSERT_LE(0, attach_slow(INSTANCE2, &self->area));
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	ASSERT_EQ(0, elsewhere_hit(&self->elsewhere, &self->area, kind));
	ASSERT_EQ(0, elsewhere_call(&self->elsewhere, attach_here, prog));
	EXPECT_TRUE(elsewhere_waits(&self->elsewhere));
	EXPECT_STREQ("none", event_text(TRACEFS, "task/task_newtask", "filter"));
	EXPECT_TRUE(elsewhere_end(&self->elsewhere));
	EXPECT_LE(0, self->elsewhere.result);
}

/* The same, if the event was switched off meanwhile, which does not wait for the hits */
TEST_F(filter, what_comes_waits_for_hits_before_it_was_off)
{
	int prog = filter_prog(&self->area, ASKED, kind->type);

	ASSERT_LE(0, prog);
	/* This one first: a tracepoint waits when the first that it calls goes */
	ASSERT_LE(0, attach_slow(INSTANCE2, &self->area));
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	ASSERT_EQ(0, elsewhere_hit(&self->elsewhere, &self->area, kind));
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, false));
	ASSERT_EQ(0, area_get(&self->area, ENDED));
	ASSERT_EQ(0, elsewhere_call(&self->elsewhere, attach_here, prog));
	EXPECT_TRUE(elsewhere_waits(&self->elsewhere));
	EXPECT_TRUE(elsewhere_end(&self->elsewhere));
	EXPECT_LE(0, self->elsewhere.result);
}

TEST_HARNESS_MAIN
