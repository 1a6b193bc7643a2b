#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM64: behind a balancer that speaks the PROXY protocol, version 2: the forwarded address is the client's in the log, in limits and where a
# token's address is asked for; over HTTP and HTTPS.  Who is no balancer must not send a header, a balancer has to, and of version 2.
CORES=1
. "$(dirname "$0")/lib.sh"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=h -keyout "$T/key" -out "$T/crt" 2>/dev/null ||
	fail "openssl"
chmod 0600 "$T/key"
RDMA='{ allow_special: [loopback, self], bind_gid: exact }'
MORE='limits: { connections_per_address: 20 }'
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, proxy: [127.0.0.5, \"fd00::/8\"] }
  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, proxy: [127.0.0.4/31], tls_certificate: \"$T/crt\", tls_key: \"$T/key\" }"

write_config
sed 's/127.0.0.5, /127.0.0.300, /' "$T/gantryd.yaml" >"$T/bad.yaml"
"$BUILD/gantryd" -c "$T/bad.yaml" --check-config >"$T/out" 2>&1
assert_eq $? 78 "a block that is none: exit code"
grep -q 'listen\[2\].proxy: expected an address or a block' "$T/out" || fail "a block that is none: $(<"$T/out")"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --print-config >"$T/out" || fail "--print-config"
grep -Fq 'proxy: ["127.0.0.5/32", "fd00::/8"]' "$T/out" || fail "--print-config: $(grep proxy "$T/out")"

start_daemon
read -r PLAIN TLS <<<"$(grep -o ' s3=[^ ]*' "$T/ready" | tail -n 2 | sed 's/.*=//' | tr '\n' ' ')"
curl_s3 /bkt/o -T - <<<"object" || fail "an object"
token=$(raw <<<$'window w 64K\nprint @w' | grep -o '[0-9a-f:.]*' | awk 'length > 60' | head -n 1)
[ -n "$token" ] || fail "no token"
/usr/bin/python3 "$ROOT/tests/system/proxy.py" "$PLAIN" "$TLS" "$token" || fail "proxy.py"

line() { grep -c " op=$1 status=$2 .*" <<<"$(grep -F "peer=$3 " "$T/daemon.log")"; }
# TCP over IPv4 and IPv6, a balancer's own, and nobody's; a line is written behind the answer.
lines_are() { [ "$(line GetObject 200 192.0.2.9) $(line GetObject 200 2001:db8::9) $(line GetObject 200 127.0.0.5) $(line GetObject 200 127.0.0.6)" = "4 4 4 2" ]; }
wait_for 60 lines_are
wait_for 60 grep -q 'from 127.0.0.5 was closed: this balancer.s PROXY header is of version 1; configure version 2' "$T/daemon.log"
wait_for 60 grep -q 'from 127.0.0.5 was closed: this balancer sent no PROXY header' "$T/daemon.log"
[ "$(metric gantry_connections_closed_total 'reason="proxy"')" = 3 ] || fail "what was closed for its header is not counted"

# A reload takes a balancer away.
sed -i 's/proxy: \[127.0.0.5, /proxy: [/' "$T/gantryd.yaml"
kill -HUP "$DAEMON_PID"
wait_for 60 curl -sS --fail --interface 127.0.0.5 -o /dev/null "http://$PLAIN/bkt/o"
wait_for 60 no_requests
assert_alive
