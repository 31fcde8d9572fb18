"""Rectangles of ordered attributes, from any mechanism that a grid planner may choose.

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
from tacit.post.grids.grid import MOST_CELLS, MOST_RAGGED, GridFit, fit_grid
from tacit.post.grids.shape import GridShape, Heights
from tacit.post.grids.wide import WideFit, fit_wide
from tacit.post.trees.levels import Level
from tacit.tasks.ranges.pair_grids import PairRectangles, are_pairs, solve_pairs


@dataclass(frozen=True, eq=False)
class Rectangles:
    """The fitted grid: every rectangle with its exact variance, and all rectangles consistent with each other."""

    fit: GridFit | WideFit
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
        labels = [tuple(zip(*pair, strict=True)) for pair in pairs]
        if isinstance(self.fit, WideFit):
            return self._boxes(self.fit, low, high, labels)
        # A rectangle is a 0/1 row over the flat cells of the grid.
        rows = np.array([self.fit.shape.corner(*pair) for pair in pairs]).reshape(-1, self.fit.shape.cells)
        return self._answered(rows, labels)

    def nodes(self, heights: Heights) -> Estimate:
        """Return the shares of all nodes of these heights, with the variances and covariances of the fit."""
        shape = self.fit.shape
        if isinstance(self.fit, WideFit):
            widths = [fanout**height for fanout, height in zip(shape.fanouts, heights, strict=True)]
            at = list(np.ndindex(*shape.nodes(heights)))
            low = [[node * width for node, width in zip(nodes, widths, strict=True)] for nodes in at]
            ends = [zip(first, widths, shape.sizes, strict=True) for first in low]
            high = [[min(start + width, size) - 1 for start, width, size in sides] for sides in ends]
            return self._boxes(self.fit, low, high, None)
        marks = np.eye(int(np.prod(shape.nodes(heights))))
        return self._answered(shape.spread(marks, heights))

    def _boxes(
        self, fit: WideFit, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]], labels: Sequence[Any] | None
    ) -> Estimate:
        """Return the estimate of rectangles of a grid with too many cells for a row of them per answer."""
        if self.n == 0:
            return no_data(len(low), labels)
        found = fit.boxes(low, high)

        def combined(asked: F64) -> F64:
            # One combination of rectangles at a time: each is a row over all cells.
            return np.concatenate([fit.linear(self._mixed(fit, row, low, high)) for row in np.atleast_2d(asked)])

        return Estimate(
            found.value,
            found.variance,
            self.n,
            labels=labels,
            covariance=combined,
            effective=fit.respondents,
            law=found.law,
        )

    @staticmethod
    def _mixed(fit: WideFit, weights: F64, low: Sequence[Sequence[int]], high: Sequence[Sequence[int]]) -> F64:
        """The row over all cells of a weighted sum of rectangles."""
        table = np.zeros(fit.shape.sizes)
        for weight, first, last in zip(weights, low, high, strict=True):
            table[tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))] += weight
        return table.reshape(1, -1)

    def _answered(self, rows: F64, labels: Sequence[Any] | None = None) -> Estimate:
        """Return the estimate of linear answers, one row over the flat cells each."""
        assert isinstance(self.fit, GridFit)
        fit = self.fit
        if self.n == 0:
            return no_data(len(rows), labels)
        # The total is known: exactly one, without variance, whatever rounding the fit left.
        whole = np.all(rows == 1.0, axis=-1)
        value, variance = np.where(whole, 1.0, rows @ fit.leaves), np.where(whole, 0.0, fit.linear(rows))

        def combined(asked: F64) -> F64:
            return fit.linear(asked @ rows)

        return Estimate(
            value,
            variance,
            self.n,
            labels=labels,
            covariance=combined,
            effective=fit.respondents,
            law=fit.law(rows),
        )


def solve_rectangles(
    sizes: Sequence[int], mechanism: Mechanism, tally: Any, *, respondents: int | None = None
) -> Rectangles | PairRectangles:
    """Return the fitted rectangles of a tally of a grid, of grids of pairs, or of one oracle over all combinations.

    `respondents` are those the reports were drawn from at random, where they were asked other questions too.
    """
    everybody = float(tally.n if respondents is None else respondents)
    asked = asked_levels(mechanism)
    if asked is not None and mechanism.drawn_from is not None and are_pairs(asked):
        return solve_pairs(asked, tally, respondents=respondents)
    if asked is not None and mechanism.drawn_from is not None:
        found, fanouts = levels_of(asked, tally), asked.fanouts
    elif asked is not None:  # One oracle over all combinations, which it knows by their index alone.
        found, fanouts = {(0,) * len(sizes): member_level(mechanism, tally)}, sizes
    else:
        raise InvalidSpec(f"ranges: {mechanism.kind} does not answer rectangles; plan the question with task ranges")
    shape = GridShape(tuple(sizes), tuple(fanouts))
    # Small grids are solved for any linear answer; large ones, and large ragged ones, rectangle by rectangle.
    small = shape.cells <= (MOST_CELLS if shape.complete else MOST_RAGGED)
    fit = (fit_grid if small else fit_wide)(sizes, fanouts, found, respondents=everybody)
    return Rectangles(fit, tally.n)


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
