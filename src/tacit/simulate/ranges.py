"""Simulate a collection about an ordered domain and compare the error of all its ranges with the prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism
from tacit.errors import InvalidSpec
from tacit.numeric.square_wave import SquareWave
from tacit.post.trees.levels import TreeShape
from tacit.tasks.ranges.ahead import PartitionRound, drive_ahead, plan_ahead
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.forecast import all_ranges_mse, prefixes_mse, wave_error
from tacit.tasks.ranges.options import averaged, expected_error, expected_uncertainty
from tacit.tasks.ranges.ranges import Ranges, range_levels, solve_ranges

MASSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The true shares from which on relative errors are averaged."""

# Up to these sizes (of complete and of ragged trees) the prediction uses the true counts, which takes time.
_PLUGGED_COMPLETE, _PLUGGED_RAGGED = 1 << 18, 1 << 11
# Respondents per step of the progress bar, and the most steps.
_PART, _PARTS = 1 << 22, 16


def some_ranges(size: int, most: int, rng: np.random.Generator) -> tuple[I64, I64]:
    """Return the boundaries of all ranges, or of `most` random ones where there are more."""
    if size * (size + 1) // 2 <= most:
        low, high = np.triu_indices(size + 1, 1)
        return low.astype(np.int64), high.astype(np.int64)
    # Two boundaries that differ: the second skips the first.
    first, second = rng.integers(0, size + 1, most), rng.integers(0, size, most)
    second += second >= first
    return np.minimum(first, second), np.maximum(first, second)


def error_by_mass(
    truth: F64, found: F64, low: I64, high: I64, masses: Sequence[float] = MASSES
) -> dict[float, float | None]:
    """Return the mean relative error over the ranges whose true share is at least x, by x; None where there is none.

    `truth` and `found` are cumulative shares at boundaries. Kulkarni's dissertation, section 5.5.
    """
    true = truth[high] - truth[low]
    error = np.abs(found[high] - found[low] - true)
    result: dict[float, float | None] = {}
    for mass in masses:
        heavy = true >= mass
        result[mass] = float(np.mean(error[heavy] / true[heavy])) if heavy.any() else None
    return result


def predicted_mse(mechanism: Mechanism, counts: I64, workload: str = "ranges") -> float:
    """Return the expected squared error, averaged over a workload, with these true counts plugged in.

    On very large domains (and large ragged ones) it is that of uniform data, which has a closed form.
    """
    if isinstance(mechanism, SquareWave):
        n = max(1, int(counts.sum()))
        return wave_error(mechanism, n, counts / n, Workload.parse(workload, mechanism.size)) ** 2
    shape, levels = _levels(mechanism)
    n, work = max(2, int(counts.sum())), Workload.parse(workload, shape.size)
    if shape.size <= (_PLUGGED_COMPLETE if shape.complete else _PLUGGED_RAGGED):
        truth = counts / max(1, int(counts.sum()))
        return averaged(expected_uncertainty(shape, levels, n, truth), work)
    if len(levels) < shape.top:
        raise InvalidSpec("ranges: an error is predicted on large domains only if every level is asked")
    by_height = sorted(levels, key=lambda level: level[0])
    members, weights = [level[1] for level in by_height], [level[2] for level in by_height]
    return expected_error(shape, work, members, weights, n) / n


def _levels(mechanism: Mechanism) -> tuple[TreeShape, list[tuple[int, Mechanism, float]]]:
    """The tree and its levels: height, mechanism and share of the respondents. A plain oracle is a tree of leaves."""
    asked = range_levels(mechanism)
    levels = zip(asked.heights, asked.members, asked.shares, strict=True)
    return TreeShape(asked.sizes[0], asked.fanouts[0]), [(height, member, share) for (height,), member, share in levels]


@dataclass(frozen=True)
class RangeOutcome:
    """How one or more simulated collections went."""

    runs: int
    rmse: float
    """Root mean squared error over all ranges and runs, as they are answered: monotone."""
    raw_rmse: float
    """The same of the raw answers, which are unbiased."""
    predicted_rmse: float
    """What the exact variances say about the raw answers."""
    prefix_rmse: float
    coverage: float
    """The share of 95 % intervals of sampled ranges, as they are answered, that hold the truth."""
    by_mass: dict[float, float | None]
    """Mean relative error of the ranges of at least a true share, as they are answered."""
    seconds: float
    last: Ranges


def simulate_ranges(
    mechanism: Mechanism, counts: I64, *, runs: int, seed: int, sample: int = 1000,
    advance: Callable[[int], None] | None = None,
) -> RangeOutcome:  # fmt: skip
    """Simulate collections, `counts[i]` respondents with value i: errors of all ranges, and intervals of `sample`."""
    size = mechanism.value_count
    if len(counts) != size or runs < 1 or not counts.sum():
        raise InvalidSpec(f"ranges: needs at least one run and one respondent, and a count for each of {size} values")
    start, rng = perf_counter(), np.random.default_rng(seed)
    truth = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
    sampled, many = some_ranges(size, sample, rng), some_ranges(size, 1 << 18, rng)
    scores: list[tuple[float, float, float, float]] = []
    last: Ranges | None = None  # Earlier answers are not kept: those of a large domain are large.
    for _ in range(runs):
        last = solve_ranges(mechanism, _tally(mechanism, counts, rng, advance))
        error, raw = last.monotone - truth, all_ranges_mse(last.cumulative - truth)
        scores.append((all_ranges_mse(error), raw, prefixes_mse(error), _covered(last, truth, *sampled)))
    assert last is not None
    squares, unbiased, prefixes, covered = np.mean(scores, axis=0).tolist()
    return RangeOutcome(
        runs=runs,
        rmse=sqrt(squares),
        raw_rmse=sqrt(unbiased),
        predicted_rmse=sqrt(predicted_mse(mechanism, counts)),
        prefix_rmse=sqrt(prefixes),
        coverage=covered,
        by_mass=error_by_mass(truth, last.monotone, *many),
        seconds=perf_counter() - start,
        last=last,
    )


def simulate_ahead(counts: I64, epsilon: str, *, runs: int, seed: int, sample: int = 1000) -> RangeOutcome:
    """Simulate adaptive trees: every round is put to respondents who have not been asked before.

    The prediction is what the fits say of themselves, for there is none before the data.
    """
    n, size = int(counts.sum()), len(counts)
    start, rng = perf_counter(), np.random.default_rng(seed)
    truth = np.concatenate([[0.0], np.cumsum(counts / max(1, n))])
    sampled, many = some_ranges(size, sample, rng), some_ranges(size, 1 << 18, rng)
    scores: list[tuple[float, ...]] = []
    last: Ranges | None = None
    for _ in range(runs):
        last = _adaptive(counts.astype(np.int64), epsilon, rng)
        error, raw = last.monotone - truth, all_ranges_mse(last.cumulative - truth)
        said = float(np.mean(last.spans(*sampled)))
        scores.append((all_ranges_mse(error), raw, prefixes_mse(error), _covered(last, truth, *sampled), said))
    if last is None:
        raise InvalidSpec("ranges: needs at least one run")
    squares, unbiased, prefixes, covered, said = np.mean(scores, axis=0).tolist()
    by_mass = error_by_mass(truth, last.monotone, *many)
    errors = sqrt(squares), sqrt(unbiased), sqrt(said), sqrt(prefixes)
    return RangeOutcome(runs, *errors, covered, by_mass, perf_counter() - start, last)


def _adaptive(counts: I64, epsilon: str, rng: np.random.Generator) -> Ranges:
    """One adaptive tree over simulated respondents."""
    left, n = counts.copy(), int(counts.sum())

    def ask(asked: PartitionRound) -> Any:
        group = rng.multivariate_hypergeometric(left, min(int(left.sum()), round(asked.share * n)), method="marginals")
        left[:] -= group
        parts = len(asked.bounds) - 1
        held = np.bincount(asked.parts_of(np.arange(len(counts))), group, parts).astype(np.int64)
        return asked.mechanism.simulate_tally(held, rng)

    return drive_ahead(plan_ahead(size=len(counts), epsilon=epsilon, n=n), ask)


def _covered(answers: Ranges, truth: F64, low: I64, high: I64) -> float:
    """The coverage of 95 % intervals."""
    down, up = answers.shares(low, high - 1).interval(0.95)
    share = truth[high] - truth[low]
    # The interval of the whole domain is the single point 1, which rounding must not miss.
    return float(np.mean((down <= share + 1e-12) & (share - 1e-12 <= up)))


def _tally(mechanism: Mechanism, counts: I64, rng: np.random.Generator, advance: Callable[[int], None] | None) -> Any:
    """One simulated collection; in parts where every respondent is drawn, so that a progress bar moves."""
    waves = isinstance(mechanism, SquareWave)
    drawn = not waves and not all(member.exact_simulation for _, member, _ in _levels(mechanism)[1])
    parts = min(_PARTS, 1 + int(counts.sum()) // _PART) if drawn else 1
    tally = None
    for part in range(parts):
        # Parts of every count that differ by at most one and add up to it.
        some = counts * (part + 1) // parts - counts * part // parts
        more = mechanism.simulate_tally(some, rng)
        tally = more if tally is None else tally + more
        if advance:
            advance(int(some.sum()))
    return tally
