#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM93: clients of many addresses that connect queue pairs of RC as fast as they can, and never use one (connects.py).  With the limits of
# rdma.rc that are the default but for fewer connections: whoever comes from another address connects and is served in time, by RC and by DC,
# all the while; and when the others are idle nothing is left, neither queue pairs nor descriptors.
RDMA='{ allow_special: [loopback, self], rc: { shim: on, connections: 256, idle: 3s } }'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
start_daemon
bytes pattern:3 100000 | curl_s3 /bkt/o -T -

descriptors() { find "/proc/$DAEMON_PID/fd" -type l ! -lname '*pidfd*' ! -lname 'socket:*' | wc -l; }
qps() { softnicctl stats --json "$DAEMON_PID" | jq '.[0].qps'; }
# A request over RC, of a client that connects for it, and one over DC.
served() {
	raw_try <<-END || fail "the victim in turn ${n:-0}; connects refused: $(curl_admin /metrics | grep '^gantry_rc_refused')"
		qp q
		connect q
		expect time < 3s
		window w 100000
		rctoken t q w
		request GET /bkt/o x-amz-rdma-token:@t
		expect status 200
		expect header x-amz-rdma-reply 200
		expect time < 3s
		expect window w pattern:3
		window p 100000 pattern:4
		rctoken u q p
		request PUT /bkt/p x-amz-rdma-token:@u content-length:0
		expect status 200
		expect time < 3s
		window d 100000
		request GET /bkt/o x-amz-rdma-token:@d
		expect status 200
		expect header x-amz-rdma-reply 200
		expect time < 3s
		request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@q_id content-length:0
		expect status 204
	END
}
none_left() { [ "$(metric gantry_rc_connections)" = 0 ] && [ "$(qps)" = "$qps" ] && [ "$(descriptors)" -le "$fds" ]; }

served
wait_for 60 eval '[ "$(metric gantry_rc_connections)" = 0 ]'
qps=$(qps) fds=$(descriptors)
/usr/bin/python3 "$ROOT/tests/hostile/connects.py" "$S3" "${SECS:-12}" 40 "$T/begun" >"$T/flood" 2>&1 &
flood=$!
wait_for 60 test -e "$T/begun"
n=0
while kill -0 $flood 2>/dev/null; do
	served
	pause 0.05 # rdma.rc.connect_rate holds for the victim as well: 20 connects a second
	n=$((n + 1))
	[ "$(metric gantry_rc_connections)" -le $((256 + 4)) ] || fail "more connections than the limit: $(metric gantry_rc_connections)"
done
wait $flood || fail "connects.py: $(cat "$T/flood")"
[ "$n" -gt 2 ] || fail "the victim had $n turns"
echo "$n turns of the victim beside $(cat "$T/flood")"
wait_for 60 no_requests
wait_for 60 none_left
served
assert_alive
