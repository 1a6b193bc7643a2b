#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry hwcheck against a port itself and between two: its facts are those of docs/hwcheck-softnic.json, what the device does wrong
# fails by name, and what is said to its listener by others does no harm.  claim TM70.
. "$(dirname "$0")/lib.sh"
NICS=2
# Silence is short: what it is called does not depend on that.
export SOFTNIC_RETRY_US=3000
page=$ROOT/docs/hwcheck-softnic.json

# The rows of a port, without those of transfers too large for this test.
rows() { jq -S '.ports[0].rows[] | select(.name | test("[.](67108864|1073741824)$") | not)' "$1"; }
# `row NAME FIELD` of the last result.
row() { jq -r --arg n "$1" ".ports[0].rows[] | select(.name == \$n) | $2" "$T/now.json"; }
check() {
	gantry hwcheck --device mlx5_0 --json --no-times --largest 2m "$@" >"$T/now.json" 2>"$T/err"
	rc=$?
	jq -e .hwcheck "$T/now.json" >/dev/null || fail "no JSON: $(cat "$T/err")"
}

# ---- a port against itself

check
assert_eq $rc 0 "a port against itself"
diff <(rows "$page") <(rows "$T/now.json") >"$T/diff" ||
	fail "not what docs/hwcheck-softnic.json says; gantry hwcheck --json --no-times makes that anew: $(cat "$T/diff")"
assert_eq "$(jq -r '.ports[0].rows[] | select(.result == "skip" and (.why // "") == "") | .name' "$T/now.json")" "" "skipped without a reason"
grep -q '_us"\|"ms"\|firmware' "$T/now.json" && fail "--no-times has times"

# ---- between two

on_nic=(scripts/with-softnic -d 2)
cd "$ROOT" || exit 1
"${on_nic[@]}" "$BUILD/gantry" hwcheck --listen --device mlx5_1 --largest 2m :0 >"$T/listen" 2>&1 &
listener=$!
wait_for 60 grep -q 'listening on 127.0.0.1 port' "$T/listen"
port=$(sed -n 's/^listening on .* port \([0-9]*\) .*/\1/p' "$T/listen")
check "127.0.0.1:$port"
assert_eq $rc 0 "between two"
diff <(rows "$page" | jq -S 'select(.name | test("^class") | not)') <(rows "$T/now.json" | jq -S 'select(.name | test("^class") | not)') >"$T/diff" ||
	fail "between two ports it is something else: $(cat "$T/diff")"
assert_match "$(row class.write .why)" 'no network interface'
assert_eq "$(row write.67108864 .result)" skip

# Whatever comes, the listener goes on, and keeps nothing.
no_memory() { [ "$(softnicctl stats --json | jq '[.[] | select(.comm == "gantry" and .alive) | .mrs] | add // 0')" = 0 ]; }
say() { timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/'"$port"'; cat >&3; timeout 0.3 cat <&3' | wc -c; }
ask() { # OP SLOT AT LEN
	printf 'GHQ1'
	# shellcheck disable=SC2059
	printf "$(printf '\\x%02x\\x%02x\\x00\\x00\\x00\\x00\\x00\\x07\\x00\\x00\\x00\\x07' "$1" "$2")"
	# shellcheck disable=SC2059
	printf "$(printf '%016x%016x%016x%016x%032x' 1 "$3" "$4" 0 0 | sed 's/../\\x&/g')"
}
assert_eq "$(head -c 64 /dev/zero | say)" 0 "no message of ours"
assert_eq "$(printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' | say)" 0 "another protocol"
assert_eq "$(ask 2 9 0 4096 | say)" 0 "no such slot"
assert_eq "$(ask 2 0 1 18446744073709551615 | say)" 0 "a length that wraps"
assert_eq "$(ask 2 0 0 4294967296 | say)" 0 "more than a gibibyte"
assert_eq "$(ask 2 0 0 1073741824 | say)" 128 "more than --largest is an answer"
assert_eq "$({ ask 2 0 0 65536; ask 4 0 65536 1; ask 3 1 0 1; ask 5 0 0 0; ask 5 0 0 0; ask 7 0 0 0; ask 7 0 0 0; } | say)" $((7 * 128)) "nonsense in order"
assert_eq "$({ ask 2 0 0 65536; ask 2 1 0 65536; printf 'GHQ1half'; } | say)" 256 "half a message"
wait_for 60 no_memory
check --only many "127.0.0.1:$port"
assert_eq $rc 0 "after all of that"
assert_eq "$(jq -r '[.ports[0].rows[].name] | join(" ")' "$T/now.json")" "many.write many.read" "--only"
kill -TERM $listener
wait $listener 2>/dev/null
# The process of with-softnic is the program.
check --only many "127.0.0.1:$port"
assert_eq $rc 1 "nobody listens"
assert_match "$(cat "$T/err")" 'does gantry hwcheck --listen run there'

# ---- what is wrong has a name

fails() { assert_eq $rc 1 "$2"; assert_eq "$(row "$1" .result)" fail "$2"; assert_match "$(row "$1" .why)" "$2"; softnicctl rule clear; }
softnicctl rule add op=write minlen=65536 corrupt=5 limit=1 >/dev/null
check --only write
fails write.65536 'not those that were sent'
softnicctl rule add op=read minlen=4097 torn=50 limit=1 >/dev/null
check --only read
fails read.4097 'not those of the far side'
# A device without DC answers no question, and says which two to look at.
softnicctl rule add op=modify_qp error=EINVAL >/dev/null
check
assert_match "$(row write.1 .why)" 'no DC transport'
fails dci.reads 'no initiator comes to RTS'
# Fewer READs at once than the device says.
export SOFTNIC_DC_RD_ATOMIC=4
check --only dci
unset SOFTNIC_DC_RD_ATOMIC
assert_eq "$(row dci.reads .facts.largest)" 4
assert_eq "$(row dci.reads '.facts["8"]')" 'RTR to RTS: Invalid argument'

gantry hwcheck --largest 2g >/dev/null 2>&1
assert_eq $? 2 "--largest 2g"
gantry hwcheck --device mlx5_9 >"$T/out" 2>&1
assert_eq $? 1 "no such device"
assert_match "$(cat "$T/out")" 'no RDMA port of that name'
NICS=1 gantry hwcheck --only write.4 >"$T/out" 2>&1 || fail "the table: $(cat "$T/out")"
assert_match "$(cat "$T/out")" 'pass +write.4096 +us='
