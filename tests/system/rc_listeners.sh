#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# RC at other listeners: connects and requests of clients with an address of IPv6, whose queue pairs have a GID of IPv6 that rdma.bind_gid
# compares with it; and connects and requests by TLS.
CORES=2
export SOFTNIC_GIDS=::1,fd00:6761::1
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
unset "${!AWS_@}"
command -v openssl >/dev/null || fail "no openssl"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=one -addext "subjectAltName=IP:::1" \
	-keyout "$T/server.key" -out "$T/server.crt" 2>"$T/openssl.log" || fail "openssl: $(<"$T/openssl.log")"
chmod 0600 "$T/server.key"
RDMA='{ allow_special: [loopback, self], bind_gid: exact, rc: { shim: on } }'
LISTEN="  - { address: \"[::1]:0\", dialect: s3, anonymous: true }
  - { address: \"[::1]:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/server.crt\", tls_key: \"$T/server.key\" }"
start_daemon
read -r V6 TLS < <(grep -o ' s3=\[[^ ]*' "$T/ready" | sed 's/ s3=//' | paste -sd ' ')
bytes pattern:3 1M >"$T/in"

# gantry, in a mount namespace in which the certificate of this test is the only one that is trusted.
trusting() {
	# shellcheck disable=SC2016
	nic unshare -m sh -c 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"' "$T/server.crt" "$BUILD/gantry" "$@"
}
# both URL COMMAND...: an object there and back.
both() {
	local url=$1
	"${@:2}" --transport rc --require-rdma put "$T/in" "$url/bkt/o" >"$T/say" 2>&1 || fail "put at $url: $(<"$T/say")"
	grep -q 'by RDMA (RC)' "$T/say" || fail "put at $url: $(<"$T/say")"
	rm -f "$T/out"
	"${@:2}" --transport rc --require-rdma get "$url/bkt/o" "$T/out" >"$T/say" 2>&1 || fail "get at $url: $(<"$T/say")"
	grep -q 'by RDMA (RC)' "$T/say" || fail "get at $url: $(<"$T/say")"
	assert_same "$T/in" "$T/out" "$url"
}
connects() { grep 'op=RcConnect' "$T/daemon.log" | grep -c "peer=::1 .*status=$1"; }

both "http://$V6" gantry --device ::1
assert_eq "$(connects 200)" 2 "connects over IPv6"
both "https://$TLS" trusting --device ::1
assert_eq "$(connects 200)" 4 "connects by TLS"
# Another address of IPv6 than the client's.
for c in "gantry http://$V6" "trusting https://$TLS"; do
	${c% *} --device fd00:6761::1 --transport rc --require-rdma get "${c#* }/bkt/o" "$T/out" >"$T/say" 2>&1 && fail "$c: another address: $(<"$T/say")"
done
assert_eq "$(connects 200)" 4 "connects with the GID of another address"
[ "$(connects 403)" -ge 2 ] || fail "the GID of another address: $(grep op=RcConnect "$T/daemon.log" | tail -4)"
no_connections() { [ "$(metric gantry_rc_connections)" = 0 ]; }
wait_for 60 no_connections
assert_alive
