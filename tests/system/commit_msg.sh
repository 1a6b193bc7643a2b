#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The commit-msg hook in a repository of its own: git itself calls it.
. tests/system/lib.sh

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
hook=$PWD/scripts/hooks
git init -q "$T/r" && cd "$T/r" && git config core.hooksPath "$hook" || fail "git init"
n=0
# Commits a change of file $1 with the message $2.
try() {
	n=$((n + 1))
	mkdir -p "$(dirname "$1")"
	echo $n >"$1"
	git add "$1"
	git commit -q -F - <<<"$2" >"$T/said" 2>&1
}
s72=$(printf 'x%.0s' {1..72})

try docs/a "$s72" || fail "72 columns are allowed: $(<"$T/said")"
try docs/a "${s72}y" && fail "73 columns are refused"
assert_match "$(<"$T/said")" 'commit-msg: the subject has 73 columns'
try docs/a $'subject\nbody at once' && fail "the second line is empty"
try src/a "subject" && fail "a change of src has a body"
assert_match "$(<"$T/said")" 'src changes, and no body says why'
try src/a $'subject\n\nSigned-off-by: a <a@b>' && fail "a trailer is no reason"
try src/a $'subject\n\nThe reason.' || fail "a body is a reason: $(<"$T/said")"
try src/a 'fixup! subject' || fail "a fixup passes: $(<"$T/said")"
try docs/a "" && fail "an empty message is refused"
git checkout -q -b other HEAD~1 && try docs/b "beside" && git checkout -q - && git merge -q --no-edit other >"$T/said" 2>&1 || fail "a merge passes: $(<"$T/said")"
exit 0
