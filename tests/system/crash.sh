#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SIGKILL in the middle of load, ROUNDS times, or for SECS seconds (default: 4 times, or what begins within 100 s, since sanitizers
# take their time), in the order that SEED= decides.
#
# Each round six clients write beside each other, on both dialects and both wires: new objects by token and over HTTP, others in the
# place of the last round's, and deletes; each notes what was acknowledged.  Then the daemon is killed and started again, and
#   - what was acknowledged is there, byte for byte, and what was deleted is not;
#   - what was under way is there whole, as it was before, or not at all: never anything else;
#   - what was found once stays: at the end everything of all rounds is looked at again, and --fsck has nothing to say.
# long/crash: the same for SECS seconds.
MORE=$'limits: { s3_progress: 30s, s3_total: 30s, scality_total: 30s }'
# The longer the run, the more it writes. Three disks of a run with copies lie on the tmpfs beside the files of other tests, which are larger there as well.
if [ -n "${SECS:-}" ]; then DISK_SIZE=$((${COPIES:-1} > 1 ? 2048 / 3 : 4096))MiB; else DISK_SIZE=$((${COPIES:-1} > 1 ? 512 : 1024))MiB; fi
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
if [ -n "${SECS:-}" ]; then ROUNDS=1000000; elif [ -n "${ROUNDS:-}" ]; then SECS=86400; else ROUNDS=4 SECS=100; fi
SEED=${SEED:-$(date +%s)}
RANDOM=$((SEED % 32768))
echo "SEED=$SEED"
start_daemon

# What each key holds: "SEED SIZE", or nothing.  Keys are "s3 PATH" or "scal PATH".
declare -A state
acknowledged=0 wholes=0 before=0 absent=0 rounds=0
sizes=(200 4096 65537 300000 2000000)

# client NAME DIALECT CONNECTIONS COUNT METHOD PATH new|gone [words]: a flood, and what it is about.  PATH ends in %n.
clients=()
client() {
	local name=$1 server=$S3
	[ "$2" = s3 ] || server=$SCAL
	clients+=("$name $2 $3 $4 $5 ${6%\%n} $7")
	rm -f "$T/ack.$name"
	{
		echo "window w $size pattern:$seed"
		echo "flood $3 $4 $T/ack.$name $5 $6 ${*:8}"
	} >"$T/script.$name"
	nic "$BUILD/tools/rawclient" -s "$server" "$T/script.$name" >"$T/out.$name" 2>&1 &
	pids+=($!)
}

# That many, in this round.
are_acknowledged() { [ "$(cat "$T"/ack.* | grep -c ' 20[04] ')" -ge "$1" ]; }

# One read of a key by token, as lines of a script.
read_back() {
	local sd=$2 sz=$3
	echo "fill g zero"
	if [ "${1%% *}" = s3 ]; then
		printf '%s\n' "server $S3" "request GET ${1#* } x-amz-rdma-token:@g" "expect header x-amz-rdma-bytes $sz"
	else
		printf '%s\n' "server $SCAL" "request GET ${1#* } x-scal-rdma:@g"
	fi
	printf '%s\n' "expect status 200" "expect window g pattern:$sd 0 $sz"
}
gone() {
	if [ "${1%% *}" = s3 ]; then echo "server $S3"; else echo "server $SCAL"; fi
	printf '%s\n' "request HEAD ${1#* }" "expect status 404"
}
# Was not acknowledged: the new state, or the one before; it stays what it is found to be.
either() {
	local key=$1 new=$2 old=${state[$1]:-} url=$URL_S3 code s
	[ "${key%% *}" = s3 ] || url=$URL_SCAL
	code=$(curl -sS --max-time 30 -o "$T/found" -w '%{http_code}' "$url${key#* }")
	case $code in
	404)
		[ -z "$old" ] || [ "$new" = gone ] || fail "$key was there before the kill, and is gone"
		unset "state[$key]"
		absent=$((absent + 1))
		;;
	200)
		for s in "$new" "$old"; do
			[ -n "$s" ] && [ "$s" != gone ] || continue
			# shellcheck disable=SC2086
			bytes "pattern:${s% *}" ${s#* } >"$T/want"
			cmp -s "$T/want" "$T/found" || continue
			[ "$s" = "$old" ] && before=$((before + 1)) || wholes=$((wholes + 1))
			state[$key]=$s
			return
		done
		fail "$key is neither what was being written ($new) nor what was there before ($old)"
		;;
	*) fail "$key: $code" ;;
	esac
}

# What the clients noted, against what there is.
look() {
	local c name dialect conns count path what n last key new
	echo "window g 2000000" >"$T/check"
	for c in "${clients[@]}"; do
		read -r name dialect conns count _ path what <<<"$c"
		touch "$T/ack.$name"
		new=gone
		[ "$what" = gone ] || new="$seed $size"
		declare -A ok=()
		last=-1
		while read -r n code reply; do
			[ "$n" -le "$last" ] || last=$n
			case $what:$code:$reply in
			new:200:200 | http:200:* | scal:200:* | gone:204:* | gone:404:*) ok[$n]=1 ;;
			esac
		done <"$T/ack.$name"
		for ((n = 0; n <= last + conns && n < count; n++)); do
			key="$dialect $path$n"
			if [ -z "${ok[$n]:-}" ]; then
				either "$key" "$new"
			elif [ "$new" = gone ]; then
				unset "state[$key]"
				acknowledged=$((acknowledged + 1))
				gone "$key" >>"$T/check"
			else
				state[$key]=$new
				acknowledged=$((acknowledged + 1))
				# shellcheck disable=SC2086
				read_back "$key" $new >>"$T/check"
			fi
		done
	done
	raw "$T/check"
}

until=$((SECONDS + SECS))
for ((r = 0; r < ROUNDS && SECONDS < until; r++)); do
	size=${sizes[RANDOM % 5]} seed=$((RANDOM % 1000 + 1)) clients=() pids=() q=$((r - 1))
	client rdma s3 8 400 PUT /bkt/r$r-%n new x-amz-rdma-token:@w content-length:0
	client http s3 3 100 PUT /bkt/h$r-%n http "body=pattern:$seed:$size"
	client srdma scal 4 200 PUT /r$r-%n scal x-scal-rdma:@w content-length:0
	client shttp scal 2 60 PUT /h$r-%n scal "body=pattern:$seed:$size"
	if [ $r -gt 0 ]; then
		client over s3 3 60 PUT /bkt/r$q-%n new x-amz-rdma-token:@w content-length:0
		client del s3 1 30 DELETE /bkt/h$q-%n gone
	fi
	# Every other time not before there is something to lose.
	[ $((r % 2)) = 1 ] || wait_for 60 are_acknowledged 10
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	kill_daemon
	wait "${pids[@]}"
	daemon_run
	look
	rounds=$((rounds + 1))
done

# Everything of all rounds.
echo "window g 2000000" >"$T/check"
# shellcheck disable=SC2086
for key in "${!state[@]}"; do read_back "$key" ${state[$key]}; done >>"$T/check"
raw "$T/check"
stop_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || fail "--fsck: $(<"$T/fsck")"
echo "$rounds kills; $acknowledged acknowledged, none lost; under way and found whole: $wholes, as before: $before, absent: $absent; ${#state[@]} objects at the end"
[ "$acknowledged" -gt $((rounds * 2)) ] || fail "hardly anything was acknowledged: the test proves nothing"
