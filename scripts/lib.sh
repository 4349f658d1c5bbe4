# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used by those who source it, and the other way round
# Sourced by every script here: paths, the environment of compiler and git, and how a step is shown.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# The kernel's makefiles refuse a path with a space or a colon, and QEMU's options end at a comma.  Such a checkout is worked on
# where it is mounted as well, which the script and what it starts see, and nobody else.
if [[ $top = *[^[:alnum:]/._+@-]* ]]; then
	((EUID == 0)) || { echo "root is needed where the path of the checkout has more than letters, digits and /._+@-: $top" >&2 && exit 4; }
	mounted=/run/bpf-events-$(sha256sum <<<"$top" | cut -c-8)
	script=$(realpath "$0")
	mkdir -p "$mounted"
	# shellcheck disable=SC2016 # the inner shell's
	exec unshare -m sh -ec 'mount --bind "$1" "$2"; script=$3; shift 3; exec "$script" "$@"' sh \
		"$top" "$mounted" "$mounted${script#"$top"}" "$@"
fi
build=$top/build
logs=$build/logs
scripts=$top/scripts
linux=$build/linux
mkdir -p "$logs" "$build/stamp"

# ccache knows a file again in any of the trees below build/, at any time of day.
export LC_ALL=C PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$build CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
# The same sources give the same image, whatever was built there before: so it can come from ccache, too (see compile() in build).
export KBUILD_BUILD_USER=bpf KBUILD_BUILD_HOST=kprobe KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_VERSION=1

# How many times longer than on a quick host something may take before it counts as hung.
export PATIENCE=${PATIENCE:-1}

# What git does here must not depend on anybody's configuration, and the same input gives the same commit ids.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX # a hook's, or those of rebase --exec
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_COMMITTER_NAME=${GIT_COMMITTER_NAME:-harness} GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL:-harness@localhost}
export GIT_AUTHOR_NAME=${GIT_AUTHOR_NAME:-harness} GIT_AUTHOR_EMAIL=${GIT_AUTHOR_EMAIL:-harness@localhost}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# status_of COMMAND...: leaves in rc what it returned.  A COMMAND that is a function ends at the first of its commands that fails,
# which it would not in "if" or before "||"; nor does it where status_of itself is in such a condition.
status_of() {
	set +e
	(set -e && "$@")
	rc=$?
	set -e
}

# step NAME COMMAND...: "[2/5] NAME ... 12s".  What the command says goes to build/logs/NAME.log, its progress (fd 3) to the
# terminal; when it fails, so does what went wrong.  The caller sets steps to how many there are; where it is empty, since some go
# on beside each other, there are two lines with the time instead: "0:12 NAME", and when it is over "1:02 NAME: 50 s".
# COMMAND runs as by status_of.
step=0
step() {
	local name=$1 log=$logs/${1// /-}.log start=$SECONDS rc
	shift
	if [[ $steps ]]; then
		printf '[%d/%d] %s ... ' "$((++step))" "$steps" "$name"
	else
		printf '%s %s\n' "$(clock)" "$name"
	fi
	if [[ $steps ]]; then
		status_of "$@" 3>&1 >"$log" 2>&1
	else
		status_of "$@" 3>/dev/null >"$log" 2>&1
	fi
	[[ $steps ]] || printf '%s %s: ' "$(clock)" "$name"
	if ((rc == 4)); then # the one line that says what is missing
		cat "$log"
	elif ((rc)); then
		printf 'failed after %d s, see %s\n' "$((SECONDS - start))" "${log#"$top/"}"
		why "$log" 100
	else
		printf '%d s\n' "$((SECONDS - start))"
	fi
	return "$rc"
}
# why LOG LINES: the lines of what a failed step said that matter: what failed, and the five lines after it if they say how.
why() {
	awk -v left="$2" '{ matters = /^(not ok |# console: )/ } /^(ok |not ok |# )/ { how = /^not ok / ? 5 : 0 }
		left > 0 && (matters || how-- > 0 && !/^(ok |# )/) { print; left--; said = 1 } END { exit !said }' "$1" || tail -n 20 "$1"
}
# unless_hung FILE COMMAND...: COMMAND, but ended when FILE, to which it writes what it does, has not grown for 20 minutes: at the
# lowest priority beside two VMs, one file or the link may take ten.
unless_hung() {
	local file=$1 size last='' since=$SECONDS pid
	shift
	"$@" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		size=$(stat -c %s "$file" 2>/dev/null || true)
		[[ $size = "$last" ]] || last=$size since=$SECONDS
		if ((SECONDS - since >= ${HUNG_AFTER:-1200 * PATIENCE})); then
			echo "hung: ${file#"$top/"} has not grown for $((SECONDS - since)) s"
			kill "$pid" || true
			break
		fi
	done
	wait "$pid"
}
# counted NAME COMMAND...: a step whose lines "ok ..." and "not ok ..." go to build/logs/NAME.log.results; without any, it is one
# test itself.
counted() {
	local name=$1 log=$logs/${1// /-}.log rc=0
	step "$@" || rc=$?
	((rc != 4)) || exit 4
	grep -E '^(not )?ok ' "$log" >"$log.results" || ((rc)) || echo "ok $name" >"$log.results"
	((rc == 0)) || grep -q '^not ok ' "$log.results" || echo "not ok $name" >>"$log.results"
	return "$rc"
}
# check NAME COMMAND...: a test of the script that calls it, "ok SCRIPT: NAME" if COMMAND succeeds; else what it said follows "not
# ok", and failed becomes 1.
check() {
	local name="${0##*/}: $1" said=$logs/${0##*/}.said
	shift
	if "$@" >"$said" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name"
		tail -n 40 "$said" | cut -c -300
		failed=1
	fi
}
clock() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# tally RESULTS: "N passed, N failed", of the lines "ok ..." and "not ok ..." in that file; returns whether all passed.
tally() {
	local passed failed
	passed=$(grep -c '^ok ' "$1" || true) failed=$(grep -c '^not ok ' "$1" || true)
	echo "$passed passed, $failed failed"
	((failed == 0 && passed > 0))
}

# stamp NAME KEY: has NAME been done for this KEY?  stamp_set NAME KEY: it has now.
stamp() { [[ $2 = "$(cat "$build/stamp/$1" 2>/dev/null)" ]]; }
stamp_set() { echo "$2" >"$build/stamp/$1"; }

# tests_of_parts: the selftests that run on stock with the parts A to C as well, with mainline's programs.
tests_of_parts() { awk '/ parts( |$)/ { print $1 }' "$scripts/selftests/list"; }
# tests_patch: a patch that adds these to stock.
tests_patch() {
	local dir=tools/testing/selftests/bpf_events files=(Makefile config settings .gitignore) author last=0
	mapfile -t -O "${#files[@]}" files < <(tests_of_parts | sed 's/$/.c/')
	while ((last < ${#files[@]})); do # and what they include
		last=${#files[@]}
		mapfile -t files < <({ printf '%s\n' "${files[@]}" &&
			git -C "$linux" grep -h '^#include "[a-z_]*\.h"' series -- "${files[@]/#/$dir/}" | cut -d'"' -f2; } | sort -u)
	done
	author=$(git -C "$linux" log -1 --format='%an <%ae>' series)
	cat <<-END
	From $(printf '%040d' 0) Mon Sep 17 00:00:00 2001
	From: $author
	Date: $(git -C "$linux" log --format=%aD baseline..series | tail -n 1)
	Subject: [PATCH] selftests/bpf_events: Test probes and records with mainline's programs

	Attach programs to kprobes, uprobes and their perf events, and let them go
	against hits, interrupts, exits, CPU hotplug and module unload; probe all
	that handles a hit; compare samples with what was hit. A program sees what
	became of each hit, so nothing that is lost, late or twice goes unnoticed.

	A test that wants more than mainline's implementation does is skipped, and
	says what mainline does.

	Signed-off-by: $author
	---
	END
	git -C "$linux" diff --stat --patch --full-index --no-renames baseline series -- \
		tools/testing/selftests/Makefile "${files[@]/#/$dir/}"
}
# exported DIR: what make export makes of the branch "series": series/*.patch, which nothing but a change of the series
# changes, a copy of each file that the series adds, and series/tests-A-C.patch.
exported() {
	local added
	mapfile -t added < <(git -C "$linux" diff --no-renames --diff-filter=A --name-only baseline series)
	mkdir -p "$1/series"
	git -C "$linux" format-patch --quiet --zero-commit --no-signature --full-index --no-numbered --no-renames \
		-o "$1/series" baseline..series
	tests_patch >"$1/series/tests-A-C.patch"
	((${#added[@]} == 0)) || git -C "$linux" archive series -- "${added[@]}" | tar -x -C "$1"
}
# exported_files DIR: the files there that come from an export, whether they should or not.
exported_files() {
	local dirs
	mapfile -t dirs < <(git -C "$linux" ls-tree -d --name-only baseline | grep -vx scripts)
	(cd "$1" && { find series "${dirs[@]}" -type f ! -name 'cover-letter*.txt' ! -name README 2>/dev/null || :; } | sort)
}

# patches_of A[-C]: the numbers of the patches in these parts of the series, as the table in series/README has them.  A and C build
# on part 0, which is taken with any of A to C.
patches_of() {
	awk -F ' *[|] *' -v from="${1%%-*}" -v to="${1##*-}" '
		$2 ~ /^[0A-Z]$/ && ($2 >= from || ($2 == "0" && from ~ /^[A-C]$/)) && $2 <= to {
		split($3, range, "-")
		for (i = range[1]; i <= range[2]; i++)
			printf "%04d\n", i
	}' "$top/series/README"
}

# source_of KERNEL[-FRAGMENT]: the tree that scripts/build compiles for it; fails where that knows no such kernel.
source_of() {
	[[ $1 != *-* || -e $scripts/configs/${1#*-}.config ]] || return
	case ${1%%-*} in
	series | debug | off) echo "$linux" ;;
	baseline) echo "$build/linux-baseline" ;;
	stock | fixes | parts) echo "$build/${1%%-*}" ;;
	patch) echo "$build/linux-patch" ;; # of scripts/patches
	mutants) echo "$build/mutants/linux" ;;
	*) return 1 ;;
	esac
}

# build_patch NUMBER: the kernel "patch", as it is after that patch of the series, or with 0 the baseline.
build_patch() {
	local tree=$build/linux-patch
	[[ -e $tree/.git ]] || git -C "$linux" worktree add -q -f --detach "$tree" baseline
	git -C "$tree" checkout -q --force --detach "$({ echo baseline && git -C "$linux" rev-list --reverse baseline..series; } |
		sed -n "$(($1 + 1))p")"
	"$scripts/build" patch
}

# What build/linux was made from.
hash_files() { find "$@" -type f -print0 | sort -z | xargs -0 -r sha256sum | sha256sum | cut -c-16; }
baseline_key() { echo "$(<"$build/stamp/stock") $(cd "$top" && hash_files baseline ! -name version)"; }
series_key() { echo "$(baseline_key) $(cd "$top" && hash_files series -name '0*.patch')"; }

# guest_samples DIR NAME...: these samples with their demos in DIR/samples, for vm -d DIR.
guest_samples() {
	local dir=$1/samples name
	shift
	mkdir -p "$dir"
	cp "$scripts/demo/lib" "$dir/"
	for name; do cp "$build/obj/samples/$name"* "$scripts/demo/$name.sh" "$dir/"; done
}
