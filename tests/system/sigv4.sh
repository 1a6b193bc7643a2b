#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signatures by meaning, against an oracle that shares nothing with the daemon (sigv4.py, with urllib.parse): random targets in
# random spellings, signed in the header and in the URL.  Each is understood as the oracle understands it, or refused as it refuses.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
export NO_NIC=1 RDMA='{ devices: none }' BUCKETS=
cat >"$T/keys" <<-END
	- { access_key: AKTEST, secret_key: "a/secret+1" }
END
chmod 600 "$T/keys"
# shellcheck disable=SC2034
MORE="auth: { credentials_file: \"$T/keys\" }
s3: { domain: [s3.test] }"
start_daemon
/usr/bin/python3 "$ROOT/tests/system/sigv4.py" "$S3" AKTEST a/secret+1 || fail "sigv4.py"
assert_alive
stop_daemon
