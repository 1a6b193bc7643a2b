#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three disks under load (PUT, GET, DELETE, lists, multipart uploads, all checked) while one is drained and another one added, with a SIGKILL in the
# middle of it: nothing that was acknowledged is lost or comes again, lists and quotas are right; what is refused; what a start asks for afterwards.
# The clients continue while the daemon is started again: no other listener has its port then.
OWN_NET=${OWN_NET:-1} S3_PORT=9000
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=2 DISKS=3 DISK_SIZE=384MiB BUCKETS='load more still heavy'
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
SEED=${SEED:-$(date +%s)}
echo "SEED=$SEED"
disks() { curl_admin /disks | jq -r "$1"; }
states() { curl_admin /disks | json state; }
disk() { gantry --admin "$T/admin.sock" disk "$@"; }
control() { # PATH BODY: the status
	curl -sS --unix-socket "$T/admin.sock" -o "$T/said" -w '%{http_code}' -d "$2" "http://gantryd/control/disk/$1"
}
moves() { [ "$(curl_admin /control/disk/drain | json running)" = true ]; }
ended() { ! moves; }
load_begin() { # BUCKET
	rm -f "$T/stop"
	echo "$URL_S3" >"$T/url"
	# Writers wait for a second at most while their key moves, as test_moves shows; nobody waits until the deadline, however slow the machine.
	LONGEST_MS=20000 /usr/bin/python3 "$ROOT/tests/system/disks_move.py" "$T" "$SEED" "$1" >"$T/load" &
	LOAD=$!
}
requests() { metric gantry_requests_total; }
_answered() { [ "$(requests)" -ge "$1" ]; }
load_works() { wait_for 60 _answered $(($(requests) + $1)); } # until so many more requests were answered
load_end() {
	touch "$T/stop"
	wait "$LOAD" || fail "$1: $(<"$T/load")"
	sed "s/^/$1: /" "$T/load"
}

export GANTRY_STORE_MOVE_RATE=256KiB
start_daemon
# What holds the pace up until the kill, whatever the load has put by then.
head -c 1000000 /dev/urandom >"$T/one"
for i in $(seq 1 18); do curl_s3 "/heavy/k$i" -T "$T/one" -o /dev/null || fail "PUT"; done
for i in $(seq 1 20); do echo "still $i" >"$T/one"; curl_s3 "/still/k$i" -T "$T/one" -o /dev/null || fail "PUT"; done
still() {
	local i
	for i in $(seq 1 20); do assert_eq "$(curl_s3 "/still/k$i")" "still $i"; done
	assert_eq "$(curl_s3 '/still?list-type=2' | grep -o '<Key>' | wc -l)" 20
}

# ---- what is refused ----
assert_eq "$(control drain '{}') $(control drain '{"disk":"/nowhere"}') $(control cancel '{}')" "400 404 404"
assert_eq "$(control add "{\"disk\":\"$T/disk0\"}") $(control add '{"disk":"none"}')" "409 400"
assert_eq "$(control add "{\"disk\":\"$T/disk9\",\"size\":\"63MiB\"}") $(control add "{\"disk\":\"$T/disk9\",\"size\":\"1025TiB\"}")" "400 400"
grep -q 'from 64MiB to 1024TiB' "$T/said" || fail "what store.disks does not take: $(<"$T/said")"
disk status >"$T/said"
grep -q "^$(curl_admin /disks | json disk 2) *serving *$T/disk2 " "$T/said" || fail "gantry disk status: $(<"$T/said")"

DIGITS=$(curl_admin /disks | json disk 2)

# ---- drained under load, killed in the middle ----
load_begin load
load_works 300
disk drain "$T/disk1" >"$T/said" || fail "drain: $(<"$T/said")"
assert_eq "$(control drain "{\"disk\":\"$T/disk0\"}")" 409
assert_eq "$(control add "{\"disk\":\"$T/disk3\",\"size\":\"1GiB\"}")" 409
moving() { [ "$(states)" = "serving moving serving" ]; }
wait_for 60 moving
assert_eq "$(curl_admin /disks | json move 1),$(curl_admin /disks | json move 0)" "drain,null"
top_shows() { # in an interval in which something moved
	gantry --admin "$T/admin.sock" --interval 0.3 --count 1 top >"$T/said" &&
		grep -qE '^moves +drains [0-9.]+ [KMG]?i?B of [0-9.]+ [KMG]?i?B, [0-9.]+ [KMG]?i?B/s, [0-9]+ s left, [0-9a-f]{8} /.*/disk1' "$T/said"
}
wait_for 60 top_shows
kill_daemon
unset GANTRY_STORE_MOVE_RATE
daemon_run
echo "$URL_S3" >"$T/url"
wait_for 60 ended
assert_eq "$(states)" "serving drained serving"
still
load_works 100
load_end drain
assert_eq "$(curl_s3 '/load?list-type=2' | grep -o '<Key>' | wc -l)" "$(<"$T/there")"
assert_eq "$(gantry --admin "$T/admin.sock" bucket show load | sed 's/.*load *\([0-9]*\) objects.*/\1/')" "$(<"$T/there")"
assert_eq "$(curl_admin /healthz | json status)" ok
assert_eq "$(control drain "{\"disk\":\"$T/disk1\"}")" 409

# ---- a start leaves it alone, one without it asks for nothing ----
restart_daemon
assert_eq "$(states)" "serving serving"
stop_daemon
sed -i "/disk1\"/d" "$T/gantryd.yaml"
daemon_run
assert_eq "$(states)" "serving serving"
# Another disk of the store keeps its name in metrics and pages.
assert_eq "$(disks '.[1] | [.disk, .path] | join(" ")') $(metric gantry_store_up "disk=\"$DIGITS\"")" "$DIGITS $T/disk2 1"
still

# ---- one is added under load ----
load_begin more
load_works 100
disk --size 384MiB add "$T/disk3" >"$T/said" || fail "add: $(<"$T/said")"
assert_match "$(<"$T/said")" 'was added, and fills; until the restart its index may take [1-9][0-9]* MiB besides memory.index'
wait_for 60 ended
assert_eq "$(states)" "serving serving serving"
[ "$(curl_admin /disks | json objects 2)" -gt 3 ] || fail "nothing came to the new disk: $(disks .)"
still
load_works 100
load_end add
assert_eq "$(curl_s3 '/more?list-type=2' | grep -o '<Key>' | wc -l)" "$(<"$T/there")"
stop_daemon
echo "    - { path: \"$T/disk3\", size: 384MiB }" >"$T/line"
sed -i "/disk2\"/r $T/line" "$T/gantryd.yaml"
daemon_run
assert_eq "$(states)" "serving serving serving"
still
stop_daemon

# ---- and one while nothing runs ----
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" -o "store.disks=[{path: $T/disk0}, {path: $T/disk2}, {path: $T/disk3}, {path: $T/disk4, size: 384MiB}]" --add "$T/disk4" >"$T/said" 2>&1 ||
	fail "--add: $(<"$T/said")"
echo "    - { path: \"$T/disk4\", size: 384MiB }" >"$T/line"
sed -i "/disk3\"/r $T/line" "$T/gantryd.yaml"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --add "$T/disk4" >"$T/said" 2>&1 && fail "--add of a member"
grep -q 'disk4 is a disk of this store already' "$T/said" || fail "--add of a member: $(<"$T/said")"
daemon_run
wait_for 60 ended
assert_eq "$(states)" "serving serving serving serving"
[ "$(curl_admin /disks | json objects 3)" -gt 3 ] || fail "nothing came to the new disk: $(disks .)"
still
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
