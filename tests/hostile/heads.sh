#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM24, TM25: thousands of connections with half a head, hundreds with half a handshake, and hundreds on the admin port: who comes from another
# address with a whole request, and /livez over TCP and over the socket, are served throughout, and none of the others stays.
CORES=1
. "$(dirname "$0")/../system/lib.sh"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=h -keyout "$T/key" -out "$T/crt" 2>/dev/null ||
	fail "openssl"
chmod 0600 "$T/key"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/crt\", tls_key: \"$T/key\" }"
start_daemon
TLS=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")
curl_s3 /bkt/small -T - <<<"small" || fail "an object"

heads() { /usr/bin/python3 "$ROOT/tests/hostile/heads.py" "$@" "$S3" "$ADMIN" "$T/admin.sock" "$DAEMON_PID" || fail "$*"; }
late() { metric gantry_connections_closed_total 'reason="late_head"'; }
# More than limits.connections: each that comes takes the place of another.
heads s3 "$S3" 4200 6
half=$(metric gantry_connections_closed_total 'reason="half_head"')
[ "$half" -gt 100 ] || fail "to make room $half were closed"
wait_for 20 nothing_is_held
# Fewer: a head has ten seconds, and so has a handshake, which a few more seconds of dripping show.
was=$(late)
heads s3 "$S3" 3500 16 &
s3=$!
/usr/bin/python3 "$ROOT/tests/hostile/tls_idle.py" "$TLS" &
idle=$!
heads tls "$TLS" 300 16
wait $s3 || fail "heads"
wait $idle || fail "what is idle over TLS, and what is not"
[ $(($(late) - was)) -ge 3800 ] || fail "limits.head ended $(($(late) - was)) connections"
# A request to the admin port has five.
heads admin "$ADMIN" 200 8
[ "$(metric gantry_admin_connections_closed_total 'reason="room"')" -ge 136 ] || fail "the admin port made no room"
heads admin "$ADMIN" 60 8
[ "$(metric gantry_admin_connections_closed_total 'reason="late_head"')" -ge 60 ] || fail "nobody was too late on the admin port"
assert_eq "$(metric gantry_connections_closed_total 'reason="no_room"')" 0 "refused for want of room"
wait_for 20 nothing_is_held
serves_rdma
assert_alive
