// SPDX-License-Identifier: GPL-2.0
/*
 * BPF helpers that print: a line into the trace, a typed object into a buffer,
 * both of these and plain bytes into the seq_file of an iterator.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/filter.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/trace_events.h>

#include "bpf_trace_helpers.h"

#define CREATE_TRACE_POINTS
#include "bpf_trace_printk.h"

/* Return: the length of the line, or what is wrong with the format. */
static int printk_line(char *fmt, u32 fmt_size, const u64 *args, u32 nr_args)
{
	struct bpf_bprintf_data data = {
		.get_bin_args	= true,
		.get_buf	= true,
	};
	int ret;

	ret = bpf_bprintf_prepare(fmt, fmt_size, args, nr_args, &data);
	if (ret < 0)
		return ret;

	ret = bstr_printf(data.buf, MAX_BPRINTF_BUF, fmt, data.bin_args);
	trace_bpf_trace_printk(data.buf);
	bpf_bprintf_cleanup(&data);
	return ret;
}

BPF_CALL_5(bpf_trace_printk, char *, fmt, u32, fmt_size, u64, arg1, u64, arg2,
	   u64, arg3)
{
	const u64 args[] = { arg1, arg2, arg3 };

	return printk_line(fmt, fmt_size, args, ARRAY_SIZE(args));
}

/* Return: how many values these are for a format, or -EINVAL. */
static int format_nr_args(const u64 *args, u32 size)
{
	u32 nr = size / sizeof(*args);

	if (size % sizeof(*args) || nr > MAX_BPRINTF_VARARGS || (nr && !args))
		return -EINVAL;
	return nr;
}

BPF_CALL_4(bpf_trace_vprintk, char *, fmt, u32, fmt_size, const u64 *, args,
	   u32, args_size)
{
	int nr_args = format_nr_args(args, args_size);

	if (nr_args < 0)
		return nr_args;
	return printk_line(fmt, fmt_size, args, nr_args);
}

static const struct bpf_func_proto bpf_trace_printk_proto = {
	.func		= bpf_trace_printk,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg2_type	= ARG_CONST_SIZE,
};

static const struct bpf_func_proto bpf_trace_vprintk_proto = {
	.func		= bpf_trace_vprintk,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg2_type	= ARG_CONST_SIZE,
	.arg3_type	= ARG_PTR_TO_MEM | PTR_MAYBE_NULL | MEM_RDONLY,
	.arg4_type	= ARG_CONST_SIZE_OR_ZERO,
};

#define BTF_F_ALL	(BTF_F_COMPACT | BTF_F_NONAME | BTF_F_PTR_RAW | BTF_F_ZERO)

/* Return: the BTF that has the type of the object, or an error. */
static const struct btf *object_btf(const struct btf_ptr *ptr, u32 size, u64 flags)
{
	const struct btf *btf;

	if (size != sizeof(*ptr) || !ptr->type_id || flags & ~BTF_F_ALL)
		return ERR_PTR(-EINVAL);

	btf = bpf_get_btf_vmlinux();
	if (IS_ERR_OR_NULL(btf))
		return btf ?: ERR_PTR(-EINVAL);
	return btf_type_by_id(btf, ptr->type_id) ? btf : ERR_PTR(-ENOENT);
}

BPF_CALL_5(bpf_snprintf_btf, char *, str, u32, str_size, struct btf_ptr *, ptr,
	   u32, btf_ptr_size, u64, flags)
{
	const struct btf *btf = object_btf(ptr, btf_ptr_size, flags);

	if (IS_ERR(btf))
		return PTR_ERR(btf);
	return btf_type_snprintf_show(btf, ptr->type_id, ptr->ptr, str, str_size, flags);
}

const struct bpf_func_proto bpf_snprintf_btf_proto = {
	.func		= bpf_snprintf_btf,
	.gpl_only	= false,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_UNINIT_MEM,
	.arg2_type	= ARG_CONST_SIZE,
	.arg3_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg4_type	= ARG_CONST_SIZE,
	.arg5_type	= ARG_ANYTHING,
};

BPF_CALL_5(bpf_seq_printf, struct seq_file *, m, char *, fmt, u32, fmt_size,
	   const u64 *, args, u32, args_size)
{
	struct bpf_bprintf_data data = {
		.get_bin_args = true,
	};
	int err, nr_args = format_nr_args(args, args_size);

	if (nr_args < 0)
		return nr_args;

	err = bpf_bprintf_prepare(fmt, fmt_size, args, nr_args, &data);
	if (err < 0)
		return err;
	seq_bprintf(m, fmt, data.bin_args);
	bpf_bprintf_cleanup(&data);
	return seq_has_overflowed(m) ? -EOVERFLOW : 0;
}

BPF_CALL_3(bpf_seq_write, struct seq_file *, m, const void *, data, u32, size)
{
	return seq_write(m, data, size) ? -EOVERFLOW : 0;
}

BPF_CALL_4(bpf_seq_printf_btf, struct seq_file *, m, struct btf_ptr *, ptr,
	   u32, btf_ptr_size, u64, flags)
{
	const struct btf *btf = object_btf(ptr, btf_ptr_size, flags);

	if (IS_ERR(btf))
		return PTR_ERR(btf);
	return btf_type_seq_show_flags(btf, ptr->type_id, ptr->ptr, m, flags);
}

BTF_ID_LIST_SINGLE(seq_file_btf_ids, struct, seq_file)

const struct bpf_func_proto bpf_seq_printf_proto = {
	.func		= bpf_seq_printf,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &seq_file_btf_ids[0],
	.arg2_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg3_type	= ARG_CONST_SIZE,
	.arg4_type	= ARG_PTR_TO_MEM | PTR_MAYBE_NULL | MEM_RDONLY,
	.arg5_type	= ARG_CONST_SIZE_OR_ZERO,
};

const struct bpf_func_proto bpf_seq_write_proto = {
	.func		= bpf_seq_write,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &seq_file_btf_ids[0],
	.arg2_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
};

const struct bpf_func_proto bpf_seq_printf_btf_proto = {
	.func		= bpf_seq_printf_btf,
	.gpl_only	= true,
	.ret_type	= RET_INTEGER,
	.arg1_type	= ARG_PTR_TO_BTF_ID,
	.arg1_btf_id	= &seq_file_btf_ids[0],
	.arg2_type	= ARG_PTR_TO_MEM | MEM_RDONLY,
	.arg3_type	= ARG_CONST_SIZE_OR_ZERO,
	.arg4_type	= ARG_ANYTHING,
};

/* A program that prints wants to be seen, so its being loaded turns the event on. */
static void printk_show_lines(void)
{
	if (trace_set_clr_event("bpf_trace", "bpf_trace_printk", 1))
		pr_warn_ratelimited("bpf: cannot enable the event bpf_trace_printk\n");
}

/**
 * bpf_get_trace_printk_proto() - bpf_trace_printk() for a program being loaded
 *
 * Context: process.
 * Return: the helper's prototype.
 */
const struct bpf_func_proto *bpf_get_trace_printk_proto(void)
{
	printk_show_lines();
	return &bpf_trace_printk_proto;
}

/**
 * bpf_get_trace_vprintk_proto() - the same for bpf_trace_vprintk()
 *
 * Context: process.
 * Return: the helper's prototype.
 */
const struct bpf_func_proto *bpf_get_trace_vprintk_proto(void)
{
	printk_show_lines();
	return &bpf_trace_vprintk_proto;
}
