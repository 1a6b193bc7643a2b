#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The progress of a start, a check and a format of disks: the service manager is told the disk, the step and its bytes; --fsck and --format show a
# line on a terminal, which fits its width and is gone at the end, and write nothing more than before elsewhere. A disk whose reads hang holds
# each step, so that no time decides.
DISK_SIZE=96MiB DISKS=2
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
export GANTRY_STORE_STATE_DIR=none
mkdir "$T/fault"
FAULT=("$BUILD/tools/diskfault" "$T/fault")
on_terminal() { /usr/bin/python3 "$ROOT/tests/system/on_terminal.py" "$T/screen" 240 "${FAULT[@]}" "$BUILD/gantryd" -c "$T/gantryd.yaml" "$@" >"$T/out"; }
shows() { tr '\r' '\n' <"$T/screen" | grep -qE "$1"; }
fits() {
	tr '\r' '\n' <"$T/screen" | sed -n 's/\x1b\[K.*//p' | awk 'length($0) > 239 { print "too long: " $0; bad = 1 } END { exit bad }' || fail "$(<"$T/screen")"
	# The last that is drawn is an empty line; the log may follow.
	[ -z "$( (tr '\r' '\n' <"$T/screen"; echo) | sed -n 's/\x1b\[K.*//p' | tail -n 1)" ] || fail "the line is left: $(tail -c 400 "$T/screen" | od -c)"
}

start_daemon
bytes pattern:3 300000 >"$T/body"
for i in $(seq 12); do curl_s3 "/bkt/o$i" -T "$T/body" || fail "PUT"; done
stop_daemon

# ---- a check: the disk that is read, its bytes, the time that it has taken
on_terminal --fsck || fail "--fsck: $(<"$T/out")"
cp "$T/out" "$T/out.quick"
rm -f "$T/screen"
# A start flushes the files of a disk that is no tmpfs before it reads them.
echo 'hang read only:seg-' >"$T/fault/disk1"
on_terminal --fsck &
job=$!
wait_for 60 shows '[0-9.]+ [KM]?i?B of [0-9.]+ MiB \([0-9]+ %\), [0-9]+ s so far: .*/disk1 \(2 of 2 disks\) compares objects'
rm "$T/fault/disk1"
wait $job || fail "--fsck: $(<"$T/out")"
fits
cmp "$T/out" "$T/out.quick" || fail "the display changes standard output"
# Elsewhere than on a terminal it takes a minute until anything is said.
"$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/out" 2>"$T/err" || fail "--fsck"
! grep -qE '(reads|compares) ' "$T/err" || fail "$(<"$T/err")"
cmp "$T/out" "$T/out.quick" || fail "$(<"$T/out")"

# ---- a start
/usr/bin/python3 - "$T/notify" >>"$T/said" <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode().replace("\n", " "), flush=True)
PY
wait_for 60 test -S "$T/notify"
echo 'hang only:log' >"$T/fault/disk0"
log_is_told() { grep -qE "^STATUS=Recovering the store: 0 B, [0-9]+ s so far: $T/disk0 \(1 of 2 disks\) reads the log$" "$T/said"; }
(wait_for 60 log_is_told && rm "$T/fault/disk0") &
export NOTIFY_SOCKET=$T/notify
DAEMON_WRAP="${FAULT[*]}"
daemon_run
wait_for 60 grep -q 'READY=1 STATUS=Serving' "$T/said"
unset NOTIFY_SOCKET
stop_daemon

# ---- a format: the bytes of its files
rm -rf "$T/disk0" "$T/disk1" "$T/screen"
mkdir "$T/disk0" "$T/disk1"
echo 'hang only:seg-' >"$T/fault/disk1"
on_terminal --format &
job=$!
wait_for 60 shows '[0-9.]+ [KM]iB of [0-9.]+ MiB \([1-9][0-9]* %\).*: .*/disk1 \(2 of 2 disks\) writes the files of the store'
rm "$T/fault/disk1"
wait $job || fail "--format: $(<"$T/out")"
fits
