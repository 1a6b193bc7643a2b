#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two gateways behind HAProxy, configured as docs/rados.md says: requests by HTTP and by RDMA, whose bytes do not go through it; a key's
# requests meet the same gateway; the log has the clients' addresses; and what one gateway served the other one serves when it is gone.
MORE='' LISTEN='  - { address: "127.0.0.1:0", dialect: s3, anonymous: true, proxy: [127.0.0.1] }'
. "$(dirname "$0")/lib.sh"
behind() { grep -o ' s3=[^ ]*' "$T/ready" | tail -n 1 | cut -d= -f2; }
start_daemon
keep_gateway 1
one=$(behind) one_admin=${ADMIN##*:}
another_gateway 2
two=$(behind) two_admin=${ADMIN##*:}
free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# ---- the balancer, as in the page: only the addresses are this test's
start_balancer() {
	local port
	port=$(free_port)
	{
		echo "global"
		echo "    maxconn 200"
		sed -n '/^    defaults$/,/^$/s/^    //p' "$ROOT/docs/rados.md"
	} >"$T/page.cfg"
	grep -c 'server g[12] 10\.0\.0\.[12]:9000$' "$T/page.cfg" | grep -qx 2 || fail "the page has no balancer: $(cat "$T/page.cfg")"
	sed "s/bind :9000/bind 127.0.0.1:$port/; s/check port 9001/check/
		s/g1 10.0.0.1:9000/g1 $one port $one_admin/; s/g2 10.0.0.2:9000/g2 $two port $two_admin/" "$T/page.cfg" >"$T/haproxy.cfg"
	haproxy -c -f "$T/haproxy.cfg" >"$T/haproxy.log" 2>&1 || fail "haproxy -c: $(cat "$T/haproxy.log")"
	! grep -iE 'warning|alert' "$T/haproxy.log" || fail "haproxy -c: $(cat "$T/haproxy.log")"
	haproxy -db -f "$T/haproxy.cfg" >>"$T/haproxy.log" 2>&1 &
	balancer=$!
	url=http://127.0.0.1:$port
	both_up() { [ "$(curl -s -o /dev/null -w '%{http_code}' "$url/bkt/")" = 200 ]; }
	for _ in $(seq 100); do
		both_up && return 0
		_runs $balancer || return 1
		sleep 0.1
	done
	return 1
}
start_balancer || start_balancer || fail "haproxy: $(cat "$T/haproxy.log")"

# ---- many keys: each at one gateway, and both have some
head -c 3000000 /dev/urandom >"$T/body"
gets() { curl -sS --unix-socket "$T/$1" http://x/metrics | awk '$1 ~ /^gantry_requests_total.*operation="GetObject"/ { s += $2 } END { print s + 0 }'; }
at_one=0 at_two=0
for k in $(seq 16); do
	[ "$(curl -sS -o /dev/null -w '%{http_code}' -T "$T/body" "$url/bkt/k$k")" = 200 ] || fail "PUT k$k"
	a=$(gets admin.sock) b=$(gets admin2.sock)
	for _ in 1 2 3 4; do curl -sS --interface 127.0.0.9 "$url/bkt/k$k" | cmp - "$T/body" || fail "GET k$k"; done
	a=$(($(gets admin.sock) - a)) b=$(($(gets admin2.sock) - b))
	case $a.$b in
	4.0) at_one=$((at_one + 1)) ;;
	0.4) at_two=$((at_two + 1)) ;;
	*) fail "of 4 GETs of k$k one gateway had $a, the other $b" ;;
	esac
done
[ $at_one -gt 1 ] && [ $at_two -gt 1 ] || fail "of 16 keys $at_one met one gateway, $at_two the other"
logged 64 'peer=127.0.0.9 op=GetObject status=200'

# ---- by RDMA: the payload goes between the client and the gateway that got the request
for k in $(seq 8); do
	nic "$BUILD/gantry" --require-rdma put "$T/body" "$url/bkt/r$k" >"$T/out" 2>&1 || fail "put by RDMA: $(cat "$T/out")"
	nic "$BUILD/gantry" --require-rdma get "$url/bkt/k$k" "$T/got" >"$T/out" 2>&1 || fail "get by RDMA: $(cat "$T/out")"
	assert_same "$T/body" "$T/got" "by RDMA"
done
moved() { curl -sS --unix-socket "$T/$1" http://x/metrics | awk '$1 ~ /^gantry_rdma_bytes_total/ { s += $2 } END { print s + 0 }'; }
[ $(($(moved admin.sock) + $(moved admin2.sock))) -ge 48000000 ] || fail "by RDMA $(moved admin.sock) and $(moved admin2.sock) bytes have gone"

# ---- one is gone: the other one serves its keys
gateway 1
kill_daemon
gateway 2
all_served() { for k in $(seq 16); do curl -s -m 10 "$url/bkt/k$k" | cmp -s - "$T/body" || return 1; done; }
wait_for 30 all_served
[ "$(curl -sS -o /dev/null -w '%{http_code}' -T "$T/body" "$url/bkt/after")" = 200 ] || fail "a PUT with one gateway"
kill $balancer
wait $balancer 2>/dev/null
stop_daemon
