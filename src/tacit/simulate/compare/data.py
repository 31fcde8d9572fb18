"""Data to compare methods on: a value per respondent, several attributes, or counts; read in one pass."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import floor
from pathlib import Path
from typing import Any, cast

import numpy as np

from tacit.arrays import I64
from tacit.errors import InvalidSpec, NoData

MOST_VALUES = 1 << 16
"""The most different values of an attribute, or of a histogram; more are a task for heavy hitters."""

MOST_SPAN = 1 << 20
"""The longest range from the smallest to the largest integer."""

BUCKETS = 256
"""Numbers with fractions are put into so many buckets of equal width before their ranges are compared."""

_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class CountedValues:
    """How many respondents hold every value, in the order of the values."""

    counts: I64
    ordered: bool
    """Whether the order means something: numbers have one, labels have none."""

    @property
    def n(self) -> int:
        """Number of respondents."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class AttributeRecords:
    """A row per respondent with the index of the answer to every attribute, in as few bytes as hold them."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: Any

    @property
    def n(self) -> int:
        """Number of respondents."""
        return len(self.rows)


def _counts_file(path: str) -> Any:
    """A saved array of counts; refused where reading it would run code."""
    try:
        counts = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InvalidSpec(f"{path}: is not a numpy array that can be read without running code") from error
    if counts.dtype.kind not in "iuf" or not np.all((counts >= 0) & (counts == np.floor(counts))):
        raise InvalidSpec(f"{path}: must hold counts, whole numbers that are not negative")
    return _some(path, counts.astype(np.int64))


def _some(path: str, counts: Any) -> Any:
    if not counts.sum():
        raise NoData(f"{path}: holds no respondents")
    return counts


def _rows(path: str) -> Iterator[list[str]]:
    """The rows of a CSV file that are not empty."""
    # Spreadsheets begin a file with a byte order mark, which would else become part of the first name.
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        yield from (row for row in csv.reader(stream) if row)


def read_counted(path: str, *, column: str | None = None, ranges: bool = False) -> CountedValues:
    """Read the values of one question: a CSV file with one per line (a header is recognised), or counts in .npy.

    Of several columns one must be named. Integers stand for all integers between the least and the largest where
    `ranges` are compared, and else, as labels do, for the values that occur.
    """
    if path.endswith(".npy"):
        counts = _counts_file(path)
        if counts.ndim != 1:
            raise InvalidSpec(f"{path}: must hold one row of counts, has {counts.ndim} dimensions; use task marginals")
        # Mechanisms need two values at least, so that a lone one gets a neighbour that nobody holds.
        return CountedValues(np.pad(counts, (0, max(0, 2 - len(counts)))), True)
    found = _count(path, column)
    numbers = _numbers(list(found))
    if numbers is None:
        if ranges:
            raise InvalidSpec(f"{path}: ranges need numbers, and some values are text; compare task histogram")
        return _listed(path, [found[label] for label in sorted(found)], ordered=False)
    held = Counter[float]()
    # Different texts may be one number: "1", "1.0" and "1e0" are counted together.
    for label, number in zip(found, numbers, strict=True):
        held[number] += found[label]
    if not ranges:
        return _listed(path, [held[number] for number in sorted(held)], ordered=True)
    return CountedValues(_some(path, _spread(path, held)), True)


def _count(path: str, column: str | None) -> Counter[str]:
    """How often every text occurs in a column; the header is left out."""
    rows = _rows(path)
    first = next(rows, None)
    if first is None:
        raise NoData(f"{path}: is empty; write one value per line")
    names = [name.strip() for name in first]
    if column is None and len(first) > 1:
        raise InvalidSpec(
            f"{path}: has {len(first)} columns; name one with --column ({', '.join(names[:8])}), or compare marginals"
        )
    if column is not None and column not in names:
        raise InvalidSpec(f"{path}: there is no column '{column[:40]}', must be one of {', '.join(names[:8])}")
    place = 0 if column is None else names.index(column)
    found = Counter(row[place].strip() for row in rows if len(row) > place)
    # An empty field is no answer; a Counter does not mind if there is none.
    del found[""]
    # A named column proves that there is a header; without one the first line may be an answer like any other.
    if column is None and not _is_header(names[0], found):
        found[names[0]] += 1
    if not found:
        raise NoData(f"{path}: holds no values; write one per line, below an optional header")
    return found


def _is_header(first: str, found: Counter[str]) -> bool:
    """Whether the first line names the column: no value repeats it, or it is the only one that is no number."""
    numeric = _numbers(list(found)) is not None
    return not first or (_numbers([first]) is None if numeric else first not in found)


def _numbers(labels: Sequence[str]) -> list[float] | None:
    """The labels as numbers; None where one is not a finite number."""
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return None
    return numbers if all(map(np.isfinite, numbers)) else None


def _listed(path: str, counts: Sequence[int], *, ordered: bool) -> CountedValues:
    if len(counts) > MOST_VALUES:
        raise InvalidSpec(
            f"{path}: has {len(counts)} different values, at most {MOST_VALUES} are listed; compare task heavy-hitters"
        )
    held = np.array(counts, np.int64)
    return CountedValues(np.pad(held, (0, max(0, 2 - len(held)))), ordered)


def _spread(path: str, held: Counter[float]) -> I64:
    """Counts over all integers from the least to the largest, or over buckets where numbers have fractions."""
    low, high = min(held), max(held)
    whole = all(number == floor(number) for number in held)
    if whole and high - low >= MOST_SPAN:
        raise InvalidSpec(f"{path}: integers span {high - low + 1:.0f} values, at most {MOST_SPAN}; divide them first")
    size = max(2, int(high - low) + 1) if whole else BUCKETS
    counts = np.zeros(size, np.int64)
    width = (high - low) / size or 1.0  # One fraction alone is all in the first bucket.
    for number, count in held.items():
        # The largest number would fall just past the last bucket, and belongs to it.
        at = int(number - low) if whole else min(size - 1, int((number - low) / width))
        counts[at] += count
    return counts


class _Codes(dict[str, int]):
    """Numbers texts as they appear: looking up a new one gives it the next number."""

    def __missing__(self, label: str) -> int:
        self[label] = len(self)
        return self[label]


def read_records(path: str, *, columns: Sequence[str] | None = None) -> AttributeRecords:
    """Read several attributes: a CSV file whose first line is a header, or a .npy of counts with an axis for each."""
    if path.endswith(".npy"):
        return _table_records(path)
    rows = _rows(path)
    header = [name.strip() for name in next(rows, list[str]())]
    wanted = list(columns) if columns else header
    for name in wanted:
        if name not in header:
            raise InvalidSpec(f"{path}: there is no column '{name[:40]}', must be one of {', '.join(header[:8])}")
    if len(wanted) < 2:
        raise InvalidSpec(f"{path}: tables are of two columns or more, separated by commas below a header")
    places = [header.index(name) for name in wanted]
    codes = [_Codes() for _ in places]
    parts = list(_encoded(path, rows, len(header), places, codes))
    if not parts:
        raise NoData(f"{path}: holds no respondents below its header")
    return AttributeRecords(tuple(wanted), tuple(map(len, codes)), _packed(parts, codes))


def _encoded(
    path: str, rows: Iterable[list[str]], width: int, places: Sequence[int], codes: Sequence[_Codes]
) -> Iterator[list[Any]]:
    """The columns of every chunk of rows as numbers; only a chunk of text is in memory at a time."""
    stream = iter(rows)
    while chunk := list(islice(stream, _CHUNK)):
        if any(len(row) != width for row in chunk):
            raise InvalidSpec(f"{path}: has rows with more or fewer fields than the header")
        flat = list(zip(*chunk, strict=True))
        try:
            yield [
                np.fromiter(map(code.__getitem__, map(str.strip, flat[place])), np.uint16, len(chunk))
                for place, code in zip(places, codes, strict=True)
            ]
        # Number 2^16 does not fit uint16: the first value too many stops the reading, without a count of its own.
        except OverflowError:
            raise InvalidSpec(
                f"{path}: an attribute has more than {MOST_VALUES} values; name the others with --column"
            ) from None


def _packed(parts: Sequence[Sequence[Any]], codes: Sequence[_Codes]) -> Any:
    """One row per respondent; answers are numbered in the order of their texts."""
    # One array holds all columns, so that the attribute with the most values decides how wide each of them is.
    small = max(map(len, codes)) <= 1 << 8
    columns: list[Any] = []
    for i, code in enumerate(codes):
        rank = np.empty(len(code), np.uint8 if small else np.uint16)
        # Codes follow the order of the rows; ranks do not, so that shuffled files give the same table.
        rank[[code[label] for label in sorted(code)]] = np.arange(len(code))
        columns.append(rank[np.concatenate([part[i] for part in parts])])
    return np.stack(columns, axis=1)


def _table_records(path: str) -> AttributeRecords:
    counts = _counts_file(path)
    if counts.ndim < 2:
        raise InvalidSpec(f"{path}: must hold counts with an axis for every attribute, has one; use task histogram")
    times = cast("I64", counts.ravel())
    # A cell that is counted c times becomes c respondents:   counts 2 0 1  ->  cells 0 0 2
    cells = np.repeat(np.arange(len(times)), times)
    kind = np.uint8 if max(counts.shape) <= 1 << 8 else np.uint16
    rows = np.stack([column.astype(kind) for column in np.unravel_index(cells, counts.shape)], axis=1)
    return AttributeRecords(tuple(f"axis{i}" for i in range(counts.ndim)), counts.shape, rows)
