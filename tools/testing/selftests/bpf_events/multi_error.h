/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is refused of a link to many places, of the kernel or of a file: @good is
 * a link without a mistake, @try says what the kernel says to one
 */
#ifndef BPF_EVENTS_MULTI_ERROR_H
#define BPF_EVENTS_MULTI_ERROR_H

#include "common.h"

/* So many places are allowed */
#define MOST 1048576
#define UNREADABLE 8

typedef int (*multi_try_t)(const union bpf_attr *attr);

/* @flags is in @attr */
static inline void expect_flags_refused(struct __test_metadata *_metadata, multi_try_t try,
					const union bpf_attr *attr, __u32 *flags)
{
	const __u32 unknown[] = { 2, 3, 1U << 31, ~0U };
	int i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		*flags = unknown[i];
		EXPECT_EQ(-EINVAL, try(attr));
	}
}

/* @cnt is in @attr */
static inline void expect_counts_refused(struct __test_metadata *_metadata, multi_try_t try,
					 const union bpf_attr *attr, __u32 *cnt)
{
	*cnt = 0;
	EXPECT_EQ(-EINVAL, try(attr));
	*cnt = MOST + 1;
	EXPECT_EQ(-E2BIG, try(attr));
	*cnt = ~0U;
	EXPECT_EQ(-E2BIG, try(attr));
}

/* The link and its program are of different types, either way round */
static inline void expect_types_refused(struct __test_metadata *_metadata, multi_try_t try,
					const union bpf_attr *good,
					const enum bpf_attach_type *types, size_t n)
{
	union bpf_attr attr;
	size_t i;

	for (i = 0; i < n; i++) {
		attr = *good;
		attr.link_create.attach_type = types[i];
		EXPECT_EQ(-EINVAL, try(&attr));

		attr = *good;
		attr.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_KPROBE, types[i], 0);
		EXPECT_EQ(-EINVAL, try(&attr));
		close(attr.link_create.prog_fd);
	}
}

/* No descriptor, that of a map, and that of a program of another type */
static inline void expect_programs_refused(struct __test_metadata *_metadata, multi_try_t try,
					   const union bpf_attr *good, int map)
{
	union bpf_attr attr = *good;

	attr.link_create.prog_fd = 999;
	EXPECT_EQ(-EBADF, try(&attr));
	attr.link_create.prog_fd = map;
	EXPECT_EQ(-EINVAL, try(&attr));
	attr.link_create.prog_fd = prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0);
	ASSERT_LE(0, (int)attr.link_create.prog_fd);
	EXPECT_EQ(-EINVAL, try(&attr));
	EXPECT_EQ(0, try(good));
}

/* To load a program takes capabilities, to link it only its descriptor */
static inline void expect_no_caps_needed(struct __test_metadata *_metadata, multi_try_t try,
					 const union bpf_attr *good)
{
	const __u64 few[] = { 0, CAP(BPF), CAP(PERFMON) };
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	pid_t child;
	int i;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.expected_attach_type = good->link_create.attach_type;
	for (i = 0; i < ARRAY_SIZE(few); i++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child) {
			if (drop_caps(few[i]) ||
			    sys_bpf(BPF_PROG_LOAD, &attr) != -EPERM)
				_exit(1);
			_exit(try(good) ? 2 : 0);
		}
		EXPECT_EQ(0, child_status(child));
	}
}

#endif /* BPF_EVENTS_MULTI_ERROR_H */
