#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals that others send for something harmless: while the configuration is read, which here takes as long as its file is a FIFO, and while it serves.
# SIGHUP in the start waits and is taken; those without a meaning do nothing; SIGTERM drains.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1 DISK_SIZE=96MiB
MEANINGLESS=(USR1 ALRM VTALRM PROF IO PWR STKFLT XCPU XFSZ PIPE WINCH URG RTMIN+3 RTMAX)

start_daemon
for s in "${MEANINGLESS[@]}"; do kill -s "$s" "$DAEMON_PID" || fail "no signal $s here"; done
curl_s3 /bkt/o --data-binary works -X PUT
assert_eq "$(curl_s3 /bkt/o)" works
assert_alive
kill -TERM "$DAEMON_PID"
stop_daemon

# The same before it has read its configuration.
mv "$T/gantryd.yaml" "$T/real.yaml"
mkfifo "$T/gantryd.yaml"
rm -f "$T/ready"
"$BUILD/gantryd" -c "$T/gantryd.yaml" --ready-file "$T/ready" >>"$T/daemon.log" 2>&1 &
pid=$!
# It waits in open() for a writer.
waits() { [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$BUILD/gantryd")" ] && grep -q SigIgn "/proc/$pid/status" && [ "$((0x$(awk '/^SigIgn/ { print $2 }' "/proc/$pid/status") >> 9 & 1))" = 1 ]; }
wait_for 60 waits
for s in HUP USR2 "${MEANINGLESS[@]}"; do kill -s "$s" "$pid" || fail "gantryd ended before SIG$s"; done
# A file in its place for the reload that SIGHUP asks for.
cat "$T/real.yaml" >"$T/gantryd.yaml"
mv "$T/real.yaml" "$T/gantryd.yaml"
is_ready() { grep -q '^ready ' "$T/ready" 2>/dev/null; }
wait_for 60 is_ready
reloads() { grep -q "SIGHUP: reloading" "$T/daemon.log"; }
wait_for 60 reloads
kill -0 "$pid" || fail "gantryd ended"
kill -TERM "$pid"
wait "$pid" || fail "gantryd ended with $?"
