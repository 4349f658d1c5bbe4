#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# check.sh TREE - exit 0 if and only if nothing in the manifest is left in TREE,
# and the numbers and layouts of its uapi are the usual ones.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $# -eq 1 && -d $1/kernel ]] || { echo "usage: check.sh TREE" >&2; exit 2; }
cd "$1"
dirs=(arch drivers fs include kernel lib net samples security)
left=0

# found ARG... - show what grep finds in sources (TREE may have been built in).
found() {
	local hits
	hits=$(grep -rnwIF --include='*.[chSs]' --include='*.lds*' --include='*.sh' \
		--include='Kconfig*' --include='Makefile*' --include=Kbuild "$@") || return 0
	while read -r hit; do
		echo "check: still there: $hit" >&2
	done <<< "$hits"
	left=1
}

everywhere=()
while read -r name in paths; do
	if [[ $name == path ]]; then
		[[ ! -e $in ]] || { echo "check: still there: $in" >&2; left=1; }
	elif [[ $in == in ]]; then
		# shellcheck disable=SC2086
		found -e "$name" $paths
	else
		everywhere+=(-e "$name")
	fi
done < <(grep -v '^#\|^$' "$here/manifest"; sed -n 's/^[^#]/path &/p' "$here/removed-files")
found "${everywhere[@]}" "${dirs[@]}"

if ! "${CC:-gcc}" -fsyntax-only -iquote include/uapi/linux "$here/layout-check.c"; then
	echo "check: the uapi layout has changed" >&2
	left=1
fi
exit "$left"
