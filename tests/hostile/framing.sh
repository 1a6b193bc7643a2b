#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims TM20, TM21: requests whose end two readers see in two places: what a proxy takes for one body is never two requests to us, whatever ends the
# lines of its chunks, on unsigned and on signed requests; HTTP/1.0 has no chunks.
. "$(dirname "$0")/../system/lib.sh"
cat >"$T/keys.yaml" <<-END
	- { access_key: MAIN, secret_key: s3cr3t-key-1 }
END
chmod 0600 "$T/keys.yaml"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3 }"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
SIGNED=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")
/usr/bin/python3 "$ROOT/tests/hostile/framing.py" "$S3" "$SIGNED" || fail "framing.py"
wait_for 10 no_requests
assert_alive
