// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_RAW_TRACEPOINT: programs whose context is the array of a
 * tracepoint's arguments, as u64; and its writable kind, for tracepoints whose
 * first argument points to a buffer that programs may change.
 *
 * They run on links to a tracepoint, from here, or as filters of a trace event,
 * see bpf_trace_filter.c. Links of typed programs (BPF_TRACE_RAW_TP, see
 * bpf_trace_tracing.c) are the same.
 */
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bpf_verifier.h>
#include <linux/filter.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"
#include "trace.h"

extern struct bpf_raw_tp __start__bpf_raw_tp[];
extern struct bpf_raw_tp __stop__bpf_raw_tp[];

static struct bpf_raw_tp *raw_tp_find(struct bpf_raw_tp *tp, const struct bpf_raw_tp *end,
				      const char *name)
{
	for (; tp < end; tp++) {
		if (!strcmp(tp->tp->name, name))
			return tp;
	}
	return NULL;
}

#ifdef CONFIG_MODULES
struct raw_tp_search {
	const char		*name;
	struct bpf_raw_tp	*found;
};

/* Called for each tracepoint of a module, until it goes. */
static void raw_tp_search_module(struct tracepoint *tracepoint, struct module *mod, void *data)
{
	struct raw_tp_search *search = data;
	struct bpf_raw_tp *tp;

	if (search->found || strcmp(tracepoint->name, search->name))
		return;
	tp = raw_tp_find(mod->bpf_raw_tps, mod->bpf_raw_tps + mod->num_bpf_raw_tps,
			 search->name);
	/* A reference does not keep a module whose init fails. */
	if (tp && !module_is_coming(mod) && try_module_get(mod))
		search->found = tp;
}

static struct bpf_raw_tp *raw_tp_find_in_modules(const char *name)
{
	struct raw_tp_search search = { .name = name };

	for_each_module_tracepoint(raw_tp_search_module, &search);
	return search.found;
}
#else
static struct bpf_raw_tp *raw_tp_find_in_modules(const char *name)
{
	return NULL;
}
#endif

/* Return: the tracepoint, whose module stays until raw_tp_put(), or NULL. */
static struct bpf_raw_tp *raw_tp_get(const char *name)
{
	return raw_tp_find(__start__bpf_raw_tp, __stop__bpf_raw_tp, name) ?:
	       raw_tp_find_in_modules(name);
}

static void raw_tp_put(struct bpf_raw_tp *tp)
{
	guard(preempt)();
	module_put(__module_address((unsigned long)tp));
}

/**
 * bpf_raw_tp_probe_name() - whose BTF has the names of a tracepoint's arguments
 * @name: the name of the tracepoint
 * @buf: KSYM_NAME_LEN bytes for the result
 *
 * Context: process.
 * Return: the name of a function with the arguments of the tracepoint after its
 * first one; NULL if the function has no name, or -EINVAL if no tracepoint has
 * that one.
 */
const char *bpf_raw_tp_probe_name(const char *name, char *buf)
{
	struct bpf_raw_tp *tp = raw_tp_get(name);
	int err;

	if (!tp)
		return ERR_PTR(-EINVAL);
	err = lookup_symbol_name((unsigned long)tp->probe, buf);
	raw_tp_put(tp);
	return err ? NULL : buf;
}

/* A program on a tracepoint. */
struct raw_tp_link {
	struct bpf_link		link;
	struct bpf_attachment	att;
	struct bpf_raw_tp	*tp;	/* its module is held until release */
};

static struct raw_tp_link *raw_tp_link(const struct bpf_link *link)
{
	return container_of(link, struct raw_tp_link, link);
}

/**
 * bpf_raw_tp_run() - run the program of a link
 * @link: the link, a tracepoint's probe data
 * @args: the arguments of the tracepoint
 *
 * Context: preemption disabled; any of task, softirq, hardirq and NMI.
 */
void bpf_raw_tp_run(void *link, u64 *args)
{
	const struct raw_tp_link *tp_link = link;

	cant_sleep();
	bpf_attachment_hit_args(&tp_link->att, args);
}
EXPORT_SYMBOL_GPL(bpf_raw_tp_run);

static void raw_tp_link_release(struct bpf_link *link)
{
	struct raw_tp_link *tp_link = raw_tp_link(link);

	tracepoint_probe_unregister(tp_link->tp->tp, tp_link->tp->probe, tp_link);
	raw_tp_put(tp_link->tp);
}

/* After a grace period: there can be a hit on its way when a link is released. */
static void raw_tp_link_dealloc(struct bpf_link *link)
{
	struct raw_tp_link *tp_link = raw_tp_link(link);

	bpf_attachment_exit(&tp_link->att);
	kfree(tp_link);
}

static void raw_tp_link_show_fdinfo(const struct bpf_link *link, struct seq_file *seq)
{
	struct raw_tp_link *tp_link = raw_tp_link(link);

	seq_printf(seq, "tp_name:\t%s\n", tp_link->tp->tp->name);
	bpf_attachment_show(seq, &tp_link->att);
}

static int raw_tp_link_fill_info(const struct bpf_link *link, struct bpf_link_info *info)
{
	return bpf_copy_name(info->raw_tracepoint.tp_name,
			     &info->raw_tracepoint.tp_name_len,
			     raw_tp_link(link)->tp->tp->name);
}

static const struct bpf_link_ops raw_tp_link_ops = {
	.release		= raw_tp_link_release,
	.dealloc_deferred	= raw_tp_link_dealloc,
	.show_fdinfo		= raw_tp_link_show_fdinfo,
	.fill_link_info		= raw_tp_link_fill_info,
};

enum raw_tp_error {
	RAW_TP_NO_TRACEPOINT,
	RAW_TP_TOO_MANY_ARGS,
	RAW_TP_PAST_WRITABLE,
};

static struct tracing_refusal raw_tp_errors[] = {
	[RAW_TP_NO_TRACEPOINT] = { -ENOENT, "No tracepoint has this name" },
	[RAW_TP_TOO_MANY_ARGS] = { -EINVAL,
		"The program reads more arguments than the tracepoint has" },
	[RAW_TP_PAST_WRITABLE] = { -EINVAL,
		"The program reaches past what the tracepoint lets it write" },
};

static int raw_tp_refuse(struct bpf_verifier_log *log, enum raw_tp_error error,
			 const char *name)
{
	static const char cmd[] = "RAW_TRACEPOINT_OPEN";

	return bpf_refuse(log, &raw_tp_errors[error], sizeof(cmd), "%s %s", cmd, name);
}

/* Do the program and the tracepoint fit together? */
static int raw_tp_check_prog(const struct bpf_prog *prog, const struct bpf_raw_tp *tp,
			     struct bpf_verifier_log *log)
{
	if (prog->aux->max_ctx_offset > tp->nr_args * sizeof(u64))
		return raw_tp_refuse(log, RAW_TP_TOO_MANY_ARGS, tp->tp->name);
	if (prog->aux->max_tp_access > tp->writable_size)
		return raw_tp_refuse(log, RAW_TP_PAST_WRITABLE, tp->tp->name);
	return 0;
}

static int raw_tp_attach(struct bpf_prog *prog, struct bpf_raw_tp *tp, u64 cookie,
			 struct bpf_verifier_log *log)
{
	struct bpf_link_primer primer;
	struct raw_tp_link *tp_link;
	int err;

	err = raw_tp_check_prog(prog, tp, log);
	if (err)
		return err;

	tp_link = kzalloc(sizeof(*tp_link), GFP_KERNEL_ACCOUNT);
	if (!tp_link)
		return -ENOMEM;
	tp_link->tp = tp;
	tp_link->att.hit.cookie = cookie;
	bpf_link_init(&tp_link->link, BPF_LINK_TYPE_RAW_TRACEPOINT, &raw_tp_link_ops, prog);

	err = bpf_attachment_init(&tp_link->att, prog) ?:
	      bpf_link_prime(&tp_link->link, &primer);
	if (err)
		goto free;

	bpf_attachment_keep_apart(&tp_link->att);
	err = tracepoint_probe_register_may_exist(tp->tp, tp->probe, tp_link);
	if (err) {
		bpf_link_cleanup(&primer); /* frees the link */
		return err;
	}
	return bpf_link_settle(&primer);
free:
	raw_tp_link_dealloc(&tp_link->link);
	return err;
}

/**
 * bpf_raw_tp_link_create() - attach a program to a tracepoint
 * @prog: the program, whose reference goes to the link on success
 * @name: the tracepoint's name
 * @cookie: what bpf_get_attach_cookie() is to return
 * @log: the caller's log, or NULL
 *
 * On failure nothing has changed; @log and tracefs' error_log tell why.
 *
 * Context: process.
 * Return: the descriptor of the link, or
 *
 * * -ENOENT: no tracepoint has this name
 * * -EINVAL: the program reads more arguments than there are, or it writes to
 *   what the tracepoint does not let it write
 * * -ENOMEM, or what a new descriptor can fail with
 */
int bpf_raw_tp_link_create(struct bpf_prog *prog, const char *name, u64 cookie,
			   struct bpf_verifier_log *log)
{
	struct bpf_raw_tp *tp;
	int ret;

	tp = raw_tp_get(name);
	if (!tp)
		return raw_tp_refuse(log, RAW_TP_NO_TRACEPOINT, name);

	ret = raw_tp_attach(prog, tp, cookie, log);
	if (ret < 0)
		raw_tp_put(tp);
	return ret;
}

/* No registers came with the hit, so take those of the way here. */
BPF_CALL_5(bpf_perf_event_output_raw_tp, void *, ctx, struct bpf_map *, map,
	   u64, flags, void *, data, u64, size)
{
	if (unlikely(flags & ~BPF_F_INDEX_MASK))
		return -EINVAL;
	return bpf_count_lost(bpf_event_output(map, flags, data, size, NULL, 0, NULL), _RET_IP_);
}

BPF_CALL_3(bpf_get_stackid_raw_tp, void *, ctx, struct bpf_map *, map, u64, flags)
{
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	return bpf_get_stackid((unsigned long)&regs, (unsigned long)map, flags, 0, 0);
}

BPF_CALL_4(bpf_get_stack_raw_tp, void *, ctx, void *, buf, u32, size, u64, flags)
{
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	return bpf_get_stack((unsigned long)&regs, (unsigned long)buf, size, flags, 0);
}

static const struct bpf_func_proto bpf_perf_event_output_proto_raw_tp = {
	.func		= bpf_perf_event_output_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
	.arg4_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg5_type	= ARG_CONST_SIZE_OR_ZERO,
};

static const struct bpf_func_proto bpf_get_stackid_proto_raw_tp = {
	.func		= bpf_get_stackid_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_CONST_MAP_PTR,
	.arg3_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto bpf_get_stack_proto_raw_tp = {
	.func		= bpf_get_stack_raw_tp,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_CTX,
	.arg2_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg4_type	= ARG_ANYTHING,
};

/**
 * bpf_raw_tp_func_proto() - helpers of programs that get a tracepoint's arguments
 * @func_id: the helper
 * @prog: the program
 *
 * Return: the helper's prototype, or NULL.
 */
const struct bpf_func_proto *
bpf_raw_tp_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_perf_event_output:
		return &bpf_perf_event_output_proto_raw_tp;
	case BPF_FUNC_get_stackid:
		return &bpf_get_stackid_proto_raw_tp;
	case BPF_FUNC_get_stack:
		return &bpf_get_stack_proto_raw_tp;
	case BPF_FUNC_get_attach_cookie:
		return &bpf_get_attach_cookie_proto_tracing;
	default:
		return bpf_tracing_func_proto(func_id, prog);
	}
}

/* Which arguments there are is checked when the program meets its tracepoint. */
static bool raw_tp_prog_is_valid_access(int off, int size, enum bpf_access_type type,
					const struct bpf_prog *prog,
					struct bpf_insn_access_aux *info)
{
	return bpf_tracing_ctx_access(off, size, type);
}

static bool raw_tp_writable_is_valid_access(int off, int size, enum bpf_access_type type,
					    const struct bpf_prog *prog,
					    struct bpf_insn_access_aux *info)
{
	if (!bpf_tracing_ctx_access(off, size, type))
		return false;
	if (off == 0) {
		if (size != sizeof(u64))
			return false;
		info->reg_type = PTR_TO_TP_BUFFER;
	}
	return true;
}

const struct bpf_verifier_ops raw_tracepoint_verifier_ops = {
	.get_func_proto		= bpf_raw_tp_func_proto,
	.is_valid_access	= raw_tp_prog_is_valid_access,
};

const struct bpf_prog_ops raw_tracepoint_prog_ops = {
#ifdef CONFIG_NET
	.test_run		= bpf_prog_test_run_raw_tp,
#endif
};

const struct bpf_verifier_ops raw_tracepoint_writable_verifier_ops = {
	.get_func_proto		= bpf_raw_tp_func_proto,
	.is_valid_access	= raw_tp_writable_is_valid_access,
};

const struct bpf_prog_ops raw_tracepoint_writable_prog_ops = {
};
