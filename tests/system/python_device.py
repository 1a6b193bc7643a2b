# SPDX-License-Identifier: Apache-2.0
"""The Python module with memory of a GPU, against the daemon at $URL_S3 on the software NIC; python_device.sh runs it.

python_device.py WAY [TEST...]    WAY: rdma, rdma-staged or http, by which the bytes have to go

The memory is that of the stand-in driver $STAND_IN (tests/gpu/cuda_standin.c): this process would die of a touch.  Work that is queued
on a stream there is done when somebody waits for it, and not before: a wait that is missing is a wrong byte.
"""

import concurrent.futures
import ctypes
import gc
import io
import os
import random
import sys
import threading
import unittest
import weakref

import device_arrays as arrays
import gantry
from device_arrays import DLPack, Interface, Tensor, device

URL = os.environ["URL_S3"] + "/bkt"
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
MIB = 1 << 20
WAY = sys.argv[1]
print(f"SEED={SEED}")


# A random block of a length that no part and no piece has, so that bytes at another place differ.
BLOCK = random.Random(SEED).randbytes(MIB + 4099)


def bytes_of(n, seed=0):
    """Bytes that depend on n and seed: the block, repeated, from another byte on."""
    at = (seed * 7919 + n * 104729) % len(BLOCK)
    return (BLOCK * (n // len(BLOCK) + 2))[at : at + n]


class Case(unittest.TestCase):
    def setUp(self):
        self.c = self.client()
        self.addCleanup(self.c.close)
        self.addCleanup(device.free_all)

    def client(self, **words):
        c = gantry.Client(URL, rdma=WAY != "http", require_rdma=WAY != "http", part_size=5 * MIB, jobs=3, **words)
        self.addCleanup(c.close)
        return c

    def way(self, result, n):
        by_rdma = n if WAY != "http" else 0
        self.assertEqual((result.path, result.bytes, result.rdma_bytes), (WAY if n else "", n, by_rdma) if n else (result.path, 0, 0))
        self.assertEqual(bool(result.reason), WAY != "rdma" or not n, result.reason)

    def memory(self, data):
        """Memory of the device with these bytes."""
        at = device.alloc(max(len(data), 4096))
        device.write(at, data)
        return at


def kinds(at, n, stream=1):
    """The same memory as arrays of all kinds."""
    arrays.torch_with_stream(stream)
    return [
        Interface(at, (n,), stream=stream),
        Interface(at, (n,), version=2),
        Interface(at, (n, 1, 1), strides=(1, 7, 7), stream=stream),
        DLPack(at, (n,)),
        DLPack(at, (n,), versions=False),
        DLPack(at - 16, (1, n), offset=16, strides=(0, 1)),
        Tensor(at, (n,)),
    ]


def anonymous():
    """Bytes of memory of its own that this process has; that of the device is not among them."""
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("RssAnon:"))


class Moves(Case):
    def test_kinds(self):
        n = 300_007
        for i in range(len(kinds(0, 0))):
            data = bytes_of(n, i)
            at, to = self.memory(data), self.memory(bytes(n))
            self.way(self.c.put("kind", kinds(at, n)[i]), n)
            self.assertEqual(self.c.get("kind"), data, i)
            self.way(self.c.get_into("kind", kinds(to, n)[i]), n)
            self.assertEqual(device.read(to, n), data, i)
        self.assertEqual(arrays.capsules(), 0)

    def test_types(self):
        for typestr, size in (("<f4", 4), ("<V2", 2), ("|b1", 1), ("<c16", 16), ("<U2", 8), ("|V3", 3)):
            data = bytes_of(60 * size, size)
            at, to = self.memory(data), self.memory(bytes(60 * size))
            self.way(self.c.put("type", Interface(at, (3, 20), typestr)), 60 * size)
            self.way(self.c.get_into("type", Interface(to, (60,), typestr)), 60 * size)
            self.assertEqual(device.read(to, 60 * size), data)
        data = bytes_of(120)
        at, to = self.memory(data), self.memory(bytes(120))
        self.c.put("type", DLPack(at, (60,), "bf", 16))
        self.c.get_into("type", DLPack(to, (60,), "bf", 16))
        self.assertEqual(device.read(to, 120), data)
        self.c.put("type", Interface(at, (), "<f8"))
        self.assertEqual(self.c.get("type"), data[:8])

    def test_slices(self):
        data = bytes_of(2 * MIB + 9)
        at, to = self.memory(data), self.memory(b"x" * (2 * MIB + 9))
        self.way(self.c.put("slice", Interface(at + 7, (MIB,))), MIB)
        self.way(self.c.get_into("slice", Interface(to + 1001, (5000,)), offset=30_001), 5000)
        want = b"x" * 1001 + data[30_008:35_008]
        self.assertEqual(device.read(to, 2 * MIB + 9), want + b"x" * (2 * MIB + 9 - len(want)))
        # Less than fits: the rest stays.
        r = self.c.get_into("slice", Interface(to, (1000,)), offset=MIB - 10)
        self.assertEqual((r.bytes, device.read(to, 12)), (10, data[7 + MIB - 10 : 7 + MIB] + b"xx"))
        # From the device to the host, and the other way.
        self.assertEqual(self.c.get("slice", offset=5, size=100), data[12:112])
        self.c.put("slice", data[:777])
        self.c.get_into("slice", Interface(to, (777,)))
        self.assertEqual(device.read(to, 777), data[:777])

    def test_empty(self):
        for empty in (Interface(0, (0,)), DLPack(0, (3, 0)), Interface(self.memory(b"1"), (0, 5))):
            self.assertEqual(self.c.put("empty", empty).bytes, 0)
            self.assertEqual(self.c.get("empty"), b"")
            with self.assertRaisesRegex(ValueError, "the buffer is empty"):
                self.c.get_into("empty", empty)

    def test_refused(self):
        at = self.memory(bytes(100))
        for bad in (
            Interface(at, (5, 5), strides=(10, 1)),
            DLPack(at, (5, 5), strides=(10, 1)),
            Tensor(at, (5, 5), strides=(10, 1)),
        ):
            for move in (self.c.put, self.c.get_into, self.c.register):
                with self.assertRaisesRegex(ValueError, r"shape \(5, 5\) and strides \(10, 1\) \(bytes\)"):
                    move("bad", bad) if move != self.c.register else move(bad)
        for bad in (Interface(at, (5,), data=(at, True)), DLPack(at, (5,), flags=1)):
            with self.assertRaisesRegex(TypeError, "read-only: nothing can be fetched into it"):
                self.c.get_into("bad", bad)
            self.c.put("good", bad)
        self.assertFalse(self.c.exists("bad"))

    def test_host_memory(self):
        """Memory that the driver shares with the CPU goes as that of the host."""
        for kind in ("managed", "pinned"):
            data = bytes_of(MIB)
            at, to = device.alloc(MIB, kind), device.alloc(MIB, kind)
            ctypes.memmove(at, data, MIB)
            r = self.c.put("host", Interface(at, (MIB,)))
            self.assertEqual(r.path, "http" if WAY == "http" else "rdma", r.reason)
            self.c.get_into("host", DLPack(to, (MIB,), device=arrays.MANAGED))
            self.assertEqual(ctypes.string_at(to, MIB), data)

    def test_checksum(self):
        data = bytes_of(3 * MIB)
        at = self.memory(data)
        r = self.c.put("sum", Interface(at, (3 * MIB,)), checksum=True)
        self.assertEqual(r.crc64nvme, self.c.put("sum2", data, checksum=True).crc64nvme)
        self.assertEqual(self.c.get("sum", checksum=True), data)
        self.way(self.c.get_into("sum", Interface(at, (3 * MIB,)), checksum=True), 3 * MIB)

    def test_large(self):
        """In parts, with no more memory of this host than the stage has."""
        mib = 90 if WAY == "rdma-staged" else 30
        n = mib * MIB + 11
        at, to = device.alloc(n), device.alloc(n)
        data = bytes_of(MIB) * mib + bytes_of(11)
        device.write(at, data)
        with self.client(split_above=20 * MIB) as c:
            ctypes.CDLL(None).malloc_trim(0)
            before = anonymous()
            self.way(c.put("large", Interface(at, (n,))), n)
            self.way(c.get_into("large", Interface(to, (n,))), n)
            # The stage of 64 MiB, and what connections and threads take.
            self.assertLess(anonymous() - before, 110 * MIB)
        self.assertEqual(device.read(to, n), data)
        self.assertEqual(list(self.c.uploads()), [])
        # In one call of the library.
        device.write(to, bytes(n))
        with self.client(split_above=1 << 30) as c:
            c.get_into("large", Interface(to, (n,)))
            self.assertEqual(device.read(to, n), data)
            c.put("large", Interface(to, (n,)))
        self.assertEqual(self.c.get("large", offset=n - 1000), data[-1000:])


class Streams(Case):
    def test_put(self):
        """What is queued on the stream of an array is there when its bytes go."""
        for stream in (1, 2, device.stream()):
            for i in range(len(kinds(0, 0))):
                at = self.memory(bytes(100_000))
                array = kinds(at, 100_000, stream)[i]
                # Those that name no stream have the default one.
                queued = 1 if isinstance(array, DLPack) or array.__dict__.get("said", {}).get("version") == 2 else stream
                device.fill(queued, at + 10, 50_000, 7)
                self.c.put("stream", array)
                self.assertEqual(self.c.get("stream"), bytes(10) + b"\7" * 50_000 + bytes(49_990), (stream, i))

    def test_get(self):
        """What was queued before a get is over when its bytes come."""
        data = bytes_of(100_000)
        self.c.put("stream", data)
        for stream in (1, 2, device.stream()):
            for i in range(len(kinds(0, 0))):
                at = self.memory(bytes(100_000))
                array = kinds(at, 100_000, stream)[i]
                queued = 1 if isinstance(array, DLPack) or array.__dict__.get("said", {}).get("version") == 2 else stream
                device.fill(queued, at, 100_000, 9)
                self.c.get_into("stream", array)
                device.finish()
                self.assertEqual(device.read(at, 100_000), data, (stream, i))

    def test_producer(self):
        """A producer's __dlpack__ orders its own stream before the one that the consumer names."""
        own, at = device.stream(), self.memory(bytes(5000))

        def before(stream):
            self.assertEqual(stream, 1)
            device.finish(own)  # as an event would have it

        device.fill(own, at, 5000, 5)
        self.c.put("stream", DLPack(at, (5000,), before=before))
        self.assertEqual(self.c.get("stream"), b"\5" * 5000)

    def test_parts(self):
        """The stream of a thread is waited for by that thread, and not by those that move the parts."""
        n = 21 * MIB
        for stream in (2, device.stream()):
            with self.client(split_above=6 * MIB) as c:
                at = self.memory(bytes(n))
                device.fill(stream, at, n, 3)
                c.put("stream", Interface(at, (n,), stream=stream))
                self.assertEqual(c.get("stream"), b"\3" * n)
                device.fill(stream, at, n, 4)
                c.get_into("stream", Interface(at, (n,), stream=stream))
                device.finish()
                self.assertEqual(device.read(at, n), b"\3" * n)
                device.fill(stream, at, n, 6)
                with c.open("stream", "wb") as f:
                    f.write(b"1")
                    f.write(Interface(at, (n,), stream=stream))
                self.assertEqual(c.get("stream"), b"1" + b"\6" * n)
                device.fill(stream, at, 100, 8)
                with c.open("stream", "wb") as f:
                    f.write(Interface(at, (100,), stream=stream))
                self.assertEqual(c.get("stream"), b"\10" * 100)
                device.fill(stream, at, n, 1)
                c.put_many([("s1", Interface(at, (5,), stream=stream)), ("s2", Interface(at + 5, (9,), stream=stream))])
                self.assertEqual(c.get("s1") + c.get("s2"), b"\1" * 14)


class Lives(Case):
    """How long the memory lives."""

    def test_freed(self):
        data = bytes_of(100_000)
        at = self.memory(data)
        self.c.put("freed", Interface(at, (100_000,)))
        device.free(at)
        for move in (self.c.put, self.c.get_into):
            for array in kinds(at, 100_000):
                with self.assertRaisesRegex(gantry.Error, "not mapped"):
                    move("freed", array)
        with self.assertRaises(gantry.Error):
            self.c.register(Interface(at, (100_000,)))
        self.assertEqual(self.c.get("freed"), data)

    def test_registered(self):
        at = self.memory(bytes_of(3 * MIB))
        with self.c.register(Interface(at, (3 * MIB,))) as held:
            self.assertEqual(held.registered, WAY == "rdma", held.reason)
            self.assertEqual(bool(held.reason), WAY != "rdma")
            for i in range(3):
                data = bytes_of(3 * MIB, i)
                device.write(at, data)
                self.way(self.c.put("registered", Interface(at, (3 * MIB,))), 3 * MIB)
                self.assertEqual(self.c.get("registered"), data)
            self.way(self.c.get_into("registered", Interface(at + 100, (1000,)), offset=5), 1000)
            self.assertEqual(device.read(at + 100, 1000), data[5:1005])

    def test_allocated_again(self):
        """A registration that is kept while the allocator gives its memory to another."""
        at = self.memory(bytes_of(MIB, 1))
        held = self.c.register(Interface(at, (MIB,)))
        self.way(self.c.put("again", Interface(at, (MIB,))), MIB)
        device.free(at)
        data = bytes_of(MIB, 2)
        self.assertEqual(device.alloc(MIB), at)
        device.write(at, data)
        self.way(self.c.put("again", Interface(at, (MIB,))), MIB)
        self.assertEqual(self.c.get("again"), data)
        device.write(at, bytes(MIB))
        self.way(self.c.get_into("again", Interface(at, (MIB,))), MIB)
        self.assertEqual(device.read(at, MIB), data)
        device.free(at)
        with self.assertRaises(gantry.Error):
            self.c.put("again", Interface(at, (MIB,)))
        held.close()

    def paused(self, name):
        """Has calls of a function of the library wait; returns what says that one does, and what lets it go on."""
        entered, go = threading.Event(), threading.Event()
        real = getattr(self.c._lib, name)

        class Library:
            def __getattr__(_, other):
                if other != name:
                    return getattr(self.c._context.lib, other)

                def call(*args):
                    entered.set()
                    self.assertTrue(go.wait(60))
                    return real(*args)

                return call

        self.c._lib = Library()
        self.addCleanup(go.set)
        return entered, go

    class Storage:
        pass

    def test_dropped(self):
        """Nobody has the array nor the future any more, and the storage lives until the transfer has ended."""
        entered, go = self.paused("gantry_put")
        data = bytes_of(5000)
        at, storage = self.memory(data), self.Storage()
        ref = weakref.ref(storage)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(self.c.put, "dropped", DLPack(at, (5000,), owner=storage))
            del storage
            self.assertTrue(entered.wait(60))
            gc.collect()
            self.assertIsNotNone(ref())
            go.set()
        gc.collect()
        self.assertIsNone(ref())
        self.assertEqual((self.c.get("dropped"), arrays.capsules()), (data, 0))

    def test_interrupted(self):
        """The thread that waits for the parts is interrupted, twice: each part holds the storage to its end."""
        for name, function in (("gantry_upload_put", "put"), ("gantry_get", "get_into")):
            n = 21 * MIB
            self.c = self.client(split_above=6 * MIB)
            self.c.put("parts", bytes(n))
            entered, go = self.paused(name)
            at, storage = self.memory(bytes(n)), self.Storage()
            ref = weakref.ref(storage)
            array = Interface(at, (n,), owner=storage)
            real = concurrent.futures.Future.result
            shutdown = concurrent.futures.ThreadPoolExecutor.shutdown

            def interrupted(*_, **__):
                entered.wait(60)
                raise KeyboardInterrupt

            concurrent.futures.Future.result = concurrent.futures.ThreadPoolExecutor.shutdown = interrupted
            try:
                with self.assertRaises(KeyboardInterrupt):
                    getattr(self.c, function)("parts", array)
            finally:
                concurrent.futures.Future.result = real
                concurrent.futures.ThreadPoolExecutor.shutdown = shutdown
            del array, storage
            gc.collect()
            self.assertIsNotNone(ref(), name)
            go.set()
            self.assertTrue(self.until(lambda: gc.collect() >= 0 and ref() is None), name)

    def until(self, what):
        return any(what() or threading.Event().wait(0.01) for _ in range(6000))

    def test_batch_fails(self):
        """The item that fails is the one that is raised; until all have ended the storage of each lives."""
        data = [bytes_of(50_000, i) for i in range(8)]
        at = [self.memory(d) for d in data]
        results = self.c.put_many((f"batch/{i}", Interface(a, (50_000,))) for i, a in enumerate(at))
        for r in results:
            self.way(r, 50_000)
        to = [self.memory(bytes(50_000)) for _ in at]
        for r in self.c.get_many([(f"batch/{i}", Interface(a, (50_000,))) for i, a in enumerate(to)]):
            self.way(r, 50_000)
        self.assertEqual([device.read(a, 50_000) for a in to], data)
        self.c.get_many([("batch/0", Interface(to[1], (10,)), 100), ("batch/1", bytearray(5))])
        self.assertEqual(device.read(to[1], 10), data[0][100:110])
        storages = [self.Storage() for _ in at]
        refs = [weakref.ref(s) for s in storages]
        items = [(f"batch/{i}", Interface(a, (50_000,), owner=s)) for i, (a, s) in enumerate(zip(to, storages))]
        items[3] = ("batch/none", items[3][1])
        with self.assertRaises(gantry.NotFound):
            self.c.get_many(items)
        # Where one is no buffer, nothing begins.
        with self.assertRaisesRegex(TypeError, "is no buffer"):
            self.c.put_many([("batch/new", Interface(at[0], (5,))), ("batch/bad", 5)])
        self.assertFalse(self.c.exists("batch/new"))
        del items, storages
        gc.collect()
        self.assertEqual([r() for r in refs], [None] * 8)
        self.assertEqual(self.c.put_many([]), [])

    def test_threads(self):
        failed = []

        def work(n):
            try:
                for i in range(8):
                    data = bytes_of(200_000 + n, n * 100 + i)
                    at, to = self.memory(data), self.memory(bytes(len(data)))
                    stream = device.stream()
                    device.fill(stream, at, 10, i)
                    self.c.put(f"thread/{n}", Interface(at, (len(data),), stream=stream))
                    self.c.get_into(f"thread/{n}", Interface(to, (len(data),), stream=stream))
                    self.assertEqual(device.read(to, len(data)), bytes([i]) * 10 + data[10:])
                    device.free(at)
                    device.free(to)
            except BaseException as e:
                failed.append(e)

        todo = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in todo:
            t.start()
        for t in todo:
            t.join()
        self.assertEqual(failed, [])

    def test_fork(self):
        at = self.memory(bytes(100))
        self.c.put("fork", Interface(at, (100,)))
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            said = b"it was stored"
            try:
                self.c.put("fork", Interface(at, (100,)))
            except RuntimeError as e:
                said = str(e).encode()
            except BaseException as e:
                said = repr(e).encode()
            os.write(there, said)
            # Memory of the host goes as before.
            os.write(there, b", " + self.c.put("forked", b"child").path.encode())
            os._exit(0)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        said = os.read(here, 1000).decode()
        os.close(here)
        os.close(there)
        self.assertRegex(said, "forked after its parent had initialised CUDA: start workers by spawn")
        self.assertTrue(said.endswith(", http" if WAY == "http" else ", rdma"), said)
        self.assertEqual(self.c.get("forked"), b"child")


class Files(Case):
    def test_write(self):
        """Pieces of all sizes, of the device and of the host: small ones are copied, large ones go as they are."""
        sizes = (1, 100, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 12 * MIB + 5, 3, 23 * MIB, 2 * MIB)
        pieces = []
        for held in (False, True):
            f = self.c.open("file", "wb")
            pieces.clear()
            with f:
                for i, n in enumerate(sizes):
                    data = bytes_of(n, i)
                    at = self.memory(data)
                    array = Interface(at, (n,))
                    self.assertEqual((f.write_held if held else f.write)(array), n)
                    if not held:
                        device.write(at, bytes(n))  # what is written is written
                    self.assertEqual(f.write(b"%d" % i), 1)
                    pieces += [data, b"%d" % i]
                self.assertEqual(f.tell(), sum(map(len, pieces)))
            self.way_of_file(f.result, sum(map(len, pieces)))
            self.assertTrue(self.c.get("file") == b"".join(pieces), held)
        self.assertEqual(list(self.c.uploads()), [])
        for n in (0, 10, MIB):
            with self.c.open("small", "wb") as f:
                f.write(Interface(self.memory(bytes_of(n) or b"-"), (n,)))
            self.assertEqual(self.c.get("small"), bytes_of(n))

    def way_of_file(self, result, n):
        # Buffers of the host go by RDMA.
        self.assertEqual((result.path, result.bytes), (WAY, n), result.reason)

    def test_write_fails(self):
        with self.c.open("kept", "wb") as f:
            f.write(b"before")
        at, n = self.memory(bytes(12 * MIB)), 12 * MIB
        storage = self.Storage = type("Storage", (), {})()
        ref = weakref.ref(storage)
        array = Interface(at, (n,), owner=storage)
        del self.Storage, storage
        f = self.c.open("kept", "wb")
        f.write(b"1")
        device.free(at)
        with self.assertRaises(gantry.Error):
            f.write(array)
        del array
        with self.assertRaises(gantry.Error):
            f.close()
        f.abort()
        gc.collect()
        self.assertIsNone(ref())
        self.assertEqual((self.c.get("kept"), list(self.c.uploads())), (b"before", []))

    def test_read(self):
        data = bytes_of(9 * MIB + 7)
        self.c.put("file", data)
        at = self.memory(b"x" * len(data))
        with self.c.open("file", block_size=MIB) as f:
            self.assertEqual(f.read(10), data[:10])
            # Straight, although a block has the bytes.
            self.assertEqual(f.readinto(Interface(at, (100,))), 100)
            self.assertEqual(device.read(at, 101), data[10:110] + b"x")
            self.assertEqual(f.read(5), data[110:115])
            f.seek(-3, io.SEEK_END)
            self.assertEqual(f.readinto(Interface(at, (100,))), 3)
            self.assertEqual(device.read(at, 4), data[-3:] + data[13:14])
            self.assertEqual(f.readinto(Interface(at, (100,))), 0)
            f.seek(5)
            self.assertEqual(f.readinto(Interface(at, (8 * MIB,), "|V1")), 8 * MIB)
            self.assertEqual(f.tell(), 8 * MIB + 5)
            self.assertEqual(device.read(at, 8 * MIB), data[5 : 8 * MIB + 5])
            with self.assertRaisesRegex(TypeError, "read-only"):
                f.readinto(Interface(at, (5,), data=(at, True)))

    def test_state(self):
        """A state dict that is pickled with its tensors out of band, as a program may do it without a CPU copy."""
        arrays.torch_with_stream(0)
        state = {f"layer.{i}": bytes_of(n, i) for i, n in enumerate((10, 300_000, 6 * MIB))}
        with self.c.open("state", "wb") as f:
            for data in state.values():
                f.write(Tensor(self.memory(data), (len(data),)))
        with self.c.open("state") as f:
            for data in state.values():
                at = self.memory(bytes(len(data)))
                f.readinto(Tensor(at, (len(data),)))
                self.assertEqual(device.read(at, len(data)), data)


class Without(Case):
    def test_no_staging(self):
        """With stage=False memory that cannot be registered is an error."""
        at = self.memory(bytes_of(1000))
        with gantry.Client(URL, stage=False) as c:
            if WAY == "rdma":
                self.assertEqual(c.put("unstaged", Interface(at, (1000,))).path, "rdma")
                return
            with self.assertRaises(gantry.NotByRdma):
                c.put("unstaged", Interface(at, (1000,)), rdma=WAY != "http")
            if WAY != "http":
                with self.assertRaises(gantry.Error):
                    c.register(Interface(at, (1000,)))


if __name__ == "__main__":
    assert WAY in ("rdma", "rdma-staged", "http")
    device.load(os.environ["STAND_IN"])
    del sys.argv[1]
    unittest.main()
