#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM26, claim TM33, claim TM34: clients that send or read bodies byte by byte (slow_bodies.py), from one address and from many: a
# client at another address and /livez are answered within a second all the time, and requests with tokens go on.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
slow="/usr/bin/python3 $ROOT/tests/hostile/slow_bodies.py"

# As small as BUFFERS of memory.http_buffers; the limits are the defaults.
begin() {
	[ -z "$DAEMON_PID" ] || stop_daemon
	rm -rf "$T"/disk*
	write_config
	sed -i "s/http_buffers: [^ ]*/http_buffers: $1/; /^limits:/d" "$T/gantryd.yaml"
	format_store
	daemon_run
	make_buckets
	head -c 3145728 /dev/zero | curl_s3 /bkt/big -T -
	bytes pattern:3 100000 | curl_s3 /bkt/o -T -
}

# Everything comes back; where it does not, what is left is shown.
all_back() {
	local i
	for ((i = 0; i < 100; i++)); do
		! nothing_is_held || return 0
		sleep 0.2
	done
	echo "$1: held:"
	curl_admin /requests | head -c 2000
	curl_admin /metrics | grep -E '^gantry_(buffers|connections|requests_in_flight|requests_queued|requests_revoked_total)[{ ]'
	ss -tan "( sport = :${S3##*:} )" | awk 'NR > 1 { n[$1 " " ($2 > 0 ? "unread" : "read") " " ($3 > 0 ? "unsent" : "sent")]++ } END { for (k in n) print k, n[k] }'
	fail "$1: something is held"
}

# KINDS CONNECTIONS ADDRESSES SECONDS: RDMA goes on beside it.
run() {
	local pid rc=0
	$slow "$S3" "$ADMIN" "$1" "$2" "$3" "$4" 1 "$T/ready.$1.$3" >"$T/slow.log" 2>&1 &
	pid=$!
	wait_for 30 test -e "$T/ready.$1.$3"
	while kill -0 $pid 2>/dev/null; do
		raw <<-END || fail "RDMA beside $1 x $2 of $3 addresses"
			window w 100000
			window p 100000 pattern:4
			request GET /bkt/o x-amz-rdma-token:@w
			expect status 200
			expect header x-amz-rdma-reply 200
			expect time < 3s
			expect window w pattern:3
			request PUT /bkt/p x-amz-rdma-token:@p content-length:0
			expect status 200
			expect time < 3s
		END
		sleep 0.2
	done
	wait $pid || rc=$?
	sed "s/^/$1 x $2 of $3: /" "$T/slow.log"
	[ $rc = 0 ] || fail "$1 x $2 of $3 addresses"
	all_back "$1 x $2 of $3 addresses"
	# Whatever else the machine has to do, nobody but the attackers waited for a buffer as long as that.
	grep ' peer=127\.0\.0\.1 ' "$T/daemon.log" | sed -n 's/.* queue_us=\([0-9]*\).*/\1/p' | sort -n | tail -1 >"$T/queued"
	[ "$(cat "$T/queued")" -lt 1000000 ] || fail "$1 x $2 of $3 addresses: $(cat "$T/queued") us in the queue for buffers"
}

begin 16MiB
run put 300 1 12
run get 300 1 12
run put 1300 1 12
begin 64MiB
run put 900 1 12
run put,get 1100 250 15
run put,get,list,xml 1600 500 15
assert_eq "$(curl_s3 '/bkt?list-type=2&prefix=slow' | grep -c '<Key>')" 0 "slow PUTs that were stored"
assert_alive
