"""What a shard keeps beside its tally for integrity: sums in front of the tally's bytes, folded in one transaction.

::

    magic "TCTW" | length u64 | sums of `integrity.watch` | the tally                     one oracle
    magic "TCTM" | length u64 | parts | the tally                                         several
        parts: (length of path u8 | path, u32 each | length u64 | sums) one after the other

A shard without a magic has a tally alone: it was imported, or its kind is not watched.
"""

from collections.abc import Mapping
from struct import error, iter_unpack, pack, unpack_from

from tacit.collector.collections.active import Active
from tacit.core.mechanism import Reports
from tacit.core.members import AnyTally
from tacit.errors import ReportRejected
from tacit.integrity.parts import Path, part_counts, part_reports
from tacit.integrity.watch import WatchedSums, most_watched, watch_more, watched_oracle, watched_parts

_MAGIC, _SEVERAL = b"TCTW", b"TCTM"
_HEAD = len(_MAGIC) + 8

Watches = Mapping[Path, WatchedSums]
"""Sums by the part of the mechanism that they are of."""


def framed(watches: Watches, tally: bytes) -> bytes:
    """The bytes of a shard."""
    if not watches:
        return tally
    magic, sums = (_MAGIC, watches[()].dump()) if () in watches else (_SEVERAL, _parts(watches))
    return magic + pack("<Q", len(sums)) + sums + tally


def unframed(data: bytes) -> tuple[Watches, bytes]:
    """The sums and the tally of a shard."""
    magic = data[: len(_MAGIC)]
    if magic not in (_MAGIC, _SEVERAL):
        return {}, data
    end = _HEAD + int.from_bytes(data[len(_MAGIC) : _HEAD], "little")
    sums = data[_HEAD:end]
    return {(): WatchedSums.load(sums)} if magic == _MAGIC else _read_parts(sums), data[end:]


def _parts(watches: Watches) -> bytes:
    rows = ((path, watch.dump()) for path, watch in watches.items())
    return b"".join(pack(f"<B{len(path)}IQ", len(path), *path, len(sums)) + sums for path, sums in rows)


def _read_parts(data: bytes) -> Watches:
    found: dict[Path, WatchedSums] = {}
    at = 0
    try:
        while at < len(data):
            start = at + 1 + 4 * data[at]
            path = tuple(one for (one,) in iter_unpack("<I", data[at + 1 : start]))
            (length,) = unpack_from("<Q", data, start)
            at = start + 8 + length
            found[path] = WatchedSums.load(data[start + 8 : at])
    except error:
        raise ReportRejected("integrity: the sums that were kept of reports cannot be read") from None
    return found


def watched(active: Active, kept: Watches, reports: Reports, tally: AnyTally) -> Watches:
    """The sums of a shard with further reports, which `tally` has counted already.

    Fakes of shuffled collections are no reports of anybody, and windows are too many: those are not watched.
    """
    if active.collection.shuffle is not None or active.collection.windows is not None:
        return {}
    found, parts = dict[Path, WatchedSums](), watched_parts(active.mechanism)
    for part in parts:
        oracle, counts = watched_oracle(part.oracle), part_counts(active.mechanism, part.path, tally)
        if oracle is None or counts is None:
            continue
        mine = part_reports(active.mechanism, part.path, reports)
        watch = watch_more(oracle, kept.get(part.path), mine, counts, most=most_watched(len(parts)))
        if watch is not None:
            found[part.path] = watch
    return found
