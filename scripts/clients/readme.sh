# shellcheck shell=bash disable=SC2154 # the variables and functions are those of "guest"
# What README.md, probe_tutorial.rst and bpf-filter.rst say that one would see.  readme-program has put what they have into $DIR/readme.
# session FILE: types the lines that begin with "# " at a prompt; the others must then be on the screen, but for the numbers, and
# for the name of a task in a trace: of one that is gone, the kernel may not have it any more.  "..." can be anything.
session() {
	local line regex
	rm -f /tmp/keys
	mkfifo /tmp/keys
	start sh -c 'exec script -qfc "exec bash --norc --noprofile -i" /dev/null </tmp/keys'
	exec 3>/tmp/keys
	(sleep 60 && kill -KILL -- "-$tool") & # long enough for all of it
	while IFS= read -r line; do
		if [[ $line = '# '* ]]; then
			echo "${line#\# }" >&3
		elif [[ $line != ... ]]; then
			regex=$(sed -E 's/[].*^$+?(){}|[\]/\\&/g; s/[0-9]+/[0-9]+/g; s/ +/ +/g; s/(\\\.){5}/[^ ]{5}/
				s/^ \+[^ ]*-\[0-9]/ [^ ]+-[0-9]/' <<<"$line")
			until_sees "$regex"$'\r?$'
		fi
	done <"$1"
}

program() { # the program to start from: built and run as probe_tutorial.rst says
	cd "$DIR/readme" || return
	session session
}
# has_filters: can a program be a filter there?
has_filters() {
	[[ $(uname -r) = *-@(stock|fixes|parts)* ]] || return 0
	echo "no program can be a filter there"
	return 77
}
filter() { # the program in bpf-filter.rst, and what to do with it, where there is such a thing
	has_filters || return
	cd "$DIR/readme/filter" || return
	session session
	for _ in {1..50}; do # it is being typed
		[[ -e /sys/fs/bpf/eighth ]] || return 0
		sleep 0.1
	done
	return 1
}
# sched_filter [TEXT]: writes it to the filter of sched_switch, or puts into $out what that is.
sched_filter() {
	local file=/sys/kernel/tracing/events/sched/sched_switch/filter
	if (($#)); then echo "$1" >$file; else cat $file >"$out"; fi
}
trace_cmd() { # trace-cmd and a filter that is a program: as bpf-filter.rst says
	local id event=sched:sched_switch data=/tmp/trace.dat arguments
	has_filters || return
	bpftool prog load "$DIR/readme/filter/eighth.bpf.o" /sys/fs/bpf/trace_cmd
	id=$(bpftool prog show pinned /sys/fs/bpf/trace_cmd | sed -n '1s/:.*//p')

	trace-cmd start -e $event
	sched_filter "bpf-id:$id"
	sleep 0.5
	trace-cmd stop
	trace-cmd show >"$out"
	sees ' sched_switch: '
	trace-cmd record -B other -e $event -o $data true
	sched_filter
	sees "^bpf: id $id name every_eighth$"
	sched_filter 0
	for arguments in "extract -o $data" "record -e $event -o $data true" "start -e $event" reset; do
		sched_filter "bpf-id:$id"
		# shellcheck disable=SC2086 # several words
		trace-cmd $arguments
		sched_filter
		sees '^none$'
	done
	trace-cmd record -e $event -f "bpf-id:$id" -o $data true >"$out" 2>&1
	sees '^Failed filter of '
	rm /sys/fs/bpf/trace_cmd
}
make_shell() { # make shell CMD=: as in README.md
	bash -c "$(<"$DIR/readme/command")" >"$out" 2>&1
	diff -B "$DIR/readme/command.out" "$out"
}
