# SPDX-License-Identifier: Apache-2.0
"""Lists as iterators.  libgantry calls back for each entry, so a thread takes them, and waits when nobody
fetches what it has."""

from __future__ import annotations

import ctypes
import dataclasses
import threading
from typing import Any, Callable, Iterator, List, Optional

from . import _abi

_BATCH = 500


@dataclasses.dataclass(frozen=True)
class Entry:
    """An object, a bucket, or an upload that was begun.

    key        the whole key, or the bucket's name; bytes that are no UTF-8 are surrogate escapes, which
               put() and get() take back
    is_prefix  it stands for all keys that begin so, as a delimiter was given
    size       of an object
    etag       with its quotes; "" without
    date       last modified, made, or begun: "2026-11-20T10:00:00.000Z"
    upload_id  of an upload
    """

    key: str
    is_prefix: bool = False
    size: int = 0
    etag: str = ""
    date: str = ""
    upload_id: str = ""


class Channel:
    """Between the thread that lists and whoever iterates: a batch at most waits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batch: Optional[List[Entry]] = None
        self._ended = False
        self._stopped = False
        self._error: Optional[BaseException] = None

    def push(self, batch: List[Entry]) -> bool:
        """Waits until the batch before was fetched.  False: nobody wants more."""
        with self._changed:
            while self._batch is not None and not self._stopped:
                self._changed.wait()
            if not self._stopped:
                self._batch = batch
                self._changed.notify_all()
            return not self._stopped

    def end(self, error: Optional[BaseException]) -> None:
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def forked(self) -> None:
        """In a child, which has no thread that lists."""
        self._changed = threading.Condition()
        self._ended, self._error = True, RuntimeError(
            "a list does not go on in a forked process: begin it anew"
        )

    def fetch(self) -> Optional[List[Entry]]:
        """Waits for a batch; None behind the last.  What went wrong is raised when all before it was
        fetched."""
        with self._changed:
            while self._batch is None and not self._ended:
                self._changed.wait()
            batch, self._batch = self._batch, None
            self._changed.notify_all()
            if batch is None and self._stopped:
                raise ValueError("the client is closed")
            if batch is None and self._error is not None:
                raise self._error
            return batch


def _entry(e: Any) -> Entry:
    return Entry(
        key=ctypes.string_at(e.name, e.name_len).decode("utf-8", "surrogateescape"),
        is_prefix=bool(e.is_prefix),
        size=e.size,
        etag=(e.etag or b"").decode(errors="replace"),
        date=(e.date or b"").decode(errors="replace"),
        upload_id=(e.upload_id or b"").decode(errors="replace"),
    )


def listed(channel: Channel, call: Callable[[Any], Any]) -> Iterator[Entry]:
    """Iterates over what call(callback) calls back for, in a thread that ends when nobody iterates any
    more."""

    def run() -> None:
        batch: List[Entry] = []
        error: Optional[BaseException] = None

        def take(_cookie: Any, pointer: Any) -> int:
            nonlocal batch, error
            try:
                batch.append(_entry(pointer.contents))
                if len(batch) < _BATCH:
                    return 0
                full, batch = batch, []
                return 0 if channel.push(full) else 1
            except BaseException as e:  # a callback has nobody to raise it to
                error = e
                return 1

        try:
            call(_abi.ENTRY_FN(take))
            if batch:
                channel.push(batch)
        except BaseException as e:
            if batch:
                channel.push(batch)
            error = error or e
        channel.end(error)

    def entries() -> Iterator[Entry]:
        threading.Thread(target=run, name="gantry-list", daemon=True).start()
        try:
            while (batch := channel.fetch()) is not None:
                yield from batch
        finally:
            channel.stop()

    return entries()
