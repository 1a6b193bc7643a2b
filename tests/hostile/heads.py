#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Connections that bring half of something, see heads.sh: python3 heads.py KIND HOST:PORT N SECONDS S3 ADMIN SOCKET PID

N connections to HOST:PORT send the beginning of a head (of a handshake), then a byte each second; one that is closed comes again.  A
process beside them asks for an object from 127.0.0.2, and for /livez over TCP and over the socket: each time a connection of its own."""
import errno
import http.client
import os
import random
import resource
import select
import socket
import sys
import time

SERVED_S = 1  # who sends a whole request is answered within
BEGINNINGS = {"s3": [b"GET /bkt/small HTTP/1.1\r\nHost: h\r\nX-Pad: " + b"p" * 200, b"G", b"\r\n", b"PUT /bkt/x HTTP/1.1\r\nHo"],
              "tls": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x16\x03\x01\x02\x00"],
              "admin": [b"GET /livez HTTP/1.1\r\nHost: h\r\nX: ", b"P"]}


def where(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Unix(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(conn, path):
    conn.request("GET", path)
    a = conn.getresponse()
    body = a.read()
    conn.close()
    assert a.status == 200, (path, a.status, body)


def probe(s3, admin, path, pid, seconds):
    """Returns how often each was asked, and whether all answers came in time."""
    worst, nr, until = {}, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for name, make, target in (
                ("object", lambda: http.client.HTTPConnection(*where(s3), timeout=20, source_address=("127.0.0.2", 0)), "/bkt/small"),
                ("livez", lambda: http.client.HTTPConnection(*where(admin), timeout=20, source_address=("127.0.0.2", 0)), "/livez"),
                ("livez over the socket", lambda: Unix(path), "/livez")):
            before, stood = time.monotonic(), waited(pid)
            ask(make(), target)
            took = time.monotonic() - before
            # What this process and the daemon stood in line for a CPU is the machine's, and its other work's.
            line = {t: w - stood.get(t, w) for t, w in waited(pid).items()}
            took -= line.pop("self") + max(line.values())
            worst[name] = max(worst.get(name, 0), took)
        nr += 1
        time.sleep(0.05)
    print(f"{nr} times; at worst " + ", ".join(f"{k} {v * 1000:.0f} ms" for k, v in worst.items()), flush=True)
    return nr >= seconds and all(v < SERVED_S for v in worst.values())


def waited(pid):
    """How long this process ("self") and each thread of the daemon were ready to run and did not, in seconds."""
    out = {}
    for name, path in [("self", "/proc/self/schedstat"), *((t, f"/proc/{pid}/task/{t}/schedstat") for t in os.listdir(f"/proc/{pid}/task"))]:
        try:
            with open(path) as f:
                out[name] = int(f.read().split()[1]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass  # a worker of the kernel's, which has ended
    return out


class Crowd:
    """The others."""

    def __init__(self, kind, to, n):
        self.kind, self.to, self.n = kind, where(to), n
        self.poll = select.epoll()
        self.open = {}
        self.closed, self.oldest = 0, 0

    def come(self):
        s = socket.socket()
        s.setblocking(False)
        rc = s.connect_ex(self.to)
        assert rc in (0, errno.EINPROGRESS), os.strerror(rc)
        self.open[s.fileno()] = [s, 0, time.monotonic(), random.choice(BEGINNINGS[self.kind])]
        self.poll.register(s.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

    def go(self, fd):
        s, _, since, _ = self.open.pop(fd)
        self.oldest = max(self.oldest, time.monotonic() - since)
        self.closed += 1
        s.close()

    def send(self, fd, now):
        c = self.open[fd]
        data = c[3] if c[1] == 0 else b"\x01" if self.kind == "tls" else b"\r" if c[3] == b"\r\n" else b"x"
        try:
            c[0].send(data)
            c[1] = now
        except BlockingIOError:
            pass
        except OSError:
            self.go(fd)

    def run(self, seconds):
        until, drip = time.monotonic() + seconds, 0
        while (now := time.monotonic()) < until:
            for _ in range(min(500, self.n - len(self.open))):
                self.come()
            for fd, events in self.poll.poll(0.05):
                if events & (select.EPOLLERR | select.EPOLLHUP | select.EPOLLIN):
                    self.go(fd)
                elif self.open[fd][1] == 0:
                    self.send(fd, now)
            if now - drip > 1:
                drip = now
                for fd in [f for f, c in self.open.items() if c[1]]:
                    self.send(fd, now)
        age = max((time.monotonic() - c[2] for c in self.open.values()), default=0)
        print(f"{self.kind}: {self.closed} closed, the oldest after {self.oldest:.1f} s; {len(self.open)} open, the oldest for {age:.1f} s", flush=True)
        for c in self.open.values():
            c[0].close()
        return max(age, self.oldest)


def main():
    kind, to, n, seconds, s3, admin, path, daemon = sys.argv[1:]
    n, seconds = int(n), int(seconds)
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    random.seed(seed)
    print(f"SEED={seed}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, max(20000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    pid = os.fork()
    if pid == 0:
        time.sleep(0.5)
        os._exit(0 if probe(s3, admin, path, daemon, seconds - 1) else 1)
    oldest = Crowd(kind, to, n).run(seconds)
    rc = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    # A second until it is seen, one until it is done, and what the machine takes for others.
    most = 7.5 if kind == "admin" else 15
    assert oldest < most, f"one stayed for {oldest:.1f} s"
    sys.exit(rc)


main()
