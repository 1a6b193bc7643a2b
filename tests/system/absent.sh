#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One client's tokens name 500 addresses that nobody has, each of which the kernel looks for during a second.  They are declined; a
# client that the server has not met is served by RDMA meanwhile, which means that its address handle came in time, and nobody gets
# a 503.
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=3
RDMA='{ devices: [mlx5_0], allow_special: [loopback], allow: [127.0.0.0/8] }'
start_daemon
softnicctl reach absent=1s
raw -e 'window w 64K pattern:7; request PUT /bkt/o x-amz-rdma-token:@w content-length:0; expect status 200' # by mlx5_0 itself

{
	echo "server $S3/127.0.0.3"
	echo "window w 64K"
	echo "connections 50"
	for ((i = 0; i < 500; i++)); do echo "token t$i w gid=127.9.$((i / 250)).$((i % 250 + 1))"; done
	for ((n = 0; n < 10; n++)); do
		for ((i = 0; i < 50; i++)); do echo "set x$i @t$((n * 50 + i))"; done
		echo "parallel 50 GET /bkt/o x-amz-rdma-token:@x%i"
		echo "expect status 501"
		echo "expect header x-gantry-rdma-reason unreachable"
	done
} >"$T/flood"
# Again and again, until the others are served.
flood() {
	local n
	for ((n = 0; n == 0 || n < 2000; n++)); do
		nic "$BUILD/tools/rawclient" "$T/flood" >"$T/flood.out" 2>&1 || return 1
		[ ! -e "$T/stop" ] || return 0
	done
}
flood &
job=$!
# Eight are looked for at a time, and never more of this client.
misses() { [ "$(metric gantry_address_handle_lookups_total '"miss"')" -ge "$1" ]; }
wait_for 60 misses 9
# served DEVICE ADDRESS: a client that the server has not met.
served() {
	RAW_DEVICE=$1 nic "$BUILD/tools/rawclient" >"$T/served.out" 2>&1 <<-END
		server $S3/$2
		window g 64K
		request GET /bkt/o x-amz-rdma-token:@g
		expect status 200
		expect window g pattern:7
	END
}
# The daemon counts clients in 256 lines, by a hash of the address with a secret key: one in 256 shares the line of the flood, and is
# declined as the flood is. Another address is tried then.
for dev in mlx5_1 mlx5_2; do
	served $dev 127.0.0.4 || { grep -q 'status is 501' "$T/served.out" && served $dev 127.0.0.5; } || fail "a client that was not known: $dev: $(<"$T/served.out")"
done
kill -0 "$job" 2>/dev/null || fail "the flood had ended before: $(<"$T/flood.out")"
touch "$T/stop"
wait "$job" || fail "an absent address is declined, and nothing else: $(<"$T/flood.out")"
assert_eq "$(metric gantry_requests_total 'code="503"')" 0 "requests that were told to come again"
assert_alive
