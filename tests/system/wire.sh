#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 27, item 28, item 29, item 30, item 41, item 75, item 98, item 111: faults of the wire around the unmodified daemon.
#
# Every action of a fault rule of softnicctl(8), and what can happen to ports, devices and clients, against GET and PUT, of one
# piece and of many, in both dialects and both modes of the software NIC.  Each case is followed by the same questions:
#   - is the answer the right one, and in time;
#   - does the next request of the same connection work;
#   - is the version before still the one that is stored;
#   - did anything touch the window after the answer (by the NIC's own trace, against the time at which the answer came);
#   - did the counters move; are channels, buffers and requests all back, and the descriptors as many as before.
#
# With TRANSPORT=rc all windows have connections of RC, and the cases are the same but for those of DC alone (wire_rc.sh).
# Quick by default: every action at least once.  WIRE=all (tests/long/wire.sh): all cases, in an order and with places that
# SEED= decides, for SECS= seconds.
export SOFTNIC_RETRY_US=50000
# The growth of memory is looked at; memory that was freed, and that AddressSanitizer keeps from use, is none.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=1
RDMA='{ allow_special: [loopback, self], channels: 16 }'
# The deadline of requests that are to meet it; all others have time, whatever else the machine does.
BUDGET=${BUDGET:-700ms}
limits() { echo "limits: { s3_progress: $1, s3_total: $1, scality_total: $1 }"; }
MORE=$(limits 60s)
# The deadlines are short, and this is not about disks.
[ -n "${TMPDIR:-}" ] || [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -lt 2500000 ] || export TMPDIR=/dev/shm
# Once two segments are there beside the first one, no more are made, whose descriptors would be found.
DISK_SIZE=1GiB
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# The budget, 100 ms until a flush is given up (chan/repair.c), the linger, and a machine with other work for five seconds.  What is to
# come too late would, without a deadline, come behind this.
ANSWER=${ANSWER:-6000ms}
[ "${WIRE:-}" = all ] || SEED=1
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((SEED % 32768))

TRACE=$T/trace REPLIES=$T/replies NOW=$T/now WAS=$T/was
cases=0 checked=0
what=''

# ---- what is asked after each case -----------------------------------------------------------------------------------

over_rc() { [ "${TRANSPORT:-dc}" = rc ]; }
# It needs no library of the NIC.
softnicctl() { "$BUILD/softnicctl" "$@"; }
wire_raw() { nic "$BUILD/tools/rawclient" -t "$REPLIES" -s "$1" >"$T/out" 2>&1; }
told() { cat "$T/out" >&2; fail "$what: $*"; }

# A sample of a kept /metrics: sample FILE NAME [LABEL]
sample() {
	awk -v n="$2" -v l="${3:-}" '
		/^#/ { next }
		{ name = $1; sub(/[{].*/, "", name); if (name == n && (l == "" || index($0, l))) s += $NF }
		END { printf "%.15g\n", s }' "$1"
}
# grown NAME [LABEL]: exits with 0 when the sample has grown since the case began.
grown() {
	awk -v n="$1" -v l="${2:-}" '
		index($0, n) == 1 && (l == "" || index($0, l)) { name = $1; sub(/[{].*/, "", name); if (name == n) s[FILENAME] += $NF }
		END { exit !(s[ARGV[2]] + 0 > s[ARGV[1]] + 0) }' "$WAS" "$NOW"
}
moved() { grown "$@" || fail "$what: $* has not moved"; }

# The channel whose work request failed was reset, or its connection closed; the one with a missing completion was destroyed.
was_reset() { if over_rc; then moved gantry_rc_closed_total '"failed"'; else moved gantry_dci_resets_total; fi; }
was_destroyed() { if over_rc; then moved gantry_rc_closed_total '"failed"'; else moved gantry_dci_recreated_total; fi; }

# Everything that a request holds is back; READY connections have a descriptor each, until their client has left or they are idle.
is_settled() {
	curl_admin /metrics >"$NOW"
	curl_admin /requests >"$T/requests"
	awk -v dci="$DCI" -v fds="$FDS" '
		/^gantry_(dci|rc_channels)[{].*"free"/ { free += $NF }
		/^gantry_(dci|rc_channels)[{].*"(leased|recovering)"/ { bad += $NF }
		/^gantry_rc_connections[{].*"(making|leased)"/ { bad += $NF }
		/^gantry_rc_connections[{].*"ready"/ { ready += $NF }
		/^gantry_buffers[{].*"used"/ { bad += $NF }
		/^gantry_requests_in_flight[{]/ { bad += $NF }
		/^gantry_connections[{]/ { bad += $NF }
		/^process_open_fds/ { have = $NF }
		END { exit bad > 0 || (dci && free != dci) || (fds && have > fds + ready) }' "$NOW" &&
		[ "$(<"$T/requests")" = "[]" ]
}
settled() {
	local i
	for ((i = 0; i < 600; i++)); do
		is_settled && return
		_runs "$DAEMON_PID" || fail "$what: gantryd has died"
		pause 0.05
	done
	grep -E '^(gantry_(dci|rc_ch|rc_conn|buffers|requests_in|connections)|process_open_fds)[ {]' "$NOW" >&2
	cat "$T/requests" >&2
	fail "$what: not everything is back (there were $DCI channels, $FDS descriptors)"
}

# No byte of a window moved after the answer to its request, nor still may; after a hang-up there is no answer, and a machine that
# is busy may be late: a second.
untouched_after() {
	local r
	softnicctl trace off && softnicctl trace show "$TRACE" >"$T/records" || fail "$what: the trace is not complete"
	r=$(awk '
		FNR == NR { end[$6 " " $7] = $2 + ($1 == "hangup" ? 1e9 : 0); next }
		!(($7 " " $9) in end) { next }
		{ n++; t = end[$7 " " $9] }
		$12 == "UNFINISHED" || ($11 > 0 && $2 > t) { printf "%s, %.0f us after the answer: %s\n", $6, ($2 - t) / 1000, $0; bad++ }
		END { print n + 0; exit bad > 0 }' "$REPLIES" "$T/records") || fail "$what: the window was touched: $r"
	[ -n "$NONE_MOVED" ] || [ "$r" -gt 0 ] || fail "$what: the trace knows nothing of the windows"
	checked=$((checked + r))
}

before() {
	what="$SOFTNIC_EXEC $1 (seed $SEED)" NONE_MOVED=''
	: >"$REPLIES"
	cp "$NOW" "$WAS"
	softnicctl trace on "$TRACE" 2048 || fail "$what: trace"
	cases=$((cases + 1))
}
after() {
	softnicctl rule clear >/dev/null
	settled
	untouched_after
}

HITS=1
rule() { softnicctl rule add "$@" limit=$HITS >"$T/rule" || fail "$what: rule $*"; }
was_hit() {
	softnicctl rule list >"$T/rule"
	[[ $(<"$T/rule")' ' =~ hits=${HITS}[^0-9] ]] || fail "$what: the rule hit nothing: $(<"$T/rule")"
}

is_hit() { softnicctl rule list | grep -qE "${1:-}.*hits=[1-9]"; }

# From now on requests have so long.
deadlines() {
	[ -n "$BUDGET" ] || return 0
	sed -i "s/^limits: .*/$(limits "$1")/" "$T/gantryd.yaml"
	curl -sS --fail --max-time 30 -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail "$what: reload"
}
# A script's request that is to meet its deadline comes between the two; its end says `late_is_over`.
late_begins() {
	rm -f "$T/late" "$T/relaxed"
	deadlines "$BUDGET"
	{ wait_for 60 test -e "$T/late"; deadlines 60s; touch "$T/relaxed"; } &
	relaxer=$!
}
late_is_over() { printf '%s\n' "touch $T/late" "waitfile $T/relaxed"; }

# ---- the requests ----------------------------------------------------------------------------------------------------

# $1 dialect, $2 size: server, token header, path of the object that is there (pattern:11) and of one for the next request.
as() {
	if [ "$1" = s3 ]; then srv=$S3 tok=x-amz-rdma-token at=/bkt; else srv=$SCAL tok=x-scal-rdma at=''; fi
	old=$at/old$2 next=$at/next$2
}

# The next request, PUT and GET, on the connection that had the fault.
next_works() {
	printf '%s\n' "window n $1 pattern:13" "request PUT $next $tok:@n content-length:0" "expect status 200" \
		"window m $1" "request GET $next $tok:@m" "expect status 200" "expect window m pattern:13"
}

# The answer to a request that failed on the wire.
failed() {
	echo "expect status 500"
	[ "$1" != s3 ] || echo "expect header x-amz-rdma-reply 500"
	echo "expect time < $ANSWER"
}
declined() {
	printf '%s\n' "expect status 501" "expect noheader etag"
	[ "$1" != s3 ] || printf '%s\n' "expect header x-amz-rdma-reply 501" "expect body contains RDMANotSupported"
	echo "expect header x-gantry-rdma-reason $3"
	echo "expect time < $ANSWER"
	echo "expect untouched w"
}
# The version before is the one that is there.
old_remains() { printf '%s\n' "request GET $old" "expect status 200" "expect body pattern:11"; }

# One request under a rule.  $1 dialect, $2 method, $3 size, $4 what is to come (failed, late, good), the rest: the rule.
request_under() {
	local dialect=$1 method=$2 size=$3 want=$4 verb="read" path
	shift 4
	as "$dialect" "$size"
	[ "$method" = PUT ] || verb="write"
	path=$old
	[ "$want:$method" != good:PUT ] || path=$at/done$size
	before "$dialect $method $size: $*"
	rule op=$verb "$@"
	[ "$want" != late ] || late_begins
	wire_raw "$srv" < <(
		printf '%s\n' "window w $size pattern:12" "request $method $path $tok:@w content-length:0"
		if [ "$want" = good ]; then echo "expect status 200"; else failed "$dialect"; fi
		[ "$want" != late ] || late_is_over
		[ "$want:$method" != good:GET ] || echo "expect window w pattern:11"
		[ "$want:$method" != good:PUT ] || printf '%s\n' "request GET $path" "expect body pattern:12"
		old_remains
		next_works "$size"
	) || told "wrong"
	was_hit
	[ "$want" != late ] || wait $relaxer || fail "$what: the deadlines of before"
	after
	[ "$want" != late ] || moved gantry_deadlines_passed_total
}

# ---- the cases -------------------------------------------------------------------------------------------------------

label_of() {
	case $1 in
	5) echo flushed ;;
	1 | 2 | 3 | 4 | 6 | 8) echo local-protection ;;
	10) echo remote-access ;;
	9 | 11 | 16) echo remote-operation ;;
	12) echo retry-exceeded ;;
	13) echo rnr-retry-exceeded ;;
	19) echo fatal ;;
	20) echo response-timeout ;;
	*) echo general ;;
	esac
}

# Of the five pieces of the large object, one.
piece() { [ "$1" = 4096 ] || echo "skip=$((RANDOM % 5))"; }

# A bad completion of each kind, without bytes, with some and with all of them.
case_status() {
	local want=failed
	# What the network lost a PUT tries once more: that it fails takes two.
	over_rc || case $2:$4:$((RANDOM % 2)) in
	PUT:5:0 | PUT:12:0) want=good ;;
	PUT:5:1 | PUT:12:1) HITS=2 ;;
	esac
	# shellcheck disable=SC2046
	request_under "$1" "$2" "$3" $want "status=$4" $(piece "$3") ${5:+torn=$5}
	moved gantry_rdma_completions_total "\"$(label_of "$4")\""
	was_reset
	if [ $want:$HITS != failed:1 ]; then moved gantry_pulls_retried_total
	else ! grown gantry_pulls_retried_total || fail "$what: tried once more"; fi
	HITS=1
}
case_delay() { request_under "$1" "$2" "$3" good delay=$((RANDOM % 100 + 20))ms; }
case_delay-late() { request_under "$1" "$2" "$3" late delay=20s; }
case_hold() { request_under "$1" "$2" "$3" good hold=$((RANDOM % 100 + 20))ms; }
# shellcheck disable=SC2046
case_hold-late() { request_under "$1" "$2" "$3" late hold=20s $(piece "$3"); }
case_scramble() { request_under "$1" "$2" "$3" good scramble=512 "seed=$RANDOM"; }
# Bytes move all the time, and would long after the longest deadline here: 64 chunks of 64 bytes, or 32 of each piece.
case_scramble-late() {
	local chunk=64
	[ "$3" = 4096 ] || chunk=32768
	request_under "$1" "$2" "$3" late "scramble=$chunk" pause=120ms "seed=$RANDOM"
}
case_dup() { request_under "$1" "$2" "$3" good dup; }
# shellcheck disable=SC2046
case_drop() {
	request_under "$1" "$2" "$3" late drop $(piece "$3")
	was_destroyed
}

# Success is claimed and the bytes are not there: only a checksum tells.
case_torn() { false_success "$1" "$2" "$3" "torn=$((RANDOM % 99))"; }
case_corrupt() { false_success "$1" "$2" "$3" "corrupt=$((RANDOM % 4096))"; }
false_success() {
	local dialect=$1 method=$2 size=$3
	shift 3
	as "$dialect" "$size"
	before "$dialect $method $size: $*"
	if [ "$method" = PUT ]; then
		# shellcheck disable=SC2046
		rule op=read "$@" $(piece "$size")
		wire_raw "$srv" <<-END || told "the checksum did not tell"
			window w $size pattern:12
			request PUT $old $tok:@w content-length:0 x-amz-checksum-crc64nvme:@crc64:w
			expect status 400
			expect body contains BadDigest
			expect noheader x-amz-rdma-reply
			$(old_remains)
			$(next_works "$size")
		END
	else
		# shellcheck disable=SC2046
		rule op=write "$@" $(piece "$size")
		wire_raw "$srv" <<-END || told "wrong"
			window w $size pattern:12
			request GET $old $tok:@w
			expect status 200
			save have header x-amz-rdma-checksum
			expect equal @have "CRC64NVME $(crc64 "$T/body$size")"
			set again @crc64:w
			print "crc @again"
			$(next_works "$size")
		END
		[ "$(sed -n 's/^crc //p' "$T/out")" != "$(crc64 "$T/body$size")" ] || told "the bytes are right"
	fi
	was_hit
	after
}

# The library compares: what it hands on is right, whatever it has to do for that.
case_library() {
	local rc=0
	local -a get=(gantry)
	! over_rc || get+=(--transport rc)
	as s3 "$3"
	before "libgantry GET $3: $1"
	NONE_MOVED=1
	rule op=write "$1"
	rm -f "$T/back"
	"${get[@]}" get "$URL_S3$old" "$T/back" >"$T/out" 2>&1 || rc=$?
	was_hit
	if [ $rc = 0 ]; then assert_same "$T/body$3" "$T/back" "$what"; else [ ! -e "$T/back" ] || fail "$what: a file in spite of exit $rc"; fi
	"${get[@]}" get "$URL_S3$old" "$T/back" >"$T/out" 2>&1 || told "the next get"
	assert_same "$T/body$3" "$T/back" "$what"
	after
}

# The client dies when so much of its window has been moved.
case_kill() {
	local verb="write" pid i
	as "$1" "$3"
	[ "$2" = GET ] || verb="read"
	before "$1 $2 $3: kill"
	NONE_MOVED=1
	# shellcheck disable=SC2046
	rule op=$verb kill=target "at=$((RANDOM % 4096))" $(piece "$3")
	wire_raw "$srv" <<-END && told "the client lives"
		window w $3 pattern:12
		request $2 $old $tok:@w content-length:0
	END
	was_hit
	check_old_and_next "$3"
	after
}
check_old_and_next() { wire_raw "$srv" < <(old_remains; next_works "$1") || told "wrong afterwards"; }

# item 28, item 98: the connection goes while bytes move; that ends them, and not a deadline.
case_hangup() {
	local verb="write" chunk=64
	as "$1" "$3"
	[ "$2" = GET ] || verb="read"
	[ "$3" = 4096 ] || chunk=32768
	before "$1 $2 $3: hangup"
	rm -f "$T/started" "$T/moves"
	rule op=$verb scramble=$chunk pause=120ms
	{ wait_for 60 test -e "$T/started"; wait_for 60 is_hit; touch "$T/moves"; } &
	wire_raw "$srv" <<-END || told "wrong"
		window w $3 pattern:12
		start a $2 $old $tok:@w content-length:0
		touch $T/started
		waitfile $T/moves
		hangup a $([ $((RANDOM % 2)) = 0 ] || echo reset)
		$(old_remains)
		$(next_works "$3")
	END
	wait $!
	was_hit
	after
	moved gantry_clients_gone_total
	! grown gantry_deadlines_passed_total ||
		fail "$what: the deadline ended it, not the hang-up"
}

rail_is() { [ "$(metric gantry_rail_up)" = "$1" ]; }
cut() { case $1 in port) softnicctl port mlx5_0 down ;; *) softnicctl device mlx5_0 lost ;; esac; }
mend() { case $1 in port) softnicctl port mlx5_0 up ;; *) softnicctl device mlx5_0 back ;; esac; }

# item 111: gone while nothing moves: declined with the reason; served when it is back.  $4: port or device.
case_gone() {
	local reason=no-rail
	# The connections of a lost device are lost with it, and closed at once.
	! over_rc || [ "$4" = port ] || reason='~^(no-rail|not-connected)$'
	as "$1" "$3"
	before "$1 $2 $3: $4 gone"
	rm -f "$T/started" "$T/cut"
	# A client that starts while the device is lost finds none.
	{ wait_for 60 test -e "$T/started"; cut "$4"; wait_for 60 rail_is 0; touch "$T/cut"; } &
	wire_raw "$srv" <<-END || told "wrong"
		window w $3 pattern:12
		touch $T/started
		waitfile $T/cut
		request $2 $old $tok:@w content-length:0
		$(declined "$1" "$2" "$reason")
		$(old_remains)
	END
	wait $!
	mend "$4"
	wait_for 60 rail_is 1
	wire_raw "$srv" < <(next_works "$3") || told "wrong when it is back"
	NONE_MOVED=1
	after
	if [ "$reason" = no-rail ]; then moved gantry_declines_total '"no-rail"'; else moved gantry_declines_total; fi
}

# Gone in the middle of a transfer.
case_gone-amid() {
	local verb="write" chunk=64
	as "$1" "$3"
	[ "$2" = GET ] || verb="read"
	[ "$3" = 4096 ] || chunk=16384
	before "$1 $2 $3: $4 gone amid"
	rm -f "$T/started" "$T/cut"
	rule op=$verb scramble=$chunk pause=50ms
	{ wait_for 60 test -e "$T/started"; wait_for 60 is_hit; cut "$4"; touch "$T/cut"; } &
	wire_raw "$srv" <<-END || told "wrong"
		window w $3 pattern:12
		start a $2 $old $tok:@w content-length:0
		touch $T/started
		waitfile $T/cut
		wait a
		$(failed "$1")
		$(old_remains)
	END
	wait $!
	was_hit
	mend "$4"
	wait_for 60 rail_is 1
	wire_raw "$srv" < <(next_works "$3") || told "wrong when it is back"
	after
}

# Down for 30 of 150 ms: done, failed or declined, but nothing else; and done is done.
case_flap() {
	local i
	as "$1" "$3"
	before "$1 $2 $3: flap"
	softnicctl port mlx5_0 flap 30 150 6 &
	for ((i = 0; i < 12; i++)); do
		echo "window w$i $3 pattern:11"
		echo "request $2 $at/flap $tok:@w$i content-length:0"
		echo "expect status 200|500|501"
		echo "expect time < $ANSWER"
		echo "sleep 40ms"
	done >"$T/script"
	[ "$2" = PUT ] || sed -i "s,$at/flap,$old," "$T/script"
	wire_raw "$srv" <"$T/script" || told "wrong"
	wait $!
	wait_for 60 rail_is 1
	check_old_and_next "$3"
	after
}

# DC alone.  No address handle: declined, and remembered for 5 s; other addresses are served.
case_create_ah() {
	as "$1" "$3"
	before "$1 $2 $3: create_ah fails"
	softnicctl rule add op=create_ah error=ETIMEDOUT >"$T/rule"
	wire_raw "$srv" <<-END || told "wrong"
		nic six gid=5
		window w $3 pattern:12 nic=six
		request $2 $old $tok:@w content-length:0
		$(declined "$1" "$2" unreachable)
		$(old_remains)
		$(next_works "$3")
	END
	softnicctl rule list >"$T/rule"
	after
	moved gantry_declines_total '"unreachable"'
	grep -q 'hits=0\>' "$T/rule" || moved gantry_address_handle_lookups_total '"failed"'
}
# After RETRY_EXC the handle is forgotten (item 31), and made anew.
case_ah-forgotten() {
	case_status "$1" "$2" "$3" 12
	moved gantry_address_handle_lookups_total '"miss"'
}

# A channel that has to be made anew, and cannot at first: the others serve.
case_create_qp() {
	as "$1" "$3"
	before "$1 $2 $3: create_qp fails"
	softnicctl rule add op=create_qp "pid=$DAEMON_PID" error=ENOMEM limit=1 >"$T/rule"
	softnicctl rule add "op=$([ "$2" = GET ] && echo write || echo read)" drop limit=1 >"$T/rule"
	late_begins
	wire_raw "$srv" <<-END || told "wrong"
		window w $3 pattern:12
		request $2 $old $tok:@w content-length:0
		$(failed "$1")
		$(late_is_over)
		$(old_remains)
		$(next_works "$3")
	END
	wait $relaxer || fail "$what: the deadlines of before"
	wait_for 60 is_hit op=create_qp
	after
	moved gantry_dci_recreated_total
}

# ---- which, and in what order ----------------------------------------------------------------------------------------

begin() {
	local size disk
	export SOFTNIC_EXEC=$1
	DCI=0 FDS=0 what="$1 begin"
	rm -rf "$T"/disk*
	start_daemon
	for size in 4096 5M; do
		bytes pattern:11 $size >"$T/body$size"
		curl_s3 "/bkt/old$size" -T "$T/body$size"
		curl_scal "/old$size" -T "$T/body$size"
		for dialect in s3 scal; do
			as $dialect $size
			wire_raw "$srv" < <(next_works $size) || told "without any fault"
		done
	done
	# The segments made ahead of need, each with a descriptor.
	for disk in "$T"/disk*; do [ ! -d "$disk" ] || wait_for 60 test -e "$disk/seg-0002"; done
	settled
	DCI=$(($(sample "$NOW" gantry_dci) + $(sample "$NOW" gantry_rc_channels)))
	FDS=$(($(sample "$NOW" process_open_fds) - $(sample "$NOW" gantry_rc_connections '"ready"')))
	RSS=$(sample "$NOW" process_resident_memory_bytes)
}
end() {
	what="$SOFTNIC_EXEC end"
	settled
	local grown=$(($(sample "$NOW" process_resident_memory_bytes) - RSS))
	[ $grown -lt $((48 << 20)) ] || fail "$what: grown by $grown bytes"
	# A queue of RC goes with its connection, which no later request has.
	[ -n "${1:-}" ] || over_rc || wait_for 60 grep -q 'completion (.*) of nothing' "$T/daemon.log"
	stop_daemon
}

if [ "${WIRE:-}" != all ]; then
	for mode in thread inline; do
		begin $mode
		# What varies with the mode, so that the two runs see more than one would.
		[ $mode = thread ] && { a=s3 b=scal p=4096 q=5M; } || { a=scal b=s3 p=5M q=4096; }
		for ((s = 1; s < 24; s++)); do
			[ $((s % 2)) = "$([ $mode = thread ] && echo 0 || echo 1)" ] || [ $s = 10 ] || [ $s = 12 ] || continue
			case $((s / 2 % 4)) in
			0) case_status $a GET $p $s ;;
			1) case_status $b PUT $q $s ;;
			2) case_status $b GET $q $s 50 ;;
			3) case_status $a PUT $p $s 100 ;;
			esac
		done
		for c in delay hold scramble dup; do
			case_$c $a GET $q
			case_$c $b PUT $p
		done
		for c in drop hangup kill; do
			case_$c $b GET $q
			case_$c $a PUT $p
		done
		case_scramble-late $b GET $q
		case_scramble-late $a PUT $p
		if [ $mode = thread ]; then
			case_delay-late $b GET $q
			case_hold-late $a PUT $p
		else
			case_delay-late $a PUT $p
			case_hold-late $b GET $q
		fi
		for c in torn corrupt; do
			case_$c s3 GET $p
			case_$c s3 PUT $q
		done
		case_library torn=50 - $q
		if [ $mode = thread ]; then
			case_gone $a GET $p port
			case_gone $b PUT $q device
			case_gone-amid $a PUT $q port
			case_flap $a GET $p
		else
			case_gone $b PUT $q port
			case_gone-amid $b GET $q device
		fi
		over_rc || case_create_ah $b PUT $p
		over_rc || case_ah-forgotten $a GET $p
		[ $mode = inline ] || over_rc || case_create_qp $a GET $p
		end
	done
	echo "$cases cases, $checked work requests looked at"
	exit 0
fi

echo "SEED=$SEED"
all() {
	local d m z s
	for d in s3 scal; do
		for m in GET PUT; do
			for z in 4096 5M; do
				for ((s = 1; s < 24; s++)); do
					echo "status $d $m $z $s $([ $((RANDOM % 2)) = 0 ] || echo $((RANDOM % 101)))"
				done
				for c in delay hold scramble dup delay-late hold-late scramble-late drop hangup kill flap $(over_rc || echo create_ah ah-forgotten create_qp); do
					echo "$c $d $m $z"
				done
				for c in gone gone-amid; do
					echo "$c $d $m $z port"
					echo "$c $d $m $z device"
				done
				[ $d = scal ] || { echo "torn $d $m $z"; echo "corrupt $d $m $z"; }
			done
		done
	done
	for z in 4096 5M; do
		echo "library torn=$((RANDOM % 99)) - $z"
		echo "library corrupt=$((RANDOM % 4096)) - $z"
	done
}
secs=${SECS:-60}
for mode in thread inline; do
	begin $mode
	until=$((SECONDS + secs / 2))
	dup_done=1
	while [ $SECONDS -lt $until ]; do
		all | while read -r line; do echo "$RANDOM$RANDOM $line"; done | sort -n >"$T/list"
		RANDOM=$((RANDOM + 1))
		while read -r -u 3 _ c args && [ $SECONDS -lt $until ]; do
			# shellcheck disable=SC2086
			"case_$c" $args
			[ "$c" != dup ] || dup_done=''
		done 3<"$T/list"
	done
	end $dup_done
done

# item 97: with the budget that the Scality dialect has by default, answered before its clients give up (2 s).
MORE='limits: { scality_total: 1500ms }' ANSWER=1990ms BUDGET=''
begin inline
for c in drop hold-late scramble-late; do
	"case_$c" scal GET 5M
	"case_$c" scal PUT 4096
done
end x
echo "$cases cases of $(wc -l <"$T/list") kinds in each mode, $checked work requests looked at"
