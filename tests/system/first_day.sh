#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an adapter is like on its first day: fewer READs than it says, ports that come up after the daemon, hundreds of GIDs, names
# that change, a firmware that takes its time; and what the daemon shows of it.
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=2
# Fifty GETs have buffers on whichever core their connections come to.
export GANTRY_MEMORY_BUFFERS=256MiB
gids=127.0.0.1
for ((i = 0; i < 300; i++)); do gids+=,10.7.$((i / 250)).$((i % 250 + 1)); done
export SOFTNIC_GIDS="$gids;127.0.0.2" SOFTNIC_DC_RD_ATOMIC=5
# A GID table of 604 rows, and one of 4.
nic "$BUILD/gantryd" --list-devices >"$T/list" || fail "--list-devices"
grep -q 'mlx5_0: .*DC, 5 READs at once\|mlx5_0: .*DC, 4 READs at once' "$T/list" || fail "the limit of READs: $(head -3 "$T/list")"
assert_eq "$(grep -c '^    GID [0-9]' "$T/list")" 608 "rows of the GID tables"

# Down when the daemon starts: a rail all the same, and no reason to worry about.
softnicctl port mlx5_0 down
softnicctl port mlx5_1 down
start_daemon
rails() { curl_admin /rails | json state; }
assert_eq "$(rails)" "down down" "two rails"
assert_eq "$(curl_admin /healthz | json status)" ok "a port without a cable"
softnicctl port mlx5_0 up
up() { [ "$(rails)" = "up down" ]; }
wait_for 60 up
wait_for 60 rdma_works
softnicctl port mlx5_1 up
both() { [ "$(rails)" = "up up" ]; }
wait_for 60 both
# What has been up once is missed.
softnicctl port mlx5_1 down
wait_for 60 up
assert_eq "$(curl_admin /healthz | json status)" degraded "a port that was up"
gantry --quiet --admin "$ADMIN" status >"$T/out" 2>"$T/err" && fail "status --quiet: 0 while the daemon is not well"
[ ! -s "$T/out" ] || fail "status --quiet: $(<"$T/out")"
grep -q '^  ! rail_down: rail ' "$T/err" || fail "status --quiet does not say why: $(<"$T/err")"
softnicctl port mlx5_1 up
wait_for 60 both
assert_eq "$(grep -c 'mlx5_0:1 has 128 GIDs; the last 64 are not used' "$T/daemon.log")" 1 "the GIDs that there is no room for, said once"
wait_for 60 grep -q 'rail 0: .* 4 reads at once' "$T/daemon.log"

# The completion queues of the cores are on vectors of their own, on each device.
softnicctl stats --json "$DAEMON_PID" >"$T/stats"
/usr/bin/python3 - "$T/stats" "$CORES" <<'PY' || fail "completion vectors: $(<"$T/stats")"
import json, sys
cqs = json.load(open(sys.argv[1]))[0]["cqs"]
assert min(cqs[:int(sys.argv[2])]) >= 2, cqs
PY

# A firmware that needs a millisecond for each command, and fifty transfers that end at once because their client does: all channels
# are well again, none is taken for lost.
softnicctl rule add op=modify_qp delay=1ms >/dev/null
softnicctl rule add op=write hold=3600s >/dev/null
nic "$BUILD/tools/rawclient" -s "$S3" >"$T/killed" 2>&1 <<-'END' &
	windows g 50 64K
	connections 50
	parallel 50 GET /bkt/good x-amz-rdma-token:@g%i range:bytes=0-65535
END
job=$!
held() { [ "$(softnicctl rule list | sed -n 's/.*op=write.* hits=//p')" -ge 50 ]; }
wait_for 60 held
{ _kill_tree "$job"; wait "$job"; } 2>/dev/null
repaired() { no_requests && [ "$(metric gantry_channels '"recovering"')" = 0 ]; }
wait_for 60 no_requests
softnicctl rule clear
wait_for 60 rdma_works
! grep -q 'completions are missing' "$T/daemon.log" || fail "$(grep -c 'completions are missing' "$T/daemon.log") channels were destroyed for nothing"

# Channels that cannot be made: the rail is up and no use, which the log says with step and value; a proxy is told where it asked for it.
healthz() { curl_admin /healthz -o "$T/health" && jq -r .status "$T/health"; }
softnicctl rule add op=modify_qp error=EINVAL >/dev/null
stop_daemon
sed -i 's/^rdma: { /rdma: { require: true, /' "$T/gantryd.yaml"
daemon_run
none() { [ "$(healthz)" != ok ] && jq -r '.reasons[] | .code + ": " + .text' "$T/health" | grep -q '^rail_unusable: .*none of its channels can be used'; }
wait_for 60 none
wait_for 60 grep -q 'an initiator is refused from RESET to INIT (.*max_rd_atomic' "$T/daemon.log"
softnicctl rule clear
well() { [ "$(healthz)" = ok ]; }
wait_for 60 well
assert_eq "$(curl_admin /readyz -o /dev/null -w '%{http_code}')" 200 "rdma.require with rails"
softnicctl port mlx5_0 down
softnicctl port mlx5_1 down
wanting() { [ "$(curl_admin /readyz -o "$T/ready.json" -w '%{http_code}')" = 503 ] && [ "$(jq -r '.reasons[0] | .code + ": " + .text' "$T/ready.json")" = "no_rdma_rail: rdma.require is set, and no RDMA rail is up" ]; }
wait_for 60 wanting
softnicctl port mlx5_0 up
softnicctl port mlx5_1 up
wait_for 60 both

# Two adapters are reset at once and come back with each other's names: each rail is on its own adapter.
gid_of() { curl_admin /rails | /usr/bin/python3 -c 'import json, sys; print(*[r["gid"] for r in json.load(sys.stdin)])'; }
before=$(gid_of)
softnicctl device 0 name mlx5_1
softnicctl device 1 name mlx5_0
softnicctl device 0 reset
softnicctl device 1 reset
reopened() { [ "$(curl_admin /rails | grep -o '"reopens":1' | wc -l)" = 2 ] && both; }
wait_for 60 reopened
assert_eq "$(gid_of)" "$before" "each on its own adapter"
wait_for 60 rdma_works
assert_alive
