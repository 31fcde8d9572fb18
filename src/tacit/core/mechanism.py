"""A mechanism: sample it (`privatize`), count it (`tally`), invert it (`estimate`), evaluate it (`log_prob`).

All protocol knowledge lives in the frozen fields; all data lives in tallies that add. The classes here are what a new
mechanism derives from, the most general one first:

    Mechanism          layout and checks of reports, batches of values, simulation
      CodeCounting     reports that are one code each, counted in a histogram
      Oracle           frequencies of the values 0 .. size-1, with exact variance from four moments
        PureOracle     (pure.py) the estimate follows from two probabilities p and q
        LazyOracle     (lazy.py) may keep a log of reports instead of counts
        SharedHashes   (sharing.py) respondents share public hash functions, which adds to the error
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U64
from tacit.core.cell_rule import CellRule
from tacit.core.estimate import Estimate, no_data
from tacit.core.statistics.moments import Moments
from tacit.core.statistics.score import Law
from tacit.core.statistics.simulated import simulate_each
from tacit.core.tally import Counts, Log, Tally, count_reports, own_tally
from tacit.device.base import Device, width_bytes
from tacit.device.families.family import Family
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.kernels import expand_keys, histogram

Reports = npt.NDArray[Any]

MAX_ALL = 1 << 24
"""The largest domain that is estimated as a whole; beyond it, candidates are named."""

UNEVEN = "uneven_weights"
"""The caution of estimates of which a single report may hold most of the variance."""

MAX_REPORTS = 1 << 20
"""The largest report space that is listed report by report."""

# Values that are privatized at a time; their coins and temporary arrays then take a few megabytes.
_CHUNK_REPORTS = 1 << 16


@lru_cache(maxsize=4096)  # Asked for several times per batch, and numpy parses the name of a type each time.
def code_dtype(outcomes: int) -> "np.dtype[Any]":
    """Return the narrowest little-endian unsigned integer type that holds codes below `outcomes`."""
    return np.dtype(f"<u{width_bytes(outcomes)}")


def bits_dtype(size: int) -> "np.dtype[Any]":
    """Return the type of `size` packed bits, bit 0 of a byte first."""
    return np.dtype((np.uint8, (-(-size // 8),)))


def integer_array(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return values as an array, integers as integers.

    numpy turns a list that mixes integers below and above 2^63 into floats, which would round them.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise InvalidValue("values must be a one-dimensional array of integers") from None
    if array.dtype.kind != "f" or isinstance(values, np.ndarray):
        return array
    # Objects keep Python integers as they are; bool is excluded by `type`, floats by value.
    exact = np.array(values, object)
    whole = all(type(value) is int and 0 <= value < 1 << 64 for value in exact.flat)
    return exact.astype(np.uint64) if whole else array


def words(coins: Coins, n: int, each: int) -> U64:
    """Draw `each` coin words for every one of n reports (rows), in the order in which the device would draw them."""
    return np.frombuffer(coins.words(n * each, expand_keys), "<u8").reshape(n, each)


def indices_below(size: int, kind: str, values: npt.ArrayLike) -> U64:
    """Return values as indices below `size`; the error for a wrong one does not show it, as it may be private."""
    array = integer_array(values)
    if array.ndim == 0 or (array.size and (array.dtype.kind not in "iu" or array.ndim != 1)):
        raise InvalidValue(f"{kind}: values must be a one-dimensional array of integers; {_instead(array)}")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= size):
        raise InvalidValue(
            f"{kind}: a value is outside the domain, must be an integer from 0 to {size - 1}; "
            "encode answers with the domain of the collection"
        )
    return array.astype(np.uint64).reshape(-1)


def _instead(array: npt.NDArray[Any]) -> str:
    """What to write instead of values of another type or shape; says nothing about any one of them."""
    if array.ndim != 1:
        return "these are a single value: write [value]" if array.ndim == 0 else "these have several columns: give one"
    if array.dtype.kind == "b":
        return "these are booleans: write values.astype(int)"
    if array.dtype.kind == "f":
        missing = (
            "NaN stands for missing ones: drop them, or declare an answer for them" if np.isnan(array).any() else ""
        )
        return missing or "these are floats: round them and write values.astype(int), or ask for tacit.mean"
    return "these are labels: tacit.histogram(values, epsilon=…) takes them, or encode them with a domain"


def privatize_chunks(draw: Callable[[U64, Coins], Reports], indices: U64, coins: Coins, nothing: Reports) -> Reports:
    """Return reports on all indices, made by `draw` chunk by chunk so that memory stays bounded.

    `nothing` is an array of no reports; it gives the result its type where there are no indices.
    """
    starts = range(0, len(indices), _CHUNK_REPORTS)
    return np.concatenate([nothing, *(draw(indices[start : start + _CHUNK_REPORTS], coins) for start in starts)])


class Mechanism(Device):
    """The numpy half of a mechanism; the device half is its other base."""

    exact_simulation: ClassVar[bool] = False
    """Whether `simulate_tally` draws tallies with exactly the law of real ones."""

    @property
    def drawn_from(self) -> Family | None:
        """The family of which one member is drawn and answered; None for a mechanism that draws none."""
        return None

    @property
    def member_count(self) -> int:
        """How many members a composed mechanism has; a plain one is its own only member."""
        return 1

    def member(self, i: int) -> "Mechanism":
        """The mechanism of member i."""
        del i
        return self

    def marginal(self, tally: Any, i: int) -> Any:
        """The tally of member i, out of one of this mechanism."""
        del i
        return tally

    @property
    @abstractmethod
    def report_dtype(self) -> "np.dtype[Any]":
        """The fixed-width little-endian layout of one report."""

    @property
    def payload_widths(self) -> tuple[int, ...]:
        """Bytes of a report in a batch, for every member that a block of the batch may be about."""
        return (self.report_dtype.itemsize,)

    @property
    def lanes(self) -> tuple[int, int, int] | None:
        """Bits of a report and the thresholds of the true one and of the others, for unary kinds; else None."""
        return None

    def join_batch(self, members: npt.ArrayLike, payload: bytes | memoryview) -> Reports:
        """Reports from the member of each (or of all) and their payloads end to end: `join`, in a batch."""
        del members
        return self.decode(payload)

    def split_batch(self, reports: Reports) -> tuple[npt.NDArray[np.uint32], Reports]:
        """The member of every report, and the payloads: `split`, in a batch."""
        return np.zeros(len(reports), np.uint32), reports

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Information bits of one report, before rounding up to bytes."""

    @property
    @abstractmethod
    def cell_count(self) -> int:
        """How many cells a tally has, those of all members included and reports of logs not."""

    @property
    def cell_rule(self) -> CellRule:
        """What one report adds to the cells of a tally, against which stored tallies are checked."""
        return CellRule()

    @abstractmethod
    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of values: the same bytes as `privatize_one`, value by value, from the same coins."""

    @abstractmethod
    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Return a mask of the reports that this mechanism could have made."""

    @abstractmethod
    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Any:
        """Count reports; the tally of two batches together is the sum of their tallies."""

    @abstractmethod
    def estimate(self, tally: Any, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Return unbiased estimates with their exact variance."""

    @abstractmethod
    def log_prob(self, reports: Reports, value: Any) -> F64:
        """Return the natural logarithm of the probability of each report, given a value."""

    def all_reports(self) -> Reports:
        """Return every possible report, for audits by enumeration; refused where there are more than 2^20."""
        raise InvalidSpec(f"{self.kind}: the report space is not enumerated; audit it coordinate by coordinate")

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Any:
        """Return the tally of simulated respondents, `counts[i]` of them with value i.

        Every respondent draws a report; kinds that know the distribution of a whole tally draw that instead.
        """
        return simulate_each(self, counts, rng)

    def check_reports(self, reports: Reports) -> Reports:
        """Return the reports if all have the right layout and range; else ReportRejected says how many do not."""
        array = self._check_layout(reports)
        self._refuse_invalid(array)
        return array

    def _countable(self, reports: Reports) -> Reports:
        """Check reports before they are counted; kinds whose count notices wrong codes skip that pass (fast path)."""
        return self.check_reports(reports)

    def _check_layout(self, reports: Reports) -> Reports:
        array = np.asarray(reports)
        base, shape = self.report_dtype.base, self.report_dtype.shape
        if array.ndim != 1 + len(shape) or array.dtype != base or array.shape[1:] != shape:
            raise ReportRejected(
                f"{self.kind} {self.digest[:6]}: reports have layout {array.dtype.str}{list(array.shape[1:])}, "
                f"must be {base.str if base.names is None else base.descr}{list(shape)}; "
                "give what privatize or decode returned"
            )
        return array

    def _refuse_invalid(self, reports: Reports) -> None:
        bad, n = int(np.count_nonzero(~self.valid(reports))), len(reports)
        if bad:
            raise ReportRejected(
                f"{self.kind} {self.digest[:6]}: {bad} of {n} reports are out of range; nothing was counted"
            )

    def decode(self, data: bytes | memoryview) -> Reports:
        """Return reports from their wire bytes, without a copy."""
        width = self.report_dtype.itemsize
        if len(data) % width:
            raise ReportRejected(f"{self.kind} {self.digest[:6]}: {len(data)} bytes are not a multiple of {width}")
        return np.frombuffer(data, self.report_dtype)


class CodeCounting(Mechanism):
    """Reports that are one code each, counted in a histogram; the count itself finds codes out of range."""

    @property
    @abstractmethod
    def codes(self) -> range:
        """The codes that a report may have."""

    @property
    def cell_count(self) -> int:
        """One for every code."""
        return self.codes.stop

    @property
    def cell_rule(self) -> CellRule:
        """One code, that may be sent."""
        return CellRule(least=1, most=1, unused=(slice(self.codes.start),))

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """A code that may be sent."""
        return (reports >= self.codes.start) & (reports < self.codes.stop)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        # One pass: the histogram counts what is out of range, and only then are the reports looked at again.
        cells, bad = histogram(reports, self.codes.stop, weights)
        if bad or np.any(cells[: self.codes.start]):
            self._refuse_invalid(reports)
        return cells

    def _countable(self, reports: Reports) -> Reports:
        return self._check_layout(reports)

    def all_reports(self) -> Reports:
        """Every code, up to 2^20 of them."""
        if len(self.codes) > MAX_REPORTS:
            return super().all_reports()
        return np.arange(self.codes.start, self.codes.stop).astype(self.report_dtype)


class Oracle(Mechanism):
    """A frequency oracle over indices 0 .. size-1: unbiased counts that are linear in the tally."""

    size: int

    @property
    def cell_count(self) -> int:
        """One for every value."""
        return self.size

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of one respondent's contribution."""
        raise NotImplementedError

    @abstractmethod
    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        """Cells of a chunk of valid reports."""

    @abstractmethod
    def _unbiased(self, cells: I64, total: int, candidates: U64) -> F64:
        """Unbiased counts of the candidates from cells that hold reports of this total weight."""

    @abstractmethod
    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        """Reports on indices that are known to lie in the domain."""

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of indices, chunk by chunk."""
        nothing = np.empty(0, self.report_dtype)
        return privatize_chunks(self._privatize, self.indices(values), coins, nothing)

    def indices(self, values: npt.ArrayLike) -> U64:
        """Values as indices below the size; a wrong one is refused without being shown."""
        return indices_below(self.size, self.kind, values)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Any:
        """Counts of the reports."""
        return count_reports(self, self._countable(reports), weights, self._count)

    def estimate(self, tally: Tally, candidates: npt.ArrayLike | None = None) -> Estimate:
        """Unbiased frequencies of all values, or of the candidates, with exact variance.

        The variance depends on the true frequency f; the plug-in max(estimate, 0) is used for it.
        """
        own_tally(self, tally)
        chosen = self._candidates(candidates)
        labels = None if candidates is None else chosen.tolist()
        if tally.is_empty:
            return no_data(len(chosen), labels)
        counts = self._counted(tally, chosen)
        scale = counts.variance_scale
        # Counts have a cell per value; a log was counted for the candidates alone, whose cells are 0, 1, 2, ...
        at = chosen if isinstance(tally, Counts) else np.arange(len(chosen), dtype=np.uint64)
        value = self._unbiased(counts.cells, counts.total, at)
        value /= counts.total
        # The variance of a weighted estimate weighs every respondent by w^2: so does the frequency plugged into it.
        share2 = value if not counts.is_weighted else self._unbiased(counts.cells2, counts.total2, at) / counts.total2
        share2 = np.clip(share2, 0, 1)
        variance = self._variance(share2, counts)
        variance *= scale
        return Estimate(
            value,
            variance,
            counts.n,
            total=float(counts.total),
            labels=labels,
            effective=1 / scale,
            covariance=lambda rows: self._combined(rows, share2, counts) * scale,
            law=self._law(counts),
            caution=UNEVEN if counts.is_uneven else "",
        )

    def _law(self, counts: Counts) -> Law:
        """How the variance depends on the true shares; under uneven weights, the largest that it can be."""
        scale, moments = counts.variance_scale, self.moments
        if not counts.is_uneven:
            return moments.law(scale)
        # Who holds the value may be the one report that weighs the most, and its noise hides that it does.
        return Law(step=moments.step * counts.heaviest, floor=max(moments.own, moments.other) * scale)

    def _variance(self, frequency: F64, counts: Counts) -> F64:
        """n times the variance; kinds with data-dependent extra terms add them here."""
        del counts
        return self.moments.variance(frequency)

    def _counted(self, tally: Tally, candidates: U64) -> Counts:
        """The counts behind an estimate; lazy oracles count a log for the candidates here."""
        if isinstance(tally, Log):
            raise ReportRejected(f"{self.kind}: a log tally cannot be estimated under a spec that keeps counts")
        del candidates
        return tally

    def _candidates(self, candidates: npt.ArrayLike | None) -> U64:
        """The candidates as indices; None stands for the whole domain, if it is small enough."""
        if candidates is not None:
            return self.indices(candidates)
        if self.size > MAX_ALL:
            raise InvalidSpec(f"{self.kind}: the domain has {self.size} values; name the candidates to estimate")
        return self._everything

    @cached_property
    def _everything(self) -> U64:
        return np.arange(self.size, dtype=np.uint64)

    def _take(self, cells: npt.NDArray[Any], candidates: U64) -> npt.NDArray[Any]:
        """The cells of the candidates. For the whole domain that is a view of all cells instead of a gather."""
        # By identity: comparing millions of indices would cost as much as the gather that it saves. The cached property
        # is read past its getter, which would build the array for domains that nobody enumerates.
        everything = self.__dict__.get("_everything")
        return cells[: self.size] if candidates is everything else cells[candidates.astype(np.intp)]

    def _combined(self, rows: F64, frequency: F64, counts: Counts) -> F64:
        """n times the variance of linear combinations of cells."""
        del counts
        return self.moments.combined(rows, frequency)

    def average_error(self) -> float:
        """Return M: n times the mean squared error of a frequency, averaged over the domain, whatever the data."""
        return self.moments.average(self.size)

    def standard_error(self, n: int) -> float:
        """Return the root mean variance of a frequency with n reports."""
        return float(np.sqrt(self.average_error() / n))

    @cached_property
    def variance_at_zero(self) -> float:
        """Var*: n times the variance of a frequency that is truly zero."""
        return self.moments.other
