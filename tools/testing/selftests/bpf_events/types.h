/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Types: those of the kernel, where kfuncs are found by name, and those that
 * tests load for their maps and programs
 */
#ifndef BPF_EVENTS_TYPES_H
#define BPF_EVENTS_TYPES_H

#include <linux/btf.h>

#include "prog.h"

#define VMLINUX_BTF "/sys/kernel/btf/vmlinux"

/* How much follows the struct btf_type, or -1 */
static inline int btf_more(const struct btf_type *type)
{
	unsigned int n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	}
	return -1;
}

static inline const struct btf_type *btf_find_type(const char *btf, int kind,
						   const char *name, int *id)
{
	const struct btf_header *head = (const void *)btf;
	const char *at = btf + head->hdr_len + head->type_off;
	const char *end = at + head->type_len;
	const char *strings = btf + head->hdr_len + head->str_off;
	int more;

	for (*id = 1; at < end; (*id)++) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == kind &&
		    !strcmp(strings + type->name_off, name))
			return type;
		more = btf_more(type);
		if (more < 0)
			break;
		at += sizeof(*type) + more;
	}
	return NULL;
}

static struct kept *kept_btf;

__attribute__((constructor)) static void kept_btf_create(void)
{
	kept_btf = kept_create();
}

/* The kernel's types; NULL if they cannot be read */
static inline const char *vmlinux_btf(void)
{
	return kept_read(kept_btf, VMLINUX_BTF, NULL);
}

/* The id of a type of the kernel, BTF_KIND_something */
static inline int btf_type_id(int kind, const char *name)
{
	const char *btf = vmlinux_btf();
	int id;

	if (!btf)
		return -EIO;
	return btf_find_type(btf, kind, name, &id) ? id : -ENOENT;
}

static inline int btf_func_id(const char *name)
{
	return btf_type_id(BTF_KIND_FUNC, name);
}

/* Where a member of a struct of the kernel is, in bytes */
static inline int btf_member(const char *name, const char *member)
{
	const char *btf = vmlinux_btf(), *strings;
	const struct btf_header *head = (const void *)btf;
	const struct btf_type *type;
	const struct btf_member *m;
	int i;

	if (!btf)
		return -EIO;
	type = btf_find_type(btf, BTF_KIND_STRUCT, name, &i);
	if (!type)
		return -ENOENT;
	strings = btf + head->hdr_len + head->str_off;
	m = (const void *)(type + 1);
	for (i = 0; i < BTF_INFO_VLEN(type->info); i++) {
		if (!strcmp(strings + m[i].name_off, member))
			return BTF_MEMBER_BIT_OFFSET(m[i].offset) / 8;
	}
	return -ENOENT;
}

#define CALL_KFUNC(id) \
	BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, id)

/* What maps have in them, and functions of programs */
enum {
	TYPE_INT = 1, TYPE_LONG, TYPE_PROTO, TYPE_PROG, TYPE_CALLBACK,
	TYPE_SKB, TYPE_SKB_PTR, TYPE_FILTER_PROTO, TYPE_FILTER,
	TYPE_ARGS, TYPE_ARGS_PTR, TYPE_RAW_PROTO, TYPE_RAW,
};

#define STRINGS "\0int\0long\0prog\0callback\0__sk_buff\0filter\0skb" \
	"\0bpf_raw_tracepoint_args\0raw\0args"

struct int_type {
	struct btf_type type;
	__u32 encoding;
};

static const struct {
	struct btf_header head;
	struct int_type ints[2];
	struct btf_type funcs[3];
	struct ctx_types {
		struct btf_type types[3];
		struct btf_param param;
		struct btf_type func;
	} filter, raw;
	char strings[sizeof(STRINGS)];
} types = {
	.head = {
		.magic = BTF_MAGIC, .version = BTF_VERSION,
		.hdr_len = sizeof(types.head),
		.type_len = offsetof(typeof(types), strings) - sizeof(types.head),
		.str_off = offsetof(typeof(types), strings) - sizeof(types.head),
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
	.filter = {
		{
			{ 24, BTF_KIND_STRUCT << 24 },
			{ 0, BTF_KIND_PTR << 24, { TYPE_SKB } },
			{ 0, BTF_KIND_FUNC_PROTO << 24 | 1, { TYPE_INT } },
		},
		{ 41, TYPE_SKB_PTR },
		{ 34, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, { TYPE_FILTER_PROTO } },
	},
	.raw = {
		{
			{ 45, BTF_KIND_STRUCT << 24 },
			{ 0, BTF_KIND_PTR << 24, { TYPE_ARGS } },
			{ 0, BTF_KIND_FUNC_PROTO << 24 | 1, { TYPE_INT } },
		},
		{ 73, TYPE_ARGS_PTR },
		{ 69, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, { TYPE_RAW_PROTO } },
	},
	.strings = STRINGS,
};

static inline int types_load(void)
{
	union bpf_attr attr = {
		.btf = (unsigned long)&types,
		.btf_size = offsetof(typeof(types), strings) + sizeof(STRINGS),
	};

	return sys_bpf(BPF_BTF_LOAD, &attr);
}

/* For each task or cgroup, depending on the type, a long */
static inline int storage_create(enum bpf_map_type type, int types)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = 4, .value_size = 8, .map_flags = BPF_F_NO_PREALLOC,
		.map_name = BPF_NAME, .btf_fd = types,
		.btf_key_type_id = TYPE_INT, .btf_value_type_id = TYPE_LONG,
	};

	return sys_bpf(BPF_MAP_CREATE, &attr);
}

/* Says of the program of @attr, which has one function, what type that is of */
static inline void prog_types(union bpf_attr *attr, int types, int func_type)
{
	static struct bpf_func_info func;

	func.type_id = func_type;
	attr->prog_btf_fd = types;
	attr->func_info_rec_size = sizeof(func);
	attr->func_info = (unsigned long)&func;
	attr->func_info_cnt = 1;
}

/* The same of a socket filter, or of what replaces one */
static inline void filter_types(union bpf_attr *attr, int types)
{
	prog_types(attr, types, TYPE_FILTER);
}

/* A socket filter that returns 7, with types or without */
static inline int target_load(int types)
{
	const struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 7),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	if (types >= 0)
		filter_types(&attr, types);
	return prog_load_attr(&attr);
}

#endif /* BPF_EVENTS_TYPES_H */
