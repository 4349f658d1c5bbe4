/* SPDX-License-Identifier: GPL-2.0 */
/* A program for sessions, which sees both ends of a call and a number between them */
#ifndef BPF_EVENTS_SESSION_H
#define BPF_EVENTS_SESSION_H

#include "multi.h"
#include "types.h"

#define IS_RETURN "bpf_session_is_return"
#define COOKIE_FUNC "bpf_session_cookie"

/* Slots: for each function of the link */
enum {
	ENTRIES,
	RETURNS = ENTRIES + TALLIES,
	MATCHES = RETURNS + TALLIES,	/* the return found what the entry left */
	COOKIES = MATCHES + TALLIES,	/* of the attachment, as seen on return */
	VERDICT = COOKIES + TALLIES,	/* what the entry returns */
	TGID = VERDICT + TALLIES,		/* of whom to count, 0: of all */
};

/*
 * The entry leaves a number of the thread, the function and the link: the same for
 * nested calls of a function.
 */
static inline int session_prog(struct area *area, enum bpf_attach_type attach, __u32 flags)
{
	int is_return = btf_func_id(IS_RETURN), cookie = btf_func_id(COOKIE_FUNC);
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		AREA(BPF_REG_7, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_7, 8 * TGID),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_1, 0, 1),
		BPF_JMP_REG(BPF_JNE, BPF_REG_1, BPF_REG_0, 29),

		/* R9 is the cookie, R7 the function's slot 0, R8 the number */
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		BPF_MOV64_REG(BPF_REG_9, BPF_REG_0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, TALLIES - 1),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_0, 3),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_7, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_0, 32),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_8, 32),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_8, 32),
		BPF_ALU64_REG(BPF_OR, BPF_REG_8, BPF_REG_0),
		BPF_ALU64_REG(BPF_XOR, BPF_REG_8, BPF_REG_9),
		CALL_KFUNC(cookie),
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_0),
		CALL_KFUNC(is_return),
		BPF_MOV64_IMM(BPF_REG_1, 1),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 6),

		/* Entry: it counts if no other call has left a number here */
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_8, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_2, 0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * ENTRIES),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, 8 * VERDICT),
		BPF_JMP_A(6),

		/* Return */
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * RETURNS),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_9, 8 * COOKIES),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_6, 0),
		BPF_JMP_REG(BPF_JNE, BPF_REG_2, BPF_REG_8, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * MATCHES),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_ALU64_IMM(BPF_AND, BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), attach, flags);
}

/* What there is of one function: "entries returns matches" */
static inline const char *counts(struct area *area, unsigned int i)
{
	static char text[128];

	snprintf(text, sizeof(text), "%llu %llu %llu",
		 area_get(area, ENTRIES + i), area_get(area, RETURNS + i),
		 area_get(area, MATCHES + i));
	return text;
}

#endif /* BPF_EVENTS_SESSION_H */
