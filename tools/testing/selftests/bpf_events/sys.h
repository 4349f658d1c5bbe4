/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lowest layer: system calls, processes and files.  It knows neither of
 * tests nor of programs and probes, so any program may include it.
 *
 * Functions of all layers return a descriptor or 0, or -errno.
 */
#ifndef BPF_EVENTS_SYS_H
#define BPF_EVENTS_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(arr) (sizeof(arr) / sizeof((arr)[0]))
#endif

#define TRACEFS "/sys/kernel/tracing"
#define DEBUGFS "/sys/kernel/debug"

/* An errno that only the kernel has a name for */
#define NOT_SUPPORTED 524

static inline int neg_errno(long ret)
{
	return ret < 0 ? -errno : ret;
}

static inline int sys_bpf(int cmd, union bpf_attr *attr)
{
	return neg_errno(syscall(__NR_bpf, cmd, attr, sizeof(*attr)));
}

static inline int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return neg_errno(syscall(__NR_perf_event_open, attr, pid, cpu, -1,
				 PERF_FLAG_FD_CLOEXEC));
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

/*
 * How long to wait for what must come: longer than it takes, and less than a test
 * may take.  BPF_EVENTS_PATIENCE says how many times as long where all is slow.
 */
static inline unsigned int patience(void)
{
	const char *env = getenv("BPF_EVENTS_PATIENCE");
	int times = env ? atoi(env) : 1;

	return times > 0 ? times : 1;
}

#define PATIENCE_NS (60000000000ULL * patience())

/* Looks whether @cond, with @pause between, until patience is at an end; is it? */
#define within_patience(cond, pause) ({			\
	__u64 end_ = now_ns() + PATIENCE_NS;		\
	bool is_;					\
							\
	while (!(is_ = (cond)) && now_ns() <= end_)	\
		pause;					\
	is_;						\
})

#define say_slow()							\
	fprintf(stderr, "# slow: %s:%d: waited %llu s in vain\n",	\
		__FILE__, __LINE__, PATIENCE_NS / 1000000000)

/* The same; the log says that it was time that decided, and not a value */
#define wait_between(cond, pause) ({						\
	bool came_ = within_patience(cond, pause);				\
										\
	if (!came_)								\
		say_slow();							\
	came_;									\
})

/* For what others do, or what comes while this thread runs */
#define wait_until(cond) wait_between(cond, sleep_ms(1))
#define spin_until(cond) wait_between(cond, (void)0)
/* For what goes away soon: it is a leak if not, however slow the host */
#define wait_gone(cond) within_patience(cond, sleep_ms(1))

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

/* @n of something, on a slow kernel fewer: what that is for shows with the first one */
static inline int some(int n)
{
	return kernel_is_slow() ? (n + 3) / 4 : n;
}

/*
 * How often to do what goes wrong once in a while: BPF_EVENTS_ROUNDS times as often as
 * it would be without
 */
static inline int rounds(int n)
{
	const char *env = getenv("BPF_EVENTS_ROUNDS");
	int times = env ? atoi(env) : 1;

	return some(n) * (times > 0 ? times : 1);
}

/* Processes */

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

/* What wait() says of a child: its exit code, or minus the signal that ended it */
static inline int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline int child_status(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid ? exit_code(status) : -errno;
}

/* The same; -ETIME if it has not exited in all the time that there is */
static inline int status_in_time(pid_t pid)
{
	int status;

	return wait_until(waitpid(pid, &status, WNOHANG) == pid) ? exit_code(status) : -ETIME;
}

static inline int kill_in_time(pid_t pid)
{
	return neg_errno(kill(pid, SIGKILL)) ?: status_in_time(pid);
}

/*
 * A child that has our descriptors too: it waits for a byte, or for the end of the pipe,
 * then it calls @then, if there is that, and exits
 */
static inline pid_t holder_of(int *pipe_fd, void (*then)(void *arg), void *arg)
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
		if (read(fds[0], &c, 1) < 0)
			_exit(1);
		if (then)
			then(arg);
		_exit(0);
	}
	close(fds[0]);
	*pipe_fd = fds[1];
	return child;
}

static inline pid_t holder(int *pipe_fd)
{
	return holder_of(pipe_fd, NULL, NULL);
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
	if (len >= (int)sizeof(text))
		return -E2BIG;
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

/* The state of a process, or of a thread of any, as ps shows it; 0 if it is gone */
static inline char task_state(pid_t tid)
{
	char path[32], text[128], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	/* "123 (name) S ...", whatever the name is */
	state = strrchr(text, ')');
	return state && state[1] ? state[2] : 0;
}

/* Does it wait in a system call, for something that a signal ends? */
static inline bool sleeps(pid_t tid)
{
	return task_state(tid) == 'S';
}

/* Does it wait in the kernel all this time, for something that no signal but SIGKILL ends? */
static inline bool blocks(pid_t tid, int ms)
{
	for (; ms > 0; ms -= 20) {
		if (task_state(tid) != 'D')
			return false;
		sleep_ms(20);
	}
	return true;
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

#endif /* BPF_EVENTS_SYS_H */
