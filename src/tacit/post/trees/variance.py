"""The exact variance of linear answers from a fitted tree, given the respondents.

An answer puts a coefficient on every node of every level. Per level, the variance follows from four sums over the
nodes (see `Moments.of_sums`), plus the respondents' own spread: each level was answered by a random part of everybody.
The parts are disjoint, and the contributions of one respondent to all levels add up to its contribution to the answer,
so that the covariance of the parts takes off exactly the spread of the answer, once. True shares are plugged in.
Kulkarni's dissertation, sections 5.4.1 to 5.4.3, bounds this by the noise alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.statistics.score import Law, law_between
from tacit.post.trees.levels import Level, LevelSums, TreeFit, scaled
from tacit.post.trees.spans import spans

# Entries of (answer, leaf) arrays, and ranges, that are worked on at a time.
_CHUNK_CELLS = 1 << 22
_CHUNK_SPANS = 1 << 16


def chunks(count: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover `count` items."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


@dataclass(frozen=True, eq=False)
class TreeVariance:
    """Variances of answers from a fit, against all respondents."""

    fit: TreeFit
    respondents: float

    @cached_property
    def _masses(self) -> dict[int, F64]:
        """Plugged-in share of every node, by height."""
        shape, masses = self.fit.shape, {0: self.fit.leaves}
        for height in range(1, shape.top + 1):
            masses[height] = shape.parents(masses[height - 1])
        return masses

    def linear(self, rows: F64) -> F64:
        """Return the variance of `rows @ leaves`; infinite where an answer needs a level that nobody answered."""
        step = max(1, _CHUNK_CELLS // self.fit.shape.size)
        parts = [self._linear(rows[part]) for part in chunks(len(rows), step)]
        return np.concatenate([np.zeros(0), *parts])

    def _linear(self, rows: F64) -> F64:
        variance = -self._spread(rows)
        for height, coefficients in self._coefficients(rows):
            level = self.fit.at.get(height)
            if level is None:
                unknown = np.any(np.abs(coefficients) > 1e-12, axis=-1)
                variance = np.where(unknown, np.inf, variance)
            else:
                variance = variance + level.variance(self._sums(level, coefficients), self.respondents)
        return np.clip(variance, 0, None)

    def _spread(self, rows: F64) -> F64:
        """The variance of one respondent's contribution to the answers, over n - 1."""
        leaves = self.fit.leaves
        return (rows**2 @ leaves - (rows @ leaves) ** 2) / max(1.0, self.respondents - 1)

    def _sums(self, level: Level, coefficients: F64) -> LevelSums:
        """The four sums of `Moments.of_sums`; in a signed level respondents count +1 or -1, so w f is a difference."""
        squares = coefficients**2
        own = self._masses[level.height + level.signed]
        mass = own
        if level.signed:
            halves = self._masses[level.height]
            first, second = halves[0::2], halves[1::2]
            mass = first.copy()
            mass[: len(second)] -= second
        return LevelSums(coefficients.sum(axis=-1), squares.sum(axis=-1), coefficients @ mass, squares @ own)

    def _coefficients(self, rows: F64) -> Iterator[tuple[int, F64]]:
        """What every level's estimates are multiplied with in an answer: the transpose of both passes."""
        # From the leaves up: a node's coefficient is its own weight less what its parent's surplus shares out to it.
        surplus: list[F64] = []
        gradient = rows
        for height in range(self.fit.shape.top):
            above = self._shared(gradient, height)
            surplus.append(gradient - self.fit.shape.spread(above, gradient.shape[-1]))
            gradient = above
        yield from self._signed(surplus) if self.fit.signed else self._plain(surplus)

    def _shared(self, gradient: F64, height: int) -> F64:
        """The second pass, transposed: what reaches the parents."""
        ordinary, last_full, last_edge = self.fit.shares(height)
        # Ordinary parents average their children; the last one weighs its last child apart.
        children = self.fit.shape.last_children(height + 1)
        above = self.fit.shape.parents(gradient) * ordinary
        others = gradient[..., -children:-1].sum(axis=-1) if children > 1 else 0.0
        above[..., -1] = others * last_full + gradient[..., -1] * last_edge
        return above

    def _signed(self, surplus: list[F64]) -> Iterator[tuple[int, F64]]:
        """Coefficients of Haar differences: half the difference of the sums over the two halves of a node."""
        shape = self.fit.shape
        for height, value in enumerate(surplus):
            first = value[..., 0::2].copy()
            second = value[..., 1::2]
            first[..., : second.shape[-1]] -= second
            if shape.last_children(height + 1) == 1:
                first[..., -1] = 0.0
            yield height, first / 2

    def _plain(self, surplus: list[F64]) -> Iterator[tuple[int, F64]]:
        """The first pass, transposed, from the top down."""
        shape, reached = self.fit.shape, None
        for height in range(shape.top - 1, -1, -1):
            reached = (
                surplus[height] if reached is None else surplus[height] + shape.spread(reached, shape.nodes(height))
            )
            step = self.fit.steps[height]
            yield height, scaled(reached, step.own)
            reached = scaled(reached, step.below)

    def reach(self, rows: F64) -> F64:
        """Return the most that one report, replaced by any other, moves `rows @ leaves`.

        A report belongs to one level. It moves the estimate of a node by at most the step of its mechanism over the
        level's reports, and may move all nodes at once: an upper bound for every kind, exact for unary ones.
        """
        step = max(1, _CHUNK_CELLS // self.fit.shape.size)
        parts = [self._reach(rows[part]) for part in chunks(len(rows), step)]
        return np.concatenate([np.zeros(0), *parts])

    def _reach(self, rows: F64) -> F64:
        furthest = np.zeros(len(rows))
        for height, coefficients in self._coefficients(rows):
            level = self.fit.at.get(height)
            if level is not None and not level.is_empty:
                moved = np.abs(coefficients).sum(axis=-1) * level.moments.step * level.scale
                furthest = np.maximum(furthest, moved)
        return furthest

    def spans(self, low: I64, high: I64, *, share: F64 | None = None) -> F64:
        """Return the variance of the mass of leaves low .. high - 1, for many pairs of boundaries at once."""
        pieces = [
            spans(self.fit, self.respondents, low[part], high[part], share=None if share is None else share[part])
            for part in chunks(len(low), _CHUNK_SPANS)
        ]
        return np.concatenate([np.zeros(0), *pieces])

    def law(self, low: I64, high: I64) -> Law:
        """Return how the variances of these ranges depend on their true shares, for score intervals.

        The whole domain (known) and ranges with infinite variance get a law of zeros.
        """
        # All three shares in one walk: for few ranges, the number of steps costs more than their length.
        shares = np.repeat([0.0, 0.5, 1.0], len(low))
        absent, even, everybody = np.split(self.spans(np.tile(low, 3), np.tile(high, 3), share=shares), 3)
        open_ended = (high - low < self.fit.shape.size) & np.isfinite(absent + even + everybody)
        sides = (np.where(open_ended, side, 0.0) for side in (absent, even, everybody))
        return law_between(*sides, step=np.where(open_ended, self._step, 0.0))

    @property
    def _step(self) -> float:
        """What one report changes about an answer: that of the level with the most reports, which weighs most."""
        return min(level.moments.step * level.scale for level in self.fit.at.values()) if self.fit.at else 0.0
