/* SPDX-License-Identifier: GPL-2.0 */
/* Modules with events: one whose are hit about once a second each, one with a custom event */
#ifndef BPF_EVENTS_SAMPLE_MODULE_H
#define BPF_EVENTS_SAMPLE_MODULE_H

#include "test_module.h"

#define SAMPLE_MODULE_ENV "BPF_EVENTS_SAMPLE_MODULE"
#define SAMPLE_MODULE "trace_events_sample"
#define SAMPLE_EVENT "sample-trace/foo_bar"

/* Its file, or NULL */
static inline const char *sample_module(void)
{
	const char *path = getenv(SAMPLE_MODULE_ENV);

	if (!path)
		path = "/lib/modules/trace-events-sample.ko";
	return access(path, R_OK) ? NULL : path;
}

static inline int sample_unload(void)
{
	return unload_module(SAMPLE_MODULE);
}

/* The module that has put a custom event on a tracepoint of the scheduler */
#define CUSTOM_MODULE_ENV "BPF_EVENTS_CUSTOM_MODULE"
#define CUSTOM_MODULE "trace_custom_sched"
#define CUSTOM_EVENT "custom/sched_switch"
#define NO_CUSTOM_MODULE "CONFIG_SAMPLE_TRACE_CUSTOM_EVENTS=m, " CUSTOM_MODULE_ENV " says where"

/* Its file, or NULL */
static inline const char *custom_module(void)
{
	const char *path = getenv(CUSTOM_MODULE_ENV) ?: "/lib/modules/trace_custom_sched.ko";

	return access(path, R_OK) ? NULL : path;
}

/* A filter that counts all hits, which are not this process's, and lets none pass */
static inline int sample_prog(struct area *area, unsigned int slot)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
}

/* 5 s at most */
static inline bool sample_wait_hit(struct area *area, unsigned int slot)
{
	__u64 before = area_get(area, slot);
	int i;

	for (i = 0; i < 500; i++) {
		if (area_get(area, slot) != before)
			return true;
		sleep_ms(10);
	}
	return false;
}

#endif /* BPF_EVENTS_SAMPLE_MODULE_H */
