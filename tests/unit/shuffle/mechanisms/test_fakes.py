"""Fakes are taken off exactly: by enumeration of whole batches, and by simulation where reports cannot be listed."""

from dataclasses import replace
from itertools import product
from math import exp

import numpy as np
import pytest

from tacit.core.mechanism import Oracle
from tacit.device.domains.domain import Categories
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, SpecMismatch
from tacit.oracles.blocks import ABR, SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.unary import OUE, SUE, unpack
from tacit.shuffle.mechanisms.fakes import fake_law, fake_reports, with_fakes
from tacit.shuffle.mechanisms.messages import FragmentedUnary
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.task import QuestionTally
from tacit.testing.statistics import assert_fits, assert_unbiased, assert_variance

LISTED = [
    GRR(size=2, epsilon="1"),  # d = 2
    GRR(size=5, epsilon="2"),
    SS(size=4, epsilon="0.5"),
    HRR(size=4, epsilon="1"),  # the size is the order
    HRR(size=3, epsilon="1"),  # a column that nobody holds
    OUE(size=3, epsilon="1"),
    SUE(size=3, epsilon="3"),
]


def fake_probabilities(oracle: Oracle) -> list[float]:
    """How likely every report is as a fake: uniform, or bits like zeros."""
    reports = oracle.all_reports()
    if isinstance(oracle, OUE | SUE):
        ones, q = unpack(reports, oracle.size).sum(axis=1), float(oracle.q)
        return [q**k * (1 - q) ** (oracle.size - k) for k in ones.tolist()]
    return [1 / len(reports)] * len(reports)


@pytest.mark.parametrize("oracle", LISTED, ids=lambda oracle: f"{oracle.kind}-{oracle.size}")
def test_all_batches_average_to_the_truth_with_the_stated_variance(oracle: Oracle):
    """One respondent and one fake: reports contribute independently, so that larger batches hold nothing new."""
    mechanism, reports, fake = with_fakes(oracle, 1), oracle.all_reports(), fake_probabilities(oracle)
    value = oracle.size - 1
    held = np.exp(oracle.log_prob(reports, value))
    assert sum(fake) == pytest.approx(1) and held.sum() == pytest.approx(1)
    mean, second = np.zeros(oracle.size), np.zeros((oracle.size, oracle.size))
    for i, j in product(range(len(reports)), repeat=2):
        estimate = mechanism.estimate(mechanism.tally(reports[[i, j]])).value
        mean += held[i] * fake[j] * estimate
        second += held[i] * fake[j] * np.outer(estimate, estimate)
    truth = np.eye(oracle.size)[value]
    assert mean == pytest.approx(truth, abs=1e-9)
    covariance, law = second - np.outer(mean, mean), mechanism.law
    assert np.diag(covariance) == pytest.approx(oracle.moments.variance(truth) + law.variance)
    rows = np.array([[1.0] * oracle.size, [1.0, -2.0] + [0.0] * (oracle.size - 2)])
    assert np.einsum("ri,ij,rj->r", rows, covariance, rows) == pytest.approx(
        oracle.moments.combined(rows, truth) + law.of_sums(rows), abs=1e-9
    )


@pytest.mark.parametrize("oracle", LISTED, ids=lambda oracle: f"{oracle.kind}-{oracle.size}")
def test_fakes_are_drawn_from_the_law_that_is_taken_off(oracle: Oracle):
    drawn, reports = fake_reports(oracle, 20_000, SimulationCoins(7)), oracle.all_reports()
    known = {report.tobytes(): place for place, report in enumerate(reports)}
    places = [known[report.tobytes()] for report in oracle.check_reports(drawn)]
    assert_fits(np.bincount(places, minlength=len(reports)), np.array(fake_probabilities(oracle)))


def test_the_offset_is_a_uniform_share_for_randomised_response_and_nothing_for_local_hashing():
    assert fake_law(GRR(size=8, epsilon="1")).offset == pytest.approx(1 / 8)
    assert fake_law(OLH(size=8, epsilon="1")).offset == 0
    # A fake of GRR has variance (1/d)(1 - 1/d)/(p - q)^2, one of local hashing (1/g)(1 - 1/g)/(p - 1/g)^2.
    p, q = exp(1) / (exp(1) + 7), 1 / (exp(1) + 7)
    assert fake_law(GRR(size=8, epsilon="1")).variance == pytest.approx((1 / 8) * (7 / 8) / (p - q) ** 2)
    blh = BLH(size=8, epsilon="1")
    assert fake_law(blh).variance == pytest.approx(blh.variance_at_zero)


COUNTS = np.array([900, 400, 300, 200, 120, 60, 20, 0])


@pytest.fixture(scope="module", params=[OLH(size=8, epsilon="2"), GRR(size=8, epsilon="2")], ids=["olh", "grr"])
def simulated(request: pytest.FixtureRequest):
    """300 batches of 2,000 respondents and 1,000 fakes."""
    mechanism = with_fakes(request.param, 1000)
    rng = np.random.default_rng(5)
    return mechanism, [mechanism.estimate(mechanism.simulate_tally(COUNTS, rng)) for _ in range(300)]


def test_estimates_with_fakes_are_unbiased_and_have_the_stated_variance(simulated):
    """Four of eight cells, which are nearly independent; alpha 1e-7 each, and a variance off by 1.3 is rejected."""
    mechanism, estimates = simulated
    truth = COUNTS / COUNTS.sum()
    errors = np.array([estimate.value for estimate in estimates]) - truth
    variance = (mechanism.oracle.moments.variance(truth) + mechanism.law.variance * 1000 / 2000) / 2000
    assert_unbiased(errors[:, :4], variance[:4])
    assert_variance(errors[:, :4], variance[:4])
    stated = np.mean([estimate.variance for estimate in estimates[:20]], axis=0)
    assert stated == pytest.approx(variance, rel=0.02)
    assert {estimate.n for estimate in estimates} == {2000}


def test_the_printed_equation_is_biased_for_local_hashing(simulated):
    """Equation (9.5) subtracts r/(n d) whatever the oracle is; the test above has the power to tell."""
    mechanism, estimates = simulated
    truth = COUNTS / COUNTS.sum()
    printed = (
        np.array([estimate.value for estimate in estimates]) + 1000 / 2000 * (mechanism.law.offset - 1 / 8) - truth
    )
    variance = estimates[0].variance
    if mechanism.inner.kind == "grr":
        assert_unbiased(printed[:, :4], variance[:4])
    else:
        with pytest.raises(AssertionError, match="biased"):
            assert_unbiased(printed[:, :4], variance[:4])


def test_intervals_cover_and_those_that_forget_the_fakes_do_not(simulated):
    """Four cells of 300 runs at 95 %: 1,140 of 1,200 cover on average, with a deviation of 7.6 if independent.

    Fewer than 1,100 has probability 1e-7; without the variance of the fakes fewer do, on these very data.
    """
    mechanism, estimates = simulated
    truth = COUNTS / COUNTS.sum()

    def covering(more: float) -> int:
        shown = [
            replace(e, variance=e.variance + more * mechanism.law.variance / 2000).interval(0.95) for e in estimates
        ]
        return sum(int(np.sum((low <= truth)[4:] & (truth <= high)[4:])) for low, high in shown)

    assert covering(0.0) >= 1100 > covering(-0.5)


def test_a_log_of_reports_and_counts_give_the_same_estimate():
    reports = OLH(size=6, epsilon="2").privatize([0, 1, 2, 5] * 50, ReplayCoins(b"log"))
    fakes = fake_reports(OLH(size=6, epsilon="2"), 20, ReplayCoins(b"more"))
    everything = np.concatenate([reports, fakes])
    found = []
    for state in ("counts", "log"):
        oracle = OLH(size=6, epsilon="2", state=state)
        parts = oracle.tally(everything[:80]) + oracle.tally(everything[80:])
        mechanism = with_fakes(oracle, 20)
        settled = mechanism.settle(parts)
        assert settled.n == 200
        for tally in (parts, settled):
            estimate = mechanism.estimate(tally)
            found.append((estimate.value.tolist(), estimate.variance.tolist()))
    assert all(pair == found[0] for pair in found)
    assert mechanism.estimate(parts, [5]).value.tolist() == [found[0][0][5]]


def test_a_histogram_is_answered_from_a_batch_with_fakes_as_from_any_other():
    domain = Categories("habit", ("never", "sometimes", "often", "always"))
    mechanism = with_fakes(GRR(size=4, epsilon="2"), 3000)
    tally = mechanism.simulate_tally([600, 300, 100, 0], np.random.default_rng(3))
    answer = HISTOGRAM.answer(domain, QuestionTally(mechanism, tally, tally.n))
    assert answer.raw.n == 1000 and answer.raw.total == 1000 and answer.raw.effective == 1000
    assert answer.raw.variance == pytest.approx(mechanism.estimate(tally).variance)
    low, high = answer.raw.interval(0.999)
    assert np.all((low < [0.6, 0.3, 0.1, 0]) & (high > [0.6, 0.3, 0.1, 0]))
    assert answer.consistent is not None and answer.consistent.value.sum() == pytest.approx(1)
    assert mechanism.standard_error(1000) == pytest.approx(float(np.sqrt(answer.raw.variance.mean())), rel=0.02)


def test_no_fakes_change_nothing():
    oracle = OUE(size=5, epsilon="1")
    tally = oracle.simulate_tally([5, 4, 3, 2, 1], np.random.default_rng(1))
    plain, wrapped = oracle.estimate(tally), with_fakes(oracle, 0).estimate(tally)
    assert wrapped.value == pytest.approx(plain.value) and wrapped.variance == pytest.approx(plain.variance)
    assert wrapped.combine([1, 1, 0, 0, 0]).variance == pytest.approx(plain.combine([1, 1, 0, 0, 0]).variance)
    assert np.array(wrapped.interval()) == pytest.approx(np.array(plain.interval()))


def test_batches_that_cannot_be_are_refused():
    oracle = GRR(size=4, epsilon="1")
    mechanism, reports = with_fakes(oracle, 3), fake_reports(oracle, 3, ReplayCoins(b"f"))
    assert not mechanism.estimate(mechanism.tally(reports)).has_data
    with pytest.raises(SpecMismatch, match="2 reports, must have at least its 3 fakes"):
        mechanism.tally(reports[:2])
    with pytest.raises(SpecMismatch, match="as a whole"):
        mechanism.tally(reports) + mechanism.tally(reports)
    with pytest.raises(SpecMismatch, match="weighted"):
        mechanism.tally(reports, weights=[1, 2, 3])
    with pytest.raises(SpecMismatch, match="epsilon is"):
        mechanism.estimate(GRR(size=4, epsilon="2").tally(reports))


@pytest.mark.parametrize("oracle", [ABR(size=5, epsilon="1"), FragmentedUnary(size=4, epsilon="4")], ids=str)
def test_kinds_without_a_law_of_fakes_are_refused(oracle: Oracle):
    for refused in (lambda: with_fakes(oracle, 1), lambda: fake_reports(oracle, 1, ReplayCoins(b"f"))):
        with pytest.raises(InvalidSpec, match="has no fake reports"):
            refused()


def test_a_device_knows_nothing_of_fakes():
    inner = GRR(size=4, epsilon="1")
    mechanism = with_fakes(inner, 7)
    assert mechanism.privatize_one(2, ReplayCoins(b"a")) == inner.privatize_one(2, ReplayCoins(b"a"))
    assert (
        mechanism.privatize([2, 3], ReplayCoins(b"a")).tolist() == inner.privatize([2, 3], ReplayCoins(b"a")).tolist()
    )
    assert mechanism.holds() and mechanism.realised_odds() == inner.realised_odds()
    assert mechanism.log_prob(inner.all_reports(), 1).tolist() == inner.log_prob(inner.all_reports(), 1).tolist()
