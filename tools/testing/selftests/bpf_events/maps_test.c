// SPDX-License-Identifier: GPL-2.0
/* Maps that a program on a kprobe event may not use */
#include <linux/btf.h>

#include "common.h"
#include "load_log.h"

/*
 * BTF of a map value with a field that the verifier knows by the name of its
 * type.
 */
struct btf_blob {
	struct btf_header header;
	__u32 types[96];
	char strings[256];
	unsigned int words, chars, ids;
};

static __u32 btf_name(struct btf_blob *btf, const char *name)
{
	__u32 at = btf->chars;

	btf->chars += strlen(name) + 1;
	memcpy(btf->strings + at, name, btf->chars - at);
	return at;
}

static __u32 btf_type(struct btf_blob *btf, const char *name, __u32 kind,
		      __u32 members, __u32 size)
{
	btf->types[btf->words++] = btf_name(btf, name);
	btf->types[btf->words++] = kind << 24 | members;
	btf->types[btf->words++] = size;
	return ++btf->ids;
}

static void btf_member(struct btf_blob *btf, const char *name, __u32 type,
		       __u32 offset)
{
	btf->types[btf->words++] = btf_name(btf, name);
	btf->types[btf->words++] = type;
	btf->types[btf->words++] = offset * 8;
}

static __u32 btf_int(struct btf_blob *btf, const char *name, __u32 size)
{
	__u32 id = btf_type(btf, name, BTF_KIND_INT, 0, size);

	btf->types[btf->words++] = size * 8;
	return id;
}

/* A struct of @words u64s, or of one u32 if @words is 0 */
static __u32 btf_opaque(struct btf_blob *btf, const char *name, __u32 words,
			__u32 u32_id, __u32 u64_id)
{
	__u32 id, i;

	id = btf_type(btf, name, BTF_KIND_STRUCT, words ?: 1, words * 8 ?: 4);
	if (!words)
		btf_member(btf, "val", u32_id, 0);
	for (i = 0; i < words; i++)
		btf_member(btf, "word", u64_id, i * 8);
	return id;
}

static int btf_load(struct btf_blob *btf)
{
	union bpf_attr attr = {};
	char data[1024];

	btf->header = (struct btf_header) {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(btf->header),
		.type_len = btf->words * 4,
		.str_off = btf->words * 4,
		.str_len = btf->chars,
	};
	memcpy(data, &btf->header, sizeof(btf->header));
	memcpy(data + sizeof(btf->header), btf->types, btf->words * 4);
	memcpy(data + sizeof(btf->header) + btf->words * 4, btf->strings,
	       btf->chars);
	attr.btf = (unsigned long)data;
	attr.btf_size = sizeof(btf->header) + btf->words * 4 + btf->chars;
	return sys_bpf(BPF_BTF_LOAD, &attr);
}

FIXTURE(refused) {
};

/* A field of a map's value */
struct field {
	const char *type;	/* the name that the verifier knows */
	__u32 words;		/* its size */
	const char *node;	/* of a graph root: what hangs in it */
	__u32 node_words;
};

FIXTURE_VARIANT(refused) {
	struct field field;
	const char *log;
};

FIXTURE_VARIANT_ADD(refused, spin_lock) {
	.field = { "bpf_spin_lock" },
	.log = "tracing progs cannot use bpf_spin_lock yet\n",
};

FIXTURE_VARIANT_ADD(refused, timer) {
	.field = { "bpf_timer", 2 },
	.log = "tracing progs cannot use bpf_timer yet\n",
};

FIXTURE_VARIANT_ADD(refused, workqueue) {
	.field = { "bpf_wq", 2 },
	.log = "tracing progs cannot use bpf_wq yet\n",
};

FIXTURE_VARIANT_ADD(refused, list_head) {
	.field = { "bpf_list_head", 2, "bpf_list_node", 3 },
	.log = "tracing progs cannot use bpf_{list_head,rb_root} yet\n",
};

FIXTURE_VARIANT_ADD(refused, rb_root) {
	.field = { "bpf_rb_root", 2, "bpf_rb_node", 4 },
	.log = "tracing progs cannot use bpf_{list_head,rb_root} yet\n",
};

FIXTURE_SETUP(refused)
{
	SKIP_WITHOUT(return, prepare());
}

FIXTURE_TEARDOWN_PARENT(refused)
{
	EXPECT_STREQ("nothing", leftovers());
}

#define VALUE_SIZE 32
#define LOCK_AT 24

/* Creates a map with the field at the start of its value */
static int map_with_field(const struct field *field)
{
	__u32 int_id, long_id, id, node = 0, lock = 0, value;
	struct btf_blob btf = { .chars = 1 };
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = VALUE_SIZE,
		.max_entries = 1,
		.map_name = BPF_NAME,
	};
	int fd;

	int_id = btf_int(&btf, "int", 4);
	long_id = btf_int(&btf, "long", 8);
	id = btf_opaque(&btf, field->type, field->words, int_id, long_id);
	if (field->node) {
		node = btf_opaque(&btf, field->node, field->node_words, int_id,
				  long_id);
		btf_type(&btf, "thing", BTF_KIND_STRUCT, 1,
			 field->node_words * 8);
		btf_member(&btf, "link", node, 0);
		lock = btf_opaque(&btf, "bpf_spin_lock", 0, int_id, long_id);
	}
	value = btf_type(&btf, "value", BTF_KIND_STRUCT, lock ? 2 : 1,
			 VALUE_SIZE);
	btf_member(&btf, "field", id, 0);
	if (lock) {
		btf_member(&btf, "lock", lock, LOCK_AT);
		btf_type(&btf, "contains:thing:link", BTF_KIND_DECL_TAG, 0,
			 value);
		btf.types[btf.words++] = 0;	/* of the first member */
	}

	fd = btf_load(&btf);
	if (fd < 0)
		return fd;
	attr.btf_fd = fd;
	attr.btf_key_type_id = int_id;
	attr.btf_value_type_id = value;
	return sys_bpf(BPF_MAP_CREATE, &attr);
}

TEST_F(refused, load)
{
	int map = map_with_field(&variant->field);
	struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	ASSERT_LE(0, map) TH_LOG("%s", strerror(-map));
	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	EXPECT_EQ(-EINVAL, load_log(&attr));
	EXPECT_TRUE(logged(variant->log));
}

TEST_HARNESS_MAIN
