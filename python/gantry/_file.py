# SPDX-License-Identifier: Apache-2.0
"""Objects as files: a writer that streams into parts, a seekable reader that reads ahead."""

from __future__ import annotations

import errno
import io
import mmap
import os
import threading
import warnings
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

from ._abi import PARTS_MAX
from ._buffer import Memory
from ._layout import PER_THREAD_STREAM
from .errors import Error, error_for

if TYPE_CHECKING:
    from ._client import Client, Registration, Result, Upload


# Every part of an object but the last has so many bytes at least.
_PART_MIN = 5 << 20


class _Buffer:
    """Anonymous memory of a file, registered where there is RDMA."""

    def __init__(self, client: "Client", size: int) -> None:
        self.bytes = mmap.mmap(-1, size)
        self.memory = Memory(self.bytes)
        self._held: Optional["Registration"] = None
        try:
            self._held = client.register(self.bytes)
        except (Error, ValueError):
            # Too little locked memory, or the client is closed: calls register it, or say what is wrong.
            pass

    def close(self) -> None:
        try:
            if self._held is not None:
                self._held.close()
        except Error:
            return  # a call that nobody waits for still uses it; closing the client lets it go
        self.memory.release()
        self.bytes.close()


class ObjectWriter(io.BufferedIOBase):
    """A file that becomes an object at close(), and not before: see Client.open().

    What is written is copied into registered buffers.  A full one is stored as a part by a thread, while the
    next one fills.  What fits into one is stored with a single put.  From 5 MiB on, memory of a device is
    stored in parts straight from where it is.

    The object appears whole, or not at all: an exception in a with statement, abort(), a writer that nobody
    closed and the end of the program leave what was there before.

    result    of the object, behind close()
    """

    def __init__(
        self,
        client: "Client",
        url: str,
        *,
        part_size: int,
        checksum: bool = True,
        content_type: Optional[str] = None,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> None:
        super().__init__()
        self.name = url
        self.result: Optional["Result"] = None
        self._client = client
        self._part_size = part_size
        self._words: Dict[str, Any] = {
            "checksum": checksum,
            "content_type": content_type,
            "rdma": rdma,
            "timeout": timeout,
        }
        self._conditions: Dict[str, Any] = {"if_match": if_match, "if_none_match": if_none_match}
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._written = 0
        self._filled = 0
        self._state = _Parts()
        # Also for one that nobody closes, and at the end of the program.
        self._end = weakref.finalize(self, _Parts.abort, self._state, self._pid)

    # ---- what files have ----

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Does nothing: the object is stored by close()."""

    def write(self, data: Any) -> int:
        """Takes all bytes of whatever has some, also of a tensor, on a CPU or a device."""
        return self._write(data, False)

    def write_held(self, data: Any) -> int:
        """Does the same with bytes that nobody changes before close(): memory of a device may be stored until
        then, and lives as long."""
        return self._write(data, True)

    def _write(self, data: Any, is_held: bool) -> int:
        with self._lock:
            self._usable()
            with Memory(data) as memory:
                try:
                    if memory.is_device:
                        self._take_device(memory, is_held)
                    else:
                        self._take(memory, 0, memory.nbytes)
                except BaseException as e:
                    # Bytes may be missing now: close() must not make an object of the others.
                    self._state.failure = self._state.failure or e
                    raise
                self._written += memory.nbytes
                return memory.nbytes

    def _take(self, memory: Memory, at: int, end: int) -> None:
        """Copies bytes into buffers, and sends those that are full."""
        while at < end:
            if self._filled == self._part_size:
                self._send()
            buffer = self._buffer()
            n = min(end - at, self._part_size - self._filled)
            if memory.is_device:
                self._client._copy(buffer.memory, self._filled, memory, at, n)
            else:
                with memory.view() as flat:
                    buffer.bytes[self._filled : self._filled + n] = flat[at : at + n]
            self._filled += n
            at += n

    def _take_device(self, memory: Memory, is_held: bool) -> None:
        """Stores memory of a device in parts of its own; what is too small for one goes into buffers."""
        at = 0
        if 0 < self._filled < _PART_MIN:
            at = min(_PART_MIN - self._filled, memory.nbytes)
            self._take(memory, 0, at)
        left = memory.nbytes - at
        if left < _PART_MIN:
            self._take(memory, at, memory.nbytes)
            return
        self._send()
        # None of them is smaller than a part may be.
        size = self._part_size
        if self._state.number < PARTS_MAX // 2:
            size = min(size, self._client._part_size(memory))
        pieces = -(-left // size) if size >= 2 * _PART_MIN else max(1, left // size)
        for i in range(pieces):
            first, behind = at + left * i // pieces, at + left * (i + 1) // pieces
            self._send_part(memory, first, behind - first)
        if not is_held:
            self._state.wait(0)

    def close(self) -> None:
        """Makes the object of what was written.  Where that fails, it is as it was before."""
        with self._lock:
            if self.closed:
                return
            try:
                self._usable()
                state = self._state
                if state.upload is None:
                    filled: Any = state.filling.bytes if state.filling else b""
                    with memoryview(filled) as whole, whole[: self._filled] as part:
                        self.result = self._client.put(self.name, part, **self._words, **self._conditions)
                else:
                    self._send()
                    state.wait(0)
                    self.result = state.upload.complete(**self._conditions)
                    state.upload = None
            finally:
                self._finish()

    def abort(self) -> None:
        """Ends it without an object."""
        with self._lock:
            if not self.closed:
                self._finish()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # That of IOBase would close it, and half of an object would be there.
        # One that could not be opened has nothing to end.
        if hasattr(self, "_end") and not self.closed and self._pid == os.getpid():
            warnings.warn(f"{self.name}: not closed, so nothing was stored", ResourceWarning, source=self)
            self.abort()

    # ---- parts ----

    def _usable(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")
        if self._pid != os.getpid():
            raise ValueError("a file that is written does not go on in a forked process")
        self._state.raise_failure()

    def _buffer(self) -> _Buffer:
        state = self._state
        if state.filling is None:
            # One fills, and as many as the client has jobs are under way.
            if not state.free and len(state.under_way) >= self._client.jobs:
                state.wait(self._client.jobs - 1)
                state.raise_failure()
            state.filling = state.free.pop() if state.free else _Buffer(self._client, self._part_size)
        return state.filling

    def _send(self) -> None:
        """Hands the buffer that was filled to a thread."""
        state, size = self._state, self._filled
        buffer, state.filling, self._filled = state.filling, None, 0
        if buffer is None or size == 0:
            return
        try:
            upload = self._next_part()
        except BaseException:
            state.free.append(buffer)
            raise
        assert state.pool is not None
        state.under_way.append((state.pool.submit(upload.put, state.number, buffer.memory, 0, size), buffer))

    def _send_part(self, memory: Memory, first: int, size: int) -> None:
        """Hands memory of the caller's to a thread, when fewer than the client's jobs are under way."""
        state = self._state
        state.wait(self._client.jobs - 1)
        state.raise_failure()
        upload = self._next_part()
        part = memory.part(first, size)
        if memory.stream == PER_THREAD_STREAM:
            with part:
                upload.put(state.number, part, 0, size)
            return
        assert state.pool is not None
        state.under_way.append((state.pool.submit(upload.put, state.number, part, 0, size), part))

    def _next_part(self) -> "Upload":
        """Begins the upload where it has not begun, and counts one part more."""
        state = self._state
        if state.number == PARTS_MAX:
            raise error_for(
                errno.EFBIG, f"more than {PARTS_MAX} parts: part_size is too small", self.name
            )
        upload = state.begun(self._client, self.name, self._words)
        state.number += 1
        return upload

    def _finish(self) -> None:
        self._end()
        super().close()


class _Parts:
    """What a writer has under way.  Apart from it, so that it can be ended when the writer is gone."""

    def __init__(self) -> None:
        self.upload: Optional["Upload"] = None
        self.pool: Optional[ThreadPoolExecutor] = None
        self.number = 0
        self.filling: Optional[_Buffer] = None
        self.free: List[_Buffer] = []
        # Of a buffer of ours, or of a part of the caller's memory.
        self.under_way: List[Tuple["Future[Result]", Union[_Buffer, Memory]]] = []
        self.failure: Optional[BaseException] = None

    def begun(self, client: "Client", url: str, words: Dict[str, Any]) -> "Upload":
        from ._client import Upload

        if self.upload is None:
            self.upload = Upload(client, url, **words)
            self.pool = ThreadPoolExecutor(client.jobs, thread_name_prefix="gantry-part")
        return self.upload

    def wait(self, most: int) -> None:
        """Waits until at most so many are under way; the first failure is kept."""
        while len(self.under_way) > most or (self.under_way and self.under_way[0][0].done()):
            future, buffer = self.under_way[0]
            # It stays where an interrupt ends the wait.
            failure = None if future.cancelled() else future.exception()
            self.under_way.pop(0)
            self.failure = self.failure or failure
            if isinstance(buffer, Memory):
                buffer.release()
            else:
                self.free.append(buffer)
        if most == 0:
            self.raise_failure()

    def raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def abort(self, pid: int) -> None:
        if pid != os.getpid():
            return
        for future, _ in self.under_way:
            future.cancel()
        self.failure = None
        try:
            self.wait(0)
        except BaseException:
            pass
        if self.pool is not None:
            self.pool.shutdown()
        if self.upload is not None:
            self.upload.abort()
            self.upload = None
        for buffer in self.free + ([self.filling] if self.filling else []):
            buffer.close()
        self.free, self.filling = [], None


class ObjectReader(io.BufferedIOBase):
    """An object as a seekable file: see Client.open().  It stays that version of the object, or reading
    fails.

    Large reads, and all into memory of a device, go straight into the caller's buffer.  Small ones are served
    from a block; when blocks are read one after the other, the next one is fetched meanwhile.

    size, etag    of the object
    rdma_bytes, http_bytes
                  that were fetched, and which way
    reason        why not by RDMA, the last time that it was not
    """

    def __init__(
        self,
        client: "Client",
        url: str,
        *,
        block_size: int,
        rdma: bool = True,
        timeout: Optional[float] = None,
    ) -> None:
        super().__init__()
        stat = client.head(url, timeout=timeout)
        self.name = url
        self.size = stat.object_size or 0
        self.etag = stat.etag
        self.rdma_bytes = self.http_bytes = 0
        self.reason = ""
        self._client = client
        self._words: Dict[str, Any] = {"if_match": stat.etag or None, "rdma": rdma, "timeout": timeout}
        self._block_size = max(1, min(block_size, self.size))
        self._lock = threading.RLock()
        self._position = 0
        self._forget()

    def _forget(self) -> None:
        """Has no block; in a forked child, what the parent fetched is the parent's."""
        self._pid = os.getpid()
        self._start = self._end = 0  # what the block holds
        self._block: Optional[_Buffer] = None
        self._spare: Optional[_Buffer] = None
        self._pool: Optional[ThreadPoolExecutor] = None
        self._ahead: Optional[Tuple[int, "Future[Result]"]] = None  # into the spare one

    # ---- what files have ----

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._lock:
            self._usable()
            base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}.get(whence)
            if base is None:
                raise ValueError(f"whence of {whence}")
            if base + offset < 0:
                raise ValueError(f"a position of {base + offset}")
            self._position = base + offset
            return self._position

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer, or as much of it as the object has left."""
        with self._lock:
            self._usable()
            with Memory(buffer, writable=True) as memory:
                n = min(memory.nbytes, max(self.size - self._position, 0))
                return self._fill_device(memory, n) if memory.is_device else self._fill(memory, n)

    def _fill_device(self, memory: Memory, n: int) -> int:
        """Fetches straight into memory of a device, whatever the block has."""
        if n:
            with memory.part(0, n) as part:
                self._count(self._client.get_into(self.name, part, offset=self._position, **self._words))
            self._position += n
        return n

    def _fill(self, memory: Memory, n: int) -> int:
        at = 0
        with memory.view() as flat:
            while at < n:
                if self._start <= self._position < self._end:
                    at += self._from_block(flat[at:n])
                elif n - at >= self._block_size and not self._is_ahead():
                    result = self._client.get_into(
                        self.name, flat[at:n], offset=self._position, **self._words
                    )
                    self._count(result)
                    self._position += n - at
                    at = n
                else:
                    self._load()
        return n

    readinto1 = readinto

    def read(self, size: Optional[int] = -1) -> bytes:
        with self._lock:  # another thread may read meanwhile
            self._usable()
            left = max(self.size - self._position, 0)
            data = bytearray(left if size is None or size < 0 else min(size, left))
            self.readinto(data)
            return bytes(data)

    read1 = read

    def peek(self, size: int = 0) -> bytes:
        """What is next, without moving: at least a byte, unless the object ends here."""
        with self._lock:
            self._usable()
            if self._position >= self.size:
                return b""
            if not self._start <= self._position < self._end:
                self._load()
            assert self._block is not None
            return bytes(self._block.bytes[self._position - self._start : self._end - self._start])

    def close(self) -> None:
        with self._lock:
            if self.closed:
                return
            if self._pid == os.getpid():
                self._settle()
                if self._pool is not None:
                    self._pool.shutdown()
                for buffer in (self._block, self._spare):
                    if buffer is not None:
                        buffer.close()
            self._start = self._end = 0
            self._block = self._spare = None
            super().close()

    # ---- blocks ----

    def _usable(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")
        if self._pid != os.getpid():
            self._lock = threading.RLock()
            self._forget()

    def _count(self, result: "Result") -> None:
        self.rdma_bytes += result.rdma_bytes
        self.http_bytes += result.bytes - result.rdma_bytes
        self.reason = result.reason or self.reason

    def _from_block(self, out: memoryview) -> int:
        assert self._block is not None
        first = self._position - self._start
        n = min(len(out), self._end - self._position)
        out[:n] = memoryview(self._block.bytes)[first : first + n]
        self._position += n
        return n

    def _is_ahead(self) -> bool:
        return self._ahead is not None and self._ahead[0] == self._position

    def _fetch(self, buffer: _Buffer, start: int) -> "Result":
        with memoryview(buffer.bytes) as view, view[: min(self._block_size, self.size - start)] as part:
            return self._client.get_into(self.name, part, offset=start, **self._words)

    def _settle(self) -> Optional["Result"]:
        """Waits for the block that is fetched ahead.  None when there is none, or it failed: then it is
        fetched anew."""
        ahead, self._ahead = self._ahead, None
        try:
            return ahead[1].result() if ahead else None
        except (Error, ValueError):
            return None

    def _load(self) -> None:
        """Has the block that begins at the position, and goes on with the next one when this one followed
        the last."""
        start, follows = self._position, self._end != 0 and self._position == self._end
        wanted = self._is_ahead()
        result = self._settle()
        if wanted and result is not None:
            self._block, self._spare = self._spare, self._block
        else:
            self._start = self._end = 0
            if self._block is None:
                self._block = _Buffer(self._client, self._block_size)
            result = self._fetch(self._block, start)
        self._count(result)
        self._start, self._end = start, start + result.bytes
        if follows and self._end < self.size:
            if self._spare is None:
                self._spare = _Buffer(self._client, self._block_size)
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="gantry-ahead")
            self._ahead = (self._end, self._pool.submit(self._fetch, self._spare, self._end))
