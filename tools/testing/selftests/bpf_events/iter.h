/* SPDX-License-Identifier: GPL-2.0 */
/* Iterators: their programs, links and files */
#ifndef BPF_EVENTS_ITER_H
#define BPF_EVENTS_ITER_H

#include "tracing.h"

static inline int iter_load(const char *target, const struct bpf_insn *insns, size_t cnt)
{
	union bpf_attr attr;

	tracing_attr(&attr, BPF_TRACE_ITER, target);
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = cnt;
	return prog_load_attr(&attr);
}

/* "%d\n" with what is @off bytes into each object */
static inline int print_prog(struct area *area, const char *target, int off)
{
	const struct bpf_insn insns[] = {
		/* The context: meta, whose first is the file, and the object */
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, 8),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_2, 0, 2),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
		AREA(BPF_REG_7, area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_W, BPF_REG_2, BPF_REG_2, off),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_2, -8),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -16, '%' | 'd' << 8 | '\n' << 16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -16),
		BPF_MOV64_IMM(BPF_REG_3, 4),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -8),
		BPF_MOV64_IMM(BPF_REG_5, 8),
		BPF_EMIT_CALL(BPF_FUNC_seq_printf),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return iter_load(target, insns, ARRAY_SIZE(insns));
}

static inline int print_ids_prog(struct area *area)
{
	return print_prog(area, "bpf_map", btf_member("bpf_map", "id"));
}

/* For each element, writes key and value, 16 bytes, and adds one to the value */
static inline int elements_prog(void)
{
	const struct bpf_insn insns[] = {
		BPF_LDX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_7, BPF_REG_1, 16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_8, BPF_REG_1, 24),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_7, 0, 12),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_8, 0, 11),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_7, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_0, -16),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_8, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_10, BPF_REG_0, -8),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_0, 1),
		BPF_STX_MEM(BPF_DW, BPF_REG_8, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -16),
		BPF_MOV64_IMM(BPF_REG_3, 16),
		BPF_EMIT_CALL(BPF_FUNC_seq_write),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return iter_load("bpf_map_elem", insns, ARRAY_SIZE(insns));
}

static inline int iter_link(int prog, const union bpf_iter_link_info *info)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.attach_type = BPF_TRACE_ITER,
		.link_create.iter_info = (unsigned long)info,
		.link_create.iter_info_len = info ? sizeof(*info) : 0,
	};

	return sys_bpf(BPF_LINK_CREATE, &attr);
}

static inline int iter_create(int link)
{
	union bpf_attr attr = { .iter_create.link_fd = link };

	return sys_bpf(BPF_ITER_CREATE, &attr);
}

/* All of a file, at most @step bytes at a time */
static inline int read_fd(int fd, char *text, size_t size, size_t step)
{
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return fd;
	while (len < size - 1) {
		n = read(fd, text + len, step < size - 1 - len ? step : size - 1 - len);
		if (n <= 0)
			break;
		len += n;
	}
	text[len] = '\0';
	close(fd);
	return n < 0 ? -errno : len;
}

/* How many lines are this number */
static inline int lines_of(const char *text, __u32 number)
{
	char line[16];
	int n = 0;

	snprintf(line, sizeof(line), "%u\n", number);
	for (; *text; text = strchr(text, '\n') + 1)
		n += !strncmp(text, line, strlen(line));
	return n;
}

#endif /* BPF_EVENTS_ITER_H */
