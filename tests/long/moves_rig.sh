# SPDX-License-Identifier: Apache-2.0
# A store whose disks come and go over many lives, sourced after lib.sh or disk.sh and disks_rig.sh.
#
#     moves_begin                  three disks of four, a bucket of one copy and one of two
#     moves_run CUT SECS ROUNDS    CUT is a command that ends the daemon, and may take something with it
#     moves_end                    three disks again, all healed: both copies of everything are the same, --fsck finds nothing
#
# In each life six threads a bucket put, with conditions and without, get, delete and complete uploads of thirty keys (tests/long/disks_rig.py), until one of these,
# at random, and then the cut at a random moment, before or behind its end: nothing; a disk is drained; the spare one is added; one fails; the next start
# goes without one. It counts what took, not what was asked for.
# What is begun goes on in the next life. The caller has path_of I, the path of disk I of 0 to 3; disk_line I, what store.disks says of it; breaks I and mends.
# shellcheck shell=bash
# MOVES_DID: what took, by its name: a disk that has left, one that is a member, one that failed, a start without one, a life with nothing.
declare -A MOVES_DID=()
IN=(0 1 2) OUT=(3) LEAVES='' COMES='' CAME='' AWAY='' ADDED=''
export MOVES=1

_moves_configure() {
	local i
	{
		sed '/^store:/,/^[a-z]/{/^store:/d;/^ /d}' "$T/gantryd.yaml"
		echo "store:"
		[ $((RANDOM % 2)) = 0 ] || echo "  move_rate: 1MiB"
		[ -z "$AWAY" ] || echo "  accept_missing: [\"$(cat "$T/uuid.$AWAY")\"]"
		echo "  disks:"
		for i in "${IN[@]}"; do [ "$i" = "$AWAY" ] || echo "    - $(disk_line "$i")"; done
	} >"$T/rig.yaml"
	mv "$T/rig.yaml" "$T/gantryd.yaml"
}
_moves_state() { curl_admin /disks | jq -r ".[] | select(.path == \"$(path_of "$1")\") | .state"; }
_moves_is() { [ "$(_moves_state "$1")" = "$2" ]; }
_moves_has_failed() { _moves_is "$1" failed || _moves_is "$1" drained; }
_moves_ended() { [ "$(curl_admin /control/disk/drain | json running)" = false ] && _rig_full; }
_moves_looked() { [ "$(grep -c '"is":"looked"' "$T/history.$1")" -ge "$2" ]; }
_moves_tell() { gantry --admin "$T/admin.sock" disk "$@" >>"$T/told" 2>&1; }
_moves_did() { MOVES_DID[$1]=$((${MOVES_DID[$1]:-0} + 1)); }
# Lets what was begun go to its end, if that comes soon.
_moves_wait() {
	local until=$((SECONDS + 15))
	until _moves_ended || [ $SECONDS -ge $until ]; do sleep 0.1; done
}
_moves_without() { # LIST ITEM: the list in IN or OUT without it
	local i
	local -n list=$1
	local left=()
	for i in "${list[@]}"; do [ "$i" = "$2" ] || left+=("$i"); done
	list=("${left[@]}")
}
# Who is a member now, after a start: a disk that was being drained may have left, or not; one that was being added may be what it was, a drained one.
_moves_look() {
	local i
	for i in "${IN[@]}"; do curl_admin /disks | jq -r ".[] | select(.path == \"$(path_of "$i")\") | .uuid" | grep . >"$T/uuid.new" && mv "$T/uuid.new" "$T/uuid.$i"; done
	for i in $LEAVES $CAME; do
		case $(_moves_state "$i") in
		'' | drained)
			_moves_without IN "$i"
			OUT+=("$i")
			[ "$i" != "$LEAVES" ] || { LEAVES='' && _moves_did drained; }
			;;
		*) [ "$i" != "$CAME" ] || _moves_did added ;;
		esac
	done
	CAME=''
}
# The start after a cut: one that was being added is a member, or not yet.
_moves_start() {
	mends
	if [ -n "$COMES" ]; then
		IN+=("$COMES")
		_moves_configure
		if nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config >"$T/check" 2>&1; then
			_moves_without OUT "$COMES"
			CAME=$COMES
		else
			_moves_without IN "$COMES"
			[ -z "$ADDED" ] || fail "round $r: a disk that was added is none of the store: $(cat "$T/check")"
			grep -q "$(path_of "$COMES")" "$T/check" || fail "round $r: --check-config: $(cat "$T/check")"
		fi
		COMES='' ADDED=''
	fi
	_moves_configure
	daemon_run
	[ -z "$AWAY" ] || _moves_did away
	_moves_look
}
_moves_add() {
	gantry --admin "$T/admin.sock" disk add --force ${DISK_SIZE_ADDED:+--size "$DISK_SIZE_ADDED"} "$(path_of "$COMES")" >"$T/added" 2>&1
}
# What the daemon said of it. One that was drained in this very start comes after the next one.
_moves_answered() {
	if wait "${jobs[2]}"; then
		ADDED=1
	elif grep -q 'after a restart' "$T/added"; then
		COMES=''
	else
		fail "round $r: add: $(cat "$T/added")"
	fi
	unset 'jobs[2]'
}
_moves_event() {
	local can=(nothing) i did
	if [ -z "$AWAY" ]; then
		can+=(fails)
		# What goes on is not joined by another one.
		if [ -z "$LEAVES" ] && _moves_ended; then
			[ ${#IN[@]} -lt 3 ] || can+=(drained drained away)
			[ ${#OUT[@]} = 0 ] || can+=(added added)
		fi
	fi
	# What was seldom comes sooner.
	for did in "${can[@]}"; do [ "${MOVES_DID[$did]:-0}" -ge 3 ] || can+=("$did" "$did"); done
	event=${can[RANDOM % ${#can[@]}]}
	i=${IN[RANDOM % ${#IN[@]}]}
	case $event in
	nothing) _moves_did nothing ;;
	drained)
		_moves_tell drain "$(path_of "$i")" || fail "round $r: drain: $(tail -n 1 "$T/told")"
		LEAVES=$i
		[ $((RANDOM % 2)) = 0 ] || _moves_wait
		;;
	added)
		COMES=${OUT[0]}
		_moves_add &
		jobs+=($!)
		# The cut may come before the answer, or before what follows.
		if [ $((RANDOM % 3)) != 0 ]; then
			_moves_answered
			[ $((RANDOM % 2)) = 0 ] || _moves_wait
		fi
		;;
	fails)
		breaks "$i"
		# One that is being drained may have left before.
		wait_for 30 _moves_has_failed "$i"
		! _moves_is "$i" failed || _moves_did fails
		;;
	away) next_away=$i ;;
	esac
}
moves_begin() {
	_moves_configure
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --format --force >>"$T/daemon.log" 2>&1 || fail "gantryd --format"
	daemon_run
	_moves_look
	gantry mb "$URL_S3/bkt" --copies 2 || fail "gantry mb --copies 2"
	gantry mb "$URL_S3/one" --copies 1 || fail "gantry mb --copies 1"
	: >"$T/history.bkt"
	: >"$T/history.one"
}
# The two loads, which look at everything first.
_moves_load() {
	COPIES=2 BUCKET=bkt "$RIG" load "$URL_S3" "$T/history.bkt" "$SEED" $AWAY &
	jobs=($!)
	COPIES=1 BUCKET=one "$RIG" load "$URL_S3" "$T/history.one" "$SEED" $AWAY &
	jobs+=($!)
	wait_for 60 _moves_looked bkt "$1"
	wait_for 60 _moves_looked one "$1"
}
moves_run() {
	local cut=$1 until=$((SECONDS + $2)) rounds=$3 r event next_away jobs
	for ((r = 1; r <= rounds && SECONDS < until; r++)); do
		_moves_load "$r"
		event='' next_away=''
		_moves_event
		sleep "$((RANDOM % 3 / 2)).$((RANDOM % 10))$((RANDOM % 10))"
		$cut "$r"
		wait "${jobs[0]}" && wait "${jobs[1]}" || fail "round $r: the load"
		# Whoever asked for a disk may have been told nothing; what was answered in front of the cut holds.
		[ ${#jobs[@]} = 2 ] || ! wait "${jobs[2]}" || ADDED=1
		AWAY=$next_away
		_moves_start
	done
	if [ -n "$AWAY" ]; then
		kill_daemon
		AWAY=''
		_moves_start
	fi
	MOVES_ROUNDS=$((r - 1))
	_moves_load "$r"
	kill_daemon
	wait "${jobs[0]}" && wait "${jobs[1]}" || fail "the last load"
	echo "$MOVES_ROUNDS rounds: $(for event in "${!MOVES_DID[@]}"; do echo "$event ${MOVES_DID[$event]}"; done | sort | paste -sd, | sed 's/,/, /g')"
	COPIES=2 BUCKET=bkt "$RIG" judge "$T/history.bkt" || fail "two copies: the history (SEED=$SEED)"
	COPIES=1 BUCKET=one "$RIG" judge "$T/history.one" || fail "one copy: the history (SEED=$SEED)"
	_moves_start
}
moves_end() {
	local i r=end
	wait_for 120 _moves_ended
	_moves_look
	if [ ${#IN[@]} = 4 ]; then
		_moves_tell drain "$(path_of "${IN[3]}")" || fail "drain: $(tail -n 1 "$T/told")"
		LEAVES=${IN[3]}
	elif [ ${#IN[@]} = 2 ]; then
		# One that was drained in this start can come after the next one.
		stop_daemon
		_moves_start
		_moves_tell add --force ${DISK_SIZE_ADDED:+--size "$DISK_SIZE_ADDED"} "$(path_of "${OUT[0]}")" || fail "add: $(tail -n 1 "$T/told")"
		IN+=("${OUT[0]}")
	fi
	wait_for 120 _moves_ended
	_moves_look
	assert_eq ${#IN[@]} 3 "disks in the end"
	for i in 0 1 2; do DISK_PATH[i]=$(path_of "${IN[i]}"); done
	rig_same_on_both
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
}
