#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 29, item 30, item 111: the daemon is told to reload and to stop while a device's context dies, is away, comes back or dies once
# more, amid transfers.
#
# Each round starts the daemon, lets GETs and PUTs of several pieces get under way, and kills the context in one of the ways that
# softnicctl(8) knows; a moment later, which a seed chooses, it kills it again, reloads, or goes on; and another moment later it says
# SIGTERM.  However that falls: the daemon ends by itself, with 0 and in time, nothing touches a window after its answer (by the NIC's
# trace), and what is stored is whole after the next start.
#
# SEED and ROUNDS may be set.
RDMA='{ allow_special: [loopback, self], channels: 16 }'
MORE='limits: { s3_progress: 5s, s3_total: 5s, scality_total: 5s, drain: 8s }'
[ ! -w /dev/shm ] || [ -n "${TMPDIR:-}" ] || export TMPDIR=/dev/shm
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
ROUNDS=${ROUNDS:-5} SEED=${SEED:-$(($(date +%s) % 32768))}
echo "SEED=$SEED"
RANDOM=$SEED
KINDS=("" "flush away=600s" "runs destroy=fails away=600s" "runs destroy=lies" "destroy=fails away=600s")

softnicctl() { "$BUILD/softnicctl" "$@"; }
under_way() { softnicctl rule list | grep -qE 'seen=([4-9]|[1-9][0-9])\>'; }
# Up to so many ms, short ones more often: most that races lies there.
a_moment() { sleep "$(awk -v r=$RANDOM -v most="$1" 'BEGIN { printf "%.3f", (r / 32768) ^ 3 * most / 1000 }')"; }

# Two GETs and two PUTs; the daemon may end before it answers.
amid() {
	nic "$BUILD/tools/rawclient" -t "$T/replies" -s "$S3" >"$T/out" 2>&1 <<-END
		timeout 30s
		windows g 2 5M pattern:12
		windows p 2 5M pattern:11
		start g0 GET /bkt/old x-amz-rdma-token:@g0 content-length:0
		start p0 PUT /bkt/new0 x-amz-rdma-token:@p0 content-length:0
		start g1 GET /bkt/old x-amz-rdma-token:@g1 content-length:0
		start p1 PUT /bkt/new1 x-amz-rdma-token:@p1 content-length:0
		waitfile $T/ended
	END
}

# No byte of a window moved after its answer, nor still may.
untouched_after() {
	softnicctl trace off && softnicctl trace show "$T/trace" >"$T/records" || fail "$what: the trace is not complete"
	awk '
		FNR == NR { if (!/^#/) end[$6 " " $7] = $2; next }
		!(($7 " " $9) in end) { next }
		{ t = end[$7 " " $9] }
		$12 == "UNFINISHED" || ($11 > 0 && $2 > t) { printf "%s, %.0f us after the answer: %s\n", $6, ($2 - t) / 1000, $0; bad++ }
		END { exit bad > 0 }' "$T/replies" "$T/records" >"$T/touched" || fail "$what: $(<"$T/touched")"
}

once() {
	softnicctl device mlx5_0 reset "pid=$DAEMON_PID" ${KINDS[RANDOM % ${#KINDS[@]}]} || true
}

round() {
	local client did i
	rm -f "$T/ended" "$T/replies"
	: >"$T/replies"
	softnicctl trace on "$T/trace" 4096
	softnicctl rule add op=any dev=mlx5_0 "pid=$DAEMON_PID" scramble=16384 pause=60ms minlen=65536 >"$T/rule"
	amid & client=$!
	wait_for 60 under_way
	what="SEED=$SEED, round $1:"
	once
	for ((i = 0; i < 3; i++)); do
		a_moment 2500
		did=$((RANDOM % 4))
		what="$what $did"
		case $did in
		0) once ;;
		1) kill -HUP "$DAEMON_PID" ;;
		2) softnicctl device mlx5_0 back ;;
		esac
	done
	a_moment 1500
	stop_daemon
	touch "$T/ended"
	wait $client || true
	untouched_after
	softnicctl rule clear
	softnicctl device mlx5_0 back
	daemon_run
	curl_s3 /bkt/old >"$T/back"
	assert_same "$T/old" "$T/back" "$what: the object that was read"
}

bytes pattern:11 5M >"$T/old"
export SOFTNIC_EXEC=thread
start_daemon
curl_s3 /bkt/old -T "$T/old"
for ((n = 1; n <= ROUNDS; n++)); do
	round "$n"
done
raw <<-END
	window w 3M pattern:3
	request PUT /bkt/next x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
END
stop_daemon
# Buffers are there as long as a device may be opened anew.
! grep -q 'buffers cannot be registered' "$T/daemon.log" || fail "$(grep 'buffers cannot be registered' "$T/daemon.log")"
