"""The manifest of a shard: the list of sealed segments that hold its rows.

It is stored in the database in the place of a tally, so that sealing rows is a fold like any other, with the same
exactly-once transaction. The life of a segment file:

    *.part, fsync --rename--> <sha256>.parquet --commit--> named by a manifest --merged--> not named --sweep--> removed
    (killed: swept)           (killed: swept later)        (queries read it)

The file always exists before a manifest names it, and is removed only after no manifest has named it for a while.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict

from tacit.errors import ReportRejected
from tacit.lake.entries import SegmentEntry, entry_of

_START = b"["

IN_LAKE = "~lake"
"""What is behind the name of a process in that of a shard whose files are in a lake; no host and port has it."""


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
        return tuple(entry_of(item) for item in json.loads(data))
    except (ValueError, TypeError, KeyError):
        raise ReportRejected("segments: the stored manifest cannot be read") from None


def is_manifest(tally: bytes) -> bool:
    """Whether the stored bytes of a shard are a manifest; tallies begin with a letter, never with a bracket."""
    return tally[:1] == _START
