#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Scality dialect, item by item of docs/protocol.md section 7.
LISTEN=$'  - { address: "127.0.0.1:0", dialect: scality, v1_prefix: true, delete_404: true }'
. "$(dirname "$0")/lib.sh"
start_daemon

# item 87, item 88, item 89, item 91, item 92
raw_scal <<-END
	window w 10M pattern:1
	request PUT /obj x-scal-rdma:@w content-length:0
	expect status 200
	expect body empty
	expect header content-length 0
	expect alive
	request HEAD /obj
	expect status 200
	expect header content-length 10485760
	request HEAD /none
	expect status 404
	window g 4M
	request GET /obj x-scal-rdma:@g range:bytes=0-4194303
	expect status 206
	expect body empty
	expect window g pattern:1 0 4M
	fill g zero
	request GET /obj x-scal-rdma:@g
	expect status 200
	expect window g pattern:1 0 4M
	# item 90: a read of 20 MiB as pieces of 8, 8 and 4
	window r 20M
	token p0 r size=8M
	token p1 r addr=+8M size=8M
	token p2 r addr=+16M size=4M
	request GET /obj x-scal-rdma:@p0 range:bytes=0-8388607
	expect status 206
	request GET /obj x-scal-rdma:@p1 range:bytes=8388608-16777215
	expect status 206
	request GET /obj x-scal-rdma:@p2 range:bytes=16777216-20971519
	expect status 416
	expect window r pattern:1 0 10M
	expect untouched r 10M -
	request DELETE /obj
	expect status 204
	request HEAD /obj
	expect status 404
	request DELETE /obj
	expect status 204
END
bytes pattern:2 100000 >"$T/body"
curl_scal /plain -T "$T/body"
curl_scal /plain >"$T/back"
assert_same "$T/body" "$T/back"
curl_scal /plain -r 70000-70009 >"$T/back"
tail -c +70001 "$T/body" | head -c 10 >"$T/want"
assert_same "$T/want" "$T/back"

# The habits of S3 are of S3 listeners alone: here HEAD ignores a range, the last byte of nothing is 416, and an object has no type that nobody gave it.
curl -sS --max-time 60 -I -r 0-9 "$URL_SCAL/plain" >"$T/head"
grep -q '^HTTP/1.1 200 ' "$T/head" && grep -qi '^content-length: 100000' "$T/head" || fail "HEAD with a range: $(<"$T/head")"
assert_eq "$(status_of_scal PUT /empty -H 'content-length: 0')" 200
assert_eq "$(status_of_scal GET /empty -r -1)" 416 "the last byte of nothing"
curl -sS --max-time 60 -D "$T/head" -o /dev/null "$URL_SCAL/empty"
! grep -qi '^content-type: binary/octet-stream' "$T/head" || fail "a type of S3: $(<"$T/head")"

# item 94: keys as they come
raw_scal <<-END
	window w 100 pattern:4
	window g 100
	request PUT /a/b//c x-scal-rdma:@w content-length:0
	expect status 200
	request PUT /with%20space%2Fx+y x-scal-rdma:@w content-length:0
	expect status 200
	request PUT /123456 x-scal-rdma:@w content-length:0
	expect status 200
	request GET /a/b//c x-scal-rdma:@g range:bytes=0-99
	expect status 206
	expect window g pattern:4
	request HEAD /with%20space/x+y
	expect status 200
	request HEAD /with%20space/x%20y
	expect status 404
	request HEAD /123456
	expect status 200
END

# item 96: a bad descriptor is 400 and moves nothing
raw_scal <<-END
	window w 4096 pattern:1
	token bad w cut=-1
	request PUT /bad x-scal-rdma:@bad content-length:0
	expect status 400
	request GET /plain x-scal-rdma:@bad range:bytes=0-99
	expect status 400
	request HEAD /bad
	expect status 404
	# a descriptor of the other dialect
	request PUT /bad x-amz-rdma-token:@w content-length:0
	expect status 400
END

# item 99: neither dialect reaches into the other
raw_scal <<-END
	request PUT /somebucket content-length:0
	expect status 200
	request HEAD /bkt
	expect status 404
END
assert_eq "$(head_status /somebucket)" 404
assert_eq "$(status_of GET /.scality/plain)" 400
assert_eq "$(curl_s3 / | grep -c scality)" 0

# item 93: under /v1/, and the DELETE that says 404
V1=$(sed 's/.*scality=\S* .*scality=\(\S*\).*/\1/' "$T/ready")
nic "$BUILD/tools/rawclient" -s "$V1" <<-END || fail "v1"
	window w 5000 pattern:6
	window g 5000
	request PUT /v1/k x-scal-rdma:@w content-length:0
	expect status 200
	request GET /v1/k x-scal-rdma:@g
	expect status 200
	expect window g pattern:6
	request HEAD /v1/k
	expect status 200
	request DELETE /v1/k
	expect status 204
	request DELETE /v1/k
	expect status 404
	request PUT /k x-scal-rdma:@w content-length:0
	expect status 404|400
END
assert_alive
