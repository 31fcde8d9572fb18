"""How much of a measured interaction is kept: a factor from its known noise and its measured energy (empirical Bayes).

A table of two attributes is the product of their own tables plus an interaction. The interaction that was measured has
the energy Q (sum of squares), of which noise is known to add V on average. All pairs share a prior on the strength of
association phi^2, the energy relative to w = (1 - sum p_a^2)(1 - sum p_b^2), a discrete law on a grid that is fitted by
maximum likelihood. The factor is the posterior mean of S/(S + V), S = phi^2 w: the best linear factor has the risk
S V/(S + V), which is never above that of the raw interaction (V) nor above that of independence (S).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np

from tacit.arrays import F64
from tacit.post.views.table import centred

GRID: F64 = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 33)])
"""Strengths of association that the prior may put weight on."""

WEAK = (0.0008, 0.0017, 0.0047, 0.0129, 0.0411)
STRONG = (0.0755, 0.114, 0.177, 0.225, 0.296)
MIXED = WEAK + STRONG
"""Strengths that real tables had, at the quantiles .1, .25, .5, .75 and .9 of all pairs: of a mixed social survey (the
census data `adult`), of items of one scale (the disability survey `nltcs`), and both."""

FEW_PAIRS = 10
"""With fewer pairs than this the prior leans on the mixed law, with the weight of so many pairs."""

GATE = 2.0
"""Unless the fitted prior is this much better than independence (twice the log-likelihood), nothing is kept."""

_STEPS = 200
_DIRECTIONS = 3.0
"""A true interaction lives in few directions, so that its energy scatters more than that of noise in all of them."""
# Floors that keep a question with one used answer, or a table without noise, from dividing by zero.
_LEAST_SCALE, _LEAST_ENERGY = 1e-4, 1e-12


@dataclass(frozen=True)
class MeasuredInteraction:
    """What is known of one interaction before it is shrunken."""

    energy: float
    """Sum of squares of the measured cells."""
    noise: float
    """What noise and sampling add to the energy on average."""
    degrees: float
    """The number of directions that the noise is spread over, effectively."""
    scale: float
    """The energy of an association of strength one."""


def interaction_noise(covariance: F64, shape: Sequence[int]) -> tuple[float, float]:
    """Return the noise of the interaction of a table with this covariance (cells in row-major order), and its degrees.

    With C the centring of every axis: V = tr(C Sigma C), and V^2 / tr((C Sigma C)^2) effective directions.
    """
    half = centred(covariance.reshape(-1, *shape), len(shape)).reshape(covariance.shape)
    both = centred(half.T.reshape(-1, *shape), len(shape)).reshape(covariance.shape)
    noise, squares = float(np.trace(both)), float((both**2).sum())
    return noise, noise**2 / squares if squares > 0 else 1.0


@dataclass(frozen=True, eq=False)
class AssociationPrior:
    """A law of the strength of association: weights on the grid, and how clearly it beats independence."""

    weights: F64
    evidence: float
    """Twice the log-likelihood of the fitted law over that of independence."""

    @property
    def is_gated(self) -> bool:
        """Whether the measurements do not tell associations from noise, so that all tables are products."""
        return self.evidence <= GATE

    @property
    def mean(self) -> float:
        """The mean strength."""
        return float(self.weights @ GRID)

    def factor(self, measured: MeasuredInteraction) -> float:
        """Return the part of an interaction that is kept, from 0 to 1."""
        if self.is_gated:
            return 0.0
        signal, noise = _signal(measured), max(measured.noise, _LEAST_ENERGY)
        chances = np.log(np.maximum(self.weights, 1e-300)) + _log_likelihood([measured])[0]
        posterior = np.exp(chances - chances.max())
        return float(posterior @ (signal / (signal + noise)) / posterior.sum())


def fit_prior(measured: Sequence[MeasuredInteraction], *, law: Sequence[float] = MIXED) -> AssociationPrior:
    """Fit the law of strengths to all measured interactions by expectation-maximisation.

    One pseudo-observation is spread evenly over the grid. Of few interactions the law is held near `law`, strengths
    that are known from elsewhere; without any it is that law itself.
    """
    own = np.full(len(GRID), 1 / len(GRID))
    if len(measured) < FEW_PAIRS:
        own = own + FEW_PAIRS * on_grid(law)
    if not measured:
        return AssociationPrior(own / own.sum(), 0.0)
    likelihood = _log_likelihood(measured)
    # Rows are scaled by their largest entry, which cancels in posteriors and is added back to the log-likelihood.
    top = likelihood.max(axis=1, keepdims=True)
    scaled = np.exp(likelihood - top)
    free = _maximised(scaled, np.zeros(len(GRID)))
    fitted = float(np.log(np.maximum(scaled @ free, 1e-300)).sum() + top.sum())
    return AssociationPrior(_maximised(scaled, own), 2 * (fitted - float(likelihood[:, 0].sum())))


def on_grid(law: Sequence[float]) -> F64:
    """Return equal weights of some strengths, moved to the nearest points of the grid."""
    out = np.zeros(len(GRID))
    logs = np.log(np.maximum(GRID, GRID[1] / 2))
    for strength in law:
        out[int(np.abs(logs - np.log(max(strength, GRID[1] / 2))).argmin())] += 1 / len(law)
    return out


def _maximised(likelihood: F64, pseudo: F64) -> F64:
    """The weights of greatest likelihood with some pseudo-observations."""
    weights = np.full(len(GRID), 1 / len(GRID))
    for _ in range(_STEPS):
        joint = likelihood * weights
        weights = (joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0) + pseudo
        weights = weights / weights.sum()
    return weights


def _signal(measured: MeasuredInteraction) -> F64:
    """The true energy at every strength of the grid."""
    return np.minimum(1.0, GRID * max(measured.scale, _LEAST_SCALE))


def _log_likelihood(measured: Sequence[MeasuredInteraction]) -> F64:
    """The log-density of every energy at every strength: a Gamma law with the mean and variance of a noisy energy."""
    out = np.empty((len(measured), len(GRID)))
    for i, one in enumerate(measured):
        energy, noise = max(one.energy, _LEAST_ENERGY), max(one.noise, _LEAST_ENERGY)
        degrees, signal = max(one.degrees, 1.0), _signal(one)
        mean = signal + noise
        variance = 2 * (noise**2 + 2 * signal * noise) / degrees + 2 * signal**2 / min(degrees, _DIRECTIONS)
        shape = mean**2 / variance
        scale = variance / mean
        logs = np.array([lgamma(x) for x in shape.tolist()])
        out[i] = (shape - 1) * np.log(energy) - energy / scale - logs - shape * np.log(scale)
    return out


def linear_risk(noise: float, scale: float, law: Sequence[float] = MIXED) -> float:
    """Return the expected squared error of a shrunken interaction under a law of strengths; infinite noise: of none."""
    signal = np.minimum(1.0, np.array(law) * max(scale, _LEAST_SCALE))
    if not np.isfinite(noise):
        return float(signal.mean())
    return float((signal * noise / (signal + noise)).mean()) if noise > 0 else 0.0
