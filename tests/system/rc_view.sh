#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What operators see of RC: gantryd --list-devices, gantry doctor on adapters with and without DC, connections in /rails, /status and
# /metrics, connects that a limit refused, and requests by kind of token.
RDMA='{ allow_special: [loopback, self] }'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

doctor() { nic "$BUILD/gantry" --admin "${ADMIN:-127.0.0.1:1}" doctor >"$T/doctor"; }
said() { grep -Eq "$1" "$T/doctor" || fail "doctor: no line like '$1': $(<"$T/doctor")"; }
rc_now() { metric gantry_rc_connections "\"$1\""; }
have() { [ "$(rc_now making)$(rc_now ready)$(rc_now leased)" = "$1" ]; }
number() { curl_admin "$1" | jq -r "$2"; }

# ---- the transports of a device
nic "$BUILD/gantryd" --list-devices >"$T/list"
grep -q '^mlx5_0: .*, DC, 16 READs at once, .*, RC only with rdma.rc.shim: on,' "$T/list" || fail "--list-devices: $(<"$T/list")"
doctor || fail "doctor on a device: $(<"$T/doctor")"
said '^ok       mlx5_0:1     active, RoCE, .*, DC and RC$'
export SOFTNIC_DC=0
nic "$BUILD/gantryd" --list-devices >"$T/list"
grep -q '^mlx5_0: .*, no DC transport: not an mlx5 device, RC only with rdma.rc.shim: on,' "$T/list" || fail "--list-devices: $(<"$T/list")"
grep -q '127.0.0.1: not used: the device has no transport that serves tokens' "$T/list" || fail "--list-devices: $(<"$T/list")"
doctor || fail "doctor of a client without DC: $(<"$T/doctor")"
said '^note     mlx5_0:1     active, RoCE, .*, RC alone \(no DC: not an mlx5 device\): it is used with servers that have rdma.rc.shim: on'
assert_match "$(gantry ports)" '^mlx5_0:1  rc$'
assert_eq "$(gantry --json ports | jq -c '[.rdma, .transports]')" '[true,["rc"]]'
assert_match "$(SOFTNIC_DC=1 gantry ports)" '^mlx5_0:1  dc, rc$'
assert_match "$(SOFTNIC_DC=1 gantry --transport dc ports)" '  dc$'
assert_match "$(SOFTNIC_DC=1 gantry --transport rc ports)" '  rc$'
softnicctl rule add op=modify_qp error=EINVAL >/dev/null
doctor && fail "doctor took a port without any transport"
softnicctl rule clear
said '^warning  mlx5_0:1     active, but without DC \(not an mlx5 device\), and a connection of RC is refused \(connecting it: Invalid argument\)'
said '^STOP     devices      no port can be used'
softnicctl rule add op=create_qp error=ENOMEM >/dev/null
doctor && fail "doctor took a port without queue pairs"
softnicctl rule clear
said 'RC is refused \(creating it: Cannot allocate memory; is the limit of locked memory too small \(ulimit -l\)\?\)'

# ---- a daemon without RC, on an adapter without DC: the setting that helps
start_daemon
assert_eq "$(number /status .rdma.rc)" null
doctor && fail "doctor is content with an adapter that nothing uses"
said '^warning  mlx5_0:1     .*, but without DC \(not an mlx5 device\); RC works here: set rdma.rc.shim: on in the daemon'
! "$BUILD/gantry" --admin "$ADMIN" status | grep '^rc ' || fail "status has connections of RC where it is off"
said '^note     rc           rdma.rc.shim is off: clients whose adapters have no DC use HTTP'
stop_daemon
unset SOFTNIC_DC

# ---- with RC
RDMA='{ allow_special: [loopback, self], rc: { shim: on, per_peer: 3, connect_rate: 1000, idle: 3600s } }'
rm -rf "$T"/disk*
start_daemon
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --list-devices >"$T/list"
grep -q '^mlx5_0: .*, DC, RC, 16 READs at once, ' "$T/list" || fail "--list-devices: $(<"$T/list")"
doctor || fail "doctor: $(<"$T/doctor")"
said '^ok       rc           rdma.rc.shim is on: 0 connections made, at most 1024 at a time, 3 of a client'
said '^warning  rc           gantry -j 16 uses 16 connections, and rdma.rc.per_peer is 3'
said "^ok       rc           a queue pair of this machine connects to http://$S3, and disconnects$"
wait_for 60 have 000
assert_eq "$(metric gantry_rc_connects_total '"made"')" 1
softnicctl rule add op=create_qp pid="$DAEMON_PID" error=ENOMEM >/dev/null
doctor || fail "doctor: $(<"$T/doctor")"
softnicctl rule clear
said "^warning  rc           a queue pair of this machine does not connect to http://$S3: rc: no-channel"
# Longer than a busy machine takes to look.
softnicctl rule add op=write delay=3s >/dev/null
raw <<-END &
	window w 1M pattern:7
	window g 1M
	request PUT /bkt/d x-amz-rdma-token:@w content-length:0
	expect status 200
	qp a
	connect a
	rctoken t a w
	rctoken tg a g
	request PUT /bkt/o x-amz-rdma-token:@t content-length:0
	expect status 200
	qp b
	connect b
	qp c
	connect c
	qp d
	request POST /.s3rdma-rc/connect x-amz-rdma-token:@d_token x-amz-rdma-psn:@d_psn content-length:0
	expect status 503
	request POST /.s3rdma-rc/connect x-amz-rdma-token:@d_token x-amz-rdma-psn:@d_psn content-length:0
	expect status 503
	start x GET /bkt/o x-amz-rdma-token:@tg
	waitfile $T/seen
	wait x
	expect status 200
	rctoken no a g id=03b1c6f0a4e84d1796c2e5f70b8d9a1e
	request GET /bkt/o x-amz-rdma-token:@no
	expect status 501
	request POST /.s3rdma-rc/disconnect x-amz-rdma-session:@b_id content-length:0
	expect status 204
END
client=$!
wait_for 60 have 021
assert_eq "$(number /rails '.[0].transports')" "DC, RC"
assert_eq "$(number /rails '.[0].rc_connections')" 3
assert_eq "$(number /status '.rdma.rc | "\(.open) \(.leased)"')" "3 1"
softnicctl rule clear
touch "$T/seen"
wait "$client" || fail "requests over RC"
wait_for 60 have 020
assert_eq "$(number /rails '.[0].rc_connections')" 2
assert_eq "$(number /status '.rdma.rc | "\(.open) \(.leased)"')" "2 0"
assert_eq "$(number /status '.rdma.rc | "\(.waiting) \(.made) \(.failed) \(.busy) \(.unknown)"')" "0 4 1 0 1"
assert_eq "$(number /status '.rdma.rc.refused | "\(.connections) \(.per_peer) \(.connect_rate) \(.queue)"')" "0 2 0 0"
assert_eq "$(metric gantry_rc_refused_total '"per_peer"')" 2
assert_eq "$(metric gantry_rc_refused_total)" 2
assert_eq "$(metric gantry_rc_connects_total '"refused"')" 2
# A request counts when it is over, which its client may hear a moment before.
is_over() { [ "$(metric gantry_connections)" = 0 ]; }
wait_for 60 is_over
assert_eq "$(metric gantry_token_requests_total 'family="dc",result="served"')" 1
assert_eq "$(metric gantry_token_requests_total 'family="shim-rc",result="served"')" 2
assert_eq "$(metric gantry_token_requests_total 'family="shim-rc",result="declined"')" 1
assert_eq "$(metric gantry_token_requests_total 'family="dc",result="declined"')" 0
for command in status "top --count 1"; do
	# shellcheck disable=SC2086
	nic "$BUILD/gantry" --admin "$ADMIN" $command >"$T/out" || fail "$command: $(<"$T/out")"
	grep -qx 'rc         2 connections, 0 in use, 4 made, 1 failed; refused by per_peer: 2' "$T/out" || fail "$command: $(<"$T/out")"
done
doctor || fail "doctor: $(<"$T/doctor")"
said '^warning  rc           2 connects refused since the start: a client had as many as it may have \(rdma.rc.per_peer is 3; raise it'
stop_daemon

# The other limits have their own counters.
# eight MEMBERS: eight connects of one client at a time, under these limits
eight() {
	RDMA="{ allow_special: [loopback, self], rc: { shim: on, idle: 3600s, $1 } }"
	rm -rf "$T"/disk*
	start_daemon
	raw <<-END
		qp q
		connections 8
		parallel 8 POST /.s3rdma-rc/connect x-amz-rdma-token:@q_token x-amz-rdma-psn:1 content-length:0
		expect status 200|503
	END
}
# On a rail without DC the channels are those for connections.
export SOFTNIC_DC=0
eight "connections: 2, connect_rate: 1000"
unset SOFTNIC_DC
assert_eq "$(number /rails '.[0].dci.all')" 0
for command in status "top --count 1"; do
	# shellcheck disable=SC2086
	nic "$BUILD/gantry" --admin "$ADMIN" $command >"$T/out" || fail "$command: $(<"$T/out")"
	grep -Eq "^(rails .*, channels [1-9][0-9]* free| +up .* [1-9][0-9]*) of $(number /rails '.[0].rc.all')(  mlx5_0:1)?$" "$T/out" || fail "$command: $(<"$T/out")"
done
wait_for 60 have 020
assert_eq "$(metric gantry_rc_refused_total '"connections"')" 6
assert_eq "$(metric gantry_rc_refused_total)" 6
doctor || fail "doctor: $(<"$T/doctor")"
said '^warning  rc           6 connects refused since the start: as many clients were connected as may be \(rdma.rc.connections is 2'
stop_daemon
eight "connect_rate: 2"
[ "$(metric gantry_rc_refused_total '"connect_rate"')" -ge 4 ] || fail "a burst of 8 connects with a limit of 2: $(curl_admin /metrics | grep gantry_rc)"
assert_eq "$(metric gantry_rc_refused_total '"per_peer"')" 0
doctor || fail "doctor: $(<"$T/doctor")"
said '^warning  rc           [4-6] connects refused since the start: a client connected too often in a second \(rdma.rc.connect_rate is 2'
assert_alive
stop_daemon

# The URL that doctor connects to: the first listener without TLS, at the host of the admin listener where its own is a wildcard; and a
# daemon that does not allow this machine's addresses.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=one -keyout "$T/server.key" -out "$T/server.crt" 2>"$T/log" ||
	fail "openssl: $(<"$T/log")"
chmod 0600 "$T/server.key"
RDMA='{ rc: { shim: on } }'
LISTEN='  - { address: "0.0.0.0:0", dialect: s3, anonymous: true }'
write_config
sed -i "0,/anonymous: true/s||&, tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\"|; s|^admin: { address: \"127.0.0.1|admin: { address: \"127.0.0.2|" "$T/gantryd.yaml"
rm -rf "$T"/disk*
format_store
daemon_run
at=$(curl -sS "http://$ADMIN/status" | jq -r '.listeners[].address | select(startswith("0.0.0.0:")) | sub(".*:"; "")')
doctor && fail "doctor is content with a daemon that does not allow this machine"
said "^STOP     rc           a queue pair of this machine does not connect to http://127.0.0.2:$at: its address is not in rdma.allow"
ADMIN=$T/admin.sock
doctor || fail "doctor: $(<"$T/doctor")"
said "^note     rc           no connection to http://127.0.0.1:$at was tried: the daemon does not allow its own addresses"
