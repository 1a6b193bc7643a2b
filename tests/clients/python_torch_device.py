# SPDX-License-Identifier: Apache-2.0
"""PyTorch's checkpoints of tensors on a GPU, which gantry.dcp moves as they are; python.sh runs it.  The GPU is the
stand-in driver $STAND_IN (tests/gpu/cuda_standin.c), so PyTorch needs none: what its kernels do with bytes of the
device is done here by the stand-in, and a touch by anything else ends the process."""

import contextlib
import ctypes
import math
import os
import types
import unittest
import unittest.mock

import gantry
import torch
import torch.distributed
from device_arrays import device
from gantry.dcp import CheckpointReader, CheckpointWriter
from torch.distributed._shard import checkpoint

URL = os.environ["URL_S3"] + "/bkt"
MIB = 1 << 20


class Device:
    type = "cuda"


DEVICE = Device()


class OnDevice(torch.Tensor):
    """A tensor of the stand-in's device."""

    @classmethod
    def blank(cls, shape, dtype):
        count = math.prod(shape)
        address = device.alloc(max(count, 1) * torch.zeros(0, dtype=dtype).element_size())
        memory = (ctypes.c_char * (max(count, 1) * torch.zeros(0, dtype=dtype).element_size())).from_address(address)
        return torch.frombuffer(memory, dtype=dtype)[:count].view(shape).as_subclass(cls)

    @classmethod
    def make(cls, values):
        """One with the values of a CPU tensor."""
        return cls.blank(values.shape, values.dtype).take(values)

    @property
    def device(self):
        return DEVICE

    def take(self, values):
        """Copies values into it, whose bytes are in C order then."""
        assert self.is_contiguous() and self.shape == values.shape and self.dtype == values.dtype
        flat = values.contiguous().reshape(-1)
        device.write(self.data_ptr(), bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b"")
        return self

    def values(self):
        """Returns a CPU tensor of the same values and strides."""
        if not self.numel():
            return torch.zeros(self.shape, dtype=self.dtype)
        last = sum((n - 1) * s for n, s in zip(self.shape, self.stride())) + 1
        raw = bytearray(device.read(self.data_ptr(), last * self.element_size()))
        return torch.frombuffer(raw, dtype=self.dtype).as_strided(self.shape, self.stride())

    def cpu(self):
        raise AssertionError("gantry.dcp brings a tensor of the device to the CPU")

    def contiguous(self):
        return self if self.is_contiguous() else OnDevice.make(self.values())

    def copy_(self, other):
        return self.take(other.values().to(self.dtype))


class Devices(unittest.TestCase):
    def setUp(self):
        real_empty = torch.empty

        def empty(*shape, **words):
            if words.get("device") is DEVICE:
                return OnDevice.blank(shape[0], words["dtype"])
            return real_empty(*shape, **words)

        stream = types.SimpleNamespace(cuda_stream=0)
        for where, name, what in (
            (torch, "empty", empty),
            (torch.cuda, "current_stream", lambda device=None: stream),
            (torch.cuda, "stream", lambda stream: contextlib.nullcontext()),
        ):
            patch = unittest.mock.patch.object(where, name, what)
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(device.free_all)
        self.c = gantry.Client(URL, require_rdma=True, part_size=5 * MIB, jobs=3)
        self.addCleanup(self.c.close)

    def state(self, seed):
        torch.manual_seed(seed)
        return {
            "large": torch.randn(1500, 1200),
            "larger": torch.randn(3000, 1200),
            "half": torch.randn(77, 10).bfloat16(),
            "turned": torch.arange(12.0).view(3, 4),
            "scalar": torch.tensor(seed),
            "empty": torch.zeros(0, 3),
            "host": torch.randn(5),
        }

    def equal(self, got, want):
        self.assertEqual(got.keys(), want.keys())
        for k in got:
            values = got[k].values() if isinstance(got[k], OnDevice) else got[k]
            self.assertTrue(torch.equal(values, want[k]), k)

    def test_checkpoint(self):
        for seed in (1, 2):
            want = self.state(seed)
            state = {k: v if k == "host" else OnDevice.make(v) for k, v in want.items()}
            state["turned"] = state["turned"].t()
            want["turned"] = want["turned"].t()
            # Queued, and there when the bytes go.
            device.fill(1, state["half"].data_ptr(), 20, 0)
            want["half"].view(-1)[:10] = 0
            writer = CheckpointWriter(self.c, "device")
            checkpoint.save_state_dict(state, writer, no_dist=True)
            self.assertEqual(writer.result.path, "rdma", writer.result.reason)
            back = {
                k: torch.zeros(5) if k == "host" else OnDevice.make(torch.zeros_like(v)) for k, v in want.items()
            }
            # Of another type: fetched to the device, and converted there.
            back["half"] = OnDevice.make(torch.zeros(77, 10))
            device.fill(1, back["large"].data_ptr(), 1500 * 1200 * 4, 9)
            reader = CheckpointReader(self.c, "device")
            checkpoint.load_state_dict(back, reader, no_dist=True)
            device.finish()
            self.assertEqual((reader.result.path, reader.result.bytes), ("rdma", writer.result.bytes))
            want["half"] = want["half"].float()
            self.equal(back, want)

    def test_part(self):
        """Rows come straight; of columns the whole is fetched to the device, and cut there."""
        want = self.state(3)
        state = {k: OnDevice.make(v) for k, v in want.items()}
        checkpoint.save_state_dict(state, CheckpointWriter(self.c, "part"), no_dist=True)
        reader = CheckpointReader(self.c, "part")
        info = reader.read_metadata().storage_data
        index = next(i for i in info if i.fqn == "large")
        for first, lengths in (((100, 0), (300, 1200)), ((100, 30), (200, 50))):
            target = OnDevice.make(torch.zeros(lengths))
            item = types.SimpleNamespace(storage_index=index, storage_offsets=first, lengths=lengths)
            self.assertEqual(reader._fetch_tensor(item, info[index], target).path, "rdma")
            (a, b), (n, m) = first, lengths
            self.assertTrue(torch.equal(target.values(), want["large"][a : a + n, b : b + m]))

    def test_planner(self):
        """What a planner's resolve_data() gives lies on the device, where the state has a tensor of the CPU."""

        class Planner(checkpoint.default_planner.DefaultSavePlanner):
            def resolve_data(self, item):
                return OnDevice.make(super().resolve_data(item) + 1)

        state = {"weights": torch.randn(2000, 1000)}
        checkpoint.save_state_dict(state, CheckpointWriter(self.c, "planner"), no_dist=True, planner=Planner())
        back = {"weights": torch.zeros(2000, 1000)}
        checkpoint.load_state_dict(back, CheckpointReader(self.c, "planner"), no_dist=True)
        self.assertTrue(torch.equal(back["weights"], state["weights"] + 1))

    def test_file(self):
        values = torch.randn(2_000_000)
        with self.c.open("tensors", "wb") as f:
            f.write(OnDevice.make(values))
            f.write(OnDevice.make(values[:3]))
        with self.c.open("tensors") as f:
            back, few = OnDevice.make(torch.zeros(2_000_000)), OnDevice.make(torch.zeros(3))
            self.assertEqual((f.readinto(back), f.readinto(few), f.read()), (8_000_000, 12, b""))
        self.assertTrue(torch.equal(back.values(), values) and torch.equal(few.values(), values[:3]))


if __name__ == "__main__":
    device.load(os.environ["STAND_IN"])
    unittest.main()
