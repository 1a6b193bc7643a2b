#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As the first process of a container, with nobody above it: what others there leave behind becomes no zombie, and SIGTERM ends the
# daemon with a drain and exit status 0.
NO_NIC=1
. "$(dirname "$0")/lib.sh"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "this machine lets nobody make a namespace of processes"
DAEMON_WRAP='unshare --pid --fork --mount-proc --kill-child'
start_daemon
assert_eq "$(awk '$1 == "NSpid:" { print $NF }' "/proc/$DAEMON_PID/status")" 1
# A process whose parent has gone is the daemon's.
nsenter --target "$DAEMON_PID" --pid sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 &'
orphan() { cat "/proc/$DAEMON_PID"/task/*/children | grep .; }
no_orphan() { ! orphan; }
wait_for 60 orphan
kill "$(orphan | tr -d ' ')"
wait_for 60 no_orphan
assert_alive
stop_daemon
grep -q 'SIGTERM: draining' "$T/daemon.log" || fail "SIGTERM did not drain: $(<"$T/daemon.log")"
