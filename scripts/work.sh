# shellcheck shell=bash disable=SC2154 # the variables are those of lib.sh
# Sourced by tree, export and clean: what would they lose?  Safe is what series/ had when build/linux was made from it or exported
# to it, the stamp "exported".  All else that the git there can name is somebody's work: commits of any ref and of the HEAD of any
# worktree, the stash, edits, an unfinished rebase.  Not so build/linux-step: it is scratch of tree and check, nobody works there.
# A git that fails has not said that there is nothing.
shopt -s inherit_errexit
export GIT_CEILING_DIRECTORIES=$build # where a .git is broken, git must not take the one of this repository

# lose WHAT ADVICE: a line of each, for refuse().
lose() { printf '  %s\n    -> %s\n' "$1" "$2"; }

# refuse LOSSES...: dies unless none of these functions says something.
refuse() {
	local lost rc=0
	set +e # in "lost=$(...) || die", set -e would be off inside
	lost=$(
		set -e
		for losses; do "$losses"; done
	)
	rc=$?
	set -e
	((rc == 0)) || die "could not find out whether there is work to lose, see above; nothing has been touched"
	[[ -z $lost ]] || die "this would be lost, so nothing has been touched:"$'\n'"$lost"
}

# in_dir DIR: a worktree as the user would name it.
in_dir() { echo "${1#"$top/"}"; }

# is_git: is there a build/linux?  Dies if there is one and git does not want to say what is in it.
is_git() {
	local entries
	if [[ -e $linux/.git ]]; then
		git -C "$linux" rev-parse --git-dir >/dev/null ||
			die "git refuses build/linux, which belongs to $(stat -c %U "$linux"): work as that user, or chown it"
		return
	fi
	entries=$([[ ! -d $linux ]] || find "$linux" -mindepth 1 -maxdepth 1 -print -quit) || exit
	[[ -z $entries ]] || die "build/linux is no git tree, but not empty either: move it away"
	return 1
}

# worktrees: a line "DIR COMMIT BRANCH" for each but the scratch; BRANCH is - on a detached HEAD; one that is about to be born has
# no commit.  A DIR that is not there any more has a HEAD still.
worktrees() {
	git -C "$linux" worktree list --porcelain | awk -v scratch="$build/linux-step" '
	/^worktree / { dir = substr($0, 10); head = "" }
	/^HEAD / { head = $2 }
	/^(branch|detached)/ && dir != scratch && head !~ /^0*$/ { print dir "\t" head "\t" ($1 == "branch" ? $2 : "-") }'
}

# unsafe REV: its commits that nobody else has, as "ID SUBJECT".  Those of the harness itself, the baselines, are of 1970.
unsafe() {
	local exported=()
	mapfile -t exported < <(cat "$build/stamp/exported" 2>/dev/null)
	[[ ${exported[0]:-} ]] && git -C "$linux" cat-file -e "${exported[0]}^{commit}" 2>/dev/null || exported=()
	git -C "$linux" log --format='%at %h %s' "$1" --not "${exported[@]}" --remotes -- | sed '/^0 /d; s/^[0-9]* //'
}

# commits_of NAME REV ADVICE
commits_of() {
	local commits
	commits=$(unsafe "$2")
	[[ -z $commits ]] || lose "$1: commits that are not in series/: $(wc -l <<<"$commits"), the last is $(head -n 1 <<<"$commits")" "$3"
}

# unfinished DIR; edits_in DIR
unfinished() {
	local dir git_dir file
	dir=$(in_dir "$1")
	git_dir=$(git -C "$1" rev-parse --absolute-git-dir)
	for file in rebase-merge rebase-apply sequencer MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG; do
		[[ ! -e $git_dir/$file ]] || {
			lose "$dir: a rebase, am, merge, cherry-pick or bisect is not finished" "finish it or abort it: git -C $dir status says how"
			return
		}
	done
}
edits_in() {
	local dir edits
	dir=$(in_dir "$1")
	edits=$(git -C "$1" status --porcelain --untracked-files=normal && # its settings may hide some
		git -C "$1" ls-files --others --ignored --exclude-standard -- '*.patch' | sed 's/^/!! /')
	[[ -z $edits ]] || lose "$dir: files that are not committed: $(wc -l <<<"$edits"), like $(head -n 1 <<<"${edits:3}")" \
		"commit them on the branch series and make export, or give them up"
}

# --- what tree, export and clean may lose

advice_of_series='make export first, or give them up: git -C build/linux reset'

# The branch series is moved, and what is checked out in build/linux and build/linux-baseline is replaced.
lost_by_checkout() {
	local dir head branch
	is_git || return 0
	! git -C "$linux" show-ref -q --verify refs/heads/series || commits_of "build/linux, branch series" refs/heads/series "$advice_of_series"
	worktrees | while IFS=$'\t' read -r dir head branch; do
		[[ $dir = "$linux" || ($dir = "$build/linux-baseline" && -d $dir) ]] || continue
		[[ $branch != - ]] || commits_of "$(in_dir "$dir"), no branch" "$head" "give them one: git -C $(in_dir "$dir") branch NAME"
		unfinished "$dir"
		edits_in "$dir"
	done
}

# Everything that is reachable is.
lost_by_removal() {
	local dir head branch ref type stashes known
	is_git || return 0
	git -C "$linux" for-each-ref --format='%(refname) %(objecttype) %(*objecttype)' | while read -r ref type; do
		case $ref:$type in
		refs/stash:* | refs/remotes/*) ;;
		refs/heads/series:*) commits_of "build/linux, branch series" "$ref" "$advice_of_series" ;;
		*:*commit*) commits_of "build/linux, $ref" "$ref" \
			"put them into the branch series and make export, or give them up: git -C build/linux update-ref -d $ref" ;;
		*) lose "build/linux, $ref: a $type" "give it up: git -C build/linux update-ref -d $ref" ;;
		esac
	done
	stashes=$(git -C "$linux" stash list)
	[[ -z $stashes ]] || lose "build/linux: stashes: $(wc -l <<<"$stashes"), the last is ${stashes%%$'\n'*}" \
		"git -C build/linux stash pop (and commit, and make export), or stash drop"
	worktrees | while IFS=$'\t' read -r dir head branch; do
		[[ $branch != - ]] || commits_of "$(in_dir "$dir"), no branch" "$head" \
			"put them into the branch series and make export, or check out something else there"
		[[ -d $dir ]] || continue
		unfinished "$dir"
		edits_in "$dir"
	done
	known=$(worktrees | cut -f 1)
	for dir in "$build"/*/.git; do
		dir=${dir%/.git}
		[[ ! -e $dir/.git || $dir = "$build/linux-step" ]] || grep -qxF "$dir" <<<"$known" ||
			lose "$(in_dir "$dir"): a git tree that is none of the harness" "move it away"
	done
}

# Of the branch series the last state is written, whatever else is checked out.
not_exported() {
	local dir head branch
	worktrees | while IFS=$'\t' read -r dir head branch; do
		[[ $dir = "$linux" ]] || continue
		unfinished "$dir"
		edits_in "$dir"
		[[ $branch = refs/heads/series || $head = "$(git -C "$linux" rev-parse --verify refs/heads/series)" ]] ||
			lose "build/linux: ${branch#refs/heads/} is checked out, and make export writes the branch series, without it" \
				"git -C build/linux checkout series, and merge or rebase"
	done
}
