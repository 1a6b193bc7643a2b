#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What somebody meets who tries it for the first time and forgets something: a sentence that says what is wrong and what to do, and
# an exit status that says whether a restart could help.
. "$(dirname "$0")/lib.sh"
NO_NIC=1
# says STATUS WORDS COMMAND...: the command ends so, and prints the words.
says() {
	local rc
	"${@:3}" >"$T/said" 2>&1
	rc=$?
	assert_eq "$rc" "$1" "${*:3}: $(<"$T/said")"
	grep -qF -- "$2" "$T/said" || fail "${*:3}: it does not say \"$2\": $(<"$T/said")"
}
write_config
# The store was not made: said with the cure, and nobody starts it again and again.
says 74 "$T/disk0: there is no store here yet; is it mounted?" "$BUILD/gantryd" -c "$T/gantryd.yaml"
grep -A1 "remedy: mount or attach $T/disk0" "$T/said" | grep -q "remedy: where there has never been a store, gantryd --format" || fail "the remedies: $(<"$T/said")"
! grep -q 'Function not implemented' "$T/said" || fail "no RDMA device, in the kernel's words: $(<"$T/said")"
says 74 'fsck: the store is damaged, foreign, or not made yet' "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck
grep -q 'there is no store here yet' "$T/said" || fail "--fsck without a store: $(<"$T/said")"
mkdir "$T/disk0"
says 74 'not a Gantry store (there is no super); is it mounted?' "$BUILD/gantryd" -c "$T/gantryd.yaml"
# One that has lost both superblocks is no mount point.
mkdir "$T/disk7"
: >"$T/disk7/log"
sed "s|$T/disk0|$T/disk7|" "$T/gantryd.yaml" >"$T/super.yaml"
says 74 "$T/disk7: not a Gantry store (there is no super), but it has a log: put super and super2 back from a copy" "$BUILD/gantryd" -c "$T/super.yaml"
! grep -q -e '--format' -e 'is it mounted' "$T/said" || fail "who lost the superblocks is told to make a store: $(<"$T/said")"
# A store that has lost its log is none that --format should make.
sed "s|$T/disk0|$T/disk9|" "$T/gantryd.yaml" >"$T/lost.yaml"
"$BUILD/gantryd" -c "$T/lost.yaml" --format >/dev/null 2>&1 || fail "--format"
rm "$T/disk9/log"
says 74 "$T/disk9: the log is not there; put it back from a copy" "$BUILD/gantryd" -c "$T/lost.yaml"
! grep -q -- '--format' "$T/said" || fail "who lost the log is told to make a store: $(<"$T/said")"
says 74 "$T/disk9: the log is not there" "$BUILD/gantryd" -c "$T/lost.yaml" --check-config
# Nor is what a whole system lies in.
mkdir -p "$T/disk8/etc" "$T/disk8/usr"
sed "s|$T/disk0|$T/disk8|" "$T/gantryd.yaml" >"$T/root.yaml"
says 78 "$T/disk8: the root of a system is no disk; make a directory of its own" "$BUILD/gantryd" -c "$T/root.yaml" --format --force
# Sizes are for people.
sed "s|$T/disk0|$T/disk6|; s|size: $DISK_SIZE|size: 500TiB|" "$T/gantryd.yaml" >"$T/huge.yaml"
says 78 "disk6: the file system has room for " "$BUILD/gantryd" -c "$T/huge.yaml" --format
grep -qE 'room for [0-9.]+ [MGT]iB, and 500.0 TiB are wanted' "$T/said" || fail "a size: $(<"$T/said")"
# A device can still come.
sed "s|$T/disk0|/dev/gantry-is-not-here|" "$T/gantryd.yaml" >"$T/device.yaml"
GANTRY_STORE_WAIT_FOR_DISKS=0s says 69 '/dev/gantry-is-not-here' "$BUILD/gantryd" -c "$T/device.yaml"
# What a start would refuse, --check-config refuses.
ln -s disk0 "$T/disk1"
sed "s|^    - { path: .*|&\n    - { path: \"$T/disk1\" }|" "$T/gantryd.yaml" >"$T/two.yaml"
says 78 'store.disks[1].path: is the same disk as store.disks[0]' "$BUILD/gantryd" -c "$T/two.yaml" --check-config
rm "$T/disk1"
for i in $(seq 65); do printf '    - { path: "%s/many%d", size: 64MiB }\n' "$T" "$i"; done >"$T/lines"
sed "/^    - { path: /{r $T/lines
d}" "$T/gantryd.yaml" >"$T/many.yaml"
says 78 'store.disks: 65 entries; at most 64' "$BUILD/gantryd" -c "$T/many.yaml" --check-config
# No file at all.
[ -e /etc/gantry/gantryd.yaml ] || says 78 '/etc/gantry/gantryd.yaml: it is not there' "$BUILD/gantryd"
says 78 "$T/nope.yaml: cannot read it: No such file or directory" "$BUILD/gantryd" -c "$T/nope.yaml"
# The whole network may write: said at each start.
sed 's|address: "127.0.0.1:0", dialect: s3|address: "0.0.0.0:0", dialect: s3|' "$T/gantryd.yaml" >"$T/open.yaml"
"$BUILD/gantryd" -c "$T/open.yaml" --format >/dev/null 2>&1 || fail "--format"
mv "$T/gantryd.yaml" "$T/closed.yaml"
mv "$T/open.yaml" "$T/gantryd.yaml"
daemon_run
wait_for 60 grep -q 'anonymous: true: every client that reaches this address may read, write and delete' "$T/daemon.log"
stop_daemon
: >"$T/daemon.log"
mv "$T/closed.yaml" "$T/gantryd.yaml"
daemon_run
! grep -q 'every client that reaches this address' "$T/daemon.log" || fail "a listener on loopback is warned of"
# Why a bucket's name is not one.
curl -sS -X PUT "$URL_S3/No_Bucket" | grep -q '3 to 63 of a-z, 0-9' || fail "a bucket's name: it is not said what one is"
stop_daemon
