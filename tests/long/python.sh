#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package with an object of 4.1 GiB, which no token can name: in parts and back in ranges, all by RDMA, with memory that is
# registered as a whole.  The source is a mapping that is written in few places, the target is read into once.
MORE=$'limits: { s3_progress: 120s, s3_total: 600s }'
DISK_SIZE=6GiB
. "$(dirname "$0")/../system/lib.sh"
start_daemon
export URL_S3 PYTHONPATH=$ROOT/python GANTRY_LIBRARY=$BUILD/libgantry.so.0 PYTHONDONTWRITEBYTECODE=1
nic /usr/bin/python3 - <<'PYTHON' || fail "4.1 GiB from Python"
import mmap
import os

import gantry

GIB = 1 << 30
SIZE = 4 * GIB + GIB // 10 + 3
marks = [0, 64 << 20, GIB * 3 // 2, 4 * GIB - 5, 4 * GIB + (1 << 20), SIZE - 20]
with gantry.Client(os.environ["URL_S3"] + "/bkt", require_rdma=True) as client:
    source = mmap.mmap(-1, SIZE)
    for at in marks:
        source[at : at + 20] = b"mark at %12d" % at
    with client.register(source) as held:
        assert held.registered
        put = client.put("huge", source)
    assert (put.path, put.bytes, put.rdma_bytes, put.object_size) == ("rdma", SIZE, SIZE, SIZE), put
    source.close()
    assert client.head("huge").object_size == SIZE
    target = mmap.mmap(-1, SIZE)
    with client.register(target):
        got = client.get_into("huge", target)
    assert (got.path, got.bytes) == ("rdma", SIZE), got
    zeros = bytes(1 << 20)
    for at in marks:
        assert target[at : at + 20] == b"mark at %12d" % at, at
        target[at : at + 20] = zeros[:20]
    for at in range(0, SIZE, len(zeros)):
        piece = target[at : at + len(zeros)]
        assert piece == zeros[: len(piece)], at
PYTHON
no_requests || fail "requests are left"
assert_alive
