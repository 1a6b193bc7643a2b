#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""shim.py LIBRARY: NVIDIA's multi-storage-client as the library sees it: a shim loaded by ctypes, requests by boto3 from many threads, one
registration and a token for every request.  The bucket python is made here.  With BENCH=BYTES it puts and gets so many bytes once for each line of
its input, and says how many seconds that took."""
import ctypes
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore import UNSIGNED
from botocore.config import Config

shim = ctypes.CDLL(sys.argv[1])
for name, kinds in {
    "shim_open": [],
    "shim_register": [ctypes.c_void_p, ctypes.c_size_t],
    "shim_deregister": [ctypes.c_void_p],
    "shim_token": [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)],
    "shim_token_put": [ctypes.c_void_p],
}.items():
    getattr(shim, name).argtypes = kinds
    getattr(shim, name).restype = ctypes.c_int

PIECE = int(os.environ.get("BENCH") or 700001)
THREADS = 1 if os.environ.get("BENCH") else 8
memory = ctypes.create_string_buffer(PIECE * THREADS)
base = ctypes.addressof(memory)
# A bench's daemon has no keys.
unsigned = {} if os.environ.get("AWS_ACCESS_KEY_ID") else {"signature_version": UNSIGNED}
s3 = boto3.client("s3", endpoint_url=os.environ["URL_S3"], region_name="us-east-1",
                  config=Config(s3={"addressing_style": "path"}, max_pool_connections=THREADS, retries={"max_attempts": 0}, **unsigned))


def move(verb, key, offset):
    """One request with a token in its header and no body; the reply says that the bytes went by RDMA."""
    text = ctypes.c_void_p()
    assert shim.shim_token(base, PIECE, offset, verb == "PUT", ctypes.byref(text)) == 0
    try:
        token = ctypes.string_at(text).decode()
        assert len(token) == 81, token
        request = s3.meta.events

        def add(params, **_):
            if params["url_path"].endswith("/" + key):
                params["headers"]["x-amz-rdma-token"] = token

        request.register(f"before-call.s3.{verb.title()}Object", add, unique_id=key + verb)
        try:
            got = s3.put_object(Bucket="python", Key=key) if verb == "PUT" else s3.get_object(Bucket="python", Key=key)
        finally:
            request.unregister(f"before-call.s3.{verb.title()}Object", unique_id=key + verb)
        reply = got["ResponseMetadata"]["HTTPHeaders"].get("x-amz-rdma-reply")
        assert reply and reply[0] == "2", (verb, key, got)
    finally:
        assert shim.shim_token_put(text) == 0


assert shim.shim_open() == 0
assert shim.shim_register(base, PIECE * THREADS) == 0
s3.create_bucket(Bucket="python")
sent = os.urandom(PIECE * THREADS)
ctypes.memmove(base, sent, len(sent))

if os.environ.get("BENCH"):
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.monotonic()
        move("PUT", "bench", 0)
        move("GET", "bench", 0)
        print(f"{time.monotonic() - begun:.6f}", flush=True)
    assert memory.raw[:PIECE] == sent
    sys.exit()

with ThreadPoolExecutor(THREADS) as pool:
    list(pool.map(lambda i: move("PUT", f"o{i}", i * PIECE), range(THREADS)))
    for i in range(THREADS):
        assert s3.get_object(Bucket="python", Key=f"o{i}")["Body"].read() == sent[i * PIECE:(i + 1) * PIECE], i
    ctypes.memset(base, 0, len(sent))
    # Each piece comes back to another place.
    list(pool.map(lambda i: move("GET", f"o{i}", (THREADS - 1 - i) * PIECE), range(THREADS)))
for i in range(THREADS):
    at = (THREADS - 1 - i) * PIECE
    assert memory.raw[at:at + PIECE] == sent[i * PIECE:(i + 1) * PIECE], i
assert shim.shim_deregister(base) == 0
print("ok    msc_python")
