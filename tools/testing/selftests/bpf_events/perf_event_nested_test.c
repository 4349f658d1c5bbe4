// SPDX-License-Identifier: GPL-2.0
/*
 * Software events inside the handling of another event: perf does not count them,
 * and the programs that would have been asked about their samples miss them
 */
#include "common.h"
#include "link.h"
#include "uprobe.h"
#include "overflow.h"
#include "module.h"

#define TEST_MODULE "bpf_events_nested"
#define TOUCH "/sys/module/" TEST_MODULE "/parameters/touch"

FIXTURE(nested) {
	struct perf_event_attr attr;
	struct area area;
	int prog;
};

FIXTURE_VARIANT(nested) {
	__u64 config;
	bool link;
};

FIXTURE_VARIANT_ADD(nested, faults) {
	.config = PERF_COUNT_SW_PAGE_FAULTS,
};

FIXTURE_VARIANT_ADD(nested, faults_link) {
	.config = PERF_COUNT_SW_PAGE_FAULTS, .link = true,
};

FIXTURE_VARIANT_ADD(nested, minor_faults) {
	.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
};

FIXTURE_SETUP(nested)
{
	const char *path = test_module(TEST_MODULE);

	SKIP_WITHOUT(return, overflow_prepare());
	if (!path)
		SKIP(return, "CONFIG_MODULES, and " TEST_MODULE ".ko");
	unload_module(TEST_MODULE);
	ASSERT_EQ(0, load_module(path));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, VERDICT, 1);
	self->prog = overflow_prog(&self->area);
	ASSERT_LE(0, self->prog);
	overflow_attr(&self->attr, PERF_TYPE_SOFTWARE);
	self->attr.config = variant->config;
}

FIXTURE_TEARDOWN_PARENT(nested)
{
	unload_module(TEST_MODULE);
	EXPECT_STREQ("nothing", leftovers());
}

/* New pages, each of which the kernel touches */
static int nested_faults(struct area *area, unsigned int n)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = new_pages(area, n);
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = write_file(TOUCH, 0, "%lu", (unsigned long)pages + i * page);
	for (i = 0; i < n && !err; i++)
		err = pages[i * page] == 1 ? 0 : -EFAULT;
	munmap(pages, n * page);
	return err;
}

/* What has to be asked about the program: the event, or its link */
static int nested_attach(const struct perf_event_attr *attr, int prog, bool by_link,
			 int *perf)
{
	struct perf_event_attr copy = *attr;
	int err, link;

	*perf = perf_open(&copy, 0, -1);
	if (*perf < 0)
		return *perf;
	err = overflow_attach(by_link, *perf, prog, &link);
	return err ?: by_link ? link : *perf;
}

TEST_F(nested, is_counted)
{
	int perf, fd = nested_attach(&self->attr, self->prog, variant->link, &perf);

	ASSERT_LE(0, fd);
	overflow(&self->area, PERF_TYPE_SOFTWARE, 5);
	EXPECT_EQ(5, area_get(&self->area, HITS));
	EXPECT_EQ(0, fdinfo_number(fd, "bpf_prog_missed"));

	ASSERT_EQ(0, nested_faults(&self->area, 7));
	EXPECT_EQ(5, area_get(&self->area, HITS));
	EXPECT_EQ(7, fdinfo_number(fd, "bpf_prog_missed"));
	EXPECT_EQ(7, misses(self->prog));
}

TEST_F(nested, of_each_event)
{
	int other = overflow_prog(&self->area), perf, fds[2];

	fds[0] = nested_attach(&self->attr, self->prog, variant->link, &perf);
	ASSERT_LE(0, fds[0]);
	fds[1] = nested_attach(&self->attr, other, variant->link, &perf);
	ASSERT_LE(0, fds[1]);
	ASSERT_EQ(0, nested_faults(&self->area, 3));
	EXPECT_EQ(3, fdinfo_number(fds[0], "bpf_prog_missed"));
	EXPECT_EQ(3, fdinfo_number(fds[1], "bpf_prog_missed"));
}

/* By the child, of an event that it has inherited */
TEST_F(nested, inherited)
{
	int perf, fd;
	pid_t child;

	self->attr.inherit = 1;
	fd = nested_attach(&self->attr, self->prog, variant->link, &perf);
	ASSERT_LE(0, fd);
	child = fork();
	if (!child)
		_exit(!!nested_faults(&self->area, 4));
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(4, fdinfo_number(fd, "bpf_prog_missed"));
}

/* Those whose samples they would not have been */
TEST_F(nested, nothing_to_others)
{
	const struct {
		__u64 config;
		__u64 period;
		bool no_kernel;
		bool disabled;
	} others[] = {
		{ .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .period = 1 },
		{ .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ, .period = 1 },
		{ .config = variant->config, .period = 1, .no_kernel = true },
		{ .config = variant->config, .period = 1, .disabled = true },
		{ .config = variant->config, .period = 0 },
		/* Perf does not count them, and so their period is longer */
		{ .config = variant->config, .period = 1000000 },
	};
	int i, perf, fds[ARRAY_SIZE(others)];

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		self->attr.config = others[i].config;
		self->attr.sample_period = others[i].period;
		self->attr.exclude_kernel = others[i].no_kernel;
		self->attr.disabled = others[i].disabled;
		fds[i] = nested_attach(&self->attr, self->prog, variant->link, &perf);
		ASSERT_LE(0, fds[i]);
	}
	ASSERT_EQ(0, nested_faults(&self->area, 3));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(0, fdinfo_number(fds[i], "bpf_prog_missed")) {
			TH_LOG("i %d", i);
		}
	}
}

/* With the period in them, samples are made of each event, whatever the period is */
TEST_F(nested, samples_of_each)
{
	int perf, fd;

	self->attr.sample_period = 1000000;
	self->attr.sample_type |= PERF_SAMPLE_PERIOD;
	fd = nested_attach(&self->attr, self->prog, variant->link, &perf);
	ASSERT_LE(0, fd);
	overflow(&self->area, PERF_TYPE_SOFTWARE, 2);
	EXPECT_EQ(2, area_get(&self->area, HITS));
	ASSERT_EQ(0, nested_faults(&self->area, 3));
	EXPECT_EQ(3, fdinfo_number(fd, "bpf_prog_missed"));
}

TEST_F(nested, detached)
{
	int perf, fd = nested_attach(&self->attr, self->prog, variant->link, &perf);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, nested_faults(&self->area, 1));
	close(fd);
	close(perf);
	ASSERT_EQ(0, nested_faults(&self->area, 1));
	EXPECT_EQ(1, misses(self->prog));
}

TEST_HARNESS_MAIN
