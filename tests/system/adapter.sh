#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What adapters and networks do and a plain softnic does not: every packet is marked as configured, in both directions; bytes of WRITEs
# land after their initiator was flushed, and rdma.linger waits for them; firmware has few queue pairs, or no targets on a bond.
NICS=2
RDMA='{ devices: [mlx5_0], allow_special: [loopback, self], channels: 16, traffic_class: 104, linger: 1s }'
MORE='limits: { s3_progress: 60s, s3_total: 60s, scality_total: 60s }'
OWN_NET=${OWN_NET:-1}
BUFFERS=48MiB
. "$(dirname "$0")/lib.sh"
start_daemon
reload() { # SED-SCRIPT: the file, changed
	sed -i "$1" "$T/gantryd.yaml"
	curl -sS --fail -o /dev/null --unix-socket "$T/admin.sock" -X POST http://x/control/reload || fail reload
}

# ---- how packets are marked: the daemon's WRITEs, and what the client answers READs with

bytes pattern:3 300000 >"$T/in"
marks() { # WORDS of gantry: a put and a get, and what was on the wire
	softnicctl trace on "$T/trace" 1024
	gantry --device mlx5_0 --require-rdma "$@" put "$T/in" "$URL_S3/bkt/marked" >/dev/null || fail "put $*"
	gantry --device mlx5_0 --require-rdma "$@" get "$URL_S3/bkt/marked" "$T/out" >/dev/null || fail "get $*"
	softnicctl trace off
	assert_same "$T/in" "$T/out"
	softnicctl trace show "$T/trace" | awk '!/^#/ { print $6, $16, $20, $19, $22 }' | sort -u
}
assert_eq "$(marks)" "read 104 96 127.0.0.1 127.0.0.1
write 104 96 127.0.0.1 127.0.0.1" "marked by default: op, class, far class, addresses"
assert_eq "$(marks --traffic-class 72)" "read 104 72 127.0.0.1 127.0.0.1
write 104 72 127.0.0.1 127.0.0.1" "marked as asked for"

# ---- bytes that land after the initiator was flushed

landed() { softnicctl trace show "$T/late" | awk '$6 == "write" && $11 == 4096 { n++ } END { exit !n }'; }
late_get() { # An answer without the bytes. The window is the client's again at once, and is looked at when the bytes have landed.
	rm -f "$T/seen" "$T/late"
	softnicctl trace on "$T/late" 64
	softnicctl rule add op=write delay=3600s limit=1 >/dev/null
	raw_try <<-END &
		window w 4096 pattern:9
		request GET /bkt/old x-amz-rdma-token:@w
		expect status 500
		fill w pattern:10
		waitfile $T/seen
		expect untouched w
	END
	local client=$! rc=0
	wait_for 60 landed
	touch "$T/seen"
	wait $client || rc=$?
	softnicctl rule clear
	softnicctl trace off
	return $rc
}
raw -e 'window o 4096 pattern:5; request PUT /bkt/old x-amz-rdma-token:@o content-length:0; expect status 200'
softnicctl firmware ghost=20ms
# What is flushed at its deadline, and nothing else, has a short one.
reload 's/s3_progress: 60s, s3_total: 60s/s3_progress: 1s, s3_total: 1s/'
late_get || fail "bytes landed after the answer, and rdma.linger is longer"
reload 's/linger: 1s/linger: 0ms/'
# On a machine with other work the answer may come behind them; then it is tried again.
softnicctl firmware ghost=1s
for i in 1 2 3 4 5; do
	late_get >/dev/null 2>&1 || break
	[ "$i" -lt 5 ] || fail "without a linger they do not: this test shows nothing"
done
softnicctl firmware ghost=0
reload 's/s3_progress: 1s, s3_total: 1s/s3_progress: 60s, s3_total: 60s/'
serves_rdma

# ---- firmware that has less

softnicctl rule add op=create_dct error=EOPNOTSUPP >/dev/null
out=$(gantry --transport dc ports 2>&1) && fail "DC without targets"
assert_match "$out" 'makes no DC targets \(a bonded port needs firmware that has lag_dct\)'
gantry --require-rdma put "$T/in" "$URL_S3/bkt/http" >"$T/said"
assert_eq $? 4 "a put without targets goes over HTTP"
softnicctl rule clear
serves_rdma
stop_daemon
# No room for all of the channels: it starts with fewer, says so, and each of four cores serves, though the first could have taken all.
sed -i 's/^cores:.*/cores: 4/' "$T/gantryd.yaml"
softnicctl firmware qps=8
daemon_run
wait_for 60 grep -q 'Cannot allocate memory' "$T/daemon.log"
all_cores() {
	nic "$BUILD/tools/rawclient" -s "$S3" >"$T/all" 2>&1 <<-'END'
		windows w 32 64K
		connections 32
		parallel 32 GET /bkt/marked x-amz-rdma-token:@w%i range:bytes=0-65535
		expect status 206
		expect header x-amz-rdma-reply 206
	END
}
RAW_DEVICE=mlx5_1 wait_for 60 all_cores || fail "$(<"$T/all")"
assert_alive
stop_daemon

# ---- memory that is registered stays where it is, on both sides, and counts against the limit of locked memory

softnicctl firmware qps=0
export SOFTNIC_PIN=frames
daemon_run
serves_rdma
gantry --require-rdma put "$T/in" "$URL_S3/bkt/pinned" >/dev/null || fail "a put with pages that are watched"
gantry --require-rdma get "$URL_S3/bkt/pinned" "$T/out" >/dev/null || fail "a get with pages that are watched"
assert_same "$T/in" "$T/out"
assert_alive
out=$(SOFTNIC_PIN=count nic prlimit --memlock=65536:65536 "$BUILD/gantry" --require-rdma put "$T/in" "$URL_S3/bkt/http")
assert_eq $? 4 "a put without locked memory goes over HTTP"
assert_match "$out" '[Rr]egister|memory' "why: $out"
