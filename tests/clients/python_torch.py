# SPDX-License-Identifier: Apache-2.0
"""PyTorch over the Python module: tensors, torch.save and torch.load, checkpoints of torch.distributed; python.sh runs it.

python_torch.py              the tests, against $URL_S3
python_torch.py save URL N   saves checkpoint N there, and hangs in the middle of it when N is negative
python_torch.py rank R URL   what rank R of two does
"""

import collections
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import unittest
import zipfile

import gantry
import torch
import torch.distributed
from gantry.dcp import CheckpointReader, CheckpointWriter, Metadata, MetadataIndex, StorageInfo
from torch.distributed._shard import checkpoint, sharded_tensor
from torch.distributed._shard.sharding_spec import ChunkShardingSpec

URL = os.environ["URL_S3"] + "/bkt"
MIB = 1 << 20


def client(**words):
    return gantry.Client(URL, require_rdma=True, part_size=5 * MIB, jobs=3, **words)


def model(seed=1, width=600):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        collections.OrderedDict(a=torch.nn.Linear(width, 2000), b=torch.nn.Linear(2000, width))
    )


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def told(exception, error):
    """Whether a failed load names the error of the metadata.  PyTorch 2.9 to 2.11 drops it and raises an AssertionError."""
    failure = exception.failures[0][0]
    return failure is error or isinstance(failure, AssertionError) and "metadata is None" in str(failure)


def state(n):
    return {"weights": torch.full((3000, 1000), float(n)), "step": torch.tensor(n)}


class Tensors(unittest.TestCase):
    def setUp(self):
        self.c = client()
        self.addCleanup(self.c.close)

    def test_cpu(self):
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
            source = torch.randn(300, 400).to(dtype)
            r = self.c.put("tensor", source)
            self.assertEqual((r.path, r.bytes), ("rdma", source.numel() * source.element_size()))
            target = torch.zeros_like(source)
            with self.c.register(target) as held:
                self.assertTrue(held.registered)
                self.assertEqual(self.c.get_into("tensor", target).path, "rdma")
            self.assertTrue(torch.equal(source, target))
        rows = torch.zeros(600, 400, dtype=torch.complex64)
        self.c.get_into("tensor", rows[300:])
        self.assertTrue(torch.equal(rows[300:], source) and torch.equal(rows[:300], torch.zeros_like(source)))
        parameter = model().a.weight
        self.c.put("tensor", parameter)
        self.assertEqual(self.c.get("tensor"), parameter.detach().numpy().tobytes())

    def test_refused(self):
        grid = torch.zeros(10, 10)
        for bad in (grid.t()[:, :5], grid[:, 1], torch.zeros(3, dtype=torch.complex64).conj()):
            with self.assertRaisesRegex(ValueError, r"make a contiguous copy first \(tensor.contiguous"):
                self.c.put("bad", bad)
        for storage in (grid.storage(), grid.storage().untyped()):
            with self.assertRaisesRegex(TypeError, "is a storage and no tensor"):
                self.c.put("bad", storage)
        with self.assertRaisesRegex(TypeError, "is not one run of bytes"):
            self.c.put("bad", torch.eye(3).to_sparse())
        for move in (self.c.put, self.c.get_into):
            with self.assertRaisesRegex(TypeError, r"not in the memory of .*memory of meta.*tensor.cpu\(\)"):
                move("bad", torch.zeros(3, device="meta"))


class Files(unittest.TestCase):
    """torch.save and torch.load."""

    def setUp(self):
        self.c = client()
        self.addCleanup(self.c.close)

    def test_save_load(self):
        net = model()
        optimizer = torch.optim.Adam(net.parameters())
        net(torch.randn(5, 600)).sum().backward()
        optimizer.step()
        for new in (True, False):
            with self.c.open("model.pt", "wb") as f:
                torch.save(
                    {"model": net.state_dict(), "optimizer": optimizer.state_dict()},
                    f,
                    _use_new_zipfile_serialization=new,
                )
            self.assertEqual(f.result.path, "rdma")
            self.assertGreater(f.result.bytes, 25 * MIB)
            with self.c.open("model.pt", "rb") as f:
                back = torch.load(f)
                self.assertEqual((f.http_bytes, f.rdma_bytes > 25 * MIB), (0, True))
            self.assertTrue(same(net.state_dict(), back["model"]))
            self.assertTrue(
                torch.equal(
                    optimizer.state_dict()["state"][0]["exp_avg"], back["optimizer"]["state"][0]["exp_avg"]
                )
            )
            self.assertEqual(list(self.c.uploads()), [])

    def test_failed_save(self):
        with self.c.open("kept.pt", "wb") as f:
            torch.save(torch.arange(5), f)
        with self.assertRaises(Exception), self.c.open("kept.pt", "wb") as f:
            torch.save([torch.zeros(3_000_000), lambda: 0], f)
        with self.assertRaisesRegex(RuntimeError, "half way"), self.c.open("kept.pt", "wb") as f:
            torch.save(torch.zeros(3_000_000), f)
            raise RuntimeError("half way")
        with self.c.open("kept.pt") as f:
            self.assertTrue(torch.equal(torch.load(f), torch.arange(5)))
        self.assertEqual(list(self.c.uploads()), [])


class Loaders(unittest.TestCase):
    def test_workers(self):
        """A data set in forked workers of a DataLoader, each with ports of its own."""
        with client() as c:
            for i in range(24):
                c.put(f"set/{i}", torch.full((1000,), i))

            class Set(torch.utils.data.Dataset):
                def __len__(self):
                    return 24

                def __getitem__(self, i):
                    t = torch.empty(1000, dtype=torch.int64)
                    assert c.get_into(f"set/{i}", t).path == "rdma"
                    return t

            got = torch.cat(list(torch.utils.data.DataLoader(Set(), batch_size=4, num_workers=2)))
            self.assertTrue(torch.equal(got, torch.arange(24).repeat_interleave(1000).view(24, 1000)))
            self.assertEqual(c.get_into("set/3", torch.empty(1000)).path, "rdma")


class Named:
    def __init__(self, n):
        self.n = n


class Checkpoints(unittest.TestCase):
    """torch.distributed's own, without and with several ranks."""

    def setUp(self):
        self.c = client()
        self.addCleanup(self.c.close)

    def objects(self, key):
        return sorted(e.key for e in self.c.list(key + "/"))

    def test_whole_model(self):
        first, second = model(1).state_dict(), model(2).state_dict()
        first["extra"] = second["extra"] = {"some": "object"}
        first["scalar"], second["scalar"] = torch.tensor(5), torch.tensor(6)
        first["half"], second["half"] = torch.randn(10, 10).bfloat16(), torch.randn(10, 10).bfloat16()
        first["empty"] = second["empty"] = torch.zeros(0, 3)
        first["turned"] = torch.arange(12.0).view(3, 4).t()
        second["turned"] = first["turned"] + 1
        for saved in (first, second):
            w = CheckpointWriter(self.c, "ckpt")
            checkpoint.save_state_dict(saved, w, no_dist=True)
            self.assertEqual(w.result.path, "rdma")
            into = {k: torch.zeros_like(v) if isinstance(v, torch.Tensor) else None for k, v in saved.items()}
            # Not contiguous, and of another type.
            into["half"] = torch.zeros(10, 10)
            # PyTorch 2 saves what a dict in the state has under names of its own, and asks for those at a load.
            into["extra"] = {"some": None}
            into["a.bias"] = torch.zeros(2000, 2)[:, 1]
            r = CheckpointReader(self.c, "ckpt")
            checkpoint.load_state_dict(into, r, no_dist=True)
            self.assertEqual(into.pop("extra"), {"some": "object"})
            self.assertTrue(torch.equal(into.pop("half"), saved["half"].float()))
            self.assertTrue(same(into, {k: v for k, v in saved.items() if k not in ("extra", "half")}))
            self.assertEqual((r.result.path, r.result.bytes), ("rdma", w.result.bytes))
            # What the save before had is gone.
            self.assertEqual(len(self.objects("ckpt")), 2)
        with self.assertRaises(checkpoint.CheckpointException) as e:
            r = CheckpointReader(self.c, "none")
            checkpoint.load_state_dict(dict(first), r, no_dist=True)
        self.assertIsInstance(r.error, gantry.NotFound)
        self.assertTrue(told(e.exception, r.error), e.exception.failures)

    def test_killed(self):
        """A save that is killed in its middle leaves the one before it."""
        words = [sys.executable, __file__, "save", URL + "/killed"]
        subprocess.run([*words, "1"], check=True)
        old = self.objects("killed")
        saving = subprocess.Popen([*words, "-2"], stdout=subprocess.PIPE)
        self.assertEqual(saving.stdout.readline(), b"in the middle\n")
        saving.send_signal(signal.SIGKILL)
        saving.wait()
        saving.stdout.close()
        self.assertEqual(self.objects("killed"), old)
        into = state(0)
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "killed"), no_dist=True)
        self.assertTrue(same(into, state(1)))
        left = list(self.c.uploads("killed/"))
        self.assertEqual(len(left), 1)
        self.c.abort_upload(left[0].key, left[0].upload_id)
        subprocess.run([*words, "3"], check=True)
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "killed"), no_dist=True)
        self.assertTrue(same(into, state(3)))
        self.assertEqual(len(self.objects("killed")), len(old))

    def test_failed(self):
        """One that fails in a rank leaves the one before it, and nothing of its own."""
        checkpoint.save_state_dict(state(4), CheckpointWriter(self.c, "failed"), no_dist=True)
        old = self.objects("failed")

        class Planner(checkpoint.default_planner.DefaultSavePlanner):
            def resolve_data(self, item):
                if item.index.fqn == "step":
                    raise RuntimeError("half way")
                return super().resolve_data(item)

        with self.assertRaises(checkpoint.CheckpointException):
            checkpoint.save_state_dict(
                state(5), CheckpointWriter(self.c, "failed"), no_dist=True, planner=Planner()
            )
        self.assertEqual((self.objects("failed"), list(self.c.uploads())), (old, []))
        into = state(0)
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "failed"), no_dist=True)
        self.assertTrue(same(into, state(4)))

    def hostile(self, touched):
        """Pickles that run something where they are loaded by pickle, as .metadata and as an item."""

        class Runs:
            def __reduce__(self):
                return (os.system, (f"touch {touched}",))

        class Calls:
            def __init__(self, *what):
                self.what = what

            def __reduce__(self):
                return self.what

        for bad in (Runs(), Calls(exec, (f"open({touched!r}, 'w')",))):
            yield pickle.dumps(bad)
            yield pickle.dumps({"a": [bad]}, 2)
        yield b"cbuiltins\ngetattr\n(ctorch\nSize\nX\x03\x00\x00\x00mrotR)R."
        # Names with dots, functions of what may be named, codecs, numbers of classes, state of a class.
        yield b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93\x8c\x04true\x85R."
        yield b"\x80\x04\x8c\x0atorch.hub\x8c\x04load\x93\x8c\x04true\x85R."
        yield b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR."
        yield b"c_codecs\nlookup\n(X\x05\x00\x00\x00rot13tR."
        yield b"\x80\x02\x82\x01."
        yield b"\x80\x02cgantry.dcp\nStorageInfo\nN}X\x01\x00\x00\x00aK\x01s\x86b."
        yield pickle.dumps(Metadata({}, storage_data={"x": Runs()}))
        yield pickle.dumps(Metadata({}, storage_data={MetadataIndex("x"): StorageInfo("../secret", 0, 4)}))
        yield pickle.dumps(Metadata({}, storage_data={MetadataIndex("x"): StorageInfo("a/../secret", 0, 4)}))
        yield pickle.dumps(Metadata({}, storage_data=5))
        yield pickle.dumps({"no": "metadata"})
        yield b"no pickle"
        yield b""

    def test_hostile_metadata(self):
        """Claim TM74: whatever lies below the prefix, a save runs none of it and removes nothing but what a save has named."""
        touched = os.path.join(os.environ["T"], "touched")
        other = "20260101T000000Z-0123456789ab/0.distcp"
        kept = ["secret", f"hostile/{other}.not", f"hostile/sub/{other}", "hostile/own.distcp", f"elsewhere/{other}"]
        for key in kept:
            self.c.put(key, b"kept")
        names = [f"../elsewhere/{other}", f"/elsewhere/{other}", f"sub/{other}", f"{other}.not", "own.distcp", "../secret", "", 5, None]
        heads = [b"", b"gantry-checkpoint ", b"gantry-checkpoint " + json.dumps({"objects": names}).encode() + b"\n"]
        heads += [b"gantry-checkpoint " + h + b"\n" for h in (b"[" * 100000, b'{"objects": 5}', b"5", b"{}", b"\xff")]
        for n, bad in enumerate(self.hostile(touched)):
            head = heads[n % len(heads)]
            self.c.put("hostile/.metadata", head + bad)
            for begun in (b"gantry-checkpoint {}\n", b""):
                self.c.put("loaded/.metadata", begun + bad)
                r = CheckpointReader(self.c, "loaded")
                with self.assertRaises(checkpoint.CheckpointException) as e:
                    checkpoint.load_state_dict(state(0), r, no_dist=True)
                self.assertIsInstance(r.error, pickle.UnpicklingError)
                self.assertTrue(told(e.exception, r.error), e.exception.failures)
            checkpoint.save_state_dict(state(n), CheckpointWriter(self.c, "hostile"), no_dist=True)
            into = state(-1)
            checkpoint.load_state_dict(into, CheckpointReader(self.c, "hostile"), no_dist=True)
            self.assertTrue(same(into, state(n)))
            self.assertFalse(os.path.exists(touched))
            for key in kept:
                self.assertEqual(self.c.get(key), b"kept")
        # One that names the objects of the save that is under way keeps them.
        class Writer(CheckpointWriter):
            def finish(w, metadata, results):
                own = sorted({r.storage_data.key for rank in results for r in rank})
                self.c.put("hostile/.metadata", b"gantry-checkpoint " + json.dumps({"objects": own}).encode() + b"\n")
                super().finish(metadata, results)

        checkpoint.save_state_dict(state(1), Writer(self.c, "hostile"), no_dist=True)
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "hostile"), no_dist=True)
        self.assertTrue(same(into, state(1)))

    def test_hostile_item(self):
        """Claim TM74: an item that is no tensor is loaded with the classes of the list alone."""
        touched = os.path.join(os.environ["T"], "touched")
        extra = {"lr": 0.1, "b": b"\x00\xff", "s": {1, 2}, "t": (None, True), "big": 1 << 90,
                 "tensor": torch.arange(3), "dtype": torch.bfloat16, "p": torch.nn.Parameter(torch.ones(2)),
                 "o": collections.OrderedDict(a=[1.5]), "size": torch.Size([1, 2]), "c": 1j, "device": torch.device("cpu")}
        # In a tuple, since PyTorch 2 saves each entry of a dict as an item of its own.
        checkpoint.save_state_dict({"extra": (extra,)}, CheckpointWriter(self.c, "items"), no_dist=True)
        into = {"extra": None}
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "items"), no_dist=True)
        (back,) = into["extra"]
        self.assertTrue(torch.equal(back.pop("tensor"), extra.pop("tensor")))
        self.assertTrue(torch.equal(back.pop("p"), extra.pop("p")))
        self.assertEqual(back, extra)

        name = next(k for k in self.objects("items") if k.endswith(".distcp"))
        metadata = CheckpointReader(self.c, "items").read_metadata()
        (info,) = metadata.storage_data.values()
        archive = bytes(self.c.get(name))

        def remade(change):
            """That archive with another pickle in it, or another file more."""
            new = io.BytesIO()
            with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(new, "w") as z:
                for i in old.infolist():
                    data = old.read(i)
                    z.writestr(i.filename, change(data) if i.filename.endswith("data.pkl") else data)
                if change is torchscript:
                    z.writestr("archive/constants.pkl", b"\x80\x02).")
            return new.getvalue()

        def torchscript(data):
            return data

        storage = b"(X\x07\x00\x00\x00storagectorch\nByteStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ\x00\x00\x00\x7ftQ"
        bads = list(self.hostile(touched))
        # What those are that are no metadata matters to nobody here.
        evil = [b for b in bads if b"storage_data" not in b and b"metadata" not in b]
        items = [remade(lambda _, b=b: b) for b in evil] + evil + [remade(lambda _: b"\x80\x02" + storage + b".")]
        legacy = io.BytesIO()
        torch.save({"a": 1}, legacy, _use_new_zipfile_serialization=False)
        for bad in [*items, legacy.getvalue(), archive[:-20]]:
            self.c.put(name, bad)
            info.length = len(bad)
            self.c.put("items/.metadata", b"gantry-checkpoint {}\n" + pickle.dumps(metadata))
            with self.assertRaises(checkpoint.CheckpointException) as e:
                checkpoint.load_state_dict(into, CheckpointReader(self.c, "items"), no_dist=True)
            self.assertIsInstance(e.exception.failures[0][0], pickle.UnpicklingError)
            self.assertFalse(os.path.exists(touched))
        # A class of the program's own has to be named.
        checkpoint.save_state_dict({"extra": Named(7)}, CheckpointWriter(self.c, "named"), no_dist=True)
        with self.assertRaisesRegex(checkpoint.CheckpointException, r"Named is nothing that a checkpoint has"):
            checkpoint.load_state_dict(into, CheckpointReader(self.c, "named"), no_dist=True)
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "named", classes=[Named]), no_dist=True)
        self.assertEqual(into["extra"].n, 7)

    def test_two_ranks(self):
        """Two processes save a tensor of which each has half; one process loads it whole, and three quarters apart."""
        at = os.path.join(os.environ["T"], "meeting")
        ranks = [
            subprocess.Popen([sys.executable, __file__, "rank", str(r), URL + "/sharded", at]) for r in (0, 1)
        ]
        for p in ranks:
            self.assertEqual(p.wait(), 0)
        self.assertEqual(len(self.objects("sharded")), 3)
        into = {"shared": torch.zeros(1000, 64)}
        checkpoint.load_state_dict(into, CheckpointReader(self.c, "sharded"), no_dist=True)
        want = torch.cat((torch.full((500, 64), 1.0), torch.full((500, 64), 2.0)))
        self.assertTrue(torch.equal(into["shared"], want))


def save(url, n):
    with client() as c:
        writer = CheckpointWriter(c, url)
        if n < 0:

            def stop(*_, **__):
                print("in the middle", flush=True)
                time.sleep(600)

            # Behind the first parts, before the object is whole.
            gantry._client.Upload.complete = stop
        checkpoint.save_state_dict(state(abs(n)), writer, no_dist=True)


def rank(r, url, at):
    torch.distributed.init_process_group("gloo", init_method=f"file://{at}", rank=r, world_size=2)
    spec = ChunkShardingSpec(dim=0, placements=["rank:0/cpu", "rank:1/cpu"])
    shared = sharded_tensor.zeros(spec, 1000, 64)
    with client() as c:
        shared.local_shards()[0].tensor.fill_(r + 1)
        checkpoint.save_state_dict({"shared": shared}, CheckpointWriter(c, url))
        # Each loads its own half, and then the other way: rows of both.
        shared.local_shards()[0].tensor.zero_()
        reader = CheckpointReader(c, url)
        checkpoint.load_state_dict({"shared": shared}, reader)
        assert torch.equal(shared.local_shards()[0].tensor, torch.full((500, 64), float(r + 1)))
        assert reader.result.bytes == 500 * 64 * 4, reader.result
        columns = sharded_tensor.zeros(
            ChunkShardingSpec(dim=1, placements=["rank:0/cpu", "rank:1/cpu"]), 1000, 64
        )
        checkpoint.load_state_dict({"shared": columns}, CheckpointReader(c, url))
        tensor = columns.local_shards()[0].tensor
        assert torch.equal(tensor[:500], torch.full((500, 32), 1.0)) and torch.equal(
            tensor[500:], torch.full((500, 32), 2.0)
        )
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1:2] == ["save"]:
        save(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["rank"]:
        rank(int(sys.argv[2]), *sys.argv[3:])
    else:
        unittest.main()
