#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fills a store with one kind of record until it says 507, and finds the way out.

usage: full.py HOST:PORT fill KIND | laps KIND | full KIND | out KIND

fill   puts, eight at a time, until each has been told 507 InsufficientStorage
laps   writes the same few objects again and again, until the log (16 MiB) was written over twice
full   the store is full of that: 507, what is there is read, nothing is 503 for longer than PATIENCE
out    a delete is answered in that time, then something can be put; then everything is removed
"""
import http.client
import re
import sys
import threading
import time

HOST, WHAT, KIND = sys.argv[1:4]
PATIENCE = 30.0
META = {"x-amz-meta-m": "m" * 1900}
DATA = b"\xa5" * 1000000


class Client:
    def __init__(self):
        self.c = http.client.HTTPConnection(HOST, timeout=60)

    def once(self, method, path, body=b"", headers=None):
        self.c.request(method, path, body=body, headers=headers or {})
        r = self.c.getresponse()
        return r.status, r.read()

    def ask(self, method, path, body=b"", headers=None):
        """The answer that is not 503; that is told for no longer than PATIENCE."""
        began = time.monotonic()
        while True:
            status, text = self.once(method, path, body, headers)
            if status != 503:
                return status, text
            waited = time.monotonic() - began
            if waited > PATIENCE:
                sys.exit(f"{method} {path}: 503 for {waited:.1f} s: {text}")
            time.sleep(0.05)


def put(c, i):
    """Adds number i of the kind: the answer's status and text."""
    if KIND == "data":
        return c.ask("PUT", f"/bkt/data-{i:06}", DATA)
    if KIND in ("uploads", "parts"):
        status, text = c.ask("POST", f"/bkt/up-{i:06}?uploads", b"", META)
        if status != 200 or KIND == "uploads":
            return status, text
        upload = re.search(rb"<UploadId>([^<]+)", text).group(1).decode()
        for number in range(1, 41):
            status, text = c.ask("PUT", f"/bkt/up-{i:06}?partNumber={number}&uploadId={upload}", b"")
            if status != 200:
                break
        return status, text
    if KIND == "attributes":
        # Attributes of buckets: tags.
        status, text = c.ask("PUT", f"/full-{i:06}")
        if status != 200:
            return status, text
        tags = "".join(f"<Tag><Key>{n:03}{'k' * 120}</Key><Value>{'v' * 250}</Value></Tag>" for n in range(20))
        return c.ask("PUT", f"/full-{i:06}?tagging", f"<Tagging><TagSet>{tags}</TagSet></Tagging>".encode())
    return c.ask("PUT", f"/bkt/{KIND}-{i:06}", b"x", META)


def full(status, text):
    if status == 200:
        return False
    if status != 507 or b"InsufficientStorage" not in text:
        sys.exit(f"{KIND}: a full store says {status} {text}")
    return True


def at_once(one):
    """Has eight clients do one(client, number), each until it returns False; how often each did."""
    failed, nr = [], [0] * 8

    def run(t):
        try:
            c = Client()
            while one(c, t + 8 * nr[t]):
                nr[t] += 1
        except BaseException as e:  # also of sys.exit()
            failed.append(str(e))

    threads = [threading.Thread(target=run, args=(t,)) for t in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        sys.exit(failed[0])
    return sum(nr)


def fill():
    nr = at_once(lambda c, i: not full(*put(c, i)))
    if nr == 0:
        sys.exit(f"{KIND}: nothing fitted")
    print(f"{KIND}: {nr}")


def laps():
    def one(c, i):
        status, text = put(c, i % 64)
        if status != 200:
            sys.exit(f"{KIND}: {status} {text}")
        return i < 2 * (16 << 20) // 2100

    print(f"{KIND}: {at_once(one)} written over")


def listed(c, query, tag):
    """Names, a page of at most 1000."""
    status, text = c.ask("GET", query)
    if status != 200:
        sys.exit(f"GET {query}: {status} {text}")
    return [m.decode() for m in re.findall(rb"<" + tag + rb">([^<]+)</" + tag + rb">", text)]


def delete(c, path):
    began = time.monotonic()
    status, text = c.ask("DELETE", path)
    took = time.monotonic() - began
    if status != 204 or took > PATIENCE:
        sys.exit(f"DELETE {path}: {status} after {took:.1f} s: {text}")


def things(c):
    """Paths of what can be deleted, of the kind first."""
    if KIND in ("uploads", "parts"):
        status, text = c.ask("GET", "/bkt?uploads")
        found = re.findall(rb"<Key>([^<]+)</Key>\s*<UploadId>([^<]+)</UploadId>", text)
        paths = [f"/bkt/{k.decode()}?uploadId={u.decode()}" for k, u in found]
    elif KIND == "attributes":
        paths = [f"/{b}" for b in listed(c, "/", b"Name") if b.startswith("full-")]
    else:
        paths = []
    return paths + [f"/bkt/{k}" for k in listed(c, "/bkt?list-type=2", b"Key")]


def out():
    c = Client()
    paths = things(c)
    for path in paths[: max(1, len(paths) // 10)]:
        delete(c, path)
    began = time.monotonic()
    while full(*put(c, 999999)):
        if time.monotonic() - began > PATIENCE:
            sys.exit(f"{KIND}: {max(1, len(paths) // 10)} of {len(paths)} are deleted, and it is still full")
        time.sleep(0.02)
    while paths:
        paths = things(c)
        for path in paths:
            delete(c, path)
    began = time.monotonic()
    while full(*c.ask("PUT", "/bkt/again", DATA)):
        if time.monotonic() - began > PATIENCE:
            sys.exit(f"{KIND}: everything is deleted, and it is still full")
        time.sleep(0.02)
    delete(c, "/bkt/again")


def still():
    c = Client()
    # What was refused to one may fit for another, and an index made anew has a little room: not for long.
    for i in range(1000):
        if full(*put(c, 900000 + i)):
            break
    else:
        sys.exit(f"{KIND}: it is not full any more")
    paths = things(c)
    key = next((p for p in paths if "?" not in p and p.count("/") == 2), None)
    if key and c.ask("GET", key)[0] != 200:
        sys.exit(f"GET {key}: cannot be read")


{"fill": fill, "laps": laps, "out": out, "full": still}[WHAT]()
