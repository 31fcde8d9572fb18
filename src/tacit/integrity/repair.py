"""REC-HIST, REC-DROP and REC-MODEL: estimates without the reports that support too many hot values at once.

A repair is a named, labelled post-processing step; the raw estimate stays beside it and nothing runs by itself. The hot
values were found on the same reports, which biases what is left of them a little downwards.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate, check_choice
from tacit.core.mechanism import Reports
from tacit.core.tally import Counts
from tacit.errors import InvalidSpec
from tacit.integrity.cosupport import CoSupport
from tacit.integrity.structure import Structured, count_laws, pair_law, supported_counts
from tacit.oracles.blocks import SS

Method = Literal["rec_hist", "rec_drop", "rec_model"]
LEAST_HOT = 3
"""With fewer hot values an attack is not told from chance, and a repair would only add error."""
_RARE = 0.02
"""Levels of supported hot values that so few honest reports exceed are left out of the fit of REC-HIST."""


@dataclass(frozen=True, eq=False)
class Repaired:
    """An estimate after subtracting suspected fakes; `method` labels it in every answer."""

    method: str
    value: F64
    variance: F64
    fakes: float
    """How many reports were taken for fakes."""
    honest: float
    hot: I64
    hot_share: float
    """The share of all hot values together, which is what is known best."""
    hot_variance: float

    def to_json(self) -> dict[str, Any]:
        """Plain values, without the list of all estimates."""
        return {
            "method": self.method,
            "fakes": self.fakes,
            "hot": self.hot.tolist(),
            "hot_share": self.hot_share,
            "hot_standard_error": self.hot_variance**0.5,
        }


def repair(
    oracle: Structured, reports: Reports, found: CoSupport, *, method: Method = "rec_hist", least: int | None = None
) -> Repaired | None:
    """Repair estimates of all values, by one of three methods; None where too few values are hot.

    rec_hist   fits how many hot values honest reports support to the lower levels of the histogram: the default
    rec_drop   drops reports that support at least `least` hot values (all of them, unless said): for unary fakes
    rec_model  works on counts alone and assumes that every fake supports all hot values
    """
    check_choice(oracle.kind, "method", method, get_args(Method))
    hot = found.hot
    if len(hot) < LEAST_HOT or len(reports) == 0:
        return None
    if method == "rec_hist":
        return _Histogram.of(oracle, reports, hot).repaired()
    if method == "rec_drop":
        return rec_drop(oracle, reports, hot, least=len(hot) if least is None else least)
    return rec_model(oracle, _counts(oracle, reports), found)


@dataclass(frozen=True, eq=False)
class _Histogram:
    """Reports by how many hot values they support, and the fit of honest ones to the lower levels."""

    oracle: Structured
    reports: Reports
    hot: I64
    levels: I64
    """For every report how many hot values it supports."""
    top: int
    """The last level that is fitted."""
    weights: F64
    """How many holders of other values, and of hot ones, there are."""
    covariance: F64

    @classmethod
    def of(cls, oracle: Structured, reports: Reports, hot: I64) -> "_Histogram":
        levels = supported_counts(oracle, reports, hot)
        laws = np.column_stack(count_laws(oracle, len(hot)))
        beyond = 1 - np.cumsum(laws[:, 0])
        # The first level beyond which honest reports are rare; there is one, as nothing is beyond the last.
        top = int(np.argmax(beyond < _RARE))
        seen = np.bincount(levels, minlength=len(hot) + 1)[: top + 1].astype(np.float64)
        weights, covariance = _two_counts(laws[: top + 1], seen)
        return cls(oracle, reports, hot, levels, top, weights, covariance)

    @property
    def honest(self) -> float:
        return max(1.0, min(float(len(self.reports)), float(self.weights.sum())))

    def repaired(self) -> Repaired:
        share = float(self.weights[1]) / self.honest
        # The delta method: the derivative of n1/(n0 + n1) by both counts.
        slope = np.array([-share, 1 - share]) / self.honest
        variance = float(slope @ self.covariance @ slope)
        raw = self.oracle.estimate(self.oracle.tally(self.reports))
        value = self._others(raw)
        value[self.hot] = self._split(raw, share)
        spread = raw.variance * (len(self.reports) / self.honest)
        spread[self.hot] += variance / len(self.hot) ** 2
        fakes = len(self.reports) - self.honest
        return Repaired("rec_hist", value, spread, fakes, self.honest, self.hot, share, variance)

    def _split(self, raw: Estimate, share: float) -> F64:
        """The share of the hot values divided among them: what is taken off goes by their excess above the fit."""
        high = self.reports[self.levels > self.top]
        counts = _counts(self.oracle, high).cells[self.hot].astype(np.float64) if len(high) else np.ones(len(self.hot))
        # Honest reports beyond the fitted levels support all hot values about alike.
        laws, levels = count_laws(self.oracle, len(self.hot)), np.arange(len(self.hot) + 1)
        honest = sum(
            float(w) * float(law[self.top + 1 :] @ levels[self.top + 1 :])
            for w, law in zip(self.weights, laws, strict=True)
        )
        excess = np.maximum(counts - honest / len(self.hot), 0.0)
        parts = excess / excess.sum() if excess.sum() > 0 else np.full(len(self.hot), 1 / len(self.hot))
        hot = raw.value[self.hot]
        return hot - (float(hot.sum()) - share) * parts

    def _others(self, raw: Estimate) -> F64:
        """All other values from reports on the fitted levels, where hardly any fake is.

        Holders of hot values are rarer there, so that others look more frequent by a known factor.
        """
        if isinstance(self.oracle, SS):
            # What a subset holds of the hot values leaves less room for others: the raw estimate is kept.
            return raw.value.copy()
        low = self.levels <= self.top
        kept = self.oracle.estimate(self.oracle.tally(self.reports[low])).value
        other, own = (float(law[: self.top + 1].sum()) for law in count_laws(self.oracle, len(self.hot)))
        return kept * float(self.weights @ np.array([other, own])) / (self.honest * other)


def _two_counts(laws: F64, seen: F64) -> tuple[F64, F64]:
    """Non-negative counts whose mixture of two laws fits a histogram by weighted least squares, with covariance."""
    # Counts vary about like Poisson variables, so that each is weighted by the inverse of itself.
    weight = 1 / np.maximum(seen, 1.0)
    gram = laws.T @ (laws * weight[:, None])
    counts = np.linalg.solve(gram, laws.T @ (weight * seen))
    # Of two variables at most one is at its bound, and then the other is a ratio.
    for i, j in ((0, 1), (1, 0)):
        if counts[i] < 0:
            counts = np.zeros(2)
            counts[j] = max(0.0, float(laws[:, j] @ (weight * seen)) / float(gram[j, j]))
    return counts.astype(np.float64), np.linalg.inv(gram).astype(np.float64)


def _counts(oracle: Structured, reports: Reports) -> Counts:
    """The counts of reports, whose cells say how many support each value; pairs are looked at in counts alone."""
    tally: Any = oracle.tally(reports)
    return tally


def rec_drop(oracle: Structured, reports: Reports, hot: I64, *, least: int) -> Repaired:
    """Drop reports that support so many hot values; exact where every fake supports them all and few honest ones do."""
    if not 1 <= least <= len(hot):
        raise InvalidSpec(f"rec_drop: least is {least}, must be from 1 to the {len(hot)} hot values")
    kept = supported_counts(oracle, reports, hot) < least
    estimate = oracle.estimate(oracle.tally(reports[kept]))
    return _of_estimate("rec_drop", estimate, len(reports) - int(kept.sum()), hot)


def rec_model(oracle: Structured, tally: Counts, found: CoSupport, *, seen: int | None = None) -> Repaired | None:
    """Subtract fakes that support all hot values and other values as often as honest ones do, from counts alone.

    Where common supports are of `seen` reports only, fakes are taken to be as frequent among the others.
    """
    hot, law = found.hot, pair_law(oracle)
    if len(hot) < LEAST_HOT:
        return None
    k, d, p, q = len(hot), oracle.size, law.p, law.q
    places = np.searchsorted(found.values, hot)
    among = found.excess[np.ix_(places, places)][np.triu_indices(k, 1)]
    # What one fake adds to the excess of a pair that it supports; (1 - q)^2 where supports are independent.
    unit = 1 - law.both_other - 2 * law.slope * (1 - q)
    times = 1.0 if seen is None else tally.n / max(1, seen)
    fakes = float(np.clip(times * among.mean() / unit, 0, tally.n - 1))
    # A fake has as many supports as an honest report, p + (d - 1) q; k go to hot values, the rest to all others alike.
    cells = tally.cells.astype(np.float64) - fakes * (p + (d - 1) * q - k) / (d - k)
    cells[hot] = tally.cells[hot] - fakes
    n = tally.n - fakes
    value = (cells / n - q) / (p - q)
    # The number of fakes has an error of its own, which moves every hot value alike.
    error = q * np.sqrt(tally.n * times) / ((1 - q) * np.sqrt(k * (k - 1) / 2))
    variance = oracle.moments.variance(np.clip(value, 0, 1)) / n
    variance[hot] += (error * (1 - q) / ((p - q) * n)) ** 2
    total = float(variance[hot].sum())
    return Repaired("rec_model", value, variance, fakes, n, hot, float(value[hot].sum()), total)


def _of_estimate(method: str, estimate: Estimate, dropped: int, hot: I64) -> Repaired:
    total = estimate.combine(np.isin(np.arange(len(estimate)), hot).astype(np.float64))
    share, variance = float(total.value[0]), float(total.variance[0])
    return Repaired(method, estimate.value, estimate.variance, dropped, estimate.n, hot, share, variance)
