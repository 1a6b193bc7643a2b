#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SIGKILL in the middle of load (PUT, GET, DELETE, multipart uploads) on three disks and a bucket with two copies, one of the disks staying away every
# fifth start: what every key answers is linearizable over all lives, nothing acknowledged is lost, and no key and no list is 503 for want of the
# disk; at last the two copies of everything are the same.  ROUNDS kills (default 6), or SECS seconds; SEED= repeats.
# long/copies_crash: the same for SECS seconds.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../long/disks_rig.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=256MiB BUCKETS=''
export COPIES=2
if [ -n "${SECS:-}" ]; then ROUNDS=1000000; else ROUNDS=${ROUNDS:-6} SECS=100; fi
SEED=${SEED:-$(date +%s)}
RANDOM=$((SEED % 32768))
echo "SEED=$SEED"
start_daemon
gantry mb "$URL_S3/bkt" --copies 2 || fail "gantry mb --copies 2"
for i in 0 1 2; do DISK_PATH[i]=$T/disk$i; done
rig_run kill_daemon "$SECS" "$ROUNDS"
rig_same_on_both
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
