"""DET-SUM, DET-ONES, DET-SEED and DET-JUMP: what fakes do that honest reports do not, one report at a time or summed.

Each detector returns a `Sighting` with a p-value that holds for honest data of every shape; whoever runs them decides
how much false-alarm probability each may spend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.statistics.binomial import mass
from tacit.core.statistics.chi_square import chi_square_tail
from tacit.core.statistics.normal import normal_sf
from tacit.integrity.structure import Structured
from tacit.integrity.tails import upper_tail_of_sum
from tacit.oracles.blocks import SS
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import LocalHashOracle
from tacit.oracles.unary import UnaryOracle

_LEAST_EXPECTED = 10.0
"""Cells of a histogram with a smaller expected count are pooled, so that the chi-square law holds."""
_SEED_BINS = 256


@dataclass(frozen=True)
class Sighting:
    """What one detector saw: a statistic and how likely honest reports are to reach it."""

    detector: str
    statistic: float
    p_value: float
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "detector": self.detector,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "note": self.note,
        }


def det_sum(oracle: Structured, n: int, supports: I64) -> Sighting | None:
    """DET-SUM: the total of all supports, whose mean does not depend on the data; None where it is always the same."""
    if isinstance(oracle, SS) or n == 0:
        return None
    p, q, others = float(oracle.p), float(oracle.q), oracle.size - 1
    variance = n * (p * (1 - p) + others * q * (1 - q))
    third = n * (p * (1 - p) * (1 - 2 * p) + others * q * (1 - q) * (1 - 2 * q))
    z = (float(supports.sum()) - n * (p + others * q)) / variance**0.5
    # One part is a single support, which adds at most 1 - q, and takes off at most p.
    side = 1 if z >= 0 else -1
    largest = (1 - min(p, q) if side > 0 else max(p, q)) / variance**0.5
    tail = upper_tail_of_sum(abs(z), side * third / variance**1.5, largest)
    return Sighting(
        "det_sum", z, min(1.0, 2 * tail), "more supports than honest" if z > 0 else "fewer supports than honest"
    )


def det_ones(oracle: Structured, reports: Reports) -> Sighting | None:
    """DET-ONES: how many bits reports set, against the exact law, which is the same for every value."""
    if not isinstance(oracle, UnaryOracle) or len(reports) == 0:
        return None
    ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
    return ones_sighting(oracle, np.bincount(ones, minlength=oracle.size + 1))


def ones_sighting(oracle: UnaryOracle, histogram: I64) -> Sighting:
    """Judge a histogram of how many bits were set."""
    d, p = oracle.size, float(oracle.p)
    fewer = mass(np.arange(d + 1), d - 1, float(oracle.q))
    # The d - 1 other bits are set with q each; one's own bit moves that law up by one place, with probability p.
    law = (1 - p) * fewer + p * np.concatenate([[0.0], fewer[:-1]])
    return chi_square_sighting("det_ones", histogram, law, "the numbers of set bits are not those of honest reports")


def det_seed(oracle: Mechanism, reports: Reports) -> list[Sighting]:
    """DET-SEED: hash seeds, buckets or rows that are not uniform, and seeds that repeat."""
    if isinstance(oracle, LocalHashOracle) and len(reports):
        top = np.bincount((reports["seed"] >> np.uint32(24)).astype(np.intp), minlength=_SEED_BINS)
        buckets = np.bincount(reports["bucket"].astype(np.intp), minlength=oracle.g)
        return seed_sightings(top, buckets, len(reports) - len(np.unique(reports["seed"])))
    if isinstance(oracle, HRR) and len(reports):
        rows = np.bincount((reports >> 1).astype(np.intp), minlength=oracle.order)[oracle.first :]
        return [uniform_sighting("det_seed", rows, "rows are not drawn evenly")]
    return []


def seed_sightings(top: I64, buckets: I64, repeated: int) -> list[Sighting]:
    """Judge histograms of the top byte of seeds and of buckets, and how many seeds were seen before."""
    n = int(top.sum())
    # Birthdays: n (n - 1)/2 pairs of seeds, each of them equal with probability 2^-32.
    expected = n * (n - 1) / 2**33
    return [
        uniform_sighting("det_seed", top, "seeds are not drawn evenly"),
        uniform_sighting("det_bucket", buckets, "buckets are not even"),
        Sighting("det_repeat", float(repeated), poisson_tail(repeated, expected), "seeds repeat"),
    ]


def det_jump(before: Estimate, after: Estimate, *, most: int = 10) -> tuple[Sighting, list[int]]:
    """DET-JUMP: the largest change between two batches in its own standard errors, and the values that changed most.

    Honest opinions change too: this ranks values for review, and is no proof of anything.
    """
    if not (before.has_data and after.has_data) or len(before) != len(after):
        return Sighting("det_jump", 0.0, 1.0), []
    z = (after.value - before.value) / np.sqrt(before.variance + after.variance)
    order = np.argsort(-np.abs(z), kind="stable")[:most]
    largest = float(np.abs(z).max())
    # Two sides, and a union bound over all values, however their changes depend on each other.
    return Sighting("det_jump", largest, min(1.0, 2 * len(z) * normal_sf(largest)), "answers jumped"), order.tolist()


def uniform_sighting(detector: str, counts: npt.NDArray[np.int64], note: str) -> Sighting:
    """Test that cells are equally likely."""
    return chi_square_sighting(detector, counts, np.full(len(counts), 1 / len(counts)), note)


def chi_square_sighting(detector: str, observed: I64, law: F64, note: str) -> Sighting:
    """Test a histogram against a law; rare cells next to each other are pooled."""
    n = int(observed.sum())
    cells, expected = _pooled(observed.astype(np.float64), law * n)
    # A single cell holds all reports whatever happens, so that nothing could show.
    if len(cells) < 2:
        return Sighting(detector, 0.0, 1.0, note)
    statistic = float(np.sum((cells - expected) ** 2 / expected))
    # The total is given, which takes one degree of freedom.
    return Sighting(detector, statistic, chi_square_tail(statistic, len(cells) - 1), note)


def _pooled(observed: F64, expected: F64) -> tuple[F64, F64]:
    """Neighbouring cells merged until each has enough expected counts; the remainder joins the last."""
    seen: list[float] = []
    hoped: list[float] = []
    pending = [0.0, 0.0]
    for o, e in zip(observed.tolist(), expected.tolist(), strict=True):
        pending = [pending[0] + o, pending[1] + e]
        if pending[1] >= _LEAST_EXPECTED:
            seen.append(pending[0])
            hoped.append(pending[1])
            pending = [0.0, 0.0]
    if seen:
        seen[-1] += pending[0]
        hoped[-1] += pending[1]
    return np.array(seen), np.array(hoped)


def poisson_tail(count: int, mean: float) -> float:
    """Return Pr[X >= count] of a Poisson variable.

    >>> round(poisson_tail(1, 0.5), 6)
    0.393469
    """
    if count <= 0:
        return 1.0
    # The complement of the first terms; where that cancels, the first term of the tail times a geometric bound.
    term, below = exp(-mean), 0.0
    for k in range(count):
        below += term
        term *= mean / (k + 1)
    if below < 0.999999:
        return max(0.0, 1 - below)
    return min(1.0, term / max(1e-9, 1 - mean / (count + 1)))


def findings(oracle: Structured, reports: Reports, supports: I64) -> Sequence[Sighting]:
    """Run every detector of single reports and sums that applies to an oracle."""
    found = [det_sum(oracle, len(reports), supports), det_ones(oracle, reports), *det_seed(oracle, reports)]
    return [one for one in found if one is not None]
