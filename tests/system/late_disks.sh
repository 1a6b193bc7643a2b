#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A start waits for a device that appears later and for a mount that comes late, says for which, has systemd extend the start, and ends after
# store.wait_for_disks; it does not wait for a store that was never made, for another store's disk, or for an accepted absence. Disks on one file system are
# named, and what they want of it is added up at --format.
DISK_SIZE=96MiB DISKS=3
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
mkdir "$T/state"
export GANTRY_STORE_STATE_DIR=$T/state G=$BUILD/gantryd
said() { grep -q -- "$1" "$T/said" || fail "no '$1' in: $(<"$T/said")"; }
waits() { grep -q "waiting for disks, at most [0-9]* s (store.wait_for_disks): $1\$" "$T/daemon.log"; }
write_config
# ---- shared file systems ----
"$G" -c "$T/gantryd.yaml" --format -o "store.disks=[{path: $T/disk0, size: 96MiB}, {path: $T/disk1, size: $(df --output=size -B1M "$T" | tail -n 1)MiB}]" >"$T/said" 2>&1
assert_eq $? 78 "more than there is room: $(<"$T/said")"
said "disk0: the file system has room for [0-9.]* [MG]iB, and the 2 disks of store.disks on it want [0-9.]* [MGT]iB"
[ -z "$(ls -d "$T"/disk? 2>/dev/null)" ] || fail "something was made"
"$G" -c "$T/gantryd.yaml" --format >"$T/said" 2>&1 || fail "--format: $(<"$T/said")"
said "$T/disk0 and $T/disk1 are on one device or file system"
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config: $(<"$T/said")"
said "$T/disk0 and $T/disk1 are on one device or file system"

# ---- a mount that comes late ----
mv "$T/disk1" "$T/away"
mkdir "$T/disk1"
{ wait_for 60 waits "$T/disk1"; rmdir "$T/disk1"; mv "$T/away" "$T/disk1"; } &
GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run
waits "$T/disk1" || fail "it did not wait"
grep -q "$T/disk0 and $T/disk1 are on one device or file system" "$T/daemon.log" || fail "the start does not name them"
stop_daemon
: >"$T/daemon.log"
daemon_run
! grep -q 'waiting for disks' "$T/daemon.log" || fail "it waits for disks that are there"
stop_daemon

# ---- bounded, and not for what cannot come ----
mv "$T/disk1" "$T/away"
GANTRY_STORE_WAIT_FOR_DISKS=1s "$G" -c "$T/gantryd.yaml" >"$T/said" 2>&1
assert_eq $? 78 "after the wait: $(<"$T/said")"
said "$T/disk1: not there after 1 s (store.wait_for_disks)"
said 'is missing'
U1=$(sed -n "s|^disk \([^ ]*\) [0-9]* $T/disk1\$|\1|p" "$T"/state/store-*)
: >"$T/daemon.log"
GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run -o "store.accept_missing=[$U1]"
! grep -q 'waiting for disks' "$T/daemon.log" || fail "it waits for a disk whose absence is accepted"
stop_daemon
# Without a record the disk's own path says nothing of its UUID; the disks that are there say that it is missing, and that this is accepted.
ln -s /dev/gantry-is-away "$T/disk1"
: >"$T/daemon.log"
GANTRY_STORE_STATE_DIR=none GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run -o "store.accept_missing=[$U1]"
! grep -q 'waiting for disks' "$T/daemon.log" || fail "without a record it waits for a disk whose absence is accepted"
stop_daemon
# Another one is waited for, and that one alone.
mv "$T/disk2" "$T/away2"
ln -s /dev/gantry-is-late "$T/disk2"
: >"$T/daemon.log"
{ wait_for 60 waits "$T/disk1, $T/disk2"; ln -sfn away2 "$T/disk2"; } &
GANTRY_STORE_STATE_DIR=none GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run -o "store.accept_missing=[$U1]"
waits "$T/disk1, $T/disk2" || fail "it did not wait for the other one"
stop_daemon
rm "$T/disk1" "$T/disk2"
mv "$T/away2" "$T/disk2"
mv "$T/away" "$T/disk1"
for p in "$T/never" "$T/state"; do
	GANTRY_STORE_STATE_DIR=none GANTRY_STORE_WAIT_FOR_DISKS=600s timeout 60 "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: $p}]" >"$T/said" 2>&1
	assert_eq $? 74 "a store that was never made: $(<"$T/said")"
done

# ---- several devices of a store without a record: one wait for all of them, and systemd is asked for more time meanwhile ----
/usr/bin/python3 - "$T/notify" >>"$T/told" <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode().replace("\n", " "), flush=True)
PY
listener=$!
wait_for 60 test -S "$T/notify"
NOTIFY_SOCKET=$T/notify GANTRY_STORE_WAIT_FOR_DISKS=12s GANTRY_STORE_STATE_DIR=none "$G" -c "$T/gantryd.yaml" \
	-o "store.disks=[{path: /dev/gantry-is-late}, {path: /dev/gantry-is-later}]" >"$T/said" 2>&1
assert_eq $? 69 "two devices: $(<"$T/said")"
assert_eq "$(grep -c 'not there after 12 s (store.wait_for_disks)' "$T/said")" 1 "waits for two devices: $(<"$T/said")"
said '/dev/gantry-is-late, /dev/gantry-is-later: not there after 12 s'
wait_for 60 grep -q 'STATUS=Waiting for disks: /dev/gantry-is-late, /dev/gantry-is-later' "$T/told"
grep -q 'EXTEND_TIMEOUT_USEC=60000000' "$T/told" || fail "systemd is not asked for more time: $(<"$T/told")"
kill "$listener"

# ---- a device that appears ----
GANTRY_STORE_WAIT_FOR_DISKS=1s GANTRY_STORE_STATE_DIR=none "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: /dev/gantry-is-late}]" >"$T/said" 2>&1
assert_eq $? 69 "a device: $(<"$T/said")"
said 'waiting for disks, at most 1 s (store.wait_for_disks): /dev/gantry-is-late$'
said '/dev/gantry-is-late: cannot open'
truncate -s 96M "$T/image"
dev=$(losetup -f --show "$T/image" 2>/dev/null) || { echo "no loop device: a late one was not tried"; exit 0; }
trap 'rc=$?; losetup -d "$dev"; (exit $rc); _at_exit' EXIT
export GANTRY_STORE_STATE_DIR=none
ln -s /dev/gantry-is-late "$T/by-id"
sed -i "/disk[12]/d; s|path: .*|path: \"$T/by-id\" }|" "$T/gantryd.yaml"
"$G" -c "$T/gantryd.yaml" --format -o "store.disks=[{path: $dev}]" >/dev/null 2>&1 || fail "--format of a device"
: >"$T/daemon.log"
{ wait_for 60 waits "$T/by-id"; ln -sfn "$dev" "$T/by-id"; } &
GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run
waits "$T/by-id" || fail "it did not wait for the device"
stop_daemon
