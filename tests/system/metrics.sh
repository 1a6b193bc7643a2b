#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What /metrics counts, against requests whose numbers are known: by operation, code, transport and dialect; times, phases, queues, disks,
# the log; and that a scraper finds nothing to complain about.
. "$(dirname "$0")/lib.sh"
/usr/bin/openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 30 -subj /CN=localhost 2>/dev/null ||
	fail "no certificate"
chmod 600 "$T/key.pem"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/cert.pem\", tls_key: \"$T/key.pem\" }"
start_daemon
bytes pattern:1 300000 >"$T/body"
# A request counts when it is over, which its client may hear a moment before.
is_over() { [ "$(metric gantry_connections)" = 0 ]; }
over() { wait_for 60 is_over; }
# A metric's growth during a command: grows WANT NAME LABELS COMMAND...
grows() {
	local before after
	over
	before=$(metric "$2" "$3")
	"${@:4}"
	over
	after=$(metric "$2" "$3")
	assert_eq "$(awk -v a="$after" -v b="$before" 'BEGIN { print a - b }')" "$1" "growth of $2 {$3}"
}
put() { curl_s3 /bkt/a -T "$T/body"; }
get() { curl_s3 /bkt/a -o /dev/null; }
none() { assert_status GET /bkt/none 404; }
by_token() {
	raw <<-END
		window w 1M pattern:7
		request PUT /bkt/r x-amz-rdma-token:@w content-length:0
		expect status 200
		request GET /bkt/r x-amz-rdma-token:@w
		expect status 200
	END
}
scal() { status_of_scal GET /none >/dev/null; }
grows 1 gantry_requests_total 'dialect="s3",operation="PutObject",code="200",transport="http"' put
grows 1 gantry_requests_total 'dialect="s3",operation="GetObject",code="200",transport="http"' get
grows 1 gantry_requests_total 'dialect="s3",operation="GetObject",code="404",transport="http"' none
grows 1 gantry_requests_total 'dialect="scality",operation="GetObject",code="404",transport="http"' scal
grows 1 gantry_requests_total 'operation="PutObject",code="200",transport="rdma"' by_token
grows 1048576 gantry_rdma_bytes_total 'op="read"' by_token
grows 1048576 gantry_rdma_bytes_total 'op="write"' by_token
grows 1 gantry_request_duration_seconds_count 'operation="GetObject",transport="rdma"' by_token
grows 1 gantry_request_first_byte_seconds_count 'operation="GetObject",transport="rdma"' by_token
grows 2 gantry_request_phase_seconds_count 'phase="wire",transport="rdma"' by_token
grows 1 gantry_request_phase_seconds_count 'phase="commit",transport="rdma"' by_token
grows 1 gantry_request_phase_seconds_count 'phase="auth",transport="http"' get
grows 300000 gantry_transfer_bytes_total 'direction="pull",transport="http"' put
grows 300000 gantry_transfer_bytes_total 'direction="push",transport="http"' get
# The disk: what is read and written has a time, so has each flush; of pools, what is read and written.
waits='flush'
[ "${STORE:-disks}" != rados ] || waits='write'
waited=$(metric gantry_store_io_seconds_count "op=\"$waits\"")
put
over
[ "$(metric gantry_store_io_seconds_count "op=\"$waits\"")" -gt "$waited" ] || fail "no $waits was timed"
reads=$(metric gantry_store_io_seconds_count 'op="read"')
get
over
[ "$(metric gantry_store_io_seconds_count 'op="read"')" -gt "$reads" ] || fail "no read was timed"
# The commit of a PUT is counted once for each of its steps, on the disk that has the object; a read and a removal have none.
remove() { curl_s3 /bkt/a -X DELETE; }
if [ "${STORE:-disks}" != rados ]; then
	for step in submitted led written flushed published answered; do
		grows "$COPIES" gantry_commit_seconds_count "until=\"$step\"" put
		grows 0 gantry_commit_seconds_count "until=\"$step\"" get
		grows 0 gantry_commit_seconds_count "until=\"$step\"" remove
		grows "$COPIES" gantry_commit_seconds_count "until=\"$step\"" by_token
	done
	put
	# gantry top has the means of an interval with a PUT.
	"$BUILD/gantry" --admin "$T/admin.sock" top --interval 1 --count 1 >"$T/top" &
	top=$!
	while kill -0 "$top" 2>/dev/null; do put; done
	wait "$top" || fail "gantry top"
	assert_match "$(<"$T/top")" 'commit waits: submitted [0-9.]+ .s, led [0-9.]+ .s, written [0-9.]+ .s,[[:space:]]+flushed [0-9.]+ .s, published [0-9.]+ .s, answered [0-9.]+ .s' "gantry top"
fi
[ "$(metric gantry_requests_in_flight_max)" -ge 1 ] || fail "no high-water mark of requests"
[ "$(metric gantry_buffers_used_max 'class="http"')" -ge 1 ] || fail "no high-water mark of buffers"
assert_match "$(curl_admin /metrics)" 'gantry_requests_queued\{core="0"\} 0' "queues"
grows 1 gantry_log_lines_total 'level="info"' get
# What has a bound is counted beside it.
"$BUILD/gantry" --admin "$T/admin.sock" bucket -q set bkt --max-objects 1000 || fail "gantry bucket set"
curl_admin /metrics >"$T/metrics"
promtool check metrics <"$T/metrics" || fail "promtool check metrics"
# Every sample's metric has HELP and TYPE; every name is in the table, and every name of the table has a sample by now: a row that nobody
# emits is a mistake.  No label holds a key, an address or a token.
# What only one kind of store has is looked for where it is.
of_disks='gantry_commit_seconds|gantry_store_(commits_total|index_bytes|index_max_bytes|log_size_bytes|log_used_bytes|metadata_damaged_total|moved_bytes|objects|packed_moves_total|packed_objects|packed_saved_bytes|records_total|segments_to_rewrite|snapshots_total|to_move_bytes)'
of_pools='gantry_store_(late_operations|unwritten_bytes|longest_call_seconds|epoch_age_seconds|gateways|gateways_cleaned_up_total)'
# The estimate when the store will be full needs an hour of history: unit/main/test_capacity.
others="$of_pools|gantry_store_full_seconds"
[ "${STORE:-disks}" != rados ] || others="$of_disks|gantry_store_full_seconds"
"$BUILD/gantryd" --print-metrics | cut -f1 | grep -vxE "$others" | sort >"$T/table"
sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$T/metrics" | sort >"$T/shown"
[ -z "$(comm -13 "$T/table" "$T/shown")" ] || fail "shown and not in the table: $(comm -13 "$T/table" "$T/shown")"
[ -z "$(comm -23 "$T/table" "$T/shown")" ] || fail "in the table and not shown: $(comm -23 "$T/table" "$T/shown")"
# Only quotas name buckets: those that operators gave one.
! grep -v '^gantry_quota_' "$T/metrics" | grep -E 'bkt|127\.0\.0\.1|/none' || fail "a label that is not bounded"
stop_daemon
