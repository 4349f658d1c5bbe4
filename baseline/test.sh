#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# test.sh TREE - test derive.sh and check.sh on a partial copy of TREE, which is
# untouched linux-source-6.12. TAP on stdout; takes about two minutes.
# shellcheck disable=SC2317  # "check" calls the functions
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stock=$(cd "$1" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/linux
count=0
failed=0

check() {	# NAME COMMAND...
	local name=$1
	count=$((count + 1))
	if "${@:2}"; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		sed 's/^/# /' "$tmp/out"
		failed=1
	fi
}

# refused TEXT... - derive.sh fails, says each TEXT, and leaves the tree alone.
refused() {
	local text before
	before=$(state)
	if "$here/derive.sh" "$tree" > "$tmp/out" 2>&1; then
		echo "derive.sh succeeded" >> "$tmp/out"
		return 1
	fi
	for text; do
		grep -qF -- "$text" "$tmp/out" || return 1
	done
	[[ $before == "$(state)" ]]
}

# derives TEXT, leftover TEXT - derive.sh succeeds, check.sh fails, and says TEXT.
derives() { "$here/derive.sh" "$tree" > "$tmp/out" 2>&1 && grep -q "$1" "$tmp/out"; }
leftover() { ! "$here/check.sh" "$tree" > "$tmp/out" 2>&1 && grep -q "$1" "$tmp/out"; }
clean() { "$here/check.sh" "$tree" > "$tmp/out" 2>&1; }

state() { find "$tree" -type f -printf '%P %s %T@\n' | sort | sha256sum; }

mkdir -p "$tree"/{arch,drivers,fs,lib,net,samples,security}
cp -a "$stock"/{kernel,include,Makefile,MAINTAINERS} "$tree"
cp -a "$stock/samples/bpf" "$tree/samples"

check "check.sh names what is left in the untouched source" \
	leftover 'kernel/bpf/syscall.c:.*bpf_perf_link_attach'

sed -i 's/^PATCHLEVEL = 12/PATCHLEVEL = 13/' "$tree/Makefile"
check "another version is refused" refused "is not a Linux 6.12 source tree"
cp -a "$stock/Makefile" "$tree"

mv "$tree/samples/bpf/tracex1_user.c" "$tmp"
check "a missing file is named" refused "samples/bpf/tracex1_user.c is not there"
mv "$tmp/tracex1_user.c" "$tree/samples/bpf"

sed -i 's/\bbpf_get_uprobe_info\b/bpf_uprobe_info/' "$tree/kernel/trace/trace_uprobe.c"
sed -i 's/^config BPF_EVENTS$/config BPF_EVENTS2/' "$tree/kernel/trace/Kconfig"
sed -i 's/case BPF_TASK_FD_QUERY:/case BPF_TASK_QUERY:/' "$tree/kernel/bpf/syscall.c"
check "each rule that matches nothing is named, with its file" refused \
	"trace.cocci:functions bpf_get_uprobe_info in kernel/trace/trace_uprobe.c" \
	"'until /^config BPF_EVENTS\$/ .. /^config /' in kernel/trace/Kconfig" \
	"'case BPF_TASK_FD_QUERY in __sys_bpf' in kernel/bpf/syscall.c"
cp -a "$stock"/kernel/trace/{Kconfig,trace_uprobe.c} "$tree/kernel/trace"
cp -a "$stock/kernel/bpf/syscall.c" "$tree/kernel/bpf"

# What a point release may do.
printf '%s\n' 'int always;' '#ifdef CONFIG_BPF_EVENTS' 'int sometimes;' '#endif' \
	> "$tree/kernel/trace/new.c"
check "the baseline is derived" \
	derives 'also mentions CONFIG_BPF_EVENTS: kernel/trace/new.c'
check "a new conditional file is part of it" \
	test "$(cat "$tree/kernel/trace/new.c")" = 'int always;'
check "check.sh finds nothing in the baseline" clean
check "a second run is refused" refused "is a baseline already"

echo 'int trace_call_bpf;' >> "$tree/kernel/trace/new.c"
check "check.sh names a leftover" leftover 'kernel/trace/new.c:.*trace_call_bpf'

echo "1..$count"
exit "$failed"
