// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching and closing raw tracepoints and tracing programs against hits,
 * against each other, and against a module that comes and goes
 */
#include "common.h"
#include "hitter.h"
#include "link.h"
#include "raw_tp.h"
#include "tracing.h"
#include "uprobe.h"
#include "filter.h"
#include "module.h"

FIXTURE(race_tracing) {
	struct area area;
	struct hitters hitters;
	__u32 btf_id;
};

FIXTURE_VARIANT(race_tracing) {
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	const char *name;
};

FIXTURE_VARIANT_ADD(race_tracing, raw_tp) {
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT, .name = "sys_enter",
};

FIXTURE_VARIANT_ADD(race_tracing, tp_btf) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_RAW_TP, .name = "sys_enter",
};

FIXTURE_VARIANT_ADD(race_tracing, fentry) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_FENTRY, .name = FUNC,
};

FIXTURE_VARIANT_ADD(race_tracing, fexit) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_TRACE_FEXIT, .name = FUNC,
};

FIXTURE_VARIANT_ADD(race_tracing, fmod_ret) {
	.type = BPF_PROG_TYPE_TRACING, .attach = BPF_MODIFY_RETURN, .name = FUNC,
};

FIXTURE_SETUP(race_tracing)
{
	SKIP_WITHOUT(return, tracing_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	if (variant->type == BPF_PROG_TYPE_TRACING)
		self->btf_id = target_id(variant->attach, variant->name);
	ASSERT_EQ(0, hitters_start(&self->hitters, &self->area, 0));
}

FIXTURE_TEARDOWN_PARENT(race_tracing)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Attaches a program and drops it */
static int race_attach(const FIXTURE_VARIANT(race_tracing) * variant, int prog)
{
	int fd = variant->attach ? tracing_open(prog) : raw_tp_open(prog, variant->name, 0);

	close(prog);
	return fd;
}

TEST_F(race_tracing, attach_and_close_against_hits)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = race_attach(variant, number_prog_load(&self->area, variant->type,
							   variant->attach, self->btf_id, 0));
		ok = hitters_close(&self->hitters, fd, !(n % 2));
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

TEST_F(race_tracing, close_against_running_programs)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = race_attach(variant, busy_prog_load(&self->area, variant->type,
							 variant->attach, self->btf_id));
		ok = fd >= 0 && hitters_wait_run(&self->hitters);
		/* Both CPUs are likely in it now */
		close(fd);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* Slot 1: the hits of the thread that loads it */
static int thread_prog(union bpf_attr *attr, struct area *area)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_MOV32_REG(BPF_REG_0, BPF_REG_0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, syscall(__NR_gettid), 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/*
 * A program can be preempted: the hit of another task on this CPU is a miss
 * then, until the program goes on. A task that sleeps lets it.
 */
static bool hit_is_seen(struct area *area)
{
	__u64 before = area_get(area, 1);
	int tries;

	for (tries = 0; tries < 20 && area_get(area, 1) == before; tries++) {
		if (tries)
			sleep_ms(1);
		hit();
	}
	return area_get(area, 1) > before;
}

/* One that stays misses nothing when others come and go */
TEST_F(race_tracing, others_come_and_go)
{
	__u64 end = deadline();
	union bpf_attr attr;
	int fd, n, ok = 1;

	load_attr(&attr, variant->type, variant->attach, self->btf_id);
	ASSERT_LE(0, race_attach(variant, thread_prog(&attr, &self->area)));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = race_attach(variant, number_prog_load(&self->area, variant->type,
							   variant->attach, self->btf_id, 0));
		ok = fd >= 0 && hit_is_seen(&self->area) && hitters_wait_run(&self->hitters);
		close(fd);
		ok &= hit_is_seen(&self->area);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* Children attach programs of their own, and exit or are killed without a close() */
TEST_F(race_tracing, fork_and_exit)
{
	__u64 end = deadline();
	pid_t children[4];
	int i, programs, status, n = 0;

	do {
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			children[i] = fork();
			ASSERT_LE(0, children[i]);
			if (children[i])
				continue;
			/* A function has room for 38 */
			for (programs = 0; programs <= i % 2 * 8; programs++) {
				if (race_attach(variant,
						number_prog_load(&self->area, variant->type,
								 variant->attach,
								 self->btf_id, 0)) < 0)
					_exit(1);
				hits(5);
			}
			_exit(0);
		}
		sleep_ms(1 + n++ % 7 * 5);
		for (i = 0; i < ARRAY_SIZE(children); i++) {
			if (i % 2)
				kill(children[i], SIGKILL);
			status = child_status(children[i]);
			EXPECT_TRUE(!status || (i % 2 && status == -SIGKILL));
		}
	} while (now_ns() < end);
	EXPECT_TRUE(hitters_check_gone(&self->hitters));
	hitters_stop(&self->hitters);
}

/* A tracepoint whose module is loaded and removed all the time */

FIXTURE(race_module) {
	struct area area;
	const char *path;
	bool stop;
};

FIXTURE_SETUP(race_module)
{
	SKIP_WITHOUT(return, prepare());
	self->path = sample_module();
	if (!self->path)
		SKIP(return, "CONFIG_SAMPLE_TRACE_EVENTS=m");
	sample_unload();
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(race_module)
{
	sample_unload();
	EXPECT_STREQ("nothing", leftovers());
}

static void *load_and_unload(void *arg)
{
	FIXTURE_DATA(race_module) * self = arg;

	while (!__atomic_load_n(&self->stop, __ATOMIC_SEQ_CST)) {
		load_module(self->path);
		sched_yield();
		sample_unload();
	}
	return NULL;
}

TEST_F(race_module, open_against_load_and_unload)
{
	int fd, prog = sample_prog(&self->area, 0), opened = 0, absent = 0, other = 0;
	__u64 end = deadline();
	pthread_t thread;

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, pthread_create(&thread, NULL, load_and_unload, self));
	do {
		fd = raw_tp_open(prog, "foo_bar", 0);
		opened += fd >= 0;
		absent += fd == -ENOENT;
		other += fd < 0 && fd != -ENOENT;
		if (fd >= 0)
			close(fd);
	} while (!other && (!opened || !absent || now_ns() < end));
	__atomic_store_n(&self->stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, other);
	/* Nothing holds the module any more */
	load_module(self->path);
	EXPECT_EQ(0, sample_unload());
}

TEST_HARNESS_MAIN
