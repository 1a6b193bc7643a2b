# SPDX-License-Identifier: Apache-2.0
"""Servers that lie to the gantry command.  Usage: client_hostile.py GANTRY, in an empty directory."""

import http.server
import itertools
import json
import os
import re
import subprocess
import sys
import threading

GANTRY = sys.argv[1]
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GANTRY_ADMIN"))}


class Server(http.server.ThreadingHTTPServer):
    """Answers every request by calling answer(handler)."""

    daemon_threads = True

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                answer(self)

            do_HEAD = do_PUT = do_DELETE = do_GET

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()


def gantry(*words, feed=b""):
    return subprocess.run([GANTRY, *words], capture_output=True, env=ENV, timeout=60, input=feed)


def reply(h, status, headers, body=b""):
    h.send_response(status)
    for name, value in headers:
        h.send_header(name, value)
    h.send_header("content-length", str(len(body)))
    h.end_headers()
    if h.command != "HEAD":
        h.wfile.write(body)


# ---- a part is not the whole ----


def cache(data, cap, first_only=False):
    """A cache that answers at most cap bytes of a range: RFC 9110 15.3.7 allows that."""

    def answer(h):
        m = re.match(r"bytes=(\d+)-(\d+)", h.headers["range"])
        a, b = int(m[1]), min(int(m[2]), len(data) - 1)
        if a == 0 or not first_only:
            b = min(b, a + cap - 1)
        reply(h, 206, [("content-range", "bytes %d-%d/%d" % (a, b, len(data)))], data[a : b + 1])

    return answer


def nothing(h):
    headers = [("content-range", "bytes 0-999/1000")]
    if "x-amz-rdma-token" in h.headers:
        headers += [("x-amz-rdma-reply", "206"), ("x-amz-rdma-bytes", "1000")]
        headers += [("x-amz-rdma-checksum", "CRC64NVME AAAAAAAAAAA=")]
    reply(h, 206, headers)


def refused_as_partial(what, answer, *options):
    server = Server(answer)
    done = gantry(*options, "get", server.url + "/b/k", "out")
    assert done.returncode == 1, (what, done)
    assert b"incomplete" in done.stderr, (what, done)
    # Under its name there is nothing, and no temporary file either.
    assert os.listdir(".") == [], (what, os.listdir("."))
    many = gantry(*options, "-q", "mget", "-", server.url + "/b", feed=b"k\n")
    assert many.returncode == 1, (what, many)
    assert os.listdir(".") == [], (what, os.listdir("."))
    server.shutdown()


SMALL = os.urandom(1_000_000)
LARGE = os.urandom(40_000_000)
refused_as_partial("64 KiB a request", cache(SMALL, 65536), "--no-rdma")
refused_as_partial("only the first is short", cache(LARGE, 65536, first_only=True), "--no-rdma")
refused_as_partial("a range and no bytes", nothing, "--no-rdma")
refused_as_partial("a wrong checksum, then no bytes", nothing)
# Served whole, the same is fine.
whole = Server(cache(LARGE, len(LARGE)))
assert gantry("--no-rdma", "get", whole.url + "/b/k", "out").returncode == 0
with open("out", "rb") as f:
    assert f.read() == LARGE
os.unlink("out")

# ---- a trailer is no answer ----


def trailer(h):
    h.wfile.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n200000\r\n" + bytes(0x200000))
    h.wfile.write(b"\r\n0\r\nHTTP/1.1: 200 OK\r\n\r\n")


done = gantry("--no-rdma", "get", Server(trailer).url + "/b/k", "out")
assert done.returncode == 0 and b"2.0 MiB" in done.stdout, done
assert os.path.getsize("out") == 0x200000
os.unlink("out")

# ---- what a server says does nothing to the terminal ----

# Sets the window's title; the same in C1 as UTF-8 and as a byte; turns what follows.
EVIL = "\x1b]0;PWN\x07 \u009b31m \u202e\x7f"
RAW = EVIL.encode() + b" \x9b31m"


def is_harmless(what, done, shown=True):
    for out in done.stdout, done.stderr:
        text = out.decode()  # it is UTF-8
        bad = [c for c in text if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f" or c in "\u202e")]
        assert not bad, (what, bad, text)
    assert not shown or b"PWN" in done.stdout + done.stderr, (what, done)


def evil(h):
    head = b"HTTP/1.1 %d X\r\n" % STATUS
    for name in b"etag", b"x-gantry-rdma-reason", b"last-modified", b"x-amz-checksum-crc64nvme", b"x-amz-rdma-checksum":
        head += name + b": " + RAW + b"\r\n"
    body = b"<Error><Code>" + RAW + b"</Code><Message>" + RAW + b"</Message></Error>" if STATUS == 403 else b"1234"
    if h.command == "HEAD":
        body = b""
    int(h.headers["content-length"] or 0) and h.rfile.read(int(h.headers["content-length"]))
    h.wfile.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)


with open("file", "wb") as f:
    f.write(b"1234")
url = Server(evil).url + "/b/k"
for STATUS in 200, 403:
    for words in ["get", url, "-"], ["get", url, "out"], ["head", url], ["put", "file", url], ["rm", url], ["mb", url.removesuffix("/k")]:
        for option in [], ["--json"]:
            done = gantry(*option, *words)
            # A put and a plain get say nothing of it when all is well, and an error of HEAD has no body.
            shown = words[0] == "head" or words[-1] == "out" if STATUS == 200 else words[0] != "head"
            is_harmless((words, option), done, shown)
# A checksum that is no checksum is not compared with what it was cleaned to.
STATUS = 200
done = gantry("--checksum", "get", url, "out")
assert done.returncode == 1, done
is_harmless("--checksum", done)


def evil_admin(h):
    text = json.dumps(EVIL)
    one = ('{"phase":%s,"version":%s,"status":%s,"reasons":[%s,7],"dialect":%s,"address":%s,"device":%s,"state":%s,"link":%s,'
           '"path":%s,"reason":%s,%s:%s,"rdma":{"devices":%s},"errors":1}') % ((text,) * 14)
    page = '[%s]' % one if h.path in ("/rails", "/disks") else one[:-1] + ',"listeners":[%s]}' % one
    body = page.encode()
    if h.path == "/metrics":
        body = b'gantry_declines_total{reason="' + RAW + b'"} %d\n' % next(COUNT)
        body += b'gantry_requests_total{operation="' + RAW + b'",transport="rdma"} %d\n' % next(COUNT)
    reply(h, 503 if h.path == "/healthz" else 200, [], body)


COUNT = itertools.count(1)
admin = Server(evil_admin).url
for words in ["status"], ["top", "--count", "1", "--interval", "0.1"], ["doctor"]:
    # top draws a screen, and knows no JSON.
    for option in ([],) if words[0] == "top" else ([], ["--json"]):
        is_harmless((words, option), gantry(*option, "--admin", admin, *words))
