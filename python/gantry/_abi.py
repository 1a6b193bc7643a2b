# SPDX-License-Identifier: Apache-2.0
"""libgantry as ctypes sees it: the structs and calls of gantry.h, and nothing else.

Every struct that the library reads or fills begins with its size, so an older or a newer library takes as
much as it knows.
tests/system/python.sh compares all of this with the header, as a compiler sees it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Dict, List, Tuple

SONAME = "libgantry.so.0"
# The first version that has all that this package calls.
MINIMUM = (0, 1, 0)

S3, SCALITY = 0, 1
NO_RDMA, RDMA_ONLY, TARGET_PER_CALL = 1 << 0, 1 << 1, 1 << 2
READ_ONLY = 1 << 0
REGISTER_MAX = 0xFFFFFFFF
UPLOAD_ID_MAX, PARTS_MAX = 1024, 10000
PATH_NONE, PATH_RDMA, PATH_HTTP, PATH_RDMA_STAGED = 0, 1, 2, 3
TRANSPORT_AUTO, TRANSPORT_DC, TRANSPORT_RC = 0, 1, 2
DEVICE, COUNTED, STAGED = 1 << 1, 1 << 2, 1 << 3
WAIT_NONE, WAIT_STREAM, WAIT_EVENT = 0, 1, 2
MEM_SYSTEM, MEM_MANAGED, MEM_DEVICE, MEM_UNKNOWN, MEM_INVALID = 0, 1, 2, 3, 4


class Options(ctypes.Structure):
    """struct gantry_options"""

    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("dialect", c_int),
        ("device", c_char_p),
        ("dc_key", c_char_p),
        ("config_file", c_char_p),
        ("connect_timeout_ms", c_uint),
        ("timeout_ms", c_uint),
        ("max_callback_bytes", c_uint64),
        ("access_key", c_char_p),
        ("secret_key", c_char_p),
        ("session_token", c_char_p),
        ("region", c_char_p),
        ("target_life_ms", c_uint),
        ("traffic_class", c_int),
        ("service_level", c_int),
        ("path_mtu", c_int),
        ("pkey_index", c_int),
        ("copy", c_void_p),
        ("copy_cookie", c_void_p),
        ("stage", c_int),
        ("stage_bytes", c_uint64),
        ("transport", c_int),
        ("ca_file", c_char_p),
    ]


class Result(ctypes.Structure):
    """struct gantry_result"""

    _fields_ = [
        ("size", c_size_t),
        ("path", c_int),
        ("status", c_int),
        ("reply", c_int),
        ("requests", c_int),
        ("checksum_verified", c_int),
        ("bytes", c_uint64),
        ("object_size", c_uint64),
        ("has_object_size", c_int),
        ("crc64nvme", c_uint64),
        ("has_crc64nvme", c_int),
        ("etag", c_char * 136),
        ("reason", c_char * 160),
        ("code", c_char * 64),
        ("message", c_char * 256),
        ("checksum", c_char * 16),
        ("last_modified", c_char * 40),
        ("transport", c_int),
        ("declined_address", c_char * 48),
        ("first_byte_ns", c_uint64),
    ]


class Request(ctypes.Structure):
    """struct gantry_request"""

    _fields_ = [
        ("size", c_size_t),
        ("checksum", c_int),
        ("no_rdma", c_int),
        ("if_match", c_char_p),
        ("if_none_match", c_char_p),
        ("content_type", c_char_p),
        ("timeout_ms", c_uint),
        ("source_if_match", c_char_p),
        ("wait", c_int),
        ("wait_for", c_void_p),
        ("busy_ms", c_uint),
        ("ttl_s", c_uint64),
    ]


class MemoryInfo(ctypes.Structure):
    """struct gantry_memory_info"""

    _fields_ = [
        ("size", c_size_t),
        ("type", c_int),
        ("device", c_int),
        ("start", c_uint64),
        ("length", c_uint64),
        ("id", c_uint64),
        ("driver", c_char_p),
    ]


class Entry(ctypes.Structure):
    """struct gantry_entry"""

    _fields_ = [
        ("name", c_void_p),
        ("name_len", c_size_t),
        ("is_prefix", c_int),
        ("is_raw", c_int),
        ("size", c_uint64),
        ("etag", c_char_p),
        ("date", c_char_p),
        ("upload_id", c_char_p),
    ]


class ListOptions(ctypes.Structure):
    """struct gantry_list_options"""

    _fields_ = [
        ("size", c_size_t),
        ("prefix", c_char_p),
        ("delimiter", c_char_p),
        ("start_after", c_char_p),
        ("page", c_uint),
        ("timeout_ms", c_uint),
    ]


class Part(ctypes.Structure):
    """struct gantry_part"""

    _fields_ = [
        ("number", c_int),
        ("size", c_uint64),
        ("etag", c_char * 136),
        ("checksum", c_char * 16),
    ]


ENTRY_FN = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Entry))
HEADER_FN = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)

STRUCTS: Dict[str, type] = {
    "gantry_options": Options,
    "gantry_result": Result,
    "gantry_request": Request,
    "gantry_memory_info": MemoryInfo,
    "gantry_entry": Entry,
    "gantry_list_options": ListOptions,
    "gantry_part": Part,
}

# What each call returns and takes; struct gantry * is a c_void_p.
CALLS: Dict[str, Tuple[Any, List[Any]]] = {
    "gantry_version": (c_char_p, []),
    "gantry_open": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "gantry_open_error": (c_char_p, []),
    "gantry_close": (None, [c_void_p]),
    "gantry_is_connected": (c_int, [c_void_p]),
    "gantry_rdma_reason": (c_char_p, [c_void_p]),
    "gantry_port": (c_char_p, [c_void_p, c_int]),
    "gantry_memory_type": (c_int, [c_void_p]),
    "gantry_memory_look": (c_int, [c_void_p, POINTER(MemoryInfo)]),
    "gantry_register": (c_int, [c_void_p, c_void_p, c_size_t, c_uint]),
    "gantry_register_error": (c_char_p, []),
    "gantry_deregister": (c_int, [c_void_p, c_void_p]),
    "gantry_put": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, POINTER(Request), POINTER(Result)]),
    "gantry_get": (
        c_int,
        [c_void_p, c_char_p, c_void_p, c_size_t, c_uint64, POINTER(Request), POINTER(Result)],
    ),
    "gantry_copy_to_host": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(Request), POINTER(Result)],
    ),
    "gantry_head": (c_int, [c_void_p, c_char_p, POINTER(Request), POINTER(Result)]),
    "gantry_delete": (c_int, [c_void_p, c_char_p, POINTER(Request), POINTER(Result)]),
    "gantry_make_bucket": (c_int, [c_void_p, c_char_p, POINTER(Result)]),
    "gantry_make_bucket_copies": (c_int, [c_void_p, c_char_p, c_int, POINTER(Result)]),
    "gantry_remove_bucket": (c_int, [c_void_p, c_char_p, POINTER(Result)]),
    "gantry_stat": (c_int, [c_void_p, c_char_p, POINTER(Request), HEADER_FN, c_void_p, POINTER(Result)]),
    "gantry_list": (c_int, [c_void_p, c_char_p, POINTER(ListOptions), ENTRY_FN, c_void_p, POINTER(Result)]),
    "gantry_list_buckets": (c_int, [c_void_p, c_char_p, ENTRY_FN, c_void_p, POINTER(Result)]),
    "gantry_uploads": (c_int, [c_void_p, c_char_p, c_char_p, ENTRY_FN, c_void_p, POINTER(Result)]),
    "gantry_upload_begin": (c_int, [c_void_p, c_char_p, POINTER(Request), POINTER(c_char), POINTER(Result)]),
    "gantry_upload_put": (
        c_int,
        [c_void_p, c_char_p, c_char_p, c_int, c_void_p, c_size_t, POINTER(Request), POINTER(Result)],
    ),
    "gantry_upload_complete": (
        c_int,
        [c_void_p, c_char_p, c_char_p, POINTER(Part), c_size_t, POINTER(Request), POINTER(Result)],
    ),
    "gantry_upload_abort": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(Result)]),
    "gantry_copy": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(Request), POINTER(Result)]),
    "gantry_crc64nvme": (c_uint64, [c_uint64, c_void_p, c_size_t]),
}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """Loads libgantry, once.  $GANTRY_LIBRARY names it, else the loader finds it.  ImportError says what is
    wrong."""
    name = os.environ.get("GANTRY_LIBRARY") or SONAME
    try:
        # CDLL, and not PyDLL: the interpreter lock is released for as long as a call takes.
        lib = ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(f"{e}: install libgantry0, or let GANTRY_LIBRARY name the library") from e
    try:
        lib.gantry_version.restype = c_char_p
        version = lib.gantry_version().decode()
        if tuple(int(n) for n in version.split("-")[0].split(".")) < MINIMUM:
            raise ImportError(
                f"{name} is version {version}; this package needs {'.'.join(map(str, MINIMUM))} or later"
            )
        for call, (restype, argtypes) in CALLS.items():
            function = getattr(lib, call)
            function.restype, function.argtypes = restype, argtypes
    except AttributeError as e:
        raise ImportError(f"{name} is no libgantry that fits this package: {e}") from e
    return lib
