# shellcheck shell=bash disable=SC2154,SC2016 # $ in a program is bpftrace's; the variables and functions are those of "guest"
# The programs of the types other than kprobe: tracepoint, raw tracepoint, perf event, tracing.
# bt PROGRAM COMMAND: the program watches while the command runs, and prints its maps at the end.
bt() { bpftrace --unsafe -e "$1" -c "$2" >"$out" 2>&1; }
# bt_work PROGRAM SCRIPT: the same with a shell script; bpftrace itself runs nothing but a binary.
bt_work() {
	echo "$2" >/tmp/work
	bt "$1" '/bin/bash /tmp/work'
}
busy='for ((i = 0; i < 30000; i++)); do :; done'
# object NAME: compiles NAME.bpf.c into /tmp.
object() { clang -g -O2 --target=bpf -I "$DIR" -c "$1.bpf.c" -o "/tmp/$1.bpf.o"; }

bpftrace_interval() { # bpftrace interval: ticks
	bpftrace -e 'interval:ms:50 { printf("tick %d\n", ++@n); if (@n == 3) { exit(); } }' >"$out"
	sees '^tick 1$' '^tick 2$' '^tick 3$'
}
bpftrace_profile() { # bpftrace profile: where a program spends its time
	bt_work 'profile:hz:99 /pid == cpid/ { @[comm] = count(); @stack[ustack(1)] = count(); }' "$busy"
	sees '^@\[bash\]: [1-9]' '^@stack\['
}
bpftrace_software() { # bpftrace software event: page faults
	bt_work 'software:faults:1 /pid == cpid/ { @ = count(); }' "$busy"
	sees '^@: [1-9]'
}
bpftrace_tracepoint() { # bpftrace tracepoint: the fields of the record
	bt_work 'tracepoint:task:task_rename /comm == "bash"/ { printf("%s becomes %s\n", args->oldcomm, args->newcomm); }' \
		'/bin/true'
	sees '^bash becomes true$'
}
bpftrace_syscall() { # bpftrace tracepoint: arguments and result of a system call
	bt_work 'tracepoint:syscalls:sys_enter_kill /pid == cpid/ { printf("kill %d %d\n", args->pid == pid, args->sig); }
		tracepoint:syscalls:sys_exit_kill /pid == cpid/ { printf("result %d\n", args->ret); }' \
		'kill -0 $$; kill -0 99999999 2>/dev/null'
	sees '^kill 1 0$' '^kill 0 0$' '^result 0$' '^result -3$'
}
bpftrace_wildcard() { # bpftrace tracepoint: a wildcard
	bt_work 'tracepoint:sched:sched_process_* { @[probe] = count(); }' '/bin/true'
	sees '^@\[tracepoint:sched:sched_process_(fork|exec|exit)\]: [1-9]'
}
bpftrace_kfunc() { # bpftrace kfunc: arguments by name
	bt_work 'kfunc:vfs_write /pid == cpid/ { printf("writes %d\n", args->count); }' 'printf %077d 0 >/dev/null'
	sees '^writes 77$'
}
bpftrace_kretfunc() { # bpftrace kretfunc: arguments and result
	bt_work 'kretfunc:vfs_write /pid == cpid/ { printf("%d of %d\n", retval, args->count); }' 'printf %077d 0 >/dev/null'
	sees '^77 of 77$'
}
bpftrace_iter() { # bpftrace iter: each task
	bpftrace -e 'iter:task { printf("%s %d\n", ctx->task->comm, ctx->task->pid); }' >"$out"
	sees "^bash $$\$" '^bpftrace [0-9]+$' '^kthreadd 2$'
}
bpftrace_iter_pinned() { # bpftrace iter: a file that lists the tasks
	bpftrace -e 'iter:task:/sys/fs/bpf/tasks { printf("%s %d\n", ctx->task->comm, ctx->task->pid); }'
	bash -c 'cat /sys/fs/bpf/tasks >"$1"' sh "$out"
	rm /sys/fs/bpf/tasks
	sees "^bash $$\$" '^cat [0-9]+$'
}
opensnoop() { # bcc opensnoop, by fentry
	start opensnoop-bpfcc
	until_sees ' cat +[0-9]+ +0 /proc/version$' cat /proc/version
}
vfsstat() { # bcc vfsstat, by fentry
	start vfsstat-bpfcc 1
	until_sees '^[0-9:]+ +[1-9][0-9]* +[1-9][0-9]* ' cat /proc/version
}
exitsnoop() { # bcc exitsnoop, by a tracepoint
	start exitsnoop-bpfcc
	until_sees '^false +.* code 1$' /bin/sh -c '/bin/false; true'
}
biopattern() { # bcc biopattern, by a tracepoint of block I/O
	[[ -b /dev/vda ]] || mknod /dev/vda b "$(cut -d: -f1 /sys/block/vda/dev)" 0
	start biopattern-bpfcc 1
	until_sees 'vda +[0-9]+ +[0-9]+ +[1-9]' dd if=/dev/vda of=/dev/null bs=64k count=16 iflag=direct
}
perf_trace() { # perf trace: a system call with its arguments
	perf trace -o "$out" -e kill bash -c 'kill -0 $$'
	sees 'kill\(pid: [0-9]+ \(?bash.*\) += 0'
}
perf_trace_beside_programs() { # perf trace, while programs watch the same tracepoints
	start bpftrace -e 'BEGIN { printf("begins\n"); } tracepoint:raw_syscalls:sys_enter /comm == "nap" && args->id == 230/ { @raw = count(); }
		tracepoint:syscalls:sys_exit_clock_nanosleep /comm == "nap"/ { @exit = count(); }'
	until_sees '^begins'
	cp /bin/sleep /tmp/nap
	perf trace -o /tmp/trace -e clock_nanosleep /tmp/nap 0.01
	stop
	sees '^@raw: 1$' '^@exit: 1$'
	cp /tmp/trace "$out"
	sees 'clock_nanosleep\('
}
bpftool_links() { # bpftool: programs of all kinds that stay attached while they are pinned
	object events
	"$DIR/bpftool" prog loadall /tmp/events.bpf.o /sys/fs/bpf/events autoattach
	"$DIR/bpftool" link show >"$out"
	sees ': raw_tracepoint  prog ' "tp 'sys_enter'" ': tracing  prog ' 'attach_type trace_fentry' 'attach_type trace_fexit' \
		"tp 'task_rename'" ': perf_event  prog ' 'tracepoint task_rename'
	/bin/true
	bpftool -p map dump name counts >"$out"
	[[ $(grep -c '"value": [1-9]' "$out") = 5 ]]
	rm -r /sys/fs/bpf/events
	sleep 1
	bpftool link show >"$out"
	fails sees .
}
bpftool_iter() { # bpftool iter pin: a file that lists the tasks
	object tasks
	bpftool iter pin /tmp/tasks.bpf.o /sys/fs/bpf/tasks
	bpftool link show >"$out"
	sees ': iter  prog .*target_name task'
	bash -c 'cat /sys/fs/bpf/tasks >"$1"' sh "$out"
	sees "^bash $$\$" '^cat [0-9]+$'
	rm /sys/fs/bpf/tasks
}
# What features.txt has, of the types that come with BPF events: which there are, and for each helper the types that have it:
# scripts/vm/vm -r stock "cd $PWD/scripts/clients; DIR=$PWD/build/obj/clients ./guest case events features" >scripts/clients/features.txt
features() {
	# lsm and inode_storage are a matter of CONFIG_BPF_LSM
	"$DIR/bpftool" feature probe kernel full | awk '/^eBPF (program|map)_type .* is available$/ && !/_type (lsm|inode_storage) /
		/^eBPF helpers supported/ { sub(":", ""); type = $NF }
		/^\t- / && type ~ /^(kprobe|tracepoint|perf_event|raw_tracepoint|raw_tracepoint_writable)$/ {
			if (!($2 in types)) { names[++n] = $2 }
			types[$2] = types[$2] " " type
		}
		END { for (i = 1; i <= n; i++) { print names[i] ":" types[names[i]] } }'
}
feature() { # bpftool feature: the types that the stock kernel has, and the helpers that it gives to each
	features >"$out"
	diff features.txt "$out"
}
