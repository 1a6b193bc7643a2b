#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A reader of the log, or of the messages to the service manager, that does not read: requests, health and SIGTERM are served all the same, in
# the start, while serving, and in the drain.  What is dropped is counted, and said when the reader is back.
MORE=$'log: { level: debug }'
. "$(dirname "$0")/lib.sh"

# ---- standard error and output are a pipe that nobody reads, full from the start on; nor does anybody read what the manager is told ----
mkfifo "$T/pipe"
exec 7<>"$T/pipe"
/usr/bin/python3 - "$T/notify" <<'PY' &
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
c.setblocking(False)
try:
    while True:
        c.sendto(b"X" * 100, sys.argv[1])
except BlockingIOError:
    pass
open(sys.argv[1] + ".full", "w").close()
parent = os.getppid()
while os.getppid() == parent:
    time.sleep(0.2)
PY
wait_for 60 test -e "$T/notify.full"
# A pipe with no room left, whatever its size.
fill_pipe() { ! dd if=/dev/zero bs=64 of="$T/pipe" oflag=nonblock 2>/dev/null; }
write_config
format_store
fill_pipe
cat >"$T/wrap" <<END
#!/bin/bash
export NOTIFY_SOCKET=$T/notify WATCHDOG_USEC=1000000
exec "\$@" >"$T/pipe" 2>&1
END
chmod +x "$T/wrap"
DAEMON_WRAP=$T/wrap
daemon_run
make_buckets
list_urls() { for i in $(seq 500); do echo "url = $URL_S3/bkt/k$i"; echo 'output = /dev/null'; done >"$T/urls"; }
list_urls
# More lines than the pipe and the queue hold: 6000 requests, of several lines each.
for i in $(seq 12); do curl -sS --max-time 60 -K "$T/urls" || fail "round $i of requests"; done
drops() { [ "$(metric gantry_log_lines_dropped_total)" -gt 0 ]; }
drops || { for i in $(seq 12); do curl -sS --max-time 60 -K "$T/urls" || fail "round $i of requests"; done; }
drops || fail "no line was dropped"
assert_eq "$(curl_admin /livez -o /dev/null -w '%{http_code}')" 200
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200
kill -HUP "$DAEMON_PID"
kill -USR2 "$DAEMON_PID"
assert_status PUT /bkt/a 200 -d a

# ---- the reader is back: it is told how much was dropped, and every line is whole ----
cat "$T/pipe" >"$T/read" &
reader=$!
wait_for 60 grep -aq ' warning log: [0-9]* lines of the log were dropped' "$T/read"
stop_daemon
wait_for 60 grep -aq ' notice gantryd: stopped$' "$T/read"
kill "$reader"
wait "$reader" 2>/dev/null
! tr -d '\0' <"$T/read" | grep -av '^20[0-9-]*T[0-9:.]*Z [a-z]* [a-z_]*: \|^gantryd: ready ' || fail "a line that is none"

# ---- SIGTERM ends it while nobody reads: in the drain, and in a start ----
fill_pipe
daemon_run
list_urls
for i in $(seq 12); do curl -sS --max-time 60 -K "$T/urls" || fail "again, round $i of requests"; done
stop_daemon

# ---- the journal does not read ----
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed): the journal was not looked at"
cat >"$T/journald" <<'END'
import os, socket, sys, time
parent = os.getppid()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/run/systemd/journal/socket")
open(sys.argv[1], "w").close()
while os.getppid() == parent:
    time.sleep(0.2)
END
cat >"$T/wrap2" <<END
#!/bin/bash
mount -t tmpfs none /run && mkdir -p /run/systemd/journal || exit 1
/usr/bin/python3 "$T/journald" "$T/listens" >/dev/null 2>&1 &
until [ -e "$T/listens" ]; do pause 0.02; done
exec "\$@"
END
chmod +x "$T/wrap2"
DAEMON_WRAP="unshare -m $T/wrap2"
daemon_run -o log.format=journal
list_urls
curl -sS --max-time 60 -K "$T/urls" || fail "requests beside a journal that does not read"
assert_eq "$(curl_admin /livez -o /dev/null -w '%{http_code}')" 200
stop_daemon
