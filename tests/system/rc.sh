#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Clients connect queue pairs of RC, and their tokens name these connections (rdma.rc, docs/protocol.md section 8): on devices with and
# without DC, in both modes of the software NIC.  Objects, ranges, parts, windows that are too small; one request at a time; what ends a
# connection; who may not connect, and who may not use another's; limits; ill-formed requests; a daemon whose device dies.  At the end
# nothing is left over.
CORES=2
RDMA='{ allow_special: [loopback, self], timeout: 12, retry_cnt: 3, rc: { shim: on, connect_rate: 1000, idle: 2s } }'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

# A daemon on a store of its own.
begin() {
	rm -rf "$T"/disk*
	start_daemon
}
softnicctl() { "$BUILD/softnicctl" "$@"; }
rc_now() { metric gantry_rc_connections "\"$1\""; }
no_connections() {
	_get /metrics awk '
		NR == 1 { answered = / 200 / }
		/^gantry_rc_connections[{].*"(making|ready|leased)"/ { n++; sum += $NF }
		END { exit !answered || n != 3 || sum }'
}
descriptors() { find "/proc/$DAEMON_PID/fd" -type l ! -lname '*pidfd*' | wc -l; }
qps() { softnicctl stats --json "$DAEMON_PID" | jq '.[0].qps'; }
leased() { [ "$(rc_now leased)" = "$1" ]; }

# Bytes, both ways, and what a request may ask for.
all_works() {
	raw <<-END
		qp q
		connect q
		# item T65, item T69: what holds is told; one READ at a time is what a client gets that asks for nothing.
		expect header x-gantry-rc "~^reads=1; mtu=(1024|4096); sl=[0-9]*; pkey=0xffff$"
		window w 5M pattern:3
		window g 5M
		rctoken t q w
		rctoken tg q g
		# item T66
		request PUT /bkt/o x-amz-rdma-token:@t content-length:0
		expect status 200
		expect header x-amz-rdma-reply 200
		expect header x-amz-rdma-bytes-transferred 5242880
		request GET /bkt/o x-amz-rdma-token:@tg
		expect status 200
		expect header x-amz-rdma-reply 200
		expect window g pattern:3
		expect rdmasum g
		fill g zero
		request GET /bkt/o range:bytes=100-70099 x-amz-rdma-token:@tg
		expect status 206
		expect header x-amz-rdma-reply 206
		expect window g pattern:3 100 70000
		expect untouched g 70000
		# A window smaller than the object.
		fill g zero
		rctoken small q g size=4097
		request GET /bkt/o x-amz-rdma-token:@small
		expect status 206
		expect window g pattern:3 0 4097
		expect untouched g 4097
		rctoken one q g off=5 size=1
		request GET /bkt/o range:bytes=9-9 x-amz-rdma-token:@one
		expect status 206
		expect window g pattern:3 9 1 5
		request GET /bkt/absent x-amz-rdma-token:@tg
		expect status 404
		request PUT /bkt/sum x-amz-rdma-token:@t content-length:0 x-amz-checksum-crc64nvme:@crc64:w
		expect status 200
		request PUT /bkt/sum2 x-amz-rdma-token:@t content-length:0 x-amz-checksum-crc64nvme:AAAAAAAAAAE=
		expect status 400
		request GET /bkt/sum x-amz-rdma-token:@tg
		expect status 200
		expect window g pattern:3
		# A connection with other values.
		qp r
		connect r "x-gantry-rc:reads=16; mtu=256; sl=0; pkey=0x7fff"
		expect header x-gantry-rc "~^reads=16; mtu=256;"
		rctoken tr r w
		fill w pattern:4
		request PUT /bkt/o2 x-amz-rdma-token:@tr content-length:0
		expect status 200
		rctoken tgr r g
		request GET /bkt/o2 x-amz-rdma-token:@tgr
		expect status 200
		expect window g pattern:4
		# item T70
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q_id content-length:0
		expect status 204
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q_id content-length:0
		expect status 204
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:none content-length:0
		expect status 204
		request POST /.s3rdma-rc/disconnect content-length:0
		expect status 204
		# item T68
		request GET /bkt/o x-amz-rdma-token:@tg
		expect status 501
		expect header x-amz-rdma-reply 501
		expect header x-gantry-rdma-reason not-connected
		request PUT /bkt/o x-amz-rdma-token:@t content-length:0
		expect status 501
		expect noheader etag
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@r_id content-length:0
		expect status 204
	END
	wait_for 60 no_connections
}

parts() {
	local id
	id=$(curl_s3 "/bkt/m?uploads" -X POST | sed -n 's:.*<UploadId>\(.*\)</UploadId>.*:\1:p')
	[ -n "$id" ] || fail "no upload"
	raw <<-END
		window w 5M pattern:6
		qp q
		connect q
		rctoken t q w
		rctoken last q w size=1000
		request PUT "/bkt/m?partNumber=1&uploadId=$id" x-amz-rdma-token:@t content-length:0
		expect status 200
		save one header etag
		request PUT "/bkt/m?partNumber=2&uploadId=$id" x-amz-rdma-token:@last content-length:0
		expect status 200
		save two header etag
		request POST "/bkt/m?uploadId=$id" "body=text:<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>@one</ETag></Part><Part><PartNumber>2</PartNumber><ETag>@two</ETag></Part></CompleteMultipartUpload>"
		expect status 200
	END
	assert_eq "$(curl_s3 /bkt/m | md5)" "$({ bytes pattern:6 5M; bytes pattern:6 1000; } | md5)"
	wait_for 60 no_connections
}

# item T68, claim TM93: another has it; it is another's.
one_at_a_time() {
	softnicctl rule add op=write delay=1s limit=1 >/dev/null
	raw <<-END
		qp q
		connect q
		window g 1M
		rctoken t q g
		start first GET /bkt/o range:bytes=0-99999 x-amz-rdma-token:@t
		sleep 300ms
		request GET /bkt/o x-amz-rdma-token:@t
		expect status 501
		expect header x-gantry-rdma-reason connection-busy
		wait first
		expect status 206
		expect window g pattern:3 0 100000
		request GET /bkt/o range:bytes=0-99999 x-amz-rdma-token:@t
		expect status 206
		server $S3/127.0.0.2
		request GET /bkt/o x-amz-rdma-token:@t conn=other
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q_id content-length:0 conn=other
		expect status 204
		server $S3
		request GET /bkt/o range:bytes=0-99999 x-amz-rdma-token:@t
		expect status 206
	END
	softnicctl rule clear
	assert_eq "$(metric gantry_rc_busy_total)" "$1"
	wait_for 60 no_connections
}

# item T69: after a failed work request the connection is gone, and the next one serves.
failures() {
	raw <<-END
		window g 1M
		window w 1M pattern:5
		qp a
		connect a
		rctoken t a g
		dereg g
		request GET /bkt/o range:bytes=0-999 x-amz-rdma-token:@t
		expect status 5xx
		expect noheader etag
		request GET /bkt/o range:bytes=0-999 x-amz-rdma-token:@t
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		qp b
		connect b
		rctoken t2 b w
		destroyqp b
		request PUT /bkt/n x-amz-rdma-token:@t2 content-length:0
		expect status 5xx
		request HEAD /bkt/n
		expect status 404
		request PUT /bkt/n x-amz-rdma-token:@t2 content-length:0
		expect status 501
		# Never joined: the client's end stays in INIT.
		qp c
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@c_token x-amz-rdma-psn:@c_psn content-length:0
		expect status 200
		save id header x-amz-rdma-session
		rctoken t3 c w id=@id
		request PUT /bkt/n x-amz-rdma-token:@t3 content-length:0
		expect status 5xx
		qp d
		connect d
		rctoken t4 d w
		request PUT /bkt/n x-amz-rdma-token:@t4 content-length:0
		expect status 200
	END
	wait_for 60 no_connections
}

# Clients that go amid a transfer: nothing of them is left, also where a READ or a WRITE was on its way.
killed() {
	local what
	for what in "GET /bkt/o" "PUT /bkt/k"; do
		softnicctl rule add op=write delay=500ms >/dev/null
		softnicctl rule add op=read delay=500ms >/dev/null
		! raw_try <<-END || fail "rawclient was to be killed"
			window w 5M
			qp q
			connect q
			rctoken t q w
			start x $what x-amz-rdma-token:@t content-length:0
			sleep 200ms
			kill
		END
		softnicctl rule clear
		wait_for 60 no_requests
		wait_for 60 no_connections
	done
}

# A client that destroys its queue pair while its connection is made, used, and closed: a clear answer each time, and nothing left over.
destroyed() {
	local qps what
	qps=$(qps)
	softnicctl rule add op=modify_qp pid="$DAEMON_PID" delay=100ms >/dev/null
	raw <<-END
		window w 1M
		qp a
		start c POST /.s3rdma-rc/connect x-amz-rdma-token:@a_token x-amz-rdma-psn:@a_psn content-length:0
		destroyqp a
		wait c
		expect status 200
		save id header x-amz-rdma-session
		rctoken t a w id=@id
		request PUT /bkt/n2 x-amz-rdma-token:@t content-length:0
		expect status 500
		request PUT /bkt/n2 x-amz-rdma-token:@t content-length:0
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		# A client that does not wait for the answer.
		qp b
		start c2 POST /.s3rdma-rc/connect x-amz-rdma-token:@b_token x-amz-rdma-psn:@b_psn content-length:0
		sleep 50ms
		hangup c2
		destroyqp b
	END
	softnicctl rule clear
	wait_for 60 no_requests
	wait_for 60 no_connections
	for what in "GET /bkt/o range:bytes=0-99999" "PUT /bkt/n2"; do
		softnicctl rule add delay=300ms limit=1 >/dev/null
		raw <<-END
			window w 1M
			qp a
			connect a
			rctoken t a w
			start x $what x-amz-rdma-token:@t content-length:0
			sleep 100ms
			destroyqp a
			wait x
			expect status 500
			expect noheader etag
			request $what x-amz-rdma-token:@t content-length:0
			expect status 501
			expect header x-gantry-rdma-reason not-connected
		END
		softnicctl rule clear
	done
	softnicctl rule add op=destroy_qp pid="$DAEMON_PID" delay=300ms >/dev/null
	raw <<-END
		window w 1M
		qp a
		connect a
		rctoken t a w
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@a_id content-length:0
		expect status 204
		destroyqp a
		request PUT /bkt/n2 x-amz-rdma-token:@t content-length:0
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@a_id content-length:0
		expect status 204
		request HEAD /bkt/n2
		expect status 404
	END
	softnicctl rule clear
	wait_for 60 no_connections
	wait_for 60 eval '[ "$(qps)" = '"$qps"' ]'
}

# Ill-formed ones: a clear answer, no connection.
ill_formed() {
	local id=03b1c6f0a4e84d1796c2e5f70b8d9a1e
	gid=00000000000000000000ffff7f000001
	good=012a000000${gid}$(printf '%040d' 0)010000
	raw <<-END
		qp q
		request POST /.s3rdma-rc/connect content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:000000 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1000000 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:12g content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:${good%0} x-amz-rdma-psn:1 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:${good}0 x-amz-rdma-psn:1 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:00${good#01} x-amz-rdma-psn:1 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:0100000000${good:10} x-amz-rdma-psn:1 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 x-gantry-rc:reads=0 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 x-gantry-rc:mtu=1500 content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 "x-gantry-rc:reads=4; speed=9" content-length:0
		expect status 400
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 body=text:hello
		expect status 400
		request GET /.s3rdma-rc/connect
		expect status 405
		expect header allow POST
		# A partition that is not ours leads nowhere.
		request POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 x-gantry-rc:pkey=0x0123 content-length:0
		expect status 501
		expect header x-amz-rdma-reply 501
		expect header x-gantry-rdma-reason unreachable
		# item T67, and other tokens of the kind that is served.
		request GET /bkt/o x-amz-rdma-token:rc:$id:00007f0000200000:00ffffffff:0001a2b3
		expect status 501
		expect header x-gantry-rdma-reason not-connected
		request GET /bkt/o x-amz-rdma-token:rc:$id:00007f0000200000:100000000:0001a2b3
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:00007f0000200000:0000001:0001a2b3
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:7f0000200000:00000001:0001a2b3
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:00007f0000200000:00000001:0001a2b
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:ffffffffffffffff:00000002:0001a2b3
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:0000000000000000:00000002:0001a2b3
		expect status 400
		request PUT /bkt/z x-amz-rdma-token:rc:$id:00007f0000200000:00000000:0001a2b3 content-length:0
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:
		expect status 400
		request GET /bkt/o x-amz-rdma-token:rc:$id:00007f0000200000:00000001:0001a2b3:1
		expect status 400
		request HEAD /bkt/z
		expect status 404
	END
	# item T71: an address outside of rdma.allow is declined, one of no host is refused, and neither is worth a queue pair.
	softnicctl rule add op=create_qp pid="$DAEMON_PID" error=ENOMEM >/dev/null
	assert_eq "$(header_of x-gantry-rdma-reason /.s3rdma-rc/connect -X POST -H 'x-amz-rdma-psn: 1' \
		-H "x-amz-rdma-token: ${good/7f000001/08080808}")" not-allowed
	assert_eq "$(header_of x-amz-rdma-reply /.s3rdma-rc/connect -X POST -H 'x-amz-rdma-psn: 1' \
		-H "x-amz-rdma-token: ${good/7f000001/08080808}")" 501
	assert_eq "$(status_of POST /.s3rdma-rc/connect -H 'x-amz-rdma-psn: 1' -H "x-amz-rdma-token: ${good/7f000001/e0000001}")" 403
	softnicctl rule list | grep -q 'hits=0\>' || fail "a queue pair was made for a client that may not connect"
	softnicctl rule clear
	assert_eq "$(rc_now ready)" 0
}

# claim TM93: rdma.rc.per_peer, connections: who has too many gets 503, others do not notice; in a full table another client gets its share, and
# who has most loses what it has not used for longest.
limits() {
	{
		for i in {1..60}; do
			printf 'qp q%s\nrequest POST /.s3rdma-rc/connect x-amz-rdma-token:@q%s_token x-amz-rdma-psn:@q%s_psn content-length:0\n' "$i" "$i" "$i"
			if [ "$i" -le 40 ]; then echo "expect status 200"; else printf 'expect status 503\nexpect header retry-after\nexpect noheader x-amz-rdma-reply\n'; fi
		done
		echo "server $S3/127.0.0.2"
		for i in {61..91}; do
			printf 'qp q%s\nrequest POST /.s3rdma-rc/connect x-amz-rdma-token:@q%s_token x-amz-rdma-psn:@q%s_psn content-length:0 conn=second\n' "$i" "$i" "$i"
			if [ "$i" -le 90 ]; then echo "expect status 200"; else echo "expect status 503"; fi
		done
	} | raw
	assert_eq "$(rc_now ready)" 60
	assert_eq "$(metric gantry_rc_closed_total '"room"')" 10
	assert_alive
	assert_eq "$(metric gantry_rc_connects_total '"refused"')" "$1"
}

# A reload takes the limits, of the connections that exist too: no connection is lost by it, but for the idle ones.  rdma.rc.shim needs a
# restart, and the reload says so.
reload() { # SED-SCRIPT
	sed -i "$1" "$T/gantryd.yaml"
	curl -sS --fail --unix-socket "$T/admin.sock" -X POST http://x/control/reload -o "$T/said" || fail "reload $1"
}
connects() { # ADDRESS STATUS...: a connect for each status.
	local i=0 status
	{
		echo "server $S3/$1"
		for status in "${@:2}"; do
			printf 'qp q%s\nrequest POST /.s3rdma-rc/connect x-amz-rdma-token:@q%s_token x-amz-rdma-psn:@q%s_psn content-length:0\nexpect status %s\n' \
				$i $i $i "$status"
			i=$((i + 1))
		done
	} | raw
}
ready_are() { [ "$(rc_now ready)" = "$1" ]; }
reloads() {
	# Both have 30 of 60.
	connects 127.0.0.1 503
	reload 's/connections: 60/connections: 62/'
	assert_eq "$(<"$T/said")" '{"status":"reloaded","changed":["rdma.rc.connections"],"restart_needed":[],"cores":2,"of":2}'
	connects 127.0.0.1 200 200 503
	reload 's/connections: 62/connections: 70/; s/per_peer: 40/per_peer: 3/'
	connects 127.0.0.1 503
	connects 127.0.0.3 200 200 200 503
	assert_eq "$(rc_now ready)" 65 "a lower limit closes no connection"
	reload 's/connect_rate: 1000/connect_rate: 1/'
	# Time does not stand still: of three connects within a second two are too many.
	raw <<-END
		server $S3/127.0.0.4
		qp q
		connections 3
		parallel 3 POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 content-length:0
		expect status 200|503
	END
	[ "$(rc_now ready)" -le 67 ] || fail "rdma.rc.connect_rate: $(rc_now ready)"
	reload 's/shim: on/shim: off/; s/idle: 3600s/idle: 1s/'
	assert_eq "$(<"$T/said")" '{"status":"reloaded","changed":["rdma.rc.idle"],"restart_needed":["rdma.rc.shim"],"cores":2,"of":2}'
	wait_for 60 ready_are 0
	reload 's/shim: off/shim: on/; s/connect_rate: 1,/connect_rate: 1000,/'
	connects 127.0.0.4 200
}

device_dies() {
	for how in "" "flush" "runs destroy=lies" "destroy=fails"; do
		softnicctl rule add op=write delay=300ms >/dev/null
		raw <<-END &
			window g 5M
			window g2 5M
			qp q
			connect q
			qp r
			connect r
			rctoken t q g
			start x GET /bkt/o x-amz-rdma-token:@t
			touch $T/started
			wait x
			fill g zero
			expect status 5xx
			waitfile $T/over
			# The promise of the answer: nothing comes any more.
			expect window g zero
			rctoken t2 r g2
			request GET /bkt/o x-amz-rdma-token:@t2
			expect status 501
			expect header x-gantry-rdma-reason not-connected
		END
		client=$!
		wait_for 60 test -e "$T/started"
		wait_for 60 leased 1
		reopens=$(metric gantry_rdma_reopens_total mlx5_0)
		# shellcheck disable=SC2086
		softnicctl device mlx5_0 reset pid="$DAEMON_PID" $how >/dev/null
		wait_for 60 eval '[ "$(metric gantry_rdma_reopens_total mlx5_0)" -gt $reopens ] && [ "$(metric gantry_rail_up)" = 1 ]'
		softnicctl rule clear
		touch "$T/over"
		wait "$client" || fail "device reset $how"
		rm "$T/started" "$T/over"
		wait_for 60 no_connections
		all_works
	done
}

for mode in thread:1 inline:0; do
	export SOFTNIC_EXEC=${mode%:*} SOFTNIC_DC=${mode#*:}
	begin
	curl_admin /rails | grep -q "\"transports\":\"$([ "$SOFTNIC_DC" = 0 ] || echo 'DC, ')RC\"" || fail "/rails has other transports"
	all_works
	fds=$(descriptors)
	all_works
	busy=$(($(metric gantry_rc_busy_total) + 1))
	one_at_a_time "$busy"
	failures
	killed
	destroyed
	ill_formed
	parts
	wait_for 60 no_requests
	[ "$(descriptors)" -le $((fds + 8)) ] || fail "descriptors: $fds, then $(descriptors)"
	device_dies
	assert_alive
	stop_daemon
done

# Metrics and health speak of DC initiators and of channels for connections separately: a device whose DC initiators cannot be made, while
# RC works, and one without DC.
unset SOFTNIC_EXEC SOFTNIC_DC
softnicctl rule add op=modify_qp error=EINVAL skip=4 >/dev/null # those of a device that is opened: three of DC, one of RC
begin
unusable() { curl_admin /healthz >"$T/health"; grep -q '"code":"rail_unusable"' "$T/health"; }
wait_for 60 unusable
[ "$(metric gantry_dci '"unusable"')" -gt 0 ] || fail "no initiator is unusable"
assert_eq "$(metric gantry_dci '"free"')" 0 "initiators that could not be made"
[ "$(metric gantry_rc_channels '"free"')" -gt 0 ] || fail "no channel for connections"
softnicctl rule clear
usable() { ! unusable; }
wait_for 60 usable
[ "$(metric gantry_dci '"free"')" -gt 0 ] || fail "no initiator"
stop_daemon
export SOFTNIC_DC=0
begin
assert_eq "$(metric gantry_dci)" 0 "initiators of a device without DC"
[ "$(metric gantry_rc_channels '"free"')" -gt 0 ] || fail "no channel for connections"
curl_admin /rails | jq -e '.[0] | .dci.all == 0 and .rc.all > 0 and .rc.free == .rc.all' >/dev/null || fail "/rails: $(curl_admin /rails)"
stop_daemon

# InfiniBand, on a fabric of its own: a LID instead of a GID.
unset SOFTNIC_EXEC
mkdir "$T/ib"
export SOFTNIC_DIR=$T/ib SOFTNIC_IB=0 SOFTNIC_DC=0
begin
curl_admin /rails | grep -q '"link":"infiniband"' || fail "the rail is not on InfiniBand"
all_works
stop_daemon
export SOFTNIC_DIR=$T/nic
unset SOFTNIC_IB SOFTNIC_DC

RDMA='{ allow_special: [loopback, self], rc: { shim: on, per_peer: 40, connections: 60, connect_rate: 1000, idle: 3600s } }'
begin
limits 21
reloads
stop_daemon

# rdma.rc.connect_rate
RDMA='{ allow_special: [loopback, self], rc: { shim: on, connect_rate: 2 } }'
begin
raw <<-END
	qp q
	connections 8
	parallel 8 POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 content-length:0
	expect status 200|503
END
[ "$(metric gantry_rc_connects_total '"refused"')" -ge 4 ] || fail "a burst of 8 connects of one client, with a limit of 2"
stop_daemon

# Connections do not use up the descriptors that the store and the admin listener need: of 160, the last 40 are kept.
RDMA='{ allow_special: [loopback, self], rc: { shim: on, connect_rate: 1000, per_peer: 500 } }'
DAEMON_WRAP='prlimit --nofile=160:160'
begin
{
	printf 'qp q\nconnections 10\n'
	for i in {1..20}; do
		printf 'parallel 10 POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 content-length:0\nexpect status 200|501\n'
	done
	echo 'expect header x-gantry-rdma-reason no-channel'
} | raw
[ "$(descriptors)" -le 125 ] || fail "connections took $(descriptors) descriptors of 160"
stop_daemon
