"""How many of the most frequent values a search will find, by walking it on reference populations without hashing.

The state of a walk are the kept prefixes that somebody holds, and the kept ones that nobody does. Of candidates that
somebody holds the support is drawn; of the many others only the largest matter, and these are drawn as order
statistics. What a search would rank is then ranked by the code of the search itself. A walk takes a tenth of a second,
whatever the number of respondents. See docs/maths/heavy-hitters.md, "Forecast".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import erfc, log, sqrt
from operator import mul

import numpy as np

from tacit.arrays import F64, I64, U64
from tacit.core.estimate import Estimate
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.tasks.hitters.hitters import SCORED, Walk
from tacit.tasks.hitters.plan import HittersPlan
from tacit.tasks.hitters.score import EVERYTHING
from tacit.tasks.hitters.spelling import Spelling

WALKS = 4
"""Walks whose scores are averaged."""

_SEED = 20180512
_VALUES = 1 << 14
"""Different values of a made-up population."""


@dataclass(frozen=True, eq=False)
class ReferenceValues:
    """Values of a domain with their shares, most frequent first; they need not add up to one."""

    name: str
    values: U64
    shares: F64

    def __post_init__(self) -> None:
        """Raise InvalidSpec unless every value has a share and the shares sum to at most one."""
        if len(self.values) != len(self.shares) or not len(self.values) or self.shares.sum() > 1 + 1e-9:
            raise InvalidSpec("heavy hitters: a reference needs a share for every value, at most one in all")


def head_shares(shares: Sequence[float], k: int, values: int) -> F64:
    """Return falling shares of so many values from those of the ranks 1, k/4, k and 4 k: lines on a log-log scale.

    Beyond the last rank the last line goes on until the shares add up to one.
    """
    ranks = np.array([1, max(2, k // 4), max(3, k), max(4, 4 * k)], float)[: len(shares)]
    if len(shares) < 2 or not all(0 < b <= a <= 1 for a, b in pairwise(shares)):
        raise InvalidSpec("heavy hitters: shares must be two to four falling numbers, of the ranks 1, k/4, k and 4 k")
    x, y = np.log(ranks), np.log(np.asarray(shares, float))
    at = np.log(np.arange(1, values + 1))
    slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    made = np.exp(np.where(at <= x[-1], np.interp(at, x, y), y[-1] + slope * (at - x[-1])))
    room = np.cumsum(made) <= 1
    return made[: max(1, int(room.sum()))]


def made_up(spelling: Spelling, name: str, shares: F64, *, seed: int = _SEED) -> ReferenceValues:
    """Return a reference of random values with these shares; texts are random letters of random length."""
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, spelling.fanout, (2 * len(shares), spelling.digits))
    if spelling.possible is not None:
        digits = _letters(spelling, rng, 2 * len(shares))
    found = dict.fromkeys(_numbers(spelling, digits))
    values = np.array(list(found)[: len(shares)], np.uint64)
    return ReferenceValues(name, values, shares[: len(values)])


def _numbers(spelling: Spelling, digits: I64) -> list[int]:
    """Return the values that rows of digits spell; what is beyond the end of the domain begins at its start again."""
    powers = [spelling.fanout**place for place in range(spelling.digits - 1, -1, -1)]
    if spelling.fanout**spelling.digits > 1 << 64:
        return [sum(map(mul, row, powers)) % spelling.size for row in digits.tolist()]
    values = digits.astype(np.uint64) @ np.array(powers, np.uint64)
    # A whole domain needs no remainder, and 2^64 is no number of this type.
    return (values if spelling.size == spelling.fanout**spelling.digits else values % np.uint64(spelling.size)).tolist()


def _letters(spelling: Spelling, rng: np.random.Generator, count: int) -> I64:
    """Digits of random texts: bytes of lower-case letters where digits are bits, else letters of the alphabet."""
    symbols = spelling.digits // 8 if spelling.fanout == 2 else spelling.digits
    lengths = rng.integers(min(3, symbols), symbols + 1, count)
    ended = np.arange(symbols) >= lengths[:, None]
    if spelling.fanout > 2:
        return np.where(ended, 0, rng.integers(1, spelling.fanout, (count, symbols)))
    codes = np.where(ended, 0, rng.integers(97, 123, (count, symbols))).astype(np.uint8)
    return np.unpackbits(codes, axis=1).astype(np.int64)


def told_reference(spelling: Spelling, k: int, shares: Sequence[float], values: Sequence[int] = ()) -> ReferenceValues:
    """Return a reference from shares of the ranks 1, k/4, k and 4 k, on given values (first the most frequent ones).

    Without values they are random, and share no beginnings as real words do: forecasts are then off by up to 0.2.
    """
    known = list(dict.fromkeys(values))
    falling = head_shares(shares, k, len(known) or min(_VALUES, spelling.size))
    if not known:
        return made_up(spelling, "your shares", falling)
    return ReferenceValues("your shares and values", np.array(known[: len(falling)], np.uint64), falling)


def counted_reference(values: Sequence[int], counts: Sequence[int]) -> ReferenceValues:
    """Return the reference of counted values, such as those of an earlier campaign or of public data."""
    held = np.asarray(counts, np.float64)
    order = np.argsort(-held, kind="stable")
    return ReferenceValues("your counts", np.array(values, np.uint64)[order], held[order] / held.sum())


def usual_references(spelling: Spelling, k: int) -> tuple[ReferenceValues, ...]:
    """Return the default populations of forecasts: a flat head over a Zipf tail, and two decreasing heads."""
    ranks = np.arange(1.0, min(_VALUES, spelling.size) + 1)
    flat = np.maximum(ranks, 2 * k) ** -1.0
    shapes = (("flat head", flat), ("zipf 0.8", ranks**-0.8), ("zipf 1.1", ranks**-1.1))
    return tuple(made_up(spelling, name, shares / shares.sum()) for name, shares in shapes)


def forecast_f1(plan: HittersPlan, reference: ReferenceValues, *, k: int | None = None, walks: int = WALKS) -> float:
    """Return the expected F1 score of the k most frequent values of a reference; k as planned unless told."""
    rng, wanted = np.random.default_rng(_SEED), min(k or plan.k, len(reference.values))
    hits = [_walk(plan, reference, wanted, rng) for _ in range(walks)]
    return float(np.mean(hits)) / wanted


def _walk(plan: HittersPlan, reference: ReferenceValues, k: int, rng: np.random.Generator) -> int:
    """One walk: how many of the first k values are among the k that it lists first."""
    walk = Walk(plan.spelling, max(k, plan.k), plan.keep, False, None)
    # Of every value the place of its prefix among the survivors; -1 once that is lost.
    holders, survivors, beliefs, length = np.zeros(len(reference.values), np.int64), 1, EVERYTHING, 0
    for group, to in enumerate(plan.lengths):
        check()
        held = np.flatnonzero(holders >= 0)
        below = np.uint64(plan.spelling.fanout ** (plan.spelling.digits - to))
        keys, first, places = np.unique(reference.values[held] // below, return_index=True, return_inverse=True)
        shares: F64 = np.bincount(places, reference.shares[held], len(keys)).astype(np.float64)
        absent = max(0, survivors * plan.branches(length, to) - len(keys))
        rare = _largest_absent(plan, group, min(absent, max(SCORED, 8 * plan.keep)), absent, rng)
        value = np.concatenate([_drawn(plan, group, shares, rng), rare])
        parent = np.concatenate([holders[held][first], rng.integers(0, survivors, len(rare))])
        noise = plan.oracle.variance_at_zero / max(1.0, plan.group_sizes[group])
        found, span = Estimate(value, np.ones(len(value)), 1), plan.spelling.fanout ** (to - length)
        chosen, beliefs = walk.best(found, parent, beliefs, noise, span, None, group == len(plan.lengths) - 1)
        at = np.full(len(value), -1)
        at[chosen] = np.arange(len(chosen))
        holders = np.full(len(holders), -1)
        holders[held] = at[places]
        survivors, length = len(chosen), to
        if not survivors:
            return 0
    return int(np.count_nonzero((holders[:k] >= 0) & (holders[:k] < k)))


def _drawn(plan: HittersPlan, group: int, shares: F64, rng: np.random.Generator) -> F64:
    """Estimates of prefixes that somebody holds, from one draw of who is in the group and what they report."""
    n, (p, q) = max(1, round(plan.group_sizes[group])), plan.support
    holders = rng.binomial(n, np.clip(shares, 0, 1))
    return ((rng.binomial(holders, p) + rng.binomial(n - holders, q)) / n - q) / (p - q)


def _largest_absent(plan: HittersPlan, group: int, count: int, absent: int, rng: np.random.Generator) -> F64:
    """The largest estimates among prefixes that nobody holds: order statistics of their binomial supports.

    Ordered uniform numbers are cumulated exponential ones over a gamma one; the quantile is the normal one, corrected
    for skewness (Cornish and Fisher, 1937).
    """
    if not count:
        return np.zeros(0)
    n, (p, q) = max(1, round(plan.group_sizes[group])), plan.support
    sums = np.cumsum(rng.exponential(size=count))
    tails = sums / (sums[-1] + rng.gamma(absent - count + 1))
    grid, logs = _normal_tails()
    z = np.asarray(np.interp(-np.log(np.maximum(tails, 1e-300)), logs, grid), np.float64)
    deviation = sqrt(n * q * (1 - q))
    support = np.floor(n * q + deviation * z + (1 - 2 * q) * (z**2 - 1) / 6 + 0.5)
    return (support / n - q) / (p - q)


@lru_cache(maxsize=1)
def _normal_tails() -> tuple[F64, F64]:
    """A table of normal quantiles by minus the logarithm of the upper tail, which rises with them."""
    grid = np.linspace(-8, 36, 8801)
    return grid, np.array([-log(max(0.5 * erfc(x / sqrt(2)), 1e-300)) for x in grid.tolist()])
