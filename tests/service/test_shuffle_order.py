"""The order in which reports come out of real shuffler processes tells nothing about the order in which they went in.

All words of a session are known here, so that one session says where every report went. Both orders are cut into four
quarters; for a uniform permutation the table of quarters, whose margins are fixed, has a chi-square statistic of
(4 - 1)^2 = 9 degrees of freedom. The assertion has the false-alarm probability ALPHA, and the last test proves what it
rejects: an order that was kept, halves that were mixed apart from each other, and half of the rows left in place.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.service.shuffling import Cluster

from tacit.arrays import I64
from tacit.testing.statistics import ALPHA, chi_square_p

REPORTS = 160
QUARTERS = 4


def assert_order_is_lost(places: I64) -> None:
    """Assert that rows 0, 1, ... came out at places that look like a uniform permutation."""
    n = len(places)
    table = np.zeros((QUARTERS, QUARTERS))
    np.add.at(table, (np.arange(n) * QUARTERS // n, places * QUARTERS // n), 1)
    expected = n / QUARTERS**2
    # With both margins fixed the statistic is larger by n/(n - 1) than for independent draws.
    statistic = float(((table - expected) ** 2).sum() / expected) * (n - 1) / n
    p = chi_square_p(statistic, (QUARTERS - 1) ** 2)
    assert p > ALPHA, f"the order shows: chi-square {statistic:.1f}, p {p:.1e}"


def places_of(cluster: Cluster, mode: str) -> I64:
    """Run a session, and say at which place each report came out, in the order of slots in which they went in."""
    session = cluster.begin(mode, fakes=0)
    words = [1_000 + i for i in range(REPORTS)]
    uploads = cluster.send_words(words)
    by_slot = [word for _, word in sorted(zip((upload.slot for upload in uploads), words, strict=True))]
    out = {int(word): place for place, word in enumerate(cluster.finish().words)}
    assert session.fake_rows == 0 and sorted(out) == words
    return np.array([out[word] for word in by_slot])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["osh", pytest.param("ss", marks=pytest.mark.slow)])
def test_reports_leave_three_processes_in_a_random_order(tmp_path: Path, mode: str) -> None:
    with Cluster(tmp_path, killable=(1, 2, 3)) as cluster:
        assert_order_is_lost(places_of(cluster, mode))


def test_orders_that_tell_something_are_noticed() -> None:
    rng = np.random.default_rng(4)
    kept, half = np.arange(REPORTS), REPORTS // 2
    apart = np.concatenate([rng.permutation(half), half + rng.permutation(half)])
    some = kept.copy()
    moved = rng.choice(REPORTS, half, replace=False)
    some[moved] = rng.permutation(moved)
    for places in (kept, kept[::-1], apart, some):
        with pytest.raises(AssertionError, match="the order shows"):
            assert_order_is_lost(places)
    # Under a uniform permutation it holds: 2,000 of them, none of which may fail but with probability 2e-4.
    for _ in range(2_000):
        assert_order_is_lost(rng.permutation(REPORTS))
