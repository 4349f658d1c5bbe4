// SPDX-License-Identifier: GPL-2.0
/*
 * A probe on each function that may be called while a hit is handled, one after the
 * other and all at once: hits inside the handling of a hit are dropped, and do not
 * come without end
 */
#include <sys/resource.h>

#include "common.h"

/*
 * How the names of the functions begin.  On a slow kernel there are only those that
 * may be called before a hit inside a hit is known to be one: of kprobes, ftrace, RCU
 * and lockdep, not of perf, BPF and tracing.
 */
static const char * const prefixes[] = {
	"__ftrace", "__kprobe", "__rcu", "debug_lockdep", "debug_smp", "get_kprobe", "kprobe",
	"kretprobe", "lock_", "lockdep", "opt_", "preempt_", "rcu_", "rethook", "text_poke",
};

static const char * const more_prefixes[] = {
	"__perf", "bpf_", "ftrace_", "htab_", "perf_", "ring_buffer_", "trace_",
};

#define MAX_FUNCS 4000

FIXTURE(all) {
	struct area area;
	char (*funcs)[128];
	int *fds;
	int nr;
};

FIXTURE_VARIANT(all) {
	unsigned int flags;
	bool prog;		/* does each have one? */
};

FIXTURE_VARIANT_ADD(all, kprobe) { .flags = PROBE_PMU };
FIXTURE_VARIANT_ADD(all, kretprobe) { .flags = PROBE_PMU | PROBE_RETURN };
FIXTURE_VARIANT_ADD(all, kprobe_with_prog) { .flags = PROBE_PMU, .prog = true };
FIXTURE_VARIANT_ADD(all, kretprobe_with_prog) {
	.flags = PROBE_PMU | PROBE_RETURN, .prog = true,
};

static bool begins(const char *func, const char * const *with, int n)
{
	while (n--) {
		if (!strncmp(func, with[n], strlen(with[n])))
			return true;
	}
	return false;
}

static bool is_wanted(const char *func)
{
	return begins(func, prefixes, ARRAY_SIZE(prefixes)) ||
	       (!kernel_is_slow() && begins(func, more_prefixes, ARRAY_SIZE(more_prefixes)));
}

/* Reads which functions there are; says how many */
static int read_funcs(char (*funcs)[128])
{
	FILE *file = fopen(TRACEFS "/available_filter_functions", "re");
	char line[256];
	int n = 0;

	while (file && n < MAX_FUNCS && fgets(line, sizeof(line), file)) {
		if (is_wanted(line) && sscanf(line, "%127s", funcs[n]) == 1)
			n++;
	}
	if (file)
		fclose(file);
	return n;
}

FIXTURE_SETUP(all)
{
	struct rlimit limit = { MAX_FUNCS + 100, MAX_FUNCS + 100 };
	const char *missing = prepare();

	if (missing && (variant->prog || access(TRACEFS "/kprobe_events", F_OK)))
		SKIP(return, "%s", missing);
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	self->funcs = calloc(MAX_FUNCS, sizeof(*self->funcs));
	self->fds = calloc(MAX_FUNCS, sizeof(*self->fds));
	self->nr = read_funcs(self->funcs);
	ASSERT_LT(100, self->nr);
	ASSERT_GT(MAX_FUNCS, self->nr);
}

FIXTURE_TEARDOWN_PARENT(all)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Opens a perf event of the probe, with @prog unless that is negative */
static int open_with(const char *func, unsigned int flags, int prog)
{
	struct probe probe;
	int err, fd;

	probe_create_at(&probe, "", func, 0, flags);
	fd = probe_open(&probe);
	if (fd < 0 || prog < 0)
		return fd;
	err = perf_set_bpf(fd, prog);
	if (err)
		close(fd);
	return err ?: fd;
}

/* What the kernel is to do meanwhile: hits of a kprobe, others beside them */
static void work(void)
{
	hits(2);
	hit_rename();
}

/* On a slow kernel, each function alone has a program or none, not one after the other */
static bool is_tried_alone(int func, bool prog)
{
	return !kernel_is_slow() || func % 2 == prog;
}

TEST_F(all, one_by_one)
{
	int prog = variant->prog ? count_prog(&self->area, 1, 1) : -1;
	int fd, i, opened = 0, probe;

	probe = open_with(FUNC, variant->flags,
			  variant->prog ? count_prog(&self->area, 0, 1) : -1);
	ASSERT_LE(0, probe);
	for (i = 0; i < self->nr; i++) {
		if (!is_tried_alone(i, variant->prog))
			continue;
		/* Not those on the blacklist, nor where several have the name */
		fd = open_with(self->funcs[i], variant->flags, prog);
		if (fd < 0)
			continue;
		opened++;
		work();
		close(fd);
	}
	EXPECT_LT(kernel_is_slow() ? 50 : 100, opened);
	TH_LOG("%d functions", opened);
	EXPECT_EQ(2 * opened, event_count(probe));
	if (variant->prog)
		EXPECT_EQ(2 * opened, area_get(&self->area, 0));
}

TEST_F(all, at_once)
{
	int prog = variant->prog ? count_prog(&self->area, 1, 1) : -1;
	int i, opened = 0, probe;

	probe = open_with(FUNC, variant->flags,
			  variant->prog ? count_prog(&self->area, 0, 1) : -1);
	ASSERT_LE(0, probe);
	for (i = 0; i < self->nr; i++) {
		self->fds[i] = open_with(self->funcs[i], variant->flags, prog);
		opened += self->fds[i] >= 0;
	}
	EXPECT_LT(100, opened);
	for (i = 0; i < 50; i++)
		work();
	EXPECT_EQ(100, event_count(probe));
	if (variant->prog)
		EXPECT_EQ(100, area_get(&self->area, 0));
	for (i = 0; i < self->nr; i++) {
		if (self->fds[i] >= 0)
			close(self->fds[i]);
	}
}

TEST_HARNESS_MAIN
