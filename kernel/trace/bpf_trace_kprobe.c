// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_KPROBE: programs whose context is struct pt_regs, and the sysctl
 * that says what is checked when they are loaded.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sysctl.h>
#include <linux/trace_events.h>
#include <linux/version.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"

/*
 * Programs name the kernel they were built for, since what they read of its
 * memory has no ABI.
 */
static int kern_version_check = 1;

static int kprobe_prog_check_load(const union bpf_attr *attr,
				  struct bpf_verifier_log *log)
{
	const u32 running = KERNEL_VERSION(LINUX_VERSION_MAJOR,
					   LINUX_VERSION_PATCHLEVEL,
					   LINUX_VERSION_SUBLEVEL);
	u32 built = attr->kern_version;

	/* Programs with types are relocated to those of the running kernel. */
	if (!built && attr->func_info_cnt)
		return 0;
	if (built == running || !READ_ONCE(kern_version_check))
		return 0;
	/* Multi links came when loaders had stopped to fill in the field. */
	if (!built && is_multi_attach_type(attr->expected_attach_type))
		return 0;

	bpf_log(log, "kern_version 0x%06x (%u.%u.%u) does not match ",
		built, built >> 16, (built >> 8) & 0xff, built & 0xff);
	bpf_log(log, "the running kernel 0x%06x (%u.%u.%u)\n", running,
		LINUX_VERSION_MAJOR, LINUX_VERSION_PATCHLEVEL, LINUX_VERSION_SUBLEVEL);
	if (!built) {
		bpf_log(log, "A program without BTF must state it; ");
		bpf_log(log, "sysctl kernel.bpf_kprobe_kern_version=0 turns the check off\n");
	}
	return -EINVAL;
}

/* The context is struct pt_regs: aligned reads inside it, nothing else. */
static bool kprobe_prog_is_valid_access(int off, int size,
					enum bpf_access_type type,
					const struct bpf_prog *prog,
					struct bpf_insn_access_aux *info)
{
	return type == BPF_READ && off >= 0 && off % size == 0 &&
	       off + size <= sizeof(struct pt_regs);
}

/**
 * bpf_uprobe_check_attach() - may a program be attached to a uprobe event?
 * @req: the attach
 *
 * Context: process.
 * Return: 0, or an errno, with the reason in error_log.
 */
int bpf_uprobe_check_attach(const struct bpf_attach_request *req)
{
	const struct bpf_prog *prog = req->prog;

	if (prog->type != BPF_PROG_TYPE_KPROBE)
		return bpf_attach_refuse(req, ATTACH_WANTS_KPROBE);
	if (is_multi_attach_type(prog->expected_attach_type))
		return bpf_attach_refuse(req, ATTACH_IS_MULTI);
	return 0;
}

/**
 * bpf_kprobe_check_attach() - may a program be attached to a kprobe event?
 * @req: the attach
 *
 * Context: process.
 * Return: 0, or an errno, with the reason in error_log.
 */
int bpf_kprobe_check_attach(const struct bpf_attach_request *req)
{
	int err;

	err = bpf_uprobe_check_attach(req);
	if (!err && req->prog->sleepable)
		err = bpf_attach_refuse(req, ATTACH_SLEEPS);
	return err;
}

static const struct bpf_func_proto *
kprobe_prog_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto;
	case BPF_FUNC_get_stack:
		return prog->sleepable ? &bpf_get_stack_sleepable_proto :
					 &bpf_get_stack_proto;
#ifdef CONFIG_BPF_KPROBE_OVERRIDE
	case BPF_FUNC_override_return:
		return &bpf_override_return_proto;
#endif
	default:
		return bpf_hit_func_proto(func_id) ?:
		       bpf_tracing_func_proto(func_id, prog);
	}
}

/**
 * bpf_kprobe_link_create() - BPF_LINK_CREATE of a BPF_PROG_TYPE_KPROBE program
 * @attr: what user space asks for; bpf_kprobe_check_attach_type() has accepted the type
 * @prog: the program, whose reference goes to the link on success
 * @log: the caller's log, or NULL
 *
 * Context: process.
 * Return: the descriptor of the link, or an error that depends on its type.
 */
int bpf_kprobe_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
			   struct bpf_verifier_log *log)
{
	switch (attr->link_create.attach_type) {
	case BPF_PERF_EVENT:
		return bpf_perf_link_create(attr, prog, log);
	case BPF_TRACE_KPROBE_MULTI:
	case BPF_TRACE_KPROBE_SESSION:
		return bpf_kprobe_multi_link_create(attr, prog, log);
	case BPF_TRACE_UPROBE_MULTI:
	case BPF_TRACE_UPROBE_SESSION:
		return bpf_uprobe_multi_link_create(attr, prog, log);
	default:
		return -EINVAL;
	}
}

/**
 * bpf_kprobe_check_attach_type() - can a program be attached in this way?
 * @prog: the program, of type BPF_PROG_TYPE_KPROBE
 * @type: the way
 *
 * Return: 0, or -EINVAL if @type is not for this program type, or if the
 * program was loaded for another one.
 */
int bpf_kprobe_check_attach_type(const struct bpf_prog *prog,
				 enum bpf_attach_type type)
{
	switch (type) {
	case BPF_PERF_EVENT:
		return is_multi_attach_type(prog->expected_attach_type) ? -EINVAL : 0;
	case BPF_TRACE_KPROBE_MULTI:
	case BPF_TRACE_KPROBE_SESSION:
	case BPF_TRACE_UPROBE_MULTI:
	case BPF_TRACE_UPROBE_SESSION:
		return prog->expected_attach_type == type ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

const struct bpf_verifier_ops kprobe_verifier_ops = {
	.check_load		= kprobe_prog_check_load,
	.get_func_proto		= kprobe_prog_func_proto,
	.is_valid_access	= kprobe_prog_is_valid_access,
};

const struct bpf_prog_ops kprobe_prog_ops = {
};

static struct ctl_table kprobe_prog_sysctls[] = {
	{
		.procname	= "bpf_kprobe_kern_version",
		.data		= &kern_version_check,
		.maxlen		= sizeof(kern_version_check),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
};

static int __init kprobe_prog_init(void)
{
	register_sysctl_init("kernel", kprobe_prog_sysctls);
	return 0;
}
late_initcall(kprobe_prog_init);
