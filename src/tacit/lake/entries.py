"""Which files count: an entry for each of them, named by the checksum of its bytes."""

from dataclasses import dataclass
from typing import Any

SUFFIX = ".parquet"


@dataclass(frozen=True)
class SegmentEntry:
    """One file of a manifest: its name, number of rows, size, checksum, and memory."""

    file: str
    rows: int
    bytes: int
    sha256: str
    memory: int
    """Bytes of its rows once decoded, which decides whether it can be merged."""


def entry_of(item: dict[str, Any]) -> SegmentEntry:
    """Read the JSON form of an entry; ValueError, TypeError or KeyError if it is malformed."""
    entry = SegmentEntry(**item)
    # The name must be derived from the checksum, so that a tampered manifest cannot point outside of its folder.
    if entry.file != entry.sha256 + SUFFIX or len(bytes.fromhex(entry.sha256)) != 32:
        raise ValueError
    return entry
