#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The record of the store outside of its disks: what --format, --format --if-absent, --check-config and a start say of a mount that is missing, and that they
# make nothing; a disk that was added while the daemon served and that the file does not name is used after a restart, named in health, and taken out by a
# drain and by --forget; damaged, foreign and unwritable records, a file by another name, a copied one.
DISK_SIZE=256MiB DISKS=2
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }'
G=$BUILD/gantryd A=$T/admin.sock
unset STATE_DIRECTORY
# Nobody mounts them meanwhile (tests/system/late_disks.sh).
export GANTRY_STORE_WAIT_FOR_DISKS=0s
says() { # STATUS WORDS COMMAND...
	local rc
	"${@:3}" >"$T/said" 2>&1
	rc=$?
	assert_eq "$rc" "$1" "${*:3}: $(<"$T/said")"
	grep -qF -- "$2" "$T/said" || fail "${*:3}: it does not say \"$2\": $(<"$T/said")"
}
says_not() { ! grep -qF -- "$1" "$T/said" || fail "it says \"$1\": $(<"$T/said")"; }
g() { "$G" -c "$T/gantryd.yaml" "$@"; }
health() { curl_admin /healthz | jq -r "$1"; }
has_code() { [ "$(health ".reasons[] | select(.code == \"$1\") | .object" | wc -l)" = "$2" ]; }
record() { echo "$T"/state/store-*; }
members() { grep -c '^disk ' "$(record)"; }
remembers() { [ "$(members)" = "$1" ]; }
uuid_at() { sed -n "s|^disk \([^ ]*\) [0-9]* $1\$|\1|p" "$(record)"; }
unmount() { local d; for d in "$@"; do mv "$T/$d" "$T/$d.away"; mkdir "$T/$d"; done; }
mounts() { local d; for d in "$@"; do rmdir "$T/$d" || fail "something was made below the mount point $d: $(ls "$T/$d")"; mv "$T/$d.away" "$T/$d"; done; }

# ---- without a place there is no memory, and the daemon says so ----
export GANTRY_STORE_STATE_DIR=none
write_config
says 0 'cannot be remembered outside of its disks' g --format
rm -r "$T"/disk?
export GANTRY_STORE_STATE_DIR=$T/state
says 0 'cannot write the record of the store: No such file or directory' sh -c "\"$G\" -c \"$T/gantryd.yaml\" --format || [ \$? = 1 ]"
[ ! -e "$T/state" ] || fail "the daemon made the directory"
rm -r "$T"/disk?
mkdir "$T/state"

# ---- a new store is remembered; it is on one file system with the record here, which is said ----
says 0 'made a store on 2 disks' g --format
says_not 'cannot be remembered'
grep -q "$T/disk0 is on one file system with the record of the store, $(record)" "$T/said" || fail "one file system: $(<"$T/said")"
assert_eq "$(members)" 2
STORE=$(sed -n 's/^store //p' "$(record)")
says 74 "this daemon has served store $STORE" g --format
says 74 "--format --replace-store $STORE" g --format --force
says 74 "this daemon has served store $STORE" g --format --force --replace-store 00112233-4455-6677-8899-aabbccddeeff
says 0 'there is a store already, nothing was done' g --format --if-absent
daemon_run
make_buckets
seq 2000 >"$T/body"
curl_s3 '/bkt/o[1-40]' -T "$T/body" || fail "PUT"
whole() { curl_s3 '/bkt/o[1-40]' >"$T/got" && assert_eq "$(md5 <"$T/got")" "$WHOLE"; }
WHOLE=$(for i in $(seq 40); do cat "$T/body"; done | md5)
assert_eq "$(curl_admin /healthz | json status)" ok
says 0 'there is a store already, nothing was done' g --format --if-absent
stop_daemon

# ---- no disk is there: nobody makes another store ----
unmount disk0 disk1
says 74 "this daemon has served store $STORE, and none of its disks is there: is the file system mounted" g
says_not --format
says 69 'is the file system mounted' g --check-config
says_not good
says 74 'is its file system mounted' g --format
assert_match "$(sed -n 2p "$T/said")" "^remedy: mount or attach $T/disk0"
assert_match "$(tail -n 1 "$T/said")" "^All objects of store $STORE are given up for this daemon; last resort: gantryd --format --replace-store $STORE"
says 74 'is its file system mounted' g --format --force
says 69 'nothing was done: ' g --format --if-absent
mounts disk0 disk1
mv "$T/disk0" "$T/disk0.away"
mv "$T/disk1" "$T/disk1.away"
says 74 'is the file system mounted' g
says 69 'nothing was done: ' g --format --if-absent
[ ! -e "$T/disk0" ] || fail "a directory was made"
mv "$T/disk0.away" "$T/disk0"
mv "$T/disk1.away" "$T/disk1"

# ---- one of two ----
unmount disk1
says 78 "($T/disk1: not a Gantry store (there is no super); is it mounted?)" g
grep -q "remedy: mount or attach $T/disk1, and start again" "$T/said" || fail "the first remedy: $(<"$T/said")"
assert_match "$(tail -n 1 "$T/said")" ' (About|Up to) [0-9]+ % of the objects of buckets with one copy are lost; last resort: gantryd --forget'
says 78 'is it mounted?' g --format --if-absent
says 74 'is its file system mounted' g --format
mounts disk1

# ---- added while it serves, killed, and started again without a line ----
daemon_run
gantry --admin "$A" disk add "$T/disk2" --size 256MiB >"$T/said" || fail "disk add"
grep -qF "  - { path: \"$T/disk2\", size: 256MiB }" "$T/said" || fail "no line: $(<"$T/said")"
wait_for 60 has_code disk_unnamed 1
kill_daemon
assert_eq "$(members)" 3
U2=$(uuid_at "$T/disk2")
says 0 "$T/disk2: " g --fsck
grep -qE "$T/disk2: [0-9]+ objects, [0-9]+ bytes read, 0 damaged" "$T/said" || fail "--fsck does not read a disk that the file does not name: $(<"$T/said")"
daemon_run
whole || fail "objects are lost"
says 0 "store.disks does not name disk ${U2::8} $T/disk2 of this store: add the line - { path: \"$T/disk2\", size: 256MiB }" g --check-config
wait_for 60 has_code disk_unnamed 1
assert_eq "$(curl_admin /healthz | json status)" degraded
assert_eq "$(metric gantry_health_reason 'code="disk_unnamed"')" 1
gantry --admin "$A" status >"$T/said" && fail "status ends well"
grep -qF "add the line - { path: \"$T/disk2\", size: 256MiB }" "$T/said" || fail "status: $(<"$T/said")"
gantry --admin "$A" doctor >"$T/said"
grep -q 'disk_unnamed' "$T/said" || fail "doctor: $(<"$T/said")"
grep -q "on one file system with the record" "$T/said" || fail "doctor does not name the one file system: $(<"$T/said")"
# The line, and a reload, end it.
cp "$T/gantryd.yaml" "$T/short.yaml"
sed -i "/disk1/a\\    - { path: \"$T/disk2\", size: 256MiB }" "$T/gantryd.yaml"
curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
wait_for 60 has_code disk_unnamed 0
cp "$T/short.yaml" "$T/gantryd.yaml"
settle
stop_daemon

# ---- it is used only where it was, and only if it is that disk of that store ----
mv "$T/disk2" "$T/disk2.away"
says 78 "is missing (store.disks does not name it; it was at $T/disk2" g
mkdir "$T/other"
sed "s|$T/disk0|$T/other|; /disk1/d" "$T/gantryd.yaml" >"$T/other.yaml"
GANTRY_STORE_STATE_DIR=none "$G" -c "$T/other.yaml" --format >/dev/null 2>&1 || fail "another store"
mv "$T/other" "$T/disk2"
says 78 "it was at $T/disk2: another disk is there" g
mv "$T/disk2" "$T/other"
# At another place it is used when the file names that.
sed -i "/disk1/a\\    - { path: \"$T/moved\", size: 256MiB }" "$T/gantryd.yaml"
mv "$T/disk2.away" "$T/moved"
daemon_run
whole || fail "objects are lost"
assert_eq "$(uuid_at "$T/moved")" "$U2"
wait_for 60 has_code disk_unnamed 0

# ---- a drain takes it out ----
gantry --admin "$A" disk drain "$U2" >/dev/null || fail "disk drain"
wait_for 120 remembers 2
stop_daemon
cp "$T/short.yaml" "$T/gantryd.yaml"
rm -r "$T/moved"
daemon_run
whole || fail "objects are lost"
assert_eq "$(curl_admin /healthz | json status)" ok
stop_daemon

# ---- --add, and --forget ----
sed -i "/disk1/a\\    - { path: \"$T/disk3\", size: 256MiB }" "$T/gantryd.yaml"
says 0 'was added' g --add "$T/disk3"
assert_eq "$(members)" 3
U3=$(uuid_at "$T/disk3")
cp "$T/short.yaml" "$T/gantryd.yaml"
says 0 'given up: 1 disk' g --forget "$U3" --force
assert_eq "$(members)" 2

# ---- one configuration by another name, and a copy ----
ln -s gantryd.yaml "$T/link.yaml"
unmount disk0 disk1
says 74 "this daemon has served store $STORE" "$G" -c "$T/link.yaml" --format
mounts disk0 disk1
cp "$T/gantryd.yaml" "$T/copy.yaml"
says 74 'has a store already' "$G" -c "$T/copy.yaml" --format

# ---- a record that is damaged ----
cp "$(record)" "$T/good"
head -c 100 "$T/good" >"$(record)"
says 74 "$(record): the record of the store is damaged" g --format
says 74 'remedy: where there has never been a store, remove ' g --format --if-absent
says 0 "$(record): the record of the store is damaged" g --check-config
unmount disk0 disk1
says 74 "$(record): the record of the store is damaged" g --format --force
mounts disk0 disk1
daemon_run
grep -q "$(record): the record of the store is damaged" "$T/daemon.log" || fail "a start does not say it"
cmp "$(record)" "$T/good" || fail "it was not written again"
stop_daemon

# ---- a record of another store ----
sed "s/^store .*/store 00112233-4455-6677-8899-aabbccddeeff/" "$T/good" >"$(record)"
says 74 "is of store $STORE, and this daemon has served store 00112233-4455-6677-8899-aabbccddeeff" g
grep -qF "remove $(record) first" "$T/said" || fail "no way out: $(<"$T/said")"
says 74 "remove $(record) first" g --check-config
says 74 'served store 00112233' g --format --if-absent
cp "$T/good" "$(record)"

# ---- a directory that cannot be written while it serves, and can again ----
daemon_run
mv "$T/state" "$T/state.away"
: >"$T/state"
gantry --admin "$A" disk add "$T/disk4" --size 256MiB >/dev/null || fail "disk add without a record"
wait_for 60 has_code not_remembered 1
rm "$T/state"
mv "$T/state.away" "$T/state"
WAIT_USUAL=60 wait_for 90 has_code not_remembered 0
assert_eq "$(members)" 3
stop_daemon

# ---- the way out ----
rm -r "$T"/disk?
says 0 'made a store on 2 disks' g --format --replace-store "$STORE"
assert_ne "$(sed -n 's/^store //p' "$(record)")" "$STORE"
assert_eq "$(members)" 2
says 78 'no store is remembered' "$G" -c "$T/copy.yaml" --format --replace-store "$STORE"
says 2 'wants the UUID of a store' g --format --replace-store nonsense
says 2 'goes with --format' g --replace-store "$STORE"
# ---- one disk ----
sed "/disk1/d; s|$T/disk0|$T/single|" "$T/gantryd.yaml" >"$T/one.yaml"
mv "$T/one.yaml" "$T/gantryd.yaml"
rm "$(record)"
says 0 'made a store on 1 disk' g --format
daemon_run
assert_eq "$(curl_admin /healthz | json status)" ok
stop_daemon
unmount single
says 69 'nothing was done: ' g --format --if-absent
mounts single
says 0 'there is a store already' g --format --if-absent
