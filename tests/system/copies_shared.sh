#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Disks on one file system are a reason of health from the first bucket with two copies on, also for a disk that is added; with each disk on a file system
# of its own there is none. A mute takes it out of the status.
DISK_SIZE=96MiB DISKS=2 SHARED_IS_SEEN=1
. "$(dirname "$0")/lib.sh"
NO_NIC=1 RDMA='{ devices: none }' CORES=1
export GANTRY_STORE_STATE_DIR=none G=$BUILD/gantryd T
health() { curl_admin /healthz | jq -r "$1"; }
shared() { health '.reasons[] | select(.code == "disks_shared") | .text'; }
is_said() { [ -n "$(shared)" ]; }

# ---- on file systems of their own ----
if unshare -m true 2>/dev/null; then
	cat >"$T/wrap" <<-END
		#!/bin/bash
		for d in 0 1 2; do mkdir -p "$T/disk\$d" && mount -t tmpfs none "$T/disk\$d" && mkdir "$T/disk\$d/d" || exit 99; done
		"\$1" -c "$T/gantryd.yaml" --format >>"$T/daemon.log" 2>&1 || exit 98
		exec "\$@"
	END
	chmod +x "$T/wrap"
	write_config
	sed -i "s|$T/disk\([01]\)|&/d|" "$T/gantryd.yaml"
	DAEMON_WRAP="unshare -m $T/wrap" daemon_run
	gantry mb "$URL_S3/two" --copies 2 || fail "mb"
	curl_s3 /two/one -T "$T/gantryd.yaml" || fail "PUT"
	assert_eq "$(shared)" '' "disks on file systems of their own"
	assert_eq "$(curl_admin /healthz | json status)" ok
	# A directory beside a disk of the store.
	gantry --admin "$T/admin.sock" disk add "$T/disk1/more" --size 96MiB >"$T/said" || fail "disk add: $(<"$T/said")"
	wait_for 60 is_said
	shared | grep -q "$T/disk1/d and $T/disk1/more are on one device or file system" || fail "$(shared)"
	stop_daemon
	rm -rf "$T"/disk?
fi

# ---- on one ----
start_daemon
assert_eq "$(shared)" '' "without two copies"
gantry mb "$URL_S3/two" --copies 2 || fail "mb"
wait_for 60 is_said
shared | grep -q "$T/disk0 and $T/disk1 are on one device or file system.*both copies" || fail "$(shared)"
assert_eq "$(curl_admin /healthz | json status)" degraded
assert_eq "$(metric gantry_health_reason 'code="disks_shared"')" 1
stop_daemon
daemon_run
is_said || fail "not after a restart"
gantry --admin "$T/admin.sock" health mute disks_shared --for 1h >/dev/null || fail "mute"
assert_eq "$(curl_admin /healthz | json status)" ok
