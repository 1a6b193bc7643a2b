# SPDX-License-Identifier: Apache-2.0
# A store of three disks over many lives (tests/long/disks_rig.py), sourced after lib.sh or disk.sh by tests that end each life in their way: every fifth
# start goes without one of the disks, another one each time.
#
#     rig_run CUT SECS ROUNDS      CUT is a command that ends the daemon, and may take something with it; SECS seconds, at least RIG_LIVES (6) lives
#     rig_same_on_both             of a bucket with two copies: whatever disk is away, the others have all that all of them have
#
# DISK_PATH[i] are the disks, as the configuration names them; with COPIES=2, exported, objects of the bucket have two copies.
# shellcheck shell=bash
RIG=$ROOT/tests/long/disks_rig.py
RIG_KEYS='bkt/k[0-29]' # which rig_same_on_both reads
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
_rig_uuids() {
	local i uuid path
	RIG_UUID=('' '' '')
	while read -r uuid path; do
		for i in 0 1 2; do [ "$path" != "${DISK_PATH[i]}" ] || RIG_UUID[i]=$uuid; done
	done < <(curl_admin /disks | jq -r '.[] | "\(.uuid) \(.path)"')
}
_rig_full() { [ "$(metrics gantry_copies_exposed_objects gantry_copies_healing gantry_copies_disks_away)" = "0 0 0" ]; }
_rig_looked() { [ "$(grep -c '"is":"looked"' "$T/history")" -ge "$1" ]; }

rig_run() {
	local cut=$1 until=$((SECONDS + $2)) rounds=$3 r away='' job i
	: >"$T/history"
	_rig_uuids
	for ((r = 1; r <= rounds && (SECONDS < until || r <= ${RIG_LIVES:-6}); r++)); do
		"$RIG" load "$URL_S3" "$T/history" "$SEED" $away &
		job=$!
		wait_for 60 _rig_looked "$r"
		# Without a disk that others need their keys are 503, with two copies too.
		[ "${COPIES:-1}" = 1 ] || [ $((r % 5)) != 4 ] || wait_for 60 _rig_full
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

# The sum of each object that is there, and what is not.
_rig_read() {
	local code file sum
	declare -A sums=()
	rm -rf "$T/read"
	curl -sS --create-dirs -o "$T/read/#1.#2" -w '%{http_code} %{filename_effective}\n' "$URL_S3/$RIG_KEYS" >"$T/read.codes" 2>>"$T/curl" || fail "reading all: $(tail -n 2 "$T/curl")"
	while read -r sum file; do sums[$file]=$sum; done < <(md5sum "$T/read"/*)
	while read -r code file; do
		case $code in 200) echo "${file##*/} ${sums[$file]}" ;; *) echo "${file##*/} $code" ;; esac
	done <"$T/read.codes"
}
rig_same_on_both() {
	local i want=''
	[ -z "$DAEMON_PID" ] || _rig_uuids
	for i in '' 0 '' 1 '' 2 ''; do
		[ -z "$DAEMON_PID" ] || stop_daemon
		_rig_configure "$i"
		daemon_run
		# What was away is made equal first.
		[ -n "$i" ] || wait_for 60 _rig_full
		: "${want:=$(_rig_read)}"
		assert_eq "$(_rig_read)" "$want" "what is read without disk $i"
	done
	stop_daemon
}
