"""Tests that tell a probability keep it where nothing is to be found: independence of two questions, RAPPOR's strings.

Runs that reject are binomial: more than `allowed` have a probability below 1e-5 where each rejects with 0.05 at most.
"""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tacit.core.estimate import Estimate
from tacit.core.statistics.binomial import least_significant
from tacit.decode.rappor import decode_rappor
from tacit.oracles.grr import GRR
from tacit.oracles.rappor import RAPPOR
from tacit.tasks.marginals.association import error_covariance, wald_test

LEVEL = 0.05


def allowed(runs: int) -> int:
    return least_significant(runs, LEVEL, 1e-5) - 1


def covariance_of(estimate: Estimate) -> Any:
    """The covariance matrix of all cells, from the variances of their sums."""
    cells = np.eye(len(estimate.value))
    sums = (cells[:, None] + cells[None]).reshape(-1, len(cells))
    single = estimate.variance_of(cells)
    pairs = (estimate.variance_of(sums).reshape(cells.shape) - single[:, None] - single[None]) / 2
    np.fill_diagonal(pairs, single)
    return pairs


def independent_tables(n: int, epsilon: str, share: Any, runs: int) -> Any:
    """Tables of two independent questions whose answers have these shares."""
    rng, size = np.random.default_rng([n, 7]), len(share)
    oracle = GRR(size=size * size, epsilon=epsilon)
    for _ in range(runs):
        tally = oracle.simulate_tally(rng.multinomial(n, np.outer(share, share).ravel()), rng)
        estimate = oracle.estimate(tally)
        matrix = covariance_of(estimate)
        cells, shape = estimate.value.reshape(size, size), (size, size)
        yield SimpleNamespace(
            cells=cells, shape=shape, covariance=lambda matrix=matrix: matrix, respondents=n, status="covered"
        )


@pytest.mark.parametrize(
    ("n", "epsilon", "share"),
    [
        (100, "8", [0.2] * 5),
        (100, "4", [0.2] * 5),
        (300, "8", [0.1, 0.9]),
        (300, "4", [0.2] * 5),
        (1000, "2", [0.2] * 5),
    ],
)
def test_independent_questions_are_called_dependent_as_rarely_as_stated(n: int, epsilon: str, share: Any) -> None:
    runs = 200
    rejected = sum(wald_test(cast("Any", t)).rejects(LEVEL) for t in independent_tables(n, epsilon, share, runs))
    assert rejected <= allowed(runs)


def test_a_test_that_trusts_empty_cells_would_be_noticed() -> None:
    """The power of the test above: with the sampling error of the observed cells, far too many are rejected."""
    rejected = 0
    for table in independent_tables(100, "8", [0.2] * 5, 200):
        trusting = error_covariance(cast("Any", table), population=True)
        table.covariance = lambda matrix=trusting: matrix
        rejected += wald_test(cast("Any", table), population=False).rejects(LEVEL)
    assert rejected > allowed(200)


def test_a_cell_that_nobody_is_expected_in_makes_the_test_unreliable() -> None:
    few, many = (next(independent_tables(n, "8", [0.02, 0.98], 1)) for n in (1000, 100_000))
    assert not wald_test(few).reliable and wald_test(many).reliable


def test_absent_strings_are_not_certified_because_of_strings_that_nobody_listed() -> None:
    """200 unlisted values hold 40 %, and share bits with all candidates in 8 cohorts of 16 bits."""
    rng, n, runs = np.random.default_rng(2), 10_000, 60
    mechanism = RAPPOR(epsilon="8", bits=16, hashes=2, cohorts=8, key=1)
    wrong = plain = 0
    for _ in range(runs):
        counts = np.zeros(260, np.int64)
        counts[:2] = 0.4 * n, 0.2 * n
        counts[60:] = rng.multinomial(n - counts.sum(), np.full(200, 1 / 200))
        decoded = decode_rappor(mechanism, mechanism.simulate_tally(counts, rng), np.arange(60)).decoded
        assert {0, 1} <= {group[0] for group, sure in zip(decoded.groups, decoded.significant, strict=True) if sure}
        absent = np.array([group[0] > 1 for group in decoded.groups])
        wrong += bool(decoded.significant[absent].any())
        plain += bool((decoded.z[absent] > 3.1440).any())  # isf(0.05/60): errors that leave the misfit out.
    assert wrong <= allowed(runs) < plain
