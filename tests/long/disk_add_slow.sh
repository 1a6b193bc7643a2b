#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk that takes its time while it is made one of the store (a large log is written whole first): `gantry disk add` waits for the answer, and so does who
# asks behind it; meanwhile all is served.
. "$(dirname "$0")/../system/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=2 DISK_SIZE=64MiB BUCKETS='bkt'
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
export GANTRY_ADMIN=$T/admin.sock
start_daemon
echo hang >"$T/fault/disk2"
"$BUILD/gantry" disk add "$T/disk2" --size 64MiB >"$T/said" 2>&1 &
add=$!
begun() { [ -e "$T/disk2/log.new" ]; }
wait_for 60 begun
"$BUILD/gantry" disk cancel >"$T/cancel" 2>&1 &
cancel=$!
# Longer than any other control call may take.
until=$((SECONDS + 35))
while [ $SECONDS -lt $until ]; do
	assert_status PUT /bkt/key 200 -d bytes
	assert_eq "$(curl_s3 /bkt/key)" bytes
	kill -0 $add $cancel || fail "it did not wait: $(cat "$T/said" "$T/cancel")"
	sleep 0.5
done
rm "$T/fault/disk2"
wait $add || fail "gantry disk add: $(cat "$T/said")"
grep -q 'was added, and fills' "$T/said" || fail "gantry disk add: $(cat "$T/said")"
wait $cancel
grep -q 'cancelled\|no disk is being drained or filled' "$T/cancel" || fail "gantry disk cancel: $(cat "$T/cancel")"
assert_eq "$(curl_admin /disks | jq length)" 3
stop_daemon
