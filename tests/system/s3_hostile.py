#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile S3 clients against HOST:PORT of the daemon with that PID (s3_hostile.sh): python3 s3_hostile.py HOST:PORT PID"""
import base64
import hashlib
import os
import random
import re
import socket
import sys
import zlib

HOST, PORT = sys.argv[1].rsplit(":", 1)
PID = int(sys.argv[2])
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
print(f"SEED={SEED}")
rng = random.Random(SEED)
ANCHOR = b"what was there before"
MIB = 1 << 20
failed = []


def rss_kib():
    with open(f"/proc/{PID}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

MD5 = [("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==")]  # of nothing: asked for, and looked at when the body is whole


class Conn:
    def __init__(self):
        self.s = socket.create_connection((HOST, int(PORT)), 60)
        self.buf = b""

    def send(self, data):
        try:
            self.s.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False  # refused early: the answer may be there all the same

    def fill(self):
        try:
            b = self.s.recv(65536)
        except ConnectionResetError:
            b = b""
        self.buf += b
        return bool(b)

    def answer(self, head_only=False):
        """(status, headers, body), or None when the connection ended without an answer."""
        while True:
            while b"\r\n\r\n" not in self.buf:
                if not self.fill():
                    return None
            head, self.buf = self.buf.split(b"\r\n\r\n", 1)
            status = int(head.split()[1])
            if status != 100:
                break
        h = {k.strip().lower(): v.strip() for k, v in (x.split(b":", 1) for x in head.split(b"\r\n")[1:])}
        n = 0 if head_only or status in (204, 304) else int(h.get(b"content-length", b"0"))
        while len(self.buf) < n:
            if not self.fill():
                return None
        body, self.buf = self.buf[:n], self.buf[n:]
        return status, h, body

    def close(self):
        self.s.close()


def head(method, target, headers=(), host=True):
    t = target.encode() if isinstance(target, str) else target
    out = method.encode() + b" " + t + b" HTTP/1.1\r\n" + (b"Host: localhost\r\n" if host else b"")
    for k, v in headers:
        out += (k.encode() if isinstance(k, str) else k) + b": " + (v.encode("latin-1") if isinstance(v, str) else v) + b"\r\n"
    return out + b"\r\n"


def raw(name, data, *want, alive=None):
    """Sends data as it is.  want: "CODE" or statuses, any of which will do; None: the connection may just end.  alive: must the
    connection go on?  (None: it may.)  In any case what it says next must be the answer to what is asked next."""
    c = Conn()
    c.send(data)
    a = c.answer()
    got = None
    if a:
        m = re.search(rb"<Code>([^<]*)</Code>", a[2])
        got = m.group(1).decode() if m else a[0]
    if got not in want:
        failed.append(f"{name}: {a[0] if a else ''} {got}, want {' or '.join(map(str, want))}; {a[2][:300] if a else ''}")
    if a and a[0] >= 500 and a[0] != 501:
        failed.append(f"{name}: {a[0]}")
    b = None
    if a and a[1].get(b"connection", b"").lower() != b"close":
        c.send(head("GET", "/bkt/anchor"))
        b = c.answer()
        if b and (b[0] != 200 or b[2] != ANCHOR):
            failed.append(f"{name}: what follows is {b[0]} {b[2][:200]}")
    if alive and not b:
        failed.append(f"{name}: the connection ended")
    c.close()
    return a


def req(name, method, target, *want, body=None, headers=(), alive=None):
    h = list(headers)
    if body is not None and not any(k.lower() in ("content-length", "transfer-encoding") for k, _ in h):
        h.append(("Content-Length", str(len(body))))
    if target == "/bkt?delete":
        h.append(("Content-MD5", base64.b64encode(hashlib.md5(body).digest()).decode()))
    return raw(name, head(method, target, h) + (body or b""), *want, alive=alive)


def ok(method, target, body=None, headers=()):
    c = Conn()
    c.send(head(method, target, list(headers) + ([("Content-Length", str(len(body)))] if body is not None else [])) + (body or b""))
    a = c.answer(method == "HEAD")
    c.close()
    assert a and a[0] // 100 == 2, (method, target, a)
    return a


def upload(key):
    return re.search(rb"<UploadId>([^<]*)<", ok("POST", f"/bkt/{key}?uploads", b"")[2]).group(1).decode()


# ---- XML

def xml():
    u = upload("up")
    part = ok("PUT", f"/bkt/up?uploadId={u}&partNumber=1", b"x")[1][b"etag"].decode()
    done = f"/bkt/up?uploadId={u}"

    def parts(n, etag=part):
        return ("<CompleteMultipartUpload>" + "".join(f"<Part><PartNumber>{i}</PartNumber><ETag>{etag}</ETag></Part>" for i in range(1, n + 1)) +
                "</CompleteMultipartUpload>").encode()
    bomb = ('<?xml version="1.0"?><!DOCTYPE D [<!ENTITY a "' + "a" * 1000 + '">' +
            "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 50}">' for i in range(8)) + "]><Delete><Object><Key>&i;</Key></Object></Delete>").encode()
    outside = b'<!DOCTYPE D [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete><Object><Key>&x;</Key></Object></Delete>'
    bad = {
        "empty": b"", "no XML": b"hello", "NUL": b"<Delete>\0</Delete>", "not closed": b"<Delete><Object>", "crossed": b"<Delete><Object></Delete></Object>",
        "two roots": b"<Delete></Delete><Delete></Delete>", "another root": b"<Tagging><TagSet></TagSet></Tagging>", "bomb": bomb, "outside": outside,
        "parameter entity": b'<!DOCTYPE D [<!ENTITY % p SYSTEM "http://127.0.0.1:1/">%p;]><Delete><Object><Key>x</Key></Object></Delete>',
        "deep": b"<Delete>" + b"<a>" * 100000 + b"</a>" * 100000 + b"</Delete>", "deep objects": b"<Delete>" + b"<Object>" * 200000,
        "attributes": b"<Delete " + b" ".join(b"a%d='x'" % i for i in range(20000)) + b"></Delete>", "long name": b"<" + b"a" * 500000 + b">",
        "long text": b"<Delete><Object><Key>" + b"k" * 1000000 + b"</Key></Object></Delete>", "comment": b"<!--" + b"-" * 300000,
        "bad UTF-8": b"<Delete><Object><Key>\xff\xfe\xc0\x80</Key></Object></Delete>", "UTF-16": "<Delete></Delete>".encode("utf-16"),
        "instruction": b"<?php system('x') ?>", "CDATA": b"<Delete><![CDATA[", "1001 keys": b"<Delete>" + b"<Object><Key>x</Key></Object>" * 1001 + b"</Delete>",
        "control": b"<Delete><Object><Key>&#1;</Key></Object></Delete>", "surrogate": b"<Delete><Object><Key>&#xD800;</Key></Object></Delete>",
    }
    for name, b in bad.items():
        for what, method, target in (("delete", "POST", "/bkt?delete"), ("complete", "POST", done), ("tagging", "PUT", "/bkt/anchor?tagging"),
                                     ("lifecycle", "PUT", "/bkt?lifecycle"), ("cors", "PUT", "/bkt?cors")):
            if name == "another root" and what == "tagging":
                continue
            req(f"XML {name}, {what}", method, target, "MalformedXML", "InvalidRequest", "InvalidArgument", "UserKeyMustBeSpecified", body=b,
                alive=len(b) < 3 * MIB)
    req("10,001 parts", "POST", done, "MalformedXML", "InvalidArgument", body=parts(10001), alive=True)
    req("10,000 parts that are none", "POST", done, "InvalidPart", body=parts(10000), alive=True)
    for nr in ("0", "10001", "-1", "abc", "1.5", "0x1", "99999999999999999999", ""):
        req(f"part {nr}", "POST", done, "InvalidArgument", "MalformedXML", alive=True,
            body=f"<CompleteMultipartUpload><Part><PartNumber>{nr}</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>".encode())
    for etag in ("", "x" * 10000, "\u2603", "&lt;&gt;", '"""', "00"):
        req(f"etag {etag[:9]}", "POST", done, "InvalidPart", "MalformedXML", "InvalidArgument", body=parts(1, etag).replace(b'"""', b"&quot;&quot;"), alive=True)
    ok("DELETE", done)


def huge():
    before = rss_kib()
    room = (768 if "asan" in os.environ.get("BUILD", "") else 96) * 1024
    # Announced: refused before a byte is read.  By chunks: no length, not taken.  In frames: the length inside counts.
    for target in ("/bkt?delete", "/bkt?cors", "/bkt/anchor?tagging"):
        method = "POST" if "delete" in target else "PUT"
        c = Conn()
        c.send(head(method, target, MD5 + [("Content-Length", str(100 * MIB))]))
        a = c.answer()
        if not a or b"MaxMessageLengthExceeded" not in a[2]:
            failed.append(f"100 MiB of XML to {target}: {a}")
        c.send(b" " * (4 * MIB))
        c.close()
        raw("XML by chunks", head(method, target, [("Transfer-Encoding", "chunked")]) + b"5\r\nhello\r\n0\r\n\r\n", "MissingContentLength")
        raw("XML in frames, too much", head(method, target, MD5 + [("Content-Length", str(101 * MIB)), ("x-amz-decoded-content-length", str(100 * MIB)),
                                                            ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")]), "MaxMessageLengthExceeded")
        raw("XML in frames, a lie", head(method, target, MD5 + [("Content-Length", str(8 * MIB)), ("x-amz-decoded-content-length", "100"),
                                                         ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")]) +
            b"%x\r\n" % (7 * MIB) + b"<" * (8 * MIB - 8), "InvalidChunkSizeError")
    # Many at once, each as large as they are taken, none of them ended.
    many = []
    for _ in range(16):
        c = Conn()
        c.send(head("POST", "/bkt?delete", MD5 + [("Content-Length", str(3 * MIB))]) + b"<Delete>" + b"<Object><Key>x</Key></Object>" * 30000)
        many.append(c)
    grown = rss_kib() - before
    if grown > room:
        failed.append(f"memory grew by {grown} KiB with 16 unfinished texts")
    for c in many:
        c.close()
    grown = rss_kib() - before
    print(f"rss {before} KiB, grown by {grown} KiB")
    if grown > room:
        failed.append(f"memory grew by {grown} KiB")


# ---- names and parameters

def names():
    for key, want in ((b"k" * 1025, ("KeyTooLongError",)), (b"%6b" * 1025, ("KeyTooLongError",)), (b"k" * 8100, ("KeyTooLongError",)),
                      (b"k" * 9000, ("InvalidURI",)), (b"\xff\xfe", ("InvalidURI",)), (b"%ff", ("InvalidURI",)), (b"%c0%80", ("InvalidURI",)),
                      (b"%ed%a0%80", ("InvalidURI",)), (b"a%00b", ("InvalidURI",)), (b"a%01b", ("InvalidURI",)), (b"a%0d%0aX: y", ("InvalidURI", "InvalidRequest", 400)),
                      (b"a%7fb", ("InvalidURI",)), (b"%", ("InvalidURI",)), (b"%4", ("InvalidURI",)), (b"%zz", ("InvalidURI",)),
                      (b"a\x01b", ("InvalidURI",)), (b"a\x7fb", ("InvalidURI",)), (b"a\0b", ("InvalidURI", "InvalidRequest", 400, None))):
        for method in ("PUT", "GET", "DELETE", "POST"):
            t = b"/bkt/" + key + (b"?uploads" if method == "POST" else b"")
            req(f"{method} of key {key[:12]!r}", method, t, *want, body=b"" if method in ("PUT", "POST") else None)
        req(f"copy of key {key[:12]!r}", "PUT", "/bkt/copied", "InvalidArgument", "KeyTooLongError", "InvalidURI", "InvalidRequest", "RequestHeaderSectionTooLarge",
            "NoSuchKey" if key[:1] in (b"k", b"\xff") else "InvalidArgument", None if b"\0" in key or b"\r" in key else 400, body=b"",
            headers=[("x-amz-copy-source", b"/bkt/" + key)])
    # Dots are bytes of a key; they do not lead anywhere.
    for key in ("..", ".", "../../etc/passwd", "a/../b", "%2e%2e/%2e%2e/x", "..%2f..%2fetc%2fpasswd", "a/./b//c/"):
        req(f"GET {key}", "GET", f"/bkt/{key}", "NoSuchKey", alive=True)
    # A proxy may have gone by the one or the other.
    for t in "http://evil.example/bkt/anchor", "http://evil.example", f"http://x@{HOST}:{PORT}/bkt/anchor":
        req(f"authority {t}", "GET", t, "InvalidRequest")
    req("an encoded slash", "GET", "/bkt%2fnix", "NoSuchKey", alive=True)
    for t in ("/../bkt", "/./bkt/k", "/%2e%2e/k", "/..", "/bkt.%2fk", "/%2fbkt/k", "//k", "/b%00kt/k", "/BKT/k", "/bkt.../k", "/" + "b" * 64, "bkt/k", "*"):
        req(f"bucket {t}", "GET", t, "InvalidBucketName", "NoSuchBucket", "InvalidURI", "InvalidRequest", "MethodNotAllowed")
    for q in ("prefix=%ff", "marker=%ff", "delimiter=%ff", "delimiter=" + "d" * 64, "max-keys=-1", "max-keys=1e3", "max-keys=99999999999999999999",
              "max-keys=", "encoding-type=utf8", "list-type=", "list-type=2&continuation-token=AAAA",
              "list-type=2&start-after=" + "a" * 1025, "prefix=" + "p" * 1025, "prefix=a&prefix=b", "list-type=2&fetch-owner=maybe", "uploads&key-marker=k&upload-id-marker=zz",
              "versions&version-id-marker=zz"):
        req(f"?{q[:40]}", "GET", f"/bkt?{q}", "InvalidArgument", alive=True)
    for q in ("prefix=a\x01b", "prefix=a\x7fb", "prefix=a%00b", "list-type=2&continuation-token=%00", "v=%", "%4=1", "v#"):
        req(f"?{q!r}", "GET", f"/bkt?{q}".encode("latin-1"), "InvalidURI")
    # Nobody's names are nothing to us, as on S3; on what changes something they are.
    for q in ("&&&=&=&", "=" * 100, "\x80\x80", "v=1&v=2"):
        req(f"?{q!r}", "GET", f"/bkt?{q}".encode("latin-1"), 200)
    for q in ("\x80\x80", "v=1", "ACL"):
        req(f"PUT ?{q!r}", "PUT", f"/bkt/anchor?{q}".encode("latin-1"), "NotImplemented", body=b"lost")
    for up in ("", "x", "0" * 31, "0" * 33, "g" * 32, "..%2f..", "%00" * 32, "a" * 5000, "%ff", "-1"):
        for method, rest in (("GET", ""), ("DELETE", ""), ("PUT", "&partNumber=1"), ("POST", "")):
            req(f"{method} uploadId={up[:12]}", method, f"/bkt/k?uploadId={up}{rest}", "NoSuchUpload", "InvalidArgument", "MalformedXML", "InvalidURI",
                body=b"" if method in ("PUT", "POST") else None)
    u = upload("nr")
    for nr in ("0", "10001", "abc", "-1", "", "1.0", "0x1", "99999999999999999999", "%31%00", "+1", " 1"):
        for method in ("PUT", "GET"):
            t = f"/bkt/nr?partNumber={nr}" + (f"&uploadId={u}" if method == "PUT" else "")
            req(f"{method} partNumber={nr}", method, t, "InvalidArgument", "InvalidURI", "NoSuchKey" if nr in ("+1",) and method == "GET" else "InvalidArgument",
                body=b"x" if method == "PUT" else None)
    ok("DELETE", f"/bkt/nr?uploadId={u}")


def ranges():
    # Those that are none, or none of ours, are as if they were not there; what begins behind the end is 416.
    for r in ("bytes=", "bytes=-", "bytes=a-b", "bytes=5-1", "bytes=0-0,2-3", "items=0-1", "bytes=--1", "bytes=0x0-0x1", "bytes 0-1", "bytes=99999999999999999999-",
              "bytes=18446744073709551615-18446744073709551616", "bytes=-0", "bytes=21-", "bytes=1000-", "x" * 5000, "bytes=" + "0-1," * 1000 + "0-1",
              "bytes=0-99999999999999999999999"):
        c = Conn()
        c.send(head("GET", "/bkt/anchor", [("Range", r)]))
        a = c.answer()
        if not a or a[0] not in (200, 206, 416) or (a[0] == 200 and a[2] != ANCHOR) or (a[0] == 206 and a[2] not in ANCHOR):
            failed.append(f"Range: {r[:40]}: {a}")
        c.close()


# ---- framing

def framing():
    put = "PUT /bkt/smuggled HTTP/1.1\r\nHost: localhost\r\n"
    nxt = "GET /bkt/anchor HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for name, h in (("both", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), ("both, other way", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
                    ("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n"), ("two equal", "Content-Length: 5\r\nContent-Length: 5\r\n"),
                    ("list", "Content-Length: 5, 5\r\n"), ("negative", "Content-Length: -5\r\n"), ("plus", "Content-Length: +5\r\n"), ("hex", "Content-Length: 0x5\r\n"),
                    ("overflow", "Content-Length: 18446744073709551621\r\n"), ("blank inside", "Content-Length: 5 5\r\n"), ("empty", "Content-Length:\r\n"),
                    ("blank before colon", "Content-Length : 5\r\n"), ("folded", "Content-Length:\r\n 5\r\n"), ("folded coding", "Transfer-Encoding:\r\n chunked\r\n"),
                    ("identity", "Transfer-Encoding: identity\r\n"), ("gzip", "Transfer-Encoding: gzip, chunked\r\n"), ("xchunked", "Transfer-Encoding: xchunked\r\n"),
                    ("twice chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), ("tab", "Transfer-Encoding:\tchunked\tx\r\n"),
                    ("NUL in a value", "X-A: b\0c\r\nContent-Length: 5\r\n"), ("CR in a value", "X-A: b\rc\r\nContent-Length: 5\r\n"), ("no name", ": x\r\nContent-Length: 5\r\n"),
                    ("no colon", "Content-Length 5\r\n"), ("control in a name", "X\x01: y\r\nContent-Length: 5\r\n"), ("Host twice", "Host: g\r\nContent-Length: 5\r\n")):
        a = raw(f"framing, {name}", (put + h + "\r\nhello" + nxt).encode("latin-1"), "InvalidRequest", "MissingContentLength", "InvalidArgument", "NotImplemented",
                "InvalidURI", 400, 411, 413, 501, None)
        if a and a[0] < 400:
            failed.append(f"framing, {name}: {a[0]}")
    raw("no Host", b"PUT /bkt/smuggled HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "InvalidRequest", 400)
    for name, body in (("size", b"zz\r\nhello\r\n0\r\n\r\n"), ("negative", b"-5\r\nhello\r\n0\r\n\r\n"), ("overflow", b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
                       ("no end", b"5\r\nhelloXX0\r\n\r\n"), ("huge", b"ffffffffffffffff\r\nhello\r\n"), ("prefix", b"0x5\r\nhello\r\n0\r\n\r\n")):
        c = Conn()
        c.send((put + "Transfer-Encoding: chunked\r\n\r\n").encode() + body)
        c.s.shutdown(socket.SHUT_WR)
        a = c.answer()
        if a and a[0] < 400:
            failed.append(f"chunks, {name}: {a}")
        c.close()
    req("a huge header", "GET", "/bkt/anchor", "RequestHeaderSectionTooLarge", "InvalidRequest", 431, 400, None, headers=[("X-A", "y" * 17000)])
    req("many headers", "GET", "/bkt/anchor", "RequestHeaderSectionTooLarge", 431, headers=[(f"X-{i}", "y") for i in range(200)])
    req("40 KiB of headers", "GET", "/bkt/anchor", "RequestHeaderSectionTooLarge", 431, 413, None, headers=[(f"X-{i}", "y" * 400) for i in range(100)])
    req("long method", "A" * 3000, "/bkt/anchor", "MethodNotAllowed", "InvalidRequest", "NotImplemented", 400, 405, 501)
    for name, b in (("nothing of HTTP", rng.randbytes(3000)), ("lines", b"\r\n" * 5000), ("HTTP/9", b"GET / HTTP/9.9\r\n\r\n"), ("TLS", b"\x16\x03\x01\x02\x00\x01\x00"),
                    ("no line", b"GET /bkt/anchor" * 5000)):
        c = Conn()
        c.send(b)
        try:
            c.s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        c.fill()
        c.close()
    # Left in the middle, at every point.
    whole = head("PUT", "/bkt/left", [("Content-Length", "200000")]) + b"x" * 100000
    for _ in range(40):
        c = Conn()
        c.send(whole[:rng.randrange(1, len(whole))])
        c.close()


# ---- aws-chunked

def frames():
    good = b"hello world"
    crc = base64.b64encode(zlib.crc32(good).to_bytes(4, "big"))
    end = b"0\r\nx-amz-checksum-crc32:" + crc + b"\r\n\r\n"

    def send(name, body, *want, decoded=str(len(good)), trailer="x-amz-checksum-crc32", sha="STREAMING-UNSIGNED-PAYLOAD-TRAILER", length=None):
        h = [("x-amz-content-sha256", sha), ("content-encoding", "aws-chunked"), ("Content-Length", str(len(body) if length is None else length))]
        if decoded is not None:
            h.append(("x-amz-decoded-content-length", decoded))
        if trailer:
            h.append(("x-amz-trailer", trailer))
        u = upload("frames")
        for t in ("/bkt/framed", f"/bkt/frames?uploadId={u}&partNumber=1"):
            req(f"frames, {name}", "PUT", t, *want, body=body, headers=h)
        if b"<Part>" in ok("GET", f"/bkt/frames?uploadId={u}")[2]:
            failed.append(f"frames, {name}: a part is there")
        ok("DELETE", f"/bkt/frames?uploadId={u}")
    bad, cut = "InvalidChunkSizeError", "IncompleteBody"
    send("longer than they are", b"c\r\n" + good + b"\r\n" + end, bad, decoded="12")
    send("shorter", b"5\r\n" + good + b"\r\n" + end, bad)
    send("negative", b"-b\r\n" + good + b"\r\n" + end, bad)
    send("plus", b"+b\r\n" + good + b"\r\n" + end, bad)
    send("0x", b"0xb\r\n" + good + b"\r\n" + end, bad)
    send("17 digits", b"0000000000000000b\r\n" + good + b"\r\n" + end, bad)
    send("overflow", b"fffffffffffffffff\r\n" + good + b"\r\n" + end, bad)
    send("all there is", b"ffffffffffffffff\r\n" + good + b"\r\n" + end, bad)
    send("no size", b"\r\n" + good + b"\r\n" + end, bad)
    send("no digits", b"xyz\r\n" + good + b"\r\n" + end, bad)
    send("a line without end", b"b" * 5000, bad)
    send("an extension", b"b;x=y\r\n" + good + b"\r\n" + end, bad)
    send("bare LF", b"b\n" + good + b"\r\n" + end, bad)
    send("no CRLF behind", b"b\r\n" + good + end, bad)
    send("no end", b"b\r\n" + good + b"\r\n", cut)
    send("half an end", b"b\r\n" + good + b"\r\n0\r\n", cut)
    send("nothing", b"", cut, "InvalidRequest", "BadDigest", decoded="11")
    send("bytes behind", b"b\r\n" + good + b"\r\n" + end + b"x", bad)
    send("a request behind", b"b\r\n" + good + b"\r\n" + end + b"DELETE /bkt/anchor HTTP/1.1\r\nHost: localhost\r\n\r\n", bad)
    send("fewer than said", b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:" + crc + b"\r\n\r\n", cut, decoded="11")
    send("more than said", b"b\r\n" + good + b"\r\n" + end, bad, decoded="5")
    send("no length inside", b"b\r\n" + good + b"\r\n" + end, "MissingContentLength", decoded=None)
    send("length nonsense", b"b\r\n" + good + b"\r\n" + end, "InvalidRequest", decoded="eleven")
    send("length negative", b"b\r\n" + good + b"\r\n" + end, "InvalidRequest", decoded="-11")
    send("length larger than all", b"b\r\n" + good + b"\r\n" + end, "InvalidRequest", decoded="1000000")
    t = "MalformedTrailerError"
    send("no trailer", b"b\r\n" + good + b"\r\n0\r\n\r\n", t)
    send("another trailer", b"b\r\n" + good + b"\r\n0\r\nx-amz-checksum-sha1:" + crc + b"\r\n\r\n", t)
    send("unannounced", b"b\r\n" + good + b"\r\n" + end, t, trailer=None)
    send("twice", b"b\r\n" + good + b"\r\n" + end[:-2] + end[3:], t)
    send("not base64", b"b\r\n" + good + b"\r\n0\r\nx-amz-checksum-crc32:!!!\r\n\r\n", t)
    send("too short", b"b\r\n" + good + b"\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n", t)
    send("no colon", b"b\r\n" + good + b"\r\n0\r\nx-amz-checksum-crc32\r\n\r\n", t)
    send("wrong", b"b\r\n" + good + b"\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "BadDigest")
    send("an unknown one announced", b"b\r\n" + good + b"\r\n" + end, "NotImplemented", trailer="x-amz-checksum-md4")
    send("signed, without a signature", b"b;chunk-signature=" + b"0" * 64 + b"\r\n" + good + b"\r\n" + end, "AccessDenied", sha="STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER")
    send("unknown form", b"b\r\n" + good + b"\r\n" + end, "NotImplemented", sha="STREAMING-NONSENSE")
    # Frames of one byte each, all of them good: only slow.
    body = b"".join(b"1\r\n%c\r\n" % x for x in good) + end
    ok("PUT", "/bkt/slow", body, [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"), ("x-amz-decoded-content-length", "11"),
                                  ("x-amz-trailer", "x-amz-checksum-crc32")])
    assert ok("GET", "/bkt/slow")[2] == good
    ok("DELETE", "/bkt/slow")


# ---- forms

def forms():
    def field(name, value, extra=b""):
        return b'--XX\r\nContent-Disposition: form-data; name="' + name + b'"' + extra + b"\r\n\r\n" + value + b"\r\n"
    key, file, end = field(b"key", b"formed"), field(b"file", b"bytes", b'; filename="f"'), b"--XX--\r\n"
    ct = "multipart/form-data; boundary=XX"
    m = "MalformedPOSTRequest"
    for name, body, want, t in (
            ("no boundary named", key + file + end, (m, "InvalidRequest", "PreconditionFailed"), "multipart/form-data"), ("boundary empty", key + file + end, (m,), 'multipart/form-data; boundary=""'),
            ("boundary too long", key + file + end, (m,), "multipart/form-data; boundary=" + "X" * 71), ("another boundary", key + file + end, (m,), "multipart/form-data; boundary=YY"),
            ("no form", b"hello", (m,), ct), ("another type", key + file + end, ("PreconditionFailed",), "text/plain"), ("no type", key + file + end, ("PreconditionFailed",), None),
            ("empty", b"", (m, "IncompleteBody"), ct), ("no end", key + file, ("IncompleteBody",), ct), ("half an end", key + file + b"--X", ("IncompleteBody",), ct),
            ("junk behind the boundary", key + b"--XXjunk\r\n\r\n" + file + end, (m,), ct), ("no file", key + end, ("InvalidArgument",), ct),
            ("no key", file + end, ("InvalidArgument",), ct), ("key behind the file", file + key + end, ("InvalidArgument",), ct),
            ("key too long", field(b"key", b"k" * 1025) + file + end, ("KeyTooLongError",), ct), ("key with NUL", field(b"key", b"a\0b") + file + end, ("InvalidArgument",), ct),
            ("key bad UTF-8", field(b"key", b"\xff\xfe") + file + end, ("InvalidArgument", "InvalidURI"), ct), ("key control", field(b"key", b"a\x01b") + file + end, ("InvalidArgument", "InvalidURI"), ct),
            ("65 fields", b"".join(field(b"x-amz-meta-%d" % i, b"v") for i in range(65)) + key + file + end, ("MaxPostPreDataLengthExceededError", m), ct),
            ("30 KiB of fields", field(b"x-amz-meta-a", b"v" * 30000) + key + file + end, ("MaxPostPreDataLengthExceededError", m, "MetadataTooLarge"), ct),
            ("header without end", b"--XX\r\nContent-Disposition: form-data; name=" + b"x" * 40000, ("MaxPostPreDataLengthExceededError", m), ct),
            ("no disposition", b"--XX\r\nX-A: b\r\n\r\nv\r\n" + key + file + end, (m,), ct), ("LF only", (key + file + end).replace(b"\r\n", b"\n"), (m, "IncompleteBody"), ct),
            ("policy nonsense", field(b"policy", b"!!!!") + key + file + end, ("InvalidPolicyDocument", "AccessDenied", "InvalidRequest", m), ct),
            ("key twice", key + key + file + end, (m, "InvalidArgument"), ct), ("redirect nonsense", field(b"success_action_redirect", b"javascript:x\r\nY: z") + key + file + end, ("InvalidArgument", m), ct)):
        req(f"form, {name}", "POST", "/bkt", *want, body=body, headers=[("Content-Type", t)] if t else [])


def nothing_stored(what):
    """Only the anchor is there, and no upload."""
    got = re.findall(rb"<Key>([^<]*)</Key>", ok("GET", "/bkt?list-type=2")[2])
    if got != [b"anchor"]:
        failed.append(f"after {what}: {got}")
    if b"<Upload>" in ok("GET", "/bkt?uploads")[2]:
        failed.append(f"after {what}: uploads are there")
    a = ok("GET", "/bkt/anchor")
    if a[2] != ANCHOR or b"x-amz-tagging-count" in a[1]:
        failed.append(f"after {what}: the anchor is another")


ok("PUT", "/bkt/anchor", ANCHOR)
for step in (xml, huge, names, ranges, framing, frames, forms):
    step()
    nothing_stored(step.__name__)
    print(f"{'ok   ' if not failed else 'FAIL '} {step.__name__}", flush=True)
for f in failed:
    print(f, file=sys.stderr)
sys.exit(bool(failed))
