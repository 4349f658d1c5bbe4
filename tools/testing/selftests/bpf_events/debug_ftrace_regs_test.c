// SPDX-License-Identifier: GPL-2.0
/*
 * A task is preempted in ftrace_caller, which saves some registers only, right before that
 * calls on. Meanwhile the tracers of its function go, and a kprobe comes, which needs them
 * all: the task was in the function before, and does not hit it. For kernels with
 * CONFIG_PREEMPT.
 */
#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <pthread.h>

#include "common.h"
#include "filter.h"
#include "ring.h"

#define EVENT GROUP "/event"

FIXTURE(regs) {
	int breakpoint;
	struct ring ring;
	int begin[2];		/* a pipe */
	pid_t exchanger, idler;
	bool done;
	bool gone_on;		/* the call */
	bool too_late;		/* it had, when the kprobe was there */
	int err, idle_err;
};

static int trace_by(const char *instance, const char *tracer)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/current_tracer", instance);
	return write_file(path, 0, "%s", tracer);
}

/* Two that are no kprobes make it call ftrace_caller, which calls all there are */
static int trace_func(const char *func)
{
	return write_file(TRACEFS "/set_ftrace_filter", O_TRUNC, "%s", func) ?:
	       write_file(INSTANCE "/set_ftrace_filter", O_TRUNC, "%s", func) ?:
	       trace_by(TRACEFS, "function") ?: trace_by(INSTANCE, "function_graph");
}

static int trace_nothing(void)
{
	return trace_by(INSTANCE, "nop") ?: trace_by(TRACEFS, "nop");
}

FIXTURE_SETUP(regs)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr), .sample_period = 1,
		.wakeup_events = 1, .bp_type = HW_BREAKPOINT_X, .bp_len = sizeof(long),
		.bp_addr = ksym("ftrace_call"),
	};

	SKIP_WITHOUT(return, filter_prepare());
	if (!kernel_preempts())
		SKIP(return, "CONFIG_PREEMPT");
	if (!attr.bp_addr)
		SKIP(return, "no ftrace_call in ftrace_caller");
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, event_add("event", "p " FUNC));
	self->breakpoint = perf_open(&attr, 0, -1);
	ASSERT_LE(0, self->breakpoint);
	ASSERT_EQ(0, ring_map(&self->ring, self->breakpoint));
	ASSERT_EQ(0, trace_func(FUNC));
}

FIXTURE_TEARDOWN_PARENT(regs)
{
	event_enable(TRACEFS, EVENT, false);
	trace_nothing();
	write_file(TRACEFS "/set_ftrace_filter", O_TRUNC, "");
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static int be_urgent(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return -pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

/* Keeps the call waiting also where exchange() sleeps */
static void *keep_cpu(void *arg)
{
	FIXTURE_DATA(regs) * self = arg;
	char byte;

	self->idle_err = be_urgent(2);
	__atomic_store_n(&self->idler, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	if (read(self->begin[0], &byte, 1) == 1)
		spin_until(__atomic_load_n(&self->done, __ATOMIC_SEQ_CST));
	return NULL;
}

/* On the CPU of the call, which is not as urgent */
static void *exchange(void *arg)
{
	FIXTURE_DATA(regs) * self = arg;
	struct pollfd poller = { .fd = self->breakpoint, .events = POLLIN };

	self->err = be_urgent(3);
	__atomic_store_n(&self->exchanger, syscall(__NR_gettid), __ATOMIC_SEQ_CST);
	if (poll(&poller, 1, PATIENCE_NS / 1000000) != 1)
		self->err = -ETIME;
	if (write(self->begin[1], "", 1) != 1)
		self->err = -EIO;
	ioctl(self->breakpoint, PERF_EVENT_IOC_DISABLE, 0);
	self->err = self->err ?: trace_nothing() ?: event_enable(TRACEFS, EVENT, true);
	self->too_late = __atomic_load_n(&self->gone_on, __ATOMIC_SEQ_CST);
	__atomic_store_n(&self->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool both_sleep(const FIXTURE_DATA(regs) * self)
{
	pid_t exchanger = __atomic_load_n(&self->exchanger, __ATOMIC_SEQ_CST);
	pid_t idler = __atomic_load_n(&self->idler, __ATOMIC_SEQ_CST);

	return exchanger && sleeps(exchanger) && idler && sleeps(idler);
}

TEST_F(regs, are_not_all_there)
{
	unsigned long hits = 0, missed = 0;
	pthread_t thread, busy;

	ASSERT_EQ(0, pipe(self->begin));
	ASSERT_EQ(0, pthread_create(&busy, NULL, keep_cpu, self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, exchange, self));
	ASSERT_TRUE(wait_until(both_sleep(self)));
	ASSERT_EQ(0, be_urgent(1));
	hit();
	__atomic_store_n(&self->gone_on, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	pthread_join(busy, NULL);
	ASSERT_EQ(0, self->err);
	ASSERT_EQ(0, self->idle_err);
	ASSERT_FALSE(self->too_late);
	EXPECT_EQ(0, records(TRACEFS));
	ASSERT_TRUE(event_profile("event", &hits, &missed));
	EXPECT_EQ(0, hits);
	EXPECT_EQ(0, missed);
	hit();
	EXPECT_EQ(1, records(TRACEFS));
}

TEST_HARNESS_MAIN
