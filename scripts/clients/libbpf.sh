# shellcheck shell=bash disable=SC2154 # the variables and functions are those of "guest"
# line NAME COOKIE VALUE STACK: "hits" saw each of its three calls, through the hash, the ring buffer and the perf buffer.
line() {
	"$DIR/hits" >"$out"
	sees "^$1: hits 3 ring 3 records 3 cookie $2 value $3 stack ${4:-}"
}
# The address of a kernel function; the one of a hit may be a little further.
address() { sed -n "s/ T $1\$//p" /proc/kallsyms; }
near() { echo "${1%?}."; }

kprobe() { # SEC("kprobe")
	line kprobe c0de00 50 "$(near "$(address vfs_write)")$"
}
kretprobe() { # SEC("kretprobe")
	line kretprobe c0de01 50 'ffffffff'
}
ksyscall() { # SEC("ksyscall")
	line ksyscall c0de02 50 "$(near "$(address __x64_sys_write)")$"
}
uprobe() { # SEC("uprobe")
	line uprobe c0de03 15
	sees "^uprobe: .* stack $(sed -n 's/^trigger is at 0x//p' "$out")$"
}
uretprobe() { # SEC("uretprobe")
	line uretprobe c0de04 2a
}
multi() { # SEC("kprobe.multi"): a cookie for each function
	local read write
	read=$(address vfs_read) write=$(address vfs_write)
	line "multi vfs_read" c0de05 "$read" "$(near "$read")$"
	line "multi vfs_write" c0de06 "$write" "$(near "$write")$"
}
arg_ctx() { # a global function that is handed the context, __arg_ctx
	"$DIR/argctx" libbpf "$DIR/argctx.bpf.o" >"$out"
	sees '^libbpf: hits 3 length 5$'
}
light() { # a light skeleton, which states no kernel version
	"$DIR/argctx" light >"$out"
	sees '^light: hits 3 length 5$'
}
# probes.txt is what the stock kernel answers:
# scripts/vm/vm -r stock "$PWD/build/obj/clients/probes" >scripts/clients/probes.txt
probes() { # what libbpf finds out about the kernel, as on the stock one
	"$DIR/probes" >"$out"
	diff probes.txt "$out"
}
