/* SPDX-License-Identifier: GPL-2.0 */
/* Types that tests load for their maps and programs */
#ifndef BPF_EVENTS_TYPES_H
#define BPF_EVENTS_TYPES_H

#include <linux/btf.h>

/* What maps have in them, and functions of programs */
enum { TYPE_INT = 1, TYPE_LONG, TYPE_PROTO, TYPE_PROG, TYPE_CALLBACK };

#define STRINGS "\0int\0long\0prog\0callback"

struct int_type {
	struct btf_type type;
	__u32 encoding;
};

static const struct {
	struct btf_header head;
	struct int_type ints[2];
	struct btf_type funcs[3];
	char strings[sizeof(STRINGS)];
} types = {
	.head = {
		.magic = BTF_MAGIC, .version = BTF_VERSION,
		.hdr_len = sizeof(types.head),
		.type_len = sizeof(types.ints) + sizeof(types.funcs),
		.str_off = sizeof(types.ints) + sizeof(types.funcs),
		.str_len = sizeof(STRINGS),
	},
	.ints = {
		{ { 1, BTF_KIND_INT << 24, { 4 } }, BTF_INT_SIGNED << 24 | 32 },
		{ { 5, BTF_KIND_INT << 24, { 8 } }, BTF_INT_SIGNED << 24 | 64 },
	},
	.funcs = {
		{ 0, BTF_KIND_FUNC_PROTO << 24, { TYPE_INT } },
		{ 10, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, { TYPE_PROTO } },
		{ 15, BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC, { TYPE_PROTO } },
	},
	.strings = STRINGS,
};

static inline int types_load(void)
{
	union bpf_attr attr = {
		.btf = (unsigned long)&types, .btf_size = sizeof(types),
	};

	return sys_bpf(BPF_BTF_LOAD, &attr);
}

#endif /* BPF_EVENTS_TYPES_H */
