#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A start that has too few descriptors for its disks names a disk and the limit to raise, wherever it runs out of them; and one that has no
# room for the ready file may be tried again (status 1), other than one whose configuration is at fault (78).
DISK_SIZE=96MiB DISKS=4
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
export GANTRY_STORE_STATE_DIR=none G=$BUILD/gantryd T
write_config
format_store
named=0
for n in $(seq 12 3 60); do
	rc=0
	(ulimit -n "$n" && exec "$G" -c "$T/gantryd.yaml" --ready-file "$T/ready") >"$T/said" 2>&1 &
	pid=$! until=$((SECONDS + 60))
	# The job is the daemon itself: after wait(), the socket and the lock are free for the next one.
	while _runs "$pid" && [ ! -s "$T/ready" ]; do
		[ $SECONDS -lt $until ] || fail "a start with $n descriptors neither ended nor was ready: $(<"$T/said")"
		pause 0.05
	done
	[ ! -s "$T/ready" ] || { { kill -KILL "$pid"; wait "$pid"; } 2>/dev/null; break; }
	wait "$pid" || rc=$?
	assert_eq "$rc" 1 "a start with $n descriptors: $(<"$T/said")"
	grep 'error.*gantryd: store: ' "$T/said" >"$T/line" || continue
	grep -q "store: .*$T/disk[0-3]: .*Too many open files" "$T/line" || fail "with $n descriptors no disk is named: $(<"$T/line")"
	grep -q 'LimitNOFILE= of the unit, or ulimit -n' "$T/line" || fail "with $n descriptors the limit is not named: $(<"$T/line")"
	named=$((named + 1))
done
[ "$named" -ge 5 ] || fail "of all starts $named ended for want of descriptors"

ready_fails() { # FILE STATUS ERROR
	local rc=0
	timeout 60 "$G" -c "$T/gantryd.yaml" --ready-file "$T/$1" >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$2" "a start that cannot write $1: $(<"$T/said")"
	grep -q "error.*gantryd: $T/$1: $3" "$T/said" || fail "$1 and the error are not named: $(<"$T/said")"
}
ln -s /dev/full "$T/full.tmp"
ready_fails full 1 'No space left on device'
ready_fails absent/ready 78 'No such file or directory'
