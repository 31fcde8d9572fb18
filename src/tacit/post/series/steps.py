"""The share of devices whose state is on, window by window, from the nodes of a tree over time (`tree_steps`).

The share at window t is the sum of net changes over the nodes that the digits of t + 1 stand for; the stated variance
is never too small, whatever the states were (docs/maths/tree_steps.md).
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.core.tally import Counts, own_tally
from tacit.errors import InvalidSpec
from tacit.numeric.steps import TreeSteps

Places = npt.NDArray[np.intp]


def covering_nodes(mechanism: TreeSteps, window: int) -> Iterator[tuple[int, int]]:
    """The nodes (level, window that it ends with) that together reach from the first window to this one."""
    start, rest = 0, window + 1
    for level in reversed(range(mechanism.levels)):
        size = mechanism.fanout**level
        for _ in range(rest // size):
            start += size
            yield level, start - 1
        rest %= size


def share_on(mechanism: TreeSteps, tallies: Mapping[int, Counts], windows: int) -> Estimate:
    """Return the share that is on at the end of every window, from the tally of each; no data where a node has none.

    A window that no node of a level ends with may still hold reports of that level only by forgery: they are ignored.
    """
    if not 1 <= windows <= mechanism.count:
        raise InvalidSpec(f"tree_steps: windows is {windows}, must be from 1 to {mechanism.count}, which the tree has")
    changes, noise = _nodes(mechanism, tallies, windows)
    value, variance = np.zeros(windows), np.zeros(windows)
    for window, (levels, ends) in enumerate(_covers(mechanism, windows)):
        value[window] = changes[levels, ends].sum()
        variance[window] = noise[levels, ends].sum()
        if mechanism.one_way and np.isfinite(variance[window]):
            variance[window] += _sampling(levels, changes[levels, ends], noise[levels, ends], mechanism)
    value[~np.isfinite(variance)] = 0.0
    heard = [tallies[t].n for t in range(windows) if t in tallies]
    return Estimate(value, variance, min(heard, default=0), labels=range(windows))


@lru_cache(maxsize=8)
def _covers(mechanism: TreeSteps, windows: int) -> "list[tuple[Places, Places]]":
    """Levels and ends of the nodes of every window."""
    nodes = [np.array(list(covering_nodes(mechanism, window)), np.intp).T for window in range(windows)]
    return [(levels, ends) for levels, ends in nodes]


def _nodes(mechanism: TreeSteps, tallies: Mapping[int, Counts], windows: int) -> tuple[F64, F64]:
    """Net changes and their variances, by level and by the window that a node ends with."""
    cells = np.zeros((2, windows, mechanism.cell_count), np.int64)
    for window in range(windows):
        if window in tallies:
            own_tally(mechanism, tallies[window])
            cells[:, window] = tallies[window].cells, tallies[window].cells2
    changes, noise = mechanism.node_changes(cells[0], cells[1])
    return changes.T, noise.T


def _sampling(levels: Places, change: F64, noise: F64, m: TreeSteps) -> float:
    """What the draw of levels adds for one-way states: f(1 - f)/n of the share f that switched on within a level.

    Signs of other states need no such term: their bound is about squares, in which it is contained.
    """
    found = 0.0
    for level in np.unique(levels):
        of_level = levels == level
        f = float(np.clip(change[of_level].sum(), 0, 1))
        # The number of reports behind a node follows from its variance and the variance of one report.
        single = m.node_noise(change[of_level]) / float(m.gap(int(level))) ** 2
        found += f * (1 - f) * float(np.max(noise[of_level] / single))
    return found
