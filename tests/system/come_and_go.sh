#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Devices that are not there when the daemon starts: drivers that load late, with rdma.devices auto and as a list; representors; an address
# that comes back in another row of the GID table; a port that says twice that it is active.
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=3
RDMA='{ allow_special: [loopback, self] }'
nic "$BUILD/gantryd" --list-devices >/dev/null || fail "--list-devices"
for d in 0 1 2; do softnicctl device $d lost; done
start_daemon
rails() {
	local page device state i
	page=$(curl_admin /rails)
	read -ra device <<<"$(json device <<<"$page")"
	read -ra state <<<"$(json state <<<"$page")"
	for i in "${!device[@]}"; do device[i]+=:${state[i]:-}; done
	echo "${device[*]}"
}
rails_are() { [ "$(rails)" = "$1" ]; }
healthz() { curl_admin /healthz -o "$T/health" && jq -r .status "$T/health"; }
look() { curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail "reload"; }
assert_eq "$(rails)" "" "rails without a device"
assert_eq "$(healthz)" ok "no RDMA at all is no reason"
bytes pattern:7 1M >"$T/data"
gantry put "$T/data" "$URL_S3/bkt/o" >"$T/out" 2>&1 || fail "put without a device: $(<"$T/out")"

# The first comes: it is looked for.
softnicctl device 0 back
wait_for 60 rails_are mlx5_0:up
wait_for 60 rdma_works
# The third is a representor: its port has no GID table.  The second is found at once when somebody says so.
softnicctl port 2 gids off
softnicctl device 2 back
softnicctl device 1 back
look
wait_for 60 rails_are "mlx5_0:up mlx5_1:up"
put_by() { gantry --require-rdma --device "$1" put "$T/data" "$URL_S3/bkt/$1"; }
moved() { curl_admin /rails | /usr/bin/python3 -c 'import json, sys; print(*[r["device"] for r in json.load(sys.stdin) if r["read_bytes"]])'; }
by_second() { put_by mlx5_1 && [ "$(moved)" = "mlx5_0 mlx5_1" ]; }
second() { softnicctl port 0 down; wait_for 60 rails_are "mlx5_0:down mlx5_1:up"; wait_for 60 by_second; softnicctl port 0 up; wait_for 60 rails_are "mlx5_0:up mlx5_1:up"; }
second
assert_eq "$(healthz)" ok "$(<"$T/health")"

# An address goes and comes back, in another row.
softnicctl gid 0 del 127.0.0.1
gone() { ! curl_admin /rails | head -1 | grep -q 'gid":"::ffff:127.0.0.1"'; }
wait_for 60 gone
softnicctl gid 0 add 127.0.0.1/8
there() { curl_admin /rails | head -1 | grep -q 'gid":"::ffff:127.0.0.1"'; }
wait_for 60 there
softnicctl port 0 again
softnicctl port 0 again
serves_rdma || fail "after the address came back"
put_by mlx5_0 >/dev/null || fail "after the address came back"
assert_eq "$(rails)" "mlx5_0:up mlx5_1:up" "after two events for one change"
stop_daemon

# As a list: what is missing is said, and the rest serves; then it comes.
softnicctl device 1 lost
RDMA='{ devices: [mlx5_0, mlx5_1], allow_special: [loopback, self] }'
write_config
daemon_run
assert_eq "$(rails)" "mlx5_0:up" "without the second"
wait_for 60 grep -q 'rdma.devices: mlx5_1: no such device' "$T/daemon.log"
assert_eq "$(healthz)" degraded "a device that was named and is not there"
grep -q 'rdma.devices: mlx5_1: no such device' "$T/health" || fail "$(<"$T/health")"
assert_eq "$(jq -r '.reasons[] | select(.text | test("no such device")) | .code' "$T/health")" device_missing
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200 "ready all the same"
serves_rdma || fail "by the first"
softnicctl device 1 back
found() { [ "$(rails)" = "mlx5_0:up mlx5_1:up" ] && [ "$(healthz)" = ok ]; }
wait_for 60 found
second
assert_alive
