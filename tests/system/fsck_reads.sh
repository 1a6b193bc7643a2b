#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --fsck without --repair checks disks that cannot be written (a read-only mount, files that may only be read): it opens them for reading, says that this
# proves nothing about a running daemon, finds damage as usual, and changes nothing. With --repair, and for a start, such disks are refused as before.
# --check-config says "good" of no disk that it cannot look at, and of none that the daemon cannot write.
DISK_SIZE=96MiB DISKS=2
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed)"
export G=$BUILD/gantryd T
export GANTRY_STORE_STATE_DIR=none
said() { grep -q -- "$1" "$T/said" || fail "no '$1' in: $(<"$T/said")"; }
# read_only DISKS OPTIONS...: gantryd with these disks on read-only mounts; standard output and error in $T/said.
read_only() {
	local disk mounts=''
	for disk in $1; do mounts+="mount --bind $T/$disk $T/$disk && mount -o remount,bind,ro $T/$disk && "; done
	unshare -m bash -c "$mounts exec \"\$@\"" - "$G" -c "$T/gantryd.yaml" "${@:2}" >"$T/said" 2>&1
}
reads() { said "$T/$1: opened for reading only (.*): no proof that no daemon has it open"; }
sums() { (cd "$T" && cksum disk?/*); }

start_daemon
bytes pattern:3 300000 >"$T/body"
for i in $(seq 12); do curl_s3 "/bkt/o$i" -T "$T/body" || fail "PUT"; done
# ---- a daemon that serves is seen, as its locks are ----
read_only 'disk0 disk1' --fsck -o store.lock_wait=0s
assert_eq $? 69 "a daemon serves: $(<"$T/said")"
stop_daemon
sums >"$T/before"

# ---- one of two, and both ----
for disks in disk1 'disk0 disk1'; do
	read_only "$disks" --fsck || fail "--fsck of $disks read-only: $(<"$T/said")"
	for disk in $disks; do reads "$disk"; done
	said 'the store is clean'
	[ "$(grep -c 'objects, .* bytes read, 0 damaged' "$T/said")" = 2 ] || fail "not both are read: $(<"$T/said")"
done
read_only disk1 --fsck
! grep -q "$T/disk0: opened for reading" "$T/said" || fail "a disk that can be written is opened for reading"

# ---- what writes is refused, and changes nothing ----
read_only 'disk0 disk1' --fsck --repair --yes
assert_eq $? 78 "a repair: $(<"$T/said")"
said 'Read-only file system'
for disks in disk0 disk1 'disk0 disk1'; do
	read_only "$disks" --check-config
	assert_eq $? 78 "--check-config of $disks read-only: $(<"$T/said")"
	said 'Read-only file system'
	! grep -q -e --forget "$T/said" || fail "a disk that was mounted read-only is to be given up: $(<"$T/said")"
	! grep -q 'yaml: good' "$T/said" || fail "--check-config calls good what cannot be written: $(<"$T/said")"
done
read_only 'disk0 disk1'
assert_eq $? 78 "a start: $(<"$T/said")"
sums | cmp -s - "$T/before" || fail "a file was changed"

# ---- files that this user may read and not write ----
if chattr +i "$T/disk0/log" 2>/dev/null; then
	"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1
	rc=$?
	chattr -i "$T/disk0/log"
	assert_eq "$rc" 0 "an immutable log: $(<"$T/said")"
	reads disk0
fi

# ---- --check-config says good of nothing that it has not looked at ----
check() { setpriv --bounding-set=-dac_override,-dac_read_search "$G" -c "$T/gantryd.yaml" --check-config "$@" >"$T/said" 2>&1; }
check || fail "--check-config: $(<"$T/said")"
assert_eq "$(tail -n 1 "$T/said")" "$T/gantryd.yaml: good"
chown 65534 "$T/disk1"
chmod 700 "$T/disk1"
check
assert_eq $? 69 "a disk that may not be opened: $(<"$T/said")"
said "^store: not looked at: $T/disk1"
! grep -q 'yaml: good' "$T/said" || fail "--check-config of a disk that may not be opened: $(<"$T/said")"
chown 0 "$T/disk1"
mkdir -m 500 "$T/closed"
mkdir "$T/free"
for path in "$T/closed/new" "$T/closed"; do
	check -o "store.disks=[{path: $path, size: 64MiB}]"
	assert_eq $? 78 "where no store can be made: $(<"$T/said")"
	said "^store: $path: this user cannot write there: Permission denied"
done
check -o "store.disks=[{path: $T/free, size: 64MiB}]" || fail "where a store can be made: $(<"$T/said")"
assert_eq "$(tail -n 1 "$T/said")" "$T/gantryd.yaml: good; there is no store yet"
check -o "store.disks=[{path: /dev/gantry-is-not-here}]"
assert_eq $? 69 "a device that is not there: $(<"$T/said")"
daemon_run
check || fail "--check-config beside the daemon: $(<"$T/said")"
assert_eq "$(tail -n 1 "$T/said")" "$T/gantryd.yaml: good; the running daemon has these disks open, and serves from them"
check -o admin.socket=none
assert_eq $? 69 "disks in use, and no daemon to ask: $(<"$T/said")"
said "^store: not looked at: $T/disk0: in use"
! grep -q 'yaml: good' "$T/said" || fail "--check-config of disks in use: $(<"$T/said")"
stop_daemon

# ---- damage is found ----
rm "$T/disk0/seg-0000"
read_only 'disk0 disk1' --fsck
assert_eq $? 74 "a lost file: $(<"$T/said")"
reads disk0
said "lost: object 'bkt/o"

# ---- a device ----
truncate -s 96M "$T/image"
dev=$(losetup -f --show "$T/image" 2>/dev/null) || { echo "no loop device: a read-only one was not tried"; exit 0; }
trap 'rc=$?; losetup -d "$dev"; (exit $rc); _at_exit' EXIT
sed "/disk1/d; s|path: .*|path: \"$dev\" }|" "$T/gantryd.yaml" >"$T/device.yaml"
"$G" -c "$T/device.yaml" --format >"$T/said" 2>&1 || fail "--format of a device: $(<"$T/said")"
losetup -d "$dev"
dev=$(losetup -r -f --show "$T/image") || fail "losetup -r"
sed "/disk1/d; s|path: .*|path: \"$dev\" }|" "$T/gantryd.yaml" >"$T/device.yaml"
"$G" -c "$T/device.yaml" --fsck >"$T/said" 2>&1
assert_eq $? 0 "a read-only device: $(<"$T/said")"
