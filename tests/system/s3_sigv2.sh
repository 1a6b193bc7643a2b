#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM91: URLs and forms that boto3 signs by version 2 unless it is told otherwise: refused with what helps, and served where
# auth.sigv2 says so, with nothing that such a signature does not cover (s3_sigv2.py).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export NO_NIC=1 RDMA='{ devices: none }' BUCKETS=bkt AWS_EC2_METADATA_DISABLED=true
cat >"$T/keys" <<-END
	- { access_key: AKTEST, secret_key: "a/secret+1" }
	- { access_key: AKREAD, secret_key: "r/secret+1", read_only: true }
	- { access_key: AKTEMP, secret_key: "t-secret-1", session_token: "to/ken+1=" }
END
chmod 600 "$T/keys"
# shellcheck disable=SC2034
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
MORE="auth: { credentials_file: \"$T/keys\" }"
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_ne "$SIGNED" "$S3"
# A name for its end: the shell forgets a coprocess that has ended.
coproc PY { HOME=$T exec /usr/bin/python3 "$ROOT/tests/system/s3_sigv2.py" "$SIGNED"; }
py=$PY_PID
read -rt 300 off <&"${PY[0]}" && [ "$off" = off ] || fail "refused"
# A reload switches it on.
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\", sigv2: presigned }"
write_config
curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail "reload"
echo on >&"${PY[1]}"
wait "$py" || fail "served"
assert_alive
stop_daemon
