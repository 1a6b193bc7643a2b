#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether one access key can make the daemon forget what another one has signed (share.sh): share.py HOST:PORT [REQUESTS]"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tenant import Tenant, answer  # noqa: E402

ADDRESS, N = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 70000
BATCH = 250


def token(n):
    return f"{n:016x}:00010000:00000001:0000:000001:1:00000000000000000000ffff7f000001"


def sent(request, source):
    with victim.connect(source) as s:
        s.sendall(request)
        return answer(s)[0]


victim, other = Tenant(ADDRESS, "AKVICTIM", "victim-secret"), Tenant(ADDRESS, "AKOTHER", "other-secret")
captured = [victim.head("GET", "/bkt/key", headers=[("x-amz-rdma-token", token(i))]) for i in range(32)]
first = [sent(request, "127.0.0.1") for request in captured]
assert 503 not in first, first
again = [sent(request, "127.0.0.2") for request in captured]
assert again == [503] * len(captured), again

flood = other.connect()
seen = b""
for at in range(0, N, BATCH):
    flood.sendall(b"".join(other.head("GET", "/bkt/key", headers=[("x-amz-rdma-token", token(1 << 32 | i))]) for i in range(at, at + BATCH)))
    nr = 0
    while nr < BATCH:
        data = flood.recv(1 << 20)
        assert data, "the connection ended"
        # A status line may come in two pieces.
        nr += (seen + data).count(b"HTTP/1.1 ") - seen.count(b"HTTP/1.1 ")
        assert b"HTTP/1.1 503" not in seen + data and b"HTTP/1.1 403" not in seen + data, data
        seen = (seen + data)[-12:]
        while seen.startswith(b"HTTP/1.1 "):
            seen = seen[1:]
again = [sent(request, "127.0.0.2") for request in captured]
assert again == [503] * len(captured), f"after {N} requests by another key: {again}"
