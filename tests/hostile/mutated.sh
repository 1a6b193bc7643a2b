#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Good requests, changed byte by byte at random: every answer is one, none is a 500 but for
# windows that are not there, nothing hangs and nothing is held afterwards.
# SECS=600 VARIANT=asan for more than a look; SEED= repeats a run.
export SOFTNIC_RETRY_US=50000
RDMA='{ allow_special: [loopback, self], rc: { shim: on, connect_rate: 1000, idle: 2s } }'
. "$(dirname "$0")/../system/lib.sh"
cat >"$T/keys.yaml" <<-END
	- { access_key: MAIN, secret_key: s3cr3t-key-1 }
END
chmod 0600 "$T/keys.yaml"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3 }"
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
start_daemon
bytes pattern:3 5000 >"$T/k"
curl_s3 /bkt/k -T "$T/k"
SIGNED=$(sed 's/.* s3=\([^ ]*\) *\(admin.*\)*$/\1/' "$T/ready")
SEED=${SEED:-$RANDOM$RANDOM}
/usr/bin/python3 "$ROOT/tests/hostile/mutated.py" "$S3,$SIGNED,$SCAL" "$ADMIN" "${SECS:-15}" "$SEED" || fail "mutated.py, SEED=$SEED"
[ "$(metric gantry_rc_connects_total '"made"')" -gt 0 ] || fail "no connection of RC was made"
wait_for 30 no_requests
wait_for 30 eval '[ "$(metric gantry_rc_connections)" = 0 ]'
assert_alive
stop_daemon
! grep -E 'Sanitizer|check failed|runtime error' "$T/daemon.log" || fail "the daemon's log, SEED=$SEED"
