# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of torch.distributed, straight in and out of objects.

    from gantry.dcp import CheckpointReader, CheckpointWriter    # first: see below
    from torch.distributed._shard import checkpoint

    checkpoint.save_state_dict(model.state_dict(), CheckpointWriter(client, "run-7/latest"))
    checkpoint.load_state_dict(state, CheckpointReader(client, "run-7/latest"))

Each rank streams what is its own into one object; .metadata, which names these objects, is written last.  So
a checkpoint is there as a whole, or the one before it is: nothing of that is touched until the new one is,
and then removed.  What a save that was killed has left has names that nobody else uses.

Tensors are stored as their bytes, so a load fetches them, or the rows of them that a rank needs, straight
into memory of the state dict, and a save takes them from there: on a CPU, and on a GPU.

Nothing that lies in a bucket is run.  A save reads of the .metadata before it one line of JSON, and removes
only objects below this key that are named as a save names them.  A load takes of .metadata, and of what
torch.save made of other objects than tensors, only the classes in the lists below, and those that its program
names (classes=).

Tested with PyTorch 1.13, which Debian 12 has, where these interfaces are torch.distributed._shard.checkpoint.
With Debian's Python, 3.11, they can be imported only behind this module, which mends what is in the way.
In PyTorch 2 they are torch.distributed.checkpoint and two methods have other names, which are here as well;
tests/gpu/python.py tests that, on a machine with a GPU.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import importlib.util
import io
import json
import logging
import pickle
import re
import time
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

import torch
import torch.serialization
from torch.futures import Future

from . import _unpickle
from ._client import Client, Result, in_parallel, summed
from .errors import NotFound, PreconditionFailed

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def _hashable_defaults() -> Iterator[None]:
    """Lets PyTorch 1.13 be imported by Python 3.11, as Debian 12 pairs them: its dataclasses have defaults
    that are
    dataclasses, which 3.11 refuses unless they have a hash."""
    made = dataclasses.dataclass

    def dataclass(cls: Any = None, **words: Any) -> Any:
        if cls is None:
            return lambda c: dataclass(c, **words)
        new = made(cls, **words)
        if new.__hash__ is None:
            new.__hash__ = object.__hash__
        return new

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = made


if importlib.util.find_spec("torch.distributed.checkpoint"):
    from torch.distributed.checkpoint import metadata as _metadata
    from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
    from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, SavePlan, WriteItemType
    from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
else:
    with _hashable_defaults():
        from torch.distributed._shard.checkpoint import metadata as _metadata
        from torch.distributed._shard.checkpoint.metadata import Metadata, MetadataIndex
        from torch.distributed._shard.checkpoint.planner import (
            LoadItemType,
            LoadPlan,
            SavePlan,
            WriteItemType,
        )
        from torch.distributed._shard.checkpoint.storage import StorageReader, StorageWriter, WriteResult

_METADATA = ".metadata"
# .metadata begins with a line of this and of JSON: {"objects": ["SAVE/RANK.distcp", ...]}
_HEAD = b"gantry-checkpoint "
_HEAD_MAX = 64 << 20
_OBJECT = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{12}/[0-9]{1,9}\.distcp", re.ASCII)
# Devices whose memory is moved as it is; tensors of others go by way of the CPU.
_DIRECT = ("cpu", "cuda")


@dataclasses.dataclass
class StorageInfo:
    """Where an item lies: in which object, and what a tensor's bytes are."""

    key: str
    offset: int
    length: int
    dtype: Optional[torch.dtype] = None
    shape: Optional[torch.Size] = None


def _of(module: Any, *names: str) -> List[Any]:
    """Those of the names that this version of PyTorch has."""
    return [getattr(module, name) for name in names if hasattr(module, name)]


_DTYPES = {("torch", str(v)[6:]): v for v in vars(torch).values() if isinstance(v, torch.dtype)}
_properties = importlib.import_module(_metadata.TensorProperties.__module__)
# What .metadata is made of.
_METADATA_CLASSES = [
    *_of(
        _metadata,
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "TensorProperties",
        "StorageMeta",
    ),
    *_of(_properties, "MEM_FORMAT_ENCODING", "_MEM_FORMAT_ENCODING"),
    *_of(torch.serialization, "_get_layout"),
    collections.OrderedDict,
    StorageInfo,
]
# What an item that is no tensor is made of.  Tensors can be in it.
_ITEM_CLASSES = [
    *_of(
        torch._utils,
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_parameter",
        "_rebuild_sparse_tensor",
    ),
    *_of(torch.serialization, "_get_layout"),
    collections.OrderedDict,
    torch.nn.Parameter,
]
_NAMED: _unpickle.Table = {("torch", "Size"): torch.Size, ("torch", "device"): torch.device, **_DTYPES}


class _Pickles:
    """Stands for the module pickle where torch unpickles."""

    def __init__(self, classes: Iterable[Any]) -> None:
        self.Unpickler = _unpickle.unpickler([*_ITEM_CLASSES, *classes], _NAMED)


class _Archive:
    """An archive of torch.save, of which no storage is longer than its record: PyTorch does not look."""

    def __init__(self, archive: Any) -> None:
        self._archive = archive

    def __getattr__(self, name: str) -> Any:
        return getattr(self._archive, name)

    def get_storage_from_record(self, name: str, nbytes: int, *words: Any) -> Any:
        if not 0 <= nbytes <= len(self._archive.get_record(name)):
            raise pickle.UnpicklingError(f"{name} is shorter than the tensor that it is of")
        return self._archive.get_storage_from_record(name, nbytes, *words)


def _checked_item(data: bytes, pickles: _Pickles) -> io.BytesIO:
    """Reads what torch.save wrote, with classes of the list alone, and has torch.save write it again:
    planners unpickle what they get."""
    try:
        with torch.serialization._open_zipfile_reader(io.BytesIO(data)) as archive:
            value = torch.serialization._load(_Archive(archive), None, pickles, encoding="utf-8")
    except pickle.UnpicklingError:
        raise
    except Exception as e:
        why = f"{type(e).__name__}: {e}"
        raise pickle.UnpicklingError(f"an item is nothing that torch.save wrote: {why}") from e
    again = io.BytesIO()
    torch.save(value, again)
    again.seek(0)
    return again


def _objects_of(data: bytes) -> Set[str]:
    """The objects of the save whose .metadata that is, by its first line; none of what has no such line."""
    line = bytes(data[:_HEAD_MAX]).partition(b"\n")[0]
    if not line.startswith(_HEAD):
        return set()
    try:
        objects = json.loads(line[len(_HEAD) :])["objects"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return set()
    if not isinstance(objects, list):
        return set()
    return {o for o in objects if isinstance(o, str) and _OBJECT.fullmatch(o)}


class _Checkpoint:
    """What both directions have in common: where the checkpoint lies.  A plan is taken as it is."""

    def __init__(self, client: Client, key: str) -> None:
        super().__init__()
        self.client = client
        self.url = client.url(key).rstrip("/")
        self.result: Optional[Result] = None

    def reset(self, checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None:
            self.url = self.client.url(str(checkpoint_id)).rstrip("/")

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        return isinstance(checkpoint_id, str)

    def prepare_local_plan(self, plan: Any) -> Any:
        return plan


class CheckpointWriter(_Checkpoint, StorageWriter):
    """Saves below a key, or a URL.  result: how the bytes of this rank went."""

    def init(self, is_coordinator: bool) -> None:
        self.result = None

    set_up_storage_writer = init

    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        save = time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()) + uuid.uuid4().hex[:12]
        return [
            dataclasses.replace(plan, storage_data=f"{save}/{rank}.distcp") for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: Any) -> Future[List[WriteResult]]:
        results = []
        if plan.items:
            with self.client.writer(f"{self.url}/{plan.storage_data}") as stream:
                for item in plan.items:
                    data = planner.resolve_data(item)
                    info = StorageInfo(plan.storage_data, stream.tell(), 0)
                    if item.type == WriteItemType.BYTE_IO:
                        stream.write(data.getbuffer())
                    else:
                        tensor = data.detach().resolve_conj().resolve_neg().contiguous()
                        if tensor.device.type not in _DIRECT:
                            tensor = tensor.cpu()
                        # Nobody changes it before this returns, and it is stored by then.
                        stream.write_held(tensor)
                        info.dtype, info.shape = tensor.dtype, tensor.shape
                    info.length = stream.tell() - info.offset
                    results.append(WriteResult(item.index, info.length, info))
            self.result = stream.result
        done: Future[List[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        metadata.storage_data = {r.index: r.storage_data for rank in results for r in rank}
        own = {info.key for info in metadata.storage_data.values()}
        data = _HEAD + json.dumps({"objects": sorted(own)}).encode() + b"\n" + pickle.dumps(metadata)
        # Whoever saves here at the same time: one of the two is there in the end, and the other's objects
        # are gone.
        while True:
            try:
                old = self.client.get(f"{self.url}/{_METADATA}")
                condition: Dict[str, Any] = {"if_match": old.result.etag}
            except NotFound as e:
                if e.code == "NoSuchBucket":
                    raise
                old, condition = None, {"if_none_match": "*"}
            try:
                self.client.put(f"{self.url}/{_METADATA}", data, checksum=True, **condition)
                break
            except PreconditionFailed:
                continue
        # The one before may say anything: its names have to be a save's, and of another save than this one.
        saves = {key.partition("/")[0] for key in own}
        for key in sorted(_objects_of(old)) if old is not None else []:
            if key.partition("/")[0] not in saves:
                self.client.delete(f"{self.url}/{key}")


def _check_info(info: Any) -> None:
    """Checks that it names bytes of an object of a save, and of no other."""
    if (
        not isinstance(info, StorageInfo)
        or not isinstance(info.key, str)
        or not _OBJECT.fullmatch(info.key)
        or not all(isinstance(n, int) and n >= 0 for n in (info.offset, info.length))
        or not isinstance(info.dtype, (type(None), torch.dtype))
        or not isinstance(info.shape, (type(None), torch.Size))
    ):
        raise pickle.UnpicklingError("the metadata names bytes that are no checkpoint's")


class CheckpointReader(_Checkpoint, StorageReader):
    """Loads what CheckpointWriter saved there.

    result    how the bytes that this rank loaded came
    error     why the metadata could not be read, or None.  Recent versions of PyTorch raise only an
              AssertionError then, "metadata is None", so the logger gantry.dcp gets it as well
    classes   more classes, and functions, that items of the checkpoint are made of, or what a planner keeps
              in its metadata: the writer of the checkpoint can have them called, with any arguments
    """

    def __init__(self, client: Client, key: str, *, classes: Iterable[Any] = ()) -> None:
        super().__init__(client, key)
        self._stored: Dict[MetadataIndex, StorageInfo] = {}
        self._classes = list(classes)
        self.error: Optional[Exception] = None

    def read_metadata(self) -> Metadata:
        self.error = None
        try:
            return self._read_metadata()
        except Exception as e:
            self.error = e
            _log.error("%s/%s: %s", self.url, _METADATA, e)
            raise

    def _read_metadata(self) -> Metadata:
        data = self.client.get(f"{self.url}/{_METADATA}")
        if not data.startswith(_HEAD):
            raise pickle.UnpicklingError(f"{self.url}/{_METADATA} is not of a checkpoint of gantry.dcp")
        kind = _unpickle.unpickler([*_METADATA_CLASSES, *self._classes], _NAMED)
        metadata = _unpickle.loads(bytes(data[data.index(b"\n") + 1 :]), kind)
        stored = getattr(metadata, "storage_data", None)
        if not isinstance(metadata, Metadata) or not isinstance(stored, dict):
            raise pickle.UnpicklingError(f"{self.url}/{_METADATA} holds no metadata of a checkpoint")
        for info in stored.values():
            _check_info(info)
        return metadata

    def item_bytes(self, data: bytes) -> io.BytesIO:
        """Makes what a planner gets of an item that is no tensor, and whose bytes are these.  A program whose
        planner writes items otherwise than by torch.save, and reads them without unpickling, overrides it."""
        return _checked_item(bytes(data), _Pickles(self._classes))

    def init(self, metadata: Metadata, is_coordinator: bool) -> None:
        self._stored = metadata.storage_data
        self.result = None

    set_up_storage_reader = init

    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: Any) -> Future[None]:
        # Planners are not for several threads: only the fetching is.
        todo = [(item, self._stored[item.storage_index]) for item in plan.items]
        targets: Dict[int, Any] = {}
        for i, (item, _) in enumerate(todo):
            if item.type != LoadItemType.BYTE_IO:
                targets[i] = planner.resolve_tensor(item).detach()
        results: List[Result] = []
        # The streams of this thread: work of the caller's that is queued there comes before and after ours.
        devices = {t.device for t in targets.values() if t.device.type == "cuda"}
        streams = {device: torch.cuda.current_stream(device) for device in devices}

        def fetch(i: int) -> Result:
            item, info = todo[i]
            if i not in targets:
                data = self.client.get(f"{self.url}/{info.key}", offset=info.offset, size=info.length)
                targets[i] = data
                return data.result
            stream = streams.get(targets[i].device)
            there: Any = contextlib.nullcontext() if stream is None else torch.cuda.stream(stream)
            with there:
                return self._fetch_tensor(item, info, targets[i])

        results = in_parallel(self.client.jobs, fetch, [i for i in range(len(todo)) if todo[i][1].length])
        for i, (item, _) in enumerate(todo):
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, self.item_bytes(targets.get(i, b"")))
            else:
                planner.commit_tensor(item, targets[i])
        self.result = summed(results) if results else None
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _fetch_tensor(self, item: Any, info: StorageInfo, target: torch.Tensor) -> Result:
        """Fetches the part of a stored tensor that an item is about into the target."""
        assert info.shape is not None and info.dtype is not None
        first, lengths, shape = list(item.storage_offsets), list(item.lengths), list(info.shape)
        if list(target.shape) != lengths:
            raise ValueError(f"{item.storage_index.fqn}: {lengths} of it do not fit {list(target.shape)}")
        # Rows lie one behind the other; of anything else the whole is fetched.
        rows = lengths[1:] == shape[1:] and not any(first[1:])
        begin, nbytes, narrowed = info.offset, info.length, False
        if rows and shape:
            row = info.length // shape[0]
            begin, nbytes = info.offset + first[0] * row, lengths[0] * row
        elif shape:
            narrowed = True
        device = target.device if target.device.type in _DIRECT else None
        direct = not narrowed and device and target.dtype == info.dtype and target.is_contiguous()
        into = (
            target
            if direct
            else torch.empty(shape if narrowed else lengths, dtype=info.dtype, device=device)
        )
        result = self.client.get_into(f"{self.url}/{info.key}", into, offset=begin)
        if result.bytes != nbytes:
            raise EOFError(f"{item.storage_index.fqn}: {result.bytes} of {nbytes} bytes are there")
        if narrowed:
            for dim, (at, n) in enumerate(zip(first, lengths)):
                into = into.narrow(dim, at, n)
        if not direct:
            target.copy_(into)
        return result
