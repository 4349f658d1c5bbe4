/* SPDX-License-Identifier: GPL-2.0 */
/* Tracing programs, which say at load what they are for, by its BTF id */
#ifndef BPF_EVENTS_TRACING_H
#define BPF_EVENTS_TRACING_H

#include "body.h"
#include "types.h"
#include "prepare.h"

/* The function, tracepoint or iterator that @attach knows by this name */
static inline int target_id(enum bpf_attach_type attach, const char *name)
{
	char text[128];

	switch (attach) {
	case BPF_TRACE_RAW_TP:
		snprintf(text, sizeof(text), "btf_trace_%s", name);
		return btf_type_id(BTF_KIND_TYPEDEF, text);
	case BPF_TRACE_ITER:
		snprintf(text, sizeof(text), "bpf_iter_%s", name);
		return btf_func_id(text);
	default:
		return btf_func_id(name);
	}
}

static inline void tracing_attr(union bpf_attr *attr, enum bpf_attach_type attach,
				const char *name)
{
	load_attr(attr, BPF_PROG_TYPE_TRACING, attach, target_id(attach, name));
}

/* What the verifier says to a program without a body */
static inline int tracing_try(enum bpf_attach_type attach, __u32 btf_id, __u32 flags)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	load_attr(&attr, BPF_PROG_TYPE_TRACING, attach, btf_id);
	attr.prog_flags = flags;
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

/* Attaches it as a raw tracepoint that needs no name */
static inline int tracing_open(int prog)
{
	union bpf_attr attr = { .raw_tracepoint.prog_fd = prog };

	return sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

static inline int tracing_link(int prog, enum bpf_attach_type attach, __u64 cookie)
{
	union bpf_attr attr = {
		.link_create.prog_fd = prog,
		.link_create.attach_type = attach,
		.link_create.tracing.cookie = cookie,
	};

	return sys_bpf(BPF_LINK_CREATE, &attr);
}

/* Attaches a program and drops it */
static inline int tracing_open_drop(int prog)
{
	int fd = tracing_open(prog);

	close(prog);
	return fd;
}

static inline bool lsm_runs_programs(void)
{
	char line[256];

	return find_line("/sys/kernel/security/lsm", "bpf", line, sizeof(line));
}

static inline const char *tracing_prepare(void)
{
	const char *missing = prepare();

	if (!missing && access(VMLINUX_BTF, R_OK))
		return "CONFIG_DEBUG_INFO_BTF";
	return missing;
}

#endif /* BPF_EVENTS_TRACING_H */
