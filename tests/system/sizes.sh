#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every awkward size, in and out by token, in both modes of the software NIC; ranges at odd offsets; the same bytes over HTTP.  The largest object of the
# inline mode has 32 MiB.
# item 20: transfers above 1 GiB (4 GiB - 1 is in tests/long/huge.sh)
# The client writes and compares a window of 1 GiB between two requests on one connection: at a busy machine for longer than the usual 75 s of `idle`.
MORE=$'limits: { idle: 1800s, s3_progress: 60s, s3_total: 120s, scality_total: 120s }'
DISK_SIZE=512MiB
. "$(dirname "$0")/lib.sh"

for mode in thread:75497472 inline:33554432; do
	export SOFTNIC_EXEC=${mode%:*}
	largest=${mode#*:}
	start_daemon
	for n in 1 255 256 257 4095 4096 4097 65535 65536 65537 1048575 1048576 1048577 8388608 "$largest"; do
		bytes "pattern:$n" "$n" >"$T/want"
		raw <<-END
			timeout 60s
			window w $n pattern:$n
			window g $n
			request PUT /bkt/o$n x-amz-rdma-token:@w content-length:0
			expect status 200
			request GET /bkt/o$n x-amz-rdma-token:@g
			expect status 200
			expect window g pattern:$n
			expect rdmasum g
		END
		curl_s3 "/bkt/o$n" | cmp - "$T/want" || fail "size $n over HTTP"
		curl_s3 "/bkt/h$n" -T "$T/want"
		raw <<-END
			timeout 60s
			window g $n
			request GET /bkt/h$n x-amz-rdma-token:@g
			expect status 200
			expect window g pattern:$n
		END
	done
	for r in 0-0 1-1 65535-65536 65536-131071 1048575-1048576 $((largest / 3))-$((largest / 4 * 3 + 1)) 16777215-16777217 67108863-67108865 $((largest - 1))-$((largest - 1)); do
		a=${r%-*} b=${r#*-}
		[ "$b" -lt "$largest" ] || continue
		raw <<-END
			timeout 60s
			window g $((b - a + 1))
			request GET /bkt/o$largest x-amz-rdma-token:@g range:bytes=$r
			expect status 206
			expect window g pattern:$largest $a $((b - a + 1))
		END
		curl_s3 "/bkt/o$largest" -r "$r" | cmp - <(tail -c "+$((a + 1))" "$T/want" | head -c "$((b - a + 1))") || fail "range $r over HTTP"
	done
	stop_daemon
	rm -rf "$T"/disk*
done

# 1 GiB + 1, once
DISK_SIZE=1280MiB
start_daemon
n=1073741825
raw <<-END
	timeout 120s
	window w $n pattern:1
	request PUT /bkt/big x-amz-rdma-token:@w content-length:0
	expect status 200
	free w
	window g $n
	request GET /bkt/big x-amz-rdma-token:@g
	expect status 200
	expect window g pattern:1
END
assert_alive
