// SPDX-License-Identifier: GPL-2.0
/* For which tasks programs run: bpf_scope in tracefs */
#include <sys/mount.h>
#include <sys/stat.h>

#include "common.h"
#include "limits.h"

/* Cgroups */
#define OUTER "/bpf_events"
#define INNER OUTER "/in"

#define BAD_LINE "Write bpf-id:ID, and a cgroup as /proc/PID/cgroup has it behind 0::, or all"
#define NO_CGROUP "Cgroup v2 has no cgroup with this path"

FIXTURE(scope) {
	struct area area;
	char root[64];
};

/* Where a cgroup is */
static const char *dir(const FIXTURE_DATA(scope) * self, const char *cgroup)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s%s", self->root, cgroup);
	return path;
}

FIXTURE_SETUP(scope)
{
	SKIP_WITHOUT(return, ways_prepare());
	snprintf(self->root, sizeof(self->root), "/tmp/bpf_events.XXXXXX");
	ASSERT_NE(NULL, mkdtemp(self->root));
	if (mount("cgroup2", self->root, "cgroup2", 0, NULL)) {
		rmdir(self->root);
		SKIP(return, "CONFIG_CGROUPS");
	}
	rmdir(dir(self, INNER)); /* What did not come to its end may have left them. */
	rmdir(dir(self, OUTER));
	ASSERT_EQ(0, mkdir(dir(self, OUTER), 0755));
	ASSERT_EQ(0, mkdir(dir(self, INNER), 0755));
	ASSERT_EQ(0, ways_start(&self->area));
	entries();
}

FIXTURE_TEARDOWN_PARENT(scope)
{
	EXPECT_EQ(0, rmdir(dir(self, INNER)));
	EXPECT_EQ(0, rmdir(dir(self, OUTER)));
	EXPECT_EQ(0, umount(self->root));
	EXPECT_EQ(0, rmdir(self->root));
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

static int enter(const FIXTURE_DATA(scope) * self, const char *cgroup)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir(self, cgroup));
	return write_file(path, 0, "0");
}

static int set_scope(int prog, const char *cgroup)
{
	return set_limit(SCOPE, prog, cgroup);
}

static const char *scopes(void)
{
	return limits(SCOPE);
}

/*
 * Goes into cgroups and out of them. In OUTER and below, a hit makes so many runs, and
 * elsewhere none: what is wrong with that, or "nothing"
 */
static const char *wrong(FIXTURE_DATA(scope) * self, int fd, void (*hit_it)(void),
			 unsigned int runs)
{
	static const char *const cgroups[] = { "/", OUTER, INNER, "/", OUTER, "/" };
	static char text[128];
	__u64 before, ran;
	int i;

	for (i = 0; i < ARRAY_SIZE(cgroups); i++) {
		if (enter(self, cgroups[i]))
			return cgroups[i];
		before = limited_runs(fd, &self->area);
		hit_it();
		ran = limited_runs(fd, &self->area) - before;
		if (ran == (cgroups[i][1] ? runs : 0))
			continue;
		snprintf(text, sizeof(text), "%llu runs in %s", ran, cgroups[i]);
		return text;
	}
	before = fdinfo_number(fd, "bpf_prog_missed");
	if (before == ~0ULL) /* fentry or fexit */
		before = fdinfo_number(fd, "bpf_missed_budget");
	return before ? "misses" : "nothing";
}

TEST_F(scope, every_way)
{
	const struct way *way;
	struct limited l;
	int i;

	for (i = 0; (way = limited_way(i)); i++) {
		ASSERT_EQ(0, limited_attach(&l, way, &self->area, SCOPE, OUTER))
			TH_LOG("%s", way->name);
		EXPECT_STREQ("nothing", wrong(self, l.fd, l.hit, way_runs(way)))
			TH_LOG("%s", way->name);
		EXPECT_STREQ(OUTER, fdinfo_text(l.fd, "bpf_scope")) TH_LOG("%s", way->name);
		limited_detach(&l);
	}
}

/* One that may sleep, which is not under RCU */
TEST_F(scope, sleepable)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd, prog = prog_load_as(insns, ARRAY_SIZE(insns), BPF_TRACE_UPROBE_MULTI,
				    BPF_F_SLEEPABLE);

	ASSERT_EQ(0, set_scope(prog, OUTER));
	fd = umulti_link_one(user_func1, BPF_TRACE_UPROBE_MULTI, 0, 0, prog);
	ASSERT_LE(0, fd);
	EXPECT_STREQ("nothing", wrong(self, fd, hit_user_func, 1));
}

TEST_F(scope, sleepable_fentry)
{
	union bpf_attr attr;
	int fd, prog;

	tracing_attr(&attr, BPF_TRACE_FENTRY, FUNC);
	attr.prog_flags = BPF_F_SLEEPABLE;
	prog = body_load(&attr, &self->area, NULL, 0);
	ASSERT_EQ(0, set_scope(prog, OUTER));
	fd = tracing_open_drop(prog);
	ASSERT_LE(0, fd);
	EXPECT_STREQ("nothing", wrong(self, fd, hit, 1));
}

TEST_F(scope, perf_event)
{
	int fd, prog = overflow_prog(&self->area);

	fd = overflow_open(PERF_TYPE_BREAKPOINT);
	if (fd < 0)
		SKIP(return, "breakpoints");
	ASSERT_EQ(0, set_scope(prog, OUTER));
	ASSERT_EQ(0, perf_set_bpf(fd, prog));
	touch((char *)&watched);
	EXPECT_EQ(0, fdinfo_number(fd, "bpf_prog_hits"));
	ASSERT_EQ(0, enter(self, INNER));
	touch((char *)&watched);
	/* QEMU takes some writes beside it for hits, too. */
	EXPECT_LT(0, fdinfo_number(fd, "bpf_prog_hits"));
}

/* Where the call began says whether it runs at both ends, or at none */
TEST_F(scope, both_ends_of_a_call)
{
	int fd, prog = count_prog_as(&self->area, 0, 0, BPF_TRACE_KPROBE_SESSION);

	ASSERT_EQ(0, set_scope(prog, OUTER));
	fd = multi_link_one("cgroup_procs_write", BPF_TRACE_KPROBE_SESSION, 0, prog);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, enter(self, OUTER));
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_EQ(0, enter(self, "/"));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* What is out of the scope takes nothing from the budget */
TEST_F(scope, and_budget)
{
	int fd, prog = count_prog(&self->area, 0, 0);
	struct probe probe;

	ASSERT_EQ(0, set_limit(BUDGET, prog, "1"));
	ASSERT_EQ(0, set_scope(prog, OUTER));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	fd = attach_link(&probe, prog, 0);
	ASSERT_LE(0, fd);
	hits(100);
	EXPECT_EQ(0, fdinfo_number(fd, "bpf_prog_missed"));
	ASSERT_EQ(0, enter(self, OUTER));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
	hits(100);
	EXPECT_EQ(101, area_get(&self->area, 0) + fdinfo_number(fd, "bpf_missed_budget"));
	EXPECT_LT(0, fdinfo_number(fd, "bpf_missed_budget"));
}

/* A filter lets no events of others be recorded */
TEST_F(scope, no_record)
{
	int fd, prog = count_prog(&self->area, 0, 1);
	struct probe probe;

	ASSERT_EQ(0, set_scope(prog, OUTER));
	ASSERT_EQ(0, probe_create(&probe, 0));
	fd = filter_attach(INSTANCE, GROUP "/event", prog);
	ASSERT_LE(0, fd);
	hits(3);
	EXPECT_EQ(0, records(INSTANCE));
	ASSERT_EQ(0, enter(self, OUTER));
	hits(3);
	EXPECT_EQ(3, records(INSTANCE));
}

TEST_F(scope, beside_another)
{
	int i, fd, progs[2];
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, 0));
	for (i = 0; i < ARRAY_SIZE(progs); i++) {
		progs[i] = count_prog(&self->area, i, 1);
		fd = attach(&probe, progs[i]);
		ASSERT_LE(0, fd);
	}
	ASSERT_EQ(0, set_scope(progs[0], OUTER));
	hits(3);
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_EQ(3, area_get(&self->area, 1));
	ASSERT_EQ(0, enter(self, OUTER));
	hits(3);
	EXPECT_EQ(3, area_get(&self->area, 0));
	EXPECT_EQ(6, area_get(&self->area, 1));
}

TEST_F(scope, changes)
{
	int prog = count_prog(&self->area, 0, 0);
	struct probe probe;

	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	ASSERT_LE(0, attach_link(&probe, prog, 0));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_EQ(0, set_scope(prog, INNER));
	hit();
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_EQ(0, set_scope(prog, "/"));
	hit();
	EXPECT_EQ(2, area_get(&self->area, 0));
	ASSERT_EQ(0, enter(self, OUTER));
	hit();
	EXPECT_EQ(3, area_get(&self->area, 0));
	ASSERT_EQ(0, set_scope(prog, INNER));
	hit();
	EXPECT_EQ(3, area_get(&self->area, 0));
	ASSERT_EQ(0, set_scope(prog, "all"));
	hit();
	EXPECT_EQ(4, area_get(&self->area, 0));
}

/* It stays out of the next one with that name */
TEST_F(scope, is_removed)
{
	int prog = count_prog(&self->area, 0, 0);
	struct probe probe;
	struct stat st;
	char text[128];

	ASSERT_EQ(0, stat(dir(self, INNER), &st));
	snprintf(text, sizeof(text), "bpf-id:%u cgroup-id:%lu\n", prog_id(prog), st.st_ino);
	ASSERT_EQ(0, set_scope(prog, INNER));
	ASSERT_EQ(0, probe_create(&probe, PROBE_PMU));
	ASSERT_LE(0, attach_link(&probe, prog, 0));
	ASSERT_EQ(0, rmdir(dir(self, INNER)));
	ASSERT_EQ(0, mkdir(dir(self, INNER), 0755));
	ASSERT_EQ(0, enter(self, INNER));
	hit();
	EXPECT_EQ(0, area_get(&self->area, 0));
	EXPECT_STREQ(text, scopes());
}

TEST_F(scope, listed)
{
	int one = count_prog(&self->area, 0, 0), other = count_prog(&self->area, 0, 0);
	char text[128];

	EXPECT_STREQ("", scopes());
	ASSERT_EQ(0, write_file(SCOPE, 0, "  bpf-id:%u   " OUTER "/", prog_id(one)));
	ASSERT_EQ(0, set_scope(other, INNER));
	snprintf(text, sizeof(text), "bpf-id:%u " OUTER "\nbpf-id:%u " INNER "\n", prog_id(one),
		 prog_id(other));
	EXPECT_STREQ(text, scopes());
	ASSERT_EQ(0, set_scope(one, "all"));
	close(other);
	EXPECT_TRUE(wait_gone(!*scopes())) TH_LOG("%s", scopes());
}

/* Paths are what a task sees that writes them, or reads */
TEST_F(scope, in_a_namespace)
{
	int in = count_prog(&self->area, 0, 0), out = count_prog(&self->area, 0, 0);
	char text[128];
	pid_t child;

	ASSERT_EQ(0, set_scope(out, "/"));
	ASSERT_EQ(0, enter(self, OUTER));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		snprintf(text, sizeof(text), "bpf-id:%u /in\nbpf-id:%u cgroup-id:1\n",
			 prog_id(in), prog_id(out));
		_exit(unshare(CLONE_NEWCGROUP) || set_scope(in, "/in") ||
		      set_scope(in, OUTER) != -ENOENT || strcmp(text, scopes()));
	}
	EXPECT_EQ(0, child_status(child));
	snprintf(text, sizeof(text), "bpf-id:%u " INNER "\nbpf-id:%u /\n", prog_id(in),
		 prog_id(out));
	EXPECT_STREQ(text, scopes());
}

static bool refused(const char *what, int err, const char *error, int pos)
{
	return limit_refused(SCOPE, "", what, err, error, pos);
}

TEST_F(scope, refusals)
{
	int i, file, prog = count_prog(&self->area, 0, 0);
	char line[64];

	EXPECT_TRUE(refused("13 " OUTER, EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("default " OUTER, EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("bpf-id:13", EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("bpf-id:13 bpf_events", EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("bpf-id:13 0::/bpf_events", EINVAL, BAD_LINE, 0));
	EXPECT_TRUE(refused("bpf-id:one /", EINVAL, BAD_ID, 7));
	EXPECT_TRUE(refused("bpf-id: /", EINVAL, BAD_ID, 7));
	EXPECT_TRUE(refused("bpf-id:2147483647 /", ENOENT, NO_PROG, 7));

	snprintf(line, sizeof(line), "bpf-id:%u %s/none", prog_id(prog), OUTER);
	EXPECT_TRUE(refused(line, ENOENT, NO_CGROUP, strchr(line, '/') - line));
	snprintf(line, sizeof(line), "bpf-id:%u %s ", prog_id(prog), OUTER);
	EXPECT_TRUE(refused(line, ENOENT, NO_CGROUP, strchr(line, '/') - line));
	snprintf(line, sizeof(line), "bpf-id:%u /cgroup.procs", prog_id(prog));
	EXPECT_TRUE(refused(line, ENOENT, NO_CGROUP, strchr(line, '/') - line));
	/* An open file is no directory, whatever kernfs has in its place */
	file = open(dir(self, OUTER "/cgroup.procs"), O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, file);
	for (i = 0; i < 64; i++) { /* with hashes in all places */
		snprintf(line, sizeof(line), "bpf-id:%u " OUTER "/cgroup.procs/%d",
			 prog_id(prog), i);
		EXPECT_TRUE(refused(line, ENOENT, NO_CGROUP, strchr(line, '/') - line));
	}
	prog = count_prog_of(BPF_PROG_TYPE_SOCKET_FILTER, 0, &self->area, 0, 0);
	snprintf(line, sizeof(line), "bpf-id:%u %s", prog_id(prog), OUTER);
	EXPECT_TRUE(refused(line, EINVAL, NOT_ON_EVENTS, 7));
}

TEST_F(scope, takes_cap_sys_admin)
{
	int file = open(SCOPE, O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, file);
	ASSERT_EQ(0, drop_caps(CAP(PERFMON) | CAP(BPF)));
	EXPECT_EQ(-EPERM, neg_errno(write(file, "bpf-id:1 /", 10)));
	EXPECT_STREQ(entry_at("bpf_scope", NO_ADMIN, "bpf-id:1 /", 0), entries());
}

TEST_HARNESS_MAIN
