// SPDX-License-Identifier: GPL-2.0
/*
 * What is refused as a filter leaves the event as it was, and the error_log of
 * the instance says why
 */
#include "common.h"
#include "types.h"
#include "error_log.h"
#include "uprobe.h"
#include "filter.h"
#include "module.h"
#include "tracing.h"

#define BAD_EVENT "This event takes no BPF program; probes, tracepoints and system calls do"
#define BAD_FD "Not the number of a descriptor, write bpf-FD or bpf-id:ID"
#define BAD_ID "Not the id of a program, write bpf-id:ID"
#define JUNK "Nothing can follow a program"
#define NO_PERFMON "A program as filter takes CAP_PERFMON"
#define NO_ADMIN "A program by its id takes CAP_SYS_ADMIN"
#define NO_FILE "No file is open at this descriptor"
#define NOT_A_PROG "This descriptor is not a BPF program"
#define NO_ID "No program has this id"
#define DENIED "A security module denies this program"
#define WANTS_RAW_TP "This event takes programs of type BPF_PROG_TYPE_RAW_TRACEPOINT"
#define FOR_MULTI "This program was loaded for a multi link"
#define MAY_SLEEP "This program may sleep, a filter must not"
#define DOES_OVERRIDE "This program overrides return values, a filter must not"
#define TOO_MANY_ARGS "The program reads more arguments than the event has"
#define SECOND "A program filters this event already, write 0 to remove it"
#define HAS_STRING "The event has a filter string, write 0 to clear it first"
#define HAS_PROG "A program filters this event, write 0 to remove it first"

/* Slots of the area */
enum { HITS, VERDICT, OTHER_HITS, OTHER_VERDICT };

FIXTURE(refused) {
	const char *event;
	struct area area;
	bool enabled;
	int prog;
	int fd;		/* of the filter file, without a program */
};

FIXTURE_VARIANT(refused) {
	const struct kind *kind;
	/* How many arguments there are; 0: registers instead */
	unsigned int nr_args;
	bool enabled;
};

FIXTURE_VARIANT_ADD(refused, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(refused, kretprobe) { .kind = &kretprobe_kind, .enabled = true };
FIXTURE_VARIANT_ADD(refused, uprobe) { .kind = &uprobe_kind, .enabled = true };
FIXTURE_VARIANT_ADD(refused, uretprobe) { .kind = &uretprobe_kind };
FIXTURE_VARIANT_ADD(refused, tracepoint) { .kind = &tracepoint_kind, .nr_args = 2 };

FIXTURE_VARIANT_ADD(refused, enabled_tracepoint) {
	.kind = &tracepoint_kind, .nr_args = 2, .enabled = true,
};

FIXTURE_VARIANT_ADD(refused, sys_enter) { .kind = &sys_enter_kind, .nr_args = 1 };
FIXTURE_VARIANT_ADD(refused, sys_exit) { .kind = &sys_exit_kind, .nr_args = 1, .enabled = true };

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->event = variant->kind->event;
	self->enabled = variant->enabled;
	ASSERT_EQ(0, kind_create(variant->kind));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, self->enabled));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VERDICT, 1);
	self->prog = filter_prog(&self->area, HITS, variant->kind->type);
	ASSERT_LE(0, self->prog);
	self->fd = filter_open(INSTANCE, self->event);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

/*
 * Whether error_log of the instance has one entry, with this error, which is about this
 * event, and starts with what was written
 */
static bool filter_logged(const char *error, const char *event, const char *written)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "%s %s", event, written);
	*strchr(cmd, '/') = ':';
	return logged_in(INSTANCE "/error_log", "bpf_filter", error, cmd);
}

/* What is wrong, if something changed, or error_log does not have @error and @written */
static const char *wrong(const char *event, bool enabled, const char *filter,
			 const char *error, const char *written)
{
	if (strcmp(event_text(INSTANCE, event, "filter"), filter))
		return "the filter is another one";
	if (strcmp(event_text(INSTANCE, event, "enable"), enabled ? "1" : "0"))
		return "the event was enabled, or disabled";
	if (!filter_logged(error, event, written))
		return "error_log does not have it";
	return "nothing";
}

#define EXPECT_REFUSED(err, why, filter, fmt, ...)			\
do {									\
	char __written[64];						\
									\
	snprintf(__written, sizeof(__written), fmt, ##__VA_ARGS__);	\
	EXPECT_EQ(err, filter_write(self->fd, "%s\n", __written));	\
	EXPECT_STREQ("nothing", wrong(self->event, self->enabled, filter, why,		\
				      __written));					\
} while (0)

TEST_F(refused, malformed)
{
	static const char * const fds[] = {
		"bpf-", "bpf-x", "bpf--1", "bpf-+1", "bpf-0x3", "bpf-1x", "bpf- 1",
		"bpf-id", "bpf-ID:1",
		/* More than 32 bits */
		"bpf-4294967296", "bpf-99999999999999999999",
	};
	static const char * const ids[] = {
		"bpf-id:", "bpf-id:x", "bpf-id:-1", "bpf-id:1x", "bpf-id:4294967296",
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		EXPECT_REFUSED(-EINVAL, BAD_FD, "none", "%s", fds[i]);
	for (i = 0; i < ARRAY_SIZE(ids); i++)
		EXPECT_REFUSED(-EINVAL, BAD_ID, "none", "%s", ids[i]);
	EXPECT_REFUSED(-EINVAL, JUNK, "none", "bpf-%d junk", self->prog);
	EXPECT_REFUSED(-EINVAL, JUNK, "none", "bpf-%d bpf-%d", self->prog, self->prog);
	EXPECT_REFUSED(-EINVAL, JUNK, "none", "bpf-id:%u junk", prog_id(self->prog));

	/* The file is as good as before; white space around is no matter */
	EXPECT_EQ(0, filter_write(self->fd, "\tbpf-%d\n", self->prog));
	EXPECT_STREQ("", entries_of(INSTANCE "/error_log"));
	kind_hits(variant->kind, 3);
	EXPECT_EQ(3, area_get(&self->area, HITS));
}

TEST_F(refused, unknown)
{
	EXPECT_REFUSED(-EBADF, NO_FILE, "none", "bpf-9999");
	EXPECT_REFUSED(-EBADF, NO_FILE, "none", "bpf-2147483647");
	EXPECT_REFUSED(-EBADF, NO_FILE, "none", "bpf-4294967295");
	EXPECT_REFUSED(-ENOENT, NO_ID, "none", "bpf-id:99999");
	EXPECT_REFUSED(-ENOENT, NO_ID, "none", "bpf-id:0");
	EXPECT_REFUSED(-ENOENT, NO_ID, "none", "bpf-id:4294967295");
}

/* As BPF_PROG_GET_FD_BY_ID would be; a descriptor is there already */
TEST_F(refused, denied)
{
	const struct bpf_insn deny[] = {
		BPF_MOV64_IMM(BPF_REG_0, -EACCES),
		BPF_EXIT_INSN(),
	};
	int hook = btf_func_id("bpf_lsm_bpf_prog"), fd;
	__u32 id = prog_id(self->prog);
	union bpf_attr attr;
	struct area area;

	if (hook <= 0 || !lsm_runs_programs())
		SKIP(return, "CONFIG_BPF_LSM, and bpf in CONFIG_LSM");
	ASSERT_EQ(0, area_create(&area));
	load_attr(&attr, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, hook);
	fd = tracing_open_drop(body_load(&attr, &area, deny, ARRAY_SIZE(deny)));
	ASSERT_LE(0, fd);
	EXPECT_REFUSED(-EACCES, DENIED, "none", "bpf-id:%u", id);
	EXPECT_EQ(1, area_get(&area, 0));
	EXPECT_EQ(0, filter_write(self->fd, "bpf-%d\n", self->prog));
	EXPECT_EQ(1, area_get(&area, 0));
	close(fd);
}

TEST_F(refused, not_a_program)
{
	int null = open("/dev/null", O_RDONLY);

	EXPECT_REFUSED(-EINVAL, NOT_A_PROG, "none", "bpf-%d", null);
	EXPECT_REFUSED(-EINVAL, NOT_A_PROG, "none", "bpf-%d", self->area.fd);
	EXPECT_REFUSED(-EINVAL, NOT_A_PROG, "none", "bpf-%d", self->fd);
}

TEST_F(refused, program_of_another_type)
{
	const enum bpf_prog_type types[] = {
		BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_XDP,
		BPF_PROG_TYPE_TRACEPOINT, BPF_PROG_TYPE_KPROBE,
		BPF_PROG_TYPE_RAW_TRACEPOINT,
	};
	const char *why = variant->nr_args ? WANTS_RAW_TP : WANTS_KPROBE;
	int i, prog;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (types[i] == variant->kind->type)
			continue;
		prog = prog_load_type(types[i], 0, 0);
		ASSERT_LE(0, prog);
		EXPECT_REFUSED(-EINVAL, why, "none", "bpf-%d", prog);
		EXPECT_REFUSED(-EINVAL, why, "none", "bpf-id:%u", prog_id(prog));
	}
}

/* A program that reads the last argument that it may not, or may, or a part of it */
static int reader_prog(unsigned int n, int size)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(size, BPF_REG_0, BPF_REG_1, 8 * (n - 1)),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
}

TEST_F(refused, too_many_arguments)
{
	const int sizes[] = { BPF_DW, BPF_W, BPF_H, BPF_B };
	unsigned int n, i;
	int prog;

	for (n = variant->nr_args + 1; variant->nr_args && n <= 12; n++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			prog = reader_prog(n, sizes[i]);
			ASSERT_LE(0, prog);
			EXPECT_REFUSED(-EACCES, TOO_MANY_ARGS, "none", "bpf-%d", prog);
			EXPECT_REFUSED(-EACCES, TOO_MANY_ARGS, "none", "bpf-id:%u",
				       prog_id(prog));
			close(prog);
		}
	}
	/* Registers are checked when the program is loaded */
	EXPECT_EQ(-EACCES, reader_prog(13, BPF_DW));
	prog = variant->nr_args ? reader_prog(variant->nr_args, BPF_DW) : self->prog;
	EXPECT_EQ(0, filter_write(self->fd, "bpf-%d", prog));
}

TEST_F(refused, second_program)
{
	int other, another = filter_prog(&self->area, OTHER_HITS, variant->kind->type);
	char filter[64];

	snprintf(filter, sizeof(filter), "bpf: id %u name " BPF_NAME, prog_id(self->prog));
	other = filter_open(INSTANCE, self->event);
	ASSERT_EQ(0, filter_write(other, "bpf-%d", self->prog));
	self->enabled = true;
	EXPECT_REFUSED(-EEXIST, SECOND, filter, "bpf-%d", another);
	EXPECT_REFUSED(-EEXIST, SECOND, filter, "bpf-id:%u", prog_id(another));
	EXPECT_REFUSED(-EEXIST, SECOND, filter, "bpf-%d", self->prog);
	/* Nor is there one by the same file */
	EXPECT_EQ(-EEXIST, filter_write(other, "bpf-%d", another));
	kind_hits(variant->kind, 2);
	EXPECT_EQ(2, area_get(&self->area, HITS));
	EXPECT_EQ(0, area_get(&self->area, OTHER_HITS));

	/* The file that was refused does not own the filter */
	close(self->fd);
	kind_hits(variant->kind, 2);
	EXPECT_EQ(4, area_get(&self->area, HITS));
}

TEST_F(refused, program_and_expression)
{
	char filter[64];

	ASSERT_EQ(0, filter_write(self->fd, "common_pid == 1\n"));
	EXPECT_REFUSED(-EBUSY, HAS_STRING, "common_pid == 1", "bpf-%d", self->prog);
	EXPECT_REFUSED(-EBUSY, HAS_STRING, "common_pid == 1", "bpf-id:%u", prog_id(self->prog));
	ASSERT_EQ(0, filter_write(self->fd, "0\n"));

	ASSERT_EQ(0, filter_write(self->fd, "bpf-%d\n", self->prog));
	self->enabled = true;
	snprintf(filter, sizeof(filter), "bpf: id %u name " BPF_NAME, prog_id(self->prog));
	EXPECT_REFUSED(-EBUSY, HAS_PROG, filter, "common_pid == 1");
	kind_hits(variant->kind, 2);
	EXPECT_EQ(2, area_get(&self->area, HITS));
	EXPECT_EQ(2, records(INSTANCE));
}

/* What comes of a write in a process that has nothing but @caps */
static int write_with_caps(__u64 caps, int fd, const char *text)
{
	pid_t child = fork();

	if (!child)
		_exit(drop_caps(caps) ? 255 : -filter_write(fd, "%s", text));
	return -child_status(child);
}

TEST_F(refused, capabilities)
{
	char by_fd[32], by_id[32];

	snprintf(by_fd, sizeof(by_fd), "bpf-%d", self->prog);
	snprintf(by_id, sizeof(by_id), "bpf-id:%u", prog_id(self->prog));
	EXPECT_EQ(-EPERM, write_with_caps(CAP(BPF), self->fd, by_fd));
	EXPECT_STREQ("nothing", wrong(self->event, self->enabled, "none", NO_PERFMON, by_fd));
	EXPECT_EQ(-EPERM, write_with_caps(0, self->fd, by_fd));
	EXPECT_STREQ("nothing", wrong(self->event, self->enabled, "none", NO_PERFMON, by_fd));
	EXPECT_EQ(-EPERM, write_with_caps(CAP(BPF), self->fd, by_id));
	EXPECT_STREQ("nothing", wrong(self->event, self->enabled, "none", NO_PERFMON, by_id));
	EXPECT_EQ(-EPERM, write_with_caps(CAP(BPF) | CAP(PERFMON), self->fd, by_id));
	EXPECT_STREQ("nothing", wrong(self->event, self->enabled, "none", NO_ADMIN, by_id));

	EXPECT_EQ(0, write_with_caps(CAP(PERFMON), self->fd, by_fd));
	EXPECT_STREQ("", entries_of(INSTANCE "/error_log"));
	EXPECT_EQ(0, write_with_caps(0, self->fd, "0"));
	EXPECT_EQ(0, write_with_caps(CAP(SYS_ADMIN), self->fd, by_id));
	EXPECT_EQ(0, write_with_caps(0, self->fd, "0"));
}

/* A write that failed holds nothing */
TEST_F(refused, drops_the_program)
{
	int prog = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);
	__u32 id = prog_id(prog);

	ASSERT_LE(0, prog);
	EXPECT_EQ(-EINVAL, filter_write(self->fd, "bpf-%d", prog));
	close(prog);
	EXPECT_EQ(-ENOENT, prog_by_id(id));
}

/* Programs on probes that have the type but another purpose */

FIXTURE(purpose) {
	FIXTURE_DATA(refused) r;
};

FIXTURE_VARIANT(purpose) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(purpose, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(purpose, uprobe) { .kind = &uprobe_kind };

FIXTURE_SETUP(purpose)
{
	const FIXTURE_VARIANT(refused) probe = { .kind = variant->kind };

	refused_setup(_metadata, &self->r, &probe);
}

FIXTURE_TEARDOWN_PARENT(purpose)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

static int override_prog(void)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_2, 0),
		BPF_EMIT_CALL(BPF_FUNC_override_return),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

TEST_F(purpose, refused)
{
	const enum bpf_prog_type type = BPF_PROG_TYPE_KPROBE;
	const struct {
		int prog;
		const char *why;
	} cases[] = {
		{ prog_load_type(type, 0, BPF_F_SLEEPABLE), MAY_SLEEP },
		{ override_prog(), DOES_OVERRIDE },
		/* For links to many functions, whose hits have more to them */
		{ prog_load_type(type, BPF_TRACE_KPROBE_MULTI, 0), FOR_MULTI },
		{ prog_load_type(type, BPF_TRACE_KPROBE_SESSION, 0), FOR_MULTI },
		{ prog_load_type(type, BPF_TRACE_UPROBE_MULTI, 0), FOR_MULTI },
	};
	char text[32];
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_LE(0, cases[i].prog);
		snprintf(text, sizeof(text), "bpf-%d", cases[i].prog);
		EXPECT_EQ(-EINVAL, filter_write(self->r.fd, "%s", text))
			TH_LOG("program %d", i);
		EXPECT_STREQ("nothing", wrong(self->r.event, self->r.enabled, "none",
					      cases[i].why, text));
	}
}

/* The same for tracepoints: a filter's hits do not have what sessions have */
TEST(session_kfuncs)
{
	static const char * const kfuncs[] = {
		"bpf_session_cookie", "bpf_session_is_return",
	};
	struct bpf_insn insns[] = {
		CALL_KFUNC(0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int i, id, fd;

	for (i = 0; i < ARRAY_SIZE(kfuncs); i++) {
		id = btf_func_id(kfuncs[i]);
		ASSERT_LT(0, id);
		insns[0].imm = id;
		prog_attr(&attr, insns, ARRAY_SIZE(insns));
		attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
		EXPECT_EQ(-EACCES, sys_bpf(BPF_PROG_LOAD, &attr));
		attr.expected_attach_type = BPF_TRACE_KPROBE_SESSION;
		fd = sys_bpf(BPF_PROG_LOAD, &attr);
		EXPECT_EQ(-EACCES, fd);
		if (fd >= 0)
			close(fd);
	}
}

/* Files and events that take no program */

FIXTURE(elsewhere) {
	FIXTURE_DATA(refused) r;
};

FIXTURE_SETUP(elsewhere)
{
	refused_setup(_metadata, &self->r, &_refused_tracepoint_variant);
}

FIXTURE_TEARDOWN_PARENT(elsewhere)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

TEST_F(elsewhere, event_probe)
{
	const char *event = GROUP "/on_event";

	/* An event on another event */
	ASSERT_EQ(0, write_file(TRACEFS "/dynamic_events", O_APPEND,
				"e:" GROUP "/on_event task.task_rename\n"));
	EXPECT_EQ(-EINVAL, filter_attach(INSTANCE, event, self->r.prog));
	EXPECT_TRUE(filter_logged(BAD_EVENT, event, "bpf-"));
	EXPECT_STREQ("0", event_text(INSTANCE, event, "enable"));
	EXPECT_STREQ("none", event_text(INSTANCE, event, "filter"));
}

/* Events that have the flag of tracepoints, and are none */

#define NAME "bpf_events_test"

static void expect_refused(struct __test_metadata *_metadata, const char *event, int prog)
{
	EXPECT_EQ(-EINVAL, filter_attach(INSTANCE, event, prog));
	EXPECT_TRUE(filter_logged(BAD_EVENT, event, "bpf-"));
	EXPECT_EQ(-EINVAL, filter_attach_id(INSTANCE, event, prog_id(prog)));
	EXPECT_TRUE(filter_logged(BAD_EVENT, event, "bpf-id:"));
	EXPECT_STREQ("0", event_text(INSTANCE, event, "enable"));
	EXPECT_STREQ("none", event_text(INSTANCE, event, "filter"));
}

TEST_F(elsewhere, synthetic_event)
{
	const char *path = TRACEFS "/dynamic_events";

	if (access(TRACEFS "/synthetic_events", F_OK))
		SKIP(return, "CONFIG_SYNTH_EVENTS");
	write_file(path, O_APPEND, "-:synthetic/" NAME "\n");
	ASSERT_EQ(0, write_file(path, O_APPEND, "s:synthetic/" NAME " u64 val\n"));
	expect_refused(_metadata, "synthetic/" NAME, self->r.prog);
	EXPECT_EQ(0, write_file(path, O_APPEND, "-:synthetic/" NAME "\n"));
}

TEST_F(elsewhere, user_event)
{
	const char *path = TRACEFS "/dynamic_events";

	if (access(TRACEFS "/user_events_data", F_OK))
		SKIP(return, "CONFIG_USER_EVENTS");
	write_file(path, O_APPEND, "-:user_events/" NAME " u32 val\n");
	ASSERT_EQ(0, write_file(path, O_APPEND, "u:" NAME " u32 val\n"));
	expect_refused(_metadata, "user_events/" NAME, self->r.prog);
	/* It is found by its fields, too */
	EXPECT_EQ(0, write_file(path, O_APPEND, "-:user_events/" NAME " u32 val\n"));
}

TEST_F(elsewhere, custom_event)
{
	const char *path = custom_module();

	if (!path)
		SKIP(return, NO_CUSTOM_MODULE);
	unload_module(CUSTOM_MODULE);
	ASSERT_EQ(0, load_module(path));
	expect_refused(_metadata, CUSTOM_EVENT, self->r.prog);
	EXPECT_EQ(0, unload_module(CUSTOM_MODULE));
}

TEST_F(elsewhere, read_only_descriptor)
{
	int fd = open(event_file(INSTANCE, self->r.event, "filter"), O_RDONLY);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, filter_write(fd, "bpf-%d", self->r.prog));
	EXPECT_STREQ("none", event_text(INSTANCE, self->r.event, "filter"));
}

/* The error_log of another instance does not have it */
TEST_F(elsewhere, log_of_the_top_instance)
{
	write_file(ERROR_LOG, O_TRUNC, "");
	EXPECT_EQ(-EINVAL, filter_write(self->r.fd, "bpf-"));
	EXPECT_STREQ("", entries());
	EXPECT_TRUE(filter_logged(BAD_FD, self->r.event, "bpf-"));
}

TEST_HARNESS_MAIN
