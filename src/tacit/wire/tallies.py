"""Tallies as bytes for a database, where the mechanism is known: counts, logs and one tally per member.

::

    magic "TCTL" | version u16 | digest of the mechanism (32 bytes) | state u8 | n u64 | arrays

An array is its length in bytes as u64, then its items, little-endian. Files that travel on their own carry their spec
and a checksum: see `tacit.wire.files`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, MemberCounts, Part, PerMember
from tacit.core.tally import Counts, Log
from tacit.core.tally_check import check_tally
from tacit.errors import ReportRejected

_MAGIC, _VERSION = b"TCTL", 1
_COUNTS, _LOG, _MEMBERS = 0, 1, 2
# Offsets: magic 0, version 4, digest 6, state 38, n 39, arrays 47.
_HEAD = len(_MAGIC) + 2 + 32 + 1 + 8


def empty_tally(mechanism: Mechanism) -> AnyTally:
    """Return the tally of no reports, which also says which state a mechanism keeps."""
    return mechanism.tally(mechanism.decode(b""))


def dump_tally(tally: AnyTally) -> bytes:
    """Return the bytes of a tally; `load_tally` with the same mechanism gives it back."""
    return _head(tally, tally.n) + b"".join(_framed(array) for array in tally_arrays(tally))


def _head(tally: AnyTally, n: int) -> bytes:
    state = _MEMBERS if isinstance(tally, PerMember) else _LOG if isinstance(tally, Log) else _COUNTS
    digest = bytes.fromhex(tally.mechanism.digest)
    return _MAGIC + _VERSION.to_bytes(2, "little") + digest + bytes([state]) + n.to_bytes(8, "little")


def tally_of_arrays(mechanism: Mechanism, n: int, arrays: Sequence[npt.NDArray[Any]]) -> AnyTally:
    """The tally whose arrays `tally_arrays` gave, or sums of such arrays; checked like one that was stored."""
    data = b"".join(_framed(array) for array in arrays)
    return load_tally(mechanism, _head(empty_tally(mechanism), n) + data)


def _framed(array: npt.NDArray[Any]) -> bytes:
    """An array with its length in bytes in front."""
    data = np.ascontiguousarray(array).tobytes()
    return len(data).to_bytes(8, "little") + data


def _whole(*numbers: int) -> npt.NDArray[Any]:
    return np.array(numbers, "<i8")


def tally_arrays(tally: AnyTally) -> list[npt.NDArray[Any]]:
    """The arrays of a tally in the order in which they are stored; without weights, those of weights are empty."""
    if isinstance(tally, PerMember):
        return _member_arrays(tally)
    if isinstance(tally, Log):
        reports = np.concatenate(tally.chunks) if tally.chunks else np.zeros(0, np.uint8)
        return [reports, np.concatenate(tally.weights).astype("<i8") if tally.weights else _whole()]
    cells = [tally.cells.astype("<i8"), tally.cells2.astype("<i8") if tally.is_weighted else _whole()]
    return [_whole(tally.total, tally.total2), *cells]


def _member_arrays(tally: PerMember) -> list[npt.NDArray[Any]]:
    """Part by part: members with the same mechanism share a table; logs and nested families come one by one."""
    arrays: list[npt.NDArray[Any]] = []
    for part in tally.parts:
        if isinstance(part, MemberCounts):
            numbers = [part.n, part.total, part.total2, part.cells, part.cells2 if part.is_weighted else _whole()]
            arrays += [array.astype("<i8") for array in numbers]
        else:
            for member in part:
                arrays += [_whole(member.n), *tally_arrays(member)]
    return arrays


class _Arrays:
    """The framed arrays of a tally, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def bytes(self) -> bytes:
        """Return the bytes of the next array."""
        start = self._at + 8
        end = start + int.from_bytes(self._data[self._at : start], "little")
        if end > len(self._data):
            raise ReportRejected("tally: the stored bytes are truncated")
        self._at = end
        return self._data[start:end]

    def integers(self, size: int, *, optional: bool = False) -> npt.NDArray[np.int64]:
        """Return the next array as integers; it must have this size, or be empty if it is optional."""
        data = self.bytes()
        if len(data) != 8 * size and (data or not optional):
            raise ReportRejected("tally: the stored cells do not fit the mechanism")
        return np.frombuffer(data, "<i8").astype(np.int64)

    def end(self) -> None:
        """Raise ReportRejected if bytes are left over."""
        if self._at != len(self._data):
            raise ReportRejected("tally: the stored bytes go on after the last array")


def load_tally(mechanism: Mechanism, data: bytes) -> AnyTally:
    """Return the tally of a mechanism from its bytes, checked; those of another mechanism are refused."""
    if data[:6] != _MAGIC + _VERSION.to_bytes(2, "little") or len(data) < _HEAD:
        raise ReportRejected("tally: the stored bytes are not a tally of this version")
    if data[6:38] != bytes.fromhex(mechanism.digest):
        raise ReportRejected(f"tally: stored under {data[6:38].hex()[:6]}, must be {mechanism.digest[:6]}")
    n, arrays, empty = int.from_bytes(data[39:_HEAD], "little"), _Arrays(data, _HEAD), empty_tally(mechanism)
    tally = _loaders(empty)[data[38]](mechanism, n, arrays) if data[38] in _loaders(empty) else None
    if tally is None:
        raise ReportRejected("tally: the stored state is not the one that the mechanism keeps")
    # Trailing bytes are refused, then the numbers themselves: the database is not trusted.
    arrays.end()
    check_tally(mechanism, tally)
    return tally


def _loaders(empty: AnyTally) -> dict[int, Callable[[Mechanism, int, _Arrays], AnyTally]]:
    """The loader of the one state that a mechanism keeps, by its number; `empty` is the mechanism's empty tally."""
    if isinstance(empty, PerMember):
        return {_MEMBERS: lambda mechanism, n, arrays: _load_members(empty, n, arrays)}
    if isinstance(empty, Log):
        return {_LOG: _load_log}
    return {_COUNTS: lambda mechanism, n, arrays: _load_counts(mechanism, n, arrays, empty.cells.shape)}


def _load_counts(mechanism: Mechanism, n: int, arrays: _Arrays, shape: Sequence[int]) -> Counts:
    total, total2 = arrays.integers(2).tolist()
    size = int(np.prod(shape))
    cells = arrays.integers(size).reshape(shape)
    squares = arrays.integers(size, optional=True)
    return Counts(mechanism, n, cells, squares.reshape(shape) if squares.size else cells, total, total2)


def _load_log(mechanism: Mechanism, n: int, arrays: _Arrays) -> Log:
    reports = mechanism.decode(arrays.bytes())
    if len(reports) != n:
        raise ReportRejected("tally: the stored log has another number of reports than it states")
    weights = arrays.integers(n, optional=True)
    return Log(mechanism, (reports,), (weights,) if weights.size else None)


def _load_members(empty: PerMember, n: int, arrays: _Arrays) -> PerMember:
    parts = tuple(_load_part(part, arrays) for part in empty.parts)
    return PerMember(empty.mechanism, n, empty.layout, parts)


def _load_part(empty: Part, arrays: _Arrays) -> Part:
    if isinstance(empty, MemberCounts):
        rows, shape = len(empty.n), empty.cells.shape
        n, total, total2 = (arrays.integers(rows) for _ in range(3))
        cells = arrays.integers(empty.cells.size).reshape(shape)
        squares = arrays.integers(empty.cells.size, optional=True)
        return MemberCounts(empty.mechanism, n, cells, squares.reshape(shape) if squares.size else cells, total, total2)
    return tuple(_load_member(member, arrays) for member in empty)


def _load_member(empty: Log | PerMember, arrays: _Arrays) -> Log | PerMember:
    # Members that are not in a table state their own number of reports first.
    n = int(arrays.integers(1)[0])
    if isinstance(empty, PerMember):
        return _load_members(empty, n, arrays)
    assert isinstance(empty.mechanism, Mechanism)
    return _load_log(empty.mechanism, n, arrays)
