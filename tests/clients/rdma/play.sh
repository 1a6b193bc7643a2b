#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every client of clients.toml, by its own rules of success, decline and retry, against every reason of a decline, rules of rdma.decline_2xx,
# and every fault of a request: what the client believes is what the store holds.  item 37, item 67, item 103, item 118
#   QUICK=1     without the players that run at once
#   SEED=N
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SEED=${SEED:-$RANDOM}
QUICK=${QUICK:-}
# shellcheck disable=SC2034
CORES=1 DISK_SIZE=2GiB NICS=2 # mlx5_0 is the daemon's, mlx5_1 the clients'
# shellcheck source=tests/system/lib.sh
. "$HERE/../../system/lib.sh"

printf -- '- access_key: AKRULE\n  secret_key: rule-secret-1\n' >"$T/keys"
chmod 600 "$T/keys"
LISTEN=$'  - { address: "127.0.0.2:0", dialect: s3 }\n  - { address: "127.0.0.3:0", dialect: s3, anonymous: true }'
MORE="auth: { credentials_file: \"$T/keys\" }"
open=$'\n  devices: [mlx5_0]\n  allow_special: [loopback, self]'
with_rules="$open
  decline_2xx:
    - access_key: AKRULE
    - listen: \"127.0.0.3:0\""

play() { nic /usr/bin/python3 "$HERE/player.py" --device mlx5_1 --seed "$SEED" --ready "$(cat "$T/ready")" "$@" || fail "$*"; }
# libgantry itself: declined for that reason, it goes over HTTP and says so; by RDMA where the reason is "".
bytes pattern:9 300000 >"$T/nine"
libgantry() {
	local dir said
	for dir in "put $T/nine $URL_S3/bkt/nine" "get $URL_S3/bkt/nine $T/nine.back"; do
		# shellcheck disable=SC2086
		said=$(nic "$BUILD/gantry" --device mlx5_1 --json $dir) || fail "gantry $dir: $said"
		case $1:$said in
		:*'"path":"rdma"'*) ;;
		?*:*'"path":"http"'*"$1"*) ;;
		*) fail "gantry $dir, $1: $said" ;;
		esac
	done
	assert_same "$T/nine" "$T/nine.back"
	rm -f "$T/nine.back"
}
control() { curl -sS --fail --max-time 30 -o /dev/null --unix-socket "$T/admin.sock" -X POST "http://x/control/$1"; }
# The daemon goes on with another rdma section.
rdma_is() {
	RDMA=$1
	write_config
	control reload || fail "reload"
}
rail_is() { [ "$(metric gantry_rail_up)" = "$1" ]; }
port() {
	softnicctl port mlx5_0 "$1" >/dev/null || fail "softnicctl port $1"
	wait_for 10 rail_is "$2"
}

# ---- one that serves, and what may come over it ----
RDMA=$open
start_daemon
play works
libgantry ""
port down 0
play no-rail
libgantry no-rail
declined=$(metric gantry_declines_total '"no-rail"')
rdma_is "$with_rules" # a reload brings the rules, and takes them away
play --rules no-rail
[ "$(metric gantry_declines_total '"no-rail"')" -gt "$declined" ] || fail "declines are not counted by reason"
rdma_is "$open"
play --only crt,cloudian no-rail
port up 1
rdma_is "{ devices: [mlx5_0], allow_special: [] }"
play not-allowed
libgantry not-allowed
rdma_is "$open"
softnicctl rule add op=create_ah error=ETIMEDOUT >/dev/null
play --only minio-cpp,nixl-everpure,nixl-dell,crt unreachable
softnicctl rule clear >/dev/null
control drain || fail "drain"
play busy
control resume || fail "resume"
wait_for 60 grep -q 'status=501 .* declined=no-rail' "$T/daemon.log"
! grep -q 'status=501 .*fault=.*declined=\|declined=.* fault=' <(grep -v 'op=Unknown\|op=RcConnect' "$T/daemon.log") || fail "a decline is logged as a fault"

# ---- sixteen at once, well and not ----
if [ -z "$QUICK" ]; then
	rdma_is "$with_rules"
	wait_for 10 rail_is 1
	play --rules --processes 16 any &
	players=$!
	while kill -0 "$players" 2>/dev/null; do
		softnicctl port mlx5_0 flap 30 100 5 >/dev/null
		sleep 0.2
	done
	wait "$players" || fail "sixteen at once"
	softnicctl port mlx5_0 up >/dev/null
	wait_for 10 rail_is 1
	play --processes 16 works
fi
assert_alive
stop_daemon

# ---- not now: every buffer of tokens is taken, and what may wait for one waits ----
RDMA=$open
MORE="auth: { credentials_file: \"$T/keys\" }
limits: { queue: 1, s3_progress: 60s, s3_total: 60s, scality_total: 60s }"
write_config
sed -i 's/^memory:.*/memory: { buffers: 16MiB, index: 64MiB }/' "$T/gantryd.yaml"
daemon_run
serves_rdma                                      # nobody has to wait for an address handle any more
# Until the rules go, PUTs hold three quarters of the buffers, and GETs the rest; of different objects, because one disk gets half of all.
bytes pattern:9 100000 >"$T/held_object"
curl -sS --fail -T "$T/held_object" "$URL_S3/bkt/got[0-29]" || fail "PUT of 30 objects"
for op in read write; do softnicctl rule add op=$op delay=50s >/dev/null; done
all_is_taken() { [ "$(metric gantry_buffers '"large",state="free"') $(metric gantry_requests_queued)" = "0 1" ]; }
held=()
hold() { # PUTs and GETs, thirty at once
	raw >"$T/held" <<-END &
		windows w 30 100000 pattern:%i
		connections 30
		parallel 30 PUT /bkt/held%i x-amz-rdma-token:@w%i content-length:0
	END
	held+=($!)
	raw >"$T/held_gets" <<-END &
		windows w 30 100000 zero
		connections 30
		parallel 30 GET /bkt/got%i x-amz-rdma-token:@w%i content-length:0
	END
	held+=($!)
}
# A read from a cluster has more buffers for a moment: requests that come then are refused, though there is one for them after that.
hold
for ((i = 1; ; i++)); do
	pause 1
	! all_is_taken || break
	[ $i -lt 20 ] || fail "buffers are left: $(curl_admin /metrics | grep -E '^gantry_(buffers|requests_queued)[{]')"
	hold
done
play buffers
softnicctl rule clear >/dev/null
wait "${held[@]}"
wait_for 20 no_requests
stop_daemon

# ---- those that cannot at all ----
RDMA='{ devices: none }'
write_config
daemon_run
play disabled
libgantry disabled
stop_daemon
# shellcheck disable=SC2034
RDMA='{ allow_special: [loopback, self] }'
write_config
NO_NIC=1
daemon_run
NO_NIC=''
play no-device
libgantry no-device
assert_alive
stop_daemon
