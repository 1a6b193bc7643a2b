# SPDX-License-Identifier: Apache-2.0
"""Pickles that another party may have written: they are read without anything of theirs being run."""

from __future__ import annotations

import enum
import io
import pickle
from typing import Any, Dict, Iterable, List, Tuple

Table = Dict[Tuple[str, str], Any]


def table_of(objects: Iterable[Any]) -> Table:
    """A table of classes and functions by the names that pickles have for them."""
    return {(o.__module__, o.__qualname__): o for o in objects}


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """Makes bytes of text as pickles before protocol 3 spell them; no other codec is looked up."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError("the pickle names a codec")
    return text.encode("latin1")


def _member(kind: Any, name: str) -> Any:
    """Finds a member of an Enum, which Python 3.11 pickles as getattr(); no other attribute."""
    if not isinstance(kind, enum.EnumMeta):
        raise pickle.UnpicklingError("the pickle asks for an attribute")
    return kind[name]


# All of the builtins that hold values; none of them calls anything that it was given.
_PLAIN: Table = table_of([set, frozenset, bytearray, complex, range, slice])
_PLAIN["_codecs", "encode"] = _latin1
_PLAIN["builtins", "getattr"] = _member


_Python: Any = getattr(pickle, "_Unpickler")


class Unpickler(_Python):
    """An unpickler for which only what is in `table` can be named, and state set only in instances of classes
    in `stateful`.

    It is the one in Python, and so slower than C: what it does for each opcode can be held against a list.
    """

    table: Table = {}
    stateful: Tuple[type, ...] = ()
    dispatch: Dict[int, Any] = dict(_Python.dispatch)

    def find_class(self, module: str, name: str) -> Any:
        key = ("builtins" if module == "__builtin__" else module, name)
        found = self.table.get(key, _PLAIN.get(key))
        if found is None:
            raise pickle.UnpicklingError(
                f"{module}.{name} is nothing that a checkpoint has: it is not loaded"
                " (CheckpointReader(..., classes=[...]))"
            )
        return found

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError("the pickle names a class by a number")

    def load_build(self) -> None:
        inst = self.stack[-2]
        # Classes and functions can be named, too: nothing is set in these.
        if not isinstance(inst, self.stateful) or isinstance(inst, type):
            raise pickle.UnpicklingError(f"the pickle sets the state of a {type(inst).__name__}")
        super().load_build()

    dispatch[pickle.BUILD[0]] = load_build


def unpickler(classes: Iterable[Any], named: Table = {}) -> type:
    """Makes the class of an unpickler for these classes and functions, and for what `named` has."""
    listed: List[Any] = list(classes)

    class Of(Unpickler):
        table = {**table_of(listed), **named}
        stateful = tuple(c for c in listed if isinstance(c, type))

    return Of


def loads(data: bytes, kind: type) -> Any:
    """Reads a pickle by such an unpickler.  pickle.UnpicklingError for whatever is wrong with it."""
    try:
        return kind(io.BytesIO(data)).load()
    except pickle.UnpicklingError:
        raise
    # A pickle can call for whatever its classes raise.
    except Exception as e:
        raise pickle.UnpicklingError(f"the pickle cannot be read: {type(e).__name__}: {e}") from e
