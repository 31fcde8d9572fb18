"""How much better ranges are for being answered monotone, before anybody is asked: by simulation on reference shapes.

The error of the raw fit is known exactly (`tasks.ranges.options`); that of its projection onto distribution functions
depends on the data. Every level of the tree is drawn with normal noise of the exact variance, fitted and projected, and
the ratio of both errors multiplies the exact one. See `docs/maths/ranges.md`, "Monotone answers".
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.asked import AskedLevels
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.core.statistics.moments import Moments
from tacit.core.statistics.normal import normal_cdf
from tacit.numeric.square_wave import SquareWave
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.post.frequencies.isotonic import monotone_distribution
from tacit.post.trees.levels import Level, TreeShape, fit_levels
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.ranges import range_levels
from tacit.tasks.ranges.waves import forecast_errors

MOST_SIMULATED = 1 << 16
"""Larger domains are forecast by the raw error alone, which is an upper bound in practice: a draw takes too long."""

_MOST_DRAWS, _LEAST_DRAWS, _DRAWN_LEAVES = 64, 8, 1 << 18
"""Draws per shape: as many as make this many leaves, within limits."""

_SEED = 20190825
"""Fixed, so that the same plan always has the same forecast."""

_SHAPES = ("normal", "exponential", "uniform")


def all_ranges_mse(error: F64) -> float:
    """Return the mean squared error of all ranges, from the errors of the cumulative shares at boundaries 0 .. size.

    In O(size): the sum over x < y of (e_y - e_x)^2 is (size + 1) times the sum of squares around the mean.
    """
    size = len(error) - 1
    return float((size + 1) * np.sum((error - error.mean()) ** 2) / (size * (size + 1) / 2))


def prefixes_mse(error: F64) -> float:
    """Return the mean squared error of all prefixes, the whole domain included."""
    return float(np.mean(error[1:] ** 2))


def workload_mse(error: F64, workload: Workload) -> float:
    """Return the mean squared error over a workload, from the errors of the cumulative shares."""
    if workload.name == "ranges":
        return all_ranges_mse(error)
    if workload.name == "prefixes":
        return prefixes_mse(error)
    length = max(1, workload.length)
    return float(np.mean((error[length:] - error[:-length]) ** 2))


def reference_shape(name: str, size: int) -> F64:
    """Return shares over `size` ordered values: uniform, normal (deviation 1/8 of them) or exponential (mean 1/16)."""
    edges = np.linspace(0, 1, size + 1)
    if name == "normal":
        shares = np.diff([normal_cdf((edge - 0.5) * 8) for edge in edges.tolist()])
    elif name == "exponential":
        shares = -np.diff(np.exp(-16 * edges))
    else:
        shares = np.full(size, 1 / size)
    return shares / shares.sum()


@dataclass(frozen=True)
class MonotoneForecast:
    """The root mean squared error of ranges: of the raw fit (exact), and of monotone answers by shape of the data."""

    raw: float
    normal: float
    exponential: float
    uniform: float

    @property
    def between(self) -> tuple[float, float]:
        """The errors on exponential and on uniform data; real data were between the two or below."""
        return min(self.exponential, self.uniform), max(self.exponential, self.uniform)

    def to_words(self) -> str:
        """One sentence for plans."""
        low, high = self.between
        error = f"about {self.normal:.6f} ({low:.6f} to {high:.6f})"
        return f"answered monotone the error is {error}, by the shape of the data"


def forecast_monotone(mechanism: Mechanism, n: int, raw: float, workload: Workload) -> MonotoneForecast:
    """Return the forecast for about n respondents, given the exact error of the raw fit.

    Square waves have no raw fit: their errors are simulated on every shape, and the largest stands for it.
    """
    if isinstance(mechanism, SquareWave):
        errors = [wave_error(mechanism, n, reference_shape(shape, mechanism.size), workload) for shape in _SHAPES]
        return MonotoneForecast(max(errors), *errors)
    ratios = (_ratio(mechanism, n, workload, shape) for shape in _SHAPES)
    return MonotoneForecast(raw, *(raw * ratio for ratio in ratios))


def wave_error(mechanism: SquareWave, n: int, shares: F64, workload: Workload) -> float:
    """Return the root mean squared error over a workload of what square waves answer on a distribution."""
    errors = forecast_errors(mechanism, max(1, n), tuple(shares.tolist()))
    return sqrt(float(np.mean([workload_mse(error, workload) for error in errors])))


@lru_cache(maxsize=64)
def _ratio(mechanism: Mechanism, n: int, workload: Workload, shape: str) -> float:
    """The error of the monotone answers over that of the raw ones, both by the same draws; cached for the next page."""
    asked = range_levels(mechanism)
    size = asked.sizes[0]
    if size > MOST_SIMULATED:
        return 1.0
    rng, truth = np.random.default_rng(_SEED), reference_shape(shape, size)
    cumulative = np.append(0.0, np.cumsum(truth))
    errors = np.zeros(2)
    for _ in range(min(_MOST_DRAWS, max(_LEAST_DRAWS, _DRAWN_LEAVES // size))):
        check()
        found = np.append(0.0, np.cumsum(_drawn_leaves(asked, truth, n, rng)))
        both = found, monotone_distribution(found)
        errors += [workload_mse(answer - cumulative, workload) for answer in both]
    return sqrt(errors[1] / errors[0]) if errors[0] > 0 else 1.0


def _drawn_leaves(asked: AskedLevels, truth: F64, n: int, rng: np.random.Generator) -> F64:
    """The leaves fitted to one draw of every level."""
    return fit_levels(asked.sizes[0], asked.fanouts[0], drawn_levels(asked, truth, n, rng)).leaves


def drawn_levels(asked: AskedLevels, truth: F64, n: int, rng: np.random.Generator) -> list[Level]:
    """Draw the estimate of every level with normal noise, each asked of its share of n respondents."""
    shape = TreeShape(asked.sizes[0], asked.fanouts[0])
    masses = {0: truth}
    for height in range(1, shape.top + 1):
        masses[height] = shape.parents(masses[height - 1])
    return [
        drawn_level(height, masses[height], member, 1 / (n * share), 1 / n, rng)
        for (height,), member, share in zip(asked.heights, asked.members, asked.shares, strict=True)
    ]


def drawn_level(
    height: int, mass: F64, member: Mechanism, scale: float, everybody: float, rng: np.random.Generator
) -> Level:
    """One level with normal noise: that of the oracle, and that of asking a part of everybody."""
    moments: Moments = getattr(member, "moments")  # noqa: B009 - every oracle has them, and the signed kind
    signed = isinstance(member, HRRSigned)
    value = mass
    if signed:
        # A signed level reports left sibling minus right sibling; a missing right sibling is an empty node.
        halves = mass if not mass.size % 2 else np.append(mass, 0.0)
        value, mass = halves[0::2] - halves[1::2], halves[0::2] + halves[1::2]
    # A fit sees contrasts of nodes only, from which a covariance that all pairs share cancels.
    variance = np.clip(moments.variance(mass) - moments.other_other, 0, None) * scale
    # Multinomial covariance, diag(f) - f f', from independent normal numbers.
    part = np.sqrt(mass * max(0.0, scale - everybody)) * rng.normal(size=len(mass))
    sampled = part if signed else part - mass * part.sum()
    return Level(
        height, value + sampled + np.sqrt(variance) * rng.normal(size=len(mass)), moments, scale, signed=signed
    )
