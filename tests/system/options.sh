#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantryd's command line and configuration as an operator meets them: exit codes, messages, ready line, signals, admin pages.
. "$(dirname "$0")/lib.sh"
G=$BUILD/gantryd

# try WANTED-EXIT WORDS...: standard output in $T/out, errors in $T/err.
try() {
	local want=$1 rc
	shift
	"$@" >"$T/out" 2>"$T/err" </dev/null
	rc=$?
	[ "$rc" = "$want" ] || { cat "$T/out" "$T/err" >&2; fail "exit $rc, wanted $want: $*"; }
}
says() { grep -qF -- "$1" "$T/err" || fail "not said: $1 (but: $(<"$T/err"))"; }
shows() { grep -qF -- "$1" "$T/out" || fail "not shown: $1 (but: $(<"$T/out"))"; }

# ---- what needs no root, no device, no port: as nobody, without the software NIC ----
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups env -u LD_LIBRARY_PATH "$@"
	else
		env -u LD_LIBRARY_PATH "$@"
	fi
}
# --check-config asks whether this user could make the disks.
chmod 777 "$T"
cp "$G" "$T/gantryd" && chmod 755 "$T/gantryd"
write_config
chmod 644 "$T/gantryd.yaml"
try 0 as_nobody "$T/gantryd" --version
shows "gantryd $(<"$ROOT/VERSION")"
shows "1001"
try 0 as_nobody "$T/gantryd" --help
shows "--check-config"
try 0 as_nobody "$T/gantryd" -c "$T/gantryd.yaml" --check-config
shows "gantryd.yaml: good"
try 0 as_nobody "$T/gantryd" --print-keys
shows "rdma.dc_key"
try 0 as_nobody "$T/gantryd" --print-metrics
shows "gantry_declines_total	counter	reason	"

# The example file is good as it stands.
try 0 "$G" -c "$ROOT/conf/gantryd.yaml" --check-config -o cores=1

# ---- usage: 2 ----
try 2 "$G" --nonsense
says "unknown option --nonsense"
try 2 "$G" serve
try 2 "$G" -c
try 2 "$G" --format --fsck
try 2 "$G" --force
try 2 "$G" --check-config --ready-file "$T/x"

# ---- bad configuration: 78, and all that is wrong with it ----
try 78 "$G" -c "$T/none.yaml" --check-config
says "$T/none.yaml: cannot read it: No such file or directory"
printf 'listen:\n  - { address: "127.0.0.1:0", dialect: s3 }\nrdma: { retry_cnt: 9, dckey: 1 }\nstore: { disks: [{ path: /d }] }\n' >"$T/bad.yaml"
try 78 "$G" -c "$T/bad.yaml"
says "$T/bad.yaml:3:20: rdma.retry_cnt: expected an integer from 0 to 7, not \"9\""
says "$T/bad.yaml:3:23: rdma.dckey: unknown key; did you mean rdma.dc_key?"
says "listen[0].anonymous: nobody could use this listener"
try 0 "$G" -c "$T/gantryd.yaml" --check-config -o auth.credentials_file="$T/nosuch.yaml"
says "$T/nosuch.yaml: is not there yet, so there are no access keys"
try 78 "$G" -c "$T/gantryd.yaml" --check-config -o auth.credentials_file="$T/gantryd.yaml/keys"
says "$T/gantryd.yaml/keys: Not a directory"
GANTRY_RDMA_TRAFFIC_CLASS=256 try 78 "$G" -c "$T/gantryd.yaml" --check-config
says "environment GANTRY_RDMA_TRAFFIC_CLASS: rdma.traffic_class: expected an integer from 0 to 255"
GANTRY_RDMA_NOSUCH=1 try 78 "$G" -c "$T/gantryd.yaml" --check-config
try 78 "$G" -c "$T/gantryd.yaml" --check-config -o memory.buffers=1TiB

# ---- values and their origins ----
mkdir "$T/conf.d"
echo 'rdma: { poll_batch: 8 }' >"$T/conf.d/50.yaml"
GANTRY_RDMA_LINGER=7ms try 0 "$G" -c "$T/gantryd.yaml" --print-config -o rdma.dc_key=0x5ec4e7 -o rdma.hop_limit=9
grep -qE "^  poll_batch: 8 +# $T/conf.d/50.yaml:1\$" "$T/out" || fail "no origin of conf.d"
grep -qE '^  linger: 7ms +# environment GANTRY_RDMA_LINGER$' "$T/out" || fail "no origin of the environment"
grep -qE '^  hop_limit: 9 +# option -o$' "$T/out" || fail "no origin of the option"
grep -qE '^  retry_cnt: 7 +# default$' "$T/out" || fail "no default"
grep -qE "^  - address: \"127.0.0.1:0\" +# $T/gantryd.yaml:2\$" "$T/out" || fail "no origin of the file"
! grep -q 5ec4e7 "$T/out" || fail "the DC key is shown"
rm -r "$T/conf.d"

# ---- devices ----
try 0 nic "$G" --list-devices
shows mlx5_0

# ---- store: no store is 74 or 69, made once, not over data ----
mkdir -p "$T/disk0"
try 69 nic "$G" -c "$T/gantryd.yaml" --format -o "store.disks=[{path: $T/no/such, size: 64MiB}]"
try 74 nic "$G" -c "$T/gantryd.yaml"
try 0 nic "$G" -c "$T/gantryd.yaml" --format
try 74 nic "$G" -c "$T/gantryd.yaml" --format
says 'disk0: has a store already'
says 'remedy: start gantryd'
assert_match "$(tail -n 1 "$T/err")" "^All objects of the store on $T/disk0 are lost; last resort: --force"
# A container's first step: every time, and never over what is there.
super=$(md5 <"$T/disk0/super")
try 0 nic "$G" -c "$T/gantryd.yaml" --format --if-absent
shows 'there is a store already, nothing was done'
assert_eq "$(md5 <"$T/disk0/super")" "$super"
mkdir "$T/half"
touch "$T/half/log"
try 74 nic "$G" -c "$T/gantryd.yaml" --format --if-absent -o "store.disks=[{path: $T/half, size: 64MiB}]"
says 'half: not empty (log)'
try 0 nic "$G" -c "$T/gantryd.yaml" --format --if-absent -o "store.disks=[{path: $T/new, size: 64MiB}]"
shows 'made a store on 1 disk'
rm -r "$T/new" "$T/half"
try 0 nic "$G" -c "$T/gantryd.yaml" --format --force
try 0 nic "$G" -c "$T/gantryd.yaml" --fsck
shows "the store is clean"
try 78 nic "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: $T/disk0, size: 2GiB}]"
# What is not a file of a store: no start mends it.
mkdir -p "$T/odd/super"
try 74 nic "$G" -c "$T/gantryd.yaml" -o "store.disks=[{path: $T/odd, size: 64MiB}]"
says "$T/odd: cannot open super: Is a directory"

# ---- serving: the ready line, pages, signals ----
# A ready file that cannot be written ends the start: whoever waits for it would wait for ever.
mkdir "$T/directory"
for f in none/ready directory; do
	try 78 nic timeout 60 "$G" -c "$T/gantryd.yaml" --ready-file "$T/$f"
	says "$T/$f: $([ $f = directory ] && echo Is a directory || echo No such file or directory)"
done
daemon_run
port=${ADMIN##*:}
[ "$port" -gt 0 ] || fail "no admin port: $ADMIN"
wait_for 60 grep -q "^gantryd: ready s3=$S3 scality=$SCAL admin=$ADMIN admin_socket=$T/admin.sock\$" "$T/daemon.log"
wait_for 60 grep -q " notice gantryd: ready s3=$S3 " "$T/daemon.log"
for p in /livez /readyz /healthz /health /health/live /health/ready /minio/health/live /minio/health/ready /minio/health/cluster; do
	assert_eq "$(curl_admin "$p")" '{"status":"ok","reasons":[]}' "$p"
done
for p in /status /rails /disks /requests /config; do
	curl_admin "$p" | /usr/bin/python3 -c 'import json, sys; json.load(sys.stdin)' || fail "$p is no JSON"
done
assert_match "$(curl_admin /status)" "\"address\":\"$S3\""
assert_match "$(curl_admin /metrics)" 'gantry_build_info\{version='
assert_match "$(curl_admin /metrics)" 'gantry_rail_up\{rail="mlx5_0:1"\} 1'
assert_match "$(curl_admin /metrics)" 'gantry_store_free_bytes\{disk="[0-9a-f]{8}"\} [1-9]'
if command -v promtool >/dev/null; then curl_admin /metrics | promtool check metrics || fail "promtool"; fi
assert_eq "$(curl_admin /nosuch -o /dev/null -w '%{http_code}')" 404
assert_eq "$(curl_admin /status -o /dev/null -w '%{http_code}' -X POST)" 405
assert_eq "$(stat -c %a "$T/admin.sock")" 600 "mode of the admin socket"
assert_eq "$(curl -sS --unix-socket "$T/admin.sock" http://x/livez)" '{"status":"ok","reasons":[]}'

# A second one finds the port, and then the store, in use.
try 69 nic "$G" -c "$T/gantryd.yaml" -o "admin.address=$ADMIN" -o admin.socket=none
says "$ADMIN"
try 69 nic "$G" -c "$T/gantryd.yaml" -o admin.socket=none -o store.lock_wait=100ms

kill -HUP "$DAEMON_PID"
wait_for 60 grep -q 'configuration reloaded: 0 keys changed, 0 need a restart' "$T/daemon.log"
kill -USR2 "$DAEMON_PID"
wait_for 60 grep -q 'end of live requests' "$T/daemon.log"
assert_alive
stop_daemon
[ ! -e "$T/admin.sock" ] || fail "the admin socket was left behind"

# A signal while it starts (here: it waits for the lock of a store in use) ends it at once.
daemon_run
nic "$G" -c "$T/gantryd.yaml" -o admin.address=none -o "admin.socket=$T/second.sock" >"$T/out" 2>&1 &
second=$!
wait_for 60 test -S "$T/second.sock"
assert_eq "$(curl -sS --unix-socket "$T/second.sock" http://x/readyz | jq -c '[.status, .reasons[0].code, .reasons[0].text]')" '["unavailable","not_serving","recovering"]'
kill -TERM "$(_gantryd_of "$second")"
wait "$second"
assert_eq "$?" 0 "exit after a signal while starting"
[ ! -e "$T/second.sock" ] || fail "the second one left its socket behind"
stop_daemon

# A listener's port that is taken is 69 too.
daemon_run
other="store.disks=[{path: $T/other, size: 64MiB}]"
mkdir "$T/other"
try 0 nic "$G" -c "$T/gantryd.yaml" -o "$other" --format
try 69 nic "$G" -c "$T/gantryd.yaml" -o "$other" -o "listen=[{address: \"$S3\", dialect: scality}]" \
	-o admin.address=none -o admin.socket=none
says "$S3"
_end_daemon INT
assert_eq "$DAEMON_RC" 0 "exit after SIGINT"
exit 0
