"""Signed Hadamard randomised response: by how much one half of every node outweighs the other."""

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, U64
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import CodeCounting, Reports, code_dtype, indices_below, privatize_chunks, words
from tacit.core.statistics.moments import Moments
from tacit.core.tally import Counts, count_reports, own_tally
from tacit.device.kinds.hadamard import HRRSignedDevice
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.exact import WORD, as_probability
from tacit.oracles.grr import grr_batch
from tacit.oracles.hadamard import parity64


class HRRSigned(HRRSignedDevice, CodeCounting):
    """HRR on signed unit vectors: values are halves of nodes, the estimate is (first half - second half) per node.

    Reports: log2 of the padded number of nodes, + 1 bits. Cost: two coin words; O(n + K log K) to estimate.
    Privacy: epsilon exactly, for every row.
    Variance: V1 - g per report, V1 = ((E + 1)/(E - 1))^2 and g the mass of the node. The tally does not tell g:
    stated is V1, which is never too small; `tacit.post.trees.levels` knows the masses and states them.
    Reference: Kulkarni's dissertation, section 5.4.3, with V1 in place of its V.

    >>> m = HRRSigned(size=6, epsilon="1.0")
    >>> m.nodes, m.order
    (3, 4)
    """

    @cached_property
    def keep(self) -> Fraction:
        """How much of a sign survives."""
        return as_probability(WORD - 2 * self.low)

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of one respondent's contribution: nodes are uncorrelated."""
        noise = float(1 / self.keep**2)
        return Moments(own=noise - 1, other=noise)

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """One code, 2 * row + sign."""
        return code_dtype(2 * self.order)

    @property
    def report_bits(self) -> int:
        """log2 K + 1."""
        return self.order.bit_length()

    @property
    def codes(self) -> range:
        """Every row with either sign."""
        return range(2 * self.order)

    def indices(self, values: npt.ArrayLike) -> U64:
        """Values as indices below the size; a wrong one is refused without being shown."""
        return indices_below(self.size, self.kind, values)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of halves, chunk by chunk."""
        return privatize_chunks(self._privatize, self.indices(values), coins, np.empty(0, self.report_dtype))

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        drawn, one = words(coins, len(indices), 2), np.uint64(1)
        rows = kernels.uniform(drawn[:, 0], self.order)
        true = parity64(rows & indices >> one) ^ (indices & one)
        return (rows << one | grr_batch(true, 2, self.low, drawn[:, 1])).astype(self.report_dtype)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts:
        """Counts of the codes."""
        return count_reports(self, self._countable(reports), weights, self._count)

    def estimate(self, tally: Counts, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Differences of the halves of every node, or of the nodes that are named."""
        own_tally(self, tally)
        chosen = None if candidates is None else indices_below(self.nodes, self.kind, candidates).astype(np.intp)
        cells = self.nodes if chosen is None else len(chosen)
        if tally.is_empty:
            return no_data(cells)
        sums = tally.cells[0::2] - tally.cells[1::2]
        value = kernels.walsh_hadamard(sums)[: self.nodes] / (tally.total * float(self.keep))
        value = value if chosen is None else value[chosen]
        scale = tally.variance_scale
        return Estimate(
            value,
            np.full(cells, self.moments.other * scale),
            tally.n,
            total=float(tally.total),
            effective=1 / scale,
            spread=np.clip(np.abs(value) - value**2, 0, None),
        )

    def standard_error(self, n: int) -> float:
        """Root of the largest variance of a difference with n reports."""
        return float(np.sqrt(self.moments.other / n))

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform row, then randomised response on its signed entry."""
        codes, index = reports.astype(np.uint64), int(value)
        true = parity64(codes >> np.uint64(1) & np.uint64(index >> 1)) ^ np.uint64(index & 1)
        false = float(as_probability(self.low))
        return np.log(np.where(codes & np.uint64(1) == true, 1 - false, false) / self.order)
