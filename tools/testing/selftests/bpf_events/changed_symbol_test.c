// SPDX-License-Identifier: GPL-2.0
/* A function of which the compiler has left others: who asks for it is told their names */
#include "common.h"
#include "error_log.h"
#include "module.h"
#include "multi.h"
#include "target.h"

#define CHANGED "The compiler made other functions of this one, choose one of them"
#define UNKNOWN "The kernel has no symbol of this name; what is inlined has none"

FIXTURE(changed) {
	char func[64];		/* as in the source: there is no symbol */
	char symbol[64];	/* func.isra.0, or another suffix */
};

/* A symbol that can be traced, has a suffix, and is the only one of its name */
static int find_changed(char *func, char *symbol)
{
	char (*names)[64] = calloc(MAX_NAMES, sizeof(*names));
	unsigned int i, n = names ? read_traceable(names) : 0;
	__u64 addrs[MAX_ADDRS];
	int err = -ENOENT;

	for (i = 0; err && i < n; i++) {
		memcpy(symbol, names[i], sizeof(names[i]));
		memcpy(func, names[i], sizeof(names[i]));
		func[strcspn(func, ".")] = '\0';
		if (strcmp(func, symbol) && symbol_addrs(symbol, addrs) == 1 &&
		    !symbol_addrs(func, addrs))
			err = 0;
	}
	free(names);
	return err;
}

FIXTURE_SETUP(changed)
{
	SKIP_WITHOUT(return, multi_prepare());
	if (find_changed(self->func, self->symbol))
		SKIP(return, "a function that the compiler has changed");
	ASSERT_EQ(0, write_file(ERROR_LOG, O_TRUNC, ""));
}

FIXTURE_TEARDOWN_PARENT(changed)
{
	EXPECT_STREQ("nothing", leftovers());
	write_file(ERROR_LOG, O_TRUNC, "");
}

/* Whether error_log has one entry, of this command, which has the symbol after a colon */
static bool names_it(const char *source, const char *cmd, const char *symbol)
{
	const char *text = entries();
	char start[256], name[80];
	const char *at;

	snprintf(start, sizeof(start), "%s: error: " CHANGED "\n  Command: %s:", source, cmd);
	snprintf(name, sizeof(name), " %s", symbol);
	if (strncmp(text, start, strlen(start)))
		return false;
	for (at = strstr(text, name); at; at = strstr(at + 1, name)) {
		if (strchr("\n ", at[strlen(name)]))
			return true;
	}
	return false;
}

TEST_F(changed, kprobe_events)
{
	char cmd[128];

	EXPECT_EQ(-EINVAL, event_add("event", "p %s", self->func));
	snprintf(cmd, sizeof(cmd), "p:" GROUP "/event %s", self->func);
	EXPECT_TRUE(names_it("trace_kprobe", cmd, self->symbol));
	EXPECT_EQ(0, event_add("event", "p %s", self->symbol));
	EXPECT_STREQ("", entries());
}

TEST_F(changed, perf_event_open)
{
	struct probe probe;
	char cmd[128];
	int fd;

	probe_create_at(&probe, "event", self->func, 0, PROBE_PMU);
	EXPECT_EQ(-ENOENT, probe_open(&probe));
	snprintf(cmd, sizeof(cmd), "perf_event_open p %s+0", self->func);
	EXPECT_TRUE(names_it("trace_kprobe", cmd, self->symbol));
	probe_create_at(&probe, "event", self->symbol, 0, PROBE_PMU);
	fd = probe_open(&probe);
	EXPECT_LE(0, fd);
	EXPECT_STREQ("", entries());
}

TEST_F(changed, kprobe_multi)
{
	int prog = prog_load_type(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0);
	char cmd[128];
	int link;

	ASSERT_LE(0, prog);
	EXPECT_EQ(-ESRCH, multi_link_one(self->func, BPF_TRACE_KPROBE_MULTI, 0, prog));
	snprintf(cmd, sizeof(cmd), "LINK_CREATE kprobe_multi %s", self->func);
	EXPECT_TRUE(names_it("bpf_event", cmd, self->symbol));
	link = multi_link_one(self->symbol, BPF_TRACE_KPROBE_MULTI, 0, prog);
	EXPECT_LE(0, link);
	EXPECT_STREQ("", entries());
}

/* Whether error_log has one entry about this symbol, which names no other */
static bool is_unknown(const char *symbol)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "p:" GROUP "/event %s\n", symbol);
	return logged_in(ERROR_LOG, "trace_kprobe", UNKNOWN, cmd);
}

TEST_F(changed, with_the_beginning_of_a_name)
{
	char start[64];

	memcpy(start, self->symbol, sizeof(start));
	strrchr(start, '.')[1] = '\0';
	EXPECT_EQ(-EINVAL, event_add("event", "p %s", start));
	EXPECT_TRUE(is_unknown(start));
	snprintf(start, sizeof(start), "%.8s_no_such", self->func);
	EXPECT_EQ(-EINVAL, event_add("event", "p %s", start));
	EXPECT_TRUE(is_unknown(start));
}

/* The module that it is wanted in has no such function */
TEST_F(changed, of_a_module)
{
	struct probe probe;
	const char *path;
	char name[128];

	if (module_prepare(&path))
		SKIP(return, MODULE_ENV);
	ASSERT_EQ(0, load_module(path));
	snprintf(name, sizeof(name), MODULE ":%s", self->func);
	probe_create_at(&probe, "event", name, 0, PROBE_PMU);
	EXPECT_EQ(-ENOENT, probe_open(&probe));
	EXPECT_STREQ("", strstr(entries(), CHANGED) ?: "");
	ASSERT_EQ(0, module_unload());
}

/* What the compiler made of a variable */
TEST_F(changed, with_the_name_of_data)
{
	char line[256];

	if (!find_line("/proc/kallsyms", " __func__.", line, sizeof(line)))
		SKIP(return, "CONFIG_KALLSYMS_ALL");
	EXPECT_EQ(-EINVAL, event_add("event", "p __func__"));
	EXPECT_TRUE(is_unknown("__func__"));
}

TEST_HARNESS_MAIN
