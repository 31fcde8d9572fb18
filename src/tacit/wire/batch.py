"""Report batches: what a client uploads. Binary for speed, with a JSON twin for curl and for beacons.

::

    magic "TCB1" | collection digest (32 bytes) | batch id (16 bytes) |
    blocks: member u32, count u32, count reports of that member's width

Integers are little-endian. Width is fixed per member, so a server decodes a block without looking at its reports; a
device sends one block of one. The batch id is made by the client and kept with the noisy bytes: sending the same
batch again never counts twice. Batches of a document with windows begin with "TCB2" instead, and have the window (u32)
after the batch id.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from tacit.errors import ReportRejected

MAGIC, WINDOWED = b"TCB1", b"TCB2"
"""The first bytes of a batch, and of one that names its window."""
MEDIA_TYPE = "application/vnd.tacit.batch"
# Magic, collection digest and batch id: offsets 0, 4 and 36 of a batch.
_HEAD = len(MAGIC) + 32 + 16
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Block:
    """Reports on one member of the mechanism (member 0 of a plain one), as wire bytes."""

    member: int
    count: int
    payload: bytes


@dataclass(frozen=True)
class Batch:
    """A batch: the reports of one upload, by member."""

    collection: str
    batch: bytes
    blocks: tuple[Block, ...]
    window: int | None = None
    """The window that all reports are about, where the document has windows."""

    @property
    def count(self) -> int:
        """Number of reports."""
        return sum(block.count for block in self.blocks)


def new_batch_id() -> bytes:
    """16 random bytes, drawn once and kept until the batch is acknowledged."""
    return secrets.token_bytes(16)


def invitation_hash(invitation: str) -> bytes:
    """The hash that is stored of an invitation, and that admits a sealed report to a shuffle."""
    # The prefix separates the domains: no invitation ever hashes to the hash of a token.
    return sha256(b"invitation:" + invitation.encode(errors="replace")).digest()


def encode_batch(batch: Batch) -> bytes:
    """Return the binary form of a batch."""
    head = bytes.fromhex(batch.collection) + batch.batch
    head = MAGIC + head if batch.window is None else WINDOWED + head + batch.window.to_bytes(4, "little")
    blocks = (
        block.member.to_bytes(4, "little") + block.count.to_bytes(4, "little") + block.payload for block in batch.blocks
    )
    return head + b"".join(blocks)


def read_head(data: bytes) -> tuple[str, bytes]:
    """Return collection id and batch id of a binary batch; the blocks are decoded once the collection is known."""
    magic = data[: len(MAGIC)]
    if len(data) < _HEAD + 4 * (magic == WINDOWED) or magic not in (MAGIC, WINDOWED):
        raise ReportRejected("batch: not a report batch; it begins with other bytes or is too short")
    return data[4:36].hex(), bytes(data[36:52])


def decode_batch(data: bytes, widths: Sequence[int]) -> Batch:
    """Decode a binary batch; `widths` are the report widths of the collection's members, in bytes."""
    collection, batch_id = read_head(data)
    blocks: list[Block] = []
    window = int.from_bytes(data[_HEAD : _HEAD + 4], "little") if data.startswith(WINDOWED) else None
    at = _HEAD if window is None else _HEAD + 4
    # Every block is checked against the bytes that are there before it is cut out.
    while at < len(data):
        if len(data) - at < 8:
            raise ReportRejected("batch: the last block is truncated")
        member, count = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 8], "little")
        if member >= len(widths):
            raise ReportRejected(f"batch: member is {member}, must be below {len(widths)}")
        # Python integers do not overflow, so a forged count only makes `end` too large.
        end = at + 8 + count * widths[member]
        if count == 0 or end > len(data):
            raise ReportRejected(f"batch: a block claims {count} reports of {widths[member]} bytes; it has other bytes")
        blocks.append(Block(member, count, bytes(data[at + 8 : end])))
        at = end
    return Batch(collection, batch_id, tuple(blocks), window)


def batch_to_json(batch: Batch, widths: Sequence[int]) -> dict[str, Any]:
    """Return the JSON form: one object per report, payloads in hexadecimal."""
    reports = [
        {
            "member": block.member,
            "report": block.payload[i * widths[block.member] : (i + 1) * widths[block.member]].hex(),
        }
        for block in batch.blocks
        for i in range(block.count)
    ]
    window = {} if batch.window is None else {"window": batch.window}
    return {"collection": batch.collection, "batch": batch.batch.hex(), "reports": reports} | window


def batch_from_json(value: Any, widths: Sequence[int]) -> Batch:
    """Read the JSON form; unknown fields, upper-case digits and wrong lengths are refused."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    window = fields.get("window")
    if fields.keys() - {"window"} != {"collection", "batch", "reports"} or not isinstance(fields["reports"], list):
        raise ReportRejected('batch: must be an object with "collection", "batch" and a list of "reports"')
    # `type` and not `isinstance`, as below; a window that is stated must be a number, and null is none.
    if "window" in fields and (type(window) is not int or not 0 <= window < 1 << 32):
        raise ReportRejected('batch: "window" must be the number of a window')
    blocks = tuple(_report(item, widths) for item in cast("list[Any]", fields["reports"]))
    return Batch(_hex(fields["collection"], 32).hex(), _hex(fields["batch"], 16), blocks, window)


def _report(value: Any, widths: Sequence[int]) -> Block:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    member = fields.get("member", 0)
    # `type` and not `isinstance`: JSON's true would pass for the integer 1.
    if not set(fields) <= {"member", "report"} or type(member) is not int or not 0 <= member < len(widths):
        raise ReportRejected(f'batch: a report must have "report" and "member" below {len(widths)}')
    return Block(member, 1, _hex(fields.get("report"), widths[member]))


def _hex(value: Any, size: int) -> bytes:
    if not isinstance(value, str) or len(value) != 2 * size or not set(value) <= _HEX:
        raise ReportRejected(f"batch: expected {size} bytes as {2 * size} lower-case hexadecimal digits")
    return bytes.fromhex(value)
