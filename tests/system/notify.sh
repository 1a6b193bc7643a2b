#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What systemd is told: ready only when requests are served, the watchdog fed, a reload from its beginning to its end, the stop with the
# time that the drain may take.  A listener of ours stands in for systemd; the real one is in tests/vm.
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 - "$T/notify" >>"$T/said" <<'PY' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode().replace("\n", " "), flush=True)
PY
wait_for 60 test -S "$T/notify"
export NOTIFY_SOCKET=$T/notify WATCHDOG_USEC=600000
MORE=$'limits: { drain: 7s }'
start_daemon
wait_for 60 grep -q 'READY=1' "$T/said"
# In this order, and no READY before the store is open.
looks='Recovering the store'
[ "${STORE:-}" != rados ] || looks='Waiting for the cluster'
assert_match "$(tr '\n' '|' <"$T/said")" "STATUS=$looks"'.*STATUS=Starting cores.*READY=1 STATUS=Serving: s3='
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
wait_for 60 sh -c "[ \$(grep -c WATCHDOG=1 '$T/said') -ge 3 ]"
: >"$T/said"
kill -HUP "$DAEMON_PID"
wait_for 60 grep -q 'READY=1' "$T/said"
assert_match "$(tr '\n' '|' <"$T/said")" 'RELOADING=1.*READY=1'
stop_daemon
# limits.drain and half a minute for what comes after it.
wait_for 60 grep -q 'STOPPING=1 STATUS=Draining EXTEND_TIMEOUT_USEC=37000000$' "$T/said"
