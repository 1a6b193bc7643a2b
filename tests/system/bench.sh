#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/against, on a repository whose bench/run measures nothing but says what is in a file: which revision it builds, the turns, the
# ratios and their direction, when a figure is worse, what it says of figures that cannot be measured.
. "$(dirname "$0")/lib.sh"
command -v git >/dev/null || skip "no git"
R=$T/tree
mkdir -p "$R/bench"
cp "$ROOT/bench/against" "$R/bench/against"
cd "$R" || fail "no $R"
printf 'all bench-bin:\n\t@echo "$@" >>built\n' >Makefile
cat >bench/run <<'END'
#!/bin/bash
# Each line of `values`: a figure, and what it has in each turn, again and again.
cd "${0%/*}/.." || exit 2
if [ "${1:-}" = --list ] && [ -f no-list ]; then echo "run: FAIL: no figure --list; have: $(<no-list)" >&2; exit 1; fi
if [ "${1:-}" = --list ] && [ -f list ]; then cat list; exit; fi
if [ "${1:-}" = --list ]; then printf '%s\n' 'store_a more ratio' 'store_less less ratio' 'wire_ours more ours' 'list_1m more ratio no-such-tool'; exit; fi
[ -d build ] || mkdir -p build
[ ! -s build/turn ] || read -r turn <build/turn
turn=$((${turn:-0} + 1))
echo $turn >build/turn
echo "$(<name) $*" >>"$LOG"
declare -A values=()
while read -r f v; do values[$f]=$v; done <values
for f in "$@"; do [ -n "${values[$f]:-}" ] || { echo "run: FAIL: no figure $f" >&2; exit 1; }; done
begin='['
for f in "$@"; do
	read -ra v <<<"${values[$f]}"
	v=${v[(turn - 1) % ${#v[@]}]}
	printf %s "$begin"
	begin=$',\n'
	[ "$v" != void ] || { printf %s "{\"figure\": \"$f\", \"void\": \"because\"}"; continue; }
	printf %s "{\"figure\": \"$f\", \"ours\": $v, \"reference\": 100, \"ratio\": $v, \"net\": null, \"unit\": \"u\"}"
done >build/bench.json
echo ']' >>build/bench.json
END
chmod +x bench/run
echo /build >.gitignore
export LOG=$T/log
g() { git -c user.name=x -c user.email=x@x -c commit.gpgsign=false "$@" >/dev/null 2>&1 || fail "git $*"; }
# revision NAME VALUES...: a commit, and its tag.
revision() { echo "$1" >name; printf '%s\n' "${@:2}" >values; g add -A; g commit -m "$1"; g tag "$1"; rm -rf build/turn; }
g init
revision old 'store_a 2' 'store_less 2' 'wire_ours 2'
# against WANTED-EXIT WORDS...: the table in $T/table.
against() {
	local want=$1 rc
	shift
	: >"$LOG"
	rm -f build/turn build/against/build/turn
	bench/against "$@" >"$T/table" 2>"$T/said"
	rc=$?
	[ $rc = "$want" ] || { cat "$T/table" "$T/said" >&2; fail "exit $rc, wanted $want: $*"; }
}
row() { grep -E "^$1 +$2\$" "$T/table" >/dev/null || { cat "$T/table" "$T/said" >&2; fail "no row $1 $2"; }; }

# The same on both sides, in turns, the first of them alternating; one figure lacks a tool.
revision same 'store_a 2' 'store_less 2' 'wire_ours 2'
ROUNDS=3 against 0 old
row store_a '2 +2 u +1\.000 +0\.000 +same'
row list_1m '.*not measured: no-such-tool is missing.*'
assert_eq "$(tail -n 1 "$T/table")" "3 measured, 0 worse, 1 not measured"
assert_eq "$(tr '\n' ,  <"$LOG")" "old store_a store_less,same store_a store_less,same store_a store_less,old store_a store_less,old store_a store_less,same store_a store_less,old wire_ours,same wire_ours,same wire_ours,old wire_ours,old wire_ours,same wire_ours," "the turns"
assert_eq "$(git -C build/against rev-parse HEAD)" "$(git rev-parse old)"
assert_eq "$(<build/against/name)" old

# Half as much is worse where more is better, and better where less is.
revision half 'store_a 1' 'store_less 1' 'wire_ours 1'
ROUNDS=3 against 1 old
row store_a '2 +1 u +0\.500 +0\.000 +WORSE'
row store_less '2 +1 u +2\.000 +0\.000 +better'
row wire_ours '2 +1 u +0\.500 +0\.000 +WORSE'
assert_match "$(tr -d '\n' <build/bench-against.json)" '"figure": "store_less", +"verdict": "better", +"new_to_old": 2.0,'
ROUNDS=3 against 0 old store_less

# Within two hundredths, or within the spread of the rounds, it is not worse.
revision near 'store_a 1.97' 'store_less 2' 'wire_ours 4 1'
ROUNDS=3 against 0 old store_a wire_ours store_a
row store_a '.* 0\.98[05] .*same'
row wire_ours '.* 0\.500 +0\.750 +same'
revision below 'store_a 1.94' 'store_less 2'
ROUNDS=3 against 1 old store_a

# A figure that one side has not: the others of its group are measured all the same.
revision fewer 'store_a 2' 'wire_ours 2'
ROUNDS=3 against 0 old
row store_less '.*not measured: new: run: FAIL: no figure store_less'
row store_a '2 +2 u +1\.000 .*'
ROUNDS=3 against 2 old list_1m
assert_eq "$(tail -n 1 "$T/table")" "0 measured, 0 worse, 1 not measured"

# A row that is void, in whatever round: the others are measured to the end, and nothing else is measured in its place.
revision void 'store_a 2' 'store_less 2 void' 'wire_ours void'
ROUNDS=3 against 0 old
row store_a '2 +2 u +1\.000 .*'
row store_less '.*not measured: new: void: because'
row wire_ours '.*not measured: new: void: because'
assert_eq "$(tail -n 1 "$T/table")" "1 measured, 0 worse, 3 not measured"
assert_eq "$(tr '\n' ,  <"$LOG")" "old store_a store_less,void store_a store_less,void store_a store_less,old store_a store_less,old store_a,void store_a,old wire_ours,void wire_ours," "the turns"

# A figure measured as 0 has no ratio to anything; the others have theirs.
revision zero 'store_a 2' 'store_less 0' 'wire_ours 0'
ROUNDS=3 against 0 old
row store_a '2 +2 u +1\.000 .*'
row store_less '.*not measured: new: measured as 0'
row wire_ours '.*not measured: new: measured as 0'
assert_eq "$(tail -n 1 "$T/table")" "1 measured, 0 worse, 3 not measured"

# The pinned revision moves only when each figure that it has was measured and has lost nothing, not even what passes for noise, and the tree
# is committed.
printf '%s\n' 'store_a more ratio' 'store_less less ratio' >list
revision pin 'store_a 2' 'store_less 2'
git rev-parse pin >bench/PINNED
echo 'new_one more ratio' >>list
revision grown 'store_a 2' 'store_less 2' 'new_one 3'
head() { git rev-parse HEAD | cut -c 1-12; }
ends() { assert_eq "$(tail -n 2 "$T/table")" "pinned: $1"$'\n'"$2" "$(cat "$T/table" "$T/said")"; }
ROUNDS=3 against 0 --pinned
row new_one '.*not measured: old: it has no such figure'
ends "the revision may move to $(head) (--move)" '2 passed, 0 failed, 1 skipped'
assert_eq "$(<bench/PINNED)" "$(git rev-parse pin)"
revision loss 'store_a 1.98' 'store_less 2' 'new_one 3'
ROUNDS=3 against 0 --pinned --move
row store_a '.* 0\.990 .*same'
ends 'the revision stays: store_a: 0.990' '2 passed, 0 failed, 1 skipped'
revision slower 'store_a 2' 'store_less 4' 'new_one 3'
ROUNDS=3 against 1 --pinned --move
ends 'the revision stays: store_less: 0.500' '1 passed, 1 failed, 1 skipped'
revision faster 'store_a 3' 'store_less 2' 'new_one 3'
ROUNDS=3 against 0 --pinned --move store_a
ends 'the revision stays: store_less: not measured' '1 passed, 0 failed, 0 skipped'
echo more >>name
ROUNDS=3 against 0 --pinned --move
ends 'the revision stays: the tree has changes that no commit has' '2 passed, 0 failed, 1 skipped'
g checkout name
assert_eq "$(<bench/PINNED)" "$(git rev-parse pin)"
ROUNDS=3 against 0 --pinned --move
ends "the revision is now $(head)" '2 passed, 0 failed, 1 skipped'
assert_eq "$(<bench/PINNED)" "$(git rev-parse faster)"
ROUNDS=3 against 2 --move old

# A revision from before --list says its figures when it refuses one.
echo store_a >no-list
revision ancient 'store_a 2'
g rm no-list
revision later 'store_a 2' 'store_less 2' 'new_one 3'
ROUNDS=3 against 0 ancient
row store_less '.*not measured: old: it has no such figure'
assert_eq "$(tail -n 1 "$T/table")" "1 measured, 0 worse, 2 not measured"
g rm list

# The pinned revision of this tree is one of its history.
pin=$(<"$ROOT/bench/PINNED")
assert_match "$pin" '^[0-9a-f]{40}$'
[ "$(git -C "$ROOT" rev-parse --is-shallow-repository 2>/dev/null)" != false ] || git -C "$ROOT" merge-base --is-ancestor "$pin" HEAD || fail "no $pin before HEAD"

against 2 nowhere
assert_match "$(<"$T/said")" 'nowhere'
against 2 old no_such
assert_match "$(<"$T/said")" 'no figure no_such; have: store_a '
ROUNDS=2 against 2 old
g checkout old
printf 'all bench-bin:\n\t@echo broken; false\n' >Makefile
revision broken 'store_a 2'
g checkout same
ROUNDS=3 against 2 broken
assert_match "$(<"$T/said")" 'broken does not build'
