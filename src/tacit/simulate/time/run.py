"""Follow a stream with a scheme, again and again, and compare with the truth of the whole population."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.core.statistics.normal import normal_isf
from tacit.errors import InvalidSpec
from tacit.post.series.kalman import filter_online, series_noise, smooth
from tacit.post.series.series import Series
from tacit.simulate.time.schemes import SCHEMES, StreamCrowd, largest_charge
from tacit.simulate.time.streams import stream_counts

LEVEL = 0.95


@dataclass(frozen=True)
class Errors:
    """Squared errors of shares against the whole population, over seeds, and how often intervals held."""

    mse: float
    mse_sd: float
    coverage: float

    def to_row(self) -> dict[str, float]:
        """Plain numbers."""
        return {"mse": self.mse, "mse_sd": self.mse_sd, "coverage": self.coverage}


@dataclass(frozen=True)
class TimeOutcome:
    """How a scheme followed a stream."""

    raw: Errors
    online: Errors | None
    """After the online filter, where the scheme has fresh reports in every window."""
    smoothed: Errors | None
    drift: float | None
    """The drift variance that the filter settled on, averaged over seeds."""
    largest_charge: float
    """The largest epsilon that any run of windows charged to one device."""
    seconds: float

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        row: dict[str, Any] = self.raw.to_row()
        if self.online is not None and self.smoothed is not None:
            row["online"] = self.online.to_row() | {"drift_variance": self.drift}
            row["afterwards"] = self.smoothed.to_row()
        return row


def simulate_time(
    stream: str, method: str, *, n: int, windows: int, epsilon: float, run: int, seeds: int, filtered: bool = False,
    advance: Callable[[int], None] | None = None,
) -> TimeOutcome:  # fmt: skip
    """Follow `stream` with `method`, once for every seed from 0 on."""
    if method not in SCHEMES:
        raise InvalidSpec(f"method is {method[:40]!r}, must be one of {', '.join(SCHEMES)}")
    if filtered and method not in ("lpu", "lbu"):
        raise InvalidSpec(f"--smooth is for lpu and lbu: {method} repeats releases, which are not independent windows")
    start, charge = perf_counter(), 0.0
    rows: dict[str, list[tuple[float, float]]] = {"raw": [], "online": [], "smoothed": []}
    drifts: list[float] = []
    for seed in range(seeds):
        counts = stream_counts(stream, windows, n, seed)
        crowd = StreamCrowd(counts, n, epsilon, run, np.random.default_rng(100 + seed))
        series = Series(tuple(SCHEMES[method](crowd)), tuple((t, t) for t in range(windows)))
        truth = counts / n
        charge = max(charge, largest_charge(crowd))
        rows["raw"].append(_score(series.value[:, 1], *_column(series.intervals(LEVEL, target="population")), truth))
        if filtered:
            drifts.append(_filter(series, truth, rows))
        if advance:
            advance(1)
    return TimeOutcome(
        raw=_errors(rows["raw"]),
        online=_errors(rows["online"]) if filtered else None,
        smoothed=_errors(rows["smoothed"]) if filtered else None,
        drift=float(np.mean(drifts)) if filtered else None,
        largest_charge=charge,
        seconds=perf_counter() - start,
    )


def _filter(series: Series, truth: F64, rows: dict[str, list[tuple[float, float]]]) -> float:
    """Score the online filter and the smoother on one run, and return the drift variance that was chosen."""
    z, noise = normal_isf((1 - LEVEL) / 2), series_noise(series)
    online, afterwards = filter_online(series.value, noise), smooth(series.value, noise)
    for name, found in (("online", online), ("smoothed", afterwards)):
        rows[name].append(_score(found.value[:, 1], *_column(found.interval(z)), truth))
    return float(online.drift[1])


def _column(ends: tuple[F64, F64]) -> tuple[F64, F64]:
    return ends[0][:, 1], ends[1][:, 1]


def _score(value: F64, low: F64, high: F64, truth: F64) -> tuple[float, float]:
    return float(np.mean((value - truth) ** 2)), float(np.mean((low <= truth) & (truth <= high)))


def _errors(scores: list[tuple[float, float]]) -> Errors:
    errors, covered = np.array([score[0] for score in scores]), [score[1] for score in scores]
    spread = float(errors.std(ddof=1)) if len(errors) > 1 else 0.0
    return Errors(float(errors.mean()), spread, float(np.mean(covered)))
