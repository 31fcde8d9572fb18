"""DBitFlip: privacy and moments by enumeration, both estimators, worked numbers, batches, edges."""

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.device.kinds.bit_flip import DBitFlipDevice
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.numeric.bit_flip import DBitFlip
from tacit.simulate.coins import SimulationCoins

LN3, LN9 = "1.098612288668109691", "2.197224577336219383"


def laws_of(m):
    return np.exp([m.log_prob(m.all_reports(), value) for value in range(m.size)])


@pytest.mark.parametrize("epsilon", ["0.01", "1.2", "8", "32"])
@pytest.mark.parametrize(("size", "sampled"), [(2, 1), (2, 2), (5, 1), (5, 2), (5, 3), (5, 5)])
def test_privacy_by_enumeration(epsilon, size, sampled):
    m = DBitFlip(size=size, sampled=sampled, epsilon=epsilon)
    laws = laws_of(m)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-12)
    worst = (laws.max(axis=0) / laws.min(axis=0)).max()
    assert worst == pytest.approx(float(m.realised_odds()), rel=1e-4)
    assert m.holds()
    assert float(m.realised_odds()) == pytest.approx(m.odds / WORD, rel=1e-4)


@pytest.mark.parametrize(("size", "sampled"), [(5, 1), (5, 2), (4, 4)])
def test_horvitz_thompson_moments_by_enumeration(size, sampled):
    m = DBitFlip(size=size, sampled=sampled, epsilon="1.2")
    reports, laws, every = m.all_reports(), laws_of(m), np.arange(size, dtype=np.uint64)
    single = np.array([m._unbiased(m._count(reports[i : i + 1], None), 1, every) for i in range(len(reports))])
    np.testing.assert_allclose(laws @ single, np.eye(size), atol=1e-10)
    for value in range(size):
        centred = single - np.eye(size)[value]
        covariance = (centred * laws[value][:, None]).T @ centred
        expected = np.full(size, m.moments.other)
        expected[value] = m.moments.own
        np.testing.assert_allclose(covariance, np.diag(expected), atol=1e-10)


def test_worked_numbers():
    m = DBitFlip(size=4, sampled=2, epsilon=LN9)
    assert m.thresholds[0] / WORD == pytest.approx(0.75) and m.thresholds[1] / WORD == pytest.approx(0.25)
    reports = np.zeros(3, m.report_dtype)
    reports["buckets"] = [[0, 1], [0, 2], [2, 3]]
    reports["bits"] = [[1], [0], [0]]
    tally = m.tally(reports)
    assert m.estimate(tally, estimator="horvitz_thompson").value[0] == pytest.approx(2 / 3)
    assert m.estimate(tally).value[0] == pytest.approx(0.5)
    # One bucket spends the whole budget; per report it beats two buckets at epsilon 1.2.
    for sampled, expected in [(1, 0.0154), (2, 0.0337)]:
        single = DBitFlip(size=5, sampled=sampled, epsilon="1.2")
        assert single.variance_at_zero / 200 == pytest.approx(expected, rel=0.01)


def test_one_sampled_bucket_spends_the_whole_budget():
    m = DBitFlip(size=4, sampled=1, epsilon=LN3)
    assert m.thresholds[0] / WORD == pytest.approx(0.75)


@pytest.mark.parametrize(("size", "sampled"), [(5, 1), (5, 3), (300, 12), (70, 64)])
def test_batch_equals_loop(size, sampled):
    m = DBitFlip(size=size, sampled=sampled, epsilon="1")
    values = np.arange(60) * 7 % size
    coins = ReplayCoins(b"dbf")
    loop = b"".join(m.privatize_one(int(v), coins) for v in values)
    batch = m.privatize(values, ReplayCoins(b"dbf"))
    assert batch.tobytes() == loop and m.valid(m.decode(loop)).all()


@pytest.mark.slow_cases("1-observed", "2-horvitz", "4-observed")
@pytest.mark.parametrize(("runs", "power"), [(400, 1.8), pytest.param(1200, 1.4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("estimator", ["observed_holders", "horvitz_thompson"])
@pytest.mark.parametrize("sampled", [1, 2, 4])
def test_stated_variance_fits(estimator, sampled, runs, power):
    """Squared errors of 4 cells and of one sum against the mean stated variance.

    False alarm 1e-6 each, and a variance off by `power` is noticed; 2 % are left for the plug-in frequency.
    """
    m = DBitFlip(size=5, sampled=sampled, epsilon="4")
    counts = np.array([250, 100, 30, 20, 0])
    truth, values = counts / counts.sum(), np.repeat(np.arange(5), counts)
    errors, stated, coins = np.empty((runs, 5)), np.empty((runs, 5)), SimulationCoins(sampled)
    for run in range(runs):
        tally = m.tally(m.privatize(values, coins))
        e = m.estimate(tally, estimator=estimator)
        both = e.combine([1, 1, 0, 0, 0])
        errors[run] = [*(e.value - truth)[:4], both.value[0] - truth[:2].sum()]
        stated[run] = [*e.variance[:4], both.variance[0]]
    ratio = (errors**2).mean(axis=0) / stated.mean(axis=0)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], runs) / runs
    assert (0.98 * low < ratio).all() and (ratio < 1.02 * high).all()
    assert (ratio / power < low).all() and (ratio * power > high).all()
    assert (np.abs(errors.mean(axis=0)) < 5.5 * np.sqrt(stated.mean(axis=0) / runs)).all()


def test_weights_agree_with_repetition_and_tallies_add():
    m = DBitFlip(size=6, sampled=3, epsilon="2")
    reports = m.privatize(np.arange(80) % 6, ReplayCoins(b"x"))
    weights = 1 + np.arange(80) % 3
    repeated = m.tally(np.repeat(reports, weights))
    for estimator in ("observed_holders", "horvitz_thompson"):
        weighted = m.estimate(m.tally(reports, weights), estimator=estimator)
        np.testing.assert_allclose(weighted.value, m.estimate(repeated, estimator=estimator).value)
        equal = m.estimate(m.tally(reports, np.full(80, 7)), estimator=estimator)
        plain = m.estimate(m.tally(reports), estimator=estimator)
        np.testing.assert_allclose(equal.variance, plain.variance)
    parts = m.tally(reports[:30]) + m.tally(reports[30:])
    assert (parts.cells == m.tally(reports).cells).all()


def test_a_bucket_nobody_holds_has_no_data():
    m = DBitFlip(size=4, sampled=1, epsilon="1")
    reports = np.zeros(2, m.report_dtype)
    e = m.estimate(m.tally(reports))
    assert np.isinf(e.variance[1:]).all() and np.isfinite(e.variance[0])
    assert np.isfinite(e.combine([1, 0, 0, 0]).variance).all()
    assert not m.estimate(m.tally(reports[:0])).has_data


def test_memo_key_hides_changes_between_buckets_that_are_not_sampled():
    m = DBitFlipDevice(size=5, sampled=2, epsilon="1")
    assert [m.memo_key([1, 3], v) for v in range(5)] == [b"none", b"1", b"none", b"3", b"none"]


def test_refusals():
    for wrong in ({"size": 1}, {"sampled": 0}, {"sampled": 6}, {"size": 100, "sampled": 65}):
        with pytest.raises(InvalidSpec):
            DBitFlipDevice(**({"size": 5, "sampled": 2, "epsilon": "1"} | wrong))
    m = DBitFlip(size=5, sampled=2, epsilon="1")
    with pytest.raises(InvalidValue):
        m.privatize_one(5, ReplayCoins(b""))
    bad = np.zeros(1, m.report_dtype)
    for buckets, bits in [([1, 1], 0), ([2, 1], 0), ([1, 5], 0), ([1, 2], 4)]:
        bad["buckets"], bad["bits"] = [buckets], [[bits]]
        with pytest.raises(ReportRejected):
            m.tally(bad)
    assert DBitFlip.from_spec(m.spec()) == m
