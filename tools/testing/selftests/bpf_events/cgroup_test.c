// SPDX-License-Identifier: GPL-2.0
/*
 * Perf events of a cgroup.  A program of type PERF_EVENT runs when the event
 * overflows: for tasks in the cgroup.  On a trace event a program runs for all,
 * and the cgroup says of whom there are records.  The memory of links is charged
 * to the cgroup of the task that makes them.
 */
#include "common.h"
#include "cgroup.h"
#include "link.h"
#include "ring.h"
#include "uprobe.h"
#include "filter.h"
#include "overflow.h"
#include "hitter.h"
#include "umulti.h"

FIXTURE(cgroup) {
	struct area area;
	struct ring ring;
	char root[64], outer[96], inner[128];
	int prog, perf;
	int fd;		/* what has to be closed to detach, perf or a link */
};

FIXTURE_VARIANT(cgroup) {
	const struct kind *kind;	/* NULL: page faults */
	bool link;
};

FIXTURE_VARIANT_ADD(cgroup, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(cgroup, kprobe_link) { .kind = &kprobe_kind, .link = true };
FIXTURE_VARIANT_ADD(cgroup, kretprobe) { .kind = &kretprobe_kind };
FIXTURE_VARIANT_ADD(cgroup, uprobe) { .kind = &uprobe_kind };
FIXTURE_VARIANT_ADD(cgroup, tracepoint) { .kind = &tracepoint_kind };
FIXTURE_VARIANT_ADD(cgroup, tracepoint_link) { .kind = &tracepoint_kind, .link = true };
FIXTURE_VARIANT_ADD(cgroup, sys_enter) { .kind = &sys_enter_kind };
FIXTURE_VARIANT_ADD(cgroup, faults) { .kind = NULL };
FIXTURE_VARIANT_ADD(cgroup, faults_link) { .kind = NULL, .link = true };

/* Counts the hits of this process, and returns what is in slot VERDICT */
static int load(const struct kind *kind, struct area *area)
{
	if (!kind)
		return overflow_prog(area);
	return filter_prog(area, HITS, kind->probe ? BPF_PROG_TYPE_KPROBE :
						     BPF_PROG_TYPE_TRACEPOINT);
}

/* On CPU 0, of the tasks in a cgroup */
static int open_event(const struct kind *kind, const char *dir)
{
	int perf, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct perf_event_attr attr;

	if (fd < 0)
		return -errno;
	overflow_attr(&attr, PERF_TYPE_SOFTWARE);
	if (kind) {
		attr.type = PERF_TYPE_TRACEPOINT;
		if (!read_u64(event_file(TRACEFS, kind->event, "id"), (__u64 *)&attr.config))
			return -ENOENT;
	}
	perf = neg_errno(syscall(__NR_perf_event_open, &attr, fd, 0, -1,
				 PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP));
	close(fd);
	return perf;
}

/*
 * Cgroups have the controller of perf events without being told to, but where no
 * controller has ever been turned on
 */
static void controllers_turn_up(const char *root)
{
	char path[160], text[64];

	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	if (read_file(path, text, sizeof(text)) > 1)
		return;
	write_file(path, 0, "+memory");
	write_file(path, 0, "-memory");
}

/* This process */
static int enter(const char *dir)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	return write_file(path, 0, "0");
}

FIXTURE_SETUP(cgroup)
{
	SKIP_WITHOUT(return, filter_prepare() ?: overflow_prepare());
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, kind_create(variant->kind ?: &tracepoint_kind));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VERDICT, 1);
	self->prog = load(variant->kind, &self->area);
	ASSERT_LE(0, self->prog);

	snprintf(self->root, sizeof(self->root), "/tmp/bpf_events.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
	if (mount("cgroup2", self->root, "cgroup2", 0, NULL)) {
		rmdir(self->root);
		SKIP(return, "CONFIG_CGROUPS");
	}
	controllers_turn_up(self->root);
	snprintf(self->outer, sizeof(self->outer), "%s/bpf_events", self->root);
	snprintf(self->inner, sizeof(self->inner), "%s/in", self->outer);
	ASSERT_EQ(0, mkdir(self->outer, 0755));
	ASSERT_EQ(0, mkdir(self->inner, 0755));

	self->perf = open_event(variant->kind, self->outer);
	if (self->perf == -EINVAL) {
		rmdir(self->inner);
		rmdir(self->outer);
		umount(self->root);
		rmdir(self->root);
		SKIP(return, "CONFIG_CGROUP_PERF");
	}
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	self->fd = self->perf;
	ASSERT_EQ(0, overflow_attach(variant->link, self->perf, self->prog, &self->fd));
}

FIXTURE_TEARDOWN_PARENT(cgroup)
{
	rmdir(self->inner);
	EXPECT_EQ(0, rmdir(self->outer));
	EXPECT_EQ(0, umount(self->root));
	EXPECT_EQ(0, rmdir(self->root));
	EXPECT_STREQ("nothing", leftovers());
}

static void hit_three(const struct kind *kind, FIXTURE_DATA(cgroup) * self)
{
	if (kind)
		kind_hits(kind, 3);
	else
		overflow(&self->area, PERF_TYPE_SOFTWARE, 3);
}

/* Whether three hits run the program, or none does, and how many are recorded */
static bool seen(const struct kind *kind, FIXTURE_DATA(cgroup) * self, bool runs,
		 unsigned int recorded)
{
	__u64 before = area_get(&self->area, HITS);

	hit_three(kind, self);
	return area_get(&self->area, HITS) - before == (runs ? 3 : 0) &&
	       ring_samples(&self->ring) == recorded;
}

/* Whether it sees what those do who are not in the cgroup */
static bool sees_all(const struct kind *kind)
{
	return kind;
}

TEST_F(cgroup, comes_and_goes)
{
	const struct kind *kind = variant->kind;
	int i;

	EXPECT_TRUE(seen(kind, self, sees_all(kind), 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, enter(self->outer));
		EXPECT_TRUE(seen(kind, self, true, 3));
		area_set(&self->area, VERDICT, 0);
		EXPECT_TRUE(seen(kind, self, true, 0));
		area_set(&self->area, VERDICT, 1);
		/* Below is inside */
		ASSERT_EQ(0, enter(self->inner));
		EXPECT_TRUE(seen(kind, self, true, 3));
		ASSERT_EQ(0, enter(self->root));
		EXPECT_TRUE(seen(kind, self, sees_all(kind), 0));
	}
}

TEST_F(cgroup, close)
{
	const struct kind *kind = variant->kind;
	__u64 before;

	ASSERT_EQ(0, enter(self->outer));
	EXPECT_TRUE(seen(kind, self, true, 3));
	ring_unmap(&self->ring);
	close(self->perf);
	close(self->fd);
	self->perf = open_event(kind, self->outer);
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	before = area_get(&self->area, HITS);
	hit_three(kind, self);
	EXPECT_EQ(before, area_get(&self->area, HITS));
	/* There are other page faults, which nobody turns down now */
	EXPECT_LE(3, ring_samples(&self->ring));
}

TEST_F(cgroup, disable)
{
	const struct kind *kind = variant->kind;
	/* A link's program on a trace event runs on */
	bool runs_on = variant->link && kind;

	ASSERT_EQ(0, enter(self->outer));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(seen(kind, self, runs_on, 0));
	ASSERT_EQ(0, enter(self->root));
	ASSERT_EQ(0, ioctl(self->perf, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(seen(kind, self, sees_all(kind), 0));
	ASSERT_EQ(0, enter(self->outer));
	EXPECT_TRUE(seen(kind, self, true, 3));
}

/* The event stays, and no task will ever be in its cgroup */
TEST_F(cgroup, is_removed)
{
	const struct kind *kind = variant->kind;

	ASSERT_EQ(0, enter(self->outer));
	EXPECT_TRUE(seen(kind, self, true, 3));
	ASSERT_EQ(0, enter(self->root));
	ASSERT_EQ(0, rmdir(self->inner));
	ASSERT_EQ(0, rmdir(self->outer));
	EXPECT_TRUE(seen(kind, self, sees_all(kind), 0));

	/* One of the same name is another */
	ASSERT_EQ(0, mkdir(self->outer, 0755));
	ASSERT_EQ(0, enter(self->outer));
	EXPECT_TRUE(seen(kind, self, sees_all(kind), 0));
	ring_unmap(&self->ring);
	close(self->perf);
	close(self->fd);
	self->perf = open_event(kind, self->outer);
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	self->fd = self->perf;
	ASSERT_EQ(0, overflow_attach(variant->link, self->perf, self->prog, &self->fd));
	EXPECT_TRUE(seen(kind, self, true, 3));
}

/* Moves another process in and out until it is killed */
static pid_t mover(const char *inside, const char *outside)
{
	pid_t who = getpid(), child = fork();
	int i;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(1);
	for (i = 0;; i++) {
		if (write_file(i % 2 ? inside : outside, 0, "%d", who))
			_exit(1);
		sched_yield();
	}
}

/* Nothing is recorded that the program has not seen, nor seen in vain */
TEST_F(cgroup, moves_while_it_hits)
{
	const struct kind *kind = variant->kind;
	unsigned int hits = 0, recorded = 0;
	char inside[160], outside[160];
	__u64 end = deadline();
	pid_t child;

	snprintf(inside, sizeof(inside), "%s/cgroup.procs", self->inner);
	snprintf(outside, sizeof(outside), "%s/cgroup.procs", self->root);
	child = mover(inside, outside);
	ASSERT_LT(0, child);
	do {
		if (kind)
			kind_hits(kind, 10);
		else
			overflow(&self->area, PERF_TYPE_SOFTWARE, 10);
		hits += 10;
		recorded += ring_samples(&self->ring);
	} while (now_ns() < end || !recorded);
	kill(child, SIGKILL);
	EXPECT_EQ(-SIGKILL, child_status(child));
	if (sees_all(kind)) {
		EXPECT_EQ(hits, area_get(&self->area, HITS));
		EXPECT_GE(hits, recorded);
	} else {
		EXPECT_EQ(recorded, area_get(&self->area, HITS));
	}
}

FIXTURE(charge) {
	struct memcg memcg;
	union bpf_attr attr;
};

FIXTURE_VARIANT(charge) {
	bool uprobes;
	__u32 flags;
	unsigned int sites;
	unsigned int size;	/* of what a link keeps of each, at least */
};

FIXTURE_VARIANT_ADD(charge, kprobe_multi) { .sites = 200000, .size = 16 };
/* Calls that can be under way: two of each function on each CPU */
FIXTURE_VARIANT_ADD(charge, kprobe_multi_return) {
	.flags = BPF_F_KPROBE_MULTI_RETURN, .sites = 50000, .size = 96,
};

FIXTURE_VARIANT_ADD(charge, uprobe_multi) { .uprobes = true, .sites = 8192, .size = 96 };

FIXTURE_SETUP(charge)
{
	const char *missing = (variant->uprobes ? uprobe_prepare() : multi_prepare()) ?:
			      memcg_create(&self->memcg);
	union bpf_attr *attr = &self->attr;
	enum bpf_attach_type attach;
	struct umulti user;
	struct multi kernel;
	__u64 *where;
	unsigned int i;
	int prog;

	if (missing)
		SKIP(return, "%s", missing);
	where = calloc(variant->sites, sizeof(*where));
	ASSERT_NE(NULL, where);
	attach = variant->uprobes ? BPF_TRACE_UPROBE_MULTI : BPF_TRACE_KPROBE_MULTI;
	prog = prog_load_type(BPF_PROG_TYPE_KPROBE, attach, 0);
	ASSERT_LE(0, prog);
	if (variant->uprobes) {
		umulti_init(&user, 0);
		umulti_attr(&user, prog, attr);
		attr->link_create.uprobe_multi.cookies = 0;
		attr->link_create.uprobe_multi.ref_ctr_offsets = 0;
		attr->link_create.uprobe_multi.cnt = variant->sites;
		attr->link_create.uprobe_multi.offsets = (unsigned long)where;
		where[0] = user.offsets[0];
	} else {
		multi_init(&kernel, BPF_TRACE_KPROBE_MULTI, variant->flags, true);
		multi_attr(&kernel, prog, attr);
		attr->link_create.kprobe_multi.cookies = 0;
		attr->link_create.kprobe_multi.cnt = variant->sites;
		attr->link_create.kprobe_multi.addrs = (unsigned long)where;
		where[0] = kernel.addrs[0];
	}
	for (i = 1; i < variant->sites; i++)
		where[i] = where[0];

	ASSERT_EQ(0, memcg_write(&self->memcg, "cgroup.procs", "0"));
}

FIXTURE_TEARDOWN_PARENT(charge)
{
	EXPECT_EQ(0, memcg_remove(&self->memcg));
	EXPECT_STREQ("nothing", leftovers());
}

static __u64 charged(const struct memcg *memcg)
{
	return memcg_read(memcg, "memory.current");
}

/* Half of it, since each CPU may have charged some 256 KiB in advance */
TEST_F(charge, goes_with_the_link)
{
	__u64 before = charged(&self->memcg), half = variant->sites * variant->size / 2, with;
	int link;

	ASSERT_LT(0, before);
	link = sys_bpf(BPF_LINK_CREATE, &self->attr);
	ASSERT_LE(0, link);
	with = charged(&self->memcg);
	EXPECT_LE(before + half, with);
	close(link);
	EXPECT_TRUE(wait_gone(charged(&self->memcg) + half <= with));
}

TEST_HARNESS_MAIN
