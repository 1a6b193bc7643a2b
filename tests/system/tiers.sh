#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/ci-tiers with a table of tiers that test nothing: their order, in turns, time boxes, what fits, what fails, what is left out.
. "$(dirname "$0")/lib.sh"
mkdir -p "$T/tree/scripts"
awk '/^table=/ { print "table=\047"; while ((getline line < rows) > 0) print line; skip = 1; next } skip && /^\047$/ { skip = 0 } !skip' \
	rows=<(cat <<'END'
check | 90 | echo check >>order; echo 5 passed, 0 failed, 0 skipped | first
one   | 40 | echo one >>order; echo noise; echo 1 passed, 0 failed, 2 skipped | a tier
two   | 30 | echo two >>order; [ "$SEED" = 1 ] && echo 2 passed, 0 failed, 0 skipped | another
big   | 500 | echo big >>order; echo 3 passed, 0 failed, 0 skipped | one that wants a lot of time
slow  | 1 | echo slow >>order; sleep 60; echo 1 passed, 0 failed, 0 skipped | not done in time
red   | 50 | echo red >>order; echo 1 passed, 1 failed, 0 skipped; false | fails
mute  | 50 | echo mute >>order | counts nothing
END
	) "$ROOT/scripts/ci-tiers" >"$T/tree/scripts/ci-tiers" || fail "the table of ci-tiers"
chmod +x "$T/tree/scripts/ci-tiers"
cd "$T/tree" || fail "no $T/tree"
# tiers WANTED-EXIT WORDS...: what it printed in $T/out; the tiers that ran in $ran.
tiers() {
	local want=$1 rc
	shift
	: >order
	env -u SKIP -u SEED -u CI_TURN -u CI_SECS -u SLOW "${vars[@]}" scripts/ci-tiers "$@" >"$T/out" 2>&1
	rc=$?
	ran=$(tr '\n' ' ' <order)
	[ $rc = "$want" ] || { cat "$T/out" >&2; fail "exit $rc, wanted $want: ${vars[*]} $*"; }
}
has() { grep -Eq "$1" "$T/out" || { cat "$T/out" >&2; fail "no $1"; }; }

vars=()
tiers 0 two one
assert_eq "$ran" "two one "
has '^one +ok .* 1 passed, 0 failed, 2 skipped$'
has '^ci-tiers: 3 passed, 0 failed, 2 skipped '
tiers 1 red one mute
assert_eq "$ran" "red one mute "
has '^red +FAILED .* 1 passed, 1 failed, 0 skipped$'
has '^mute +FAILED .* it counted no tests$'
tiers 1 slow two
assert_eq "$ran" "slow two "
has '^slow +FAILED .* not done within 1 s$'
tiers 2 three
vars=(SLOW=3)
tiers 0 two
has '^==== two [(]at most 90 s[)]$'
vars=("SKIP=one,big")
tiers 1
assert_eq "$ran" "check two slow red mute "
has '^big +skipped '
vars=(SKIP=nothing)
tiers 2 one
vars=(CI_SECS=0)
tiers 1 one
assert_eq "$ran" ""
has '^one +FAILED .* not begun'

# In turn: each comes first once; check is not among them, nor is what has not the time; that fails nothing.
firsts=''
for n in 0 1 2; do
	vars=(CI_TURN="$n" CI_SECS=200)
	tiers 0 --in-turn one two big
	firsts+="$ran/ "
	has '^big +waits .* its 500 s do not fit into the [0-9]+ s that are left$'
	has '1 tiers wait for another turn$'
done
assert_eq "$firsts" "one two / two one / one two / "
vars=(CI_TURN=2 CI_SECS=600)
tiers 0 --in-turn one two big
assert_eq "$ran" "big one two "
vars=(CI_TURN=1000 CI_SECS=1000 SKIP=slow)
tiers 1 --in-turn
assert_match "$(sort <<<"${ran// /$'\n'}" | tr '\n' ' ')" '^ *big mute one red two $'
vars=(CI_TURN=0 CI_SECS=300)
tiers 0 --in-turn big one
assert_eq "$ran" "one "
vars=(CI_SECS=2)
tiers 1 --in-turn one two
has 'no tier fits into CI_SECS=2'

# Every row of the real table has a time and a command.
bad=$(awk '/^table=/ { on = 1; next } /^\047$/ { on = 0 } on && !/^[a-z-]+ *\| *[0-9]+ \| *[^ |].* \| .*[a-z]/' "$ROOT/scripts/ci-tiers")
assert_eq "$bad" "" "rows of the table"
# Each has its folders, which are there, and the model is among those of the tests of stores.
for t in $(awk '/^table=/ { on = 1; next } /^\047$/ { on = 0 } on { print $1 }' "$ROOT/scripts/ci-tiers"); do
	folders=$(awk -v t="$t" '/^about=/ { on = 1; next } /^\047$/ { on = 0 } on && $1 == t { $1 = ""; print }' "$ROOT/scripts/ci-tiers")
	[ -n "$folders" ] || fail "no folders of $t"
	for f in $folders; do [ -d "$ROOT/$f" ] || fail "$t: there is no $f"; done
	case $t in
	check | asan | bench | pinned) assert_eq "$folders" " src" "$t" ;;
	long | mutation | rados | rados-long | copies) assert_match "$folders " " src/model " "$t" ;;
	esac
done

# Without a number: the commits are counted, so the next commit begins at the next tier.
command -v git >/dev/null || exit 0
g() { git -c user.name=x -c user.email=x@x -c commit.gpgsign=false "$@" >/dev/null 2>&1 || fail "git $*"; }
g init
vars=(CI_SECS=200)
for want in "two one " "one two " "two one "; do
	g commit --allow-empty -m x
	tiers 0 --in-turn one two
	assert_eq "$ran" "$want"
done

# A tier that ran whole has its line, whatever its result; one that was ended, or counted nothing, has none.
mkdir tests
echo '# runs' >tests/tiers-run
vars=()
tiers 1 two red slow mute
first=$(git rev-parse --short=12 HEAD)
assert_eq "$(cut -d ' ' -f 1,2,4 tests/tiers-run | tail -n +2)" "red $first failed"$'\n'"two $first ok"
# Few commits are enough where the limits are 9 and 2 of them.
sed -i '/^about=/a two src/a
s/-gt 600/-gt 9/; s/-gt 200/-gt 2/' scripts/ci-tiers
commit_in() { # FOLDER NUMBER
	local i
	mkdir -p "$1"
	for ((i = 0; i < $2; i++)); do echo "$i" >>"$1/f" && g add "$1/f" && g commit -m x; done
}
commit_in src/b 3
commit_in src/a 1
g commit --allow-empty -m x
tiers 0 --last
has "^two +$first +[0-9-]{10} ok +5 +1\$"
has "^red +$first +[0-9-]{10} failed +5 +5\$"
has '^big +- +- +never +[?] +[?]$'
warned() { scripts/ci-tiers --last --warn | tr '\n' ' '; }
assert_eq "$(warned)" "ci-tiers: 5 of 7 tiers have no whole run in tests/tiers-run "
commit_in src/a 2
assert_match "$(warned)" "^ci-tiers: the last whole run of two was at $first, 7 commits ago, 3 of them in what it tests ci-tiers: 5 of 7"
tiers 1 two red
assert_eq "$(warned)" "ci-tiers: 5 of 7 tiers have no whole run in tests/tiers-run "
first=$(git rev-parse --short=12 HEAD)
commit_in src/b 10
assert_match "$(warned)" "ci-tiers: the last whole run of red was at $first, 10 commits ago"
