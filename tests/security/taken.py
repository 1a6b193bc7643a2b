#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""taken.py HOST:PORT ADMIN_SOCKET: a tenant that takes what it can get, and another one; see taken.sh."""
import http.client
import json
import socket
import sys

import waits

HOST, PORT = sys.argv[1].split(":")
ADMIN = sys.argv[2]
OBJECTS, BYTES, UPLOADS = 40, 4 << 20, 3
READ_BYTES, READ_SIZE = 32 << 20, 10000000
LIMIT_S = 100
CORS = ("<CORSConfiguration>" + "".join(
    "<CORSRule><AllowedOrigin>http://%s.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>" % (chr(97 + i % 26) * 200)
    for i in range(40)) + "</CORSConfiguration>").encode()


def ask(method, path, body=b"", headers=None):
    c = http.client.HTTPConnection(HOST, int(PORT), timeout=LIMIT_S)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, text


def quota(pattern="team-a-*"):
    s = socket.socket(socket.AF_UNIX)
    s.connect(ADMIN)
    s.sendall(b"GET /quotas HTTP/1.0\r\n\r\n")
    got = b""
    while True:
        more = s.recv(65536)
        if not more:
            break
        got += more
    s.close()
    return next(q for q in json.loads(got.split(b"\r\n\r\n", 1)[1]) if q["buckets"] == pattern)


victims = 0


def victim(what):
    """The other tenant works, and the bounds hold."""
    global victims
    victims += 1
    for method, path, body in (("PUT", "/victim/v%d" % victims, b"v" * 1000000), ("PUT", "/other-%d" % victims, b""),
                               ("POST", "/victim/u%d?uploads" % victims, b"")):
        status, text = ask(method, path, body)
        assert status == 200, "%s: %s %s: %d %s" % (what, method, path, status, text)
    q = quota()
    assert q["objects"] <= OBJECTS and q["bytes"] <= BYTES and q["uploads"] <= UPLOADS, (what, q)
    assert q["in_progress"] <= BYTES, (what, q)
    b = quota("team-b-*")
    assert b["bytes"] + b["in_progress"] <= 2 * READ_BYTES, (what, b)
    return q


def until(what, states):
    """Statuses up to the first refusal, which is 403 QuotaExceeded."""
    nr = 0
    for status, text in states:
        if status != 200:
            assert status == 403 and b"QuotaExceeded" in text, "%s: %d %s" % (what, status, text)
            return nr
        nr += 1
    assert False, "%s: nothing was refused" % what


class Put:
    """A PUT that is sent in pieces and never ended; refused() reads an answer that has come."""

    def __init__(self, path, head):
        self.s = socket.create_connection((HOST, int(PORT)), timeout=LIMIT_S)
        self.s.sendall(("PUT %s HTTP/1.1\r\nhost: %s:%s\r\n%s\r\n\r\n" % (path, HOST, PORT, head)).encode())
        self.answer, self.left = b"", b""

    def send(self, data):
        """False: the server takes no more of it."""
        self.left = memoryview(data)
        waits.until("a body is taken or refused", lambda: self.is_over() or not self.left, LIMIT_S, 0)
        return not self.left

    def is_over(self):
        """Sends some of what is left, unless the server takes no more of it."""
        if self.refused(0):
            return True
        self.s.settimeout(0.2)
        try:
            self.left = self.left[self.s.send(self.left):]
        except TimeoutError:
            pass
        except OSError:
            self.refused(LIMIT_S)
            return True
        return False

    def refused(self, wait):
        self.s.settimeout(wait or 0.001)
        try:
            while b"</Error>" not in self.answer:
                more = self.s.recv(65536)
                if not more:
                    break
                self.answer += more
        except (TimeoutError, BlockingIOError):
            pass
        except OSError:
            return True
        return b"</Error>" in self.answer

    def is_quota(self):
        return b" 403 " in self.answer and b"QuotaExceeded" in self.answer


class Get:
    """A GET of which nothing is read before rest()."""

    def __init__(self, path):
        self.s = socket.socket()
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.s.settimeout(LIMIT_S)
        self.s.connect((HOST, int(PORT)))
        self.s.sendall(("GET %s HTTP/1.1\r\nhost: %s:%s\r\nconnection: close\r\n\r\n" % (path, HOST, PORT)).encode())
        self.head = self.s.recv(12)
        assert self.head == b"HTTP/1.1 200", self.head

    def rest(self):
        got = bytearray(self.head)
        while True:
            more = self.s.recv(1 << 20)
            if not more:
                break
            got += more
        self.s.close()
        return got.split(b"\r\n\r\n", 1)[1]


victim("before")

# ---- buckets, and what they are configured with
nr = until("buckets", (ask("PUT", "/team-a-%d" % i) for i in range(2 * OBJECTS)))
assert nr == OBJECTS, nr
for i in range(nr):
    assert ask("PUT", "/team-a-%d?cors" % i, CORS)[0] == 200
q = victim("buckets with documents")
assert q["objects"] == OBJECTS and q["bytes"] > nr * 1000, q
for i in range(nr - 1, -1, -1):
    assert ask("DELETE", "/team-a-%d" % i)[0] == 204
assert ask("PUT", "/team-a-0")[0] == 200

# ---- bodies without end, several at once
chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
puts = [Put("/team-a-0/endless%d" % i, "transfer-encoding: chunked") for i in range(8)]
ended = [False] * len(puts)


def all_end():
    for i, p in enumerate(puts):
        ended[i] = ended[i] or not p.send(chunk)
    q = quota()
    assert q["in_progress"] <= BYTES and q["bytes"] == 0, q
    return all(ended)


# The sockets hold some of it, and the server discards what comes between the refusal and its answer.
waits.until("bodies without end are refused", all_end, LIMIT_S, 0)
victim("bodies without end")
for p in puts:
    p.s.close()
assert any(p.is_quota() for p in puts)

# ---- PUTs that do not end: one fits
puts = [Put("/team-a-0/drip%d" % i, "content-length: 4000000") for i in range(60)]
waits.until("one PUT fits", lambda: sum(not p.refused(0) for p in puts) <= 1, LIMIT_S, 0)
assert all(p.is_quota() for p in puts if p.answer)
q = victim("PUTs that do not end")
if not all(p.refused(0) for p in puts):
    assert q["in_progress"] == 4000000, q
for p in puts:
    p.s.close()
waits.until("the space of PUTs that ended", lambda: quota()["in_progress"] == 0, LIMIT_S)

# ---- objects that are read slowly, removed and stored again; then their bucket as well.  Larger ones than the kernel's buffers.
for removes_bucket in False, True:
    assert ask("PUT", "/team-b-0")[0] == 200
    gets = []
    for nr in range(10):
        status, text = ask("PUT", "/team-b-0/slow", bytes([nr]) * READ_SIZE)
        if status != 200:
            break
        gets += [(nr, Get("/team-b-0/slow")) for _ in range(2)]
        assert ask("DELETE", "/team-b-0/slow")[0] == 204
        if removes_bucket:
            assert ask("DELETE", "/team-b-0")[0] == 204
            assert ask("PUT", "/team-b-0")[0] == 200
        q = quota("team-b-*")
        assert q["bytes"] == 0 and q["in_progress"] == (nr + 1) * READ_SIZE, q  # those of two readers once
    assert status == 403 and b"QuotaExceeded" in text, (nr, status, text)
    assert nr == READ_BYTES // READ_SIZE, nr
    victim("slow readers")
    assert ask("DELETE", "/team-b-0")[0] == 204
    q = quota("team-b-*")
    assert q["bucket_number"] == 1 and q["in_progress"] == nr * READ_SIZE, q
    for nr, get in gets:
        assert get.rest() == bytes([nr]) * READ_SIZE, "a reader got other bytes"
    waits.until("the space of readers that ended", lambda: quota("team-b-*")["in_progress"] == 0, LIMIT_S)
    assert quota("team-b-*")["bucket_number"] == 0

# ---- small parts
status, text = ask("POST", "/team-a-0/small?uploads")
assert status == 200
upload = text.split(b"<UploadId>")[1].split(b"<")[0].decode()
nr = until("small parts", (ask("PUT", "/team-a-0/small?partNumber=%d&uploadId=%s" % (i + 1, upload), b"p" * 300) for i in range(400)))
assert nr == BYTES // (16 << 10), nr
victim("small parts")
assert ask("DELETE", "/team-a-0/small?uploadId=" + upload)[0] == 204
assert until("uploads", (ask("POST", "/team-a-0/u?uploads") for i in range(10))) == UPLOADS

# ---- an honest client within its bounds
assert ask("PUT", "/team-a-0/whole", b"w" * 4000000)[0] == 200
for _ in range(3):
    assert ask("PUT", "/team-a-0/whole", b"x" * 4000000)[0] == 200
victim("after")
