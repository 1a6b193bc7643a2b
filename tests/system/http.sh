#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The plain S3 server: bodies, chunked, ranges, conditions, buckets, refusals, and the guard at the door.
. "$(dirname "$0")/lib.sh"
start_daemon

# bodies of every kind
for n in 0 1 256 257 65536 65537 1048577 5000000; do
	bytes "pattern:$n" "$n" >"$T/body"
	curl_s3 "/bkt/l$n" -T "$T/body"
	curl_s3 "/bkt/c$n" -T - <"$T/body" # chunked
	for k in l c; do
		curl_s3 "/bkt/$k$n" >"$T/back"
		assert_same "$T/body" "$T/back" "size $n"
		assert_eq "$(header_of etag "/bkt/$k$n" -I)" "\"$(md5 "$T/body")\""
		assert_eq "$(header_of content-length "/bkt/$k$n" -I)" "$n"
	done
done
# item 38: what was declined goes through with a body (declines: nodevice.sh); item 73's plain half
curl_s3 /bkt/l5000000 -r 4999990- >"$T/back"
tail -c 10 "$T/body" | cmp - "$T/back" || fail "open range"
assert_status GET /bkt/l5000000 416 -r 5000000-
etag=$(header_of etag /bkt/l1 -I)
assert_status GET /bkt/l1 304 -H "If-None-Match: $etag"
assert_status GET /bkt/l1 412 -H 'If-Match: "x"'
assert_status PUT /bkt/l1 412 -H 'If-None-Match: *' --data-binary x
md5=$(printf hello | openssl md5 -binary | base64)
assert_status PUT /bkt/md 200 --data-binary hello -H "Content-MD5: $md5"
assert_status PUT /bkt/md 400 --data-binary hellO -H "Content-MD5: $md5"
assert_eq "$(curl_s3 /bkt/md)" hello

# buckets
assert_status PUT /second 200
assert_status PUT /second 200 # one's own, in us-east-1
assert_eq "$(head_status /second)" 200
assert_eq "$(head_status /third)" 404
curl_s3 / | grep -q '<Name>second</Name>' || fail "the list of buckets"
curl_s3 /second/x --data-binary y -X PUT
assert_status DELETE /second 409
assert_status DELETE /second/x 204
assert_status DELETE /second/x 204
assert_status DELETE /second 204
assert_eq "$(head_status /second)" 404
assert_status PUT /Bad_Name 400
assert_status PUT /nobucket/x 404 --data-binary y

# what is not built says so, and never overwrites
assert_status PUT '/bkt/l1?retention' 400 --data-binary y
assert_status PUT '/bkt/l1?uploadId=1&partNumber=1' 404 --data-binary y
assert_status PUT '/bkt/l1?acl' 400 --data-binary y
assert_status GET '/bkt?inventory' 200
assert_status POST '/bkt/l1?restore' 501
assert_eq "$(header_of etag /bkt/l1 -I)" "$etag"
assert_status PUT '/bkt/xid?x-id=PutObject' 200 --data-binary y
# a signature is never taken for anonymous, nor frames for the object
assert_status GET /bkt/l1 400 -H 'Authorization: AWS4-HMAC-SHA256 Credential=a/b/c/s3/aws4_request, SignedHeaders=host, Signature=0'
assert_status GET '/bkt/l1?X-Amz-Signature=00&X-Amz-Algorithm=AWS4-HMAC-SHA256' 400
assert_status PUT /bkt/st 400 --data-binary y -H 'x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER' -H 'content-encoding: aws-chunked' -H 'x-amz-decoded-content-length: 1'

# the guard: one answer, then the end; what follows is not a request
smuggle() {
	raw <<-END
		raw "$1"
		expect status 400
		expect closed
		expect body lacks smuggled
	END
}
smuggle 'PUT /bkt/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
smuggle 'PUT /bkt/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhelloGET /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
smuggle 'PUT /bkt/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\nGET /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
smuggle 'GET /bkt/l1 HTTP/1.1\r\n\r\nGET /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
smuggle 'GET /bkt/l1 HTTP/1.1\r\nHost: localhost\r\nHost: g\r\n\r\nGET /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n'
assert_status GET /bkt/s 404

# errors name what and where, with a request id
curl -sS "$URL_S3/bkt/none" >"$T/err"
grep -q '<Code>NoSuchKey</Code>' "$T/err" || fail "error code"
grep -q '<RequestId>[0-9a-f]\{16\}</RequestId>' "$T/err" || fail "request id"
assert_match "$(header_of x-amz-request-id /bkt/l1 -I)" '^[0-9a-f]{16}$'
assert_alive
