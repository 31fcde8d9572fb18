"""Read a column of values from CSV as a stream; values are private, so none is ever printed, not even in errors."""

import csv
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TextIO

import click
import numpy as np

from tacit.arrays import U64
from tacit.errors import InvalidValue

Encode = Callable[[str], int]
"""From the text of a cell to an index; raises ValueError or InvalidValue for what is none."""
_CHUNK = 1 << 16


class CsvColumn:
    """One column of a CSV stream as indices; unparsable rows are counted, never shown."""

    def __init__(self, stream: TextIO, encode: Encode, column: str | None) -> None:
        """Find the column, and tell from the first row whether the stream has a header."""
        self._rows, self._encode, self.skipped, self.first_bad = _rows(stream), encode, 0, 0
        self._number = 0
        nothing: list[str] = []
        first = next(self._rows, nothing)
        self._index, is_header = _locate(first, column, self._parses)
        # A first row of values has been read already and comes first in the first chunk.
        self._pending = [] if is_header or not first else [first]

    def _parses(self, cell: str) -> bool:
        try:
            self._encode(cell)
        except (ValueError, InvalidValue):
            return False
        return True

    def chunks(self) -> Iterator[U64]:
        """Yield indices, up to 65,536 at a time; rows that cannot be read are skipped and counted."""
        while rows := self._pending + list(islice(self._rows, _CHUNK - len(self._pending))):
            self._pending = []
            indices = [index for row in rows if (index := self._one(row)) is not None]
            yield np.array(indices, np.uint64)

    def _one(self, row: list[str]) -> int | None:
        """Return the index of a row, or None, counted, for one that cannot be read."""
        self._number += 1
        try:
            return self._encode(row[self._index].strip())
        except (ValueError, InvalidValue, IndexError):
            self.skipped += 1
            self.first_bad = self.first_bad or self._number
            return None


def _rows(stream: TextIO) -> Iterator[list[str]]:
    """Yield the rows of a CSV stream; one that the reader refuses (a cell beyond its limit) comes as an empty one."""
    reader = csv.reader(stream)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield []


def _locate(first: list[str], column: str | None, parses: Callable[[str], bool]) -> tuple[int, bool]:
    """Return the column's number, and whether the first row is a header: it names the column, or is not a value."""
    if column is None:
        if len(first) > 1:
            raise click.UsageError(f"the file has {len(first)} columns; name one with --column")
        return 0, bool(first) and not parses(first[0].strip())
    if column in first:
        return first.index(column), True
    if column.isdecimal() and int(column) < len(first):
        return int(column), not parses(first[int(column)].strip())
    raise click.UsageError(f"there is no column {column!r}; the first row has {len(first)} cells")


def integer_encoder(size: int) -> Encode:
    """Return the encoder of values that are already indices below the size."""

    def encode(text: str) -> int:
        index = int(text)
        if not 0 <= index < size:
            raise InvalidValue(f"a value is outside the domain, must be an integer from 0 to {size - 1}")
        return index

    return encode
