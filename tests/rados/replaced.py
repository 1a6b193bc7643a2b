#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writers and readers of a few keys by RDMA through the gateways $ONE and $TWO; replaced.sh runs it.  SEED= repeats the choices, SECS=15."""

import os
import random
import threading
import time

import gantry
import numpy

SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
SECS = float(os.environ.get("SECS", "15"))
SIZES = [300, 65536, 70000, 1 << 20, 1500000, 4 << 20, (4 << 20) + 7, 9 << 20]
print(f"SEED={SEED}", flush=True)
over = threading.Event()
errors = []


class Key:
    """One that has one writer, who knows what was acknowledged: version n is all words n; an even one is there."""

    def __init__(self, size):
        self.name, self.words = "replaced/%d" % size, size // 4
        self.tail = size % 4
        self.begun = self.acked = 0


def guarded(run, *args):
    def body():
        try:
            run(*args)
        except BaseException as e:  # the thread's end is the test's
            errors.append(e)
            over.set()

    t = threading.Thread(target=body)
    t.start()
    return t


def writer(key, clients, rnd):
    data = numpy.zeros(key.words * 4 + key.tail, dtype=numpy.uint8)
    while not over.is_set():
        n, client = key.begun + 1, rnd.choice(clients)
        key.begun = n
        if n % 8 == 0:
            client.delete(key.name)
        else:
            data[: key.words * 4].view(numpy.uint32)[:] = n
            client.put(key.name, data)
        key.acked = n
        # Long enough now and then that readers come to know it.
        time.sleep(rnd.choice([0, 0.01, 0.05, 0.4]))


def reader(keys, client, rnd, counts):
    into = {k.name: numpy.zeros(k.words * 4 + k.tail, dtype=numpy.uint8) for k in keys}
    while not over.is_set():
        key = rnd.choice(keys)
        least = key.acked
        size = len(into[key.name])
        # All of it, or what a range is of.
        start, length = (0, None) if rnd.random() < 0.6 else (rnd.randrange(size // 2) // 4 * 4, rnd.randrange(1, size // 8) * 4)
        try:
            if length is None:
                got = client.get_into(key.name, into[key.name])
            else:
                got = client.get_into(key.name, into[key.name][:length], offset=start)
        except gantry.NotFound:
            most = key.begun
            assert any(v % 8 == 0 for v in range(least, most + 1)), "%s is not there between versions %d and %d" % (key.name, least, most)
            counts["gone"] += 1
            continue
        most = key.begun
        assert got.path == "rdma" or got.bytes <= 256, got.path
        n = got.bytes // 4
        words = into[key.name][: n * 4].view(numpy.uint32)
        v = int(words[0])
        assert (words == v).all(), "%s, %d bytes from %d on: version %d and others" % (key.name, got.bytes, start, v)
        assert least <= v <= most, "%s: version %d, where %d was acknowledged and %d begun" % (key.name, v, least, most)
        counts["read"] += 1


def main():
    rnd = random.Random(SEED)
    with gantry.Client(os.environ["ONE"], require_rdma=True) as one, gantry.Client(os.environ["TWO"], require_rdma=True) as two:
        keys, counts = [Key(s) for s in SIZES], {"read": 0, "gone": 0}
        for k in keys:
            data = numpy.zeros(k.words * 4 + k.tail, dtype=numpy.uint8)
            data[: k.words * 4].view(numpy.uint32)[:] = 1
            one.put(k.name, data)
            k.begun = k.acked = 1
        threads = [guarded(writer, k, [one, two], random.Random(rnd.random())) for k in keys]
        threads += [guarded(reader, keys, c, random.Random(rnd.random()), counts) for c in (one, one, two, two)]
        over.wait(SECS)
        over.set()
        for t in threads:
            t.join(120)
            assert not t.is_alive(), "somebody waits for ever"
    if errors:
        raise errors[0]
    print(counts, flush=True)
    assert counts["read"] > 100 and counts["gone"] > 0, counts


main()
