// SPDX-License-Identifier: GPL-2.0
/*
 * Links to many functions that come and go against hits, against each other,
 * and against tasks, CPUs and modules that do the same
 */
#include "common.h"
#include "hitter.h"
#include "module.h"
#include "umulti.h"

#define CPU1 "/sys/devices/system/cpu/cpu1/online"
#define THREADS 3

/* All functions, of either kind */
struct funcs {
	enum bpf_attach_type attach;
	struct multi multi;
	struct umulti umulti;
};

FIXTURE(race) {
	struct area area;
	struct hitters hitters;
	struct funcs funcs;
};

FIXTURE_VARIANT(race) {
	enum bpf_attach_type attach;
	__u32 flags;
	int ends;	/* of a call, on each of which a program runs */
};

FIXTURE_VARIANT_ADD(race, kprobe_entry) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = 0,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(race, kprobe_return) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(race, kprobe_session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
	.ends = 2,
};

FIXTURE_VARIANT_ADD(race, uprobe_entry) {
	.attach = BPF_TRACE_UPROBE_MULTI,
	.flags = 0,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(race, uprobe_return) {
	.attach = BPF_TRACE_UPROBE_MULTI,
	.flags = BPF_F_UPROBE_MULTI_RETURN,
	.ends = 1,
};

FIXTURE_VARIANT_ADD(race, uprobe_session) {
	.attach = BPF_TRACE_UPROBE_SESSION,
	.flags = 0,
	.ends = 2,
};

FIXTURE_SETUP(race)
{
	SKIP_WITHOUT(return, multi_prepare() ?: uprobe_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	self->funcs.attach = variant->attach;
	multi_init(&self->funcs.multi, variant->attach, variant->flags, false);
	umulti_init(&self->funcs.umulti, variant->flags);
	self->funcs.umulti.attach = variant->attach;
}

FIXTURE_TEARDOWN_PARENT(race)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Links the program to the functions, the one that hit_any() calls included */
static int link_all(const struct funcs *funcs, int prog)
{
	if (funcs->attach == BPF_TRACE_UPROBE_MULTI || funcs->attach == BPF_TRACE_UPROBE_SESSION)
		return umulti_link(&funcs->umulti, prog);
	return multi_link(&funcs->multi, prog);
}

static long hit_any(int arg)
{
	return user_func1(arg) + hit_arg(arg);
}

TEST_F(race, link_and_close_against_hits)
{
	__u64 end = deadline();
	int link, prog, n, ok = 1;

	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0, hit_any));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = number_prog_as(&self->area, variant->attach, 0);
		link = link_all(&self->funcs, prog);
		close(prog);
		ok = hitters_close(&self->hitters, link, !(n % 2));
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

TEST_F(race, close_against_running_programs)
{
	__u64 end = deadline();
	int link, prog, n, ok = 1;

	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0, hit_any));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		prog = busy_prog_as(&self->area, variant->attach);
		link = link_all(&self->funcs, prog);
		close(prog);
		ok = link >= 0 && hitters_wait_run(&self->hitters);
		/* Both CPUs are likely in it now */
		close(link);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* Links that stay lose no hit */
TEST_F(race, others_come_and_go)
{
	int i, link, other, n, stay[2], ok = 1;
	__u64 hits = 0, end = deadline();

	for (i = 0; i < 2; i++) {
		stay[i] = count_prog_as(&self->area, i, 0, variant->attach);
		ASSERT_LE(0, link_all(&self->funcs, stay[i]));
	}
	other = number_prog_as(&self->area, variant->attach, 0);
	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0, hit_any));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		link = link_all(&self->funcs, other);
		ok = hitters_close(&self->hitters, link, true);
	}
	hitters_stop(&self->hitters);
	EXPECT_TRUE(ok);

	for (i = 0; i < self->hitters.n; i++)
		hits += area_get(&self->area, NUMBER + i);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(hits * variant->ends, area_get(&self->area, i));
		EXPECT_EQ(0, misses(stay[i]));
	}
}

struct crowd {
	const struct funcs *funcs;
	struct area *area;
	__u64 end;
	int next, rounds, bad;
};

/* Links, hits and closes, again and again, with a slot that nobody else has */
static void *come_and_go(void *arg)
{
	struct crowd *c = arg;
	struct area *area = c->area;
	int me = __atomic_fetch_add(&c->next, 1, __ATOMIC_SEQ_CST);
	int i, n, link, prog, bad = 0;
	__u64 seen = 0;

	prog = count_prog_as(area, me, 0, c->funcs->attach);
	for (n = 0; n < 2 || now_ns() < c->end; n++) {
		link = link_all(c->funcs, prog);
		bad |= link < 0 || area_get(area, me) < seen;
		seen = area_get(area, me);
		for (i = 0; i < 3; i++)
			hit_any(me);
		bad |= area_get(area, me) < seen + 3;
		close(link);
		seen = area_get(area, me);
		sched_yield();
	}
	close(prog);
	__atomic_fetch_add(&c->rounds, n, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&c->bad, bad, __ATOMIC_SEQ_CST);
	return NULL;
}

TEST_F(race, several_threads_link)
{
	struct crowd crowd = {
		.funcs = &self->funcs, .area = &self->area, .end = deadline(),
	};
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, come_and_go, &crowd));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, crowd.bad);
	EXPECT_LE(2 * THREADS, crowd.rounds);
}

static void own_links(const struct funcs *funcs, struct area *area, bool more)
{
	do {
		if (link_all(funcs, count_prog_as(area, 0, 0, funcs->attach)) < 0)
			_exit(1);
		hit_any(0);
	} while (more);
	_exit(0);
}

/* Children have links of their own, and exit or are killed without a close() */
TEST_F(race, owners_exit_or_are_killed)
{
	__u64 end = deadline(), before;
	pid_t children[4];
	int i, n;

	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 1, hit_any));
	for (n = 0; n < 2 || now_ns() < end; n++) {
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			ASSERT_LE(0, children[i]);
			if (!children[i])
				own_links(&self->funcs, &self->area, i % 2);
		}
		sleep_ms(1 + n % 7 * 5);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			if (i % 2)
				kill(children[i], SIGKILL);
		}
		for (i = 0; i < ARRAY_SIZE(children); i++)
			EXPECT_EQ(i % 2 ? -SIGKILL : 0, child_status(children[i]));
	}
	hitters_stop(&self->hitters);
	before = area_get(&self->area, 0);
	for (i = 0; i < 3; i++)
		hit_any(0);
	EXPECT_EQ(before, area_get(&self->area, 0));
}

TEST_F(race, cpu_goes_and_comes)
{
	__u64 end = deadline(), runs;
	int prog, link, i, n;

	if (access(CPU1, F_OK))
		SKIP(return, "CONFIG_HOTPLUG_CPU");
	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 2, hit_any));
	for (n = 0; n < 2 || now_ns() < end; n++) {
		prog = number_prog_as(&self->area, variant->attach, 0);
		link = link_all(&self->funcs, prog);
		ASSERT_LE(0, link);
		EXPECT_TRUE(hitters_wait_run(&self->hitters));
		ASSERT_EQ(0, write_file(CPU1, 0, "0"));
		EXPECT_TRUE(hitters_wait_run(&self->hitters));
		if (n % 2) {
			close(link);
			EXPECT_TRUE(hitters_check_gone(&self->hitters));
		}
		ASSERT_EQ(0, write_file(CPU1, 0, "1"));
		if (!(n % 2)) {
			EXPECT_TRUE(hitters_wait_run(&self->hitters));
			close(link);
			EXPECT_TRUE(hitters_check_gone(&self->hitters));
		}
		close(prog);
	}
	hitters_stop(&self->hitters);
	runs = area_get(&self->area, RUNS);
	for (i = 0; i < 3; i++)
		hit_any(0);
	EXPECT_EQ(runs, area_get(&self->area, RUNS));
}

/* A module against links to its function */

struct loader {
	const char *path;
	bool stop;
};

FIXTURE(module) {
	struct area area;
	struct loader loader;
};

FIXTURE_VARIANT(module) {
	enum bpf_attach_type attach;
	__u32 flags;
};

FIXTURE_VARIANT_ADD(module, entry) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = 0,
};

FIXTURE_VARIANT_ADD(module, return) {
	.attach = BPF_TRACE_KPROBE_MULTI,
	.flags = BPF_F_KPROBE_MULTI_RETURN,
};

FIXTURE_VARIANT_ADD(module, session) {
	.attach = BPF_TRACE_KPROBE_SESSION,
	.flags = 0,
};

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT(return, module_prepare(&self->loader.path));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(module)
{
	module_unload();
	EXPECT_STREQ("nothing", leftovers());
	EXPECT_EQ(-ENOENT, module_unload());
}

static void *load_and_unload(void *arg)
{
	struct loader *l = arg;
	int n;

	for (n = 0; !__atomic_load_n(&l->stop, __ATOMIC_SEQ_CST); n++) {
		load_module(l->path);
		sleep_ms(n % 5 * 20);
		module_hit();
		module_unload();
	}
	return NULL;
}

TEST_F(module, comes_and_goes)
{
	int link, prog, linked = 0, absent = 0;
	__u64 before, end = deadline();
	pthread_t thread;

	prog = tally_prog(&self->area, variant->attach, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, load_and_unload, &self->loader));
	while (linked < 2 || !absent || now_ns() < end) {
		link = multi_link_one(MODULE_FUNC, variant->attach, variant->flags,
				      prog);
		if (link < 0) {
			absent++;
			/* Gone, or going */
			ASSERT_TRUE(link == -ESRCH || link == -EINVAL);
			continue;
		}
		/* It cannot go now */
		linked++;
		before = area_get(&self->area, TALLY_RUNS);
		/* It may be there before its file is */
		EXPECT_TRUE(wait_until(!module_hit()));
		EXPECT_LT(before, area_get(&self->area, TALLY_RUNS));
		close(link);
	}
	__atomic_store_n(&self->loader.stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
