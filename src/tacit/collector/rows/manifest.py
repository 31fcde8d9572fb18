"""The manifest of a shard: the list of sealed segments that hold its rows.

It is stored in the database in the place of a tally, so that sealing rows is a fold like any other, with the same
exactly-once transaction. The life of a segment file:

    *.part, fsync --rename--> <sha256>.parquet --commit--> named by a manifest --merged--> not named --sweep--> removed
    (killed: swept)           (killed: swept later)        (queries read it)

The file always exists before a manifest names it, and is removed only after no manifest has named it for a while.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import ReportRejected

SUFFIX = ".parquet"
_START = b"["


@dataclass(frozen=True)
class SegmentEntry:
    """One segment: file name, number of rows, size, checksum, and memory."""

    file: str
    rows: int
    bytes: int
    sha256: str
    memory: int
    """Bytes of its rows once decoded, which decides whether it can be merged."""


def dump_manifest(entries: Iterable[SegmentEntry]) -> bytes:
    """Encode a manifest as a compact JSON list."""
    return json.dumps([asdict(entry) for entry in entries], separators=(",", ":")).encode()


def load_manifest(data: bytes | None) -> tuple[SegmentEntry, ...]:
    """Decode a manifest; empty for None, which is a shard that was never folded. ReportRejected if it is malformed."""
    if data is None:
        return ()
    try:
        if not is_manifest(data):
            raise ValueError
        return tuple(_entry(item) for item in json.loads(data))
    except (ValueError, TypeError, KeyError):
        raise ReportRejected("segments: the stored manifest cannot be read") from None


def _entry(item: dict[str, Any]) -> SegmentEntry:
    entry = SegmentEntry(**item)
    # The name must be derived from the checksum, so that a tampered manifest cannot point outside of the folder.
    if entry.file != entry.sha256 + SUFFIX or len(bytes.fromhex(entry.sha256)) != 32:
        raise ValueError
    return entry


def is_manifest(tally: bytes) -> bool:
    """Whether the stored bytes of a shard are a manifest; tallies begin with a letter, never with a bracket."""
    return tally[:1] == _START
