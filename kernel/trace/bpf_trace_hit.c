// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers that tell a program about the hit which it was run for: where it
 * is, and which of its attachments that belongs to; and the kfuncs of sessions.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/filter.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"

#ifdef CONFIG_X86_KERNEL_IBT
#include <asm/ibt.h>

unsigned long bpf_func_start(unsigned long ip)
{
	u32 insn;

	if (!get_kernel_nofault(insn, (u32 *)(ip - ENDBR_INSN_SIZE)) && is_endbr(insn))
		ip -= ENDBR_INSN_SIZE;
	return ip;
}
#endif

static nokprobe_inline const struct bpf_hit *hit_current(void)
{
	const struct bpf_hit *hit = this_cpu_read(bpf_current_hit);

	return hit ?: container_of(current->bpf_ctx, struct bpf_uprobe_run_ctx, run_ctx)->hit;
}

/* The function of the running kprobe, 0 if that is somewhere inside it. */
static unsigned long hit_kprobe_func(void)
{
#ifdef CONFIG_KPROBES
	struct kprobe *kp = kprobe_running();

	if (kp && kp->flags & KPROBE_FLAG_ON_FUNC_ENTRY)
		return bpf_func_start((unsigned long)kp->addr);
#endif
	return 0;
}

BPF_CALL_1(bpf_get_attach_cookie_kprobe, void *, ctx)
{
	return hit_current()->cookie;
}

BPF_CALL_1(bpf_get_func_ip_kprobe, void *, ctx)
{
	return hit_current()->func_ip ?: hit_kprobe_func();
}

/* Of a program on a tracepoint or a trampoline, or in a test run. */
BPF_CALL_1(bpf_get_attach_cookie_tracing, void *, ctx)
{
	return container_of(current->bpf_ctx, struct bpf_trace_run_ctx,
			    run_ctx)->bpf_cookie;
}

static const struct bpf_func_proto bpf_get_attach_cookie_proto_kprobe = {
	.func		= bpf_get_attach_cookie_kprobe,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
};

const struct bpf_func_proto bpf_get_attach_cookie_proto_tracing = {
	.func		= bpf_get_attach_cookie_tracing,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
};

static const struct bpf_func_proto bpf_get_func_ip_proto_kprobe = {
	.func		= bpf_get_func_ip_kprobe,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
};

/**
 * bpf_hit_func_proto() - the helpers about the hit of a kprobe program
 * @func_id: the helper
 *
 * Return: the helper's prototype, NULL if it is none of these.
 */
const struct bpf_func_proto *bpf_hit_func_proto(enum bpf_func_id func_id)
{
	switch (func_id) {
	case BPF_FUNC_get_attach_cookie:
		return &bpf_get_attach_cookie_proto_kprobe;
	case BPF_FUNC_get_func_ip:
		return &bpf_get_func_ip_proto_kprobe;
	default:
		return NULL;
	}
}

/*
 * Only programs that were loaded for sessions may call these kfuncs, and only the hits of
 * sessions run such programs.
 */
static nokprobe_inline const struct bpf_session_hit *session_hit_current(void)
{
	return container_of(hit_current(), struct bpf_session_hit, hit);
}

/**
 * bpf_hit_is_return() - does a session run for the return of a call?
 *
 * Context: that of the run of a session's program. Out of bounds for kprobes.
 */
bool bpf_hit_is_return(void)
{
	return session_hit_current()->is_return;
}

NOKPROBE_SYMBOL(bpf_hit_is_return);

/**
 * bpf_session_is_return() - which end of the call is this?
 *
 * Return: false at the entry of the function, true at its return.
 */
__bpf_kfunc bool bpf_session_is_return(void)
{
	return session_hit_current()->is_return;
}

/**
 * bpf_session_cookie() - 64 bits that go from the entry of a call to its return
 *
 * Return: where they are; 0 at the entry.
 */
__bpf_kfunc __u64 *bpf_session_cookie(void)
{
	return session_hit_current()->cookie;
}

BTF_KFUNCS_START(session_kfunc_ids)
BTF_ID_FLAGS(func, bpf_session_is_return)
BTF_ID_FLAGS(func, bpf_session_cookie)
BTF_KFUNCS_END(session_kfunc_ids)

static int session_kfunc_filter(const struct bpf_prog *prog, u32 kfunc_id)
{
	if (!btf_id_set8_contains(&session_kfunc_ids, kfunc_id))
		return 0;
	return bpf_prog_is_session(prog) ? 0 : -EACCES;
}

static const struct btf_kfunc_id_set session_kfunc_set = {
	.owner	= THIS_MODULE,
	.set	= &session_kfunc_ids,
	.filter	= session_kfunc_filter,
};

static int __init session_kfuncs_init(void)
{
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_KPROBE, &session_kfunc_set);
}
late_initcall(session_kfuncs_init);
