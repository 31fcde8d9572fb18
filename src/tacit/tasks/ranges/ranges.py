"""Ranges, prefixes and quantiles of one ordered question, from any mechanism that a range planner may choose.

Flat oracles, hierarchical histograms and the Haar transform are all trees (a flat oracle is the tree whose root has
every leaf as a child), so one fit answers for all of them: see `tacit.post.trees.levels`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.core.asked import AskedLevels, asked_tree
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.level import check_level
from tacit.core.statistics.moments import Moments
from tacit.core.statistics.score import Law
from tacit.core.tally import Counts, Log
from tacit.errors import InvalidSpec
from tacit.numeric.square_wave import SquareWave
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.post.frequencies.isotonic import monotone_distribution
from tacit.post.frequencies.methods import Processed, find_method
from tacit.post.trees.levels import Level, fit_levels
from tacit.post.trees.variance import TreeVariance
from tacit.tasks.ranges.waves import NOTE, fit_waves

_QUANTILE_POINTS = 1024

LEAST_HEAVY = 0.001
"""The smallest share that heavy intervals may be asked for."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """The fitted tree of an ordered domain: every range with its exact variance, all consistent with each other.

    Leaves are raw least-squares values: unbiased, possibly negative, summing to one. `spans` gives the variance of the
    mass between two boundaries, `linear` that of any linear answer, `law` how the first depends on the true mass.
    """

    leaves: F64
    n: int
    respondents: float
    spans: Callable[[I64, I64], F64]
    linear: Callable[[F64], F64]
    law: Callable[[I64, I64], Law | None] = lambda low, high: None
    reach: Callable[[F64], F64] | None = None
    """How far one report can move linear answers; None where that is not known."""
    note: str = ""
    """Why leaves are not unbiased and variances approximate; empty for trees, where they are neither."""

    @property
    def size(self) -> int:
        """The number of leaves."""
        return len(self.leaves)

    @cached_property
    def cumulative(self) -> F64:
        """The raw mass below every boundary 0 .. size. It is unbiased and therefore not monotone."""
        return np.concatenate([[0.0], np.cumsum(self.leaves)])

    @cached_property
    def monotone(self) -> F64:
        """The nearest cumulative distribution function by isotonic regression: monotone, within [0, 1], and biased.

        All prefixes weigh the same: weights by their variance gain little.
        """
        return monotone_distribution(self.cumulative)

    def shares(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Processed:
        """Return the shares of ranges of leaves as they are answered: monotone, with the raw estimate beside.

        No share is negative and shares of ranges that make up another add up to it. Biased; the intervals are the raw
        ones, cut to [0, 1] and stretched to hold the answer, and cover because those do.
        """
        raw = self.ranges(low, high)
        start, end = self._ends(low, high)
        value = self.monotone[end] - self.monotone[start] if self.n else raw.value
        return Processed(find_method("monotone"), raw, replace(raw, value=value, covariance=None))

    def ranges(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Estimate:
        """Return the raw shares of ranges of leaves, both ends included: unbiased, and possibly negative."""
        start, end = self._ends(low, high)
        labels = list(zip(start.tolist(), (end - 1).tolist(), strict=True))
        if self.n == 0:
            return no_data(len(start), labels)
        # Boundaries, not leaves, from here on: range low .. high lies between the boundaries start = low, end = high +
        # 1.
        value = self.cumulative[end] - self.cumulative[start]
        whole = (start == 0) & (end == self.size)
        variance = np.where(whole, 0.0, self.spans(start, end))
        return Estimate(
            np.where(whole, 1.0, value),
            variance,
            self.n,
            labels=labels,
            effective=self.respondents,
            law=self.law(start, end),
        )

    def _ends(self, low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[I64, I64]:
        """Check ranges of leaves and return their boundaries: low, and high + 1."""
        first, last = np.atleast_1d(np.asarray(low)), np.atleast_1d(np.asarray(high))
        if first.dtype.kind not in "iu" or last.dtype.kind not in "iu" or first.shape != last.shape:
            raise InvalidSpec("range: low and high must be integers, as many of one as of the other")
        if first.size and (int(first.min()) < 0 or int(last.max()) >= self.size):
            raise InvalidSpec(f"range: an end is outside the domain, must be from 0 to {self.size - 1}")
        if np.any(first > last):
            raise InvalidSpec("range: low is above high; give the lower end first")
        return first.astype(np.int64), last.astype(np.int64) + 1

    def prefixes(self, last: npt.ArrayLike) -> Estimate:
        """Return the raw shares of the leaves up to and including `last`."""
        ends = np.atleast_1d(np.asarray(last))
        return self.ranges(np.zeros(len(ends), np.int64), ends)

    def histogram(self) -> Estimate:
        """Return the raw share of every leaf, with the variances and covariances of the fit."""
        at = np.arange(self.size)
        if self.n == 0:
            return no_data(self.size)
        return Estimate(
            self.leaves,
            self.spans(at, at + 1),
            self.n,
            covariance=self.linear,
            effective=self.respondents,
            law=self.law(at, at + 1),
        )

    def cdf(self, *, level: float = 0.95, simultaneous: bool = False, points: int = 512) -> dict[str, list[Any]]:
        """Return the distribution function at up to `points` leaves with a band, pointwise or for all leaves together.

        The simultaneous band uses Šidák's inequality, which holds for normal errors however they are correlated.
        """
        check_level(level)
        at = np.unique(np.linspace(0, self.size - 1, min(points, self.size)).round().astype(np.int64))
        answered = self.shares(np.zeros(len(at), np.int64), at)
        # The prefix of all leaves is known, so size - 1 intervals must hold at once.
        inside = level ** (1 / max(1, self.size - 1)) if simultaneous else level
        raw = answered.raw
        columns = (raw.value, answered.value, raw.standard_error, *answered.interval(inside))
        names = ("estimate", "consistent", "standard_error", "low", "high")
        return {"index": at.tolist()} | {
            name: [_finite(x) for x in column] for name, column in zip(names, columns, strict=True)
        }

    def quantile(self, share: float, *, level: float = 0.95) -> dict[str, Any]:
        """The first leaf at which the monotone distribution reaches a share, and an interval of leaves around it.

        The true one is the first leaf whose prefix holds the share. The interval starts after the prefixes that are
        surely too small and ends with the first after which all surely hold it: errors are those at the share itself.
        """
        if np.ndim(share):
            raise InvalidSpec("quantile: share is a list; ask for one at a time: [quantile(share) for share in shares]")
        if not 0 <= share <= 1:
            raise InvalidSpec(f"quantile: {share} is not a share, must be from 0 to 1")
        if self.n == 0:
            return {"share": share, "index": None, "low": None, "high": None}
        at, (places, prefixes) = self._reach(share), self._coarse
        low, high = _plausible(share, places, prefixes.interval(level))
        if len(places) < self.size:  # Look again, leaf by leaf, between the points around both ends.
            step = -(-self.size // len(places))
            near = [np.arange(max(0, end - step), min(self.size, end + step)) for end in (low, high)]
            fine = np.unique(np.concatenate([places, *near]))
            low, high = _plausible(share, fine, self.prefixes(fine).interval(level))
        return {"share": share, "index": at, "low": min(low, at), "high": max(high, at)}

    @cached_property
    def _coarse(self) -> tuple[I64, Estimate]:
        """Leaves spread over the domain and the prefixes up to them, where the search for any quantile starts.

        Coarse to fine: variances of a thousand prefixes are cheap, those of a million leaves are not.
        """
        places = np.unique(np.linspace(-1, self.size - 1, min(self.size + 1, _QUANTILE_POINTS)).astype(np.int64))[1:]
        return places, self.prefixes(places)

    def heavy(self, threshold: float, *, level: float = 0.95) -> list[dict[str, Any]]:
        """Return the shortest dyadic intervals whose share, as it is answered, is at least `threshold`.

        An interval is reported where neither half reaches the threshold. The search halves from the whole domain down;
        noise can hide a heavy half, and variances grow as intervals get shorter.
        """
        if not LEAST_HEAVY <= threshold <= 1:
            raise InvalidSpec(f"heavy: threshold is {threshold}, must be from {LEAST_HEAVY} to 1")
        shortest: list[tuple[int, int]] = []
        frontier = [(0, self.size)] if self.n else []
        while frontier:
            # One level of halves at a time. An interval none of whose halves is heavy is a shortest one.
            halves = {(a, b): [(a, (a + b) // 2), ((a + b) // 2, b)] for a, b in frontier if b - a > 1}
            heavy = [half for pair in halves.values() for half in pair if self._mass(half) >= threshold]
            heavy_set = set(heavy)
            shortest += [whole for whole in frontier if not heavy_set.intersection(halves.get(whole, ()))]
            frontier = heavy
        ends = np.array(sorted(shortest), np.int64).reshape(-1, 2)
        found = self.shares(ends[:, 0], ends[:, 1] - 1)
        columns = (*ends.T, found.value, found.raw.standard_error, *found.interval(level))
        names = ("first", "last", "estimate", "standard_error", "low", "high")
        rows = (dict(zip(names, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True))
        return [row | {"last": row["last"] - 1} for row in rows]

    def _mass(self, ends: tuple[int, int]) -> float:
        return float(self.monotone[ends[1]] - self.monotone[ends[0]])

    def _reach(self, share: float) -> int:
        leaf = int(np.searchsorted(self.monotone[1:], min(max(share, 0.0), 1.0), side="left"))
        return min(leaf, self.size - 1)


def _plausible(share: float, places: I64, ends: tuple[F64, F64]) -> tuple[int, int]:
    """The first and the last leaf that may be the quantile, by inverting the intervals of prefixes at `places`."""
    small, enough = ends[1] < share, ends[0] >= share
    before = int(np.argmin(small)) if not small.all() else len(places) - 1
    after = len(places) - int(np.argmin(enough[::-1])) if not enough.all() else 0
    first = 0 if before == 0 else int(places[before - 1]) + 1
    return first, int(places[min(after, len(places) - 1)])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def range_levels(mechanism: Mechanism) -> AskedLevels:
    """The levels of a tree from which a mechanism answers ranges, or InvalidSpec."""
    asked = asked_tree(mechanism)
    if asked is None:
        raise InvalidSpec(f"ranges: {mechanism.kind} does not answer ranges; plan the question with task ranges")
    return asked


def solve_ranges(mechanism: Mechanism, tally: Any, *, respondents: int | None = None) -> Ranges:
    """Return the fitted ranges of a tally of the levels of a tree, of one oracle over all leaves, or of square waves.

    `respondents` are those the reports were drawn from at random, where they were asked other questions too.
    """
    everybody = tally.n if respondents is None else respondents
    if isinstance(mechanism, SquareWave):
        wave = fit_waves(mechanism, tally)
        return Ranges(wave.leaves, tally.n, float(everybody), wave.spans, wave.linear, note=NOTE)
    asked = range_levels(mechanism)
    members = zip(asked.heights, asked.members, asked.tallies(tally), strict=True)
    levels = [_level(height, *member) for (height,), *member in members]
    return fit_ranges(asked, levels, tally.n, float(everybody))


def fit_ranges(asked: AskedLevels, levels: Sequence[Level], n: int, everybody: float) -> Ranges:
    """Return the ranges that are fitted to the estimates of all levels."""
    fit = fit_levels(asked.sizes[0], asked.fanouts[0], levels)
    known = TreeVariance(fit, everybody)
    return Ranges(fit.leaves, n, everybody, known.spans, known.linear, known.law, known.reach)


def _level(height: int, mechanism: Mechanism, tally: Any) -> Level:
    """Return one level's estimate; its scale is 1/n of its own reports, infinite without any."""
    assert isinstance(tally, (Counts, Log))
    moments: Moments = getattr(mechanism, "moments")  # noqa: B009 - every oracle has them, and the signed kind
    estimate = mechanism.estimate(tally)
    scale = 1 / estimate.effective if estimate.has_data else np.inf
    return Level(height, estimate.value, moments, scale, signed=isinstance(mechanism, HRRSigned))
