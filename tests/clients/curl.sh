#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# curl --aws-sigv4 against the daemon.
# shellcheck source=tests/clients/clients.sh
. "$(dirname "$0")/clients.sh"
clients_daemon
signed() { curl -sS --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$@"; }
code() { signed -o "$T/out" -w '%{http_code}' "$@"; }

assert_eq "$(code -X PUT "$URL_S3/curl")" 200 "a bucket"
for size in 0 1 256 257 65536 1000000 "$BIG"; do
	bytes pattern:2 "$size" >"$T/in"
	assert_eq "$(code -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -T "$T/in" "$URL_S3/curl/o$size")" 200 "PUT of $size"
	assert_eq "$(code "$URL_S3/curl/o$size")" 200 "GET of $size"
	assert_same "$T/out" "$T/in"
done
assert_eq "$(code -r 5-9 "$URL_S3/curl/o1000000")" 206 "a range"
assert_eq "$(code -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -H 'Transfer-Encoding: chunked' -T "$T/in" "$URL_S3/curl/chunked")" 200 "chunked"
assert_eq "$(code "$URL_S3/curl?list-type=2&prefix=o")" 200 "a list"
assert_eq "$(grep -o '<Key>' "$T/out" | wc -l)" 7 "keys in it"
# What S3 servers are reported to answer wrongly: names that scripts look for, ranges.
signed --head "$URL_S3/curl/o1000000" >"$T/out" || fail "HEAD"
for name in ETag Last-Modified Content-Type Content-Length Accept-Ranges; do grep -q "^$name: " "$T/out" || fail "no $name in $(cat "$T/out")"; done
grep -q $'^Content-Type: binary/octet-stream\r$' "$T/out" || fail "no type in $(cat "$T/out")"
signed --head -r 0-1 "$URL_S3/curl/o1000000" >"$T/out" || fail "HEAD with a range"
grep -q '^HTTP/1.1 206' "$T/out" && grep -q '^Content-Range: bytes 0-1/1000000' "$T/out" || fail "HEAD with a range: $(cat "$T/out")"
assert_eq "$(code -r -1 "$URL_S3/curl/o0")" 200 "the last byte of an empty object"
assert_eq "$(code -X DELETE "$URL_S3/curl/o1")" 204 "DELETE"
assert_eq "$(code "$URL_S3/curl/o1")" 404 "GET of what is gone"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' "$URL_S3/curl/o256")" 403 "unsigned"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:wrong" "$URL_S3/curl/o256")" 403 "a wrong secret"
assert_eq "$(curl -sS -o "$T/out" -w '%{http_code}' --aws-sigv4 aws:amz:eu-north-9:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$URL_S3/curl/o256")" 400 "another region"
assert_alive
