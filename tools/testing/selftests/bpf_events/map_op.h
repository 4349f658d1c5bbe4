/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that work on one map, one in the middle of an operation of the other */
#ifndef BPF_EVENTS_MAP_OP_H
#define BPF_EVENTS_MAP_OP_H

#include "body.h"
#include "types.h"

/*
 * Slots: the operations begun, those that were refused, those of them that would have had
 * to wait, as well as the deletions that would, whether an operation is under way, and its
 * number, if that goes into a key
 */
enum { OPS, REFUSED, WAITS, DELETE_WAITS, UNDER_WAY, NUMBER };

#define KEYS 128	/* that each of the two programs uses, of a map which has keys */

static inline int op_map(enum bpf_map_type type, __u32 flags)
{
	switch (type) {
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		return map_create(type, 0, 8, 16, flags);
	case BPF_MAP_TYPE_RINGBUF:
		return map_create(type, 0, 0, 1 << 20, flags);
	case BPF_MAP_TYPE_STACK_TRACE:
		return map_create(type, 4, 8 * 16, 64, flags);
	case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH:	/* has to evict */
		return map_create(type, 8, 8, KEYS / 4, flags);
	case BPF_MAP_TYPE_LPM_TRIE:
		return map_create(type, 8, 8, 2 * KEYS, BPF_F_NO_PREALLOC);
	case BPF_MAP_TYPE_TASK_STORAGE:
	case BPF_MAP_TYPE_CGRP_STORAGE:
		return storage_create(type, types_load());
	default:	/* large enough to be counted by CPU if it is not preallocated */
		return map_create(type, 8, 8, flags & BPF_F_NO_PREALLOC ? 1 << 16 : 2 * KEYS,
				  flags);
	}
}

/* R0 is what the operation returns, negative if it was refused; says how long it is */
static inline size_t op_insns(struct bpf_insn *to, enum bpf_map_type type, int map, bool upper)
{
	const struct bpf_insn push[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_IMM(BPF_REG_3, BPF_EXIST),
		BPF_EMIT_CALL(BPF_FUNC_map_push_elem),
	};
	const struct bpf_insn output[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		BPF_MOV64_IMM(BPF_REG_4, BPF_RB_NO_WAKEUP),
		BPF_EMIT_CALL(BPF_FUNC_ringbuf_output),
	};
	const struct bpf_insn stack[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, BPF_F_REUSE_STACKID),
		BPF_EMIT_CALL(BPF_FUNC_get_stackid),
	};
	/* Makes the storage of the task; NULL is turned into an errno */
	const struct bpf_insn storage[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_IMM(BPF_REG_4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		BPF_EMIT_CALL(BPF_FUNC_task_storage_get),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, -EBUSY),
		BPF_JMP_A(1),
		BPF_MOV64_IMM(BPF_REG_0, 0),
	};
	/* Deletes that of its cgroup, which there is not */
	const struct bpf_insn cgroup[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_current_task_btf),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_0, btf_member("task_struct", "cgroups")),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_2, btf_member("css_set", "dfl_cgrp")),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_EMIT_CALL(BPF_FUNC_cgrp_storage_delete),
	};
	/*
	 * Adds the element of its number, and deletes the one that it added KEYS / 2 times
	 * ago, so none is replaced; of a trie, 32 bits
	 */
	const struct bpf_insn update[] = {
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_RAW_INSN(BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_7, BPF_REG_0, 8 * NUMBER,
			     BPF_ADD | BPF_FETCH),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, KEYS - 1),
		BPF_ALU64_IMM(BPF_OR, BPF_REG_0, upper ? KEYS : 0),
		BPF_STX_MEM(BPF_W, BPF_REG_10, BPF_REG_0, -4),
		BPF_ST_MEM(BPF_W, BPF_REG_10, -8, 32),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, BPF_ANY),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_LDX_MEM(BPF_W, BPF_REG_0, BPF_REG_10, -4),
		BPF_ALU64_IMM(BPF_XOR, BPF_REG_0, KEYS / 2),
		BPF_STX_MEM(BPF_W, BPF_REG_10, BPF_REG_0, -4),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_EMIT_CALL(BPF_FUNC_map_delete_elem),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, -EBUSY, 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * DELETE_WAITS),
		BPF_MOV64_REG(BPF_REG_0, BPF_REG_8),
	};

	switch (type) {
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		memcpy(to, push, sizeof(push));
		return ARRAY_SIZE(push);
	case BPF_MAP_TYPE_RINGBUF:
		memcpy(to, output, sizeof(output));
		return ARRAY_SIZE(output);
	case BPF_MAP_TYPE_STACK_TRACE:
		memcpy(to, stack, sizeof(stack));
		return ARRAY_SIZE(stack);
	case BPF_MAP_TYPE_TASK_STORAGE:
		memcpy(to, storage, sizeof(storage));
		return ARRAY_SIZE(storage);
	case BPF_MAP_TYPE_CGRP_STORAGE:
		memcpy(to, cgroup, sizeof(cgroup));
		return ARRAY_SIZE(cgroup);
	default:
		memcpy(to, update, sizeof(update));
		return ARRAY_SIZE(update);
	}
}

/* Works on @map: @lower while it says that it is under way, or always if that is NULL */
static inline int op_prog(union bpf_attr *attr, struct area *area, struct area *lower,
			  enum bpf_map_type type, int map)
{
	const struct bpf_insn when[] = {
		AREA(BPF_REG_1, lower ?: area, lower ? UNDER_WAY : OPS),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 1),
		BPF_EXIT_INSN(),
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * UNDER_WAY, 1),
	};
	const struct bpf_insn after[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * UNDER_WAY, 0),
		BPF_JMP_IMM(BPF_JSGE, BPF_REG_0, 0, 4),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * REFUSED),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, type == BPF_MAP_TYPE_RINGBUF ? -EAGAIN : -EBUSY, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * WAITS),
	};
	struct bpf_insn body[64];
	size_t n = ARRAY_SIZE(when);

	memcpy(body, when, sizeof(when));
	n += op_insns(body + n, type, map, lower);
	memcpy(body + n, after, sizeof(after));
	return body_load(attr, area, body, n + ARRAY_SIZE(after));
}

#endif /* BPF_EVENTS_MAP_OP_H */
