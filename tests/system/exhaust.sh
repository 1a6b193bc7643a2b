#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 86: what a process is given, used up on purpose: descriptors, locked memory, address space, the index, buffers.  At a start the
# answer is a clear error; while serving it is a refusal, 503 or 507, /livez answers throughout, and all is well when there is room again.
# (limits.sh has what the configuration bounds: connections, requests, the queue.)
CORES=1
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

livez() { assert_eq "$(curl_admin /livez)" '{"status":"ok","reasons":[]}' "$1: /livez"; }
connections_are() { [ "$(metric gantry_connections)" = "$1" ]; }
serves() {
	wait_for 60 nothing_is_held
	serves_rdma
	livez "$1"
}
fresh() {
	[ -z "$DAEMON_PID" ] || stop_daemon
	rm -rf "$T"/disk*
	start_daemon
}
# Starts the daemon under prlimit and expects that it says TEXT and exits with CODE.  refused CODE TEXT prlimit-words...
refused() {
	local code=$1 text=$2 rc=0
	shift 2
	_on_nic
	timeout 60 "${ON_NIC[@]}" prlimit "$@" "$BUILD/gantryd" -c "$T/gantryd.yaml" >"$T/refused" 2>&1 || rc=$?
	assert_eq "$rc" "$code" "$*: exit status; $(<"$T/refused")"
	grep -q "$text" "$T/refused" || fail "$*: no word of $text: $(<"$T/refused")"
}

# ---- descriptors -------------------------------------------------------------------------------------------------------

write_config
format_store
for n in {10..24}; do refused 1 "Too many open files" --nofile=$n:$n; done

# 120 of them, some 30 in use, the last 15 not for clients: who comes then takes the place of one that has sent nothing yet, or is
# refused when many come at once.  /livez, which needs one for each question, answers; so does everybody who is in.
MORE='limits: { connections: 1000 }'
DAEMON_WRAP='prlimit --nofile=120:120'
fresh
fds=$(metric process_open_fds)
# Where io_uring is forbidden; no ring's memory has to be locked then.
threads=''
[ "$(metric gantry_io_backend 'backend="threads"')" = 0 ] || threads=1
raw <<-END &
	window w 300000 pattern:3
	request PUT /bkt/a x-amz-rdma-token:@w content-length:0
	expect status 200
	connections 30
	parallel 30 GET /bkt/a
	expect status 200
	touch $T/in
	waitfile $T/tried
	parallel 30 GET /bkt/a
	expect status 200
	request PUT /bkt/b x-amz-rdma-token:@w content-length:0
	expect status 200
END
clients=$!
wait_for 60 test -e "$T/in"
/usr/bin/python3 - "$S3" "$ADMIN" <<-'END' || fail "descriptors: a client got nothing, or /livez stood still"
	import socket, sys, urllib.request
	host, port = sys.argv[1].split(":")
	held, refused = [], 0
	for i in range(150):
	    held.append(socket.create_connection((host, int(port)), 60))
	    if i % 25 == 24:
	        assert urllib.request.urlopen("http://" + sys.argv[2] + "/livez", timeout=60).status == 200
	for s in held:
	    s.settimeout(60)
	    try:
	        s.sendall(b"HEAD /bkt/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
	        got = s.recv(100)
	    except ConnectionError:
	        got = b""
	    refused += not got
	    assert not got or got.startswith(b"HTTP/1.1 200"), got
	assert 40 < refused < 150, refused
END
# All at once, so that accepting itself finds none: it goes on when there are some again.
kill -STOP "$DAEMON_PID"
/usr/bin/python3 - "$S3" "$DAEMON_PID" <<-'END' || fail "descriptors: a flood of clients"
	import os, signal, socket, sys, time
	host, port = sys.argv[1].split(":")
	held = [socket.create_connection((host, int(port)), 60) for i in range(300)]
	os.kill(int(sys.argv[2]), signal.SIGCONT)
	for s in held:
	    s.settimeout(60)
	    try:
	        s.sendall(b"HEAD /bkt/a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
	        got = s.recv(100)
	    except ConnectionError:
	        got = b""
	    assert not got or got.startswith(b"HTTP/1.1 200"), got
END
# Threads accept a few in a turn, and who is refused may be gone before the next: without io_uring accepting need not find none.
[ -n "$threads" ] || wait_for 60 grep -q 'accept on .*: Too many open files' "$T/daemon.log"
touch "$T/tried"
wait $clients || fail "descriptors: those that were in"
wait_for 60 grep -q 'connection refused, the descriptors are used up' "$T/daemon.log"
serves descriptors
[ "$(metric process_open_fds)" -le "$((fds + 2))" ] || fail "descriptors: $fds before, $(metric process_open_fds) now"

# Taken away while it serves, and given back.
DAEMON_WRAP=''
fresh
prlimit --pid "$DAEMON_PID" --nofile=20:
[ "$(status_of GET /bkt 2>&1)" != 200 ] || fail "descriptors: a connection with no descriptor left"
prlimit --pid "$DAEMON_PID" --nofile=1000:
wait_for 60 curl -sS --fail -o /dev/null "$URL_ADMIN/livez"
wait_for 60 curl -sS --fail -o /dev/null "$URL_S3/bkt"
serves "descriptors given back"
assert_alive

# ---- locked memory -----------------------------------------------------------------------------------------------------

# Devices refuse to register what may not be locked.
stop_daemon
softnicctl rule add op=reg_mr error=ENOMEM >/dev/null
RDMA='{ devices: [mlx5_0], allow_special: [loopback, self] }'
write_config
refused 1 "limit of locked memory (LimitMEMLOCK=, ulimit -l)" --nofile=1000
softnicctl rule clear >/dev/null
# As a user who may not lock memory without bound: named devices are an error of the configuration.
bound=(setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock --)
if [ "$(id -u)" = 0 ] && "${bound[@]}" true 2>/dev/null; then
	refused 78 "have to be locked for rdma.devices, and this process may lock 64KiB" --memlock=65536:65536 "${bound[@]}"
	# With none to be found the rings must fit; buffers that are not registered with one are said, and cost time, not service.
	RDMA='{ allow_special: [loopback, self] }'
	write_config
	locked="ring.*(limit of locked memory: LimitMEMLOCK=, ulimit -l)"
	[ -n "$threads" ] || refused 1 "$locked" --memlock=65536:65536 "${bound[@]}"
	# A store of several disks needs rings before the cores do, each for another step of the start: the limit decides which has none.
	rm -rf "$T"/disk*
	for more in "$T/disk8" "$T/disk9"; do
		mkdir "$more"
		sed -i "/^  disks:/a\\    - { path: \"$more\", size: $DISK_SIZE }" "$T/gantryd.yaml"
	done
	format_store
	for kib in {32..112..8}; do [ -n "$threads" ] || refused 1 "$locked" --memlock=$((kib << 10)):$((kib << 10)) "${bound[@]}"; done
	DAEMON_WRAP="prlimit --memlock=8388608:8388608 ${bound[*]}"
	fresh
	[ -n "$threads" ] || grep -q 'buffers cannot be registered with io_uring.*LimitMEMLOCK' "$T/daemon.log" || fail "memlock: not said"
	serves memlock
	# doctor, as root, looks at the daemon, and not at what root may lock.
	gantry --admin "$T/admin.sock" doctor >"$T/doctor" 2>&1
	[ -n "$threads" ] || grep -qE '^warning  memlock +the daemon could not register the buffers of [0-9]+ cores with io_uring, .*; it may lock 8.0 MiB: set LimitMEMLOCK=' "$T/doctor" ||
		fail "memlock: doctor: $(<"$T/doctor")"
	DAEMON_WRAP=''
fi
RDMA='{ allow_special: [loopback, self] }'
[ -z "$DAEMON_PID" ] || stop_daemon

# No memory for a way to the client is no word about the client: declined, and the next is served at once.
for rule in ENOMEM:no-channel ETIMEDOUT:unreachable; do
	fresh
	softnicctl rule add op=create_ah limit=1 "error=${rule%:*}" >/dev/null
	raw <<-END
		window w 300000 pattern:5
		request PUT /bkt/way x-amz-rdma-token:@w content-length:0
		expect status 501
		expect header x-gantry-rdma-reason ${rule#*:}
	END
	softnicctl rule clear >/dev/null
	[ "$rule" != ENOMEM:no-channel ] || raw <<-END
		window w 300000 pattern:5
		request PUT /bkt/way x-amz-rdma-token:@w content-length:0
		expect status 200
	END
done
stop_daemon

# ---- address space -----------------------------------------------------------------------------------------------------

MORE=''
write_config
case $BUILD in
*asan | *tsan) ;; # they reserve terabytes
*)
	for mib in 64 128 192; do refused 1 'Cannot allocate memory\|auth.replay: out of memory\|Resource temporarily unavailable' --as=$((mib << 20)); done
	sed -i 's/ buffers: [^,]*/ buffers: 4GiB/' "$T/gantryd.yaml"
	refused 1 'of buffers for core 0: Cannot allocate memory (memory.buffers' --as=$((2 << 30))
	fresh
	# Nothing more can be had, while many come.
	kib=$(awk '/^VmSize/ { print $2 }' "/proc/$DAEMON_PID/status")
	prlimit --pid "$DAEMON_PID" --as=$((kib * 1024)):
	# A device that has no memory for a way to the client either: declined, and the client sends its bytes by itself.
	for i in 1 2 3; do
		raw <<-END
			windows w 16 300000 pattern:%i
			connections 16
			parallel 16 PUT /bkt/m%i x-amz-rdma-token:@w%i content-length:0
			expect status 200|501|503
			parallel 16 GET /bkt?list-type=2
			expect status 200|503
		END
		livez "no memory"
	done
	prlimit --pid "$DAEMON_PID" --as=unlimited:
	serves "memory given back"
	;;
esac

# ---- the index ---------------------------------------------------------------------------------------------------------

# Records with much metadata fill 16 MiB soon: 507, and what needs no memory goes on; deletes make room.
[ -z "$DAEMON_PID" ] || stop_daemon
write_config
sed -i 's/index: 64MiB/index: 16MiB/' "$T/gantryd.yaml"
rm -rf "$T"/disk*
format_store
daemon_run
make_buckets
meta=$(head -c 1900 /dev/zero | tr '\0' m)
: >"$T/acks"
raw <<-END
	timeout 60s
	flood 16 12000 $T/acks PUT /bkt/i%n content-length:0 x-amz-meta-m:$meta
END
assert_eq "$(awk '{ print $2 }' "$T/acks" | sort -u | tr '\n' ' ')" "200 507 " "index: answers"
livez index
assert_status PUT /bkt/one-more 507 -H "content-length: 0" -H "x-amz-meta-m: $meta"
assert_status GET /bkt/i0 200
raw <<-END
	window w 300000 pattern:7
	request PUT /bkt/tokened x-amz-rdma-token:@w content-length:0 x-amz-meta-m:$meta
	expect status 507
	expect noheader x-amz-rdma-reply
END
: >"$T/deleted"
raw -e "flood 16 2000 $T/deleted DELETE /bkt/i%n"
assert_eq "$(grep -c ' 204 ' "$T/deleted")" 2000 "index: deletes"
puts() { [ "$(status_of PUT /bkt/one-more -H "content-length: 0" -H "x-amz-meta-m: $meta")" = 200 ]; }
wait_for 60 puts
serves index
stop_daemon

# ---- buffers -----------------------------------------------------------------------------------------------------------

# Ten MiB for everybody, one piece of each transfer at a time, or as many as there may be: all are served, one after the other.
for pieces in 1 16; do
	MORE="limits: { pieces_per_request: $pieces, s3_progress: 60s, s3_total: 60s, scality_total: 60s }"
	write_config
	sed -i 's/ buffers: [^,]*/ buffers: 10MiB/; s/http_buffers: [^ ]*/http_buffers: 2MiB/' "$T/gantryd.yaml"
	rm -rf "$T"/disk*
	format_store
	daemon_run
	make_buckets
	raw <<-END
		timeout 60s
		windows w 24 5M pattern:%i
		windows g 24 5M
		connections 24
		parallel 24 PUT /bkt/b%i x-amz-rdma-token:@w%i content-length:0
		expect status 200
		parallel 24 GET /bkt/b%i x-amz-rdma-token:@g%i
		expect status 200
		expect window g0 pattern:0
		expect window g23 pattern:23
		parallel 24 GET /bkt/b7
		expect status 200
		expect body pattern:7
		parallel 24 PUT /bkt/h%i body=pattern:5:1000000
		expect status 200
	END
	livez "buffers, $pieces pieces"
	serves "buffers, $pieces pieces"
	stop_daemon
done
