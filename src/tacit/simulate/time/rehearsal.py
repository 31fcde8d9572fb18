"""Answers about a simulated crowd of devices: whether intervals, bands and tests of change hold what they state."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Oracle
from tacit.errors import InvalidSpec
from tacit.post.series.change import change_points
from tacit.post.series.differences import first_differences
from tacit.post.series.series import Series
from tacit.simulate.population import zipf_counts
from tacit.simulate.time.run import LEVEL

_JOINED = 7
"""Windows are joined by so many before changes are looked for, as `--by week` does."""
_MOVED = 0.02
"""The share that the stream `step` moves from the most frequent value to the next one."""
ALPHA = 1 - LEVEL


def crowd_shares(name: str, windows: int, size: int, seed: int) -> F64:
    """Return true frequencies of `size` values, a row per window: constant, drifting, or with one step."""
    start = zipf_counts(size, 1 << 20) / (1 << 20)
    flat = np.tile(start, (windows, 1))
    if name == "flat":
        return flat
    if name == "step":
        flat[step_window(windows) :, 0] -= _MOVED
        flat[step_window(windows) :, 1] += _MOVED
        return flat
    if name == "drift":
        walk = np.cumsum(np.random.default_rng(seed).normal(0, 0.005, (windows, size)), axis=0)
        weights = flat * np.exp(walk)
        return weights / weights.sum(axis=1, keepdims=True)
    raise InvalidSpec(f"stream is {name[:40]!r}, must be one of flat, drift and step for a crowd of devices")


def step_window(windows: int) -> int:
    """The first window after the change of the stream `step`, where a week begins."""
    return windows * 2 // 3 // _JOINED * _JOINED


@dataclass(frozen=True)
class CrowdAnswers:
    """How the answers of several draws of the noise compare with the truth."""

    mse: float
    mse_sd: float
    coverage: float
    """Share of intervals that hold the population's frequency."""
    band_coverage: float
    """Share of draws in which the band holds the respondents' frequencies of all windows and values."""
    change_alarms: float
    """Share of draws in which some value has a change point, looked for week by week."""
    jump_alarms: float
    """Share of draws in which some first difference, week by week, is beyond its threshold."""
    located: float | None
    """Median distance of the change point from the true one, in windows; None without a true one or without alarms."""

    def to_row(self) -> dict[str, Any]:
        """Plain numbers."""
        return dict(vars(self))


def rehearse(
    mechanism: Oracle, reports: I64, shares: F64, *, draws: int, seed: int, stream: str,
    advance: Callable[[int], None] | None = None,
) -> CrowdAnswers:  # fmt: skip
    """Draw the noise of all reports `draws` times and answer every time."""
    errors: list[float] = []
    held: list[tuple[float, bool, bool, bool]] = []
    far: list[float] = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        tallies = [mechanism.simulate_tally(counts, rng) for counts in reports]
        series = _series(mechanism, tallies, 1)
        joined = _series(mechanism, tallies, _JOINED)
        errors.append(float(np.mean((series.value - shares) ** 2)))
        alarms = [point for point in change_points(joined) if point.adjusted < ALPHA]
        jumps = first_differences(joined, ALPHA).alarms
        held.append((_covered(series, shares), _banded(series, reports), bool(alarms), bool(jumps)))
        if stream == "step":
            far += [abs(joined.spans[point.row][0] - step_window(len(shares))) for point in alarms if point.cell < 2]
        if advance:
            advance(1)
    coverage, band, changes, jumps_found = (float(np.mean(column)) for column in zip(*held, strict=True))
    spread = float(np.std(errors, ddof=1)) if draws > 1 else 0.0
    located = float(np.median(far)) if far else None
    return CrowdAnswers(float(np.mean(errors)), spread, coverage, band, changes, jumps_found, located)


def _series(mechanism: Oracle, tallies: list[Any], joined: int) -> Series:
    """The series of windows, or of so many of them added up; a shorter rest at the end is left out."""
    starts = range(0, len(tallies) - joined + 1, joined)
    # Tallies are integers: adding days gives the tally of the week, bit by bit.
    sums = [reduce(add, tallies[start : start + joined]) for start in starts]
    return Series(tuple(map(mechanism.estimate, sums)), tuple((start, start + joined - 1) for start in starts))


def _covered(series: Series, shares: F64) -> float:
    low, high = series.intervals(LEVEL, target="population")
    return float(np.mean((low <= shares) & (shares <= high)))


def _banded(series: Series, reports: I64) -> bool:
    low, high = series.band(LEVEL)
    truth = reports / np.maximum(reports.sum(axis=1, keepdims=True), 1)
    told = reports.sum(axis=1) > 0
    return bool(np.all((low[told] <= truth[told]) & (truth[told] <= high[told])))
