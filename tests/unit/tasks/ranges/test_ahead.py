"""The adaptive tree: least squares over what was measured, better than a fixed tree on clusters, and replayable."""

import numpy as np
import pytest

from tacit.errors import InvalidSpec
from tacit.tasks.ranges.ahead import PartitionRound, drive_ahead, plan_ahead
from tacit.tasks.ranges.forecast import all_ranges_mse
from tacit.tasks.ranges.plan import choose_ranges
from tacit.tasks.ranges.ranges import Ranges, solve_ranges

N = 100_000


def clusters(size: int) -> np.ndarray:
    """Two narrow clusters."""
    at = np.arange(size) / size
    shares = np.exp(-((at - 0.3) ** 2) / (2 * 0.01**2)) + np.exp(-((at - 0.7) ** 2) / (2 * 0.02**2))
    return shares / shares.sum()


def collect(counts: np.ndarray, epsilon: str, seed: int) -> tuple[Ranges, list[int]]:
    rng, left, parts = np.random.default_rng(seed), counts.copy(), list[int]()

    def ask(asked: PartitionRound) -> object:
        # Fresh respondents: drawn without replacement from those who have not answered.
        group = rng.multivariate_hypergeometric(left, min(int(left.sum()), round(asked.share * counts.sum())))
        left[:] -= group
        parts.append(len(asked.bounds) - 1)
        held = np.bincount(asked.parts_of(np.arange(len(counts))), group, parts[-1]).astype(np.int64)
        return asked.mechanism.simulate_tally(held, rng)

    return drive_ahead(plan_ahead(size=len(counts), epsilon=epsilon, n=int(counts.sum())), ask), parts


def test_clusters_are_found_and_answered_better_than_by_a_fixed_tree() -> None:
    counts = np.random.default_rng(1).multinomial(N, clusters(1024))
    truth = np.append(0.0, np.cumsum(counts / N))
    errors, fixed, covered = [], [], []
    mechanism = choose_ranges(size=1024, epsilon="1", n=N, methods=["hh"], fanouts=[2], oracles=["oue"]).pick.mechanism
    rng = np.random.default_rng(2)
    for seed in range(3):
        found, parts = collect(counts, "1", seed)
        errors.append(all_ranges_mse(found.monotone - truth))
        tree = solve_ranges(mechanism, mechanism.simulate_tally(counts, rng))
        fixed.append(all_ranges_mse(tree.cumulative - truth))
        assert len(parts) == 10 and parts[0] == 2 and parts[-1] > 20
        low, high = np.sort(rng.integers(0, 1025, (2, 200)), axis=0)
        low, high = low[high > low], high[high > low]
        down, up = found.shares(low, high - 1).interval(0.95)
        share = truth[high] - truth[low]
        covered.append(np.mean((down <= share + 1e-12) & (share - 1e-12 <= up)))
    # The published gain over a binary tree with OUE is a factor of 3.6 to 9 in squared error.
    assert np.mean(errors) < np.mean(fixed) / 3
    assert np.mean(covered) >= 0.93


def test_uniform_data_and_few_respondents_stay_coarse() -> None:
    found, parts = collect(np.full(64, 2), "0.5", 1)
    assert parts[-1] <= 6 and found.leaves.sum() == pytest.approx(1)


def test_a_replay_of_the_same_tallies_gives_the_same_answer() -> None:
    counts = np.random.default_rng(3).multinomial(20_000, clusters(64))
    first, again = (collect(counts, "2", 5)[0] for _ in range(2))
    assert np.array_equal(first.leaves, again.leaves)


def test_the_fit_keeps_a_measurement_that_is_certain() -> None:
    """Noise-free tallies of every round give the true shares of every part."""
    steps = plan_ahead(size=16, epsilon="8", n=1 << 20)
    counts = np.zeros(16, np.int64)
    counts[[3, 12]] = 1 << 19

    def ask(asked: PartitionRound) -> object:
        held = np.bincount(asked.parts_of(np.arange(16)), counts, len(asked.bounds) - 1).astype(np.int64)
        return asked.mechanism.simulate_tally(held, np.random.default_rng(1))

    found = drive_ahead(steps, ask)
    assert found.leaves[[3, 12]] == pytest.approx([0.5, 0.5], abs=0.01)


def test_wrong_sizes_are_refused_and_nobody_answering_is_no_data() -> None:
    with pytest.raises(InvalidSpec, match="ahead"):
        next(plan_ahead(size=3, epsilon="1", n=100))
    nobody = drive_ahead(
        plan_ahead(size=16, epsilon="1", n=100),
        lambda asked: asked.mechanism.tally(asked.mechanism.decode(b"")),
    )
    assert nobody.n == 0
