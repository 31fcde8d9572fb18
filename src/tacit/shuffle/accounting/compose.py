"""AMP-COMPOSE: what the same respondents lose over several shuffled rounds with fresh noise in each.

The privacy loss of a round is the logarithm of the likelihood ratio of what is seen, drawn under the victim's own
value; losses of rounds add. Their laws are put on a grid, every loss rounded up, and convolved by Fourier transforms.
So that small tails keep their digits the laws are tilted towards the epsilon that is asked for, and back afterwards.
Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS 2022, for why the
worst pair of every round may be composed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from math import ceil, exp, inf, log, log2, sqrt

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.statistics.binomial import lower_tail, mass
from tacit.device.base import Device
from tacit.errors import InvalidSpec
from tacit.shuffle.accounting.account import ShuffledCrowd
from tacit.shuffle.accounting.cells import Cells
from tacit.shuffle.accounting.solve import crossing, rounded
from tacit.shuffle.accounting.tails import window

_STEPS = 2000
"""Grid points within the epsilon of the round that loses least; fewer waste more by rounding up."""
_MOST_POINTS = 1 << 22
_ROUNDS_CUT = 1e-5
"""Share of delta that may be cut off the laws of all rounds together; it counts as an infinite loss."""


@dataclass(frozen=True)
class ShuffleRound:
    """So many rounds alike: a mechanism, the honest respondents of each, and the honest fakes in each."""

    mechanism: Device
    n: int
    fakes: int = 0
    times: int = 1

    @property
    def crowd(self) -> ShuffledCrowd:
        """The round on its own."""
        return ShuffledCrowd(self.mechanism, self.n, self.fakes)


@dataclass(frozen=True)
class LossLaw:
    """Chances of losses first * step, (first + 1) * step and so on, and the mass that counts as an infinite one."""

    first: int
    chances: F64
    step: float
    infinite: float

    @cached_property
    def losses(self) -> F64:
        """The losses on the grid."""
        return (self.first + np.arange(len(self.chances), dtype=np.float64)) * self.step

    def log_moment(self, tilt: float) -> float:
        """ln E[e^(tilt loss)], of the finite losses."""
        exponent = tilt * self.losses
        top = float(exponent.max())
        return top + log(float(self.chances @ np.exp(exponent - top)))

    def tilted(self, tilt: float) -> F64:
        """The chances of the losses, each weighted by e^(tilt loss) and scaled to sum to one."""
        return self.chances * np.exp(tilt * self.losses - self.log_moment(tilt))


Laws = list[tuple[LossLaw, int]]
"""The law of every kind of round, and how often there is one."""


def _cells_rows(cells: Cells, crowd: ShuffledCrowd, tail: float) -> tuple[Iterator[tuple[F64, F64]], float]:
    """Rows of (loss, mass) of a mechanism with cells, at the least number of slots that is likely, and what is cut."""
    gamma, n = float(cells.gamma), crowd.n
    low, _ = window(n - 1, gamma, tail)
    # Fewer slots lose more at every epsilon, so the least number stands for all larger ones.
    m, cut = 1 + low + crowd.fakes, float(lower_tail(low - 1, n - 1, gamma)) + 2 * tail
    gain = float(cells.x) - 1
    pairs = _independent_pairs(cells, m, tail) if cells.independent else _disjoint_pairs(cells, m, tail)

    def rows() -> Iterator[tuple[F64, F64]]:
        for own, other, chances in pairs:
            weight, against = 1 + gain / m * own, 1 + gain / m * other
            yield np.log(weight / against), gamma * chances * weight

    return rows(), cut


def _independent_pairs(cells: Cells, m: int, tail: float) -> Iterator[tuple[F64, F64, F64]]:
    """Supports of v and of v' with their chances, where the two are independent."""
    chance = float(cells.support)
    low, high = window(m, chance, tail)
    counts = np.arange(low, high + 1, dtype=np.float64)
    chances = mass(counts, m, chance)
    for other, likely in zip(counts, chances, strict=True):
        yield counts, np.full_like(counts, other), likely * chances


def _disjoint_pairs(cells: Cells, m: int, tail: float) -> Iterator[tuple[F64, F64, F64]]:
    """Supports of v and of v' with their chances, where no report supports both."""
    single = float(2 * cells.a / cells.gamma)
    low, high = window(m, single, tail)
    yield from _halves(np.arange(low, high + 1), mass(np.arange(low, high + 1), m, single), tail)


def _halves(totals: I64, chances: F64, tail: float) -> Iterator[tuple[F64, F64, F64]]:
    """For every total: how it may fall into two halves, with the chances of both together."""
    for total, likely in zip(totals.tolist(), chances, strict=True):
        low, high = window(total, 0.5, tail)
        own = np.arange(low, high + 1, dtype=np.float64)
        yield own, total - own, likely * mass(own, total, 0.5)


def _clone_rows(crowd: ShuffledCrowd, tail: float) -> tuple[Iterator[tuple[F64, F64]], float]:
    """Rows (privacy loss, mass) of a victim among clones, and the mass of the truncated tail."""
    x = float(crowd.mechanism.realised_odds())
    others = crowd.n - 1 + crowd.fakes
    low, high = window(others, 1 / x, tail)
    clones = np.arange(low, high + 1)

    def rows() -> Iterator[tuple[F64, F64]]:
        for own, other, chances in _halves(clones + 1, mass(clones, others, 1 / x), tail):
            weight, against = x * own + other, own + x * other
            yield np.log(weight / against), chances * weight * (2 / (x + 1)) / (own + other)

    return rows(), 2 * tail


def loss_law(crowd: ShuffledCrowd, *, step: float, tail: float) -> LossLaw:
    """The law of the privacy loss of one round, every loss rounded up to the grid."""
    cells = crowd.cells
    if cells is not None and not cells.independent:
        # Reports for both values are moved to single ones, which dominates; without room for that, clones do.
        cells = cells.disjoint
    rows, cut = _clone_rows(crowd, tail) if cells is None else _cells_rows(cells, crowd, tail)
    span = ceil(crowd.local_epsilon / step) + 1
    chances = np.zeros(2 * span + 1)
    for losses, masses in rows:
        # No loss of one report exceeds the local epsilon; what rounding puts beyond it belongs to it.
        at = np.clip(np.ceil(losses / step), -span, span).astype(np.int64) + span
        first = int(at.min())
        counted = np.bincount(at - first, weights=masses)
        chances[first : first + len(counted)] += counted
    used = np.flatnonzero(chances)
    first, last = int(used[0]), int(used[-1])
    return LossLaw(first - span, chances[first : last + 1], step, cut)


def _laws(rounds: Sequence[ShuffleRound], step: float, delta: float) -> Laws:
    times = sum(part.times for part in rounds)
    tail = min(1e-12, _ROUNDS_CUT * delta / (4 * times))
    return [(loss_law(part.crowd, step=step, tail=tail), part.times) for part in rounds]


def _best_tilt(laws: Laws, epsilon: float) -> float:
    """A tilt that centres the sum of the losses near epsilon: where Chernoff's bound is least."""

    def centre(tilt: float) -> float:
        return sum(k * float(law.tilted(tilt) @ law.losses) for law, k in laws)

    low, high = 0.0, 1.0
    while centre(high) < epsilon and high < 1e7:
        low, high = high, 2 * high
    # Any tilt is right; one that is a little off costs a few digits of many.
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if centre(middle) < epsilon else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class _LossGrid:
    """Where the sum of the losses is laid out: its first loss and its number of points, in steps."""

    bottom: int
    points: int
    wraps: bool


def _grid(laws: Laws, tilt: float, epsilon: float) -> _LossGrid:
    """Points around epsilon, as many as the tilted sum needs: a few of its own standard deviations."""
    step, variance = laws[0][0].step, 0.0
    for law, k in laws:
        chances = law.tilted(tilt)
        variance += k * float(chances @ law.losses**2 - (chances @ law.losses) ** 2)
    half = 14 * sqrt(variance) + 40 * step
    whole = sum(k * (len(law.chances) - 1) for law, k in laws) + 1
    points = 1 << ceil(log2(min(whole, 2 * half / step) + 1))
    if points > _MOST_POINTS:
        raise InvalidSpec(f"compose: {points} grid points are too many; ask for a larger step or for fewer rounds")
    if whole <= points:
        return _LossGrid(sum(k * law.first for law, k in laws), points, False)
    return _LossGrid(round((epsilon - half) / step), points, True)


def _tilted_sum(laws: Laws, tilt: float, grid: _LossGrid) -> F64:
    """The law of the sum of the tilted losses, on the grid."""
    spectrum = np.ones(grid.points // 2 + 1, np.complex128)
    for law, k in laws:
        chances = law.tilted(tilt)
        # Laws longer than the grid wrap around it, which their sum does as well.
        folded = np.bincount(np.arange(len(chances)) % grid.points, weights=chances, minlength=grid.points)
        spectrum *= np.fft.rfft(folded) ** k
    start = sum(k * law.first for law, k in laws)
    return np.roll(np.fft.irfft(spectrum, grid.points), start - grid.bottom)


def _composed(laws: Laws, epsilon: float) -> float:
    """The delta of all rounds at epsilon: an upper bound."""
    step, tilt = laws[0][0].step, _best_tilt(laws, epsilon)
    grid = _grid(laws, tilt, epsilon)
    total = _tilted_sum(laws, tilt, grid)
    losses = (grid.bottom + np.arange(grid.points)) * step
    counts = losses > epsilon
    # Rounding of the transforms, which is spread over all points alike.
    noise = 2.0**-52 * (log2(grid.points) + sum(k for _, k in laws)) * float(np.sqrt(total @ total))
    scale = sum(k * law.log_moment(tilt) for law, k in laws)
    weights = np.exp(scale - tilt * losses[counts]) * -np.expm1(epsilon - losses[counts])
    # What lies above the grid wraps to its bottom and is counted in full; from below it only adds.
    top = (grid.bottom + grid.points) * step
    above = (
        exp(min(0.0, sum(k * law.log_moment(1.2 * tilt) for law, k in laws) - 1.2 * tilt * top)) if grid.wraps else 0.0
    )
    infinite = sum(k * law.infinite for law, k in laws)
    return float((np.maximum(total[counts], 0.0) + noise) @ weights) + infinite + above


def compose_delta(rounds: Sequence[ShuffleRound], epsilon: float, *, step: float, delta: float = 1e-9) -> float:
    """Return a delta that all rounds together keep at epsilon; `delta` says how small a one matters."""
    return min(1.0, _composed(_laws(rounds, step, delta), epsilon))


def compose_epsilon(rounds: Sequence[ShuffleRound], delta: float, *, step: float | None = None) -> Decimal:
    """Return the least epsilon found that all rounds together keep at delta, rounded up to four digits.

    By the law of the loss, or by adding epsilons and deltas of the rounds where that is less.
    """
    if not rounds or any(part.times < 1 for part in rounds):
        raise InvalidSpec("compose: there must be at least one round, each at least once")
    times = sum(part.times for part in rounds)
    shares = [part.crowd.epsilon_or_local(delta / times) for part in rounds]
    basic = sum((share * part.times for share, part in zip(shares, rounds, strict=True)), Decimal(0))
    least = min(part.crowd.epsilon_or_local(delta) for part in rounds)
    if least == 0 or times == 1:
        return basic
    # A fine grid for the round that loses least is fine enough for all.
    laws = _laws(rounds, step or float(least) / _STEPS, delta)
    claim = _smallest(laws, delta, float(basic))
    return min(basic, claim)


def _smallest(laws: Laws, delta: float, high: float) -> Decimal:
    found, _ = crossing(lambda epsilon: _composed(laws, epsilon), delta, 0.0, high, high / 2)
    claim = rounded(found)
    for _ in range(20):
        if _composed(laws, float(claim)) <= delta:
            return claim
        claim += Decimal(1).scaleb(claim.adjusted() - 3)
    return Decimal(inf)
