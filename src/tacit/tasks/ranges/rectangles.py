"""Rectangles of two or three ordered attributes, from any mechanism that a grid planner may choose.

One oracle over all combinations is the grid whose only member asks for single cells: see `tacit.post.grids.grid`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.asked import AskedLevels, asked_levels
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.moments import Moments
from tacit.errors import InvalidSpec
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.post.grids.grid import GridFit, fit_grid
from tacit.post.grids.shape import Heights
from tacit.post.trees.levels import Level


@dataclass(frozen=True, eq=False)
class Rectangles:
    """The fitted grid: every rectangle with its exact variance, and all rectangles consistent with each other."""

    fit: GridFit
    n: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of values of the attributes."""
        return self.fit.shape.sizes

    def rectangles(self, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> Estimate:
        """The shares of rectangles, both ends included on every side; one row of `low` and `high` per rectangle."""
        for ends in (*low, *high):
            if len(ends) != len(self.sizes):
                raise InvalidSpec(f"rectangle: {len(ends)} ends for {len(self.sizes)} attributes; give one each")
            if any(not 0 <= end < size for end, size in zip(ends, self.sizes, strict=True)):
                raise InvalidSpec("rectangle: an end is outside the domain of its attribute")
        pairs = list(zip(low, high, strict=True))
        if any(a > b for first, last in pairs for a, b in zip(first, last, strict=True)):
            raise InvalidSpec("rectangle: low is above high; give the lower end of every attribute first")
        # A rectangle is a 0/1 row over the flat cells of the grid.
        rows = np.array([self.fit.shape.corner(*pair) for pair in pairs]).reshape(-1, self.fit.shape.cells)
        return self._answered(rows, [tuple(zip(*pair, strict=True)) for pair in pairs])

    def nodes(self, heights: Heights) -> Estimate:
        """Return the shares of all nodes of these heights, with the variances and covariances of the fit."""
        shape = self.fit.shape
        marks = np.eye(int(np.prod(shape.nodes(heights))))
        return self._answered(shape.spread(marks, heights))

    def _answered(self, rows: F64, labels: Sequence[Any] | None = None) -> Estimate:
        """Return the estimate of linear answers, one row over the flat cells each."""
        if self.n == 0:
            return no_data(len(rows), labels)
        # The total is known: exactly one, without variance, whatever rounding the fit left.
        whole = np.all(rows == 1.0, axis=-1)
        value, variance = np.where(whole, 1.0, rows @ self.fit.leaves), np.where(whole, 0.0, self.fit.linear(rows))

        def combined(asked: F64) -> F64:
            return self.fit.linear(asked @ rows)

        return Estimate(
            value,
            variance,
            self.n,
            labels=labels,
            covariance=combined,
            effective=self.fit.respondents,
            law=self.fit.law(rows),
        )


def solve_rectangles(
    sizes: Sequence[int], mechanism: Mechanism, tally: Any, *, respondents: int | None = None
) -> Rectangles:
    """Return the fitted rectangles of a tally of a grid, or of one oracle over all combinations.

    `respondents` are those the reports were drawn from at random, where they were asked other questions too.
    """
    everybody = float(tally.n if respondents is None else respondents)
    asked = asked_levels(mechanism)
    if asked is not None and mechanism.drawn_from is not None:
        found, fanouts = levels_of(asked, tally), asked.fanouts
    elif asked is not None:  # One oracle over all combinations, which it knows by their index alone.
        found, fanouts = {(0,) * len(sizes): member_level(mechanism, tally)}, sizes
    else:
        raise InvalidSpec(f"ranges: {mechanism.kind} does not answer rectangles; plan the question with task ranges")
    return Rectangles(fit_grid(sizes, fanouts, found, respondents=everybody), tally.n)


def levels_of(asked: AskedLevels, tally: Any) -> dict[Heights, Level]:
    """What every member was told."""
    members = zip(asked.heights, asked.members, asked.tallies(tally), strict=True)
    return {heights: member_level(member, part) for heights, member, part in members}


def member_level(mechanism: Mechanism, tally: Any) -> Level:
    """Return one member's estimate as a level; its scale is 1/n of its own reports, infinite without any."""
    moments: Moments = getattr(mechanism, "moments")  # noqa: B009 - every oracle has them, and the rounded kind
    estimate = mechanism.estimate(tally)
    scale = 1 / estimate.effective if estimate.has_data else np.inf
    return Level(0, estimate.value, moments, scale, signed=isinstance(mechanism, HRRSigned))
