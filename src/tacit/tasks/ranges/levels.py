"""How often each level of a tree is asked, so that the expected error of a workload is least.

Every respondent answers one level, so a level's variance is inverse to its share of the respondents.
"""

from collections.abc import Sequence
from math import gcd, sqrt

from tacit.post.trees.levels import TreeShape
from tacit.tasks.ranges.error import Workload

TOTAL = 10_000
"""Level weights are integers that add up to at most this."""

_ROUNDS = 60


def level_weights(
    shape: TreeShape, workload: Workload, noise: Sequence[float], *, signed: bool = False
) -> tuple[int, ...]:
    """Integer weights by height that minimise the workload's error; `noise` is for a level all respondents answer.

    The error is sum c_t noise_t / p_t, where c_t are the squared coefficients that level t gets: for fixed c it is
    least at p_t proportional to sqrt(c_t noise_t), and c follows from p. Repeating both steps never increases the
    error, and as it is convex in p, it ends at the least one. A ragged tree is weighted like the full one around it.
    """
    around = TreeShape(shape.fanout**shape.top, shape.fanout)
    cuts = [max(0.0, workload.cuts(around, height)) for height in range(shape.top)]
    shares = [1 / shape.top] * shape.top
    # Signed (Haar) levels are orthogonal, so their coefficients do not depend on the shares: one round is exact.
    for _ in range(1 if signed else _ROUNDS):
        level = [a / p for a, p in zip(noise, shares, strict=True)]
        squares = [cut / 2 for cut in cuts] if signed else _coefficients(shape.fanout, level, cuts)
        roots = [sqrt(c * a) for c, a in zip(squares, noise, strict=True)]
        shares = [root / sum(roots) for root in roots]
    return _integers(shares)


def _coefficients(fanout: int, noise: Sequence[float], cuts: Sequence[float]) -> list[float]:
    """The mean squared coefficient of a workload on every level: the derivative of its error by the level's noise."""
    # Upwards: how a node's estimate is split, by inverse variance, between its own report and its children's sum.
    own, passed, variance = [1.0], [0.0], noise[0]
    for level in noise[1:]:
        children = fanout * variance
        own.append((children / (level + children)) ** 2)
        passed.append(fanout * (level / (level + children)) ** 2)
        variance = level * children / (level + children)
    coefficients: list[float] = []
    # Downwards: what the workload asks of a node, on its own account (cuts) and through the ancestors that pass it on.
    reached = 0.0
    for height in range(len(noise) - 1, -1, -1):
        reached += cuts[height]
        coefficients.append(own[height] * reached)
        reached *= passed[height]
    return coefficients[::-1]


def _integers(shares: Sequence[float]) -> tuple[int, ...]:
    """Round shares to integers, none of them 0: a level that nobody is asked would have infinite variance."""
    whole = [max(1, int(share * (TOTAL - len(shares)))) for share in shares]
    common = gcd(*whole)
    return tuple(weight // common for weight in whole)
