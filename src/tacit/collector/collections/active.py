"""Published collections in parsed form, cached: document, mechanism, and the layout of reports."""

import json
import re
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from tacit.collector.ports import CollectionRecord, Store
from tacit.core.mechanism import Mechanism
from tacit.errors import InvalidSpec
from tacit.wire.batch import MAGIC, Batch
from tacit.wire.document import Collection

Catalog = tuple[type[Mechanism], ...]

ID = re.compile(r"draft-[0-9a-f]{32}|[0-9a-f]{64}")
"""The ids of drafts and of published collections; anything else never reaches the database."""
_WINDOW = re.compile(r"([0-9a-f]{64})\.(0|[1-9][0-9]{0,3})")
"""What `ports.window_id` makes; no request names one."""

# A parsed collection is small, but a large catalogue of them must not stay in memory.
_MAX_KEPT = 256


@dataclass(frozen=True, eq=False)
class Active:
    """A published or closed collection, parsed: what the ingest path and the answers need of it."""

    id: str
    document: bytes
    collection: Collection
    mechanism: Mechanism
    widths: tuple[int, ...]
    """By member, the bytes of a report in a block; one member unless respondents answer one of several questions."""

    dtype: "np.dtype[Any]"
    """The numpy layout of one report in the store."""
    sampled: bool
    """Whether respondents answer one of several questions, so that an upload has a block per member."""
    plain: bool
    """Whether uploads may take the fast path: no rows, no shufflers, no windows."""

    @cached_property
    def head(self) -> bytes:
        """The first bytes of every binary batch of this collection."""
        return MAGIC + bytes.fromhex(self.id)

    def payload(self, batch: Batch) -> bytes:
        """The reports of a decoded batch in the mechanism's layout, in order."""
        if self.sampled:
            join = self.mechanism.join_batch
            return b"".join(join(block.member, block.payload).tobytes() for block in batch.blocks)
        blocks = batch.blocks
        return blocks[0].payload if len(blocks) == 1 else b"".join(block.payload for block in blocks)


def read_document(data: bytes, catalog: Catalog) -> Collection:
    """Parse a canonical document; its mechanisms must be in the catalogue."""
    return Collection.from_json(json.loads(data), catalog)


def activate(record: CollectionRecord, catalog: Catalog) -> Active:
    """Parse a stored collection; InvalidSpec if its mechanism has no server half."""
    collection = read_document(record.document, catalog)
    mechanism = collection.mechanism
    if not isinstance(mechanism, Mechanism):
        raise InvalidSpec(f"{mechanism.kind}: the catalogue has no server half of this kind")
    widths, sampled = mechanism.payload_widths, mechanism.drawn_from is not None
    plain = collection.rows is None and collection.shuffle is None and collection.windows is None
    return Active(record.id, record.document, collection, mechanism, widths, mechanism.report_dtype, sampled, plain)


class Shelf:
    """A cache of parsed collections. Published documents are immutable, so that entries never go stale.

    The state (published or closed) can change and is therefore not cached; the store decides about it.
    """

    def __init__(self, store: Store, catalog: Catalog) -> None:
        """Read from a store."""
        self._store, self._catalog, self._lock = store, catalog, Lock()
        self._kept: dict[str, Active] = {}

    def kept(self, collection: str) -> Active | None:
        """A cached collection, or None; never touches the store, so that the event loop may call it."""
        return self._kept.get(collection)

    def find(self, collection: str) -> Active | None:
        """A published or closed collection, or None (also for drafts)."""
        active = self.kept(collection)
        if active is not None:
            return active
        inside = _WINDOW.fullmatch(collection)
        if inside is not None:
            # A window is counted like a collection of its own, by the document of the whole one.
            whole = self.find(inside[1])
            return None if whole is None else replace(whole, id=collection)
        record = self._store.collection(collection) if ID.fullmatch(collection) else None
        if record is None or record.state == "draft":
            return None
        # Parsed outside of the lock: two threads may parse the same document, and either result will do.
        active = activate(record, self._catalog)
        with self._lock:
            self._kept[collection] = active
            # Oldest first: dicts keep the order of insertion.
            while len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return active

    def all_ids(self) -> list[str]:
        """Ids of all published and closed collections."""
        return [record.id for record in self._store.collections() if record.state != "draft"]


def parsed_json(data: bytes) -> Any:
    """The JSON value of a stored draft or document."""
    return json.loads(data)
