#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Power cuts under the real daemon, SECS long (default 60): half of it with the store on a block device, half in a directory on ext4.
#
# Clients on both wires write new objects, overwrite and delete old ones and replace a large chunked one; in the middle of it the daemon
# is killed and the disk (tests/nbd/lostwrite.c) keeps, tears or drops what was not flushed; sometimes once more while the daemon
# starts again.  Then every acknowledged write and delete must be there, all that was under way whole or as if it had never been, and
# nothing that was ever read back may change later.  The log is small, so that laps, trims and snapshots happen; their number is printed.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s }\nlog: { access: false }'
DISK_SIZE=320MiB
. "$(dirname "$0")/disk.sh"
. "$(dirname "$0")/groups.sh"
SECS=${SECS:-60}
SEED=${SEED:-$(date +%s)}
RANDOM=$SEED
echo "SEED=$SEED SECS=$SECS"

ROLES=(over.rdma over.http delete)
SIZES=(200 4096 65537 300000 1300000)
GROUP_KEYS=60
BIG=$((66 << 20)) # more than one chunk
declare -A big_sum=()
declare -a new_nr=() dropped=()
cuts=0 restart_cuts=0 snapshots=0

wrong() { fail "round $r: $1 is $2; acknowledged (${ROLES[(r + g) % 3]}): $5, $3; before: $4"; }

# Round r: its clients, in the background.
start_clients() {
	local g n count
	clients=()
	for g in 0 1 2; do
		n=${SIZES[RANDOM % 5]}
		size[g]=$n seed[g]=$((r * 10 + g + 1))
		count=$((20000000 / n < GROUP_KEYS ? 20000000 / n : GROUP_KEYS))
		rm -f "$T/ack.$g"
		case ${ROLES[(r + g) % 3]} in
		over.rdma)
			flood g$g <<-END &
				window w $n pattern:${seed[g]}
				flood 4 $count $T/ack.$g PUT /bkt/g$g-%n x-amz-rdma-token:@w content-length:0
			END
			;;
		over.http)
			flood g$g <<-END &
				flood 3 $count $T/ack.$g PUT /bkt/g$g-%n body=pattern:${seed[g]}:$n
			END
			;;
		delete)
			seed[g]=gone
			flood g$g <<-END &
				flood 2 $GROUP_KEYS $T/ack.$g DELETE /bkt/g$g-%n
			END
			;;
		esac
		clients+=($!)
	done
	# New keys, small: they fill the log.
	rm -f "$T/ack.new"
	flood new <<-END &
		flood 8 20000 $T/ack.new PUT /bkt/r$r-%n body=pattern:$r:200 x-amz-meta-filler:$(printf 'x%.0s' {1..1500})
	END
	clients+=($!)
	big_seed=$((r % 7 + 1)) big_status=none
	curl_s3 /bkt/big -T "$T/big$big_seed" -o /dev/null 2>/dev/null && touch "$T/ack.big" &
	clients+=($!)
}

end_clients() { { wait "${clients[@]}"; } 2>/dev/null; }

# The daemon on its way up, cut somewhere.
cut_in_start() {
	local i
	_on_nic
	"${ON_NIC[@]}" "$BUILD/gantryd" -c "$T/gantryd.yaml" --ready-file "$T/ready" >>"$T/daemon.log" 2>&1 &
	_daemon_job=$!
	for ((i = 0; i < 100; i++)); do
		DAEMON_PID=$(_gantryd_of "$_daemon_job") && break
		sleep 0.01
	done
	DAEMON_PID=${DAEMON_PID:-$_daemon_job}
	sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
	disk_cut "$((SEED + ++cuts))" first
	restart_cuts=$((restart_cuts + 1))
}

# The new keys of round $1: those in $T/new.$1 whole; of the others those that may have been under way, whole or absent.
check_new() {
	local last=${new_nr[$1]}
	{
		echo "timeout 60s"
		awk -v r="$1" '{ print "request GET /bkt/r" r "-" $1 "\nexpect status 200\nexpect body pattern:" r }' "$T/new.$1"
	} >"$T/script"
	raw "$T/script" >"$T/script.out" 2>&1 || fail "round $r: acknowledged objects of round $1: $(tail -n 3 "$T/script.out")"
	checked=$((checked + $(wc -l <"$T/new.$1")))
	sum_of "$1" 200
	for i in $(seq 0 "$last" | grep -vxFf "$T/new.$1"); do
		case $(curl -sS -o "$T/one" -w '%{http_code}' "$URL_S3/bkt/r$1-$i") in
		200) assert_eq "$(md5 "$T/one")" "$sum" "round $r: r$1-$i, not acknowledged" ;;
		404) ;;
		*) fail "round $r: r$1-$i cannot be read: $(cat "$T/one")" ;;
		esac
		checked=$((checked + 1))
	done
}

# The new keys of round $1 go, all of them, and stay gone.
drop_new() {
	local of=$1 nr
	nr=$((new_nr[of] + 1))
	flood drop <<-END || fail "round $r: deleting round $of"
		flood 8 $nr $T/ack.drop DELETE /bkt/r$of-%n
	END
	assert_eq "$(awk '$2 == 204' "$T/ack.drop" | wc -l)" $nr "round $r: deletes of round $of"
	rm -f "$T/ack.drop"
	dropped[of]=1
}

check_dropped() {
	local of=$1
	awk -v r="$of" -v nr="${new_nr[of]}" '
		BEGIN { print "timeout 60s"; for (; i <= nr; i++) print "request HEAD /bkt/r" r "-" i "\nexpect status 404" }' >"$T/script"
	raw "$T/script" >"$T/script.out" 2>&1 || fail "round $r: deleted objects of round $of are back: $(tail -n 3 "$T/script.out")"
	checked=$((checked + new_nr[of]))
}

check_old() { if [ -n "${dropped[$1]:-}" ]; then check_dropped "$1"; else check_new "$1" "${new_nr[$1]}"; fi; }

check_big() {
	local have
	have=$(curl_s3 /bkt/big 2>/dev/null | md5)
	[ "$(head_status /bkt/big)" = 200 ] || have=gone
	if [ -f "$T/ack.big" ]; then
		assert_eq "$have" "${big_sum[$big_seed]}" "round $r: the large object, acknowledged"
		acked=$((acked + 1)) bigs=$((${bigs:-0} + 1))
	elif [ "$have" != "${big_is:-gone}" ]; then
		assert_eq "$have" "${big_sum[$big_seed]}" "round $r: the large object, not acknowledged"
		unacked_kept=$((unacked_kept + 1))
	fi
	big_is=$have
	rm -f "$T/ack.big"
}

# One form of the disk for $2 seconds.
run_form() {
	local until=$((SECONDS + $2)) rounds=0 last
	state=() big_is=gone first_round=$r
	disk_store "$1"
	daemon_run
	make_buckets
	while [ $SECONDS -lt $until ] || [ $rounds = 0 ]; do
		declare -a size=() seed=()
		# A disk that takes its time has more under way when the power goes.
		disk delay flush $((RANDOM % 6))
		disk delay write $((RANDOM % 3))
		start_clients
		sleep "$((RANDOM % 4 / 3)).$((RANDOM % 10))$((RANDOM % 10))"
		snapshots=$((snapshots + $(metric gantry_store_snapshots_total)))
		if [ $((RANDOM % 2)) = 0 ]; then how=first; else how=after; fi
		disk_cut "$((SEED + ++cuts))" $how
		end_clients
		disk delay flush 0
		disk delay write 0
		[ $((RANDOM % 3)) != 0 ] || cut_in_start
		daemon_run
		touch "$T/ack.new"
		awk '$2 == 200 { print $1 }' "$T/ack.new" >"$T/new.$r"
		acked=$((acked + $(wc -l <"$T/new.$r")))
		last=$(sort -n "$T/new.$r" | tail -n 1)
		new_nr[r]=$((${last:-0} + 20))
		check_new "$r" "${new_nr[r]}"
		# One of the earlier rounds again.
		[ $rounds = 0 ] || check_old $((first_round + RANDOM % rounds))
		check_groups $GROUP_KEYS
		check_big
		# Memory and room: an index of small objects is all of them.
		[ $rounds -lt 2 ] || drop_new $((r - 2))
		r=$((r + 1)) rounds=$((rounds + 1))
	done
	for ((old = first_round; old < r; old++)); do check_old $old; done
	stop_daemon
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
	echo "$1: $rounds rounds"
	[ "$1" = device ] || { umount "$T/disk0"; _disk_mount=''; }
}

disk_setup 384M
for i in 1 2 3 4 5 6 7; do
	bytes "pattern:$((900 + i))" $BIG >"$T/big$i"
	big_sum[$i]=$(md5 "$T/big$i")
done
r=1
run_form device $((SECS / 2))
run_form directory $((SECS - SECS / 2))
disk stat
echo "$cuts power cuts ($restart_cuts of them during a start); unflushed writes kept ${DISK[kept]}, torn ${DISK[torn]}, dropped ${DISK[dropped]}"
echo "$snapshots snapshots; $acked acknowledged writes and deletes (${bigs:-0} of them large), none lost; $unacked_kept unacknowledged ones were kept whole; $checked objects read back"
[ "$acked" -gt $((cuts * 10)) ] || fail "hardly anything was acknowledged: the test proves nothing"
[ $((DISK[torn] + DISK[dropped])) -gt 0 ] || fail "no write was lost: the test proves nothing"
