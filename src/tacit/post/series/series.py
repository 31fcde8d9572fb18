"""A series: one estimate per window, over the same cells, from reports that are fresh in every window.

Windows are then independent given the data, which everything in this folder relies on. Memoised reports repeat their
noise from window to window and must not come here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate, Target
from tacit.core.statistics.normal import normal_isf
from tacit.core.statistics.score import Law, score_interval
from tacit.errors import InvalidSpec


@dataclass(frozen=True, eq=False)
class Series:
    """Estimates of windows in their order, and the first and last window of each; they differ where some are joined."""

    estimates: tuple[Estimate, ...]
    spans: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Every estimate has a span, and all have the same cells."""
        if len(self.estimates) != len(self.spans) or not self.estimates:
            raise InvalidSpec(f"series: {len(self.estimates)} estimates for {len(self.spans)} windows; give one each")
        if len({len(estimate) for estimate in self.estimates}) != 1:
            raise InvalidSpec("series: estimates have different numbers of cells; all must be about the same domain")

    def __len__(self) -> int:
        """Number of windows, or groups of them."""
        return len(self.estimates)

    @property
    def cells(self) -> int:
        """Number of cells of every estimate."""
        return len(self.estimates[0])

    @cached_property
    def value(self) -> F64:
        """Values, a row per window."""
        return np.stack([estimate.value for estimate in self.estimates])

    @cached_property
    def n(self) -> I64:
        """Reports per window."""
        return np.array([estimate.n for estimate in self.estimates], np.int64)

    def variance(self, target: Target = "respondents") -> F64:
        """Variances, a row per window; infinite where a window has no reports."""
        return self._sampled_variance if target == "population" else self._variance

    @cached_property
    def _variance(self) -> F64:
        return np.stack([estimate.variance for estimate in self.estimates])

    @cached_property
    def _sampled_variance(self) -> F64:
        return np.stack([_sampled(estimate, estimate.variance) for estimate in self.estimates])

    def intervals(self, level: float, *, target: Target = "respondents") -> tuple[F64, F64]:
        """Return lower and upper ends that each hold with this level: pointwise, not all together."""
        stacked = self._stacked_law(target)
        if stacked is not None:
            return score_interval(self.value, self.variance(target), stacked, normal_isf((1 - level) / 2))
        ends = [estimate.interval(level, target=target) for estimate in self.estimates]
        return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])

    def _stacked_law(self, target: Target) -> Law | None:
        """The laws of all windows in one, a row each, where they differ in their numbers alone: many times faster."""
        laws = [estimate.law for estimate in self.estimates if estimate.has_data and estimate.spread is None]
        plain = [law for law in laws if law is not None and law.is_uniform]
        if len(plain) < len(self) or len({(law.low, law.high, law.floor) for law in plain}) != 1:
            return None
        slope, curve, step = (
            np.array([[float(getattr(law, name))] for law in plain]) for name in ("slope", "curve", "step")
        )
        if target == "population":
            curve = curve + np.array([[1 / estimate.effective] for estimate in self.estimates])
        return replace(plain[0], slope=slope, curve=curve, step=step)

    def band(self, level: float, *, target: Target = "respondents") -> tuple[F64, F64]:
        """Return lower and upper ends that hold for all windows and cells together with this level."""
        # The interval of a window without reports is unbounded and always holds, so that it takes no part of the level.
        answered = sum(estimate.has_data for estimate in self.estimates)
        return self.intervals(band_level(level, max(1, answered) * self.cells), target=target)


def _sampled(estimate: Estimate, variance: F64) -> F64:
    """The variance about the population, from which the respondents of a window are a random group."""
    return variance + estimate.cell_spread / estimate.effective if estimate.has_data else variance


def band_level(level: float, cells: int) -> float:
    """Return the level that each of `cells` intervals needs so that all hold together: level^(1/cells).

    Sidak's inequality: centred normal errors of any correlation keep the product. Of 52 windows, 95 %:

    >>> from tacit.core.statistics.normal import normal_isf
    >>> round(normal_isf((1 - band_level(0.95, 52)) / 2), 4)
    3.2945
    """
    if not 0 < level < 1:
        raise InvalidSpec(f"band: level is {level}, must be between 0 and 1, such as 0.95")
    return level ** (1 / cells)


def sparse_groups(n: Sequence[int], minimum: int, per: int) -> list[tuple[int, int]]:
    """Return spans of windows that are answered together: from left to right, until there are `minimum` reports.

    At most `per` windows are joined. A group that stays below is left out, and so is the last one while it waits; which
    ones are joined depends on the numbers of reports alone, which are public.

    >>> sparse_groups([40, 30, 120, 10, 0, 95, 300, 20], 100, 7)
    [(0, 2), (3, 5), (6, 6)]
    """
    groups: list[tuple[int, int]] = []
    start, total = 0, 0
    for window, reports in enumerate(n):
        total += reports
        if total >= minimum:
            groups.append((start, window))
        if total >= minimum or window - start + 1 == per:
            start, total = window + 1, 0
    return groups
