#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM22: signatures by meaning, against an oracle that shares nothing with the daemon (sigv4.py, with urllib.parse): random targets in
# random spellings, signed in the header and in the URL.  Each is understood as the oracle understands it, or refused as it refuses.
# And who may not ask is told nothing but that, whatever they ask for.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export NO_NIC=1 RDMA='{ devices: none }' BUCKETS=
cat >"$T/keys" <<-END
	- { access_key: AKTEST, secret_key: "a/secret+1" }
	- { access_key: AKELSE, secret_key: "a/secret+1", grants: [{ bucket: other }] }
END
chmod 600 "$T/keys"
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\" }
s3: { domain: [s3.test] }"
LISTEN='  - { address: "127.0.0.1:0", dialect: s3 }'
start_daemon
SIGNED=$(sed 's/ admin=.*//; s/.* s3=//' "$T/ready")
assert_ne "$SIGNED" "$S3"
/usr/bin/python3 "$ROOT/tests/system/sigv4.py" "$SIGNED" AKTEST a/secret+1 || fail "sigv4.py"
assert_alive
stop_daemon
