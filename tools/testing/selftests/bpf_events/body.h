/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs of any type whose hits are those of one process: they count them
 * in slot 0, and a body has the context in R6 and the area in R7
 */
#ifndef BPF_EVENTS_BODY_H
#define BPF_EVENTS_BODY_H

#include "prog.h"

#define MAX_BODY_INSNS 96

/* Where the body begins, in instructions */
#define BODY_START 10

static inline void load_attr(union bpf_attr *attr, enum bpf_prog_type type,
			     enum bpf_attach_type attach, __u32 btf_id)
{
	prog_attr(attr, NULL, 0);
	attr->prog_type = type;
	attr->expected_attach_type = attach;
	attr->attach_btf_id = btf_id;
}

/*
 * Loads a body into a program that is otherwise as in @attr; it returns 0 if
 * the body does not end with an exit
 */
static inline int body_load(union bpf_attr *attr, struct area *area,
			    const struct bpf_insn *body, size_t cnt)
{
	const struct bpf_insn end[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn insns[MAX_BODY_INSNS] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, getpid(), 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		AREA(BPF_REG_7, area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 0),
	};

	memcpy(insns + BODY_START, body, cnt * sizeof(*body));
	attr->insns = (unsigned long)insns;
	attr->insn_cnt = BODY_START + cnt;
	if (!cnt || body[cnt - 1].code != (BPF_JMP | BPF_EXIT)) {
		memcpy(insns + BODY_START + cnt, end, sizeof(end));
		attr->insn_cnt += ARRAY_SIZE(end);
	}
	return prog_load_attr(attr);
}

#define WAIT_INSNS 22

/*
 * A part of a body that waits so many milliseconds for a slot of @area to change, and adds to
 * slot @sum of the body's own area by how much it did.  It keeps R9.
 * Return: how many instructions
 */
static inline size_t wait_for_slot(struct bpf_insn *to, struct area *area, unsigned int slot,
				   unsigned int ms, unsigned int sum)
{
	const struct bpf_insn wait[WAIT_INSNS] = {
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_LD_IMM64(BPF_REG_1, ms * 1000000ULL),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_8, BPF_REG_1),
		AREA(BPF_REG_6, area, slot),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_1, -16),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 8, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_10, -16),
		BPF_JMP_REG(BPF_JNE, BPF_REG_1, BPF_REG_2, 5),
		/* There are 8 million rounds at most, so one takes its time */
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_JMP_REG(BPF_JLT, BPF_REG_0, BPF_REG_8, -9),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_10, -16),
		BPF_ALU64_REG(BPF_SUB, BPF_REG_1, BPF_REG_2),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_1, 8 * sum),
	};

	memcpy(to, wait, sizeof(wait));
	return WAIT_INSNS;
}

/* Nothing but the count */
static inline int own_count_prog(union bpf_attr *attr, struct area *area)
{
	return body_load(attr, area, NULL, 0);
}

/* Copies @n of the context's arguments to slot 1 and those after it */
static inline int args_prog(union bpf_attr *attr, struct area *area, unsigned int n)
{
	struct bpf_insn body[2 * 12];
	unsigned int i;

	for (i = 0; i < n; i++) {
		body[2 * i] = BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, 8 * i);
		body[2 * i + 1] = BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * (1 + i));
	}
	return body_load(attr, area, body, 2 * n);
}

/* Slot 1 becomes what a helper returns that is given the context only */
static inline int ctx_call_prog(union bpf_attr *attr, struct area *area, int helper)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_EMIT_CALL(helper),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

static inline int cookie_prog(union bpf_attr *attr, struct area *area)
{
	return ctx_call_prog(attr, area, BPF_FUNC_get_attach_cookie);
}

/* Calls get_stack() into slot 2 and those after it, slot 1 is what it returns */
#define STACK_FRAMES 32

static inline int stack_prog(union bpf_attr *attr, struct area *area, int flags)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 16),
		BPF_MOV64_IMM(BPF_REG_3, 8 * STACK_FRAMES),
		BPF_MOV64_IMM(BPF_REG_4, flags),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* The same with get_stackid() into a map */
static inline int stackid_prog(union bpf_attr *attr, struct area *area, int map, int flags)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, flags),
		BPF_EMIT_CALL(BPF_FUNC_get_stackid),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* Sends slot 0, which counts, to the ring of this CPU */
static inline int output_prog(union bpf_attr *attr, struct area *area, int map)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_LD_IMM64(BPF_REG_3, BPF_F_CURRENT_CPU),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_7),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_perf_event_output),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};

	return body_load(attr, area, body, ARRAY_SIZE(body));
}

/* Whether the first frames are the kernel's */
static inline bool kernel_frames(const __u64 *ips, unsigned int n)
{
	__u64 start = ksym("_stext"), end = ksym("_etext");

	while (n--) {
		if (ips[n] < start || ips[n] >= end)
			return false;
	}
	return true;
}

/* A perf event that takes what programs output on CPU 0, in @map */
static inline int output_open(int map)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(attr), .sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	int key = 0, fd = perf_open(&attr, -1, 0);

	return fd < 0 ? fd : map_update(map, &key, &fd) ?: fd;
}

/* Runs a program, as in attr->test, which has what was returned */
static inline int test_run(union bpf_attr *attr, int prog)
{
	attr->test.prog_fd = prog;
	return sys_bpf(BPF_PROG_TEST_RUN, attr);
}

/* What the verifier says to a load or store of the context, or of its first argument */
static inline int access_try(union bpf_attr *attr, __u8 code, int off, bool argument)
{
	bool load = BPF_CLASS(code) == BPF_LDX;
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_1),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_RAW_INSN(code, load ? BPF_REG_0 : BPF_REG_2,
			     load ? BPF_REG_2 : BPF_REG_0, off, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd;

	if (argument)
		insns[0] = BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, 0);
	attr->insns = (unsigned long)insns;
	attr->insn_cnt = ARRAY_SIZE(insns);
	fd = sys_bpf(BPF_PROG_LOAD, attr);
	return fd < 0 ? fd : close(fd);
}

#endif /* BPF_EVENTS_BODY_H */
