#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM42, TM43, TM97: who did it, and what: the access log names the access key, the secret and the bucket of every request, the key that a refused
# one only claims to have, and the object's key where log.object_keys says so; and no byte of a client's makes a line, a field or a member of its own.
. "$(dirname "$0")/../system/lib.sh"

cat >"$T/keys.yaml" <<-END
	- { access_key: AKGOOD, secret_key: good-secret-1 }
	- { access_key: AKGOOD, secret_key: good-secret-2 }
	- { access_key: AKREAD, secret_key: read-secret-1, read_only: true }
	- { access_key: 'AK"\+x', secret_key: odd-secret-12 }
END
chmod 0600 "$T/keys.yaml"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
printf bytes >"$T/body"
sign() { "$BUILD/tools/s3sign" -s "${where:-$SIGNED}" -o /dev/null "$@" >>"$T/answers" || fail "no answer: $*"; }
# id KEY SECRET: the id of the secret, of which the page says how it is made
id() { printf '%s\0' "gantry secret id 1" "$1" | cat - <(printf %s "$2") | sha256sum | cut -c1-8; }
GOOD="access_key=AKGOOD secret_id=$(id AKGOOD good-secret-1)"
READ="access_key=AKREAD secret_id=$(id AKREAD read-secret-1)"
good() { sign -k AKGOOD -p good-secret-1 "$@"; }

# Each request has a method of talking about itself: the line is the last one of its operation and status.
# line OP STATUS: the fields of that line before peer=, without id and time
line() {
	local l
	found() { l=$(grep " access: .* op=$1 status=$2 " "$T/daemon.log" | tail -n 1) && [ -n "$l" ]; }
	wait_for 60 found "$1" "$2"
	found "$1" "$2"
	l=${l##* access: id=???????????????? }
	echo "${l%% peer=127.0.0.1 *}"
}

good -m hash -b "$T/body" PUT /bkt/a
assert_eq "$(line PutObject 200)" "$GOOD bucket=bkt"
sign -k AKGOOD -p good-secret-2 -m signed -b "$T/body" PUT /bkt/streamed
TWO="access_key=AKGOOD secret_id=$(id AKGOOD good-secret-2)"
assert_eq "$(line PutObject 200)" "$TWO bucket=bkt" "signed chunks, by the second secret of the key"
/usr/bin/python3 - "http://$SIGNED/bkt" <<'END' || fail "a signed form"
import base64, datetime, hashlib, hmac, json, sys, urllib.request
stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
credential = f"AKGOOD/{stamp[:8]}/us-east-1/s3/aws4_request"
fields = {"key": "form", "x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-credential": credential, "x-amz-date": stamp}
policy = {"expiration": "2099-01-01T00:00:00Z", "conditions": [{"bucket": "bkt"}] + [{k: v} for k, v in fields.items()]}
fields["policy"] = base64.b64encode(json.dumps(policy).encode()).decode()
key = b"AWS4good-secret-2"
for part in credential.split("/")[1:]:
    key = hmac.new(key, part.encode(), hashlib.sha256).digest()
fields["x-amz-signature"] = hmac.new(key, fields["policy"].encode(), hashlib.sha256).hexdigest()
body = "".join(f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items())
body += '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes\r\n--x--\r\n'
urllib.request.urlopen(urllib.request.Request(sys.argv[1], body.encode(), {"Content-Type": "multipart/form-data; boundary=x"}), timeout=30)
END
assert_eq "$(line PostObject 204)" "$TWO bucket=bkt" "a form"
curl_s3 /bkt/a >"$T/out"
assert_eq "$(line GetObject 200)" "access_key=- bucket=bkt" "unsigned"
sign -k AKREAD -p read-secret-1 -m empty DELETE /bkt/a
assert_eq "$(line DeleteObject 403)" "$READ bucket=bkt" "known, and not allowed"
sign -k AKREAD -p wrong-secret-1 -m empty GET /bkt/a
assert_eq "$(line GetObject 403)" "access_key=- claimed_access_key=AKREAD bucket=bkt" "the signature does not hold"
sign -k AKNOBODY -p wrong-secret-1 -m empty HEAD /bkt/a
assert_eq "$(line HeadObject 403)" "access_key=- claimed_access_key=AKNOBODY bucket=bkt" "nobody's"
good -m empty -T -1000 'GET' '/bkt?tagging'
assert_eq "$(line GetBucketTagging 403)" "access_key=- claimed_access_key=AKGOOD bucket=bkt" "not verified: too late"
good -P 60 -T -61 -m unsigned GET '/bkt?versioning'
assert_eq "$(line GetBucketVersioning 403)" "access_key=- claimed_access_key=AKGOOD bucket=bkt" "a URL that has expired"
good -P 60 -m unsigned GET '/bkt?location'
assert_eq "$(line GetBucketLocation 200)" "$GOOD bucket=bkt" "a URL"
sign -k 'AK"\+x' -p odd-secret-12 -m empty GET '/bkt?acl'
assert_eq "$(line GetBucketAcl 200)" "access_key=AK%22%5C%2Bx secret_id=$(id 'AK"\+x' odd-secret-12) bucket=bkt" "a name that has to be escaped"
good -m empty GET /
assert_eq "$(line ListBuckets 200)" "$GOOD bucket=-" "no bucket at all"
curl -sS --max-time 30 -o /dev/null "http://$SIGNED/bkt?policy" -H 'authorization: AWS AKTWO:c2lnbmF0dXJl'
wait_for 60 grep -q ' access: .*access_key=- claimed_access_key=AKTWO bucket=bkt .* op=GetBucketPolicy ' "$T/daemon.log"
curl -sS --max-time 30 -o /dev/null "http://$SIGNED/bkt" -F x-amz-credential=AKFORM/20260101/us-east-1/s3/aws4_request \
	-F x-amz-algorithm=AWS4-HMAC-SHA256 -F policy=e30= -F x-amz-signature=0 -F x-amz-date=20260101T000000Z -F key=k -F file=x
wait_for 60 grep -q ' access: .*access_key=- claimed_access_key=AKFORM bucket=bkt .* op=PostObject ' "$T/daemon.log"
good -m empty DELETE /none-such
assert_eq "$(line DeleteBucket 404)" "$GOOD bucket=none-such"
! grep -qE 'key=a( |$)|/bkt/a' "$T/daemon.log" || fail "an object's key is in the log, and nobody asked for that"

# ---- injection: one line a request, whatever it is called ----
before=$(grep -c ' access: ' "$T/daemon.log")
evil='AK%0A2026-01-01T00:00:00.000000Z%20notice%20gantryd:%20stopped%20access_key=ADMIN'
curl -sS --max-time 30 -o /dev/null "http://$SIGNED/bkt?X-Amz-Credential=$evil%2Fx&X-Amz-Signature=0"
curl -sS --max-time 30 -o /dev/null "http://$SIGNED/bkt" -H "authorization: AWS4-HMAC-SHA256 Credential=AK\"access_key=ADMIN	\\x/x"
seen() { [ "$(grep -c ' access: ' "$T/daemon.log")" -ge $((before + 2)) ]; }
wait_for 60 seen
assert_eq "$(grep -c ' access: ' "$T/daemon.log")" $((before + 2)) "a line for each request"
! grep -E 'access_key=ADMIN|^2026-01-01T00:00:00' "$T/daemon.log" || fail "a client wrote its own line"
wait_for 60 grep -q 'claimed_access_key=AK%0A2026-01-01T00%3A00%3A00.000000Z bucket=bkt ' "$T/daemon.log"
wait_for 60 grep -q 'claimed_access_key=AK%22access_key%3DADMIN%09%5Cx bucket=bkt ' "$T/daemon.log"

# What is no request to anybody is one that was sent.
exec 9<>"/dev/tcp/${SIGNED%:*}/${SIGNED##*:}"
printf 'GET /bkt/a HTTP/1.1\r\nHost: localhost\r\nX-Blank : y\r\nAuthorization: AWS AKRAW:x\r\n\r\n' >&9
timeout 20 cat <&9 >"$T/out"
exec 9>&-
assert_match "$(head -n 1 "$T/out")" ' 400 '
wait_for 60 grep -qE 'id=[0-9a-f]{16} access_key=- claimed_access_key=AKRAW bucket=- peer=127.0.0.1 op=Unknown status=400 .* fault=InvalidRequest$' "$T/daemon.log"

# ---- keys of objects, from a reload on ----
sed -i 's/^memory:/log: { object_keys: true }\nmemory:/' "$T/gantryd.yaml"
curl -sS --fail --max-time 30 --unix-socket "$T/admin.sock" -X POST http://x/control/reload >"$T/out" || fail "$(<"$T/out")"
good -m hash -b "$T/body" PUT '/bkt/own/a%20b%5Cc%22%C3%A4%3D1'
wait_for 60 grep -q " access: .* $GOOD bucket=bkt key=own/a%20b%5Cc%22%C3%A4%3D1 peer=.* op=PutObject status=200 " "$T/daemon.log"
long=$(printf '%%20%.0s' {1..1000})
curl_s3 "/bkt/$long" -X PUT -d x
wait_for 60 grep -q "bucket=bkt key=$long peer=" "$T/daemon.log"
cat >"$T/delete" <<-END
	<Delete><Object><Key>own/gone</Key></Object><Object><Key>a&#32;"b</Key></Object></Delete>
END
sum=content-md5:$(openssl md5 -binary "$T/delete" | base64)
good -m hash -b "$T/delete" POST '/bkt?delete' "$sum"
sign -k AKREAD -p read-secret-1 -m hash -b "$T/delete" POST '/bkt?delete' "$sum"
for who in "$GOOD" "$READ"; do wait_for 60 grep -q "$who bucket=bkt key=- .* op=DeleteObjects status=200" "$T/daemon.log"; done
for key in own/gone a%20%22b; do
	wait_for 60 grep -qE "$GOOD bucket=bkt key=$key peer=127.0.0.1 op=DeleteObjects part=key\$" "$T/daemon.log"
	wait_for 60 grep -qE "$READ bucket=bkt key=$key peer=127.0.0.1 op=DeleteObjects part=key fault=AccessDenied\$" "$T/daemon.log"
done
stop_daemon
! grep -qE 'good-secret|read-secret|Signature=' "$T/daemon.log" || fail "a secret is in the log"

# ---- the same as JSON: members of their own ----
: >"$T/daemon.log"
daemon_run -o log.format=json
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
sign -k 'AK"\+x' -p odd-secret-12 -m empty GET /bkt/own%22%5C
sign -k 'AK"\+x' -p wrong-secret-1 -m empty GET /bkt/own
curl -sS --max-time 30 -o /dev/null "$URL_SCAL/some-key"
stop_daemon
grep '^{' "$T/daemon.log" >"$T/json"
/usr/bin/python3 - "$T/json" "$(id 'AK"\+x' odd-secret-12)" <<'END' || fail "JSON"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
got = [{k: v for k, v in o.items() if k in ("access_key", "secret_id", "claimed_access_key", "bucket", "key")} for o in lines if o.get("event") == "access"]
assert got == [
    {"access_key": "AK%22%5C%2Bx", "secret_id": sys.argv[2], "bucket": "bkt", "key": "own%22%5C"},
    {"access_key": "-", "claimed_access_key": "AK%22%5C%2Bx", "bucket": "bkt", "key": "own"},
    {"access_key": "-", "bucket": ".scality", "key": "some-key"},
], got
assert all("access_key=" not in o["message"] for o in lines), lines
END
