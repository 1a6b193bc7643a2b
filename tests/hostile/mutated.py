#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that were good once, changed at random, byte by byte: python3 mutated.py HOST:PORT[,HOST:PORT...] ADMIN SECONDS SEED

Each connection sends one to three of them, changed, in pieces of random lengths, and reads until the other side is done or
has nothing to say.  Wrong is: an answer that is not one (its first line, its Content-Length), an answer of 500 that is not of a transfer, more answers than the
most generous reader sees requests, and a daemon that does not say /livez at once.  A run is repeated by its seed."""
import base64
import errno
import hashlib
import hmac
import json
import random
import re
import select
import socket
import sys
import threading
import time
import urllib.request

TOKEN = "0000%012x:%08x:%08x:0000:%06x:1:00000000000000000000ffff7f000001"
IDS = []  # some of the connections of RC that were made
TALKERS = 12
QUIET_S = 0.15  # nothing more comes, so the daemon waits for more, which is as good an end as any
MARK = re.compile(rb"HTTP/1\.1 (\d\d\d)")


def signed(rng, method, path, headers, body):
    """A request signed with MAIN's key, as any SDK does it."""
    now = time.gmtime()
    stamp, day = time.strftime("%Y%m%dT%H%M%SZ", now), time.strftime("%Y%m%d", now)
    h = dict(headers)
    h.update({"host": "h", "x-amz-date": stamp, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()})
    names = sorted(n.lower() for n in h)
    text = "\n".join([method, path, "", *(f"{n}:{v}" for n, v in sorted((k.lower(), v) for k, v in h.items())), "", ";".join(names), h["x-amz-content-sha256"]])
    scope = f"{day}/us-east-1/s3/aws4_request"
    key = b"AWS4s3cr3t-key-1"
    for part in (day, "us-east-1", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(text.encode()).hexdigest()])
    sig = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    h["authorization"] = f"AWS4-HMAC-SHA256 Credential=MAIN/{scope}, SignedHeaders={';'.join(names)}, Signature={sig}"
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in h.items())
    return head.encode() + (b"content-length: %d\r\n" % len(body) if body else b"") + b"\r\n" + body


def form(rng):
    policy = base64.b64encode(json.dumps({"expiration": "2039-01-01T00:00:00Z", "conditions": [{"bucket": "bkt"}, ["starts-with", "$key", ""]]}).encode())
    parts = [("key", b"f${filename}"), ("policy", policy), ("x-amz-algorithm", b"AWS4-HMAC-SHA256"), ("success_action_status", b"201"), ("file", b"x" * rng.randrange(300))]
    body = b"".join(b'--BB\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (n.encode(), b'; filename="a"' if n == "file" else b"", v) for n, v in parts) + b"--BB--\r\n"
    return b"POST /bkt HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=BB\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def chunked(rng):
    out = b"PUT /bkt/c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(rng.randrange(4)):
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60)))
        out += b"%x%s\r\n" % (len(data), rng.choice([b"", b";a", b";a=b", b';a="b\n"'])) + data + b"\r\n"
    return out + b"0\r\n" + rng.choice([b"", b"x-t: 1\r\n"]) + b"\r\n"


def token(rng):
    return TOKEN % (rng.randrange(1 << 47), rng.randrange(1, 1 << 20), rng.randrange(1 << 32), rng.randrange(1 << 24))


def rc_end(rng):
    return "01%s00000000000000000000ffff7f000001" % rng.randrange(1 << 24).to_bytes(4, "little").hex() + "0" * 40 + "010000"


def rc_token(rng):
    return "rc:%032x:%016x:%08x:%08x" % (rng.choice(IDS) if IDS and rng.random() < .5 else rng.randrange(1 << 128), rng.randrange(1 << 47), rng.randrange(1, 1 << 20), rng.randrange(1 << 32))


def good(rng):
    """One request that is right, or nearly."""
    xml = b"<Delete><Object><Key>a</Key></Object><Object><Key>k%d</Key></Object></Delete>" % rng.randrange(9)
    plain = [
        lambda: b"GET /bkt/k HTTP/1.1\r\nHost: localhost\r\nRange: bytes=%d-%d\r\nIf-None-Match: \"x\"\r\n\r\n" % (rng.randrange(99), rng.randrange(99)),
        lambda: b"HEAD /bkt/k?partNumber=1 HTTP/1.1\r\nHost: bkt.h:80\r\nx-amz-checksum-mode: ENABLED\r\n\r\n",
        lambda: b"PUT /bkt/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\nx-amz-meta-a: b\r\nContent-Type: a/b\r\n\r\nhello, world",
        lambda: b"GET /bkt?list-type=2&prefix=a%2Fb&max-keys=3&delimiter=/&encoding-type=url HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: b"PUT /bkt/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nx-amz-rdma-token: %s\r\n\r\n" % token(rng).encode(),
        lambda: b"GET /bkt/k HTTP/1.1\r\nHost: localhost\r\nx-amz-rdma-token: %s\r\nRange: bytes=0-3\r\n\r\n" % token(rng).encode(),
        lambda: b"POST /.s3rdma-rc/connect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nx-amz-rdma-token: %s\r\nx-amz-rdma-psn: %06x\r\nx-gantry-rc: reads=16; mtu=1024; sl=0; pkey=0xffff\r\n\r\n" % (rc_end(rng).encode(), rng.randrange(1 << 24)),
        lambda: b"POST /.s3rdma-rc/disconnect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nx-amz-rdma-session: %s\r\n\r\n" % rc_token(rng)[3:35].encode(),
        lambda: b"%s /bkt/k HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nx-amz-rdma-token: %s\r\n\r\n" % (rng.choice([b"GET", b"PUT"]), rc_token(rng).encode()),
        lambda: b"GET /bkt/k HTTP/1.1\r\nHost: localhost\r\nx-rdma-info: {\"rkey\": 1, \"addr\": \"%x\"}\r\n\r\n" % rng.randrange(1 << 40),
        lambda: b"POST /bkt?delete HTTP/1.1\r\nHost: localhost\r\nContent-MD5: %s\r\nContent-Length: %d\r\n\r\n%s" % (base64.b64encode(hashlib.md5(xml).digest()), len(xml), xml),
        lambda: b"POST /bkt/m?uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        lambda: b"PUT /bkt/copy HTTP/1.1\r\nHost: localhost\r\nx-amz-copy-source: /bkt/%s\r\nContent-Length: 0\r\n\r\n" % rng.choice([b"k", b"%6B", b"a%2Fb?versionId=null"]),
        lambda: b"OPTIONS /bkt/k HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\nAccess-Control-Request-Method: PUT\r\n\r\n",
        lambda: b"GET /bkt/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=MAIN%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=9&X-Amz-SignedHeaders=host&X-Amz-Signature=00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        lambda: form(rng),
        lambda: chunked(rng),
        lambda: signed(rng, rng.choice(["GET", "PUT", "DELETE"]), "/bkt/s", {"x-amz-rdma-token": token(rng)} if rng.random() < .3 else {"x-amz-meta-q": "1"}, b""),
        lambda: signed(rng, "PUT", "/bkt/s%20t", {}, b"body of it"),
    ]
    return rng.choice(plain)()


BITS = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b";", b",", b"%", b"%00", b"%2f", b"../", b"+", b"&", b"=", b"?", b"#", b"\xff", b"\xc0\xaf", b"chunked",
        b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Host: i\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.0", b"-1",
        b"18446744073709551616", b"0", b"\r\n\r\n", b"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n", b"x-amz-decoded-content-length: 9\r\n"]


def mutate(rng, data):
    d = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(d) + 1)
        how = rng.randrange(6)
        if how == 0 and d:
            d[at % len(d)] ^= 1 << rng.randrange(8)
        elif how == 1:
            d[at:at] = rng.choice(BITS)
        elif how == 2:
            del d[at:at + rng.choice([1, 1, 2, 10, 100])]
        elif how == 3:
            d[at:at] = d[at:at + rng.randrange(1, 200)]  # said twice
        elif how == 4:
            d[at:at] = bytes([rng.randrange(256)]) * rng.choice([1, 10, 300, 9000])
        elif d:
            d[at % len(d)] = rng.randrange(256)
    return bytes(d)


def answers(data):
    """The statuses of what came back; raises if it is not a row of answers.  The last one's body may be anything (HEAD has none)."""
    out, at = [], 0
    while at < len(data):
        m = MARK.match(data, at)
        if not m:
            # Behind an answer to HEAD, whose length is not that of a body, or of a refusal of the library, which comes with its head twice.
            assert out, ("no answer", data[:200])
            nxt = data.find(b"HTTP/1.1 ", at)
            if nxt < 0:
                break
            at = nxt
            continue
        out.append(int(m[1]))
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            break
        at = end + 4
        n = re.search(rb"\r\ncontent-length: (\d+)\r\n", data[m.start():end + 2], re.I)
        if n and not MARK.match(data, at):
            at += int(n[1])
    return out


def talk(rng, where):
    sent = [mutate(rng, good(rng)) for _ in range(rng.choice([1, 1, 2, 3]))]
    data = b"".join(sent)
    s = socket.create_connection(where, 10)
    got, at = b"", 0
    try:
        while at < len(data):
            n = rng.choice([1, 7, 100, 100000])
            s.sendall(data[at:at + n])
            at += n
            if rng.random() < .02:
                time.sleep(.002)
        if rng.random() < .5:
            s.shutdown(socket.SHUT_WR)
        while select.select([s], [], [], QUIET_S)[0]:
            more = s.recv(1 << 16)
            if not more:
                break
            got += more
    except OSError as e:
        if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
            raise
    finally:
        s.close()
    statuses = answers(got)
    for an_id in re.findall(rb"x-amz-rdma-session: ([0-9a-f]{32})", got):
        IDS.append(int(an_id, 16))
        del IDS[:-50]
    # Windows that do not exist end in an error of the transfer; nothing else is our fault.
    assert statuses.count(500) <= got.count(b"RDMATransferFailed"), ("an answer of 500", data, got[:600])
    # Every request has a line that ends with its version; who counts every line end and every such word sees the most.
    most = max(1, data.count(b"HTTP/")) * 2 + data.count(b"100-continue")
    assert len(statuses) <= most, ("more answers than requests", data, statuses)
    return statuses


class Talker(threading.Thread):
    """One of those who talk at once; its n-th connection is the same in every run with this seed."""

    def __init__(self, number, where, seed, until):
        super().__init__(daemon=True)
        self.number, self.where, self.seed, self.until = number, where, seed, until
        self.n, self.counts, self.failed = 0, {}, None

    def run(self):
        while not self.failed and time.monotonic() < self.until:
            rng = random.Random(f"{self.seed}:{self.number}:{self.n}")
            try:
                for st in talk(rng, rng.choice(self.where)):
                    self.counts[st] = self.counts.get(st, 0) + 1
            except Exception as e:
                self.failed = f"seed {self.seed}, talker {self.number}, connection {self.n}: {e!r}"
            self.n += 1


def main():
    listeners, admin, seconds, seed = sys.argv[1].split(","), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    where = [(h, int(p)) for h, p in (a.rsplit(":", 1) for a in listeners)]
    talkers = [Talker(i, where, seed, time.monotonic() + seconds) for i in range(TALKERS)]
    for t in talkers:
        t.start()
    while any(t.is_alive() for t in talkers):
        for t in talkers:
            t.join(.1)
            if t.failed:
                sys.exit(t.failed)
        with urllib.request.urlopen(f"http://{admin}/livez", timeout=10) as a:
            assert a.status == 200
    counts = {}
    for t in talkers:
        if t.failed:
            sys.exit(t.failed)
        for k, v in t.counts.items():
            counts[k] = counts.get(k, 0) + v
    n = sum(t.n for t in talkers)
    print(f"seed {seed}: {n} connections, answers: " + ", ".join(f"{k}: {v}" for k, v in sorted(counts.items())))
    # What is changed too much tells nothing: some must still be good, and some refused.
    if not any(k < 300 for k in counts) or 400 not in counts:
        sys.exit("these were no requests")


main()
