#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 86, claim TM26: a body that stops coming holds nothing: the answer comes at the deadline, or at once if it is known, the connection
# ends, and no request, buffer or part is left.  Over HTTP and HTTPS (stalled.py), and with tokens.
CORES=1
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034
MORE='limits: { s3_progress: 2s, idle: 300s, object: 4500MiB }'
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=h -keyout "$T/key" -out "$T/crt" 2>/dev/null ||
	fail "openssl"
chmod 0600 "$T/key"
# shellcheck disable=SC2034
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/crt\", tls_key: \"$T/key\" }"
start_daemon
TLS=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")

/usr/bin/python3 "$ROOT/tests/system/stalled.py" "$S3" "$TLS" || fail "stalled.py"
wait_for 60 nothing_is_held
assert_eq "$(curl_s3 '/bkt?list-type=2' | grep -o '<Key>[^<]*')" "<Key>anchor" "what is stored"

# A request with a token has no body; one that says so and stops in it.
raw <<-END
	window w 100000 pattern:2
	raw "PUT /bkt/t HTTP/1.1\r\nhost: localhost\r\nx-amz-rdma-token: @w\r\ncontent-length: 10\r\n\r\nabc"
	expect status 400
	raw "GET /bkt/anchor HTTP/1.1\r\nhost: localhost\r\nx-amz-rdma-token: @w\r\ncontent-length: 10\r\n\r\nabc"
	expect status 400
END
wait_for 60 nothing_is_held
assert_alive
