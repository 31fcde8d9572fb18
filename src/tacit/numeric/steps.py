"""A yes/no state over time within one epsilon for life, the collector's half: net changes in the nodes of a tree."""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import CodeCounting, Reports, indices_below, integer_array
from tacit.core.tally import Counts, count_reports, own_tally
from tacit.device.kinds.steps import TreeStepsDevice, pattern_pair
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import as_probability
from tacit.errors import InvalidSpec


class TreeSteps(TreeStepsDevice, CodeCounting):
    """Signs about the changes of a yes/no state, one level of a tree over windows (T-STEP, T-TREE).

    Reports: the level and one bit, in a byte, whenever a node of the level ends. Cost: three HMACs, two coin words.
    Privacy: epsilon for all reports of a device together, however its state changes; changes beyond `changes` are
    taken for none.
    Variance: at most 1/(n gap^2) of the net change in one node; one-way states have that of oue. Of a share at window
    t, the sum over the nodes that t + 1 has digits for: `tacit.post.series.steps`.
    Reference: Erlingsson et al., SODA 2019 (trees over time); Ohrimenko et al., 2022 (patterns of signs); the optimal
    pattern is derived in docs/maths/tree_steps.md.

    >>> m = TreeSteps(fanout=5, levels=3, changes=2, epsilon="1")
    >>> m.count, m.thresholds, round(float(m.gap(0)), 4)
    (124, (2, 2, 2), 0.3005)
    """

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One byte, 2 * level + bit."""
        return np.dtype("u1")

    @property
    def report_bits(self) -> int:
        """The level and a bit."""
        return (2 * self.levels - 1).bit_length()

    @property
    def codes(self) -> range:
        """Every level with either bit."""
        return range(2 * self.levels)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Return reports of new devices: on the state at the end of the first node, or on states in a row (rows)."""
        # One by one, as for memo: every simulated device has a secret of its own.
        table = integer_array(values)
        states = table.tolist() if table.ndim == 2 else indices_below(2, self.kind, table).tolist()
        return self.decode(b"".join(self.privatize_one(state, coins) for state in states))

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts:
        """Counts of the codes of one window."""
        return count_reports(self, self._countable(reports), weights, self._count)

    def estimate(self, tally: Counts, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return per level the net share that switched on in the node that ended; infinite variance without reports.

        The variance is never too small: the tally does not tell how many switched on and off, only the difference.
        """
        own_tally(self, tally)
        chosen = np.arange(self.levels) if candidates is None else self._levels(candidates)
        if tally.is_empty:
            return no_data(len(chosen))
        value, variance = self.node_changes(tally.cells, tally.cells2)
        # Of net changes between -1 and 1 nothing but the square is known.
        spread = np.clip(1 - value**2, 0, 1)
        return Estimate(value[chosen], variance[chosen], tally.n, total=float(tally.total), spread=spread[chosen])

    def _levels(self, candidates: npt.ArrayLike) -> npt.NDArray[np.intp]:
        found = indices_below(1 << 64, self.kind, candidates)
        if np.any(found >= self.levels):
            raise InvalidSpec(f"tree_steps: candidates are levels, below {self.levels}")
        return found.astype(np.intp)

    def node_changes(self, cells: I64, cells2: I64) -> tuple[F64, F64]:
        """Net changes per level and their variances, from the cells of one window or of several (rows)."""
        clear, bits = (cells[..., i::2].astype(np.float64) for i in (0, 1))
        squares = (cells2[..., 0::2] + cells2[..., 1::2]).astype(np.float64)
        total, gaps = clear + bits, np.array([float(self.gap(level)) for level in range(self.levels)])
        heard = total != 0
        whole = np.where(heard, total, 1.0)
        moved = (bits / whole - self.quiet) if self.one_way else (bits - clear) / whole
        value = np.where(heard, moved / gaps, 0.0)
        noise = self.node_noise(value) * self._together / gaps**2
        variance = np.where(heard, noise * squares / whole**2, np.inf)
        return value, variance

    @cached_property
    def _together(self) -> F64:
        """Per level, by how much nodes of one device may add to each other's noise at most; 1 for good thresholds."""
        if self.one_way:
            return np.ones(self.levels)
        terms = [(self.odds, self.patterned(level), self.thresholds[level]) for level in range(self.levels)]
        # Steps alternate, so that only signs that tend to differ make a sum of nodes noisier than its parts.
        return np.array([1 + max(0.0, -float(pattern_pair(*item))) for item in terms])

    @property
    def quiet(self) -> float:
        """The mean report of a node without changes: no sign is likelier, but set bits of one-way states are rare."""
        return float(as_probability(self.zero_words)) if self.one_way else 0.0

    def node_noise(self, change: F64) -> F64:
        """The variance of one report on a node in which this share changed, before it is divided by the gap."""
        if not self.one_way:
            return np.ones_like(change)
        q = self.quiet
        return q * (1 - q) + np.clip(change, 0, 1) * (0.25 - q * (1 - q))

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A level by its weight, then a sign of a first node in which the state switched on, or did not."""
        plus = [self._plus(level, int(value)) for level in range(self.levels)]
        # Both chances from the exact fraction: at large epsilons the complement of a rounded one is all rounding.
        chances = np.array([[float(1 - chance), float(chance)] for chance in plus])
        weights = np.array(self.weights) / sum(self.weights)
        codes = reports.astype(np.intp)
        return np.log(weights[codes >> 1] * chances[codes >> 1, codes & 1])

    def _plus(self, level: int, state: int) -> Fraction:
        """The exact probability of a plus (or a set bit) on a first node that ends in this state."""
        if self.one_way:
            return as_probability(self.zero_words) + state * self.gap(level)
        return (1 + state * self.gap(level)) / 2
