#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whose memory (claim TM7): the README's first `gantry put` on a machine that has an adapter, where the token names the server itself; clients behind
# routers without rdma.allow, with networks in it, and with `routed`, which is whatever the kernel has a route to out of a rail; what the
# log and gantry doctor say of each.  In a network namespace of its own:
#
#     mlx5_0 10.1.1.1/24 on d0   mlx5_1 10.1.2.1/24 on d1: the server's rails   d2 10.1.3.1/24: an interface that is no rail
#     mlx5_2 10.1.1.9: a client beside the first   mlx5_3 10.9.4.1, mlx5_4 fd09::1: clients behind routers
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=5
export SOFTNIC_GIDS='10.1.1.1/24,fd01::1/64;10.1.2.1/24;10.1.1.9/24;10.9.4.1/24;fd09::1/64'
RDMA='{ devices: [mlx5_0, mlx5_1] }'
net_rail d0 10.1.1.1/24 fd01::1/64
net_rail d1 10.1.2.1/24
net_rail d2 10.1.3.1/24
start_daemon
bytes pattern:3 1M >"$T/data"

# goes DEVICE HOW: `gantry put` ends well, and says how the bytes went: "RDMA", or "not-allowed", "unreachable".
goes() {
	gantry --device "$1" put "$T/data" "$URL_S3/bkt/$1" >"$T/out" 2>&1 || fail "put from $1: exit $?: $(<"$T/out")"
	grep -q "$2" "$T/out" || fail "put from $1, wanted $2: $(<"$T/out")"
	curl_s3 "/bkt/$1" | cmp - "$T/data" || fail "put from $1: other bytes"
}
# doctor WORDS ADDRESS: what it says of an address by the daemon's rules.
doctor() {
	gantry --admin "$ADMIN" doctor "$2" >"$T/doctor" 2>&1
	grep -q "$1" "$T/doctor" || fail "doctor $2, wanted $1: $(grep "$2" "$T/doctor")"
}
# allow LIST: rdma.allow is that, by a reload.
allow() {
	sed -i "s|^rdma: .*|rdma: { devices: [mlx5_0, mlx5_1], allow: $1 }|" "$T/gantryd.yaml"
	curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail "the reload of allow: $1"
}

# nobody ADDRESS...: a token that names it is refused with 403, and no work request is posted.
nobody() {
	local a
	for a; do
		raw <<-END
			window w 64K
			token t w gid=$a
			request PUT /bkt/x x-amz-rdma-token:@t content-length:0
			expect status 403
			request GET /bkt/mlx5_2 x-amz-rdma-token:@t
			expect status 403
		END
		doctor "$a is not allowed.*no token may name" "$a"
	done
}

# ---- the subnets of our own rails ----
goes mlx5_0 not-allowed # the server's own adapter
goes mlx5_2 RDMA
# The client has the whole sentence, with the address that its token named.
goes mlx5_3 'not by RDMA: not-allowed: the address in the token is outside rdma.allow or the subnets of the server, or is the server.s own (the token named 10.9.4.1)'
gantry --json --device mlx5_3 put "$T/data" "$URL_S3/bkt/json" | jq -e '.reason == "not-allowed" and .declined_address == "10.9.4.1"' >/dev/null || fail "--json"
nobody 10.1.1.255 10.1.1.0 10.1.2.255 fd01:: fd01::fdff:ffff:ffff:fffe
for i in 1 2 3 4 5; do goes mlx5_3 not-allowed; done
logged 1 'not-allowed.*rdma.allow'
doctor '10.1.1.9 is allowed.*mlx5_0:1' 10.1.1.9
doctor '10.9.4.1 is not allowed.*rdma.allow' 10.9.4.1
doctor '10.1.1.1 is not allowed.*allow_special' 10.1.1.1
doctor '224.0.0.1 is not allowed.*multicast' 224.0.0.1
assert_eq "$(curl_admin /rails/10.1.1.300 -o /dev/null -w '%{http_code}')" 404 "what is no address"

# ---- routed ----
allow '[routed]'
goes mlx5_2 RDMA
goes mlx5_3 unreachable # nothing leads there
doctor '10.9.4.1 is not allowed.*no rail.*route' 10.9.4.1
ip route add 10.9.0.0/16 via 10.1.3.254 dev d2 # nor does this: not out of a rail
doctor '10.9.4.1 is not allowed' 10.9.4.1
ip route replace 10.9.0.0/16 via 10.1.2.254 dev d1
softnicctl route add mlx5_1 10.9.0.0/16 # where the fabric has subnets at all
softnicctl route add mlx5_0 fd09::/32
doctor '10.9.4.1 is allowed.*routed.*mlx5_1:1' 10.9.4.1
# What failed is asked again after some seconds; a daemon that starts asks at once.
restart_daemon
goes mlx5_3 RDMA
assert_match "$(curl_admin /rails | tr -d '\n')" '"mlx5_0".*"read_bytes":0,.*"mlx5_1".*"read_bytes":1048576,' "by the rail that has the route"
ip route add default via 10.1.1.254 dev d0
ip route add fd09::/32 via fd01::fe dev d0
goes mlx5_4 RDMA
doctor 'fd09::1 is allowed.*mlx5_0:1' fd09::1
# A route that leads nowhere is none, however long the default one is.
ip route add blackhole 10.77.0.0/16
doctor '10.77.0.1 is not allowed' 10.77.0.1
goes mlx5_0 not-allowed
doctor '10.1.3.255 is not allowed' 10.1.3.255 # everybody's
doctor '10.1.3.1 is not allowed' 10.1.3.1     # our own, on an interface that is no rail
nobody 224.0.0.1 0.0.0.0 255.255.255.255 10.1.1.255 10.1.2.0 fd01::

# ---- networks, alone and beside it ----
ip route del default
allow '["10.9.4.0/24"]'
restart_daemon
goes mlx5_3 RDMA
goes mlx5_2 not-allowed # a list takes the place of our own subnets
doctor '10.9.4.1 is allowed.*rdma.allow.*mlx5_1:1' 10.9.4.1
nobody 10.9.4.255 10.9.4.0 10.1.1.255
allow '["10.200.0.0/16", routed]'
goes mlx5_3 RDMA
doctor '10.200.0.1 is allowed.*rdma.allow' 10.200.0.1
doctor '10.9.4.1 is allowed.*routed' 10.9.4.1
# ---- where all tokens were declined, RDMA is not said to be in use ----
allow '["10.9.4.0/24"]'
restart_daemon
goes mlx5_2 not-allowed
gantry --admin "$ADMIN" doctor --json >"$T/doctor" 2>&1
declined=$(jq -r .verdict "$T/doctor")
assert_match "$declined" '^this machine can use RDMA, but the daemon has declined all 1 tokens? that came' "the verdict: $(jq -c '.findings[] | select(.level == "stop")' "$T/doctor")"
goes mlx5_3 RDMA
gantry --admin "$ADMIN" doctor --json >"$T/doctor" 2>&1
assert_match "$(jq -r .verdict "$T/doctor")" '^RDMA can be used' "the verdict after a token was served"
assert_alive
