// SPDX-License-Identifier: GPL-2.0
/*
 * Filters come and go while their event is hit, is enabled and disabled, and
 * goes itself
 */
#include "common.h"
#include "uprobe.h"
#include "filter.h"
#include "hitter.h"
#include "module.h"

#define WRITERS 3

FIXTURE(race) {
	const char *event;
	struct area area;
	struct hitters hitters;
};

FIXTURE_VARIANT(race) {
	const struct kind *kind;
	long (*hit)(int arg);
};

FIXTURE_VARIANT_ADD(race, kprobe) { .kind = &kprobe_kind, .hit = hit_arg };
FIXTURE_VARIANT_ADD(race, kretprobe) { .kind = &kretprobe_kind, .hit = hit_arg };
FIXTURE_VARIANT_ADD(race, uprobe) { .kind = &uprobe_kind, .hit = user_hit_arg };
FIXTURE_VARIANT_ADD(race, sys_enter) { .kind = &sys_enter_kind, .hit = hit_arg };

/* All system calls, of which the hitters make one after another */
static const struct kind raw_syscall_kind = {
	.event = "raw_syscalls/sys_enter",
	.type = BPF_PROG_TYPE_RAW_TRACEPOINT,
	.hit = hit,
};

FIXTURE_VARIANT_ADD(race, tracepoint) { .kind = &raw_syscall_kind, .hit = hit_arg };
FIXTURE_VARIANT_ADD(race, sys_exit) { .kind = &sys_exit_kind, .hit = hit_arg };

FIXTURE_SETUP(race)
{
	SKIP_WITHOUT(return, filter_prepare());
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	self->event = variant->kind->event;
	ASSERT_EQ(0, kind_create(variant->kind));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, hitters_start_with(&self->hitters, &self->area, 0, variant->hit));
}

FIXTURE_TEARDOWN_PARENT(race)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Attaches a program that numbers the hits, and which only the filter holds */
static int attach_numbers(struct area *area, const struct kind *kind)
{
	int prog = number_prog_of(area, kind->type);
	int fd = filter_attach(INSTANCE, kind->event, prog);

	close(prog);
	return fd;
}

TEST_F(race, close_against_hits)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = attach_numbers(&self->area, variant->kind);
		ok = hitters_close(&self->hitters, fd, !(n % 2));
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
	EXPECT_STREQ("0", event_text(INSTANCE, self->event, "enable"));
	/* It has turned down everything, and the event was on for it alone */
	EXPECT_EQ(0, all_records(INSTANCE));
}

/* Once a filter is there, nothing is recorded that it has not seen */
TEST_F(race, attach_against_hits)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		ASSERT_EQ(0, event_enable(INSTANCE, self->event, true));
		fd = attach_numbers(&self->area, variant->kind);
		ok = fd >= 0 && !write_file(INSTANCE "/trace", O_TRUNC, "") &&
		     hitters_wait_run(&self->hitters) && !all_records(INSTANCE) &&
		     !event_enable(INSTANCE, self->event, false);
		close(fd);
		/* Nor when it goes shortly after the event was disabled */
		ok &= !all_records(INSTANCE);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* The event stays enabled, so that hits find their way to the filter to the end */
TEST_F(race, removal_by_id_against_hits)
{
	int prog = number_prog_of(&self->area, variant->kind->type);
	__u64 end = deadline();
	int n, ok = 1;

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, event_enable(INSTANCE, self->event, true));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		ok = !filter_attach_id(INSTANCE, self->event, prog_id(prog)) &&
		     hitters_wait_run(&self->hitters) &&
		     !filter_clear(INSTANCE, self->event) &&
		     hitters_check_gone(&self->hitters);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
	EXPECT_STREQ("1", event_text(INSTANCE, self->event, "enable"));
}

static unsigned int recorded(void)
{
	FILE *file = fopen(INSTANCE "/trace", "re");
	unsigned int n = 0;
	char line[1024];

	if (!file)
		return ~0U;
	while (fgets(line, sizeof(line), file))
		n += *line != '#';
	fclose(file);
	return n;
}

/* The program turns down what it sees, and sees all there is until the event is off */
TEST_F(race, nothing_is_recorded_unseen)
{
	__u64 end = deadline();
	int fd, n, ok = 1;

	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = attach_numbers(&self->area, variant->kind);
		ok = fd >= 0 && hitters_wait_run(&self->hitters);
		close(fd);
	}
	EXPECT_TRUE(ok);
	hitters_stop(&self->hitters);
	EXPECT_EQ(0, recorded());
}

/* Threads that do something to the event until they are told to stop */
struct others {
	const char *event;
	int prog;
	bool stop;
	unsigned long done;
	int err;	/* one that should not be */
	pthread_t threads[WRITERS];
};

static void *writer(void *arg)
{
	struct others *o = arg;
	int fd;

	while (!__atomic_load_n(&o->stop, __ATOMIC_SEQ_CST)) {
		fd = filter_attach(INSTANCE, o->event, o->prog);
		if (fd >= 0) {
			__atomic_add_fetch(&o->done, 1, __ATOMIC_SEQ_CST);
			close(fd);
		} else if (fd != -EEXIST) {
			__atomic_store_n(&o->err, fd, __ATOMIC_SEQ_CST);
		}
	}
	return NULL;
}

static void *toggler(void *arg)
{
	struct others *o = arg;
	int n, err;

	for (n = 0; !__atomic_load_n(&o->stop, __ATOMIC_SEQ_CST); n++) {
		err = event_enable(INSTANCE, o->event, n % 2);
		if (err)
			__atomic_store_n(&o->err, err, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&o->done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static int others_start(struct others *o, int n, void *(*func)(void *))
{
	while (n--) {
		if (pthread_create(&o->threads[n], NULL, func, o))
			return -EAGAIN;
	}
	return 0;
}

static void others_stop(struct others *o, int n)
{
	__atomic_store_n(&o->stop, true, __ATOMIC_SEQ_CST);
	while (n--)
		pthread_join(o->threads[n], NULL);
}

TEST_F(race, writers)
{
	struct others others = { .event = self->event };
	__u64 end = deadline();

	others.prog = number_prog_of(&self->area, variant->kind->type);
	ASSERT_LE(0, others.prog);
	ASSERT_EQ(0, others_start(&others, WRITERS, writer));
	while (__atomic_load_n(&others.done, __ATOMIC_SEQ_CST) < 2 || now_ns() < end)
		sleep_ms(10);
	others_stop(&others, WRITERS);
	EXPECT_EQ(0, others.err);
	EXPECT_TRUE(hitters_check_gone(&self->hitters));
	hitters_stop(&self->hitters);
	EXPECT_STREQ("none", event_text(INSTANCE, self->event, "filter"));
	EXPECT_STREQ("0", event_text(INSTANCE, self->event, "enable"));
	EXPECT_EQ(0, all_records(INSTANCE));
}

TEST_F(race, enable_is_toggled)
{
	struct others others = { .event = self->event };
	__u64 end = deadline();
	int fd, n, ok = 1;

	ASSERT_EQ(0, others_start(&others, 1, toggler));
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		fd = attach_numbers(&self->area, variant->kind);
		ok = fd >= 0;
		if (n % 2)
			sleep_ms(1);
		close(fd);
		ok &= hitters_check_gone(&self->hitters);
	}
	others_stop(&others, 1);
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	EXPECT_LT(0, others.done);
	EXPECT_EQ(0, others.err);

	/* All works as ever */
	fd = attach_numbers(&self->area, variant->kind);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(hitters_wait_run(&self->hitters));
	close(fd);
	hitters_stop(&self->hitters);
	EXPECT_STREQ("none", event_text(INSTANCE, self->event, "filter"));
}

/* With a filter by id, which goes with its instance */
TEST_F(race, instance_comes_and_goes)
{
	int prog = number_prog_of(&self->area, variant->kind->type);
	__u64 end = deadline();
	int n, ok = 1;

	ASSERT_LE(0, prog);
	for (n = 0; ok && (n < 2 || now_ns() < end); n++) {
		ok = !filter_attach_id(INSTANCE, self->event, prog_id(prog)) &&
		     (n % 2 || hitters_wait_run(&self->hitters)) &&
		     !instance_remove(INSTANCE) &&
		     hitters_check_gone(&self->hitters) &&
		     !instance_create(INSTANCE);
	}
	EXPECT_TRUE(ok);
	EXPECT_LT(1, n);
	hitters_stop(&self->hitters);
}

/* The file is closed while the module goes */

FIXTURE(module) {
	struct area area;
	const char *path;
};

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->path = sample_module();
	if (!self->path)
		SKIP(return, NO_SAMPLE_MODULE);
	sample_unload();
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
}

FIXTURE_TEARDOWN_PARENT(module)
{
	sample_unload();
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static void *unloader(void *arg)
{
	*(int *)arg = sample_unload();
	return NULL;
}

TEST_F(module, unloaded_against_hits_and_close)
{
	int fd, prog, n, unloaded;
	__u64 end = deadline();
	pthread_t thread;

	for (n = 0; n < 2 || now_ns() < end; n++) {
		ASSERT_EQ(0, load_module(self->path));
		prog = sample_prog(&self->area, 0);
		fd = filter_attach(INSTANCE, SAMPLE_EVENT, prog);
		ASSERT_LE(0, fd);
		close(prog);
		EXPECT_TRUE(sample_wait_hit(&self->area, 0));
		ASSERT_EQ(0, pthread_create(&thread, NULL, unloader, &unloaded));
		/* It waits for the threads of the module, which are asleep */
		sleep_ms(n % 2 ? 1010 : 0);
		close(fd);
		pthread_join(thread, NULL);
		EXPECT_EQ(0, unloaded);
	}
}

TEST_HARNESS_MAIN
