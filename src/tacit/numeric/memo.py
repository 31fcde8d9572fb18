"""Memoised mechanisms, the collector's half: a single report has the distribution of the inner mechanism's.

The device half (`tacit.device.kinds.memo`) derives its coins from a secret, so that the same value repeats its report.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Reports, indices_below
from tacit.core.wrapper import Wrapper
from tacit.device.base import Device
from tacit.device.kinds.memo import MemoizedDevice
from tacit.device.numbers.coins import Coins
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE, RUE, SUE


class Memoized(MemoizedDevice, Wrapper):
    """A mechanism whose answer to the same value never changes, so that repetition averages no noise away.

    Reports: those of the inner mechanism. Cost: a few HMACs per report; the server's work is the inner one's.
    Privacy: epsilon for any number of reports on one value. Where every value has a key of its own (`keyed_by_value`:
    not for rounded `onebit` and `dbitflip`) w epsilon between sequences of w values that change at the same times.
    Nothing finite between others, because a changed report proves a changed value.
    Variance: the inner one's in every round. Errors of respondents who did not change are the same in all
    rounds, so averaging rounds gains nothing.
    Reference: Erlingsson, Pihur and Korolova, CCS 2014; Ding, Kulkarni and Yekhanin, NeurIPS 2017; the
    guarantees as stated here are derived in docs/maths/memo.md.

    >>> m = Memoized(inner=GRR(size=4, epsilon="1"), most_values=3)
    >>> [what for what, _, _ in m.guarantees()]
    ['one value, any number of reports', '3 values, between equal patterns of repetition']
    >>> [what for what, _, _ in Memoized(inner=OneBit(top=4, epsilon="1"), most_values=3).guarantees()]
    ['one value, any number of reports']
    """

    inner_kinds: ClassVar[tuple[type[Device], ...]] = (GRR, SUE, OUE, RUE, OneBit, DBitFlip)

    inner: Mechanism

    @property
    def exact_simulation(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Delegated to the inner mechanism."""
        return self.inner.exact_simulation

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Return the first reports of new devices, each of which draws its secret: four coin words."""
        # One by one: every simulated device has a secret of its own, and its coins come from HMACs, not from a stream.
        indices = indices_below(self.size, self.kind, values).tolist()
        return self.decode(b"".join(self.privatize_one(index, coins) for index in indices))

    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Delegated to the inner mechanism."""
        return self.inner.estimate(self.inner_tally(tally), candidates)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of a device's report in any one round, over its secret."""
        return self.inner.log_prob(reports, value)

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """As the inner mechanism, for one round."""
        return replace(self.inner.simulate_tally(counts, rng), mechanism=self)
