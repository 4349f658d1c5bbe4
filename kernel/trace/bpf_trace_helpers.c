// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers that every tracing program may call, whatever its context is.
 */
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>

#include "bpf_trace_helpers.h"

/**
 * bpf_tracing_func_proto() - helpers that do not depend on a program's context
 * @func_id: the helper
 * @prog: the program
 *
 * Return: the helper's prototype, or NULL.
 */
const struct bpf_func_proto *
bpf_tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	const struct bpf_func_proto *proto;

	switch (func_id) {
	case BPF_FUNC_get_smp_processor_id:
		return &bpf_get_smp_processor_id_proto;
	case BPF_FUNC_get_current_uid_gid:
		return &bpf_get_current_uid_gid_proto;
	case BPF_FUNC_get_current_comm:
		return &bpf_get_current_comm_proto;
#ifdef CONFIG_CGROUPS
	case BPF_FUNC_current_task_under_cgroup:
		return &bpf_current_task_under_cgroup_proto;
#endif
	/* Hooks of LSM and iterators are never reached inside an operation on storage. */
	case BPF_FUNC_task_storage_get:
		return bpf_prog_check_recur(prog) ? &bpf_task_storage_get_recur_proto :
						    &bpf_task_storage_get_proto;
	case BPF_FUNC_task_storage_delete:
		return bpf_prog_check_recur(prog) ? &bpf_task_storage_delete_recur_proto :
						    &bpf_task_storage_delete_proto;
	case BPF_FUNC_find_vma:
		return &bpf_find_vma_proto;
	case BPF_FUNC_get_func_ip: /* the verifier knows which programs have one */
		return &bpf_get_func_ip_proto_tracing;
	case BPF_FUNC_get_task_stack:
		return prog->sleepable ? &bpf_get_task_stack_sleepable_proto :
					 &bpf_get_task_stack_proto;
	case BPF_FUNC_copy_from_user:
		return &bpf_copy_from_user_proto;
	case BPF_FUNC_copy_from_user_task:
		return &bpf_copy_from_user_task_proto;
	default:
		break;
	}

	proto = bpf_read_func_proto(func_id) ?: bpf_perf_func_proto(func_id);
	proto = proto ?: bpf_task_func_proto(func_id);
	return proto ?: bpf_base_func_proto(func_id, prog);
}
