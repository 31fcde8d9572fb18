"""Counts that are nearer to the truth beside the unbiased ones: what all groups together and the number of rows tell.

A COUNT by private groups is a histogram, and gets the method of least estimated risk (`post.frequencies.select`). That
of a range of an ordered column is monotone (`engine.monotone`), and any other single COUNT is cut to what is possible.
All are biased, so they stand beside the estimate and never in its place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.core.estimate import Estimate
from tacit.post.frequencies.methods import Processed, default_method, hull, process
from tacit.post.frequencies.select import select_methods
from tacit.sql.engine.aggregate import AggregateCell, BetterCount
from tacit.sql.engine.query import Query
from tacit.sql.parse.syntax import ColumnRef, columns_in

MONOTONE = "monotone"
"""The method of a range of an ordered column: from the nearest distribution function to the counts of its prefixes."""

CLIPPED = "clipped"
"""The method of any other single count: cut to the numbers from zero to that of its rows."""

_NEAR = 1.5
"""A monotone count stays within so many standard errors of the unbiased one."""

_MOST_SELECTED = 8
"""With more public groups than this the method is the usual one of its size: choosing takes replays for each."""

Cells = list[list[list[AggregateCell]]]
"""By private group, aggregate and public group."""


def with_better(query: Query, cells: Cells, ranges: Mapping[int, float]) -> Cells:
    """Return the cells with a better count beside every estimated COUNT.

    `ranges` are shares of the rows in ranges of an ordered column, by place of the aggregate (`engine.monotone`).
    """
    ordered = _is_ordered(query)
    for a, item in enumerate(query.select.aggregates):
        if item.function != "count" or query.numbers[a] is not None:
            continue
        asked = (*columns_in(query.select.condition), *columns_in(item.condition))
        whole = not any(query.schema.dimension(name) is not None for name in asked)
        publics = len(cells[0][a]) if cells else 0
        for g in range(publics):
            column = [private[a][g] for private in cells]
            choice = _Choice(whole, publics <= _MOST_SELECTED, ordered, ranges.get(a))
            for private, better in zip(cells, _better(column, choice), strict=True):
                private[a][g] = replace(private[a][g], better=better)
    return cells


@dataclass(frozen=True)
class _Choice:
    """What decides how the counts of one aggregate are made better."""

    whole: bool
    """Whether the private groups make up all rows."""
    few: bool
    """Whether there are so few public groups that the method is chosen for each."""
    ordered: bool
    """Whether the private groups come in the order of their values."""
    share: float | None
    """The monotone share of a single range; None where there is none."""


def _is_ordered(query: Query) -> bool:
    """Whether the private groups are the values of one ordered column."""
    names = [item.name for item in query.private if isinstance(item, ColumnRef)]
    places = [place for name in names if (place := query.schema.dimension(name)) is not None]
    return len(places) == 1 and query.schema.dimensions[places[0]].is_ordinal


def _better(column: Sequence[AggregateCell], choice: _Choice) -> list[BetterCount | None]:
    """The better counts of all private groups of one public group; none where one of them is withheld or lost."""
    n = max((cell.n for cell in column), default=0)
    if n < 1 or any(cell.status not in ("estimate", "exact") for cell in column):
        return [None] * len(column)
    # Groups that a condition rules out are exactly zero; the others then need not make up all rows.
    noisy = [cell for cell in column if cell.status == "estimate"]
    made = iter(_counts(noisy, n, replace(choice, whole=choice.whole and len(noisy) == len(column))))
    return [next(made) if cell.status == "estimate" else None for cell in column]


def _counts(cells: Sequence[AggregateCell], n: int, choice: _Choice) -> list[BetterCount]:
    value, error, low, high = (
        np.array([getattr(cell, name) for cell in cells]) / n for name in ("estimate", "standard_error", "low", "high")
    )
    made, name = value.clip(0, 1), CLIPPED
    if len(cells) > 1:
        found = _processed(Estimate(value, error**2, n), choice)
        made, name = found.value, found.method.name
    elif choice.share is not None:
        # Within 1.5 standard errors of the unbiased count the root risk is at most 2.5 of them, whatever the data and
        # however badly a design that was made for other ranges knows the prefixes.
        near = np.clip(choice.share, value - _NEAR * error, value + _NEAR * error)
        made, name = near.clip(0, 1), MONOTONE
    ends = hull((low, high), (made, made))
    rows = zip(made * n, ends[0] * n, ends[1] * n, strict=True)
    return [BetterCount(float(count), float(least), float(most), name) for count, least, most in rows]


def _processed(estimate: Estimate, choice: _Choice) -> Processed:
    if not choice.whole:
        return process(estimate, "npmle", whole=False)
    if not choice.few:
        return process(estimate, default_method(cells=len(estimate)))
    return process(estimate, select_methods(estimate, ordered=choice.ordered)["cells"].pick)
