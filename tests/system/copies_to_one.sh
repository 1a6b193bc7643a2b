#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store of two disks with a bucket of two copies becomes one of one disk, and one of two again: refused as long as the bucket is there, which the
# operator is told by name; drained when it is gone, with a SIGKILL in the middle; then another disk is added, killed once more, and a bucket has
# two copies again.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=2 DISK_SIZE=64MiB BUCKETS='plain'
MORE='log: { access: false }'
export GANTRY_ADMIN=$T/admin.sock
states() { curl_admin /disks | jq -r 'map(.state) | join(" ")'; }
ended() { [ "$(curl_admin /control/disk/drain | json running)" = false ]; }
again() {
	kill_daemon
	daemon_run
}
mine() { # what is in the bucket of one copy
	local i
	for i in 1 2 3 4 5 6 7 8; do assert_eq "$(curl_s3 "/plain/k$i" | sha256sum)" "$(sha256sum <"$T/body")"; done
}

export GANTRY_STORE_MOVE_RATE=10KiB
start_daemon
bytes pattern:1 60000 >"$T/body"
for i in 1 2 3 4 5 6 7 8; do curl_s3 "/plain/k$i" -T "$T/body" -o /dev/null || fail "PUT"; done
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
for i in 1 2 3; do curl_s3 "/two/k$i" -T "$T/body" -o /dev/null || fail "PUT"; done

# ---- refused ----
rc=0
gantry disk drain "$T/disk1" >"$T/said" 2>&1 || rc=$?
assert_eq "$rc" 1
grep -q 'bucket two has two copies of each object, which need two disks' "$T/said" && grep -q '^remedy: add another disk first$' "$T/said" && grep -q '^All objects of bucket two are lost; last resort: remove the bucket$' "$T/said" || fail "drain: $(<"$T/said")"
assert_eq "$(curl -sS --unix-socket "$T/admin.sock" -o "$T/said" -w '%{http_code}' -d "{\"disk\":\"$T/disk1\"}" http://gantryd/control/disk/drain)" 409
grep -q 'bucket two has two copies' "$T/said" || fail "drain: $(<"$T/said")"
assert_eq "$(states)" "serving serving"

# ---- the bucket is gone: one disk stays ----
for i in 1 2 3; do assert_status DELETE "/two/k$i" 204; done
assert_status DELETE /two 204
gantry disk drain "$T/disk1" >"$T/said" 2>&1 || fail "drain: $(<"$T/said")"
assert_eq "$(states)" "serving moving"
assert_eq "$(code_of /two -X PUT -H 'x-gantry-copies: 2')" InvalidArgument "while the other disk is drained"
unset GANTRY_STORE_MOVE_RATE
again
wait_for 60 ended
assert_eq "$(states | cut -d' ' -f1)" serving
assert_eq "$(curl_admin /disks | jq -r '[.[] | select(.state == "serving")] | length')" 1
mine
assert_eq "$(code_of /two -X PUT -H 'x-gantry-copies: 2')" InvalidArgument "on one disk"

# ---- another one comes, and there are two copies again ----
gantry disk --size 64MiB add "$T/disk2" >"$T/said" || fail "add: $(<"$T/said")"
sed -i "s|$T/disk1|$T/disk2|" "$T/gantryd.yaml"
again
wait_for 60 ended
assert_eq "$(states)" "serving serving"
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2, once more"
for i in 1 2 3; do curl_s3 "/two/k$i" -T "$T/body" -o /dev/null || fail "PUT"; done
again
assert_eq "$(metric gantry_copies_objects) $(metric gantry_copies_exposed_objects)" "3 0"
rc=0
gantry disk drain "$T/disk2" >"$T/said" 2>&1 || rc=$?
assert_eq "$rc" 1
mine
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
grep -q 'records are second copies' "$T/fsck" || fail "no second copies: $(<"$T/fsck")"
