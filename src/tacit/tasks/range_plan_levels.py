"""How often each level of a tree is asked: alike, or so that a workload's error is least."""

from collections.abc import Sequence
from math import gcd, sqrt

from tacit.post.levels import Shape
from tacit.tasks.range_plan_error import Workload

TOTAL = 10_000
"""Level weights are integers that add up to at most this."""

_ROUNDS = 60


def level_weights(shape: Shape, workload: Workload, noise: Sequence[float], *, signed: bool = False) -> tuple[int, ...]:
    """Weights by height that minimise the workload's error; `noise` is that of a level which everybody answers.

    The error is sum c_t noise_t / p_t, where c_t are the squared coefficients that level t gets: for fixed c it is
    least at p_t proportional to sqrt(c_t noise_t), and c follows from p. Repeating both steps never increases the
    error, and as it is convex in p, it ends at the least one. A ragged tree is weighted like the full one around it.
    """
    around = Shape(shape.fanout**shape.top, shape.fanout)
    cuts = [max(0.0, workload.cuts(around, height)) for height in range(shape.top)]
    shares = [1 / shape.top] * shape.top
    for _ in range(1 if signed else _ROUNDS):
        level = [a / p for a, p in zip(noise, shares, strict=True)]
        squares = [cut / 2 for cut in cuts] if signed else _coefficients(shape.fanout, level, cuts)
        roots = [sqrt(c * a) for c, a in zip(squares, noise, strict=True)]
        shares = [root / sum(roots) for root in roots]
    return _integers(shares)


def _coefficients(fanout: int, noise: Sequence[float], cuts: Sequence[float]) -> list[float]:
    """What a workload puts on every level, squared and averaged: the derivative of its error by the level's noise."""
    own, passed, variance = [1.0], [0.0], noise[0]
    for level in noise[1:]:
        children = fanout * variance
        own.append((children / (level + children)) ** 2)
        passed.append(fanout * (level / (level + children)) ** 2)
        variance = level * children / (level + children)
    found: list[float] = []
    reached = 0.0
    for height in range(len(noise) - 1, -1, -1):
        reached += cuts[height]
        found.append(own[height] * reached)
        reached *= passed[height]
    return found[::-1]


def _integers(shares: Sequence[float]) -> tuple[int, ...]:
    """Integers in about these proportions, none of them 0: every level is asked, so that every answer is finite."""
    whole = [max(1, int(share * (TOTAL - len(shares)))) for share in shares]
    common = gcd(*whole)
    return tuple(weight // common for weight in whole)
