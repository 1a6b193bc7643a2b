# SPDX-License-Identifier: Apache-2.0
"""Clients: objects in and out of buffers."""

from __future__ import annotations

import base64
import ctypes
import dataclasses
import errno
import functools
import os
import threading
import urllib.parse
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _abi, _layout
from ._buffer import Memory
from ._file import ObjectReader, ObjectWriter
from ._list import Channel, Entry, listed
from .errors import Error, PreconditionFailed, error_for

MIB = 1 << 20
STAGE_PIECE = 16 * MIB
_OFFSET_MAX = (1 << 63) - 1
_PATHS = {
    _abi.PATH_NONE: "",
    _abi.PATH_RDMA: "rdma",
    _abi.PATH_HTTP: "http",
    _abi.PATH_RDMA_STAGED: "rdma-staged",
}
_TRANSPORTS = {"auto": _abi.TRANSPORT_AUTO, "dc": _abi.TRANSPORT_DC, "rc": _abi.TRANSPORT_RC}
_TRANSPORT_NAMES = {_abi.TRANSPORT_AUTO: "", _abi.TRANSPORT_DC: "dc", _abi.TRANSPORT_RC: "rc"}


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a transfer, and what the server said of the object.

    path               "rdma" when all bytes went by RDMA straight from or to the memory; "rdma-staged" when
                       bytes of a device went by RDMA through pinned memory of this host; "http" when some
                       went in an HTTP body; "" when none were moved
    reason             why not by RDMA, or not straight; "" when they did
    bytes              moved
    rdma_bytes         of these, by RDMA
    object_size        of the whole object; None when the server did not say
    etag               with its quotes
    last_modified      as the server writes it
    checksum           its CRC64NVME of the object, in base64, where asked for and known
    crc64nvme          of the bytes moved, where it was computed; None otherwise
    checksum_verified  the server's checksum over the bytes that were delivered was there and right
    requests           HTTP requests that it took
    status             of the last of them
    transport          "dc" or "rc" of the bytes that went by RDMA; "" when none did
    """

    path: str = ""
    reason: str = ""
    bytes: int = 0
    rdma_bytes: int = 0
    object_size: Optional[int] = None
    etag: str = ""
    last_modified: str = ""
    checksum: str = ""
    crc64nvme: Optional[int] = None
    checksum_verified: bool = False
    requests: int = 0
    status: int = 0
    transport: str = ""


class Data(bytearray):
    """The bytes of an object, and in `result` how they came."""

    result: Result


class Registration:
    """Memory that the ports know until close(), or the end of a with statement; its object stays alive and
    in place that long.

    registered   False where there is no RDMA (then calls go over HTTP), where memory of a device cannot be
                 registered (then it is staged), and when it or its client was closed
    reason       why, in the first two cases
    """

    def __init__(self, context: "_Context", memory: Memory, obj: Any, read_only: bool, piece: int) -> None:
        self.buffer = obj
        self.reason = ""
        self._context = context
        self._addresses: List[int] = []
        try:
            for start in range(0, memory.nbytes, piece):
                size = min(piece, memory.nbytes - start)
                self.reason = context.register(memory, start, size, read_only)
                if self.reason:
                    break
                self._addresses.append(memory.address + start)
        except BaseException:
            self.close()
            raise

    @property
    def registered(self) -> bool:
        return bool(self._addresses) and self._context.holds(self._addresses)

    def close(self) -> None:
        """Deregisters.  Busy, and all stays as it is, while a call uses the memory."""
        while self._addresses:
            self._context.deregister(self._addresses[-1])
            self._addresses.pop()
        self.buffer = None

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Context:
    """One gantry_open(): how many calls run, which memory is registered, and a new one in a child of
    fork()."""

    def __init__(self, values: Dict[str, Any]) -> None:
        self.lib = _abi.library()
        self._values = values
        self._idle = threading.Condition()
        self._users = 0
        self._closed = False
        self._handle: Optional[int] = None
        self._memory: Dict[int, Memory] = {}
        self._channels: "weakref.WeakSet[Channel]" = weakref.WeakSet()
        self._open()
        _contexts.add(self)

    def _open(self) -> None:
        options = _abi.Options(size=ctypes.sizeof(_abi.Options), **self._values)
        handle = ctypes.c_void_p()
        rc = self.lib.gantry_open(ctypes.byref(options), ctypes.byref(handle))
        if rc < 0:
            raise error_for(-rc, self.lib.gantry_open_error().decode(errors="replace"))
        self._handle = handle.value

    def __enter__(self) -> int:
        with self._idle:
            if self._closed:
                raise ValueError("the client is closed")
            if self._handle is None:
                self._open()
            self._users += 1
            assert self._handle is not None
            return self._handle

    def __exit__(self, *exc: object) -> None:
        with self._idle:
            self._users -= 1
            if not self._users:
                self._idle.notify_all()

    def register(self, memory: Memory, start: int, size: int, read_only: bool) -> str:
        """Registers a piece.  Returns "", or why transfers of it do without."""
        address = memory.address + start
        with self as g:
            rc = self.lib.gantry_register(g, address, size, _abi.READ_ONLY if read_only else 0)
            if rc == -errno.ENODEV:
                return str(self.lib.gantry_rdma_reason(g).decode())
            if rc < 0:
                why = self.lib.gantry_register_error().decode()
                # Memory that is there, and that its driver or the ports do not register, is staged.
                info = _abi.MemoryInfo(size=ctypes.sizeof(_abi.MemoryInfo))
                is_there = (
                    memory.is_device and self.lib.gantry_memory_look(address, ctypes.byref(info)) == 0
                )
                if is_there and self._values["stage"] and -rc not in (errno.EEXIST, errno.EFBIG):
                    return str(why)
                raise error_for(-rc, "registering memory: " + why)
            self._memory[address] = memory
            return ""

    def holds(self, addresses: List[int]) -> bool:
        return all(address in self._memory for address in addresses)

    def deregister(self, address: int) -> None:
        if self._closed or address not in self._memory:
            return  # closing the client did it, or it was the parent's
        with self as g:
            rc = self.lib.gantry_deregister(g, address)
        if rc == -errno.EBUSY:
            raise error_for(-rc, "a call uses the registered memory")
        if rc < 0 and rc != -errno.ENOENT:
            raise error_for(-rc, f"deregistering: {os.strerror(-rc)}")
        self._memory.pop(address, None)

    def close(self, wait: bool = True) -> None:
        """Closes when no call runs.  Without wait, at the end of the program, a call that still does keeps
        it open."""
        with self._idle:
            if self._closed or (self._users and not wait):
                return
            self._closed = True
            for channel in list(self._channels):
                channel.stop()
            while self._users:
                self._idle.wait()
            handle, self._handle = self._handle, None
        if handle is not None:
            self.lib.gantry_close(handle)
        self._memory.clear()

    def channel(self) -> Channel:
        """Makes one that ends when the context is closed."""
        channel = Channel()
        with self._idle:
            self._channels.add(channel)
        return channel

    def forked(self) -> None:
        """In a child.  Ports, targets and connections are the parent's: they are left alone, and the next
        call opens anew."""
        self._idle = threading.Condition()
        self._users = 0
        self._handle = None
        self._memory = {}
        for channel in list(self._channels):
            channel.forked()
        self._channels = weakref.WeakSet()


_contexts: "weakref.WeakSet[_Context]" = weakref.WeakSet()


def _forked() -> None:
    for context in list(_contexts):
        context.forked()


os.register_at_fork(after_in_child=_forked)


def _ttl(seconds: Optional[int]) -> int:
    if seconds is None:
        return 0
    if not 1 <= seconds < 1 << 64:
        raise ValueError(f"a ttl of {seconds}")
    return seconds


def _ms(seconds: Optional[float]) -> int:
    if not seconds:
        return 0
    if seconds < 0:
        raise ValueError(f"a time-out of {seconds} s")
    return max(1, int(seconds * 1000))


def _text(value: Optional[str]) -> Optional[bytes]:
    if value is None:
        return None
    if "\0" in value:
        raise ValueError("a NUL in a text")
    return value.encode("utf-8", "surrogateescape")


class Client:
    """Objects of a server, below a URL.

    url              what keys are put behind, "http://10.0.0.9:9000/bucket"; keys may also be whole URLs
    access_key, secret_key, session_token, region
                     requests are signed; default: the AWS_ variables of the environment, as for the gantry
                     command
    ca_file          certificates (PEM) for https servers; default: those of the file that AWS_CA_BUNDLE
                     names, or of the system
    rdma             False: everything over HTTP
    require_rdma     put and get raise NotByRdma instead of going over HTTP
    transport        of RDMA: "dc", "rc", or "auto" for DC where both ends have it, else RC
    stage            memory of a device that no port can register goes through a few pinned buffers of this
                     host, copied by its driver; False: then that is an error, NotByRdma
    scality          speaks the dialect of a scality listener
    device, dc_key, config_file, target_life, target_per_call, connect_timeout, timeout
                     as in struct gantry_options; times are seconds
    split_above      what is larger moves in parts, several at a time: puts as a multipart upload, gets as
                     ranges
    part_size        of these; it grows where 10 000 parts are not enough
    jobs             how many at a time

    Any thread may use it, also at the same time.  Two calls must not use the same memory at the same time
    unless both only read.
    close() waits for calls that run.  After a fork the child has a client of its own, without registered
    memory.
    """

    def __init__(
        self,
        url: str = "",
        *,
        access_key: Optional[str] = None,
        secret_key: Optional[str] = None,
        session_token: Optional[str] = None,
        region: Optional[str] = None,
        ca_file: Optional[str] = None,
        rdma: bool = True,
        require_rdma: bool = False,
        transport: str = "auto",
        stage: bool = True,
        scality: bool = False,
        device: Optional[str] = None,
        dc_key: Optional[str] = None,
        config_file: Optional[str] = None,
        timeout: Optional[float] = None,
        connect_timeout: Optional[float] = None,
        target_life: Optional[float] = None,
        target_per_call: bool = False,
        traffic_class: Optional[int] = None,
        service_level: int = 0,
        path_mtu: int = 0,
        pkey_index: int = 0,
        split_above: int = 256 * MIB,
        part_size: int = 64 * MIB,
        jobs: int = 4,
    ) -> None:
        self._made_with = {k: v for k, v in locals().items() if k not in ("self", "url")}
        if url and not _is_url(url):
            raise ValueError(f"{url!r} is no URL of a server: http://HOST:PORT/BUCKET")
        _check_part_size(part_size)
        if transport not in _TRANSPORTS:
            raise ValueError(f'transport is "auto", "dc" or "rc", not {transport!r}')
        if jobs < 1 or split_above < 1:
            raise ValueError("split_above and jobs are at least 1")
        if not access_key and not secret_key and not scality:
            access_key = os.environ.get("AWS_ACCESS_KEY_ID")
            secret_key = os.environ.get("AWS_SECRET_ACCESS_KEY")
            session_token = os.environ.get("AWS_SESSION_TOKEN")
        region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        flags = (0 if rdma else _abi.NO_RDMA) | (_abi.RDMA_ONLY if require_rdma else 0)
        self.base = url.rstrip("/")
        self.split_above = min(split_above, _abi.REGISTER_MAX)
        self.part_size = part_size
        self.jobs = jobs
        self._scality = scality
        self._context = _Context(
            {
                "flags": flags | (_abi.TARGET_PER_CALL if target_per_call else 0),
                "dialect": _abi.SCALITY if scality else _abi.S3,
                "device": _text(device),
                "dc_key": _text(dc_key),
                "config_file": _text(config_file),
                "connect_timeout_ms": _ms(connect_timeout),
                "timeout_ms": _ms(timeout),
                "access_key": _text(access_key),
                "secret_key": _text(secret_key),
                "session_token": _text(session_token),
                "region": _text(region),
                "ca_file": _text(ca_file),
                "target_life_ms": _ms(target_life),
                "traffic_class": 0 if traffic_class is None else traffic_class or -1,
                "service_level": service_level,
                "path_mtu": path_mtu,
                "pkey_index": pkey_index,
                "stage": stage,
                "transport": _TRANSPORTS[transport],
            }
        )
        self._lib = self._context.lib
        # Also when nobody closes it, and at the end of the program.
        self._end: Callable[..., Any] = weakref.finalize(self, self._context.close, False)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """Pickles what the client was made with, so that a process that is spawned has one of its own.  Keys
        that
        were given are part of it; those of the environment are not."""
        return functools.partial(type(self), self.base, **self._made_with), ()

    def close(self) -> None:
        """Ends it, when the calls that run have ended; registered memory is let go."""
        self._context.close()

    # ---- what there is ----

    @property
    def ports(self) -> List[str]:
        """The RDMA ports in use."""
        with self._context as g:
            names: List[str] = []
            while (name := self._lib.gantry_port(g, len(names))) is not None:
                names.append(name.decode())
            return names

    @property
    def rdma_reason(self) -> str:
        """Why there is no port; "" when there is one."""
        with self._context as g:
            return str(self._lib.gantry_rdma_reason(g).decode())

    def url(self, key: str) -> str:
        """The URL of a key: behind the client's own, or as it is when it is one."""
        if not isinstance(key, str):
            raise TypeError(f"a key is a str, and not {type(key).__name__}")
        if _is_url(key):
            return key
        if not self.base:
            raise ValueError(f"{key!r} is no URL, and the client has none to put it behind")
        if not key:
            raise ValueError("an empty key")
        return f"{self.base}/{urllib.parse.quote(key, safe='/', errors='surrogateescape')}"

    # ---- one request ----

    def _call(self, function: Any, url: str, *args: Any, request: Optional[_abi.Request] = None) -> Result:
        return self._call_bare(function, url, *args, ctypes.byref(request) if request else None)

    def _call_bare(self, function: Any, url: str, *args: Any) -> Result:
        res = _abi.Result(size=ctypes.sizeof(_abi.Result))
        with self._context as g:
            rc = function(g, url.encode(), *args, ctypes.byref(res))
        reason = res.reason.decode(errors="replace")
        if rc < 0:
            raise error_for(
                -rc,
                res.message.decode(errors="replace"),
                url,
                code=res.code.decode(errors="replace"),
                status=res.status,
                reason=reason,
            )
        return Result(
            path=_PATHS[res.path],
            reason=reason,
            bytes=res.bytes,
            rdma_bytes=res.bytes if res.path in (_abi.PATH_RDMA, _abi.PATH_RDMA_STAGED) else 0,
            object_size=res.object_size if res.has_object_size else None,
            etag=res.etag.decode(errors="replace"),
            last_modified=res.last_modified.decode(errors="replace"),
            checksum=res.checksum.decode(errors="replace"),
            crc64nvme=res.crc64nvme if res.has_crc64nvme else None,
            checksum_verified=bool(res.checksum_verified),
            requests=res.requests,
            status=res.status,
            transport=_TRANSPORT_NAMES[res.transport],
        )

    def _move(
        self,
        function: Any,
        url: str,
        memory: Memory,
        start: int,
        size: int,
        *args: Any,
        request: _abi.Request,
        before: Tuple[Any, ...] = (),
    ) -> Result:
        """Puts or gets size bytes of a memory from byte start on, which is held until the transfer has ended,
        however the caller fares."""
        self._wait_for(memory, request)
        with memory.held():
            return self._call(function, url, *before, memory.address + start, size, *args, request=request)

    def _copy(self, to: Memory, at: int, memory: Memory, start: int, size: int) -> None:
        """Copies bytes of a device, by its driver, to memory of this host."""
        request, res = self._request(), _abi.Result(size=ctypes.sizeof(_abi.Result))
        self._wait_for(memory, request)
        with self._context as g, memory.held():
            rc = self._lib.gantry_copy_to_host(
                g, to.address + at, memory.address + start, size, ctypes.byref(request), ctypes.byref(res)
            )
        if rc < 0:
            raise error_for(-rc, "copying from memory of a device: " + res.message.decode(errors="replace"))

    def _wait_for(self, memory: Memory, request: _abi.Request) -> None:
        if memory.stream and memory.nbytes:
            request.wait, request.wait_for = _abi.WAIT_STREAM, memory.stream

    def _part_size(self, memory: Memory) -> int:
        """Returns the size of the parts that a memory moves in.  Those of a device are of the size of the
        library's pinned buffers, so that one is copied while others are sent."""
        return min(self.part_size, STAGE_PIECE) if memory.is_device else self.part_size

    def _jobs(self, memories: Iterable[Memory]) -> int:
        """Returns how many transfers of these memories may run at a time.  The stream of a thread is known to
        that thread alone."""
        return 1 if any(m.stream == _layout.PER_THREAD_STREAM for m in memories) else self.jobs

    def _request(
        self,
        *,
        checksum: bool = False,
        rdma: bool = True,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        content_type: Optional[str] = None,
        ttl: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> _abi.Request:
        return _abi.Request(
            size=ctypes.sizeof(_abi.Request),
            checksum=checksum,
            no_rdma=not rdma,
            if_match=_text(if_match),
            if_none_match=_text(if_none_match),
            content_type=_text(content_type),
            ttl_s=_ttl(ttl),
            timeout_ms=_ms(timeout),
        )

    # ---- objects ----

    def put(
        self,
        key: str,
        buffer: Any,
        *,
        checksum: bool = False,
        content_type: Optional[str] = None,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        ttl: Optional[int] = None,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> Result:
        """Stores the bytes of a buffer as an object.

        checksum       computes a CRC64NVME here, which the server verifies and keeps
        if_match       only over an object with this ETag; if_none_match="*": only where there is none
        ttl            seconds after which the object expires (x-gantry-ttl)
        rdma           False: this one over HTTP
        """
        url = self.url(key)
        request = self._request(
            checksum=checksum,
            rdma=rdma,
            if_match=if_match,
            if_none_match=if_none_match,
            content_type=content_type,
            ttl=ttl,
            timeout=timeout,
        )
        with Memory(buffer) as memory:
            if memory.nbytes > self.split_above and not self._scality:
                upload = Upload(
                    self,
                    url,
                    checksum=checksum,
                    content_type=content_type,
                    ttl=ttl,
                    rdma=rdma,
                    timeout=timeout,
                )
                return self._put_parts(upload, memory, if_match, if_none_match)
            return self._move(self._lib.gantry_put, url, memory, 0, memory.nbytes, request=request)

    def get_into(
        self,
        key: str,
        buffer: Any,
        *,
        offset: int = 0,
        checksum: bool = False,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> Result:
        """Fetches into a writable buffer what the object has from offset on, as much as fits: result.bytes
        says how much that was.

        Fewer bytes than fit mean that the object ends there.  What the buffer has behind them stays as it
        was.  A part of a buffer is memoryview(buffer)[a:b].

        checksum       compares the bytes with the server's checksum, where the object is fetched whole and
                       has
                       a CRC64NVME: result.checksum_verified says whether it could
        """
        url = self.url(key)
        if not 0 <= offset <= _OFFSET_MAX:
            raise ValueError(f"an offset of {offset}")
        with Memory(buffer, writable=True) as memory:
            if not memory.nbytes:
                raise ValueError("the buffer is empty")
            if memory.nbytes > self.split_above:
                return self._get_ranges(url, memory, offset, checksum, if_match, if_none_match, rdma, timeout)
            request = self._request(
                checksum=checksum, rdma=rdma, if_match=if_match, if_none_match=if_none_match, timeout=timeout
            )
            result = self._move(
                self._lib.gantry_get, url, memory, 0, memory.nbytes, offset, request=request
            )
            return self._compared(url, memory, result, timeout) if checksum else result

    def _compared(self, url: str, memory: Memory, result: Result, timeout: Optional[float]) -> Result:
        """Compares a whole object with the checksum that the server keeps of it, unless what came with the
        bytes was
        compared: over HTTP nothing comes with a range."""
        # What a device has, its driver's copies would have to bring here once more.
        if result.checksum_verified or result.bytes != result.object_size or memory.is_device:
            return result
        if not result.checksum and result.etag:
            stat = self.head(url, checksum=True, if_match=result.etag, timeout=timeout)
            result = dataclasses.replace(result, checksum=stat.checksum, requests=result.requests + 1)
        if not result.checksum:
            return result
        crc = self._lib.gantry_crc64nvme(0, memory.address, result.bytes)
        if base64.b64encode(crc.to_bytes(8, "big")).decode() != result.checksum:
            message = "the bytes that came are not those of the object's checksum"
            raise error_for(errno.EBADMSG, message, url, reason=result.reason)
        return dataclasses.replace(result, crc64nvme=crc, checksum_verified=True)

    def get(
        self,
        key: str,
        *,
        offset: int = 0,
        size: Optional[int] = None,
        checksum: bool = False,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> Data:
        """Fetches an object, or size bytes of it from offset on (fewer where it ends), as a bytearray with
        `result`.

        Without size the server is asked first how long the object is; what is fetched then is of that
        version.
        """
        words: Dict[str, Any] = {"checksum": checksum, "rdma": rdma, "timeout": timeout}
        if size is not None:
            data = Data(size)
            data.result = self.get_into(
                key, data, offset=offset, if_match=if_match, if_none_match=if_none_match, **words
            )
            del data[data.result.bytes :]
            return data
        for tries in range(3):
            stat = self.head(key, if_match=if_match, if_none_match=if_none_match, timeout=timeout)
            whole = stat.object_size or 0
            if whole == 0 and offset == 0:
                data = Data()
                data.result = dataclasses.replace(stat, reason="an empty object")
                return data
            data = Data(max(whole - offset, 1))
            try:
                data.result = self.get_into(key, data, offset=offset, if_match=stat.etag or None, **words)
            except PreconditionFailed:
                # Somebody wrote it in between.
                if if_match or tries == 2:
                    raise
                continue
            del data[data.result.bytes :]
            return data
        raise AssertionError

    def head(
        self,
        key: str,
        *,
        checksum: bool = False,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Result:
        """Asks for size, ETag and date; with checksum also for the CRC64NVME that is kept."""
        request = self._request(
            checksum=checksum, if_match=if_match, if_none_match=if_none_match, timeout=timeout
        )
        return self._call(self._lib.gantry_head, self.url(key), request=request)

    def exists(self, key: str) -> bool:
        """Tells whether there is such an object."""
        try:
            self.head(key)
        except FileNotFoundError:
            return False
        return True

    def delete(self, key: str, *, if_match: Optional[str] = None, timeout: Optional[float] = None) -> Result:
        """Deletes an object.  One that is not there is no error."""
        return self._call(
            self._lib.gantry_delete, self.url(key), request=self._request(if_match=if_match, timeout=timeout)
        )

    def copy(
        self,
        source: str,
        key: str,
        *,
        source_if_match: Optional[str] = None,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        ttl: Optional[int] = None,
        timeout: Optional[float] = None,
    ) -> Result:
        """Copies an object, with its metadata, to another key or bucket of the same server; its bytes do not
        leave that.  ttl: seconds after which the copy expires; without it the copy does not expire."""
        request = self._request(if_match=if_match, if_none_match=if_none_match, ttl=ttl, timeout=timeout)
        request.source_if_match = _text(source_if_match)
        return self._call(self._lib.gantry_copy, self.url(key), self.url(source).encode(), request=request)

    def headers(self, key: str, *, timeout: Optional[float] = None) -> Dict[str, str]:
        """Fetches the headers of an object, names in lower case: content-type, x-amz-meta-*,
        x-amz-checksum-* and the rest."""
        found: Dict[str, str] = {}

        def take(_cookie: Any, name: bytes, value: bytes) -> None:
            found[name.decode(errors="replace")] = value.decode(errors="replace")

        request = self._request(timeout=timeout)
        self._call_bare(
            self._lib.gantry_stat, self.url(key), ctypes.byref(request), _abi.HEADER_FN(take), None
        )
        return found

    # ---- batches ----

    def put_many(self, items: Iterable[Tuple[str, Any]], **words: Any) -> List[Result]:
        """Stores many objects, `jobs` at a time: items are pairs of key and buffer, words those of put().

        When one fails, those that have not begun are not stored; when all that had begun have ended, the
        failure is raised.  Until then every buffer of the batch is held.
        """
        return self._many(self.put, [(key, buffer, {}) for key, buffer in items], False, words)

    def get_many(
        self, items: Iterable[Union[Tuple[str, Any], Tuple[str, Any, int]]], **words: Any
    ) -> List[Result]:
        """Fetches many objects into buffers, `jobs` at a time: items are key and buffer, or key, buffer and
        offset; words are those of get_into().  A failure is that of put_many()."""
        todo = [(key, buffer, {"offset": offset[0]} if offset else {}) for key, buffer, *offset in items]
        return self._many(self.get_into, todo, True, words)

    def _many(
        self,
        function: Callable[..., Result],
        items: List[Tuple[str, Any, Dict[str, Any]]],
        writable: bool,
        words: Dict[str, Any],
    ) -> List[Result]:
        memories: List[Memory] = []
        try:
            # On this thread: it is the one whose streams they are.
            for _, buffer, _ in items:
                memories.append(Memory(buffer, writable=writable))

            def one(i: int) -> Result:
                return function(items[i][0], memories[i], **items[i][2], **words)

            return in_parallel(self._jobs(memories), one, range(len(items)))
        finally:
            for memory in memories:
                memory.release()

    # ---- files ----

    def open(self, key: str, mode: str = "rb", **words: Any) -> Union[ObjectReader, ObjectWriter]:
        """Opens an object as a binary file: "rb" reads it, "wb" makes it, whole or not at all, at close().

        Words for "rb": block_size (8 MiB; what small reads are served from), rdma, timeout.
        Words for "wb": part_size (the client's), checksum (True), content_type, if_match, if_none_match,
        rdma, timeout.
        """
        if mode in ("rb", "r"):
            return self.reader(key, **words)
        if mode in ("wb", "w", "xb", "x"):
            if mode.startswith("x"):
                words["if_none_match"] = "*"
            return self.writer(key, **words)
        raise ValueError(f"mode {mode!r}: an object is opened with rb, wb or xb")

    def reader(self, key: str, *, block_size: int = 8 * MIB, **words: Any) -> ObjectReader:
        """Opens an object for reading; see open()."""
        return ObjectReader(self, self.url(key), block_size=block_size, **words)

    def writer(self, key: str, *, part_size: Optional[int] = None, **words: Any) -> ObjectWriter:
        """Opens an object for writing; see open()."""
        if part_size is None:
            part_size = self.part_size
        _check_part_size(part_size)
        return ObjectWriter(self, self.url(key), part_size=part_size, **words)

    # ---- lists ----

    def list(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        url: str = "",
        page: int = 1000,
        timeout: Optional[float] = None,
    ) -> Iterator[Entry]:
        """Iterates over the objects of a bucket, that of the client's URL unless another is said, in the
        order of their keys' bytes.

        With a delimiter, keys that have it behind the prefix are one entry, with is_prefix.  Pages are asked
        for as they are needed.
        """
        options = _abi.ListOptions(
            size=ctypes.sizeof(_abi.ListOptions),
            prefix=_text(prefix or None),
            delimiter=_text(delimiter or None),
            start_after=_text(start_after or None),
            page=page,
            timeout_ms=_ms(timeout),
        )
        where = self._bucket(url)
        return listed(
            self._context.channel(),
            lambda take: self._call_bare(self._lib.gantry_list, where, ctypes.byref(options), take, None),
        )

    def buckets(self, url: str = "") -> Iterator[Entry]:
        """Iterates over the buckets that the keys may see."""
        scheme, rest = self._bucket(url).split("://", 1)
        where = f"{scheme}://{rest.split('/')[0]}/"
        return listed(
            self._context.channel(),
            lambda take: self._call_bare(self._lib.gantry_list_buckets, where, take, None),
        )

    def uploads(self, prefix: str = "", *, url: str = "") -> Iterator[Entry]:
        """Iterates over multipart uploads that were begun and neither completed nor aborted."""
        where, begins = self._bucket(url), _text(prefix or None)
        return listed(
            self._context.channel(),
            lambda take: self._call_bare(self._lib.gantry_uploads, where, begins, take, None),
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Ends an upload and removes its parts."""
        self._call_bare(self._lib.gantry_upload_abort, self.url(key), _text(upload_id))

    # ---- buckets ----

    def _bucket(self, url: str) -> str:
        if not (url or self.base):
            raise ValueError("no bucket given, and the client has no URL")
        return url or self.base

    def make_bucket(self, url: str = "", *, copies: int = 0) -> Result:
        """Makes a bucket, that of the client's URL unless another is said.  One that is there already is no
        error.  copies: each object is on so many disks of the server, 1 or 2; 0 is the server's default."""
        return self._call_bare(self._lib.gantry_make_bucket_copies, self._bucket(url), copies)

    def remove_bucket(self, url: str = "") -> Result:
        """Removes an empty bucket."""
        return self._call_bare(self._lib.gantry_remove_bucket, self._bucket(url))

    # ---- memory ----

    def register(self, buffer: Any, *, read_only: bool = False) -> Registration:
        """Registers a buffer with the RDMA ports, so that calls which use it, or a part of it, need not.

        Use it in a with statement, or close() what is returned.  Until then the buffer stays alive and where
        it is.  A buffer that cannot
        be written, or read_only, is good for puts.
        """
        memory = Memory(buffer)
        if not memory.nbytes:
            raise ValueError("the buffer is empty")
        # Parts of large transfers begin at multiples of part_size: none of them lies across two
        # registrations.
        piece = _abi.REGISTER_MAX // self.part_size * self.part_size
        return Registration(self._context, memory, buffer, read_only or memory.readonly, piece)

    # ---- in parts ----

    def _put_parts(
        self, upload: "Upload", memory: Memory, if_match: Optional[str], if_none_match: Optional[str]
    ) -> Result:
        size = part_size(self._part_size(memory), memory.nbytes)

        def store(start: int) -> Result:
            return upload.put(start // size + 1, memory, start, min(size, memory.nbytes - start))

        try:
            in_parallel(self._jobs([memory]), store, range(0, memory.nbytes, size))
            return upload.complete(if_match, if_none_match)
        except BaseException:
            upload.abort()
            raise

    def _get_ranges(
        self,
        url: str,
        memory: Memory,
        offset: int,
        checksum: bool,
        if_match: Optional[str],
        if_none_match: Optional[str],
        rdma: bool,
        timeout: Optional[float],
    ) -> Result:
        stat = self.head(
            url, checksum=checksum, if_match=if_match, if_none_match=if_none_match, timeout=timeout
        )
        size = min(memory.nbytes, max((stat.object_size or 0) - offset, 1))
        step = self._part_size(memory)

        def fetch(start: int) -> Result:
            request = self._request(checksum=checksum, rdma=rdma, if_match=stat.etag or None, timeout=timeout)
            part = min(step, size - start)
            return self._move(
                self._lib.gantry_get, url, memory, start, part, offset + start, request=request
            )

        results = in_parallel(self._jobs([memory]), fetch, range(0, size, step))
        result = dataclasses.replace(
            summed(results),
            object_size=stat.object_size,
            etag=stat.etag,
            last_modified=stat.last_modified,
            checksum=stat.checksum,
        )
        return self._compared(url, memory, result, timeout) if checksum else result


class Upload:
    """A multipart upload.  Parts may be put by several threads."""

    def __init__(
        self,
        client: Client,
        url: str,
        *,
        checksum: bool = False,
        content_type: Optional[str] = None,
        ttl: Optional[int] = None,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> None:
        self._client = client
        self._url = url
        self._words: Dict[str, Any] = {"checksum": checksum, "rdma": rdma, "timeout": timeout}
        self._parts: Dict[int, Result] = {}
        buffer = ctypes.create_string_buffer(_abi.UPLOAD_ID_MAX)
        request = client._request(content_type=content_type, ttl=ttl, **self._words)
        self._begun = client._call_bare(client._lib.gantry_upload_begin, url, ctypes.byref(request), buffer)
        self.id = buffer.value

    def put(self, number: int, memory: Memory, start: int, size: int) -> Result:
        request = self._client._request(**self._words)
        function = self._client._lib.gantry_upload_put
        result = self._client._move(
            function, self._url, memory, start, size, request=request, before=(self.id, number)
        )
        self._parts[number] = result
        return result

    def complete(self, if_match: Optional[str] = None, if_none_match: Optional[str] = None) -> Result:
        """Makes the object of its parts."""
        numbers = sorted(self._parts)
        parts = (_abi.Part * len(numbers))()
        for part, number in zip(parts, numbers):
            done = self._parts[number]
            part.number, part.size, part.etag, part.checksum = (
                number,
                done.bytes,
                done.etag.encode(),
                done.checksum.encode(),
            )
        # The server may have much to do for many parts.
        request = self._client._request(
            if_match=if_match, if_none_match=if_none_match, timeout=self._words["timeout"]
        )
        function = self._client._lib.gantry_upload_complete
        end = self._client._call(function, self._url, self.id, parts, len(numbers), request=request)
        whole = summed([self._parts[number] for number in numbers])
        return dataclasses.replace(
            whole,
            object_size=whole.bytes,
            etag=end.etag,
            checksum=end.checksum,
            requests=self._begun.requests + whole.requests + end.requests,
            status=end.status,
        )

    def abort(self) -> None:
        """Ends it and removes its parts.  When the server cannot be told, it does so itself in time:
        limits.upload_expire."""
        try:
            self._client._call_bare(self._client._lib.gantry_upload_abort, self._url, self.id)
        except (Error, ValueError):
            pass


def part_size(wanted: int, size: int) -> int:
    """Returns the size of parts, of which there may be 10 000."""
    least = -(-size // _abi.PARTS_MAX)
    return wanted if wanted >= least else -(-least // MIB) * MIB


def in_parallel(jobs: int, task: Callable[[int], Result], words: Sequence[int]) -> List[Result]:
    """Runs the task for each word, so many at a time.  When one fails, those that have not begun do not; it
    raises when all have ended."""
    if len(words) < 2 or jobs < 2:
        return [task(word) for word in words]
    with ThreadPoolExecutor(min(jobs, len(words)), thread_name_prefix="gantry") as pool:
        futures = [pool.submit(task, word) for word in words]
        try:
            return [f.result() for f in futures]
        except BaseException:
            for f in futures:
                f.cancel()
            raise


def summed(results: List[Result]) -> Result:
    """Makes one result of those of the parts: the path is that of the slowest of them."""
    moved = [r for r in results if r.bytes]
    slowest = next((r for path in ("http", "rdma-staged", "rdma") for r in moved if r.path == path), None)
    return Result(
        path=slowest.path if slowest else "",
        reason=slowest.reason if slowest else "",
        bytes=sum(r.bytes for r in results),
        rdma_bytes=sum(r.rdma_bytes for r in results),
        checksum_verified=all(r.checksum_verified for r in results),
        requests=sum(r.requests for r in results),
        status=results[-1].status,
        transport=next((r.transport for r in moved if r.transport), ""),
    )


def _check_part_size(size: int) -> None:
    if not 5 * MIB <= size <= _abi.REGISTER_MAX:
        raise ValueError("a part has 5 MiB at least and 4 GiB - 1 at most")


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))
