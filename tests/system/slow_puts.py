#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""slow_puts.py URL DIR BUCKET...: PUTs and parts of uploads whose bodies come slowly, until DIR/go is there; then the rest comes at once.

DIR/begun is there when all have sent something.  Each has to be answered 200, and what it put to be read as it was sent.  Exit 1: one was not."""
import hashlib
import http.client
import os
import random
import re
import sys
import threading
import time

from waits import until

URL, DIR, BUCKETS = sys.argv[1], sys.argv[2], sys.argv[3:]
SIZES = (5, 1000, 70000, 300000, 1500000, 6000000)
EACH = 1  # of each size, as an object and as a part
wrong, sent, lock = [], [0], threading.Lock()


def complain(text):
    with lock:
        wrong.append(text)


def ask(method, path, body=None):
    conn = http.client.HTTPConnection(URL.split("//")[1], timeout=60)
    conn.request(method, path, body)
    r = conn.getresponse()
    return r.status, r.headers, r.read()


class Slow(threading.Thread):
    def __init__(self, bucket, size, nr, is_part):
        super().__init__()
        self.path, self.is_part = f"/{bucket}/slow-{size}-{nr}{'-part' if is_part else ''}", is_part
        self.data, self.upload = random.Random(self.path).randbytes(size), None
        if is_part:
            r = ask("POST", f"{self.path}?uploads")
            self.upload = re.search(rb"<UploadId>(.*?)</UploadId>", r[2])[1].decode()

    def body(self):
        """Half of it, then a little with each moment that nobody says go."""
        half = len(self.data) // 2
        yield self.data[:half]
        with lock:
            sent[0] += 1
        while not os.path.exists(f"{DIR}/go"):
            time.sleep(0.2)
            if half < len(self.data) - 100:
                yield self.data[half:half + 50]
                half += 50
        yield self.data[half:]

    def run(self):
        try:
            conn = http.client.HTTPConnection(URL.split("//")[1], timeout=60)
            path = f"{self.path}?partNumber=1&uploadId={self.upload}" if self.is_part else self.path
            conn.request("PUT", path, self.body(), {"Content-Length": str(len(self.data))})
            r = conn.getresponse()
            said = r.read()
            if r.status != 200:
                complain(f"{path}: a PUT of {len(self.data)} bytes is answered {r.status}: {said[:200]}")
                return
            if self.is_part:
                xml = f"<Part><PartNumber>1</PartNumber><ETag>{r.headers['ETag']}</ETag></Part>"
                done = ask("POST", f"{self.path}?uploadId={self.upload}",
                           f"<CompleteMultipartUpload>{xml}</CompleteMultipartUpload>")
                if done[0] != 200:
                    complain(f"{self.path}: a completion is answered {done[0]}: {done[2][:200]}")
            back = ask("GET", self.path)
            if back[0] != 200 or hashlib.md5(back[2]).digest() != hashlib.md5(self.data).digest():
                complain(f"{self.path}: it is read as {back[0]}, {len(back[2])} bytes")
        except (OSError, http.client.HTTPException) as e:
            complain(f"{self.path}: {e}")


slow = [Slow(b, size, nr, part) for b in BUCKETS for size in SIZES for nr in range(EACH) for part in (False, True)]
for s in slow:
    s.start()
until("half of each PUT is sent", lambda: sent[0] >= len(slow) or wrong)
with open(f"{DIR}/begun", "w", encoding="ascii"):
    pass
for s in slow:
    s.join()
print(f"{len(slow)} slow PUTs")
for text in wrong[:10]:
    print(f"WRONG: {text}")
sys.exit(1 if wrong else 0)
