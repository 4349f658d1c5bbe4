# shellcheck shell=bash disable=SC2154,SC2016 # the variables and functions are those of "guest"; $ is the other shell's
# hello COMMAND...: hello_world says hello to whoever forks
hello() {
	start "$@" "${strace[@]}" python3 /usr/share/doc/bpfcc-tools/examples/hello_world.py
	until_sees 'bpf_trace_printk: Hello, World!' /bin/true
	stop
}
# write77: a write of 77 bytes
write77() { printf %077d 0 >/dev/null; }
nap() { sleep 0.01; }

hello_world() { # hello_world over the kprobe PMU, the system calls in order
	hello
	calls 'bpf\(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_KPROBE, .* = (\d+)' \
		"perf_event_open\({type=$(printf %#x "$(</sys/bus/event_source/devices/kprobe/type)") .*, -1, 0, -1, PERF_FLAG_FD_CLOEXEC\) = (\d+)" \
		'ioctl\(\2, PERF_EVENT_IOC_SET_BPF, \1\) += 0' 'ioctl\(\2, PERF_EVENT_IOC_ENABLE, 0\) += 0' \
		'ioctl\(\2, PERF_EVENT_IOC_DISABLE, 0\) += 0'
}
hello_world_tracefs() { # hello_world over kprobe_events, the system calls in order
	hello without_pmu
	calls 'bpf\(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_KPROBE, .* = (\d+)' \
		'.*/kprobe_events", O_WRONLY|O_APPEND\) = (\d+)' 'write\(\2, "p:kprobes/(\S+) __x64_sys_clone", ' \
		'perf_event_open\({type=PERF_TYPE_TRACEPOINT, .*, -1, 0, -1, PERF_FLAG_FD_CLOEXEC\) = (\d+)' \
		'ioctl\(\4, PERF_EVENT_IOC_SET_BPF, \1\) += 0' 'ioctl\(\4, PERF_EVENT_IOC_ENABLE, 0\) += 0' \
		'ioctl\(\4, PERF_EVENT_IOC_DISABLE, 0\) += 0' 'write\(\d+, "-:kprobes/\3", '
}
funccount() { # funccount: a wildcard, and how often it was hit
	start funccount-bpfcc 'vfs_rea*'
	until_sees '^Tracing 3 functions'
	cat /proc/version
	stop
	sees '^b?.?vfs_read.? +[1-9]'
}
funccount_pid() { # funccount -p: a uprobe for one process
	mkfifo /tmp/go
	(
		read -r _ </tmp/go
		for _ in 1 2 3; do kill -0 $$; done
		exec sleep 100
	) &
	start funccount-bpfcc -p $! /bin/bash:kill_builtin
	until_sees '^Tracing 1 functions'
	kill -0 $$
	echo >/tmp/go
	sleep 1
	stop
	sees 'kill_builtin.? +3$'
}
funclatency() { # funclatency: a histogram of nanoseconds
	start funclatency-bpfcc do_nanosleep
	until_sees '^Tracing 1 functions'
	nap
	stop
	sees '^ +nsecs +: count +distribution' ' : [1-9][0-9]* +\|\*+' '^avg = [1-9][0-9]* nsecs'
}
argdist() { # argdist: the values of an argument
	start argdist-bpfcc -i 1 -C 'p::vfs_write(struct file *file, const char *buf, size_t count):size_t:count'
	until_sees '^\s+[1-9][0-9]*\s+count = 77$' write77
}
trace() { # trace: arguments of a kprobe, what a kretprobe returned
	start trace-bpfcc 'p::vfs_write(struct file *file, const char *buf, size_t count) (count == 77) "writes %d", count' \
		'r::vfs_write (retval == 77) "wrote %d", retval'
	until_sees ' vfs_write +wrote 77$' write77
	sees '^[0-9]+ +[0-9]+ +\S+ +vfs_write +writes 77$'
}
stackcount() { # stackcount: the stack, by name
	start stackcount-bpfcc -K do_nanosleep
	until_sees '^Tracing 1 functions'
	nap
	stop
	sees '^ .*do_nanosleep' '^ .*hrtimer_nanosleep' '^ .*do_syscall_64' '^    [1-9]'
}
vfscount() { # vfscount: calls by function
	start vfscount-bpfcc
	until_sees '^Tracing'
	cat /proc/version
	stop
	sees "'vfs_read' +[1-9]" "'vfs_open' +[1-9]"
}
killsnoop() { # killsnoop: who sends which signal to whom
	start killsnoop-bpfcc
	until_sees " +bash +0 +$$ +0$" kill -0 $$
}
execsnoop() { # execsnoop: programs with arguments and result
	start execsnoop-bpfcc
	until_sees '^true +[0-9]+ +[0-9]+ +0 /bin/true once more$' /bin/true once more
}
# readline drops what was typed before it was ready
type_here() {
	(for _ in 1 2 3; do sleep 1; echo echo typed here; done; echo exit) |
		timeout -k 1 20 script -qc 'bash --norc -i' /dev/null || true
}
bashreadline() { # bashreadline: a line that was typed
	start bashreadline-bpfcc
	until_sees ' echo typed here$' type_here
}
gethostlatency() { # gethostlatency: a look-up and how long it took
	start gethostlatency-bpfcc
	until_sees ' getent +[0-9.]+ localhost$' getent ahosts localhost
}
