#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A disk that fails, fills up, is slow or hangs, under the real daemon; on a block device and in a directory on ext4.
#
# Each fault by itself first: what clients of both dialects, by token and over HTTP, are answered; what health says; that after a failed
# write or flush the disk is read-only until a restart, and after one everything acknowledged is there.  Then, for what is left of
# SECS (default 60) and five times at least, random faults in the middle of load.  /livez is asked all the time, and /readyz, which names a core
# whose loop has not turned for a second.
MORE=$'limits: { s3_progress: 2s, s3_total: 2s, scality_total: 1s }\nlog: { access: false }'
DISK_SIZE=192MiB
. "$(dirname "$0")/disk.sh"
SECS=${SECS:-60}
SEED=${SEED:-$(date +%s)}
RANDOM=$SEED
echo "SEED=$SEED SECS=$SECS"
declare -A want=() # acknowledged: key -> "pattern size"
restarts=0 verified=0 chaos_rounds=0 acked=0 wrong_late=0

# ---- asking --------------------------------------------------------------------------------------------------------

# "STATUS CODE" of an answer: asks METHOD PATH [curl words]
asks() {
	local status
	status=$(curl -sS --max-time 20 -o "$T/answer" -w '%{http_code}' -X "$1" "${@:3}" "$URL_S3$2" 2>/dev/null)
	echo "$status $(sed -n 's/.*<Code>\(.*\)<\/Code>.*/\1/p' "$T/answer" 2>/dev/null)"
	rm -f "$T/answer"
}
# answers WHAT 'REGEX' METHOD PATH [curl words]
answers() {
	local got
	got=$(asks "${@:3}")
	assert_match "$got" "^($2)\$" "$form, $1: $3 $4 answers \"$got\", not $2"
}
# The same by RDMA token: GET needs no bytes, PUT takes pattern 5 of 300000.
answers_token() {
	local got
	raw <<-END
		timeout 20s
		window w 400000 pattern:5
		request $3 $4 x-amz-rdma-token:@w content-length:0
		expect status $2
		expect untouched w
	END
}

livez_watch() {
	local t
	while :; do
		t=$(curl -sS --max-time 5 -o /dev/null -w '%{time_total} %{http_code}' "http://$(cat "$T/admin")/livez" 2>/dev/null)
		echo "$t"
		curl -sS --max-time 5 "http://$(cat "$T/admin")/readyz" 2>/dev/null | grep 'is stuck' >>"$T/stuck"
		sleep 0.03
	done >>"$T/livez"
}
# What it saw since the last time.
livez_check() {
	local bad late max
	kill "$watcher"
	{ wait "$watcher"; } 2>/dev/null
	bad=$(awk '$2 != 200' "$T/livez" | wc -l) late=$(awk '$1 > 0.1' "$T/livez" | wc -l)
	[ ! -s "$T/stuck" ] || fail "$form, $1: a core was stuck: $(tail -n 1 "$T/stuck")"
	max=$(awk '$1 > m { m = $1 } END { printf "%d", m * 1000 }' "$T/livez")
	[ "$bad" = 0 ] || fail "$form, $1: /livez answered $(awk '$2 != 200' "$T/livez" | head -n 1)"
	# A single one may be late for what else this machine does; one that waits for the disk takes as long as the shortest hang, 4 s,
	# and with a disk that takes its time, most are late.
	[ "$max" -lt 3000 ] && [ $((late * 2)) -le "$(wc -l <"$T/livez")" ] ||
		fail "$form, $1: of $(wc -l <"$T/livez") /livez $late took more than 100 ms, one $max ms"
	lives=$((${lives:-0} + $(wc -l <"$T/livez"))) late_all=$((${late_all:-0} + late))
	[ "$max" -le "${livez_max:-0}" ] || livez_max=$max
}
begin() {
	echo "$form: $1"
	: >"$T/livez"
	: >"$T/stuck"
	echo "$ADMIN" >"$T/admin"
	livez_watch &
	watcher=$!
}

# ---- what must be there --------------------------------------------------------------------------------------------

put() {
	bytes "pattern:$2" "$3" >"$T/put"
	answers "put" "200 " PUT "/bkt/$1" --data-binary @"$T/put"
	want[$1]="$2 $3"
	acked=$((acked + 1))
}

# Everything acknowledged, byte for byte.
verify() {
	local k p
	{
		echo "timeout 60s"
		for k in "${!want[@]}"; do
			read -r p n <<<"${want[$k]}"
			echo "request GET /bkt/$k"
			if [ "$p" = gone ]; then echo "expect status 404"; else printf 'expect status 200\nexpect body length %s\nexpect body pattern:%s\n' "$n" "$p"; fi
		done
	} >"$T/script"
	raw "$T/script" >"$T/script.out" 2>&1 || { cat "$T/script.out"; fail "$form, $1: what was acknowledged is not there"; }
	verified=$((verified + ${#want[@]}))
}

healthy() { [ "$(curl_admin /healthz | json status)" = ok ]; }
status_of_admin() { curl -sS --max-time 5 -o /dev/null -w '%{http_code}' "$URL_ADMIN$1"; }

heal() {
	disk thaw
	for k in read write flush; do
		disk fail $k 0
		disk delay $k 0
	done
}

# The fault goes, the daemon starts again; a directory's file system is mounted again too.
restart_healed() {
	stop_daemon
	heal
	if [ "$form" = directory ]; then
		wait_for 10 umount "$T/disk0"
		disk_mount
	fi
	daemon_run
	restarts=$((restarts + 1))
	healthy || fail "$form, $1: not healthy after the restart"
	verify "$1, after the restart"
	put after-restart $((RANDOM % 100)) 70000
	verify "$1, after the restart"
}

# After a failed write or flush.
is_read_only() {
	answers "$1" "503 ServiceUnavailable" PUT /bkt/more --data-binary @"$T/small"
	answers "$1" "503 ServiceUnavailable" PUT /bkt/more --data-binary @"$T/mid"
	answers "$1" "503 ServiceUnavailable" DELETE /bkt/small
	answers "$1" "503 ServiceUnavailable" PUT /another
	answers_token "$1" 503 PUT /bkt/more
	assert_eq "$(status_of_scal PUT /more --data-binary @"$T/mid")" 503 "$form, $1: a PUT on the scality listener"
	verify "$1, while the disk is read-only"
	assert_eq "$(head_status /bkt)" 200 "$form, $1: HEAD of the bucket"
	assert_eq "$(curl_admin /healthz | json status)" unavailable "$form, $1: health"
	assert_match "$(curl_admin /healthz)" 'disk [0-9a-f]{8} /.* failed, read-only until a restart' "$form, $1: health's reason"
	assert_eq "$(metric gantry_store_up)" 0 "$form, $1: the metric"
	# For good: that the fault is gone changes nothing before a restart.
	disk fail write 0
	disk fail flush 0
	answers "$1" "503 ServiceUnavailable" PUT /bkt/more --data-binary @"$T/small"
}

maybe_there() {
	local got
	got=$(asks GET "/bkt/$1")
	case $got in
	"404 NoSuchKey") ;;
	"200 ") curl_s3 "/bkt/$1" | cmp -s - "$2" || fail "$form: $1, which was not acknowledged, is half there" ;;
	*) fail "$form: GET $1 answers $got" ;;
	esac
}

# ---- each by itself ------------------------------------------------------------------------------------------------

read_errors() {
	begin "EIO on read"
	disk fail read 5
	answers "EIO on read" "500 InternalError" GET /bkt/mid
	answers "EIO on read" "500 InternalError" GET /bkt/large
	answers "EIO on read" "500 InternalError" GET /bkt/mid -H 'range: bytes=100-200'
	answers_token "EIO on read" 500 GET /bkt/mid
	answers "EIO on read" "200 " GET /bkt/small # in the index
	assert_eq "$(head_status /bkt/mid)" 200 "$form: HEAD needs no disk"
	# The write path needs no read.
	put "while-reads-fail" 3 90000
	disk fail read 0
	verify "EIO on read, gone"
	healthy || fail "$form: a read error is no reason to give up the disk"
	[ "$(metric gantry_store_errors_total 'kind="io"')" -ge 4 ] || fail "$form: the read errors are not counted"
	livez_check "EIO on read"
	# A start that cannot read says so, keeps its hands off, and works once the disk does.
	stop_daemon
	disk fail read 5
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" >"$T/start" 2>&1
	rc=$?
	assert_ne $rc 0 "$form: a start without being able to read"
	grep -qiE 'input/output error|cannot read' "$T/start" || { cat "$T/start"; fail "$form: the start does not name its reason"; }
	disk fail read 0
	[ "$form" = device ] || { wait_for 10 umount "$T/disk0"; disk_mount; }
	daemon_run
	verify "EIO at start, gone"
}

# write_errors ERRNO NAME OBJECT-FILE: a PUT over HTTP into the fault
write_errors() {
	begin "$2 on write, PUT of $3"
	disk fail write "$1"
	got=$(asks PUT /bkt/unsure --data-binary @"$T/$3")
	assert_match "$got" '^(503 ServiceUnavailable)$' "$form, $2 on write: PUT answers \"$got\""
	echo "  $2 on write: PUT of $3 answers $got"
	is_read_only "$2 on write"
	livez_check "$2 on write"
	restart_healed "$2 on write"
	maybe_there unsure "$T/$3"
	answers "after" "204 " DELETE /bkt/unsure
}

# No room below the disk: no failure, and PUTs work again without a restart.
no_room() {
	begin "$2 on write, PUT of $3"
	disk fail write "$1"
	answers "$2 on write" "507 InsufficientStorage" PUT /bkt/unsure --data-binary @"$T/$3"
	disk fail write 0
	has_room() { [ "$(asks PUT /bkt/unsure --data-binary @"$T/$3")" = "200 " ] && healthy; }
	wait_for 60 has_room "$@"
	livez_check "$2 on write"
	answers "after" "204 " DELETE /bkt/unsure
}

flush_errors() {
	begin "EIO on flush"
	disk fail flush 5
	answers "EIO on flush" "503 ServiceUnavailable" PUT /bkt/unsure --data-binary @"$T/$1"
	is_read_only "EIO on flush"
	livez_check "EIO on flush"
	restart_healed "EIO on flush"
	maybe_there unsure "$T/$1"
	answers "after" "204 " DELETE /bkt/unsure
}

slow() {
	begin "slow: 40 ms for everything"
	for k in read write flush; do disk delay $k 40; done
	rm -f "$T/ack.slow" # of the other form
	raw <<-END >"$T/slow.out" 2>&1
		timeout 20s
		window w 300000 pattern:6
		flood 8 40 $T/ack.slow PUT /bkt/slow-%n x-amz-rdma-token:@w content-length:0
	END
	assert_eq "$(awk '$2 == 200' "$T/ack.slow" | wc -l)" 40 "$form, slow: PUTs"
	for i in {0..39}; do want[slow-$i]="6 300000"; done
	acked=$((acked + 40))
	verify "slow"
	answers "slow" "204 " DELETE /bkt/slow-7
	want[slow-7]="gone 0"
	for k in read write flush; do disk delay $k 0; done
	healthy || fail "$form, slow: not healthy"
	livez_check "slow"
}

# Runs a command that must end between $1 and $2 ms; the rest is answers' or answers_token's.
in_time() {
	local from to=$2 least=$1 took
	from=$(date +%s%N)
	"${@:3}"
	took=$((($(date +%s%N) - from) / 1000000))
	[ $took -le "$to" ] && [ $took -ge "$least" ] || fail "$form, hung: $took ms: ${*:3}"
}

# Writes into a disk that hangs: each is answered in time.
hung_writes() {
	in_time 1500 6000 answers_token "hung" 503 PUT /bkt/hung-token
	in_time 1500 6000 answers "hung" "503 .*" PUT /bkt/hung-mid --data-binary @"$T/mid"
	in_time 1500 6000 answers "hung" "503 .*" PUT /bkt/hung-small --data-binary @"$T/small"
	in_time 1500 6000 answers "hung" "503 .*" DELETE /bkt/slow-8
	# Once more, after writes: a file system that notes when files were read would do so now.
	in_time 1500 6000 answers "hung" "503 SlowDown" GET /bkt/mid
	# More than a piece waits for the disk during the transfer, after bytes have moved: 500.
	raw <<-END
		window w 6M
		request PUT /bkt/hung-large x-amz-rdma-token:@w content-length:0
		expect status 500
		expect header x-amz-rdma-reply 500
		expect time < 6000ms
	END
	raw_scal <<-END
		window w 400000
		request PUT /hung-scal x-scal-rdma:@w content-length:0
		expect status 503
		expect time < 5000ms
	END
	assert_match "$(curl_admin /requests)" '"step"' "$form, hung: nothing is shown as waiting"
}

# Reads and writes that come again and again, in larger numbers than the device takes at a time, while ext4 wants to write
# its journal (every 5 s): this is what stops a core that hands them in itself.
hung_crowd() {
	local i
	for i in 1 2 3; do
		rm -f "$T/ack.crowd" "$T/ack.write"
		raw <<-END >"$T/crowd.out" 2>&1 &
			timeout 30s
			flood 200 200 $T/ack.crowd GET /bkt/page
		END
		clients=($!)
		raw <<-END >"$T/write.out" 2>&1
			timeout 30s
			flood 40 40 $T/ack.write PUT /bkt/crowd-%n body=pattern:7:5000
		END
		{ wait "${clients[@]}"; } 2>/dev/null
		assert_eq "$(awk '$2 == 503' "$T/ack.crowd" | wc -l)" 200 "$form, hung: GETs answered 503"
		assert_eq "$(awk '$2 == 503' "$T/ack.write" | wc -l)" 40 "$form, hung: PUTs answered 503"
	done
	in_time 0 1400 answers "hung" "200 " GET /bkt/small
}

hung() {
	begin "hung"
	disk freeze
	in_time 0 1400 answers "hung" "200 " GET /bkt/small
	in_time 1500 6000 answers "hung" "503 SlowDown" GET /bkt/mid
	in_time 1500 6000 answers_token "hung" 503 GET /bkt/mid
	in_time 0 1400 head_status /bkt/mid >/dev/null
	hung_writes
	hung_crowd
	livez_check "hung"
	disk thaw
	disk stat
	# (A reader may well have kept the writers from getting that far.)
	[ $((DISK[hung_write] + DISK[hung_read])) -gt 0 ] || fail "nothing hung: the test proves nothing"
	wait_for 10 no_requests
	unset 'want[slow-8]'
	verify "hung, gone on"
	maybe_there hung-mid "$T/mid"
	maybe_there hung-small "$T/small"
	healthy || fail "$form, hung: not healthy after it went on"
	put hung-over 4 300000
	verify "hung, gone on"
}
no_requests() { [ "$(curl_admin /requests | grep -c '"step"')" = 0 ]; }

# The store's own end: 507 while it lasts, and room again after deletes.
full() {
	local i got nr
	begin "full"
	bytes pattern:8 5000000 >"$T/fill"
	for ((nr = 0; nr < 60; nr++)); do
		got=$(asks PUT /bkt/fill-$nr --data-binary @"$T/fill")
		[ "$got" = "200 " ] || break
		want[fill-$nr]="8 5000000"
	done
	assert_eq "$got" "507 InsufficientStorage" "$form: PUT number $nr into a full store"
	raw <<-END
		window w 6M
		request PUT /bkt/fill-token x-amz-rdma-token:@w content-length:0
		expect status 507
	END
	verify "full"
	# Health may say that it is full, and nothing else.
	assert_match "$(curl_admin /disks | json state 0), $(curl_admin /healthz | jq -r '[.reasons[].code] | unique | join(" ")')" \
		'^serving, (disk_full)?$' "$form: a full disk is not a failed one"
	for ((i = 0; i < nr; i++)); do
		answers "full" "204 " DELETE /bkt/fill-$i
		unset "want[fill-$i]"
	done
	wait_for 15 room_again
	verify "room again"
	livez_check "full"
}
room_again() { [ "$(asks PUT /bkt/room --data-binary @"$T/fill")" = "200 " ]; }

# The file system fills up before the store has made all its segments.
full_fs() {
	local nr got
	begin "file system full"
	bytes pattern:8 5000000 >"$T/fill"
	dd if=/dev/zero of="$T/disk0/filler" bs=1M status=none 2>/dev/null
	for ((nr = 0; nr < 60; nr++)); do
		got=$(asks PUT /bkt/fill-$nr --data-binary @"$T/fill")
		[ "$got" = "200 " ] || break
		want[fill-$nr]="8 5000000"
	done
	assert_eq "$got" "507 InsufficientStorage" "$form: PUT number $nr with the file system full"
	verify "file system full"
	rm "$T/disk0/filler"
	wait_for 25 room_again
	verify "file system with room again"
	for ((; nr >= 0; nr--)); do
		answers "file system full" "204 " DELETE /bkt/fill-$nr
		unset "want[fill-$nr]"
	done
	livez_check "file system full"
}

# ---- in the middle of load -----------------------------------------------------------------------------------------

chaos() {
	local kind err i n seed old
	kind=$(echo read write write flush | cut -d' ' -f$((RANDOM % 4 + 1)))
	err=$(echo 5 5 28 | cut -d' ' -f$((RANDOM % 3 + 1)))
	n=$(echo 200 5000 300000 | cut -d' ' -f$((RANDOM % 3 + 1)))
	seed=$((RANDOM % 900 + 10))
	begin "load, $kind fails with $err, objects of $n"
	rm -f "$T/ack.put" "$T/ack.http"
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/c1" 2>&1 <<-END &
		timeout 20s
		window w $n pattern:$seed
		flood 4 300 $T/ack.put PUT /bkt/c-%n x-amz-rdma-token:@w content-length:0
	END
	clients=($!)
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/c2" 2>&1 <<-END &
		timeout 20s
		flood 3 300 $T/ack.http PUT /bkt/h-%n body=pattern:$seed:$n
	END
	clients+=($!)
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/c3" 2>&1 <<-END &
		timeout 20s
		flood 2 400 $T/ack.get GET /bkt/mid
	END
	clients+=($!)
	disk delay flush $((RANDOM % 4))
	sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
	disk fail "$kind" "$err"
	[ $kind != read ] || { sleep 0.5; disk fail read 0; }
	{ wait "${clients[@]}"; } 2>/dev/null
	assert_alive
	livez_check "load"
	awk '$2 != 200 && $2 != 500 && $2 != 503 && $2 != 507' "$T"/ack.* | head -n 1 | grep . && fail "$form, load: an answer that is none of these"
	restart_plain
	for w in put:c http:h; do
		for ((i = 0; i < 300; i++)); do
			old=${want[${w#*:}-$i]:-gone 0}
			if grep -q "^$i 200 " "$T/ack.${w%:*}" 2>/dev/null; then
				want[${w#*:}-$i]="$seed $n" acked=$((acked + 1))
			else
				settle "${w#*:}-$i" "$old" "$seed $n"
			fi
		done
	done
	verify "load, $kind fails with $err"
	rm -f "$T"/ack.*
	chaos_rounds=$((chaos_rounds + 1))
}

restart_plain() {
	stop_daemon
	heal
	[ "$form" = device ] || { wait_for 10 umount "$T/disk0"; disk_mount; }
	daemon_run
	restarts=$((restarts + 1))
}

# A PUT without acknowledgement: as before or as written; and what it is now it stays.
settle() {
	local got=gone
	case $(curl -sS -o "$T/one" -w '%{http_code}' "$URL_S3/bkt/$1") in
	200) got=$(md5 "$T/one") ;;
	404) ;;
	*) fail "$form: $1 cannot be read: $(cat "$T/one")" ;;
	esac
	for x in "$2" "$3"; do
		if [ "$got" = "$(sum_of "$x")" ]; then
			want[$1]=$x
			return
		fi
	done
	fail "$form: $1, which was not acknowledged, is neither old nor new"
}
declare -A sums=()
sum_of() {
	if [ "${1%% *}" = gone ]; then
		echo gone
	else
		bytes "pattern:${1% *}" "${1#* }" | md5
	fi
}

# ---- all of it -----------------------------------------------------------------------------------------------------

disk_setup 256M
bytes pattern:1 200 >"$T/small"
bytes pattern:2 300000 >"$T/mid"
bytes pattern:3 5000000 >"$T/large"
for form in ${FORMS:-device directory}; do
	until=$((SECONDS + SECS / 2))
	want=()
	disk_store $form
	daemon_run
	make_buckets
	put small 1 200
	put mid 2 300000
	put page 6 5000
	put large 3 5000000
	read_errors
	write_errors 5 EIO small
	write_errors 5 EIO mid
	write_errors 5 EIO large
	# A file system whose journal gets no room needs a mount of its own.
	[ $form = directory ] || no_room 28 ENOSPC large
	flush_errors small
	flush_errors large
	slow
	hung
	if [ $form = device ]; then full; else full_fs; fi
	# Some rounds there are in any case: on a busy machine the rest may take all the time.
	for ((round = 0; round < 5 || SECONDS < until; round++)); do chaos; done
	stop_daemon
	nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --fsck >"$T/fsck" 2>&1 || { cat "$T/fsck"; fail "--fsck: exit $?"; }
	[ $form = device ] || { umount "$T/disk0"; _disk_mount=''; }
done
disk stat
echo "failed: ${DISK[failed_read]} reads, ${DISK[failed_write]} writes, ${DISK[failed_flush]} flushes; delayed: ${DISK[delayed_read]}, ${DISK[delayed_write]}, ${DISK[delayed_flush]}; hung: ${DISK[hung_read]}, ${DISK[hung_write]}, ${DISK[hung_flush]}"
echo "$restarts restarts, $chaos_rounds of them after faults under load; $acked acknowledged writes, none lost; $verified objects compared; $lives times /livez, ${livez_max:-0} ms at most, $late_all above 100 ms"
