#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 110: IPv4 and IPv6 listeners work; a bad address stops start-up with a message that names it.
LISTEN=$'  - { address: "[::1]:0", dialect: s3, anonymous: true }'
. "$(dirname "$0")/lib.sh"
start_daemon
six=$(sed 's/.*s3=\(\[::1\]:[0-9]*\).*/\1/' "$T/ready")
bytes pattern:1 100000 >"$T/body"
curl_s3 /bkt/o -T "$T/body"
curl -gsS --fail "http://$six/bkt/o" | cmp - "$T/body" || fail "over IPv6"
# A token may come in over IPv6 too; the rail is the only one there is.
nic "$BUILD/tools/rawclient" -s "$six" <<-END || fail "a token over IPv6"
	window g 100000
	request GET /bkt/o x-amz-rdma-token:@g
	expect status 200
	expect window g pattern:1
END
stop_daemon
# 0.0.0.0 and [::] have a port together, with clients and with the admin listener.
port=${six##*:}
sed -i "s|127.0.0.1:0\", dialect: s3|0.0.0.0:$port\", dialect: s3|; s|\[::1\]:0|[::]:$port|" "$T/gantryd.yaml"
daemon_run
for a in "127.0.0.1:$port" "[::1]:$port"; do curl -gsS --fail "http://$a/bkt/o" | cmp - "$T/body" || fail "through $a"; done
stop_daemon
sed -i "s|0.0.0.0:$port|127.0.0.1:0|; s|\[::\]:$port|[::1]:0|" "$T/gantryd.yaml"

refused() {
	sed "s/127.0.0.1:0\", dialect: s3/$1\", dialect: s3/" "$T/gantryd.yaml" >"$T/bad.yaml"
	nic "$BUILD/gantryd" -c "$T/bad.yaml" >"$T/out" 2>&1 </dev/null
	assert_eq $? "$2" "exit status for $1"
	grep -qF "$1" "$T/out" || fail "the message does not name $1: $(<"$T/out")"
}
refused 192.0.2.1:9000 69 # not an address of this machine
refused 10.0.0.300:9000 78
# Taken by another daemon, which has another store.
daemon_run
busy=$S3
sed -i "s|$T/disk0|$T/disk1|; s|admin.sock|admin1.sock|" "$T/gantryd.yaml"
mkdir "$T/disk1"
format_store
refused "$busy" 69
assert_alive
