#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# 64 clients at once, and 512 kept-alive connections (item 80), on one, two and four cores, in both modes; every byte compared.  Four
# are more than CI has CPUs.  The last part has all of them at one object.
BUFFERS=48MiB
. "$(dirname "$0")/lib.sh"
for CORES in 1 2 4; do
	for mode in thread inline; do
		export SOFTNIC_EXEC=$mode
		start_daemon
		raw <<-END
			timeout 60s
			windows w 64 300000 pattern:%i
			connections 64
			parallel 64 PUT /bkt/p%i x-amz-rdma-token:@w%i content-length:0
			expect status 200
			expect header x-amz-rdma-reply 200
			windows g 64 300000
			parallel 64 GET /bkt/p%i x-amz-rdma-token:@g%i
			expect status 200
			expect window g0 pattern:0
			expect window g31 pattern:31
			expect window g63 pattern:63
			parallel 64 PUT /bkt/one x-amz-rdma-token:@w%i content-length:0
			expect status 200
			parallel 64 GET /bkt/one x-amz-rdma-token:@g%i
			expect status 200
			save tag header etag
			set first @crc64:g0
			set last @crc64:g63
			expect equal @first @last
			request HEAD /bkt/one
			expect header etag @tag
		END
		raw <<-END
			timeout 60s
			window s 1000 pattern:1
			request PUT /bkt/s x-amz-rdma-token:@s content-length:0
			windows g 512 1000
			connections 512
			parallel 512 GET /bkt/s x-amz-rdma-token:@g%i
			expect status 200
			expect alive
			parallel 512 GET /bkt/s x-amz-rdma-token:@g%i
			expect status 200
			expect window g511 pattern:1
		END
		assert_eq "$(curl_admin /status | grep -o '"core":' | wc -l)" "$CORES" "cores"
		assert_alive
		stop_daemon
		rm -rf "$T"/disk*
	done
done
