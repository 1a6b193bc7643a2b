# SPDX-License-Identifier: Apache-2.0
"""PyTorch over the Python module: tensors, torch.save and torch.load, checkpoints of torch.distributed; python.sh runs it.

python_torch.py              the tests, against $URL_S3
python_torch.py save URL N   saves checkpoint N there, and hangs in the middle of it when N is negative
python_torch.py rank R URL   what rank R of two does
"""

import collections
import os
import signal
import subprocess
import sys
import time
import unittest

import gantry
import torch
import torch.distributed
from gantry.dcp import CheckpointReader, CheckpointWriter
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
        # A tensor without memory on this host: that of "meta" stands for those of a GPU.
        with self.assertRaisesRegex(TypeError, r"not in the memory of this host: .*\(meta\).*tensor.cpu\(\)"):
            self.c.put("bad", torch.zeros(3, device="meta"))
        with self.assertRaisesRegex(TypeError, "not in the memory of this host"):
            self.c.get_into("bad", torch.zeros(3, device="meta"))


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
            checkpoint.load_state_dict(dict(first), CheckpointReader(self.c, "none"), no_dist=True)
        self.assertIsInstance(e.exception.failures[0][0], gantry.NotFound)

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
