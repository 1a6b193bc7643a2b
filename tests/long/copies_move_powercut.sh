#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Disks that are drained, added, fail, stay away for a start and return, on three block devices of four, under load on a bucket of one copy and on one of
# two, each life ended by a power cut or a SIGKILL at a random moment, SECS seconds (default 60): nothing acknowledged is lost, what every key
# answers is linearizable over all lives; at last both copies of everything are the same (tests/long/moves_rig.sh).
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
DISK_PARTS=4 DISKS=3
. "$(dirname "$0")/disk.sh"
. "$(dirname "$0")/disks_rig.sh"
. "$(dirname "$0")/moves_rig.sh"
NO_NIC=1 RDMA='{ devices: none }'
SECS=${SECS:-60}
SEED=${SEED:-$(date +%s)}
RANDOM=$((SEED % 32768))
echo "SEED=$SEED SECS=$SECS"
disk_setup 768M
part=$((768 / DISK_PARTS * 1048576))
write_config
cuts=0 kills=0
path_of() { echo "${LOOPS[$1]}"; }
disk_line() { echo "{ path: \"${LOOPS[$1]}\" }"; }
# What it has cannot be read any more either, or can; a flush is of all of them, and goes well.
breaks() {
	disk fail write 5 $((part * $1)) $((part * ($1 + 1)))
	[ $((RANDOM % 2)) = 0 ] || disk fail read 5 $((part * $1)) $((part * ($1 + 1)))
}
mends() {
	disk fail write 0
	disk fail read 0
}
end_life() {
	if [ $((RANDOM % 3)) = 0 ]; then
		kills=$((kills + 1))
		kill_daemon
		return
	fi
	disk delay flush $((RANDOM % 10))
	sleep 0.2
	cuts=$((cuts + 1))
	disk_cut "$((SEED + cuts))" "$([ $((RANDOM % 2)) = 0 ] && echo first || echo after)"
	disk delay flush 0
}
moves_begin
moves_run end_life "$SECS" 1000000
moves_end
disk stat
echo "$cuts power cuts, $kills kills; unflushed writes kept ${DISK[kept]}, torn ${DISK[torn]}, dropped ${DISK[dropped]}"
[ "$cuts" -lt 15 ] || [ $((DISK[torn] + DISK[dropped])) -gt 0 ] || fail "no write was lost: the test proves nothing"
for did in drained added away fails; do
	[ "$MOVES_ROUNDS" -lt 30 ] || [ "${MOVES_DID[$did]:-0}" -ge 2 ] || fail "$did: ${MOVES_DID[$did]:-0} times in $MOVES_ROUNDS rounds"
done
