#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What libmicrohttpd refuses by itself (heads and chunks that are malformed or too large), and what is refused before a request is one: over HTTP and
# HTTPS each gets one answer in the form of S3, or none, and the connection ends.
. "$(dirname "$0")/lib.sh"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=h -keyout "$T/key" -out "$T/crt" 2>/dev/null ||
	fail "openssl"
chmod 0600 "$T/key"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/crt\", tls_key: \"$T/key\" }
  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, proxy: [127.0.0.9] }"
MORE=$'limits:\n  head: 2s'
start_daemon
rest=$(sed 's/ admin.*//; s/^ready//; s/ s3=[^ ]*//; s/ scality=[^ ]*//' "$T/ready")
TLS=$(cut -d' ' -f2 <<<"$rest") PROXY=$(cut -d' ' -f3 <<<"$rest")
/usr/bin/python3 "$ROOT/tests/system/http_library.py" "$S3" "${TLS#s3=}" "${PROXY#s3=}" "$SCAL" || fail "http_library.py"
wait_for 10 no_requests
serves_rdma
assert_alive
