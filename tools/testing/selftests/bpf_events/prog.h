/* SPDX-License-Identifier: GPL-2.0 */
/* Programs, maps, and the memory that tests and programs share */
#ifndef BPF_EVENTS_PROG_H
#define BPF_EVENTS_PROG_H

#include <sys/utsname.h>

#include "linux/filter.h"
#include "sys.h"

/* Every program and map of ours has this name */
#define BPF_NAME "bpfev"

static inline __u32 kern_version(void)
{
	unsigned int a = 0, b = 0, c = 0;
	struct utsname uts;

	uname(&uts);
	if (sscanf(uts.release, "%u.%u.%u", &a, &b, &c) < 2)
		return 0;
	return a << 16 | b << 8 | (c > 255 ? 255 : c);
}

/* Can a task be preempted while it is in the kernel? */
static inline bool kernel_preempts(void)
{
	char modes[64] = "";
	struct utsname uts;

	if (uname(&uts) || !strstr(uts.version, "PREEMPT"))
		return false;
	if (!strstr(uts.version, "PREEMPT_DYNAMIC"))
		return true;
	read_file(DEBUGFS "/sched/preempt", modes, sizeof(modes));
	return strstr(modes, "(full)");
}

static inline void prog_attr(union bpf_attr *attr, const struct bpf_insn *insns,
			     size_t cnt)
{
	memset(attr, 0, sizeof(*attr));
	attr->prog_type = BPF_PROG_TYPE_KPROBE;
	attr->insns = (unsigned long)insns;
	attr->insn_cnt = cnt;
	attr->license = (unsigned long)"GPL";
	attr->kern_version = kern_version();
	memcpy(attr->prog_name, BPF_NAME, sizeof(BPF_NAME));
}

/* For programs that must load: shows the verifier's log if one does not */
static inline int prog_load_attr(union bpf_attr *attr)
{
	static char log[65536];
	int fd = sys_bpf(BPF_PROG_LOAD, attr);

	if (fd >= 0)
		return fd;

	attr->log_buf = (unsigned long)log;
	attr->log_size = sizeof(log);
	attr->log_level = 1;
	sys_bpf(BPF_PROG_LOAD, attr);
	fprintf(stderr, "# load: %s\n%s", strerror(-fd), log);
	return fd;
}

static inline int prog_load_as(const struct bpf_insn *insns, size_t cnt,
			       enum bpf_attach_type attach, __u32 flags)
{
	union bpf_attr attr;

	prog_attr(&attr, insns, cnt);
	attr.expected_attach_type = attach;
	attr.prog_flags = flags;
	return prog_load_attr(&attr);
}

static inline int prog_load_flags(const struct bpf_insn *insns, size_t cnt,
				  __u32 flags)
{
	return prog_load_as(insns, cnt, 0, flags);
}

static inline int prog_load(const struct bpf_insn *insns, size_t cnt)
{
	return prog_load_as(insns, cnt, 0, 0);
}

static inline int prog_load_of(enum bpf_prog_type type, const struct bpf_insn *insns,
			       size_t cnt)
{
	union bpf_attr attr;

	prog_attr(&attr, insns, cnt);
	attr.prog_type = type;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

static inline int prog_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attr = {};

	memset(info, 0, sizeof(*info));
	attr.info.bpf_fd = fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (unsigned long)info;
	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static inline __u32 prog_id(int fd)
{
	struct bpf_prog_info info;

	return prog_info(fd, &info) ? 0 : info.id;
}

static inline int prog_by_id(__u32 id)
{
	union bpf_attr attr = { .prog_id = id };

	return sys_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
}

static inline bool prog_exists(__u32 id)
{
	int prog = prog_by_id(id);

	close(prog);
	return prog != -ENOENT;
}

/* What nobody holds any more goes a while later, or with the last RCU reader */
static inline bool prog_is_freed(__u32 id)
{
	return wait_gone(!prog_exists(id));
}

static inline int map_create(enum bpf_map_type type, __u32 key, __u32 value,
			     __u32 entries, __u32 flags)
{
	union bpf_attr attr = {
		.map_type = type, .key_size = key, .value_size = value,
		.max_entries = entries, .map_flags = flags,
		.map_name = BPF_NAME,
	};

	return sys_bpf(BPF_MAP_CREATE, &attr);
}

/* A map of one value, which is text that no program can change */
static inline int text_create(const char *text)
{
	int map = map_create(BPF_MAP_TYPE_ARRAY, 4, strlen(text) + 1, 1, BPF_F_RDONLY_PROG);
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = map, .key = (unsigned long)&key, .value = (unsigned long)text,
	};

	if (map < 0 || sys_bpf(BPF_MAP_UPDATE_ELEM, &attr))
		return -errno;
	attr = (union bpf_attr){ .map_fd = map };
	return sys_bpf(BPF_MAP_FREEZE, &attr) ? -errno : map;
}

static inline __u32 map_id(int fd)
{
	struct bpf_map_info info = {};
	union bpf_attr attr = {
		.info.bpf_fd = fd, .info.info_len = sizeof(info),
		.info.info = (unsigned long)&info,
	};

	return sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) ? 0 : info.id;
}

static inline int map_update(int fd, const void *key, const void *value)
{
	union bpf_attr attr = {
		.map_fd = fd, .key = (unsigned long)key,
		.value = (unsigned long)value,
	};

	return sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static inline int map_lookup(int fd, const void *key, void *value)
{
	union bpf_attr attr = {
		.map_fd = fd, .key = (unsigned long)key,
		.value = (unsigned long)value,
	};

	return sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}

static inline int map_delete(int fd, const void *key)
{
	union bpf_attr attr = { .map_fd = fd, .key = (unsigned long)key };

	return sys_bpf(BPF_MAP_DELETE_ELEM, &attr);
}

/*
 * Memory that programs and the test see: the value of an array map.  Programs
 * address a slot with AREA(); no bpf(2) call is needed, nor wanted, as those
 * hold off programs while they work on a map.
 */
struct area {
	int fd;
	__u64 *slot;
};

#define AREA_SIZE 8192
#define AREA_SLOTS (AREA_SIZE / 8)
#define AREA(reg, area, n) BPF_LD_MAP_VALUE(reg, (area)->fd, 8 * (n))

/* Are runs of programs timed? */
#define STATS "/proc/sys/kernel/bpf_stats_enabled"

static inline int area_create(struct area *area)
{
	area->fd = map_create(BPF_MAP_TYPE_ARRAY, 4, AREA_SIZE, 1,
			      BPF_F_MMAPABLE);
	if (area->fd < 0)
		return area->fd;
	area->slot = mmap(NULL, AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  area->fd, 0);
	return area->slot == MAP_FAILED ? -errno : 0;
}

static inline __u64 area_get(const struct area *area, unsigned int n)
{
	return __atomic_load_n(&area->slot[n], __ATOMIC_SEQ_CST);
}

static inline void area_set(struct area *area, unsigned int n, __u64 val)
{
	__atomic_store_n(&area->slot[n], val, __ATOMIC_SEQ_CST);
}

/* A program of @type that adds one to a slot and returns @ret */
static inline int count_prog_of(enum bpf_prog_type type, enum bpf_attach_type attach,
				struct area *area, unsigned int slot, int ret)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, ret),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.expected_attach_type = attach;
	return prog_load_attr(&attr);
}

static inline int count_prog_as(struct area *area, unsigned int slot, int ret,
				enum bpf_attach_type attach)
{
	return count_prog_of(BPF_PROG_TYPE_KPROBE, attach, area, slot, ret);
}

static inline int count_prog(struct area *area, unsigned int slot, int ret)
{
	return count_prog_as(area, slot, ret, 0);
}

/* Counts in slot 0 and returns what is in slot 1 */
static inline int verdict_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 8),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* What a program finds in its registers: slot 0 is the register at @off */
static inline int reg_prog(struct area *area, int off)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_2, area, 0),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, off),
		BPF_STX_MEM(BPF_DW, BPF_REG_2, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* Slot 0 is the address of the function that was hit */
static inline int func_ip_prog(struct area *area)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_func_ip),
		AREA(BPF_REG_1, area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* A program that stores 1 in a slot, and goes on for 30 ms */
static inline int long_prog(struct area *area, unsigned int slot)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_1, area, slot),
		BPF_ST_MEM(BPF_DW, BPF_REG_1, 0, 1),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_MOV64_REG(BPF_REG_7, BPF_REG_0),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_7, 30000000),
		BPF_RAW_INSN(BPF_JMP | BPF_JCOND, 0, BPF_MAY_GOTO, 2, 0),
		BPF_EMIT_CALL(BPF_FUNC_ktime_get_ns),
		BPF_JMP_REG(BPF_JLT, BPF_REG_0, BPF_REG_7, -3),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load(insns, ARRAY_SIZE(insns));
}

/* A function that the map helpers and bpf(2) call to update a hash table */
#define UPDATE_FUNC "htab_map_update_elem"

/* A program that adds one to a slot and updates a map with keys of 8 bytes */
static inline int map_update_prog(struct area *area, unsigned int slot, int map,
				  enum bpf_attach_type attach)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_6, area, slot),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_6, BPF_REG_0, 0),
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 5),
		BPF_LD_MAP_FD(BPF_REG_1, map),
		BPF_MOV64_REG(BPF_REG_2, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -8),
		BPF_MOV64_REG(BPF_REG_3, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_map_update_elem),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return prog_load_as(insns, ARRAY_SIZE(insns), attach, 0);
}

/* A program of any type, which does nothing */
static inline int prog_load_type(enum bpf_prog_type type,
				 enum bpf_attach_type attach, __u32 flags)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	attr.prog_type = type;
	attr.expected_attach_type = attach;
	attr.prog_flags = flags;
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

#endif /* BPF_EVENTS_PROG_H */
