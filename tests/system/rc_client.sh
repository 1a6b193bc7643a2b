#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry and libgantry over RC: `--transport`, the choice between DC, RC and HTTP with adapters without DC at the client, at the server and
# at both, the connections that requests share, and what becomes of connections that are lost.
CORES=2
RC='rc: { shim: on, connect_rate: 1000 }'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
unset "${!AWS_@}"
export PYTHONPATH=$ROOT/python PYTHONDONTWRITEBYTECODE=1 GANTRY_LIBRARY=$BUILD/libgantry.so.0
cd "$T" || exit 1

# serve DC RC: a daemon with or without DC (1 or 0), and with that section rc, at the address of the one before it.
serve() {
	RDMA="{ allow_special: [loopback, self], timeout: 12, retry_cnt: 3, $2 }"
	[ -z "$DAEMON_PID" ] || stop_daemon
	write_config
	[ -z "$S3" ] || sed -i "0,/127.0.0.1:0/s//$S3/" gantryd.yaml
	[ -d disk0 ] || format_store
	SOFTNIC_DC=$1 daemon_run
	make_buckets
}
# fields NAME...: of the JSON in the file say, with blanks between them.
fields() {
	local f out='' say
	say=$(<say)
	for f; do
		[[ $say =~ \"$f\":([^,}]*) ]] || BASH_REMATCH=('' '')
		out+="${out:+ }${BASH_REMATCH[1]//\"/}"
	done
	echo "$out"
}
rc_of() { "$@" >say 2>&1; echo $?; }
# Of commands that have ended nothing is left at the server.
no_connections() { [ "$(metrics 'gantry_rc_connections "making"' 'gantry_rc_connections "ready"' 'gantry_rc_connections "leased"')" = "0 0 0" ]; }
declined() { metric gantry_declines_total "\"$1\""; }

for size in 1 4096 70001 1048576 16777216; do bytes "pattern:$size" $size >"in.$size"; done

# ---- bytes, and the choice

# chosen WORDS...: what a put and a get use.
chosen() {
	assert_eq "$(rc_of gantry "$@" --json put in.70001 "$URL_S3/bkt/chosen")" 0 "$(<say)"
	local put
	put=$(fields path transport requests)
	assert_eq "$(rc_of gantry "$@" --json get "$URL_S3/bkt/chosen" out)" 0 "$(<say)"
	assert_same in.70001 out
	echo "$put, $(fields path transport requests)"
}
moves() {
	local size
	for size in 1 4096 70001 1048576 16777216; do
		assert_eq "$(rc_of gantry --transport rc --require-rdma --checksum --json put "in.$size" "$URL_S3/bkt/o$size")" 0 "$(<say)"
		assert_eq "$(fields path transport rdma_bytes)" "rdma rc $size"
		assert_eq "$(rc_of gantry --transport rc --require-rdma --checksum --json -j 16 get "$URL_S3/bkt/o$size" out)" 0 "$(<say)"
		assert_eq "$(fields path transport rdma_bytes)" "rdma rc $size"
		assert_same "in.$size" out
	done
	gantry --transport rc --require-rdma -q --range 1000-69999 cat "$URL_S3/bkt/o70001" >out || fail "cat"
	tail -c +1001 in.70001 | head -c 69000 | cmp - out || fail "a range"
	wait_for 60 no_connections
}
serve 1 "$RC"
export SOFTNIC_DC=1
moves
assert_eq "$(chosen)" "rdma dc 1, rdma dc 1"
assert_eq "$(chosen --transport dc)" "rdma dc 1, rdma dc 1"
assert_eq "$(chosen --transport rc)" "rdma rc 2, rdma rc 2"
assert_match "$(gantry --transport rc put in.1 "$URL_S3/bkt/said")" "by RDMA \(RC\) in"
# It says which, and why.
gantry -v get "$URL_S3/bkt/said" out >say 2>&1 || fail "get"
assert_match "$(<say)" "gantry: port mlx5_0:1.*: dc, rc.*by RDMA \(DC\) in"
# This client has no DC.
export SOFTNIC_DC=0
assert_eq "$(chosen)" "rdma rc 2, rdma rc 2"
assert_eq "$(rc_of gantry --transport dc put in.1 "$URL_S3/bkt/x")" 1
assert_match "$(<say)" "transport dc: mlx5_0 port 1 cannot do DC"
assert_eq "$(rc_of gantry --transport ib put in.1 "$URL_S3/bkt/x")" 2
assert_match "$(<say)" "--transport wants auto, dc or rc"
assert_eq "$(rc_of gantry --transport)" 2 "$(<say)"
assert_match "$(<say)" "requires an argument.*gantry --help. shows what there is"
assert_eq "$(rc_of gantry --scality --transport rc put in.1 "$URL_SCAL/x")" 1
assert_match "$(<say)" "the scality dialect has no RC"
assert_eq "$(rc_of gantry --scality --json put in.1 "$URL_SCAL/x")" 0
assert_eq "$(fields path reason)" "http mlx5_0 port 1 cannot do DC (dynamically connected) transport"
serve 0 "$RC"
moves
assert_eq "$(chosen)" "rdma rc 2, rdma rc 2"
# This server has no DC: it declines one token of a process, and not one for each request.
export SOFTNIC_DC=1
moves
assert_eq "$(chosen)" "rdma rc 3, rdma rc 3"
assert_eq "$(rc_of gantry --verbose get "$URL_S3/bkt/chosen" out)" 0 "$(<say)"
assert_match "$(<say)" "$URL_S3: no transfers by DC for a minute: no-device.*mlx5_0:1.*: connected by RC to $URL_S3.*by RDMA \(RC\)"
assert_eq "$(rc_of gantry --transport dc --json put in.1 "$URL_S3/bkt/x")" 0
assert_eq "$(fields path reason)" "http no-device"
before=$(declined no-device)
for i in {1..20}; do echo in.4096; done >list
assert_eq "$(rc_of gantry --require-rdma -j 1 mput list "$URL_S3/bkt/many/")" 0 "$(<say)"
assert_eq "$(declined no-device)" $((before + 1))
assert_eq "$(metric gantry_rc_unknown_total)$(metric gantry_rc_busy_total)" 00

# InfiniBand, on a fabric of its own: a LID beside the GID, and a service level that both ends have.
stop_daemon
mkdir "$T/ib"
export SOFTNIC_DIR=$T/ib SOFTNIC_IB=0 SOFTNIC_DC=0
serve 0 "$RC"
curl_admin /rails | grep -q '"link":"infiniband"' || fail "the rail is not on InfiniBand"
moves
assert_eq "$(chosen --service-level 3)" "rdma rc 2, rdma rc 2"
stop_daemon
export SOFTNIC_DIR=$T/nic
unset SOFTNIC_IB

# ---- several requests at a time

# busy_is_0: no two requests of a client have named one connection (connection-busy).
busy_is_0() { assert_eq "$(metric gantry_rc_busy_total)" 0 "requests with one connection"; }
made() { metric gantry_rc_connects_total '"made"'; }
many() {
	for i in {1..64}; do echo "f$i"; done >list
	mkdir -p from to
	for i in {1..64}; do [ -e "from/f$i" ] || bytes "pattern:$i" $((i * 5003)) >"from/f$i"; done
	rm -f to/*
	gantry --transport rc --require-rdma -q -j 16 -C from mput list "$URL_S3/bkt/m" || fail mput
	gantry --transport rc --require-rdma -q -j 16 -C to mget list "$URL_S3/bkt/m" || fail mget
	diff -r from to || fail "mput and mget changed files"
	busy_is_0
	wait_for 60 no_connections
}
export SOFTNIC_DC=0
serve 0 "$RC"
many
[ "$(made)" -le 32 ] || fail "$(made) connects of two commands with 16 jobs"
[ "$(made)" -ge 4 ] || fail "$(made) connects: requests took turns"
# Two connections for 16 jobs: requests wait for each other, and none goes over HTTP.
serve 0 "rc: { shim: on, connect_rate: 1000, per_peer: 2 }"
many
[ "$(metric gantry_rc_connects_total '"refused"')" -ge 1 ] || fail "no connect was refused"
gantry --transport rc --require-rdma -q -j 16 get "$URL_S3/bkt/o16777216" out || fail "ranges"
assert_same in.16777216 out
# The bucket of connect_rate is empty after the first: others wait for it, or share.
serve 0 "rc: { shim: on, connect_rate: 1 }"
many

# ---- a client that lives longer than its connections: serve() again and again below it

cat >client.py <<'END'
import sys
import gantry

try:
    gantry.Client(transport="ib")
    sys.exit("a transport that there is not")
except ValueError:
    pass
client = gantry.Client(sys.argv[1], transport="rc", require_rdma=True, split_above=6 << 20, part_size=5 << 20, jobs=4)
want = bytes(range(256)) * 70000
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == "put":
            result = client.put(words[1], want)
        else:
            data = client.get(words[1])
            assert data == want, "other bytes"
            result = data.result
        print(result.path, result.transport, flush=True)
    except gantry.Error as e:
        print("error", e.reason or e, flush=True)
client.close()
END
serve 0 "$RC"
# A library with the sanitizer needs its runtime ahead of all; leaks of Python are not ours.
python=(/usr/bin/python3)
case $BUILD in */asan) python=(env "LD_PRELOAD=$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 /usr/bin/python3) ;; esac
coproc PY { nic "${python[@]}" client.py "$URL_S3/bkt"; }
# ask WORDS...: what the client answers.
ask() {
	local line
	echo "$*" >&"${PY[1]}"
	read -rt 120 line <&"${PY[0]}" || fail "$*: the client has ended"
	echo "$line"
}
# In parts, and in ranges.
assert_eq "$(ask put parts)" "rdma rc"
assert_eq "$(ask get parts)" "rdma rc"
assert_eq "$(gantry --json head "$URL_S3/bkt/parts" | tee say | grep -c -- '-4')" 1 "$(<say)"
# The daemon is restarted, and knows none of the connections.
serve 0 "$RC"
assert_eq "$(ask get parts)" "rdma rc"
[ "$(metric gantry_rc_unknown_total)" -ge 1 ] || fail "the client did not use the connections that it had"
serve 0 "$RC"
assert_eq "$(ask put parts)" "rdma rc"
# The server closes what is unused, before the client does.
serve 0 "rc: { shim: on, connect_rate: 1000, idle: 1s }"
assert_eq "$(ask get parts)" "rdma rc"
idle_closed() { [ "$(metric gantry_rc_closed_total '"idle"')" -ge 1 ]; }
wait_for 60 idle_closed
assert_eq "$(ask get parts)" "rdma rc"
more_closed() { [ "$(metric gantry_rc_closed_total)" -gt "$before" ]; }
# A connection breaks amid a GET, and amid a PUT: the request is repeated with another one.
before=$(metric gantry_rc_closed_total)
softnicctl rule add op=write status=REM_OP limit=1 >/dev/null || fail "rule"
assert_eq "$(ask get parts)" "rdma rc"
softnicctl rule clear
wait_for 60 more_closed
before=$(metric gantry_rc_closed_total)
softnicctl rule add op=read status=REM_OP limit=1 >/dev/null || fail "rule"
assert_eq "$(ask put parts)" "rdma rc"
softnicctl rule clear
wait_for 60 more_closed
assert_eq "$(ask get parts)" "rdma rc"
busy_is_0
# RC is switched off: that is said, and not asked for each request.
serve 0 "rc: { shim: off }"
# The first call has a connection from before, unless the daemon took longer to start than such a one is kept.
said=$(ask put small)
case $said in 'error token-family' | 'error rc: off at the server') ;; *) fail "RC is switched off: $said" ;; esac
for i in {1..5}; do assert_eq "$(ask put small)" "error rc: off at the server"; done
assert_eq "$(rc_of gantry --json --require-rdma put in.4096 "$URL_S3/bkt/x")" 4
assert_eq "$(fields path reason)" "http rc: off at the server"

# ---- programs for cuObject, which know nothing of it

if [ -x "$BUILD/cuobject-tests/round_trip" ]; then
	cuobject() { nic "$ROOT/scripts/with-gantry-cuobject" "$BUILD/cuobject-tests/round_trip" "$S3" >"$T/out" 2>&1; }
	serve 0 "$RC"
	export CUFILE_ENV_PATH_JSON='' CUOBJ_ENV_PATH_JSON=''
	GANTRY_RC_ENDPOINT=$URL_S3 cuobject || fail "round_trip: $(<"$T/out")"
	assert_eq "$(metric gantry_rc_connects_total '"made"')" 1
	wait_for 60 no_connections
	! cuobject || fail "tokens of DC without DC"
	assert_match "$(<"$T/out")" "no RDMA: mlx5_0 port 1 cannot do DC"
else
	! command -v "${CXX:-g++}" >/dev/null || fail "round_trip is not built"
fi
fd=${PY[1]}
exec {fd}>&-
wait "$PY_PID" || fail "client.py"
