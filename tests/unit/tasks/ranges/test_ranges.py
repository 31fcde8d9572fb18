"""Ranges from real reports: unbiased, with the stated variance, over every way to ask for them."""

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.device.families.levels import Tree, node_count
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.ranges.ranges import Ranges, solve_ranges
from tacit.testing.statistics import assert_unbiased, assert_variance


def tree(size: int, fanout: int, kind: type, epsilon: str = "1.1") -> OneOf:
    heights = [height for height in range(30) if node_count(size, fanout, height) > 1][::-1]
    members = tuple(kind(size=node_count(size, fanout, height), epsilon=epsilon) for height in heights)
    return OneOf(family=Tree(size=size, fanout=fanout, heights=tuple(heights), mechanisms=members))


def crowd(size: int, n: int, seed: int = 1) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(size, 0.3)))


WAYS: dict[str, Mechanism] = {
    "flat": OUE(size=24, epsilon="1.1"),
    "flat grr": GRR(size=24, epsilon="3"),
    "hh2 hrr": tree(16, 2, HRR),
    "hh4 oue": tree(16, 4, OUE),
    "hh3 grr, ragged": tree(22, 3, GRR),
    "hh4 olh": tree(16, 4, OLH),
    "haar": tree(16, 2, HRRSigned),
    "haar, ragged": tree(11, 2, HRRSigned),
}


@pytest.mark.parametrize(("runs", "power"), [(210, 1.8), pytest.param(920, 1.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow_cases(
    "hh3 grr, ragged-210-1.8", "hh4 olh-210-1.8", "hh2 hrr-210-1.8", "haar, ragged-210-1.8", "haar-210-1.8"
)
def test_ranges_are_unbiased_with_the_stated_variance(way: str, runs: int, power: float) -> None:
    """Errors over simulated collections; false-alarm probability 1e-7 each, and `power` times the variance fails.

    Stated variances differ by a few per cent between collections and take most of the time: a few are averaged.
    """
    mechanism = WAYS[way]
    size, n, rng = mechanism.value_count, 3000, np.random.default_rng(7)
    counts = crowd(size, n)
    truth = np.concatenate([[0], np.cumsum(counts)]) / n
    low, high = np.array([0, 3, size // 3]), np.array([size // 2, 3, size - 2])
    solved = [solve_ranges(mechanism, mechanism.simulate_tally(counts, rng)) for _ in range(runs)]
    cumulative = np.array([run.cumulative for run in solved])
    values = cumulative[:, high + 1] - cumulative[:, low]
    answers = [run.ranges(low, high) for run in solved[::20]]
    assert np.array_equal(values[::20], [answer.value for answer in answers])
    errors, stated = values - (truth[high + 1] - truth[low]), np.mean([a.variance for a in answers], axis=0)
    assert_unbiased(errors, stated)
    for i in range(len(low)):
        assert_variance(errors[:, i], stated[i], must_reject=power)


def collected(mechanism: Mechanism, counts: npt.NDArray[np.int64], seed: int = 1) -> Ranges:
    values = np.repeat(np.arange(len(counts)), counts)
    return solve_ranges(mechanism, mechanism.tally(mechanism.privatize(values, SimulationCoins(seed))))


def test_all_ways_of_adding_up_agree() -> None:
    found = collected(tree(22, 3, GRR), crowd(22, 5000))
    whole = found.ranges([0, 0, 10], [21, 9, 21])
    assert whole.value[0] == 1.0 and whole.variance[0] == 0.0
    assert whole.value[1] + whole.value[2] == pytest.approx(1)
    assert whole.variance[1] == pytest.approx(whole.variance[2])
    histogram = found.histogram()
    assert histogram.value.sum() == pytest.approx(1)
    both = histogram.combine(np.concatenate([np.ones(10), np.zeros(12)]))
    assert both.value[0] == pytest.approx(whole.value[1])
    assert both.variance[0] == pytest.approx(whole.variance[1])
    assert found.prefixes([9]).value[0] == pytest.approx(whole.value[1])


@pytest.mark.slow
def test_quantiles_come_with_intervals_that_hold_the_truth() -> None:
    """95 % intervals over 150 collections miss more than 19 times with probability 6e-5; 80 % ones do with 98 %."""
    counts = crowd(64, 20_000, seed=3)
    truth = np.cumsum(counts) / counts.sum()
    rng, mechanism, held = np.random.default_rng(5), tree(64, 4, GRR, "2"), 0
    for _ in range(150):
        row = solve_ranges(mechanism, mechanism.simulate_tally(counts, rng)).quantile(0.5)
        held += row["low"] <= np.searchsorted(truth, 0.5) <= row["high"]
    assert held >= 131
    assert solve_ranges(mechanism, mechanism.simulate_tally(counts, rng)).quantile(0.0)["index"] == 0


@pytest.mark.slow
def test_simultaneous_bands_hold_everywhere_and_pointwise_ones_are_narrower() -> None:
    """A band at 95 % misses somewhere in more than 13 of 100 collections with probability below 0.001."""
    counts = crowd(32, 10_000, seed=4)
    truth = np.cumsum(counts) / counts.sum()
    rng, mechanism, missed = np.random.default_rng(6), tree(32, 2, HRRSigned), 0
    for run in range(100):
        found = solve_ranges(mechanism, mechanism.simulate_tally(counts, rng))
        wide = found.cdf(simultaneous=True)
        missed += not np.all((np.array(wide["low"]) <= truth) & (truth <= np.array(wide["high"])))
        assert np.all(np.diff(wide["consistent"]) >= 0)
        if run % 20 == 0:
            narrow = found.cdf()
            assert wide["high"][5] - wide["low"][5] >= narrow["high"][5] - narrow["low"][5]
    assert missed <= 13


def test_heavy_intervals_are_the_shortest_ones() -> None:
    counts = np.zeros(64, np.int64)
    counts[[5, 40]], counts[20:28] = 30_000, 2000
    rows = collected(tree(64, 2, HRRSigned, "4"), counts).heavy(0.2)
    spans = {(row["first"], row["last"]) for row in rows}
    assert {(5, 5), (40, 40)} <= spans
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(-1, 3, "outside"), (0, 22, "outside"), (5, 4, "above"), (0.5, 3, "integers"), ([1, 2], [3], "as many")],
)
def test_bad_ranges_are_refused(low: object, high: object, word: str) -> None:
    found = collected(tree(22, 3, GRR), crowd(22, 500))
    with pytest.raises(InvalidSpec, match=word):
        found.ranges(low, high)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_quantile_of_no_share_is_refused(share: float) -> None:
    with pytest.raises(InvalidSpec, match="from 0 to 1"):
        collected(tree(22, 3, GRR), crowd(22, 500)).quantile(share)


def test_no_reports_and_three_reports() -> None:
    mechanism = tree(16, 2, HRRSigned)
    empty = solve_ranges(mechanism, mechanism.simulate_tally(np.zeros(16, np.int64), np.random.default_rng(1)))
    assert not empty.ranges([0], [3]).has_data
    assert empty.quantile(0.5)["index"] is None
    assert empty.heavy(0.1) == []
    few = collected(mechanism, np.eye(16, dtype=np.int64)[:3].sum(axis=0))
    assert np.isinf(few.ranges([3], [3]).variance[0])
    assert few.quantile(0.5) == {"share": 0.5, "index": few.quantile(0.5)["index"], "low": 0, "high": 15}
    assert None in few.cdf()["low"] or all(0 <= x <= 1 for x in few.cdf()["low"])
    assert all(x is None or np.isfinite(x) for column in few.cdf().values() for x in column)


def test_a_mechanism_for_something_else_is_refused() -> None:
    signed = HRRSigned(size=4, epsilon="1")
    with pytest.raises(InvalidSpec, match="hrr_signed"):
        solve_ranges(signed, signed.tally(signed.privatize([1], SimulationCoins(1))))
