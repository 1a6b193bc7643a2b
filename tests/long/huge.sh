#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 20: 4 GiB - 1, the largest window a token can name, in and out.
MORE=$'limits: { idle: 1800s, s3_progress: 120s, s3_total: 600s }'
DISK_SIZE=6GiB
. "$(dirname "$0")/../system/lib.sh"
export SOFTNIC_EXEC=inline
start_daemon
n=4294967295
raw <<-END
	timeout 600s
	window w $n pattern:1
	request PUT /bkt/huge x-amz-rdma-token:@w content-length:0
	expect status 200
	expect header x-amz-rdma-bytes-transferred $n
	free w
	window g $n
	request GET /bkt/huge x-amz-rdma-token:@g
	expect status 200
	expect window g pattern:1
END
assert_alive
