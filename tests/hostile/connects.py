#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Connects of RC by the thousand, see connects.sh: python3 connects.py HOST:PORT SECONDS ADDRESSES READY

Each of ADDRESSES addresses (127.0.1.1, ...) asks for connections as fast as the answers come, for queue pairs that do not exist, and never
uses one; some hang up before the answer, some name ids that they made up.  READY is made when all have begun.  Prints the statuses."""
import collections
import http.client
import random
import socket
import sys
import threading
import time

TOKEN = "01%s00000000000000000000ffff7f000001" + "0" * 40 + "010000"


def where(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def token(rng):
    return TOKEN % rng.randrange(1, 1 << 24).to_bytes(4, "little").hex()


class Client(threading.Thread):
    def __init__(self, server, address, until):
        super().__init__()
        self.server, self.address, self.until = server, address, until
        self.rng = random.Random(address)
        self.statuses = collections.Counter()
        self.wrong = None

    def connect(self):
        return http.client.HTTPConnection(*self.server, timeout=30, source_address=(self.address, 0))

    def hang_up(self):
        s = socket.create_connection(self.server, timeout=30, source_address=(self.address, 0))
        s.sendall(b"POST /.s3rdma-rc/connect HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nx-amz-rdma-psn: 1\r\nx-amz-rdma-token: %s\r\n\r\n" % token(self.rng).encode())
        s.close()

    def forged(self, conn):
        an_id = "%032x" % self.rng.randrange(1 << 128)
        conn.request("GET", "/bkt/o", headers={"x-amz-rdma-token": f"rc:{an_id}:00007f0000200000:00100000:0001a2b3"})
        a = conn.getresponse()
        a.read()
        assert a.status == 501 and a.headers["x-gantry-rdma-reason"] == "not-connected", ("a made up id", a.status)

    def run(self):
        try:
            conn = self.connect()
            while time.monotonic() < self.until:
                if self.rng.random() < .1:
                    self.hang_up()
                if self.rng.random() < .1:
                    self.forged(conn)
                conn.request("POST", "/.s3rdma-rc/connect", headers={"content-length": "0", "x-amz-rdma-psn": "1", "x-amz-rdma-token": token(self.rng)})
                a = conn.getresponse()
                a.read()
                self.statuses[a.status] += 1
                assert a.status in (200, 503), ("a connect", a.status)
        except Exception as e:  # pylint: disable=broad-except
            self.wrong = f"{self.address}: {type(e).__name__} {e}"


def main():
    server, seconds, addresses, ready = where(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    clients = [Client(server, f"127.0.1.{i + 1}", time.monotonic() + seconds) for i in range(addresses)]
    for c in clients:
        c.start()
    with open(ready, "w", encoding="ascii"):
        pass
    for c in clients:
        c.join()
    for c in clients:
        if c.wrong:
            sys.exit(c.wrong)
    total = sum((c.statuses for c in clients), collections.Counter())
    print(*(f"{s}={n}" for s, n in sorted(total.items())))
    assert total[503], "no connect was refused"


main()
