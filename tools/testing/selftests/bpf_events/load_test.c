// SPDX-License-Identifier: GPL-2.0
/* Which programs of type BPF_PROG_TYPE_KPROBE load, and what the log says */
#include "common.h"
#include "load_log.h"

#include <linux/btf.h>

#define SYSCTL "/proc/sys/kernel/bpf_kprobe_kern_version"
#define UNPRIV "/proc/sys/kernel/unprivileged_bpf_disabled"

static const struct bpf_insn minimal[] = {
	BPF_MOV64_IMM(BPF_REG_0, 0),
	BPF_EXIT_INSN(),
};

static int load_version(__u32 version)
{
	union bpf_attr attr;

	prog_attr(&attr, minimal, ARRAY_SIZE(minimal));
	attr.kern_version = version;
	return load_log(&attr);
}

FIXTURE(load) {
	__u64 unpriv;
};

FIXTURE_SETUP(load)
{
	SKIP_WITHOUT(return, prepare());
	ASSERT_TRUE(read_u64(UNPRIV, &self->unpriv));
}

FIXTURE_TEARDOWN_PARENT(load)
{
	__u64 now;

	write_file(SYSCTL, 0, "1");
	if (read_u64(UNPRIV, &now) && now != self->unpriv)
		EXPECT_EQ(0, write_file(UNPRIV, 0, "%llu", self->unpriv));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(load, is_program_type_2)
{
	struct bpf_prog_info info;
	int fd = prog_load(minimal, ARRAY_SIZE(minimal));

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, prog_info(fd, &info));
	EXPECT_EQ(2, info.type);
	EXPECT_STREQ(BPF_NAME, info.name);
	EXPECT_EQ(0, info.run_cnt);
	EXPECT_EQ(0, info.recursion_misses);
}

TEST_F(load, helpers_write_to_no_map_that_is_read_only)
{
	const int text = text_create("text");
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_VALUE(BPF_REG_1, text, 0),
		BPF_MOV64_IMM(BPF_REG_2, 4),
		BPF_LD_MAP_VALUE(BPF_REG_3, text, 0),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_MOV64_IMM(BPF_REG_5, 0),
		BPF_EMIT_CALL(BPF_FUNC_snprintf),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	ASSERT_LE(0, text);
	EXPECT_EQ(-EACCES, prog_load(insns, ARRAY_SIZE(insns)));
}

TEST_F(load, kern_version_must_match)
{
	const __u32 right = kern_version();
	const __u32 wrong[] = { 0, right - 1, right + 1, right + 0x10000, ~0U };
	union bpf_attr attr;
	char line[160];
	int fd, i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		ASSERT_EQ(-EINVAL, load_version(wrong[i]));
		snprintf(line, sizeof(line),
			 "kern_version 0x%06x (%u.%u.%u) does not match the running kernel 0x%06x (%u.%u.%u)\n",
			 wrong[i], wrong[i] >> 16, wrong[i] >> 8 & 255,
			 wrong[i] & 255, right, right >> 16, right >> 8 & 255,
			 right & 255);
		EXPECT_TRUE(logged(line));
		/* What to do about a version that is not there */
		EXPECT_EQ(!wrong[i], !!strstr(log_text, "kernel.bpf_kprobe_kern_version"));

		/* The same without a log */
		prog_attr(&attr, minimal, ARRAY_SIZE(minimal));
		attr.kern_version = wrong[i];
		EXPECT_EQ(-EINVAL, sys_bpf(BPF_PROG_LOAD, &attr));
	}

	fd = load_version(right);
	EXPECT_LE(0, fd);
}

/* Types for a function int(void *), and for one whose argument is tagged arg:ctx */
#define STRINGS "\0prog\0ctx\0arg:ctx"

enum { TYPE_INT = 1, TYPE_PTR, TYPE_PROTO, TYPE_PROG, TYPE_FUNC, TYPE_TAG };

static const struct {
	struct btf_header head;
	struct {
		struct btf_type type;
		__u32 encoding;
	} integer;
	struct btf_type ptr;
	struct {
		struct btf_type type;
		struct btf_param ctx;
	} proto;
	struct btf_type funcs[2];
	struct {
		struct btf_type type;
		__u32 arg;
	} tag;
	char strings[sizeof(STRINGS)];
} btf = {
	.head = {
		.magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(btf.head),
		.type_len = offsetof(typeof(btf), strings) - sizeof(btf.head),
		.str_off = offsetof(typeof(btf), strings) - sizeof(btf.head),
		.str_len = sizeof(STRINGS),
	},
	.integer = { { 6, BTF_KIND_INT << 24, { 4 } }, BTF_INT_SIGNED << 24 | 32 },
	.ptr = { 0, BTF_KIND_PTR << 24, { 0 } },
	.proto = { { 0, BTF_KIND_FUNC_PROTO << 24 | 1, { TYPE_INT } }, { 6, TYPE_PTR } },
	.funcs = {
		{ 1, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, { TYPE_PROTO } },
		{ 6, BTF_KIND_FUNC << 24 | BTF_FUNC_GLOBAL, { TYPE_PROTO } },
	},
	.tag = { { 10, BTF_KIND_DECL_TAG << 24, { TYPE_FUNC } }, 0 },
	.strings = STRINGS,
};

static int btf_load(void)
{
	union bpf_attr attr = {
		.btf = (unsigned long)&btf,
		.btf_size = offsetof(typeof(btf), strings) + sizeof(STRINGS),
	};

	return sys_bpf(BPF_BTF_LOAD, &attr);
}

/* The program with types for its functions */
static int load_typed(int btf_fd, const struct bpf_insn *insns, size_t cnt,
		      const struct bpf_func_info *funcs, size_t nr_funcs, __u32 version)
{
	union bpf_attr attr;

	prog_attr(&attr, insns, cnt);
	attr.kern_version = version;
	attr.prog_btf_fd = btf_fd;
	attr.func_info = (unsigned long)funcs;
	attr.func_info_cnt = nr_funcs;
	attr.func_info_rec_size = sizeof(*funcs);
	return load_log(&attr);
}

/* Whoever brings types relocates the program to those of the running kernel */
TEST_F(load, no_kern_version_is_needed_with_btf)
{
	const struct bpf_func_info func = { 0, TYPE_PROG };
	int fd = btf_load();

	ASSERT_LE(0, fd);
	EXPECT_LE(0, load_typed(fd, minimal, ARRAY_SIZE(minimal), &func, 1, 0))
		TH_LOG("%s", log_text);
	EXPECT_LE(0, load_typed(fd, minimal, ARRAY_SIZE(minimal), &func, 1, kern_version()));

	/* One that is stated counts */
	EXPECT_EQ(-EINVAL, load_typed(fd, minimal, ARRAY_SIZE(minimal), &func, 1,
				      kern_version() + 1));
	EXPECT_TRUE(logged("does not match the running kernel"));

	/* Types of nothing */
	EXPECT_EQ(-EINVAL, load_typed(fd, minimal, ARRAY_SIZE(minimal), NULL, 0, 0));
	EXPECT_TRUE(logged("does not match the running kernel"));
	/* A file that has no types */
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT_GT(0, load_typed(fd, minimal, ARRAY_SIZE(minimal), &func, 1, 0));
}

/* How libbpf asks whether the kernel knows __arg_ctx */
TEST_F(load, arg_ctx)
{
	const struct bpf_insn insns[] = {
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 1),
		BPF_EXIT_INSN(),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		BPF_EXIT_INSN(),
	};
	const struct bpf_func_info funcs[] = { { 0, TYPE_PROG }, { 2, TYPE_FUNC } };
	int fd = btf_load();

	ASSERT_LE(0, fd);
	EXPECT_LE(0, load_typed(fd, insns, ARRAY_SIZE(insns), funcs, ARRAY_SIZE(funcs), 0))
		TH_LOG("%s", log_text);
}

/* Multi links are younger than loaders that fill the field in */
TEST_F(load, kern_version_for_multi_links)
{
	const enum bpf_attach_type types[] = {
		BPF_TRACE_KPROBE_MULTI, BPF_TRACE_KPROBE_SESSION, BPF_TRACE_UPROBE_MULTI,
		BPF_TRACE_UPROBE_SESSION,
	};
	union bpf_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		prog_attr(&attr, minimal, ARRAY_SIZE(minimal));
		attr.expected_attach_type = types[i];
		EXPECT_LE(0, load_log(&attr)) TH_LOG("%s", log_text);
		attr.kern_version = 0;
		EXPECT_LE(0, load_log(&attr)) TH_LOG("%s", log_text);
		attr.kern_version = kern_version() + 1;
		EXPECT_EQ(-EINVAL, load_log(&attr));
		EXPECT_TRUE(logged("does not match the running kernel"));
	}
}

TEST_F(load, other_types_take_any_kern_version)
{
	union bpf_attr attr;

	prog_attr(&attr, minimal, ARRAY_SIZE(minimal));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.kern_version = 0;
	EXPECT_LE(0, sys_bpf(BPF_PROG_LOAD, &attr));
}

TEST_F(load, sysctl_turns_the_version_check_off)
{
	__u64 now;

	ASSERT_TRUE(read_u64(SYSCTL, &now));
	ASSERT_EQ(1, now);

	ASSERT_EQ(0, write_file(SYSCTL, 0, "0"));
	EXPECT_LE(0, load_version(0));
	EXPECT_LE(0, load_version(kern_version() + 1));
	EXPECT_LE(0, load_version(kern_version()));

	ASSERT_EQ(0, write_file(SYSCTL, 0, "1"));
	EXPECT_EQ(-EINVAL, load_version(0));
	EXPECT_EQ(-EINVAL, load_version(kern_version() + 1));
	EXPECT_LE(0, load_version(kern_version()));
}

TEST_F(load, sysctl_is_for_root)
{
	pid_t child = fork();
	__u64 now;

	ASSERT_LE(0, child);
	if (!child) {
		if (syscall(__NR_setresuid, 1000, 1000, 1000))
			_exit(1);
		_exit(write_file(SYSCTL, 0, "0") == -EACCES ? 0 : 2);
	}
	EXPECT_EQ(0, child_status(child));
	ASSERT_TRUE(read_u64(SYSCTL, &now));
	EXPECT_EQ(1, now);
}

TEST_F(load, gpl_only_helper_needs_a_gpl_license)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 8),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.license = (unsigned long)"Proprietary";
	ASSERT_EQ(-EINVAL, load_log(&attr));
	EXPECT_TRUE(logged("bpf_probe_read_kernel#113"));
	EXPECT_TRUE(logged("cannot call GPL-restricted function from non-GPL"));

	attr.license = (unsigned long)"Dual BSD/GPL";
	EXPECT_LE(0, load_log(&attr));

	/* What is not gpl_only needs no license */
	insns[4] = (struct bpf_insn)BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id);
	attr.license = (unsigned long)"Proprietary";
	EXPECT_LE(0, load_log(&attr)) TH_LOG("%s", log_text);
}

TEST_F(load, helper_of_another_type)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_skb_load_bytes),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	ASSERT_EQ(-EINVAL, load_log(&attr));
	EXPECT_TRUE(logged("program of this type cannot use helper bpf_skb_load_bytes#26\n"));

	insns[0].imm = 12345;
	ASSERT_EQ(-EINVAL, load_log(&attr));
	EXPECT_TRUE(logged("#12345\n"));
}

/* T5: the capabilities */

FIXTURE(caps) {
	__u64 unpriv;
};

FIXTURE_VARIANT(caps) {
	__u64 keep;
	int expected;
};

FIXTURE_VARIANT_ADD(caps, none) {
	.keep = 0, .expected = -EPERM,
};

FIXTURE_VARIANT_ADD(caps, bpf_only) {
	.keep = CAP(BPF), .expected = -EPERM,
};

FIXTURE_VARIANT_ADD(caps, perfmon_only) {
	.keep = CAP(PERFMON), .expected = -EPERM,
};

FIXTURE_VARIANT_ADD(caps, all_others) {
	.keep = ~(CAP(BPF) | CAP(PERFMON) | CAP(SYS_ADMIN)) &
		(CAP(CHECKPOINT_RESTORE) * 2 - 1),
	.expected = -EPERM,
};

FIXTURE_VARIANT_ADD(caps, bpf_and_perfmon) {
	.keep = CAP(BPF) | CAP(PERFMON), .expected = 0,
};

FIXTURE_VARIANT_ADD(caps, sys_admin) {
	.keep = CAP(SYS_ADMIN), .expected = 0,
};

FIXTURE_SETUP(caps)
{
	SKIP_WITHOUT(return, prepare());
	/* 1 stays until the next boot; all others let unprivileged users in */
	ASSERT_TRUE(read_u64(UNPRIV, &self->unpriv));
	if (self->unpriv != 1)
		ASSERT_EQ(0, write_file(UNPRIV, 0, "0"));
}

FIXTURE_TEARDOWN_PARENT(caps)
{
	if (self->unpriv != 1)
		EXPECT_EQ(0, write_file(UNPRIV, 0, "%llu", self->unpriv));
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(caps, load)
{
	pid_t child = fork();
	union bpf_attr attr;
	int ret;

	ASSERT_LE(0, child);
	if (!child) {
		prog_attr(&attr, minimal, ARRAY_SIZE(minimal));
		if (drop_caps(variant->keep))
			_exit(255);
		ret = sys_bpf(BPF_PROG_LOAD, &attr);
		_exit(ret < 0 ? -ret : 0);
	}
	EXPECT_EQ(-variant->expected, child_status(child));
	EXPECT_LE(0, prog_load(minimal, ARRAY_SIZE(minimal)));
}

/* T3: the context is struct pt_regs, to be read only */

FIXTURE(context) {
};

FIXTURE_VARIANT(context) {
	struct bpf_insn insn;
	const char *log;	/* NULL: loads */
};

#define READ(size, off) BPF_LDX_MEM(size, BPF_REG_0, BPF_REG_1, off)
#define WRITE(size, off) BPF_STX_MEM(size, BPF_REG_1, BPF_REG_10, off)
#define REFUSED(off, size)						\
	"invalid bpf_context access off=" #off " size=" #size "\n"

FIXTURE_VARIANT_ADD(context, first_word) {
	.insn = READ(BPF_DW, 0),
};

FIXTURE_VARIANT_ADD(context, last_u64_of_user_regs) {
	.insn = READ(BPF_DW, sizeof(struct pt_regs) - 8),
};

FIXTURE_VARIANT_ADD(context, u32) {
	.insn = READ(BPF_W, 4),
};

FIXTURE_VARIANT_ADD(context, u16) {
	.insn = READ(BPF_H, 6),
};

FIXTURE_VARIANT_ADD(context, u8) {
	.insn = READ(BPF_B, 7),
};

FIXTURE_VARIANT_ADD(context, misaligned_u64) {
	.insn = READ(BPF_DW, 4),
	.log = REFUSED(4, 8),
};

FIXTURE_VARIANT_ADD(context, misaligned_u32) {
	.insn = READ(BPF_W, 2),
	.log = REFUSED(2, 4),
};

FIXTURE_VARIANT_ADD(context, misaligned_u16) {
	.insn = READ(BPF_H, 1),
	.log = REFUSED(1, 2),
};

FIXTURE_VARIANT_ADD(context, before) {
	.insn = READ(BPF_DW, -8),
	.log = REFUSED(-8, 8),
};

FIXTURE_VARIANT_ADD(context, far_past) {
	.insn = READ(BPF_DW, 4096),
	.log = REFUSED(4096, 8),
};

FIXTURE_VARIANT_ADD(context, write_u64) {
	.insn = WRITE(BPF_DW, 0),
	.log = REFUSED(0, 8),
};

FIXTURE_VARIANT_ADD(context, write_u32) {
	.insn = WRITE(BPF_W, 8),
	.log = REFUSED(8, 4),
};

FIXTURE_VARIANT_ADD(context, write_u8) {
	.insn = WRITE(BPF_B, 3),
	.log = REFUSED(3, 1),
};

#ifdef __x86_64__
FIXTURE_VARIANT_ADD(context, just_past_u64) {
	.insn = READ(BPF_DW, 168),
	.log = REFUSED(168, 8),
};

FIXTURE_VARIANT_ADD(context, just_past_u8) {
	.insn = READ(BPF_B, 168),
	.log = REFUSED(168, 1),
};

FIXTURE_VARIANT_ADD(context, across_the_end) {
	.insn = READ(BPF_DW, 164),
	.log = REFUSED(164, 8),
};

FIXTURE_VARIANT_ADD(context, last_u8) {
	.insn = READ(BPF_B, 167),
};
#endif

FIXTURE_SETUP(context)
{
	SKIP_WITHOUT(return, prepare());
}

FIXTURE_TEARDOWN_PARENT(context)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(context, access)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		variant->insn,
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	fd = load_log(&attr);
	if (!variant->log) {
		EXPECT_LE(0, fd) TH_LOG("%s", log_text);
		return;
	}
	ASSERT_EQ(-EACCES, fd);
	EXPECT_TRUE(logged(variant->log));
}

TEST_HARNESS_MAIN
