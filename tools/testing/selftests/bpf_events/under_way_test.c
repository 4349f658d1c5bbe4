// SPDX-License-Identifier: GPL-2.0
/*
 * A run that is under way on another CPU when its attachment goes: close()
 * returns when the run has ended, not before
 */
#include "common.h"
#include "hitter.h"
#include "umulti.h"
#include "overflow.h"
#include "filter.h"

/* Slots of the area */
enum { BEGUN, ENDED, MAY_END };

/* As long as it takes until it may end, also where other programs have the host */
#define TOLD_MS 60000

/*
 * The first run goes on until it may end, but for @ms at most, and turns its hit
 * down; others do nothing
 */
static int first_slow_prog(struct area *area, enum bpf_prog_type type,
			   enum bpf_attach_type attach, __u32 flags, unsigned int ms)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, BEGUN),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD | BPF_FETCH, BPF_REG_6, BPF_REG_1, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, 0, 15),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_0),
		BPF_LD_IMM64(BPF_REG_1, ms * 1000000ULL),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_1),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 7, 0),
		/* There are 8 million rounds at most, so one takes its time */
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * (MAY_END - BEGUN)),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, 0, 1),
		BPF_JMP_REG(BPF_JLT, BPF_REG_0, BPF_REG_7, -8),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_1, 8 * (ENDED - BEGUN)),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.expected_attach_type = attach;
	attr.prog_flags = flags;
	return prog_load_attr(&attr);
}

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

static void *hit_elsewhere(void *arg)
{
	const struct kind *kind = arg;

	pin(1);
	kind->hit();
	return NULL;
}

struct closer {
	int fd;
	pid_t tid;		/* once it is about to close, or to attach */
	bool ended;		/* the run, when that returned */
	const struct area *area;
};

static void *close_here(void *arg)
{
	struct closer *closer = arg;

	wait_between(area_get(closer->area, BEGUN), sched_yield());
	__atomic_store_n(&closer->tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	close(closer->fd);
	closer->ended = area_get(closer->area, ENDED);
	return NULL;
}

static bool closer_waits(struct closer *closer)
{
	pid_t tid = __atomic_load_n(&closer->tid, __ATOMIC_SEQ_CST);

	return tid && task_state(tid) == 'D';
}

/* And other users of events do not wait: it holds no lock of theirs then */
TEST_F(under_way, close_waits)
{
	/* In an overflow interrupts are off: close() spins, and there is no CPU for us */
	bool spins = variant->type == BPF_PROG_TYPE_PERF_EVENT;
	struct closer closer = { .area = &self->area };
	pthread_t hitter, thread;
	int prog;

	prog = first_slow_prog(&self->area, variant->type, variant->attach_type,
			       variant->flags, spins ? 300 : TOLD_MS);
	ASSERT_LE(0, prog);
	closer.fd = variant->attach(variant->kind, prog);
	ASSERT_LE(0, closer.fd);
	close(prog);
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_here, &closer));
	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)variant->kind));
	if (!spins) {
		EXPECT_TRUE(wait_until(closer_waits(&closer)));
		EXPECT_STREQ("none", event_text(TRACEFS, "task/task_newtask", "filter"));
		EXPECT_EQ(0, area_get(&self->area, ENDED));
		area_set(&self->area, MAY_END, 1);
	}
	pthread_join(thread, NULL);
	EXPECT_TRUE(closer.ended);
	pthread_join(hitter, NULL);
}

FIXTURE(filter) {
	struct area area;
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

/*
 * A hit that has not come to the filter yet, since it is with that of another
 * instance: the filter is asked all the same, or the hit would be recorded unseen
 */
TEST_F(filter, is_asked_by_hits_before_it)
{
	const struct kind *kind = &tracepoint_kind;
	struct closer closer = { .area = &self->area };
	pthread_t hitter, thread;

	ASSERT_LE(0, filter_attach(INSTANCE2, kind->event,
				   first_slow_prog(&self->area, kind->type, 0, 0, TOLD_MS)));
	closer.fd = filter_attach(INSTANCE, kind->event,
				  filter_prog(&self->area, ASKED, kind->type));
	ASSERT_LE(0, closer.fd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_here, &closer));
	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)kind));
	EXPECT_TRUE(wait_until(closer_waits(&closer)));
	EXPECT_EQ(0, area_get(&self->area, ASKED));

	area_set(&self->area, MAY_END, 1);
	pthread_join(thread, NULL);
	pthread_join(hitter, NULL);
	EXPECT_EQ(1, area_get(&self->area, ASKED));
	EXPECT_EQ(0, records(INSTANCE));
}

static void *clear_here(void *arg)
{
	wait_between(area_get(arg, BEGUN), sched_yield());
	filter_clear(INSTANCE, tracepoint_kind.event);
	return NULL;
}

static bool filter_is_gone(void)
{
	return !strcmp("none", event_text(INSTANCE, tracepoint_kind.event, "filter"));
}

/* 0 has removed the filter and waits for its run. close() finds none, and waits, too */
TEST_F(filter, close_waits_for_what_0_has_removed)
{
	const struct kind *kind = &tracepoint_kind;
	struct closer closer = { .area = &self->area };
	pthread_t hitter, clearer, thread;

	/* Stays on, so that the filter is removed before the wait */
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	closer.fd = filter_attach(INSTANCE, kind->event,
				  first_slow_prog(&self->area, kind->type, 0, 0, TOLD_MS));
	ASSERT_LE(0, closer.fd);
	ASSERT_EQ(0, pthread_create(&clearer, NULL, clear_here, &self->area));
	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)kind));
	EXPECT_TRUE(wait_until(filter_is_gone()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_here, &closer));
	EXPECT_TRUE(wait_until(closer_waits(&closer)));
	EXPECT_EQ(0, area_get(&self->area, ENDED));

	area_set(&self->area, MAY_END, 1);
	pthread_join(thread, NULL);
	EXPECT_TRUE(closer.ended);
	pthread_join(clearer, NULL);
	pthread_join(hitter, NULL);
}

static void *attach_here(void *arg)
{
	struct closer *closer = arg;

	wait_between(area_get(closer->area, BEGUN), sched_yield());
	__atomic_store_n(&closer->tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	closer->fd = filter_attach(INSTANCE, tracepoint_kind.event, closer->fd);
	closer->ended = area_get(closer->area, ENDED);
	return NULL;
}

/* A program that comes waits for hits that have not asked it, and holds no lock then */
TEST_F(filter, what_comes_holds_up_nobody)
{
	const struct kind *kind = &tracepoint_kind;
	struct closer closer = { .area = &self->area };
	pthread_t hitter, thread;

	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	ASSERT_LE(0, filter_attach(INSTANCE2, kind->event,
				   first_slow_prog(&self->area, kind->type, 0, 0, TOLD_MS)));
	closer.fd = filter_prog(&self->area, ASKED, kind->type);
	ASSERT_LE(0, closer.fd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, attach_here, &closer));
	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)kind));
	EXPECT_TRUE(wait_until(closer_waits(&closer)));
	EXPECT_STREQ("none", event_text(TRACEFS, "task/task_newtask", "filter"));
	EXPECT_EQ(0, area_get(&self->area, ENDED));

	area_set(&self->area, MAY_END, 1);
	pthread_join(thread, NULL);
	EXPECT_TRUE(closer.ended);
	EXPECT_LE(0, closer.fd);
	pthread_join(hitter, NULL);
}

/* The same, if the event was switched off meanwhile, which waits for nobody */
TEST_F(filter, what_comes_waits_for_hits_before_it_was_off)
{
	const struct kind *kind = &tracepoint_kind;
	struct closer closer = { .area = &self->area };
	pthread_t hitter, thread;

	/* This one first: a tracepoint waits when the first that it calls goes */
	ASSERT_LE(0, filter_attach(INSTANCE2, kind->event,
				   first_slow_prog(&self->area, kind->type, 0, 0, TOLD_MS)));
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, true));
	closer.fd = filter_prog(&self->area, ASKED, kind->type);
	ASSERT_LE(0, closer.fd);
	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)kind));
	ASSERT_TRUE(wait_until(area_get(&self->area, BEGUN)));
	ASSERT_EQ(0, event_enable(INSTANCE, kind->event, false));
	ASSERT_EQ(0, area_get(&self->area, ENDED));
	ASSERT_EQ(0, pthread_create(&thread, NULL, attach_here, &closer));
	EXPECT_TRUE(wait_until(closer_waits(&closer)));
	EXPECT_EQ(0, area_get(&self->area, ENDED));

	area_set(&self->area, MAY_END, 1);
	pthread_join(thread, NULL);
	EXPECT_TRUE(closer.ended);
	EXPECT_LE(0, closer.fd);
	pthread_join(hitter, NULL);
}

TEST_HARNESS_MAIN
