# SPDX-License-Identifier: Apache-2.0
"""Objects in and out of buffers by RDMA: Python over libgantry.

    import gantry

    with gantry.Client("http://10.0.0.9:9000/bucket") as client:
        result = client.put("key", buffer)       # anything with the buffer protocol, or a CPU tensor
        print(result.path, result.reason)        # "rdma", or "http" and why
        client.get_into("key", buffer)
        data = client.get("key", offset=100, size=50)

libgantry does the work and is found as libgantry.so.0, or where $GANTRY_LIBRARY says.  No compiler is needed.
"""

from ._abi import library as _library
from ._client import Client, Data, Registration, Result
from ._file import ObjectReader, ObjectWriter
from ._list import Entry
from ._version import __version__
from .errors import (
    AccessDenied,
    Busy,
    ChecksumMismatch,
    Conflict,
    ConnectionFailed,
    Error,
    InvalidRequest,
    NoSpace,
    NotByRdma,
    NotFound,
    NotModified,
    PreconditionFailed,
    ProtocolError,
    RangeNotSatisfiable,
    ServerError,
    TimedOut,
    TooLarge,
)


def library_version() -> str:
    """Returns the version of libgantry."""
    return str(_library().gantry_version().decode())


__all__ = [
    "AccessDenied",
    "Busy",
    "ChecksumMismatch",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Data",
    "Entry",
    "Error",
    "InvalidRequest",
    "NoSpace",
    "NotByRdma",
    "NotFound",
    "NotModified",
    "ObjectReader",
    "ObjectWriter",
    "PreconditionFailed",
    "ProtocolError",
    "RangeNotSatisfiable",
    "Registration",
    "Result",
    "ServerError",
    "TimedOut",
    "TooLarge",
    "__version__",
    "library_version",
]
