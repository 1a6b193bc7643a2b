#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that stop in the middle of a body, see stalled.sh: python3 stalled.py HOST:PORT HOST:PORT-OF-TLS

limits.s3_progress is 2 s and limits.idle five minutes there, so that an answer that waits for the rest of the body never comes in time
(WAIT_S), however slow the machine is."""
import concurrent.futures
import os
import re
import socket
import ssl
import sys
import time

WAIT_S = 40
ANCHOR = b"0123456789" * 1000
# One for all connections, without the certificates of the system, which take 20 ms to read.
ANY_SERVER = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANY_SERVER.check_hostname = False
ANY_SERVER.verify_mode = ssl.CERT_NONE


class Conn:
    """One connection; data, pauses and all, and what came back."""

    def __init__(self, where, tls):
        host, port = where.rsplit(":", 1)
        self.s = socket.create_connection((host, int(port)), WAIT_S)
        if tls:
            self.s = ANY_SERVER.wrap_socket(self.s)
        self.buf = b""

    def fill(self):
        b = self.s.recv(65536)
        self.buf += b
        return bool(b)

    def head(self):
        while b"\r\n\r\n" not in self.buf:
            if not self.fill():
                raise EOFError(f"ended after {self.buf!r}")
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        return int(lines[0].split()[1]), {k.strip().lower(): v.strip() for k, v in (x.split(b":", 1) for x in lines[1:])}

    def answer(self, head_only=False):
        status, h = self.head()
        n = 0 if head_only or status in (204, 304) or status < 200 else int(h[b"content-length"])
        while len(self.buf) < n:
            if not self.fill():
                raise EOFError(f"{status}, and {len(self.buf)} of {n} bytes")
        body, self.buf = self.buf[:n], self.buf[n:]
        return status, h, body

    def end(self):
        """The server closes: in good order, and with nothing behind its answer."""
        while self.fill():
            pass
        assert not self.buf, self.buf
        self.s.close()


def head(method, target, *fields):
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


FRAMES = ("x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-trailer: x-amz-checksum-crc32")
FORM = (b'--XX\r\nContent-Disposition: form-data; name="key"\r\n\r\nformed\r\n'
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n')
WAITED = ("RequestTimeout",)  # at the deadline, so not before


def cases(upload):
    """(name, method, what is sent, status, code or None)"""
    late = (400, "RequestTimeout")
    # How much room a cluster has is known when it takes no more.
    no_room = late if os.environ.get("STORE") == "rados" else (507, None)
    yield "half of a PUT", "PUT", head("PUT", "/bkt/x", "Content-Length: 100000") + bytes(50000), *late
    yield "nothing of a PUT", "PUT", head("PUT", "/bkt/x", "Content-Length: 100000"), *late
    yield "half a chunk of a PUT", "PUT", head("PUT", "/bkt/x", "Transfer-Encoding: chunked") + b"2710\r\n" + bytes(5000), *late
    yield "a PUT without its last chunk", "PUT", head("PUT", "/bkt/x", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n", *late
    yield "a PUT without the end of its trailer", "PUT", head("PUT", "/bkt/x", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\nX-A: b", *late
    yield "half of a part", "PUT", head("PUT", f"/bkt/up?partNumber=1&uploadId={upload}", "Content-Length: 100000") + bytes(50000), *late
    yield "half of XML", "POST", head("POST", "/bkt?delete", "Content-Length: 1000", "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==") + b"<Delete><Obj", *late
    yield "half of a form's fields", "POST", head("POST", "/bkt", "Content-Type: multipart/form-data; boundary=XX", "Content-Length: 1000") + FORM[:70], *late
    yield "half of a form's file", "POST", head("POST", "/bkt", "Content-Type: multipart/form-data; boundary=XX", "Content-Length: 1000") + FORM + b"abc", *late
    yield "half a frame", "PUT", head("PUT", "/bkt/x", "Content-Length: 1000", "x-amz-decoded-content-length: 900", *FRAMES) + b"100\r\nabc", *late
    yield "frames without an end", "PUT", head("PUT", "/bkt/x", "Content-Length: 1000", "x-amz-decoded-content-length: 900", *FRAMES) + b"3\r\nabc\r\n", *late
    # Expect
    yield "100 and then nothing", "PUT", head("PUT", "/bkt/x", "Content-Length: 100000", "Expect: 100-continue"), *late
    yield "Expect, refused", "PUT", head("PUT", "/none/x", "Content-Length: 100000", "Expect: 100-continue"), 404, "NoSuchBucket"
    # Refused before any of the body was read
    for method in ("PUT", "POST", "DELETE", "GET"):
        yield f"{method} without a bucket", method, head(method, "/none/x?uploads" if method == "POST" else "/none/x", "Content-Length: 1000") + b"abc", (400, 404), None
    yield "PUT with a bad signature", "PUT", head("PUT", "/bkt/x", "Authorization: AWS4-HMAC-SHA256 nonsense", "Content-Length: 1000") + b"abc", 400, None
    yield "PUT of more than there is room for", "PUT", head("PUT", "/bkt/x", "Content-Length: 4000000000") + bytes(1000), *no_room
    yield "PUT of more than limits.object", "PUT", head("PUT", "/bkt/x", "Content-Length: 5000000000") + bytes(1000), 400, "EntityTooLarge"
    # Refused in the middle of a body that has come up to now: what is missing is waited for no longer than for a moment.
    yield "a bad frame", "PUT", head("PUT", "/bkt/x", "Content-Length: 1000", "x-amz-decoded-content-length: 900", *FRAMES) + b"zz\r\nabc", 400, None
    yield "a form that is none", "POST", head("POST", "/bkt", "Content-Type: multipart/form-data; boundary=XX", "Content-Length: 1000") + b"hello, this is no form at all", 400, None
    # Bodies that nobody asked for
    yield "DELETE with a body", "DELETE", head("DELETE", "/bkt/x", "Content-Length: 10") + b"abc", (204, 400), None
    yield "HEAD with a body", "HEAD", head("HEAD", "/bkt/anchor", "Content-Length: 10") + b"abc", (200, 400), None
    yield "GET with a body", "GET", head("GET", "/bkt/anchor", "Content-Length: 10") + b"abc", (200, 400), None
    yield "a list with a body", "GET", head("GET", "/bkt?list-type=2", "Content-Length: 10") + b"abc", (200, 400), None


def run(where, tls, name, method, data, status, code):
    c = Conn(where, tls)
    began = time.monotonic()
    c.s.sendall(data)
    a = c.answer(method == "HEAD")
    if a[0] == 100:
        a = c.answer(method == "HEAD")
    took = time.monotonic() - began
    m = re.search(rb"<Code>([^<]*)</Code>", a[2])
    assert a[0] in (status if isinstance(status, tuple) else (status,)), a
    assert code is None or (m and m.group(1).decode() == code), a
    assert a[1].get(b"connection", b"").lower() == b"close", a
    assert code not in WAITED or took > 1.9, f"{took} s"
    if a[0] == 200 and method == "GET":
        assert a[2] == ANCHOR or b"</ListBucketResult>" in a[2], a
    if a[0] == 200 and method == "HEAD":
        assert int(a[1][b"content-length"]) == len(ANCHOR), a
    c.end()


def drips(where, tls):
    """Answered in the middle of a body, of which a byte comes now and then: that ends, too."""
    c = Conn(where, tls)
    c.s.sendall(head("PUT", "/bkt/x", "Content-Length: 100000", "x-amz-decoded-content-length: 90000", *FRAMES) + b"zz\r\nabc")
    began = time.monotonic()
    c.s.settimeout(0.05)
    while time.monotonic() - began < WAIT_S:
        try:
            if b"\r\n\r\n" in c.buf or not c.fill():
                break
        except (TimeoutError, ssl.SSLWantReadError):
            c.s.sendall(b"x")
    c.s.settimeout(WAIT_S)
    assert c.answer()[0] == 400
    c.end()


def behind(where, tls):
    """Who goes on when the answer is on its way still reads it: no reset comes in between.  For two seconds: who goes on later, since the
    machine has other work, tries again."""
    for _ in range(20):
        late = behind_once(where, tls)
        if not late:
            return
    raise late


def behind_once(where, tls):
    c = Conn(where, tls)
    c.s.sendall(head("PUT", "/bkt/x", "Content-Length: 1000000") + bytes(1000))
    while b"\r\n" not in c.buf:
        assert c.fill()
    began = time.monotonic()
    try:
        for _ in range(20):
            c.s.sendall(bytes(20000))
        assert c.answer()[0] == 400
        c.end()
    except OSError as e:
        if time.monotonic() - began < 1:
            raise
        return e
    return None


def main():
    plain, secure = sys.argv[1:]
    c = Conn(plain, False)
    c.s.sendall(head("PUT", "/bkt/anchor", f"Content-Length: {len(ANCHOR)}") + ANCHOR)
    assert c.answer()[0] == 200
    c.s.sendall(head("POST", "/bkt/up?uploads", "Content-Length: 0"))
    upload = re.search(rb"<UploadId>([^<]*)<", c.answer()[2]).group(1).decode()
    c.s.close()
    failed = False
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        jobs = []
        for where, tls in ((plain, False), (secure, True)):
            over = " over TLS" if tls else ""
            jobs += [(case[0] + over, pool.submit(run, where, tls, *case)) for case in cases(upload)]
            jobs += [("a body that drips" + over, pool.submit(drips, where, tls)), ("a body that goes on" + over, pool.submit(behind, where, tls))]
        for name, job in jobs:
            e = job.exception()
            failed = failed or bool(e)
            print(f"{'FAIL ' if e else 'ok   '} {name}{': ' + repr(e)[:600] if e else ''}", flush=True)
    sys.exit(failed)


main()
