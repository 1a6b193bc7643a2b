#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Health while everything else stands still: every core's thread is stopped (with ptrace; the admin thread goes on), and /livez, /readyz,
# /healthz, /metrics and /status still answer within 100 ms and name each core; then everything is well again.
. "$(dirname "$0")/lib.sh"
start_daemon
TIMES=$T/times

# ask PATH: status, body in $T/answer; how long it took goes to $TIMES
ask() { curl -sS --max-time 60 -o "$T/answer" -w '%{http_code} %{time_total}\n' "$URL_ADMIN$1" >"$T/asked"; read -r status took <"$T/asked"; echo "$took $1" >>"$TIMES"; }
asks() { ask "$1"; assert_eq "$status" "$2" "$1: $(<"$T/answer")"; }
# One in twenty may be late: this machine has other things to do.  (/requests waits for the cores.)
in_time() {
	awk '$2 != "/requests"' "$TIMES" >"$T/t"
	late=$(awk '$1 > 0.1' "$T/t" | wc -l)
	[ $((late * 20)) -le "$(wc -l <"$T/t")" ]
}

for alias in /livez /readyz /healthz /health /health/live /health/ready /minio/health/live /minio/health/ready /minio/health/cluster; do
	asks "$alias" 200
	assert_match "$(<"$T/answer")" '"status":"ok"' "$alias"
done
assert_match "$(curl_admin /rails)" '"state":"up"' "/rails"
assert_match "$(curl_admin /disks)" '"state":"serving"' "/disks"

# ---- every core stands still ----
mkfifo "$T/go"
"$BUILD/tools/freeze" "$DAEMON_PID" core <"$T/go" >"$T/frozen" 2>"$T/freeze.err" &
freezer=$!
exec {go}>"$T/go"
frozen() { grep -q "^frozen $CORES" "$T/frozen" || ! kill -0 $freezer 2>/dev/null; }
wait_for 60 frozen
grep -q "^frozen $CORES" "$T/frozen" || fail "threads cannot be stopped: $(cat "$T/freeze.err" "$T/frozen")"
# They sleep, as far as anybody can see: that is no fault.  A connection for each wakes them, and they do not come.
for i in 1 2 3 4 5 6; do curl -sS --max-time 20 -o /dev/null "$URL_S3/bkt/none" 2>/dev/null & done
stuck() { ask /readyz; [ "$status" = 503 ] && [ "$(grep -o 'core [0-9]* is stuck' "$T/answer" | sort -u | wc -l)" = "$CORES" ]; }
wait_for 60 stuck
# If it has so many that more are late, they are asked again, at another time.
for ((tries = 0; ; tries++)); do
	: >"$TIMES"
	for i in $(seq 20); do
		for p in /livez /healthz /readyz /metrics /status /requests /disks /rails; do ask "$p"; done
	done
	in_time && break
	[ $tries -lt 20 ] || fail "every core stands still: of $(wc -l <"$T/t") answers $late took more than 100 ms: $(sort -rn "$T/t" | head -3)"
done
asks /healthz 503
assert_match "$(<"$T/answer")" 'core 0 is stuck: its loop has not turned for' "the reason"
assert_eq "$(jq -r '.reasons[] | select(.text | test("is stuck")) | .code' "$T/answer" | sort -u)" core_stuck
assert_match "$(curl_admin /requests)" 'core [0-9]+ does not answer' "/requests says which core does not answer"
stalled=$(metric gantry_core_stalled_seconds)
[ "${stalled%%.*}" -ge 1 ] || fail "gantry_core_stalled_seconds says $stalled"
# Commands are not heard by a core that stands still, but they are answered.
assert_eq "$(curl -sS --max-time 60 -o /dev/null -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/drain)" 200 "drain"
assert_eq "$(curl -sS --max-time 60 -o /dev/null -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/resume)" 200 "resume"
# Not alive after ten seconds: whoever watches should start it anew.
dead() { ask /livez; [ "$status" = 503 ]; }
wait_for 60 dead
exec {go}>&-
wait "$freezer"
well() { ask /readyz; [ "$status" = 200 ]; }
wait_for 60 well
asks /livez 200
asks /healthz 200
bytes pattern:4 100000 >"$T/body"
curl_s3 /bkt/after -T "$T/body"
curl_s3 /bkt/after >"$T/back"
assert_same "$T/body" "$T/back" "served again"
stop_daemon
