#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# URLs that somebody signs and somebody else uses: browsers, which ask first (preflights), and SDKs, which sign headers as parameters.
# On a listener that serves signed requests alone.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export NO_NIC=1 RDMA='{ devices: none }' BUCKETS=bkt
cat >"$T/keys" <<-END
	- { access_key: AKTEST, secret_key: "a/secret+1" }
	- { access_key: AKREAD, secret_key: "r/secret+1", read_only: true }
END
chmod 600 "$T/keys"
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\" }
s3: { domain: [s3.test] }"
# shellcheck disable=SC2034
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_ne "$SIGNED" "$S3"
sign() { "$BUILD/tools/s3sign" -s "$SIGNED" -k AKTEST -p a/secret+1 "$@"; }
# The target of a presigned URL: METHOD TARGET
presigned() { sign -P 600 -U -m unsigned "$@"; }
# The status of a request to the signed listener; its answer is in $T/out, the head of that in $T/head.
ask() { curl -sS --path-as-is -g -o "$T/out" -D "$T/head" -w '%{http_code}' "${@:2}" "http://$SIGNED$1"; }
code() { tr -d '\n' <"$T/out" | sed -n 's/.*<Code>\([^<]*\)<.*/\1/p'; }
head_of() { tr -d '\r' <"$T/head" | sed -n "s/^$1: *//Ip"; }

# ---- preflights: the rules of the bucket answer them, and nothing that the URL or the headers say of a signature ----
curl_s3 '/bkt?cors' -X PUT -d '<CORSConfiguration><CORSRule><AllowedOrigin>http://app.test</AllowedOrigin>
	<AllowedMethod>GET</AllowedMethod><AllowedMethod>PUT</AllowedMethod><AllowedHeader>*</AllowedHeader></CORSRule></CORSConfiguration>'
preflight() { ask "$1" -X OPTIONS -H 'origin: http://app.test' -H "access-control-request-method: ${2:-PUT}" "${@:3}"; }
url=$(presigned PUT /bkt/k)
assert_match "$url" X-Amz-Signature
old=$(sign -P 1 -T -5000 -U -m unsigned PUT /bkt/k)
for target in /bkt/k "$url" "$old" "${url%??????????}" "${url/AWS4-HMAC-SHA256/AWS4-ECDSA-P256-SHA256}" "$url&X-Amz-Signature=0" "$url&x-amz-expires=1" \
	'/bkt/k?AWSAccessKeyId=AKTEST&Signature=a%2Bb&Expires=1' '/bkt/k?X-Amz-Signature' '/bkt/k?X-Amz-Credential=%' "$(presigned GET '/bkt/k?acl')" \
	'/bkt/k?acl&torrent&nobody=1' '/bkt/k?partNumber=x&uploadId=y' '/bkt?list-type=7' '/bkt/k?x-amz-acl=public-read' '/bkt/k?x-gantry-copies=2' '/bkt/k?<">'; do
	assert_eq "$(preflight "$target")" 200 "$target"
	assert_eq "$(head_of access-control-allow-origin) $(head_of access-control-allow-methods)" "http://app.test GET, PUT" "$target"
	assert_eq "$(preflight "$target" DELETE) $(code)" "403 AccessForbidden" "DELETE, $target"
done
for header in 'authorization: AWS4-HMAC-SHA256 Credential=nobody' 'authorization: Bearer x' 'x-amz-security-token: x' 'x-amz-content-sha256: no' \
	'x-amz-rdma-token: nonsense' 'x-amz-acl: public-read' 'x-amz-date: never'; do
	assert_eq "$(preflight "$url" PUT -H "$header" -H 'access-control-request-headers: x-amz-acl, content-type')" 200 "$header"
	assert_eq "$(head_of access-control-allow-headers)" "x-amz-acl, content-type"
done
assert_eq "$(preflight "$(presigned PUT /k)" PUT -H 'host: bkt.s3.test')" 200 "the bucket's name in Host"
assert_eq "$(preflight "$(presigned PUT /nobkt/k)") $(code)" "403 AccessForbidden"
assert_eq "$(ask "$url" -X OPTIONS) $(code)" "400 InvalidRequest" "without Origin"
# And the page may then do what was signed, and no more.
assert_eq "$(ask "$url" -X PUT -d page -H 'origin: http://app.test')" 200
assert_eq "$(head_of access-control-allow-origin)" http://app.test
assert_eq "$(ask "$url" -H 'origin: http://app.test') $(code)" "403 SignatureDoesNotMatch"
assert_eq "$(ask "$(presigned GET /bkt/k)" -H 'origin: http://app.test') $(cat "$T/out")" "200 page"

assert_alive
stop_daemon
