"""AMP-PLAN: from the epsilon and delta that shuffled reports must keep to the mechanism of least error that keeps them.

Randomised response and local hashing compete, by their mean squared error over the domain, fakes included. The range
of the hash is found in the Gaussian limit; what is returned is then computed by the certified accountant alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np

from tacit.core.mechanism import Oracle
from tacit.device.kinds.grr import MAX_SIZE as LARGEST_GRR
from tacit.device.kinds.local_hash import MAX_BUCKETS
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.shuffle.accounting.account import ShuffledCrowd, local_decimal
from tacit.shuffle.accounting.fakes import counted_fakes, drawn_fakes
from tacit.shuffle.accounting.limit import gaussian_mu, limit_odds
from tacit.shuffle.certificate import Certificate, certify, decimal_text

CAPS = (Decimal(2), Decimal(4), Decimal(6), Decimal(8), None)
"""The largest local epsilons that a frontier is drawn for; None for no limit."""

_GRAIN = Decimal("0.001")
"""Local epsilons are published in steps of this."""
MOST_EPSILON = Decimal(20)
"""A local epsilon that no plan exceeds: it protects nothing, and amplification has long reached its limit."""

_RATIOS = (0.7, 1.4, 0.85, 1.2)
"""Ranges of a hash that are tried beside the best power of two of a step; the error is flat around its least."""


@dataclass(frozen=True)
class ShuffleGoal:
    """What is asked for: privacy against the collector, and against it with all other respondents if given."""

    epsilon: Decimal
    delta: Decimal
    n: int
    size: int
    epsilon_others: Decimal | None = None

    def __post_init__(self) -> None:
        """Refuse goals that cannot be planned for."""
        if not 0 < self.delta < 1:
            raise InvalidSpec(f"shuffle plan: delta is {self.delta}, must be between 0 and 1, such as 1e-9")
        if self.n < 1:
            raise InvalidSpec(f"shuffle plan: n is {self.n}, must be at least 1")
        for name, value in (("epsilon", self.epsilon), ("epsilon_others", self.epsilon_others)):
            if value is not None and not _GRAIN <= value <= MOST_EPSILON:
                raise InvalidSpec(f"shuffle plan: {name} is {value}, must be from {_GRAIN} to {MOST_EPSILON}")
        if self.size < 2:
            raise InvalidSpec(f"shuffle plan: size is {self.size}, must be at least 2")

    @property
    def crowd(self) -> float:
        """n mu^2 in the Gaussian limit, which bounds 2 a (x - 1)^2; infinite where fakes alone keep epsilon."""
        mu = gaussian_mu(float(self.epsilon), float(self.delta))
        rest = 1 / mu**2
        if self.epsilon_others is not None:
            rest -= 1 / gaussian_mu(float(self.epsilon_others), float(self.delta)) ** 2
        return self.n / rest if rest > 0 else inf

    def fakes_share(self, odds: float, outputs: int) -> float:
        """Fakes over n in the Gaussian limit: 2 a gamma (x - 1)^2/mu^2 of them hide one report."""
        if self.epsilon_others is None:
            return 0.0
        mu = gaussian_mu(float(self.epsilon_others), float(self.delta))
        a, gamma = 1 / (odds + outputs - 1), outputs / (odds + outputs - 1)
        return 2 * a * gamma * (odds - 1) ** 2 / mu**2 / self.n


@dataclass(frozen=True)
class ShufflePlan:
    """A mechanism that can be published, the fakes that shufflers draw, its error and its certificate."""

    mechanism: Oracle
    fakes: int
    rmse: float
    certificate: Certificate
    cap: Decimal | None

    @property
    def local_epsilon(self) -> Decimal:
        """The local epsilon of a report, which holds even if all shufflers collude."""
        return Decimal(self.certificate.local_epsilon)

    def to_row(self) -> dict[str, Any]:
        """Plain numbers for JSON and tables; exact ones are in the certificate."""
        return {
            "cap": None if self.cap is None else float(self.cap),
            "kind": self.mechanism.kind,
            "local_epsilon": float(self.local_epsilon),
            "epsilon": float(self.certificate.epsilon),
            "epsilon_others": float(self.certificate.epsilon_others),
            "delta": float(self.certificate.delta),
            "fakes": self.fakes,
            "rmse": self.rmse,
            "spec": self.mechanism.spec(),
            "certificate": self.certificate.to_json(),
        }


@dataclass(frozen=True)
class ShuffleFrontier:
    """The plan for the cap that was asked for, the plans for other caps, and what must be said about the pick."""

    pick: ShufflePlan
    frontier: tuple[ShufflePlan, ...]
    warnings: tuple[str, ...]


def mean_squared_error(mechanism: Oracle, n: int, fakes: int = 0) -> float:
    """The mean squared error of a frequency over the domain, from n reports and uniform fakes among them.

    A fake supports a value with probability 1/d (randomised response) or 1/g (local hashing).
    """
    p, q = getattr(mechanism, "p"), getattr(mechanism, "q")  # noqa: B009 - pure oracles have them
    chance = 1 / mechanism.size if isinstance(mechanism, GRR) else float(q)
    noise = fakes * chance * (1 - chance) / float(p - q) ** 2
    return (mechanism.average_error() + noise / n) / n


@dataclass(frozen=True)
class _Way:
    """Randomised response on the values (no buckets) or on the buckets of a hash."""

    size: int
    buckets: int = 0

    def at(self, local: Decimal) -> Oracle:
        """The mechanism of a local epsilon."""
        text = decimal_text(local)
        if not self.buckets:
            return GRR(size=self.size, epsilon=text)
        return OLH(size=self.size, epsilon=text, buckets=self.buckets)

    @property
    def outputs(self) -> int:
        """What randomised response runs over."""
        return self.buckets or self.size


def _best_buckets(goal: ShuffleGoal, cap: Decimal) -> int:
    """The range of the hash of least mean squared error in the Gaussian limit."""
    most = min(goal.size, MAX_BUCKETS)
    # The error is flat around its least, so a grid of steps of about 2 % and one closer look are enough.
    grid = np.unique(np.geomspace(2, most, 400).astype(np.int64)).tolist()
    best = min(grid, key=lambda g: _limit_error(goal, g, cap))
    near = range(max(2, best * 97 // 100), min(most, best * 103 // 100 + 1) + 1)
    return min(list(near)[:: max(1, len(near) // 40)], key=lambda g: _limit_error(goal, g, cap))


def _limit_error(goal: ShuffleGoal, buckets: int, cap: Decimal) -> float:
    q, crowd = 1 / buckets, goal.crowd
    odds = min(exp(float(cap)), limit_odds(crowd, buckets) if crowd < inf else inf)
    # A report that keeps epsilon on its own keeps it shuffled too.
    odds = max(odds, exp(min(float(cap), float(goal.epsilon))))
    p = odds / (odds + buckets - 1)
    noise = q * (1 - q) * (1 + goal.fakes_share(odds, buckets)) / (p - q) ** 2
    return noise + (1 - p - q) / ((p - q) * goal.size)


def fakes_needed(goal: ShuffleGoal, mechanism: Oracle) -> int:
    """The fewest fakes that hide one report on their own at the second epsilon; none if none is asked for."""
    target = goal.epsilon_others
    if target is None or float(target) >= mechanism.realised_epsilon():
        return 0
    return _least_count(1 << 40, lambda count: ShuffledCrowd(mechanism, 1, count).holds(target, float(goal.delta)))


def _least_count(most: int, enough: Callable[[int], bool]) -> int:
    """The least count that is enough, where more always are; doubling, then halving."""
    low, high = -1, 1
    while not enough(high):
        low, high = high, 2 * high
        if low > most:
            raise InvalidSpec("shuffle plan: no number of fakes keeps the second epsilon; allow a larger one")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _holds(goal: ShuffleGoal, mechanism: Oracle, counted: int) -> bool:
    """Whether the mechanism keeps the first epsilon with so many fakes."""
    return ShuffledCrowd(mechanism, goal.n, counted).holds(goal.epsilon, float(goal.delta))


def _largest_local(goal: ShuffleGoal, way: _Way, cap: Decimal) -> Decimal:
    """The largest local epsilon, in published steps and up to the cap, that keeps the goal; delta grows with it."""
    most = int(cap / _GRAIN)
    # What is kept locally is kept: this end always holds.
    low, high = min(most, int(goal.epsilon / _GRAIN)), most

    def used(count: int) -> float:
        mechanism = way.at(count * _GRAIN)
        crowd = ShuffledCrowd(mechanism, goal.n, fakes_needed(goal, mechanism))
        return crowd.used(goal.epsilon, float(goal.delta))

    if low == most or used(most) <= 1:
        return most * _GRAIN
    crowd = goal.crowd
    start = log(limit_odds(crowd, way.outputs)) if crowd < inf else float(cap)
    at, points = start / float(_GRAIN), list[tuple[int, float]]()
    # The logarithm of delta is nearly linear in the local epsilon: secants, kept between the ends.
    while high - low > 1:
        count = min(max(int(at), low + 1), high - 1)
        share = used(count)
        low, high = (count, high) if share <= 1 else (low, count)
        points = [*points[-1:], (count, log(share) if share > 0 else -inf)]
        at = _next(points, low, high)
    return low * _GRAIN


def _next(points: Sequence[tuple[int, float]], low: int, high: int) -> float:
    """Where a line through the last two points is zero; a step aside from a single one, else the middle."""
    (first, below), (second, above) = points[0], points[-1]
    if min(below, above) == -inf or (len(points) == 2 and below == above):
        return (low + high) / 2
    if len(points) == 1:
        return second - max(4.0, second / 500) if above > 0 else second + max(4.0, second / 500)
    return second - above * (second - first) / (above - below)


def _planned(goal: ShuffleGoal, mechanism: Oracle, counted: int, cap: Decimal | None) -> ShufflePlan:
    """The plan around a mechanism that keeps the goal with so many fakes."""
    drawn = drawn_fakes(mechanism, counted) if counted else 0
    certain = counted_fakes(mechanism, drawn) if drawn else 0
    certificate = certify(mechanism, n_min=goal.n, delta=goal.delta, fakes=certain)
    # Claims are rounded up; where that passes a goal, the goal itself was shown to hold.
    if Decimal(certificate.epsilon) > goal.epsilon:
        certificate = replace(certificate, epsilon=decimal_text(goal.epsilon))
    others = goal.epsilon_others
    if others is not None and Decimal(certificate.epsilon_others) > others:
        certificate = replace(certificate, epsilon_others=decimal_text(max(others, Decimal(certificate.epsilon))))
    return ShufflePlan(mechanism, drawn, sqrt(mean_squared_error(mechanism, goal.n, drawn)), certificate, cap)


class _Planner:
    """Plans of one goal. The best local epsilon of a way does not depend on the cap until it reaches it."""

    def __init__(self, goal: ShuffleGoal) -> None:
        self._goal = goal
        self._largest: dict[_Way, Decimal] = {}

    def _local(self, way: _Way, cap: Decimal) -> Decimal:
        if way in self._largest:
            return min(self._largest[way], cap)
        found = _largest_local(self._goal, way, cap)
        if found < cap:
            self._largest[way] = found
        return found

    def _options(self, way: _Way, cap: Decimal) -> "Iterable[tuple[Oracle, int]]":
        """Mechanisms of a way that keep the goal, each with its fakes: the fewest, or more and the whole cap."""
        goal, local = self._goal, self._local(way, cap)
        yield (mechanism := way.at(local)), fakes_needed(goal, mechanism)
        if goal.epsilon_others is not None and local < cap < MOST_EPSILON:
            bold = way.at(cap)
            if _holds(goal, bold, goal.n):
                yield bold, _least_count(goal.n, lambda count: _holds(goal, bold, count))

    def _best(self, way: _Way, cap: Decimal) -> "tuple[float, Oracle, int]":
        """The option of least error of a way: error, mechanism and fakes that count."""
        each = [(mean_squared_error(mechanism, self._goal.n, fakes), mechanism, fakes)
                for mechanism, fakes in self._options(way, cap)]  # fmt: skip
        return min(each, key=lambda option: option[0])

    def _best_hash(self, cap: Decimal) -> "tuple[float, Oracle, int]":
        """The option of least error of local hashing: from the range of the Gaussian limit on, by exact errors."""
        size, found = self._goal.size, dict[int, tuple[float, Oracle, int]]()

        def at(buckets: int) -> tuple[float, Oracle, int]:
            if buckets not in found:
                found[buckets] = self._best(_Way(size, buckets), cap)
            return found[buckets]

        best = _best_buckets(self._goal, cap)
        if local_decimal(at(best)[1]) == cap:
            # Where the cap decides, nothing was approximated.
            return at(best)
        # The limit is too hopeful where a bucket is seen by few respondents: narrower hashes are tried.
        while best > 3 and at(best // 2)[0] < at(best)[0]:
            best //= 2
        for ratio in _RATIOS:
            near = min(max(2, round(best * ratio)), size, MAX_BUCKETS)
            best = near if at(near)[0] < at(best)[0] else best
        return at(best)

    def plan(self, cap: Decimal | None) -> ShufflePlan:
        """The plan of least error under a cap."""
        goal, limit = self._goal, (cap or MOST_EPSILON).quantize(_GRAIN, rounding=ROUND_FLOOR)
        options = [self._best(_Way(goal.size), limit)] if goal.size <= LARGEST_GRR else []
        options += [self._best_hash(limit)] if goal.size > 2 else []
        _, best, counted = min(options, key=lambda option: option[0])
        return _planned(goal, best, counted, cap)


def plan_shuffle(
    goal: ShuffleGoal,
    *,
    cap: Decimal | None = None,
    caps: Sequence[Decimal | None] = CAPS,
    advance: Callable[[int], None] = lambda _: None,
) -> ShuffleFrontier:
    """Plan for the cap on the local epsilon, and for others beside it, so that a person can choose.

    >>> goal = ShuffleGoal(Decimal("0.5"), Decimal("1e-9"), n=100_000, size=1024)
    >>> pick = plan_shuffle(goal, cap=Decimal(6), caps=()).pick
    >>> pick.mechanism.kind, str(pick.local_epsilon), pick.certificate.epsilon
    ('olh', '6', '0.3475')
    """
    if cap is not None and not _GRAIN <= cap <= MOST_EPSILON:
        raise InvalidSpec(f"shuffle plan: cap is {cap}, must be from {_GRAIN} to {MOST_EPSILON}")
    planner, found = _Planner(goal), dict[Decimal | None, ShufflePlan]()
    for each in _wanted(cap, caps):
        found[each] = planner.plan(each)
        advance(1)
    return ShuffleFrontier(found[cap], tuple(found[each] for each in caps), tuple(_warnings(goal, found[cap])))


def _wanted(cap: Decimal | None, caps: Sequence[Decimal | None]) -> "list[Decimal | None]":
    return list(dict.fromkeys([*caps, cap]))


def _warnings(goal: ShuffleGoal, pick: ShufflePlan) -> Iterable[str]:
    if pick.cap is None:
        yield (
            f"the local epsilon is {pick.local_epsilon} and was not capped: whoever controls the shufflers learns "
            "nearly every answer; give a cap such as 4 or 6"
        )
    if goal.delta * goal.n >= 1:
        yield f"delta is {goal.delta}, at least one over the {goal.n} respondents; take a much smaller one"
