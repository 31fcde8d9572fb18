"""The registry of post-processing methods for histograms, and which of them suits which query.

Raw estimates are unbiased and stay stored; a method is chosen when a question is put. Collector, command line,
dashboard and documentation list this table. Wang's dissertation, sections 8.1 and 8.2.6.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.errors import InvalidSpec
from tacit.post.frequencies.isotonic import monotone_shares
from tacit.post.frequencies.noise import Noise
from tacit.post.frequencies.npmle import LEAST_CELLS, npmle
from tacit.post.frequencies.priors import gauss_prior, power, power_ns
from tacit.post.frequencies.simplex import (
    base_cut,
    base_pos,
    finite,
    mle_apx,
    norm,
    norm_cut,
    norm_mul,
    project_to_simplex,
)

Sums = Literal["yes", "almost", "no"]
Step = Callable[[F64, Noise], F64]


@dataclass(frozen=True)
class Method:
    """One way to post-process a vector of frequencies."""

    name: str
    title: str
    apply: Step
    non_negative: bool
    sums_to_one: Sums
    best_for: str
    needs: tuple[str, ...] = ()
    """What of the noise it uses: n, the variance at zero, the slope of the variance."""
    biased: bool = True
    per_answer: bool = False
    """Whether it works on every answer instead of on the vector."""
    ordered: bool = False
    """Whether the order of the cells means something to it; all others treat them alike."""
    least_cells: int = 1
    """With fewer cells it is not offered, and `process` takes another in its place."""
    part: Step | None = None
    """What it does to a list of candidates, whose frequencies sum to at most one; None: it needs the whole domain."""

    def to_row(self) -> dict[str, Any]:
        """What the method promises, as plain data."""
        names = ("name", "title", "non_negative", "sums_to_one", "biased", "best_for", "ordered", "least_cells")
        return {name: getattr(self, name) for name in names} | {"needs": list(self.needs)}


def _free(step: Callable[[F64], F64]) -> Step:
    """Adapt a step that needs to know nothing about the noise."""
    return lambda value, noise: step(value)


# Fields by position: name, title, step, non-negative, sums to one, best for.
METHODS: tuple[Method, ...] = (
    Method("base", "Base", _free(finite), False, "no", "unbiased single answers", biased=False, part=_free(finite)),
    Method("base_pos", "Base-Pos", _free(base_pos), True, "no", "nothing; the simplest baseline", part=_free(base_pos)),
    Method("post_pos", "Post-Pos", _free(base_pos), True, "no", "a few large sets", per_answer=True),
    Method(
        "base_cut", "Base-Cut", base_cut, True, "no",
        "listing what stands out; worse than Base where epsilon is large", needs=("variance",), part=base_cut,
    ),
    Method("norm", "Norm", _free(norm), False, "yes", "sums of many values", biased=False),
    Method("norm_mul", "Norm-Mul", _free(norm_mul), True, "yes", "near-uniform data only"),
    Method("norm_cut", "Norm-Cut", _free(norm_cut), True, "almost", "the values that stand out"),
    Method("norm_sub", "Norm-Sub", _free(project_to_simplex), True, "yes", "a few answers, whatever the data"),
    Method(
        "mle_apx", "MLE-Apx", mle_apx, True, "yes",
        "as Norm-Sub, where the variance depends on the frequency", needs=("variance", "slope"),
    ),
    Method("power", "Power", power, True, "no", "single values of power-law data", needs=("n", "variance")),
    Method("power_ns", "PowerNS", power_ns, True, "yes", "power-law data, all queries", needs=("n", "variance")),
    Method(
        "gauss_prior", "Gaussian prior", gauss_prior, False, "no",
        "frequencies that scatter around one mean", needs=("variance",),
    ),
    Method(
        "npmle", "Empirical Bayes", npmle, True, "yes", f"single values and the largest, from {LEAST_CELLS} answers on",
        needs=("variance", "slope"), least_cells=LEAST_CELLS, part=partial(npmle, whole=False),
    ),
    Method(
        "monotone", "Monotone", _free(monotone_shares), True, "yes", "ranges of answers that have an order",
        ordered=True,
    ),
)  # fmt: skip
"""Every method, those of the literature in its order."""

ALIASES = {"cls": "norm_sub"}
"""Constrained least squares is the projection that Norm-Sub computes."""

NAMES: tuple[str, ...] = tuple(method.name for method in METHODS)


def find_method(name: str) -> Method:
    """Return the method of a name; InvalidSpec lists the known ones."""
    for method in METHODS:
        if method.name == ALIASES.get(name, name):
            return method
    raise InvalidSpec(f"post is {str(name)[:40]!r}, must be one of {', '.join(NAMES)}")


@dataclass(frozen=True)
class QueryType:
    """A type of query, and what matters for it."""

    name: str
    about: str
    why: str


QUERIES: tuple[QueryType, ...] = (
    QueryType("cells", "every share", "the error of every share counts alike, and most of them are small"),
    QueryType("sets", "sums over a tenth of the answers", "errors add up, and only a known total stops them"),
    QueryType("largest", "the largest shares", "they were picked because they are high, so noise lifted them"),
)
"""Every type of query; `select.select_methods` picks a method for each."""


def default_method(query: str = "cells", *, cells: int) -> Method:
    """Return the method where nothing is known but the number of cells; `select_methods` knows the estimates too."""
    if query not in (known.name for known in QUERIES):
        raise InvalidSpec(f"query is {str(query)[:40]!r}, must be one of {', '.join(known.name for known in QUERIES)}")
    return find_method("npmle" if cells >= LEAST_CELLS else "norm_sub")


Interval = tuple[F64, F64]


def hull(raw: Interval, processed: Interval, *, shares: bool = True) -> Interval:
    """Return the interval of a post-processed value: the hull of the raw interval and what `processed` spans.

    An interval around the processed value alone ignores its bias and can have a coverage of zero for a skewed
    attribute with many answers. The raw interval has its nominal coverage, also after clipping to [0, 1] (`shares`),
    but it may miss the processed value, and be empty: so it is stretched to hold that value, given as both ends.

    >>> low, high = hull((np.array([-0.3]), np.array([-0.1])), (np.array([0.05]), np.array([0.05])))
    >>> float(low[0]), float(high[0])
    (0.0, 0.05)
    """
    low, high = np.minimum(raw[0], processed[0]), np.maximum(raw[1], processed[1])
    return (low.clip(0, 1), high.clip(0, 1)) if shares else (low, high)


@dataclass(frozen=True, eq=False)
class Processed:
    """A post-processed estimate beside the raw one it was made from."""

    method: Method
    raw: Estimate
    estimate: Estimate
    """The new values. The variance is exact where the method is unbiased, and else that of the raw estimate."""

    @property
    def value(self) -> F64:
        """The post-processed frequencies."""
        return self.estimate.value

    def combine(self, weights: npt.ArrayLike) -> F64:
        """Return linear answers from the processed values; Post-Pos clips the raw answers instead."""
        rows = np.atleast_2d(np.asarray(weights, np.float64))
        return np.clip(rows @ self.raw.value, 0, None) if self.method.per_answer else rows @ self.value

    def interval(self, level: float = 0.95) -> Interval:
        """Return intervals whose coverage is at least the level: the raw one, stretched to hold the value."""
        if not self.method.biased:
            return self.estimate.interval(level)
        raw, around = self.raw.interval(level), self.estimate.interval(level)
        # A raw interval outside [0, 1] is cut to nothing. A point would look like certainty, so the width is kept.
        lost = (raw[1] <= 0) | (raw[0] >= 1)
        ends = (np.where(lost, end, self.value) for end in around)
        return hull(raw, (next(ends), next(ends)), shares=self.method.non_negative)


def process(estimate: Estimate, method: str | Method, *, noise: Noise | None = None, whole: bool = True) -> Processed:
    """Apply a method to the frequencies of a whole domain; the noise is read from the estimate unless told.

    Frequencies that are not `whole` are those of candidates. Cells that nobody was asked about (of infinite variance)
    stay out. Where there are too few cells for the method, another one takes its place, which the result names.

    >>> raw = Estimate(np.array([0.5, -0.01]), np.array([1e-4, 1e-4]), 1000)
    >>> process(raw, "norm_sub").value.round(3).tolist()
    [0.755, 0.245]
    """
    chosen = _suitable(find_method(method) if isinstance(method, str) else method, estimate, whole=whole)
    step = chosen.apply if whole else chosen.part
    if step is None:
        able = ", ".join(each.name for each in METHODS if each.part)
        raise InvalidSpec(f"post: {chosen.name} needs every value of the domain; of candidates, use one of {able}")
    asked = np.isfinite(estimate.variance)
    if not estimate.has_data or not asked.any():
        return Processed(chosen, estimate, estimate)
    seen = estimate if asked.all() else estimate.take(np.flatnonzero(asked))
    value = estimate.value.copy()
    value[asked] = step(seen.value, noise or Noise.of(seen))
    # Norm is linear and Base changes nothing, so their covariance is known; that of all other methods is not.
    if chosen.name == "norm" and asked.all():
        return Processed(chosen, estimate, _normed(estimate, value))
    covariance = estimate.covariance if chosen.name == "base" else None
    return Processed(chosen, estimate, replace(estimate, value=value, covariance=covariance))


def _suitable(method: Method, estimate: Estimate, *, whole: bool) -> Method:
    """The method, or where there are too few cells for it a fallback that is as consistent."""
    cells = int(np.count_nonzero(np.isfinite(estimate.variance)))
    if not estimate.has_data or cells >= method.least_cells:
        return method
    return find_method("norm_sub" if whole else "base_pos")


# The exact variances of Norm take a d x d matrix.
_EXACT_CELLS = 1024


def _normed(estimate: Estimate, value: F64) -> Estimate:
    """The estimate after Norm with exact variances.

    Norm is linear: adding (1 - sum)/d to every cell takes the mean of its weights off every answer. Above 1,024 cells
    single cells keep their raw variance, which is off by the order of 1/d.
    """

    def combined(rows: F64) -> F64:
        return estimate.variance_of(rows - rows.mean(axis=1, keepdims=True))

    d = len(value)
    variance = combined(np.eye(d)) if d <= _EXACT_CELLS else estimate.variance
    # A total that is known leaves nothing uncertain; rounding may say minus nothing.
    return replace(estimate, value=value, variance=np.clip(variance, 0, None), covariance=combined)
