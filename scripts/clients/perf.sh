# shellcheck shell=bash disable=SC2154,SC2016 # the variables and functions are those of "guest"; $ is the other shell's
# work SCRIPT: makes it /tmp/work.
work() {
	printf '#!/bin/bash\n%s\n' "$1" >/tmp/work
	chmod +x /tmp/work
}

kprobe() { # probe and record, while a program watches the same function: each sees all
	cp /bin/sleep /tmp/nap
	work 'for i in 1 2 3 4 5; do /tmp/nap 0.01; done'
	perf probe -q -a do_nanosleep
	start bpftrace -e 'BEGIN { printf("begins\n"); } kprobe:do_nanosleep /comm == "nap"/ { @ = count(); }'
	until_sees '^begins'
	perf record -o /tmp/perf.data -a -e probe:do_nanosleep /tmp/work
	stop
	sees '^@: 5$'
	perf script -i /tmp/perf.data >"$out"
	sees '^ +nap +[0-9]+ .* probe:do_nanosleep: \('
	[[ $(grep -c '^ *nap ' "$out") = 5 ]]
	perf probe -q -d probe:do_nanosleep
}
uprobe() { # probe and stat, while a program watches the same function: each sees all
	work 'kill -0 $$; kill -0 $$; kill -0 $$'
	perf probe -q -x /bin/bash -a kill_builtin
	start bpftrace -e 'BEGIN { printf("begins\n"); } uprobe:/bin/bash:kill_builtin /comm == "work"/ { @ = count(); }'
	until_sees '^begins'
	perf stat -o /tmp/stat -e probe_bash:kill_builtin /tmp/work
	stop
	sees '^@: 3$'
	cp /tmp/stat "$out"
	sees '^ +3 +probe_bash:kill_builtin'
	perf probe -q -d probe_bash:kill_builtin
}
