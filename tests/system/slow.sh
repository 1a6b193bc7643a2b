#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# item 86, claim TM26: bodies that come or go byte by byte hold what they like while nobody wants it.  When somebody does, the slow ones give way: a
# PUT is answered and not stored, a GET ends short.  (tests/hostile/slow_bodies.sh has the large attacks, and says how soon.)
# shellcheck disable=SC2034
CORES=1 MORE='limits: { s3_progress: 300s, idle: 300s, requests: 64 }'
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"
write_config
sed -i 's/http_buffers: [^ ]*/http_buffers: 2MiB/' "$T/gantryd.yaml"
format_store
daemon_run
make_buckets
head -c 3145728 /dev/zero | curl_s3 /bkt/big -T -

/usr/bin/python3 - "$S3" <<-'END' || fail "slow bodies"
	import socket, sys, time
	host, port = sys.argv[1].split(":")
	WAIT_S = 60

	def connect(source, *text):
	    s = socket.socket()
	    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
	    s.settimeout(WAIT_S)
	    s.bind((source, 0))
	    s.connect((host, int(port)))
	    s.sendall("\r\n".join([*text, "Host: localhost", "", ""]).encode())
	    return s

	def serve(source):
	    for method, target, body in (("PUT", "/bkt/mine", b"12345"), ("GET", "/bkt/mine", b"")):
	        s = connect(source, f"{method} {target} HTTP/1.1", f"Content-Length: {len(body)}", "Connection: close")
	        s.sendall(body)
	        got = bytearray()
	        while data := s.recv(65536):
	            got += data
	        assert got.startswith(b"HTTP/1.1 200 "), got
	    assert got.endswith(b"\r\n\r\n12345"), got

	# Nobody waits: a body of ten bytes a second is a body.
	honest = connect("127.0.2.1", "PUT /bkt/honest HTTP/1.1", "Content-Length: 6")
	for c in b"honest":
	    honest.sendall(bytes([c]))
	    time.sleep(0.1)
	assert honest.recv(100).startswith(b"HTTP/1.1 200 ")

	for kind in ("put", "get"):
	    slow = []
	    for i in range(32):
	        slow.append(connect(f"127.0.1.{i + 1}", "GET /bkt/big HTTP/1.1") if kind == "get" else
	                    connect(f"127.0.1.{i + 1}", "PUT /bkt/slow HTTP/1.1", "Content-Length: 100000"))
	    for s in slow:
	        kind == "put" and s.sendall(b"a")
	    for i in range(1):
	        serve("127.0.2.1")
	    answers = {}
	    for s in slow:
	        s.settimeout(0.01)
	        got = bytearray()
	        try:
	            while data := s.recv(65536):
	                got += data
	            end = "closed"
	        except TimeoutError:
	            end = "open"
	        except ConnectionError:
	            end = "reset"
	        status = got.split(b" ")[1].decode() if got else "-"
	        whole = kind == "get" and len(got) > 3 << 20
	        assert not (kind == "get" and end == "closed" and not whole), "a short body and no reset"
	        answers[status, end] = answers.get((status, end), 0) + 1
	    print(kind, answers)
	    if kind == "put":
	        assert answers.get(("400", "closed"), 0) + answers.get(("400", "open"), 0) > 0, answers
	    for s in slow:
	        s.close()
END
wait_for 60 nothing_is_held
[ "$(metric gantry_requests_revoked_total 'resource="buffer",reason="slow"')" -ge 1 ] || fail "revoked: not counted"
assert_status GET /bkt/slow 404
assert_status GET /bkt/honest 200
assert_alive
stop_daemon

# claim TM36: limits.fair_by: behind one address, access keys are clients.  One of them has every request that there may be; the other is served.
cat >"$T/keys.yaml" <<-END
	- { access_key: MANY, secret_key: s3cr3t-key-1 }
	- { access_key: ONE, secret_key: s3cr3t-key-2 }
END
chmod 0600 "$T/keys.yaml"
sed -i "s|^limits: .*|limits: { s3_progress: 300s, idle: 300s, requests: 16, body_rate: 0, fair_by: access_key }|" "$T/gantryd.yaml"
printf 'auth: { credentials_file: "%s" }\n' "$T/keys.yaml" >>"$T/gantryd.yaml"
daemon_run
url() { "$BUILD/tools/s3sign" -s "$S3" -k "$1" -p "$2" -P 600 -m unsigned -U "$3" "$4"; }
PYTHONPATH=$ROOT/tests/system PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - "$S3" "$(url MANY s3cr3t-key-1 PUT /bkt/slow)" "$(url MANY s3cr3t-key-1 GET /bkt/honest)" "$(url ONE s3cr3t-key-2 GET /bkt/honest)" "$(url MANY s3cr3t-key-1 GET /bkt/big)" <<-'END' || fail "fair_by: access_key"
	import http.client, socket, sys
	from waits import until
	where, put, get_many, get_one, big = sys.argv[1:]
	host, port = where.split(":")

	def get(target):
	    c = http.client.HTTPConnection(where, timeout=60)
	    c.request("GET", target)
	    r = c.getresponse()
	    return r.status, r.read()

	held = []
	# 12 of 16 requests are without tokens, and 9 of these are for writes.
	for i in range(12):
	    s = socket.socket()
	    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
	    s.connect((host, int(port)))
	    if i < 9:
	        s.sendall(f"PUT {put} HTTP/1.1\r\nHost: {where}\r\nContent-Length: 100000\r\n\r\na".encode())
	    else:
	        s.sendall(f"GET {big} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
	    held.append(s)
	until("many GETs are answered 503", lambda: get(get_many)[0] == 503, pause=0)
	assert get(get_one) == (200, b"honest")
	assert get(get_one) == (200, b"honest")
END
[ "$(metric gantry_requests_revoked_total 'resource="request",reason="share"')" -ge 1 ] || fail "fair_by: nobody gave way"
assert_alive
