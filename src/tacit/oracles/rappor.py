"""Basic RAPPOR over a small domain, and RAPPOR with Bloom filters and cohorts over any 64-bit values.

A RAPPOR tally is a table with a line per cohort, its number of reports and then how often each Bloom bit was set:

    cohort 0   | reports | bit 0 | bit 1 | ... |
    cohort 1   | reports | bit 0 | bit 1 | ... |

Frequencies of candidates are the coefficients of one weighted regression of all bits of all cohorts on the bits that
each candidate sets. Reference: Erlingsson, Pihur and Korolova, CCS 2014; docs/maths/rappor.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import F64, I64, U32, U64, Mask
from tacit.core.cell_rule import CellRule
from tacit.core.estimate import Estimate, no_data
from tacit.core.mechanism import MAX_REPORTS, Mechanism, Reports, integer_array
from tacit.core.sharing import public_seeds, respondents_of
from tacit.core.statistics.least_squares import LinearSolver, linear_solver
from tacit.core.tally import Counts, count_reports, own_tally
from tacit.device.kinds.rappor import BasicRAPPORDevice, RAPPORDevice
from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.row_bits import all_row_bits, row_bits_dtype, row_tables
from tacit.oracles.unary import UnaryOracle, all_bitmaps, bit_log_prob, padding_is_zero

# Entries of (answer, cohort, candidate) arrays that are worked on at a time.
_CHUNK_CELLS = 1 << 22


class BasicRAPPOR(BasicRAPPORDevice, UnaryOracle):
    """Basic RAPPOR: permanent noisy bits of the one-hot value, reported through fresh noise each time.

    Reports: d bits. Cost: about 7.3 coin words per 64 bits and layer; O(n d) bit additions to tally.
    Privacy: epsilon; a single report tells less. It covers repeated reports on one unchanged value only if the device
    keeps its permanent bits, which no client here does: a compatibility kind, for one report per respondent.
    Variance: pure, with the one-report rates r1, r0; one-shot it is SUE's.
    Reference: Erlingsson, Pihur and Korolova, CCS 2014, sections 2 and 3.

    >>> m = BasicRAPPOR(size=8, epsilon="2.197224577336219", zero="0.25", one="0.75")
    >>> round(float(m.p), 6), round(float(m.q), 6), round(m.n_report_epsilon(1), 4)
    (0.625, 0.375, 1.0217)
    """

    @cached_property
    def p(self) -> Fraction:
        """Probability that a report sets the bit of the true value."""
        return self.rates[0]

    @cached_property
    def q(self) -> Fraction:
        """Probability that a report sets any other bit."""
        return self.rates[1]

    def _privatize(self, indices: U64, coins: Coins) -> Reports:
        return kernels.draw_bits(indices.astype(np.int32)[:, None], self.size, self.layers, coins)


class RAPPOR(RAPPORDevice, Mechanism):
    """RAPPOR: the noisy Bloom filter of a value under the hash functions of the device's cohort.

    Reports: log2(cohorts) + bits. Cost: one word, then about 7.3 per 64 bits and layer; one regression.
    Privacy: epsilon, shared by 2 x hashes bits; the cohort is independent of the value. A compatibility kind, for one
    report per respondent: no client here keeps the cohort and the permanent bits.
    Variance: of the regression, against these respondents: noise of the bits and of who is in which cohort. A
    count's standard deviation is at least sqrt(n r0 (1-r0)/hashes)/(r1-r0), whatever bits and cohorts are.
    Reference: Erlingsson, Pihur and Korolova, CCS 2014; one regression decodes, see docs/maths/rappor.md.

    >>> m = RAPPOR(epsilon="2", bits=128, cohorts=16, key=7)
    >>> m.report_bits
    132
    """

    exact_simulation = True

    @property
    def report_dtype(self) -> "np.dtype[Any]":
        """The cohort, then the packed Bloom filter."""
        return row_bits_dtype("cohort", self.cohorts, self.bits)

    @property
    def report_bits(self) -> int:
        """log2 of the cohorts, and the Bloom bits."""
        return (self.cohorts - 1).bit_length() + self.bits

    @property
    def cell_count(self) -> int:
        """Reports and bits of every cohort."""
        return self.cohorts * (1 + self.bits)

    @property
    def cell_rule(self) -> CellRule:
        """One cohort, and some bits of its filter."""
        return CellRule(groups=self.cohorts)

    @cached_property
    def seeds(self) -> U32:
        """The public seeds, one line per cohort."""
        return public_seeds(self.key, self.cohorts * self.hashes).reshape(self.cohorts, self.hashes)

    def ids(self, values: npt.ArrayLike) -> U64:
        """Values as 64-bit ids; a wrong one is refused without being shown."""
        array = integer_array(values)
        wrong = array.dtype.kind not in "iu" or array.ndim != 1 or bool((array < 0).any())
        if array.size and wrong:
            raise InvalidValue(
                f"{self.kind}: values must be a one-dimensional array of integers from 0 to 2^64 - 1; "
                "turn text into ids with text_id"
            )
        return array.astype(np.uint64).reshape(-1)

    def privatize(self, values: npt.ArrayLike, coins: Coins) -> Reports:
        """Reports on a batch of ids, each with a cohort of its own."""
        ids = self.ids(values)
        reports = np.empty(len(ids), self.report_dtype)
        reports["cohort"], reports["bits"] = kernels.draw_hashed_bits(ids, self.seeds, self.bits, self.layers, coins)
        return reports

    def valid(self, reports: Reports) -> Mask:
        """A cohort that exists, and no bit beyond the filter."""
        return (reports["cohort"] < self.cohorts) & padding_is_zero(reports["bits"], self.bits)

    def tally(self, reports: Reports, weights: npt.ArrayLike | None = None) -> Counts:
        """Per cohort, the number of reports and of each set bit."""
        return count_reports(self, self.check_reports(reports), weights, self._count)

    def _count(self, reports: Reports, weights: I64 | None) -> I64:
        return row_tables(reports["cohort"], reports["bits"], (self.cohorts, self.bits), weights).reshape(-1)

    def _bloom(self, cohorts: npt.NDArray[Any], ids: U64) -> Mask:
        """A Bloom filter per line: that of value ids[i] in cohort cohorts[i]."""
        at = kernels.buckets_of(self.seeds[cohorts.astype(np.intp)], ids[:, None], self.bits)
        filters = np.zeros((len(ids), self.bits), np.bool_)
        np.put_along_axis(filters, at.astype(np.intp), True, axis=1)
        return filters

    def design(self, candidates: npt.ArrayLike) -> Mask:
        """Return the design matrix: row cohort * bits + bit, column candidate, whether the candidate sets that bit."""
        ids = self.ids(candidates)
        filters = [self._bloom(np.full(len(ids), cohort), ids).T for cohort in range(self.cohorts)]
        return np.concatenate(filters)

    def bit_frequencies(self, tally: Counts) -> tuple[F64, F64]:
        """Return per cohort and bit the unbiased share of the cohort whose true bit is set, and its variance.

        The variance r (1 - r)/(N (r1 - r0)^2), r plugged in, contains the sampling of respondents into cohorts.
        An empty cohort has share 0 and infinite variance.
        """
        own_tally(self, tally)
        parts = self._parts(tally)
        # The rate of set bits at the estimated share, clipped to a share that can be.
        r1, r0 = map(float, self.rates)
        rate = r0 + (r1 - r0) * np.clip(parts.share, 0, 1)
        with np.errstate(divide="ignore"):
            variance = rate * (1 - rate) / ((r1 - r0) ** 2 * parts.effective)
        return parts.share, variance

    def _parts(self, tally: Counts) -> "_Parts":
        """Unbiased shares of set bits, with what the regression needs to weigh them."""
        table = tally.cells.reshape(self.cohorts, -1).astype(np.float64)
        squares = tally.cells2.reshape(self.cohorts, -1)[:, 0].astype(np.float64)
        sizes, r1, r0 = table[:, 0], *map(float, self.rates)
        # An empty cohort has no rate; it gets that of bits nobody set and no effective reports, hence no weight.
        seen = sizes > 0
        rates = np.divide(table[:, 1:], sizes[:, None], out=np.full(table[:, 1:].shape, r0), where=seen[:, None])
        # Kish's effective number of reports of a cohort: (sum w)^2 / sum w^2, the number itself without weights.
        effective = np.divide(sizes**2, squares, out=np.zeros_like(sizes), where=seen)
        return _Parts(
            ((rates - r0) / (r1 - r0)).reshape(-1),
            np.repeat(effective, self.bits),
            sizes / max(tally.total, 1),
        )

    def estimate(self, tally: Counts, candidates: npt.ArrayLike | None = None, *, complete: bool = False) -> Estimate:
        """Return unbiased frequencies of the candidates by one regression on all bits of all cohorts.

        Rows are weighted by the size of their cohort, which is independent of the noise: nothing is biased.
        One intercept absorbs values that are not listed, on average over hash functions; `complete` drops it,
        which is right only when every value anybody holds is listed. A frequency (or combination) that the
        bits do not identify has infinite variance. With more candidates than bits x cohorts, decode instead.
        """
        own_tally(self, tally)
        ids = self._chosen(candidates)
        if tally.is_empty:
            return no_data(len(ids), ids.tolist())
        fit = self._fit(tally, self.design(ids), complete)
        value = (fit.solver.operator @ fit.parts.share)[: len(ids)]
        covariance = fit.covariance(value)
        variance = covariance(np.eye(len(ids)))
        return Estimate(
            value,
            variance,
            tally.n,
            total=float(tally.total),
            labels=ids.tolist(),
            effective=1 / tally.variance_scale,
            covariance=covariance,
        )

    def _chosen(self, candidates: npt.ArrayLike | None) -> U64:
        """The candidates as ids; refused without any, and where there are more than observations."""
        if candidates is None:
            raise InvalidSpec(f"{self.kind}: the domain is not enumerated; name the candidates to estimate")
        ids = self.ids(candidates)
        if len(ids) > self.cohorts * self.bits:
            raise InvalidSpec(
                f"{self.kind}: {len(ids)} candidates for {self.cohorts * self.bits} bits, must not be more; "
                "use decode_rappor, which selects first"
            )
        return ids

    def _fit(self, tally: Counts, design: Mask, complete: bool) -> "_Fit":
        """The regression of the bits on the candidates, with the noise of every observation."""
        parts = self._parts(tally)
        columns = design.astype(np.float64)
        if not complete:
            columns = np.column_stack([columns, np.ones(len(columns))])
        r1, r0 = map(float, self.rates)
        # Variance of a reported bit given the true one, averaged over the cohort; and how full a filter is on average.
        bit = r0 * (1 - r0) + np.clip(parts.share, 0, 1) * (r1 * (1 - r1) - r0 * (1 - r0))
        fill = self.hashes / self.bits
        # Rows are weighted by the size of their cohort and not by their estimated noise, which depends on the data and
        # would bias the fit.
        return _Fit(
            linear_solver(columns, parts.effective),
            parts,
            design.reshape(self.cohorts, self.bits, -1),
            bit / (r1 - r0) ** 2,
            fill * (1 - fill),
            tally.variance_scale * tally.n / max(1, tally.n - 1),
        )

    def standard_error(self, n: int) -> float:
        """Return the least standard error of a frequency with n reports; small designs reach about 1.1 times it."""
        r1, r0 = map(float, self.rates)
        return float(np.sqrt(r0 * (1 - r0) / (self.hashes * n)) / (r1 - r0))

    def log_prob(self, reports: Reports, value: Any) -> F64:
        """A uniform cohort, then independent bits."""
        filters = self._bloom(reports["cohort"], np.full(len(reports), value, np.uint64))
        return bit_log_prob(reports["bits"], filters, *self.rates) - np.log(self.cohorts)

    def all_reports(self) -> Reports:
        """Every cohort with every bitmap, for small filters."""
        if self.cohorts << self.bits > MAX_REPORTS:
            return super().all_reports()
        return all_row_bits(self.report_dtype, "cohort", self.cohorts, all_bitmaps(self.bits))

    def simulate_tally(self, counts: npt.ArrayLike, rng: np.random.Generator) -> Counts:
        """Draw a cohort per respondent (ids are positions in `counts`), then binomial bits per cohort."""
        true = np.zeros((self.cohorts, 1 + self.bits), np.int64)
        for ids in respondents_of(counts):
            true += self._true_table(rng.integers(0, self.cohorts, len(ids)), ids)
        sizes, ones = true[:, :1], true[:, 1:]
        r1, r0 = map(float, self.rates)
        true[:, 1:] = rng.binomial(ones, r1) + rng.binomial(sizes - ones, r0)
        cells, n = true.reshape(-1), int(sizes.sum())
        return Counts(self, n, cells, cells, n, n)

    def _true_table(self, cohorts: I64, ids: U64) -> I64:
        """Reports per cohort and true bits, before any noise."""
        table = np.zeros((self.cohorts, 1 + self.bits), np.int64)
        table[:, 0] = np.bincount(cohorts, minlength=self.cohorts)
        at = kernels.buckets_of(self.seeds[cohorts], ids[:, None], self.bits).astype(np.int64)
        # Two hash functions may set the same bit, which counts once: equal neighbours after sorting.
        at.sort(axis=1)
        fresh = np.diff(at, axis=1, prepend=-1) > 0
        places = (cohorts[:, None] * self.bits + at)[fresh]
        table[:, 1:] = np.bincount(places, minlength=self.cohorts * self.bits).reshape(self.cohorts, -1)
        return table


@dataclass(frozen=True, eq=False)
class _Parts:
    """Unbiased shares per (cohort, bit), effective reports behind each, and the share of each cohort."""

    share: F64
    effective: F64
    cohort: F64


@dataclass(frozen=True, eq=False)
class _Fit:
    """A regression with fixed weights, and what its exact variance needs."""

    solver: LinearSolver
    parts: _Parts
    design: Mask
    """Indexed (cohort, bit, candidate)."""
    noise: F64
    """Variance of one report's debiased bit, per (cohort, bit)."""
    spread: float
    """Variance of a true bit of a value that is not listed."""
    scale: float
    """Factor of the assignment variance: 1/(n - 1), or its like under weights."""

    def covariance(self, frequency: F64) -> "Callable[[F64], F64]":
        """Return the variance of linear combinations (rows) of the frequencies, estimates plugged in."""
        cohorts, _, candidates = self.design.shape
        step = max(1, _CHUNK_CELLS // max(1, cohorts * candidates))
        known = np.clip(frequency, 0, None)

        def variance(rows: F64) -> F64:
            parts = [self._variance(rows[i : i + step], known) for i in range(0, len(rows), step)]
            return np.concatenate(parts) if parts else np.zeros(0)

        return variance

    def _variance(self, rows: F64, known: F64) -> F64:
        """Variance of `rows @ coefficients`: noise of the bits, unlisted values, and the draw of the cohorts."""
        # Answers have no weight on the intercept, which is the last coefficient where there is one.
        padding = np.zeros((len(rows), len(self.solver.scale) - rows.shape[1]))
        full = np.concatenate([rows, padding], axis=1)
        weights = full @ self.solver.operator
        unlisted = max(0.0, 1 - float(known.sum())) * self.spread
        per_report = np.divide(
            self.noise + unlisted,
            self.parts.effective,
            out=np.zeros_like(self.noise),
            where=self.parts.effective > 0,
        )
        total = weights**2 @ per_report + self.scale * self._assignment(weights, known)
        return np.where(self.solver.identifies(full), total, np.inf)

    def _assignment(self, weights: F64, known: F64) -> F64:
        """Variance of who fell into which cohort: a random assignment of fixed respondents to fixed sizes.

        Only the interaction of value and cohort matters (Hoeffding 1951): what a value adds in every cohort
        alike is a truth about the respondents, and what a cohort adds for every value alike cancels.
        """
        # Indices: r answer, c cohort, k bit, v candidate. `effect` is what a holder of v in cohort c adds to answer r;
        # its mean over cohorts and then its mean over values are taken off, which leaves the interaction.
        cohorts, bits, _ = self.design.shape
        share = self.parts.cohort
        effect = np.einsum("rck,ckv->rcv", weights.reshape(-1, cohorts, bits), self.design, optimize=True)
        effect = np.divide(effect, share[:, None], out=np.zeros_like(effect), where=share[:, None] > 0)
        values = known / max(1.0, float(known.sum()))
        effect = effect - np.einsum("c,rcv->rv", share, effect)[:, None, :]
        effect = effect - np.einsum("v,rcv->rc", values, effect)[:, :, None]
        return np.einsum("c,v,rcv,rcv->r", share, values, effect, effect, optimize=True)
