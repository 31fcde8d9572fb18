"""What every database does with a group of batches: decide, gather refusals, and pack what is to be stored.

A group is stored as one segment per collection, not as one row per batch, so that a transaction costs a handful of
statements however many batches it holds. Batch ids are kept apart from segments: once a segment is folded and dropped,
an id says that a batch was there, and nothing about what was in it or when it came.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from struct import Struct

from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, STORED, NewBatch, StoredBatch

Mark = tuple[str, bytes]
"""A collection and the batch id, or the hash of an invitation, that is unique in it."""


@dataclass(frozen=True)
class Segment:
    """The batches of one collection that one transaction stores."""

    payload: bytes
    batches: int
    reports: int


def decide(batches: Sequence[NewBatch], states: Mapping[str, str], stored: set[Mark], unspent: set[Mark]) -> list[str]:
    """Say what becomes of each batch, in order.

    `states` are the states of the collections; `stored` the batch ids that were there before and `unspent` the
    invitations that can be spent, as far as this group names them.
    """
    stored, unspent = set(stored), set(unspent)
    outcomes: list[str] = []
    for batch in batches:
        outcome = _outcome(batch, states, stored, unspent)
        if outcome == STORED:
            stored.add((batch.collection, batch.batch))
            unspent.discard((batch.collection, batch.invitation or b""))
        outcomes.append(outcome)
    return outcomes


def _outcome(batch: NewBatch, states: Mapping[str, str], stored: set[Mark], unspent: set[Mark]) -> str:
    # A batch that was stored is a duplicate even after the collection closed: its sender may have missed the answer.
    if (batch.collection, batch.batch) in stored:
        return DUPLICATE
    if states.get(batch.collection) != "published":
        return CLOSED
    if batch.invitation is not None and (batch.collection, batch.invitation) not in unspent:
        return SPENT
    return STORED


def invitations(batches: Sequence[NewBatch]) -> list[Mark]:
    """The invitations that a group would spend."""
    return [(batch.collection, batch.invitation) for batch in batches if batch.invitation is not None]


def refusals(batches: Sequence[NewBatch]) -> dict[str, Counter[str]]:
    """Refused reports of the uploads that were stored, by collection and reason."""
    counts: dict[str, Counter[str]] = {}
    for batch in batches:
        if batch.rejected:
            counts.setdefault(batch.collection, Counter()).update(batch.rejected)
    return counts


def plain_group(batches: Sequence[NewBatch]) -> str | None:
    """The collection of a group in its common form: reports on one collection, without invitations or refusals."""
    name = batches[0].collection if batches else None
    for batch in batches:
        if batch.collection != name or batch.invitation is not None or batch.rejected or not batch.count:
            return None
    return name


def segments(batches: Sequence[NewBatch]) -> dict[str, Segment]:
    """Pack the batches that hold reports, by collection."""
    groups: dict[str, list[NewBatch]] = {}
    for batch in batches:
        if batch.count:
            groups.setdefault(batch.collection, []).append(batch)
    return {collection: pack(group) for collection, group in groups.items()}


def pack(batches: Sequence[NewBatch]) -> Segment:
    """Number of batches, counts, lengths, then the payloads end to end; integers of 4 bytes, little-endian."""
    payloads, counts = [batch.payload for batch in batches], [batch.count for batch in batches]
    head = Struct(f"<{1 + 2 * len(batches)}I").pack(len(batches), *counts, *map(len, payloads))
    return Segment(b"".join([head, *payloads]), len(batches), sum(counts))


def unpack(payload: bytes) -> list[StoredBatch]:
    """The batches of a segment."""
    (size,) = Struct("<I").unpack_from(payload)
    head = Struct(f"<{1 + 2 * size}I")
    numbers = head.unpack_from(payload)
    spans = pairwise(accumulate(numbers[1 + size :], initial=head.size))
    return [StoredBatch(payload[a:b], count) for (a, b), count in zip(spans, numbers[1 : 1 + size], strict=True)]
