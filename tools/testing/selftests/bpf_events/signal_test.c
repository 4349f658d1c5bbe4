// SPDX-License-Identifier: GPL-2.0
/* The helpers that send a signal to the current process, or thread */
#include <pthread.h>

#include "common.h"
#include "call.h"
#include "uprobe.h"

FIXTURE(signal) {
	struct rig rig;
};

FIXTURE_VARIANT(signal) {
	int helper;
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(signal, process_kprobe) {
	.helper = BPF_FUNC_send_signal,
};

FIXTURE_VARIANT_ADD(signal, process_kretprobe) {
	.helper = BPF_FUNC_send_signal, .flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(signal, process_uprobe) {
	.helper = BPF_FUNC_send_signal, .flags = PROBE_USER,
};

FIXTURE_VARIANT_ADD(signal, thread_kprobe) {
	.helper = BPF_FUNC_send_signal_thread,
};

FIXTURE_VARIANT_ADD(signal, thread_kretprobe) {
	.helper = BPF_FUNC_send_signal_thread, .flags = PROBE_RETURN,
};

FIXTURE_VARIANT_ADD(signal, thread_uprobe) {
	.helper = BPF_FUNC_send_signal_thread, .flags = PROBE_USER,
};

static int block(int sig, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, sig);
	return sigprocmask(SIG_BLOCK, set, NULL);
}

static bool is_pending(int sig)
{
	sigset_t set;

	return !sigpending(&set) && sigismember(&set, sig);
}

FIXTURE_SETUP(signal)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	self->rig.fd = -1;
	ASSERT_EQ(0, area_create(&self->rig.area));
	ASSERT_EQ(0, variant->flags & PROBE_USER ?
			     uprobe_create(&self->rig.probe, variant->flags) :
			     probe_create(&self->rig.probe, variant->flags));
}

FIXTURE_TEARDOWN_PARENT(signal)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Sends the signal in ARG, once */
static int attach_sender(struct rig *rig, int helper, pid_t tgid)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_1, 0),
		BPF_ATOMIC_OP(BPF_DW, BPF_XCHG, BPF_REG_6, BPF_REG_1, 8 * ARG),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, 1),
		BPF_EMIT_CALL(helper),
	};

	area_set(&rig->area, RET, NOT_CALLED);
	return attach_body_for(rig, tgid, body, ARRAY_SIZE(body));
}

/* Hits the probe of either kind; what the helper returns for the signal */
static __s64 send_by_hit(struct rig *rig, __u64 sig)
{
	area_set(&rig->area, RET, NOT_CALLED);
	area_set(&rig->area, ARG, sig);
	hit();
	user_hits(1);
	return area_get(&rig->area, RET);
}

TEST_F(signal, is_there_when_the_call_returns)
{
	struct rig *rig = &self->rig;
	const int signals[] = { SIGUSR1, SIGCHLD, SIGRTMAX };
	siginfo_t info;
	sigset_t set;
	int i;

	ASSERT_LE(0, attach_sender(rig, variant->helper, getpid()));
	for (i = 0; i < ARRAY_SIZE(signals); i++) {
		ASSERT_EQ(0, block(signals[i], &set));
		EXPECT_FALSE(is_pending(signals[i]));
		EXPECT_EQ(0, send_by_hit(rig, signals[i]));
		ASSERT_TRUE(is_pending(signals[i]));
		ASSERT_EQ(signals[i], sigwaitinfo(&set, &info));
		/* It comes from the kernel, not from a process */
		EXPECT_EQ(SI_KERNEL, info.si_code);
		EXPECT_EQ(0, info.si_pid);
		EXPECT_FALSE(is_pending(signals[i]));
	}
}

struct sender {
	struct rig *rig;
	__s64 ret;
	bool pending;
};

static void *send_from_thread(void *arg)
{
	struct sender *sender = arg;

	sender->ret = send_by_hit(sender->rig, SIGUSR1);
	sender->pending = is_pending(SIGUSR1);
	return NULL;
}

TEST_F(signal, goes_to_the_process_or_the_thread)
{
	struct sender sender = { .rig = &self->rig };
	pthread_t thread;
	sigset_t set;

	ASSERT_EQ(0, block(SIGUSR1, &set));
	ASSERT_LE(0, attach_sender(&self->rig, variant->helper, getpid()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_from_thread, &sender));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, sender.ret);
	EXPECT_TRUE(sender.pending);
	/* What is the process's all threads see */
	EXPECT_EQ(variant->helper == BPF_FUNC_send_signal, is_pending(SIGUSR1));
}

TEST_F(signal, kills)
{
	struct rig *rig = &self->rig;
	pid_t child;

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (attach_sender(rig, variant->helper, getpid()) < 0)
			_exit(1);
		send_by_hit(rig, SIGKILL);
		_exit(2);
	}
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_EQ(0, area_get(&rig->area, RET));
}

TEST_F(signal, no_such_signal)
{
	const __u64 signals[] = { SIGRTMAX + 1, 1000, 0xffffffff };
	int i;

	ASSERT_LE(0, attach_sender(&self->rig, variant->helper, getpid()));
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		EXPECT_EQ(-EINVAL, send_by_hit(&self->rig, signals[i]));
}

/* Kprobes on what is not a system call of ours */

FIXTURE(elsewhere) {
	struct rig rig;
};

FIXTURE_VARIANT(elsewhere) {
	int helper;
};

FIXTURE_VARIANT_ADD(elsewhere, process) {
	.helper = BPF_FUNC_send_signal,
};

FIXTURE_VARIANT_ADD(elsewhere, thread) {
	.helper = BPF_FUNC_send_signal_thread,
};

FIXTURE_SETUP(elsewhere)
{
	SKIP_WITHOUT(return, prepare());
	self->rig.fd = -1;
	ASSERT_EQ(0, area_create(&self->rig.area));
}

FIXTURE_TEARDOWN_PARENT(elsewhere)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int elsewhere_create(struct rig *rig, const char *func, int helper,
			    pid_t tgid)
{
	int err = probe_create_at(&rig->probe, "event", func, 0, 0);

	return err ?: attach_sender(rig, helper, tgid);
}

/*
 * The one who takes a signal off the queue has interrupts off and holds the
 * lock of the queue: the signal has to wait until that is over.
 */
TEST_F(elsewhere, under_the_lock_of_the_signals)
{
	struct timespec wait = { .tv_sec = 10 };
	siginfo_t info;
	sigset_t set;
	int i;

	ASSERT_EQ(0, block(SIGUSR1, &set));
	ASSERT_LE(0, elsewhere_create(&self->rig, "dequeue_signal",
				      variant->helper, getpid()));
	for (i = 0; i < 20; i++) {
		area_set(&self->rig.area, RET, NOT_CALLED);
		area_set(&self->rig.area, ARG, SIGUSR1);
		ASSERT_EQ(SIGUSR1, sigtimedwait(&set, &info, &wait));
		EXPECT_EQ(0, area_get(&self->rig.area, RET));
		EXPECT_EQ(SI_KERNEL, info.si_code);
	}
	area_set(&self->rig.area, ARG, SIGRTMAX + 1);
	wait.tv_sec = 0;
	EXPECT_EQ(-1, sigtimedwait(&set, &info, &wait));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-EINVAL, area_get(&self->rig.area, RET));
}

TEST_F(elsewhere, kernel_thread)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_IMM(BPF_REG_1, SIGUSR1),
		BPF_EMIT_CALL(variant->helper),
	};
	struct rig *rig = &self->rig;

	ASSERT_EQ(0, probe_create_at(&rig->probe, "event", KTHREAD_FUNC, 0, 0));
	area_set(&rig->area, RET, NOT_CALLED);
	ASSERT_LE(0, attach_body(rig, body, ARRAY_SIZE(body)));
	ASSERT_EQ(0, kthread_hit());
	EXPECT_EQ(-EPERM, wait_result(rig));
}

TEST_F(elsewhere, task_that_exits)
{
	struct rig *rig = &self->rig;
	pid_t child;

	area_set(&rig->area, ARG, SIGUSR1);
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(elsewhere_create(rig, "exit_mm_release",
				       variant->helper, getpid()) < 0);
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(-EPERM, (__s64)area_get(&rig->area, RET));
}

/* Leaves a zombie to who takes orphans. Returns who that is. */
static pid_t make_orphan(void)
{
	pid_t parent = -1, child;
	int fds[2];

	if (pipe(fds))
		return -errno;
	child = fork();
	if (!child) {
		child = getpid();
		if (!fork()) {
			while (getppid() == child)
				sleep_ms(1);
			parent = getppid();
			_exit(write(fds[1], &parent, sizeof(parent)) != sizeof(parent));
		}
		_exit(0);
	}
	close(fds[1]);
	if (child_status(child) || read(fds[0], &parent, sizeof(parent)) != sizeof(parent))
		return -ECHILD;
	close(fds[0]);
	return parent;
}

TEST_F(elsewhere, init)
{
	struct rig *rig = &self->rig;
	pid_t parent;

	ASSERT_LE(0, elsewhere_create(rig, "release_task", variant->helper, 1));
	/* One that init ignores, should it get there */
	area_set(&rig->area, ARG, SIGURG);
	parent = make_orphan();
	ASSERT_LT(0, parent);
	if (parent != 1)
		SKIP(return, "Somebody between us and init takes orphans");
	EXPECT_EQ(-EPERM, wait_result(rig));
}

TEST_HARNESS_MAIN
