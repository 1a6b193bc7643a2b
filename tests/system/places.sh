#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Places that are not what they look like: a device that is not there, below which no directory is made by any command; a file system in memory, which is
# taken with a warning; a device with data at its end alone, which is not overwritten.
DISK_SIZE=96MiB DISKS=1
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed)"
export G=$BUILD/gantryd T
export GANTRY_STORE_STATE_DIR=none
# In a namespace with a /dev in memory, which has nothing but what gantryd opens.
in_ns() { unshare -m bash -c "mkdir -p '$T/dev' && mount --bind /dev '$T/dev' && mount -t tmpfs none /dev && touch /dev/null && mount --bind '$T/dev/null' /dev/null && umount '$T/dev' && mkdir /dev/shm && mount -t tmpfs none /dev/shm && mkdir /dev/shm/there; $1"; }
said() { grep -q -- "$1" "$T/said" || fail "no '$1' in: $(<"$T/said")"; }
write_config

# ---- nothing is made below /dev ----
ln -s /dev/gantry-late "$T/link"
for path in /dev/gantry-late /dev/shm/late "$T/link"; do
	for size in '' ', size: 96MiB'; do
		sed "s|path: .*|path: \"$path\"$size }|" "$T/gantryd.yaml" >"$T/dev.yaml"
		for force in '' --force; do
			# shellcheck disable=SC2016
			in_ns '"$G" -c "$T/dev.yaml" --format '"$force"' >"$T/said" 2>&1; echo "rc $?" >>"$T/said"; ls -d /dev/gantry-late /dev/shm/late >>"$T/said" 2>/dev/null'
			said "^gantryd: cannot make a store: $path: there is no such device"
			assert_eq "$(tail -n 1 "$T/said")" 'rc 69' "--format $force of $path$size"
		done
	done
done
# A directory that is there, on a file system below /dev of its own, is one in memory.
sed "s|path: .*|path: \"/dev/shm/there\", size: 96MiB }|" "$T/gantryd.yaml" >"$T/dev.yaml"
# shellcheck disable=SC2016
in_ns '"$G" -c "$T/dev.yaml" --format >"$T/said" 2>&1; "$G" -c "$T/dev.yaml" --check-config >"$T/checked" 2>&1; echo "rc $?" >>"$T/said"'
said 'made a store on 1 disk'
said '/dev/shm/there: this disk is in memory (tmpfs): a reboot loses everything on it'
grep -q 'in memory (tmpfs): a reboot loses' "$T/checked" || fail "--check-config: $(<"$T/checked")"

# ---- while it serves; and a start on memory ----
mkdir "$T/ram"
DAEMON_WRAP="unshare -m $T/wrap"
cat >"$T/wrap" <<-END
	#!/bin/bash
	mount -t tmpfs none "$T/ram" && mkdir "$T/ram/d" && mount --bind "$T/ram/d" "$T/ram" && "\$1" -c "$T/gantryd.yaml" --format >"$T/said" 2>&1
	exec "\$@"
END
chmod +x "$T/wrap"
sed -i "s|path: .*|path: \"$T/ram\", size: 96MiB }|" "$T/gantryd.yaml"
daemon_run
said "$T/ram: this disk is in memory (tmpfs)"
grep -q "warning store: $T/ram: this disk is in memory" "$T/daemon.log" || fail "the start does not warn"
gantry --admin "$T/admin.sock" disk add /dev/gantry-is-not-here --size 96MiB >"$T/said" 2>&1 && fail "a device that is not there was added"
said 'there is no such device'
[ ! -e /dev/gantry-is-not-here ] || fail "a directory was made in /dev"
stop_daemon

# ---- data at the end of a device ----
truncate -s $((64 << 20)) "$T/image"
truncate -s +1536 "$T/image"
dev=$(losetup -f --show "$T/image" 2>/dev/null) || { echo "no loop device: the end of one was not tried"; exit 0; }
trap 'rc=$?; losetup -d "$dev"; (exit $rc); _at_exit' EXIT
sed "s|path: .*|path: \"$dev\" }|" "$T/gantryd.yaml" >"$T/device.yaml"
bytes_of=$(stat -c %s "$T/image")
for at in $((bytes_of - 512)) $((bytes_of - 1000000)); do
	printf 'EFI PART' | dd of="$dev" bs=1 seek="$at" conv=notrunc status=none || fail "dd"
	sync "$dev"
	"$G" -c "$T/device.yaml" --format >"$T/said" 2>&1
	assert_eq $? 74 "data at $at: $(<"$T/said")"
	said 'holds data$'
	assert_match "$(tail -n 1 "$T/said")" "^All objects and files on $dev are lost; last resort: --force"
	dd if=/dev/zero of="$dev" bs=512 seek=$((at / 512)) count=2 conv=notrunc status=none 2>/dev/null
	sync "$dev"
done
"$G" -c "$T/device.yaml" --format >"$T/said" 2>&1 || fail "an empty device: $(<"$T/said")"
