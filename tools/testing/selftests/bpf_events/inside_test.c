// SPDX-License-Identifier: GPL-2.0
/*
 * Signals, fork, exec and death between the call of a probed function and its
 * return, in the kernel and in a process
 */
#include <setjmp.h>
#include <sys/time.h>

#include "common.h"
#include "link.h"
#include "hitter.h"
#include "ways.h"

#define EXECED "BPF_EVENTS_TEST_EXECED"

/* What is probed in this process; it returns when what it calls does */
static long inside(void (*func)(void))
{
	if (func)
		func();
	return 1;
}

/* This program again; it comes to execed() */
static void exec_self(void)
{
	setenv(EXECED, "1", 1);
	execl(SELF, SELF, NULL);
}

__attribute__((constructor)) static void execed(void)
{
	if (getenv(EXECED))
		_exit(inside(NULL) == 1 ? 0 : 1);
}

/* Ways to see functions of the kernel return, and who else sees them */

static bool is_return(const struct way *way)
{
	return way_exists(way) && way_sees_returns(way);
}

FIXTURE(kernel) {
	struct area area;
	int progs[WAYS];
	int fds[WAYS];
};

FIXTURE_SETUP(kernel)
{
	SKIP_WITHOUT(return, ways_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
}

FIXTURE_TEARDOWN_PARENT(kernel)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

#define KTHREADD 2	/* forks whenever the kernel wants a thread */

/* Counts every return in the slot of the way; entries are not returns */
static int return_prog(const struct way *way, const struct place *place, struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, KTHREADD, 4),
		AREA(BPF_REG_1, area, way - ways),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, place, insns, ARRAY_SIZE(insns));
}

static bool attach_returns(FIXTURE_DATA(kernel) * self, const char *func, bool fexit)
{
	const struct place place = { func };
	struct probe probe;
	unsigned int i;

	for (i = 0; i < WAYS; i++) {
		self->fds[i] = -1;
		if (!is_return(&ways[i]) || (ways[i].attach == BPF_TRACE_FEXIT && !fexit))
			continue;
		self->progs[i] = return_prog(&ways[i], &place, &self->area);
		if (way_create(&ways[i], &place, &probe))
			return false;
		self->fds[i] = way_attach(&ways[i], &place, &probe, self->progs[i]);
		if (self->fds[i] < 0)
			return false;
	}
	return true;
}

/* The way that has not seen so many returns, or that has missed some; "none" */
static const char *wrong(FIXTURE_DATA(kernel) * self, __u64 calls, __u64 returns)
{
	unsigned int i;
	__u64 seen;

	for (i = 0; i < WAYS; i++) {
		if (self->fds[i] < 0)
			continue;
		seen = returns;
		if (ways[i].attach == BPF_TRACE_KPROBE_SESSION)
			seen += calls;
		if (area_get(&self->area, i) != seen || misses(self->progs[i]))
			return ways[i].name;
	}
	return "none";
}

/* How many have come, which the session knows */
static __u64 entries(FIXTURE_DATA(kernel) * self)
{
	unsigned int i = 0;

	while (ways[i].attach != BPF_TRACE_KPROBE_SESSION)
		i++;
	return area_get(&self->area, i);
}

static void on_signal(int sig)
{
}

/* The call that the timer interrupts, again where it came too early for that */
static int wait_for_signal(void)
{
	const struct itimerval timer = {
		.it_value.tv_usec = 20000, .it_interval.tv_usec = 20000,
	};
	const struct itimerval off = {};
	struct sigaction action = { .sa_handler = on_signal };
	const struct timespec wait = { .tv_sec = 60 };
	sigset_t none;
	int err;

	sigemptyset(&none);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	err = neg_errno(sigtimedwait(&none, NULL, &wait));
	setitimer(ITIMER_REAL, &off, NULL);
	return err;
}

TEST_F(kernel, signal)
{
	int i;

	ASSERT_TRUE(attach_returns(self, WAIT_FUNC, true));
	for (i = 1; i <= 3; i++) {
		EXPECT_EQ(-EINTR, wait_for_signal());
		EXPECT_STREQ("none", wrong(self, i, i));
	}
}

/* It is on its way out of the function when it dies */
TEST_F(kernel, sigkill)
{
	const struct timespec wait = { .tv_sec = 60 };
	pid_t children[8];
	sigset_t none;
	int i;

	if (mainline())
		SKIP(return, "mainline's links see two calls under way for each CPU");
	sigemptyset(&none);
	ASSERT_TRUE(attach_returns(self, WAIT_FUNC, true));
	for (i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = fork();
		ASSERT_LE(0, children[i]);
		if (!children[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(sigtimedwait(&none, NULL, &wait));
		}
	}
	ASSERT_TRUE(wait_until(entries(self) >= ARRAY_SIZE(children)));
	ASSERT_STREQ("none", wrong(self, ARRAY_SIZE(children), 0));
	for (i = 0; i < ARRAY_SIZE(children); i++) {
		ASSERT_EQ(0, kill(children[i], SIGKILL));
		EXPECT_EQ(-SIGKILL, child_status(children[i]));
	}
	EXPECT_STREQ("none", wrong(self, ARRAY_SIZE(children), ARRAY_SIZE(children)));
}

TEST_F(kernel, exec)
{
	int i;

	ASSERT_TRUE(attach_returns(self, SYS_FUNC("execve"), true));
	for (i = 1; i <= 5; i++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child) {
			exec_self();
			_exit(1);
		}
		EXPECT_EQ(0, child_status(child));
		EXPECT_STREQ("none", wrong(self, i, i));
	}
	/* One that fails */
	EXPECT_EQ(-1, execl("/", "/", NULL));
	EXPECT_STREQ("none", wrong(self, i, i));
}

TEST_F(kernel, fork)
{
	pid_t child;

	ASSERT_TRUE(attach_returns(self, "kernel_clone", true));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(0);
	/* The child begins elsewhere */
	EXPECT_EQ(0, child_status(child));
	EXPECT_STREQ("none", wrong(self, 1, 1));
}

/* Have all ways noted these children, who exit in the function and do not return? */
static bool notes_exits(FIXTURE_DATA(kernel) * self, int children)
{
	__u64 missed[WAYS];
	bool all = true;
	unsigned int i;
	pid_t child;

	for (i = 0; i < WAYS; i++)
		missed[i] = self->fds[i] < 0 ? 0 : misses(self->progs[i]);
	while (children--) {
		child = fork();
		if (!child)
			_exit(0);
		all &= !child_status(child);
	}
	for (i = 0; i < WAYS; i++)
		all &= self->fds[i] < 0 || misses(self->progs[i]) == missed[i];
	return all;
}

/* What was set aside for their return is free again a while after their death */
TEST_F(kernel, exit)
{
	unsigned int i, n, ms;
	bool noted;

	/* The kernel lets nobody know when the trampoline of fexit can go */
	ASSERT_TRUE(attach_returns(self, SYS_FUNC("exit_group"), false));
	for (n = 0; n < 6; n++) {
		noted = false;
		for (ms = 25; !noted && ms < 20000; ms *= 2) {
			sleep_ms(ms);
			noted = notes_exits(self, 8);
		}
		EXPECT_TRUE(noted);
	}
	for (i = 0; i < WAYS; i++) {
		if (ways[i].attach != BPF_TRACE_KPROBE_SESSION)
			EXPECT_EQ(0, area_get(&self->area, i));
	}
}

/* Ways to see functions of a process return */

FIXTURE(user) {
	struct area area;
	int fds[UPROBE_WAYS];
	int nr;		/* of these, and of slots in which their programs count */
};

FIXTURE_SETUP(user)
{
	const struct way *way;
	int i, fd;

	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	for (i = 0; i < UPROBE_WAYS; i++) {
		way = &uprobe_ways[i];
		/* Not the session, which sees entries, too */
		if (!is_return(way) || way_runs(way) == 2)
			continue;
		fd = uprobe_way_attach(way, inside,
				       count_prog_as(&self->area, self->nr, 0, way->attach));
		ASSERT_LE(0, fd) TH_LOG("%s", way->name);
		self->fds[self->nr++] = fd;
	}
}

FIXTURE_TEARDOWN_PARENT(user)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Whether all have seen so many returns, and go on with the next */
static bool seen(FIXTURE_DATA(user) * self, __u64 returns)
{
	int i;

	for (i = 0; i < self->nr; i++) {
		if (area_get(&self->area, i) != returns)
			return false;
	}
	inside(NULL);
	for (i = 0; i < self->nr; i++) {
		if (area_get(&self->area, i) != returns + 1)
			return false;
	}
	return true;
}

static pid_t forked;

static void fork_here(void)
{
	forked = fork();
}

TEST_F(user, fork)
{
	/* Both return */
	inside(fork_here);
	if (!forked)
		_exit(0);
	EXPECT_EQ(0, child_status(forked));
	EXPECT_TRUE(seen(self, 2));
}

static void call_again(int sig)
{
	inside(NULL);
}

static void raise_signal(void)
{
	raise(SIGUSR1);
}

TEST_F(user, signal)
{
	struct sigaction action = { .sa_handler = call_again };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	EXPECT_EQ(1, inside(raise_signal));
	EXPECT_TRUE(seen(self, 2));
}

static unsigned int nested_calls;

static void nest(void)
{
	if (nested_calls--)
		inside(nest);
}

TEST_F(user, more_calls_than_are_followed)
{
	int i;

	if (mainline())
		SKIP(return, "mainline does not count what it misses there");
	nested_calls = MAX_DEPTH + 6 - 1;
	inside(nest);
	for (i = 0; i < self->nr; i++)
		EXPECT_EQ(6, fdinfo_number(self->fds[i], "bpf_prog_missed"));
	EXPECT_TRUE(seen(self, MAX_DEPTH));
	for (i = 0; i < self->nr; i++)
		EXPECT_EQ(6, fdinfo_number(self->fds[i], "bpf_prog_missed"));
}

static sigjmp_buf env;

static void jump_away(int sig)
{
	siglongjmp(env, 1);
}

/* More often than there is room for calls that have not returned */
TEST_F(user, jump_from_signal)
{
	struct sigaction action = { .sa_handler = jump_away };
	static int i;	/* not in a register, which the jump would restore */

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	for (i = 0; i < 200; i++) {
		if (!sigsetjmp(env, 1))
			inside(raise_signal);
	}
	EXPECT_TRUE(seen(self, 0));
}

static void wait_forever(void)
{
	for (;;)
		pause();
}

TEST_F(user, sigkill)
{
	pid_t child;
	int i;

	for (i = 0; i < 5; i++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			inside(wait_forever);
		}
		/* At any time, and when it is there for sure */
		sleep_ms(i);
		if (i == 4)
			ASSERT_TRUE(wait_until(sleeps(child)));
		ASSERT_EQ(0, kill(child, SIGKILL));
		EXPECT_EQ(-SIGKILL, child_status(child));
	}
	EXPECT_TRUE(seen(self, 0));
}

static void exit_here(void)
{
	_exit(3);
}

TEST_F(user, exit)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child)
		inside(exit_here);
	EXPECT_EQ(3, child_status(child));
	EXPECT_TRUE(seen(self, 0));
}

/* Nobody returns to the old program; the new one hits, too */
TEST_F(user, exec)
{
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		inside(exec_self);
		_exit(1);
	}
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(seen(self, 1));
}

/* The probe goes while calls are under way; they return all the same */
static int inside_pipe[2];

static void wait_for_byte(void)
{
	char c;

	if (read(inside_pipe[0], &c, 1) != 1)
		_exit(2);
}

TEST_F(user, close)
{
	pid_t child;
	int i;

	ASSERT_EQ(0, pipe(inside_pipe));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (i = 0; i < self->nr; i++)
			close(self->fds[i]);
		_exit(inside(wait_for_byte) == 1 ? 0 : 1);
	}
	ASSERT_TRUE(wait_until(sleeps(child)));
	for (i = 0; i < self->nr; i++)
		close(self->fds[i]);
	ASSERT_EQ(1, write(inside_pipe[1], "", 1));
	EXPECT_EQ(0, child_status(child));
	inside(NULL);
	for (i = 0; i < self->nr; i++)
		EXPECT_GE(1, area_get(&self->area, i));
}

TEST_HARNESS_MAIN
