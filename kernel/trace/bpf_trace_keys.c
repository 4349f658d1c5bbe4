// SPDX-License-Identifier: GPL-2.0
/*
 * Kfuncs for signatures: look up a key or a keyring, and verify data with it.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/init.h>
#include <linux/key.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/verification.h>

#include "bpf_trace_helpers.h"

/**
 * bpf_lookup_user_key() - find a key by its serial number
 * @serial: the number, or one of the special ids for the keyrings of the task
 * @flags: KEY_LOOKUP_CREATE to create a special keyring that is not there,
 *	KEY_LOOKUP_PARTIAL to find a key that is not instantiated, too
 *
 * Permissions are checked when the key is used.
 *
 * Context: process. While the task acts with the credentials of another one, as in
 *	a file system on top of others, there are no special keyrings.
 * Return: the key, for bpf_key_put(), or NULL.
 */
__bpf_kfunc struct bpf_key *bpf_lookup_user_key(u32 serial, u64 flags)
{
	struct bpf_key *bkey;
	key_ref_t ref;

	if (flags & ~KEY_LOOKUP_ALL)
		return NULL;
	/* For one that is not there, commit_creds() would have to replace them. */
	if ((key_serial_t)serial < 0 && current_cred() != current_real_cred())
		return NULL;

	ref = lookup_user_key(serial, flags, KEY_DEFER_PERM_CHECK);
	if (IS_ERR(ref))
		return NULL;

	bkey = kmalloc(sizeof(*bkey), GFP_KERNEL);
	if (!bkey) {
		key_ref_put(ref);
		return NULL;
	}
	bkey->key = key_ref_to_ptr(ref);
	bkey->has_ref = true;
	return bkey;
}

/**
 * bpf_lookup_system_key() - find one of the keyrings that verification knows by number
 * @id: 0 for the built-in keys, else VERIFY_USE_SECONDARY_KEYRING or
 *	VERIFY_USE_PLATFORM_KEYRING
 *
 * Context: any. In NMI it finds none.
 * Return: the keyring, for bpf_key_put(), or NULL.
 */
__bpf_kfunc struct bpf_key *bpf_lookup_system_key(u64 id)
{
	struct bpf_key *bkey;

	if (in_nmi() || system_keyring_id_check(id) < 0)
		return NULL;

	bkey = kmalloc(sizeof(*bkey), GFP_ATOMIC);
	if (!bkey)
		return NULL;
	bkey->key = (struct key *)(unsigned long)id;
	bkey->has_ref = false;
	return bkey;
}

/**
 * bpf_key_put() - the end of a lookup
 * @bkey: what was found
 *
 * Context: any but NMI.
 */
__bpf_kfunc void bpf_key_put(struct bpf_key *bkey)
{
	if (bkey->has_ref)
		key_put(bkey->key);
	kfree(bkey);
}

#ifdef CONFIG_SYSTEM_DATA_VERIFICATION
/**
 * bpf_verify_pkcs7_signature() - does a signature match the data?
 * @data_p: the data
 * @sig_p: the signature, PKCS#7
 * @trusted_keyring: the keys to trust
 *
 * Context: process.
 * Return: 0 if it does, or a negative error.
 */
__bpf_kfunc int bpf_verify_pkcs7_signature(struct bpf_dynptr *data_p,
					   struct bpf_dynptr *sig_p,
					   struct bpf_key *trusted_keyring)
{
	const struct bpf_dynptr_kern *data = (struct bpf_dynptr_kern *)data_p;
	const struct bpf_dynptr_kern *sig = (struct bpf_dynptr_kern *)sig_p;
	u32 data_len = __bpf_dynptr_size(data), sig_len = __bpf_dynptr_size(sig);
	int err;

	/* The lookup of a user's key has left this to us. */
	if (trusted_keyring->has_ref) {
		err = key_validate(trusted_keyring->key);
		if (err < 0)
			return err;
	}
	return verify_pkcs7_signature(__bpf_dynptr_data(data, data_len), data_len,
				      __bpf_dynptr_data(sig, sig_len), sig_len,
				      trusted_keyring->key,
				      VERIFYING_UNSPECIFIED_SIGNATURE, NULL, NULL);
}
#endif

BTF_KFUNCS_START(key_kfunc_ids)
BTF_ID_FLAGS(func, bpf_lookup_user_key, KF_ACQUIRE | KF_RET_NULL | KF_SLEEPABLE)
BTF_ID_FLAGS(func, bpf_lookup_system_key, KF_ACQUIRE | KF_RET_NULL)
BTF_ID_FLAGS(func, bpf_key_put, KF_RELEASE)
#ifdef CONFIG_SYSTEM_DATA_VERIFICATION
BTF_ID_FLAGS(func, bpf_verify_pkcs7_signature, KF_SLEEPABLE)
#endif
BTF_KFUNCS_END(key_kfunc_ids)

static const struct btf_kfunc_id_set key_kfunc_set = {
	.owner	= THIS_MODULE,
	.set	= &key_kfunc_ids,
};

static int __init key_kfuncs_init(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING, &key_kfunc_set);
}
late_initcall(key_kfuncs_init);
