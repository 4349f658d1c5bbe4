// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_TRACE_ITER: programs that are run for each object of a kind, and whose
 * output is read from a file
 */
#include "common.h"
#include "link.h"
#include "iter.h"

#define PINNED BPFFS "/bpf_events_iter"

FIXTURE(iter) {
	struct area area;
	int map;
	char text[65536];	/* what was read */
};

FIXTURE_SETUP(iter)
{
	__u64 key, value;

	SKIP_WITHOUT(return, tracing_prepare());
	unlink(PINNED);
	ASSERT_EQ(0, area_create(&self->area));
	self->map = map_create(BPF_MAP_TYPE_HASH, 8, 8, 8, 0);
	ASSERT_LE(0, self->map);
	for (key = 1; key <= 3; key++) {
		value = 100 * key;
		ASSERT_EQ(0, map_update(self->map, &key, &value));
	}
}

FIXTURE_TEARDOWN_PARENT(iter)
{
	unlink(PINNED);
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(iter, all_maps)
{
	int link = iter_link(print_ids_prog(&self->area), NULL);

	ASSERT_LE(0, link);
	EXPECT_EQ(0, area_get(&self->area, 0));
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	EXPECT_LE(2, area_get(&self->area, 0));
	EXPECT_EQ(0, area_get(&self->area, 1));
	EXPECT_EQ(1, lines_of(self->text, map_id(self->map)));
	EXPECT_EQ(1, lines_of(self->text, map_id(self->area.fd)));
}

/* Each file begins anew, and shows what there is then */
TEST_F(iter, several_files_of_a_link)
{
	int link = iter_link(print_ids_prog(&self->area), NULL), fd, fd2, map;

	ASSERT_LE(0, link);
	fd = iter_create(link);
	fd2 = iter_create(link);
	map = map_create(BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0);
	ASSERT_LT(0, read_fd(fd, self->text, sizeof(self->text), 4096));
	EXPECT_EQ(1, lines_of(self->text, map_id(map)));
	close(link);
	ASSERT_LT(0, read_fd(fd2, self->text, sizeof(self->text), 4096));
	EXPECT_EQ(1, lines_of(self->text, map_id(map)));
}

TEST_F(iter, read_byte_by_byte)
{
	int link = iter_link(print_ids_prog(&self->area), NULL);
	char text[4096];

	ASSERT_LE(0, link);
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	ASSERT_LT(0, read_fd(iter_create(link), text, sizeof(text), 1));
	EXPECT_STREQ(self->text, text);
}

TEST_F(iter, all_tasks)
{
	int pipe_fd, link;
	pid_t child = holder(&pipe_fd);

	link = iter_link(print_prog(&self->area, "task", btf_member("task_struct", "tgid")),
			 NULL);
	ASSERT_LE(0, link);
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	EXPECT_EQ(1, lines_of(self->text, getpid()));
	EXPECT_EQ(1, lines_of(self->text, child));
	EXPECT_EQ(1, lines_of(self->text, 1));
	kill(child, SIGKILL);
	child_status(child);
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	EXPECT_EQ(0, lines_of(self->text, child));
}

TEST_F(iter, one_task)
{
	int prog = print_prog(&self->area, "task", btf_member("task_struct", "pid"));
	union bpf_iter_link_info info = { .task.tid = getpid() };
	char expected[16];
	int link = iter_link(prog, &info);

	ASSERT_LE(0, link);
	snprintf(expected, sizeof(expected), "%d\n", getpid());
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	EXPECT_STREQ(expected, self->text);
	memset(&info, 0, sizeof(info));
	info.task.pid_fd = syscall(__NR_pidfd_open, getpid(), 0);
	link = iter_link(prog, &info);
	ASSERT_LE(0, link);
	ASSERT_LT(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	EXPECT_STREQ(expected, self->text);
	/* More than one of them */
	info.task.tid = getpid();
	EXPECT_EQ(-EINVAL, iter_link(prog, &info));
}

TEST_F(iter, elements_of_a_map)
{
	union bpf_iter_link_info info = { .map.map_fd = self->map };
	int i, link = iter_link(elements_prog(), &info);
	__u64 seen = 0, *pair, value;

	ASSERT_LE(0, link);
	ASSERT_EQ(48, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	for (i = 0; i < 3; i++) {
		pair = (__u64 *)self->text + 2 * i;
		EXPECT_EQ(100 * pair[0], pair[1]);
		seen |= 1 << pair[0];
		ASSERT_EQ(0, map_lookup(self->map, &pair[0], &value));
		EXPECT_EQ(pair[1] + 1, value);
	}
	EXPECT_EQ(2 | 4 | 8, seen);
}

TEST_F(iter, which_map)
{
	int small = map_create(BPF_MAP_TYPE_HASH, 8, 4, 8, 0), prog = elements_prog();
	union bpf_iter_link_info info = { .map.map_fd = small };

	EXPECT_EQ(-EBADF, iter_link(prog, NULL));
	/* Values and keys that are smaller than what the program accesses */
	EXPECT_EQ(-EACCES, iter_link(prog, &info));
	info.map.map_fd = map_create(BPF_MAP_TYPE_HASH, 4, 8, 8, 0);
	EXPECT_EQ(-EACCES, iter_link(prog, &info));
	/* A kind of map that has no elements */
	info.map.map_fd = map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8, 8, 0);
	EXPECT_EQ(-EINVAL, iter_link(prog, &info));
	info.map.map_fd = 999;
	EXPECT_EQ(-EBADF, iter_link(prog, &info));
	info.map.map_fd = prog;
	EXPECT_EQ(-EINVAL, iter_link(prog, &info));
}

/* The link keeps program and map, and the file is read like any other */
TEST_F(iter, pinned)
{
	union bpf_iter_link_info info = { .map.map_fd = self->map };
	int prog = elements_prog(), link = iter_link(prog, &info);

	ASSERT_LE(0, link);
	ASSERT_EQ(0, obj_pin(link, PINNED));
	close(link);
	close(prog);
	close(self->map);
	EXPECT_EQ(48, read_fd(open(PINNED, O_RDONLY), self->text, sizeof(self->text), 4096));
	EXPECT_EQ(100 * ((__u64 *)self->text)[0], ((__u64 *)self->text)[1]);
	EXPECT_EQ(48, read_fd(open(PINNED, O_RDONLY), self->text, sizeof(self->text), 4096));
	EXPECT_LE(0, obj_get(PINNED));
	EXPECT_EQ(0, unlink(PINNED));
	EXPECT_EQ(-ENOENT, obj_get(PINNED));
}

/* A program that asks for the same object again, until slot 0 is 5 */
TEST_F(iter, once_more)
{
	union bpf_iter_link_info info = { .task.tid = getpid() };
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, 8),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_2, 0, 7),
		AREA(BPF_REG_7, &self->area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 0),
		BPF_JMP_IMM(BPF_JGE, BPF_REG_1, 5, 1),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd, link = iter_link(iter_load("task", insns, ARRAY_SIZE(insns)), &info), i;

	ASSERT_LE(0, link);
	fd = iter_create(link);
	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(-1, read(fd, self->text, sizeof(self->text)));
		EXPECT_EQ(EAGAIN, errno);
	}
	EXPECT_EQ(0, read(fd, self->text, sizeof(self->text)));
	EXPECT_EQ(5, area_get(&self->area, 0));
}

TEST_F(iter, update)
{
	int link = iter_link(print_ids_prog(&self->area), NULL), fd, other;
	union bpf_attr attr = { .link_update.link_fd = link };

	ASSERT_LE(0, link);
	fd = iter_create(link);
	other = tracing_try(BPF_TRACE_ITER, target_id(BPF_TRACE_ITER, "bpf_map"), 0);
	ASSERT_LE(0, other);
	attr.link_update.new_prog_fd = other;
	ASSERT_EQ(0, sys_bpf(BPF_LINK_UPDATE, &attr));
	/* What is open goes on with the program that it began with */
	EXPECT_LT(0, read_fd(fd, self->text, sizeof(self->text), 4096));
	EXPECT_EQ(0, read_fd(iter_create(link), self->text, sizeof(self->text), 4096));
	/* A program for something else */
	attr.link_update.new_prog_fd = elements_prog();
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_UPDATE, &attr));
}

TEST_F(iter, info)
{
	union bpf_iter_link_info which = { .map.map_fd = self->map };
	int link = iter_link(elements_prog(), &which);
	struct bpf_link_info info = {};
	char name[32];

	ASSERT_LE(0, link);
	info.iter.target_name = (unsigned long)name;
	info.iter.target_name_len = sizeof(name);
	ASSERT_EQ(0, link_info(link, &info));
	EXPECT_EQ(BPF_LINK_TYPE_ITER, info.type);
	EXPECT_STREQ("bpf_map_elem", name);
	EXPECT_EQ(sizeof("bpf_map_elem"), info.iter.target_name_len);
	EXPECT_EQ(map_id(self->map), info.iter.map.map_id);
	info.iter.target_name_len = 4;
	EXPECT_EQ(-ENOSPC, link_info(link, &info));
	EXPECT_STREQ("bpf", name);
	EXPECT_STREQ("iter", fdinfo_text(link, "link_type"));
	EXPECT_STREQ("bpf_map_elem", fdinfo_text(link, "target_name"));
	EXPECT_EQ(map_id(self->map), fdinfo_number(link, "map_id"));
}

TEST_F(iter, errors)
{
	int prog = print_ids_prog(&self->area), link = iter_link(prog, NULL), fentry;
	union bpf_attr attr = {
		.link_create.prog_fd = prog, .link_create.attach_type = BPF_TRACE_ITER,
	};

	ASSERT_LE(0, link);
	attr.link_create.target_fd = self->map;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_CREATE, &attr));
	attr.link_create.target_fd = 0;
	attr.link_create.flags = 1;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_CREATE, &attr));
	attr.link_create.flags = 0;
	attr.link_create.iter_info_len = 8;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_LINK_CREATE, &attr));
	attr.link_create.iter_info = 8;
	EXPECT_EQ(-EFAULT, sys_bpf(BPF_LINK_CREATE, &attr));
	/* A file is of a link, and that of an iterator */
	EXPECT_EQ(-EBADF, iter_create(999));
	EXPECT_EQ(-EINVAL, iter_create(prog));
	fentry = tracing_open(tracing_try(BPF_TRACE_FENTRY, btf_func_id(FUNC), 0));
	ASSERT_LE(0, fentry);
	EXPECT_EQ(-EINVAL, iter_create(fentry));
	memset(&attr, 0, sizeof(attr));
	attr.iter_create.link_fd = link;
	attr.iter_create.flags = 1;
	EXPECT_EQ(-EINVAL, sys_bpf(BPF_ITER_CREATE, &attr));
	/* No other way of attaching */
	EXPECT_EQ(-EINVAL, tracing_open(prog));
}

TEST_HARNESS_MAIN
