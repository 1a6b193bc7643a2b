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
assert_eq "$(ask "$(presigned GET /bkt/k)" -H 'origin: http://app.test') $(<"$T/out")" "200 page"

# ---- x-amz-content-sha256 that a proxy or a library adds: neither required nor believed ----
url=$(presigned PUT /bkt/n)
for hash in UNSIGNED-PAYLOAD "$(openssl sha256 -r <<<other | cut -d' ' -f1)" nonsense ''; do
	assert_eq "$(ask "$url" -X PUT -d "n$hash" -H "x-amz-content-sha256: $hash" -H "x-amz-content-sha256;")" 200 "$hash"
	assert_eq "$(ask "$(presigned GET /bkt/n)" -H "x-amz-content-sha256: $hash") $(<"$T/out")" "200 n$hash"
done
assert_eq "$(ask "$url" -X PUT -d x -H 'x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER' -H 'content-encoding: aws-chunked') $(code)" "403 AccessDenied"
for header in 'x-amz-acl: private' 'x-amz-meta-a: 1' 'x-amz-date: 20130524T000000Z' 'x-amz-decoded-content-length: 1' 'x-amz-nobody: 1'; do
	assert_eq "$(ask "$url" -X PUT -d x -H "$header") $(code)" "403 AccessDenied" "$header"
done

# ---- headers that were signed as parameters: the same success, refusal and effect ----
# NAME VALUE METHOD TARGET EXPECTED: once as a header, once as a parameter.
both() {
	local header query name value
	value=$(sed 's/%/%25/g; s/,/%2C/g; s/=/%3D/g; s/&/%26/g; s/:/%3A/g; s|/|%2F|g' <<<"$2")
	header=$(sign -m unsigned "$3" "$4" "$1:$2")
	for name in "$1" "${1^^}"; do
		query=$(ask "$(presigned "$3" "$4$([[ $4 = *\?* ]] && echo '&' || echo '?')$name=$value")" "${_how[@]}")
		query="$query $(code)"
		assert_eq "${query% }" "$header" "$name: $2, $3 $4"
	done
	assert_eq "$header" "$5" "$1: $2, $3 $4"
}
_how=(-X PUT -d '')
both x-amz-acl private PUT /bkt/k 200
both x-amz-acl public-read PUT /bkt/k '400 AccessControlListNotSupported'
both x-amz-acl public-read PUT /made '400 InvalidBucketAclWithObjectOwnership'
both x-amz-grant-read id=x PUT /bkt/k '400 AccessControlListNotSupported'
both x-amz-request-payer requester PUT /bkt/k 200
both x-amz-expected-bucket-owner gantry PUT /bkt/k 200
both x-amz-expected-bucket-owner 123456789012 PUT /bkt/k '403 AccessDenied'
both x-amz-server-side-encryption AES256 PUT /bkt/k '501 NotImplemented'
both x-amz-server-side-encryption-customer-algorithm AES256 PUT /bkt/k '501 NotImplemented'
grep -q s3.encrypted_below "$T/out" || fail "$(<"$T/out")"
both x-amz-website-redirect-location /x PUT /bkt/k '501 NotImplemented'
both x-amz-object-lock-mode GOVERNANCE PUT /bkt/k '501 NotImplemented'
both x-amz-storage-class NONE PUT /bkt/k '400 InvalidStorageClass'
both x-amz-tagging "a=1&a=2" PUT /bkt/k '400 InvalidTag'
both x-amz-user-agent x PUT /bkt/k 200
_how=()
both x-amz-request-payer requester GET /bkt/k 200
both x-amz-expected-bucket-owner nobody GET /bkt/k '403 AccessDenied'
both x-amz-expected-bucket-owner nobody GET '/bkt?list-type=2' '403 AccessDenied'
both x-amz-object-attributes ETag,ObjectSize GET '/bkt/k?attributes' 200
both x-amz-object-attributes Nothing GET '/bkt/k?attributes' '400 InvalidArgument'
_how=(-I)
both x-amz-request-payer requester HEAD /bkt/k 200
_how=(-X POST)
both x-amz-checksum-algorithm NONE POST '/bkt/k?uploads' '400 InvalidRequest'
both x-amz-acl private POST '/bkt/k?uploads' 200
_how=(-X DELETE)
both x-amz-if-match-size 7 DELETE /bkt/k '412 PreconditionFailed'
# Effects: what an object carries, the algorithm of an upload and of its parts.
assert_eq "$(ask "$(presigned PUT '/bkt/q?X-Amz-Meta-A=b%20c&x-amz-tagging=t%3D1&X-AMZ-STORAGE-CLASS=STANDARD_IA&x-amz-acl=private')" -X PUT -d 12345)" 200
assert_eq "$(ask "$(presigned HEAD '/bkt/q?X-Amz-Checksum-Mode=ENABLED')" -I)" 200
assert_eq "$(head_of x-amz-meta-a) $(head_of x-amz-tagging-count) $(head_of x-amz-storage-class)" "b c 1 STANDARD_IA"
assert_ne "$(head_of x-amz-checksum-crc64nvme)" ''
assert_eq "$(ask "$(presigned POST '/bkt/m?uploads&x-amz-checksum-algorithm=SHA256&x-amz-checksum-type=COMPOSITE&x-amz-request-payer=requester')" -X POST)" 200
assert_eq "$(head_of x-amz-checksum-algorithm) $(head_of x-amz-checksum-type)" "SHA256 COMPOSITE"
u=$(tr -d '\n' <"$T/out" | sed 's/.*<UploadId>\([^<]*\)<.*/\1/')
assert_eq "$(ask "$(presigned PUT "/bkt/m?partNumber=1&uploadId=$u&x-amz-checksum-algorithm=SHA256&x-amz-expected-bucket-owner=gantry")" -X PUT -d 12345)" 200
assert_eq "$(head_of x-amz-checksum-sha256)" "$(printf 12345 | openssl sha256 -binary | base64)"
# What means nothing there is passed over, what is nobody's is refused where it could be a subresource.
for q in response-content-type=image%2Fpng 'response-content-disposition=a&response-expires=b' Content-Type=a Cache-Control=b content-md5=c x-id=PutObject; do
	assert_eq "$(ask "$(presigned PUT "/bkt/r?$q")" -X PUT -d x)" 200 "$q"
done
for q in nobody=1 x-amz-nobody=1 x-gantry-copies=1 x-amz-copy-source=bkt%2Fq x-amz-rdma-token=x Response=1 ACL; do
	assert_eq "$(ask "$(presigned PUT "/bkt/none?$q")" -X PUT -d x) $(code)" "501 NotImplemented" "$q"
done
assert_eq "$(ask "$(presigned GET '/bkt/q?nobody=1&response-content-type=a%2Fb')")" 200
assert_eq "$(head_of content-type)" a/b
assert_eq "$(ask "$(presigned GET /bkt/none)")" 404

assert_alive
stop_daemon
