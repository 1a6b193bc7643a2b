#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM29: what hostile and broken S3 clients send, over raw sockets (s3_hostile.py): XML, keys, parameters, framing, frames of
# aws-chunked, forms.  Each gets the right error, nothing is stored, the connection goes on where its framing is intact, the
# daemon's memory stays bounded, and no request is left.
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034
MORE="limits: { s3_progress: 20s, idle: 30s }"
export NO_NIC=1 RDMA='{ devices: none }'
start_daemon
/usr/bin/python3 "$ROOT/tests/system/s3_hostile.py" "$S3" "$DAEMON_PID" || fail "s3_hostile.py"
assert_alive
nothing_left() { [ "$(curl_admin /requests)" = "[]" ]; }
wait_for 60 nothing_left
stop_daemon
