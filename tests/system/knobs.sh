#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Settings for speed, each of which shows: four ways to each client, more READs at once than usual, relaxed ordering, doorbells of a
# core's own, which a driver may not have.
BUFFERS=48MiB
. "$(dirname "$0")/lib.sh"
CORES=4
export SOFTNIC_DC_RD_ATOMIC=48
RDMA='{ allow_special: [loopback, self] }'
start_daemon
rail() { curl_admin /rails | /usr/bin/python3 -c 'import json, sys; r = json.load(sys.stdin)[0]; print('"$1"')'; }
assert_eq "$(rail 'r["max_rd_atomic"], r["traffic_class"], len(r["path_leases"])')" "16 96 4" "as they come"
serves_rdma
# A connection is a core's: sixteen of them are on all four, each of which has a way of its own to the client.
spread() {
	nic "$BUILD/tools/rawclient" -s "$S3" >/dev/null <<-'END'
		windows w 16 64K
		connections 16
		parallel 16 GET /bkt/good x-amz-rdma-token:@w%i range:bytes=0-65535
		expect status 206
		parallel 16 GET /bkt/good x-amz-rdma-token:@w%i range:bytes=0-65535
		expect status 206
	END
	[ "$(rail 'sum(1 for n in r["path_leases"] if n)')" = 4 ]
}
wait_for 60 spread
stop_daemon

RDMA='{ allow_special: [loopback, self], paths: 2, relaxed_ordering: on, thread_domains: true, max_rd_atomic: 40, traffic_class: auto }'
write_config
nic "$BUILD/gantryd" -c "$T/gantryd.yaml" --list-devices >"$T/list"
grep -q 'DC, 40 READs at once, relaxed ordering on, thread domains on' "$T/list" || fail "--list-devices: $(head -1 "$T/list")"
grep -q 'class 96, 2 paths' "$T/list" || fail "--list-devices: $(sed -n 2p "$T/list")"
echo 'log: { level: debug, access: false }' >>"$T/gantryd.yaml"
daemon_run
assert_eq "$(rail 'r["max_rd_atomic"], r["relaxed_ordering"], len(r["path_leases"])')" "40 True 2" "as they were set"
logged 4 'has doorbells of its own'
serves_rdma
# A device that is opened anew has them all again.
softnicctl device 0 reset
again() { [ "$(grep -c 'has doorbells of its own' "$T/daemon.log")" = 8 ]; }
wait_for 60 again
wait_for 60 rdma_works
stop_daemon

# More READs than it takes: as many as it does.
sed -i 's/max_rd_atomic: 40/max_rd_atomic: 255/' "$T/gantryd.yaml"
daemon_run
assert_eq "$(rail 'r["max_rd_atomic"]')" 31 "255, 127, 63, 31"
serves_rdma
assert_alive
