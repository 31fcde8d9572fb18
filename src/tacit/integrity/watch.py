"""What folding keeps of reports for integrity: sums of fixed size that add, and tell nothing about people.

Reports are dropped when they are counted. Common supports of up to 128 values (all of a small domain, else those with
the largest estimates in the first reports that were counted), how many bits were set, and how seeds and buckets are
distributed are counted with them, so that the detectors of sums still run.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit import kernels
from tacit.arrays import I64
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.pure import invert
from tacit.core.tally import Counts
from tacit.errors import ReportRejected
from tacit.integrity.cosupport import CoSupport, judged
from tacit.integrity.detectors import Sighting, det_sum, ones_sighting, uniform_sighting
from tacit.integrity.structure import Structured, listed_values, structured, support_planes
from tacit.oracles.local_hash import LocalHashOracle
from tacit.oracles.unary import UnaryOracle

MOST_WATCHED = 128
"""Values whose common supports are counted: 8,256 numbers with the single ones."""
_MOST_BINS = 1 << 12
"""The largest histogram of set bits or buckets that is kept."""
_SEED_BINS = 256
_ARRAYS = ("values", "both", "ones", "seeds", "buckets")


@dataclass(frozen=True, eq=False)
class WatchedSums:
    """Sums over all reports that were watched; two of them add if they watch the same values."""

    n: int
    values: I64
    both: I64
    """For pairs of watched values (upper triangle, row by row): how many reports support both."""
    ones: I64
    """Unary kinds: how many reports set so many bits."""
    seeds: I64
    """Local hashing: top bytes of the seeds."""
    buckets: I64

    def plus(self, oracle: Structured, reports: Reports) -> "WatchedSums":
        """Return the sums with further reports."""
        both = kernels.co_support(support_planes(oracle, reports, self.values))[np.triu_indices(len(self.values))]
        ones, seeds, buckets = _histograms(oracle, reports)
        return replace(
            self,
            n=self.n + len(reports),
            both=self.both + both,
            ones=self.ones + ones,
            seeds=self.seeds + seeds,
            buckets=self.buckets + buckets,
        )

    def dump(self) -> bytes:
        """The sums as bytes: a line of JSON that says how long the arrays are, then the arrays."""
        arrays = [getattr(self, name).astype("<i8") for name in _ARRAYS]
        head = json.dumps({"n": self.n} | dict(zip(_ARRAYS, map(len, arrays), strict=True)))
        return head.encode() + b"\n" + b"".join(array.tobytes() for array in arrays)

    @classmethod
    def load(cls, data: bytes) -> "WatchedSums":
        """Read what `dump` wrote; anything else is refused."""
        head, _, rest = data.partition(b"\n")
        try:
            lengths: dict[str, int] = json.loads(head)
            numbers = np.frombuffer(rest, "<i8").astype(np.int64)
            ends = np.cumsum([lengths[name] for name in _ARRAYS])
            # Splitting at every end leaves a last part, which must be empty: the lengths are compared below.
            made = cls(lengths["n"], *np.split(numbers, ends)[:-1])
        except (ValueError, KeyError, TypeError):
            raise ReportRejected("integrity: the sums that were kept of reports cannot be read") from None
        if len(numbers) != ends[-1] or len(made.both) != len(made.values) * (len(made.values) + 1) // 2:
            raise ReportRejected("integrity: the sums that were kept of reports have another length than they state")
        return made

    def pairs(self, oracle: Structured, alpha: float) -> CoSupport:
        """Judge the common supports of the watched values."""
        k = len(self.values)
        both = np.zeros((k, k), np.int64)
        both[np.triu_indices(k)] = self.both
        both = both + np.triu(both, 1).T
        # A value is supported together with itself whenever it is supported: the diagonal has the single counts.
        shares = invert(oracle.p, oracle.q, self.n, np.diagonal(both).copy()) / max(1, self.n)
        return judged(oracle, self.n, both, self.values, shares, alpha)

    def sightings(self, oracle: Structured) -> list[Sighting]:
        """Judge the histograms that are kept for this kind."""
        found: list[Sighting] = []
        if isinstance(oracle, UnaryOracle) and len(self.ones):
            found.append(ones_sighting(oracle, self.ones))
        if len(self.seeds):
            found.append(uniform_sighting("det_seed", self.seeds, "seeds are not drawn evenly"))
        if len(self.buckets):
            found.append(uniform_sighting("det_bucket", self.buckets, "buckets are not even"))
        return found


def _histograms(oracle: Structured, reports: Reports) -> tuple[I64, I64, I64]:
    nothing = np.zeros(0, np.int64)
    if isinstance(oracle, UnaryOracle) and oracle.size < _MOST_BINS:
        ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return np.bincount(ones, minlength=oracle.size + 1), nothing, nothing
    if isinstance(oracle, LocalHashOracle):
        seeds = np.bincount((reports["seed"] >> np.uint32(24)).astype(np.intp), minlength=_SEED_BINS)
        few = oracle.g <= _MOST_BINS
        return nothing, seeds, np.bincount(reports["bucket"].astype(np.intp), minlength=oracle.g) if few else nothing
    return nothing, nothing, nothing


def watched_oracle(mechanism: Mechanism) -> "Structured | None":
    """The oracle whose reports are worth watching when they are counted; None where nothing would show."""
    oracle = structured(mechanism)
    return oracle if oracle is not None and getattr(oracle, "state", "counts") == "counts" else None


def watch_more(mechanism: Mechanism, kept: WatchedSums | None, reports: Reports) -> WatchedSums | None:
    """Return what is kept with further reports; None for mechanisms that are not watched, or before any report."""
    oracle = watched_oracle(mechanism)
    if oracle is None or (kept is None and len(reports) == 0):
        return None
    return (_begun(oracle, reports) if kept is None else kept).plus(oracle, reports)


def _begun(oracle: Structured, reports: Reports) -> WatchedSums:
    """Nothing yet, for the values that these first reports say are the most frequent."""
    tally: Any = oracle.tally(reports)
    values = listed_values(oracle, MOST_WATCHED, oracle.estimate(tally).value)
    pairs = len(values) * (len(values) + 1) // 2
    none = np.zeros(0, np.int64)
    empty = WatchedSums(0, values, np.zeros(pairs, np.int64), none, none, none)
    # Histograms of no reports at all have the lengths that this kind needs.
    sizes = [len(part) for part in _histograms(oracle, reports[:0])]
    return replace(
        empty, **dict(zip(("ones", "seeds", "buckets"), (np.zeros(n, np.int64) for n in sizes), strict=True))
    )


def sum_sighting(oracle: Structured, tally: Counts) -> Sighting | None:
    """DET-SUM from counts alone."""
    return det_sum(oracle, tally.n, tally.cells)
