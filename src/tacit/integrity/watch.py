"""What folding keeps of reports for integrity: sums of fixed size that add, and tell nothing about people.

Reports are dropped when they are counted. Common supports of up to 512 values (all of a small domain, else those with
the largest estimates in the first 5,000 reports), how many bits were set, and how seeds and buckets are distributed are
counted with them, so that the detectors of sums still run. Several questions or levels share what is kept.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit import kernels
from tacit.arrays import I64
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.pure import invert
from tacit.core.tally import Counts
from tacit.errors import ReportRejected
from tacit.integrity.cosupport import CoSupport, judged
from tacit.integrity.detectors import Sighting, det_sum, ones_sighting, uniform_sighting
from tacit.integrity.parts import OraclePart, parts_of_mechanism
from tacit.integrity.structure import Structured, listed_values, structured, support_planes
from tacit.oracles.local_hash import LocalHashOracle
from tacit.oracles.unary import UnaryOracle

MOST_WATCHED = 512
"""Values whose common supports are counted: 131,328 numbers with the single ones, a megabyte."""
FIRST_REPORTS = 5_000
"""Of larger domains values are chosen when so many reports have come; before, estimates are noise alone."""
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

    def joined(self, other: "WatchedSums") -> "WatchedSums":
        """The sums of both, which watch the same values."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _ARRAYS[1:]}
        return replace(self, n=self.n + other.n, **sums)

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


def watched_parts(mechanism: Mechanism) -> list[OraclePart]:
    """The parts of a mechanism that are watched."""
    return [part for part in parts_of_mechanism(mechanism) if watched_oracle(part.oracle) is not None]


def most_watched(parts: int) -> int:
    """How many values of each of several parts are watched, so that all together keep as much as one.

    >>> most_watched(1), most_watched(10)
    (512, 161)
    """
    return int((MOST_WATCHED * MOST_WATCHED / max(1, parts)) ** 0.5)


def watch_more(
    oracle: Structured, kept: WatchedSums | None, reports: Reports, counts: Counts, *, most: int = MOST_WATCHED
) -> WatchedSums | None:
    """Return what is kept with further reports; `counts` are of all reports so far, with these. None before any.

    A small domain is watched from the first report on or not at all: sums that miss some would tell less than they say.
    """
    if len(reports) == 0:
        return kept
    if kept is None:
        is_due = counts.n >= FIRST_REPORTS if oracle.size > most else counts.n == len(reports)
        kept = _begun(oracle, reports, counts, most) if is_due else None
    return None if kept is None else kept.plus(oracle, reports)


def _begun(oracle: Structured, reports: Reports, counts: Counts, most: int) -> WatchedSums:
    """Nothing yet, for the values that are the most frequent so far."""
    shares = invert(oracle.p, oracle.q, counts.n, counts.cells) / max(1, counts.n)
    values = listed_values(oracle, most, shares)
    pairs = len(values) * (len(values) + 1) // 2
    none = np.zeros(0, np.int64)
    empty = WatchedSums(0, values, np.zeros(pairs, np.int64), none, none, none)
    # Histograms of no reports at all have the lengths that this kind needs.
    sizes = [len(part) for part in _histograms(oracle, reports[:0])]
    return replace(
        empty, **dict(zip(("ones", "seeds", "buckets"), (np.zeros(n, np.int64) for n in sizes), strict=True))
    )


def added_up(watches: Sequence[WatchedSums]) -> list[WatchedSums]:
    """Sums of several shards; those that watch the same values are one."""
    found: dict[bytes, WatchedSums] = {}
    for watch in watches:
        same = found.get(key := watch.values.tobytes())
        found[key] = watch if same is None else same.joined(watch)
    return list(found.values())


def sum_sighting(oracle: Structured, tally: Counts) -> Sighting | None:
    """DET-SUM from counts alone."""
    return det_sum(oracle, tally.n, tally.cells)
