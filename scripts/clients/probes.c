// SPDX-License-Identifier: GPL-2.0
/* probes: what libbpf finds out about the kernel that it runs on, before it decides how to load a program. */
#include <stdio.h>
#include "libbpf_internal.h"

#define FEATURE(name) [FEAT_##name] = #name

static const char * const names[__FEAT_CNT] = {
	FEATURE(PROG_NAME), FEATURE(GLOBAL_DATA), FEATURE(BTF), FEATURE(BTF_FUNC), FEATURE(BTF_DATASEC),
	FEATURE(BTF_GLOBAL_FUNC), FEATURE(ARRAY_MMAP), FEATURE(EXP_ATTACH_TYPE), FEATURE(PROBE_READ_KERN),
	FEATURE(PROG_BIND_MAP), FEATURE(MODULE_BTF), FEATURE(BTF_FLOAT), FEATURE(PERF_LINK), FEATURE(BTF_DECL_TAG),
	FEATURE(BTF_TYPE_TAG), FEATURE(MEMCG_ACCOUNT), FEATURE(BPF_COOKIE), FEATURE(BTF_ENUM64), FEATURE(SYSCALL_WRAPPER),
	FEATURE(UPROBE_MULTI_LINK), FEATURE(ARG_CTX_TAG), FEATURE(BTF_QMARK_DATASEC),
};

int main(void)
{
	struct kern_feature_cache cache = {};

	for (int i = 0; i < __FEAT_CNT; i++)
		printf("%s: %s\n", names[i] ?: "?", feat_supported(&cache, i) ? "yes" : "no");
	return 0;
}
