#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claim TM71: clients that hold space by bodies that hardly arrive, or by a GET of a removed object that they do not read, are left alone until another
# client is refused for want of space. Then the slowest of them are ended, only as many as hold the missing bytes, and none for a PUT that would not fit
# without them either.
DISK_SIZE=320MiB CORES=2 NO_NIC=1 RDMA='{ devices: none }'
MORE='limits: { s3_progress: 300s, s3_total: 600s, scality_total: 600s, body_grace: 1s }'
. "$(dirname "$0")/lib.sh"
start_daemon
PYTHONPATH=$ROOT/tests/system PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - "${S3%:*}" "${S3##*:}" "$URL_ADMIN" <<'END' || fail "space"
import http.client, socket, sys, urllib.request
from waits import until
HOST, PORT, ADMIN = sys.argv[1], int(sys.argv[2]), sys.argv[3]
MB = 1000000


def ask(method, path, body=None):
    c = http.client.HTTPConnection(HOST, PORT, timeout=60)
    c.request(method, path, body)
    r = c.getresponse()
    r.read()
    c.close()
    return r.status


def revoked():
    text = urllib.request.urlopen(ADMIN + "/metrics", timeout=30).read().decode()
    return sum(int(l.split()[-1]) for l in text.splitlines() if l.startswith("gantry_requests_revoked_total") and 'resource="space"' in l)


def connect(head, rcvbuf=0):
    s = socket.socket()
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    s.connect((HOST, PORT))
    s.sendall(("%s\r\nhost: %s:%d\r\n\r\n" % (head, HOST, PORT)).encode())
    return s


def drip(name, size):
    """A body of so many bytes, of which the last 10,000 do not come."""
    s = connect("PUT /bkt/%s HTTP/1.1\r\ncontent-length: %d" % (name, size))
    s.sendall(bytes(size - 10000))
    return s


def holds(nr):
    """Waits until so many PUTs have sent all that they send."""
    until("bodies arrive", lambda: urllib.request.urlopen(ADMIN + "/requests", timeout=30).read().count(b'"PutObject"') == nr)


def is_put(name, size):
    status = ask("PUT", "/bkt/" + name, bytes(size))
    assert status in (200, 507), status
    return status == 200


# ---- bodies: five hold 200 MB; one of them has 40 MB, enough for what is refused
drips = [drip("drip%d" % i, 40 * MB) for i in range(5)]
holds(5)
filler = 0
while is_put("filler%d" % filler, 20 * MB):
    filler += 1
assert filler > 0
# The clients of the bodies may be slow until now, and a PUT that would not fit without them either ends none.
assert revoked() == 0
until("the PUT is stored", lambda: is_put("wanted", 20 * MB))
assert revoked() == 1, revoked()
holds(4)
huge = connect("PUT /bkt/huge HTTP/1.1\r\ncontent-length: %d" % (400 * MB))
assert b" 507 " in huge.recv(4096)

# ---- a GET of a removed object, which is not read
for s in drips:
    s.close()
until("they are gone", lambda: ask("GET", "/bkt/drip0") == 404 and urllib.request.urlopen(ADMIN + "/requests", timeout=30).read().count(b'"PutObject"') == 0)
for i in range(filler):
    ask("DELETE", "/bkt/filler%d" % i)
ask("DELETE", "/bkt/wanted")
until("room", lambda: is_put("large", 120 * MB))
reader = connect("GET /bkt/large HTTP/1.1", 4096)
present = connect("GET /bkt/large HTTP/1.1", 4096)
until("two GETs", lambda: urllib.request.urlopen(ADMIN + "/requests", timeout=30).read().count(b'"GetObject"') == 2)
before = revoked()
assert ask("DELETE", "/bkt/large") == 204
filler = 0
while is_put("filler%d" % filler, 20 * MB):
    filler += 1
until("the PUT is stored", lambda: is_put("wanted", 60 * MB))
assert revoked() > before
END
assert_alive
