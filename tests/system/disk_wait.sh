#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry disk drain --wait and disk status --wait: bytes, rate and time left of the move on a terminal, until the disk is drained; nothing
# elsewhere, where the disks follow at the end; with --write the drained disk leaves the list. gantry status shows a scan as it runs.
DISK_SIZE=96MiB DISKS=2
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
# The move takes some seconds, and the scan some more.
export GANTRY_STORE_MOVE_RATE=2MiB GANTRY_STORE_SCRUB_RATE=1MiB
on_terminal() { /usr/bin/python3 "$ROOT/tests/system/on_terminal.py" "$T/screen" 240 "$BUILD/gantry" --admin "$T/admin.sock" "$@"; }
shows() { tr '\r' '\n' <"$T/screen" | grep -qE "$1"; }

start_daemon
bytes pattern:3 1000000 >"$T/body"
for i in $(seq 24); do curl_s3 "/bkt/o$i" -T "$T/body" || fail "PUT"; done
assert_match "$(gantry --admin "$T/admin.sock" disk status --wait)" "serving .*$T/disk1" "nothing is under way"

# ---- a scan ----
curl_admin_control() { curl -sS --unix-socket "$T/admin.sock" -X POST http://x/control/scrub; }
assert_match "$(curl_admin_control)" '"started":true'
scans() { gantry --admin "$T/admin.sock" status | grep -qE '^scrub +[0-9.]+ [KM]?i?B of about [0-9.]+ MiB \([0-9]+ %\), [0-9.]+ [KM]?i?B/s, [0-9a-z ]+ left$'; }
wait_for 60 scans
assert_match "$(curl_admin /control/scrub)" '"objects_total":24,"bytes_total":[0-9]{8},"bytes_per_second":[0-9]+,"seconds_left":[0-9]+'
curl -sS --unix-socket "$T/admin.sock" -X POST -d '{"action":"stop"}' http://x/control/scrub >"$T/said"

# ---- a drain ----
on_terminal disk drain "$T/disk1" --wait --write --conf "$T/gantryd.yaml" >"$T/out" || fail "disk drain --wait: $(cat "$T/out" "$T/screen")"
shows '^.*[0-9.]+ MiB of about [0-9.]+ MiB \([0-9]+ %\), [0-9.]+ [KM]iB/s, [0-9a-z ]+ left: '"$T/disk1 is drained" || fail "$(<"$T/screen")"
grep -qE "drained .*$T/disk1" "$T/out" || fail "$(<"$T/out")"
[ "$(tail -c 4 "$T/screen" | od -An -c | tr -d ' ')" = '\r033[K' ] || fail "the line is left"
grep -q "$T/disk0" "$T/conf.d/disks.yaml" && ! grep -q "$T/disk1" "$T/conf.d/disks.yaml" || fail "store.disks: $(<"$T/conf.d/disks.yaml")"
for i in $(seq 24); do curl_s3 "/bkt/o$i" | cmp - "$T/body" || fail "o$i"; done
assert_alive
