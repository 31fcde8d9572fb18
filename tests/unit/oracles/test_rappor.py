"""Basic RAPPOR and RAPPOR: two layers, exact privacy of one and many reports, regression, worked numbers."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.core.tally import Counts
from tacit.decode.rappor import decode_rappor
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.oracles.rappor import RAPPOR, BasicRAPPOR
from tacit.oracles.unary import SUE

ALPHA = 1e-6
LN9 = "2.197224577336219382"  # f = 1/2 for one bit a value
LN81 = "4.394449154672438764"  # f = 1/2 for two bits a value

BASIC = [
    BasicRAPPOR(size=5, epsilon="1"),
    BasicRAPPOR(size=5, epsilon="1", zero="0.25", one="0.75"),
    BasicRAPPOR(size=70, epsilon="3", zero="0.1", one="1"),
]
BLOOM = [
    RAPPOR(epsilon="2", bits=5, cohorts=3, key=7),
    RAPPOR(epsilon="2", bits=6, hashes=2, cohorts=2, key=7, zero="0.5", one="0.75"),
    RAPPOR(epsilon="4", bits=70, hashes=3, cohorts=300, key=7, zero="0", one="0.9"),
]


def public_client(**fields: Any) -> RAPPOR:
    """The parameters of the public client library: f = a0 = 1/2, a1 = 3/4, two hash functions."""
    given: dict[str, Any] = {"epsilon": LN81, "bits": 16, "hashes": 2, "cohorts": 64, "key": 1}
    return RAPPOR(**(given | {"zero": "0.5", "one": "0.75"} | fields))


@pytest.mark.parametrize("mechanism", [*BASIC, *BLOOM], ids=lambda m: f"{m.kind}-{m.one}")
def test_batch_equals_the_device(mechanism: Any) -> None:
    values = np.arange(30) % 5
    coins, batch_coins = ReplayCoins(b"loop"), ReplayCoins(b"loop")
    one_by_one = b"".join(mechanism.privatize_one(int(value), coins) for value in values)
    batch = mechanism.privatize(values, batch_coins)
    assert batch.tobytes() == one_by_one
    assert batch_coins.word() == coins.word()
    assert mechanism.valid(batch).all()


def test_one_shot_basic_rappor_is_symmetric_unary_encoding() -> None:
    rappor, sue = BasicRAPPOR(size=9, epsilon="1.5"), SUE(size=9, epsilon="1.5")
    values = np.arange(20) % 9
    same = sue.privatize(values, ReplayCoins(b"s")).tobytes()
    assert rappor.privatize(values, ReplayCoins(b"s")).tobytes() == same
    assert (rappor.p, rappor.q) == (sue.p, sue.q)


def test_the_permanent_bits_come_from_their_own_coins() -> None:
    mechanism = BasicRAPPOR(size=200, epsilon="4", zero="0.000000001", one="1")
    reports = {mechanism.privatize_one(3, ReplayCoins(bytes([i])), permanent=ReplayCoins(b"memo")) for i in range(20)}
    assert len(reports) == 1  # the instantaneous layer is almost silent, the permanent bits are the same
    fresh = {mechanism.privatize_one(3, ReplayCoins(bytes([i]))) for i in range(20)}
    assert len(fresh) == 20
    bloom = RAPPOR(epsilon="4", bits=200, cohorts=8, key=1, zero="0.000000001", one="1")
    memo = {
        bloom.privatize_one(3, ReplayCoins(bytes([i])), permanent=ReplayCoins(b"memo"), cohort=5) for i in range(20)
    }
    assert len(memo) == 1 and memo.pop()[0] == 5
    with pytest.raises(InvalidSpec, match="cohort is 8"):
        bloom.privatize_one(3, ReplayCoins(b""), cohort=8)


@pytest.mark.parametrize("mechanism", [*BASIC[:2], *BLOOM[:2]], ids=lambda m: f"{m.kind}-{m.one}")
def test_one_report_is_as_private_as_stated_by_enumeration(mechanism: Any) -> None:
    values = range(5) if mechanism.kind == "brappor" else range(200)
    reports = mechanism.all_reports()
    logs = np.array([mechanism.log_prob(reports, value) for value in values])
    assert np.exp(logs).sum(axis=1) == pytest.approx(np.ones(len(logs)), abs=1e-12)
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert worst == pytest.approx(log(mechanism.one_report_odds()), abs=1e-9)
    assert worst == pytest.approx(mechanism.n_report_epsilon(1), abs=1e-9)


@pytest.mark.parametrize("mechanism", [*BASIC, *BLOOM, public_client()], ids=lambda m: f"{m.kind}-{m.one}")
def test_every_guarantee_holds_exactly(mechanism: Any) -> None:
    (_, one, one_bound), (_, forever, bound) = mechanism.guarantees()
    assert one <= one_bound and one <= forever <= bound == Fraction(mechanism.odds, WORD)
    assert mechanism.realised_odds() == forever > bound * (1 - Fraction(1, 10**15))
    assert one_bound <= one * (1 + Fraction(1, 10**15)) or mechanism.is_one_shot


def test_rounding_the_instantaneous_layer_never_helps_an_observer() -> None:
    for zero, one in product(("0", "0.1", "0.333333333", "0.5"), ("0.500000001", "0.7", "1")):
        for mechanism in (
            BasicRAPPOR(size=2, epsilon="0.7", zero=zero, one=one),
            public_client(zero=zero, one=one),
        ):
            (_, realised, declared), _ = mechanism.guarantees()
            assert realised <= declared
            s1, s0 = mechanism.instant
            assert 0 <= s0 < s1 < WORD and Fraction(s0, WORD) >= Fraction(zero) and Fraction(s1, WORD) <= Fraction(one)


@pytest.mark.parametrize(
    ("reports", "epsilon"),
    [(1, 1.0743), (2, 2.0170), (5, 3.6560), (10, 4.2993), (20, 4.3928), (10**6, 4.3944)],
)
def test_many_reports_approach_the_permanent_epsilon(reports: int, epsilon: float) -> None:
    assert public_client().n_report_epsilon(reports) == pytest.approx(epsilon, abs=5.1e-5)


def test_n_reports_by_enumeration() -> None:
    """All sequences of three reports on one bit of each of two values."""
    mechanism = BasicRAPPOR(size=2, epsilon="2", zero="0.3", one="0.8")
    (w1, w0), (a1, a0) = ((t / WORD for t in pair) for pair in (mechanism.thresholds, mechanism.instant))

    def chance(bits: tuple[int, ...], w: float) -> float:
        def run(a: float) -> float:
            return float(np.prod([a if bit else 1 - a for bit in bits]))

        return w * run(a1) + (1 - w) * run(a0)

    ratios = [log(chance(bits, w1) / chance(bits, w0)) for bits in product((0, 1), repeat=3)]
    assert mechanism.n_report_epsilon(3) == pytest.approx(max(ratios) - min(ratios), rel=1e-12)
    assert BASIC[0].n_report_epsilon(50) == pytest.approx(1.0)
    with pytest.raises(InvalidSpec, match="reports is 0"):
        mechanism.n_report_epsilon(0)


def test_worked_rates_and_epsilons() -> None:
    mechanism = public_client()
    assert list(map(float, mechanism.rates)) == pytest.approx([0.6875, 0.5625], abs=1e-15)
    assert mechanism.n_report_epsilon(1) == pytest.approx(1.074286, abs=1e-6)
    assert mechanism.realised_epsilon() == pytest.approx(4.394449, abs=1e-6)
    basic = BasicRAPPOR(size=4, epsilon=LN9, zero="0.25", one="0.75")
    assert (float(basic.p), float(basic.q)) == pytest.approx((0.625, 0.375), abs=1e-15)
    assert basic.n_report_epsilon(1) == pytest.approx(2 * log(5 / 3), abs=1e-12)
    assert BasicRAPPOR(size=4, epsilon="3.891820298110626610").p == pytest.approx(7 / 8)  # f = 1/4


def test_worked_bit_estimate() -> None:
    """1000 reports of a cohort, 650 of them with the bit set: 700 set bits, standard deviation 120.7."""
    mechanism = public_client(bits=4, hashes=2, cohorts=1)
    cells = np.array([1000, 650, 0, 0, 0])
    share, variance = mechanism.bit_frequencies(Counts(mechanism, 1000, cells, cells, 1000, 1000))
    assert 1000 * share[0] == pytest.approx(700, abs=1e-9)
    assert 1000 * np.sqrt(variance[0]) == pytest.approx(120.7, abs=0.05)


def test_basic_rappor_is_exactly_unbiased() -> None:
    mechanism = BASIC[1]
    reports = mechanism.all_reports()
    values = np.array([mechanism.estimate(mechanism.tally(report[None])).value for report in reports])
    for value in range(5):
        probability = np.exp(mechanism.log_prob(reports, value))
        assert probability @ values == pytest.approx(np.eye(5)[value], abs=1e-12)
        spread = probability @ values**2 - (probability @ values) ** 2
        m = mechanism.moments
        assert spread == pytest.approx(np.where(np.arange(5) == value, m.own, m.other), rel=1e-9)


def expected_cells(mechanism: RAPPOR, frequency: np.ndarray, each: int) -> np.ndarray:
    """Exact expected cells, every cohort having `each` reports with these frequencies of ids 0, 1, 2 ..."""
    design = mechanism.design(np.arange(len(frequency)))
    r1, r0 = map(float, mechanism.rates)
    rates = r0 + (r1 - r0) * (design @ frequency)
    table = np.column_stack([np.full(mechanism.cohorts, each), each * rates.reshape(mechanism.cohorts, -1)])
    return np.rint(table).astype(np.int64).reshape(-1)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("mechanism", [BLOOM[0], public_client(bits=32, cohorts=16)], ids=lambda m: f"h{m.hashes}")
def test_expected_bits_give_back_the_frequencies(mechanism: RAPPOR, complete: bool) -> None:
    frequency = np.array([0.5, 0.3, 0.2, 0.0])
    cells, n = expected_cells(mechanism, frequency, 10**15), mechanism.cohorts * 10**15
    estimate = mechanism.estimate(Counts(mechanism, n, cells, cells, n, n), np.arange(4), complete=complete)
    assert estimate.value == pytest.approx(frequency, abs=1e-9)


@pytest.mark.parametrize(("runs", "power"), [(300, 1.8), pytest.param(1100, 1.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("mechanism", "n"),
    [
        (RAPPOR(epsilon="3", bits=16, cohorts=4, key=3), 400),
        (
            RAPPOR(epsilon="12", bits=8, cohorts=4, key=3),
            300,
        ),  # almost no noise: who is in which cohort matters
        (public_client(bits=16, cohorts=4), 2000),
    ],
    ids=["one_hash", "little_noise", "two_layers"],
)
@pytest.mark.slow_cases("one_hash-300-1.8", "little_noise-300-1.8")
def test_regression_variance_is_calibrated(mechanism: RAPPOR, n: int, runs: int, power: float) -> None:
    """False alarm 1e-6 a value; a variance that is off by 1.8, or by 1.3 in the slow runs, would be noticed."""
    rng = np.random.default_rng(5)
    true = np.array([50, 25, 15, 10, 0]) * n // 100
    values, predicted = np.empty((runs, 5)), np.empty((runs, 5))
    sums = np.empty((runs, 2))
    for run in range(runs):
        estimate = mechanism.estimate(mechanism.simulate_tally(true, rng), np.arange(5))
        values[run], predicted[run] = estimate.value, estimate.variance
        if run < 200:
            sums[run] = estimate.combine([[1, 1, 0, 0, 0], [1, -1, 0, 0.5, 0]]).variance
    errors = values - true / n
    assert (np.abs(errors.mean(axis=0)) < 5.5 * errors.std(axis=0) / np.sqrt(runs)).all()
    ratio = (errors**2).mean(axis=0) / predicted.mean(axis=0)
    low, high = chi2.ppf(ALPHA / 2, runs) / runs, chi2.isf(ALPHA / 2, runs) / runs
    assert (low / 1.04 < ratio).all() and (ratio < high * 1.04).all(), ratio
    assert low / 1.04 > 1 / power and high * 1.04 < power
    combined = errors @ np.array([[1, 1, 0, 0, 0], [1, -1, 0, 0.5, 0]]).T
    ratio = (combined**2).mean(axis=0) / sums[:200].mean(axis=0)
    assert (low / 1.08 < ratio).all() and (ratio < high * 1.08).all(), ratio


def test_planner_is_a_floor_that_small_designs_nearly_reach() -> None:
    mechanism = RAPPOR(epsilon="2", bits=128, cohorts=8, key=1)
    tally = mechanism.simulate_tally(np.full(100, 200), np.random.default_rng(1))
    error = mechanism.estimate(tally, np.arange(100)).standard_error
    floor = mechanism.standard_error(20000)
    assert (error > 0.99 * floor).all() and error.mean() < 1.2 * floor


def test_decoder_finds_frequent_candidates_and_the_unlisted_mass() -> None:
    mechanism = RAPPOR(epsilon="4", bits=64, cohorts=16, key=11)
    true = np.concatenate([np.full(4, 20000), np.full(100, 200)])
    tally = mechanism.simulate_tally(true, np.random.default_rng(2))
    found = decode_rappor(mechanism, tally, np.arange(4))
    assert found.decoded.method == "least_squares" and found.decoded.significant.all()
    assert found.estimate.labels == [(0,), (1,), (2,), (3,)]
    assert np.abs(found.estimate.counts - 20000).max() < 5.5 * 1e5 * found.estimate.standard_error.max()
    assert abs(found.unlisted - 0.2) < 5.5 * found.unlisted_standard_error + 0.02
    same = found.estimate.combine(np.eye(4)).variance
    assert same == pytest.approx(found.estimate.variance, rel=1e-9)


def test_decoder_selects_when_candidates_are_many() -> None:
    mechanism = RAPPOR(epsilon="4", bits=32, cohorts=8, key=11)
    true = np.concatenate([np.full(4, 25000), np.zeros(996, np.int64)])
    found = decode_rappor(mechanism, mechanism.simulate_tally(true, np.random.default_rng(3)), np.arange(1000))
    assert found.decoded.method == "lasso_then_least_squares"
    significant = [found.estimate.labels[g] for g in np.flatnonzero(found.decoded.significant)]  # type: ignore[index]
    assert {(0,), (1,), (2,), (3,)} <= set(significant)
    weights = np.zeros((2, len(found.estimate)))
    weights[0, 0], weights[1, int(np.flatnonzero(~found.decoded.fitted)[0])] = 1, 1
    variance = found.estimate.combine(weights).variance
    assert variance[0] == pytest.approx(found.estimate.variance[0]) and np.isinf(variance[1])


def test_candidates_with_the_same_bits_are_one_group() -> None:
    mechanism = RAPPOR(epsilon="4", bits=4, cohorts=1, key=1)
    ids = np.arange(40)
    first = mechanism.design(ids).argmax(axis=0)
    a, b = np.flatnonzero(first == first[0])[:2].tolist()
    c = int(np.flatnonzero(first != first[0])[0])
    tally = mechanism.simulate_tally(np.bincount([a, b, c], minlength=40) * 1000, np.random.default_rng(1))
    estimate = mechanism.estimate(tally, [a, b, c])
    assert np.isinf(estimate.variance[:2]).all() and np.isfinite(estimate.variance[2])
    together = estimate.combine([[1, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert np.isfinite(together.variance[:2]).all() and np.isinf(together.variance[2])
    assert abs(together.value[0] - 2 / 3) < 6 * together.standard_error[0]
    assert decode_rappor(mechanism, tally, [a, b, c], complete=True).estimate.labels == [(a, b), (c,)]


def test_empty_cohorts_are_left_out_and_no_report_is_no_data() -> None:
    mechanism = RAPPOR(epsilon="4", bits=16, cohorts=8, key=1)
    coins = ReplayCoins(b"few")
    reports = np.frombuffer(
        b"".join(mechanism.privatize_one(3, coins, cohort=i % 2) for i in range(400)), mechanism.report_dtype
    )
    estimate = mechanism.estimate(mechanism.tally(reports), [3, 4])
    assert abs(estimate.value[0] - 1) < 6 * estimate.standard_error[0] < 1
    assert decode_rappor(mechanism, mechanism.tally(reports), [3, 4]).decoded.significant.tolist() == [
        True,
        False,
    ]
    empty = mechanism.tally(reports[:0])
    assert not mechanism.estimate(empty, [3]).has_data
    nothing = decode_rappor(mechanism, empty, [3])
    assert nothing.decoded.method == "no_data" and not nothing.estimate.has_data


@pytest.mark.parametrize("mechanism", BLOOM, ids=lambda m: f"k{m.bits}")
def test_merging_shards_equals_one_pass_and_weights_are_repeats(mechanism: RAPPOR) -> None:
    reports = mechanism.privatize(np.arange(60), ReplayCoins(b"shards"))
    whole, parts = mechanism.tally(reports), mechanism.tally(reports[:7]) + mechanism.tally(reports[7:])
    assert np.array_equal(whole.cells, parts.cells) and whole.n == parts.n
    weights = np.arange(60) % 4
    weighted = mechanism.tally(reports, weights)
    assert np.array_equal(weighted.cells, mechanism.tally(np.repeat(reports, weights)).cells)
    flat = mechanism.estimate(mechanism.tally(reports, np.full(60, 3)), [1, 2])
    plain = mechanism.estimate(whole, [1, 2])
    assert flat.value == pytest.approx(plain.value, abs=1e-12)
    assert flat.variance == pytest.approx(plain.variance, rel=1e-9)


@pytest.mark.parametrize("mechanism", BLOOM[:2], ids=lambda m: f"k{m.bits}")
def test_simulated_tallies_have_the_mean_of_real_ones(mechanism: RAPPOR) -> None:
    """False alarm below 1e-6: every cell within 6 standard deviations of its expectation."""
    true = np.array([3000, 0, 1000])
    tally = mechanism.simulate_tally(true, np.random.default_rng(4)).cells.reshape(mechanism.cohorts, -1)
    reports = mechanism.privatize(np.repeat(np.arange(3), true), ReplayCoins(b"real"))
    real = mechanism.tally(reports).cells.reshape(mechanism.cohorts, -1)
    assert tally[:, 0].sum() == real[:, 0].sum() == 4000
    assert (np.abs(tally - real) < 6 * np.sqrt(2 * 4000 / mechanism.cohorts)).all()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"zero": "0.75", "one": "0.25"}, "zero must be below one"),
    ({"zero": "0.5", "one": "0.5"}, "zero must be below one"),
    ({"zero": "0.5"}, "one must be decimal text"),
    ({"one": "0.5"}, "zero must be decimal text"),
    ({"zero": "0.5", "one": "1.5"}, "one must be decimal text"),
    ({"zero": 0.25, "one": 0.75}, "zero must be decimal text"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_impossible_layers_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        BasicRAPPOR(**({"size": 4, "epsilon": "1"} | fields))
    with pytest.raises(InvalidSpec, match=message):
        RAPPOR(**({"epsilon": "1", "bits": 8, "cohorts": 2, "key": 1} | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bits": 3, "hashes": 2}, "disjoint bits"),
        ({"cohorts": 0}, "cohorts is 0"),
        ({"hashes": 17}, "hashes is 17"),
    ],
)
def test_impossible_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        RAPPOR(**({"epsilon": "1", "bits": 8, "cohorts": 2, "key": 1} | fields))


def test_bad_values_reports_and_candidates_are_refused() -> None:
    mechanism = BLOOM[0]
    with pytest.raises(InvalidValue):
        mechanism.privatize_one(-1, ReplayCoins(b""))
    for values in ([-1], [0.5], [[1]]):
        with pytest.raises(InvalidValue):
            mechanism.privatize(values, ReplayCoins(b""))
    report = np.zeros(1, mechanism.report_dtype)
    report["cohort"] = 3
    with pytest.raises(ReportRejected, match="1 of 1"):
        mechanism.tally(report)
    report["cohort"], report["bits"] = 0, 32
    with pytest.raises(ReportRejected):
        mechanism.tally(report)
    tally = mechanism.tally(mechanism.privatize([1, 2], ReplayCoins(b"")))
    with pytest.raises(InvalidSpec, match="name the candidates"):
        mechanism.estimate(tally)
    with pytest.raises(InvalidSpec, match="decode_rappor"):
        mechanism.estimate(tally, np.arange(16))
    with pytest.raises(InvalidSpec, match="not enumerated"):
        BLOOM[2].all_reports()


@pytest.mark.parametrize("mechanism", [*BASIC, *BLOOM], ids=lambda m: f"{m.kind}-{m.one}")
def test_spec_round_trip_and_canonical_text(mechanism: Any) -> None:
    assert type(mechanism).from_spec(mechanism.spec()).digest == mechanism.digest
    assert replace(BASIC[1], zero="0.250", one="0.75").digest == BASIC[1].digest
    assert replace(BASIC[1], zero="0.0", one="1.0").spec()["one"] == "1"
