#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 29, item 30, item 111: a device whose context dies amid transfers (softnicctl device reset) is opened anew by the daemon itself.
#
# In both modes of the software NIC, on two cores with two rails and on one with one, the context dies again and again, in each of
# the ways softnicctl(8) knows.  Each time: requests under way are answered, and nothing touches their windows after that (by the NIC's
# trace); requests of the meantime are declined with a reason, or served by the other rail; HTTP goes on; the rail comes back and moves
# every byte; health, metrics and the log tell.  At the end nothing has grown.
#
# With TRANSPORT=rc all windows have connections of RC (device_rc.sh).
#
# RUNS (mode:cores:rails ...) and ROUNDS may be set.
RDMA='{ allow_special: [loopback, self], channels: 16 }'
MORE='limits: { s3_progress: 5s, s3_total: 5s, scality_total: 5s }'
[ -n "${TMPDIR:-}" ] || [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -lt 2500000 ] || export TMPDIR=/dev/shm
# The growth of memory is looked at; memory that was freed, and that AddressSanitizer keeps from use, is none.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
RUNS=${RUNS:-thread:2:2 inline:1:1} ROUNDS=${ROUNDS:-5}
# ThreadSanitizer keeps for a while memory that was freed.
case $BUILD in */tsan) may_grow=1000 ;; *) may_grow=8 ;; esac
# Work stops, is flushed, or goes on while nobody can end it; the device is there again at once, or only when the test says so.
KINDS=("" "flush away=600s" "runs destroy=fails away=600s" "runs destroy=lies" "destroy=fails away=600s")

over_rc() { [ "${TRANSPORT:-dc}" = rc ]; }
softnicctl() { "$BUILD/softnicctl" "$@"; }
rails_up() { [ "$(metric gantry_rail_up)" = "$1" ]; }
reopened() { [ "$(metric gantry_rdma_reopens_total 'mlx5_0')" = "$1" ] && rails_up "$NICS"; }
# Bytes of several pieces move.
under_way() { softnicctl rule list | grep -qE 'seen=([4-9]|[1-9][0-9])\>'; }
told() { cat "$T"/out.* >&2; fail "$what: $*"; }

all_works() {
	raw <<-END
		window w 3M pattern:$1
		request PUT /bkt/next x-amz-rdma-token:@w content-length:0
		expect status 200
		expect header x-amz-rdma-reply 200
		window g 3M
		request GET /bkt/next x-amz-rdma-token:@g
		expect status 200
		expect header x-amz-rdma-reply 200
		expect window g pattern:$1
	END
}

# Everything a request holds is back, and every channel.
is_settled() {
	curl_admin /metrics >"$T/metrics"
	awk -v dci="$DCI" '
		/^gantry_(dci|rc_channels)[{].*"free"/ { free += $NF }
		/^gantry_(dci|rc_channels)[{].*"(leased|recovering)"/ { bad += $NF }
		/^gantry_rc_connections[{]/ { bad += $NF }
		/^gantry_buffers[{].*"used"/ { bad += $NF }
		/^gantry_requests_in_flight[{]/ { bad += $NF }
		/^gantry_connections[{]/ { bad += $NF }
		END { exit bad > 0 || (dci && free != dci) }' "$T/metrics" && no_requests
}
# But those that the software NIC keeps of the processes it meets, and those of segments, which the store makes ahead of need.
descriptors() { find "/proc/$DAEMON_PID/fd" -type l ! -lname '*pidfd*' ! -lname '*/seg-*' | wc -l; }
descriptors_are_back() { [ "$(descriptors)" -le "$fds" ]; }
have() { awk -v n="$1" '$1 == n { print $NF }' "$T/metrics"; }

# Objects over HTTP all the while: every answer is right.
http_goes_on() {
	local n=0
	until [ -e "$T/stop" ]; do
		curl_s3 /bkt/old >"$T/http" && cmp -s "$T/old" "$T/http" || { echo "answer $n is wrong" >"$T/http.bad"; return; }
		n=$((n + 1))
		pause 0.1
	done
	echo $n >"$T/http.n"
}

# Two GETs and two PUTs of several pieces, each in another state when the context dies; a client of each dialect.
amid() {
	nic "$BUILD/tools/rawclient" -t "$T/replies.$1" -s "$2" >"$T/out.$1" 2>&1 <<-END
		timeout 30s
		windows g 2 5M pattern:12
		windows p 2 5M pattern:11
		start g0 GET $3/old $4:@g0 content-length:0
		start p0 PUT $3/$1 $4:@p0 content-length:0
		start g1 GET $3/old $4:@g1 content-length:0
		start p1 PUT $3/$1 $4:@p1 content-length:0
		touch $T/started.$1
		wait g0
		expect status $5
		wait g1
		expect status $5
		wait p0
		expect status $5
		wait p1
		expect status $5
		expect untouched p0
		expect untouched p1
		touch $T/answered.$1
		waitfile $T/ended
	END
}

# A request while the device is gone.  The client has it open from before: new ones may not find it.
meanwhile() {
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/out.meanwhile" 2>&1 <<-END
		timeout 30s
		window w 100000 pattern:1
		touch $T/started.meanwhile
		waitfile $T/lost
		request GET /bkt/small x-amz-rdma-token:@w
		$(if over_rc; then
			# A connection is of one rail, and may have been found lost already.
			printf '%s\n' "expect status 501" "expect header x-amz-rdma-reply 501" \
				"expect header x-gantry-rdma-reason ~^(no-rail|not-connected)$" "expect untouched w"
		elif [ "$NICS" = 1 ]; then
			printf '%s\n' "expect status 501" "expect header x-amz-rdma-reply 501" \
				"expect header x-gantry-rdma-reason no-rail" "expect body contains RDMANotSupported" "expect untouched w"
		else
			printf '%s\n' "expect status 200" "expect header x-amz-rdma-reply 200" "expect window w pattern:5"
		fi)
		touch $T/answered.meanwhile
		waitfile $T/ended
	END
}

# No byte of a window moved after its answer, nor still may.
untouched_after() {
	softnicctl trace off && softnicctl trace show "$T/trace" >"$T/records" || fail "$what: the trace is not complete"
	awk '
		FNR == NR { if (!/^#/) end[$6 " " $7] = $2; next }
		!(($7 " " $9) in end) { next }
		{ n++; t = end[$7 " " $9] }
		$12 == "UNFINISHED" || ($11 > 0 && $2 > t) { printf "%s, %.0f us after the answer: %s\n", $6, ($2 - t) / 1000, $0; bad++ }
		END { if (!n) print "the trace knows nothing of the windows"; exit bad > 0 || !n }' \
		<(cat "$T"/replies.*) "$T/records" >"$T/touched" || fail "$what: $(cat "$T/touched")"
}

round() {
	# A PUT's READs are tried once more, and with another rail that succeeds; a client whose turn comes late is served there, or declined.
	local n=$1 kind=${KINDS[$((($1 - 1) % ${#KINDS[@]}))]} may='200|500|501|503' pids=() p
	what="$SOFTNIC_EXEC, $CORES cores, $NICS rails, round $n: $kind"
	rm -f "$T"/started.* "$T"/answered.* "$T"/replies.* "$T"/out.* "$T/stop" "$T/lost" "$T/ended" "$T"/http.*
	softnicctl trace on "$T/trace" 4096
	# Every piece takes 64 chunks of 60 ms: seconds that the context does not live.
	softnicctl rule add op=any dev=mlx5_0 "pid=$DAEMON_PID" scramble=16384 pause=60ms minlen=65536 >"$T/rule"
	amid s3 "$S3" /bkt x-amz-rdma-token "$may" & pids+=($!)
	amid scal "$SCAL" '' x-scal-rdma "$may" & pids+=($!)
	case $kind in *away*) meanwhile & pids+=($!) ;; *) touch "$T/started.meanwhile" ;; esac
	http_goes_on & pids+=($!)
	wait_for 60 test -e "$T/started.meanwhile"
	wait_for 60 test -e "$T/started.s3"
	wait_for 60 test -e "$T/started.scal"
	wait_for 60 under_way
	# shellcheck disable=SC2086
	softnicctl device mlx5_0 reset "pid=$DAEMON_PID" $kind
	case $kind in *away*)
		wait_for 60 rails_up $((NICS - 1))
		touch "$T/lost"
		wait_for 60 test -e "$T/answered.meanwhile"
		assert_match "$(curl_admin /healthz)" 'rail mlx5_0:1 is lost' "$what: health"
		wait_for 60 grep -q 'mlx5_0 cannot be re-opened yet' "$T/daemon.log"
		;;
	esac
	wait_for 60 test -e "$T/answered.s3"
	wait_for 60 test -e "$T/answered.scal"
	softnicctl rule clear
	softnicctl device mlx5_0 back
	wait_for 60 reopened "$n"
	touch "$T/stop" "$T/ended"
	for p in "${pids[@]}"; do wait "$p" || told "exit $?"; done
	[ ! -e "$T/http.bad" ] || fail "$what: HTTP: $(cat "$T/http.bad")"
	[ "$(cat "$T/http.n")" -gt 0 ] || fail "$what: nothing over HTTP"
	grep -hq ' 500 ' "$T"/replies.* || fail "$what: no request was hit"
	untouched_after
	all_works "$n"
	curl_s3 /bkt/old >"$T/back"
	assert_same "$T/old" "$T/back" "$what: the object that was read"
	wait_for 60 is_settled
	logged $((LOGGED + n)) 'mlx5_0 was re-opened'
	assert_eq "$(curl_admin /healthz | json status)" ok "$what: health afterwards"
}

bytes pattern:11 5M >"$T/old"
bytes pattern:5 100000 >"$T/small"
for run in $RUNS; do
	IFS=: read -r SOFTNIC_EXEC CORES NICS <<<"$run"
	export SOFTNIC_EXEC
	DCI=0 LOGGED=$(grep -c 'was re-opened' "$T/daemon.log" 2>/dev/null)
	rm -rf "$T"/disk* "${SOFTNIC_DIR:?}"/*
	start_daemon
	curl_s3 /bkt/old -T "$T/old"
	curl_scal /old -T "$T/old"
	curl_s3 /bkt/small -T "$T/small"
	all_works 0
	wait_for 60 is_settled
	# The least of some looks: a connection of ours to /metrics is closed there a moment after it is here.
	fds=$(for _ in 1 2 3 4 5 6 7 8 9 10; do descriptors; pause 0.02; done | sort -n | head -n 1)
	DCI=$(awk '/^gantry_(dci|rc_channels)[{]/ { s += $NF } END { print s }' "$T/metrics")
	for ((n = 1; n <= ROUNDS; n++)); do
		round $n
		[ $n -gt 1 ] || rss=$(have process_resident_memory_bytes)
	done
	wait_for 60 descriptors_are_back
	grown=$(($(have process_resident_memory_bytes) - rss))
	[ $grown -lt $((may_grow << 20)) ] || fail "$what: grown by $grown bytes"
	stop_daemon
done
