"""Vectors of shares: split into random summands, add up, permute, a million rows at a time.

A vector is a tuple of matrices of bytes with one row per report. Most modes have one matrix; peos-dgk has plain words
and, at one party, ciphertexts beside them. What a mode does with its vectors is an `Algebra`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from tacit.arrays import I64, U8, U64
from tacit.errors import InvalidSpec
from tacit.shuffle.crypto.stream import SEED_BYTES, AesStream
from tacit.shuffle.protocol.layouts import RowLayout

_PIECE_BYTES = 1 << 18
"""Of a stream: small enough to be added before it has left the processor's cache."""

Vector = tuple[U8, ...]
Body = bytes | bytearray | memoryview | U8


def as_rows(body: Body, count: int) -> U8:
    """A body as a matrix of `count` rows; InvalidSpec if it is not one."""
    flat = body.reshape(-1) if isinstance(body, np.ndarray) else np.frombuffer(body, np.uint8)
    width, rest = divmod(len(flat), count) if count else (0, len(flat))
    if rest:
        raise InvalidSpec(f"{len(flat)} bytes are not {count} rows of equal width")
    return flat.reshape(count, width)


def take_rows(rows: U8, order: I64) -> U8:
    """Rows in another order."""
    if rows.shape[1] % 8 or not rows.shape[1]:
        return rows[order]
    # Whole words move faster than bytes.
    return np.take(as_words(rows), order, axis=0).view(np.uint8)


def as_words(rows: U8) -> U64:
    """The little-endian words of rows, sharing their memory."""
    return np.ascontiguousarray(rows).view("<u8")


class Algebra(ABC):
    """How vectors of a mode are split, joined and handed over. Nothing here changes a vector that it was given."""

    is_cheap = False
    """Whether summands are joined so quickly that they can be kept in place of their sum."""

    @abstractmethod
    def split(self, vector: Vector, parts: int, stream: AesStream) -> list[U8]:
        """Random summands of a vector, as bodies to be sent."""

    @abstractmethod
    def join(self, count: int, own: Vector | None, bodies: Sequence[U8]) -> Vector:
        """The sum of an own vector (if any) and of received bodies of `count` rows."""

    @abstractmethod
    def output(self, vector: Vector, stream: AesStream) -> U8:
        """What a last hider hands to the collector."""

    @abstractmethod
    def accepts(self, body: U8) -> bool:
        """Whether a body has the width of a row of this mode."""

    def pack(self, vector: Vector, parts: int, stream: AesStream) -> list[U8]:
        """Random summands of a vector as they travel; `unpack` makes rows of them again."""
        return self.split(vector, parts, stream)

    def unpack(self, body: U8, count: int, *, is_rest: bool) -> U8 | None:
        """The rows of a body that travelled, None if it is of another size; `is_rest` for the last summand."""
        del is_rest
        rows = as_rows(body, count) if body.size % max(1, count) == 0 else None
        return rows if rows is not None and self.accepts(rows) else None

    def permute(self, vector: Vector, order: I64) -> Vector:
        """All matrices in the same new order."""
        return tuple(take_rows(rows, order) for rows in vector)


class PlainAlgebra(Algebra):
    """Rows that are added word by word, by exclusive or or modulo 2^64.

    All summands of a vector but the last are streams, and travel as their seeds: who holds a seed holds the rows.
    """

    is_cheap = True

    def __init__(self, layout: RowLayout) -> None:
        """Hold the layout."""
        self.layout = layout

    def split(self, vector: Vector, parts: int, stream: AesStream) -> list[U8]:
        """All summands but the last are the stream; the last completes the sum. Memory: the summands themselves."""
        (rows,) = vector
        drawn = [stream.rows(len(rows), self.layout.width) for _ in range(parts - 1)]
        # A copy, because the caller may have to store the vector as it was.
        last = rows.copy()
        for share in drawn:
            self._subtract(last, share)
        return [*drawn, last]

    def pack(self, vector: Vector, parts: int, stream: AesStream) -> list[U8]:
        """Seeds of random summands, and the last summand, which completes the vector. Memory: one vector."""
        seeds = [stream.rows(1, SEED_BYTES) for _ in range(parts - 1)]
        rest = vector[0].copy()
        for seed in seeds:
            self._with_stream(self._subtract, rest, seed)
        return [*seeds, rest]

    def unpack(self, body: U8, count: int, *, is_rest: bool) -> U8 | None:
        """The rows of a rest, or a seed as it is: `join` tells them apart by their width."""
        if is_rest:
            return super().unpack(body, count, is_rest=True)
        return body.reshape(1, SEED_BYTES) if body.size == SEED_BYTES else None

    def join(self, count: int, own: Vector | None, bodies: Sequence[U8]) -> Vector:
        """The sum, in a new matrix; seeds count as their streams."""
        total = own[0].copy() if own else np.zeros((count, self.layout.width), np.uint8)
        for body in bodies:
            if body.shape == (1, SEED_BYTES) and self.layout.width != SEED_BYTES:
                self._with_stream(self._add, total, body)
            else:
                self._add(total, body)
        return (total,)

    def _with_stream(self, change: Callable[[U8, U8], None], total: U8, seed: U8) -> None:
        """Add or subtract the stream of a seed piece by piece: as rows it would be another vector."""
        stream, width = AesStream(seed.tobytes()), self.layout.width
        drawn = np.empty((max(1, _PIECE_BYTES // width), width), np.uint8)
        for start in range(0, len(total), len(drawn)):
            part = total[start : start + len(drawn)]
            stream.fill(drawn[: len(part)].data.cast("B"))
            change(part, drawn[: len(part)])

    def output(self, vector: Vector, stream: AesStream) -> U8:
        """The rows as they are."""
        del stream
        return vector[0]

    def accepts(self, body: U8) -> bool:
        """Rows of the layout's width."""
        return body.shape[1] == self.layout.width

    def _add(self, total: U8, share: U8) -> None:
        target, source, edge = as_words(total), as_words(share), self.layout.xored
        target[:, :edge] ^= source[:, :edge]
        target[:, edge:] += source[:, edge:]

    def _subtract(self, total: U8, share: U8) -> None:
        target, source, edge = as_words(total), as_words(share), self.layout.xored
        target[:, :edge] ^= source[:, :edge]
        target[:, edge:] -= source[:, edge:]
