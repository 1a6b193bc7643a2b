#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A daemon that is stopped (SIGSTOP) for longer than store.disk_timeout, while writes of its cores and of the helper thread of a disk are in flight: no
# disk has failed after it, no core counts as stuck, and every PUT is answered.
. "$(dirname "$0")/lib.sh"
CORES=2 DISKS=2 DISK_SIZE=300MiB COPIES=1
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
write_config
sed -i -e 's|^store:|store:\n  disk_timeout: 8s|' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
trap 'rc=$?; [ -z "$DAEMON_PID" ] || kill -CONT "$DAEMON_PID" 2>/dev/null; (exit $rc); _at_exit' EXIT
disks() { curl_admin /disks | jq -r "$1"; }
stand_still() { # SECONDS
	kill -STOP "$DAEMON_PID"
	pause "$1"
	kill -CONT "$DAEMON_PID"
}
writes_wait() { curl_admin /metrics | awk '/^gantry_store_oldest_wait_seconds/ && $2 > 0 { n++ } END { exit !n }'; }
bytes pattern:3 8M >"$T/body"

# ---- the helper thread alone: a snapshot ----
assert_eq "$(status_of PUT /bkt/first -T "$T/body")" 200
settle
echo hang | tee "$T/fault/disk0" >"$T/fault/disk1"
curl -sS --max-time 120 --unix-socket "$T/admin.sock" -X POST http://x/control/snapshot >"$T/snapshot" 2>&1 &
snapshot=$!
wait_for 60 writes_wait
stand_still 10
rm "$T/fault/disk0" "$T/fault/disk1"
wait $snapshot || fail "snapshot: $(<"$T/snapshot")"
assert_eq "$(curl_admin /disks | json state)" "serving serving" "after a pause with a snapshot in progress"

# ---- writes of the cores ----
echo hang | tee "$T/fault/disk0" >"$T/fault/disk1"
for ((w = 0; w < 6; w++)); do
	curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -T "$T/body" "$URL_S3/bkt/k$w" >"$T/put.$w" 2>>"$T/curl" &
	pids+=($!)
done
wait_for 60 writes_wait
stand_still 10
rm "$T/fault/disk0" "$T/fault/disk1"
for ((w = 0; w < 6; w++)); do
	wait "${pids[w]}" || fail "PUT $w: $(<"$T/curl")"
	assert_eq "$(<"$T/put.$w")" 200
done
assert_eq "$(curl_admin /disks | json state)" "serving serving" "after a pause with PUTs in progress"

# ---- short pauses under load ----
load() { for ((i = 0; ; i++)); do
	[ ! -e "$T/over" ] || return 0
	curl -sS --max-time 120 --fail -o /dev/null -T "$T/body" "$URL_S3/bkt/load$1" || return 1
done; }
puts() { curl_admin /metrics | awk '/^gantry_requests_total.*PutObject.*"200"/ { n += $2 } END { print n + 0 }'; }
goes_on() { [ "$(puts)" -gt "$before" ]; }
pids=()
for ((w = 0; w < 6; w++)); do load $w 2>>"$T/curl" & pids+=($!); done
for ((i = 0; i < 5; i++)); do
	before=$(puts)
	stand_still 1.5
	wait_for 60 goes_on
done
touch "$T/over"
for p in "${pids[@]}"; do wait "$p" || fail "a PUT was not answered well: $(<"$T/curl")"; done
assert_eq "$(curl_admin /disks | json state)" "serving serving" "after pauses under load"
grep -E 'is stuck|failed and is read-only' "$T/daemon.log" && fail "a pause was taken for a fault"
[ "$(status_of GET /bkt/first)" = 200 ] || fail "GET"
stop_daemon
