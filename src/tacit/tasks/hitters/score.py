"""What all groups together say about a prefix: posteriors that are handed down from a prefix to its extensions.

A group's estimate alone forgets what the groups before it saw of the same values. Here every kept prefix carries the
probability that it is held by more than noise and the mean and variance of its share. An extension holds nothing, or a
part s of its prefix's share: all of it where the values below have nothing else in common, less where texts branch.
How often extensions hold something, and which parts, is estimated from all candidates of the group at once (empirical
Bayes), so data without shared beginnings and text are both fitted. See docs/maths/heavy-hitters.md.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from tacit.arrays import F64, I64

# Constants of the empirical-Bayes fit. They shape a ranking only; estimates and noise probabilities do not use them.
_PARTS = 24
"""Grid points for the part s of a prefix's share that an extension takes over."""
_SMALLEST_PART = 0.03
_ROUNDS = 6
"""Rounds of expectation-maximisation; the ranking is stable well before."""
_LEAST_EXTENSIONS = 0.2
"""A floor for the mean number of held extensions, so that one group lost in noise does not rule out everything."""
_SMOOTHING = 0.5
"""Pseudo-counts of the weights of the parts (Jeffreys' prior)."""


@dataclass(frozen=True)
class Beliefs:
    """Posteriors of prefixes: the probability that somebody holds one, and mean and variance of its share if so."""

    present: F64
    share: F64
    variance: F64

    @property
    def expected(self) -> F64:
        """The expected share, by which candidates are ranked."""
        return self.present * self.share

    def take(self, chosen: I64) -> "Beliefs":
        """Return the beliefs about some of the prefixes."""
        return Beliefs(self.present[chosen], self.share[chosen], self.variance[chosen])


EVERYTHING = Beliefs(np.ones(1), np.ones(1), np.zeros(1))
"""The empty prefix, which everybody's value has."""


@dataclass(frozen=True)
class _Fit:
    """Per candidate: log likelihood ratio of being held, and posterior mean and variance of its share if held."""

    ratio: F64
    share: F64
    variance: F64
    parts: F64
    """Posterior weights of the parts, a row per candidate."""


def update(before: Beliefs, parent: I64, value: F64, noise: float, extensions: int, hitters: int) -> Beliefs:
    """Return beliefs about candidates: extensions of prefixes `parent` (indices), estimated at `value` with `noise`.

    The candidates may be the largest of all; each prefix has `extensions` of them. `hitters` is how many prefixes are
    expected in the first group.
    """
    first = before is EVERYTHING
    parts = _parts(first, noise)
    weights, mean = np.full(len(parts), 1 / len(parts)), float(hitters) if first else 1.0
    prior = before.take(parent)
    present, fit = np.zeros(len(value)), None
    # Expectation-maximisation. E: per candidate, the probability of being held and the posterior over parts. M: the
    # mean number of held extensions per held prefix, and the weights of the parts.
    for _ in range(_ROUNDS):
        # E step: who holds something, given the prior. M step: how many do per prefix, and which parts they have.
        fit = _fitted(prior, value, noise, parts, weights)
        chance = min(0.5, mean / extensions)
        parents = _evidence(before.present, parent, fit.ratio, chance, mean)
        present = parents[parent] * _logistic(fit.ratio + log(chance / (1 - chance)))
        mean = max(_LEAST_EXTENSIONS, float(present.sum() / max(parents.sum(), 1e-9)))
        weights = present @ fit.parts + _SMOOTHING
        weights /= weights.sum()
    assert fit is not None
    return Beliefs(present, fit.share, fit.variance)


def _parts(first: bool, noise: float) -> F64:
    """Return the grid of parts of a prefix's share, logarithmic; in the first group it starts at the noise level."""
    smallest, largest = (min(np.sqrt(noise), 0.25), 0.5) if first else (_SMALLEST_PART, 1.0)
    return np.geomspace(smallest, largest, _PARTS)


def _fitted(prior: Beliefs, value: F64, noise: float, parts: F64, weights: F64) -> _Fit:
    """Fit a mixture: each part s of a prior N(F, V) gives a normal share N(sF, s^2 V), observed with normal noise."""
    mean, spread = prior.share[:, None] * parts, prior.variance[:, None] * parts**2
    total = spread + noise
    x = value[:, None]
    log_ratio = 0.5 * (x**2 / noise - (x - mean) ** 2 / total - np.log(total / noise)) + np.log(weights)
    # Log-sum-exp: ratios of clear hitters overflow an exponential.
    top = log_ratio.max(axis=1, keepdims=True)
    posterior = np.exp(log_ratio - top)
    sums = posterior.sum(axis=1, keepdims=True)
    posterior /= sums
    share = (mean * noise + x * spread) / total
    posterior_mean = (posterior * share).sum(axis=1)
    variance = (posterior * (spread * noise / total + share**2)).sum(axis=1) - posterior_mean**2
    return _Fit((top + np.log(sums))[:, 0], posterior_mean, np.maximum(variance, 0), posterior)


def _evidence(present: F64, parent: I64, ratio: F64, chance: float, mean: float) -> F64:
    """Update the presence of prefixes by their extensions: one of which no extension stands out was probably noise."""
    gained = np.logaddexp(log(1 - chance), ratio + log(chance)) - log(1 - chance)
    # Extensions that are not among the candidates were small: a Poisson number of held ones, `mean` on average, was
    # expected, and its absence counts exp(-mean) against the prefix.
    total: F64 = np.bincount(parent, gained, len(present)).astype(np.float64) - mean
    odds: F64 = np.log(np.maximum(present, 1e-300)) - np.log(np.maximum(1 - present, 1e-300))
    return np.where(present >= 1, 1.0, _logistic(odds + total))


def _logistic(x: F64) -> F64:
    return 1 / (1 + np.exp(-np.clip(x, -500, 500)))
