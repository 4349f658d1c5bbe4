// SPDX-License-Identifier: GPL-2.0
/*
 * A hit is under way on another CPU when its event is switched off and removed: the event
 * and what the hit records to are there until the hit has ended
 */
#include <pthread.h>

#include "common.h"
#include "filter.h"
#include "tracing.h"

/* Slots of the area, behind the one that counts runs */
enum { BEGUN = 1, GO_ON, SEEN, ENDED };

/* As long as it takes until it is told to, also where other programs have the host */
#define TOLD_MS 60000

/* Not by a file of the event: that would keep what belongs to it */
static int turn(bool on)
{
	return write_file(INSTANCE "/set_event", O_APPEND, "%s" GROUP ":event\n", on ? "" : "!");
}

/* The slow part of a hit: a program on what copies the string, or a filter that lets it pass */
static int slow_prog(union bpf_attr *attr, struct area *area)
{
	bool passes = attr->prog_type != BPF_PROG_TYPE_TRACING;
	struct bpf_insn body[6 + WAIT_INSNS] = {
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * BEGUN),
	};
	size_t n = 2;

	n += wait_for_slot(body + n, area, GO_ON, TOLD_MS, SEEN);
	body[n++] = BPF_MOV64_IMM(BPF_REG_1, 1);
	body[n++] = BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * ENDED);
	body[n++] = BPF_MOV64_IMM(BPF_REG_0, passes);
	body[n++] = BPF_EXIT_INSN();
	return body_load(attr, area, body, n);
}

static int by_string(const struct kind *kind, struct area *area)
{
	union bpf_attr attr;

	tracing_attr(&attr, BPF_TRACE_FENTRY, "strncpy_from_kernel_nofault");
	return event_add("event", "%c %s @linux_banner:string",
			 kind->flags & PROBE_RETURN ? 'r' : 'p', FUNC) ?:
	       turn(true) ?: tracing_open(slow_prog(&attr, area));
}

static int by_filter(const struct kind *kind, struct area *area)
{
	union bpf_attr attr;

	load_attr(&attr, kind->type, 0, 0);
	return kind_create(kind) ?: turn(true) ?:
	       filter_attach(INSTANCE, GROUP, slow_prog(&attr, area));
}

FIXTURE(removal) {
	struct area area;
	int slow;
};

FIXTURE_VARIANT(removal) {
	const struct kind *kind;
	int (*make_slow)(const struct kind *kind, struct area *area);
};

FIXTURE_VARIANT_ADD(removal, kprobe) {
	&kprobe_kind, by_string,
};

FIXTURE_VARIANT_ADD(removal, kretprobe) {
	&kretprobe_kind, by_string,
};

FIXTURE_VARIANT_ADD(removal, kprobe_filter) {
	&kprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, kretprobe_filter) {
	&kretprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, uprobe_filter) {
	&uprobe_kind, by_filter,
};

FIXTURE_VARIANT_ADD(removal, uretprobe_filter) {
	&uretprobe_kind, by_filter,
};

FIXTURE_SETUP(removal)
{
	SKIP_WITHOUT(return, filter_prepare() ?: tracing_prepare());
	if (variant->make_slow == by_filter && mainline())
		SKIP(return, "mainline has no programs as filters");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	self->slow = variant->make_slow(variant->kind, &self->area);
	ASSERT_LE(0, self->slow);
}

FIXTURE_TEARDOWN_PARENT(removal)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static void *hit_elsewhere(void *arg)
{
	const struct kind *kind = arg;

	pin(1);
	kind->hit();
	return NULL;
}

struct remover {
	pid_t tid;		/* once it is about to remove the event */
	int err;
	bool ended;		/* the hit, when the event was gone */
	const struct area *area;
};

static void *remove_here(void *arg)
{
	struct remover *remover = arg;

	__atomic_store_n(&remover->tid, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	remover->err = write_file(TRACEFS "/dynamic_events", O_APPEND, "-:" GROUP "/event\n");
	remover->ended = area_get(remover->area, ENDED);
	return NULL;
}

static bool remover_waits(const struct remover *remover)
{
	pid_t tid = __atomic_load_n(&remover->tid, __ATOMIC_SEQ_CST);

	return tid && task_state(tid) == 'D';
}

TEST_F(removal, waits_for_hits)
{
	struct remover remover = { .area = &self->area };
	pthread_t hitter, thread;

	ASSERT_EQ(0, pthread_create(&hitter, NULL, hit_elsewhere, (void *)variant->kind));
	ASSERT_TRUE(wait_until(area_get(&self->area, BEGUN)));
	EXPECT_EQ(0, turn(false));
	ASSERT_EQ(0, pthread_create(&thread, NULL, remove_here, &remover));
	EXPECT_TRUE(wait_until(remover_waits(&remover)));
	EXPECT_EQ(0, area_get(&self->area, ENDED));

	area_set(&self->area, GO_ON, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, remover.err);
	EXPECT_TRUE(remover.ended);
	pthread_join(hitter, NULL);
	EXPECT_EQ(1, area_get(&self->area, BEGUN));
}

TEST_HARNESS_MAIN
