// SPDX-License-Identifier: GPL-2.0
/*
 * fsynclat: how long fsync() and fdatasync() take, by process and file. This program
 * measures them; fsynclat_user.c attaches it and prints the table.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "fsynclat.h"

struct start {
	__u64			ns;
	struct fsynclat_key	key;
	struct fsynclat_names	names;
};

#define TOTALS FSYNCLAT_TOTALS
#include "latency.bpf.h"

/* What the functions of system calls have in front of their name */
#if defined(__TARGET_ARCH_x86)
#define PREFIX "__x64_"
#elif defined(__TARGET_ARCH_arm64)
#define PREFIX "__arm64_"
#elif defined(__TARGET_ARCH_riscv)
#define PREFIX "__riscv_"
#elif defined(__TARGET_ARCH_s390)
#define PREFIX "__s390x_"
#else
#define PREFIX ""
#endif

/* User space adds the entry at key 0, which takes those that find the map full. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fsynclat_key);
	__type(value, struct fsynclat_stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fsynclat_key);
	__type(value, struct fsynclat_names);
} names SEC(".maps");

extern bool bpf_session_is_return(void)
	__ksym;

static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/* Returns 1 if there is no file, or no start: the return is not of interest, either. */
static __always_inline int enter(struct pt_regs *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct pt_regs *regs = PT_REGS_SYSCALL_REGS(ctx);
	struct file *file = file_of(task, PT_REGS_PARM1_CORE_SYSCALL(regs));
	struct start *start;

	if (!file)
		return 1;
	start = new_start();
	if (!start) {
		add_total(FSYNCLAT_LOST_STARTS);
		return 1;
	}
	start->key.ino = BPF_CORE_READ(file, f_inode, i_ino);
	start->key.dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	start->key.pid = bpf_get_current_pid_tgid() >> 32;
	BPF_CORE_READ_STR_INTO(&start->names.comm, task, group_leader, comm);
	bpf_probe_read_kernel_str(start->names.file, sizeof(start->names.file),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	start->ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline struct fsynclat_stats *stats_of(struct start *start)
{
	struct fsynclat_stats none = {}, *s = bpf_map_lookup_elem(&stats, &start->key);
	struct fsynclat_key others = {};

	if (s)
		return s;
	/* If another CPU is faster, its entry is the one to use. */
	if (!bpf_map_update_elem(&names, &start->key, &start->names, BPF_ANY)) {
		bpf_map_update_elem(&stats, &start->key, &none, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&stats, &start->key);
	}
	return s ?: bpf_map_lookup_elem(&stats, &others);
}

/* Not atomic, either */
static __always_inline void count(struct start *start, __u64 ns, bool failed)
{
	struct fsynclat_stats *s = stats_of(start);

	if (!s)
		return;
	s->calls++;
	s->errors += failed;
	s->ns += ns;
	if (s->max_ns < ns)
		s->max_ns = ns;
}

/* Runs at both ends of a call, or at none. */
SEC("kprobe.session/" PREFIX "sys_f*sync")
int measure(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	struct start *start;

	if (!bpf_session_is_return())
		return enter(ctx);

	start = old_start();
	if (!start)
		return 0;
	if (is_short(now - start->ns))
		add_total(FSYNCLAT_SHORT);
	else
		count(start, now - start->ns, (int)PT_REGS_RC(ctx) < 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
