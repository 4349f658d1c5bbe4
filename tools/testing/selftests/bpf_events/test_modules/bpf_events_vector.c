// SPDX-License-Identifier: GPL-2.0
/*
 * Vector instructions to probe. Reading the parameter "results" executes them, and says
 * for each what it does: a line that begins with its function and its offset there.
 */
#include <linux/cpufeature.h>
#include <linux/crc32.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include <asm/fpu/api.h>

/* What they work on: two vectors, and memory at rdi */
struct vectors {
	u32 ymm0[8];
	u32 ymm1[8];
	u32 mem[8];
	unsigned long rax;
	unsigned long rcx;
};

static const struct vectors at_first = {
	/* Floats around 1.0, some of them equal */
	.ymm0 = { 0x3f800000, 0x3f810000, 0x3f820000, 0x3f830000,
		  0x3f840000, 0x3f850000, 0x3f860000, 0x3f870000 },
	.ymm1 = { 0x3f800000, 0x3f80ff00, 0x3f820000, 0x3f00ff00,
		  0x3f840000, 0x3f80ff00, 0x3f860000, 0x3f00ff00 },
	.rax = 1,
	.rcx = 2,
};

struct vector_insn {
	const char *func;
	void (*execute)(struct vectors *v, unsigned long *at);
};

#define INSN(name) { "execute_" #name, execute_##name }

#define DEFINE_INSN(name, text)							\
static noinline void execute_##name(struct vectors *v, unsigned long *at)	\
{										\
	asm volatile("vmovdqu %[ymm0], %%ymm0\n"				\
		     "vmovdqu %[ymm1], %%ymm1\n"				\
		     "lea .Linsn%=(%%rip), %[at]\n"				\
		     ".Linsn%=: " text "\n"					\
		     "vmovdqu %%ymm0, %[ymm0]\n"				\
		     "vmovdqu %%ymm1, %[ymm1]\n"				\
		     : [ymm0] "+m" (v->ymm0), [ymm1] "+m" (v->ymm1),		\
		       "+m" (v->mem), "+a" (v->rax), "+c" (v->rcx),		\
		       [at] "=&r" (*at)						\
		     : "D" (v->mem) : "memory", "cc");				\
}

/* In their own maps, these have the opcodes of branches, cli, sti and ret */
DEFINE_INSN(vpor, "vpor %%ymm1, %%ymm0, %%ymm0")
DEFINE_INSN(vpsubsb, "vpsubsb %%xmm1, %%xmm0, %%xmm0")
DEFINE_INSN(vpsubsw, "vpsubsw %%xmm1, %%xmm0, %%xmm0")
DEFINE_INSN(vpsubd, "vpsubd %%ymm1, %%ymm0, %%ymm0")
DEFINE_INSN(vpsubq, "vpsubq %%ymm1, %%ymm0, %%ymm0")
DEFINE_INSN(vpavgb, "vpavgb %%ymm1, %%ymm0, %%ymm0")
DEFINE_INSN(vpsraw, "vpsraw %%xmm1, %%xmm0, %%xmm0")
DEFINE_INSN(vpshufd, "vpshufd $0x1b, %%ymm0, %%ymm0")
DEFINE_INSN(vpsrlq, "vpsrlq $4, %%ymm0, %%ymm0")
DEFINE_INSN(vpcmpeqd, "vpcmpeqd %%ymm1, %%ymm0, %%ymm0")
DEFINE_INSN(vzeroupper, "vzeroupper")
DEFINE_INSN(vmovd, "vmovd %%xmm0, %%eax")
DEFINE_INSN(vmovdqu, "vmovdqu %%ymm0, (%%rdi)")
DEFINE_INSN(vcmpltps, "vcmpltps %%ymm1, %%ymm0, %%ymm0")

static const struct vector_insn insns[] = {
	INSN(vpor),
	INSN(vpsubsb),
	INSN(vpsubsw),
	INSN(vpsubd),
	INSN(vpsubq),
	INSN(vpavgb),
	INSN(vpsraw),
	INSN(vpshufd),
	INSN(vpsrlq),
	INSN(vpcmpeqd),
	INSN(vzeroupper),
	INSN(vmovd),
	INSN(vmovdqu),
	INSN(vcmpltps),
};

static int results_get(char *buf, const struct kernel_param *kp)
{
	int i, len = 0;

	if (!boot_cpu_has(X86_FEATURE_AVX2))
		return -ENODEV;
	for (i = 0; i < ARRAY_SIZE(insns); i++) {
		struct vectors v = at_first;
		unsigned long at;
		bool irqs_off;

		kernel_fpu_begin();
		insns[i].execute(&v, &at);
		irqs_off = irqs_disabled();
		if (irqs_off)
			local_irq_enable();
		kernel_fpu_end();
		len += sysfs_emit_at(buf, len, "%s 0x%lx %08x%s\n", insns[i].func,
				     at - (unsigned long)insns[i].execute,
				     crc32_le(~0, (void *)&v, sizeof(v)),
				     irqs_off ? " interrupts off" : "");
	}
	return len;
}

static const struct kernel_param_ops results_ops = {
	.get = results_get,
};

module_param_cb(results, &results_ops, NULL, 0400);
MODULE_PARM_DESC(results, "execute them");
MODULE_DESCRIPTION("Tests of probes on vector instructions");
MODULE_LICENSE("GPL");
