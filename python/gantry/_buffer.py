# SPDX-License-Identifier: Apache-2.0
"""The memory of a caller's object: where it lies, held in place until the last transfer of it has ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import threading
from typing import Any, Iterator, Optional

from . import _layout
from ._layout import Layout, elsewhere, name, scattered

# From Python's own header; the layout is part of its stable interface.
_FULL_RO = 0x011C  # PyBUF_INDIRECT | PyBUF_FORMAT


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_PyBuffer)]
_release.restype = None
_is_contiguous = ctypes.pythonapi.PyBuffer_IsContiguous
_is_contiguous.argtypes = [ctypes.POINTER(_PyBuffer), ctypes.c_char]
_is_contiguous.restype = ctypes.c_int
_from_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_from_memory.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_from_memory.restype = ctypes.py_object
_READ, _WRITE = 0x100, 0x200  # PyBUF_READ, PyBUF_WRITE

_lock = threading.Lock()


class Memory:
    """Bytes of an object: of one with the buffer protocol, of a tensor of PyTorch, or of an array of a GPU,
    by __cuda_array_interface__ or DLPack.

    Python neither frees nor moves them while there is a user: a bytearray cannot be resized, a mmap not
    closed, the storage of a tensor lives.  The maker is the first user; hold() adds one, release() takes one
    away.

    is_device  the memory is a GPU's, or is shared with one: only its driver may touch it
    stream     the number of the stream whose work has to end before the bytes are moved; 0: none
    """

    __slots__ = ("address", "nbytes", "readonly", "is_device", "stream", "_users", "_view", "_keep")

    def __init__(self, obj: Any, *, writable: bool = False) -> None:
        self._users = 1
        self._view: Optional[_PyBuffer] = None
        self._keep: Any = None
        layout = self._layout(obj)
        self.address: int = layout.address
        self.nbytes: int = layout.nbytes
        self.readonly: bool = layout.readonly
        self.is_device: bool = layout.is_device
        self.stream: int = layout.stream
        self._keep = layout.keep
        if writable and self.readonly:
            self.release()
            raise TypeError(f"{name(obj)} is read-only: nothing can be fetched into it")
        if self.is_device and self.nbytes:
            _check_fork(obj)

    def _layout(self, obj: Any) -> Layout:
        if isinstance(obj, Memory):
            obj.hold()
            return Layout(obj.address, obj.nbytes, obj.readonly, obj.is_device, obj.stream, _Hold(obj))
        if hasattr(obj, "data_ptr") and hasattr(obj, "element_size") and hasattr(obj, "device"):
            return _of_tensor(obj)
        interface = getattr(obj, "__cuda_array_interface__", None)
        if interface is not None:
            return _layout.of_interface(obj, interface, True)
        # An array of the CPU has the buffer protocol as well, in most cases.
        if hasattr(obj, "__dlpack_device__") and _layout.device_of(obj) not in _layout.HOST:
            return _layout.of_dlpack(obj)
        return self._of_buffer(obj)

    def _of_buffer(self, obj: Any) -> Layout:
        view = _PyBuffer()
        try:
            _get_buffer(obj, ctypes.byref(view), _FULL_RO)
        except (TypeError, BufferError, ValueError) as e:
            return _without_buffer(obj, e)
        self._view = view
        # Names of fields stand between colons.
        if view.format and b"O" in re.sub(b":[^:]*:", b"", view.format):
            self.release()
            raise TypeError(f"{name(obj)} holds Python objects, and not their bytes: pickle it")
        if not _is_contiguous(ctypes.byref(view), b"C"):
            shape, strides = _numbers(view.shape, view.ndim), _numbers(view.strides, view.ndim)
            self.release()
            raise scattered(obj, shape, strides, "numpy.ascontiguousarray(), or bytes()")
        return Layout(view.buf or 0, view.len, bool(view.readonly))

    def part(self, start: int, size: int) -> "Memory":
        """Returns a part, of which the whole is the owner: it holds it."""
        part = Memory(self)
        part.address, part.nbytes = self.address + start, size
        return part

    def view(self) -> memoryview:
        """Returns a view of bytes of this host, whatever items they are of.  It is good until release()."""
        assert not self.is_device
        if not self.nbytes:
            return memoryview(b"")
        view = _from_memory(self.address, self.nbytes, _READ if self.readonly else _WRITE)
        assert isinstance(view, memoryview)
        return view

    def hold(self) -> None:
        """Adds a user."""
        with _lock:
            if not self._users:
                raise ValueError("the buffer was let go")
            self._users += 1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Is one more user for as long as a with statement."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Takes a user away.  The last one lets go of the object."""
        with _lock:
            self._users = max(self._users - 1, 0)
            if self._users:
                return
            view, self._view, keep, self._keep = self._view, None, self._keep, None
        if view is not None:
            _release(ctypes.byref(view))
        del keep

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __del__(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            _release(ctypes.byref(view))


class _Hold:
    """A use of a memory, as long as this lives."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __del__(self) -> None:
        self._memory.release()


def _of_tensor(tensor: Any) -> Layout:
    kind = tensor.device.type
    if kind not in ("cpu", "cuda"):
        raise elsewhere(tensor, str(tensor.device))
    if not hasattr(tensor, "layout"):
        raise TypeError(f"{name(tensor)} is a storage and no tensor: give a tensor that lies in it")
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        raise TypeError(f"{name(tensor)} of layout {tensor.layout} is not one run of bytes")
    if not tensor.is_contiguous():
        size = tensor.element_size()
        raise scattered(
            tensor, tensor.shape, [n * size for n in tensor.stride()], "tensor.contiguous(), or .clone()"
        )
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(
            f"{name(tensor)} is a view whose bytes are those of another value: make a contiguous copy first "
            "(tensor.contiguous() of tensor.resolve_conj() or .resolve_neg(), or .clone())"
        )
    address, nbytes = tensor.data_ptr(), tensor.numel() * tensor.element_size()
    if nbytes and not address:
        raise ValueError(f"{name(tensor)} has no memory of its own: give the tensor that it wraps")
    # The storage, so that the bytes outlive what the caller does with the tensor.
    keep = (tensor, tensor.detach())
    if kind == "cpu":
        return Layout(address, nbytes, False, keep=keep)
    # PyTorch has 0 for the stream that everybody shares.
    stream = int(sys.modules["torch"].cuda.current_stream(tensor.device).cuda_stream)
    return Layout(address, nbytes, False, True, stream or _layout.LEGACY_STREAM, keep)


def _without_buffer(obj: Any, e: Exception) -> Layout:
    """Returns where an array of the CPU lies that has no buffer: one of bfloat16, of dates."""
    interface = getattr(obj, "__array_interface__", None)
    if interface is not None:
        return _layout.of_interface(obj, interface, False)
    if hasattr(obj, "__dlpack_device__"):
        return _layout.of_dlpack(obj)
    if isinstance(e, TypeError):
        raise TypeError(
            f"{name(obj)} is no buffer; bytes, bytearray, memoryview, mmap, array, numpy are, and so are "
            "tensors and arrays of a GPU"
        ) from None
    raise TypeError(f"{name(obj)} does not give its memory: {e}") from e


def _numbers(address: Optional[int], n: int) -> "tuple[int, ...]":
    return tuple((ctypes.c_ssize_t * n).from_address(address)) if address else ()


# ---- fork ----

_NOT_INITIALIZED = 3  # of CUDA and of HIP alike
_is_child = False


def _forked() -> None:
    global _is_child, _lock
    _is_child = True
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _check_fork(obj: Any) -> None:
    """Refuses memory of a device in a child whose parent had initialised the driver: it works only there."""
    if not _is_child:
        return
    for library, call in (("libcuda.so.1", "cuInit"), ("libamdhip64.so", "hipInit")):
        try:
            driver = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        init = getattr(driver, call, None)
        if init is not None and init(0) == _NOT_INITIALIZED:
            raise RuntimeError(
                f"{name(obj)} is in the memory of a device, which a process cannot reach that was forked "
                "after its parent had initialised CUDA: start workers by spawn or forkserver"
            )
