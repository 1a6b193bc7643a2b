#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package on a machine with a GPU: tensors of PyTorch 2 on the device, whose bytes are compared there.

    python.py URL [WORD...]    URL: a bucket of a gantryd; only rows whose name has one of the words

Prints a line a row: name, ok or FAIL, GB/s where bytes were timed, the path, or what went wrong.  Exit: 0 when all rows
are ok, 1, or 77 with a reason where there is no PyTorch with a GPU.  $GANTRY_LIBRARY and $PYTHONPATH say where the
package is.  GANTRY_GPU_MIB is the size of the timed objects (512).
"""

import concurrent.futures
import gc
import importlib.util
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

URL = sys.argv[1] if len(sys.argv) > 1 else ""
MIB = 1 << 20
TIMED = int(os.environ.get("GANTRY_GPU_MIB", "512")) * MIB

try:
    import torch
except ImportError as e:
    print(f"no PyTorch: {e}")
    sys.exit(77)
if not torch.cuda.is_available():
    print(f"PyTorch {torch.__version__} has no GPU here")
    sys.exit(77)

import gantry  # noqa: E402

DEVICE = torch.device("cuda:0")
# One that memory registered for RDMA, or staged, must not be.
PATHS = ("rdma", "rdma-staged")
ROWS = []


def row(function):
    ROWS.append(function)
    return function


def client(**words):
    return gantry.Client(URL, **words)


def noise(nbytes, seed=1):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randint(0, 256, (nbytes,), dtype=torch.uint8, device=DEVICE, generator=generator)


def raw(tensor):
    """The bytes of a tensor, where it is."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def same(a, b):
    return torch.equal(raw(a), raw(b))


def check(fact, words="not so"):
    if not fact:
        raise AssertionError(words)


def moved(result, nbytes):
    check(result.bytes == nbytes, f"{result.bytes} of {nbytes} bytes")
    check(result.path in PATHS, f"by {result.path}: {result.reason}")
    return result.path


# ---- tensors ----


@row
def dtypes(c):
    names = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128".split()
    names += ["float8_e4m3fn", "float8_e5m2", "uint16", "uint32"]
    tried = 0
    for name in names:
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        # Bytes of 0 and 1 are values of all of them, of bool too.
        source = (noise(48 * 100) & 1).view(dtype).view(-1, 4)
        target = torch.zeros_like(source)
        moved(c.put("gpu/dtype", source), 4800)
        path = moved(c.get_into("gpu/dtype", target), 4800)
        check(same(source, target), name)
        check(bytes(c.get("gpu/dtype")) == bytes(raw(source).cpu().numpy()), f"{name}: the object")
        tried += 1
    return f"{tried} types, {path}"


@row
def slices(c):
    source, target = noise(3 * MIB + 5), torch.zeros(3 * MIB + 5, dtype=torch.uint8, device=DEVICE)
    c.put("gpu/slice", source[7 : 2 * MIB + 1])
    check(c.get_into("gpu/slice", target[1000 : 1000 + 2 * MIB - 6]).bytes == 2 * MIB - 6)
    check(torch.equal(target[1000 : 1000 + 2 * MIB - 6], source[7 : 2 * MIB + 1]), "the bytes of the slice")
    check(not target[:1000].any() and not target[1000 + 2 * MIB - 6 :].any(), "bytes around the slice")
    check(c.get_into("gpu/slice", target[:100], offset=50).bytes == 100)
    check(torch.equal(target[:100], source[57:157]), "a range")
    scalar = torch.tensor(2.5, device=DEVICE)
    c.put("gpu/scalar", scalar)
    back = torch.tensor(0.0, device=DEVICE)
    c.get_into("gpu/scalar", back)
    check(back.item() == 2.5, "0-d")
    check(c.put("gpu/empty", torch.empty(0, 3, device=DEVICE)).bytes == 0)
    for bad in (source.view(-1, 1)[::2], torch.zeros(8, 8, device=DEVICE).t()):
        try:
            c.put("gpu/bad", bad)
            raise AssertionError("strides were taken")
        except ValueError as e:
            check("shape" in str(e) and "strides" in str(e), str(e))


@row
def kinds_of_objects(c):
    """By __cuda_array_interface__ and by DLPack, without PyTorch's own."""
    source, target = noise(MIB), torch.zeros(MIB, dtype=torch.uint8, device=DEVICE)

    class Interface:
        def __init__(self, tensor):
            self.tensor = tensor

        @property
        def __cuda_array_interface__(self):
            return self.tensor.__cuda_array_interface__

    class DLPack:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **words):
            return self.tensor.__dlpack__(**words)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    for kind in (Interface, DLPack):
        target.zero_()
        moved(c.put("gpu/kind", kind(source)), MIB)
        moved(c.get_into("gpu/kind", kind(target)), MIB)
        check(torch.equal(source, target), kind.__name__)


@row
def pinned_and_managed(c):
    pinned = torch.empty(MIB, dtype=torch.uint8).pin_memory()
    pinned.copy_(noise(MIB))
    check(c.put("gpu/pinned", pinned).path == "rdma")
    target = torch.zeros(MIB, dtype=torch.uint8, device=DEVICE)
    c.get_into("gpu/pinned", target)
    check(torch.equal(target.cpu(), pinned))


# ---- streams ----


def busy(stream):
    """Work that takes a while."""
    with torch.cuda.stream(stream):
        torch.cuda._sleep(300_000_000)


@row
def streams_put(c):
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        tensor = torch.zeros(4 * MIB, dtype=torch.uint8, device=DEVICE)
        torch.cuda.synchronize()
        busy(stream)
        with torch.cuda.stream(stream):
            tensor.fill_(77)
            moved(c.put("gpu/stream", tensor), 4 * MIB)
        data = c.get("gpu/stream")
        check(data == b"M" * (4 * MIB), "bytes of before the work on the stream")


@row
def streams_get(c):
    source = noise(4 * MIB)
    c.put("gpu/stream", source)
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
        tensor = torch.zeros(4 * MIB, dtype=torch.uint8, device=DEVICE)
        torch.cuda.synchronize()
        busy(stream)
        with torch.cuda.stream(stream):
            tensor.fill_(77)  # queued before, so it is over when the bytes come
            moved(c.get_into("gpu/stream", tensor), 4 * MIB)
            later = tensor.clone()
        stream.synchronize()
        check(torch.equal(later, source), "bytes that work queued after it saw")


# ---- life of the memory ----


@row
def held(c):
    """The caller drops its tensor and the future while the bytes move."""
    source = noise(32 * MIB)
    want = source.cpu().numpy().tobytes()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for i in range(4):
            tensor = source.clone()
            torch.cuda.synchronize()
            pool.submit(c.put, f"gpu/held/{i}", tensor)
            del tensor
            gc.collect()
            torch.cuda.empty_cache()
            torch.full((32 * MIB,), 1, dtype=torch.uint8, device=DEVICE)
    for i in range(4):
        check(c.get(f"gpu/held/{i}") == want, f"object {i}")


@row
def registered(c):
    tensor = noise(8 * MIB)
    with c.register(tensor) as r:
        for i in range(3):
            tensor += 1
            path = moved(c.put("gpu/registered", tensor), 8 * MIB)
        target = torch.zeros_like(tensor)
        c.get_into("gpu/registered", target)
        check(torch.equal(target, tensor))
        said = "registered" if r.registered else r.reason
    return f"{path}; {said}"


@row
def freed(c):
    """A registration that is kept while the allocator gives the memory back, and another tensor has the address."""
    tensor = noise(32 * MIB)
    with c.register(tensor):
        c.put("gpu/freed", tensor)
        tensor.untyped_storage().resize_(0)
        torch.cuda.empty_cache()
        again = [noise(32 * MIB, seed) for seed in range(4)]
        for t in again:
            moved(c.put("gpu/freed", t), 32 * MIB)
            check(c.get("gpu/freed") == t.cpu().numpy().tobytes(), "bytes of another allocation")


@row
def threads(c):
    failed = []

    def work(n):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                tensor = noise(3 * MIB + n, n)
                target = torch.zeros_like(tensor)
                for i in range(5):
                    c.put(f"gpu/thread/{n}", tensor)
                    c.get_into(f"gpu/thread/{n}", target)
                    check(torch.equal(tensor, target))
                    tensor += 1
        except BaseException as e:
            failed.append(e)

    todo = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in todo:
        t.start()
    for t in todo:
        t.join()
    check(not failed, str(failed[:1]))


@row
def batches(c):
    sources = {f"gpu/batch/{i}": noise(MIB + i, i) for i in range(20)}
    targets = {k: torch.zeros_like(v) for k, v in sources.items()}
    c.put_many(sources.items())
    c.get_many(targets.items())
    check(all(torch.equal(sources[k], targets[k]) for k in sources))
    try:
        c.get_many([*targets.items(), ("gpu/batch/none", torch.zeros(10, device=DEVICE))])
        raise AssertionError("no failure")
    except gantry.NotFound:
        pass


@row
def allocators(c):
    """PyTorch's other allocators, each in a process of its own."""
    for conf in ("expandable_segments:True", "backend:cudaMallocAsync"):
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)
        words = [sys.executable, __file__, URL, "dtypes", "slices", "streams", "held", "registered", "sizes"]
        run = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(run.returncode == 0, f"{conf}:\n{run.stdout}")


@row
def sizes(c):
    """Allocations of many sizes, and their parts."""
    for mib in (1, 2, 3, 19, 20, 21, 30, 33, 100):
        tensor = noise(mib * MIB)
        target = torch.zeros_like(tensor)
        moved(c.put("gpu/size", tensor), mib * MIB)
        moved(c.get_into("gpu/size", target), mib * MIB)
        check(torch.equal(tensor, target), f"{mib} MiB")


def _child(url, pipe):
    """In a forked process: its parent has initialised CUDA."""
    try:
        with gantry.Client(url) as c:
            c.put("gpu/child", _parents)
        pipe.send("it was stored")
    except Exception as e:
        pipe.send(f"{type(e).__name__}: {e}")


_parents = None


@row
def fork(c):
    global _parents
    _parents = noise(MIB)
    here, there = multiprocessing.Pipe()
    p = multiprocessing.get_context("fork").Process(target=_child, args=(URL, there))
    p.start()
    check(here.poll(60), "the child said nothing")
    said = here.recv()
    p.join()
    check("RuntimeError" in said and "fork" in said, said)
    return said[:60]


# ---- files and checkpoints ----


@row
def files(c):
    pieces = [noise(n, n) for n in (100, 3 * MIB, 7 * MIB + 3, 70 * MIB, 11)]
    with c.open("gpu/file", "wb") as f:
        for i, piece in enumerate(pieces):
            f.write(b"head%d" % i)
            check(f.write(piece) == piece.numel())
            if i % 2:
                piece_after = piece.clone()
                piece.zero_()  # what was written is written
                pieces[i] = piece_after
    with c.open("gpu/file") as f:
        for i, piece in enumerate(pieces):
            check(f.read(5) == b"head%d" % i)
            target = torch.zeros_like(piece)
            check(f.readinto(target) == piece.numel())
            check(torch.equal(target, piece), f"piece {i}")
        check(f.read() == b"")


@row
def save_load(c):
    net = torch.nn.Sequential(torch.nn.Linear(1000, 3000), torch.nn.Linear(3000, 1000)).to(DEVICE)
    with c.open("gpu/model.pt", "wb") as f:
        torch.save(net.state_dict(), f)
    check(f.result.path == "rdma", f.result.path)
    with c.open("gpu/model.pt") as f:
        back = torch.load(f, map_location=DEVICE)
    state = net.state_dict()
    check(all(back[k].device == DEVICE and torch.equal(back[k], state[k]) for k in state))


def _state(seed):
    torch.manual_seed(seed)
    return {
        "big": torch.randn(3000, 3000, device=DEVICE),
        "half": torch.randn(100, 100, device=DEVICE).bfloat16(),
        "turned": torch.arange(12.0, device=DEVICE).view(3, 4).t(),
        "host": torch.randn(1000),
        "scalar": torch.tensor(seed, device=DEVICE),
        "empty": torch.zeros(0, 3, device=DEVICE),
        "nested": {"word": "a text", "tensor": torch.randn(50, device=DEVICE)},
    }


def _blank(state):
    return {
        k: _blank(v) if isinstance(v, dict) else torch.zeros_like(v) if isinstance(v, torch.Tensor) else ""
        for k, v in state.items()
    }


def _equal(a, b):
    return a.keys() == b.keys() and all(
        _equal(a[k], b[k])
        if isinstance(a[k], dict)
        else (torch.equal(a[k], b[k]) and a[k].device == b[k].device)
        if isinstance(a[k], torch.Tensor)
        else a[k] == b[k]
        for k in a
    )


@row
def checkpoints(c):
    from gantry.dcp import CheckpointReader, CheckpointWriter
    import torch.distributed.checkpoint as dcp

    for seed in (1, 2):
        state = _state(seed)
        writer = CheckpointWriter(c, "gpu/checkpoint")
        dcp.save(state, storage_writer=writer)
        check(writer.result.path in PATHS, writer.result.path)
        back = _blank(state)
        reader = CheckpointReader(c, "gpu/checkpoint")
        dcp.load(back, storage_reader=reader)
        check(_equal(state, back), "what was loaded")
    # On a stream of its own, from the moment the state is made on.
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        state = _state(3)
        dcp.save(state, storage_writer=CheckpointWriter(c, "gpu/checkpoint"))
        back = _blank(state)
        dcp.load(back, storage_reader=CheckpointReader(c, "gpu/checkpoint"))
        check(_equal(state, back), "what was loaded on a stream")
    return writer.result.path


@row
def async_save(c):
    from gantry.dcp import CheckpointReader, CheckpointWriter
    import torch.distributed.checkpoint as dcp

    state = _state(4)
    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        saving = dcp.async_save(state, storage_writer=CheckpointWriter(c, "gpu/async"))
        want = _state(4)
        state["big"].zero_()
        saving.result()
        back = _blank(want)
        dcp.load(back, storage_reader=CheckpointReader(c, "gpu/async"))
        check(_equal(want, back), "what was loaded")
    finally:
        torch.distributed.destroy_process_group()


# ---- arrays of other packages ----


class Capsule:
    """Only the DLPack protocol of a tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, *args, **words):
        return self.tensor.__dlpack__(*args, **words)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@row
def dlpack(c):
    a, b = torch.randn(1 << 20, device=DEVICE), torch.zeros(1 << 20, device=DEVICE)
    path = moved(c.put("gpu/dlpack", Capsule(a)), 4 << 20)
    moved(c.get_into("gpu/dlpack", Capsule(b)), 4 << 20)
    check(torch.equal(a, b))
    return path


@row
def cupy_arrays(c):
    if not importlib.util.find_spec("cupy"):
        return "not installed"
    import cupy

    with cupy.cuda.Stream(non_blocking=True):
        a = cupy.arange(5_000_003, dtype=cupy.int32) * 3
        path = moved(c.put("gpu/cupy", a), a.nbytes)
        b = cupy.zeros(2 * a.size, dtype=a.dtype)
        moved(c.get_into("gpu/cupy", b[a.size :]), a.nbytes)
        check(bool((b[a.size :] == a).all()) and not bool(b[: a.size].any()))
    return f"{cupy.__version__} {path}"


@row
def numba_arrays(c):
    if not importlib.util.find_spec("numba"):
        return "not installed"
    import numba
    import numpy
    from numba import cuda

    want = numpy.arange(5_000_003, dtype=numpy.float64)
    a = cuda.to_device(want)
    b = cuda.device_array_like(a)
    path = moved(c.put("gpu/numba", a), want.nbytes)
    moved(c.get_into("gpu/numba", b), want.nbytes)
    check(bool((b.copy_to_host() == want).all()))
    return f"{numba.__version__} {path}"


@row
def jax_arrays(c):
    if not importlib.util.find_spec("jax"):
        return "not installed"
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import numpy

    a = jax.numpy.arange(5_000_003, dtype=jax.numpy.float32) * 2
    path = moved(c.put("gpu/jax", a), a.nbytes)
    check(bool((numpy.frombuffer(c.get("gpu/jax"), dtype=numpy.float32) == numpy.asarray(a)).all()))
    return f"{jax.__version__} {path}"


# ---- how fast ----


def timed(c, words, paths):
    source, target = noise(TIMED), torch.zeros(TIMED, dtype=torch.uint8, device=DEVICE)
    torch.cuda.synchronize()
    best = {}
    for _ in range(2):
        for name, move in (
            ("put", lambda: c.put("gpu/fast", source, **words)),
            ("get", lambda: c.get_into("gpu/fast", target, **words)),
        ):
            began = time.monotonic()
            result = move()
            best[name] = min(best.get(name, 1e9), time.monotonic() - began)
            check(result.path in paths, f"by {result.path}: {result.reason}")
    check(torch.equal(source, target))
    return TIMED / best["put"] / 1e9, TIMED / best["get"] / 1e9, result.path


@row
def speed(c):
    return timed(c, {}, PATHS)


def without_dmabuf():
    """A client whose library exports no dma-buf: memory of the GPU is staged where no peer-memory driver is loaded."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        f.write('{ "properties": { "rdma_peer_type": "peermem" } }')
        f.flush()
        return client(config_file=f.name)


@row
def staged(c):
    with without_dmabuf() as s:
        for mib in (1, 15, 16, 17, 64, 65, 130):
            tensor = noise(mib * MIB + 3)
            target = torch.zeros_like(tensor)
            moved(s.put("gpu/staged", tensor, checksum=True), mib * MIB + 3)
            path = moved(s.get_into("gpu/staged", target), mib * MIB + 3)
            check(torch.equal(tensor, target), f"{mib} MiB")
    return path


@row
def speed_staged(c):
    with without_dmabuf() as s:
        return timed(s, {}, PATHS)


@row
def speed_http(c):
    return timed(c, {"rdma": False}, ("http",))


def main():
    words = sys.argv[2:]
    failed = 0
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name(0)}, gantry {gantry.library_version()}")
    with client() as c:
        for function in ROWS:
            name = function.__name__
            if words and not any(w in name for w in words):
                continue
            out = io.StringIO()
            try:
                said = function(c)
                ok, speed_text, more = "ok", "", said or ""
                if isinstance(said, tuple):
                    speed_text, more = f"put {said[0]:.2f} get {said[1]:.2f} GB/s", said[2]
            except BaseException as e:
                if isinstance(e, KeyboardInterrupt):
                    raise
                traceback.print_exc(file=out)
                ok, speed_text, more, failed = "FAIL", "", f"{type(e).__name__}: {e}", failed + 1
            print(f"{'python ' + name:28} {ok:5} {speed_text:20} {more}", flush=True)
            if out.getvalue():
                print(out.getvalue(), file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if not URL:
        sys.exit(__doc__)
    sys.exit(main())
