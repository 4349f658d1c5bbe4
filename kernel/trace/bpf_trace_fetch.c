// SPDX-License-Identifier: GPL-2.0
/*
 * Kfuncs for programs on kprobes and tracepoints: short reads of kernel memory
 * that need no buffer, and a stack trace into the trace.
 *
 * An address that cannot be read gives 0. The verifier turns the fetches into
 * loads with an exception table entry, see fixup_kfunc_call().
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/security.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "bpf_trace_helpers.h"

#define fetch(type, addr)						\
({									\
	type __val;							\
									\
	copy_from_kernel_nofault(&__val, addr, sizeof(__val)) ? 0 : __val; \
})

/**
 * bpf_fetch_u8() - read a byte of kernel memory
 * @addr__any: where
 *
 * Return: the byte, 0 if there is no memory at this address.
 */
__bpf_kfunc u8 bpf_fetch_u8(const void *addr__any)
{
	return fetch(u8, addr__any);
}

/**
 * bpf_fetch_u16() - read two bytes of kernel memory
 * @addr__any: where
 *
 * Return: the number, 0 if there is no memory at this address.
 */
__bpf_kfunc u16 bpf_fetch_u16(const void *addr__any)
{
	return fetch(u16, addr__any);
}

/**
 * bpf_fetch_u32() - read four bytes of kernel memory
 * @addr__any: where
 *
 * Return: the number, 0 if there is no memory at this address.
 */
__bpf_kfunc u32 bpf_fetch_u32(const void *addr__any)
{
	return fetch(u32, addr__any);
}

/**
 * bpf_fetch_u64() - read eight bytes of kernel memory
 * @addr__any: where
 *
 * Return: the number, 0 if there is no memory at this address.
 */
__bpf_kfunc u64 bpf_fetch_u64(const void *addr__any)
{
	return fetch(u64, addr__any);
}

/**
 * bpf_fetch_ptr() - read a pointer in kernel memory
 * @addr__any: where
 *
 * Return: the pointer, NULL if there is no memory at this address.
 */
__bpf_kfunc void *bpf_fetch_ptr(const void *addr__any)
{
	return (void *)fetch(unsigned long, addr__any);
}

/**
 * bpf_memcmp() - compare kernel memory with the program's
 * @addr__any: the kernel's
 * @mem: the program's
 * @mem__sz: how many bytes
 *
 * The kernel's is read in pieces of 64 bytes. Of a piece that cannot be read as a whole,
 * nothing is compared.
 *
 * Return: 0 if they are the same, -1 or 1 if the first byte that is not is less
 * or greater in the kernel, or -EFAULT if that or what is before it cannot be read.
 */
__bpf_kfunc int bpf_memcmp(const void *addr__any, const void *mem, u32 mem__sz)
{
	u8 chunk[64];
	u32 off, len;
	int diff;

	for (off = 0; off < mem__sz; off += len) {
		len = min_t(u32, mem__sz - off, sizeof(chunk));
		if (copy_from_kernel_nofault(chunk, addr__any + off, len))
			return -EFAULT;
		diff = memcmp(chunk, mem + off, len);
		if (diff)
			return diff < 0 ? -1 : 1;
	}
	return 0;
}

/**
 * bpf_dump_stack() - write the kernel's stack at the hit into the trace
 */
__bpf_kfunc void bpf_dump_stack(void)
{
	trace_dump_stack(0);
}

BTF_KFUNCS_START(fetch_kfunc_ids)
BTF_ID_FLAGS(func, bpf_fetch_u8)
BTF_ID_FLAGS(func, bpf_fetch_u16)
BTF_ID_FLAGS(func, bpf_fetch_u32)
BTF_ID_FLAGS(func, bpf_fetch_u64)
BTF_ID_FLAGS(func, bpf_fetch_ptr)
BTF_ID_FLAGS(func, bpf_memcmp, KF_TRUSTED_ARGS)
BTF_ID_FLAGS(func, bpf_dump_stack)
BTF_KFUNCS_END(fetch_kfunc_ids)

BTF_SET_START(reading_kfunc_ids)
BTF_ID(func, bpf_fetch_u8)
BTF_ID(func, bpf_fetch_u16)
BTF_ID(func, bpf_fetch_u32)
BTF_ID(func, bpf_fetch_u64)
BTF_ID(func, bpf_fetch_ptr)
BTF_ID(func, bpf_memcmp)
BTF_SET_END(reading_kfunc_ids)

static int fetch_kfunc_filter(const struct bpf_prog *prog, u32 kfunc_id)
{
	if (btf_id_set_contains(&reading_kfunc_ids, kfunc_id) &&
	    security_locked_down(LOCKDOWN_BPF_READ_KERNEL) < 0)
		return -EACCES;
	return 0;
}

static const struct btf_kfunc_id_set fetch_kfunc_set = {
	.owner	= THIS_MODULE,
	.set	= &fetch_kfunc_ids,
	.filter	= fetch_kfunc_filter,
};

/* Programs on raw tracepoints have the kfuncs of those on kprobes. */
static int __init fetch_kfunc_init(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_KPROBE, &fetch_kfunc_set);
}
late_initcall(fetch_kfunc_init);
