"""The manifest of a shard: which sealed segments hold its rows. It is kept where other collections keep a tally."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import ReportRejected

SUFFIX = ".parquet"
_START = b"["


@dataclass(frozen=True)
class Entry:
    """A segment: its file, what is in it, and the checksum that its bytes must have."""

    file: str
    rows: int
    bytes: int
    sha256: str
    memory: int
    """Bytes of its rows once they are read."""


def dump_manifest(entries: Iterable[Entry]) -> bytes:
    """The bytes of a manifest: a JSON list."""
    return json.dumps([asdict(entry) for entry in entries], separators=(",", ":")).encode()


def load_manifest(data: bytes | None) -> tuple[Entry, ...]:
    """The segments of a manifest; none where there is no manifest yet."""
    if data is None:
        return ()
    try:
        if not is_manifest(data):
            raise ValueError
        return tuple(_entry(item) for item in json.loads(data))
    except (ValueError, TypeError, KeyError):
        raise ReportRejected("segments: the stored manifest cannot be read") from None


def _entry(item: dict[str, Any]) -> Entry:
    entry = Entry(**item)
    # The name is made of the checksum alone, so that no manifest can point to another place.
    if entry.file != entry.sha256 + SUFFIX or len(bytes.fromhex(entry.sha256)) != 32:
        raise ValueError
    return entry


def is_manifest(tally: bytes) -> bool:
    """Whether a stored tally is a manifest; all others begin with letters."""
    return tally[:1] == _START
