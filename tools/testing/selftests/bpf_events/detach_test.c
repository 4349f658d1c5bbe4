// SPDX-License-Identifier: GPL-2.0
/*
 * What holds as soon as close() has returned, or a process with its descriptors
 * has been waited for: the program does not run, the place can be probed anew,
 * the module can go.  What is freed later does get freed.
 */
#include "common.h"
#include "hitter.h"
#include "module.h"
#include "multi.h"
#include "umulti.h"

enum way { BY_EVENT, BY_LINK, BY_MULTI };

struct detach {
	enum way way;
	enum bpf_attach_type attach;
	unsigned int flags;	/* of the probe, or of the multi link */
};

FIXTURE(detach) {
	struct probe probe;
	struct area area;
	struct hitters hitters;
	int prog;
};

FIXTURE_VARIANT(detach) {
	struct detach how;
};

FIXTURE_VARIANT_ADD(detach, kprobe_event) {
	.how = { BY_EVENT },
};

FIXTURE_VARIANT_ADD(detach, kprobe_pmu) {
	.how = { BY_EVENT, 0, PROBE_PMU },
};

FIXTURE_VARIANT_ADD(detach, kretprobe_pmu) {
	.how = { BY_EVENT, 0, PROBE_PMU | PROBE_RETURN },
};

FIXTURE_VARIANT_ADD(detach, kprobe_pmu_link) {
	.how = { BY_LINK, 0, PROBE_PMU },
};

FIXTURE_VARIANT_ADD(detach, uprobe_pmu) {
	.how = { BY_EVENT, 0, PROBE_PMU | PROBE_USER },
};

FIXTURE_VARIANT_ADD(detach, uretprobe_pmu_link) {
	.how = { BY_LINK, 0, PROBE_PMU | PROBE_USER | PROBE_RETURN },
};

FIXTURE_VARIANT_ADD(detach, kprobe_multi) {
	.how = { BY_MULTI, BPF_TRACE_KPROBE_MULTI },
};

FIXTURE_VARIANT_ADD(detach, kretprobe_multi) {
	.how = { BY_MULTI, BPF_TRACE_KPROBE_MULTI, BPF_F_KPROBE_MULTI_RETURN },
};

FIXTURE_VARIANT_ADD(detach, kprobe_session) {
	.how = { BY_MULTI, BPF_TRACE_KPROBE_SESSION },
};

FIXTURE_VARIANT_ADD(detach, uprobe_multi) {
	.how = { BY_MULTI, BPF_TRACE_UPROBE_MULTI },
};

FIXTURE_VARIANT_ADD(detach, uretprobe_multi) {
	.how = { BY_MULTI, BPF_TRACE_UPROBE_MULTI, BPF_F_UPROBE_MULTI_RETURN },
};

static bool is_user(const struct detach *how)
{
	return how->way == BY_MULTI ? how->attach == BPF_TRACE_UPROBE_MULTI :
				      how->flags & PROBE_USER;
}

static int attach_how(const struct detach *how, const struct probe *probe, int prog)
{
	if (how->way == BY_MULTI && is_user(how))
		return umulti_link_one(user_func, how->attach, how->flags, 0, prog);
	if (how->way == BY_MULTI)
		return multi_link_one(FUNC, how->attach, how->flags, prog);
	return attach_by(probe, how->way == BY_LINK, prog);
}

static int create_how(const struct detach *how, struct probe *probe)
{
	if (how->way == BY_MULTI)
		return 0;
	return is_user(how) ? uprobe_create(probe, how->flags) : probe_create(probe, how->flags);
}

/* How many go together */
static int many(const struct detach *how)
{
	return some(how->way == BY_MULTI ? 10 : 30);
}

FIXTURE_SETUP(detach)
{
	const struct detach *how = &variant->how;
	bool kernel_multi = how->way == BY_MULTI && !is_user(how);

	SKIP_WITHOUT(return, kernel_multi ? multi_prepare() : uprobe_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, create_how(how, &self->probe));
	self->prog = number_prog_as(&self->area, how->attach, 0);
	ASSERT_LE(0, self->prog);
	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0,
					is_user(how) ? user_hit_arg : hit_arg));
}

FIXTURE_TEARDOWN_PARENT(detach)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(detach, counter_stands_still_after_close)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 3 || now_ns() < end); n++) {
		fd = attach_how(&variant->how, &self->probe, self->prog);
		ok = hitters_close(&self->hitters, fd, !(n % 2));
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

/* Exits, or waits for the signal that ends it, with many attachments */
static void attach_many_and_go(const struct detach *how, const struct probe *probe,
			       int prog, bool wait, int ready)
{
	struct probe own = *probe;
	int i;

	/* One event of tracefs has room for fewer, and runs a program once */
	if (how->way != BY_MULTI && !(how->flags & PROBE_PMU))
		own.flags |= PROBE_PMU;
	for (i = 0; i < many(how); i++) {
		if (attach_how(how, &own, prog) < 0)
			_exit(1);
	}
	if (write(ready, "", 1) != 1)
		_exit(1);
	while (wait)
		pause();
	_exit(0);
}

static bool many_go(const struct detach *how, FIXTURE_DATA(detach) * self, bool by_signal)
{
	int ready[2], status;
	pid_t child;
	char c;

	if (pipe(ready))
		return false;
	child = fork();
	if (!child) {
		close(ready[0]);
		attach_many_and_go(how, &self->probe, self->prog, by_signal, ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		return false;
	close(ready[0]);
	if (by_signal && (!hitters_wait_run(&self->hitters) || kill(child, SIGKILL)))
		return false;
	status = child_status(child);
	return status == (by_signal ? -SIGKILL : 0) && hitters_check_gone(&self->hitters);
}

TEST_F(detach, many_go_by_exit)
{
	EXPECT_TRUE(many_go(&variant->how, self, false));
	hitters_stop(&self->hitters);
}

TEST_F(detach, many_go_by_sigkill)
{
	EXPECT_TRUE(many_go(&variant->how, self, true));
	hitters_stop(&self->hitters);
}

TEST_F(detach, function_can_be_probed_again_at_once)
{
	int fd, n, ok = 1;

	for (n = 0; ok && n < many(&variant->how) / 2; n++) {
		fd = attach_how(&variant->how, &self->probe, self->prog);
		ok = fd >= 0 && hitters_wait_run(&self->hitters);
		close(fd);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
}

/* What the kernel has allocated, in KiB */
static __u64 allocated(void)
{
	static const char * const names[] = { "Slab:", "Percpu:" };
	char line[128];
	__u64 sum = 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (find_line("/proc/meminfo", names[i], line, sizeof(line)))
			sum += strtoull(line + strlen(names[i]), NULL, 10);
	}
	return sum;
}

static int attach_often(const struct detach *how, struct probe *probe, int prog,
			unsigned int times)
{
	int fd;

	while (times--) {
		fd = attach_how(how, probe, prog);
		if (fd < 0)
			return fd;
		close(fd);
	}
	return 0;
}

/* It is freed a while later, in its own time; there are more rounds */
static bool comes_down_to(__u64 most)
{
	__u64 end = now_ns() + PATIENCE_NS / 6;

	while (allocated() > most && now_ns() < end)
		sleep_ms(100);
	return allocated() <= most;
}

/*
 * Each attachment is more than a KiB: what remains of a few is not seen, of all
 * it is. With KASAN, which keeps what is freed, this is for kmemleak to say.
 */
TEST_F(detach, memory_comes_back)
{
	unsigned int times = rounds(variant->how.way == BY_MULTI ? 30 : 90), n;
	bool back = !access(DEBUGFS "/kmemleak", F_OK);
	__u64 most, room = times / 2 < 1024 ? times / 2 : 1024;

	hitters_stop(&self->hitters);
	/* Where it is armed for others, all goes quicker */
	ASSERT_LE(0, hold_function());
	/* What is kept for the next one is there from then on */
	ASSERT_EQ(0, attach_often(&variant->how, &self->probe, self->prog, times / 3));
	/* Others allocate, too, once in a while: what leaks does each time */
	for (n = 0; n < 4 && (!n || !back); n++) {
		most = allocated() + room;
		ASSERT_EQ(0, attach_often(&variant->how, &self->probe, self->prog, times));
		back = back || comes_down_to(most);
	}
	EXPECT_TRUE(back);
}

FIXTURE(detach_module) {
	struct area area;
	const char *path;
};

FIXTURE_SETUP(detach_module)
{
	SKIP_WITHOUT(return, module_prepare(&self->path));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(detach_module)
{
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

TEST_F(detach_module, goes_at_once)
{
	const unsigned int flags[] = { 0, PROBE_RETURN, PROBE_PMU, PROBE_PMU | PROBE_RETURN };
	int prog = count_prog(&self->area, 0, 0), fd;
	struct probe probe;
	unsigned int i;

	for (i = 0; i < 3 * ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(0, load_module(self->path));
		ASSERT_EQ(0, probe_create_at(&probe, "event", MODULE_FUNC, 0,
					     flags[i % ARRAY_SIZE(flags)]));
		fd = attach(&probe, prog);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, module_hit());
		EXPECT_EQ(i + 1, area_get(&self->area, 0));
		close(fd);
		ASSERT_EQ(0, module_unload());
		if (!(probe.flags & PROBE_PMU))
			ASSERT_EQ(0, event_remove("event"));
	}
}

TEST_F(detach_module, goes_at_once_after_multi)
{
	int prog = count_prog_as(&self->area, 0, 0, BPF_TRACE_KPROBE_MULTI), link;
	unsigned int i;

	if (multi_prepare())
		SKIP(return, "CONFIG_FPROBE");
	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, load_module(self->path));
		link = multi_link_one(MODULE_FUNC, BPF_TRACE_KPROBE_MULTI,
				      i % 2 ? BPF_F_KPROBE_MULTI_RETURN : 0, prog);
		ASSERT_LE(0, link);
		ASSERT_EQ(0, module_hit());
		EXPECT_EQ(i + 1, area_get(&self->area, 0));
		close(link);
		ASSERT_EQ(0, module_unload());
	}
}

TEST_HARNESS_MAIN
