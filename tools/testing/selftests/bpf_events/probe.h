/* SPDX-License-Identifier: GPL-2.0 */
/* Functions to probe, events on them, and perf events of those */
#ifndef BPF_EVENTS_PROBE_H
#define BPF_EVENTS_PROBE_H

#include <asm/ptrace.h>
#include <sys/ioctl.h>

#include "prog.h"

/* Every event of ours is in this group */
#define GROUP "bpf_events_test"

/*
 * The functions to probe: there in every configuration, called by nobody else,
 * without side effects, and the argument decides what they return.
 */
#if defined(__x86_64__)
#define SYS_FUNC(name) "__x64_sys_" name
#define REGS_ARG offsetof(struct pt_regs, rdi)
#define REGS_RET offsetof(struct pt_regs, rax)
#define REGS_SIZE sizeof(struct pt_regs)
#elif defined(__aarch64__)
#define SYS_FUNC(name) "__arm64_sys_" name
#define REGS_ARG offsetof(struct user_pt_regs, regs[0])
#define REGS_RET offsetof(struct user_pt_regs, regs[0])
#define REGS_SIZE 4096	/* the kernel's is private and smaller */
#else
#error "Add the register names of this architecture"
#endif

#define FUNC SYS_FUNC("sched_get_priority_max")
#define FUNC2 SYS_FUNC("sched_get_priority_min")
/* One whose first instructions leave room for a jump */
#define BODY_FUNC SYS_FUNC("sched_rr_get_interval")

static inline long hit_arg(int policy)
{
	return syscall(__NR_sched_get_priority_max, policy);
}

static inline void hit(void)
{
	hit_arg(SCHED_FIFO);
}

static inline void hits(unsigned int n)
{
	while (n--)
		hit();
}

static inline void hit_body(void)
{
	struct timespec ts;

	syscall(__NR_sched_rr_get_interval, 0, &ts);
}

/* Hits the tracepoint task_rename */
static inline void hit_rename(void)
{
	prctl(PR_SET_NAME, "bpf_events_test");
}

enum probe_flags {
	PROBE_RETURN = 1,
	PROBE_PMU = 2,
	PROBE_DISABLED = 4,
	PROBE_USER = 8,		/* see uprobe.h */
};

struct probe {
	unsigned int flags;
	char func[64];		/* or the file of a uprobe */
	unsigned long offset;
	unsigned long ref_ctr;	/* of a uprobe: where its counter is, or 0 */
	char event[64];		/* its name in GROUP, if it is in tracefs */
};

static inline int event_add(const char *event, const char *fmt, ...)
{
	char where[128], *colon;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(where, sizeof(where), fmt, ap);
	va_end(ap);
	/* "p func" or "r8 func" */
	colon = strchr(where, ' ');
	*colon = '\0';
	return write_file(TRACEFS "/kprobe_events", O_APPEND, "%s:" GROUP "/%s %s\n",
			  where, event, colon + 1);
}

static inline int event_remove(const char *event)
{
	return write_file(TRACEFS "/kprobe_events", O_APPEND, "-:" GROUP "/%s\n",
			  event);
}

/* What kprobe_profile says of it */
static inline bool event_profile(const char *event, unsigned long *hits, unsigned long *missed)
{
	char line[256], name[64];

	snprintf(name, sizeof(name), "  %s ", event);
	return find_line(TRACEFS "/kprobe_profile", name, line, sizeof(line)) &&
	       sscanf(line, "%*s %lu %lu", hits, missed) == 2;
}

static inline int event_id(const char *event, __u64 *id)
{
	char path[256];

	snprintf(path, sizeof(path), TRACEFS "/events/" GROUP "/%s/id", event);
	return read_u64(path, id) ? 0 : -ENOENT;
}

static inline int probe_create_at(struct probe *p, const char *event,
				  const char *func, unsigned long offset,
				  unsigned int flags)
{
	memset(p, 0, sizeof(*p));
	p->flags = flags;
	p->offset = offset;
	snprintf(p->func, sizeof(p->func), "%s", func);
	snprintf(p->event, sizeof(p->event), "%s", event);
	if (flags & PROBE_PMU)
		return 0;
	return event_add(event, "%c %s+%lu", flags & PROBE_RETURN ? 'r' : 'p',
			 func, offset);
}

static inline int probe_create(struct probe *p, unsigned int flags)
{
	return probe_create_at(p, "event", FUNC, 0, flags);
}

/* A perf event of the probe that records each hit */
static inline int probe_attr(const struct probe *p,
			     struct perf_event_attr *attr)
{
	const char *pmu = p->flags & PROBE_USER ?
				  "/sys/bus/event_source/devices/uprobe/type" :
				  "/sys/bus/event_source/devices/kprobe/type";
	__u64 type;

	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sample_type = PERF_SAMPLE_RAW;
	attr->sample_period = 1;
	attr->wakeup_events = 1;
	attr->disabled = !!(p->flags & PROBE_DISABLED);
	if (!(p->flags & PROBE_PMU)) {
		attr->type = PERF_TYPE_TRACEPOINT;
		return event_id(p->event, (__u64 *)&attr->config);
	}
	if (!read_u64(pmu, &type))
		return -ENODEV;
	attr->type = type;
	/* format/retprobe and format/ref_ctr_offset */
	attr->config = (__u64)p->ref_ctr << 32;
	if (p->flags & PROBE_RETURN)
		attr->config |= 1;
	attr->kprobe_func = (unsigned long)p->func;
	attr->probe_offset = p->offset;
	return 0;
}

/* The perf event of one task; with -1, of all on CPU 0 */
static inline int probe_open_for(const struct probe *p, pid_t pid)
{
	struct perf_event_attr attr;
	int err = probe_attr(p, &attr);

	return err ?: perf_open(&attr, pid, pid == -1 ? 0 : -1);
}

static inline int probe_open(const struct probe *p)
{
	return probe_open_for(p, -1);
}

/* What a perf event without a read format has counted */
static inline __u64 event_count(int perf)
{
	__u64 count;

	return read(perf, &count, sizeof(count)) == sizeof(count) ? count : ~0ULL;
}

static inline int perf_set_bpf(int perf, int prog)
{
	return neg_errno(ioctl(perf, PERF_EVENT_IOC_SET_BPF, prog));
}

/* Opens another perf event of the probe, about one task, and gives it the program */
static inline int attach_task(const struct probe *p, pid_t pid, int prog)
{
	int err, fd = probe_open_for(p, pid);

	if (fd < 0)
		return fd;
	err = perf_set_bpf(fd, prog);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static inline int attach(const struct probe *p, int prog)
{
	return attach_task(p, -1, prog);
}

/*
 * Creates an event in the body of a function, past what ftrace patches.  The
 * probe is a breakpoint there, or a jump where kprobes are optimized.
 */
static inline int probe_create_body(struct probe *p, const char *event,
				    const char *func, unsigned int flags)
{
	unsigned long offset;
	int err = -EILSEQ;

	/* The kernel takes instruction boundaries only */
	for (offset = 9; offset < 32 && err; offset++)
		err = probe_create_at(p, event, func, offset, flags);
	return err;
}

static inline int site_create(struct probe *p, const char *event, const char *func,
			      bool body, unsigned int flags)
{
	if (body)
		return probe_create_body(p, event, func, flags);
	return probe_create_at(p, event, func, 0, flags);
}

#define OPTIMIZE "/proc/sys/debug/kprobes-optimization"

/* What OPTIMIZE was; restored only if saved */
struct optimize {
	bool saved;
	__u64 was;
};

/* False: a preemptible kernel has no such thing as a jump. */
static inline bool optimize_save(struct optimize *optimize)
{
	optimize->saved = read_u64(OPTIMIZE, &optimize->was);
	return optimize->saved;
}

static inline void optimize_restore(const struct optimize *optimize)
{
	if (optimize->saved)
		write_file(OPTIMIZE, 0, "%llu", optimize->was);
}

/* The byte at @addr in the kernel, or an error */
static inline int kernel_byte(unsigned long addr)
{
	const struct bpf_insn insns[] = {
		BPF_ST_MEM(BPF_DW, BPF_REG_10, -8, 0),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_10),
		BPF_ALU64_IMM(BPF_ADD, BPF_REG_1, -8),
		BPF_MOV64_IMM(BPF_REG_2, 1),
		BPF_LD_IMM64(BPF_REG_3, addr),
		BPF_EMIT_CALL(BPF_FUNC_probe_read_kernel),
		BPF_LDX_MEM(BPF_B, BPF_REG_0, BPF_REG_10, -8),
		BPF_EXIT_INSN(),
	};
	int err, prog = prog_load_of(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, ARRAY_SIZE(insns));
	union bpf_attr attr = { .test.prog_fd = prog };

	if (prog < 0)
		return prog;
	err = sys_bpf(BPF_PROG_TEST_RUN, &attr);
	close(prog);
	return err ?: (int)attr.test.retval;
}

static inline bool is_jump(unsigned long addr)
{
#ifdef __x86_64__
	return kernel_byte(addr) == 0xe9;
#else
	return true;
#endif
}

/*
 * Waits until the probe in the body of @func is a jump. False is no error: kernels can be
 * without jumps. The list says that a probe is one when it is to become one: the optimizer
 * waits until it has more to do, and until all tasks have slept.
 */
static inline bool wait_optimized(const char *func)
{
	char line[256];
	int i;

	for (i = 0; i < 100 && !access(OPTIMIZE, F_OK); i++) {
		if (find_line(DEBUGFS "/kprobes/list", func, line, sizeof(line)) &&
		    strstr(line, "[OPTIMIZED]"))
			return wait_until(is_jump(strtoul(line, NULL, 16)));
		sleep_ms(10);
	}
	return false;
}

struct query {
	__u32 ids_len;
	__u32 prog_cnt;
	__u32 ids[72];
};

static inline int query(int perf, struct query *q, __u32 ids_len)
{
	memset(q, 0x55, sizeof(*q));
	q->ids_len = ids_len;
	return neg_errno(ioctl(perf, PERF_EVENT_IOC_QUERY_BPF, q));
}

/* What the kernel knows of a descriptor of a process */
static inline int fd_query(pid_t pid, int fd, char *buf, __u32 size,
			   union bpf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->task_fd_query.pid = pid;
	attr->task_fd_query.fd = fd;
	attr->task_fd_query.buf = (unsigned long)buf;
	attr->task_fd_query.buf_len = size;
	return sys_bpf(BPF_TASK_FD_QUERY, attr);
}

static inline __u32 query_count(int perf)
{
	struct query q;

	return query(perf, &q, 0) ? ~0U : q.prog_cnt;
}

/*
 * Keeps a probe on FUNC.  What comes and goes meanwhile joins it, and the
 * kernel does not patch code: QEMU without KVM, if other CPUs run that code,
 * at times goes on with a breakpoint that is gone, which ends in a jump to
 * NULL; and a kernel that is out of memory warns when it cannot.  Neither is
 * the matter of these tests.
 */
static inline int hold_function(void)
{
	struct probe holder;
	int err = probe_create_at(&holder, "holder", FUNC, 0, 0);

	return err ?: probe_open(&holder);
}

/* Whether three hits of FUNC run the program, or none does */
static inline bool runs(struct area *area)
{
	__u64 before = area_get(area, 0);

	hits(3);
	return area_get(area, 0) == before + 3;
}

static inline bool stands_still(struct area *area)
{
	__u64 before = area_get(area, 0);

	hits(3);
	return area_get(area, 0) == before;
}

/* Where the program goes a while later, as when its pinned file is removed */
static inline bool comes_to_a_halt(struct area *area)
{
	return wait_until(stands_still(area));
}

struct fdinfo {
	unsigned int id;
	unsigned long long hits;
	unsigned long long missed;
};

/* What /proc/self/fdinfo says of a perf event with a program */
static inline int read_fdinfo(int fd, struct fdinfo *info)
{
	char path[64], text[1024], *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (read_file(path, text, sizeof(text)) < 0)
		return -errno;
	at = strstr(text, "\nbpf_prog_id:");
	if (!at)
		return -ENOENT;
	if (sscanf(at, "\nbpf_prog_id:\t%u\nbpf_prog_hits:\t%llu\nbpf_prog_missed:\t%llu",
		   &info->id, &info->hits, &info->missed) != 3)
		return -EBADMSG;
	return 0;
}

static inline __u64 misses(int prog)
{
	struct bpf_prog_info info;

	return prog_info(prog, &info) ? ~0ULL : info.recursion_misses;
}

/* What most tests have: a probe, memory, and a perf event of the probe */
struct rig {
	struct probe probe;
	struct area area;
	int fd;
};

static inline int rig_create(struct rig *rig, unsigned int flags)
{
	int err = area_create(&rig->area);

	rig->fd = -1;
	return err ?: probe_create(&rig->probe, flags);
}

/* Attaches a program in place of the one before, and drops @prog */
static inline int rig_attach(struct rig *rig, int prog)
{
	if (prog < 0)
		return prog;
	if (rig->fd >= 0)
		close(rig->fd);
	rig->fd = attach(&rig->probe, prog);
	close(prog);
	return rig->fd;
}

#endif /* BPF_EVENTS_PROBE_H */
