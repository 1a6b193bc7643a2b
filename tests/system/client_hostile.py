# SPDX-License-Identifier: Apache-2.0
"""Servers that lie to the gantry command.  Usage: client_hostile.py GANTRY, in an empty directory."""

import http.server
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
