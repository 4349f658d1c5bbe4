/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that work on one map, one in the middle of an operation of the other */
#ifndef BPF_EVENTS_MAP_OP_H
#define BPF_EVENTS_MAP_OP_H

#include "body.h"

/* Slots: the operations begun, those that were refused, and whether one is under way */
enum { OPS, REFUSED, UNDER_WAY };

static inline int op_map(enum bpf_map_type type)
{
	switch (type) {
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		return map_create(type, 0, 8, 16, 0);
	case BPF_MAP_TYPE_RINGBUF:
		return map_create(type, 0, 0, 1 << 20, 0);
	default:
		return map_create(BPF_MAP_TYPE_STACK_TRACE, 4, 8 * 16, 64, 0);
	}
}

/* R0 is what the operation returns, negative if it was refused; says how long it is */
static inline size_t op_insns(struct bpf_insn *to, enum bpf_map_type type, int map)
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

	switch (type) {
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
		memcpy(to, push, sizeof(push));
		return ARRAY_SIZE(push);
	case BPF_MAP_TYPE_RINGBUF:
		memcpy(to, output, sizeof(output));
		return ARRAY_SIZE(output);
	default:
		memcpy(to, stack, sizeof(stack));
		return ARRAY_SIZE(stack);
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
		BPF_JMP_IMM(BPF_JSGE, BPF_REG_0, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * REFUSED),
	};
	struct bpf_insn body[64];
	size_t n = ARRAY_SIZE(when);

	memcpy(body, when, sizeof(when));
	n += op_insns(body + n, type, map);
	memcpy(body + n, after, sizeof(after));
	return body_load(attr, area, body, n + ARRAY_SIZE(after));
}

#endif /* BPF_EVENTS_MAP_OP_H */
