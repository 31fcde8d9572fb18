"""Memoised answers under fresh noise, the collector's half: one report has the law of the inner kind at `first`."""

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Reports, indices_below
from tacit.core.wrapper import Wrapper
from tacit.device.base import Device
from tacit.device.kinds.layered import LayeredMemoDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR


class BothLayers(Mechanism):
    """The law of one report, on which estimators and variances of the inner kind work unchanged.

    Where the inner kind counts whole words of a coin, both layers together have fractions of words, which are exact.
    """

    layers: LayeredMemoDevice

    @cached_property
    def low(self) -> Fraction:
        """Words of one answer, a fraction of a word included, from a key that it speaks against."""
        return (1 - self.layers.kept) * WORD / self.layers.answers


class LayeredGRR(BothLayers, GRR):  # pyright: ignore[reportIncompatibleVariableOverride]
    """The value with what both layers keep, a uniform one otherwise."""

    def __init__(self, layers: LayeredMemoDevice) -> None:
        """Only made by `LayeredMemo`, and never read from a spec."""
        self._set("layers", layers)
        super().__init__(size=layers.size, epsilon=layers.first)


class LayeredHRR(BothLayers, HRR):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A row and its sign, kept by both layers; over devices the row is uniform."""

    def __init__(self, layers: LayeredMemoDevice) -> None:
        """As for `LayeredGRR`."""
        self._set("layers", layers)
        inner = layers.inner
        assert isinstance(inner, HRR)
        super().__init__(size=inner.size, skip_zero=inner.skip_zero, epsilon=layers.first)

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        # For simulations, to the nearest word: the fraction of a word that is lost is below what floats hold.
        whole = HRR(size=self.size, skip_zero=self.skip_zero, epsilon=self.epsilon)
        whole._set("low", round(self.low))
        return whole.privatize(indices, coins)


class LayeredOneBit(BothLayers, OneBit):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A bit whose chance is linear in the number, through both layers."""

    def __init__(self, layers: LayeredMemoDevice) -> None:
        """As for `LayeredGRR`."""
        self._set("layers", layers)
        inner = layers.inner
        assert isinstance(inner, OneBit)
        super().__init__(top=inner.top, epsilon=layers.first)

    @cached_property
    def low(self) -> Fraction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Words that set the bit at 0."""
        inner = self.layers.inner
        assert isinstance(inner, OneBit)
        return self.layers.fresh_low + self.layers.survives * inner.low

    @cached_property
    def slope(self) -> Fraction:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Words that each step of the grid adds."""
        inner = self.layers.inner
        assert isinstance(inner, OneBit)
        return self.layers.survives * inner.slope


class LayeredMemo(LayeredMemoDevice, Wrapper):
    """A permanent noisy answer per key, reported with fresh noise on top (L-GRR, L-HRR, L-1BM).

    Reports: those of the inner mechanism. Cost: a few HMACs and one coin word; the server's work is the inner one's.
    Privacy: `first` for one report, epsilon for any number on one value; where every value is its own key (`grr`), w
    epsilon between sequences of w values that change at the same times. Between others the loss grows with every
    report; there is no number for life.
    Variance: that of the inner kind at `first`. Errors of respondents who did not change are correlated between rounds:
    their covariance is the variance of the inner kind at epsilon.
    Reference: Arcolezi et al., 2022 (L-GRR); Ding, Kulkarni and Yekhanin, 2017 (one bit); docs/maths/layered.md.

    >>> m = LayeredMemo(inner=GRR(size=4, epsilon="2"), first="1", most_values=3)
    >>> [what for what, _, _ in m.guarantees()][:2]
    ['one report', 'one value, any number of reports']
    >>> LayeredMemo(inner=HRR(size=256, epsilon="2"), first="1", most_values=3).report_bits
    9
    """

    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRR, HRR, OneBit)

    inner: Mechanism

    @cached_property
    def sends(self) -> Mechanism:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The inner kind with the exact probabilities of both layers."""
        return _SENDS[type(self.inner)](self)

    @property
    def exact_simulation(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the inner mechanism."""
        return self.inner.exact_simulation

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Return the first reports of new devices, each of which draws its secret and the fresh layer: five words."""
        # One by one, as for memo: every simulated device has a secret of its own.
        indices = indices_below(self.size, self.kind, values).tolist()
        return self.decode(b"".join(self.privatize_one(index, coins) for index in indices))

    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """As the inner mechanism, with the probabilities of both layers."""
        return self.sends.estimate(self.inner_tally(tally), candidates)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of a device's report in any one round, over its secret."""
        return self.sends.log_prob(reports, value)

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """As the inner mechanism, for one round."""
        return replace(self.sends.simulate_tally(counts, rng), mechanism=self)

    def permanent_variance(self, frequency: F64) -> F64:
        """Return n times the variance of the inner kind asked once at epsilon: what unchanged answers repeat.

        Of numbers, whose spread no report tells, the part that every number has at least.
        """
        inner = self.inner
        if isinstance(inner, OneBit):
            least = min(inner.variance_at(0), inner.variance_at(inner.top))
            return np.full(len(frequency), least)
        assert isinstance(inner, GRR | HRR)
        return inner.moments.variance(np.asarray(frequency, np.float64))

    @property
    def changed_covariance(self) -> float:
        """The least covariance, per device, of two rounds between which its answer changed.

        Two values may share the sign of a row for life, or have opposite ones: down to -1/K for `hrr` without its first
        row (docs/maths/layered.md). Independent memos have 0, and rounded numbers more.
        """
        inner = self.inner
        return -1 / inner.order if isinstance(inner, HRR) and inner.skip_zero else 0.0


_SENDS: "dict[type[Mechanism], type[LayeredGRR | LayeredHRR | LayeredOneBit]]" = {
    GRR: LayeredGRR,
    HRR: LayeredHRR,
    OneBit: LayeredOneBit,
}
