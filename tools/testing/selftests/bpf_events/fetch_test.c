// SPDX-License-Identifier: GPL-2.0
/* The kfuncs that read and compare kernel memory, and the one that shows a stack */
#include "common.h"
#include "load_log.h"
#include "types.h"
#include "link.h"
#include "uprobe.h"
#include "filter.h"

/* Slots of the area: what a kfunc returned, and memory and an address for it */
enum { RESULT, ADDRESS, MEMORY = 8, OTHER = 64 };

#define BYTES 0xfedcba9876543210ULL

static const struct {
	const char *name;
	unsigned int bits;
	int size;
} fetches[] = {
	{ "bpf_fetch_u8", 8, BPF_B },
	{ "bpf_fetch_u16", 16, BPF_H },
	{ "bpf_fetch_u32", 32, BPF_W },
	{ "bpf_fetch_u64", 64, BPF_DW },
	{ "bpf_fetch_ptr", 8 * sizeof(void *), BPF_DW },
};

FIXTURE(fetch) {
	struct area area;
	int ids[ARRAY_SIZE(fetches)];
};

FIXTURE_VARIANT(fetch) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(fetch, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(fetch, uprobe) { .kind = &uprobe_kind };
FIXTURE_VARIANT_ADD(fetch, tracepoint) { .kind = &tracepoint_kind };
FIXTURE_VARIANT_ADD(fetch, sys_enter) { .kind = &sys_enter_kind };

FIXTURE_SETUP(fetch)
{
	int i;

	SKIP_WITHOUT(return, filter_prepare());
	for (i = 0; i < ARRAY_SIZE(fetches); i++) {
		self->ids[i] = btf_func_id(fetches[i].name);
		ASSERT_LT(0, self->ids[i]);
	}
	ASSERT_EQ(0, kind_create(variant->kind));
	ASSERT_EQ(0, instance_create(INSTANCE));
	ASSERT_EQ(0, area_create(&self->area));
	area_set(&self->area, MEMORY, BYTES);
}

FIXTURE_TEARDOWN_PARENT(fetch)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Runs a program once, as a filter, and takes it away again */
static int run(const struct kind *kind, int prog)
{
	int fd;

	if (prog < 0)
		return prog;
	fd = filter_attach(INSTANCE, kind->event, prog);
	close(prog);
	if (fd < 0)
		return fd;
	kind->hit();
	close(fd);
	return 0;
}

/* Calls a kfunc with an address in the area */
static int fetch_prog(struct area *area, enum bpf_prog_type type, int kfunc, int off)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, MEMORY),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, off),
		CALL_KFUNC(kfunc),
		AREA(BPF_REG_1, area, RESULT),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

/* Calls a kfunc with the address that is in slot ADDRESS */
static int fetch_at_prog(struct area *area, enum bpf_prog_type type, int kfunc)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ADDRESS),
		CALL_KFUNC(kfunc),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RESULT),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

TEST_F(fetch, value)
{
	int i, off;

	for (i = 0; i < ARRAY_SIZE(fetches); i++) {
		for (off = 0; off < 2; off++) {
			area_set(&self->area, RESULT, ~0ULL);
			ASSERT_EQ(0, run(variant->kind,
					 fetch_prog(&self->area, variant->kind->type,
						    self->ids[i], off)));
			EXPECT_EQ(BYTES >> 8 * off & ~0ULL >> (64 - fetches[i].bits),
				  area_get(&self->area, RESULT));
		}
	}
}

TEST_F(fetch, kernel_data)
{
	__u64 banner;

	memcpy(&banner, "Linux version", sizeof(banner));
	area_set(&self->area, ADDRESS, ksym("linux_banner"));
	ASSERT_EQ(0, run(variant->kind, fetch_at_prog(&self->area, variant->kind->type,
						      self->ids[3])));
	EXPECT_EQ(banner, area_get(&self->area, RESULT));
}

TEST_F(fetch, bad_address)
{
	const __u64 addresses[] = {
		0, 1, 4096,
		/* User memory, although it is there */
		(unsigned long)self, (unsigned long)&addresses, 0x7fffffffe000,
		/* Not canonical */
		0x800000000000, 0xdead000000000100, 0xffff000000000000,
		/* No memory, or not all of it */
		0xffffffffffffffff, 0xfffffffffffffff8,
#ifdef __x86_64__
		0xffffffffff600000,
#endif
	};
	const struct kind *kind = variant->kind;
	int i, j, fd, prog;

	for (i = 0; i < ARRAY_SIZE(fetches); i++) {
		prog = fetch_at_prog(&self->area, kind->type, self->ids[i]);
		ASSERT_LE(0, prog);
		fd = filter_attach(INSTANCE, kind->event, prog);
		ASSERT_LE(0, fd);
		for (j = 0; j < ARRAY_SIZE(addresses); j++) {
			area_set(&self->area, ADDRESS, addresses[j]);
			area_set(&self->area, RESULT, ~0ULL);
			kind->hit();
			EXPECT_EQ(0, area_get(&self->area, RESULT))
				TH_LOG("%s at 0x%llx", fetches[i].name, addresses[j]);
		}
		close(fd);
	}
}

/* From pointer to pointer */
TEST_F(fetch, chain)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, &self->area, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * MEMORY),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_1, 8 * OTHER),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * OTHER),
		CALL_KFUNC(self->ids[4]),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL_KFUNC(self->ids[3]),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RESULT),
		/* What was there is not an address */
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL_KFUNC(self->ids[4]),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL_KFUNC(self->ids[4]),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * ADDRESS),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	area_set(&self->area, ADDRESS, ~0ULL);
	area_set(&self->area, MEMORY, 0x8070605040302010);
	ASSERT_EQ(0, run(variant->kind, prog_load_of(variant->kind->type, insns,
						     ARRAY_SIZE(insns))));
	EXPECT_EQ(0x8070605040302010, area_get(&self->area, RESULT));
	EXPECT_EQ(0, area_get(&self->area, ADDRESS));
}

/* What a fetch returns decides, as a program would use it */
TEST_F(fetch, verdict)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, &self->area, MEMORY),
		CALL_KFUNC(self->ids[0]),
		BPF_EXIT_INSN(),
	};
	int fd = filter_attach(INSTANCE, variant->kind->event,
			       prog_load_of(variant->kind->type, insns,
					    ARRAY_SIZE(insns)));

	ASSERT_LE(0, fd);
	area_set(&self->area, MEMORY, 0xff00);
	kind_hits(variant->kind, 2);
	EXPECT_EQ(0, records(INSTANCE));
	area_set(&self->area, MEMORY, 0x00ff);
	kind_hits(variant->kind, 2);
	EXPECT_EQ(2, records(INSTANCE));
}

/* A load of this size from where the argument is, and no call */
TEST_F(fetch, is_inlined)
{
	struct bpf_insn insns[32], load;
	struct bpf_prog_info info;
	union bpf_attr attr = {};
	int i, j, prog, loads;

	for (i = 0; i < ARRAY_SIZE(fetches); i++) {
		prog = fetch_prog(&self->area, variant->kind->type, self->ids[i], 0);
		ASSERT_LE(0, prog);
		memset(&info, 0, sizeof(info));
		info.xlated_prog_insns = (unsigned long)insns;
		info.xlated_prog_len = sizeof(insns);
		attr.info.bpf_fd = prog;
		attr.info.info_len = sizeof(info);
		attr.info.info = (unsigned long)&info;
		ASSERT_EQ(0, sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr));

		load = BPF_LDX_MEM(fetches[i].size, BPF_REG_0, BPF_REG_1, 0);
		for (j = 0, loads = 0; j < info.xlated_prog_len / sizeof(*insns); j++) {
			EXPECT_NE(BPF_JMP | BPF_CALL, insns[j].code);
			loads += !memcmp(&insns[j], &load, sizeof(load));
		}
		EXPECT_EQ(1, loads);
		close(prog);
	}
}

/* Comparing */

FIXTURE(memcmp) {
	FIXTURE_DATA(fetch) f;
	int id;
};

FIXTURE_VARIANT(memcmp) {
	const struct kind *kind;
};

FIXTURE_VARIANT_ADD(memcmp, kprobe) { .kind = &kprobe_kind };
FIXTURE_VARIANT_ADD(memcmp, tracepoint) { .kind = &tracepoint_kind };

FIXTURE_SETUP(memcmp)
{
	const FIXTURE_VARIANT(fetch) fetch = { .kind = variant->kind };

	fetch_setup(_metadata, &self->f, &fetch);
	self->id = btf_func_id("bpf_memcmp");
	ASSERT_LT(0, self->id);
}

FIXTURE_TEARDOWN_PARENT(memcmp)
{
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/*
 * Compares the memory at slot MEMORY, or at the address in slot ADDRESS, with
 * that at slot OTHER
 */
static int memcmp_prog(struct area *area, enum bpf_prog_type type, int kfunc,
		       bool at_address, unsigned int size)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		at_address ? BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 8 * ADDRESS) :
			     BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * MEMORY),
		AREA(BPF_REG_2, area, OTHER),
		BPF_MOV64_IMM(BPF_REG_3, size),
		CALL_KFUNC(kfunc),
		BPF_ALU64_IMM(BPF_LSH, BPF_REG_0, 32),
		BPF_ALU64_IMM(BPF_ARSH, BPF_REG_0, 32),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RESULT),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_of(type, insns, ARRAY_SIZE(insns));
}

TEST_F(memcmp, first_byte_that_differs)
{
	const unsigned int sizes[] = { 1, 7, 8, 63, 64, 65, 128, 200 };
	struct area *area = &self->f.area;
	unsigned char *mem = (unsigned char *)&area->slot[MEMORY];
	unsigned char *other = (unsigned char *)&area->slot[OTHER];
	const struct kind *kind = variant->kind;
	int i, fd, size;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size = sizes[i];
		fd = filter_attach(INSTANCE, kind->event,
				   memcmp_prog(area, kind->type, self->id, false, size));
		ASSERT_LE(0, fd);
		memset(mem, 0x80, 256);
		memset(other, 0x80, 256);
		/* Past the end */
		mem[size] = 0;
		kind->hit();
		EXPECT_EQ(0, area_get(area, RESULT));
		mem[size - 1] = 0xff;
		kind->hit();
		EXPECT_EQ(1, area_get(area, RESULT));
		mem[size - 1] = 0x7f;
		kind->hit();
		EXPECT_EQ(-1, (long)area_get(area, RESULT));
		/* The first counts */
		mem[0] = 0xff;
		kind->hit();
		EXPECT_EQ(1, area_get(area, RESULT));
		close(fd);
	}
}

TEST_F(memcmp, kernel_data)
{
	const char *text = "Linux version ";
	struct area *area = &self->f.area;
	int i;

	area_set(area, ADDRESS, ksym("linux_banner"));
	memcpy(&area->slot[OTHER], text, strlen(text));
	for (i = 0; i < 2; i++) {
		area_set(area, RESULT, 2);
		ASSERT_EQ(0, run(variant->kind,
				 memcmp_prog(area, variant->kind->type, self->id, true,
					     strlen(text))));
		EXPECT_EQ(i, area_get(area, RESULT));
		area->slot[OTHER] = 0;
	}
}

TEST_F(memcmp, bad_address)
{
	const __u64 addresses[] = {
		0, 4096, (unsigned long)self, 0x800000000000, 0xffffffffffffffc0,
	};
	struct area *area = &self->f.area;
	const struct kind *kind = variant->kind;
	int i, fd;

	fd = filter_attach(INSTANCE, kind->event,
			   memcmp_prog(area, kind->type, self->id, true, 100));
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		area_set(area, ADDRESS, addresses[i]);
		kind->hit();
		EXPECT_EQ(-EFAULT, (long)area_get(area, RESULT));
	}
}

/* The program's side is the verifier's business */
TEST_F(memcmp, memory_that_the_program_does_not_have)
{
	EXPECT_EQ(-EACCES, memcmp_prog(&self->f.area, variant->kind->type, self->id,
				       false, AREA_SIZE));
	EXPECT_EQ(-EACCES, memcmp_prog(&self->f.area, variant->kind->type, self->id,
				       false, -1));
}

/* What a lookup or a reservation gives may be nothing */
TEST_F(memcmp, memory_that_may_not_be_there)
{
	int map = map_create(BPF_MAP_TYPE_HASH, 4, 8, 1, 0);
	struct bpf_insn insns[] = {
		BPF_ST_MEM(BPF_W, BPF_REG_10, -4, 0),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4),
		BPF_EMIT_CALL(BPF_FUNC_map_lookup_elem),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		CALL_KFUNC(self->id),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	ASSERT_LE(0, map);
	EXPECT_LE(0, prog_load_of(variant->kind->type, insns, ARRAY_SIZE(insns)));
	/* Without the check */
	insns[6] = BPF_MOV64_IMM(BPF_REG_4, 0);
	EXPECT_EQ(-EACCES, prog_load_of(variant->kind->type, insns, ARRAY_SIZE(insns)));
}

/* Stacks, and who may call what */

TEST_F(memcmp, dump_stack)
{
	struct bpf_insn insns[] = {
		CALL_KFUNC(btf_func_id("bpf_dump_stack")),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	char line[256];

	records(TRACEFS);
	ASSERT_EQ(0, run(variant->kind, prog_load_of(variant->kind->type, insns,
						     ARRAY_SIZE(insns))));
	EXPECT_TRUE(find_line(TRACEFS "/trace", "syscall", line, sizeof(line)));
	EXPECT_EQ(1, records_of(TRACEFS, "<stack trace>"));
	EXPECT_EQ(0, records(INSTANCE));
}

/* Any address will do, but there must be one */
TEST(register_without_a_value)
{
	static const char * const kfuncs[] = {
		"bpf_fetch_u8", "bpf_fetch_u16", "bpf_fetch_u32", "bpf_fetch_u64",
		"bpf_fetch_ptr", "bpf_memcmp",
	};
	struct bpf_insn insns[] = {
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
		BPF_EMIT_CALL(BPF_FUNC_get_smp_processor_id),	/* takes R1 */
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_IMM(BPF_REG_3, 8),
		BPF_MOV64_IMM(BPF_REG_0, 0),		/* or R1 = the context */
		CALL_KFUNC(0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	const struct bpf_insn none = insns[6], some = BPF_MOV64_REG(BPF_REG_1, BPF_REG_6);
	union bpf_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(kfuncs); i++) {
		insns[7].imm = btf_func_id(kfuncs[i]);
		insns[6] = none;
		prog_attr(&attr, insns, ARRAY_SIZE(insns));
		EXPECT_EQ(-EACCES, load_log(&attr));
		EXPECT_TRUE(logged("R1 !read_ok\n"));
		insns[6] = some;
		EXPECT_LE(0, prog_load(insns, ARRAY_SIZE(insns)));
	}
}

TEST(other_programs_have_none)
{
	static const char * const kfuncs[] = {
		"bpf_fetch_u8", "bpf_fetch_ptr", "bpf_memcmp", "bpf_dump_stack",
	};
	const enum bpf_prog_type types[] = {
		BPF_PROG_TYPE_SOCKET_FILTER, BPF_PROG_TYPE_TRACEPOINT,
	};
	struct bpf_insn insns[] = {
		CALL_KFUNC(0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(kfuncs); i++) {
		insns[0].imm = btf_func_id(kfuncs[i]);
		for (j = 0; j < ARRAY_SIZE(types); j++)
			EXPECT_EQ(-EACCES, prog_load_of(types[j], insns,
							ARRAY_SIZE(insns)));
	}
}

TEST_HARNESS_MAIN
