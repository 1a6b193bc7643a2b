#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-ui: the status page in headless Chromium, in front of a daemon that has work.  SHOTS=DIR keeps the screenshots
# (docs/images has the last ones that were looked at).
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
for p in /usr/bin/chromium /usr/bin/chromedriver; do [ -x $p ] || fail "no $p: scripts/deps ui"; done
/usr/bin/python3 -c 'import selenium' 2>/dev/null || fail "no python3-selenium: scripts/deps ui"
SHOTS=${SHOTS:-$T/shots}
mkdir -p "$SHOTS"

# look STATE: the page while the daemon is in this state.
look() {
	HOME=$T /usr/bin/python3 "$ROOT/tests/ui/page.py" "$URL_ADMIN/" "$SHOTS" "$1" >"$T/page.$1" || { cat "$T/page.$1"; fail "the page: $1"; }
	grep -v '^ok ' "$T/page.$1"
	cat "$T/page.$1" >>"$T/page"
}
# A daemon with a new store.
again() {
	rm -rf "$T"/disk*
	start_daemon
}
NICS=2 DISKS=3 DISK_SIZE=256MiB
RDMA='{ allow_special: [loopback, self], rc: { shim: on, per_peer: 3, connect_rate: 1000, idle: 3600s } }'
/usr/bin/openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 30 -subj /CN=localhost 2>/dev/null ||
	fail "no certificate"
chmod 600 "$T/key.pem"
LISTEN="  - { address: \"127.0.0.1:0\", dialect: s3, anonymous: true, tls_certificate: \"$T/cert.pem\", tls_key: \"$T/key.pem\" }"
start_daemon
# Objects both ways, on both wires, until the browser is done.
bytes pattern:1 400000 >"$T/in"
work() {
	while [ ! -e "$T/over" ]; do
		raw >"$T/work.log" 2>&1 <<-END
			window w 3M pattern:7
			request PUT /bkt/a x-amz-rdma-token:@w content-length:0
			expect status 200
			request GET /bkt/a x-amz-rdma-token:@w
			expect status 200
		END
		curl -sS -T "$T/in" "$URL_S3/bkt/b" -o /dev/null
		curl -sS "$URL_S3/bkt/b" -o /dev/null
	done
}
# One decline to show: a token of a kind that is not served.
softnicctl port mlx5_0 down
softnicctl port mlx5_1 down
rails_up_are() { [ "$(metric gantry_rail_up)" = "$1" ]; }
wait_for 10 rails_up_are 0
raw <<-END
	window w 1M pattern:7
	request PUT /bkt/c x-amz-rdma-token:@w content-length:0
	expect header x-amz-rdma-reply 501
END
softnicctl port mlx5_0 up
softnicctl port mlx5_1 up
# Work is told of a rail that is down as well, and ends at what it does not expect.
wait_for 10 rails_up_are 2
# Connections of an RC client, of which one is refused.
raw <<-END
	qp a
	connect a
	qp b
	connect b
	qp c
	connect c
	qp d
	request POST /.s3rdma-rc/connect x-amz-rdma-token:@d_token x-amz-rdma-psn:@d_psn content-length:0
	expect status 503
END
work &
worker=$!
wait_for 10 eval 'curl_admin /healthz | grep -q "\"ok\""'
HOME=$T /usr/bin/python3 "$ROOT/tests/ui/page.py" "$URL_ADMIN/" "$SHOTS" >"$T/page"
rc=$?
cat "$T/page"
[ $rc = 0 ] || fail "the page"
touch "$T/over"
wait $worker
assert_alive
gantry mb "$URL_S3/two" --copies 2 || fail "gantry mb --copies 2"
curl -sS --fail -X PUT --data-binary @"$T/in" -o /dev/null "$URL_S3/two/k[1-20]" || fail "PUTs"
stop_daemon

# ---- while one of its disks is drained ----
GANTRY_STORE_MOVE_RATE=20KiB daemon_run
for i in $(seq 1 18); do curl -sS -T "$T/in" "$URL_S3/bkt/m$i" -o /dev/null || fail "PUT"; done
gantry --admin "$T/admin.sock" disk drain "$T/disk2" >"$T/said" || fail "drain: $(cat "$T/said")"
look moving
gantry --admin "$T/admin.sock" disk cancel >"$T/said" || fail "cancel: $(cat "$T/said")"
stop_daemon

# ---- without one of its disks ----
mv "$T/disk1" "$T/away"
uuid=$("$BUILD/gantryd" -c "$T/gantryd.yaml" --check-config 2>&1 | sed -n 's/.*gantryd --forget \([-0-9a-f]*\),.*/\1/p')
sed -i "s|^store:|store:\n  accept_missing: [\"$uuid\"]|" "$T/gantryd.yaml"
daemon_run
look missing
stop_daemon

# ---- with a disk that failed ----
mkdir "$T/fault"
DAEMON_WRAP="$BUILD/tools/diskfault $T/fault" DISKS=3 DISK_SIZE=64MiB
again
echo "write flush" >"$T/fault/disk2"
failed() { curl_s3 "/bkt/f$((n++))" -T "$T/in" -o /dev/null 2>>"$T/curl"; [[ $(curl_admin /disks) == *'"state":"failed"'* ]]; }
n=0
wait_for 60 failed
look failed
stop_daemon

# ---- with a full disk ----
DAEMON_WRAP='' DISKS=2 DISK_SIZE=64MiB
again
for i in $(seq 400); do curl -sS -T "$T/in" "$URL_S3/bkt/full$i" -o /dev/null -w '%{http_code}\n'; done >"$T/answers"
[ "$(grep -c 507 "$T/answers")" -gt 9 ] || fail "no disk is full: $(sort "$T/answers" | uniq -c)"
look full
stop_daemon

# ---- with a certificate near its end, a reload that failed, and a daemon that is gone ----
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 5 -subj /CN=localhost -keyout "$T/key.pem" -out "$T/cert.pem" 2>/dev/null ||
	fail "no certificate"
chmod 600 "$T/key.pem"
LISTEN="  - { address: 127.0.0.1:0, dialect: s3, anonymous: true, tls_certificate: $T/cert.pem, tls_key: $T/key.pem }" DISKS=1
again
look certificate
stop_daemon
LISTEN=''
again
# A change that needs a restart, and after it a file that cannot be used.
sed -i 's/ buffers: [^,}]*/ buffers: 128MiB/' "$T/gantryd.yaml"
kill -HUP "$DAEMON_PID"
wait_for 60 grep -q 'memory.buffers needs a restart' "$T/daemon.log"
cp "$T/gantryd.yaml" "$T/good.yaml"
echo 'no_such_key: 1' >>"$T/gantryd.yaml"
kill -HUP "$DAEMON_PID"
look reload
cp "$T/good.yaml" "$T/gantryd.yaml"
kill -HUP "$DAEMON_PID"
rm -f "$SHOTS/stop-it"
look lost &
looker=$!
until [ -e "$SHOTS/stop-it" ] || ! kill -0 $looker 2>/dev/null; do pause 0.2; done
rm -f "$SHOTS/stop-it"
stop_daemon
wait $looker || fail "the page without its daemon"
echo "check-ui: $(grep -c '^ok ' "$T/page") passed, 0 failed, 0 skipped"
