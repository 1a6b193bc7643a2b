#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Reload by SIGHUP and by POST /control/reload: what changes, what waits for a restart, that no connection is dropped, that a bad file
# changes nothing, and what systemd, the log and the metrics are told.
MORE=$'limits: { object: 1MiB }\nlog: { level: info }'
BUFFERS=48MiB
. "$(dirname "$0")/lib.sh"

# systemd's end of the notify socket.
/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
out = open(sys.argv[2], "w", buffering=1)
while True:
    out.write(s.recv(65536).decode() + "\n--\n")
' "$T/notify" "$T/notified" &
wait_for 60 test -S "$T/notify"
export NOTIFY_SOCKET=$T/notify
start_daemon

control() { curl -sS --max-time 30 --unix-socket "$T/admin.sock" -X POST "http://x/control/$1" "${@:2}"; }
status_of_control() { curl -sS --max-time 30 -o "$T/answer" -w '%{http_code}' --unix-socket "$T/admin.sock" -X POST "http://x/control/$1" "${@:2}"; }
# edit SED-SCRIPT: the file, changed as an editor would
edit() { sed -i "$1" "$T/gantryd.yaml"; }
running() { curl_admin /config | grep "^\"$1\"" | sed 's/.*"value":"\([^"]*\)".*/\1/'; }
logged() { wait_for 60 grep -q "$1" "$T/daemon.log"; }

bytes pattern:1 2M >"$T/two"
bytes pattern:2 100 >"$T/small"
curl_s3 /bkt/small -T "$T/small"
assert_status PUT /bkt/two 400 -T "$T/two"

# A connection that is there before and after: one socket, kept open by its user.
exec {conn}<>"/dev/tcp/${S3%:*}/${S3#*:}"
over_conn() {
	local line
	printf 'GET /bkt/small HTTP/1.1\r\nHost: localhost\r\n\r\n' >&"$conn"
	read -r -t 10 line <&"$conn" || fail "$1: the connection is gone"
	assert_match "$line" '^HTTP/1.1 200 ' "$1"
	while read -r -t 10 line <&"$conn" && [ "$line" != $'\r' ]; do :; done
	head -c 100 <&"$conn" >"$T/got"
	assert_same "$T/small" "$T/got" "$1"
}
over_conn "before"

# A transfer that runs meanwhile goes on under the limits it has; it ends well.
bytes pattern:3 900K >"$T/slow"
curl -sS -o /dev/null -w '%{http_code}' --limit-rate 300K -T "$T/slow" "$URL_S3/bkt/slow" >"$T/slow.status" &
slow=$!
in_flight() { [ "$(metric gantry_requests_in_flight)" -ge 1 ]; }
wait_for 60 in_flight

# ---- what changes ----
edit 's/object: 1MiB/object: 4MiB/; s/level: info/level: info, levels: { core: debug }/'
assert_eq "$(status_of_control reload)" 200 "reload: $(<"$T/answer")"
assert_match "$(<"$T/answer")" '"changed":\["limits.object","log.levels"\],"restart_needed":\[\],"cores":2,"of":2' "the answer"
over_conn "after a reload"
curl_s3 /bkt/two -T "$T/two"
assert_eq "$(running limits.object)" 4MiB "/config"
assert_match "$(curl_admin /control/log-level)" '"core":"debug"' "levels"
wait "$slow"
assert_eq "$(<"$T/slow.status")" 200 "a PUT that ran meanwhile"

# ---- what needs a restart ----
edit 's/cores: 2/cores: 1/; s/object: 4MiB/object: 1MiB/; s/ buffers: [^,]*/ buffers: 128MiB/'
assert_eq "$(status_of_control reload)" 200 "reload"
assert_match "$(<"$T/answer")" '"changed":\["limits.object"\],"restart_needed":\["cores","memory.buffers"\]' "the answer"
assert_eq "$(running memory.buffers)" 48MiB "the running value"
assert_eq "$(metric gantry_config_restart_needed)" 2 "restart_needed"
logged 'memory.buffers needs a restart; it stays 48MiB'
says() { # WORDS: what gantry status prints
	gantry --admin "$T/admin.sock" status >"$T/said" || true
	grep -qxE -- "$1" "$T/said" || fail "gantry status does not say: $1: $(<"$T/said")"
}
state() { curl_admin /status | jq -c .configuration; }
says 'restart    needed for: cores, memory.buffers'
assert_eq "$(state)" '{"not_in_use":null,"restart_needed":["cores","memory.buffers"]}' "/status"
assert_eq "$(curl_admin /healthz | jq -r .status)" ok "keys that need a restart"
assert_status PUT /bkt/two 400 -T "$T/two"
# A listener may not turn into another one, and what is said of it does not wander to its neighbour.
cp "$T/gantryd.yaml" "$T/good.yaml"
edit '3s/.*/  - { address: "127.0.0.1:0", dialect: s3, anonymous: true }/; 2s/.*/  - { address: "127.0.0.1:0", dialect: scality }/'
assert_eq "$(status_of_control reload)" 200 "reload"
assert_match "$(<"$T/answer")" '"restart_needed":\["listen\[0\].dialect"' "listeners: $(<"$T/answer")"
over_conn "after listeners changed places in the file"
cp "$T/good.yaml" "$T/gantryd.yaml"

# ---- a bad file ----
failures=$(metric gantry_reload_failures_total) stamp=$(metric gantry_config_last_reload_success_timestamp_seconds)
edit 's/object: 1MiB/objekt: 1MiB/; s/cores: 1/cores: many/'
assert_eq "$(status_of_control reload)" 400 "a bad file"
assert_match "$(<"$T/answer")" 'gantryd.yaml:[0-9]+:[0-9]+: limits.objekt: unknown key; did you mean limits.object' "the answer: $(<"$T/answer")"
assert_match "$(<"$T/answer")" 'gantryd.yaml:[0-9]+:[0-9]+: cores: expected' "the answer"
logged 'limits.objekt: unknown key'
says ' .*the file on disk is not in use, but the configuration before the last reload, which failed: .*gantryd.yaml:[0-9]+:[0-9]+: .*'
says 'restart    needed for: listen\[0\].dialect.*'
assert_match "$(curl_admin /healthz | jq -r '.reasons[] | select(.code == "reload_failed").text')" 'the file on disk is not in use, .*: .*gantryd.yaml:[0-9]+:[0-9]+: (limits.objekt: unknown key|cores: expected)' "health"
assert_match "$(state)" '"not_in_use":".*gantryd.yaml:[0-9]+:[0-9]+: ' "/status"
assert_eq "$(metric gantry_health_reason 'code="reload_failed"')" 1
assert_eq "$(metric gantry_reload_failures_total)" $((failures + 1)) "failures"
assert_eq "$(metric gantry_config_last_reload_success_timestamp_seconds)" "$stamp" "time of the last success"
assert_eq "$(running limits.object)" 1MiB "what runs"
over_conn "after a bad file"
# As systemctl reload asks: it fails with the daemon's words. The socket cannot be read from that file.
ask() {
	local rc=0
	"$BUILD/gantryd" -c "$T/gantryd.yaml" "$@" --reload >"$T/out" 2>"$T/err" || rc=$?
	echo $rc
}
assert_eq "$(ask -o "admin.socket=$T/admin.sock")" 78 "--reload of a bad file: $(<"$T/err")"
assert_match "$(<"$T/err")" '^gantryd: not reloaded: .*nothing was changed.*limits.objekt: unknown key' "its words"
assert_eq "$(RUNTIME_DIRECTORY=$T ask)" 78 "--reload of a bad file by the unit"
assert_eq "$(RUNTIME_DIRECTORY=$T/away ask)" 69 "--reload without a daemon: $(<"$T/err")"
assert_match "$(<"$T/err")" "^gantryd: not reloaded: $T/away/admin.sock: No such file or directory: does the daemon run" "without a daemon"
assert_eq "$(metric gantry_reload_failures_total)" $((failures + 3)) "failures"
failures=$((failures + 2))
# By signal the same.
kill -HUP "$DAEMON_PID"
failed_twice() { [ "$(metric gantry_reload_failures_total)" = $((failures + 2)) ]; }
wait_for 60 failed_twice

# ---- by signal ----
cp "$T/good.yaml" "$T/gantryd.yaml"
edit 's/object: 1MiB/object: 4MiB/'
kill -HUP "$DAEMON_PID"
is_four() { [ "$(running limits.object)" = 4MiB ]; }
wait_for 60 is_four
curl_s3 /bkt/two -T "$T/two"
assert_eq "$(state)" '{"not_in_use":null,"restart_needed":["cores","memory.buffers"]}' "after a good file"
assert_eq "$(curl_admin /healthz | jq -r .status)" ok "after a good file"
over_conn "after SIGHUP"
edit 's/object: 4MiB/object: 5MiB/'
assert_eq "$(ask)" 0 "--reload: $(<"$T/err")"
assert_match "$(<"$T/out")" '^gantryd: reloaded: .*"changed":\["limits.object"\],"restart_needed":\["cores","memory.buffers"\]' "its answer"
assert_eq "$(running limits.object)" 5MiB "what --reload changed"
edit 's/object: 5MiB/object: 4MiB/'
# Without a socket: the signal, to the process that systemd names.
assert_eq "$(MAINPID='' ask -o admin.socket=none)" 78 "no socket, no process"
assert_eq "$(MAINPID=$DAEMON_PID ask -o admin.socket=none)" 0 "no socket: $(<"$T/err")"
assert_match "$(<"$T/out")" 'SIGHUP was sent; the log has the result' "no socket"
wait_for 60 is_four
# What does not answer, and what is no daemon.
/usr/bin/python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
c, _ = s.accept()
c.recv(1000)
c.sendall(b"SSH-2.0-x")
c.close()
' "$T/other.sock" &
wait_for 60 test -S "$T/other.sock"
assert_eq "$(ask -o "admin.socket=$T/other.sock")" 1 "another program"
assert_match "$(<"$T/err")" 'this is no answer of gantryd' "another program"
tr '\n' ' ' <"$T/notified" >"$T/notified.line"
assert_match "$(<"$T/notified.line")" 'RELOADING=1 MONOTONIC_USEC=[0-9]+ .*READY=1' "systemd is told"

# Many reloads under load: nothing is dropped, nothing leaks.
before=$(metric process_open_fds)
for i in 1 2 3 4 5 6 7 8 9 10; do
	edit "s/linger: [0-9]*ms, /linger: ${i}ms, /; s/rdma: { allow/rdma: { linger: ${i}ms, allow/"
	assert_eq "$(status_of_control reload)" 200 "reload $i"
	over_conn "reload $i"
done
after=$(metric process_open_fds)
[ "$after" -le $((before + 4)) ] || fail "descriptors: $before before, $after after"
exec {conn}>&-
stop_daemon
