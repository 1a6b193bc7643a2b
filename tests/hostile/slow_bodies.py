#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that send or read a body byte by byte, and one that wants to be served beside them:
python3 slow_bodies.py HOST:PORT ADMIN KINDS CONNECTIONS ADDRESSES SECONDS LIMIT [READY-FILE]

KINDS is put (a byte a second of a PUT), get (2 KiB a second of /bkt/big), list (nothing of a list is read), xml (a byte a second of
DeleteObjects), or several with commas.  The connections come from ADDRESSES addresses, 127.0.1.1 and on; one that is cut off or answered
comes again.  The other client, at 127.0.0.1, puts, gets, lists and asks /livez in turn, each on a connection of its own, and each answer
begins within LIMIT seconds and is what it should be, or this fails.  Two seconds without the others come first: what the machine itself is late
then is added to LIMIT, which is for a machine with nothing else to do: it grows with the load.  READY-FILE is made when everybody is connected."""
import http.client
import os
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
from waits import until  # noqa: E402

BIG = 3 << 20
AGAIN_S = 0.1
HEADS = {"put": "PUT /bkt/slow%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\na",
         "get": "GET /bkt/big?x-n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n",
         "list": "GET /bkt?list-type=2&x-n=%d HTTP/1.1\r\nHost: localhost\r\n\r\n",
         "xml": "POST /bkt?delete&x-n=%d HTTP/1.1\r\nHost: localhost\r\nContent-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n"
                "Content-Length: 100000\r\n\r\n<Delete>"}


class Slow:
    """One slow connection."""

    def __init__(self, poll, where, kind, source, n):
        self.poll, self.where, self.kind, self.source = poll, where, kind, source
        self.head = (HEADS[kind] % n).encode()
        self.reads = kind in ("get", "list")
        self.s, self.due, self.cut = None, 0, -1

    def open(self, now):
        self.s = socket.socket()
        if self.reads:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.s.setblocking(False)
        self.s.bind((self.source, 0))
        self.s.connect_ex(self.where)
        self.sent = False
        self.due = now + 1
        self.cut += 1
        self.poll.register(self.s, select.POLLOUT)
        return self.s.fileno()

    def close(self, now):
        self.poll.unregister(self.s)
        self.s.close()
        self.s, self.due = None, now + AGAIN_S

    def event(self, now):
        """It is connected; or there is an answer, or the end."""
        if self.sent:
            self.close(now)
            return
        try:
            self.s.send(self.head)
            self.sent = True
            # Readers only want to know that they were cut off.
            self.poll.modify(self.s, 0 if self.reads else select.POLLIN)
        except OSError:
            self.close(now)

    def tick(self, now):
        self.due = now + 1
        try:
            if not self.reads:
                self.s.send(b"a")
            elif self.kind == "get" and not self.s.recv(2048):
                self.close(now)
        except BlockingIOError:
            pass
        except OSError:
            self.close(now)


def attack(where, kinds, nr, addresses, seconds, ready):
    poll = select.poll()
    slow = [Slow(poll, where, kinds[i % len(kinds)], f"127.0.{1 + i % addresses // 250}.{1 + i % addresses % 250}", i) for i in range(nr)]
    by_fd = {}
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for c in slow:
            if c.due > now:
                continue
            if c.s is None:
                by_fd[c.open(now)] = c
            elif c.sent:
                c.tick(now)
        for fd, _ in poll.poll(20):
            if by_fd[fd].s is not None:
                by_fd[fd].event(time.monotonic())
        if ready and all(c.sent for c in slow if c.s):
            open(ready, "w").close()
            ready = None
    print(f"attackers: {nr} of {addresses} addresses, cut off or answered {sum(c.cut for c in slow)} times", flush=True)


def ask(where, method, target, body=None):
    began = time.monotonic()
    c = http.client.HTTPConnection(where, timeout=60)
    c.request(method, target, body)
    r = c.getresponse()
    took = time.monotonic() - began
    data = r.read()
    c.close()
    return r.status, data, took


def be_served(where, admin, end, limit):
    block = os.urandom(100000)
    worst, nr, bad = {}, 0, []
    while time.monotonic() < end:
        for what, to, method, target, body, want in (
                ("PUT", where, "PUT", "/bkt/victim", block, b""), ("GET", where, "GET", "/bkt/victim", None, block),
                ("HEAD", where, "HEAD", "/bkt/victim", None, b""), ("large GET", where, "GET", "/bkt/big", None, bytes(BIG)),
                ("list", where, "GET", "/bkt?list-type=2&max-keys=1", None, None), ("livez", admin, "GET", "/livez", None, None)):
            try:
                status, data, took = ask(to, method, target, body)
            except (OSError, http.client.HTTPException) as e:
                status, data, took = repr(e), b"", 0
            worst[what] = max(worst.get(what, 0), took)
            nr += 1
            if status != 200 or took > (limit or 60) or want not in (None, data):
                bad.append(f"{what}: {status} after {took:.3f} s")
        time.sleep(0.02)
    if limit is None:
        return max(worst.values(), default=0), bad
    print(f"served: {nr}, the slowest {', '.join(f'{k} {v:.3f} s' for k, v in worst.items())}", flush=True)
    for line in bad[:20]:
        print("FAIL", line, flush=True)
    return 1 if bad or not nr else 0


def main():
    where, admin, kinds, nr, addresses, seconds, limit = sys.argv[1:8]
    host, port = where.rsplit(":", 1)
    ready = sys.argv[8] if len(sys.argv) > 8 else "slow.ready"
    if os.path.exists(ready):
        os.unlink(ready)
    late, bad = be_served(where, admin, time.monotonic() + 2, None)
    assert not bad, bad
    load = os.getloadavg()[0] / os.cpu_count()
    limit = late + float(limit) * max(1, load)
    print(f"without the others: {late:.3f} s at most; the limit is {limit:.3f} s", flush=True)
    pid = os.fork()
    if pid == 0:
        attack((host, int(port)), kinds.split(","), int(nr), int(addresses), float(seconds), ready)
        os._exit(0)
    until("the others are there", lambda: os.path.exists(ready), 20, 0.02)
    # Until the attackers go, or almost.
    rc = be_served(where, admin, time.monotonic() + float(seconds) - 3, limit)
    os.waitpid(pid, 0)
    sys.exit(rc)


main()
