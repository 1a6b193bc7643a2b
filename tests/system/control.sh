#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM62: control calls: who may, what is refused and how; draining and resuming; log levels; tracing.
. "$(dirname "$0")/lib.sh"
MORE=''
write_config
echo 'a-token-of-enough-length' >"$T/token"
chmod 600 "$T/token"
sed -i "s|^admin: { |admin: { token_file: \"$T/token\", |" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets

# ask METHOD PATH [curl words]: status; the body in $T/answer, the head in $T/head
over_socket() { curl -sS --max-time 30 -o "$T/answer" -D "$T/head" -w '%{http_code}' --unix-socket "$T/admin.sock" -X "$1" "http://x$2" "${@:3}"; }
over_tcp() { curl -sS --max-time 30 -o "$T/answer" -D "$T/head" -w '%{http_code}' -X "$1" "$URL_ADMIN$2" "${@:3}"; }
head_has() { grep -iq "^$1" "$T/head" || fail "no $1 in: $(<"$T/head")"; }
post() { assert_eq "$(over_socket POST "$1" "${@:2}")" 200 "POST $1: $(<"$T/answer")"; }

# ---- who may ----
[ "$(stat -c %a "$T/admin.sock")" = 600 ] || fail "mode of the socket"
assert_eq "$(over_tcp POST /control/drain)" 401 "no token"
head_has 'WWW-Authenticate: Bearer'
assert_eq "$(over_tcp POST /control/drain -H 'Authorization: Bearer another-token-of-length')" 401 "a wrong token"
assert_eq "$(over_tcp POST /control/drain -H 'Authorization: Basic a-token-of-enough-length')" 401 "not a bearer token"
assert_eq "$(over_tcp GET /readyz)" 200 "nobody was heard"
assert_eq "$(over_tcp POST /control/resume -H 'Authorization: Bearer a-token-of-enough-length')" 200 "the token"
assert_eq "$(over_tcp GET /control/log-level)" 200 "reading needs none"
# Another token takes effect with a reload, a readable file is refused.
echo 'another-token-of-length' >"$T/token"
post /control/reload
assert_eq "$(over_tcp POST /control/resume -H 'Authorization: Bearer a-token-of-enough-length')" 401 "the old token"
assert_eq "$(over_tcp POST /control/resume -H 'Authorization: Bearer another-token-of-length')" 200 "the new token"
chmod 644 "$T/token"
assert_eq "$(over_socket POST /control/reload)" 400 "a token that everybody can read"
assert_match "$(<"$T/answer")" 'mode 0600' "$(<"$T/answer")"
assert_eq "$(over_tcp POST /control/resume -H 'Authorization: Bearer another-token-of-length')" 200 "the token stays"
chmod 600 "$T/token"

# ---- what is refused ----
assert_eq "$(over_socket POST /control/explode)" 404 "unknown"
for method in GET POST; do assert_eq "$(over_socket $method / --request-target '?')" 404 "$method of an empty path"; done
assert_eq "$(over_socket GET /control/resume)" 405 "GET of a command"
head_has 'Allow: POST'
assert_eq "$(over_socket DELETE /control/log-level)" 405 "DELETE"
head_has 'Allow: GET, HEAD, POST'
assert_eq "$(over_socket POST /metrics)" 405 "POST of a page"
head_has 'Allow: GET, HEAD'
for body in '{' '[]' '{"level":}' '{"level":"debug","level":"info"}' '{"loud":"debug"}' '{"level":"loud"}' '{"module":"rdma"}' \
	'{"level":"debug","module":"nobody"}' '{"level":{"a":1}}' '{"level":"debug"} x' 'level=debug' '{"level":"\u0041"}'; do
	assert_eq "$(over_socket POST /control/log-level --data-binary "$body")" 400 "body $body"
	assert_match "$(<"$T/answer")" '^\{"error":".+"\}' "body $body"
done
head -c 100000 /dev/zero | tr '\0' ' ' >"$T/blanks"
assert_eq "$(over_socket POST /control/log-level --data-binary @"$T/blanks")" 413 "a large body"
assert_eq "$(over_socket POST /control/snapshot)" 200 "snapshot"
assert_match "$(<"$T/answer")" '^\{"snapshots":([0-9]+),"seconds":[0-9.]+\}$' "one was made"
[ "${BASH_REMATCH[1]}" -ge 1 ] && [ "${BASH_REMATCH[1]}" -le $((2 * DISKS)) ] || fail "on each disk one or two: $(<"$T/answer")"
assert_eq "$(over_socket POST /control/snapshot)" 200 "another snapshot"
assert_eq "$(over_socket POST /control/drain --data-binary '{"now":true}')" 400 "a member that drain does not take"
assert_eq "$(over_tcp GET /readyz)" 200 "still serving"

# ---- draining ----
bytes pattern:5 600K >"$T/body"
curl -sS -o /dev/null -w '%{http_code}' --limit-rate 200K -T "$T/body" "$URL_S3/bkt/slow" >"$T/slow" &
slow=$!
in_flight() { [ "$(metric gantry_requests_in_flight)" -ge 1 ]; }
wait_for 60 in_flight
post /control/drain
assert_match "$(<"$T/answer")" '"draining":true' "the answer"
assert_eq "$(over_tcp GET /readyz)" 503 "readiness"
assert_match "$(<"$T/answer")" 'draining on request' "the reason"
assert_eq "$(over_tcp GET /livez)" 200 "it is alive"
assert_eq "$(metric gantry_draining)" 1 "the metric"
assert_status GET /bkt/slow 503
assert_eq "$(header_of retry-after /bkt/slow)" 1 "Retry-After"
assert_eq "$(status_of_scal GET /slow)" 503 "scality"
wait "$slow"
assert_eq "$(<"$T/slow")" 200 "the request that ran"
idle() { [ "$(metric gantry_requests_in_flight)" = 0 ]; }
wait_for 60 idle
post /control/resume
assert_eq "$(over_tcp GET /readyz)" 200 "readiness"
curl_s3 /bkt/slow >"$T/back"
assert_same "$T/body" "$T/back" "what was put while draining began"

# ---- log levels ----
post /control/log-level -d '{"module": "access", "level": "error"}'
curl_s3 /bkt/slow -o /dev/null
assert_match "$(<"$T/answer")" '"access":"error"' "levels"
wait_for 60 grep -q 'log level of access is now error' "$T/daemon.log"
lines=$(grep -c ' access: ' "$T/daemon.log")
curl_s3 /bkt/slow -o /dev/null
assert_eq "$(grep -c ' access: ' "$T/daemon.log")" "$lines" "no access line"
post /control/log-level -d '{"module": "access", "level": "default"}'
curl_s3 /bkt/slow -o /dev/null
wait_for 60 eval '[ "$(grep -c " access: " "$T/daemon.log")" -gt '"$lines"' ]'
post /control/log-level -d '{"level": "error"}'
assert_match "$(over_tcp GET /control/log-level)$(<"$T/answer")" '200.*"level":"error"' "the common level"
post /control/log-level -d '{"level": "info"}'

# ---- tracing ----
post /control/trace -d '{"next": 2}'
assert_match "$(<"$T/answer")" '"next":2' "$(<"$T/answer")"
raw <<-END
	window w 1M pattern:7
	request PUT /bkt/traced x-amz-rdma-token:@w content-length:0
	expect status 200
END
id=$(header_of x-amz-request-id /bkt/traced)
wait_for 60 grep -q "trace: id=$id .*sent" "$T/daemon.log"
for want in 'op=PutObject runs step=lease_start' 'waits step=put_pulled for=pull' 'op=PutObject waits step=[a-z_-]* for=commit' \
	"id=$id .*op=GetObject runs step=get_range"; do
	wait_for 60 grep -q " trace: .*$want" "$T/daemon.log"
done
assert_eq "$(over_tcp GET /control/trace)$(<"$T/answer")" '200{"next":0}' "used up"
lines=$(grep -c ' trace: ' "$T/daemon.log")
curl_s3 /bkt/traced -o /dev/null
wait_for 60 grep -q "op=GetObject status=200 rdma_bytes=0 http_bytes=1048576" "$T/daemon.log"
assert_eq "$(grep -c ' trace: ' "$T/daemon.log")" "$lines" "a third one is not traced"
! grep ' trace: ' "$T/daemon.log" | grep -q traced || fail "a key is in the trace"
# A live one by its id.
curl -sS -o /dev/null --limit-rate 60K -T "$T/body" "$URL_S3/bkt/live" &
live_curl=$!
live() { curl_admin /requests | grep -o '"id":"[0-9a-f]*"' | head -1 | grep -o '[0-9a-f]\{16\}' >"$T/id"; }
wait_for 60 live
post /control/trace -d "{\"id\": \"$(<"$T/id")\"}"
one=$(curl_admin "/requests/$(<"$T/id")")
assert_match "$one" "^\{\"id\":\"$(<"$T/id")\",\"core\":[0-9]+,\"op\":\"PutObject\"" "the request: $one"
assert_match "$one" "\"peer\":\"127.0.0.1\",\"bucket\":\"bkt\",\"bytes\":[0-9]+,\"length\":$(stat -c %s "$T/body")," "whose it is, and how far: $one"
moves() { [ "$(curl_admin /requests | jq '[.[].bytes] | max // 0')" -gt 0 ]; }
wait_for 60 moves
assert_match "$one" '"steps":\[.?\{"us":[0-9]+,"did":"traced","step":"' "its steps: $one"
assert_eq "$(over_tcp POST "/requests/$(<"$T/id")")" 405 "POST of a request"
wait "$live_curl"
wait_for 60 grep -q "trace: id=$(<"$T/id") .*sent" "$T/daemon.log"
assert_eq "$(over_socket POST /control/trace -d "{\"id\": \"$(<"$T/id")\"}")" 404 "a request that is over"
gone() { [ "$(over_tcp GET "/requests/$(<"$T/id")")" = 404 ]; }
wait_for 60 gone
for id in '' 0 nothing; do assert_eq "$(over_tcp GET "/requests/$id")" 404 "/requests/$id"; done
for body in '{}' '{"id":"a","next":1}' '{"next":5000}' '{"next":"x"}'; do
	assert_eq "$(over_socket POST /control/trace -d "$body")" 400 "body $body"
done
assert_alive
# While it stops nothing can be commanded.
stop_daemon
