// SPDX-License-Identifier: GPL-2.0
/*
 * A 32-bit task without a libc, for which there may be none: it does what it is
 * told by requests on descriptor 0, and writes to descriptor 1 what came of each
 */
#include "compat_task.h"

/* System calls of 32-bit tasks */
enum { NR_EXIT = 1, NR_READ = 3, NR_WRITE = 4 };

char buffer[COMPAT_BUFFER];

asm(".text\n\t"
	"outer:\n\t"
	"push %ebp\n\t"
	"mov %esp, %ebp\n\t"
	"push 8(%ebp)\n\t"
	"call inner\n"
	"outer_ret:\n\t"
	"leave\n\t"
	"ret\n"
	"inner:\n\t"
	"push %ebp\n\t"
	"mov %esp, %ebp\n\t"
	"push 8(%ebp)\n\t"
	"call leaf\n"
	"inner_ret:\n\t"
	"leave\n\t"
	"ret\n"
	"leaf:\n\t"
	"push %ebp\n\t"
	"mov %esp, %ebp\n"
	"leaf_body:\n\t"
	"mov 8(%ebp), %eax\n\t"
	"inc %eax\n\t"
	"pop %ebp\n\t"
	"ret\n"
	/* struct compat_table */
	".balign 4\n"
	"table:\n\t"
	".asciz \"" COMPAT_MAGIC "\"\n\t"
	".balign 4\n\t"
	".long table, buffer, leaf, leaf_body, inner_ret, outer_ret\n");

static int sys(unsigned int nr, unsigned int a, unsigned int b, unsigned int c, unsigned int d)
{
	int ret;

	asm volatile("int $0x80" : "=a" (ret)
		     : "a" (nr), "b" (a), "c" (b), "d" (c), "S" (d) : "memory");
	return ret;
}

void _start(void)
{
	struct compat_request r;
	int ret;

	while (sys(NR_READ, 0, (unsigned int)&r, sizeof(r), 0) == sizeof(r)) {
		ret = r.nr == COMPAT_CALL ? (int)outer(r.args[0]) :
		      sys(r.nr, r.args[0], r.args[1], r.args[2], r.args[3]);
		sys(NR_WRITE, 1, (unsigned int)&ret, sizeof(ret), 0);
	}
	for (;;)
		sys(NR_EXIT, 0, 0, 0, 0);
}
