#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry disk add --write and drain --write keep store.disks in conf.d/disks.yaml: whole, with owner and mode of the configuration, read by the next start, which
# finds each disk named; an absent conf.d is made. They refuse before any change where the file cannot be written or would not be used, and touch no file of others.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1 DISKS=2 DISK_SIZE=96MiB
MORE='log: { access: false }'
mkdir "$T/state"
export GANTRY_STORE_STATE_DIR=$T/state A=$T/admin.sock
FILE=$T/conf.d/disks.yaml
says() { # STATUS WORDS COMMAND...
	local rc=0
	"${@:3}" >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$1" "${*:3}: $(<"$T/said")"
	grep -qF -- "$2" "$T/said" || fail "${*:3}: it does not say \"$2\": $(<"$T/said")"
}
disk() { gantry --admin "$A" disk "$@" --conf "$T/gantryd.yaml"; }
health() { curl_admin /healthz | jq -r "$1"; }
unnamed() { [ "$(health '[.reasons[] | select(.code == "disk_unnamed")] | length')" = "$1" ]; }
states() { curl_admin /disks | jq -r '[.[] | .path + " " + .state] | join("\n")' | sed "s|$T/||"; }
drained() { states | grep -qx "$1 drained"; }
idle() { ! states | grep -q moving; }
listed() { sed -n "s|.*path: \"$T/\([^\"]*\)\".*|\1|p" "$FILE" | tr '\n' ' '; }

start_daemon
seq 3000 >"$T/body"
for i in $(seq 30); do curl_s3 "/bkt/o$i" -T "$T/body" || fail "PUT"; done

# ---- what is refused, is refused before anything is changed ----
: >"$T/conf.d"
says 1 "$FILE: Not a directory" disk add "$T/disk2" --size 96MiB --write
rm "$T/conf.d"
mkdir "$T/conf.d"
echo 'log: { level: info }' >"$FILE"
says 1 'this command has not written the file' disk add "$T/disk2" --size 96MiB --write
assert_eq "$(<"$FILE")" 'log: { level: info }'
rm "$FILE"
printf 'store:\n  disks:\n    - { path: "%s" }\n' "$T/disk0" >"$T/conf.d/site.yaml"
says 1 "would not be used: store.disks is taken from $T/conf.d/site.yaml" disk add "$T/disk2" --size 96MiB --write
rm "$T/conf.d/site.yaml"
GANTRY_STORE_DISKS="[{ path: $T/disk0 }]" says 1 'would not be used: store.disks is taken from environment GANTRY_STORE_DISKS' disk add "$T/disk2" --size 96MiB --write
sed "s|$T/disk|$T/none|" "$T/gantryd.yaml" >"$T/other.yaml"
says 1 "this gantryd has other disks than $T/other.yaml names" gantry --admin "$A" disk add "$T/disk2" --size 96MiB --write --conf "$T/other.yaml"
says 1 'cannot read it' gantry --admin "$A" disk add "$T/disk2" --size 96MiB --write --conf "$T/nowhere.yaml"
says 2 '--write is for add and drain' gantry --admin "$A" disk status --write
assert_eq "$(states)" $'disk0 serving\ndisk1 serving'
[ ! -e "$FILE" ] && [ ! -e "$T/disk2" ] || fail "something was made"

# ---- add: the directory is made, if it is absent, for the users of the configuration ----
rmdir "$T/conf.d"
chmod 640 "$T/gantryd.yaml"
chown 0:65534 "$T/gantryd.yaml"
says 0 "$FILE: written" disk add "$T/disk2" --size 96MiB --write
! grep -q 'add this line' "$T/said" || fail "the line is written, and the operator is told to write it: $(<"$T/said")"
assert_eq "$(stat -c '%a %u:%g' "$FILE")" '640 0:65534'
assert_eq "$(stat -c '%a %u:%g' "$T/conf.d")" '750 0:65534' "the directory"
assert_eq "$(listed)" 'disk0 disk1 disk2 '
assert_eq "$(ls -A "$T/conf.d")" disks.yaml
grep -qF "    - { path: \"$T/disk2\", size: 96MiB }" "$FILE" || fail "$(<"$FILE")"
WAIT_USUAL=30 wait_for 60 unnamed 0
assert_eq "$(metric gantry_config_restart_needed)" 0 "the file names the disks that the daemon has, and no restart is needed"
reload() { curl -sS --fail --unix-socket "$A" -X POST http://x/control/reload -o "$T/said" || fail "reload"; }
sed -i.bak "s|$T/disk1|$T/disk7|" "$FILE"
reload
assert_eq "$(metric gantry_config_restart_needed)" 1 "another disk is named: $(<"$T/said")"
mv "$FILE.bak" "$FILE"
reload
assert_eq "$(metric gantry_config_restart_needed)" 0 "$(<"$T/said")"
says 0 'not written, as store.disks is right already' disk add "$T/disk2" --size 96MiB --write
WAIT_USUAL=60 wait_for 120 idle
# A disk that was added without the option: the same command with it writes the list.
says 0 'add this line to store.disks' gantry --admin "$A" disk add "$T/disk3" --size 96MiB
WAIT_USUAL=60 wait_for 120 idle
wait_for 60 unnamed 1
cp "$FILE" "$T/three"
says 0 "$FILE: written" disk add "$T/disk3" --write
assert_eq "$(listed)" 'disk0 disk1 disk2 disk3 '
wait_for 60 unnamed 0
cp "$FILE" "$T/four"
cp "$T/three" "$FILE"
stop_daemon
# The record is lost: the file alone names the disks that were added.
sed -i '\|disk3|d' "$T"/state/store-*
mv "$T/state" "$T/state.away"
mkdir "$T/state"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/said" 2>&1 && fail "a disk without a line and without a record: $(<"$T/said")"
rmdir "$T/state"
mv "$T/state.away" "$T/state"
cp "$T/four" "$FILE"
daemon_run
wait_for 60 unnamed 0

# ---- drain: the list is written when the disk is drained ----
cp "$FILE" "$T/before"
says 0 'when it is drained (gantry disk status), repeat this command' disk drain "$T/disk1" --write
assert_same "$T/before" "$FILE"
WAIT_USUAL=60 wait_for 120 drained disk1
says 0 "$FILE: written" disk drain "$T/disk1" --write
assert_eq "$(listed)" 'disk0 disk2 disk3 '
says 0 'not written, as store.disks is right already' disk drain "$T/disk1" --write
says 1 '409' gantry --admin "$A" disk drain "$T/disk1"
stop_daemon
rm -r "$T/disk1"
mv "$T/state" "$T/state.away"
mkdir "$T/state"
daemon_run
assert_eq "$(states)" $'disk0 serving\ndisk2 serving\ndisk3 serving'
assert_eq "$(curl_admin /healthz | json status)" ok
for i in $(seq 30); do curl_s3 "/bkt/o$i" | cmp - "$T/body" || fail "o$i"; done
gantry --admin "$A" --json disk drain "$T/disk3" --write --conf "$T/gantryd.yaml" >"$T/said" || fail "drain"
WAIT_USUAL=60 wait_for 120 drained disk3
gantry --admin "$A" --json disk drain "$T/disk3" --write --conf "$T/gantryd.yaml" >"$T/said" || fail "drain --write"
assert_eq "$(jq -r '.file + " " + (.written | tostring)' "$T/said")" "$FILE true"
assert_eq "$(listed)" 'disk0 disk2 '

# ---- a path with characters that YAML escapes ----
odd="$T/di\"s\\k"
says 0 "$FILE: written" disk add "$odd" --size 96MiB --write
grep -qF '/di\"s\\k", size: 96MiB }' "$FILE" || fail "$(<"$FILE")"
WAIT_USUAL=30 wait_for 60 unnamed 0
