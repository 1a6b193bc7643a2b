#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two daemons on one store, and a store that cannot be written: one line with the path and what to do, the exit status that systemd
# does not answer with a restart, and no byte changed.  The same directory by two paths and the same device by two nodes, each in
# a mount namespace of its own; a file system that is read-only; a store whose size was changed, or that has a file of another one.
# The first one goes on.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1 DISK_SIZE=96MiB
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed)"

# refused CODE WORDS COMMAND...: a daemon that does not start.  All it says of the store is one line, which has the words.
refused() {
	local code=$1 words=$2 rc=0
	shift 2
	# Nobody waits for what stays in use; what has just ended may have it for a moment.
	[ "$code" != 69 ] || export GANTRY_STORE_LOCK_WAIT=100ms
	"$@" >"$T/out" 2>&1 || rc=$?
	unset GANTRY_STORE_LOCK_WAIT
	[ "$rc" = "$code" ] || fail "exit $rc instead of $code: $(<"$T/out")"
	[ "$(grep -c "error store\|gantryd: cannot\|error daemon\|error main" "$T/out")" -le 1 ] || fail "more than one line: $(<"$T/out")"
	grep -q -- "$words" "$T/out" || fail "no '$words' in: $(<"$T/out")"
}
gantryd() { "$BUILD/gantryd" -c "$T/$1.yaml" "${@:2}"; }
export -f gantryd
export BUILD T
# In a namespace with one more mount or node.
elsewhere() { unshare -m bash -c "$@"; }
sums() { find "$T/disk0" -type f -exec cksum {} + | sort; }

start_daemon
bytes pattern:1 100000 >"$T/body"
curl_s3 /bkt/o -T "$T/body"
mkdir "$T/twin"
sed "s|$T/disk0|$T/twin|; s|$T/admin.sock|$T/twin.sock|" "$T/gantryd.yaml" >"$T/twin.yaml"
for act in "" --fsck "--fsck --repair" "--format --force"; do
	refused 69 "$T/twin.* in use" elsewhere "mount --bind '$T/disk0' '$T/twin' && gantryd twin $act"
done
curl_s3 /bkt/o >"$T/back"
assert_same "$T/body" "$T/back"
assert_alive
stop_daemon

sums >"$T/before"
refused 78 "$T/twin: .*Read-only.*mount" elsewhere "mount --bind '$T/disk0' '$T/twin' && mount -o remount,ro,bind '$T/twin' && gantryd twin"
sed 's/size: 96MiB/size: 128MiB/' "$T/gantryd.yaml" >"$T/larger.yaml"
sed 's/size: 96MiB/size: 64MiB/' "$T/gantryd.yaml" >"$T/smaller.yaml"
refused 78 "$T/disk0: size is configured as 134217728 bytes" gantryd larger
refused 78 "$T/disk0: size is configured as 67108864 bytes" gantryd smaller
sed "s|$T/disk0|$T/second|" "$T/gantryd.yaml" >"$T/second.yaml"
gantryd second --format >/dev/null || fail "no second store"
truncate -s +4096 "$T/disk0/seg-0000"
refused 74 "$T/disk0: seg-0000 is damaged" gantryd gantryd
truncate -s -4096 "$T/disk0/seg-0000"
cp -a "$T/disk0/super" "$T/super"
dd if="$T/second/super" of="$T/disk0/super" bs=64k count=1 conv=notrunc status=none
refused 78 "$T/disk0: the two superblocks are of different disks" gantryd gantryd
cp "$T/super" "$T/disk0/super"
sums >"$T/after"
assert_same "$T/before" "$T/after"

# A device by two nodes.
truncate -s 64M "$T/image"
if dev=$(losetup -f --show "$T/image" 2>/dev/null); then
	trap 'rc=$?; losetup -d "$dev"; (exit $rc); _at_exit' EXIT
	sed "s|$T/disk0|$dev|; s|, size: 96MiB||" "$T/gantryd.yaml" >"$T/device.yaml"
	sed "s|$T/disk0|$T/node|; s|, size: 96MiB||; s|$T/admin.sock|$T/twin.sock|" "$T/gantryd.yaml" >"$T/node.yaml"
	cp "$T/device.yaml" "$T/gantryd.yaml"
	"$BUILD/gantryd" -c "$T/gantryd.yaml" --format >/dev/null || fail "no store on $dev"
	daemon_run
	nodes=$(stat -c 'b 0x%t 0x%T' "$dev")
	refused 69 "$T/node: in use" elsewhere "mount -t tmpfs none /mnt && mknod /mnt/node $nodes && ln -s /mnt/node '$T/node' && gantryd node"
	assert_alive
	stop_daemon
else
	echo "no loop device: a device by two nodes was not tried"
fi
