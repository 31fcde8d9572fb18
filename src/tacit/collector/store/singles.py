"""Batches of one report each, side by side: what browsers send, without an object for each of them."""

from collections.abc import Mapping, Sequence
from typing import overload

from tacit.collector.ports import NewBatch

_NONE: Mapping[str, int] = {}


class SingleBatches(Sequence[NewBatch]):
    """New batches of one collection with one valid report each; nothing of them is refused, and they spend nothing.

    To whoever does not know the class it is a sequence of `NewBatch`, which are made when they are asked for.
    """

    __slots__ = ("collection", "ids", "payload", "width")

    def __init__(self, collection: str, ids: list[bytes], payload: bytes) -> None:
        """Put ids and reports side by side, in the same order; all reports are equally wide."""
        self.collection, self.ids, self.payload = collection, ids, payload
        self.width = len(payload) // max(1, len(ids))
        if self.width * len(ids) != len(payload):
            raise ValueError(f"{len(ids)} batches of one report cannot have {len(payload)} bytes of reports")

    def __len__(self) -> int:
        """The number of batches, which is that of reports."""
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> NewBatch: ...

    @overload
    def __getitem__(self, place: slice) -> "SingleBatches": ...

    def __getitem__(self, place: int | slice) -> "NewBatch | SingleBatches":
        """One batch, or those of a range, which are side by side again."""
        width = self.width
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self.ids))
            if step != 1:
                raise ValueError("a range of batches has the step 1")
            return SingleBatches(self.collection, self.ids[begin:end], self.payload[begin * width : end * width])
        at = range(len(self.ids))[place]
        return NewBatch(self.collection, self.ids[at], self.payload[at * width : (at + 1) * width], 1, _NONE)


def payload_bytes(batches: Sequence[NewBatch]) -> int:
    """The bytes of all reports in some batches."""
    if isinstance(batches, SingleBatches):
        return len(batches.payload)
    return sum([len(batch.payload) for batch in batches])
