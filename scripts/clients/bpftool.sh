# shellcheck shell=bash disable=SC2154 # the variables and functions are those of "guest"
# bpftool is Debian's 7.1, $DIR/bpftool the one that belongs to this kernel.
hits() {
	start "$DIR/hits" wait
	until_sees '^multi vfs_write'
}

prog() { # prog: type, name, how often it ran
	sysctl -q kernel.bpf_stats_enabled=1
	hits
	bpftool prog show >"$out"
	sees ': kprobe  name on_write  tag .* run_cnt [1-9]' ': kprobe  name on_trigger_return  tag .* run_cnt 3$'
	sysctl -q kernel.bpf_stats_enabled=0
}
map() { # map: what a program has counted
	hits
	bpftool -p map dump name hits >"$out"
	sees '"cookie": 12639744,$' '"cookie": 12639750,$'
	[[ $(grep -c '"count": 3,' "$out") = 7 ]]
}
link() { # link: gone with its owner
	hits
	bpftool link show >"$out"
	[[ $(grep -c ': perf_event  prog ' "$out") = 5 ]]
	sees ': kprobe_multi  prog '
	kill -KILL "$tool"
	wait "$tool" || true
	bpftool link show >"$out"
	fails sees .
}
link_details() { # link: functions, offsets, cookies
	hits
	"$DIR/bpftool" link show >"$out"
	sees 'kprobe [0-9a-f]+ vfs_write  cookie 12639744' 'kretprobe [0-9a-f]+ vfs_write  cookie 12639745' \
		'kprobe [0-9a-f]+ __x64_sys_write  cookie 12639746' 'uprobe /proc/self/exe\+0x[0-9a-f]+  cookie 12639747' \
		'uretprobe /proc/self/exe\+0x[0-9a-f]+  cookie 12639748' 'kprobe.multi  func_cnt 2' \
		'[0-9a-f]+ c0de05 +vfs_read' '[0-9a-f]+ c0de06 +vfs_write'
}
perf() { # perf: who watches what
	hits
	bpftool perf show >"$out"
	sees "^pid $tool  fd [0-9]+: prog_id [0-9]+  kprobe  func vfs_write  offset 0" '  kretprobe  func vfs_write  offset 0' \
		'  uprobe  filename /proc/self/exe  offset [1-9]' '  uretprobe  filename /proc/self/exe  offset [1-9]'
}
autoattach() { # prog load autoattach: stays attached while it is pinned
	"$DIR/bpftool" prog load "$DIR/hits.bpf.o" /sys/fs/bpf/on_write autoattach
	"$DIR/bpftool" link show >"$out"
	sees 'perf_event  prog ' 'kprobe [0-9a-f]+ vfs_write'
	rm /sys/fs/bpf/on_write
	bpftool link show >"$out"
	fails sees .
}
