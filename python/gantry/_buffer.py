# SPDX-License-Identifier: Apache-2.0
"""The memory of a caller's object: where it lies, held in place for as long as somebody may reach it."""

from __future__ import annotations

import ctypes
import re
from typing import Any, Optional

# From Python's own header; the layout is part of its stable interface.
_FULL_RO = 0x011C  # PyBUF_INDIRECT | PyBUF_FORMAT
_CPU, _CUDA_HOST = 1, 3  # kDLCPU, kDLCUDAHost of DLPack


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

_DEVICE = (
    "its bytes lie in a device's memory ({where}), which this package does not move: "
    "bring them to the CPU first, for instance with tensor.cpu()"
)
_SCATTERED = "its elements do not lie one behind the other: make a contiguous copy first ({how})"


class Memory:
    """Bytes of an object that has the buffer protocol, or of a CPU tensor of PyTorch.

    While it is not released, Python neither frees nor moves them: a bytearray cannot be resized, a mmap not
    closed.
    """

    __slots__ = ("address", "nbytes", "readonly", "_view", "_keep")

    def __init__(self, obj: Any, *, writable: bool = False) -> None:
        self.address: int = 0
        self.nbytes: int = 0
        self.readonly: bool = False
        self._view: Optional[_PyBuffer] = None
        self._keep: Any = None
        if hasattr(obj, "data_ptr") and hasattr(obj, "element_size"):
            self._of_tensor(obj)
        else:
            self._of_buffer(obj)
        if writable and self.readonly:
            self.release()
            raise TypeError(f"{_name(obj)} is read-only: nothing can be fetched into it")

    def _of_tensor(self, tensor: Any) -> None:
        kind = tensor.device.type
        if kind != "cpu":
            raise TypeError(
                f"{_name(tensor)} is not in the memory of this host: "
                + _DEVICE.format(where=str(tensor.device))
            )
        if not hasattr(tensor, "layout"):
            raise TypeError(f"{_name(tensor)} is a storage and no tensor: give a tensor that lies in it")
        if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
            raise TypeError(f"{_name(tensor)} of layout {tensor.layout} is not one run of bytes")
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            raise ValueError(f"{_name(tensor)}: " + _SCATTERED.format(how="tensor.contiguous(), or .clone()"))
        self.address = tensor.data_ptr()
        self.nbytes = tensor.numel() * tensor.element_size()
        # The storage, so that the bytes outlive what the caller does with his tensor.
        self._keep = (tensor, tensor.detach())

    def _of_buffer(self, obj: Any) -> None:
        if hasattr(obj, "__cuda_array_interface__"):
            raise TypeError(
                f"{_name(obj)} is not in the memory of this host: " + _DEVICE.format(where="CUDA")
            )
        if hasattr(obj, "__dlpack_device__") and obj.__dlpack_device__()[0] not in (_CPU, _CUDA_HOST):
            raise TypeError(
                f"{_name(obj)} is not in the memory of this host: " + _DEVICE.format(where="DLPack")
            )
        view = _PyBuffer()
        try:
            _get_buffer(obj, ctypes.byref(view), _FULL_RO)
        except TypeError:
            raise TypeError(
                f"{_name(obj)} is no buffer; bytes, bytearray, memoryview, mmap, array, numpy are"
            ) from None
        except (BufferError, ValueError) as e:
            raise TypeError(f"{_name(obj)} does not give its memory: {e}") from e
        self._view = view
        # Names of fields stand between colons.
        if view.format and b"O" in re.sub(b":[^:]*:", b"", view.format):
            self.release()
            raise TypeError(f"{_name(obj)} holds Python objects, and not their bytes: pickle it")
        if not _is_contiguous(ctypes.byref(view), b"C"):
            self.release()
            raise ValueError(
                f"{_name(obj)}: " + _SCATTERED.format(how="numpy.ascontiguousarray(), or bytes()")
            )
        self.address = view.buf or 0
        self.nbytes = view.len
        self.readonly = bool(view.readonly)

    def view(self) -> memoryview:
        """Returns a view of the bytes, whatever items they are of.  It is good until release()."""
        if not self.nbytes:
            return memoryview(b"")
        view = _from_memory(self.address, self.nbytes, _READ if self.readonly else _WRITE)
        assert isinstance(view, memoryview)
        return view

    def release(self) -> None:
        """Lets go of the object."""
        view, self._view, self._keep = self._view, None, None
        if view is not None:
            _release(ctypes.byref(view))

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def _name(obj: Any) -> str:
    t = type(obj)
    return t.__name__ if t.__module__ == "builtins" else f"{t.__module__}.{t.__name__}"
