#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reasons of health that come and go by themselves: writes of a disk that wait (its file system is frozen), and an index that is full.
. "$(dirname "$0")/lib.sh"
DISK_SIZE=400MiB COPIES=1
MORE=$'limits: { s3_progress: 100s, s3_total: 100s }'
write_config
sed -i 's/index: 64MiB/index: 16MiB/' "$T/gantryd.yaml"
mkdir "$T/disk0"
truncate -s 600M "$T/image"
mkfs.ext4 -q -F "$T/image" || fail "mkfs.ext4"
LOOP=$(losetup -f --show "$T/image" 2>/dev/null) && mount "$LOOP" "$T/disk0" 2>/dev/null || { [ -z "$LOOP" ] || losetup -d "$LOOP"; skip "no loop device or no mount: a file system cannot be frozen"; }
trap 'rc=$?; fsfreeze -u "$T/disk0" 2>/dev/null; [ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID" 2>/dev/null; wait; umount "$T/disk0" || umount -l "$T/disk0"; losetup -d "$LOOP"; (exit $rc); _at_exit' EXIT
rm -rf "$T/disk0/lost+found"
format_store
daemon_run
make_buckets
health() { curl_admin /healthz | jq -r "$1"; }
is() { [ "$(curl_admin /healthz | json code)" = "$1" ]; }

# ---- writes wait ----
bytes pattern:1 1M >"$T/body"
assert_eq "$(status_of PUT /bkt/there -T "$T/body")" 200
wait_for 60 is ""
fsfreeze -f "$T/disk0"
curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -T "$T/body" "$URL_S3/bkt/waits" >"$T/waits" 2>/dev/null &
put=$!
wait_for 60 is write_waits
assert_match "$(health '.reasons[0].text')" '^disk [0-9a-f]{8} /.*/disk0: no write or flush has ended for [1-9][0-9]+ s, and some wait'
assert_match "$(curl_admin /disks | jq -r '.[0].state + ": " + .[0].reason')" '^serving: no write or flush has ended for [1-9][0-9]+ s, and some wait$' "/disks"
assert_eq "$(curl_admin /healthz | json status)" degraded
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200 "ready while writes wait"
wait_for 60 grep -q 'warning admin: write_waits: disk [0-9a-f]\{8\} /' "$T/daemon.log"
fsfreeze -u "$T/disk0"
wait_for 60 is ""
assert_eq "$(curl_admin /disks | jq -r '.[0].reason')" null "/disks after the thaw"
wait $put
assert_eq "$(status_of PUT /bkt/after -T "$T/body")" 200 "after the thaw"

# ---- the index is full: records with much metadata ----
meta=$(head -c 1900 /dev/zero | tr '\0' m)
: >"$T/acks"
raw <<-END
	timeout 60s
	flood 16 12000 $T/acks PUT /bkt/i%n content-length:0 x-amz-meta-m:$meta
END
awk '$2 == 507 { n++ } END { exit !n }' "$T/acks" || fail "no PUT was refused"
wait_for 60 is index_full
assert_match "$(health '.reasons[0].text')" '^the index of disk [0-9a-f]{8} /.* is full: 1[0-9] of 1[0-9] MiB \(memory.index\); [1-9][0-9]* writes found no room'
: >"$T/deleted"
raw -e "flood 16 3000 $T/deleted DELETE /bkt/i%n"
wait_for 60 is ""
wait_for 60 grep -q 'admin: index_full, .*: no more' "$T/daemon.log"
stop_daemon
