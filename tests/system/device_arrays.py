# SPDX-License-Identifier: Apache-2.0
"""Arrays of a device as other libraries give them: stand-ins of CuPy's, numba's, JAX's and PyTorch's, and capsules
of DLPack.  Each is made over an address; none of them touches the bytes."""

import ctypes
import mmap
import sys
import types

CPU, CUDA, CUDA_HOST, OPENCL, ROCM, MANAGED = 1, 2, 3, 4, 10, 13
CODES = {"i": 0, "u": 1, "f": 2, "bf": 4, "c": 5, "b": 6}


def dense(shape, size):
    """The strides in bytes of an array in C order."""
    strides, step = [], size
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)


class Interface:
    """An array with __cuda_array_interface__.  `words` replace what it says; one that is None is left out."""

    def __init__(self, address, shape, typestr="|u1", **words):
        self.owner = words.pop("owner", None)
        self.said = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3}
        self.said.update(words)

    @property
    def __cuda_array_interface__(self):
        return dict(self.said)


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Legacy(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR]
_new.restype = ctypes.py_object
_alive = {}


@_DESTRUCTOR
def _ended(capsule):
    """The end of a capsule that still has its name: its array is let go, as a producer's deleter does."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
    _alive.pop(get(capsule, name(capsule)))


class DLPack:
    """An array with __dlpack__ and __dlpack_device__.

    streams   what the consumer named, in order
    versions  whether it knows max_version, as producers do from 2024 on
    """

    def __init__(self, address, shape, code="u", bits=8, lanes=1, device=CUDA, strides=None, offset=0, **words):
        self.address, self.shape, self.type = address, shape, (CODES[code], bits, lanes)
        self.device, self.strides, self.offset = device, strides, offset
        self.versions = words.pop("versions", True)
        self.flags = words.pop("flags", 0)
        self.major = words.pop("major", 1)
        self.owner = words.pop("owner", None)
        self.before = words.pop("before", lambda stream: None)
        self.capsule_device = words.pop("capsule_device", device)
        assert not words
        self.streams = []

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, stream=None, **words):
        if not self.versions and words:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        self.before(stream)
        n = len(self.shape)
        shape = (ctypes.c_int64 * n)(*self.shape)
        strides = (ctypes.c_int64 * n)(*self.strides) if self.strides is not None else None
        tensor = _Tensor(self.address, self.capsule_device, 0, n, *self.type, shape, strides, self.offset)
        if self.versions:
            managed = _Versioned(major=self.major, minor=0, flags=self.flags, tensor=tensor)
        else:
            managed = _Legacy(tensor=tensor)
        _alive[ctypes.addressof(managed)] = (managed, shape, strides, self.owner)
        name = b"dltensor_versioned" if self.versions else b"dltensor"
        return _new(ctypes.addressof(managed), name, _ended)


def capsules():
    """How many capsules there are."""
    return len(_alive)


class _Stream:
    def __init__(self, number):
        self.cuda_stream = number


class _Where:
    def __init__(self, kind, index=0):
        self.type, self.index = kind, index

    def __str__(self):
        return f"{self.type}:{self.index}"


class Tensor:
    """What this package asks of a torch.Tensor."""

    layout = "torch.strided"
    is_quantized = False

    def __init__(self, address, shape, size=1, device="cuda", strides=None, owner=None, conj=False, neg=False):
        self.address, self.shape, self.size = address, tuple(shape), size
        self.device = _Where(device)
        self.strides = strides if strides is not None else tuple(n // size for n in dense(shape, size))
        self.owner, self.conj, self.neg = owner, conj, neg

    def data_ptr(self):
        return self.address

    def element_size(self):
        return self.size

    def numel(self):
        total = 1
        for n in self.shape:
            total *= n
        return total

    def stride(self):
        return self.strides

    def is_contiguous(self):
        return self.strides == tuple(n // self.size for n in dense(self.shape, self.size)) or not self.numel()

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg

    def detach(self):
        return Tensor(self.address, self.shape, self.size, self.device.type, self.strides, self.owner)


def torch_with_stream(number):
    """Puts a module `torch` in place, whose current stream is this one."""
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda device=None: _Stream(number))
    sys.modules["torch"] = torch


class _Device:
    """The stand-in driver (tests/gpu/cuda_standin.c): its memory, and work on its streams.  A context is there during
    its own calls alone: what is tested has threads without one."""

    def load(self, path):
        """Loads the stand-in for the whole process, as a program's own libraries load the driver."""
        self._cuda = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        assert self._cuda.cuInit(0) == 0
        self._held = {}
        self._streams = []

    def _call(self, name, *words):
        context = ctypes.c_void_p()
        assert self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        self._cuda.cuCtxPushCurrent_v2(context)
        try:
            e = getattr(self._cuda, name)(*words)
            assert e == 0, f"{name}: error {e}"
        finally:
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
            self._cuda.cuDevicePrimaryCtxRelease_v2(0)

    def alloc(self, n, kind="device"):
        """Memory of the device; of the host, as the driver pins it; or managed, which both reach."""
        address = ctypes.c_void_p()
        if kind == "device":
            self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(n, 1)))
            self._held[address.value] = None
        elif kind == "pinned":
            self._call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(n), 0)
        else:
            memory = mmap.mmap(-1, n)
            address.value = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            self._cuda.standin_memory(address, ctypes.c_size_t(n), 2, 1)
            self._held[address.value] = memory
        return address.value

    def free(self, address):
        if self._held.pop(address) is None:
            self._call("cuMemFree_v2", ctypes.c_void_p(address))

    def free_all(self):
        self.finish()
        for address in [a for a, memory in self._held.items() if memory is None]:
            self.free(address)

    def write(self, address, data):
        self._call("cuMemcpyHtoD_v2", ctypes.c_void_p(address), data, ctypes.c_size_t(len(data)))

    def read(self, address, n):
        out = ctypes.create_string_buffer(max(n, 1))
        self._call("cuMemcpyDtoH_v2", out, ctypes.c_void_p(address), ctypes.c_size_t(n))
        return out.raw[:n]

    def stream(self):
        stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(stream), 1)
        self._streams.append(stream.value)
        return stream.value

    def fill(self, stream, address, n, byte):
        """Queues a kernel that writes one byte n times."""
        self._call("cuMemsetD8Async", ctypes.c_void_p(address), byte, ctypes.c_size_t(n), ctypes.c_void_p(stream))

    def finish(self, *streams):
        """Waits for these streams, else for all."""
        for stream in streams or [1, 2, *self._streams]:
            self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def count(self, name):
        self._cuda.standin_get.restype = ctypes.c_long
        return self._cuda.standin_get(name.encode())


device = _Device()
