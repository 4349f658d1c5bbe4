// SPDX-License-Identifier: GPL-2.0
/*
 * Every kind of trace event that perf can open: a program on it runs at each hit
 * and decides about the record, or it is refused.  There is nothing in between.
 */
#include "common.h"
#include "link.h"
#include "ring.h"
#include "uprobe.h"
#include "filter.h"
#include "module.h"

#include <linux/user_events.h>

#define NAME "bpf_events_test"
#define EVENT GROUP "/event"
/* Slots of the area: what a program counts, what it returns, whose hits they are */
enum { HITS, VERDICT, OWNER };

/* An event that user space hits, by writing its number and what is in its record */
static struct {
	int file;
	struct {
		__u32 index;
		__u32 val;
	} hit;
} user_event;

static __u32 user_event_enabled;

static int user_event_register(void)
{
	struct user_reg reg = {
		.size = sizeof(reg),
		.enable_bit = 0,
		.enable_size = sizeof(user_event_enabled),
		.enable_addr = (unsigned long)&user_event_enabled,
		.name_args = (unsigned long)NAME " u32 val",
	};

	user_event.file = open(TRACEFS "/user_events_data", O_RDWR | O_CLOEXEC);
	if (user_event.file < 0 || ioctl(user_event.file, DIAG_IOCSREG, &reg))
		return -errno;
	user_event.hit.index = reg.write_index;
	user_event.hit.val = 0x5eed;
	return 0;
}

static void hit_user_event(void)
{
	if (write(user_event.file, &user_event.hit, sizeof(user_event.hit)) < 0)
		fprintf(stderr, "# user event: %s\n", strerror(errno));
}

static int custom_event_load(void)
{
	return load_module(custom_module());
}

/* What the kernel lacks, or NULL */

static const char *no_user_events(void)
{
	return access(TRACEFS "/user_events_data", F_OK) ? "CONFIG_USER_EVENTS" : NULL;
}

static const char *no_synthetic_events(void)
{
	return access(TRACEFS "/synthetic_events", F_OK) ? "CONFIG_SYNTH_EVENTS" : NULL;
}

static const char *no_custom_events(void)
{
	return custom_module() ? NULL : NO_CUSTOM_MODULE;
}

static const char *no_fprobe_events(void)
{
	char line[256];

	return find_line(TRACEFS "/README", "f[:[<group>/]", line, sizeof(line)) ?
		       NULL : "CONFIG_FPROBE_EVENTS";
}

FIXTURE(kinds) {
	struct area area;
	int perf;
};

FIXTURE_VARIANT(kinds) {
	const char *event;		/* as a path */
	enum bpf_prog_type takes;	/* which programs, or none */
	int open;			/* what it says to perf, if it is no event of perf's */
	void (*hit)(void);
	const char *(*missing)(void);
	const char *define;		/* what makes it, if it is not there, */
	int (*create)(void);		/* or who */
};

FIXTURE_VARIANT_ADD(kinds, tracepoint) {
	.event = "task/task_rename", .takes = BPF_PROG_TYPE_TRACEPOINT, .hit = hit_rename,
};

FIXTURE_VARIANT_ADD(kinds, sys_enter) {
	.event = "syscalls/sys_enter_sched_get_priority_max",
	.takes = BPF_PROG_TYPE_TRACEPOINT, .hit = hit,
};

FIXTURE_VARIANT_ADD(kinds, sys_exit) {
	.event = "syscalls/sys_exit_sched_get_priority_max",
	.takes = BPF_PROG_TYPE_TRACEPOINT, .hit = hit,
};

FIXTURE_VARIANT_ADD(kinds, user_event) {
	.event = "user_events/" NAME, .takes = BPF_PROG_TYPE_TRACEPOINT,
	.hit = hit_user_event, .create = user_event_register,
	.missing = no_user_events,
};

FIXTURE_VARIANT_ADD(kinds, kprobe) {
	.event = EVENT, .takes = BPF_PROG_TYPE_KPROBE, .hit = hit,
	.define = "p:" EVENT " " FUNC,
};

FIXTURE_VARIANT_ADD(kinds, kretprobe) {
	.event = EVENT, .takes = BPF_PROG_TYPE_KPROBE, .hit = hit,
	.define = "r:" EVENT " " FUNC,
};

static int uprobe_event(void)
{
	struct probe probe;

	return uprobe_create(&probe, 0);
}

static int uretprobe_event(void)
{
	struct probe probe;

	return uprobe_create(&probe, PROBE_RETURN);
}

FIXTURE_VARIANT_ADD(kinds, uprobe) {
	.event = EVENT, .takes = BPF_PROG_TYPE_KPROBE, .hit = hit_user,
	.create = uprobe_event,
};

FIXTURE_VARIANT_ADD(kinds, uretprobe) {
	.event = EVENT, .takes = BPF_PROG_TYPE_KPROBE, .hit = hit_user,
	.create = uretprobe_event,
};

FIXTURE_VARIANT_ADD(kinds, fprobe) {
	.event = EVENT, .hit = hit, .define = "f:" EVENT " " FUNC,
	.missing = no_fprobe_events,
};

FIXTURE_VARIANT_ADD(kinds, fprobe_return) {
	.event = EVENT, .hit = hit, .define = "f:" EVENT " " FUNC "%return",
	.missing = no_fprobe_events,
};

FIXTURE_VARIANT_ADD(kinds, tracepoint_probe) {
	.event = EVENT, .hit = hit_rename, .define = "t:" EVENT " task_rename",
	.missing = no_fprobe_events,
};

FIXTURE_VARIANT_ADD(kinds, event_probe) {
	.event = EVENT, .hit = hit_rename, .define = "e:" EVENT " task.task_rename",
};

FIXTURE_VARIANT_ADD(kinds, function) {
	.event = "ftrace/function", .hit = hit,
};

/* It is there for its triggers, perf gets nothing of it */
FIXTURE_VARIANT_ADD(kinds, print) {
	.event = "ftrace/print", .hit = hit,
};

FIXTURE_VARIANT_ADD(kinds, synthetic) {
	.event = "synthetic/" NAME, .open = -ENODEV,
	.define = "s:synthetic/" NAME " u64 val",
	.missing = no_synthetic_events,
};

FIXTURE_VARIANT_ADD(kinds, custom) {
	.event = CUSTOM_EVENT, .open = -ENODEV, .create = custom_event_load,
	.missing = no_custom_events,
};

/* As perf_open_event(), without the user's stacks, which functions do not have */
static int kind_open(const char *event)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.exclude_callchain_user = 1,
	};

	if (!read_u64(event_file(TRACEFS, event, "id"), (__u64 *)&attr.config))
		return -ENOENT;
	return perf_open(&attr, 0, -1);
}

/* Events of ours that are not in the group which leftovers() knows */
static void remove_others(void)
{
	write_file(TRACEFS "/dynamic_events", O_APPEND, "-:synthetic/" NAME "\n");
	write_file(TRACEFS "/dynamic_events", O_APPEND, "-:user_events/" NAME " u32 val\n");
	unload_module(CUSTOM_MODULE);
}

FIXTURE_SETUP(kinds)
{
	const char *missing = filter_prepare();

	if (!missing && variant->missing)
		missing = variant->missing();
	SKIP_WITHOUT(return, missing);
	remove_others();
	if (variant->define)
		ASSERT_EQ(0, write_file(TRACEFS "/dynamic_events", O_APPEND,
					"%s", variant->define));
	if (variant->create)
		ASSERT_EQ(0, variant->create());
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = kind_open(variant->event);
	ASSERT_EQ(variant->open, self->perf < 0 ? self->perf : 0);
}

FIXTURE_TEARDOWN_PARENT(kinds)
{
	remove_others();
	EXPECT_STREQ("nothing", leftovers());
}

/* Turns down the hits of others */
static int owner_prog(struct area *area, enum bpf_prog_type type)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		AREA(BPF_REG_1, area, HITS),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_1, 8 * OWNER),
		BPF_JMP_REG(BPF_JNE, BPF_REG_2, BPF_REG_3, 3),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 8 * HITS),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 8 * VERDICT),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

static void hits_of(struct area *area, void (*hit)(void), unsigned int n)
{
	area_set(area, HITS, 0);
	area_set(area, OWNER, getpid());
	while (n--)
		hit();
}

/* In a task that the perf event is not for; of a uprobe it has no hits then */
static int hits_in_child(struct area *area, void (*hit)(void))
{
	pid_t child = fork();

	if (!child) {
		hits_of(area, hit, 1);
		_exit(area_get(area, HITS) != (hit != hit_user));
	}
	return child_status(child);
}

static void expect_runs(struct __test_metadata *_metadata, struct area *area,
			struct ring *ring, void (*hit)(void))
{
	unsigned int verdict;

	for (verdict = 0; verdict < 2; verdict++) {
		area_set(area, VERDICT, verdict);
		hits_of(area, hit, 3);
		EXPECT_EQ(3, area_get(area, HITS));
		EXPECT_EQ(verdict ? 3 : 0, ring_samples(ring));
	}
	EXPECT_EQ(0, hits_in_child(area, hit));
	EXPECT_EQ(0, ring_samples(ring));
}

static void run_or_refuse(struct __test_metadata *_metadata, struct area *area, int perf,
			  enum bpf_prog_type takes, void (*hit)(void), bool by_link)
{
	static const enum bpf_prog_type types[] = {
		BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_PROG_TYPE_PERF_EVENT,
		BPF_PROG_TYPE_TRACEPOINT, BPF_PROG_TYPE_KPROBE,
	};
	int i, prog, link, attached = -1;
	struct ring ring;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		prog = owner_prog(area, types[i]);
		ASSERT_LE(0, prog);
		link = by_link ? perf_link(perf, prog) : perf_set_bpf(perf, prog);
		if (types[i] != takes) {
			EXPECT_EQ(-EINVAL, link);
			continue;
		}
		ASSERT_LE(0, link);
		attached = by_link ? link : perf;
		ASSERT_EQ(0, ring_map(&ring, perf));
		expect_runs(_metadata, area, &ring, hit);
		EXPECT_EQ(0, fdinfo_number(attached, "bpf_prog_missed"));
	}
	EXPECT_EQ(!!takes, attached >= 0);
}

TEST_F(kinds, set_bpf)
{
	if (!variant->open)
		run_or_refuse(_metadata, &self->area, self->perf, variant->takes,
			      variant->hit, false);
}

TEST_F(kinds, link)
{
	if (!variant->open)
		run_or_refuse(_metadata, &self->area, self->perf, variant->takes,
			      variant->hit, true);
}

TEST_HARNESS_MAIN
