# SPDX-License-Identifier: Apache-2.0
"""What the Python module takes for the memory of an array: every interface, and what each may say.  python_device.sh
runs it; no daemon and no driver are needed, and no byte of the memory is touched."""

import gc
import os
import sys
import unittest
import weakref

import device_arrays as arrays
import numpy
from device_arrays import DLPack, Interface, Tensor
from gantry._buffer import Memory

AT = 0x7F0000001000


class Owner:
    """Stands for the storage of an array."""


class Layouts(unittest.TestCase):
    def lies(self, obj, nbytes, stream, address=AT, readonly=False, is_device=True):
        with Memory(obj) as m:
            self.assertEqual(
                (m.address, m.nbytes, m.readonly, m.is_device, m.stream),
                (address, nbytes, readonly, is_device, stream),
            )

    def refused(self, kind, words, obj, **more):
        with self.assertRaisesRegex(kind, words):
            Memory(obj, **more).release()

    def test_cuda_array_interface(self):
        self.lies(Interface(AT, (3, 4), "<f4"), 48, 0)
        self.lies(Interface(AT, (3, 4), "<f4", strides=(16, 4), stream=1), 48, 1)
        self.lies(Interface(AT, (3, 1, 4), "<f4", strides=(16, 999, 4), stream=2), 48, 2)
        self.lies(Interface(AT, (5,), "<V2", stream=0x55550000), 10, 0x55550000)  # bfloat16
        self.lies(Interface(AT, (), "<c16"), 16, 0)
        self.lies(Interface(AT, (2,), "<U3"), 24, 0)
        self.lies(Interface(AT, (2,), "<M8[ns]"), 16, 0)
        self.lies(Interface(0, (0,)), 0, 0, address=0)
        self.lies(Interface(None, (7, 0), strides=(1, 1), data=(None, False)), 0, 0, address=0)
        self.lies(Interface(AT, (4,), data=(AT, True)), 4, 0, readonly=True)
        # Before version 3 nothing is said of streams: the default one is waited for.
        for version in (0, 1, 2):
            self.lies(Interface(AT, (4,), version=version), 4, 1)
        self.lies(Interface(AT, (4,), version=2, stream=5), 4, 5)
        # A part of an array is an array at another address.
        self.lies(Interface(AT + 12, (2, 4), "<f4", strides=(16, 4)), 32, 0, address=AT + 12)

    def test_cuda_array_interface_refused(self):
        for shape, strides in (((3, 4), (32, 4)), ((3, 4), (4, 12)), ((4,), (-4,)), ((4,), (0,)), ((2, 2), (4, 4))):
            words = rf"shape {shape} and strides {strides}".replace("(", r"\(").replace(")", r"\)")
            self.refused(ValueError, words + ".*contiguous copy", Interface(AT, shape, "<f4", strides=strides))
        self.refused(ValueError, "8 bytes at address 0", Interface(0, (2,), "<f4"))
        self.refused(ValueError, "8 bytes at address 0", Interface(0, (2,), "<f4", data=(None, False)))
        self.refused(ValueError, r"shape of \(-2,\)", Interface(AT, (-2,), "<f4"))
        self.refused(ValueError, "bytes lie at", Interface(AT, (1 << 62, 1 << 62)))
        self.refused(ValueError, "bytes lie at", Interface(-1, (2,)))
        self.refused(TypeError, "has a mask", Interface(AT, (2,), mask=Interface(AT, (2,))))
        self.refused(TypeError, "holds Python objects", Interface(AT, (2,), "|O8"))
        fields = [("a", "<i4"), ("b", [("c", "|O")])]
        self.refused(TypeError, "holds Python objects", Interface(AT, (2,), "|V12", descr=fields))
        self.lies(Interface(AT, (2,), "|V12", descr=[("O", "<i4"), ("b", "<f8")]), 24, 0)
        for typestr in ("|t1", "f4", "", None):
            self.refused(TypeError, "elements of type", Interface(AT, (2,), typestr))
        self.refused(TypeError, "names stream 0", Interface(AT, (2,), stream=0))
        self.refused(TypeError, "names stream -1", Interface(AT, (2,), stream=-1))
        self.refused(TypeError, "2 dimensions and 1 strides", Interface(AT, (2, 2), strides=(2,)))
        for bad in (("data", None), ("shape", None), ("data", (AT,)), ("version", "x"), ("stream", "x"), ("shape", ("x",))):
            array = Interface(AT, (2,))
            array.said.update([bad])
            self.refused(TypeError, "does not describe its memory", array)
        self.refused(TypeError, "read-only", Interface(AT, (4,), data=(AT, True)), writable=True)

        class Text:
            __cuda_array_interface__ = "text"

        self.refused(TypeError, "does not describe its memory", Text())

    def test_dlpack(self):
        for versions in (True, False):
            a = DLPack(AT, (3, 4), "f", 32, versions=versions)
            self.lies(a, 48, 1)
            # Its producer is asked to order its work before that of the default stream.
            self.assertEqual(a.streams, [1])
            self.lies(DLPack(AT, (3, 4), "bf", 16, strides=(4, 1), versions=versions), 24, 1)
            self.lies(DLPack(AT, (3, 1, 4), "f", 32, strides=(4, 77, 1), versions=versions), 48, 1)
            self.lies(DLPack(AT, (), "c", 128, versions=versions), 16, 1)
            self.lies(DLPack(AT, (5,), "f", 32, lanes=4, versions=versions), 80, 1)
            self.lies(DLPack(AT, (4,), offset=100, versions=versions), 4, 1, address=AT + 100)
            self.lies(DLPack(0, (4, 0), strides=(9, 9), versions=versions), 0, 1, address=0)
            self.lies(DLPack(AT, (8,), "i", 4, versions=versions), 4, 1)
            # The default stream of ROCm is 0 there.
            a = DLPack(AT, (4,), device=arrays.ROCM, versions=versions)
            self.lies(a, 4, 1)
            self.assertEqual(a.streams, [0])
            a = DLPack(AT, (4,), device=arrays.MANAGED, versions=versions)
            self.lies(a, 4, 1)
            self.assertEqual(a.streams, [1])
            # Of the host, where there is no stream.
            for device in (arrays.CPU, arrays.CUDA_HOST):
                a = DLPack(AT, (4,), device=device, versions=versions)
                self.lies(a, 4, 0, is_device=False)
                self.assertEqual(a.streams, [None])
        self.lies(DLPack(AT, (4,), flags=1), 4, 1, readonly=True)
        self.lies(DLPack(AT, (4,), flags=2), 4, 1, readonly=True)  # a copy: what is fetched into it is lost
        self.lies(DLPack(AT, (5,), "i", 4, flags=4), 5, 1)  # each element in a byte of its own
        jax = type("ArrayImpl", (DLPack,), {"__module__": "jaxlib.xla_extension"})
        self.lies(jax(AT, (4,), versions=False), 4, 1, readonly=True)
        self.lies(jax(AT, (4,)), 4, 1)
        self.assertEqual(arrays.capsules(), 0)

    def test_dlpack_refused(self):
        self.refused(
            ValueError,
            r"shape \(3, 4\) and strides \(32, 4\) \(bytes\)",
            DLPack(AT, (3, 4), "f", 32, strides=(8, 1)),
        )
        self.refused(TypeError, "version 2 of DLPack", DLPack(AT, (4,), major=2))
        self.refused(TypeError, "elements of 4 bits", DLPack(AT, (5,), "i", 4))
        self.refused(TypeError, r"OpenCL.*tensor.cpu\(\)", DLPack(AT, (4,), device=arrays.OPENCL))
        self.refused(TypeError, "a device .DLPack's device type 99", DLPack(AT, (4,), device=99))
        self.refused(TypeError, "says device type 2, and its capsule says 10", DLPack(AT, (4,), capsule_device=10))
        self.refused(TypeError, "read-only", DLPack(AT, (4,), flags=1), writable=True)
        self.refused(ValueError, "4 bytes at address 0", DLPack(0, (4,)))

        def no(stream):
            raise BufferError("it requires a gradient")

        self.refused(TypeError, "does not give its memory: it requires a gradient", DLPack(AT, (4,), before=no))

        class Odd:
            def __dlpack_device__(self):
                return self.said

            def __dlpack__(self, **_):
                return 5

        odd = Odd()
        odd.said = None
        self.refused(TypeError, "does not say where its memory is", odd)
        odd.said = (2, 0)
        self.refused(TypeError, "gives no capsule of DLPack", odd)
        self.assertEqual(arrays.capsules(), 0)

    def test_torch(self):
        arrays.torch_with_stream(0)
        self.addCleanup(sys.modules.pop, "torch")
        self.lies(Tensor(AT, (3, 4), 4), 48, 1)
        arrays.torch_with_stream(0x1234)
        self.lies(Tensor(AT, (3, 4), 2), 24, 0x1234)
        self.lies(Tensor(AT, (), 8), 8, 0x1234)
        self.lies(Tensor(0, (0, 4), 8), 0, 0x1234, address=0)
        self.lies(Tensor(AT, (4,), device="cpu"), 4, 0, is_device=False)
        self.refused(
            ValueError,
            r"shape \(3, 4\) and strides \(4, 12\) \(bytes\).*tensor.contiguous\(\)",
            Tensor(AT, (3, 4), 4, strides=(1, 3)),
        )
        self.refused(ValueError, "bytes are those of another value", Tensor(AT, (3,), 8, conj=True))
        self.refused(ValueError, "bytes are those of another value", Tensor(AT, (3,), 8, neg=True))
        self.refused(ValueError, "no memory of its own", Tensor(0, (3,), 8))
        for device in ("meta", "xpu", "mps"):
            self.refused(TypeError, rf"memory of {device}:0.*tensor.cpu\(\)", Tensor(AT, (3,), device=device))

    def test_without_buffer(self):
        """Arrays of the CPU that have no buffer, and say where they lie otherwise."""
        dates = numpy.array(["2026-01-01", "2026-02-01"], "datetime64[s]")
        address = dates.__array_interface__["data"][0]
        self.lies(dates, 16, 0, address=address, is_device=False)
        self.refused(ValueError, r"shape \(1,\) and strides \(16,\)|contiguous", numpy.zeros((4, 2), "M8[s]")[:, 0])
        dates.flags.writeable = False
        self.refused(TypeError, "read-only", dates, writable=True)
        mixed = numpy.zeros(3, dtype=[("a", "M8[s]"), ("b", "O")])
        self.refused(TypeError, "holds Python objects", mixed)
        for bad in (None, 5, "text", [1, 2]):
            self.refused(TypeError, "is no buffer", bad)

    def test_held(self):
        """The storage lives until the last user has ended."""
        for make in (
            lambda owner: Interface(AT, (4,), owner=owner),
            lambda owner: DLPack(AT, (4,), owner=owner),
            lambda owner: DLPack(AT, (4,), owner=owner, versions=False),
        ):
            owner = Owner()
            storage = weakref.ref(owner)
            array = make(owner)
            m = Memory(array)
            del owner, array
            part = m.part(1, 2)
            self.assertEqual((part.address, part.nbytes), (AT + 1, 2))
            m.hold()
            m.release()
            gc.collect()
            self.assertIsNotNone(storage())
            m.release()
            gc.collect()
            self.assertIsNotNone(storage())
            part.release()
            del part
            gc.collect()
            self.assertIsNone(storage())
            with self.assertRaisesRegex(ValueError, "let go"):
                m.hold()
        self.assertEqual(arrays.capsules(), 0)


if __name__ == "__main__":
    assert "torch" not in sys.modules and os.environ.get("PYTHONWARNINGS") == "error"
    unittest.main()
