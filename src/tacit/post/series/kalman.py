"""Smoothing by a random walk plus noise (A-KF): labelled post-processing, which lags behind jumps.

    f_t = f_{t-1} + N(0, Q)      y_t = f_t + N(0, R_t)

R_t is known (the variance of the estimate about the population), Q is chosen per cell by maximum likelihood over a
published grid. Everything is computed from estimates, so it costs no privacy; that intervals hold depends on the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.post.series.series import Series

DRIFTS = np.array([0.0, 1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4])
"""The variances Q of one step that are compared."""

Noise = Callable[[int, F64], F64]
"""R_t of window t where the frequencies are f: infinite for a window without reports."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Smoothed frequencies, a row per window, their variances under the model, and the drift variance of each cell."""

    value: F64
    variance: F64
    drift: F64

    def interval(self, z: float) -> tuple[F64, F64]:
        """Return normal ends z standard errors away; they hold as far as the model does."""
        half = z * np.sqrt(self.variance)
        return self.value - half, self.value + half


@dataclass(eq=False)
class _Tracks:
    """One filter per drift of the grid and cell, run side by side; arrays are drifts x cells."""

    mean: F64
    variance: F64
    likelihood: F64
    drifts: F64
    started: bool = False
    history: "list[tuple[F64, F64, F64, F64]]" = field(default_factory=list["tuple[F64, F64, F64, F64]"])
    """Per window: means and variances after it, and those predicted for it, which the backward pass needs."""

    def step(self, y: F64, noise: Callable[[F64], F64]) -> None:
        if not self.started:
            r = noise(np.clip(y, 0, 1))
            if np.all(np.isfinite(r)):
                # A diffuse start: the first window with reports is believed as it is, with its own variance.
                self.mean, self.variance = np.broadcast_to(y, self.mean.shape).copy(), self.variance * 0 + r
                self.started = True
            self.history.append((self.mean, self.variance, self.mean, self.variance))
            return
        predicted = self.variance + self.drifts[:, None]
        # R is evaluated at the filter's own frequency: at y_t it would favour windows that happen to be low.
        r = noise(np.clip(self.mean, 0, 1))
        total, gap, before = predicted + r, y - self.mean, self.mean
        if np.all(np.isfinite(r)):
            self.likelihood = self.likelihood - 0.5 * (np.log(total) + gap**2 / total)
            self.mean = self.mean + predicted / total * gap
            self.variance = predicted * r / total
        else:
            # No reports, no news: the level stays where it is, and only the drift adds up.
            self.variance = predicted
        self.history.append((self.mean, self.variance, before, predicted))


def _of(part: F64, best: npt.NDArray[np.intp]) -> F64:
    """The entries of the chosen drift, cell by cell."""
    return part[best, np.arange(part.shape[1], dtype=np.intp)]


def _run(value: F64, noise: Noise, drifts: F64, online: "list[tuple[F64, F64]] | None" = None) -> _Tracks:
    cells = value.shape[1]
    shape = len(drifts), cells
    tracks = _Tracks(np.zeros(shape), np.full(shape, 1.0), np.zeros(shape), drifts)
    for t, y in enumerate(value):
        tracks.step(y, lambda f, t=t: noise(t, f))
        if online is not None:
            best = np.argmax(tracks.likelihood, axis=0)
            online.append((_of(tracks.mean, best), _of(tracks.variance, best)))
    return tracks


def filter_online(value: F64, noise: Noise, *, drifts: F64 = DRIFTS) -> Smoothed:
    """Return what could be said at the end of every window, from it and those before it alone."""
    said: list[tuple[F64, F64]] = []
    tracks = _run(value, noise, drifts, said)
    drift = drifts[np.argmax(tracks.likelihood, axis=0)]
    return Smoothed(np.stack([mean for mean, _ in said]), np.stack([var for _, var in said]), drift)


def smooth(value: F64, noise: Noise, *, drifts: F64 = DRIFTS) -> Smoothed:
    """Return every window in the light of all of them (Rauch, Tung and Striebel's backward pass)."""
    tracks = _run(value, noise, drifts)
    best = np.argmax(tracks.likelihood, axis=0)
    steps = [tuple(_of(part, best) for part in step) for step in tracks.history]
    mean, variance = steps[-1][0], steps[-1][1]
    out = [(mean, variance)]
    for now, after in zip(reversed(steps[:-1]), reversed(steps[1:]), strict=True):
        # What later windows changed of the prediction is handed back by the gain P_t / P_(t+1|t), which is at most 1.
        gain = np.where(after[3] > 0, now[1] / np.where(after[3] > 0, after[3], 1.0), 0.0)
        mean = now[0] + gain * (mean - after[2])
        variance = now[1] + gain**2 * (variance - after[3])
        out.append((mean, variance))
    out.reverse()
    return Smoothed(np.stack([m for m, _ in out]), np.stack([v for _, v in out]), drifts[best])


def series_noise(series: Series) -> Noise:
    """Return R_t of a series: the variance about the population, moved from the estimate's frequency to any other."""

    def noise(t: int, f: F64) -> F64:
        estimate = series.estimates[t]
        return variance_at(estimate, f) if estimate.has_data else np.full_like(f, np.inf)

    return noise


def variance_at(estimate: Estimate, f: F64) -> F64:
    """Return the variance about the population if the frequencies were f, by the law of the estimate's variance."""
    own, law = np.clip(estimate.value, 0, 1), estimate.law
    slope, curve = (0.0, 0.0) if law is None else (law.slope, law.curve)
    moved = estimate.variance + slope * (f - own) + curve * (f * (1 - f) - own * (1 - own))
    sampling = f * (1 - f) if estimate.spread is None else estimate.spread
    # Never below a thousandth of what was stated: rounding must not make a window look exact.
    return np.maximum(moved, estimate.variance * 1e-3) + sampling / estimate.effective


def steady_state(drift: float, noise: float) -> tuple[float, float]:
    """Return the variances of the online filter and of the smoother after many windows of equal noise.

    P = (-Q + sqrt(Q^2 + 4 Q R))/2 and P (P + Q)/(2 P + Q).
    """
    online = (-drift + np.sqrt(drift**2 + 4 * drift * noise)) / 2
    return float(online), float(online * (online + drift) / (2 * online + drift)) if online > 0 else 0.0
