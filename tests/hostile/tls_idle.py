#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Over TLS, see heads.sh: python3 tls_idle.py HOST:PORT

Connections with half a head or half a record are closed (limits.head). Idle connections, which are older than those, still serve when the
last of those has been closed (limits.idle). For TLS 1.2 and 1.3, before the first request and after one and two."""
import select
import socket
import ssl
import sys
import time

WAIT_S = 60
WHOLE = b"GET /bkt/small HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Conn:
    """TLS in memory, so that a record can be cut."""

    def __init__(self, where, version):
        host, port = where.rsplit(":", 1)
        self.s = socket.create_connection((host, int(port)), 20)
        c = ssl.create_default_context()
        c.check_hostname = False
        c.verify_mode = ssl.CERT_NONE
        c.minimum_version = c.maximum_version = version
        self.i, self.o = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = c.wrap_bio(self.i, self.o)
        self.until(self.tls.do_handshake)
        self.flush()

    def flush(self, most=None):
        self.s.sendall(self.o.read()[:most])

    def until(self, fn):
        while True:
            try:
                return fn()
            except ssl.SSLWantReadError:
                self.flush()
                b = self.s.recv(65536)
                if not b:
                    raise EOFError from None
                self.i.write(b)

    def send(self, data, most=None):
        self.tls.write(data)
        self.flush(most)

    def ask(self):
        self.send(WHOLE)
        got = b""
        while not got.endswith(b"small\n"):
            got += self.until(lambda: self.tls.read(65536))
        assert got.startswith(b"HTTP/1.1 200"), got

    def ended(self):
        """Tickets of TLS 1.3 are no end."""
        while select.select([self.s], [], [], 0)[0]:
            try:
                if not self.s.recv(65536):
                    return True
            except ConnectionError:
                return True
        return False


def main():
    where = sys.argv[1]
    versions = (("1.2", ssl.TLSVersion.TLSv1_2), ("1.3", ssl.TLSVersion.TLSv1_3))

    def conns(what, data, most):
        for name, version in versions:
            for asked in (0, 1, 2):
                c = Conn(where, version)
                for _ in range(asked):
                    c.ask()
                # What comes before the end of the request before is noticed only with the next byte.
                time.sleep(0.1)
                if data:
                    c.send(data, most)
                yield f"TLS {name}, {what}, after {asked} requests", c

    idle = list(conns("idle", b"", None))
    half = []
    for what, data, most in (("half a head", b"GET /bkt/sm", None), ("half a record", WHOLE, 20), ("a byte of a record", WHOLE, 1)):
        half += conns(what, data, most)
    bad, left, end = [], half, time.monotonic() + WAIT_S
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = [(n, c) for n, c in left if not c.ended()]
    bad += [f"{n}: still open" for n, _ in left]
    for n, c in idle:
        try:
            c.ask()
        except (EOFError, OSError) as e:
            bad.append(f"{n}: {e!r}")
    print("\n".join(bad) or f"{len(idle)} idle, {len(half)} half: as it should be")
    sys.exit(bool(bad))


main()
