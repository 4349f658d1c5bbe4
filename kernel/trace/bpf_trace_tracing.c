// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_TRACING: programs whose context has the types of the BTF. They
 * run at the entry of a function, at its return or in its place (trampolines,
 * kernel/bpf/trampoline.c), on tracepoints (bpf_trace_raw_tp.c), and for each
 * object of an iterator (kernel/bpf/bpf_iter.c). All of these attach them; here
 * is what the programs may do.
 */
#include <linux/bpf.h>
#include <linux/bpf_lsm.h>
#include <linux/bpf_verifier.h>
#include <linux/btf_ids.h>
#include <linux/dcache.h>
#include <linux/filter.h>
#include <linux/path.h>
#include <linux/uaccess.h>
#include <net/bpf_sk_storage.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"

/*
 * A trampoline leaves this below and above the arguments that it hands out as
 * context. The verifier turns all of these helpers into loads.
 */
static u64 ctx_func_ip(const u64 *ctx)
{
	return ctx[-2];
}

static u64 ctx_nr_args(const u64 *ctx)
{
	return ctx[-1];
}

BPF_CALL_1(bpf_get_func_ip_tracing, void *, ctx)
{
	return ctx_func_ip(ctx);
}

BPF_CALL_1(bpf_get_func_arg_cnt, void *, ctx)
{
	return ctx_nr_args(ctx);
}

BPF_CALL_3(bpf_get_func_arg, u64 *, ctx, u32, n, u64 *, value)
{
	if (n >= ctx_nr_args(ctx))
		return -EINVAL;
	*value = ctx[n];
	return 0;
}

BPF_CALL_2(bpf_get_func_ret, u64 *, ctx, u64 *, value)
{
	*value = ctx[ctx_nr_args(ctx)];
	return 0;
}

const struct bpf_func_proto bpf_get_func_ip_proto_tracing = {
	.func		= bpf_get_func_ip_tracing,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
};

static const struct bpf_func_proto bpf_get_func_arg_cnt_proto = {
	.func		= bpf_get_func_arg_cnt,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
};

static const struct bpf_func_proto bpf_get_func_arg_proto = {
	.func		= bpf_get_func_arg,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_ANYTHING,
	.arg3_type	= ARG_PTR_TO_FIXED_SIZE_MEM | MEM_UNINIT | MEM_WRITE | MEM_ALIGNED,
	.arg3_size	= sizeof(u64),
};

static const struct bpf_func_proto bpf_get_func_ret_proto = {
	.func		= bpf_get_func_ret,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_FIXED_SIZE_MEM | MEM_UNINIT | MEM_WRITE | MEM_ALIGNED,
	.arg2_size	= sizeof(u64),
};

/* The path is one of the kernel's own; but it may be on its way out. */
BPF_CALL_3(bpf_d_path, struct path *, path, char *, buf, u32, size)
{
	struct path copy;
	char *name;
	long len;

	if (!size)
		return 0;
	if (copy_from_kernel_nofault(&copy, path, sizeof(copy)))
		return -EFAULT;

	name = d_path(&copy, buf, size);
	if (IS_ERR(name))
		return PTR_ERR(name);

	len = buf + size - name;
	memmove(buf, name, len);
	return len;
}

/* Functions that hold a reference on the path, and locks that d_path() does not take. */
BTF_SET_START(d_path_funcs)
#ifdef CONFIG_SECURITY
BTF_ID(func, security_file_permission)
BTF_ID(func, security_inode_getattr)
BTF_ID(func, security_file_open)
#endif
#ifdef CONFIG_SECURITY_PATH
BTF_ID(func, security_path_truncate)
#endif
BTF_ID(func, vfs_truncate)
BTF_ID(func, vfs_fallocate)
BTF_ID(func, dentry_open)
BTF_ID(func, vfs_getattr)
BTF_ID(func, filp_close)
BTF_SET_END(d_path_funcs)

static bool d_path_allowed(const struct bpf_prog *prog)
{
	if (prog->type == BPF_PROG_TYPE_TRACING &&
	    prog->expected_attach_type == BPF_TRACE_ITER)
		return true;
	if (prog->type == BPF_PROG_TYPE_LSM)
		return bpf_lsm_is_sleepable_hook(prog->aux->attach_btf_id);
	return btf_id_set_contains(&d_path_funcs, prog->aux->attach_btf_id);
}

BTF_ID_LIST_SINGLE(path_btf_ids, struct, path)

static const struct bpf_func_proto bpf_d_path_proto = {
	.func		= bpf_d_path,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &path_btf_ids[0],
	.arg2_type	= ARG_PTR_TO_MEM | MEM_WRITE,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.allowed	= d_path_allowed,
};

/* What the networking code has for typed pointers to its objects */
static const struct bpf_func_proto *net_func_proto(enum bpf_func_id func_id)
{
	switch (func_id) {
#ifdef CONFIG_NET
	case BPF_FUNC_skb_output:
		return &bpf_skb_output_proto;
	case BPF_FUNC_xdp_output:
		return &bpf_xdp_output_proto;
	case BPF_FUNC_xdp_get_buff_len:
		return &bpf_xdp_get_buff_len_trace_proto;
	case BPF_FUNC_skc_to_tcp6_sock:
		return &bpf_skc_to_tcp6_sock_proto;
	case BPF_FUNC_skc_to_tcp_sock:
		return &bpf_skc_to_tcp_sock_proto;
	case BPF_FUNC_skc_to_tcp_timewait_sock:
		return &bpf_skc_to_tcp_timewait_sock_proto;
	case BPF_FUNC_skc_to_tcp_request_sock:
		return &bpf_skc_to_tcp_request_sock_proto;
	case BPF_FUNC_skc_to_udp6_sock:
		return &bpf_skc_to_udp6_sock_proto;
	case BPF_FUNC_skc_to_unix_sock:
		return &bpf_skc_to_unix_sock_proto;
	case BPF_FUNC_skc_to_mptcp_sock:
		return &bpf_skc_to_mptcp_sock_proto;
	case BPF_FUNC_sk_storage_get:
		return &bpf_sk_storage_get_tracing_proto;
	case BPF_FUNC_sk_storage_delete:
		return &bpf_sk_storage_delete_tracing_proto;
	case BPF_FUNC_sock_from_file:
		return &bpf_sock_from_file_proto;
	case BPF_FUNC_get_socket_cookie:
		return &bpf_get_socket_ptr_cookie_proto;
#endif
	default:
		return NULL;
	}
}

static const struct bpf_func_proto *
iter_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_seq_printf:
		return &bpf_seq_printf_proto;
	case BPF_FUNC_seq_write:
		return &bpf_seq_write_proto;
	case BPF_FUNC_seq_printf_btf:
		return &bpf_seq_printf_btf_proto;
	default:
		return bpf_iter_get_func_proto(func_id, prog);
	}
}

static const struct bpf_func_proto *
trampoline_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_get_func_arg:
		return &bpf_get_func_arg_proto;
	case BPF_FUNC_get_func_arg_cnt:
		return &bpf_get_func_arg_cnt_proto;
	case BPF_FUNC_get_func_ret:
		return &bpf_get_func_ret_proto;
	default:
		return NULL;
	}
}

/**
 * tracing_prog_func_proto() - helpers of programs with a typed context
 * @func_id: the helper
 * @prog: the program; of type TRACING, LSM or SYSCALL
 *
 * Return: the helper's prototype, or NULL.
 */
const struct bpf_func_proto *
tracing_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	const struct bpf_func_proto *proto = NULL;

	switch (func_id) {
	case BPF_FUNC_d_path:
		return &bpf_d_path_proto;
	case BPF_FUNC_get_attach_cookie:
		if (!bpf_prog_has_trampoline(prog) &&
		    !(prog->type == BPF_PROG_TYPE_TRACING &&
		      prog->expected_attach_type == BPF_TRACE_RAW_TP))
			return NULL;
		break;
	default:
		proto = net_func_proto(func_id);
	}

	if (!proto && bpf_prog_has_trampoline(prog))
		proto = trampoline_func_proto(func_id, prog);
	if (!proto && prog->expected_attach_type == BPF_TRACE_ITER)
		proto = iter_func_proto(func_id, prog);
	return proto ?: bpf_raw_tp_func_proto(func_id, prog);
}

static bool tracing_prog_is_valid_access(int off, int size, enum bpf_access_type type,
					 const struct bpf_prog *prog,
					 struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(off, size, type, prog, info);
}

const struct bpf_verifier_ops tracing_verifier_ops = {
	.get_func_proto		= tracing_prog_func_proto,
	.is_valid_access	= tracing_prog_is_valid_access,
};

const struct bpf_prog_ops tracing_prog_ops = {
#ifdef CONFIG_NET
	.test_run		= bpf_prog_test_run_tracing,
#endif
};
