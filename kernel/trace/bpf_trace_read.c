// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers that read memory which may not be there.
 *
 * Programs run with preemption disabled, so nothing is faulted in: what is not
 * mapped, or not resident, is an error. Whatever the reason, the destination
 * has no stale bytes afterwards. All helpers return 0 (the _str ones: how many
 * bytes they wrote, the terminating NUL included), or
 *
 *	-EFAULT		the address is not mapped or not resident
 *	-ERANGE		the address cannot be one of the kernel's
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/security.h>
#include <linux/uaccess.h>

#include "bpf_trace_helpers.h"

static __always_inline long zero_on_error(void *dst, u32 size, long ret)
{
	if (unlikely(ret < 0))
		memset(dst, 0, size);
	return ret;
}

/*
 * An address of the two helpers that do not say whose memory they mean. Where
 * user and kernel addresses overlap, it has to be the kernel's.
 */
static __always_inline bool is_user_addr(const void *src)
{
	return IS_ENABLED(CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE) &&
	       (unsigned long)src < TASK_SIZE;
}

static __always_inline long probe_read_user(void *dst, u32 size, const void *src)
{
	return zero_on_error(dst, size,
			     copy_from_user_nofault(dst, (const void __user *)src, size));
}

static __always_inline long read_kernel(void *dst, u32 size, const void *src)
{
	return zero_on_error(dst, size, copy_from_kernel_nofault(dst, src, size));
}

static __always_inline long read_user_str(void *dst, u32 size, const void *src)
{
	return zero_on_error(dst, size,
			     strncpy_from_user_nofault(dst, (const void __user *)src, size));
}

static __always_inline long read_kernel_str(void *dst, u32 size, const void *src)
{
	return zero_on_error(dst, size, strncpy_from_kernel_nofault(dst, src, size));
}

BPF_CALL_3(bpf_probe_read_user, void *, dst, u32, size, const void *, src)
{
	return probe_read_user(dst, size, src);
}

BPF_CALL_3(bpf_probe_read_user_str, void *, dst, u32, size, const void *, src)
{
	return read_user_str(dst, size, src);
}

BPF_CALL_3(bpf_probe_read_kernel, void *, dst, u32, size, const void *, src)
{
	return read_kernel(dst, size, src);
}

BPF_CALL_3(bpf_probe_read_kernel_str, void *, dst, u32, size, const void *, src)
{
	return read_kernel_str(dst, size, src);
}

BPF_CALL_3(bpf_probe_read, void *, dst, u32, size, const void *, src)
{
	return is_user_addr(src) ? probe_read_user(dst, size, src) :
				   read_kernel(dst, size, src);
}

BPF_CALL_3(bpf_probe_read_str, void *, dst, u32, size, const void *, src)
{
	return is_user_addr(src) ? read_user_str(dst, size, src) :
				   read_kernel_str(dst, size, src);
}

#define READ_PROTO(_func) {					\
	.func		= _func,				\
	.gpl_only	= true,					\
	.ret_type	= RET_INTEGER,				\
	.arg1_type	= ARG_PTR_TO_UNINIT_MEM,		\
	.arg2_type	= ARG_CONST_SIZE_OR_ZERO,		\
	.arg3_type	= ARG_ANYTHING,				\
}

/* Whom bpf_base_func_proto() serves, other program types among them. */
const struct bpf_func_proto bpf_probe_read_user_proto =
	READ_PROTO(bpf_probe_read_user);
const struct bpf_func_proto bpf_probe_read_user_str_proto =
	READ_PROTO(bpf_probe_read_user_str);
const struct bpf_func_proto bpf_probe_read_kernel_proto =
	READ_PROTO(bpf_probe_read_kernel);
const struct bpf_func_proto bpf_probe_read_kernel_str_proto =
	READ_PROTO(bpf_probe_read_kernel_str);

static const struct bpf_func_proto bpf_probe_read_proto =
	READ_PROTO(bpf_probe_read);
static const struct bpf_func_proto bpf_probe_read_str_proto =
	READ_PROTO(bpf_probe_read_str);

/**
 * bpf_read_func_proto() - the reads that only tracing programs have
 * @func_id: the helper
 *
 * Return: the helper's prototype, NULL if it is none of these or if lockdown
 * keeps kernel memory confidential.
 */
const struct bpf_func_proto *bpf_read_func_proto(enum bpf_func_id func_id)
{
	const struct bpf_func_proto *proto;

	switch (func_id) {
	case BPF_FUNC_probe_read:
		proto = &bpf_probe_read_proto;
		break;
	case BPF_FUNC_probe_read_str:
		proto = &bpf_probe_read_str_proto;
		break;
	default:
		return NULL;
	}

	return security_locked_down(LOCKDOWN_BPF_READ_KERNEL) < 0 ? NULL : proto;
}
