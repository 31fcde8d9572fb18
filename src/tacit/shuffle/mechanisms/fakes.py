"""Fake reports: shufflers mix random reports among those of respondents, and the estimate takes them off again.

Fakes hide a respondent from a server that knows all other respondents (Wang's dissertation, section 9.5.1). They are
drawn from a law that depends on nobody: uniform over the *reports* of GRR, local hashing, Hadamard response and subset
selection, and bits that are all drawn like a zero for unary encodings.

One fake adds to the unbiased count of every value a random number with the same mean (the `offset`) and variance. With
r fakes among n + r reports, and C the count that the mechanism itself would estimate from all of them,

    f = (C - r offset)/n           Var[f] = (n Var_1(f) + r variance)/n^2

where Var_1 is the variance of one respondent's contribution. A fake of a pure oracle supports a value with probability
s, so that the offset is (s - q)/(p - q): 1/d for GRR, and nothing for local hashing. Equation (9.5) and Lemma 5
subtract r/(n d) for both; for local hashing that is a bias of -r/(n d) on every value.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import Mechanism, Oracle, Reports, words
from tacit.core.pure import PureOracle
from tacit.core.statistics.simulated import GeneratorCoins
from tacit.core.tally import Counts, Tally, own_tally
from tacit.core.wrapper import Wrapper
from tacit.device.numbers.budget import Budget
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, SpecMismatch
from tacit.oracles.blocks import SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH, LocalHashOracle
from tacit.oracles.unary import UnaryOracle
from tacit.shuffle.mechanisms.messages import LocationMessages

MAX_FAKES = 1 << 40


@dataclass(frozen=True)
class FakeLaw:
    """What one fake report adds to unbiased counts: mean and variance, the same for all values, and a covariance."""

    offset: float
    variance: float
    covariance: float
    """Of the contributions to two different values."""

    def of_sums(self, rows: F64) -> F64:
        """The variance that one fake adds to linear combinations of counts."""
        squares = (rows**2).sum(axis=-1)
        return squares * self.variance + (rows.sum(axis=-1) ** 2 - squares) * self.covariance


def supporting(oracle: PureOracle) -> tuple[Fraction, Fraction]:
    """Probabilities that a fake supports one value, and two different ones; InvalidSpec for kinds without fakes."""
    if isinstance(oracle, LocationMessages):
        _refuse(oracle, "messages by location are hidden by the noise of their locations and not by fakes")
    if isinstance(oracle, GRR):
        return Fraction(1, oracle.size), Fraction(0)
    if isinstance(oracle, LocalHashOracle):
        # The bucket of a fake is uniform whatever its hash function does, so that it hits any value with 1/g.
        return Fraction(1, oracle.g), Fraction(1, oracle.g**2)
    if isinstance(oracle, UnaryOracle):
        return oracle.q, oracle.q**2
    if isinstance(oracle, SS):
        return Fraction(oracle.k, oracle.m), Fraction(oracle.k * (oracle.k - 1), oracle.m * (oracle.m - 1))
    _refuse(oracle, "the law of its fakes is not known; use grr, olh, blh, hrr, ss or a unary encoding")


def fake_law(oracle: Mechanism) -> FakeLaw:
    """What a fake report of this mechanism adds to its counts.

    >>> round(fake_law(GRR(size=4, epsilon="1")).offset, 12)
    0.25
    """
    if isinstance(oracle, HRR):
        return _signs(oracle)
    if not isinstance(oracle, PureOracle):
        _refuse(oracle, "the law of its fakes is not known; use grr, olh, blh, hrr, ss or a unary encoding")
    single, pair = supporting(oracle)
    gap = oracle.p - oracle.q
    return FakeLaw(
        offset=float((single - oracle.q) / gap),
        variance=float(single * (1 - single) / gap**2),
        covariance=float((pair - single**2) / gap**2),
    )


def _signs(oracle: HRR) -> FakeLaw:
    """A fair sign of a uniform row: only what row 0 is known to hold remains, and rows other than 0 sum to -1."""
    choices, order = oracle.order - oracle.first, oracle.order
    variance = Fraction(choices) ** 2 / (oracle.keep * order) ** 2
    covariance = -variance * oracle.first / choices
    return FakeLaw(oracle.first / order, float(variance), float(covariance))


def fake_reports(oracle: Mechanism, count: int, coins: Coins) -> Reports:
    """Draw fake reports, as a shuffler that seals whole reports does."""
    if isinstance(oracle, LocationMessages):
        _refuse(oracle, "messages by location are hidden by the noise of their locations and not by fakes")
    if isinstance(oracle, UnaryOracle):
        # The law that all values have in common: with probability (1 - p)/(1 - q) even a true bit is drawn from it.
        zero = oracle.thresholds[1]
        return kernels.draw_bits(np.zeros((count, 1), np.int32), oracle.size, [(zero, zero)], coins)
    drawn = words(coins, count, 2)
    if isinstance(oracle, LocalHashOracle):
        reports = np.empty(count, oracle.report_dtype)
        reports["seed"] = drawn[:, 0] >> np.uint64(32)
        reports["bucket"] = kernels.uniform(drawn[:, 1], oracle.g)
        return reports
    if isinstance(oracle, GRR | HRR):
        codes = kernels.uniform(drawn[:, 0], len(oracle.codes)) + np.uint64(oracle.codes.start)
        return codes.astype(oracle.report_dtype)
    if isinstance(oracle, SS):
        # All values are alike to it, so that the report on a uniform value is a uniform set.
        return oracle.privatize(kernels.uniform(drawn[:, 0], oracle.size), coins)
    _refuse(oracle, "the law of its fakes is not known; use grr, olh, blh, hrr, ss or a unary encoding")


def _refuse(oracle: Mechanism, why: str) -> NoReturn:
    raise InvalidSpec(f"with_fakes: {oracle.kind} has no fake reports: {why}")


@dataclass(frozen=True, eq=False)
class BatchCounts(Counts):
    """Counts of a whole batch with fakes in it: n counts the respondents, the cells hold the fakes as well."""

    def __add__(self, other: Counts) -> NoReturn:
        """Refused: the fakes of a batch are stated once, for all of it."""
        del other
        raise SpecMismatch(
            "with_fakes: a batch is counted as a whole; add the tallies of its parts under the mechanism itself, and "
            "wrap their sum with all fakes"
        )


@dataclass(frozen=True, kw_only=True)
class WithFakes(Wrapper):
    """An oracle of whose reports `fakes` are fakes; use `with_fakes` to make one. Not a kind of the catalogue.

    Its tally counts a whole batch, and says how many respondents are in it. Devices know nothing of fakes: reports are
    those of the inner mechanism, and so is what is stated about one report.
    """

    kind: ClassVar[str] = "with_fakes"

    epsilon: Budget | str = ""
    inner: Mechanism
    fakes: int

    def __post_init__(self) -> None:
        """Take over the inner mechanism's epsilon; fakes cost the device nothing."""
        self._set("epsilon", self.inner.budget)
        super().__post_init__()

    def _check(self) -> None:
        self._integer("fakes", 0, MAX_FAKES)
        # Kinds without a known law of fakes are refused here, before anything is counted.
        _ = self.law

    @property
    def oracle(self) -> Oracle:
        """The inner mechanism, which is an oracle: no other has a law of fakes."""
        assert isinstance(self.inner, Oracle)
        return self.inner

    @cached_property
    def law(self) -> FakeLaw:
        """What one fake adds to the counts."""
        return fake_law(self.inner)

    @property
    def size(self) -> int:
        """Delegated to the inner mechanism."""
        return self.oracle.size

    def realised_odds(self) -> Fraction:
        """Delegated to the inner mechanism."""
        return self.inner.realised_odds()

    def privatize_one(self, value: Any, coins: Coins) -> bytes:
        """Delegated to the inner mechanism."""
        return self.inner.privatize_one(value, coins)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """As the inner mechanism; fakes are drawn by `fake_reports`."""
        return self.inner.privatize(values, coins)

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """As the inner mechanism, of a respondent's report."""
        return self.inner.log_prob(reports, value)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> BatchCounts:
        """Count all reports of a batch, those of respondents and fakes, in any order."""
        return self.settle(self.inner.tally(reports, weights))

    def settle(self, tally: Tally) -> BatchCounts:
        """Return the tally of a whole batch under the inner mechanism as one that counts respondents.

        What is shown and compared with a minimum cohort is then the number of people. A log is counted for all values.
        """
        counts = self._counted(tally)
        n = self._respondents(counts.n)
        return BatchCounts(self, n, counts.cells, counts.cells, n, n)

    def _counted(self, tally: Tally) -> Counts:
        self._checked(tally)
        if isinstance(tally, Counts):
            return tally
        # Of the kinds with fakes, only OLH over a large domain keeps a log.
        assert isinstance(self.inner, OLH)
        counting = replace(self.inner, state="counts")

        def cells(reports: Reports, weights: I64 | None) -> I64:
            counted = counting.tally(reports, weights)
            assert isinstance(counted, Counts)
            return counted.cells

        return tally.fold(cells)

    def _checked(self, tally: Tally) -> None:
        own_tally(self.inner, tally)
        if tally.is_weighted:
            raise SpecMismatch("with_fakes: shuffled reports belong to nobody, so that they cannot be weighted")

    def _respondents(self, reports: int) -> int:
        """The respondents among so many reports."""
        if reports < self.fakes:
            raise SpecMismatch(
                f"with_fakes: the batch has {reports} reports, must have at least its {self.fakes} fakes; count all"
            )
        return reports - self.fakes

    def estimate(self, tally: Tally, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return unbiased frequencies among the respondents, with the exact variance of their noise and of the fakes.

        The tally is one of `settle`, or one of a whole batch under the inner mechanism.
        """
        everything = self._all_reports(tally)
        self._checked(everything)
        n = self._respondents(everything.n)
        # The inner estimate takes all reports for respondents'; that is undone by its own scale and the offset.
        whole = self.inner.estimate(everything, candidates)
        if n == 0:
            return no_data(len(whole), whole.labels)
        value = (whole.value * everything.n - self.fakes * self.law.offset) / n
        frequency, more = np.clip(value, 0, 1), self.fakes / n
        moments, law = self.oracle.moments, self.law

        def combined(rows: F64) -> F64:
            return (moments.combined(rows, frequency) + more * law.of_sums(rows)) / n

        variance = (moments.variance(frequency) + more * law.variance) / n
        return Estimate(value, variance, n, labels=whole.labels, covariance=combined, law=moments.law(1 / n))

    def _all_reports(self, tally: Tally) -> Tally:
        """The tally of respondents and fakes under the inner mechanism."""
        if not isinstance(tally, BatchCounts):
            return tally
        own_tally(self, tally)
        # Cells hold respondents and fakes alike; only the number of reports was changed by `settle`.
        reports = tally.n + self.fakes
        return Counts(self.inner, reports, tally.cells, tally.cells, reports, reports)

    def average_error(self, n: int) -> float:
        """n times the mean squared error of a frequency over the domain, with n respondents beside the fakes."""
        return self.oracle.average_error() + self.law.variance * self.fakes / n

    def standard_error(self, n: int) -> float:
        """Return the root mean variance of a frequency with n respondents beside the fakes."""
        return float(np.sqrt(self.average_error(n) / n))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> BatchCounts:
        """Return the tally of simulated respondents and of fakes among them."""
        fakes = self.inner.tally(fake_reports(self.inner, self.fakes, GeneratorCoins(rng)))
        return self.settle(self.inner.simulate_tally(counts, rng) + fakes)


def with_fakes(mechanism: Mechanism, fakes: int) -> WithFakes:
    """Return the mechanism for batches in which this many reports are fakes.

    >>> m = with_fakes(GRR(size=4, epsilon="2"), 100)
    >>> tally = m.simulate_tally([500, 300, 150, 50], np.random.default_rng(1))
    >>> tally.n, round(float(m.estimate(tally).value.sum()), 9)
    (1000, 1.0)
    """
    return WithFakes(inner=mechanism, fakes=fakes)
