#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two gateways race for what is left of a bucket that may have so many objects, at some 30 PUTs a second each.

Each knows at once what it adds itself, and reads what the other adds every few seconds: so together they may exceed the bound, but only
by what comes in 10 s.  Then both refuse, and what is deleted through one makes room at both.

    tests/rados/quota_race.py HOST:PORT HOST:PORT BUCKET BOUND      the bucket is empty, and both know of the bound
"""
import http.client
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
from waits import until  # noqa: E402

RATE, CLIENTS = 30, 6  # of each gateway
WITHIN_S = 12          # of a bound that was passed; both have read what there is by then
AFTER_S = 7            # for so long nothing more is taken
ROOM = 20
MOST_S = 120           # for all of the race, on a machine with much other work


def ask(host, method, path, body=None):
    conn = http.client.HTTPConnection(host, timeout=90)
    try:
        conn.request(method, path, body)
        r = conn.getresponse()
        return r.status, r.read()
    finally:
        conn.close()


class Side:
    """The clients of one gateway, each with keys of its own."""

    def __init__(self, host, bucket, name):
        self.host, self.bucket, self.name = host, bucket, name
        self.taken, self.refused = [], []  # (key, begun, ended) of each answer
        self.lock, self.over = threading.Lock(), threading.Event()
        self.error = None
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(CLIENTS)]

    def run(self, client):
        try:
            self.put_many(client)
        except Exception as e:  # told by the main thread
            self.error = e

    def put_many(self, client):
        conn, n = http.client.HTTPConnection(self.host, timeout=90), 0
        due = time.monotonic() + client / RATE
        while not self.over.wait(max(0, due - time.monotonic())):
            due = max(due + CLIENTS / RATE, time.monotonic())
            key, n, begun = "%s%d.%d" % (self.name, client, n), n + 1, time.monotonic()
            conn.request("PUT", "/%s/%s" % (self.bucket, key), b"x")
            r = conn.getresponse()
            body, ended = r.read(), time.monotonic()
            assert r.status == 200 or r.status == 403 and b"<Code>QuotaExceeded</Code>" in body, (r.status, body)
            with self.lock:
                (self.taken if r.status == 200 else self.refused).append((key, begun, ended))

    def refuses(self, since):
        """Tells whether all that it was asked for since then was refused, and by each client something."""
        with self.lock:
            return not any(begun > since for _, begun, _ in self.taken) and \
                len({key.split(".")[0] for key, begun, _ in self.refused if begun > since}) == CLIENTS


def keys_of(host, bucket):
    keys, after = [], ""
    while True:
        status, body = ask(host, "GET", "/%s?list-type=2&start-after=%s" % (bucket, after))
        assert status == 200, status
        page = re.findall(rb"<Key>(.*?)</Key>", body)
        if not page:
            return keys
        keys += [k.decode() for k in page]
        after = keys[-1]


def race(sides, bound):
    """Runs until both have refused for AFTER_S; returns what was taken, by the time of the answers."""
    begun = time.monotonic()
    for s in sides:
        for t in s.threads:
            t.start()
    while True:
        time.sleep(0.2)
        now = time.monotonic()
        assert now - begun < MOST_S, [(len(s.taken), len(s.refused), s.error) for s in sides]
        assert not [s.error for s in sides if s.error], [s.error for s in sides]
        if all(s.refuses(now - AFTER_S) for s in sides):
            break
    for s in sides:
        s.over.set()
    for s in sides:
        for t in s.threads:
            t.join()
    return sorted((a for s in sides for a in s.taken), key=lambda a: a[2])


def main():
    one, two, bucket, bound = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    sides = [Side(one, bucket, "a"), Side(two, bucket, "b")]
    taken = race(sides, bound)
    assert len(taken) >= bound, "%d were taken, and %d may be" % (len(taken), bound)
    assert all(len(s.taken) > bound / 10 for s in sides), "one of them had next to nothing: no race"
    # A gateway reads what others have added in as many trips to the cluster as a PUT takes: where the machine's other work makes
    # the slowest PUT that slow, a reading may be, too.
    slowest = max(ended - begun for s in sides for _, begun, ended in s.taken + s.refused)
    passed = taken[bound - 1][2]
    last = max(begun for _, begun, _ in taken) - passed
    print("%d taken of %d; the last one was asked for %.1f s after the bound was reached (within %d s, and %.1f of the slowest PUT)" % (
        len(taken), bound, last, WITHIN_S, slowest))
    assert last <= WITHIN_S + slowest, last
    assert sorted(keys_of(one, bucket)) == sorted(key for key, _, _ in taken), "what is there is not what was taken"
    # ---- room is made
    for key, _, _ in taken[:len(taken) - bound + ROOM]:
        assert ask(two, "DELETE", "/%s/%s" % (bucket, key))[0] == 204, key
    assert ask(two, "PUT", "/%s/two" % bucket, b"x")[0] == 200, "no room where it was made"
    until("room at the other one", lambda: ask(one, "PUT", "/%s/one" % bucket, b"x")[0] == 200, pause=0.5)


main()
