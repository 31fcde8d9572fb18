"""Counts that are nearer to the truth beside the unbiased ones: what all groups together and the number of rows tell.

A COUNT by private groups is a histogram, and gets the method of least estimated risk (`post.frequencies.select`); a
single COUNT is cut to what is possible. Both are biased, so they stand beside the estimate and never in its place.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.core.estimate import Estimate
from tacit.post.frequencies.methods import Processed, default_method, hull, process
from tacit.post.frequencies.select import select_methods
from tacit.sql.engine.aggregate import AggregateCell, BetterCount
from tacit.sql.engine.query import Query
from tacit.sql.parse.syntax import columns_in

CLIPPED = "clipped"
"""The method of a single count: cut to the numbers from zero to that of its rows."""

_MOST_SELECTED = 8
"""With more public groups than this the method is the usual one of its size: choosing takes replays for each."""

Cells = list[list[list[AggregateCell]]]
"""By private group, aggregate and public group."""


def with_better(query: Query, cells: Cells) -> Cells:
    """Return the cells with a better count beside every estimated COUNT."""
    for a, item in enumerate(query.select.aggregates):
        if item.function != "count" or query.numbers[a] is not None:
            continue
        asked = (*columns_in(query.select.condition), *columns_in(item.condition))
        whole = not any(query.schema.dimension(name) is not None for name in asked)
        publics = len(cells[0][a]) if cells else 0
        for g in range(publics):
            column = [private[a][g] for private in cells]
            for private, better in zip(cells, _better(column, whole=whole, few=publics <= _MOST_SELECTED), strict=True):
                private[a][g] = replace(private[a][g], better=better)
    return cells


def _better(column: Sequence[AggregateCell], *, whole: bool, few: bool) -> list[BetterCount | None]:
    """The better counts of all private groups of one public group; none where one of them is withheld or lost."""
    n = max((cell.n for cell in column), default=0)
    if n < 1 or any(cell.status not in ("estimate", "exact") for cell in column):
        return [None] * len(column)
    # Groups that a condition rules out are exactly zero; the others then need not make up all rows.
    noisy = [cell for cell in column if cell.status == "estimate"]
    made = iter(_counts(noisy, n, whole=whole and len(noisy) == len(column), few=few))
    return [next(made) if cell.status == "estimate" else None for cell in column]


def _counts(cells: Sequence[AggregateCell], n: int, *, whole: bool, few: bool) -> list[BetterCount]:
    value, error, low, high = (
        np.array([getattr(cell, name) for cell in cells]) / n for name in ("estimate", "standard_error", "low", "high")
    )
    made, name = value.clip(0, 1), CLIPPED
    if len(cells) > 1:
        found = _processed(Estimate(value, error**2, n), whole=whole, few=few)
        made, name = found.value, found.method.name
    ends = hull((low, high), (made, made))
    rows = zip(made * n, ends[0] * n, ends[1] * n, strict=True)
    return [BetterCount(float(count), float(least), float(most), name) for count, least, most in rows]


def _processed(estimate: Estimate, *, whole: bool, few: bool) -> Processed:
    if not whole:
        return process(estimate, "npmle", whole=False)
    return process(estimate, select_methods(estimate)["cells"].pick if few else default_method(cells=len(estimate)))
