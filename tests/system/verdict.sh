#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/verdict in a tree of its own, with a runner that fails as it is told: which failures are excused, and after how many runs.
. tests/system/lib.sh

mkdir -p "$T/tree/scripts" "$T/tree/tests" "$T/tree/build/release/log"
cp scripts/verdict "$T/tree/scripts/"
cp tests/unsteady "$T/tree/tests/"
# The runner notes its arguments, and fails in its run number $BAD of those that it is asked for.
cat >"$T/tree/scripts/run-tests" <<'R'
#!/bin/bash
echo "JOBS=$JOBS $*" >>"$T/ran"
[ -z "${BAD:-}" ]
R
# The tier: it has the test $1 fail with code $2 and with the output $3.
cat >"$T/tree/tier" <<'R'
#!/bin/bash
[ -n "${1:-}" ] || exit 0
echo "$3" >"build/release/log/${1//\//.}.log"
echo "release $1 $2" >>"$FAILED"
exit 2
R
chmod +x "$T/tree/scripts/run-tests" "$T/tree/tier"
export T

# Judges: the result, then what the log ends with.
judge() { : >"$T/ran"; (cd "$T/tree" && scripts/verdict ./tier "$@") >"$T/said" 2>&1; }
lines() { grep -vc '^#' "$T/tree/tests/unsteady"; }

unset CI BAD
judge || fail "a tier that passes lands"
[ ! -s "$T/ran" ] || fail "nothing is repeated for a tier that passes"

judge unit/ops/test_get 1 "[  ERROR   ] --- 1 != 2" || fail "a test that passes its thirty runs is excused"
assert_match "$(<"$T/ran")" '^JOBS=3 --variant release --unit --exact --times 30 unit/ops/test_get$'
assert_match "$(tail -n 1 "$T/said")" '^verdict: line for tests/unsteady: unit/ops/test_get [^ ]+ .*1 != 2$'
[ "$(lines)" = 1 ] || fail "run by hand, the script adds the line"

judge unit/ops/test_get 1 "[  ERROR   ] --- 1 != 2" && fail "a test that tests/unsteady names decides"
[ ! -s "$T/ran" ] || fail "a test that decides is not repeated"

BAD=1 judge unit/set_disk/test_two 1 "[  ERROR   ] --- 1 != 2" && fail "a test with threads that fails again is not excused"
assert_match "$(<"$T/ran")" ' unit/set_disk/test_two$'
BAD=1 judge system/put 1 "FAIL: x" && fail "a test that fails in one of its thirty runs is not excused"
[ "$(lines)" = 1 ] || fail "a failure that is not excused adds no line"

CI=true judge system/put 1 "FAIL: x" || fail "in CI the same failure is excused"
[ "$(lines)" = 1 ] || fail "in CI the file stays as it is"
assert_match "$(tail -n 1 "$T/said")" '^verdict: line for tests/unsteady: system/put '

for t in unit/set/test_mem_engine unit/model/test_quota_book sim/pairs fuzz/token_parse lint lost; do
	judge $t 1 "FAIL: x" && fail "$t is never excused"
	[ ! -s "$T/ran" ] || fail "$t is not repeated"
done
for said in "AddressSanitizer: heap-use-after-free" "check failed: x" "x.c:1: runtime error: y" "Segmentation fault"; do
	judge unit/ops/test_get2 1 "$said" && fail "$said is never excused"
done
judge unit/ops/test_get2 124 "x" && fail "a hang is never excused"

printf 'a 1 x\nb 2 y\n' >>"$T/tree/tests/unsteady"
judge && fail "three entries refuse a tier that passes"
assert_match "$(<"$T/said")" '3 entries'
exit 0
