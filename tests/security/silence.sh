#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM14, TM41, TM42, TM61: whatever is asked of the daemon, and whatever it logs at its most talkative, shows no secret, no
# signature, no token of memory and no key of an object, also while requests with all of them are under way.
. "$(dirname "$0")/../system/lib.sh"

cat >"$T/keys.yaml" <<-END
	- { access_key: AKMUTE, secret_key: s3cr3t-of-mute, session_token: sess10n-of-mute }
END
echo 'b3arer-token-of-admin' >"$T/bearer"
chmod 0600 "$T/keys.yaml" "$T/bearer"
# No address of a rail may be named, so that a token is declined, and logged as far as it is; the key of DC targets is no default.
RDMA='{ dc_key: 0x5ec4e7a1, allow: [10.0.0.0/8] }'
MORE="auth: { credentials_file: \"$T/keys.yaml\" }
log: { level: debug }"
write_config
sed -i "s|^admin: { |admin: { token_file: \"$T/bearer\", |" "$T/gantryd.yaml"
format_store
daemon_run
make_buckets

# Something of each kind: a key with a signature in the URL that goes on while we look, one that failed, tokens.
bytes pattern:1 400000 >"$T/body"
url=$("$BUILD/tools/s3sign" -s "$S3" -k AKMUTE -p s3cr3t-of-mute -t sess10n-of-mute -U -P 600 -m unsigned PUT /bkt/k3y-of-object)
signature=${url##*X-Amz-Signature=}
signature=${signature%%&*}
assert_match "$signature" '^[0-9a-f]{64}$' "$url"
curl -sS --max-time 60 --limit-rate 60K -o /dev/null -w '%{http_code}' -T "$T/body" "http://$S3$url" >"$T/put" &
put=$!
"$BUILD/tools/s3sign" -s "$S3" -k AKMUTE -p s3cr3t-of-mute -t wr0ng-session -m empty -o /dev/null GET /bkt/k3y-of-object >/dev/null
token=00007f1234567000:00100000:01f2e973:0000:007a03:1:00000000000000000000ffff7f000001
assert_status PUT /bkt/k3y-of-object 501 -H "x-amz-rdma-token: $token" -H content-length:0
assert_status PUT /bkt/k3y-of-object 400 -H "x-amz-rdma-token: ${token}zz" -H content-length:0
assert_status PUT /bkt/k3y-of-object 400 -H 'x-amz-rdma-token: garbage' -H content-length:0
# The log has the sentence of the 400, which has nothing of the token.
wait_for 60 grep -q 'op=PutObject status=400 .*why="The RDMA descriptor is too short." fault=InvalidRDMAToken$' "$T/daemon.log"
assert_status GET /bkt/k3y-of-object 404
assert_status GET '/bkt?prefix=k3y-of-object' 200
curl -sS --max-time 30 -o /dev/null -X POST "$URL_ADMIN/control/drain" -H 'authorization: Bearer b3arer-but-wrong'
under_way() { [ "$(metric gantry_requests_in_flight)" = 1 ]; }
wait_for 60 under_way

# Everything that anybody can ask.
: >"$T/shown"
for page in /requests / /livez /readyz /healthz /status /rails /disks /events /config /metrics \
	/control/drain /control/reload /control/log-level /control/trace /control/scrub; do
	curl_admin $page >>"$T/shown" || fail "$page"
	curl -sS --max-time 30 --unix-socket "$T/admin.sock" "http://x$page" >>"$T/shown" || fail "$page over the socket"
done
id=$(curl_admin /requests | grep -o '"id": *"[0-9a-f]*"' | grep -oE '[0-9a-f]{16}')
curl -sS --max-time 30 --unix-socket "$T/admin.sock" -X POST http://x/control/trace -d "{\"id\":\"$id\"}" >>"$T/shown"
curl_admin "/requests/$id" >>"$T/shown"
grep -q '"access_key":"AKMUTE"' "$T/shown" || fail "nobody knows who is there: $(curl_admin /requests)"
grep -q '"op":"PutObject"' "$T/shown" || fail "the request is not there"
gantry --admin "$T/admin.sock" status >>"$T/shown" || fail "gantry status"
gantry --admin "$T/admin.sock" --count 1 top >>"$T/shown" 2>&1
"$BUILD/gantryd" -c "$T/gantryd.yaml" --print-config >>"$T/shown" || fail "--print-config"
kill -USR2 "$DAEMON_PID"
wait_for 60 grep -q 'end of live requests' "$T/daemon.log"
wait "$put"
assert_eq "$(<"$T/put")" 200 "the request that was looked at"
stop_daemon

for text in s3cr3t-of-mute sess10n-of-mute wr0ng-session b3arer "$signature" "${signature:0:16}" k3y-of-object \
	"${token:0:33}" 01f2e973 00007f1234567000 5ec4e7a1 1589962657; do
	! grep -rqi -- "$text" "$T/shown" "$T/daemon.log" || fail "$text is shown: $(grep -rihm 3 -- "$text" "$T/shown" "$T/daemon.log")"
done
# The same looking finds what is there: the daemon did talk.
for text in AKMUTE not-allowed op=PutObject 'rdma.dc_key\|dc_key:'; do
	grep -rq -- "$text" "$T/shown" "$T/daemon.log" || fail "$text is not there: was anything looked at?"
done
