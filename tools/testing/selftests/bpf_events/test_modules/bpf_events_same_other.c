// SPDX-License-Identifier: GPL-2.0
/* The other function of the name */
#include <linux/compiler.h>

#include "bpf_events_same.h"

static noinline __noclone void bpf_events_same(void)
{
	asm volatile("");
}

void bpf_events_call_other(void)
{
	bpf_events_same();
}
