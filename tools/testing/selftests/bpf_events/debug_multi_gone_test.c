// SPDX-License-Identifier: GPL-2.0
/*
 * What links to many functions leave behind when they are closed stays, on a kernel
 * that can be preempted, until every task has slept, or has been in user space.  One
 * that is in the kernel for long must not make it grow without bounds: new links
 * wait, and can be killed meanwhile.
 */
#include <pthread.h>
#include <sys/uio.h>

#include "common.h"
#include "multi.h"

/* Links to so many take a MiB or more each, and few of them 1/1024 of the memory */
#define FUNCS 5000

FIXTURE(gone) {
	struct area area;
	__u64 *addrs;
	int prog;
};

/* Reads the first @n addresses of functions that can be traced; says how many there are */
static unsigned int read_addrs(__u64 *addrs, unsigned int n)
{
	FILE *file = fopen(TRACEFS "/available_filter_functions_addrs", "re");
	unsigned int i = 0;
	char line[256];

	if (!file)
		return 0;
	while (i < n && fgets(line, sizeof(line), file))
		addrs[i++] = strtoull(line, NULL, 16);
	fclose(file);
	return i;
}

FIXTURE_SETUP(gone)
{
	SKIP_WITHOUT(return, multi_prepare());
	if (!kernel_preempts())
		SKIP(return, "CONFIG_PREEMPT");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "CONFIG_SMP, and two CPUs");
	ASSERT_EQ(0, area_create(&self->area));
	self->addrs = calloc(FUNCS, sizeof(*self->addrs));
	ASSERT_EQ(FUNCS, read_addrs(self->addrs, FUNCS));
	self->prog = prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0);
	ASSERT_LE(0, self->prog);
}

FIXTURE_TEARDOWN_PARENT(gone)
{
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Is in the kernel, but for moments, and never sleeps: each of its calls has two
 * gigabytes of random numbers made
 */
struct reader {
	pthread_t thread;
	bool reads, stop;
};

static void on_signal(int sig)
{
}

static void *read_without_end(void *arg)
{
	static char buf[2 << 20];
	struct reader *reader = arg;
	int i, fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	struct iovec vecs[1024];

	for (i = 0; i < ARRAY_SIZE(vecs); i++)
		vecs[i] = (struct iovec){ buf, sizeof(buf) };
	pin(1);
	memset(buf, 1, sizeof(buf));
	__atomic_store_n(&reader->reads, fd >= 0, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&reader->stop, __ATOMIC_SEQ_CST))
		readv(fd, vecs, ARRAY_SIZE(vecs));
	close(fd);
	return NULL;
}

static int reader_start(struct reader *reader)
{
	struct sigaction action = { .sa_handler = on_signal };

	memset(reader, 0, sizeof(*reader));
	if (sigaction(SIGUSR1, &action, NULL))
		return -errno;
	if (pthread_create(&reader->thread, NULL, read_without_end, reader))
		return -EAGAIN;
	return wait_until(__atomic_load_n(&reader->reads, __ATOMIC_SEQ_CST)) ? 0 : -ETIME;
}

static int reader_stop(void *arg)
{
	struct reader *reader = arg;

	__atomic_store_n(&reader->stop, true, __ATOMIC_SEQ_CST);
	pthread_kill(reader->thread, SIGUSR1);
	pthread_join(reader->thread, NULL);
	return 0;
}

TEST_F(gone, is_bounded)
{
	union bpf_attr attr = {
		.link_create.prog_fd = self->prog,
		.link_create.attach_type = BPF_TRACE_KPROBE_MULTI,
		.link_create.kprobe_multi.flags = BPF_F_KPROBE_MULTI_RETURN,
		.link_create.kprobe_multi.cnt = FUNCS,
		.link_create.kprobe_multi.addrs = (unsigned long)self->addrs,
	};
	struct reader reader;

	ASSERT_EQ(0, reader_start(&reader));
	EXPECT_EQ(0, links_are_bounded(&attr, &self->area, 0, reader_stop, &reader));
}

TEST_HARNESS_MAIN
