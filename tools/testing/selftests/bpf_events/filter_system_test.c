// SPDX-License-Identifier: GPL-2.0
/* A program that is written to the filter file of a system: all of its events, or none */
#include "common.h"
#include "error_log.h"
#include "uprobe.h"
#include "filter.h"
#include "hitter.h"

/* Slots of the area */
enum { HITS, VERDICT, OTHER_HITS, OTHER_VERDICT };

FIXTURE(system) {
	struct area area;
	int prog;
};

FIXTURE_VARIANT(system) {
	const char *system;
	const char *events[2];
	enum bpf_prog_type type;
	void (*hit)(void);	/* hits that many of them, one time each */
	unsigned int nr_hit;
};

FIXTURE_VARIANT_ADD(system, probes) {
	.system = GROUP,
	.events = { GROUP "/entry", GROUP "/return" },
	.type = BPF_PROG_TYPE_KPROBE,
	.hit = hit,
	.nr_hit = 2,
};

FIXTURE_VARIANT_ADD(system, tracepoints) {
	.system = "task",
	.events = { "task/task_rename", "task/task_newtask" },
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.hit = hit_rename,
	.nr_hit = 1,
};

static int probes_create(void)
{
	struct probe probe;

	return probe_create_at(&probe, "entry", FUNC, 0, 0) ?:
	       probe_create_at(&probe, "return", FUNC, 0, PROBE_RETURN);
}

FIXTURE_SETUP(system)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, probes_create());
	ASSERT_EQ(0, instance_create(INSTANCE));
	/* What a system shows of a string is of all instances */
	ASSERT_EQ(0, filter_clear(INSTANCE, variant->system));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VERDICT, 1);
	self->prog = filter_prog(&self->area, HITS, variant->type);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(system)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* What the filter file of an event says of a program */
static const char *shown(int prog)
{
	static char text[64];

	snprintf(text, sizeof(text), "bpf: id %u name " BPF_NAME, prog_id(prog));
	return text;
}

/* What is otherwise than that both events have this filter, and are on or off */
static const char *wrong(const char * const events[2], const char *filter, const char *enable)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (strcmp(event_text(INSTANCE, events[i], "filter"), filter) ||
		    strcmp(event_text(INSTANCE, events[i], "enable"), enable))
			return events[i];
	}
	return "nothing";
}

/* How many events of a system have this program, as its filter file says, or -1 */
static int taken(const char *system, int prog, int *all)
{
	const char *text = event_text(INSTANCE, system, "filter");
	size_t len = strlen(shown(prog));
	int nr;

	if (strncmp(text, shown(prog), len) ||
	    sscanf(text + len, ", %d of %d events", &nr, all) != 2)
		return -1;
	return nr;
}

static bool has_no_programs(const char *system)
{
	return !strcmp(event_text(INSTANCE, system, "filter"), "### global filter ###");
}

static void three_hits(void (*hit)(void))
{
	int i;

	for (i = 0; i < 3; i++)
		hit();
}

TEST_F(system, all_events_until_close)
{
	unsigned int n = 3 * variant->nr_hit;
	struct fdinfo info;
	int fd, all = 0;

	fd = filter_attach(INSTANCE, variant->system, self->prog);
	ASSERT_LE(0, fd);
	EXPECT_STREQ("nothing", wrong(variant->events, shown(self->prog), "1"));
	EXPECT_LE(2, taken(variant->system, self->prog, &all));
	EXPECT_LE(2, all);

	three_hits(variant->hit);
	EXPECT_EQ(n, area_get(&self->area, HITS));
	EXPECT_EQ(n, records(INSTANCE));
	area_set(&self->area, VERDICT, 0);
	three_hits(variant->hit);
	EXPECT_EQ(2 * n, area_get(&self->area, HITS));
	EXPECT_EQ(0, records(INSTANCE));
	ASSERT_EQ(0, read_fdinfo(fd, &info));
	EXPECT_EQ(prog_id(self->prog), info.id);
	EXPECT_LE(2 * n, info.hits);	/* others rename themselves, too */

	close(fd);
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
	EXPECT_TRUE(has_no_programs(variant->system));
	three_hits(variant->hit);
	EXPECT_EQ(2 * n, area_get(&self->area, HITS));
}

TEST_F(system, all_events_by_id_until_0)
{
	__u32 id = prog_id(self->prog);

	ASSERT_EQ(0, filter_attach_id(INSTANCE, variant->system, id));
	EXPECT_STREQ("nothing", wrong(variant->events, shown(self->prog), "1"));
	close(self->prog);
	three_hits(variant->hit);
	EXPECT_EQ(3 * variant->nr_hit, area_get(&self->area, HITS));

	ASSERT_EQ(0, filter_clear(INSTANCE, variant->system));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
	EXPECT_TRUE(prog_is_freed(id));
}

/* How many hits bpf_filters says that this program has seen of an event here, or -1 */
static long hits_listed(const char *event, __u32 prog)
{
	char line[256], found[64], name[32], instance[64], at[64];
	unsigned long hits, missed;
	FILE *file;
	long n = -1;
	__u32 id;

	snprintf(at, sizeof(at), "%s", event);
	*strchr(at, '/') = ':';
	file = fopen(TRACEFS "/bpf_filters", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63s %u %31s %lu %lu %63[^\n]", found, &id, name, &hits,
			   &missed, instance) == 6 && id == prog && !strcmp(found, at) &&
		    !strcmp(name, BPF_NAME) && !strcmp(instance, GROUP))
			n = hits;
	}
	if (file)
		fclose(file);
	return n;
}

TEST_F(system, its_events_are_in_the_list)
{
	__u32 id = prog_id(self->prog);
	int i, fd;

	fd = filter_attach(INSTANCE, variant->system, self->prog);
	ASSERT_LE(0, fd);
	three_hits(variant->hit);
	for (i = 0; i < 2; i++)
		EXPECT_LE(i < variant->nr_hit ? 3 : 0, hits_listed(variant->events[i], id));
	close(fd);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-1, hits_listed(variant->events[i], id));
}

TEST_F(system, goes_with_a_process_that_is_killed)
{
	pid_t pid = fork();
	int fd;

	if (!pid) {
		fd = filter_attach(INSTANCE, variant->system, self->prog);
		if (fd >= 0)
			raise(SIGKILL);
		_exit(1);
	}
	EXPECT_EQ(-SIGKILL, child_status(pid));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
}

TEST_F(system, an_enabled_event_stays_so)
{
	int fd;

	ASSERT_EQ(0, event_enable(INSTANCE, variant->events[0], true));
	fd = filter_attach(INSTANCE, variant->system, self->prog);
	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_STREQ("1", event_text(INSTANCE, variant->events[0], "enable"));
	EXPECT_STREQ("0", event_text(INSTANCE, variant->events[1], "enable"));
}

TEST_F(system, what_events_have_of_their_own_stays)
{
	int other = filter_prog(&self->area, OTHER_HITS, variant->type);
	int fd, own;

	fd = filter_attach(INSTANCE, variant->system, self->prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, filter_clear(INSTANCE, variant->events[0]));
	own = filter_attach(INSTANCE, variant->events[0], other);
	ASSERT_LE(0, own);
	close(fd);
	EXPECT_STREQ(shown(other), event_text(INSTANCE, variant->events[0], "filter"));
	EXPECT_STREQ("none", event_text(INSTANCE, variant->events[1], "filter"));
	three_hits(variant->hit);
	EXPECT_EQ(3, area_get(&self->area, OTHER_HITS));

	/* But 0 removes all, by any file */
	ASSERT_EQ(0, filter_clear(INSTANCE, variant->system));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
}

/* Whether the instance has one entry, of this command */
static bool refused(const char *error, const char *place, const char *fmt, ...)
{
	char cmd[256];
	va_list ap;
	int len;

	len = snprintf(cmd, sizeof(cmd), "%s ", place);
	if (strchr(cmd, '/'))
		*strchr(cmd, '/') = ':';
	va_start(ap, fmt);
	vsnprintf(cmd + len, sizeof(cmd) - len, fmt, ap);
	va_end(ap);
	return logged_in(INSTANCE "/error_log", "bpf_filter", error, cmd);
}

#define SYSTEM(system) ({						\
	static char __text[64];						\
									\
	snprintf(__text, sizeof(__text), "%s/*", system);		\
	__text; })

TEST_F(system, one_with_a_program_keeps_it_from_all)
{
	int other = filter_prog(&self->area, OTHER_HITS, variant->type);
	int i, fd, own;

	fd = filter_open(INSTANCE, variant->system);
	ASSERT_LE(0, fd);
	for (i = 0; i < 2; i++) {
		own = filter_attach(INSTANCE, variant->events[i], other);
		ASSERT_LE(0, own);
		EXPECT_EQ(-EEXIST, filter_write(fd, "bpf-%d", self->prog));
		EXPECT_TRUE(refused("A program filters this event already, write 0 to remove it",
				    variant->events[i], "bpf-%d", self->prog));
		EXPECT_STREQ(shown(other), event_text(INSTANCE, variant->events[i], "filter"));
		EXPECT_STREQ("none", event_text(INSTANCE, variant->events[!i], "filter"));
		EXPECT_STREQ("0", event_text(INSTANCE, variant->events[!i], "enable"));
		close(own);
	}
	/* The file is as good as before */
	EXPECT_EQ(0, filter_write(fd, "\tbpf-%d\n", self->prog));
	EXPECT_EQ(-EEXIST, filter_write(fd, "bpf-%d", self->prog));
	EXPECT_STREQ("nothing", wrong(variant->events, shown(self->prog), "1"));
}

TEST_F(system, one_with_a_string_keeps_it_from_all)
{
	const char *event = variant->events[1];

	ASSERT_EQ(0, write_file(event_file(INSTANCE, event, "filter"), 0, "common_pid > 0"));
	EXPECT_EQ(-EBUSY, filter_attach(INSTANCE, variant->system, self->prog));
	EXPECT_TRUE(refused("The event has a filter string, write 0 to clear it first", event,
			    "bpf-"));
	EXPECT_STREQ("common_pid > 0", event_text(INSTANCE, event, "filter"));
	EXPECT_STREQ("none", event_text(INSTANCE, variant->events[0], "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, variant->events[0], "enable"));

	/* 0 is for both */
	ASSERT_EQ(0, filter_clear(INSTANCE, variant->system));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
}

/* There is no event for it */
TEST_F(system, an_expression_where_all_have_programs)
{
	int fd = filter_attach(INSTANCE, variant->system, self->prog), all;
	char first[64];

	ASSERT_LE(0, fd);
	ASSERT_EQ(taken(variant->system, self->prog, &all), all);
	EXPECT_EQ(-EBUSY, filter_write(fd, "common_pid == 1"));
	snprintf(first, sizeof(first), "%s:", variant->system);
	EXPECT_TRUE(logged_in(INSTANCE "/error_log", "bpf_filter",
			      "A program filters this event, write 0 to remove it first", first));
	EXPECT_STREQ("nothing", wrong(variant->events, shown(self->prog), "1"));
}

/* One that no event takes */
TEST_F(system, program_of_another_type)
{
	int prog = prog_load_type(BPF_PROG_TYPE_XDP, 0, 0);
	__u32 id = prog_id(prog);

	ASSERT_LE(0, prog);
	EXPECT_EQ(-EINVAL, filter_attach(INSTANCE, variant->system, prog));
	EXPECT_TRUE(refused("No event of this system takes this program",
			    SYSTEM(variant->system), "bpf-%d (", prog));
	EXPECT_EQ(-EINVAL, filter_attach_id(INSTANCE, variant->system, id));
	EXPECT_TRUE(refused("No event of this system takes this program",
			    SYSTEM(variant->system), "bpf-id:%u (", id));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
	close(prog);
	EXPECT_TRUE(prog_is_freed(id));
}

TEST_F(system, malformed)
{
	int fd = filter_open(INSTANCE, variant->system);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, filter_write(fd, "bpf-x"));
	EXPECT_TRUE(refused("Not the number of a descriptor, write bpf-FD or bpf-id:ID",
			    SYSTEM(variant->system), "bpf-x"));
	EXPECT_EQ(-EBADF, filter_write(fd, "bpf-9999"));
	EXPECT_TRUE(refused("No file is open at this descriptor", SYSTEM(variant->system),
			    "bpf-9999"));
	EXPECT_STREQ("nothing", wrong(variant->events, "none", "0"));
}

/* What is of the probes' system only */

FIXTURE(probes) {
	FIXTURE_DATA(system) t;
	const char * const *events;
};

FIXTURE_SETUP(probes)
{
	system_setup(_metadata, &self->t, &_system_probes_variant);
	self->events = _system_probes_variant.events;
}

FIXTURE_TEARDOWN_PARENT(probes)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* An event probe has neither registers nor arguments */
static int event_probe_create(void)
{
	return write_file(TRACEFS "/dynamic_events", O_APPEND,
			  "e:" GROUP "/copy task.task_rename\n");
}

TEST_F(probes, what_takes_no_program_is_left_out)
{
	int fd, all = 0;

	ASSERT_EQ(0, event_probe_create());
	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	EXPECT_STREQ("nothing", wrong(self->events, shown(self->t.prog), "1"));
	EXPECT_STREQ("none", event_text(INSTANCE, GROUP "/copy", "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, GROUP "/copy", "enable"));
	EXPECT_EQ(2, taken(GROUP, self->t.prog, &all));
	EXPECT_EQ(3, all);
}

/* Of signal_generate and signal_deliver, the former has five, the latter three */
TEST_F(probes, what_has_fewer_arguments_is_left_out)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 4 * 8),
		BPF_EXIT_INSN(),
	};
	int prog = prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
	int fd, all = 0;

	fd = filter_attach(INSTANCE, "signal", prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(1, taken("signal", prog, &all));
	EXPECT_EQ(2, all);
	EXPECT_STREQ("none", event_text(INSTANCE, "signal/signal_deliver", "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, "signal/signal_deliver", "enable"));
}

TEST_F(probes, none_takes_programs)
{
	ASSERT_EQ(0, event_remove("entry"));
	ASSERT_EQ(0, event_remove("return"));
	ASSERT_EQ(0, event_probe_create());
	EXPECT_EQ(-EINVAL, filter_attach(INSTANCE, GROUP, self->t.prog));
	EXPECT_TRUE(refused("No event of this system takes this program", GROUP ":*", "bpf-"));
}

/* The uprobe is the last event that gets the program, since it was created first */
TEST_F(probes, one_that_cannot_be_enabled_keeps_it_from_all)
{
	__u32 id = prog_id(self->t.prog);
	struct probe probe;
	int fd, perf;

	ASSERT_EQ(0, event_remove("entry"));
	ASSERT_EQ(0, event_remove("return"));
	ASSERT_EQ(0, uprobe_create_at(&probe, "user", SELF, file_offset(user_func), 0, 0));
	ASSERT_EQ(0, probes_create());
	perf = perf_open_event(GROUP "/user");
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, event_enable(INSTANCE, self->events[0], true));

	fd = filter_open(INSTANCE, GROUP);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINTR, filter_write(fd, "bpf-%d", self->t.prog));
	EXPECT_TRUE(refused("The event could not be enabled", GROUP ":user", "bpf-"));
	EXPECT_STREQ("none", event_text(INSTANCE, GROUP "/user", "filter"));
	EXPECT_STREQ("none", event_text(INSTANCE, self->events[0], "filter"));
	EXPECT_STREQ("none", event_text(INSTANCE, self->events[1], "filter"));
	EXPECT_STREQ("1", event_text(INSTANCE, self->events[0], "enable"));
	EXPECT_STREQ("0", event_text(INSTANCE, self->events[1], "enable"));
	close(fd);
	close(perf);

	/* Kernel and user space together */
	ASSERT_EQ(0, filter_attach_id(INSTANCE, GROUP, id));
	user_hits(1);
	hit();
	EXPECT_EQ(3, area_get(&self->t.area, HITS));
	ASSERT_EQ(0, filter_clear(INSTANCE, GROUP));
	close(self->t.prog);
	EXPECT_TRUE(prog_is_freed(id));
}

TEST_F(probes, an_event_that_comes_later_has_no_program)
{
	struct probe probe;
	int fd, all = 0;

	ASSERT_EQ(0, event_remove("return"));
	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, probe_create_at(&probe, "return", FUNC, 0, PROBE_RETURN));
	EXPECT_STREQ("none", event_text(INSTANCE, GROUP "/return", "filter"));
	EXPECT_EQ(1, taken(GROUP, self->t.prog, &all));
	EXPECT_EQ(2, all);
	hit();
	EXPECT_EQ(1, area_get(&self->t.area, HITS));
}

TEST_F(probes, events_are_removed_under_the_open_file)
{
	__u32 id = prog_id(self->t.prog);
	int fd;

	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, event_enable(INSTANCE, GROUP, false));
	ASSERT_EQ(0, event_remove("entry"));
	ASSERT_EQ(0, event_remove("return"));
	EXPECT_EQ(-ENODEV, filter_write(fd, "bpf-%d", self->t.prog));
	close(self->t.prog);
	EXPECT_TRUE(prog_is_freed(id));

	/* A system of the same name is another one */
	ASSERT_EQ(0, probes_create());
	EXPECT_EQ(-ENODEV, filter_write(fd, "0"));
	close(fd);
	EXPECT_TRUE(has_no_programs(GROUP));
}

/* Whether there is one entry that says why the event is not removed */
static bool says_why(const char *event, int prog)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "-:%s (id %u, instance " GROUP ")", event, prog_id(prog));
	return logged_in(ERROR_LOG, "bpf_filter",
			 "A program filters this event, write 0 to remove it first", cmd);
}

/* Whether kprobe_events has events of others, which a test must not remove */
static bool others_have_kprobes(void)
{
	char line[256];
	bool found = false;
	FILE *file = fopen(TRACEFS "/kprobe_events", "re");

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strstr(line, ":" GROUP "/");
	if (file)
		fclose(file);
	return found;
}

TEST_F(probes, what_keeps_one_from_being_removed)
{
	struct probe probe;
	int fd;

	ASSERT_EQ(0, uprobe_create_at(&probe, "user", SELF, file_offset(user_func), 0, 0));
	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	entries();
	EXPECT_EQ(-EBUSY, event_remove("entry"));
	EXPECT_TRUE(says_why(self->events[0], self->t.prog));
	EXPECT_EQ(-EBUSY, write_file(TRACEFS "/dynamic_events", O_APPEND, "-:" GROUP "/user\n"));
	EXPECT_TRUE(says_why(GROUP "/user", self->t.prog));
	/* All of them */
	if (!others_have_kprobes()) {
		EXPECT_EQ(-EBUSY, write_file(TRACEFS "/kprobe_events", O_TRUNC, ""));
		EXPECT_TRUE(says_why(self->events[0], self->t.prog));
	}
	/* It is not the program where somebody else wants the event, too */
	ASSERT_EQ(0, event_enable(TRACEFS, GROUP "/entry", true));
	EXPECT_EQ(-EBUSY, event_remove("entry"));
	EXPECT_STREQ("", entries());
	ASSERT_EQ(0, event_enable(TRACEFS, GROUP "/entry", false));
	close(fd);

	/* Nor where it was enabled before */
	ASSERT_EQ(0, event_enable(INSTANCE, GROUP "/entry", true));
	EXPECT_EQ(-EBUSY, event_remove("entry"));
	EXPECT_STREQ("", entries());
	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBUSY, event_remove("entry"));
	EXPECT_STREQ("", entries());
}

/* One open file has one program, as its fdinfo says */
TEST_F(probes, a_second_program_through_the_same_file)
{
	int prog = prog_load_type(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0);
	int fd;

	fd = filter_attach(INSTANCE, GROUP, self->t.prog);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EEXIST, filter_write(fd, "bpf-%d", prog));
	EXPECT_TRUE(refused("A program filters this event already, write 0 to remove it",
			    self->events[1], "bpf-%d", prog));
	EXPECT_STREQ("nothing", wrong(self->events, shown(self->t.prog), "1"));
}

/* Threads that write filters, to an event and to its system, until they are told to stop */

enum { SYSTEMS, EVENTS, ZEROS, NR_WRITERS };

struct writer {
	const char *place;
	int prog;		/* -1: writes 0 */
	unsigned long done;
	int err;		/* one that should not be */
	const bool *stop;
	pthread_t thread;
};

static void *writer(void *arg)
{
	struct writer *w = arg;
	int ret;

	while (!__atomic_load_n(w->stop, __ATOMIC_SEQ_CST)) {
		ret = w->prog < 0 ? filter_clear(INSTANCE, w->place) :
				    filter_attach(INSTANCE, w->place, w->prog);
		if (ret == -EEXIST) {
			sched_yield();
			continue;
		}
		if (ret < 0)
			w->err = ret;
		else if (ret)
			close(ret);
		__atomic_add_fetch(&w->done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

TEST_F(probes, writers_of_the_system_and_of_an_event)
{
	struct writer writers[NR_WRITERS] = {
		[SYSTEMS] = { .place = GROUP, .prog = self->t.prog },
		[EVENTS] = { .place = GROUP "/entry", .prog = self->t.prog },
		[ZEROS] = { .place = GROUP, .prog = -1 },
	};
	__u64 end = deadline();
	bool stop = false;
	int i, n;

	area_set(&self->t.area, VERDICT, 0);
	for (i = 0; i < NR_WRITERS; i++) {
		writers[i].stop = &stop;
		ASSERT_EQ(0, pthread_create(&writers[i].thread, NULL, writer, &writers[i]));
	}
	for (i = 0; i < NR_WRITERS; i++) {
		for (n = 0; !__atomic_load_n(&writers[i].done, __ATOMIC_SEQ_CST) ||
		     now_ns() < end; n++) {
			hit();
			if (n % 64 == 0)
				sleep_ms(1);
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < NR_WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		EXPECT_EQ(0, writers[i].err);
	}
	EXPECT_STREQ("nothing", wrong(self->events, "none", "0"));
	EXPECT_TRUE(has_no_programs(GROUP));
	/* The events were on for programs only, which have turned down everything */
	EXPECT_EQ(0, all_records(INSTANCE));
}

TEST_HARNESS_MAIN
