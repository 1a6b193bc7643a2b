# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of an array lie, as its interface says: __array_interface__, __cuda_array_interface__,
DLPack.

No library of arrays is imported for this, and nothing is read from the memory itself.
"""

from __future__ import annotations

import ctypes
import dataclasses
import re
from typing import Any, NamedTuple, Optional, Sequence, Tuple

# Streams by number, as __cuda_array_interface__ and DLPack have them; any other number is the handle of a
# stream.
LEGACY_STREAM = 1
PER_THREAD_STREAM = 2

# Devices of DLPack.
CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 10, 11, 13
HOST = (CPU, CUDA_HOST, ROCM_HOST)
_OTHER = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon"}
# Flags of a versioned capsule.
_READ_ONLY, _IS_COPY, _PADDED = 1 << 0, 1 << 1, 1 << 2
# What the spec leaves to the reader: the first version that is not understood, and the one that is asked for.
_MAJOR, _ASKED = 1, (1, 1)

_ADDRESSES = 1 << 64


@dataclasses.dataclass(frozen=True)
class Layout:
    """One run of bytes.

    is_device  the memory is a GPU's, or is shared with one
    stream     the number of the stream whose work has to end before the bytes are moved; 0: none
    keep       the object that owns the bytes
    """

    address: int
    nbytes: int
    readonly: bool
    is_device: bool = False
    stream: int = 0
    keep: Any = None


def name(obj: Any) -> str:
    """Returns the type of an object as error messages have it."""
    t = type(obj)
    return t.__name__ if t.__module__ == "builtins" else f"{t.__module__}.{t.__name__}"


def elsewhere(obj: Any, where: str) -> TypeError:
    """Makes the error for memory that is neither this host's nor that of a CUDA or ROCm device."""
    return TypeError(
        f"{name(obj)} is not in the memory of this host, nor of a CUDA or ROCm device: its bytes lie in "
        f"memory of {where}, which this package does not move: bring them to the CPU first, for instance "
        "with tensor.cpu()"
    )


def scattered(obj: Any, shape: Sequence[int], strides: Sequence[int], how: str) -> ValueError:
    """Makes the error for elements with gaps between them, or in another order.  Strides in bytes."""
    return ValueError(
        f"{name(obj)} of shape {tuple(shape)} and strides {tuple(strides)} (bytes): its elements are not one "
        f"contiguous run in C order: make a contiguous copy first ({how})"
    )


def is_one_run(shape: Sequence[int], strides: Optional[Sequence[int]], itemsize: int) -> bool:
    """Tells whether elements lie one after the other in C order.  Strides in bytes; None: they do."""
    if strides is None or 0 in shape:
        return True
    expected = itemsize
    for n, stride in zip(reversed(shape), reversed(strides)):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True


def _checked(obj: Any, layout: Layout) -> Layout:
    if layout.nbytes and not layout.address:
        raise ValueError(f"{name(obj)} has no memory of its own: {layout.nbytes} bytes at address 0")
    if not 0 <= layout.address < _ADDRESSES or layout.address + layout.nbytes > _ADDRESSES:
        raise ValueError(f"{name(obj)} says that {layout.nbytes} bytes lie at {layout.address:#x}")
    return layout


def _count(obj: Any, shape: Sequence[int]) -> int:
    total = 1
    for n in shape:
        if n < 0:
            raise ValueError(f"{name(obj)} has a shape of {tuple(shape)}")
        total *= n
    return total


# ---- __array_interface__ and __cuda_array_interface__ ----

_TYPE = re.compile(r"[<>|=]([a-zA-Z])(\d+)")


def _has_objects(descr: Any) -> bool:
    """Tells whether a field of a structured type, or a field of that, is a Python object."""
    if not isinstance(descr, (list, tuple)):
        return False
    return any(
        field[1].lstrip("<>|=").startswith("O") if isinstance(field[1], str) else _has_objects(field[1])
        for field in descr
        if isinstance(field, (list, tuple)) and len(field) > 1
    )


def of_interface(obj: Any, interface: Any, is_device: bool) -> Layout:
    """Reads what __cuda_array_interface__, or numpy's __array_interface__, says."""
    try:
        shape = tuple(int(n) for n in interface["shape"])
        strides = interface.get("strides")
        strides = None if strides is None else tuple(int(n) for n in strides)
        address, readonly = interface["data"]
        address, readonly = int(address or 0), bool(readonly)
        typestr = str(interface["typestr"])
        version = int(interface.get("version", 0))
        stream = interface.get("stream")
        stream = None if stream is None else int(stream)
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise TypeError(f"{name(obj)} does not describe its memory: {type(e).__name__}: {e}") from e
    found = _TYPE.match(typestr)
    if not found or found[1] == "t":
        raise TypeError(f"{name(obj)} has elements of type {typestr!r}, whose size is not a number of bytes")
    if found[1] == "O" or _has_objects(interface.get("descr")):
        raise TypeError(f"{name(obj)} holds Python objects, and not their bytes: pickle it")
    if interface.get("mask") is not None:
        raise TypeError(f"{name(obj)} has a mask: its elements are not all of its bytes")
    # A text of n characters has four bytes for each.
    itemsize = int(found[2]) * (4 if found[1] == "U" else 1)
    nbytes = _count(obj, shape) * itemsize
    if strides is not None and len(strides) != len(shape):
        raise TypeError(f"{name(obj)} describes {len(shape)} dimensions and {len(strides)} strides")
    if not is_one_run(shape, strides, itemsize):
        raise scattered(obj, shape, strides or (), "ascontiguousarray()")
    if not is_device:
        return _checked(obj, Layout(address, nbytes, readonly, keep=(obj, interface)))
    if stream == 0 or (stream is not None and not 0 < stream < _ADDRESSES):
        raise TypeError(f"{name(obj)} names stream {stream}, which the interface does not allow")
    # Before version 3 it says nothing of streams: the default one waits for all that are not apart from it.
    if stream is None and version < 3:
        stream = LEGACY_STREAM
    return _checked(obj, Layout(address, nbytes, readonly, True, stream or 0, (obj, interface)))


# ---- DLPack ----


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


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid.restype = ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer.restype = ctypes.c_void_p


class _Found(NamedTuple):
    tensor: _Tensor
    readonly: bool
    is_copy: bool
    is_padded: bool


def device_of(obj: Any) -> int:
    """Returns the kind of device that an object with __dlpack_device__ lies in, by DLPack's numbers."""
    try:
        kind, _ = obj.__dlpack_device__()
        return int(kind)
    except (BufferError, TypeError, ValueError) as e:
        raise TypeError(f"{name(obj)} does not say where its memory is: {e}") from e


def _asked(obj: Any, kind: int) -> Any:
    """Asks for the capsule, whose producer has its work ordered before that of the stream which is named."""
    words = {} if kind in HOST else {"stream": 0 if kind == ROCM else LEGACY_STREAM}
    try:
        try:
            return obj.__dlpack__(max_version=_ASKED, **words)
        except TypeError:
            return obj.__dlpack__(**words)  # one of before 2024 has no such word
    except (BufferError, TypeError, ValueError) as e:
        raise TypeError(f"{name(obj)} does not give its memory: {e}") from e


def _opened(obj: Any, capsule: Any) -> _Found:
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major > _MAJOR:
            raise TypeError(f"{name(obj)} speaks version {versioned.major} of DLPack; 1 is known here")
        flags = versioned.flags
        return _Found(
            versioned.tensor, bool(flags & _READ_ONLY), bool(flags & _IS_COPY), bool(flags & _PADDED)
        )
    if _is_valid(capsule, b"dltensor"):
        # It says nothing of writing.  The arrays of these two never change.
        is_constant = type(obj).__module__.split(".")[0] in ("jax", "jaxlib", "tensorflow")
        return _Found(_Tensor.from_address(_pointer(capsule, b"dltensor")), is_constant, False, False)
    raise TypeError(f"{name(obj)} gives no capsule of DLPack, or one that was used")


def of_dlpack(obj: Any) -> Layout:
    """Reads the capsule that __dlpack__ gives.  It is kept as it is, and frees the memory at its end."""
    kind = device_of(obj)
    if kind not in (CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, CUDA_MANAGED):
        raise elsewhere(obj, f"{_OTHER.get(kind, 'a device')} (DLPack's device type {kind})")
    capsule = _asked(obj, kind)
    found = _opened(obj, capsule)
    tensor = found.tensor
    if tensor.device_type != kind:
        raise TypeError(f"{name(obj)} says device type {kind}, and its capsule says {tensor.device_type}")
    shape, strides = _dimensions(obj, tensor)
    bits = tensor.bits * tensor.lanes
    if found.is_padded:
        bits = -(-tensor.bits // 8) * 8 * tensor.lanes
    total = _count(obj, shape) * bits
    if total % 8:
        raise TypeError(f"{name(obj)} has elements of {bits} bits, and does not end with a whole byte")
    if strides is not None and not is_one_run(shape, strides, 1):
        in_bytes = [n * bits // 8 for n in strides]
        raise scattered(obj, shape, in_bytes, "a copy in C order")
    address = (tensor.data or 0) + tensor.byte_offset if total else 0
    return _checked(
        obj,
        Layout(
            address,
            total // 8,
            found.readonly or found.is_copy,
            kind not in HOST,
            0 if kind in HOST else LEGACY_STREAM,
            (obj, capsule),
        ),
    )


def _dimensions(obj: Any, tensor: _Tensor) -> Tuple[Tuple[int, ...], Optional[Tuple[int, ...]]]:
    """Returns shape and strides, those in elements."""
    if not 0 <= tensor.ndim <= 1024 or (tensor.ndim and not tensor.shape):
        raise TypeError(f"{name(obj)} describes {tensor.ndim} dimensions")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    return shape, tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
