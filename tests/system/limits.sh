#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 86: slow clients starve nobody, and what is used up is refused in a way that ends by itself: connections of an address,
# requests, the queue for buffers.  /livez answers throughout.
CORES=1
. "$(dirname "$0")/lib.sh"

# /livez every 50 ms, until stop_watching: each answer 200 and within 20 s, which a core that is stuck never gives.
watch_livez() {
	: >"$T/livez"
	while [ -e "$T/livez" ]; do
		curl -s -o /dev/null -m 20 -w '%{http_code}\n' "$URL_ADMIN/livez" >>"$T/livez.log" || echo late >>"$T/livez.log"
		pause 0.05
	done &
	watcher=$!
}
stop_watching() {
	rm "$T/livez"
	wait $watcher
	assert_eq "$(sort -u "$T/livez.log")" 200 "$1: /livez"
	rm "$T/livez.log"
}
fresh() {
	[ -z "$DAEMON_PID" ] || stop_daemon
	rm -rf "$T"/disk*
	start_daemon
}

# 64 that send their header, or their body, byte by byte, or read nothing of a large answer.  They hold all buffers for HTTP
# bodies; requests with tokens have others.  How long a byte may take is not the matter here, and depends on the machine.
DISK_SIZE=256MiB
fresh
bytes pattern:9 24M >"$T/big"
curl_s3 /bkt/big -T "$T/big"
watch_livez
{
	echo "timeout 60s"
	echo "window w 1M pattern:1"
	echo "request PUT /bkt/w x-amz-rdma-token:@w content-length:0"
	echo "expect status 200"
	echo "window g 1M"
	echo "connections 64"
	for ((i = 32; i < 64; i++)); do echo "start p$i GET /bkt/big"; done
	for ((i = 16; i < 32; i++)); do echo "send p$i 'PUT /bkt/slow$i HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n'"; done
	for ((i = 0; i < 16; i++)); do echo "send p$i 'GET /bkt/big HTTP/1.1\r\nx-slow: '"; done
	echo "touch $T/held"
	echo "waitfile $T/looked"
	for ((round = 0; round < 20; round++)); do
		for ((i = 0; i < 32; i++)); do echo "send p$i a"; done
		echo "sleep 30ms"
		echo "request PUT /bkt/w x-amz-rdma-token:@w content-length:0"
		echo "expect status 200"
		echo "expect time < 20s"
		echo "fill g zero"
		echo "request GET /bkt/w x-amz-rdma-token:@g"
		echo "expect status 200"
		echo "expect time < 20s"
		echo "expect window g pattern:1"
	done
	# A slow header is no reason to lose the request.
	for ((i = 0; i < 4; i++)); do
		echo "send p$i '\r\nhost: localhost\r\nrange: bytes=0-9\r\n\r\n'"
	done
} | tr "'" '"' >"$T/script"
raw "$T/script" &
slow=$!
wait_for 60 test -e "$T/held"
connections_are() { [ "$(metric gantry_connections)" = "$1" ]; }
readers_hold() { [ "$(metric gantry_buffers 'class="http",state="used"')" -ge 32 ]; }
wait_for 60 connections_are 65
wait_for 60 readers_hold
touch "$T/looked"
wait $slow || fail "beside slow clients"
# Those that read nothing have left: their buffers are back, and plain requests are served.
wait_for 60 nothing_is_held
curl_s3 /bkt/big | cmp - "$T/big" || fail "a plain get afterwards"
assert_status GET /bkt/slow20 404
stop_watching "slow clients"

# claim TM26: a body that stops coming is given up after limits.s3_progress.
MORE=$'limits: { s3_progress: 2s }'
fresh
raw <<-END
	raw "PUT /bkt/stopped HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nabc"
	expect status 400
	expect body contains RequestTimeout
	expect time > 1900ms
	expect time < 20s
END
assert_status GET /bkt/stopped 404

# limits.connections: one more takes the place of the one that has waited longest, first of those that never sent a request.
MORE=$'limits: { connections: 20 }'
fresh
watch_livez
raw <<-END
	window w 100000 pattern:2
	window g 100000
	connections 20
	request GET /bkt/none conn=p0
	expect status 404
	request GET /bkt/none conn=extra
	expect status 404
	request PUT /bkt/w x-amz-rdma-token:@w content-length:0 conn=p7
	expect status 200
	request GET /bkt/w x-amz-rdma-token:@g conn=p19
	expect status 200
	expect window g pattern:2
	request GET /bkt/none conn=p0
	expect status 404
	request GET /bkt/none conn=p1
	expect failure
END
closed() { metric gantry_connections_closed_total "reason=\"$1\""; }
assert_eq "$(closed half_head) $(closed idle) $(closed no_room) $(closed per_address)" "1 0 0 0" "closed to make room"
wait_for 60 nothing_is_held
stop_watching "limits.connections"

# limits.connections_per_address: one more is refused, and another address has its own.
MORE=$'limits: { connections_per_address: 5 }'
fresh
watch_livez
{ wait_for 60 connections_are 5 && touch "$T/counted" && wait_for 60 test -e "$T/hung_up" && wait_for 60 connections_are 4 && touch "$T/gone"; } &
raw <<-END
	connections 5
	waitfile $T/counted
	request GET /bkt/none conn=extra
	expect failure
	request GET /bkt/none conn=p0
	expect status 404
	server $S3/127.0.0.2
	request GET /bkt/none conn=other
	expect status 404
	server $S3
	hangup p1
	hangup p2
	touch $T/hung_up
	waitfile $T/gone
	request GET /bkt/none conn=again
	expect status 404
END
wait $!
assert_eq "$(closed half_head) $(closed idle) $(closed no_room) $(closed per_address)" "0 0 0 1" "closed by the cap"
wait_for 60 nothing_is_held
stop_watching "limits.connections_per_address"

# limits.requests: one more than four is answered at once, on connections that are kept; one of four is for reads. Of several disks each
# has half of the requests at most, so there is one.
copies=$COPIES disks=$DISKS
MORE=$'limits: { requests: 4 }' COPIES=1 DISKS=1
fresh
watch_livez
bytes pattern:5 100000 | curl_s3 /bkt/g -T -
softnicctl rule add op=read limit=3 delay=50s >/dev/null # until the rule goes
softnicctl rule add op=write limit=1 delay=50s >/dev/null
requests_are() { [ "$(metric gantry_requests_in_flight)" = "$1" ]; }
{ wait_for 60 test -e "$T/sent" && wait_for 60 requests_are 4 && touch "$T/taken"
  wait_for 60 test -e "$T/refused" && softnicctl rule clear >/dev/null; } &
raw <<-END
	windows w 4 100000 pattern:%i
	window x 100000 pattern:5
	connections 4
	start p0 PUT /bkt/p0 x-amz-rdma-token:@w0 content-length:0
	start p1 PUT /bkt/p1 x-amz-rdma-token:@w1 content-length:0
	start p2 PUT /bkt/p2 x-amz-rdma-token:@w2 content-length:0
	start p3 GET /bkt/g x-amz-rdma-token:@w3
	touch $T/sent
	waitfile $T/taken
	request PUT /bkt/x x-amz-rdma-token:@x content-length:0
	expect status 503
	expect header retry-after ~^[0-9]+$
	expect noheader x-amz-rdma-reply
	expect body contains SlowDown
	expect time < 20s
	request GET /bkt/none
	expect status 503
	server $SCAL
	request PUT /x x-scal-rdma:@x content-length:0 conn=scal
	expect status 503
	expect header retry-after ~^[0-9]+$
	server $S3
	touch $T/refused
	wait p0
	expect status 200
	wait p1
	expect status 200
	wait p2
	expect status 200
	wait p3
	expect status 200
	expect window w3 pattern:5
	request GET /bkt/x
	expect status 404
	request PUT /bkt/x x-amz-rdma-token:@x content-length:0
	expect status 200
	request GET /bkt/p2
	expect status 200
	expect body pattern:2
END
wait $!
wait_for 60 nothing_is_held
stop_watching "limits.requests"
COPIES=$copies DISKS=$disks

# limits.queue: who gets no buffer waits, and when too many wait the rest is told to come again.
MORE=$'limits: { queue: 3 }'
RDMA='{ allow_special: [loopback, self], channels: 8 }'
fresh
softnicctl rule clear >/dev/null
watch_livez
softnicctl rule add op=read limit=24 delay=50s >/dev/null # until the rule goes
: >"$T/acks"
refused() { [ "$(grep -c ' 503 ' "$T/acks")" -ge 20 ]; }
{ wait_for 60 refused && softnicctl rule clear >/dev/null; } &
raw <<-END
	windows w 40 3M pattern:%i
	flood 40 40 $T/acks PUT /bkt/q%i x-amz-rdma-token:@w%i content-length:0
END
wait $! || fail "limits.queue: hardly anything was refused: $(<"$T/acks")"
assert_eq "$(awk '{ print $2 }' "$T/acks" | sort -u | tr '\n' ' ')" "200 503 " "limits.queue: answers"
assert_eq "$(awk '$2 == 503 && $3 != "-"' "$T/acks")" "" "limits.queue: a reply header on a 503"
[ "$(metric gantry_queue_full_total)" -gt 0 ] || fail "limits.queue: nothing was counted"
while read -r n code _; do
	assert_eq "$(status_of GET "/bkt/q$n")" "$([ "$code" = 200 ] && echo 200 || echo 404)" "limits.queue: object $n, answered $code"
done <"$T/acks"
raw <<-END
	windows w 8 3M pattern:%i
	connections 8
	parallel 8 PUT /bkt/r%i x-amz-rdma-token:@w%i content-length:0
	expect status 200
END
wait_for 60 nothing_is_held
stop_watching "limits.queue"
assert_alive
