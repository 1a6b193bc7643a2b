#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Disks that a store of three must not take: one by two paths (a link, a mount, a second device of the same bytes), a copy, one of another store,
# one in another's place, half a store, one that is shorter, cannot be recovered, is of a later version, or in use.  Each is one line that names path or UUID and what to do, the same from
# a start and from --check-config, with 78 but where said; and not a byte of any disk is another one afterwards.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1 DISKS=3 DISK_SIZE=64MiB
G=$BUILD/gantryd
configure() { # paths
	local p
	{
		sed '/^store:/,$d' "$T/first.yaml"
		printf 'store:\n  disks:\n'
		for p in "$@"; do echo "    - { path: \"$p\" }"; done
	} >"$T/gantryd.yaml"
}
# All bytes of superblocks, host blocks and logs; of the rest, which takes long to read, when it was last written.
sums() {
	find "$T"/disk? "$T"/other "$T/image" -type f -printf '%p %s %T@\n' 2>/dev/null | sort
	find "$T"/disk? "$T"/other -type f ! -name 'seg-*' -exec cksum {} + 2>/dev/null | sort
}
# refused WORDS [CODE [COMMAND...]]: by a start and by --check-config (ACTS), run by that command
ACTS=('' --check-config)
refused() {
	local act rc
	sums >"$T/before"
	for act in "${ACTS[@]}"; do
		rc=0
		# shellcheck disable=SC2086
		timeout 60 "${@:3}" "$G" -c "$T/gantryd.yaml" $act >"$T/said" 2>&1 || rc=$?
		assert_eq "$rc" "${2:-78}" "gantryd $act: $(<"$T/said")"
		grep -q -- "$1" "$T/said" || fail "gantryd $act: no '$1' in: $(<"$T/said")"
		[ "$(grep -v 'remedy: \|; last resort: ' "$T/said" | grep -c "error store\|error daemon\|error main\|^store: \|same disk")" -le 1 ] || fail "more than one line: $(<"$T/said")"
	done
	sums >"$T/after"
	assert_same "$T/before" "$T/after" "written to: $1"
}

# advises REMEDY... LAST: what was refused proposes these in this order, the last resort on a line that begins with what it loses.
advises() {
	local at=0 line remedy nr=$#
	for remedy in "$@"; do
		nr=$((nr - 1))
		line=$(grep -n "$([ "$nr" = 0 ] && echo '\(About\|Up to\|An unknown number of\|[0-9]* records of\) .*; last resort: .*' || echo 'remedy: ')$remedy" "$T/said" | head -n 1 | cut -d: -f1)
		[ -n "$line" ] || fail "no '$remedy' in: $(<"$T/said")"
		[ "$line" -gt "$at" ] || fail "'$remedy' is not in its place: $(<"$T/said")"
		at=$line
	done
	! tail -n "+$((at + 1))" "$T/said" | grep -q 'remedy: ' || fail "a remedy after the last resort: $(<"$T/said")"
}

start_daemon
cp "$T/gantryd.yaml" "$T/first.yaml"
uuid() { curl_admin /disks | json uuid "$1"; }
U1=$(uuid 1) U2=$(uuid 2)
configure "$T"/disk{0,1,2}
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config while it is served: $(<"$T/said")"
stop_daemon
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config: $(<"$T/said")"

# ---- one disk by two paths ----
ln -s disk1 "$T/by-id"
configure "$T"/disk{0,1,2} "$T/by-id"
refused "store.disks\[3\].path: is the same disk as store.disks\[1\] ($T/by-id is $T/disk1): take one of the two off"
mkdir "$T/twin"
configure "$T"/disk{0,1,2} "$T/twin"
if unshare -m true 2>/dev/null; then
	refused 'store.disks\[3\].path: is the same disk as store.disks\[1\]' 78 unshare -m bash -c "mount --bind '$T/disk1' '$T/twin' && exec \"\$@\"" --
else
	echo "no mount namespace of our own (root is needed): a bind mount was not tried"
fi
# ---- a copy ----
cp -a "$T/disk1/." "$T/twin/"
refused "$T/disk1 says to be disk ${U1::8} $T/twin, too: one is a copy of the other"
# and in its place it is what it says
configure "$T/disk0" "$T/twin" "$T/disk2"
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "moved to another path: $(<"$T/said")"
rm -r "$T/twin"

# ---- another store's, more or instead ----
mkdir "$T/other"
sed "s|$T/disk0\"|$T/other\"|; /disk[12]/d" "$T/first.yaml" >"$T/other.yaml"
"$G" -c "$T/other.yaml" --format >"$T/said" 2>&1 || fail "another store: $(<"$T/said")"
configure "$T"/disk{0,1,2} "$T/other"
refused "disk [0-9a-f]* $T/other is of another store, .*"
grep -q "remedy: take $T/other off store.disks, or put the right disk there" "$T/said" || fail "no remedy: $(<"$T/said")"
configure "$T"/disk{0,2} "$T/other"
refused "disk [0-9a-f]* $T/other is of another store"

# ---- half of it, and none of what is configured ----
configure "$T/disk0"
refused "disk ${U1::8}, of a store of 3 disks, is missing (no path of store.disks is left for it); disk ${U2::8} is missing (no path of store.disks is left for it)"
advises "attach the disks $U1, $U2, add their paths to store.disks, and start again" "gantryd --forget $U1 --forget $U2"
# The question about two of them begins with what both lose together.
"$G" -c "$T/gantryd.yaml" --forget "$U1" --forget "$U2" </dev/null >"$T/said" 2>&1 && fail "two disks were given up without an answer"
assert_eq "$(grep -c '^About 67 % of the objects of buckets with one copy are lost$' "$T/said") $(grep -c '^disk [0-9a-f]*, of a store of 3 disks' "$T/said")" '1 2' "the question: $(<"$T/said")"
! grep -q 'About 33 %' "$T/said" || fail "the question says half of the loss: $(<"$T/said")"
configure "$T"/disk{0,2}
refused "disk ${U1::8}, of a store of 3 disks, is missing (no path .*)"
advises "attach the disk $U1, add its path to store.disks, and start again" "start without it, with store.accept_missing: \[$U1\]" "gantryd --forget $U1"
configure "$T/disk0" "$T/nowhere" "$T/neither"
refused "disk ${U1::8}, .* missing; disk ${U2::8} is missing (not there: $T/nowhere: there is no store here yet.*; $T/neither: there is no store here yet"
configure "$T"/disk{0,2} "$T/nowhere"
refused "disk ${U1::8}, .* is missing ($T/nowhere: there is no store here yet"

# ---- none of them is there ----
# It may be that there is no store yet, which --check-config says; not where disks are named that a store was made with.
configure "$T"/nowhere{0,1}
"$G" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 || fail "--check-config before --format: $(<"$T/said")"
grep -q "^store: $T/nowhere0: there is no store here yet; .*a start would end so" "$T/said" || fail "no store yet: $(<"$T/said")"
sed -i "s|^store:|&\n  accept_missing: [\"$U1\"]|" "$T/gantryd.yaml"
refused "$T/nowhere0: there is no store here yet" 74
mkdir "$T/save"
for i in 0 1 2; do
	mv "$T/disk$i/super" "$T/save/$i"
	mv "$T/disk$i/super2" "$T/save/$i.2"
	for to in super super2; do head -c 40 "$T/save/$i" | cat - /dev/zero | head -c 65536 >"$T/disk$i/$to"; done
done
configure "$T"/disk{0,1,2}
refused "$T/disk0: both superblocks are damaged; put one back from a copy" 74
for i in 0 1 2; do mv "$T/save/$i" "$T/disk$i/super"; mv "$T/save/$i.2" "$T/disk$i/super2"; done

# ---- shorter, later, of two disks, in use ----
mv "$T/disk1/log" "$T/log"
head -c 8192 "$T/log" >"$T/disk1/log"
configure "$T"/disk{0,1,2}
refused "disk ${U1::8}, .* is damaged ($T/disk1: log is damaged: it has 8192 bytes"
configure "$T/nowhere" "$T"/disk{1,0}
refused "disk ${U1::8}, .* is damaged ($T/disk1: log is damaged: it has 8192 bytes.*; disk ${U2::8} is missing ($T/nowhere: there is no store here yet"
mv "$T/log" "$T/disk1/log"
cp "$T/disk1/super" "$T/super"
cp "$T/disk0/super" "$T/disk1/super"
refused "$T/disk1: the two superblocks are of different disks; put back the one that belongs here"
cp "$T/super" "$T/disk1/super"
# what only recovery finds: the others have been read by then, and are not written either
cp "$T/disk1/log" "$T/log"
dd if=/dev/zero of="$T/disk1/log" bs=64K count=$(($(stat -c %s "$T/log") >> 16)) conv=notrunc status=none
ACTS=('')
configure "$T"/disk{0,1,2}
refused "disk ${U1::8}, .* is damaged ($T/disk1: the log ends at offset 0 in epoch .*)"
advises "put the whole disk back" "gantryd --fsck lists what a repair would drop" "start without it, with store.accept_missing: \[$U1\]" "gantryd --fsck --repair"
configure "$T/nowhere" "$T"/disk{1,0}
sed -i "s|^store:|&\n  accept_missing: [\"$U1\", \"$U2\"]|" "$T/gantryd.yaml"
refused "only 1 of 3 disks are there"
configure "$T"/disk{0,1,2}
ACTS=('' --check-config)
dd if="$T/log" of="$T/disk1/log" bs=64K conv=notrunc status=none
# by a later version: another start does not help, and it is not taken for missing
later() { # DISK
	/usr/bin/python3 - "$1" <<-'END'
		import struct, sys
		table = []
		for n in range(256):
		    for _ in range(8):
		        n = n >> 1 ^ (0x9a6c9329ac4bc9b5 if n & 1 else 0)
		    table.append(n)
		for name in "super", "super2":
		    with open(sys.argv[1] + "/" + name, "r+b") as f:
		        b = bytearray(f.read())
		        struct.pack_into("<I", b, 8, struct.unpack_from("<I", b, 8)[0] + 3)
		        b[16:24] = bytes(8)
		        crc = 2 ** 64 - 1
		        for byte in b:
		            crc = table[(crc ^ byte) & 255] ^ crc >> 8
		        struct.pack_into("<Q", b, 16, crc ^ 2 ** 64 - 1)
		        f.seek(0)
		        f.write(b)
	END
}
cp -a "$T/disk1/super" "$T/disk1/super2" "$T/save"
later "$T/disk1"
sed -i "s|^store:|&\n  accept_missing: [\"$U1\"]|" "$T/gantryd.yaml"
refused "disk ${U1::8} $T/disk1 was made by another version of Gantry (its format is 6, and this one reads 3 to 5); start that one"
configure "$T"/disk{0,1,2}
refused "disk ${U1::8} $T/disk1 was made by another version of Gantry"
cp -a "$T/save/." "$T/disk1/"
exec 9<"$T/disk1/super"
flock 9
rc=0
GANTRY_STORE_LOCK_WAIT=100ms timeout 60 "$G" -c "$T/gantryd.yaml" >"$T/said" 2>&1 || rc=$?
exec 9<&-
assert_eq "$rc" 69 "in use: $(<"$T/said")"
grep -q "$T/disk1: in use: another process has super locked.* (disk ${U1::8})" "$T/said" || fail "in use: $(<"$T/said")"

# ---- two devices of the same bytes, a device among directories, and one that became shorter ----
truncate -s 512M "$T/image"
loops=''
trap 'rc=$?; [ -z "$DAEMON_PID" ] || kill -KILL "$DAEMON_PID"; for i in $loops; do losetup -d "$i"; done; (exit $rc); _at_exit' EXIT
loop() { # [WORD...]: one more device of the image
	losetup -f --show "$@" "$T/image" >"$T/loop" 2>/dev/null && loops+=" $(<"$T/loop")"
}
if loop && loop && loop --sizelimit 256M; then
	read -r dev second short <<<"$loops"
	rm -r "$T/disk1" "$T/disk2"
	mkdir "$T/disk1" "$T/disk2"
	configure "$T"/disk{1,2} "$dev"
	sed -i "s|\(disk[12]\)\" }|\1\", size: 64MiB }|" "$T/gantryd.yaml"
	"$G" -c "$T/gantryd.yaml" --format >"$T/said" 2>&1 || fail "directories and a device: $(<"$T/said")"
	daemon_run
	make_buckets
	curl -sS --fail -Z -X PUT -d x -o /dev/null "$URL_S3/bkt/k[1-180]" 2>>"$T/curl" || fail "PUTs"
	assert_eq "$(curl_admin /disks | jq 'map(.objects) | add == 180 and .[2] > 3 * .[0] and .[2] > 3 * .[1] and .[0] > 2')" true "slots by size: $(curl_admin /disks | jq -c 'map(.objects)')"
	has=$(curl_admin /disks | json objects 2) UD=$(uuid 2)
	configure "$dev" "$T"/disk{1,2}
	GANTRY_STORE_LOCK_WAIT=100ms timeout 60 "$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 && fail "--fsck of a device that is in use"
	grep -q "$dev: in use: cannot open the device.*stop that first (disk ${UD::8})" "$T/said" || fail "a device in use: $(<"$T/said")"
	stop_daemon
	configure "$T"/disk{1,2} "$dev" "$second"
	refused "$dev says to be disk ${UD::8} $second, too: one is a copy of the other"
	ln -s "$dev" "$T/by-path"
	configure "$T"/disk{1,2} "$dev" "$T/by-path"
	refused 'store.disks\[3\].path: is the same disk as store.disks\[2\]'
	configure "$T"/disk{1,2} "$short"
	refused "disk ${UD::8}, of a store of 3 disks, is damaged ($short: the device is damaged: it has 268435456 bytes, and was made with 536870912; make it as large again)"
	advises "put back what belongs there" "start without it, with store.accept_missing: \[$UD\]" "gantryd --forget $UD"
	configure "$T/nowhere" "$T/disk1" "$short"
	sed -i "s|^store:|&\n  accept_missing: [\"$UD\"]|" "$T/gantryd.yaml"
	refused "disk [0-9a-f]*, .* is missing ($T/nowhere: there is no store here yet"
	# Without it all else is served, and it is left alone; as large again it is what it was.
	configure "$T"/disk{1,2} "$short"
	sed -i "s|^store:|&\n  accept_missing: [\"$UD\"]|" "$T/gantryd.yaml"
	image() { stat -c %y "$T/image"; head -c 16M "$T/image" | md5; }
	was=$(image)
	statuses() { curl -sS -Z -o /dev/null -w '%{http_code}\n' "$URL_S3/bkt/k[1-180]" 2>>"$T/curl" | sort | uniq -c | xargs; }
	daemon_run
	assert_eq "$(statuses)" "$((180 - has)) 200 $has 503"
	assert_eq "$(curl_admin /disks | json state)" "serving serving missing"
	stop_daemon
	assert_eq "$(image)" "$was" "a device that is missing was written to"
	configure "$T"/disk{1,2} "$second"
	daemon_run
	assert_eq "$(statuses)" "180 200"
	stop_daemon
else
	echo "no loop device: devices were not tried"
fi
