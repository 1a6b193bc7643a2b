#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rail that data goes by: the client's subnet, the routes of the kernel, the link layer of its port; a rail that does not lead
# there is followed by the next, and equal ones share the work.  In a network namespace of its own:
#
#     mlx5_0 10.1.1.1/24 on d0   mlx5_1 10.1.2.1/24 on d1   mlx5_2 InfiniBand: the server's rails
#     mlx5_3 10.1.1.9, mlx5_4 10.1.2.9: clients beside them   mlx5_5 10.9.4.1: one behind routers   mlx5_6 InfiniBand
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=7
export SOFTNIC_GIDS='10.1.1.1/24;10.1.2.1/24;;10.1.1.9/24;10.1.2.9/24;10.9.4.1/24' SOFTNIC_IB=2,6
RDMA='{ devices: [mlx5_0, mlx5_1, mlx5_2], allow: [10.0.0.0/8, "fe80::/64"] }'
net_rail d0 10.1.1.1/24
net_rail d1 10.1.2.1/24
write_config
sed -i 's/"127.0.0.1:0", dialect: s3/"0.0.0.0:0", dialect: s3/' "$T/gantryd.yaml"
format_store
daemon_run
PORT=${S3##*:} URL_S3=http://10.1.1.1:$PORT
make_buckets
softnicctl reach subnet

bytes pattern:3 1M >"$T/data"
# put DEVICE ADDRESS: 1 MiB by RDMA, the HTTP connection to that address.
put() { gantry --require-rdma --device "$1" put "$T/data" "http://$2:$PORT/bkt/$1" >/dev/null || fail "put from $1 by $2"; }
# moved DEVICE: what the server has read and written there.
moved() {
	local page device reads writes i sum=0
	page=$(curl_admin /rails)
	read -ra device <<<"$(json device <<<"$page")"
	read -ra reads <<<"$(json read_bytes <<<"$page")"
	read -ra writes <<<"$(json written_bytes <<<"$page")"
	[ ${#device[@]} = ${#reads[@]} ] && [ ${#device[@]} = ${#writes[@]} ] || fail "/rails: $page"
	for i in "${!device[@]}"; do [ "${device[i]}" != "$1" ] || sum=$((sum + reads[i] + writes[i])); done
	echo "$sum"
}
# only DEVICE COMMAND...: the megabyte that it moves goes by that rail.
only() {
	local d n=$1
	local -A was
	for d in 0 1 2; do was[$d]=$(moved mlx5_$d); done
	"${@:2}"
	for d in 0 1 2; do
		[ mlx5_$d = "$n" ] && was[$d]=$((was[$d] + 1048576))
		assert_eq "$(moved mlx5_$d)" "${was[$d]}" "${*:2}: bytes on mlx5_$d"
	done
}

# Isolated rails: each client by the rail of its subnet, wherever HTTP came in.
for at in 10.1.1.1 10.1.2.1 127.0.0.1; do
	only mlx5_0 put mlx5_3 $at
	only mlx5_1 put mlx5_4 $at
	# InfiniBand beside Ethernet.
	only mlx5_2 put mlx5_6 $at
done

# Nobody leads there yet.
if gantry --require-rdma --device mlx5_5 put "$T/data" "http://10.1.1.1:$PORT/bkt/x" >"$T/err" 2>&1; then fail "served without a route"; fi
grep -q unreachable "$T/err" || fail "no reason: $(<"$T/err")"
assert_eq "$(moved mlx5_0) $(moved mlx5_1)" "3145728 3145728" "bytes of a client that is not reached"

# The kernel's routes lead there from the second rail alone: the first one is not even tried.
restart_daemon
PORT=${S3##*:}
ip route add 10.9.0.0/16 via 10.1.2.254 dev d1
softnicctl reach all
softnicctl rule add op=create_ah dev=mlx5_0 skip=1000000 >/dev/null
only mlx5_1 put mlx5_5 10.1.1.1
softnicctl rule list | grep -q ' seen=0 ' || fail "an address handle on the rail without a route: $(softnicctl rule list)"
softnicctl rule clear

# Both have a route, and one fails all the same.
ip route replace 10.9.0.0/16 nexthop via 10.1.1.254 dev d0 nexthop via 10.1.2.254 dev d1
softnicctl reach subnet
softnicctl route add mlx5_1 10.9.0.0/16
restart_daemon
PORT=${S3##*:}
only mlx5_1 put mlx5_5 10.1.1.1
only mlx5_1 put mlx5_5 127.0.0.1

# Both lead there: evenly, one after the other and many at once, also where all clients know one rail's own address alone.
softnicctl route add mlx5_0 10.9.0.0/16
restart_daemon
PORT=${S3##*:}
for ((i = 0; i < 12; i++)); do put mlx5_5 10.1.1.1; done
export RAW_DEVICE=mlx5_5
a=$(moved mlx5_0) b=$(moved mlx5_1)
assert_eq $((a + b)) $((12 * 1048576)) "bytes on both rails"
[ $((a * 10)) -ge $((b * 8)) ] && [ $((b * 10)) -ge $((a * 8)) ] || fail "not even: $a on mlx5_0, $b on mlx5_1"
# A rail is chosen by the transfers on it, so all are held on the wire until each has its rail: those that end early would leave theirs to others.
leased() { curl_admin /rails | jq '[.[].dci.leased] | add'; }
all_leased() { [ "$(leased)" = 8 ]; }
for op in PUT GET; do
	a0=$(moved mlx5_0) b0=$(moved mlx5_1)
	wire=read length=content-length:0
	[ $op = PUT ] || wire=write length=''
	softnicctl rule add op=$wire delay=50s >/dev/null # until the rule goes
	nic "$BUILD/tools/rawclient" -s "10.1.1.1:$PORT" <<-END &
		timeout 60s
		windows w 8 1M pattern:%i
		connections 8
		parallel 8 $op /bkt/p%i x-amz-rdma-token:@w%i $length
		expect status 200
	END
	client=$!
	wait_for 60 all_leased
	softnicctl rule clear
	wait $client || fail "many at once: $op"
	a=$(($(moved mlx5_0) - a0)) b=$(($(moved mlx5_1) - b0))
	assert_eq $((a + b)) $((8 * 1048576)) "$op: bytes on both rails"
	[ "$a" -ge $((3 * 1048576)) ] && [ "$b" -ge $((3 * 1048576)) ] || fail "$op: not even: $a on mlx5_0, $b on mlx5_1"
done
assert_alive
