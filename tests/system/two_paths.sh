#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two daemons of one machine reach one store by two paths whose locks do not see each other (an overlay, and the directory below it): while the first
# serves, nothing else opens the store, also from a PID namespace in which the first is not visible. One line, exit 69, and nothing is written. After the
# first was killed, a start goes on: at once where it is seen to be gone, otherwise after two heartbeats.
DISK_SIZE=96MiB DISKS=2
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
unshare -m true 2>/dev/null || skip "no mount namespace of our own (root is needed)"
grep -qw overlay /proc/filesystems || skip "no overlay file system in this kernel"
export GANTRY_STORE_STATE_DIR=none G=$BUILD/gantryd T
mkdir "$T"/{src,lower,work,mnt}
cat >"$T/by_overlay" <<-'END'
	#!/bin/bash
	mount -t overlay gantry -o "lowerdir=$T/lower,upperdir=$T/src,workdir=$T/work" "$T/mnt" || exit 99
	exec "$@"
END
chmod +x "$T/by_overlay"
write_config
sed -i "s|$T/disk|$T/src/disk|; s|^admin:.*|admin: { address: \"127.0.0.1:0\", socket: \"$T/admin.sock\" }|" "$T/gantryd.yaml"
sed "s|$T/src/|$T/mnt/|; s|admin.sock|other.sock|" "$T/gantryd.yaml" >"$T/other.yaml"
"$G" -c "$T/gantryd.yaml" --format >>"$T/daemon.log" 2>&1 || fail "--format"
# other RC WRAP... -- WORDS...: the second gantryd, by the other path
other() {
	local rc=0 want=$1 wrap=()
	shift
	while [ "$1" != -- ]; do wrap+=("$1"); shift; done
	shift
	timeout 120 unshare -m "${wrap[@]}" "$T/by_overlay" "$G" -c "$T/other.yaml" -o store.lock_wait=0s "$@" >"$T/said" 2>&1 </dev/null || rc=$?
	assert_eq "$rc" "$want" "${wrap[*]} $*: $(<"$T/said")"
}
in_use() { grep -q "$T/mnt/disk[01]: in use by host .*process $DAEMON_PID).*; stop gantryd there first" "$T/said" || fail "it does not name the process: $(<"$T/said")"; }
sums() { (cd "$T/src" && cksum disk?/super* disk?/log disk?/seg*); }

daemon_run
curl -sS --fail -X PUT "$URL_S3/bkt" -o /dev/null || fail "bucket"
curl_s3 /bkt/one -T "$T/gantryd.yaml" || fail "PUT"
# After its last record a store writes a stamp of its own; the restart has nothing to write any more.
stop_daemon
daemon_run
settle
sums >"$T/before"
other 69 --
in_use
assert_eq "$(grep -c 'in use by' "$T/said")" 1 "one line: $(<"$T/said")"
other 69 -- --format --force
in_use
other 69 -- --fsck --repair --yes
in_use
# Where its process is not visible it is its heartbeats that are seen.
if unshare -pf --mount-proc true 2>/dev/null; then
	other 69 -pf --mount-proc --
	grep -q 'in use by host' "$T/said" || fail "another PID namespace: $(<"$T/said")"
	other 69 -pf -- # with a /proc of the outer one
	grep -q 'in use by host' "$T/said" || fail "another PID namespace, the same /proc: $(<"$T/said")"
fi
sums >"$T/after"
cmp -s "$T/before" "$T/after" || fail "something was written: $(diff "$T/before" "$T/after")"
[ "$(curl_admin /healthz | json status)" = ok ] || fail "the first is disturbed: $(curl_admin /healthz)"
curl_s3 /bkt/two -T "$T/gantryd.yaml" || fail "PUT after that"

# ---- a process that is stopped is not gone ----
kill -STOP "$DAEMON_PID"
other 69 --
in_use
kill -CONT "$DAEMON_PID"

# ---- gone: a restart goes on at once, by either path ----
kill_daemon
: >"$T/daemon.log"
DAEMON_WRAP="unshare -m $T/by_overlay"
cp "$T/gantryd.yaml" "$T/first.yaml"
cp "$T/other.yaml" "$T/gantryd.yaml"
daemon_run
! grep -q 'did not close it' "$T/daemon.log" || fail "a restart waits for a process that is gone"
curl_s3 /bkt/two | cmp - "$T/first.yaml" || fail "an object is lost"
kill_daemon

# ---- gone, and in a PID namespace of its own: the usual wait ----
if unshare -pf --mount-proc true 2>/dev/null; then
	DAEMON_WRAP="unshare -mpf --kill-child --mount-proc $T/by_overlay"
	daemon_run
	grep -q 'did not close it: waiting 10 s' "$T/daemon.log" || fail "a start in another PID namespace does not wait"
	curl_s3 /bkt/one | cmp - "$T/first.yaml" || fail "an object is lost"
	stop_daemon
fi
