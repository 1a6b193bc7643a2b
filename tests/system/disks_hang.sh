#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One of four disks hangs: a file system that is frozen.  What goes there waits, in half of what a core has, and writes in three quarters of that; the others are read and written as
# before, by HTTP and by RDMA; after store.disk_timeout the disk has failed, and buckets are made without it; what comes late does no harm, and a
# restart has it again.
. "$(dirname "$0")/lib.sh"
CORES=1 DISKS=4 DISK_SIZE=64MiB KEYS=40 WRITERS=90
MORE=$'limits: { requests: 64, connections: 400, body_rate: 0, s3_progress: 60s, s3_total: 60s, scality_total: 60s }'
write_config
sed -i -e 's|^memory:.*|memory: { buffers: 10MiB, http_buffers: 2MiB, index: 64MiB }|' -e 's|^store:|store:\n  disk_timeout: 8s|' "$T/gantryd.yaml"
mkdir "$T/disk3"
truncate -s 160M "$T/image"
mkfs.ext4 -q -F "$T/image" || fail "mkfs.ext4"
LOOP=$(losetup -f --show "$T/image" 2>/dev/null) && mount "$LOOP" "$T/disk3" 2>/dev/null || { [ -z "$LOOP" ] || losetup -d "$LOOP"; skip "no loop device or no mount: a file system cannot be frozen"; }
trap 'rc=$?; fsfreeze -u "$T/disk3" 2>/dev/null; [ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID" 2>/dev/null; wait; umount "$T/disk3" || umount -l "$T/disk3"; losetup -d "$LOOP"; (exit $rc); _at_exit' EXIT
rm -rf "$T/disk3/lost+found"
format_store
daemon_run
make_buckets
disks() { curl_admin /disks | jq -r "$1"; }
# A GET or PUT that is told what it is within the time that a client has.
timely() { curl -sS --max-time 60 -o /dev/null -w '%{http_code}' "$@"; }

head -c 200000 /dev/urandom >"$T/body"
slow=() fast=() before=$(curl_admin /disks | json objects 3)
for ((k = 0; k < KEYS; k++)); do
	assert_eq "$(timely -T "$T/body" "$URL_S3/bkt/k$k")" 200
	now=$(curl_admin /disks | json objects 3)
	if [ "$now" -gt "$before" ]; then slow+=("k$k"); else fast+=("k$k"); fi
	before=$now
done
[ ${#slow[@]} -gt 1 ] && [ ${#fast[@]} -gt 8 ] || fail "keys on the fourth disk: ${slow[*]}"

# ---- it hangs ----
fsfreeze -f "$T/disk3"
for ((w = 0; w < WRITERS; w++)); do
	timely -T "$T/body" "$URL_S3/bkt/${slow[w % ${#slow[@]}]}" --max-time 100 >"$T/slow.$w" 2>>"$T/curl" &
	pids+=($!)
done
for ((w = 0; w < 12; w++)); do
	nic timeout 100 "$BUILD/gantry" --require-rdma put "$T/body" "$URL_S3/bkt/${slow[w % ${#slow[@]}]}" >"$T/rdma.$w" 2>&1 &
	pids+=($!)
done
share() { [ "$(metric gantry_requests_in_flight)" -ge 24 ]; }
wait_for 60 share
for ((r = 0; r < 3; r++)); do
	for k in "${fast[@]:0:8}"; do
		assert_eq "$(timely -T "$T/body" "$URL_S3/bkt/$k") $(timely "$URL_S3/bkt/$k")" "200 200" "$k while another disk hangs"
	done
	nic timeout 60 "$BUILD/gantry" --require-rdma put "$T/body" "$URL_S3/bkt/${fast[r]}" >"$T/out" 2>&1 || fail "PUT by RDMA while another disk hangs: $(<"$T/out")"
	nic timeout 60 "$BUILD/gantry" --require-rdma get "$URL_S3/bkt/${fast[r]}" "$T/got" >"$T/out" 2>&1 || fail "GET by RDMA while another disk hangs: $(<"$T/out")"
	cmp "$T/got" "$T/body" || fail "GET by RDMA: other bytes"
	# Its writes hang, and its reads do not.
	assert_eq "$(timely "$URL_S3/bkt/${slow[r % ${#slow[@]}]}")" 200 "GET from the disk whose writes hang"
done

# ---- it has failed ----
failed() { [ "$(curl_admin /disks | json state 3)" = failed ]; }
wait_for 60 failed
assert_match "$(disks '.[3].reason')" 'longer than 8 s \(store.disk_timeout\)' "reason"
# The failure is the answer: such a PUT does not wait for the share of those that hang.
assert_eq "$(curl -sS --max-time 60 -o "$T/out" -w '%{http_code}' -T "$T/body" "$URL_S3/bkt/${slow[0]}")" 503 "PUT on the disk that has failed"
grep -q "<Code>ServiceUnavailable</Code>" "$T/out" || fail "PUT on the disk that has failed: $(<"$T/out")"
assert_eq "$(timely -X PUT "$URL_S3/made-without")" 200 "CreateBucket without the disk that has failed"
assert_eq "$(timely -X DELETE "$URL_S3/made-without")" 503 "DeleteBucket while a disk has failed"
assert_eq "$(timely -T "$T/body" "$URL_S3/bkt/${fast[0]}")" 200

# ---- it goes on, too late ----
fsfreeze -u "$T/disk3"
for p in "${pids[@]}"; do wait "$p"; done
for ((w = 0; w < WRITERS; w++)); do
	case $(<"$T/slow.$w") in 200 | 503) ;; *) fail "a PUT on the disk that hung was told $(<"$T/slow.$w")" ;; esac
done
wait_for 60 nothing_is_held
assert_eq "$(curl_admin /disks | json state 3)" failed
assert_alive
stop_daemon
daemon_run
assert_eq "$(curl_admin /disks | json state)" "serving serving serving serving"
for k in "${slow[@]}" "${fast[@]}"; do curl -sS "$URL_S3/bkt/$k" | cmp - "$T/body" || fail "$k after the restart"; done
assert_eq "$(timely -T "$T/body" "$URL_S3/bkt/${slow[0]}") $(timely -X DELETE "$URL_S3/made-without")" "200 204"
