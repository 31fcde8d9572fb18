"""A published collection, parsed once and kept: its document, its mechanism, and how its batches are laid out."""

import json
import re
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from tacit.collector.ports import CollectionRecord, Store
from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.errors import InvalidSpec
from tacit.wire.batch import Batch, Block
from tacit.wire.document import Collection

Catalog = tuple[type[Mechanism], ...]

ID = re.compile(r"draft-[0-9a-f]{32}|[0-9a-f]{64}")
"""What the id of a draft or of a published collection looks like; a database is asked for nothing else."""

_MAX_KEPT = 256


@dataclass(frozen=True, eq=False)
class Active:
    """A published or closed collection as the collector works with it."""

    id: str
    document: bytes
    collection: Collection
    mechanism: Mechanism
    widths: tuple[int, ...]
    """Bytes of a report in a block of each member: one member, except where one of several questions is answered."""

    dtype: "np.dtype[Any]"
    """The layout of one report in the store."""
    sampled: bool
    """Whether a respondent answers one of several questions, so that blocks are by member."""
    plain: bool
    """Whether a batch of one block is all there is to an upload: one member, no invitation, no rows."""

    def payload(self, batch: Batch) -> bytes:
        """The reports of a batch in the mechanism's own layout, in order."""
        if self.sampled:
            return b"".join(self._wrapped(block) for block in batch.blocks)
        blocks = batch.blocks
        return blocks[0].payload if len(blocks) == 1 else b"".join(block.payload for block in blocks)

    def _wrapped(self, block: Block) -> bytes:
        reports = np.empty(block.count, self.dtype)
        reports["member"] = block.member
        reports["payload"] = np.frombuffer(block.payload, np.uint8).reshape(block.count, self.widths[0])
        return reports.tobytes()


def read_document(data: bytes, catalog: Catalog) -> Collection:
    """A collection from its canonical document, with mechanisms of the catalogue."""
    return Collection.from_json(json.loads(data), catalog)


def activate(record: CollectionRecord, catalog: Catalog) -> Active:
    """Parse a published collection."""
    collection = read_document(record.document, catalog)
    mechanism = collection.mechanism
    if not isinstance(mechanism, Mechanism):
        raise InvalidSpec(f"{mechanism.kind}: the catalogue has no server half of this kind")
    sampled = isinstance(mechanism, OneOf)
    dtype = mechanism.report_dtype
    widths = (mechanism.payload_bytes,) * len(mechanism.family) if sampled else (dtype.itemsize,)
    plain = not sampled and not collection.invitations and collection.rows is None
    return Active(record.id, record.document, collection, mechanism, widths, dtype, sampled, plain)


class Shelf:
    """Collections that were asked for lately, parsed; published documents never change, so nothing goes stale."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        """Read from a store."""
        self._store, self._catalog, self._lock = store, catalog, Lock()
        self._kept: dict[str, Active] = {}

    def kept(self, collection: str) -> Active | None:
        """A collection that is at hand, without asking the store."""
        return self._kept.get(collection)

    def find(self, collection: str) -> Active | None:
        """A published or closed collection; drafts are not found."""
        active = self.kept(collection)
        if active is not None:
            return active
        record = self._store.collection(collection) if ID.fullmatch(collection) else None
        if record is None or record.state == "draft":
            return None
        active = activate(record, self._catalog)
        with self._lock:
            self._kept[collection] = active
            while len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return active

    def all_ids(self) -> list[str]:
        """Ids of all published and closed collections."""
        return [record.id for record in self._store.collections() if record.state != "draft"]


def parsed_json(data: bytes) -> Any:
    """JSON of a stored draft or document."""
    return json.loads(data)
