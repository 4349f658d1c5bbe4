// SPDX-License-Identifier: GPL-2.0
/*
 * Lockdown against a program's reads of kernel memory, and its writes to that
 * of processes.  Lockdown cannot be lowered again: run this last, or in a
 * machine of its own.
 */
#include "common.h"
#include "load_log.h"
#include "types.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

/* Loads a program that calls a helper to read 8 bytes from address 0 */
static int load_reader(int helper)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(helper),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	return load_log(&attr);
}

FIXTURE(lockdown) {
};

FIXTURE_VARIANT(lockdown) {
	int helper;
	const char *name;
	bool kernel;		/* it reads the kernel's memory */
};

FIXTURE_VARIANT_ADD(lockdown, probe_read) {
	.helper = BPF_FUNC_probe_read, .name = "bpf_probe_read#4",
	.kernel = true,
};

FIXTURE_VARIANT_ADD(lockdown, probe_read_str) {
	.helper = BPF_FUNC_probe_read_str, .name = "bpf_probe_read_str#45",
	.kernel = true,
};

FIXTURE_VARIANT_ADD(lockdown, probe_read_kernel) {
	.helper = BPF_FUNC_probe_read_kernel,
	.name = "bpf_probe_read_kernel#113", .kernel = true,
};

FIXTURE_VARIANT_ADD(lockdown, probe_read_kernel_str) {
	.helper = BPF_FUNC_probe_read_kernel_str,
	.name = "bpf_probe_read_kernel_str#115", .kernel = true,
};

FIXTURE_VARIANT_ADD(lockdown, probe_read_user) {
	.helper = BPF_FUNC_probe_read_user, .name = "bpf_probe_read_user#112",
};

FIXTURE_VARIANT_ADD(lockdown, probe_read_user_str) {
	.helper = BPF_FUNC_probe_read_user_str,
	.name = "bpf_probe_read_user_str#114",
};

FIXTURE_SETUP(lockdown)
{
	const char *missing = prepare();

	/* Under lockdown tracefs cannot be asked */
	if (missing && strcmp(missing, "CONFIG_KPROBE_EVENTS"))
		SKIP(return, "%s", missing);
	if (access(LOCKDOWN, F_OK))
		mount("securityfs", "/sys/kernel/security", "securityfs", 0,
		      NULL);
	if (access(LOCKDOWN, F_OK))
		SKIP(return, "CONFIG_SECURITY_LOCKDOWN_LSM");
}

FIXTURE_TEARDOWN_PARENT(lockdown)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Raises lockdown; that it is there already is fine */
static bool raise_lockdown(const char *level)
{
	char line[64], now[64];

	write_file(LOCKDOWN, 0, "%s", level);
	snprintf(now, sizeof(now), "[%s]", level);
	return find_line(LOCKDOWN, now, line, sizeof(line));
}

TEST(integrity_lets_programs_read)
{
	if (access(LOCKDOWN, F_OK))
		SKIP(return, "CONFIG_SECURITY_LOCKDOWN_LSM");
	if (prepare())
		SKIP(return, "%s", prepare());
	ASSERT_TRUE(raise_lockdown("integrity"));
	EXPECT_LE(0, load_reader(BPF_FUNC_probe_read_kernel));
}

TEST(integrity_keeps_programs_from_writing)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_1, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_ST_MEM(BPF_DW, BPF_REG_2, 0, 0),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		BPF_EMIT_CALL(BPF_FUNC_probe_write_user),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	if (access(LOCKDOWN, F_OK))
		SKIP(return, "CONFIG_SECURITY_LOCKDOWN_LSM");
	ASSERT_TRUE(raise_lockdown("integrity"));
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	EXPECT_EQ(-EINVAL, load_log(&attr));
	EXPECT_TRUE(logged("lockdown forbids programs to write"));
}

TEST_F(lockdown, confidentiality)
{
	int ret;

	ASSERT_TRUE(raise_lockdown("confidentiality"));
	ret = load_reader(variant->helper);
	if (!variant->kernel) {
		EXPECT_LE(0, ret) TH_LOG("%s", log_text);
		return;
	}
	EXPECT_EQ(-EINVAL, ret);
	EXPECT_TRUE(logged(variant->name));
	EXPECT_TRUE(logged("lockdown"));
}

/* Kfuncs that read the kernel's memory: all of them take an address first */

FIXTURE(kfunc) {
};

FIXTURE_VARIANT(kfunc) {
	const char *name;
	bool kernel;
};

FIXTURE_VARIANT_ADD(kfunc, fetch_u8) {
	.name = "bpf_fetch_u8", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, fetch_u16) {
	.name = "bpf_fetch_u16", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, fetch_u32) {
	.name = "bpf_fetch_u32", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, fetch_u64) {
	.name = "bpf_fetch_u64", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, fetch_ptr) {
	.name = "bpf_fetch_ptr", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, memcmp) {
	.name = "bpf_memcmp", .kernel = true,
};

FIXTURE_VARIANT_ADD(kfunc, dump_stack) {
	.name = "bpf_dump_stack",
};

FIXTURE_SETUP(kfunc)
{
	lockdown_setup(_metadata, NULL, NULL);
}

FIXTURE_TEARDOWN_PARENT(kfunc)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(kfunc, confidentiality)
{
	int id = btf_func_id(variant->name), ret;
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_1, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_ST_MEM(BPF_DW, BPF_REG_2, 0, 0),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		CALL_KFUNC(id),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	ASSERT_LT(0, id);
	ASSERT_TRUE(raise_lockdown("confidentiality"));
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	ret = sys_bpf(BPF_PROG_LOAD, &attr);
	if (variant->kernel) {
		EXPECT_EQ(-EACCES, ret);
		return;
	}
	EXPECT_LE(0, ret);
}

TEST_HARNESS_MAIN
