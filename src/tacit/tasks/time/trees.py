"""Trees over time in the comparison of what keeps one epsilon for life: how large, with which levels, how noisy.

N times the variance of a share, averaged over windows, is (sum over levels of the root of their noise) squared, if
levels are drawn in proportion to these roots (docs/maths/tree_steps.md).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

from tacit.device.numbers.budget import Budget
from tacit.numeric.steps import TreeSteps

FANOUTS = range(2, 17)
_SCALE = 1 << 20
"""What weights of levels add up to, about: they are integers."""


@dataclass(frozen=True)
class TreeChoice:
    """The best tree for so many windows and changes, and N times the mean variance of a share."""

    mechanism: TreeSteps
    noise: float


def level_noise(mechanism: TreeSteps, windows: int, frequency: float) -> list[float]:
    """Per level, N times its part of the variance if all devices followed it, averaged over windows."""
    found: list[float] = []
    for level in range(mechanism.levels):
        size = mechanism.fanout**level
        digits = sum(t // size % mechanism.fanout for t in range(1, windows + 1)) / windows
        gap = float(mechanism.gap(level))
        if mechanism.one_way:
            q = mechanism.quiet
            # The share that switched on is spread over the levels; it adds its own variance, as in oue.
            found.append(digits * q * (1 - q) / gap**2 + frequency / mechanism.levels)
        else:
            found.append(digits / gap**2)
    return found


def _levels(windows: int, fanout: int) -> int:
    levels = 1
    while fanout**levels - 1 < windows:
        levels += 1
    return levels


@lru_cache(maxsize=64)
def choose_tree(epsilon: "Budget | str", windows: int, changes: int, frequency: float) -> TreeChoice:
    """Return the tree with the least error; of states that change once, one that only ever switches on."""
    best: TreeChoice | None = None
    for fanout in FANOUTS:
        fields: dict[str, Any] = {
            "fanout": fanout,
            "levels": _levels(windows, fanout),
            "count": windows,
            "changes": changes,
            "one_way": changes == 1,
        }
        roots = [sqrt(part) for part in level_noise(TreeSteps(epsilon=epsilon, **fields), windows, frequency)]
        noise = sum(roots) ** 2
        if best is None or noise < best.noise:
            weights = tuple(max(1, round(_SCALE * root / sum(roots))) for root in roots)
            best = TreeChoice(TreeSteps(epsilon=epsilon, weights=weights, **fields), noise)
    assert best is not None
    return best
