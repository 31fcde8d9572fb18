"""`tacit.ranges` and `tacit.quantiles`: any range of ordered values, and the values at shares of the respondents."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, cast

import numpy as np

from tacit.device.arguments import explained
from tacit.device.domains.reals import Buckets, Integers, as_number
from tacit.device.numbers.budget import Declared
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.library.columns import Column, column_of
from tacit.library.domains import Scope, number_scope
from tacit.library.finding import Ends, Finding
from tacit.library.inquiry import RESPONDENTS, Inquiry, respondents
from tacit.library.shares import plan_single, task_answer
from tacit.library.show import MOST_ROWS, Shown
from tacit.tasks.ranges.ranges import Ranges, solve_ranges
from tacit.tasks.ranges.task import RANGES

_SHOWN_RANGES = 10
MONOTONE = "shares of ranges are answered monotone: none is negative, and they add up; `answers.ranges` are unbiased"
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""The quantiles that are told where nobody says which."""


@dataclass(frozen=True, eq=False, repr=False)
class RangesFinding(Finding):
    """The share of every value in order; `range` and `quantiles` ask the same reports for more."""

    def range(self, low: Any = None, high: Any = None) -> Finding:
        """Return the share of the values from low to high, both included; an end that is left out is the domain's."""
        scope, solved = self.inquiry.scopes[0], cast("Ranges", self.answers)
        first = 0 if low is None else _index(scope, "low", low)
        last = scope.domain.size - 1 if high is None else _upper(scope, first, high)
        labels, found = [f"{scope.label(first)} … {scope.label(last)}"], solved.shares([first], [last])
        return Finding(self.inquiry, self.tally, self.names, labels, found.value, found.interval, "share",
                       replace(found.raw, labels=labels), found.estimate, solved, (MONOTONE,))  # fmt: skip

    def _shown(self) -> Shown:
        """Of many values, ten ranges instead: single ones are mostly noise."""
        whole, size = super()._shown(), self.inquiry.scopes[0].domain.size
        if size <= MOST_ROWS:
            return whole
        scope, width = self.inquiry.scopes[0], -(-size // _SHOWN_RANGES)
        # The last range is shorter where the width does not divide the size.
        first = np.arange(0, size, width)
        last = np.minimum(first + width, size) - 1
        found = cast("Ranges", self.answers).shares(first, last)
        names = [f"{scope.label(a)} … {scope.label(b)}" for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        rows = list(zip(names, found.value.tolist(), *(end.tolist() for end in found.interval()), strict=True))
        more = f"{size:,} values in {len(rows)} ranges; range(low, high) asks for any other, to_pandas() has all values"
        return replace(whole, rows=rows, notes=(more, MONOTONE, *whole.notes))

    def quantiles(self, shares: Sequence[float] = SHARES) -> Finding:
        """Return the values below which these shares of the respondents lie."""
        return _quantiles(_checked_shares(shares), self.inquiry, self.tally)


def _index(scope: Scope, name: str, value: Any) -> int:
    try:
        return scope.domain.encode(scope.filled(value))
    except InvalidValue:
        first, last = scope.label(0), scope.label(scope.domain.size - 1)
        raise InvalidSpec(f"ranges: {name} is outside the domain, must be from {first} to {last}") from None


def _upper(scope: Scope, first: int, high: Any) -> int:
    """The last index of a range; a bucket that only begins at its upper end is not part of it."""
    last, domain = _index(scope, "high", high), scope.domain
    if not isinstance(domain, Buckets) or last == domain.size - 1:
        return last
    return last - (last > first and as_number(high) == as_number(domain.edges[last - domain.open_below]))


def _name(inquiry: Inquiry) -> str:
    return str(getattr(inquiry.domain, "name", "value"))


def _leaves(inquiry: Inquiry, tally: Any) -> Finding:
    answer, scope = task_answer(RANGES, inquiry, tally), inquiry.scopes[0]
    labels = scope.all_labels() if len(answer.raw) == scope.domain.size else list(answer.raw.labels or ())
    raw, solved = replace(answer.raw, labels=labels), solve_ranges(inquiry.mechanism, tally)
    return RangesFinding(inquiry, tally, (_name(inquiry),), labels, raw.value, raw.interval, "share", raw,
                         answer.consistent, solved, is_line=True)  # fmt: skip


@explained
def ask_ranges(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS, low: Any = None,
    high: Any = None, bins: int | None = None, domain: Any = None, name: str = "value",
) -> Inquiry:  # fmt: skip
    """Plan the ranges of ordered values."""
    scope = number_scope("ranges", name, domain, column, low=low, high=high, bins=bins)
    return plan_single(RANGES, "ranges", scope, epsilon, respondents("ranges", n, column), find=_leaves)


@explained
def ranges(
    values: Any, epsilon: Declared | None = None, *, low: Any = None, high: Any = None, bins: int | None = None,
    domain: Any = None, name: str = "value", coins: Coins | None = None,
) -> RangesFinding:  # fmt: skip
    """Return the shares of ordered values, from which any range is answered: `found.range(18, 65)`.

    Values are whole numbers or dates from `low` to `high`, numbers with fractions in `bins` buckets, or labels that
    `domain` lists in their order.

    >>> found = ranges([20, 35, 35, 60] * 10_000, epsilon=1, low=0, high=99)
    >>> low, high = found.range(30, 40).interval(0.999999)
    >>> bool(low[0] < 0.5 < high[0])
    True
    """
    column = column_of("ranges", values)
    inquiry = ask_ranges(column, epsilon=epsilon, low=low, high=high, bins=bins, domain=domain, name=name)
    return cast("RangesFinding", inquiry.simulate((column,), coins))


def _checked_shares(shares: Any) -> tuple[float, ...]:
    given: list[Any] = list(cast("Iterable[Any]", shares)) if isinstance(shares, Iterable) else [shares]
    if not given or not all(isinstance(share, Real) and 0 <= float(share) <= 1 for share in given):
        raise InvalidSpec("quantiles: shares must be numbers from 0 to 1, such as shares=[0.25, 0.5, 0.75]")
    return tuple(float(share) for share in given)


def _quantiles(shares: tuple[float, ...], inquiry: Inquiry, tally: Any) -> Finding:
    solved, scope = solve_ranges(inquiry.mechanism, tally), inquiry.scopes[0]

    def column(name: str, level: float, end: str) -> Any:
        indices = [solved.quantile(share, level=level)[name] for share in shares]
        found = [None if i is None else _place(scope, i, end) for i in indices]
        return np.array(found) if isinstance(scope.domain, (Integers, Buckets)) and None not in found else found

    def ends(level: float) -> Ends:
        return column("low", level, "low"), column("high", level, "high")

    # Quantiles have no variance of their own: their intervals are those of prefixes, turned round.
    value = column("index", 0.95, "middle")
    return Finding(inquiry, tally, ("share",), list(shares), value, ends, _name(inquiry), answers=solved)


def _place(scope: Scope, index: int, end: str) -> Any:
    """The value at an index; of a bucket its middle, or the end that an interval reaches to."""
    domain = scope.domain
    if not isinstance(domain, Buckets):
        return scope.label(index)
    edges = [float(edge) for edge in domain.edges]
    place = index - domain.open_below
    low, high = edges[max(0, place)], edges[min(len(edges) - 1, place + 1)]
    return {"low": low, "high": high, "middle": (low + high) / 2}[end]


@explained
def ask_quantiles(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS,
    shares: Sequence[float] = SHARES, low: Any = None, high: Any = None, bins: int | None = None, domain: Any = None,
    name: str = "value",
) -> Inquiry:  # fmt: skip
    """Plan quantiles of ordered values: as ranges, which they are read from."""
    scope = number_scope("quantiles", name, domain, column, low=low, high=high, bins=bins)
    find = partial(_quantiles, _checked_shares(shares))
    return plan_single(RANGES, "quantiles", scope, epsilon, respondents("quantiles", n, column), find=find)


@explained
def quantiles(
    values: Any, epsilon: Declared | None = None, *, shares: Sequence[float] = SHARES, low: Any = None,
    high: Any = None, bins: int | None = None, domain: Any = None, name: str = "value", coins: Coins | None = None,
) -> Finding:  # fmt: skip
    """Return the values below which shares of the respondents lie, such as the median (0.5); values as in `ranges`.

    >>> found = quantiles(list(range(100)) * 300, epsilon=2, shares=[0.5], low=0, high=99)
    >>> low, high = found.interval()
    >>> bool(low[0] <= found.value[0] <= high[0]), 40 < int(found.value[0]) < 60
    (True, True)
    """
    column = column_of("quantiles", values)
    inquiry = ask_quantiles(
        column, epsilon=epsilon, shares=shares, low=low, high=high, bins=bins, domain=domain, name=name
    )
    return inquiry.simulate((column,), coins)
