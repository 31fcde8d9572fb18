"""Memoised answers under fresh noise, the collector's half: one report is randomised response at `first`."""

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.mechanism import CodeCounting, Reports, code_dtype, indices_below
from tacit.core.pure import PureOracle
from tacit.core.statistics.moments import Moments, block_moments
from tacit.core.tally import Counts
from tacit.device.base import Device
from tacit.device.kinds.layered import LayeredMemoDevice
from tacit.device.numbers.coins import Coins
from tacit.oracles.grr import GRR, simulate_codes


class LayeredMemo(LayeredMemoDevice, CodeCounting, PureOracle):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A permanent noisy answer per value, reported with fresh noise on top (L-GRR).

    Reports: one index, ceil(log2 d) bits. Cost: a few HMACs and one coin word; O(n + d) to tally and estimate.
    Privacy: `first` for one report, epsilon for any number on one value, w epsilon between sequences of w values that
    change at the same times. Between others the loss grows with every report; there is no number for life.
    Variance: that of grr at `first`. Errors of respondents who did not change are correlated between rounds: their
    covariance is the variance of grr at epsilon.
    Reference: Arcolezi et al., 2022, L-GRR; derived in docs/maths/layered.md.

    >>> m = LayeredMemo(inner=GRR(size=4, epsilon="2"), first="1", most_values=3)
    >>> [what for what, _, _ in m.guarantees()][:2]
    ['one report', 'one value, any number of reports']
    """

    exact_simulation = True
    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRR,)

    @property
    def permanent(self) -> GRR:
        """The permanent layer, as a mechanism that is asked once."""
        return cast("GRR", self.inner)

    @cached_property
    def p(self) -> Fraction:
        """Probability of reporting the true value."""
        return self.kept + self.q

    @cached_property
    def q(self) -> Fraction:
        """Probability of reporting one particular other value."""
        return (1 - self.kept) / self.size

    @cached_property
    def moments(self) -> Moments:
        """The moments of a block design with blocks of one point."""
        return block_moments(self.size, 1, self.p)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One index."""
        return code_dtype(self.size)

    @property
    def report_bits(self) -> int:
        """ceil(log2 d)."""
        return (self.size - 1).bit_length()

    @property
    def codes(self) -> range:
        """Every index."""
        return range(self.size)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Return the first reports of new devices, each of which draws its secret and the fresh layer: five words."""
        # One by one, as for memo: every simulated device has a secret of its own.
        indices = indices_below(self.size, self.kind, values).tolist()
        return self.decode(b"".join(self.privatize_one(index, coins) for index in indices))

    def _privatize(self, indices: U64, coins: Coins) -> npt.NDArray[Any]:
        return self.privatize(indices, coins)

    def log_prob(self, reports: npt.NDArray[Any], value: Any) -> F64:
        """ln p for the value itself, ln q for any other."""
        return np.log(np.where(reports == value, float(self.p), float(self.q)))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw the tally of one round at once, with exactly the law of real ones."""
        n, cells = simulate_codes(counts, float(self.kept), self.size, rng)
        return Counts(self, n, cells, cells, n, n)
