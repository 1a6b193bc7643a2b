#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A little of everything on the real daemon: both dialects, by token and by body, a range, a restart.
. "$(dirname "$0")/lib.sh"
start_daemon
raw <<-END
	window w 1M pattern:7
	request PUT /bkt/a x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-reply 200
	expect header x-amz-rdma-bytes-transferred 1048576
	expect header etag ~^.[0-9a-f]{32}-r.$
	expect body empty
	window g 2M
	request GET /bkt/a x-amz-rdma-token:@g
	expect status 200
	expect header x-amz-rdma-reply 200
	expect window g pattern:7 0 1M
	expect untouched g 1M -
	fill g zero
	request GET /bkt/a x-amz-rdma-token:@g range:bytes=70001-170000
	expect status 206
	expect header content-range "bytes 70001-170000/1048576"
	expect window g pattern:7 70001 100000
	expect untouched g 100000 -
END
raw_scal <<-END
	window w 300000 pattern:9
	request PUT /key/with/slashes x-scal-rdma:@w content-length:0
	expect status 200
	expect body empty
	window g 300000
	request GET /key/with/slashes x-scal-rdma:@g range:bytes=0-299999
	expect status 206
	expect window g pattern:9
END
bytes pattern:3 200000 >"$T/body"
curl_s3 /bkt/http -T "$T/body"
assert_eq "$(header_of etag /bkt/http -I)" "\"$(md5 "$T/body")\"" "MD5 ETag"
curl_s3 /bkt/http >"$T/back"
assert_same "$T/body" "$T/back"
restart_daemon
curl_s3 /bkt/http >"$T/back"
assert_same "$T/body" "$T/back" "after a restart"
bytes pattern:7 1M >"$T/a"
curl_s3 /bkt/a >"$T/back"
assert_same "$T/a" "$T/back" "what came by RDMA, over HTTP"
assert_status DELETE /bkt/a 204
assert_status GET /bkt/a 404
# On RADOS garbage is removed some epochs later.
settle 120
[ "${STORE:-disks}" != rados ] || [ "$(curl_admin /disks | jq '.[0].garbage_removed')" -gt 0 ] || fail "garbage is there"
stop_daemon
