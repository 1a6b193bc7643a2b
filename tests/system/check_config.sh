#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# gantryd --check-config: run by root it judges as the daemon's user, who owns store.state_dir; disks that a daemon has open are compared with
# those that this daemon names; it says "good" of nothing that it has not looked at.
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' DISKS=3 DISK_SIZE=64MiB BUCKETS='' COPIES=1
MORE="auth: { credentials_file: \"$T/keys.yaml\" }"
echo '- { access_key: AKADMIN, secret_key: admin/secret+0 }' >"$T/keys.yaml"
chmod 600 "$T/keys.yaml"
G=$BUILD/gantryd
check() { # STATUS WORDS OPTIONS...: exit status and text; "good" stands only with status 0
	local rc=0
	"$G" -c "$T/gantryd.yaml" "${@:3}" --check-config >"$T/said" 2>&1 || rc=$?
	assert_eq "$rc" "$1" "--check-config ${*:3}: $(<"$T/said")"
	grep -qE -- "$2" "$T/said" || fail "--check-config ${*:3} does not say $2: $(<"$T/said")"
	[ "$rc" = 0 ] || ! grep -q 'yaml: good' "$T/said" || fail "good with $rc: $(<"$T/said")"
}

third="{path: $T/disk2, size: 64MiB}"

# ---- beside a daemon ----
start_daemon
U1=$(curl_admin /disks | json uuid 1)
check 0 'yaml: good; the running daemon has these disks open, and serves from them$'
ln -s "$T/disk1" "$T/link"
check 0 'yaml: good; the running' -o "store.disks=[{path: $T/disk0, size: 64MiB}, {path: $T/link, size: 64MiB}, $third]"
check 69 "^store: not looked at: .*disk[012]: in use" -o admin.socket=none
check 69 'the daemon cannot be asked: admin.socket is none' -o admin.socket=none
check 69 'the daemon cannot be asked: .*/away.sock: No such file' -o "admin.socket=$T/away.sock"
check 69 "not looked at: $T/disk3: the daemon has no disk at this path" -o "store.disks=[{path: $T/disk0, size: 64MiB}, {path: $T/disk1, size: 64MiB}, $third, {path: $T/disk3, size: 64MiB}]"
check 69 "not looked at: disk ${U1::8} $T/disk1 serves, and store.disks does not name it" -o store.state_dir=none -o "store.disks=[{path: $T/disk0, size: 64MiB}, $third]"
kill_daemon
# One that is missing, as the configuration allows or not.
mv "$T/disk1" "$T/away"
daemon_run -o "store.accept_missing=[\"$U1\"]"
check 0 'yaml: good; the running' -o "store.accept_missing=[\"$U1\"]"
check 69 "not looked at: disk ${U1::8} $T/disk1 missing"
stop_daemon
mv "$T/away" "$T/disk1"
check 0 'yaml: good$'
# A configuration that another program writes.
"$G" -c /dev/stdin --check-config >"$T/said" 2>&1 < <(cat "$T/gantryd.yaml") || fail "a pipe: $(<"$T/said")"
grep -q 'stdin: good$' "$T/said" || fail "a pipe: $(<"$T/said")"
# What a start reads beside them.
check 78 "admin.token_file: .*$T/no-token" -o "admin.token_file=$T/no-token"

# ---- by root, for another user ----
if [ "$(id -u)" = 0 ]; then
	chmod 755 "$T"
	mkdir "$T/state"
	chown -R 65534:65534 "$T/state" "$T/disk0" "$T/disk1" "$T/disk2" "$T/keys.yaml"
	chmod 644 "$T/gantryd.yaml"
	state() { check "$1" "$2" -o "store.state_dir=$T/state" "${@:3}"; }
	name=$(getent passwd 65534 | cut -d: -f1)
	state 0 "yaml: good for user ${name:-65534}$"
	# Root could read and write all of these.
	chown 0 "$T/disk1"
	chmod 700 "$T/disk1"
	state 69 "^store: not looked at: $T/disk1"
	chown 65534 "$T/disk1"
	chown 0 "$T/keys.yaml"
	state 78 'keys.yaml: Permission denied'
	chown 65534 "$T/keys.yaml"
	chmod 600 "$T/gantryd.yaml"
	state 78 'gantryd.yaml: cannot read it: Permission denied'
	chmod 644 "$T/gantryd.yaml"
	# One whose directory is root's own: the keys of another user are refused.
	check 78 'keys.yaml: belongs to user 65534; it must be the daemon' -o store.state_dir=none
	state 0 "yaml: good for user"
else
	echo "not root: what root judges for another user was not looked at"
fi
