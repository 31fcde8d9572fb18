"""What a shard keeps beside its tally for integrity: sums in front of the tally's bytes, folded in one transaction.

::

    magic "TCTW" | length u64 | sums of `integrity.watch` | the tally

A shard without the magic has a tally alone: it was imported, or its kind is not watched.
"""

from tacit.collector.collections.active import Active
from tacit.core.mechanism import Reports
from tacit.integrity.watch import WatchedSums, watch_more

_MAGIC = b"TCTW"
_HEAD = len(_MAGIC) + 8


def framed(watch: WatchedSums | None, tally: bytes) -> bytes:
    """The bytes of a shard."""
    if watch is None:
        return tally
    sums = watch.dump()
    return _MAGIC + len(sums).to_bytes(8, "little") + sums + tally


def unframed(data: bytes) -> tuple[WatchedSums | None, bytes]:
    """The sums and the tally of a shard."""
    if not data.startswith(_MAGIC):
        return None, data
    end = _HEAD + int.from_bytes(data[len(_MAGIC) : _HEAD], "little")
    return WatchedSums.load(data[_HEAD:end]), data[end:]


def watched(active: Active, kept: WatchedSums | None, reports: Reports, *, begun: bool) -> WatchedSums | None:
    """The sums of a shard with further reports.

    Sums are begun with a shard: one that was counted without them stays so, as they would miss its first reports. Fakes
    of shuffled collections are no reports of anybody, so that those are not watched.
    """
    if active.collection.shuffle is not None or (kept is None and begun):
        return None
    return watch_more(active.mechanism, kept, reports)
