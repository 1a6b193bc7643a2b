#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 74: overwriting or deleting an object during a GET gives the old bytes whole or an error, never a mixture.
. "$(dirname "$0")/lib.sh"
start_daemon
n=20000000
for seed in 1 2; do bytes "pattern:$seed" $n >"$T/v$seed"; done
curl_s3 /bkt/o -T "$T/v1"
# Slow readers over HTTP hold the old version while it is replaced and deleted.
readers=()
for i in 1 2 3 4; do
	curl_s3 /bkt/o --limit-rate 8M -o "$T/slow$i" &
	readers+=($!)
done
# A reader that has bytes has opened its version.
for i in 1 2 3 4; do wait_for 60 test -s "$T/slow$i"; done
for i in 1 2 3 4 5 6; do curl_s3 /bkt/o -T "$T/v2"; done
assert_status DELETE /bkt/o 204
for i in 1 2 3 4 5 6 7 8; do curl_s3 "/bkt/fill$i" -T "$T/v2"; done
wait "${readers[@]}"
for i in 1 2 3 4; do assert_same "$T/slow$i" "$T/v1" "a reader during overwrite"; done
# By token: writers and readers at once; whatever a reader got is one version whole.
curl_s3 /bkt/o -T "$T/v1"
for round in 1 2 3 4 5; do
	(for seed in 2 1 2; do raw <<-END
		window w $n pattern:$seed
		request PUT /bkt/o x-amz-rdma-token:@w content-length:0
		expect status 200
	END
	done) &
	writer=$!
	for i in 1 2 3 4; do
		nic "$BUILD/tools/rawclient" -s "$S3" >"$T/seen" 2>&1 <<-END || one=no
			window g $n
			request GET /bkt/o x-amz-rdma-token:@g
			expect status 200
			expect rdmasum g
		END
		[ "${one:-yes}" = yes ] || { cat "$T/seen"; fail "round $round: a reader got a mixture"; }
	done
	wait $writer || fail "writer"
done
assert_alive
