#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a bad peer can do, in both modes of the software NIC: the right answer, and the next request works.
export SOFTNIC_RETRY_US=100000
. "$(dirname "$0")/lib.sh"

rail_is() { [ "$(metric gantry_rail_up)" = "$1" ]; }
# For the background: a function that becomes the program, so that its pid is the program's.
nic_run() { _on_nic; exec "${ON_NIC[@]}" "$@"; }

# A request of each kind with a token that is wrong in one way: 500 + reply 500, nothing stored, nothing touched.
# $2: the object to read. Where a part of the window is good, it must be of one piece: a second piece's bytes
# may land, rightly, before the first piece has failed.
wrong() {
	raw <<-END
		window w 2M pattern:1 exact
		nic other dc_key=0x1234
		window k 2M pattern:1 nic=other
		token t $1
		request PUT /bkt/wrong x-amz-rdma-token:@t content-length:0
		expect status 500
		expect header x-amz-rdma-reply 500
		request HEAD /bkt/wrong
		expect status 404
		request GET /bkt/${2:-big} x-amz-rdma-token:@t
		expect status 500
		expect header x-amz-rdma-reply 500
		expect untouched w
		expect untouched k
	END
	serves_rdma
}

for mode in thread inline; do
	export SOFTNIC_EXEC=$mode
	start_daemon
	bytes pattern:9 2M >"$T/big"
	curl_s3 /bkt/big -T "$T/big"
	serves_rdma
	wrong "w rkey=^0x100"
	wrong "w addr=-4096" good   # begins 4 KiB before the region
	wrong "w dctn=^0x400"
	wrong "w gid=127.0.0.9"
	wrong "k"                   # another DC key

	# deregistered memory, and permissions that do not fit
	raw <<-END
		window w 2M pattern:1
		token t w
		dereg w
		request GET /bkt/big x-amz-rdma-token:@t
		expect status 500
		expect untouched w
		window ro 2M pattern:1 access=r
		request GET /bkt/big x-amz-rdma-token:@ro
		expect status 500
		expect untouched ro
		window wo 2M pattern:1 access=w
		request PUT /bkt/wo x-amz-rdma-token:@wo content-length:0
		expect status 500
	END
	serves_rdma

	# killed: the process is gone in the middle; stopped: one-sided RDMA goes on
	raw_try <<-END
		windows w 8 8M pattern:1
		start a PUT /bkt/killed x-amz-rdma-token:@w0 content-length:0
		kill
	END
	serves_rdma
	# Left: the connection is reset, and the client's memory stays until the request has ended.
	nic_run "$BUILD/tools/rawclient" -s "$S3" <<-END &
		window w 1M pattern:3
		start a PUT /bkt/left x-amz-rdma-token:@w content-length:0
		hangup a reset
		stop
	END
	left=$!
	wait_for 60 grep -q '^State:.T' "/proc/$left/status"
	wait_for 60 no_requests
	kill -CONT $left
	wait $left || fail "the client that hung up: exit $?"
	serves_rdma

	# Stopped: its memory is still there, so the transfer goes on without it; it learns of it when it goes on too.
	nic_run "$BUILD/tools/rawclient" -s "$S3" <<-END &
		window w 5M pattern:4
		start a PUT /bkt/stopped$mode x-amz-rdma-token:@w content-length:0
		stop
		wait a
		expect status 200
	END
	stopped=$!
	wait_for 60 grep -q '^State:.T' "/proc/$stopped/status"
	wait_for 60 curl -sS --fail -o /dev/null --head "$URL_S3/bkt/stopped$mode"
	kill -CONT $stopped
	wait $stopped || fail "the stopped client"
	serves_rdma

	# item 111: the port goes down: declines with a reason, not failures; and it recovers
	softnicctl port mlx5_0 down
	wait_for 60 rail_is 0
	raw <<-END
		window w 300000 pattern:2
		request PUT /bkt/down x-amz-rdma-token:@w content-length:0
		expect status 501
		expect header x-amz-rdma-reply 501
		expect header x-gantry-rdma-reason ~.
		expect noheader etag
		request GET /bkt/good x-amz-rdma-token:@w
		expect status 501
		expect header x-amz-rdma-reply 501
		expect body contains RDMANotSupported
		request GET /bkt/good
		expect status 200
		expect body pattern:7
	END
	softnicctl port mlx5_0 up
	wait_for 60 rail_is 1
	serves_rdma
	assert_alive
	wait_for 60 no_requests
	stop_daemon
	rm -rf "$T"/disk*
done
