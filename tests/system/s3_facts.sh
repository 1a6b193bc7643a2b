#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What clients that people use rely on, beyond the letter of S3's reference: byte by byte what minio-go, the SDKs for JavaScript,
# boto3, Terraform and others send and expect.  By curl on the real daemon.
. "$(dirname "$0")/lib.sh"
BUCKETS="bkt"
start_daemon

# ---- minio-go: a trailer whose line ends in LF, and an empty line behind it ----
printf '6\r\nhello\n\r\n0\r\nx-amz-checksum-crc32:NjowIA==\n\r\n\r\n' >"$T/chunks"
assert_status PUT /bkt/lf 200 -H 'x-amz-trailer: x-amz-checksum-crc32' --data-binary "@$T/chunks" -H 'x-amz-decoded-content-length: 6' \
	-H 'x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER'
assert_eq "$(curl_s3 /bkt/lf)" hello

# ---- JavaScript's SDK: an object answers with one checksum, the one that it was stored with ----
sums_of() { curl -sS -o /dev/null -D - "${@:2}" "$URL_S3$1" -H 'x-amz-checksum-mode: ENABLED' | tr -d '\r' | sed -n 's/^\(x-amz-checksum-[^:]*\): /\1 /Ip' | sort | tr '\n' ' '; }
echo hello | curl_s3 /bkt/plain -T -
assert_eq "$(sums_of /bkt/lf)" "x-amz-checksum-crc32 NjowIA== x-amz-checksum-type FULL_OBJECT "
assert_eq "$(sums_of /bkt/plain)" "x-amz-checksum-crc64nvme $(echo hello >"$T/hello"; crc64 "$T/hello") x-amz-checksum-type FULL_OBJECT "
assert_eq "$(sums_of /bkt/lf -I)" "$(sums_of /bkt/lf)"
u=$(curl_s3 '/bkt/composite?uploads' -X POST -H 'x-amz-checksum-algorithm: CRC32' | xml UploadId)
curl_s3 "/bkt/composite?uploadId=$u&partNumber=1" -T "$T/hello"
composite="<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$(md5 "$T/hello")</ETag></Part></CompleteMultipartUpload>"
r=$(curl_s3 "/bkt/composite?uploadId=$u" -X POST -d "$composite")
assert_match "$(xml ChecksumCRC32 <<<"$r")" '^[A-Za-z0-9+/=]{8}-1$'
assert_eq "$(sums_of /bkt/composite)" "x-amz-checksum-crc32 $(xml ChecksumCRC32 <<<"$r") x-amz-checksum-type COMPOSITE "
assert_eq "$(curl_s3 "/bkt/composite?uploadId=$u" -X POST -d "$composite")" "$r" "a completion that is sent again"
# ... of a part that part's, and the type of the object's; of one PUT the type is in the reply, too.
assert_eq "$(sums_of '/bkt/composite?partNumber=1')" "x-amz-checksum-crc32 NjowIA== x-amz-checksum-type COMPOSITE "
assert_eq "$(header_of x-amz-checksum-type /bkt/typed -T "$T/hello" -H 'x-amz-checksum-crc32: NjowIA==')" FULL_OBJECT

# ---- boto3: a 304 has no checksum; what a cache goes by it has ----
curl_s3 /bkt/cached -T "$T/hello" -H 'cache-control: max-age=7' -H 'x-amz-meta-a: 1'
curl -sS -o /dev/null -D "$T/head" "$URL_S3/bkt/cached" -H 'if-none-match: *' -H 'x-amz-checksum-mode: ENABLED'
assert_eq "$(tr -d '\r' <"$T/head" | sed -n '1s/.* \(304\).*/\1/p; s/^\(cache-control\|etag\|last-modified\|x-amz-checksum-.*\|x-amz-meta-.*\|content-[a-km-z][^:]*\):.*/\1/Ip' | sort | tr '\n' ' ')" \
	"304 Cache-Control ETag Last-Modified "

# ---- minio-js: nothing in XML reads as a number that is none; and uploads from before it was so go on ----
for i in $(seq 12); do
	u=$(curl_s3 '/bkt/ids?uploads' -X POST | xml UploadId)
	assert_match "$u" '^[g-z][0-9a-f]{32}$'
	assert_match "$(curl -sS "$URL_S3/bkt/none$i" | xml RequestId)" '^[a-f][0-9a-f]{15}$'
done
assert_eq "$(curl_s3 "/bkt/ids?uploadId=$u" | xml UploadId)" "$u"
assert_status PUT "/bkt/ids?partNumber=1&uploadId=${u#?}" 200 -d x
assert_match "$(curl_s3 "/bkt/ids?uploadId=${u#?}" -X POST -d "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>$(printf x | md5)</ETag></Part></CompleteMultipartUpload>")" CompleteMultipartUploadResult
assert_eq "$(curl_s3 /bkt/ids)" x

# ---- lists echo what was asked ----
r=$(curl_s3 '/bkt?list-type=2&start-after=c&continuation-token=')
assert_match "$r" '<ContinuationToken></ContinuationToken><StartAfter>c</StartAfter>'
token=$(curl_s3 '/bkt?list-type=2&start-after=c&max-keys=1' | xml NextContinuationToken)
r=$(curl_s3 '/bkt?list-type=2&start-after=c' -G --data-urlencode "continuation-token=$token")
assert_match "$r" "<ContinuationToken>$token</ContinuationToken><StartAfter>c</StartAfter>"

# ---- metadata without a value is metadata ----
curl_s3 /bkt/meta -T "$T/hello" -H 'x-amz-meta-empty;' -H 'x-amz-meta-full: 1'
for method in -I -sS; do
	curl -sS "$method" -o /dev/null -D "$T/head" "$URL_S3/bkt/meta"
	assert_eq "$(tr -d '\r' <"$T/head" | sed -n 's/^\(x-amz-meta-[a-z]*\): *\(.*\)$/\1=\2/p' | sort | tr '\n' ' ')" 'x-amz-meta-empty= x-amz-meta-full=1 '
done
curl_s3 /bkt/meta2 -X PUT -H 'x-amz-copy-source: bkt/meta' >/dev/null
assert_eq "$(curl -sS -I "$URL_S3/bkt/meta2" | grep -c '^x-amz-meta-')" 2

# ---- Content-Encoding comes back as it was sent ----
curl_s3 /bkt/coded -T "$T/hello" -H 'content-encoding: deflate, gzip'
assert_eq "$(header_of content-encoding /bkt/coded -I)" "deflate, gzip"

# ---- conditions: what is not there is deleted ----
assert_status DELETE /bkt/absent 204 -H 'if-match: "x"'
assert_status DELETE /bkt/plain 412 -H 'if-match: "x"'
assert_status PUT /bkt/plain 412 -H "if-none-match: \"$(md5 "$T/hello")\"" -d lost
assert_status PUT /bkt/unless 200 -H "if-none-match: \"$(md5 "$T/hello")\"" -d kept

# ---- minio-js: 200 alone is success of PutBucketTagging; tags come back by key ----
tags() { printf '<Tagging><TagSet>'; for k; do printf '<Tag><Key>%s</Key><Value>v%s</Value></Tag>' "$k" "$k"; done; printf '</TagSet></Tagging>'; }
for t in '/bkt?tagging' '/bkt/plain?tagging'; do
	assert_status PUT "$t" 200 -d "$(tags b a/ B a ab)"
	assert_eq "$(curl_s3 "$t" | grep -o '<Key>[^<]*</Key><Value>[^<]*' | sed 's/<[^>]*>/ /g' | tr -d '\n')" ' B  vB a  va a/  va/ ab  vab b  vb'
done

# ---- Terraform reads what every bucket may have: of these there is none ----
for q in analytics inventory metrics intelligent-tiering; do
	assert_match "$(curl_s3 "/bkt?$q&x-id=List")" '<List[A-Za-z]* xmlns=[^>]*><IsTruncated>false</IsTruncated></List'
done

# ---- DeleteObjects needs a checksum of its body ----
d='<Delete><Object><Key>unless</Key></Object></Delete>'
assert_eq "$(code_of '/bkt?delete' -X POST -d "$d") $(code_of '/bkt?delete' -X POST -d "$d" -H 'x-amz-sdk-checksum-algorithm: CRC32')" "InvalidRequest InvalidRequest"
assert_status GET /bkt/unless 200
assert_status POST '/bkt?delete' 200 -d "$d" -H "x-amz-checksum-sha256: $(printf %s "$d" | openssl sha256 -binary | base64)"
assert_status GET /bkt/unless 404

# ---- encryption that nobody declared ----
assert_eq "$(code_of /bkt/sse -T "$T/hello" -H 'x-amz-server-side-encryption: AES256')" NotImplemented
assert_eq "$(header_of x-amz-server-side-encryption /bkt/plain -I)" ''

# ---- browsers: an unsigned link may not say what somebody's bytes are, and they are not to be guessed ----
assert_eq "$(code_of '/bkt/plain?response-content-type=text/html')" InvalidRequest
assert_eq "$(header_of x-content-type-options /bkt/plain)" nosniff
curl_s3 /bkt/page -T "$T/hello" -H 'content-type: text/html'
assert_eq "$(header_of x-content-type-options /bkt/page)" ''

# ---- scripts make their bucket at every start ----
assert_status PUT /bkt 200
assert_eq "$(curl_s3 /bkt/plain)" hello "nothing of it is lost"

assert_alive
stop_daemon

# ---- another region: its second making is 409, as on AWS; and disks that encrypt ----
MORE=$'auth: { region: eu-west-1 }\ns3: { encrypted_below: true }'
write_config
daemon_run
assert_status PUT /bkt 409
assert_eq "$(code_of /bkt -X PUT)" BucketAlreadyOwnedByYou
sse=x-amz-server-side-encryption
assert_eq "$(header_of $sse /bkt/sse -T "$T/hello" -H "$sse: AES256")" AES256
assert_eq "$(header_of $sse /bkt/sse -I)$(header_of $sse /bkt/plain)" AES256AES256
assert_eq "$(code_of /bkt/sse -T "$T/hello" -H "$sse: aws:kms") $(code_of /bkt/sse -T "$T/hello" -H "$sse-customer-algorithm: AES256")" "NotImplemented NotImplemented"
assert_match "$(curl_s3 '/bkt?encryption')" '<SSEAlgorithm>AES256</SSEAlgorithm>'
assert_alive
stop_daemon
