#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What initiators were connected with changes: the MTU, of which RoCE tells nobody, the P_Key, the source's address.  They are connected
# anew when they are free, and no transfer fails for each of them.  On InfiniBand the subnet manager gives ports other LIDs.
OWN_NET=${OWN_NET:-1}
. "$(dirname "$0")/lib.sh"
NICS=4
RDMA='{ devices: [mlx5_0], allow_special: [loopback, self], channels: 16 }'
export SOFTNIC_IB=2,3 SOFTNIC_RETRY_US=20000
start_daemon
export RAW_DEVICE=mlx5_1
bytes pattern:7 1M >"$T/data"
gantry --require-rdma --device mlx5_1 put "$T/data" "$URL_S3/bkt/o" >/dev/null || fail "put"
# Every initiator, more than once: 16 at a time.
all() {
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/all" 2>&1 <<-'END'
		windows w 16 64K
		connections 16
		parallel 16 GET /bkt/o x-amz-rdma-token:@w%i range:bytes=0-65535
		expect status 206
		parallel 16 GET /bkt/o x-amz-rdma-token:@w%i range:bytes=0-65535
		expect status 206
	END
}
bad() { curl_admin /metrics | awk '/^gantry_rdma_completions_total/ && !/status="success"/ { n += $NF } END { print n + 0 }'; }
resets() { metric gantry_dci_resets_total; }
mtu_is() { curl_admin /rails | grep -q "\"mtu\":$1,"; }
# Connected anew: all of them, and free again.
anew() { [ "$(($(resets) - before))" -ge "$(metric gantry_dci '"free"')" ] && [ "$(metric gantry_dci '"recovering"')" = 0 ]; }
renewed() { wait_for 60 anew; }
set_mtu() {
	softnicctl port 0 mtu "$1"
	softnicctl port 1 mtu "$1"
}
all || fail "before: $(<"$T/all")"

# Both ends' MTU shrinks, and a reload has the ports read again.
before=$(resets)
set_mtu 1024
curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail "reload"
wait_for 60 mtu_is 1024
renewed
all || fail "with an MTU of 1024: $(<"$T/all")"
assert_eq "$(bad)" 0 "transfers that failed"

# It grows, and nobody says so: one round of transfers finds out at most, and what they have found is used for all.
before=$(resets)
set_mtu 4096
all
wait_for 60 mtu_is 4096
renewed
lost=$(bad)
[ "$lost" -gt 0 ] || fail "path MTUs of 1024 and 4096 went together"
for ((i = 0; i < 3; i++)); do all || fail "with an MTU of 4096: $(<"$T/all")"; done
assert_eq "$(bad)" "$lost" "transfers that failed after that"

# The P_Key changes, and then the port's first address, with an event each.
before=$(resets)
softnicctl port 0 pkey 8001
renewed
all || fail "with another P_Key: $(<"$T/all")"
before=$(resets)
softnicctl gid 0 del fe80::200:5eff:fe00:100
renewed
all || fail "with another source address: $(<"$T/all")"
assert_eq "$(bad)" "$lost" "transfers that failed after that"
logged 4 'initiators are connected again'
assert_alive
stop_daemon

# LIDs: the server's, then the clients'; those that begin afterwards lose nothing at all.
RDMA='{ devices: [mlx5_2], allow_special: [loopback, self], channels: 16 }'
write_config
daemon_run
export RAW_DEVICE=mlx5_3
all || fail "on InfiniBand: $(<"$T/all")"
lid_is() { curl_admin /rails | grep -q "\"lid\":$1,"; }
softnicctl port 2 lid 0x42
wait_for 60 lid_is 66
all || fail "with another LID of the server: $(<"$T/all")"
softnicctl port 3 lid 0x43
all || fail "with another LID of the clients: $(<"$T/all")"
assert_eq "$(bad)" 0 "transfers that failed"
# One that goes on over changes of both: what was under way may be lost, once, and nothing after that.
gantry --device mlx5_3 --json bench --sizes 64k --concurrency 4 --mix get --warm-up 0 --objects 8 --time 600 "$URL_S3/bkt/b/" >"$T/bench" 2>"$T/err" &
bench=$!
moved() { metric gantry_rdma_completions_total 'status="success"'; }
go_on() { local n; n=$(moved) && wait_for 60 more_than $((n + 100)); }
more_than() { [ "$(moved)" -ge "$1" ]; }
go_on
softnicctl port 2 lid 0x52
go_on
softnicctl port 3 lid 0x53
go_on
lost=$(bad)
go_on
assert_eq "$(bad)" "$lost" "transfers that failed after that"
# The command is below the shell that runs it in the background.
for p in $bench $(cat /proc/"$bench"/task/*/children); do
	case $(readlink "/proc/$p/exe") in */gantry) kill -INT "$p" ;; esac
done
wait $bench
assert_eq $? 130 "bench, interrupted: $(<"$T/err")"
[ "$lost" -le 8 ] || fail "$lost transfers lost by four clients"
grep -q '"http_bytes":0,"not_rdma":{},"errors":0,' "$T/bench" || fail "not all by RDMA: $(<"$T/bench")"
assert_alive
