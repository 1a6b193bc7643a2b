#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry hwcheck against a port itself and between two, over DC and RC: its facts are those of docs/hwcheck-softnic.json, what the device
# does wrong fails by name, and what is said to its listener by others does no harm.  claim TM70.
. "$(dirname "$0")/lib.sh"
NICS=2
# Silence is short: what it is called does not depend on that.
export SOFTNIC_RETRY_US=3000
page=$ROOT/docs/hwcheck-softnic.json

# The rows of a port over a transport, without those of transfers too large for this test.
rows() { jq -S --arg t "$2" '.ports[] | select(.transport == $t) | .rows[] | select(.name | test("[.](67108864|1073741824)$") | not)' "$1"; }
# `row NAME FIELD [TRANSPORT]` of the last result.
row() { jq -r --arg n "$1" --arg t "${3:-dc}" ".ports[] | select(.transport == \$t) | .rows[] | select(.name == \$n) | $2" "$T/now.json"; }
check() {
	gantry hwcheck --device mlx5_0 --json --no-times --largest 2m "$@" >"$T/now.json" 2>"$T/err"
	rc=$?
	jq -e .hwcheck "$T/now.json" >/dev/null || fail "no JSON: $(<"$T/err")"
}

# ---- a port against itself

check
assert_eq $rc 0 "a port against itself"
assert_eq "$(jq -r '[.ports[] | .port + " " + .transport] | join(", ")' "$T/now.json")" "mlx5_0:1 dc, mlx5_0:1 rc"
for t in dc rc; do
	diff <(rows "$page" $t) <(rows "$T/now.json" $t) >"$T/diff" ||
		fail "over $t not what docs/hwcheck-softnic.json says; gantry hwcheck --json --no-times makes that anew: $(<"$T/diff")"
done
assert_eq "$(row write.1048577 .result rc) $(row read.1048577 .result rc) $(row cost.rc .result rc)" "pass pass pass"
assert_eq "$(row rc.reads .facts.largest rc)" 16
assert_eq "$(row dci.reads .result rc)$(row rc.reads .result dc)" "" "checks of the other transport"
assert_eq "$(jq -r '.ports[].rows[] | select(.result == "skip" and (.why // "") == "") | .name' "$T/now.json")" "" "skipped without a reason"
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
for t in dc rc; do
	diff <(rows "$page" $t | jq -S 'select(.name | test("^class") | not)') <(rows "$T/now.json" $t | jq -S 'select(.name | test("^class") | not)') >"$T/diff" ||
		fail "between two ports it is something else over $t: $(<"$T/diff")"
done
assert_match "$(row class.write .why)" 'no network interface'
assert_eq "$(row write.67108864 .result)" skip

# Whatever comes, the listener goes on, and keeps nothing.
no_memory() { [ "$(softnicctl stats --json | jq '[.[] | select(.comm == "gantry" and .alive) | .mrs] | add // 0')" = 0 ]; }
# Says all of standard input, and how many bytes come until the listener ends the connection: it does after the last question.
say() {
	timeout 60 /usr/bin/python3 -c 'if True:
		import socket, sys
		s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		nr = 0
		try:
		    s.sendall(sys.stdin.buffer.read())
		    s.shutdown(socket.SHUT_WR)
		    while got := s.recv(4096):
		        nr += len(got)
		except OSError:
		    pass # ended before all was read
		print(nr)' "$port"
}
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
# A connection of a slot that is none of RC, and of one that is not there.
assert_eq "$({ ask 2 0 0 65536; ask 9 0 77 0; ask 9 1 77 0; } | say)" $((3 * 128)) "connections that cannot be"
wait_for 60 no_memory
check --only many "127.0.0.1:$port"
assert_eq $rc 0 "after all of that"
assert_eq "$(jq -r '[.ports[0].rows[].name] | join(" ")' "$T/now.json")" "many.write many.read" "--only"
check --only many --transport rc "127.0.0.1:$port"
assert_eq $rc 0 "over RC alone"
assert_eq "$(jq -r '[.ports[] | .transport, .rows[].name] | join(" ")' "$T/now.json")" "rc many.write many.read" "--transport"
kill -TERM $listener
wait $listener 2>/dev/null
# The process of with-softnic is the program.
check --only many "127.0.0.1:$port"
assert_eq $rc 1 "nobody listens"
assert_match "$(<"$T/err")" 'does gantry hwcheck --listen run there'

# A far side of an earlier version makes no queue pairs of RC: that is said, and it is asked for none.
/usr/bin/python3 - "$T/old" <<-'END' &
	import os, socket, sys
	s = socket.create_server(("127.0.0.1", 0))
	open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
	os.rename(sys.argv[1] + ".new", sys.argv[1])
	c = s.accept()[0]
	c.recv(64, socket.MSG_WAITALL)
	c.sendall(b"GHA1" + bytes(62) + b"\5" + bytes(61))
	assert c.recv(1) == b""
END
old=$!
wait_for 60 test -e "$T/old"
check --only write.1 --transport rc "127.0.0.1:$(<"$T/old")"
wait $old || fail "it was asked for more than its name"
assert_eq "$(row write.1 .result rc)" skip
assert_match "$(row write.1 .why rc)" 'the gantry of the other host does not know RC'

# ---- what is wrong has a name

fails() { assert_eq $rc 1 "$2"; assert_eq "$(row "$1" .result)" fail "$2"; assert_match "$(row "$1" .why)" "$2"; softnicctl rule clear; }
softnicctl rule add op=write minlen=65536 corrupt=5 limit=1 >/dev/null
check --only write
fails write.65536 'not those that were sent'
softnicctl rule add op=read minlen=4097 torn=50 limit=1 >/dev/null
check --only read
fails read.4097 'not those of the far side'
softnicctl rule add op=write minlen=65536 corrupt=5 limit=1 >/dev/null
check --only write --transport rc
assert_eq "$rc $(row write.65536 .result rc)" "1 fail" "over RC"
assert_match "$(row write.65536 .why rc)" 'not those that were sent'
softnicctl rule clear
# A device without DC answers no question, and says which two to look at.
softnicctl rule add op=modify_qp error=EINVAL >/dev/null
check
assert_match "$(row write.1 .why)" 'no DC transport'
assert_match "$(row write.1 .why rc)" 'no RC transport: no queue pair comes to RTS'
assert_match "$(row rc.reads .why rc)" 'no queue pair comes to RTS, not even with one READ'
fails dci.reads 'no initiator comes to RTS'
# Fewer READs at once than the device says.
export SOFTNIC_DC_RD_ATOMIC=4
check --only dci
unset SOFTNIC_DC_RD_ATOMIC
assert_eq "$(row dci.reads .facts.largest)" 4
assert_eq "$(row dci.reads '.facts["8"]')" 'RTR to RTS: Invalid argument'

# A device without DC: over RC alone, and where DC is asked for every check of it names the reason.
export SOFTNIC_DC=0
check --only write.4
assert_eq "$rc $(jq -r '[.ports[] | .transport, .rows[].result] | join(" ")' "$T/now.json")" "0 rc pass pass pass" "without DC"
check --only write.1 --transport dc
assert_match "$(row write.1 .why)" 'no DC transport: not an mlx5 device'
unset SOFTNIC_DC

gantry hwcheck --transport ud >"$T/out" 2>&1
assert_eq $? 2 "--transport ud"
assert_match "$(<"$T/out")" '--transport wants auto, dc or rc'
gantry hwcheck --largest 2g >/dev/null 2>&1
assert_eq $? 2 "--largest 2g"
gantry hwcheck --device mlx5_9 >"$T/out" 2>&1
assert_eq $? 1 "no such device"
assert_match "$(<"$T/out")" 'no RDMA port of that name'
NICS=1 gantry hwcheck --only write.4 >"$T/out" 2>&1 || fail "the table: $(<"$T/out")"
assert_match "$(<"$T/out")" 'pass +write.4096 +us='
assert_eq "$(grep -c '^mlx5_0:1, [DR]C$' "$T/out")" 2 "a table for each transport"

# InfiniBand, on a fabric of its own: a LID instead of a GID.
mkdir "$T/ib"
export SOFTNIC_DIR=$T/ib SOFTNIC_IB=0
check --only write.4
assert_eq "$rc $(jq -r '[.ports[] | .transport, .rows[].result] | join(" ")' "$T/now.json")" "0 dc pass pass pass rc pass pass pass" "on InfiniBand"
check --only device.limits
assert_eq "$(row device.limits .facts.link rc)" infiniband
