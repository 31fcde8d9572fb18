"""Events that tell two answers apart, found on a pilot sample of reports on each.

Three families of events, none of which trusts the program: the declared likelihood ratio of a report is at least a
level; a bit of the wire bytes is set or clear; the report is one of the most frequent ones. An event is chosen on the
pilot alone, so that the reports that test it are fresh.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit import kernels
from tacit.arrays import F64, U8, Mask
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.members import as_bytes

_LEVELS = 64
"""Levels of the likelihood ratio that are tried; where there are more, quantiles of them."""
_FREQUENT = 64
"""Reports that are tried as events of their own, the most frequent ones of either answer."""
_MOST_BITS = 1 << 12
_CAUTION = 3.0
"""Standard errors that are taken off a pilot ratio, so that an event with few hits has to be that much better."""


@dataclass(frozen=True)
class ReportEvent:
    """A set of reports, more frequent under the first of two answers than under the second."""

    name: str
    holds: Callable[[Reports], Mask]


@dataclass(frozen=True)
class Pilot:
    """An ordered pair of answers and the reports on both that an event is looked for in."""

    mechanism: Mechanism
    values: tuple[Any, Any]
    reports: tuple[Reports, Reports]

    def best(self) -> tuple[float, ReportEvent]:
        """Return the event that promises the largest ratio of the first answer to the second, and that promise."""
        found = max(self._candidates(), key=lambda one: one[0])
        return found if found[0] > -np.inf else (found[0], _everything())

    def _candidates(self) -> Iterator[tuple[float, ReportEvent]]:
        for hits, others, event in (*self._ratios(), *self._frequent(), *self._bits()):
            yield _score(hits, others, *map(len, self.reports)), event

    def _ratios(self) -> Iterator[tuple[int, int, ReportEvent]]:
        """Level sets of the declared likelihood ratio: the best events against a program that is what it says."""
        first, second = (np.sort(self._ratio(reports)) for reports in self.reports)
        levels = np.unique(np.concatenate([first, second]))
        if len(levels) > _LEVELS:
            levels = np.unique(np.quantile(levels, np.linspace(0, 1, _LEVELS)))
        for level in levels.tolist():
            event = ReportEvent(f"declared log ratio at least {level:g}", lambda r, at=level: self._ratio(r) >= at)
            yield _at_least(first, level), _at_least(second, level), event

    def _ratio(self, reports: Reports) -> F64:
        # Rounded, so that sums of the same logarithms in another order are one level.
        first, second = (self.mechanism.log_prob(reports, value) for value in self.values)
        with np.errstate(invalid="ignore"):
            return np.round(np.nan_to_num(first - second), 9)

    def _frequent(self) -> Iterator[tuple[int, int, ReportEvent]]:
        """Single reports: whatever a program prints too often."""
        first, second = (_counted(reports) for reports in self.reports)
        for code in sorted(first, key=lambda one: (-first[one], one))[:_FREQUENT]:
            event = ReportEvent(f"report is {code.hex()}", lambda r, at=code: np.asarray(_codes(r) == np.void(at)))
            yield first[code], second.get(code, 0), event

    def _bits(self) -> Iterator[tuple[int, int, ReportEvent]]:
        """Single bits of the wire bytes: a value that shows in what should be noise, such as a seed."""
        first, second = (_ones(as_bytes(reports)) for reports in self.reports)
        n, m = map(len, self.reports)
        for bit, (a, b) in enumerate(zip(first, second, strict=True)):
            for to, hits, others in ((1, a, b), (0, n - a, m - b)):
                event = ReportEvent(f"bit {bit} is {to}", lambda r, at=bit, to=to: _bit(as_bytes(r), at) == to)
                yield hits, others, event


def _at_least(ordered: F64, level: float) -> int:
    """How many of these ascending numbers are not below a level."""
    return len(ordered) - int(np.searchsorted(ordered, level))


def _counted(reports: Reports) -> dict[bytes, int]:
    codes, counts = np.unique(_codes(reports), return_counts=True)
    return dict(zip((bytes(code) for code in codes), counts.tolist(), strict=True))


def _ones(rows: U8) -> list[int]:
    """How often every bit is set, of the first few thousand."""
    return kernels.bit_columns(rows, min(8 * rows.shape[1], _MOST_BITS), None).tolist()


def _everything() -> ReportEvent:
    return ReportEvent("any report", lambda reports: np.ones(len(reports), np.bool_))


def _bit(rows: U8, at: int) -> U8:
    return rows[:, at >> 3] >> np.uint8(at & 7) & np.uint8(1)


def _codes(reports: Reports) -> "np.ndarray[Any, np.dtype[np.void]]":
    """Every report as one opaque item of its wire bytes, which compare and sort as bytes do."""
    rows = np.ascontiguousarray(as_bytes(reports))
    return rows.view(np.dtype((np.void, rows.shape[1]))).reshape(-1)


def _score(hits: int, others: int, runs: int, other_runs: int) -> float:
    """The log ratio of two shares less some standard errors of it; half a hit is added to each."""
    a, b = hits + 0.5, others + 0.5
    error = np.sqrt(max(0.0, 1 / a - 1 / (runs + 1)) + max(0.0, 1 / b - 1 / (other_runs + 1)))
    return float(np.log(a / (runs + 1)) - np.log(b / (other_runs + 1)) - _CAUTION * error)
