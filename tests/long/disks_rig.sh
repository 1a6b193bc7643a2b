# SPDX-License-Identifier: Apache-2.0
# A store of three disks over many lives (tests/long/disks_rig.py), sourced after lib.sh or disk.sh by tests that end each life in their way: every fifth
# start goes without one of the disks, another one each time.
#
#     rig_run CUT SECS ROUNDS      CUT is a command that ends the daemon, and may take something with it
#
# DISK_PATH[i] are the disks, as the configuration names them.
# shellcheck shell=bash
RIG=$ROOT/tests/long/disks_rig.py
declare -a DISK_PATH=() RIG_UUID=()

_rig_configure() { # the number of the disk that stays away, if any
	local i
	{
		sed '/^store:/,/^[a-z]/{/^store:/d;/^ /d}' "$T/gantryd.yaml"
		echo "store:"
		[ -z "$1" ] || echo "  accept_missing: [\"${RIG_UUID[$1]}\"]"
		echo "  disks:"
		for i in 0 1 2; do [ "$i" = "$1" ] || echo "    - { path: \"${DISK_PATH[i]}\" }"; done
	} >"$T/rig.yaml"
	mv "$T/rig.yaml" "$T/gantryd.yaml"
}
_rig_looked() { [ "$(grep -c '"is":"looked"' "$T/history")" -ge "$1" ]; }

rig_run() {
	local cut=$1 until=$((SECONDS + $2)) rounds=$3 r away='' job i
	: >"$T/history"
	for i in 0 1 2; do RIG_UUID[i]=$(curl_admin /disks | jq -r ".[$i].uuid"); done
	for ((r = 1; r <= rounds && (SECONDS < until || r < 7); r++)); do
		"$RIG" load "$URL_S3" "$T/history" "$SEED" $away &
		job=$!
		wait_for 60 _rig_looked "$r"
		sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
		$cut "$r"
		wait $job || fail "round $r: the load"
		away=''
		[ $((r % 5)) != 4 ] || away=$((r / 5 % 3))
		_rig_configure "$away"
		daemon_run
	done
	# Once more with all of them: what was away is looked at too.
	[ -z "$away" ] || { kill_daemon; _rig_configure ''; daemon_run; }
	"$RIG" load "$URL_S3" "$T/history" "$SEED" &
	job=$!
	wait_for 60 _rig_looked "$r"
	kill_daemon
	wait $job || fail "the last load"
	"$RIG" judge "$T/history" || fail "the history (SEED=$SEED)"
}
