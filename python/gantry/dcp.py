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
into
memory of the state dict.  .metadata is a pickle, as with FileSystemReader: load what you trust.

Tested with PyTorch 1.13, which Debian 12 has, where these interfaces are torch.distributed._shard.checkpoint.
With Debian's Python, 3.11, they can be imported only behind this module, which mends what is in the way.
In PyTorch 2 they are torch.distributed.checkpoint and two methods have other names, which are here as well;
with
that it has not been run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import pickle
import time
import uuid
from typing import Any, Dict, Iterator, List, Optional

import torch
from torch.futures import Future

from ._client import Client, Result, in_parallel, summed
from .errors import NotFound, PreconditionFailed


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
    from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
    from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, SavePlan, WriteItemType
    from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
else:
    with _hashable_defaults():
        from torch.distributed._shard.checkpoint.metadata import Metadata, MetadataIndex
        from torch.distributed._shard.checkpoint.planner import (
            LoadItemType,
            LoadPlan,
            SavePlan,
            WriteItemType,
        )
        from torch.distributed._shard.checkpoint.storage import StorageReader, StorageWriter, WriteResult

_METADATA = ".metadata"


@dataclasses.dataclass
class StorageInfo:
    """Where an item lies: in which object, and what a tensor's bytes are."""

    key: str
    offset: int
    length: int
    dtype: Optional[torch.dtype] = None
    shape: Optional[torch.Size] = None


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
                        tensor = data.detach().cpu().resolve_conj().resolve_neg().contiguous()
                        stream.write(tensor)
                        info.dtype, info.shape = tensor.dtype, tensor.shape
                    info.length = stream.tell() - info.offset
                    results.append(WriteResult(item.index, info.length, info))
            self.result = stream.result
        done: Future[List[WriteResult]] = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        metadata.storage_data = {r.index: r.storage_data for rank in results for r in rank}
        data = pickle.dumps(metadata)
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
        if old is not None:
            for key in {info.key for info in pickle.loads(old).storage_data.values()}:
                self.client.delete(f"{self.url}/{key}")


class CheckpointReader(_Checkpoint, StorageReader):
    """Loads what CheckpointWriter saved there.  result: how the bytes that this rank loaded came."""

    def __init__(self, client: Client, key: str) -> None:
        super().__init__(client, key)
        self._stored: Dict[MetadataIndex, StorageInfo] = {}

    def read_metadata(self) -> Metadata:
        metadata: Metadata = pickle.loads(self.client.get(f"{self.url}/{_METADATA}"))
        return metadata

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

        def fetch(i: int) -> Result:
            item, info = todo[i]
            if i not in targets:
                data = self.client.get(f"{self.url}/{info.key}", offset=info.offset, size=info.length)
                targets[i] = data
                return data.result
            return self._fetch_tensor(item, info, targets[i])

        results = in_parallel(self.client.jobs, fetch, [i for i in range(len(todo)) if todo[i][1].length])
        for i, (item, _) in enumerate(todo):
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(targets.get(i, b"")))
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
        direct = (
            not narrowed
            and target.device.type == "cpu"
            and target.dtype == info.dtype
            and target.is_contiguous()
        )
        into = target if direct else torch.empty(shape if narrowed else lengths, dtype=info.dtype)
        result = self.client.get_into(f"{self.url}/{info.key}", into, offset=begin)
        if result.bytes != nbytes:
            raise EOFError(f"{item.storage_index.fqn}: {result.bytes} of {nbytes} bytes are there")
        if narrowed:
            for dim, (at, n) in enumerate(zip(first, lengths)):
                into = into.narrow(dim, at, n)
        if not direct:
            target.copy_(into)
        return result
