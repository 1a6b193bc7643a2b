# SPDX-License-Identifier: Apache-2.0
"""The Python module against the daemon at $URL_S3, $URL_SCAL and $URL_SIGNED; python.sh runs it on the software NIC."""

import array
import base64
import ctypes
import errno
import gc
import mmap
import os
import pathlib
import pickle
import random
import socket
import subprocess
import sys
import threading
import unittest
import weakref

import gantry
import numpy

URL, SCAL, SIGNED, T = (os.environ[n] for n in ("URL_S3", "URL_SCAL", "URL_SIGNED", "T"))
BUCKET = URL + "/bkt"
SEED = int(os.environ.get("SEED") or random.randrange(1 << 32))
print(f"SEED={SEED}")
MIB = 1 << 20


def bytes_of(n, seed=SEED):
    block = random.Random(seed).randbytes(min(n, (1 << 20) + 4099))  # a length that no part has, so bytes at another place differ
    return (block * (n // (len(block) or 1) + 1))[:n]


class Rdma(unittest.TestCase):
    """By RDMA.  Http below repeats all of it over HTTP."""

    path = "rdma"
    words = {}

    def setUp(self):
        self.c = gantry.Client(BUCKET, require_rdma=self.path == "rdma", **self.words)
        self.addCleanup(self.c.close)

    def way(self, result, n):
        self.assertEqual(
            (result.path, result.bytes, result.rdma_bytes), (self.path, n, n if self.path == "rdma" else 0)
        )
        self.assertEqual(bool(result.reason), self.path != "rdma", result.reason)

    def test_put_get(self):
        data = bytes_of(3_000_001)
        put = self.c.put("dir/a b+ü%", data, checksum=True)
        self.way(put, len(data))
        got = self.c.get("dir/a b+ü%", checksum=True)
        self.way(got.result, len(data))
        self.assertEqual(got, data)
        self.assertEqual(got.result.etag, put.etag)
        stat = self.c.head("dir/a b+ü%", checksum=True)
        self.assertEqual((stat.object_size, stat.etag, stat.path), (len(data), put.etag, ""))
        self.assertTrue(stat.checksum and stat.last_modified)
        self.assertEqual(put.crc64nvme, int.from_bytes(base64.b64decode(stat.checksum), "big"))
        self.assertTrue(got.result.checksum_verified)
        self.assertEqual(self.c.get("dir/a b+ü%", offset=1, checksum=True), data[1:])
        # By its whole URL as well; and gone.
        self.assertTrue(self.c.exists(self.c.url("dir/a b+ü%")))
        self.c.delete("dir/a b+ü%")
        self.c.delete("dir/a b+ü%")
        self.assertFalse(self.c.exists("dir/a b+ü%"))

    def test_ranges(self):
        data = bytes_of(200_000)
        self.c.put("r", data)
        for offset, size in ((0, 1), (1, 99_999), (199_999, 1), (199_990, 100), (0, 200_000), (0, 300_000)):
            got = self.c.get("r", offset=offset, size=size)
            self.assertEqual(got, data[offset : offset + size])
            self.assertEqual(got.result.object_size, len(data))
        self.assertEqual(self.c.get("r", offset=150_000), data[150_000:])
        # What is behind the bytes that came stays; a part of a buffer is a slice of it.
        buffer = bytearray(b"x" * 300)
        r = self.c.get_into("r", memoryview(buffer)[100:250], offset=199_900)
        self.assertEqual((r.bytes, buffer), (100, b"x" * 100 + data[-100:] + b"x" * 100))
        for offset in (200_000, 1 << 50):
            with self.assertRaises(gantry.RangeNotSatisfiable):
                self.c.get("r", offset=offset)
            with self.assertRaises(gantry.RangeNotSatisfiable):
                self.c.get("r", offset=offset, size=5)

    def test_empty(self):
        r = self.c.put("empty", b"")
        self.assertEqual((r.path == "rdma", r.bytes), (False, 0))
        got = self.c.get("empty")
        self.assertEqual((bytes(got), got.result.object_size, got.result.bytes), (b"", 0, 0))
        self.assertEqual(self.c.get("empty", size=10), b"")
        with self.assertRaisesRegex(ValueError, "the buffer is empty"):
            self.c.get_into("empty", bytearray())

    def test_buffers(self):
        raw = bytes_of(80_000)
        with open(os.path.join(T, "file"), "wb") as f:
            f.write(raw)
        with open(os.path.join(T, "file"), "rb") as f:
            mapped = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        numbers = numpy.frombuffer(raw, dtype="<f8").reshape(100, 100)
        self.assertFalse(numbers.flags.writeable)
        sources = [
            raw,
            bytearray(raw),
            memoryview(raw),
            memoryview(b"__" + raw)[2:],
            array.array("H", raw),
            mapped,
            numbers,
            numbers.copy(),
            numbers.view("M8[s]"),
        ]
        for source in sources:
            self.way(self.c.put("buffer", source), len(raw))
            self.assertEqual(self.c.get("buffer"), raw, type(source))
        targets = [
            bytearray(80_000),
            memoryview(bytearray(80_000)),
            array.array("H", bytes(80_000)),
            mmap.mmap(-1, 80_000),
        ]
        targets += [numpy.zeros((100, 100)), numpy.zeros(80_000, numpy.int8), numpy.zeros((200, 100))[100:]]
        for target in targets:
            self.way(self.c.get_into("buffer", target), len(raw))
            self.assertEqual(bytes(memoryview(target).cast("B")), raw, type(target))
        mapped.close()  # nothing holds it any more
        # A field's name is no type.
        named = numpy.zeros(3, dtype=[("Offset", "<i4"), ("O", "<f8")])
        self.way(self.c.put("buffer", named), named.nbytes)

    def test_not_contiguous(self):
        grid = numpy.zeros((100, 100))
        for bad in (
            grid[:, ::2],
            grid[::-1],
            numpy.asfortranarray(numpy.zeros((3, 4))),
            memoryview(bytes(100))[::2],
        ):
            with self.assertRaisesRegex(
                ValueError, r"of shape \(.*\) and strides \(.*\) \(bytes\): .*: make a contiguous copy"
            ):
                self.c.put("bad", bad)
        with self.assertRaisesRegex(ValueError, "contiguous"):
            self.c.get_into("bad", grid[:, 1])
        for bad in (b"1234", memoryview(b"1234"), numpy.frombuffer(b"1234", "u1")):
            with self.assertRaisesRegex(TypeError, "read-only: nothing can be fetched into it"):
                self.c.get_into("bad", bad)
        for bad in (None, 5, "text", [1, 2]):
            with self.assertRaisesRegex(TypeError, "is no buffer"):
                self.c.put("bad", bad)
        with self.assertRaisesRegex(TypeError, "holds Python objects"):
            self.c.put("bad", numpy.array([object()]))
        with self.assertRaisesRegex(TypeError, "holds Python objects"):
            self.c.put("bad", numpy.zeros(3, dtype=[("a", "<i4"), ("b", "O")]))

        # Memory that neither the host has nor a device whose driver is known.
        class Meta:
            data_ptr = element_size = None

        class Dlpack:
            def __dlpack_device__(self):
                return 8, 0

        Meta.device = type("Device", (), {"type": "meta", "__str__": lambda self: "meta"})()
        for bad, where in ((Meta(), "meta"), (Dlpack(), "Metal")):
            said = rf"not in the memory of this host, nor of a CUDA or ROCm device: .* memory of {where}"
            with self.assertRaisesRegex(TypeError, said):
                self.c.put("bad", bad)
            with self.assertRaisesRegex(TypeError, said):
                self.c.get_into("bad", bad)
        self.assertFalse(self.c.exists("bad"))

    def test_device_without_driver(self):
        """Memory of a device in a program that has no driver of it: an error, and not a touch."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        at = libc.mmap(None, ctypes.c_size_t(MIB), 0, 0x22, -1, ctypes.c_long(0))  # private, of nobody
        for more in ({"version": 2}, {"version": 3}, {"version": 3, "stream": 1}):
            array = type("Cuda", (), {})()
            array.__cuda_array_interface__ = dict(more, shape=(1000,), typestr="|u1", data=(at, False))
            for move in (self.c.put, self.c.get_into):
                with self.assertRaises(gantry.NotByRdma) as e:
                    move("bad", array)
                self.assertEqual(e.exception.errno, errno.EOPNOTSUPP)
        libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(MIB))

    def test_registered(self):
        buffer = bytearray(bytes_of(2 * MIB))
        with self.c.register(buffer) as held:
            self.assertEqual(held.registered, self.path == "rdma", held.reason)
            self.assertEqual(bool(held.reason), self.path != "rdma")
            self.way(self.c.put("reg", buffer), len(buffer))
            self.way(self.c.put("reg2", memoryview(buffer)[4096 : 4096 + MIB]), MIB)
            self.assertEqual(self.c.get("reg2"), buffer[4096 : 4096 + MIB])
            copy = bytes(buffer)
            buffer[:] = bytes(len(buffer))
            self.way(self.c.get_into("reg", buffer), len(buffer))
            self.assertEqual(buffer, copy)
            if held.registered:
                # It can neither go nor be resized, and not be registered twice.
                with self.assertRaises(BufferError):
                    buffer.append(1)
                with self.assertRaisesRegex(gantry.Conflict, "registered already"):
                    self.c.register(buffer)
        self.assertFalse(held.registered)
        with gantry.Client(self.c.base, rdma=self.path == "rdma") as other:
            held = other.register(buffer)
            self.assertEqual(held.registered, self.path == "rdma")
        self.assertFalse(held.registered)
        held.close()
        buffer.append(1)
        # Memory that cannot be written is good for puts, and a registration keeps it alive.
        words = numpy.frombuffer(bytes_of(MIB), "u1")
        alive = weakref.ref(words)
        held = self.c.register(words)
        way = self.c.put("reg", words)
        del words
        gc.collect()
        self.assertIsNotNone(alive())
        self.way(way, MIB)
        held.close()
        held.close()
        del held
        gc.collect()
        self.assertIsNone(alive())
        with self.assertRaisesRegex(ValueError, "empty"):
            self.c.register(b"")

    def test_ttl(self):
        self.c.put("ttl", b"one", ttl=500)
        self.assertIn(int(self.c.headers("ttl")["x-gantry-expires"]), range(400, 501))
        self.c.copy("ttl", "ttl-copy", ttl=100)
        self.assertIn(int(self.c.headers("ttl-copy")["x-gantry-expires"]), range(1, 101))
        self.c.copy("ttl", "ttl-copy")
        self.assertNotIn("x-gantry-expires", self.c.headers("ttl-copy"))
        self.c.put("ttl", b"two")
        self.assertNotIn("x-gantry-expires", self.c.headers("ttl"))
        for bad in 0, -1:
            with self.assertRaisesRegex(ValueError, "a ttl of"):
                self.c.put("ttl", b"three", ttl=bad)
        for key in "ttl", "ttl-copy":
            self.c.delete(key)

    def test_conditions(self):
        first = self.c.put("cond", b"one", if_none_match="*")
        with self.assertRaises(gantry.PreconditionFailed) as e:
            self.c.put("cond", b"two", if_none_match="*")
        self.assertEqual((e.exception.status, e.exception.code), (412, "PreconditionFailed"))
        second = self.c.put("cond", b"two", if_match=first.etag)
        with self.assertRaises(gantry.PreconditionFailed):
            self.c.get("cond", if_match=first.etag)
        with self.assertRaises(gantry.NotModified):
            self.c.head("cond", if_none_match=second.etag)
        self.assertEqual(self.c.get("cond", if_match=second.etag), b"two")
        self.c.delete("cond")

    def test_errors(self):
        with self.assertRaises(gantry.NotFound) as e:
            self.c.get("none", size=5)
        error = e.exception
        self.assertIsInstance(error, FileNotFoundError)
        self.assertEqual(
            (error.errno, error.status, error.code, error.url), (2, 404, "NoSuchKey", BUCKET + "/none")
        )
        self.assertRegex(str(error), r"/bkt/none: .+ \(NoSuchKey 404\)$")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.code), (type(error), str(error), error.code))
        with self.assertRaises(gantry.NotFound) as e:
            self.c.put(URL + "/nobucket/k", b"123")
        self.assertEqual(e.exception.code, "NoSuchBucket")
        with self.assertRaises(gantry.InvalidRequest):
            self.c.put(URL + "/B_/k", b"123")
        for words in ({"offset": -1}, {"timeout": -1}):
            with self.assertRaises(ValueError):
                self.c.get("none", size=5, **words)
        with self.assertRaises(ValueError):
            self.c.put("a", b"1", content_type="a\0b")
        with self.assertRaises(ValueError):
            self.c.put("", b"1")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            with self.assertRaises(ConnectionError):
                self.c.put(f"http://127.0.0.1:{s.getsockname()[1]}/b/k", b"123")
        with self.assertRaises(gantry.AccessDenied) as e:
            self.c.put(SIGNED + "/bkt/k", b"123")
        self.assertIsInstance(e.exception, PermissionError)

    def test_signed(self):
        keys = {"access_key": "AKIAPYTHON", "secret_key": "python/Secret"}
        with gantry.Client(SIGNED + "/bkt", **keys, require_rdma=self.path == "rdma", **self.words) as c:
            self.way(c.put("sig ned/ü", b"0123"), 4)
            self.assertEqual(c.get("sig ned/ü"), b"0123")
        with gantry.Client(SIGNED + "/bkt", access_key="AKIAPYTHON", secret_key="wrong") as c:
            with self.assertRaises(gantry.AccessDenied) as e:
                c.get("x", size=3)
            self.assertEqual(e.exception.code, "SignatureDoesNotMatch")
        os.environ.update(AWS_ACCESS_KEY_ID="AKIAPYTHON", AWS_SECRET_ACCESS_KEY="python/Secret")
        try:
            with gantry.Client(SIGNED + "/bkt") as c:
                self.assertEqual(c.get("sig ned/ü"), b"0123")
        finally:
            del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]

    def test_scality(self):
        with gantry.Client(SCAL, scality=True, require_rdma=self.path == "rdma", **self.words) as c:
            self.way(c.put("scal", b"x" * 5000), 5000)
            self.assertEqual(c.get("scal"), b"x" * 5000)
            c.delete("scal")
            self.assertFalse(c.exists("scal"))

    def test_threads(self):
        failed = []

        def work(i):
            try:
                data = bytes_of(100_000 + i * 7919, seed=SEED + i)
                buffer = bytearray(len(data))
                with self.c.register(buffer):
                    for turn in range(6):
                        self.way(self.c.put(f"t/{i}", data), len(data))
                        self.way(self.c.get_into(f"t/{i}", buffer), len(data))
                        self.assertEqual(buffer, data)
                        self.assertEqual(self.c.get(f"t/{i}", offset=turn), data[turn:])
            except BaseException as e:
                failed.append(e)
                raise

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertFalse(failed)

    def test_split(self):
        """Large gets move as ranges, several at a time."""
        data = bytes_of(11 * MIB + 5)
        self.c.put("large", data)
        with gantry.Client(
            BUCKET,
            split_above=6 * MIB,
            part_size=5 * MIB,
            jobs=3,
            require_rdma=self.path == "rdma",
            **self.words,
        ) as c:
            got = c.get("large")
            self.way(got.result, len(data))
            self.assertEqual(got, data)
            self.assertGreaterEqual(got.result.requests, 3)
            buffer = bytearray(12 * MIB)
            with c.register(buffer):
                r = c.get_into("large", buffer, offset=5)
            self.way(r, len(data) - 5)
            self.assertEqual((buffer[: r.bytes], r.object_size), (data[5:], len(data)))
            with self.assertRaises(gantry.RangeNotSatisfiable):
                c.get_into("large", buffer, offset=len(data))
            with self.assertRaises(gantry.NotFound):
                c.get_into("none", buffer)
        self.c.delete("large")

    def test_multipart(self):
        """Large puts are multipart uploads, also of what lies in several registrations; a failed one leaves nothing."""
        data = bytes_of(17 * MIB + 5)
        with gantry.Client(
            BUCKET,
            split_above=6 * MIB,
            part_size=5 * MIB,
            jobs=3,
            require_rdma=self.path == "rdma",
            **self.words,
        ) as c:
            r = c.put("parts", data, checksum=True, content_type="text/x-parts", ttl=500)
            self.way(r, len(data))
            self.assertRegex(r.etag, '-4"$')
            self.assertEqual(r.object_size, len(data))
            self.assertEqual(c.get("parts"), data)
            stat = c.head("parts", checksum=True)
            self.assertEqual((stat.etag, stat.checksum), (r.etag, r.checksum))
            self.assertTrue(stat.checksum)
            self.assertTrue(c.get("parts", checksum=True).result.checksum_verified)
            self.assertEqual(c.headers("parts")["content-type"], "text/x-parts")
            self.assertIn(int(c.headers("parts")["x-gantry-expires"]), range(400, 501))
            buffer = bytearray(data[::-1])
            with c.register(buffer):
                self.way(c.put("parts", buffer, if_match=r.etag), len(data))
            self.assertEqual(c.get("parts", offset=5 * MIB, size=10 * MIB), data[::-1][5 * MIB : 15 * MIB])
            with self.assertRaises(gantry.PreconditionFailed):
                c.put("parts", data, if_none_match="*")
            with self.assertRaises(gantry.NotFound):
                c.put(URL + "/nobucket/parts", data)
            self.assertEqual(list(c.uploads()), [])
            self.assertEqual(c.get("parts"), data[::-1])
            c.delete("parts")


class Http(Rdma):
    """The same over HTTP."""

    path = "http"
    words = {"rdma": False}

    def test_said(self):
        self.assertEqual((self.c.ports, self.c.rdma_reason), ([], "RDMA is switched off"))
        with gantry.Client(BUCKET) as c:
            self.assertEqual((len(c.ports), c.rdma_reason), (1, ""))
            r = c.put("one", b"over http", rdma=False)
            self.assertEqual((r.path, r.reason), ("http", "RDMA was not asked for"))
            self.assertEqual(c.get("one", rdma=False).result.path, "http")
            self.assertEqual(c.get("one").result.path, "rdma")
        with gantry.Client(BUCKET, require_rdma=True, **self.words) as c:
            with self.assertRaises(gantry.NotByRdma) as e:
                c.put("one", b"x")
            self.assertIn("RDMA is switched off", e.exception.reason)

    def test_bucket(self):
        with gantry.Client(URL + "/made-by-python") as c:
            c.make_bucket()
            c.make_bucket()
            c.put("k", b"1")
            c.delete("k")
            with self.assertRaises(gantry.InvalidRequest):
                c.make_bucket(URL + "/B_")
        with gantry.Client() as c, self.assertRaisesRegex(ValueError, "no bucket given"):
            c.make_bucket()


class Files(unittest.TestCase):
    """Objects as files."""

    def setUp(self):
        self.c = gantry.Client(BUCKET, part_size=5 * MIB, jobs=2, require_rdma=True)
        self.addCleanup(self.c.close)

    def no_uploads(self):
        self.assertEqual(list(self.c.uploads()), [])

    def test_write(self):
        data = bytes_of(12 * MIB + 7)
        for n in (0, 1, 5 * MIB, 5 * MIB + 1, len(data)):
            with self.c.open("file", "wb") as f:
                at, step = 0, 1
                while at < n:
                    self.assertEqual(
                        f.write(memoryview(data)[at : min(at + step, n)]), min(at + step, n) - at
                    )
                    at = min(at + step, n)
                    step = step * 3 + 1
                self.assertEqual((f.tell(), f.writable(), f.seekable(), f.closed), (n, True, False, False))
                f.flush()
            self.assertEqual(
                (f.closed, f.result.object_size, f.result.path), (True, n, "rdma" if n else "http")
            )
            self.assertEqual(self.c.get("file"), data[:n])
            self.assertEqual(bool(f.result.checksum or f.result.crc64nvme is not None), True)
        # Numbers as well as bytes; what has other items is written as bytes.
        with self.c.open("file", "wb") as f:
            self.assertEqual(f.write(numpy.arange(10, dtype=">i4")), 40)
            with self.assertRaisesRegex(TypeError, "is no buffer"):
                f.write("text")
        self.assertEqual(self.c.get("file"), numpy.arange(10, dtype=">i4").tobytes())
        with self.c.open("file") as r:
            back = numpy.zeros(10, dtype=">i4")
            self.assertEqual((r.readinto(back), list(back)), (40, list(range(10))))
        with self.assertRaisesRegex(ValueError, "closed"):
            f.write(b"1")
        f.close()
        with self.assertRaisesRegex(ValueError, "mode 'ab'"):
            self.c.open("file", "ab")

    def test_whole_or_not(self):
        """An exception, abort(), nobody's file and the end of the program leave what was there."""
        self.c.put("kept", b"old")
        for n in (10, 11 * MIB):
            with self.assertRaises(KeyboardInterrupt), self.c.open("kept", "wb") as f:
                f.write(bytes(n))
                raise KeyboardInterrupt
            f = self.c.open("kept", "wb")
            f.write(bytes(n))
            f.abort()
            self.assertTrue(f.closed)
            f = self.c.open("kept", "wb")
            f.write(bytes(n))
            with self.assertWarnsRegex(ResourceWarning, "kept: not closed, so nothing was stored"):
                del f
                gc.collect()
            text = f"""if True:
                import gantry, warnings
                warnings.simplefilter("ignore")
                c = gantry.Client({BUCKET!r}, part_size=5 << 20)
                f = c.open("kept", "wb")
                f.write(bytes({n}))
            """
            subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
            self.no_uploads()
        self.assertEqual(self.c.get("kept"), b"old")
        with self.c.open("kept", "wb", if_match='"0"') as f:
            f.write(bytes(10))
            self.assertRaises(gantry.PreconditionFailed, f.close)
        for n in (10, 11 * MIB):
            with self.assertRaises(gantry.PreconditionFailed), self.c.open("kept", "xb") as f:
                f.write(bytes(n))
        # What a thread meets is raised by whoever writes on, or by close().
        with self.assertRaises(gantry.NotFound):
            with self.c.open(URL + "/nobucket/k", "wb") as f:
                f.write(bytes(11 * MIB))
        # A write that failed is not forgotten: what would be stored lacks its bytes.
        f = self.c.open(URL + "/late/k", "wb")
        self.assertRaises(gantry.NotFound, f.write, bytes(11 * MIB))
        self.c.make_bucket(URL + "/late")
        self.assertRaises(gantry.NotFound, f.write, b"1")
        self.assertRaises(gantry.NotFound, f.close)
        self.assertFalse(self.c.exists(URL + "/late/k"))
        # As many parts as there may be, and one more.
        f = self.c.open("kept", "wb")
        f._state.number = 9999
        f.write(bytes(5 * MIB))
        with self.assertRaisesRegex(gantry.TooLarge, "more than 10000 parts: part_size is too small"):
            f.write(bytes(6 * MIB))
        self.assertRaises(gantry.TooLarge, f.close)
        self.no_uploads()
        self.assertEqual(self.c.get("kept"), b"old")

    def test_read(self):
        data = bytes_of(3 * MIB + 11)
        self.c.put("file", data)
        rng = random.Random(SEED)
        with self.c.open("file", "rb", block_size=100_000) as f:
            self.assertEqual((f.readable(), f.seekable(), f.tell(), f.size), (True, True, 0, len(data)))
            # One after the other, in small and in large pieces.
            got = bytearray()
            while chunk := f.read(rng.choice((1, 1000, 99_999, 350_000))):
                got += chunk
            self.assertEqual(got, data)
            self.assertEqual((f.read(5), f.peek(), f.tell()), (b"", b"", len(data)))
            self.assertEqual(f.http_bytes, 0)
            # Anywhere.
            for _ in range(60):
                at, n = rng.randrange(len(data) + 10), rng.choice((0, 1, 5000, 100_000, 1_000_000))
                whence = rng.choice((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END))
                f.seek(at - {os.SEEK_SET: 0, os.SEEK_CUR: f.tell(), os.SEEK_END: len(data)}[whence], whence)
                buffer = bytearray(n)
                self.assertEqual(f.readinto(buffer), len(data[at : at + n]))
                self.assertEqual(buffer[: len(data[at : at + n])], data[at : at + n])
                self.assertEqual(f.tell(), at + len(data[at : at + n]))
            f.seek(0)
            target = numpy.zeros(len(data), "u1")
            self.assertEqual(f.readinto(target), len(data))
            self.assertEqual(target.tobytes(), data)
            for bad in ((-1, 0), (0, 7)):
                self.assertRaises(ValueError, f.seek, *bad)
        self.assertRaisesRegex(ValueError, "closed", f.read)
        # Lines, and pickles, which want them.
        lines = [b"%d\n" % i * (i % 50) for i in range(3000)]
        self.c.put("lines", b"".join(lines))
        with self.c.open("lines", block_size=777) as f:
            self.assertEqual(b"".join(f), b"".join(lines))
        with self.c.open("pickle", "wb") as f:
            pickle.dump({"a": target, "b": lines}, f, 5)
        with self.c.open("pickle") as f:
            back = pickle.load(f)
            self.assertTrue((back["a"] == target).all() and back["b"] == lines)
        # A small read ahead of a large one costs no more requests than bytes are asked for.
        with self.c.open("file", block_size=MIB) as f:
            self.assertEqual(f.read(3), data[:3])
            self.assertLessEqual(f.rdma_bytes, MIB)
        # It is one version of the object.
        with self.c.open("file", block_size=1000) as f:
            f.read(10)
            self.c.put("file", data[::-1])
            with self.assertRaises(gantry.PreconditionFailed):
                f.read(10_000)
        self.c.put("file", b"")
        with self.c.open("file") as f:
            self.assertEqual((f.read(), f.size), (b"", 0))
        self.assertRaises(gantry.NotFound, self.c.open, "none")

    def test_http(self):
        data = bytes_of(6 * MIB)
        with gantry.Client(BUCKET, part_size=5 * MIB, rdma=False) as c:
            with c.open("file", "wb") as f:
                f.write(data)
            self.assertEqual((f.result.path, f.result.rdma_bytes, f.result.bytes), ("http", 0, len(data)))
            self.assertEqual(f.result.reason, "RDMA is switched off")
            with c.open("file", block_size=MIB) as f:
                self.assertEqual(f.read(100_000) + f.read(), data)
                self.assertEqual((f.rdma_bytes, f.reason), (0, "RDMA is switched off"))

    def test_fork(self):
        data = bytes_of(MIB)
        self.c.put("file", data)
        with self.c.open("file", block_size=10_000) as f, self.c.open("made", "wb") as w:
            self.assertEqual(f.read(50_001), data[:50_001])
            w.write(data)
            child = os.fork()
            if child == 0:
                try:
                    ok = f.read() == data[50_001:]
                    try:
                        w.write(b"1")
                        ok = False
                    except ValueError:
                        pass
                    os._exit(0 if ok else 1)
                except BaseException as e:
                    sys.stderr.write(f"child: {e!r}\n")
                    os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(f.read(), data[50_001:])
        self.assertEqual(self.c.get("made"), data)


class Lists(unittest.TestCase):
    """Lists, copies, buckets."""

    def setUp(self):
        self.c = gantry.Client(URL + "/listed", rdma=False)
        self.addCleanup(self.c.close)
        self.c.make_bucket()
        self.keys = sorted([f"a/{i:04}" for i in range(30)] + ["a", "b/x/y", "b/z", "ü n&<i>", "%2F +x"])
        for key in self.keys:
            self.c.put(key, key.encode())

    def tearDown(self):
        for e in self.c.list():
            self.c.delete(e.key)
        self.c.remove_bucket()

    def test_list(self):
        for page in (1, 7, 1000):
            got = list(self.c.list(page=page))
            self.assertEqual([e.key for e in got], self.keys)
        self.assertEqual([e.size for e in got], [len(k.encode()) for k in self.keys])
        self.assertEqual(got[0].etag, self.c.head(self.keys[0]).etag)
        self.assertRegex(got[0].date, r"^20..-..-..T.*Z$")
        for e in got:
            self.assertEqual(self.c.get(e.key), e.key.encode())
        self.assertEqual(
            [e.key for e in self.c.list("a/", page=4)], [k for k in self.keys if k.startswith("a/")]
        )
        top = [(e.key, e.is_prefix) for e in self.c.list(delimiter="/")]
        self.assertEqual(sorted(k for k, p in top if p), ["a/", "b/"])
        self.assertEqual(
            sorted((k, p) for k, p in top if not p), sorted((k, False) for k in self.keys if "/" not in k)
        )
        self.assertEqual([e.key for e in self.c.list("b/", delimiter="/") if e.is_prefix], ["b/x/"])
        self.assertEqual(
            [e.key for e in self.c.list(start_after="a/0027")][:3], ["a/0028", "a/0029", "b/x/y"]
        )
        self.assertEqual(list(self.c.list("none")), [])
        self.assertIn("listed", [e.key for e in self.c.buckets()])

    def test_ends(self):
        """A list that nobody goes on with ends; closing the client ends it; errors reach whoever iterates."""
        before = threading.active_count()
        some = self.c.list(page=1)
        self.assertEqual(next(some).key, self.keys[0])
        some.close()
        with gantry.Client(URL + "/listed", rdma=False) as c:
            self.assertEqual(c.list(page=1).__next__().key, self.keys[0])
            open_end = c.list(page=1)
            next(open_end)
        with self.assertRaisesRegex(ValueError, "the client is closed"):
            list(c.list())
        del open_end
        for t in threading.enumerate():
            if t.name == "gantry-list":
                t.join(60)
        self.assertEqual(threading.active_count(), before)
        with self.assertRaises(gantry.NotFound) as e:
            list(self.c.list(url=URL + "/nobucket"))
        self.assertEqual(e.exception.code, "NoSuchBucket")

    def test_copy(self):
        r = self.c.copy("b/z", "b/copy")
        self.assertEqual((r.path, self.c.get("b/copy")), ("", b"b/z"))
        self.assertEqual(r.etag, self.c.head("b/copy").etag)
        with self.assertRaises(gantry.PreconditionFailed):
            self.c.copy("b/z", "b/copy", source_if_match='"0"')
        with self.assertRaises(gantry.NotFound):
            self.c.copy("none", "b/copy")
        self.c.copy("b/z", BUCKET + "/from-listed")
        self.assertEqual(self.c.get(BUCKET + "/from-listed"), b"b/z")
        with self.assertRaises(gantry.Conflict) as e:
            self.c.remove_bucket()
        self.assertEqual(e.exception.code, "BucketNotEmpty")

    def test_uploads(self):
        upload = gantry._client.Upload(self.c, self.c.url("half"))
        buffer = gantry._buffer.Memory(bytes(MIB))
        upload.put(1, buffer, 0, buffer.nbytes)
        found = list(self.c.uploads())
        self.assertEqual([(e.key, e.upload_id.encode()) for e in found], [("half", upload.id)])
        self.c.abort_upload(found[0].key, found[0].upload_id)
        self.assertEqual(list(self.c.uploads()), [])
        with self.assertRaises(gantry.NotFound):
            self.c.abort_upload("half", found[0].upload_id)


class Life(unittest.TestCase):
    """Beginning and end of clients."""

    def test_opened_wrongly(self):
        for words, kind, said in (
            ({"device": "mlx5_9"}, gantry.Error, "mlx5_9"),
            ({"access_key": "a"}, ValueError, "an access key and its secret go together"),
            ({"config_file": T + "/none.json"}, gantry.Error, "none.json"),
            ({"url": "ftp://x/y"}, ValueError, "is no URL"),
            ({"url": "http://h/b", "jobs": 0}, ValueError, "at least 1"),
        ):
            with self.assertRaisesRegex(kind, said):
                gantry.Client(**words)
        with gantry.Client() as c, self.assertRaisesRegex(ValueError, "has none to put it behind"):
            c.head("key")

    def test_called_wrongly(self):
        c = gantry.Client(BUCKET)
        self.addCleanup(c.close)
        c.put("kept", b"12345678")
        for key in (b"kept", 5, None, pathlib.Path("kept")):
            with self.assertRaisesRegex(TypeError, f"a key is a str, and not {type(key).__name__}"):
                c.put(key, b"1")
        # No offset is cut down to one that the object has.
        for offset in (1 << 63, 1 << 64, 1 << 70):
            with self.assertRaisesRegex(ValueError, "an offset of"):
                c.get("kept", offset=offset)
            with self.assertRaisesRegex(ValueError, "an offset of"):
                c.get_into("kept", bytearray(8), offset=offset)
        # What goes into a header is one line.
        for words in (
            {"content_type": "text/plain\r\nx-amz-tagging: a=b"},
            {"if_match": '"1"\nx-amz-acl: private'},
            {"if_none_match": "*\x7f"},
        ):
            with self.assertRaisesRegex(gantry.InvalidRequest, "control character"):
                c.put("kept", b"other", **words)
        with self.assertRaisesRegex(gantry.InvalidRequest, "control character"):
            c.copy("kept", "copied", source_if_match='"1"\r\nx-amz-acl: private')
        with self.assertRaisesRegex(gantry.InvalidRequest, "control character"):
            with c.open("kept", "wb", content_type="a\nb") as f:
                f.write(b"other")
        lines = ({"secret_key": "s\n"}, {"access_key": "a\n"}, {"session_token": "t\r\n"}, {"region": "r\n"})
        for words in lines:
            with self.assertRaisesRegex(ValueError, "control character"):
                gantry.Client(BUCKET, **{"access_key": "a", "secret_key": "s", **words})
        # What is for a bucket does nothing to an object.
        with gantry.Client(BUCKET + "/kept") as below:
            for call in (
                below.make_bucket,
                below.remove_bucket,
                lambda: list(below.list()),
                lambda: list(below.uploads()),
            ):
                with self.assertRaisesRegex(gantry.InvalidRequest, "names a key, and a bucket is wanted"):
                    call()
        with gantry.Client(SCAL, scality=True) as scality:
            with self.assertRaisesRegex(gantry.Error, "the scality dialect has no such request"):
                scality.make_bucket(SCAL + "/made")
            self.assertFalse(scality.exists("made"))
        self.assertEqual(c.get("kept"), b"12345678")
        for size in (-1, 0, 1 << 20):
            with self.assertRaisesRegex(ValueError, "a part has 5 MiB at least"):
                c.open("kept", "wb", part_size=size)
        # Nothing is said of a file that never was one.
        said = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = lambda said_of: said.append(str(said_of.exc_value))
        with self.assertRaises(TypeError):
            c.open("kept", "wb", nonsense=1)
        gc.collect()
        self.assertEqual(said, [])

    def test_reader_of_two(self):
        """Who reads what is left while another one reads gets none that there is not."""
        c = gantry.Client(BUCKET)
        self.addCleanup(c.close)
        c.put("shared", b"\x01" * 1000)
        f = c.open("shared")
        self.addCleanup(f.close)
        got = []
        with f._lock:  # as another thread that reads has it
            t = threading.Thread(target=lambda: got.append(f.read()))
            t.start()
            t.join(0.2)
            f.seek(990)
        t.join()
        self.assertEqual(got, [b"\x01" * 10])

    def test_closed(self):
        c = gantry.Client(BUCKET)
        held = c.register(bytearray(4096))
        c.close()
        c.close()
        held.close()
        with self.assertRaisesRegex(ValueError, "the client is closed"):
            c.put("k", b"1")
        with self.assertRaisesRegex(ValueError, "the client is closed"):
            c.register(bytearray(4096))

    def test_lock_is_released(self):
        """A call does not keep other threads from running: one of this process is the server, and answers only when it runs."""
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve():
                conn, _ = listener.accept()
                with conn:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        head += conn.recv(65536)
                    for i in range(1000):
                        sum(range(i))
                    conn.sendall(
                        b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "x"\r\nConnection: close\r\n\r\n12345'
                    )

            thread = threading.Thread(target=serve)
            thread.start()
            with gantry.Client(rdma=False, timeout=60) as c:
                self.assertEqual(c.get(f"http://127.0.0.1:{listener.getsockname()[1]}/b/k", size=5), b"12345")
            thread.join()

    def test_damaged(self):
        """Bytes that are not those of the object's checksum are not taken for it."""
        for data, good in ((b"123456789", True), (b"123456798", False)):
            head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nETag: "x"\r\nConnection: close\r\n'
            # The check value of the polynomial: 0xAE8B14860A799888.
            head += "x-amz-checksum-crc64nvme: rosUhgp5mIg=\r\n\r\n"
            url, asked, go = self.stalled(head.encode() + data)
            go.set()
            with gantry.Client(rdma=False) as c:
                if good:
                    self.assertTrue(c.get(url, size=9, checksum=True).result.checksum_verified)
                else:
                    with self.assertRaisesRegex(
                        gantry.ChecksumMismatch, "not those of the object's checksum"
                    ):
                        c.get(url, size=9, checksum=True)

    def stalled(self, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1"):
        """A server that takes a request and answers when it is told to."""
        listener = socket.create_server(("127.0.0.1", 0))
        asked, go = threading.Event(), threading.Event()

        def serve():
            conn, _ = listener.accept()
            with conn, listener:
                conn.recv(65536)
                asked.set()
                go.wait(60)
                conn.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(go.set)
        return f"http://127.0.0.1:{listener.getsockname()[1]}/b/k", asked, go

    def test_close_waits(self):
        url, asked, go = self.stalled()
        c = gantry.Client(rdma=False)
        got, ended = [], threading.Event()
        call = threading.Thread(target=lambda: got.append(c.get(url, size=1)))
        call.start()
        asked.wait(60)
        closing = threading.Thread(target=lambda: (c.close(), ended.set()))
        closing.start()
        # New calls are refused once it closes, and it is not closed before the one that runs has ended.
        while True:
            try:
                c.ports
            except ValueError:
                break
        self.assertFalse(ended.is_set())
        go.set()
        closing.join()
        call.join()
        self.assertEqual(got, [b"1"])

    def test_busy_memory(self):
        url, asked, go = self.stalled()
        with gantry.Client() as c:
            buffer = bytearray(MIB)
            held = c.register(buffer)
            got = []
            call = threading.Thread(target=lambda: got.append(c.get_into(url, buffer)))
            call.start()
            asked.wait(60)
            with self.assertRaisesRegex(gantry.Busy, "a call uses the registered memory"):
                held.close()
            with self.assertRaises(BufferError):
                buffer.clear()
            go.set()
            call.join()
            held.close()
            buffer.clear()

    def test_fork(self):
        with gantry.Client(BUCKET, require_rdma=True) as c:
            buffer = bytearray(bytes_of(MIB))
            held = c.register(buffer)
            c.put("fork", buffer)
            child = os.fork()
            if child == 0:
                try:
                    # Ports and registrations are the parent's; the child opens its own.
                    ok = c.get("fork") == buffer and c.put("child", b"123").path == "rdma"
                    held.close()
                    c.close()
                    os._exit(0 if ok else 1)
                except BaseException as e:
                    sys.stderr.write(f"child: {e!r}\n")
                    os._exit(2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            # The parent goes on as before, with its registration.
            self.assertEqual(c.get("child"), b"123")
            self.assertEqual(c.get_into("fork", buffer).path, "rdma")
            with self.assertRaises(gantry.Conflict):
                c.register(buffer)

    def test_pickled(self):
        """As a data set takes it to workers that are spawned; keys of the environment stay where they are."""
        with gantry.Client(BUCKET, split_above=7 * MIB, rdma=False) as c:
            with pickle.loads(pickle.dumps(c)) as other:
                self.assertEqual((other.base, other.split_above, other.ports), (BUCKET, 7 * MIB, []))
                c.put("pickled", b"1")
                self.assertEqual(other.get("pickled"), b"1")
        os.environ.update(AWS_ACCESS_KEY_ID="AKIAPYTHON", AWS_SECRET_ACCESS_KEY="python/Secret")
        try:
            with gantry.Client(SIGNED + "/bkt") as c:
                self.assertNotIn(b"python/Secret", pickle.dumps(c))
        finally:
            del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]

    def test_exit(self):
        """The program ends cleanly without close(), also while a thread of its own is in a call."""
        for text in (
            "import gantry, os\nc = gantry.Client(os.environ['URL_S3'] + '/bkt')\nb = bytearray(99999)\nr = c.register(b)\nc.put('exit', b)\n",
            "import gantry, socket, threading\ns = socket.create_server(('127.0.0.1', 0))\nc = gantry.Client(rdma=False)\n"
            "u = f'http://127.0.0.1:{s.getsockname()[1]}/b/k'\n"
            "threading.Thread(target=lambda: c.get(u, size=1), daemon=True).start()\na = s.accept()[0]\na.recv(1)\na.detach()\ns.detach()\n",
        ):
            p = subprocess.run([sys.executable, "-c", text], stderr=subprocess.PIPE, check=False, timeout=120)
            self.assertEqual((p.returncode, p.stderr), (0, b""))

    def test_forgotten(self):
        """A client that nobody has any more is closed."""
        c = gantry.Client(BUCKET)
        context = c._context
        del c
        gc.collect()
        self.assertTrue(context._closed)


if __name__ == "__main__":
    unittest.main()
