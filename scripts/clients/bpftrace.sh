# shellcheck shell=bash disable=SC2154,SC2016 # $ in a program is bpftrace's; the functions are those of "guest"
# bt PROGRAM COMMAND: the program watches while the command runs, and prints its maps at the end.
bt() { bpftrace --unsafe -e "$1" -c "$2" >"$out" 2>&1; }
# bt_work PROGRAM SCRIPT: the same with a shell script; bpftrace itself runs nothing but a binary.
bt_work() {
	echo "$2" >/tmp/work
	bt "$1" '/bin/bash /tmp/work'
}

info() { # --info: probes and helpers that it found
	bpftrace --info >"$out" 2>&1
	sees '^  kprobe: yes' '^  kprobe_multi: yes' '^  override_return: yes' '^  send_signal: yes' '^  get_boot_ns: yes' \
		'^  probe_read_kernel_str: yes' '^  get_current_cgroup_id: yes' '^  stack_trace: yes'
}
kprobe() { # kprobe
	bt 'kprobe:do_nanosleep /pid == cpid/ { printf("%s sleeps\n", comm); }' 'sleep 0.1'
	sees '^sleep sleeps$'
}
kretprobe() { # kretprobe: what was returned
	bt_work 'kretprobe:vfs_write /pid == cpid/ { printf("%d bytes\n", retval); }' \
		'printf %077d 0 >/dev/null'
	sees '^77 bytes$'
}
offset() { # kprobe+offset
	bt_work 'kprobe:vfs_write+5 /pid == cpid/ { @ = count(); }' \
		'printf %077d 0 >/dev/null'
	sees '^@: 1$'
}
middle() { # kprobe+offset in the middle of an instruction is refused
	fails bt 'kprobe:vfs_write+1 { @ = count(); }' true
	sees 'middle of an instruction'
}
missing() { # kprobe on a function that does not exist is refused
	fails bt 'kprobe:no_such_function { @ = count(); }' true
	sees 'kprobe:no_such_function'
}
wildcard() { # wildcard: one link for all functions
	bt_work 'kprobe:vfs_rea* { @[func] = count(); }' \
		'"$DIR/bpftool" link show; cat /proc/version'
	sees "func_cnt $(bpftrace -l 'kprobe:vfs_rea*' | wc -l) " '^@\[vfs_read\]: [1-9]'
}
hist() { # hist(): a row for the size written
	bt_work 'kprobe:vfs_write /pid == cpid/ { @ = hist(arg2); }' \
		'printf %077d 0 >/dev/null; printf %078d 0 >/dev/null'
	sees '^\[64, 128\) +2 \|@+\|$'
}
kstack() { # kstack
	bt_work 'kprobe:vfs_write /pid == cpid/ { @[kstack] = count(); }' \
		'printf %077d 0 >/dev/null'
	sees '^ +vfs_write\+' '^ +ksys_write\+' '^ +do_syscall_64\+' '^\]: 1$'
}
ustack() { # ustack
	bt_work 'uprobe:/bin/bash:kill_builtin { printf("%s\n", ustack); }' \
		'kill -0 $$; sleep 1'
	sees '^ +kill_builtin\+0$'
}
uprobe() { # uprobe
	bt_work 'uprobe:/bin/bash:kill_builtin /pid == cpid/ { @[comm] = count(); }' \
		'kill -0 $$; kill -0 $$'
	sees '^@\[bash\]: 2$'
}
uretprobe() { # uretprobe: what was returned
	bt_work 'uretprobe:/bin/bash:kill_builtin /pid == cpid/ { @[retval] = count(); }' \
		'kill -0 $$; kill -0 99999999 2>/dev/null'
	sees '^@\[0\]: 1$' '^@\[1\]: 1$'
}
pid() { # pid filter, and two programs on one function
	bt_work 'uprobe:/bin/bash:kill_builtin /pid == cpid/ { @one = count(); } uprobe:/bin/bash:kill_builtin { @all = count(); }' \
		'kill -0 $$; kill -0 $$; bash -c "kill -0 1"'
	sees '^@one: 2$' '^@all: 3$'
}
override() { # override(): a system call fails as told
	bt 'kprobe:__x64_sys_mkdir /comm == "mkdir"/ { override(-28); }' 'mkdir /tmp/overridden' || true
	sees 'No space left on device'
	[[ ! -e /tmp/overridden ]]
}
tracefs() { # over kprobe_events and uprobe_events, the system calls in order, nothing left
	echo 'kill -0 $$; sleep 0.1' >/tmp/work
	without_pmu "${strace[@]}" bpftrace -c '/bin/bash /tmp/work' >"$out" 2>&1 \
		-e 'kprobe:do_nanosleep /comm == "sleep"/ { @k = count(); } uretprobe:/bin/bash:kill_builtin { @u = count(); }'
	sees '^@k: 1$' '^@u: 1$'
	calls '.*KPROBE, .* = \d+' '.*/uprobe_events", O_WRONLY|O_APPEND\) = (\d+)' 'write\(\1, "r:uprobes/(\S+) ' \
		'.*/events/uprobes/\2/id", O_RDONLY\) ' 'perf_event_open\({type=PERF_TYPE_TRACEPOINT, .*, -1, 0, -1, .* = (\d+)' \
		'ioctl\(\3, PERF_EVENT_IOC_SET_BPF, \d+\) += 0' 'ioctl\(\3, PERF_EVENT_IOC_ENABLE, 0\) += 0' \
		'.*KPROBE, .* = (\d+)' '.*/kprobe_events", O_WRONLY|O_APPEND\) = (\d+)' 'write\(\5, "p:kprobes/(\S+) do_nanosleep' \
		'.*/events/kprobes/\6/id", O_RDONLY\) ' 'perf_event_open\({type=PERF_TYPE_TRACEPOINT, .*, -1, 0, -1, .* = (\d+)' \
		'ioctl\(\7, PERF_EVENT_IOC_SET_BPF, \4\) += 0' 'ioctl\(\7, PERF_EVENT_IOC_ENABLE, 0\) += 0' \
		'write\(\d+, "-:uprobes/\2", \d+\) = \d' 'write\(\d+, "-:kprobes/\6", \d+\) = \d'
	[[ -z $(cat /sys/kernel/tracing/[ku]probe_events) ]]
}
