#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A bucket with two copies on three disks under load (PUT, GET, DELETE, lists, multipart uploads; tests/system/disks_move.py judges each answer) while one
# of them fails and returns, one is drained and one added, with a SIGKILL in the middle of each, in the order that SEED= decides: nothing
# acknowledged is lost or comes again, no read is 503, lists are whole; at last the two copies of everything are the same.  Each once,
# or for SECS seconds (long/copies_move).
# The clients continue while the daemon is started again: no other listener has its port then.
OWN_NET=${OWN_NET:-1} S3_PORT=9000
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../long/disks_rig.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=2 DISKS=3 DISK_SIZE=${SECS:+512MiB} BUCKETS=''
: "${DISK_SIZE:=256MiB}"
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
SEED=${SEED:-$(date +%s)}
RANDOM=$((SEED % 32768))
echo "SEED=$SEED"
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault"
export GANTRY_ADMIN=$T/admin.sock
made=3
disks() { curl_admin /disks | jq -r "$1"; }
state_of() { disks ".[] | select(.path == \"$1\") | .state"; }
is() { [ "$(state_of "$1")" = "$2" ]; }
ended() { [ "$(curl_admin /control/disk/drain | json running)" = false ] && _rig_full; }
again() {
	kill_daemon
	rm -f "$T"/fault/*
	daemon_run
	echo "$URL_S3" >"$T/url"
}
requests() { metric gantry_requests_total; }
_answered() { [ "$(requests)" -ge "$1" ]; }
load_works() { wait_for 60 _answered $(($(requests) + $1)); } # until so many more requests were answered
# A moment of any length, so that a kill comes at any point.
while_later() { sleep "0.$((RANDOM % 9))$((RANDOM % 10))"; }
configure() { # the disks that there are
	local d
	sed -i '/^    - { path: /d' "$T/gantryd.yaml"
	for d in "${DISK_PATH[@]}"; do sed -i "/^  disks:/a\\    - { path: \"$d\", size: $DISK_SIZE }" "$T/gantryd.yaml"; done
}
now() { # what of a disk
	local i=$((RANDOM % 3)) d
	d=${DISK_PATH[i]}
	case $1 in
	killed) again ;;
	fails)
		# What it has cannot be read any more either, or can.
		echo "write flush $([ $((RANDOM % 2)) = 1 ] || echo read)" >"$T/fault/${d##*/}"
		wait_for 60 is "$d" failed
		while_later
		again
		;;
	replaced)
		# Drained, and another one comes; or the other way round.
		if [ $((RANDOM % 2)) = 0 ]; then drained "$i" && added "$i"; else added 3 && drained "$i" && DISK_PATH[i]=${DISK_PATH[3]} && unset 'DISK_PATH[3]' && configure; fi
		;;
	esac
	wait_for 60 ended
}
drained() {
	gantry disk drain "${DISK_PATH[$1]}" >"$T/said" 2>&1 || fail "drain: $(<"$T/said")"
	while_later
	again
	wait_for 60 ended
	is "${DISK_PATH[$1]}" drained || is "${DISK_PATH[$1]}" '' || fail "it is $(state_of "${DISK_PATH[$1]}")"
}
added() {
	gantry disk add "$T/disk$made" --size "$DISK_SIZE" >"$T/said" 2>&1 || fail "add: $(<"$T/said")"
	DISK_PATH[$1]=$T/disk$made
	made=$((made + 1))
	configure
	while_later
	again
	wait_for 60 ended
}

start_daemon
for i in 0 1 2; do DISK_PATH[i]=$T/disk$i; done
gantry mb "$URL_S3/bkt" --copies 2 || fail "gantry mb --copies 2"
echo "$URL_S3" >"$T/url"
/usr/bin/python3 "$ROOT/tests/system/disks_move.py" "$T" "$SEED" bkt >"$T/load" &
LOAD=$!
load_works 50
until=$((SECONDS + ${SECS:-0})) rounds=0
while :; do
	# shellcheck disable=SC2046
	for e in $(shuf -e --random-source=<(yes "$RANDOM") killed fails replaced); do
		echo "$e"
		now "$e"
	done
	rounds=$((rounds + 1))
	[ $SECONDS -lt $until ] || break
done
load_works 50
touch "$T/stop"
wait $LOAD || fail "$(<"$T/load")"
cat "$T/load"
echo "$rounds rounds"
! grep -o 'GET:503=[0-9]*' "$T/load" || fail "reads were answered 503"
curl_s3 '/bkt?list-type=2' | grep -o '<Key>[^<]*' | sed 's/<Key>//' | diff - "$T/names" || fail "a list of all is not what is there"
RIG_KEYS='bkt/t[0-2]/k[000-024]'
rig_same_on_both
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
