#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store full of each kind of record, a restart in each, and the way out of each: it says 507, a snapshot can be made, what is there is
# read, a delete succeeds, and then a PUT; nothing says 503 for long.  KINDS chooses: data; inline, objects that are all record,
# on a disk already full of data; index, the same in little memory; uploads; parts; attributes of buckets; log, written over while it is
# full.  (long/full.sh has those that take longer.)
KINDS=${KINDS:-inline}
CORES=1 NO_NIC=1
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

full() { /usr/bin/python3 "$ROOT/tests/system/full.py" "$S3" "$@" || fail "full.py $*"; }
snapshot() {
	local status
	status=$(curl -sS --max-time 30 -o "$T/out" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/snapshot)
	assert_eq "$status" 200 "$1: a snapshot of a full store: $(<"$T/out")"
}
looks_full() {
	snapshot "$1"
	full full "$1"
	snapshot "$1"
	assert_match "$(curl_admin /healthz)" '"code":"(disk_full|index_full)"|"status":"ok"|there is only one snapshot' "$1: health"
}
healthy() { [[ $(curl_admin /healthz) == *'"status":"ok"'* ]]; }

for kind in $KINDS; do
	[ -z "$DAEMON_PID" ] || stop_daemon
	rm -rf "$T"/disk*
	unset GANTRY_MEMORY_INDEX
	DISK_SIZE=64MiB
	# So that there is room for the snapshots of such an index.
	[ "$kind" != index ] || export DISK_SIZE=256MiB GANTRY_MEMORY_INDEX=16MiB
	start_daemon
	if [ "$kind" = inline ]; then
		full fill data
		full full data
	fi
	[ "$kind" != log ] || full laps log
	full fill "$kind"
	looks_full "$kind"
	restart_daemon
	looks_full "$kind"
	full out "$kind"
	snapshot "$kind"
	wait_for 60 healthy # two again
	assert_alive
done
stop_daemon
