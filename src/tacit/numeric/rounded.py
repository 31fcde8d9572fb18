"""Key-value pairs, the collector's half: numbers are rounded to 0 or the top and the pair goes through an oracle.

value of this mechanism    key * (top + 1) + number
value of the inner oracle  2 * key + (1 if rounded up)
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, U64
from tacit.core.draws import GivenCoins
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Oracle, Reports, indices_below, words
from tacit.core.statistics.moments import Moments
from tacit.core.wrapper import Wrapper
from tacit.device.kinds.rounded import RoundedDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec


class Rounded(RoundedDevice, Wrapper):
    """A key and a number: the number is rounded to an end of its grid by a coin, the pair answered by an oracle.

    Reports: those of the inner oracle over 2 K cells. Cost: one coin word more.
    Privacy: that of the inner oracle exactly; the ends of the grid are its values.
    Variance: the inner oracle's on its cells, which are those of the rounded numbers. Against the numbers themselves,
    a sum of m of them gains sum u (1 - u) with u = number/top from the rounding, at most m/4.
    Reference: Kulkarni's dissertation, section 7.1 (key-value ranges); Duchi, Jordan and Wainwright, FOCS 2013.

    The estimate has cell 2 k for key k with the number rounded to 0, and 2 k + 1 for the top.

    >>> from tacit.oracles.grr import GRR
    >>> m = Rounded(top=10, inner=GRR(size=6, epsilon="1"))
    >>> m.keys, m.value_count, m.report_bits
    (3, 33, 3)
    """

    inner: Oracle  # pyright: ignore[reportIncompatibleVariableOverride] - the server half of the same field

    def _check(self) -> None:
        if not isinstance(self.inner, Oracle):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSpec("rounded: the inner mechanism must be a frequency oracle")
        super()._check()

    @property
    def exact_simulation(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Delegated to the inner oracle."""
        return self.inner.exact_simulation

    @property
    def moments(self) -> Moments:
        """As the inner oracle, on its cells."""
        return self.inner.moments

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Return reports on a batch; all at once (fast path) if the inner oracle takes a fixed number of coin words."""
        indices = indices_below(self.size, self.kind, values)
        # Oracles that draw lanes of bits take a random number of words, so that rows cannot be cut in advance.
        cost = self.inner.coin_words
        if cost is None:
            return self.decode(b"".join(self.privatize_one(value, coins) for value in indices.tolist()))
        drawn = words(coins, len(indices), 1 + cost)
        return self.inner.privatize(self._cells(indices, drawn[:, 0]), GivenCoins(drawn[:, 1:]))

    def _cells(self, indices: U64, drawn: U64) -> U64:
        """The inner oracle's values: a number is rounded up if its coin word is below its threshold."""
        keys, numbers = np.divmod(indices, np.uint64(self.top + 1))
        # Thresholds are exact Python integers, computed once per different number.
        different, places = np.unique(numbers, return_inverse=True)
        # All 2^64 words round the top up, one more than a word can hold as a threshold.
        limits = np.array([min(self.threshold(number), WORD - 1) for number in different.tolist()], np.uint64)
        up = (drawn < limits[places]) | (numbers == self.top)
        return np.uint64(2) * keys + up

    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return the inner oracle's estimate: shares of keys with either rounded number."""
        return self.inner.estimate(self.inner_tally(tally), candidates)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the log-probability of the mixture of both rounded numbers."""
        key, number = divmod(int(value), self.top + 1)
        up = self.threshold(number) / WORD
        ends = [self.inner.log_prob(reports, 2 * key + side) for side in (0, 1)]
        with np.errstate(divide="ignore"):
            return np.logaddexp(ends[0] + np.log(1 - up), ends[1] + np.log(up))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """Draw how many round up, a binomial per key and number, then the inner oracle's tally."""
        true = np.asarray(counts, np.int64).reshape(self.keys, self.top + 1)
        up = rng.binomial(true, np.arange(self.top + 1) / self.top).sum(axis=1)
        cells = np.stack([true.sum(axis=1) - up, up], axis=1).reshape(-1)
        return replace(self.inner.simulate_tally(cells, rng), mechanism=self)
