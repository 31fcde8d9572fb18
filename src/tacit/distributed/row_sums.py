"""Partial sums of SQL queries over rows, as bytes that add exactly.

Sums of doubles depend on the order in which they are added, and an engine does not promise one. So the sums of a
partition become integers with a common power of two, which add without rounding, and only the sum of all is rounded,
once. What tells how many rows carry an answer (`Weights`, for the minimum cohort) is merged in the order of the parts'
bytes instead, so that it does not depend on the order of partitions either.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from typing import Any

import msgspec
import numpy as np

from tacit.arrays import F64, I64
from tacit.sql.engine.aggregate import GroupSums
from tacit.sql.engine.run import PartialSums
from tacit.sql.engine.weights import Weights

Key = tuple[Any, ...]

_MANTISSA = 53
"""Bits of a double's mantissa: every finite double is an integer of so many bits times a power of two."""


@dataclass(frozen=True, eq=False)
class ExactSums:
    """Numbers as integers times 2^exponent: sums of doubles without rounding."""

    exponent: int
    integers: tuple[int, ...]

    @classmethod
    def of(cls, values: F64) -> "ExactSums":
        """The same numbers, exactly; they must be finite."""
        mantissas, exponents = np.frexp(values.reshape(-1))
        whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64).tolist()
        # Zero has the exponent 0, which would only make the integers of small numbers longer.
        least = int(exponents[mantissas != 0].min(initial=_MANTISSA)) - _MANTISSA
        shifts = np.where(mantissas == 0, 0, exponents - _MANTISSA - least).tolist()
        return cls(least, tuple(number << shift for number, shift in zip(whole, shifts, strict=True)))

    def __add__(self, other: "ExactSums") -> "ExactSums":
        """The sums, exactly."""
        least = min(self.exponent, other.exponent)
        mine, theirs = self.exponent - least, other.exponent - least
        pairs = zip(self.integers, other.integers, strict=True)
        return ExactSums(least, tuple((a << mine) + (b << theirs) for a, b in pairs))

    def rounded(self) -> F64:
        """The nearest doubles. The quotient of integers is rounded once, and correctly."""
        up, down = 1 << max(0, self.exponent), 1 << max(0, -self.exponent)
        return np.array([number * up / down for number in self.integers], np.float64)

    def placed(self, places: I64, count: int, lines: int) -> "ExactSums":
        """Renumber groups, of which every line has one number each: group i becomes group `places[i]` of `count`."""
        groups, found = len(places), [0] * (lines * count)
        for line in range(lines):
            for i, place in enumerate(places.tolist()):
                found[line * count + place] = self.integers[line * groups + i]
        return ExactSums(self.exponent, tuple(found))


@dataclass(frozen=True, eq=False)
class _Job:
    """`GroupSums` with an exact table."""

    centre: float
    n: I64
    asked: Weights
    table: ExactSums
    shape: tuple[int, int]
    """Of the table, without the groups."""

    def placed(self, places: I64, count: int) -> "_Job":
        n = np.zeros(count, np.int64)
        n[places] = self.n
        table = self.table.placed(places, count, math.prod(self.shape))
        return _Job(self.centre, n, self.asked.placed(places, count), table, self.shape)

    def __add__(self, other: "_Job") -> "_Job":
        centre = self.centre if self.n.any() else other.centre
        return _Job(centre, self.n + other.n, self.asked + other.asked, self.table + other.table, self.shape)

    def sums(self) -> GroupSums:
        table = self.table.rounded().reshape(*self.shape, len(self.n))
        return GroupSums(self.centre, self.n, self.asked, table)


@dataclass(frozen=True, eq=False)
class _Query:
    keys: tuple[Key, ...]
    jobs: tuple[_Job, ...]


def pack(partials: Sequence[PartialSums]) -> bytes:
    """The partial sums of some queries over one partition, as bytes."""
    return _dump([_Query(one.keys, tuple(map(_exact, one.sums))) for one in partials])


def _exact(sums: GroupSums) -> _Job:
    rows, columns, _ = sums.table.shape
    return _Job(sums.centre, sums.n, sums.asked, ExactSums.of(sums.table), (rows, columns))


def merge(parts: Iterable[bytes]) -> bytes:
    """Partial sums of the same queries over several partitions, as those of all; in any order the same bytes."""
    return _dump(_merged(parts))


def unpack(parts: Iterable[bytes]) -> list[PartialSums]:
    """The sums of every query over all parts, rounded."""
    return [PartialSums(one.keys, tuple(job.sums() for job in one.jobs)) for one in _merged(parts)]


def _merged(parts: Iterable[bytes]) -> list[_Query]:
    # By their bytes, as weights are rounded when they are merged.
    return reduce(_added, map(_load, sorted(parts)))


def _added(here: list[_Query], there: list[_Query]) -> list[_Query]:
    return [_add(a, b) for a, b in zip(here, there, strict=True)]


def _add(a: _Query, b: _Query) -> _Query:
    if not a.jobs or not b.jobs:
        return a if a.jobs else b
    keys = {key: place for place, key in enumerate(map(_comparable, a.keys))}
    for key in map(_comparable, b.keys):
        keys.setdefault(key, len(keys))
    known, at = np.arange(len(a.keys)), np.array([keys[_comparable(key)] for key in b.keys], np.int64)
    pairs = zip(a.jobs, b.jobs, strict=True)
    jobs = tuple(mine.placed(known, len(keys)) + theirs.placed(at, len(keys)) for mine, theirs in pairs)
    return _Query((*a.keys, *(key for key in b.keys if keys[_comparable(key)] >= len(a.keys))), jobs)


def _comparable(key: Key) -> Key:
    """A key that equals itself also where it holds NaN, and in which 1 is not True."""
    return tuple((type(item).__name__, None if item != item else item) for item in key)


_TIMES: dict[str, Any] = {"date": date.fromisoformat, "datetime": datetime.fromisoformat}


def _told(value: Any) -> Any:
    """A value of a group as MessagePack has it; times become a pair of their type and ISO text."""
    return [type(value).__name__, value.isoformat()] if isinstance(value, date) else value


def _value(told: Any) -> Any:
    return _TIMES[told[0]](told[1]) if isinstance(told, list) else told


def _dump(queries: Sequence[_Query]) -> bytes:
    told = [
        [
            [[_told(item) for item in key] for key in query.keys],
            [
                [
                    job.centre, job.n.tolist(), job.asked.n.tolist(), job.asked.moments.tolist(),
                    job.table.exponent, [hex(number) for number in job.table.integers], job.shape,
                ]
                for job in query.jobs
            ],
        ]
        for query in queries
    ]  # fmt: skip
    return msgspec.msgpack.encode(told)


def _load(data: bytes) -> list[_Query]:
    found: list[_Query] = []
    for keys, jobs in msgspec.msgpack.decode(data):
        found.append(_Query(tuple(tuple(map(_value, key)) for key in keys), tuple(_job(*job) for job in jobs)))
    return found


def _job(
    centre: float, n: list[int], asked: list[int], moments: Any, exponent: int, integers: list[str], shape: list[int]
) -> _Job:
    weights = Weights(np.array(asked, np.int64), np.array(moments, np.float64).reshape(-1, len(asked)))
    exact = ExactSums(exponent, tuple(int(text, 16) for text in integers))
    return _Job(centre, np.array(n, np.int64), weights, exact, (shape[0], shape[1]))
