#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Credentials on a reload: the file is read again although its key did not change; what runs ends with the credentials it began with; a
# bad file changes nothing.
cat_keys() { printf -- '- { access_key: %s, secret_key: %s }\n' "$@"; }
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
. "$(dirname "$0")/lib.sh"
cat_keys AKOLD old-secret-1 >"$T/keys.yaml"
chmod 600 "$T/keys.yaml"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
reload() { curl -sS --max-time 30 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST http://x/control/reload; }
# as KEY SECRET METHOD PATH [curl words]: status
as() { curl -sS --max-time 30 -o /dev/null -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3 -u "$1:$2" -X "$3" "http://$SIGNED$4" "${@:5}"; }
bytes pattern:1 600K >"$T/body"
curl_s3 /bkt/a -T "$T/body"
assert_eq "$(as AKOLD old-secret-1 GET /bkt/a)" 200 "the first key"
assert_eq "$(as AKNEW new-secret-1 GET /bkt/a)" 403 "a key that is not there yet"

# A PUT under the old key is running while that key goes.
curl -sS --max-time 60 -o /dev/null -w '%{http_code}' --limit-rate 200K --aws-sigv4 aws:amz:us-east-1:s3 -u AKOLD:old-secret-1 \
	-H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T "$T/body" "http://$SIGNED/bkt/slow" >"$T/slow" &
slow=$!
in_flight() { [ "$(metric gantry_requests_in_flight)" -ge 1 ]; }
wait_for 60 in_flight
cat_keys AKNEW new-secret-1 >"$T/keys.yaml"
assert_eq "$(reload)" 200 "$(<"$T/answer")"
assert_match "$(<"$T/answer")" '"changed":\[\]' "no key of the configuration changed"
assert_eq "$(as AKNEW new-secret-1 GET /bkt/a)" 200 "the new key"
assert_eq "$(as AKOLD old-secret-1 GET /bkt/a)" 403 "the old key"
wait "$slow"
assert_eq "$(<"$T/slow")" 200 "a request that began under the old key"

cat_keys A short >"$T/keys.yaml"
assert_eq "$(reload)" 400 "bad credentials"
assert_match "$(<"$T/answer")" 'keys.yaml:1:' "where: $(<"$T/answer")"
[[ $(<"$T/answer") != *short* ]] || fail "a secret is in the answer"
assert_eq "$(as AKNEW new-secret-1 GET /bkt/a)" 200 "what was good stays"
chmod 644 "$T/keys.yaml"
assert_eq "$(reload)" 400 "a file that others may read"
rm "$T/keys.yaml"
assert_eq "$(reload)" 400 "a file that is gone"
assert_eq "$(as AKNEW new-secret-1 GET /bkt/a)" 200 "what was good stays"
stop_daemon
