// SPDX-License-Identifier: GPL-2.0
/*
 * An instruction does with a uprobe what it does without, whether the kernel emulates it
 * or the task steps over a copy of it: also when a signal comes, or the probe goes,
 * before the task is done with the step. A return that is probed needs a word of the
 * stack, which need not be memory that can be written to
 */
#include <pthread.h>
#include <ucontext.h>

#include "common.h"
#include "late_page.h"
#include "link.h"
#include "uprobe.h"

#ifndef __x86_64__
TEST(step)
{
	SKIP(return, "a test of instructions of x86-64");
}
#else

/* What an instruction works on. The order is known to run_at(). */
struct state {
	__u64 rax;
	__u64 r8;
	__u64 mem[4];		/* rdi points here */
	__u32 ymm0[8];
	__u32 ymm1[8];
};

static const struct state at_first = {
	.rax = 0x0123456789abcdef,
	.r8 = 0xfedcba9876543210,
	.mem = { 0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444 },
	/* Floats around 1.0, some of them equal */
	.ymm0 = { 0x3f800000, 0x3f810000, 0x3f820000, 0x3f830000,
		  0x3f840000, 0x3f850000, 0x3f860000, 0x3f870000 },
	.ymm1 = { 0x3f800000, 0x3f80ff00, 0x3f820000, 0x3f00ff00,
		  0x3f840000, 0x3f80ff00, 0x3f860000, 0x3f00ff00 },
};

static bool has_vectors(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Calls @code with that, or with what there is of it. ZF is set. */
static void run_at(const char *code, struct state *state)
{
	asm volatile("sub $128, %%rsp\n"	/* the red zone */
		     "mov (%[state]), %%rax\n"
		     "mov 8(%[state]), %%r8\n"
		     "lea 16(%[state]), %%rdi\n"
		     "test %[vectors], %[vectors]\n"
		     "jz 1f\n"
		     "vmovups 48(%[state]), %%ymm0\n"
		     "vmovups 80(%[state]), %%ymm1\n"
		     "1: cmp %%rax, %%rax\n"
		     "call *%[code]\n"
		     "mov %%rax, (%[state])\n"
		     "mov %%r8, 8(%[state])\n"
		     "test %[vectors], %[vectors]\n"
		     "jz 1f\n"
		     "vmovups %%ymm0, 48(%[state])\n"
		     "vmovups %%ymm1, 80(%[state])\n"
		     "vzeroupper\n"
		     "1: add $128, %%rsp\n"
		     :: [state] "b" (state), [code] "r" (code), [vectors] "r" (has_vectors())
		     : "rax", "rdi", "r8", "xmm0", "xmm1", "memory", "cc");
}

FIXTURE(insn) {
	struct area area;
	struct probe probe;
};

FIXTURE_VARIANT(insn) {
	const char *code;
	bool nop;
	bool vector;
};

/* A function of which the first instruction is probed */
#define INSN(name, text, ...)						\
	asm(".text; .balign 16");					\
	asm("insn_" #name ": " text "; ret"); extern const char insn_##name[]; \
	FIXTURE_VARIANT_ADD(insn, name) { .code = insn_##name, __VA_ARGS__ }

INSN(nop, "nop", .nop = true);
INSN(nop_of_two_bytes, "xchg %ax, %ax", .nop = true);
INSN(nop_with_rex_w, ".byte 0x48, 0x90", .nop = true);
INSN(nopl, "nopl 8(%rax)", .nop = true);
INSN(nopw, "nopw 0x200(%rax,%rax,1)", .nop = true);
INSN(pause, "pause", .nop = true);
INSN(endbr64, "endbr64", .nop = true);
INSN(endbr32, "endbr32", .nop = true);
INSN(xchg_r8_rax, ".byte 0x49, 0x90");
INSN(xchg_r8d_eax, ".byte 0x41, 0x90");
INSN(xchg_r8w_ax, ".byte 0x66, 0x41, 0x90");
INSN(rdsspq, "rdsspq %rax");
INSN(lea, "lea 8(%r8), %rax");
INSN(mov_to_memory, "mov %rax, (%rdi)");
INSN(push, "push %r8; pop %rax");
INSN(jump, "jmp 1f; inc %rax; 1:");
INSN(jump_if, "jz 1f; inc %rax; 1:");
INSN(jump_if_not, "jnz 1f; inc %rax; 1:");
INSN(call, "call 1f; inc %rax; ret; 1: inc %r8");
INSN(return, "ret");
INSN(rip_relative, "mov insn_nop(%rip), %rax");
/* In their own maps, these have the opcodes of call, jumps, push, ret and popf */
INSN(vpsubsb, "vpsubsb %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vpsubsw, "vpsubsw %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vpor, "vpor %ymm1, %ymm0, %ymm0", .vector = true);
INSN(vpshufd, "vpshufd $0x1b, %xmm0, %xmm0", .vector = true);
INSN(vpsrlq, "vpsrlq $4, %xmm0, %xmm0", .vector = true);
INSN(vpcmpeqb, "vpcmpeqb %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vpcmpeqd, "vpcmpeqd %ymm1, %ymm0, %ymm0", .vector = true);
INSN(vzeroupper, "vzeroupper", .vector = true);
INSN(vhaddps, "vhaddps %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vmovd, "vmovd %xmm0, %eax", .vector = true);
INSN(vmovdqu, "vmovdqu %xmm0, (%rdi)", .vector = true);
INSN(vxorps, "vxorps %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vcmpltps, "vcmpltps %xmm1, %xmm0, %xmm0; lea insn_nop(%rip), %rax", .vector = true);
INSN(vfnmadd132ss, "vfnmadd132ss %xmm1, %xmm0, %xmm0", .vector = true);
INSN(vaddps_rip_relative, "vaddps insn_nop(%rip), %xmm1, %xmm0", .vector = true);

FIXTURE_SETUP(insn)
{
	SKIP_WITHOUT(return, uprobe_prepare());
	if (variant->vector && !has_vectors())
		SKIP(return, "a CPU with AVX2 and FMA");
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&self->probe, "", SELF, file_offset(variant->code), 0,
				      PROBE_PMU));
}

FIXTURE_TEARDOWN_PARENT(insn)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Where tasks find the copies */
static bool has_copies(void)
{
	char line[512];

	return find_line("/proc/self/maps", "[uprobes]", line, sizeof(line));
}

TEST_F(insn, does_what_it_does_unprobed)
{
	struct state unprobed = at_first, state;
	int i, fd;

	run_at(variant->code, &unprobed);
	fd = attach(&self->probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, fd);
	for (i = 1; i <= 2; i++) {
		state = at_first;
		run_at(variant->code, &state);
		EXPECT_EQ(0, memcmp(&unprobed, &state, sizeof(state)));
		EXPECT_EQ(i, area_get(&self->area, 0));
	}
	/* A nop is not stepped over */
	if (variant->nop || variant->vector)
		EXPECT_EQ(variant->vector, has_copies());
	close(fd);
	state = at_first;
	run_at(variant->code, &state);
	EXPECT_EQ(0, memcmp(&unprobed, &state, sizeof(state)));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* A load that waits for its page while the task steps over it */
extern __u64 load(const void *mem);
#define LOAD_LEN 3

asm(".text; .balign 16; load: mov (%rdi), %rax; ret");

FIXTURE(step) {
	struct area area;
	struct late_page page;
	pthread_t thread;
	int fd;
};

/* What it gave, and 1; which signal came, and where */
static __u64 loaded, signalled, signalled_at;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	signalled_at = regs[REG_RIP];
	if (signal == SIGSEGV)
		regs[REG_RIP] += LOAD_LEN;
	__atomic_store_n(&signalled, signal, __ATOMIC_SEQ_CST);
}

static void *load_in_thread(void *page)
{
	__atomic_store_n(&loaded, load(page) + 1, __ATOMIC_SEQ_CST);
	/* Nothing here asks for signals */
	spin_until(__atomic_load_n(&signalled, __ATOMIC_SEQ_CST));
	return NULL;
}

FIXTURE_SETUP(step)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	struct probe probe;

	SKIP_WITHOUT(return, uprobe_prepare() ?: late_page_missing());
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, sigaction(SIGSEGV, &action, NULL));
	ASSERT_EQ(0, late_page_create(&self->page));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF, file_offset(load), 0, PROBE_PMU));
	self->fd = attach(&probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(step)
{
	EXPECT_STREQ("nothing", leftovers());
}

static int start_step(FIXTURE_DATA(step) * self)
{
	if (pthread_create(&self->thread, NULL, load_in_thread, self->page.mem))
		return -ENOMEM;
	return wait_until(late_page_is_awaited(&self->page)) ? 0 : -ETIME;
}

/* It is for what comes after the step, and the task does not forget it */
TEST_F(step, signal_comes_after_it)
{
	struct uffd_msg msg;

	ASSERT_EQ(0, start_step(self));
	EXPECT_EQ(1, area_get(&self->area, 0));
	ASSERT_EQ(sizeof(msg), read(self->page.uffd, &msg, sizeof(msg)));
	ASSERT_EQ(0, pthread_kill(self->thread, SIGUSR1));
	/* The task has looked at it, and does the step once more */
	ASSERT_TRUE(wait_until(late_page_is_awaited(&self->page)));
	EXPECT_EQ(0, __atomic_load_n(&signalled, __ATOMIC_SEQ_CST));
	ASSERT_EQ(0, late_page_give(&self->page, NULL));
	EXPECT_EQ(0, pthread_join(self->thread, NULL));
	EXPECT_EQ(SIGUSR1, signalled);
	EXPECT_EQ(1, loaded);
	EXPECT_EQ(1, area_get(&self->area, 0));
	EXPECT_EQ((__u64)load + LOAD_LEN, signalled_at);
	close(self->fd);
}

static int sleepable_prog(void)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), 0, BPF_F_SLEEPABLE);
}

/* Others come, and may be where it was in memory: each waits until what went is free */
TEST_F(step, probe_goes_before_its_end)
{
	struct probe other;
	int i, fd;

	ASSERT_EQ(0, start_step(self));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(self->fd);
	ASSERT_EQ(0, uprobe_create_at(&other, "", SELF, file_offset(user_func), 0, PROBE_PMU));
	for (i = 0; i < 20; i++) {
		fd = attach(&other, sleepable_prog());
		ASSERT_LE(0, fd);
		user_hits(1);
		close(fd);
	}
	ASSERT_EQ(0, late_page_give(&self->page, NULL));
	__atomic_store_n(&signalled, 1, __ATOMIC_SEQ_CST);
	EXPECT_EQ(0, pthread_join(self->thread, NULL));
	EXPECT_EQ(1, loaded);
	EXPECT_EQ(1, area_get(&self->area, 0));
}

/* The page does not come: the signal about that is for the place that is probed */
TEST_F(step, instruction_faults)
{
	int i;

	for (i = 1; i <= 2; i++) {
		signalled = 0;
		load(NULL);
		EXPECT_EQ(SIGSEGV, signalled);
		EXPECT_EQ((__u64)load, signalled_at);
		EXPECT_EQ(i, area_get(&self->area, 0));
	}
	close(self->fd);
}

/* Breakpoints that are not of uprobes, in a process that has some */

#define LEA_LEN 4

/* The kernel steps over the first instruction */
FUNCS(stepped, 1, "lea 8(%rdi), %rax");
/* The first instruction is a breakpoint */
FUNCS(trapping, 1, "int3");

FIXTURE(trap) {
	struct area area;
};

static int trap_code;

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	signalled++;
	signalled_at = regs[REG_RIP];
	trap_code = info->si_code;
	if (signalled_at == (__u64)stepped)
		regs[REG_RIP] += LEA_LEN;
}

FIXTURE_SETUP(trap)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct probe probe;

	SKIP_WITHOUT(return, uprobe_prepare());
	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF, file_offset(stepped), 0, PROBE_PMU));
	ASSERT_LE(0, attach(&probe, count_prog(&self->area, 0, 0)));
	ASSERT_EQ(8 + 1, call_func(stepped, 1));
	ASSERT_EQ(1, area_get(&self->area, 0));
}

FIXTURE_TEARDOWN_PARENT(trap)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(trap, elsewhere)
{
	call_func(trapping, 0);
	EXPECT_EQ(1, signalled);
	EXPECT_EQ((__u64)trapping + 1, signalled_at);
	EXPECT_EQ(SI_KERNEL, trap_code);
	EXPECT_EQ(8 + 2, call_func(stepped, 2));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* The process maps a page of breakpoints over that of the copies */
TEST_F(trap, in_place_of_the_copy)
{
	unsigned long copies;
	char line[512];
	void *page;

	ASSERT_TRUE(find_line("/proc/self/maps", "[uprobes]", line, sizeof(line)));
	copies = strtoul(line, NULL, 16);
	page = mmap((void *)copies, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ASSERT_EQ((void *)copies, page);
	memset(page, 0xcc, 4096);
	call_func(stepped, 1);
	EXPECT_EQ(1, signalled);
	EXPECT_EQ((__u64)stepped, signalled_at);
	EXPECT_EQ(2, area_get(&self->area, 0));
	EXPECT_EQ(0, munmap(page, 4096));
}

/* Calls returning, whose return address is in memory of its own: that of returned */
extern char call_on[], returning[], returned[];
asm(".text; call_on: push %rbx; mov %rsp, %rbx; mov %rdi, %rsp; jmp returning\n"
	"returned: mov %rbx, %rsp; pop %rbx; ret\n"
	"returning: nop; mov $11, %eax; mov $12, %ecx; mov $13, %r11d; ret");

FIXTURE(stack) {
	struct area area;
	char *pages;		/* two */
	size_t page;
	int fd;
};

FIXTURE_SETUP(stack)
{
	struct probe probe;

	SKIP_WITHOUT(return, uprobe_prepare());
	self->page = sysconf(_SC_PAGESIZE);
	self->pages = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pages);
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, uprobe_create_at(&probe, "", SELF, file_offset(returning), 0,
				      PROBE_PMU | PROBE_RETURN));
	self->fd = attach(&probe, count_prog(&self->area, 0, 0));
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN_PARENT(stack)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Where the return address is now; the second page becomes what @prot says */
static __u64 put_address(FIXTURE_DATA(stack) * self, int offset, int prot)
{
	char *at = self->pages + self->page + offset;
	void *address = returned;

	mprotect(self->pages + self->page, self->page, PROT_READ | PROT_WRITE);
	memcpy(at, &address, sizeof(address));
	mprotect(self->pages + self->page, self->page, prot);
	return (__u64)at;
}

TEST_F(stack, can_be_written_to)
{
	call_func(call_on, put_address(self, 0, PROT_READ | PROT_WRITE));
	EXPECT_EQ(1, area_get(&self->area, 0));
	call_func(call_on, put_address(self, -4, PROT_READ | PROT_WRITE));
	EXPECT_EQ(2, area_get(&self->area, 0));
}

/* The kernel goes there by a system call, which needs these for itself */
TEST_F(stack, registers_are_those_of_the_return)
{
	__u64 ax, cx, r11;

	asm volatile("sub $128, %%rsp; call returning; add $128, %%rsp; mov %%r11, %%rdx"
		     : "=a"(ax), "=c"(cx), "=d"(r11) : : "r11", "memory", "cc");
	EXPECT_EQ(11, ax);
	EXPECT_EQ(12, cx);
	EXPECT_EQ(13, r11);
	EXPECT_EQ(1, area_get(&self->area, 0));
}

/* All of the word, or none: the function returns, and the probe does not see it */
TEST_F(stack, cannot_be_written_to)
{
	void *address = returned;
	__u64 at;
	int i;

	for (i = 0; i < 2; i++) {
		at = put_address(self, i ? -4 : 0, PROT_READ);
		call_func(call_on, at);
		EXPECT_EQ(0, memcmp((void *)at, &address, sizeof(address)));
		EXPECT_EQ(0, area_get(&self->area, 0));
		if (!mainline())
			EXPECT_EQ(i + 1, fdinfo_number(self->fd, "bpf_prog_missed"));
	}
	call_func(call_on, put_address(self, 0, PROT_READ | PROT_WRITE));
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_F(stack, cannot_be_read)
{
	__u64 at = put_address(self, 0, PROT_NONE);
	pid_t child = fork();

	ASSERT_LE(0, child);
	if (!child) {
		call_func(call_on, at);
		_exit(0);
	}
	EXPECT_EQ(-SIGSEGV, child_status(child));
	EXPECT_EQ(0, area_get(&self->area, 0));
	call_func(call_on, put_address(self, 0, PROT_READ | PROT_WRITE));
	EXPECT_EQ(1, area_get(&self->area, 0));
}

#endif

TEST_HARNESS_MAIN
