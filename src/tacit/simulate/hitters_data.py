"""Populations from files: a value per line, value and count split by a tab, or columns of a CSV; also gzipped."""

import csv
import gzip
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from unicodedata import normalize

import numpy as np

from tacit.device.domains.domain import Bits, Domain
from tacit.device.domains.reals import Integers
from tacit.device.domains.text import Text
from tacit.errors import InvalidSpec, InvalidValue
from tacit.simulate.hitters import Population

Rows = Iterator[tuple[str, int]]


@dataclass(frozen=True)
class Columns:
    """Which columns of a CSV file are meant; names of all columns where it has no header."""

    value: str | None = None
    count: str | None = None
    names: Sequence[str] = ()

    @property
    def given(self) -> bool:
        """Whether any column was named, so that the file is read as CSV whatever its name."""
        return bool(self.value or self.count or self.names)


@dataclass(frozen=True)
class Read:
    """A population, and what became of the rows of its file."""

    population: Population
    skipped: int
    cut: int


def value_domain(values: str, bits: int, alphabet: str | None = None, length: int | None = None) -> Domain:
    """Return the domain of a file's values: text in `bits` bits of UTF-8 or over an alphabet, bits, or integers."""
    if values == "bits":
        return Bits("value", bits)
    if values == "integers":
        # The domain of integers ends at 2^52; longer ones are bit strings that are written as integers.
        return Integers("value", 0, (1 << min(bits, 52)) - 1) if bits <= 52 else Bits("value", bits)
    if alphabet is None and bits % 8:
        raise InvalidSpec(f"text: bits is {bits}, must be a multiple of 8 for text as bytes; or name an alphabet")
    return Text("value", alphabet or "bytes", length or (bits // 8 if alphabet is None else _longest(alphabet)))


def _longest(alphabet: str) -> int:
    return Text.most_symbols(Text("value", alphabet, 1).fanout)


def read_population(
    path: str, domain: Domain, *, columns: Columns, integers: bool = False, lower: bool = False
) -> Read:
    """Read respondents from a file. Too long text is cut, values outside the domain are skipped; both are counted."""
    with _opened(path) as stream:
        is_csv = columns.given or path.removesuffix(".gz").endswith(".csv")
        # Equal texts are added up first, so that every different one is encoded once. A count of -1 is a bad row.
        rows = Counter[str]()
        skipped = 0
        for value, count in _csv_rows(stream, columns) if is_csv else _lines(stream):
            skipped += count < 0
            if count > 0:
                rows[value] += count
    encode = _encoder(domain, integers, lower)
    held, cut = Counter[int](), 0
    for value, count in rows.items():
        try:
            index, shorter = encode(value)
        except InvalidValue:
            skipped += count
            continue
        held[index] += count
        cut += count if shorter else 0
    values = np.fromiter(held.keys(), np.uint64, len(held))
    counts = np.fromiter(held.values(), np.int64, len(held))
    return Read(Population(domain, values, counts), skipped, cut)


def _opened(path: str) -> TextIO:
    # gzip by its magic bytes: names of downloads are not to be trusted.
    with Path(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if packed:
        return gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="")
    return Path(path).open(encoding="utf-8", errors="replace", newline="")


def _lines(stream: TextIO) -> Rows:
    """One value a line, or value and count split at the last tab; spaces belong to the value."""
    for line in stream:
        text = line.rstrip("\r\n")
        value, tab, count = text.rpartition("\t")
        yield (value, int(count)) if tab and count.isdecimal() and len(count) <= 15 else (text, 1)


def _csv_rows(stream: TextIO, columns: Columns) -> Rows:
    reader = csv.reader(stream)
    nothing: list[str] = []
    names = list(columns.names) or next(reader, nothing)
    at = _place(names, columns.value) if columns.value or len(names) > 1 else 0
    count_at = None if columns.count is None else _place(names, columns.count)
    for row in reader:
        if at >= len(row):
            yield "", -1
        elif count_at is None:
            yield row[at], 1
        else:
            text = row[count_at] if count_at < len(row) else ""
            yield row[at], int(text) if text.strip().isdecimal() else -1


def _place(names: list[str], name: str | None) -> int:
    if name is None:
        raise InvalidSpec(f"the file has {len(names)} columns; name one with --column")
    if name not in names:
        raise InvalidSpec(f"there is no column {name[:40]!r}; the columns are {', '.join(names)[:200]}")
    return names.index(name)


def _encoder(domain: Domain, integers: bool, lower: bool) -> Callable[[str], tuple[int, bool]]:
    """A function from the text of a row to its index, and whether it was cut."""
    if isinstance(domain, Bits) and integers:
        return lambda text: (_below(text, domain.size), False)
    if not isinstance(domain, Text):
        return lambda text: (domain.encode(text), False)

    def encode(text: str) -> tuple[int, bool]:
        whole = normalize("NFC", text.lower() if lower else text)
        short = _cut(domain, whole)
        return domain.encode(short), short != whole

    return encode


def _below(text: str, size: int) -> int:
    index = int(text) if text.strip().isdecimal() and len(text) <= 24 else size
    if index >= size:
        raise InvalidValue(f"value: must be an integer from 0 to {size - 1}")
    return index


def _cut(domain: Text, text: str) -> str:
    """The longest prefix, in whole characters, that the domain has room for."""
    if not domain.is_bytes:
        return text[: domain.length]
    # "ignore" drops the bytes of a character that the cut went through.
    return text.encode()[: domain.length].decode("utf-8", "ignore")
