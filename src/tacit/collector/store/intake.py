"""The part of storing batches that is the same in every database: decide outcomes, sum up refusals, pack payloads.

A group of batches is stored as one blob (segment) per collection, not as one row per batch, so that a transaction
costs a handful of statements however many batches it holds. Batch ids are stored apart from the blobs: once a blob is
folded and dropped, the id proves that a batch was received, and tells nothing of its contents or its time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from struct import Struct
from typing import Any

from tacit.collector.ports import (
    CLOSED,
    DUPLICATE,
    OVERLAP,
    SPENT,
    STORED,
    NewBatch,
    Outcome,
    StoredBatch,
    WindowNumbers,
    window_number,
)
from tacit.collector.store.singles import SingleBatches
from tacit.lake.about import BatchSet

Mark = tuple[str, bytes]
"""(collection, batch id) or (collection, hash of an invitation or a token): unique keys within a collection."""


@dataclass(frozen=True)
class BatchSegment:
    """The packed batches of one collection in one transaction: a row of the table `waiting`."""

    payload: bytes
    batches: int
    reports: int


def decide(
    batches: Sequence[NewBatch], states: Mapping[str, str], stored: set[Mark], unspent: set[Mark]
) -> list[Outcome]:
    """The outcome of every batch of a group, in order.

    `states` maps collections to their states; `stored` are the batch ids of this group that are in the database
    already, and `unspent` the invitations and tokens of this group that are still valid.
    """
    # Copies, updated on the way: the same batch or invitation may come twice within one group.
    stored, unspent = set(stored), set(unspent)
    outcomes: list[Outcome] = []
    for batch in batches:
        outcome = _outcome(batch, states, stored, unspent)
        if outcome == STORED:
            stored.add((batch.collection, batch.batch))
            unspent.difference_update(spent_by(batch))
        outcomes.append(outcome)
    return outcomes


def _outcome(batch: NewBatch, states: Mapping[str, str], stored: set[Mark], unspent: set[Mark]) -> Outcome:
    # Idempotency comes first: a client that missed the acknowledgement and sends again after the collection was closed
    # must hear that its batch is stored, not that it was refused.
    if (batch.collection, batch.batch) in stored:
        return DUPLICATE
    if states.get(batch.collection) != "published":
        return CLOSED
    if not unspent.issuperset(spent_by(batch)):
        return SPENT
    return STORED


def decide_tally(state: str | None, sources: Sequence[bytes], stored: set[bytes]) -> Outcome:
    """The outcome of a tally that was made elsewhere; `stored` are those of its sources that are known already."""
    if stored:
        return DUPLICATE if stored.issuperset(sources) else OVERLAP
    return STORED if state == "published" else CLOSED


def invitations(batches: Sequence[NewBatch]) -> list[Mark]:
    """The invitations that the batches of a group want to spend."""
    return [(batch.collection, batch.invitation) for batch in batches if batch.invitation is not None]


def tokens(batches: Sequence[NewBatch]) -> list[Mark]:
    """The anonymous tokens that the batches of a group want to spend."""
    return [(batch.collection, batch.token) for batch in batches if batch.token is not None]


def spent_by(batch: NewBatch) -> list[Mark]:
    """What a batch spends: an invitation, a token, or nothing."""
    return invitations([batch]) + tokens([batch])


def refusals(batches: Sequence[NewBatch]) -> dict[str, Counter[str]]:
    """Sums of the refused reports that came with these batches, by collection and reason."""
    counts: dict[str, Counter[str]] = {}
    for batch in batches:
        if batch.rejected:
            counts.setdefault(batch.collection, Counter()).update(batch.rejected)
    return counts


def by_collection(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[str, ...]]:
    """The texts of rows (collection, text), sorted, by collection."""
    found: dict[str, list[str]] = {}
    for collection, text in rows:
        found.setdefault(str(collection), []).append(str(text))
    return {collection: tuple(sorted(texts)) for collection, texts in found.items()}


def plain_group(batches: Sequence[NewBatch]) -> str | None:
    """The one collection of a plain group, or None.

    Plain groups (one collection, nothing to spend, no refusals) are the common case, and have a fast path.
    """
    if isinstance(batches, SingleBatches):
        return batches.collection
    name = batches[0].collection if batches else None
    for batch in batches:
        if batch.collection != name or batch.rejected or not batch.count:
            return None
        if batch.invitation is not None or batch.token is not None:
            return None
    return name


def segments(batches: Sequence[NewBatch]) -> dict[str, BatchSegment]:
    """The packed batches of every collection; batches without a valid report leave their id only."""
    groups: dict[str, list[NewBatch]] = {}
    for batch in batches:
        if batch.count:
            groups.setdefault(batch.collection, []).append(batch)
    return {collection: pack(group) for collection, group in groups.items()}


def pack(batches: Sequence[NewBatch]) -> BatchSegment:
    """Pack batches into one blob."""
    # All integers are unsigned 32-bit, little-endian:
    #
    #     [n] [count 1]...[count n] [length 1]...[length n] [payload 1]...[payload n] [digest of all ids, 32 bytes]
    #
    # One digest for the group: no id stands beside a payload. Groups of earlier releases end before it.
    n = len(batches)
    if isinstance(batches, SingleBatches):
        payloads, counts, lengths, ids = [batches.payload], [1] * n, [batches.width] * n, batches.ids
    else:
        payloads, counts = [batch.payload for batch in batches], [batch.count for batch in batches]
        lengths, ids = list(map(len, payloads)), [batch.batch for batch in batches]
    head = Struct(f"<{1 + 2 * n}I").pack(n, *counts, *lengths)
    return BatchSegment(b"".join([head, *payloads, BatchSet.of(ids).bytes]), n, sum(counts))


def unpack(payload: bytes) -> list[StoredBatch]:
    """The batches of a packed blob."""
    (size,) = Struct("<I").unpack_from(payload)
    head = Struct(f"<{1 + 2 * size}I")
    numbers = head.unpack_from(payload)
    # Running sums of the lengths, from the end of the head on, are the boundaries of the payloads.
    ends = list(accumulate(numbers[1 + size :], initial=head.size))
    parts = map(payload.__getitem__, map(slice, ends, ends[1:]))
    ids = [int.from_bytes(payload[ends[-1] :], "big"), *[0] * (size - 1)]
    return list(map(StoredBatch, parts, numbers[1 : 1 + size], ids))


def window_numbers(rows: Sequence[Sequence[Any]]) -> list[WindowNumbers]:
    """Rows of (id, state, folded, waiting) of windows, in the order of their numbers."""
    made = (WindowNumbers(window_number(row[0]), str(row[1]), int(row[2]), int(row[3])) for row in rows)
    return sorted(made, key=lambda numbers: numbers.window)
