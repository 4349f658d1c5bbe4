// SPDX-License-Identifier: GPL-2.0
/* fentry and fexit programs on functions of other BPF programs */
#include "common.h"
#include "link.h"
#include "tracing.h"
#include "types.h"

FIXTURE(tracing_prog) {
	union bpf_attr attr;
	struct area area;
	int target;		/* a program that returns 7 */
};

FIXTURE_VARIANT(tracing_prog) {
	enum bpf_attach_type attach;
};

FIXTURE_VARIANT_ADD(tracing_prog, fentry) {
	.attach = BPF_TRACE_FENTRY,
};

FIXTURE_VARIANT_ADD(tracing_prog, fexit) {
	.attach = BPF_TRACE_FEXIT,
};

FIXTURE_SETUP(tracing_prog)
{
	SKIP_WITHOUT(return, tracing_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->target = target_load(types_load());
	ASSERT_LE(0, self->target);
	load_attr(&self->attr, BPF_PROG_TYPE_TRACING, variant->attach, TYPE_FILTER);
	self->attr.attach_prog_fd = self->target;
}

FIXTURE_TEARDOWN_PARENT(tracing_prog)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Runs a program, and says what it returns */
static int run(int prog)
{
	char data[64] = "";
	union bpf_attr attr = {
		.test.data_in = (unsigned long)data, .test.data_size_in = sizeof(data),
	};

	return test_run(&attr, prog) ?: attr.test.retval;
}

TEST_F(tracing_prog, runs_with_the_other)
{
	int fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));

	ASSERT_LE(0, fd);
	EXPECT_EQ(7, run(self->target));
	EXPECT_EQ(1, area_get(&self->area, 0));
	close(fd);
	EXPECT_EQ(7, run(self->target));
	EXPECT_EQ(1, area_get(&self->area, 0));
}

TEST_F(tracing_prog, what_is_returned)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, 16),
		BPF_EMIT_CALL(BPF_FUNC_get_func_ret),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8),
	};
	bool fexit = variant->attach == BPF_TRACE_FEXIT;

	ASSERT_LE(0, tracing_open_drop(body_load(&self->attr, &self->area, body,
						 ARRAY_SIZE(body))));
	EXPECT_EQ(7, run(self->target));
	EXPECT_EQ(fexit ? 0 : -EOPNOTSUPP, (__s64)area_get(&self->area, 1));
	EXPECT_EQ(fexit ? 7 : 0, area_get(&self->area, 2));
}

TEST_F(tracing_prog, keeps_the_other)
{
	int fd = tracing_open_drop(own_count_prog(&self->attr, &self->area));
	__u32 id = prog_id(self->target);
	struct bpf_link_info info = {};

	ASSERT_LE(0, fd);
	close(self->target);
	ASSERT_EQ(0, link_info(fd, &info));
	EXPECT_EQ(variant->attach, info.tracing.attach_type);
	EXPECT_EQ(id, info.tracing.target_obj_id);
	EXPECT_EQ(TYPE_FILTER, info.tracing.target_btf_id);
	EXPECT_EQ(7, run(prog_by_id(id)));
	EXPECT_EQ(1, area_get(&self->area, 0));
}

static int try_on(enum bpf_attach_type attach, int target, __u32 btf_id)
{
	union bpf_attr attr;
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	load_attr(&attr, BPF_PROG_TYPE_TRACING, attach, btf_id);
	attr.attach_prog_fd = target;
	attr.insns = (unsigned long)insns;
	attr.insn_cnt = ARRAY_SIZE(insns);
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

TEST_F(tracing_prog, errors)
{
	EXPECT_LE(0, try_on(variant->attach, self->target, TYPE_FILTER));
	/* A function that it does not have, a type that is not a function */
	EXPECT_EQ(-EINVAL, try_on(variant->attach, self->target, TYPE_CALLBACK));
	EXPECT_EQ(-EINVAL, try_on(variant->attach, self->target, TYPE_LONG));
	EXPECT_EQ(-EINVAL, try_on(variant->attach, target_load(-1), TYPE_FILTER));
	/* Other kinds are for the kernel's own */
	EXPECT_EQ(-EINVAL, try_on(BPF_MODIFY_RETURN, self->target, TYPE_FILTER));
	EXPECT_EQ(-EINVAL, try_on(BPF_TRACE_RAW_TP, self->target, TYPE_FILTER));
	EXPECT_EQ(-EINVAL, try_on(variant->attach, self->area.fd, TYPE_FILTER));
}

TEST_HARNESS_MAIN
