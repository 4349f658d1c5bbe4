// SPDX-License-Identifier: GPL-2.0
/* The kfuncs that find keys, and that verify what somebody has signed with one */
#include <sys/mount.h>
#include <sys/stat.h>
#include <linux/keyctl.h>

#include "common.h"
#include "tracing.h"
#include "key_data.h"

/* Slots of the area: what the program got, the text, and its signature */
enum { RESULT = 1, DATA = 16, SIGNATURE = 32 };

#define KEY_NAME "bpf_events_test"
#define FUNC SYS_FUNC("sched_get_priority_max")

FIXTURE(key) {
	union bpf_attr attr;
	struct area area;
	int lookup_user, lookup_system, put, verify;
	int keyring;
};

static int key_add(const char *type, const void *payload, size_t size, int keyring)
{
	return neg_errno(syscall(__NR_add_key, type, KEY_NAME, payload, size, keyring));
}

static bool key_is_there(int key)
{
	char serial[16], line[256];

	snprintf(serial, sizeof(serial), "%08x", key);
	return find_line("/proc/keys", serial, line, sizeof(line));
}

FIXTURE_SETUP(key)
{
	SKIP_WITHOUT(return, tracing_prepare());
	self->lookup_user = btf_func_id("bpf_lookup_user_key");
	if (self->lookup_user <= 0)
		SKIP(return, "CONFIG_KEYS");
	self->lookup_system = btf_func_id("bpf_lookup_system_key");
	self->put = btf_func_id("bpf_key_put");
	self->verify = btf_func_id("bpf_verify_pkcs7_signature");
	ASSERT_LT(0, self->lookup_system);
	ASSERT_LT(0, self->put);
	ASSERT_EQ(0, area_create(&self->area));
	self->keyring = key_add("keyring", NULL, 0, KEY_SPEC_PROCESS_KEYRING);
	ASSERT_LT(0, self->keyring);
	tracing_attr(&self->attr, BPF_TRACE_FENTRY, FUNC);
	self->attr.prog_flags = BPF_F_SLEEPABLE;
}

FIXTURE_TEARDOWN_PARENT(key)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* Runs a body once; what it has left in slot RESULT, or why it does not load */
static long run(struct __test_metadata *_metadata, FIXTURE_DATA(key) * self,
		const struct bpf_insn *body, size_t cnt)
{
	int prog = body_load(&self->attr, &self->area, body, cnt), link;

	if (prog < 0)
		return prog;
	link = tracing_open_drop(prog);
	EXPECT_LE(0, link);
	area_set(&self->area, RESULT, -1);
	sched_get_priority_max(SCHED_OTHER);
	close(link);
	return area_get(&self->area, RESULT);
}

/* 1 if there is such a key, which the program gives back; else 0 */
static long look_up(struct __test_metadata *_metadata, FIXTURE_DATA(key) * self,
		    int lookup, __s32 id, __s32 flags)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_IMM(BPF_REG_1, id),
		BPF_MOV64_IMM(BPF_REG_2, flags),
		CALL_KFUNC(lookup),
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * RESULT, 0),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 3),
		BPF_ST_MEM(BPF_DW, BPF_REG_7, 8 * RESULT, 1),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL_KFUNC(self->put),
	};

	return run(_metadata, self, body, ARRAY_SIZE(body));
}

TEST_F(key, of_a_user)
{
	int key = key_add("user", "x", 1, self->keyring);

	ASSERT_LT(0, key);
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_user, key, 0));
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_user, self->keyring, 0));
	/* Nobody but the program wants a session's keyring that is not there yet */
	EXPECT_EQ(0, look_up(_metadata, self, self->lookup_user, KEY_SPEC_THREAD_KEYRING, 0));
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_user, KEY_SPEC_THREAD_KEYRING,
			     1 /* KEY_LOOKUP_CREATE */));
	EXPECT_EQ(0, look_up(_metadata, self, self->lookup_user, key, 1 << 30));
	/* It has been given back each time: it goes with the last link to it */
	EXPECT_TRUE(key_is_there(key));
	ASSERT_EQ(0, syscall(__NR_keyctl, KEYCTL_UNLINK, key, self->keyring));
	EXPECT_TRUE(wait_gone(!key_is_there(key)));
	EXPECT_EQ(0, look_up(_metadata, self, self->lookup_user, key, 0));
}

/* Looks for the keyring of the thread, has it made if need be, and counts those it gets */
static int keyring_prog(FIXTURE_DATA(key) * self, union bpf_attr *attr)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_IMM(BPF_REG_1, KEY_SPEC_THREAD_KEYRING),
		BPF_MOV64_IMM(BPF_REG_2, 1 /* KEY_LOOKUP_CREATE */),
		CALL_KFUNC(self->lookup_user),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 4),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		CALL_KFUNC(self->put),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, 8 * RESULT),
	};

	return body_load(attr, &self->area, body, ARRAY_SIZE(body));
}

/* An overlay opens the file that is below it with the credentials of who has mounted it */
TEST_F(key, of_a_user_with_other_credentials)
{
	char root[] = "/tmp/bpf_events.XXXXXX";
	int hook = btf_func_id("bpf_lsm_file_open"), prog, link, err;
	union bpf_attr attr;

	if (hook <= 0 || !lsm_runs_programs())
		SKIP(return, "CONFIG_BPF_LSM");
	ASSERT_NE(NULL, mkdtemp(root));
	ASSERT_EQ(0, chdir(root));
	ASSERT_EQ(0, mkdir("lower", 0700) | mkdir("lowest", 0700) | mkdir("merged", 0700));
	ASSERT_EQ(0, close(open("lower/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	err = neg_errno(mount("overlay", "merged", "overlay", 0, "lowerdir=lower:lowest"));
	load_attr(&attr, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, hook);
	attr.prog_flags = BPF_F_SLEEPABLE;
	prog = keyring_prog(self, &attr);
	link = tracing_open_drop(prog);
	EXPECT_LE(0, link);
	close(open("merged/file", O_RDONLY | O_CLOEXEC));
	close(link);

	umount("merged");
	unlink("lower/file");
	rmdir("merged");
	rmdir("lowest");
	rmdir("lower");
	ASSERT_EQ(0, chdir("/"));
	rmdir(root);
	if (err == -ENODEV)
		SKIP(return, "CONFIG_OVERLAY_FS");
	EXPECT_EQ(0, err);
	EXPECT_EQ(2, area_get(&self->area, 0));
	EXPECT_EQ(1, area_get(&self->area, RESULT));
}

TEST_F(key, of_the_system)
{
	/* The built-in, the secondary and the platform's keys */
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_system, 0, 0));
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_system, 1, 0));
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_system, 2, 0));
	EXPECT_EQ(0, look_up(_metadata, self, self->lookup_system, 3, 0));
	EXPECT_EQ(0, look_up(_metadata, self, self->lookup_system, -1, 0));
}

TEST_F(key, is_given_back)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_IMM(BPF_REG_1, 0),
		CALL_KFUNC(self->lookup_system),
	};

	EXPECT_EQ(-EINVAL, run(_metadata, self, body, ARRAY_SIZE(body)));
}

/* One that sleeps is not for programs that must not */
TEST_F(key, of_a_user_needs_sleep)
{
	self->attr.prog_flags = 0;
	EXPECT_EQ(1, look_up(_metadata, self, self->lookup_system, 0, 0));
	EXPECT_EQ(-EACCES, look_up(_metadata, self, self->lookup_user, self->keyring, 0));
}

static long verify(struct __test_metadata *_metadata, FIXTURE_DATA(key) * self,
		   int lookup, int id)
{
	const struct bpf_insn body[] = {
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * DATA),
		BPF_MOV64_IMM(BPF_REG_2, sizeof(TEXT) - 1),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -16),
		BPF_EMIT_CALL(BPF_FUNC_dynptr_from_mem),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_7),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, 8 * SIGNATURE),
		BPF_MOV64_IMM(BPF_REG_2, sizeof(signature)),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_MOV64_REG(BPF_REG_4, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_4, -32),
		BPF_EMIT_CALL(BPF_FUNC_dynptr_from_mem),
		BPF_MOV64_IMM(BPF_REG_1, id),
		BPF_MOV64_IMM(BPF_REG_2, 0),
		CALL_KFUNC(lookup),
		BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, 0, 10),
		BPF_MOV64_REG(BPF_REG_8, BPF_REG_0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -16),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -32),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_8),
		CALL_KFUNC(self->verify),
		BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, 8 * RESULT),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_8),
		CALL_KFUNC(self->put),
	};

	memcpy(&self->area.slot[DATA], TEXT, sizeof(TEXT));
	return (int)run(_metadata, self, body, ARRAY_SIZE(body));
}

TEST_F(key, verifies)
{
	int trusted, key;

	if (self->verify <= 0)
		SKIP(return, "CONFIG_SYSTEM_DATA_VERIFICATION");
	trusted = key_add("keyring", NULL, 0, self->keyring);
	ASSERT_LT(0, trusted);
	memcpy(&self->area.slot[SIGNATURE], signature, sizeof(signature));
	/* Nobody that the keyring, or the kernel, trusts has signed this */
	EXPECT_EQ(-ENOKEY, verify(_metadata, self, self->lookup_user, trusted));
	EXPECT_EQ(-ENOKEY, verify(_metadata, self, self->lookup_system, 0));

	key = key_add("asymmetric", certificate, sizeof(certificate), trusted);
	ASSERT_LT(0, key);
	EXPECT_EQ(0, verify(_metadata, self, self->lookup_user, trusted));

	/* The signature is of something else, or is none */
	((char *)&self->area.slot[SIGNATURE])[sizeof(signature) - 1] ^= 1;
	EXPECT_EQ(-EKEYREJECTED, verify(_metadata, self, self->lookup_user, trusted));
	area_set(&self->area, SIGNATURE, 0);
	EXPECT_EQ(-EBADMSG, verify(_metadata, self, self->lookup_user, trusted));

	/* A keyring that is not to be used any more */
	memcpy(&self->area.slot[SIGNATURE], signature, sizeof(signature));
	ASSERT_EQ(0, syscall(__NR_keyctl, KEYCTL_REVOKE, trusted));
	EXPECT_EQ(-EKEYREVOKED, verify(_metadata, self, self->lookup_user, trusted));
}

TEST_HARNESS_MAIN
