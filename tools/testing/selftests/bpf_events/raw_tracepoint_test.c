// SPDX-License-Identifier: GPL-2.0
/* BPF_PROG_TYPE_RAW_TRACEPOINT: programs that are given a tracepoint's arguments */
#include <linux/sched.h>

#include "common.h"
#include "link.h"
#include "ring.h"
#include "raw_tp.h"
#include "uprobe.h"
#include "filter.h"
#include "module.h"

#define RENAME "task_rename"
#define COOKIE 0x1122334455667788ULL

FIXTURE(raw_tp) {
	union bpf_attr attr;
	struct area area;
};

FIXTURE_SETUP(raw_tp)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	raw_tp_attr(&self->attr);
}

FIXTURE_TEARDOWN_PARENT(raw_tp)
{
	sample_unload();
	EXPECT_STREQ("nothing", leftovers());
}

/* Opens a tracepoint for a program that it drops */
static int open_drop(const char *name, int prog)
{
	int fd = raw_tp_open(prog, name, 0);

	close(prog);
	return fd;
}

static bool renames_run(struct area *area, unsigned int runs)
{
	__u64 before = area_get(area, 0);

	hit_rename();
	hit_rename();
	return area_get(area, 0) == before + 2 * runs;
}

/* Lifetime */

TEST_F(raw_tp, close)
{
	int fd = open_drop(RENAME, own_count_prog(&self->attr, &self->area));

	ASSERT_LE(0, fd);
	EXPECT_TRUE(renames_run(&self->area, 1));
	close(fd);
	EXPECT_TRUE(renames_run(&self->area, 0));
}

TEST_F(raw_tp, close_of_the_program)
{
	int prog = own_count_prog(&self->attr, &self->area);
	__u32 id = prog_id(prog);
	int fd = open_drop(RENAME, prog);

	ASSERT_LE(0, fd);
	prog = prog_by_id(id);
	EXPECT_LE(0, prog);
	close(prog);
	EXPECT_TRUE(renames_run(&self->area, 1));
}

TEST_F(raw_tp, exit)
{
	int pipe_fd, fd = open_drop(RENAME, own_count_prog(&self->attr, &self->area));
	pid_t child;

	ASSERT_LE(0, fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(fd);
	EXPECT_TRUE(renames_run(&self->area, 1));
	close(pipe_fd);
	EXPECT_EQ(0, child_status(child));
	EXPECT_TRUE(renames_run(&self->area, 0));
}

TEST_F(raw_tp, sigkill)
{
	int pipe_fd, fd = open_drop(RENAME, own_count_prog(&self->attr, &self->area));
	pid_t child;

	ASSERT_LE(0, fd);
	child = holder(&pipe_fd);
	ASSERT_LT(0, child);
	close(fd);
	EXPECT_TRUE(renames_run(&self->area, 1));
	ASSERT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_status(child));
	EXPECT_TRUE(renames_run(&self->area, 0));
}

TEST_F(raw_tp, pinned)
{
	const char *path = BPFFS "/bpf_events_raw_tp";
	int fd = open_drop(RENAME, own_count_prog(&self->attr, &self->area));

	ASSERT_LE(0, fd);
	unlink(path);
	ASSERT_EQ(0, obj_pin(fd, path));
	close(fd);
	EXPECT_TRUE(renames_run(&self->area, 1));
	ASSERT_EQ(0, unlink(path));
	EXPECT_TRUE(wait_until(renames_run(&self->area, 0)));
}

TEST_F(raw_tp, several_programs)
{
	int i, fds[70];

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = open_drop(RENAME, own_count_prog(&self->attr, &self->area));
		ASSERT_LE(0, fds[i]);
	}
	EXPECT_TRUE(renames_run(&self->area, ARRAY_SIZE(fds)));
	close(fds[3]);
	EXPECT_TRUE(renames_run(&self->area, ARRAY_SIZE(fds) - 1));
}

TEST_F(raw_tp, the_same_program_twice)
{
	int prog = own_count_prog(&self->attr, &self->area);
	int fd = raw_tp_open(prog, RENAME, 0);

	ASSERT_LE(0, fd);
	EXPECT_LE(0, raw_tp_open(prog, RENAME, 0));
	EXPECT_TRUE(renames_run(&self->area, 2));
	close(fd);
	EXPECT_TRUE(renames_run(&self->area, 1));
}

/* What programs return decides nothing */
TEST_F(raw_tp, beside_a_perf_event)
{
	int perf = perf_open_event("task/task_rename");
	struct ring ring;

	ASSERT_LE(0, perf);
	ASSERT_EQ(0, ring_map(&ring, perf));
	ASSERT_LE(0, open_drop(RENAME, own_count_prog(&self->attr, &self->area)));
	EXPECT_TRUE(renames_run(&self->area, 1));
	EXPECT_EQ(2, ring_samples(&ring));
}

/* Arguments */

TEST_F(raw_tp, arguments_of_task_rename)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8),
		BPF_MOV64_IMM(BPF_REG_2, 16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel_str),
		BPF_EMIT_CALL(BPF_FUNC_get_current_task),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_ALU64_REG(BPF_SUB, BPF_REG_0, BPF_REG_1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 24),
	};

	area_set(&self->area, 3, 1);
	ASSERT_LE(0, open_drop(RENAME, body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body))));
	hit_rename();
	EXPECT_STREQ("bpf_events_test", (char *)&self->area.slot[1]);
	EXPECT_EQ(0, area_get(&self->area, 3));
}

TEST_F(raw_tp, arguments_of_sys_enter)
{
	const struct bpf_insn body[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 16),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 0),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_3, REGS_ARG),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
	};

	ASSERT_LE(0, open_drop("sys_enter", body_load(&self->attr, &self->area, body,
						      ARRAY_SIZE(body))));
	hit_arg(SCHED_RR);
	EXPECT_EQ(__NR_sched_get_priority_max, area_get(&self->area, 1));
	EXPECT_EQ(SCHED_RR, area_get(&self->area, 2));
}

TEST_F(raw_tp, arguments_of_sys_exit)
{
	ASSERT_LE(0, open_drop("sys_exit", args_prog(&self->attr, &self->area, 2)));
	EXPECT_EQ(99, hit_arg(SCHED_RR));
	EXPECT_EQ(99, area_get(&self->area, 2));
	hit_arg(-1);
	EXPECT_EQ(-EINVAL, (__s64)area_get(&self->area, 2));
}

TEST_F(raw_tp, arguments_of_task_newtask)
{
	pid_t child;

	ASSERT_LE(0, open_drop("task_newtask", args_prog(&self->attr, &self->area, 2)));
	child = syscall(__NR_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
	if (!child)
		_exit(0);
	EXPECT_EQ(0, child_status(child));
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ(CLONE_FS, area_get(&self->area, 2));
}

/* The one that is switched to is of another process, it does not count */
TEST_F(raw_tp, arguments_of_sched_switch)
{
	const struct bpf_insn body[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8),
		BPF_ALU64_REG(BPF_SUB, BPF_REG_0, BPF_REG_1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 16),
		BPF_ALU64_REG(BPF_SUB, BPF_REG_2, BPF_REG_1),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_2, 16),
	};

	area_set(&self->area, 1, 1);
	ASSERT_LE(0, open_drop("sched_switch", body_load(&self->attr, &self->area, body,
							 ARRAY_SIZE(body))));
	EXPECT_TRUE(wait_until(area_get(&self->area, 0)));
	EXPECT_EQ(0, area_get(&self->area, 1));
	EXPECT_NE(0, area_get(&self->area, 2));
}

/* Helpers */

TEST_F(raw_tp, cookies)
{
	int prog = cookie_prog(&self->attr, &self->area);
	int fd = raw_tp_open(prog, RENAME, COOKIE);

	ASSERT_LE(0, fd);
	hit_rename();
	EXPECT_EQ(COOKIE, area_get(&self->area, 1));
	close(fd);
	ASSERT_LE(0, raw_tp_open(prog, RENAME, 5));
	hit_rename();
	EXPECT_EQ(5, area_get(&self->area, 1));
	ASSERT_LE(0, raw_tp_open(prog, RENAME, 0));
	hit_rename();
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(raw_tp, get_stack)
{
	ASSERT_LE(0, open_drop(RENAME, stack_prog(&self->attr, &self->area, 0)));
	hit_rename();
	EXPECT_LE(16, (__s64)area_get(&self->area, 1));
	EXPECT_EQ(0, area_get(&self->area, 1) % 8);
	EXPECT_TRUE(kernel_frames(&self->area.slot[3], 1));
}

TEST_F(raw_tp, get_stackid)
{
	int map = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * STACK_FRAMES, 16, 0);
	__u64 ips[STACK_FRAMES];
	__u32 key;

	ASSERT_LE(0, map);
	ASSERT_LE(0, open_drop(RENAME, stackid_prog(&self->attr, &self->area, map, 0)));
	hit_rename();
	key = area_get(&self->area, 1);
	ASSERT_LE(0, (int)key);
	ASSERT_EQ(0, map_lookup(map, &key, ips));
	EXPECT_TRUE(kernel_frames(ips + 1, 1));
}

TEST_F(raw_tp, perf_event_output)
{
	int map = map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0), perf;
	struct ring ring;
	char raw[16];
	__u32 len;

	ASSERT_LE(0, map);
	ASSERT_EQ(0, pin(0));
	perf = output_open(map);
	ASSERT_LE(0, perf);
	ASSERT_EQ(0, ring_map(&ring, perf));
	ASSERT_LE(0, open_drop(RENAME, output_prog(&self->attr, &self->area, map)));
	hit_rename();
	EXPECT_EQ(0, area_get(&self->area, 1));
	ASSERT_EQ(PERF_RECORD_SAMPLE, ring_read(&ring, raw, sizeof(raw), &len));
	EXPECT_LE(8, len);
	EXPECT_EQ(1, *(__u64 *)raw);
}

/* Prints; slot 1 is what that returned last */
static int print_prog(union bpf_attr *attr, struct area *area)
{
	const struct bpf_insn body[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 'x'),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 2),
		BPF_EMIT_CALL(BPF_FUNC_trace_printk),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* A program that hits its own tracepoint does not run again, which is counted */
TEST_F(raw_tp, own_tracepoint)
{
	int prog = print_prog(&self->attr, &self->area), link, runs;

	ASSERT_LE(0, prog);
	link = raw_tp_open(prog, "bpf_trace_printk", 0);
	ASSERT_LE(0, link);
	/* Another that starts it */
	ASSERT_LE(0, open_drop(RENAME, print_prog(&self->attr, &self->area)));
	for (runs = 1; runs < 4; runs++) {
		hit_rename();
		EXPECT_EQ(2 * runs, area_get(&self->area, 0));
		EXPECT_EQ(runs, misses(prog));
		EXPECT_EQ(runs, fdinfo_number(link, "bpf_prog_hits"));
		EXPECT_EQ(runs, fdinfo_number(link, "bpf_prog_missed"));
	}
}

#define DEPTH 6

/* Each where the one before it prints: there are three buffers for lines on a CPU */
TEST_F(raw_tp, print_inside_print)
{
	struct area areas[DEPTH];
	int i, refused = 0;

	ASSERT_EQ(0, pin(0));
	for (i = 0; i < DEPTH; i++) {
		ASSERT_EQ(0, area_create(&areas[i]));
		ASSERT_LE(0, raw_tp_open(print_prog(&self->attr, &areas[i]),
					 i ? "bpf_trace_printk" : RENAME, 0));
	}
	hit_rename();
	for (i = 0; i < DEPTH; i++)
		refused += (long)area_get(&areas[i], 1) == -EBUSY;
	EXPECT_LT(0, refused);
	EXPECT_EQ(1, area_get(&areas[0], 0));
}

/* The tracepoints of a module */
TEST_F(raw_tp, of_a_module)
{
	const char *path = sample_module();
	int fd, prog;

	if (!path)
		SKIP(return, "CONFIG_SAMPLE_TRACE_EVENTS=m");
	sample_unload();
	prog = sample_prog(&self->area, 8);
	ASSERT_LE(0, prog);
	EXPECT_EQ(-ENOENT, raw_tp_open(prog, "foo_bar", 0));
	ASSERT_EQ(0, load_module(path));
	fd = raw_tp_open(prog, "foo_bar", 0);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(sample_wait_hit(&self->area, 8));
	/* It stays for as long as it is used */
	EXPECT_EQ(-EAGAIN, sample_unload());
	close(fd);
	EXPECT_EQ(0, sample_unload());
	EXPECT_EQ(-ENOENT, raw_tp_open(prog, "foo_bar", 0));
}

TEST_HARNESS_MAIN
