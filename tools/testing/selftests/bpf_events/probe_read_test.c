// SPDX-License-Identifier: GPL-2.0
/*
 * The probe_read helpers: memory of the kernel, of the user, and addresses
 * where there is nothing
 */
#include "common.h"

/* What the program reads from, its return value and its buffer, in the area */
enum { ADDR, RET, BUF };

#define BUF_SIZE 64
#define UNTOUCHED 0xee

/* Nothing is ever mapped at the very end of the address space */
#define UNMAPPED_KERNEL (~0UL - 8191)
#define NON_CANONICAL 0x8000000000000000UL

FIXTURE(probe_read) {
	struct rig rig;
	char banner[256];	/* what /proc/version says */
	__u64 banner_addr;	/* where the kernel has it */
	char *user;		/* a page and nothing after it */
};

FIXTURE_VARIANT(probe_read) {
	int helper;
	bool str;
	bool kernel;		/* it reads the kernel's memory */
	bool user;
};

FIXTURE_VARIANT_ADD(probe_read, probe_read) {
	.helper = BPF_FUNC_probe_read, .kernel = true, .user = true,
};

FIXTURE_VARIANT_ADD(probe_read, probe_read_str) {
	.helper = BPF_FUNC_probe_read_str, .str = true, .kernel = true,
	.user = true,
};

FIXTURE_VARIANT_ADD(probe_read, probe_read_kernel) {
	.helper = BPF_FUNC_probe_read_kernel, .kernel = true,
};

FIXTURE_VARIANT_ADD(probe_read, probe_read_kernel_str) {
	.helper = BPF_FUNC_probe_read_kernel_str, .str = true, .kernel = true,
};

FIXTURE_VARIANT_ADD(probe_read, probe_read_user) {
	.helper = BPF_FUNC_probe_read_user, .user = true,
};

FIXTURE_VARIANT_ADD(probe_read, probe_read_user_str) {
	.helper = BPF_FUNC_probe_read_user_str, .str = true, .user = true,
};

static int read_prog(struct area *area, int helper)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * BUF),
		BPF_MOV64_IMM(BPF_REG_2, BUF_SIZE),
		BPF_LDX_MEM(BPF_DW, BPF_REG_3, BPF_REG_6, 8 * ADDR),
		BPF_EMIT_CALL(helper),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, 8 * RET),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

FIXTURE_SETUP(probe_read)
{
	SKIP_WITHOUT(return, prepare());
	self->banner_addr = ksym("linux_banner");
	if (!self->banner_addr)
		SKIP(return, "CONFIG_KALLSYMS_ALL");
	ASSERT_LT(BUF_SIZE, read_file("/proc/version", self->banner,
				      sizeof(self->banner)));
	self->user = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->user);
	ASSERT_EQ(0, munmap(self->user + 4096, 4096));

	ASSERT_EQ(0, rig_create(&self->rig, 0));
	ASSERT_LE(0, rig_attach(&self->rig, read_prog(&self->rig.area,
						      variant->helper)));
}

FIXTURE_TEARDOWN_PARENT(probe_read)
{
	EXPECT_STREQ("nothing", leftovers());
}

static long read_at(struct rig *rig, const void *addr)
{
	area_set(&rig->area, ADDR, (unsigned long)addr);
	area_set(&rig->area, RET, 12345);
	memset(&rig->area.slot[BUF], UNTOUCHED, BUF_SIZE + 8);
	hit();
	return area_get(&rig->area, RET);
}

static const char *buf(struct rig *rig)
{
	return (const char *)&rig->area.slot[BUF];
}

/* The helper wrote zeroes to all of its buffer, and to nothing else */
static bool zeroed(struct rig *rig)
{
	int i;

	for (i = 0; i < BUF_SIZE; i++) {
		if (buf(rig)[i])
			return false;
	}
	return (unsigned char)buf(rig)[i] == UNTOUCHED;
}

TEST_F(probe_read, kernel_memory)
{
	long ret = read_at(&self->rig, (void *)self->banner_addr);

	if (!variant->kernel) {
		EXPECT_EQ(-EFAULT, ret);
		EXPECT_TRUE(zeroed(&self->rig));
		return;
	}
	EXPECT_EQ(variant->str ? BUF_SIZE : 0, ret);
	/* A string that does not fit is cut off */
	EXPECT_EQ(0, memcmp(self->banner, buf(&self->rig),
			    BUF_SIZE - variant->str));
	EXPECT_EQ(variant->str ? 0 : self->banner[BUF_SIZE - 1],
		  buf(&self->rig)[BUF_SIZE - 1]);
	EXPECT_EQ(UNTOUCHED, (unsigned char)buf(&self->rig)[BUF_SIZE]);
}

TEST_F(probe_read, nul_ends_a_string_and_nothing_else)
{
	size_t len = strlen(self->banner);
	const char *end = self->banner + len - 5;
	static const char text[] = "abc\0def";

	memcpy(self->user, text, sizeof(text));
	if (variant->user) {
		EXPECT_EQ(variant->str ? 4 : 0, read_at(&self->rig, self->user));
		EXPECT_EQ(0, memcmp(text, buf(&self->rig),
				    variant->str ? 4 : sizeof(text)));
	}
	if (variant->kernel) {
		EXPECT_EQ(variant->str ? 6 : 0,
			  read_at(&self->rig,
				  (void *)(self->banner_addr + len - 5)));
		EXPECT_EQ(0, memcmp(end, buf(&self->rig), 6));
	}
	if (variant->kernel && variant->str) {
		/* An empty one */
		EXPECT_EQ(1, read_at(&self->rig,
				     (void *)(self->banner_addr + len)));
		EXPECT_EQ('\0', *buf(&self->rig));
	}
}

TEST_F(probe_read, user_memory)
{
	long ret;

	snprintf(self->user, 64, "what the user has");
	ret = read_at(&self->rig, self->user);
	if (!variant->user) {
		EXPECT_EQ(-ERANGE, ret);
		EXPECT_TRUE(zeroed(&self->rig));
		return;
	}
	EXPECT_EQ(variant->str ? strlen(self->user) + 1 : 0, ret);
	EXPECT_STREQ(self->user, buf(&self->rig));
	EXPECT_EQ(UNTOUCHED, (unsigned char)buf(&self->rig)[BUF_SIZE]);
}

TEST_F(probe_read, user_page_that_is_not_there_yet)
{
	/* Programs do not wait for a page */
	EXPECT_EQ(variant->user ? -EFAULT : -ERANGE, read_at(&self->rig, self->user));
	EXPECT_TRUE(zeroed(&self->rig));
}

TEST_F(probe_read, unmapped_user)
{
	EXPECT_EQ(variant->user ? -EFAULT : -ERANGE,
		  read_at(&self->rig, self->user + 4096));
	EXPECT_TRUE(zeroed(&self->rig));
	EXPECT_EQ(variant->user ? -EFAULT : -ERANGE, read_at(&self->rig, NULL));
	EXPECT_TRUE(zeroed(&self->rig));
}

/* Half of what is asked for is there: none of it is handed out */
TEST_F(probe_read, across_the_end_of_user_memory)
{
	char *at = self->user + 4096 - BUF_SIZE / 2;

	memset(at, 'x', BUF_SIZE / 2);
	EXPECT_EQ(variant->user ? -EFAULT : -ERANGE, read_at(&self->rig, at));
	EXPECT_TRUE(zeroed(&self->rig));

	/* A string that ends before that is fine */
	at[BUF_SIZE / 2 - 1] = '\0';
	if (variant->user && variant->str) {
		EXPECT_EQ(BUF_SIZE / 2, read_at(&self->rig, at));
		EXPECT_STREQ(at, buf(&self->rig));
	}
}

TEST_F(probe_read, unmapped_kernel)
{
	EXPECT_EQ(-EFAULT, read_at(&self->rig, (void *)UNMAPPED_KERNEL));
	EXPECT_TRUE(zeroed(&self->rig));
}

TEST_F(probe_read, non_canonical)
{
	EXPECT_EQ(variant->kernel ? -ERANGE : -EFAULT,
		  read_at(&self->rig, (void *)NON_CANONICAL));
	EXPECT_TRUE(zeroed(&self->rig));
	EXPECT_EQ(variant->kernel ? -ERANGE : -EFAULT,
		  read_at(&self->rig, (void *)(NON_CANONICAL + 4096)));
	EXPECT_TRUE(zeroed(&self->rig));
}

/* A fault leaves nothing behind that would hurt the next read */
TEST_F(probe_read, after_a_fault)
{
	int i;

	for (i = 0; i < 100; i++) {
		EXPECT_GT(0, read_at(&self->rig, (void *)UNMAPPED_KERNEL));
		EXPECT_GT(0, read_at(&self->rig, (void *)NON_CANONICAL));
	}
	snprintf(self->user, 64, "user");
	if (variant->user) {
		EXPECT_LE(0, read_at(&self->rig, self->user));
		EXPECT_STREQ("user", buf(&self->rig));
	}
	if (variant->kernel) {
		EXPECT_LE(0, read_at(&self->rig, (void *)self->banner_addr));
		EXPECT_EQ(0, memcmp(self->banner, buf(&self->rig), 20));
	}
}

TEST_HARNESS_MAIN
