/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of BPF programs on kprobe events share: files, bpf(2) (in
 * prog.h), events (in probe.h), and the check that nothing is left of them.
 *
 * Functions return a descriptor or 0, or -errno.
 */
#ifndef BPF_EVENTS_COMMON_H
#define BPF_EVENTS_COMMON_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"

#define TRACEFS "/sys/kernel/tracing"
#define DEBUGFS "/sys/kernel/debug"

/* An errno that only the kernel has a name for */
#define NOT_SUPPORTED 524

static inline int neg_errno(long ret)
{
	return ret < 0 ? -errno : ret;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static inline __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static inline int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return neg_errno(sched_setaffinity(0, sizeof(set), &set));
}

/* A kernel that looks for leaks, and with KASAN, as a rule */
static inline bool kernel_is_slow(void)
{
	return !access(DEBUGFS "/kmemleak", F_OK);
}

/*
 * How often to do what goes wrong once in a while: @n times, on a slow kernel
 * fewer.  What that is for shows at the first time.
 */
static inline int rounds(int n)
{
	return kernel_is_slow() ? (n + 3) / 4 : n;
}

/* Files */

static inline int write_file(const char *path, int flags, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int fd, len, err;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	err = neg_errno(write(fd, text, len));
	close(fd);
	return err < 0 ? err : 0;
}

static inline int read_file(const char *path, char *buf, size_t size)
{
	ssize_t n, len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n <= 0)
			break;
		len += n;
	}
	buf[len] = '\0';
	close(fd);
	return len;
}

static inline bool read_u64(const char *path, __u64 *val)
{
	char buf[32];

	if (read_file(path, buf, sizeof(buf)) <= 0)
		return false;
	*val = strtoull(buf, NULL, 0);
	return true;
}

/* Finds the first line with @needle, and says whether there is one */
static inline bool find_line(const char *path, const char *needle, char *line,
			     size_t size)
{
	FILE *file = fopen(path, "re");
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, size, file))
		found = strstr(line, needle);
	fclose(file);
	return found;
}

/* All of a file, for the caller to free, and its size; NULL if that fails */
static inline char *read_all(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL, *more;
	ssize_t n = 1;

	for (*size = 0; fd >= 0 && n > 0; *size += n) {
		more = realloc(text, *size + 65536);
		if (!more)
			break;
		text = more;
		n = read(fd, text + *size, 65535);
		if (n < 0)
			break;
		text[*size + n] = '\0';
	}
	close(fd);
	if (n) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 * A long file that stays as it is.  Each test is a process: the first one that
 * needs the file reads it for all of them.
 */
#define KEPT_SIZE (32UL << 20)

struct kept {
	size_t size;	/* of the text, 0: it is not there */
	char text[KEPT_SIZE - sizeof(size_t)];
};

static inline struct kept *kept_create(void)
{
	return mmap(NULL, KEPT_SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Its text, without the first line that has @end and what follows; or NULL */
static inline char *kept_read(struct kept *kept, const char *path, const char *end)
{
	char *text, *at;
	size_t size;

	if (kept == MAP_FAILED)
		return NULL;
	if (__atomic_load_n(&kept->size, __ATOMIC_ACQUIRE))
		return kept->text;
	text = read_all(path, &size);
	if (!text || size >= sizeof(kept->text)) {
		free(text);
		return NULL;
	}
	at = end ? strstr(text, end) : NULL;
	while (at && at > text && at[-1] != '\n')
		at--;
	if (at)
		*at = '\0';
	memcpy(kept->text, text, size + 1);
	free(text);
	__atomic_store_n(&kept->size, size, __ATOMIC_RELEASE);
	return kept->text;
}

static struct kept *kallsyms;

__attribute__((constructor)) static void kallsyms_create(void)
{
	kallsyms = kept_create();
}

/* The addresses of @n symbols in a text, 0 where there is none; says how many it has */
static inline size_t ksyms_in(const char *text, const char * const *names, __u64 *addrs,
			      size_t n)
{
	size_t len, i, found = 0;
	const char *at;

	for (i = 0; i < n; i++) {
		addrs[i] = 0;
		len = strlen(names[i]);
		/* "ffffffff81000000 T name\t[module]" */
		at = text ? strstr(text, names[i]) : NULL;
		while (at && (at == text || at[-1] != ' ' || !strchr("\t\n", at[len])))
			at = strstr(at + 1, names[i]);
		if (!at)
			continue;
		while (at > text && at[-1] != '\n')
			at--;
		addrs[i] = strtoull(at, NULL, 16);
		found += !!addrs[i];
	}
	return found;
}

/* Modules come and go: the kernel's own symbols are kept, others read anew */
static inline void ksyms(const char * const *names, __u64 *addrs, size_t n)
{
	char *text = kept_read(kallsyms, "/proc/kallsyms", "\t[");
	size_t size;

	if (ksyms_in(text, names, addrs, n) == n)
		return;
	text = read_all("/proc/kallsyms", &size);
	ksyms_in(text, names, addrs, n);
	free(text);
}

static inline __u64 ksym(const char *name)
{
	__u64 addr;

	ksyms(&name, &addr, 1);
	return addr;
}

#include "prog.h"
#include "probe.h"

static inline int drop_caps(__u64 keep)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = keep, .permitted = keep },
		{ .effective = keep >> 32, .permitted = keep >> 32 },
	};

	return neg_errno(syscall(__NR_capset, &head, data));
}

#define CAP(name) (1ULL << CAP_##name)

/* The exit code of a forked child */
static inline int child_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* A child that has our descriptors too: it waits for a byte, or for SIGKILL */
static inline pid_t holder(int *pipe_fd)
{
	int fds[2];
	pid_t child;
	char c;

	if (pipe(fds))
		return -errno;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		_exit(read(fds[0], &c, 1) < 0);
	}
	close(fds[0]);
	*pipe_fd = fds[1];
	return child;
}

/* What is left */

static inline bool bpf_left(int next_cmd, int open_cmd, char *text, size_t size)
{
	bool map = next_cmd == BPF_MAP_GET_NEXT_ID;
	struct bpf_prog_info prog;
	struct bpf_map_info info;
	union bpf_attr attr;
	const char *name;
	__u32 id = 0;
	int fd, err;

	for (;;) {
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
		if (sys_bpf(next_cmd, &attr))
			return false;
		id = attr.next_id;

		memset(&attr, 0, sizeof(attr));
		attr.map_id = id;
		fd = sys_bpf(open_cmd, &attr);
		if (fd < 0)
			continue;
		memset(&attr, 0, sizeof(attr));
		memset(&prog, 0, sizeof(prog));
		memset(&info, 0, sizeof(info));
		attr.info.bpf_fd = fd;
		attr.info.info_len = map ? sizeof(info) : sizeof(prog);
		attr.info.info = map ? (unsigned long)&info :
				       (unsigned long)&prog;
		err = sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
		close(fd);
		name = map ? info.name : prog.name;
		if (!err && !strcmp(name, BPF_NAME)) {
			snprintf(text, size, "%s %u", map ? "map" : "program", id);
			return true;
		}
	}
}

/* Removes our events, of kernel and user space; one in use is left */
static inline bool event_left(char *text, size_t size)
{
	char line[256], *name;

	while (find_line(TRACEFS "/dynamic_events", ":" GROUP "/", line,
			 sizeof(line))) {
		name = strchr(line, '/') + 1;
		name[strcspn(name, "\n ")] = '\0';
		if (write_file(TRACEFS "/dynamic_events", O_APPEND,
			       "-:" GROUP "/%s\n", name)) {
			snprintf(text, size, "event %s, in use", name);
			return true;
		}
	}
	return false;
}

static inline bool kprobe_left(char *text, size_t size)
{
	char line[256];

	if (!find_line(DEBUGFS "/kprobes/list", SYS_FUNC("sched_"), line,
		       sizeof(line)))
		return false;
	line[strcspn(line, "\n")] = '\0';
	snprintf(text, size, "kprobe %s", line);
	return true;
}

static inline bool ftrace_left(char *text, size_t size)
{
	char line[256];

	if (!find_line(TRACEFS "/enabled_functions", SYS_FUNC("sched_"), line,
		       sizeof(line)))
		return false;
	snprintf(text, size, "ftrace %s", line);
	return true;
}

/*
 * For teardowns, which run when the processes of the test have exited: says
 * what they left, or "nothing".  Programs and maps are freed a while after
 * their last use, hence the wait.
 */
static inline const char *leftovers(void)
{
	static char text[320];
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		if (!event_left(text, sizeof(text)) &&
		    !kprobe_left(text, sizeof(text)) &&
		    !ftrace_left(text, sizeof(text)) &&
		    !bpf_left(BPF_PROG_GET_NEXT_ID, BPF_PROG_GET_FD_BY_ID, text,
			      sizeof(text)) &&
		    !bpf_left(BPF_MAP_GET_NEXT_ID, BPF_MAP_GET_FD_BY_ID, text,
			      sizeof(text)))
			return "nothing";
		sleep_ms(10);
	}
	return text;
}

/*
 * For the start of each fixture: mounts what is needed, removes the events of
 * a test that died, and says which option the kernel lacks, or NULL.
 */
static inline const char *prepare(void)
{
	char text[320];
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	union bpf_attr attr;
	int fd;

	if (access(TRACEFS "/kprobe_events", F_OK))
		mount("tracefs", TRACEFS, "tracefs", 0, NULL);
	if (access(DEBUGFS "/tracing", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	if (access(TRACEFS "/kprobe_events", F_OK))
		return "CONFIG_KPROBE_EVENTS";
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		return "CONFIG_BPF_SYSCALL";
	event_left(text, sizeof(text));

	prog_attr(&attr, insns, ARRAY_SIZE(insns));
	fd = sys_bpf(BPF_PROG_LOAD, &attr);
	if (fd == -EINVAL)
		return "CONFIG_BPF_EVENTS";
	if (fd >= 0)
		close(fd);
	return NULL;
}

#endif /* BPF_EVENTS_COMMON_H */
