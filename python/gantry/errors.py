# SPDX-License-Identifier: Apache-2.0
"""Errors, by kind.  Each is an OSError, and where Python has an exception for the kind, that one as well."""

from __future__ import annotations

import errno
import os
from typing import Dict, Optional, Type


class Error(OSError):
    """An operation failed.

    errno     what libgantry returned, positive
    code      the server's word, "NoSuchKey"; "" when it said none
    message   the server's sentence, or what failed on this side
    status    the HTTP status of the last answer; 0 when there was none
    url       what it was about
    reason    why not by RDMA, where that was tried or asked for
    """

    def __init__(
        self, number: int, message: str, url: str = "", *, code: str = "", status: int = 0, reason: str = ""
    ) -> None:
        super().__init__(number, message, url or None)
        self.code = code
        self.message = message
        self.status = status
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        where = f"{self.url}: " if self.url else ""
        words = " ".join(w for w in (self.code, str(self.status) if self.status else "") if w)
        return f"{where}{self.message}" + (f" ({words})" if words else "")

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return _again, (type(self), self.errno, self.message, self.url, self.code, self.status, self.reason)


class NotFound(Error, FileNotFoundError):
    """There is no such object, bucket or upload (404)."""


class AccessDenied(Error, PermissionError):
    """The access key may not, or the signature does not hold (401, 403)."""


class PreconditionFailed(Error):
    """The object is not what if_match or if_none_match asked for (412)."""


class NotModified(Error):
    """The object is still what if_none_match named (304)."""


class Conflict(Error, FileExistsError):
    """What is there is in the way: a bucket that is not empty, for one (409)."""


class RangeNotSatisfiable(Error):
    """The offset is at or beyond the end of the object (416)."""


class InvalidRequest(Error, ValueError):
    """The request, its URL or an option is wrong (400, 405, or found here)."""


class ChecksumMismatch(Error):
    """The bytes are not those that the checksum is of."""


class TooLarge(Error):
    """The object is larger than the server takes (413)."""


class Busy(Error, BlockingIOError):
    """The server was asked several times and has no time (503), or memory is in use."""


class NoSpace(Error):
    """The store is full (507)."""


class TimedOut(Error, TimeoutError):
    """No end within the time-out."""


class ConnectionFailed(Error, ConnectionError):
    """No connection, or it broke."""


class ProtocolError(Error):
    """An answer that contradicts itself, or is shorter than what was asked for."""


class NotByRdma(Error):
    """require_rdma was asked for and RDMA was impossible; reason says why."""


class ServerError(Error):
    """Any other error of the server."""


_BY_STATUS: Dict[int, Type[Error]] = {
    304: NotModified,
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    416: RangeNotSatisfiable,
    503: Busy,
    507: NoSpace,
}

_BY_CODE: Dict[str, Type[Error]] = {
    "BadDigest": ChecksumMismatch,
    "XAmzContentChecksumMismatch": ChecksumMismatch,
    "EntityTooLarge": TooLarge,
}

_BY_ERRNO: Dict[int, Type[Error]] = {
    errno.ENOENT: NotFound,
    errno.EACCES: AccessDenied,
    errno.ESTALE: PreconditionFailed,
    errno.EEXIST: Conflict,
    errno.ERANGE: RangeNotSatisfiable,
    errno.EINVAL: InvalidRequest,
    errno.EBADMSG: ChecksumMismatch,
    errno.EFBIG: TooLarge,
    errno.EAGAIN: Busy,
    errno.EBUSY: Busy,
    errno.ENOSPC: NoSpace,
    errno.ETIMEDOUT: TimedOut,
    errno.ECONNREFUSED: ConnectionFailed,
    errno.ECONNRESET: ConnectionFailed,
    errno.EHOSTUNREACH: ConnectionFailed,
    errno.ENETUNREACH: ConnectionFailed,
    errno.EPIPE: ConnectionFailed,
    errno.EPROTO: ProtocolError,
    errno.EOPNOTSUPP: NotByRdma,
    errno.EIO: ServerError,
}


def error_for(
    number: int, message: str, url: str = "", *, code: str = "", status: int = 0, reason: str = ""
) -> Error:
    """Makes the exception for an errno value (positive) and what the server said."""
    kind: Optional[Type[Error]] = _BY_CODE.get(code)
    # What is wrong with an answer 2xx is found here, and only the errno says it; so is the lack of RDMA.
    if kind is None and status >= 300 and number != errno.EOPNOTSUPP:
        kind = _BY_STATUS.get(status)
    if kind is None:
        kind = _BY_ERRNO.get(number, Error)
    return kind(number, message or os.strerror(number), url, code=code, status=status, reason=reason)


def _again(
    kind: Type[Error], number: int, message: str, url: str, code: str, status: int, reason: str
) -> Error:
    return kind(number, message, url, code=code, status=status, reason=reason)
