"""Simulated devices of `tree_steps`: whole crowds at once, with exactly the law of real reports."""

from math import comb

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64
from tacit.core.tally import Counts
from tacit.device.kinds.steps import pattern_count
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec
from tacit.numeric.steps import TreeSteps

Bits = npt.NDArray[np.int8]


def draw_patterns(mechanism: TreeSteps, level: int, n: int, rng: np.random.Generator) -> Bits:
    """Patterns of n devices, one row each: 1 for a plus sign."""
    changes, least = mechanism.patterned(level), mechanism.thresholds[level]
    share, many = mechanism.inside_words(level) / WORD, pattern_count(changes, least)
    inside, outside = share / many, (1 - share) / (2**changes - many)
    chances: list[float] = [comb(changes, k) * (inside if k >= least else outside) for k in range(changes + 1)]
    # By symmetry a pattern is its number of plus signs, in random places.
    count = rng.choice(changes + 1, size=n, p=np.array(chances, np.float64) / sum(chances))
    ranks = rng.random((n, changes)).argsort(axis=1).argsort(axis=1)
    return (ranks < count[:, None]).astype(np.int8)


def simulate_steps(mechanism: TreeSteps, states: Bits, rng: np.random.Generator) -> dict[int, Counts]:
    """Return the tally of every window; `states` has a row of 0 and 1 per device and a column per window."""
    n, windows = len(states), states.shape[1]
    if windows > mechanism.count:
        raise InvalidSpec(f"tree_steps: states of {windows} windows, but the tree has {mechanism.count}")
    weights: list[float] = [weight / sum(mechanism.weights) for weight in mechanism.weights]
    levels = np.asarray(rng.choice(mechanism.levels, size=n, p=np.array(weights, np.float64)), np.int64)
    cells = np.zeros((windows, 2 * mechanism.levels), np.int64)
    for level in range(mechanism.levels):
        size = int(mechanism.fanout**level)
        ends = np.array(range(size - 1, windows, size), np.int64)
        told = states[levels == level][:, ends]
        bits = _bits(mechanism, level, told, rng)
        cells[ends, 2 * level + 1] = bits.sum(axis=0)
        cells[ends, 2 * level] = len(told) - bits.sum(axis=0)
    return {t: _tally(mechanism, row) for t, row in enumerate(cells)}


def _tally(mechanism: TreeSteps, cells: I64) -> Counts:
    n = int(cells.sum())
    return Counts(mechanism, n, cells, cells, n, n)


def _bits(mechanism: TreeSteps, level: int, states: Bits, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """The bits that devices of one level send, from their states at the ends of its nodes."""
    steps = np.diff(states, axis=1, prepend=np.int8(0))
    earlier = np.cumsum(steps != 0, axis=1) - (steps != 0)
    steps = np.where(earlier < mechanism.patterned(level), steps, 0)
    if mechanism.one_way:
        return rng.random(steps.shape) < np.where(steps != 0, 0.5, mechanism.zero_words / WORD)
    patterns = draw_patterns(mechanism, level, len(states), rng)
    places = np.minimum(earlier, patterns.shape[1] - 1)
    signs = np.take_along_axis(patterns, places, axis=1) == (steps > 0)
    return np.where(steps == 0, rng.random(steps.shape) < 0.5, signs)
