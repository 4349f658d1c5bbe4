# shellcheck shell=bash disable=SC2154
# Sourced by check and compile-only.  scripts/checked says what was found clean, "WHO KIND KEY" by line; a key is the hash of all
# that the answer depends on.  It is in the repository, so that nobody has to find that out again: commit it with the patches.
# build/stamp/checked.WHO has what this machine found since, also where something else was not clean.  AFRESH=1: all of it again.
export RECORD # a file: what the run that goes on has found, or found in there

known() {
	[[ -z ${AFRESH:-} ]] && grep -qsxF "$*" "$scripts/checked" "$build/stamp/checked.$1" || return 1
	echo "$*" >>"$RECORD"
}
found() {
	echo "$*" >>"$RECORD"
	echo "$*" >>"$build/stamp/checked.$1"
}
# accept WHO: all is clean, so what RECORD says is what WHO knows from now on, and nothing else.
accept() {
	sort -u "$RECORD" -o "$build/stamp/checked.$1"
	{ grep -sv "^$1 " "$scripts/checked" || :; cat "$build/stamp/checked.$1"; } | sort >"$RECORD"
	cmp -s "$RECORD" "$scripts/checked" || cp "$RECORD" "$scripts/checked"
}
hash_of() { sha256sum | cut -c-16; }
