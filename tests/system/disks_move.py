#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""disks_move.py DIR SEED BUCKET: load on a store whose disks come and go, each thread with keys of its own.

DIR/url says where the server is, which may die and come again elsewhere; DIR/stop ends the load.  LONGEST_MS in the environment is what an answer
may take; with NO_FAULTS, where nothing but moves can be in the way, no request is answered 503.  Whatever is read is checked
against what was answered before: an answer of 2xx counts, anything else may have been done or not.  Last of all every key is
read once more.  Exit 1: something is lost, or came again."""
import hashlib
import http.client
import os
import random
import re
import sys
import threading
import time

DIR, SEED = sys.argv[1], int(sys.argv[2])
BUCKET = sys.argv[3]
THREADS, KEYS = 3, 25
LONGEST_MS, NO_FAULTS = int(os.environ.get("LONGEST_MS", "0")), "NO_FAULTS" in os.environ
# Seconds between two requests of a thread, which would otherwise take a processor for as long as a move takes. The sweeps of the long tier (SECS)
# have none.
PAUSE_S = 0 if "SECS" in os.environ else 0.02
wrong, counts, lock = [], {}, threading.Lock()


def count(what):
    with lock:
        counts[what] = counts.get(what, 0) + 1


def complain(text):
    with lock:
        wrong.append(text)


POOL = random.Random(SEED).randbytes(1 << 20)


def body_of(rnd, size):
    """A block of the pool, repeated. No piece has its length, so bytes at another place differ; and 5 MiB of randbytes() take 10 ms."""
    length = min(size, (256 << 10) + 4099)
    at = rnd.randrange(len(POOL) - length)
    return (POOL[at:at + length] * (size // (length or 1) + 1))[:size]


class Client:
    """One connection, made anew when it breaks, to wherever the server is by then."""

    def __init__(self):
        self.conn = None

    def ask(self, method, path, body=None):
        """Status, headers, body; None: no answer."""
        try:
            if not self.conn:
                with open(f"{DIR}/url", encoding="ascii") as f:
                    where = f.read().strip()
                if not where:  # it is being written
                    raise OSError
                self.conn = http.client.HTTPConnection(where.split("//")[1], timeout=30)
            began = time.monotonic()
            self.conn.request(method, path, body)
            r = self.conn.getresponse()
            data = r.read()
            took = time.monotonic() - began
            with lock:
                counts["longest_ms"] = max(counts.get("longest_ms", 0), int(took * 1000))
            count(f"{method} {r.status}")
            if NO_FAULTS and r.status == 503:
                complain(f"{method} {path} of {len(body or b'')} bytes is answered 503: {data[:200]}")
            return r.status, r.headers, data
        except (OSError, http.client.HTTPException):
            if self.conn:
                self.conn.close()
            self.conn = None
            count("no answer")
            time.sleep(0.05)
            return None


class Worker(threading.Thread):
    def __init__(self, nr):
        super().__init__()
        self.nr, self.rnd, self.c = nr, random.Random(SEED * 1000 + nr), Client()
        self.may = {self.key(i): {None} for i in range(KEYS)}  # digests that a key may have; None: not there

    def key(self, i):
        return f"t{self.nr}/k{i:03d}"

    def put(self, key):
        size = self.rnd.choice([3, 200, 3000, 20000, 70000, 300000, 700000])
        data = body_of(self.rnd, size)
        digest = hashlib.sha1(data).hexdigest()
        self.wrote(key, self.c.ask("PUT", f"/{BUCKET}/{key}", data), digest)

    def wrote(self, key, r, digest, done=(200, 204)):
        if r and r[0] in done:
            self.may[key] = {digest}
        else:
            if r and r[0] != 503:
                complain(f"{key}: a write is answered {r[0]}: {r[2][:200]}")
            self.may[key] = self.may[key] | {digest}

    def delete(self, key):
        self.wrote(key, self.c.ask("DELETE", f"/{BUCKET}/{key}"), None)

    def upload(self, key):
        r = self.c.ask("POST", f"/{BUCKET}/{key}?uploads")
        if not r or r[0] != 200:
            return
        upload = re.search(rb"<UploadId>(.*?)</UploadId>", r[2])[1].decode()
        parts, whole = [], b""
        for n, size in ((1, 5 << 20), (2, self.rnd.randrange(1, 400000))):
            data = body_of(self.rnd, size)
            r = self.c.ask("PUT", f"/{BUCKET}/{key}?partNumber={n}&uploadId={upload}", data)
            if not r or r[0] != 200:
                self.c.ask("DELETE", f"/{BUCKET}/{key}?uploadId={upload}")
                return
            parts.append((n, r[1]["ETag"]))
            whole += data
        xml = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{e}</ETag></Part>" for n, e in parts)
        r = self.c.ask("POST", f"/{BUCKET}/{key}?uploadId={upload}",
                       f"<CompleteMultipartUpload>{xml}</CompleteMultipartUpload>")
        self.wrote(key, r, hashlib.sha1(whole).hexdigest(), (200,))
        count("uploads")

    def get(self, key):
        for _ in range(200):
            r = self.c.ask("GET", f"/{BUCKET}/{key}")
            if r and r[0] in (200, 404):
                break
            if r and r[0] != 503:
                complain(f"{key}: a read is answered {r[0]}: {r[2][:200]}")
            if os.path.exists(f"{DIR}/stop"):
                time.sleep(0.05)
            else:
                return
        else:
            complain(f"{key}: it cannot be read")
            return
        have = hashlib.sha1(r[2]).hexdigest() if r[0] == 200 else None
        if have not in self.may[key]:
            complain(f"{key}: is {have} ({len(r[2])} bytes), may be {self.may[key]}")
        self.may[key] = {have}

    def list(self):
        r = self.c.ask("GET", f"/{BUCKET}?list-type=2&prefix=t{self.nr}/")
        if not r or (r[0] == 503 and b"is draining" in r[2]):  # the daemon ends
            return
        if r[0] != 200:
            complain(f"a list is answered {r[0]}: {r[2][:200]}")
            return
        names = re.findall(r"<Key>(.*?)</Key>", r[2].decode())
        if names != sorted(set(names)):
            complain(f"a list is not in order, or has a name twice: {names}")
        for key, may in self.may.items():
            if (key in names and may == {None}) or (key not in names and None not in may):
                complain(f"a list {'has' if key in names else 'lacks'} {key}, which may be {may}")

    def run(self):
        while not os.path.exists(f"{DIR}/stop"):
            time.sleep(PAUSE_S)
            key = self.key(self.rnd.randrange(KEYS))
            what = self.rnd.random()
            if what < 0.4:
                self.put(key)
            elif what < 0.75:
                self.get(key)
            elif what < 0.88:
                self.delete(key)
            elif what < 0.98:
                self.list()
            else:
                self.upload(key)
        for key in self.may:
            self.get(key)
        self.list()
        count("threads")


workers = [Worker(i) for i in range(THREADS)]
for w in workers:
    w.start()
for w in workers:
    w.join()
there = sum(1 for w in workers for may in w.may.values() if may != {None})
print(" ".join(f"{k.replace(' ', ':')}={v}" for k, v in sorted(counts.items())))
with open(f"{DIR}/there", "w", encoding="ascii") as f:
    f.write(f"{there}\n")
with open(f"{DIR}/names", "w", encoding="ascii") as f:
    f.writelines(f"{key}\n" for w in workers for key, may in w.may.items() if may != {None})
if counts["threads"] != THREADS:
    complain("a thread has ended before its time")
if LONGEST_MS and counts["longest_ms"] > LONGEST_MS:
    complain(f"an answer took {counts['longest_ms']} ms, and {LONGEST_MS} are allowed")
for text in wrong[:10]:
    print(f"WRONG: {text}")
sys.exit(1 if wrong else 0)
