#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts under load on three block devices, SECS seconds (default 60), of which one stays away every fifth start: each keeps, tears and
# drops another part of what was not flushed.  What every key answers is linearizable over all lives and nothing acknowledged is
# lost, as in tests/system/disks_crash.sh.  COPIES=2: of a bucket with two copies, as in tests/system/copies_crash.sh.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
DISK_PARTS=3 DISKS=3
. "$(dirname "$0")/disk.sh"
. "$(dirname "$0")/disks_rig.sh"
NO_NIC=1 RDMA='{ devices: none }'
SECS=${SECS:-60}
SEED=${SEED:-$(date +%s)}
RANDOM=$((SEED % 32768))
echo "SEED=$SEED SECS=$SECS"
disk_setup 768M
write_config
for i in 0 1 2; do sed -i "s|{ path: \"$T/disk$i\", size: [^ ]* }|{ path: \"${LOOPS[i]}\" }|" "$T/gantryd.yaml"; done
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format --force >>"$T/daemon.log" 2>&1 || fail "gantryd --format"
daemon_run
export COPIES=${COPIES:-1}
gantry mb "$URL_S3/bkt" --copies "$COPIES" || fail "gantry mb --copies $COPIES"
DISK_PATH=("${LOOPS[@]}")
cuts=0
power_cut() {
	disk delay flush $((RANDOM % 4))
	sleep 0.1
	cuts=$((cuts + 1))
	disk_cut "$((SEED + cuts))" "$([ $((RANDOM % 2)) = 0 ] && echo first || echo after)"
	disk delay flush 0
	DISK_PATH=("${LOOPS[@]}")
	# On a machine with other work few lives fit into SECS: more follow until a cut has lost a write, forty at most.
	disk stat
	[ $((DISK[torn] + DISK[dropped])) -gt 0 ] || [ "$cuts" -ge 40 ] || RIG_LIVES=$((cuts + 1))
}
rig_run power_cut "$SECS" 1000000
[ "$COPIES" = 1 ] || rig_same_on_both
disk stat
echo "$cuts power cuts; unflushed writes kept ${DISK[kept]}, torn ${DISK[torn]}, dropped ${DISK[dropped]}"
[ $((DISK[torn] + DISK[dropped])) -gt 0 ] || fail "no write was lost: the test proves nothing"
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
