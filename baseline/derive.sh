#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# derive.sh TREE - turn an unpacked linux-source-6.12 into the baseline, in place.
#
# All work is done on copies of the files concerned. TREE is changed only when
# every rule has found what it names, so that a failure leaves it as it was.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() { echo "derive: $*" >&2; exit 1; }

[[ $# -eq 1 ]] || die "usage: derive.sh TREE"
for tool in spatch unifdef perl python3; do
	command -v "$tool" >/dev/null ||
		die "$tool is missing: apt-get install coccinelle unifdef perl python3"
done
tree=$(cd "$1" && pwd) || die "$1: no such directory"
if ! grep -qsx 'VERSION = 6' "$tree/Makefile" ||
   ! grep -qsx 'PATCHLEVEL = 12' "$tree/Makefile"; then
	die "$tree is not a Linux 6.12 source tree"
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/old" "$tmp/new" "$tmp/sp"

# --- what is to be done ---

mapfile -t removed < <(grep -v '^#\|^$' "$here/removed-files")
missing=()
for path in "${removed[@]}"; do
	[[ -e $tree/$path ]] || missing+=("$path")
done
if [[ ${#missing[@]} -gt 0 ]] && grep -q __BPF_PROG_TYPE_RESERVED_2 \
	"$tree/include/uapi/linux/bpf.h"; then
	die "$tree is a baseline already"
elif [[ ${#missing[@]} -gt 0 ]]; then
	printf 'derive: removed-files: %s is not there\n' "${missing[@]}" >&2
	die "$tree is not the source that the rules are for"
fi

# A point release may bring another file that asks for the option.
mapfile -t conditional < <(cd "$tree" &&
	grep -rlw CONFIG_BPF_EVENTS kernel include |
	grep -vxF -f <(printf '%s\n' "${removed[@]}") | sort)
mapfile -t expected < <(grep -v '^#\|^$' "$here/unifdef-files" | sort)
absent=$(comm -13 <(printf '%s\n' "${conditional[@]}") \
		  <(printf '%s\n' "${expected[@]}"))
[[ -z $absent ]] || die "unifdef-files: no CONFIG_BPF_EVENTS in: ${absent//$'\n'/ }"
comm -23 <(printf '%s\n' "${conditional[@]}") <(printf '%s\n' "${expected[@]}") |
	sed 's/^/derive: note: also mentions CONFIG_BPF_EVENTS: /' >&2

# One spatch run a file: the rules of all concerns, in the order of their names.
"$here/split-cocci.pl" "$tmp/sp" "$here"/*.cocci
mapfile -t cocci_files < <(cd "$tmp/sp" && find . -name '*.cocci' -printf '%P\n' |
	sed 's/\.cocci$//' | sort)
mapfile -t edited < <(sed -n 's/^file //p' "$here/edits.rules")

printf '%s\n' "${conditional[@]}" "${cocci_files[@]}" "${edited[@]}" |
	sort -u > "$tmp/files"
while read -r path; do
	[[ -f $tree/$path ]] || die "a rule is for $path, which $tree does not have"
	for side in old new; do
		mkdir -p "$tmp/$side/$(dirname "$path")"
		cp -p "$tree/$path" "$tmp/$side/$path"
	done
done < "$tmp/files"

# --- do it, on the copies ---

cd "$tmp/new"
for path in "${conditional[@]}"; do
	unifdef -UCONFIG_BPF_EVENTS -m "$path" || [[ $? -eq 1 ]] ||
		die "unifdef failed on $path"
done

# The scripts that split-cocci.pl adds print "MATCHED RULE".
run_spatch() {
	local path=$1 rules=$tmp/sp/$1.cocci
	spatch --very-quiet --no-includes --in-place --sp-file "$rules" "$path" \
		> "$rules.out" 2> "$rules.err" || touch "$rules.failed"
}
export -f run_spatch
export tmp
# shellcheck disable=SC2016
printf '%s\n' "${cocci_files[@]}" |
	xargs -P "$(nproc)" -I{} bash -c 'run_spatch "$1"' _ {}
failed=0
for path in "${cocci_files[@]}"; do
	rules=$tmp/sp/$path.cocci
	if [[ -e $rules.failed ]] || grep -q '^exn ' "$rules.err"; then
		sed "s|^|derive: $path: |" "$rules.err" >&2
		failed=1
	fi
	while read -r rule; do
		echo "derive: $rule in $path: matches nothing" >&2
		failed=1
	done < <(comm -23 <(sort -u "$tmp/sp/$path.expect") \
			  <(sed -n 's/^MATCHED //p' "$rules.out" | sort -u))
done
"$here/edit.pl" "$here/edits.rules" . || failed=1
[[ $failed -eq 0 ]] || die "rules that do not fit, see above; $tree is unchanged"
while read -r path; do
	"$here/tidy.pl" "$tmp/old/$path" "$path"
done < "$tmp/files"

# --- and put it into place ---

# New files, not new contents: TREE may share its files with another by hard links.
while read -r path; do
	cp -p --remove-destination "$path" "$tree/$path"
done < "$tmp/files"
(cd "$tree" && rm "${removed[@]}")
"$here/check.sh" "$tree"
