/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that call one helper: what it takes and returns is in the area */
#ifndef BPF_EVENTS_CALL_H
#define BPF_EVENTS_CALL_H

#include "probe.h"

/* Slots: what a helper takes and what it returned; a buffer for it */
enum { ARG, RET, BUF };

/* What is in RET until the helper has returned */
#define NOT_CALLED 0x5555

#define MAX_BODY 48

/* Puts what stores R0 and ends the program behind @cnt instructions */
static inline size_t body_end(struct bpf_insn *insns, size_t cnt)
{
	const struct bpf_insn end[] = {
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	memcpy(insns + cnt, end, sizeof(end));
	return cnt + ARRAY_SIZE(end);
}

/* Attaches @body, in which R1 is the context and R6 the area; R0 goes to RET */
static inline int attach_body(struct rig *rig, const struct bpf_insn *body,
			      size_t cnt)
{
	struct bpf_insn insns[MAX_BODY + 16] = {
		AREA(BPF_REG_6, &rig->area, 0),
	};

	memcpy(insns + 2, body, cnt * sizeof(*body));
	cnt = body_end(insns, 2 + cnt);
	return rig_attach(rig, prog_load(insns, cnt));
}

/* The same where others come by: the body is for one process only */
static inline int attach_body_for(struct rig *rig, pid_t tgid,
				  const struct bpf_insn *body, size_t cnt)
{
	struct bpf_insn insns[MAX_BODY + 16] = {
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, tgid, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		AREA(BPF_REG_6, &rig->area, 0),
	};

	memcpy(insns + 9, body, cnt * sizeof(*body));
	cnt = body_end(insns, 9 + cnt);
	return rig_attach(rig, prog_load(insns, cnt));
}

/* The same for a helper without arguments */
static inline int attach_call(struct rig *rig, int helper)
{
	struct bpf_insn body[] = { BPF_EMIT_CALL(helper) };

	return attach_body(rig, body, ARRAY_SIZE(body));
}

static inline __u64 result(struct rig *rig)
{
	hit();
	return area_get(&rig->area, RET);
}

/* Waits for a call by somebody else */
static inline __s64 wait_result(struct rig *rig)
{
	wait_until(area_get(&rig->area, RET) != NOT_CALLED);
	return area_get(&rig->area, RET);
}

/* A function that a kernel thread runs whenever somebody closes a map */
#define KTHREAD_FUNC "bpf_map_free_deferred"

static inline int kthread_hit(void)
{
	int map = map_create(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0);

	return map < 0 ? map : close(map);
}

#endif /* BPF_EVENTS_CALL_H */
