#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A scripted night: one thing after the other goes wrong, and a program that knows nothing but the screen carries out the first remedy that it reads
# there, or the next one where it has not what that needs (a copy). It never takes the last resort. After each event every acknowledged object is there.
#
# Events: a mount is missing; a disk is added and forgotten in the configuration; the files of a disk are moved away while it serves; a file is lost; the
# log is damaged, with a copy and without one; a disk is late; the process is stopped; the clock jumps ahead; the log's pipe is not read; the memory of
# the control group is too small; a quota is used up; the directory of a disk is deleted while it serves.
# Disks are directories that are bound to mount points in a mount namespace of this test's own, which takes root. The quota is one of btrfs in a loop
# device: XFS and ext4 have project quotas only in kernels that are built with them.
[ "${OWN_MOUNTS:-}" = here ] || {
	unshare -m true 2>/dev/null || { echo "night: FAIL: needs a mount namespace of its own (unshare -m), which takes root" >&2; exit 1; }
	OWN_MOUNTS=here exec unshare -m --propagation private "$0" "$@"
}
MORE=$'log: { access: false }\nlifecycle: { interval: 300ms }'
BUCKETS='one' DISKS=3 DISK_SIZE=256MiB
. "$(dirname "$0")/../system/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
# The health of disks is looked at every five seconds, and a wait of a start is bounded.
WAIT_USUAL=40
G=$BUILD/gantryd A=$T/admin.sock
mkdir "$T/state" "$T/back" "$T/copy"
export GANTRY_STORE_STATE_DIR=$T/state GANTRY_STORE_WAIT_FOR_DISKS=1s
_leave() {
	local rc=$? d
	[ -z "$DAEMON_PID" ] || { kill -KILL "$DAEMON_PID"; wait "$_daemon_job"; } 2>/dev/null
	DAEMON_PID=''
	for d in "$T"/disk? "$T/room"; do umount "$d" 2>/dev/null || umount -l "$d" 2>/dev/null; done
	[ -z "${LOOP:-}" ] || losetup -d "$LOOP"
	[ -z "${GROUP:-}" ] || rmdir "$GROUP" 2>/dev/null
	(exit $rc)
	_at_exit
}
trap _leave EXIT

# ---- the machine: what an operator knows besides the screen ----
# Where the file system of a mount point is.
place_of() { echo "$T/back/${1##*/}"; }
mount_disk() { [ -d "$(place_of "$1")" ] && mount --bind "$(place_of "$1")" "$1"; }

# ---- acknowledged objects ----
nr=0
put() { # BUCKET: an object of some size; acknowledged ones are noted
	nr=$((nr + 1))
	bytes "pattern:$nr" $((1000 + nr * 7919 % 300000)) >"$T/body"
	[ "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -X PUT --data-binary @"$T/body" "$URL_S3/$1/o$nr")" = 200 ] || return 1
	echo "$1/o$nr $(md5 <"$T/body")" >>"$T/acked"
}
work() { local i; for i in $(seq 12); do put one || fail "PUT"; put two || fail "PUT"; done; }
# all_there [BUCKET]: each acknowledged object (of that bucket) is there; a second copy may need a moment to be found.
is_there() { [ "$(curl -sS --max-time 120 "$URL_S3/$1" 2>/dev/null | md5)" = "$2" ]; }
all_there() {
	local object sum
	while read -r object sum; do
		case $object in "${1:-}"*) is_there "$object" "$sum" || wait_for 60 is_there "$object" "$sum" ;; esac
	done <"$T/acked"
}

# ---- the program that obeys ----
refused_start() { # the screen is that of a start that ends
	timeout 120 ${DAEMON_WRAP:-} "$G" -c "$T/gantryd.yaml" "$@" >"$T/screen" 2>&1 && fail "it started"
	return 0
}
health_screen() { curl_admin /healthz | jq -r '.reasons[].text' >"$T/screen"; }
accepted=''
# Carries out a remedy. 1: it needs something that is not there.
carry_out() {
	local path
	case $1 in
	"mount or attach "*)
		path=${1#mount or attach }
		path=${path%%[,;]*}
		mount_disk "$path"
		;;
	"put "*" back, or copy it from a backup"*)
		path=${1#put }
		path=${path% back, or copy*}
		[ -e "$T/copy/${path##*/}" ] && cp -a "$T/copy/${path##*/}" "$path"
		;;
	"put the whole disk back from a copy"*)
		[ -n "$(ls "$T/copy")" ] && cp -a "$T"/copy/. "$DAMAGED/"
		;;
	"start without it, with store.accept_missing: "*)
		accepted=$(sed -E 's/.*accept_missing: \[([^]]*)\].*/\1/' <<<"$1")
		sed -i "s|^store:|store:\n  accept_missing: [$accepted]|" "$T/gantryd.yaml"
		;;
	"gantryd --fsck lists "*)
		# It shows more, and changes nothing.
		"$G" -c "$T/gantryd.yaml" --fsck >"$T/listed" 2>&1 && fail "--fsck finds nothing: $(cat "$T/listed")"
		return 1
		;;
	*"add the line "*" to store.disks"*)
		path=${1#*add the line }
		sed -i "s|^  disks:|&\n    ${path% to store.disks*}|" "$T/gantryd.yaml"
		curl -sS --unix-socket "$A" -X POST http://x/control/reload >/dev/null
		;;
	*"repair what the log names, and restart the daemon"*)
		grep -q 'was removed' <<<"$1" && mv "$T"/away/* "$(place_of "$DAMAGED")/" && kill_daemon && daemon_run
		;;
	"the clock jumped "*"set the clock of this machine right"*) ahead 0 ;;
	*"make room below it, or raise its limit"*) btrfs qgroup limit none "$T/room/disk" ;;
	*"have its reader read again"*)
		cat "$T/pipe" >"$T/read" &
		READER=$!
		;;
	*"raise the limit of the control group to "*)
		echo "$(grep -oE '[0-9]+[MG]iB' <<<"${1#*raise the limit}" | head -n 1 | sed 's/MiB/ 20/; s/GiB/ 30/' | awk '{ printf "%d", $1 * 2 ^ $2 + 2 ^ 20 }')" >"$GROUP/$LIMIT"
		;;
	*) fail "no program can do this: $1" ;;
	esac
}
# obey WORD...: carries out the first remedy on the screen that can be, which has to contain these words.
obey() {
	local remedy
	grep -oE '(remedy: .*)' "$T/screen" | sed 's/^remedy: //' >"$T/remedies"
	# A reason of health is a line with its first remedy at the end.
	[ -s "$T/remedies" ] || cp "$T/screen" "$T/remedies"
	[ -s "$T/remedies" ] || fail "no remedy on the screen"
	while read -r remedy; do
		carry_out "$remedy" || continue
		grep -qF -- "$1" <<<"$remedy" || fail "it did \"$remedy\" instead of \"$1\": $(cat "$T/screen")"
		echo "$event: $remedy"
		return 0
	done <"$T/remedies"
	fail "nothing on the screen can be done: $(cat "$T/screen")"
}
# What destroys data stands last on a screen, or not at all.
last_is_last() {
	! grep -A100 'last resort: ' "$T/screen" | grep -q 'remedy: ' || fail "a remedy after the last resort: $(cat "$T/screen")"
}

# ---- the evening ----
for i in 0 1 2 3; do
	mkdir "$T/back/disk$i" "$T/disk$i"
	[ "$i" = 3 ] || mount_disk "$T/disk$i"
done
write_config
sed -i 's|^store:|store:\n  disk_timeout: 8s|' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
work
all_there

event="a mount is missing"
stop_daemon
umount "$T/disk1"
refused_start
last_is_last
obey "mount or attach $T/disk1"
daemon_run
all_there

event="a disk is added, and forgotten"
mount_disk "$T/disk3"
gantry --admin "$A" disk add "$T/disk3" --size 256MiB >"$T/said" || fail "disk add: $(cat "$T/said")"
work
kill_daemon
daemon_run
all_there
is_unnamed() { health_screen; grep 'store.disks does not name it' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"; }
wait_for 60 is_unnamed
obey "add the line"
is_named() { ! is_unnamed; }
wait_for 60 is_named
work
kill_daemon
daemon_run
all_there

event="the files of a disk are moved away while it serves"
DAMAGED=$T/disk2
settle
mkdir "$T/away"
# Not across the mount, where a move is a copy.
mv "$(place_of "$DAMAGED")"/* "$T/away/"
has_failed() { health_screen; grep 'failed, read-only' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"; }
wait_for 60 has_failed
for i in $(seq 20); do put two || :; put one || :; done
obey "repair what the log names"
all_there

event="a file is lost"
stop_daemon
cp -a "$T/disk0/seg-0000" "$T/copy/"
rm "$T/disk0/seg-0000"
refused_start
last_is_last
grep -q 'is damaged' "$T/screen" || fail "a damaged disk is not called damaged: $(cat "$T/screen")"
obey "put $T/disk0/seg-0000 back"
rm -r "$T"/copy/*
daemon_run
all_there

event="the log is damaged"
DAMAGED=$T/disk1
work
stop_daemon
cp -a "$T"/disk1/. "$T/copy/"
dd if=/dev/zero of="$T/disk1/log" bs=64K count=$(($(stat -c %s "$T/disk1/log") >> 16)) conv=notrunc status=none
refused_start
last_is_last
obey "put the whole disk back"
daemon_run
all_there

event="the log is damaged, and there is no copy at hand"
stop_daemon
mv "$T/copy" "$T/later"
mkdir "$T/copy"
dd if=/dev/zero of="$T/disk1/log" bs=64K count=$(($(stat -c %s "$T/disk1/log") >> 16)) conv=notrunc status=none
refused_start
obey "start without it"
daemon_run
# The objects with two copies are served; the others wait for the disk, which has not lost them.
all_there two
stop_daemon
cp -a "$T"/later/. "$T/disk1/"
rm -r "$T/later"
sed -i '/accept_missing/d' "$T/gantryd.yaml"
daemon_run
all_there

event="a disk is late"
stop_daemon
umount "$T/disk2"
: >"$T/daemon.log"
waits() { grep 'waiting for disks' -A1 "$T/daemon.log" | grep 'remedy: ' >"$T/screen"; }
{ wait_for 60 waits; obey "mount or attach $T/disk2"; } &
program=$!
GANTRY_STORE_WAIT_FOR_DISKS=600s daemon_run
wait "$program" || fail "the disk did not come"
all_there

event="the process is stopped"
bytes pattern:78 8M >"$T/large"
curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -X PUT --data-binary @"$T/large" "$URL_S3/one/stopped" >"$T/code" &
writer=$!
kill -STOP "$DAEMON_PID"
pause 12
kill -CONT "$DAEMON_PID"
wait "$writer" && [ "$(cat "$T/code")" = 200 ] || fail "PUT: $(cat "$T/code")"
echo "one/stopped $(md5 <"$T/large")" >>"$T/acked"
health_screen
! grep 'failed' "$T/screen" || fail "a disk failed because the process was stopped"
work
all_there
stop_daemon

event="the clock jumps ahead"
cc -O -shared -fPIC -o "$T/wall.so" tests/system/wall_clock.c -ldl || fail "the clock of this test does not compile"
ahead() { printf '%010d' $(($1 * 86400)) | dd of="$T/wall" conv=notrunc status=none; } # DAYS
printf 0000000000 >"$T/wall"
DAEMON_WRAP="env LD_PRELOAD=$T/wall.so WALL_OFFSET=$T/wall" daemon_run
rule='<Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix></Prefix></Filter><Expiration><Days>30</Days></Expiration></Rule>'
curl -sS --fail -X PUT --data-binary "<LifecycleConfiguration>$rule</LifecycleConfiguration>" "$URL_S3/one?lifecycle" || fail "the rule"
ahead 400
jumped() { health_screen; grep 'the clock jumped' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"; }
wait_for 60 jumped
walks=$(metric gantry_lifecycle_walks_total)
walked() { [ "$(metric gantry_lifecycle_walks_total)" -ge $((walks + 3)) ]; }
wait_for 60 walked
obey "set the clock of this machine right"
is_right() { ! jumped; }
wait_for 60 is_right
all_there
curl -sS --fail -X DELETE "$URL_S3/one?lifecycle" || fail "the rule stays"

event="the pipe of the log is not read"
stop_daemon
mkfifo "$T/pipe"
exec 7<>"$T/pipe"
printf '#!/bin/bash\nexec "$@" >"%s" 2>&1\n' "$T/pipe" >"$T/wrap"
chmod +x "$T/wrap"
timeout 2 dd if=/dev/zero bs=64 of="$T/pipe" 2>/dev/null
sed -i 's/access: false/access: true/' "$T/gantryd.yaml"
DAEMON_WRAP=$T/wrap daemon_run
drops() { local i; for i in $(seq 500); do echo "url = $URL_S3/two/none$i"; echo 'output = /dev/null'; done >"$T/urls"; curl -sS --max-time 120 -K "$T/urls"; health_screen; grep 'does not read' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"; }
WAIT_USUAL=120 wait_for 120 drops
put two || fail "a PUT while nobody reads the log"
obey "have its reader read again"
reads() { health_screen; ! grep -q 'does not read' "$T/screen"; }
wait_for 60 reads
all_there
stop_daemon
kill "$READER"
wait "$READER" 2>/dev/null
sed -i 's/access: true/access: false/' "$T/gantryd.yaml"

event="the control group is too small"
own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
if [ -n "$own" ]; then base=/sys/fs/cgroup/memory$own LIMIT=memory.limit_in_bytes; else base=/sys/fs/cgroup LIMIT=memory.max; fi
[ -d "$base" ] || base=$(dirname "$base/x")
GROUP=$base/gantry-night-$$
if mkdir "$GROUP" 2>/dev/null && echo $((120 << 20)) >"$GROUP/$LIMIT" 2>/dev/null; then
	printf '#!/bin/bash\necho $$ >"%s/cgroup.procs"\nexec "$@"\n' "$GROUP" >"$T/in-group"
	chmod +x "$T/in-group"
	DAEMON_WRAP=$T/in-group refused_start
	grep 'control group' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"
	obey "raise the limit of the control group"
	DAEMON_WRAP=$T/in-group daemon_run
	all_there
	stop_daemon
else
	rmdir "$GROUP" 2>/dev/null
	GROUP=''
	echo "$event: no memory control group of our own can be made here: not tried"
fi

event="a quota is used up"
# Of the file systems of Linux btrfs has quotas in every kernel that has it; EDQUOT is the answer of the kernel.
command -v mkfs.btrfs >/dev/null || fail "$event: no btrfs-progs: scripts/deps disk installs them"
mkdir "$T/room"
truncate -s 1G "$T/image"
mkfs.btrfs -q "$T/image" >"$T/said" 2>&1 && LOOP=$(losetup -f --show "$T/image") && mount "$LOOP" "$T/room" && btrfs quota enable "$T/room" &&
	btrfs subvolume create "$T/room/disk" >"$T/said" 2>&1 || fail "$event: btrfs with a quota, in a loop device: $(cat "$T/said")"
daemon_run
gantry --admin "$A" disk add "$T/room/disk" --size 320MiB >"$T/said" || fail "disk add: $(cat "$T/said")"
settle
sync -f "$T/room"
btrfs qgroup limit $(($(btrfs qgroup show --raw -f "$T/room/disk" | awk '$1 ~ /^0\// { print $2 }') + (16 << 20))) "$T/room/disk" || fail "$event: no limit"
bytes pattern:77 8M >"$T/large"
full=''
for i in $(seq 100); do
	code=$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -X PUT --data-binary @"$T/large" "$URL_S3/one/large$i")
	[ "$code" = 200 ] && echo "one/large$i $(md5 <"$T/large")" >>"$T/acked"
	[ "$code" != 507 ] || { full=one/large$i; break; }
done
[ -n "$full" ] || fail "no PUT was refused for want of room"
grep -q 'Disk quota exceeded' "$T/daemon.log" || fail "$event: the log does not have the error of the kernel"
has_no_room() { health_screen; grep 'has no room for what it counts as free' "$T/screen" >"$T/one" && mv "$T/one" "$T/screen"; }
wait_for 60 has_no_room
obey "make room below it"
takes() { [ "$(curl -sS --max-time 120 -o /dev/null -w '%{http_code}' -X PUT --data-binary @"$T/large" "$URL_S3/$full")" = 200 ]; }
wait_for 60 takes
echo "$full $(md5 <"$T/large")" >>"$T/acked"
all_there
assert_alive
stop_daemon
"$G" -c "$T/gantryd.yaml" --fsck >"$T/said" 2>&1 || fail "--fsck in the morning: $(tail -n 20 "$T/said")"

event="the directory of a disk is deleted while it serves"
# Where a bucket has two copies; the other one loses what was on this disk.
sed -i '/^one\//d' "$T/acked"
DAMAGED=$T/disk0
rm -rf "$T/away"
daemon_run
settle
for i in $(seq 12); do put two || fail "PUT"; done
rm -rf "$(place_of "$DAMAGED")"
wait_for 60 has_failed
for i in $(seq 20); do put two || :; done
all_there
kill_daemon
refused_start
last_is_last
obey "start without it"
daemon_run
all_there
for i in $(seq 12); do put two || fail "PUT without the disk"; done
all_there
stop_daemon
