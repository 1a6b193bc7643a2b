#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantry trace: requests as they end, with conditions, as lines and as JSON, over the socket and over TCP with the token; several at once up to a limit; one that
# does not read loses lines, is told how many, and delays no request.
. "$(dirname "$0")/lib.sh"
cat >"$T/keys.yaml" <<-END
	- { access_key: AKGOOD, secret_key: good-secret-1 }
END
echo 'a-token-of-enough-length' >"$T/token"
chmod 0600 "$T/keys.yaml" "$T/token"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }
lifecycle: { interval: 300ms, day: 1s }"
write_config
sed -i "s|^admin: { |admin: { token_file: \"$T/token\", |" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
live() { curl -sS --max-time 60 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/trace/live -d "$1"; }
over_tcp() { curl -sS --max-time 60 -o "$T/answer" -w '%{http_code}' -X POST "$URL_ADMIN/control/trace/live" -d "$1" "${@:2}"; }
follow() { # FILTER: its id
	assert_eq "$(live "$1")" 200 "$(<"$T/answer")"
	jq -r .id "$T/answer"
}
next() { assert_eq "$(live "{\"id\":\"$1\"}")" 200 "$(<"$T/answer")"; }

# ---- conditions ----
all=$(follow '{}') other=$(follow '{"bucket":"other"}') errors=$(follow '{"errors":"true"}') key=$(follow '{"access_key":"AKGOOD"}')
away=$(follow '{"client":"10.1.1.1"}') local=$(follow '{"client":"127.0.0.1","op":"headobject"}') slow=$(follow '{"slow_us":"60000000"}')
assert_status PUT /bkt/a 200 -d bytes
assert_status GET /bkt/absent 404
assert_eq "$(head_status /bkt/a)" 200
"$BUILD/tools/s3sign" -s "$S3" -k AKGOOD -p good-secret-1 -m empty -o "$T/reply" GET /bkt/a >/dev/null
assert_status PUT /other 200
seen() { # ID WANT: the operations that a trace has seen, in the order of their names
	next "$1"
	jq -r '.events[].op' "$T/answer" >>"$T/ops.$1"
	[ "$(sort "$T/ops.$1" | tr '\n' ' ')" = "$2" ]
}
wait_for 60 seen "$all" "CreateBucket GetObject GetObject HeadObject PutObject "
for row in "$other CreateBucket" "$errors GetObject" "$key GetObject" "$local HeadObject"; do wait_for 60 seen "${row% *}" "${row#* } "; done
for id in "$away" "$slow"; do seen "$id" "" || fail "$id has seen $(<"$T/ops.$id")"; done
for body in '{"end":"true"}' '{"errors":"maybe"}' '{"slow_us":"1s"}' '{"colour":"red"}' "{\"op\":\"$(printf '%0100d' 0)\"}"; do
	assert_eq "$(live "$body")" 400 "$body"
done

# ---- so many, and no more; who ends makes room; who may ----
last=$(follow '{}')
assert_eq "$(live '{}')" 503 "a ninth"
assert_eq "$(live "{\"id\":\"$last\",\"end\":\"true\"}")" 200
assert_eq "$(live "{\"id\":\"$last\"}")" 404 "one that was ended"
assert_eq "$(over_tcp '{}')" 401 "without the token"
assert_eq "$(over_tcp '{}' -H 'authorization: Bearer a-token-of-enough-length')" 200 "with the token"
for id in $other $errors $key $away $local $slow $(jq -r .id "$T/answer"); do live "{\"id\":\"$id\",\"end\":\"true\"}" >/dev/null; done

# ---- one that does not read: requests end all the same, and it is told how many lines it lost ----
for i in $(seq 2000); do echo "url = $URL_S3/bkt/$i"; echo 'output = /dev/null'; done >"$T/urls"
next "$all"
curl -sS --max-time 60 -K "$T/urls" || fail "requests beside a trace that is not read"
no_requests || wait_for 60 no_requests
next "$all"
assert_eq "$(jq '.lost + (.events | length)' "$T/answer")" 2000 "lines seen and lost"
[ "$(jq .lost "$T/answer")" -gt 0 ] || fail "none was lost"
live "{\"id\":\"$all\",\"end\":\"true\"}" >/dev/null

# ---- the command: lines, JSON, a count, an expiry, a signal ----
# started FILE WORDS: gantry trace in the background, its output in FILE, when it sees requests
started() {
	"$BUILD/gantry" --admin "$T/admin.sock" trace "${@:2}" >"$T/$1" 2>&1 &
	tracer=$!
	probes() { curl_s3 "/bkt/probe" -X DELETE; grep -q probe "$T/$1"; }
	wait_for 60 probes "$1"
}
started lines --op DeleteObject
assert_status DELETE '/bkt/a%22b' 204
wait_for 60 grep -qE '^[0-9:.]{12}Z 204 DeleteObject +[0-9.]+ [um]?s +0 B bkt/a"b peer=127.0.0.1 request=[0-9a-f]{16}$' "$T/lines"
kill -INT "$tracer"
wait "$tracer" || fail "exit $? after a signal"
! grep -q PutObject "$T/lines" || fail "another operation"
started json --json
curl_s3 /bkt/tmp/one -X PUT -d x
assert_status PUT '/bkt?lifecycle' 200 -d '<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter><Prefix>tmp/</Prefix></Filter><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>'
expired() { jq -e 'select(.op == "Expire" and .bucket == "bkt" and .key == "tmp/one")' "$T/json" >/dev/null; }
wait_for 60 expired
# The daemon ends under it.
stop_daemon
wait "$tracer" && fail "a trace of a daemon that has ended succeeds"
daemon_run
# Under the signal of timeout it would end with 124.
for i in $(seq 400); do curl_s3 "/bkt/$i" -X DELETE; done &
load=$!
timeout 60 "$BUILD/gantry" --admin "$URL_ADMIN" --token-file "$T/token" --count 2 --bucket bkt trace >"$T/two" || fail "--count, over TCP: exit $?"
assert_eq "$(wc -l <"$T/two")" 2
wait "$load"
"$BUILD/gantry" --admin "$URL_ADMIN" trace >"$T/out" 2>"$T/err" && fail "over TCP without the token"
grep -q '401: .*Bearer TOKEN' "$T/err" || fail "$(<"$T/err")"
"$BUILD/gantry" --admin "$T/admin.sock" trace --slow 1h 2>"$T/err" && fail "--slow 1h is taken"
grep -q -- '--slow wants a time' "$T/err" || fail "$(<"$T/err")"
