"""CMS and HCMS: batch = loop, exact privacy, unbiasedness, exact variance with collisions, worked numbers."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.core.tally import Counts
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.oracles import sketch
from tacit.oracles.sketch import CMS, HCMS

ALPHA = 1e-6
TRUE = np.array([100, 50, 30, 20, 0])

SMALL: list[Any] = [
    CMS(size=20, epsilon="1", rows=3, width=4, key=5),
    HCMS(size=20, epsilon="1", rows=3, width=4, key=5),
    HCMS(size=20, epsilon="1", rows=3, width=4, key=5, skip_zero=False),
]


def assert_variance(squares: np.ndarray, variance: np.ndarray | float, power: float, alpha: float = ALPHA) -> None:
    """Two-sided chi-square of standardised errors; also proves that `power` times the variance is rejected."""
    statistic, runs = float(np.sum(squares / variance)), len(squares)
    # Counts of a few hundred respondents are close to normal; a factor of 1.05 covers their kurtosis.
    low, high = chi2.ppf(alpha / 2, runs) / 1.05, chi2.isf(alpha / 2, runs) * 1.05
    assert low < statistic < high, (statistic / runs, low / runs, high / runs)
    assert not low < statistic / power < high


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: f"{m.kind}-{len(m.spec())}")
def test_batch_equals_the_device(mechanism: Any) -> None:
    values = np.arange(50) % 20
    coins = ReplayCoins(b"loop")
    one_by_one = b"".join(mechanism.privatize_one(int(value), coins) for value in values)
    batch_coins = ReplayCoins(b"loop")
    batch = mechanism.privatize(values, batch_coins)
    assert batch.tobytes() == one_by_one
    assert batch_coins.word() == coins.word()
    assert mechanism.valid(batch).all()
    assert np.array_equal(mechanism.decode(one_by_one), batch)


@pytest.mark.parametrize(
    "mechanism",
    [
        CMS(size=1 << 64, epsilon="4", rows=300, width=256, key=1),
        HCMS(size=1 << 64, epsilon="4", rows=300, width=256, key=1),
    ],
)
def test_batch_equals_the_device_on_wide_values(mechanism: Any) -> None:
    values = np.array([0, (1 << 64) - 1, 1 << 53, 7], np.uint64)
    coins = ReplayCoins(b"wide")
    one_by_one = b"".join(mechanism.privatize_one(int(value), coins) for value in values)
    assert mechanism.privatize(values, ReplayCoins(b"wide")).tobytes() == one_by_one


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: f"{m.kind}-{len(m.spec())}")
def test_privacy_is_epsilon_by_enumeration(mechanism: Any) -> None:
    reports = mechanism.all_reports()
    logs = np.array([mechanism.log_prob(reports, value) for value in range(20)])
    assert np.exp(logs).sum(axis=1) == pytest.approx(np.ones(20), abs=1e-12)
    worst = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert worst == pytest.approx(1.0, abs=1e-9)
    assert mechanism.holds()
    assert mechanism.realised_odds() > Fraction(mechanism.odds, WORD) * (1 - Fraction(1, 10**15))


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: f"{m.kind}-{len(m.spec())}")
def test_samples_fit_log_prob(mechanism: Any) -> None:
    reports = mechanism.privatize(np.full(4000, 3), ReplayCoins(b"fit"))
    space = mechanism.all_reports()
    place = {report.tobytes(): i for i, report in enumerate(space)}
    seen = np.bincount([place[report.tobytes()] for report in reports], minlength=len(space))
    expected = 4000 * np.exp(mechanism.log_prob(space, 3))
    assert np.sum((seen - expected) ** 2 / expected) < chi2.isf(ALPHA, len(space) - 1) * 1.2


def ideal(mechanism: Any, cells: "tuple[int, ...]", monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the one row of a sketch sends value v to cells[v]."""
    table = np.array(cells, np.uint32)
    monkeypatch.setattr(sketch.kernels, "buckets_of", lambda seeds, values, g: table[np.asarray(values, np.intp)])
    monkeypatch.setattr(
        sketch.kernels, "pooled_support", lambda seeds, t, candidates: t[0, table[candidates.astype(np.intp)]]
    )


@pytest.mark.parametrize("kind", [CMS, HCMS, "hcms_with_zero"])
def test_unbiased_and_exact_moments_over_all_hash_functions(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerates every map of 3 values to 4 cells (or 2) and every report of one respondent with value 0."""
    extra = {"skip_zero": False} if kind == "hcms_with_zero" else {}
    make = HCMS if kind == "hcms_with_zero" else kind
    mechanism = make(size=3, epsilon="1", rows=1, width=4, key=0, **extra)
    reports = mechanism.all_reports()
    first, second = np.zeros(3), np.zeros((3, 3))
    functions = list(product(range(4), repeat=3))
    for cells in functions:
        ideal(mechanism, cells, monkeypatch)
        probability = np.exp(mechanism.log_prob(reports, 0)) / len(functions)
        values = np.array([mechanism.estimate(mechanism.tally(r[None])).value for r in reports])
        first += probability @ values
        second += values.T @ (values * probability[:, None])
    assert first == pytest.approx([1, 0, 0], abs=1e-12)
    covariance, m = second - np.outer(first, first), mechanism.moments
    assert covariance[0, 0] == pytest.approx(m.own, rel=1e-9)
    assert covariance[1, 1] == pytest.approx(m.other, rel=1e-9)
    assert covariance[0, 1] == pytest.approx(m.own_other, abs=1e-9)
    assert covariance[1, 2] == pytest.approx(m.other_other, abs=1e-9)


@pytest.mark.parametrize(("runs", "power"), [(600, 1.7), pytest.param(2500, 1.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [CMS, HCMS, "hcms_with_zero"])
@pytest.mark.slow_cases("CMS-600-1.7", "HCMS-600-1.7")
def test_variance_with_collisions_is_exact(kind: Any, runs: int, power: float) -> None:
    """Fresh hash functions in every run; false alarm 1e-6 a value, and a variance `power` times off is caught."""
    rng = np.random.default_rng(17)
    extra = {"skip_zero": False} if kind == "hcms_with_zero" else {}
    make = HCMS if kind == "hcms_with_zero" else kind
    counts, pairs = np.empty((runs, 5)), np.empty(runs)
    weights = np.array([[1.0, 1, 0, 0, 0], [1, -1, 0.5, 0, 0]])
    mechanism = make(size=5, epsilon="2", rows=4, width=8, key=0, **extra)
    for run in range(runs):
        mechanism = replace(mechanism, key=int(rng.integers(1 << 32)))
        tally = mechanism.simulate_tally(TRUE, rng)
        counts[run] = mechanism.estimate(tally).counts
        equal, everything = mechanism._equal_pairs(tally)
        pairs[run] = equal / everything
    errors = counts - TRUE
    exact = mechanism.exact_variance(TRUE)
    assert (np.abs(errors.mean(axis=0)) < 5.5 * np.sqrt(exact / runs)).all()
    for value in range(5):
        assert_variance(errors[:, value] ** 2, exact[value], power)
    truth = float((TRUE * (TRUE - 1)).sum() / (200 * 199))
    assert abs(pairs.mean() - truth) < 5.5 * pairs.std() / np.sqrt(runs)
    combined = errors @ weights.T
    expected = combined_variance(mechanism, weights)
    for answer in range(2):
        assert_variance(combined[:, answer] ** 2, expected[answer], power)


def combined_variance(mechanism: Any, weights: np.ndarray) -> np.ndarray:
    """The formula of `combine` with the true counts in place of plug-ins."""
    single = 200 * mechanism.moments.combined(weights, TRUE / 200)
    pairs = TRUE * (TRUE - 1)
    shared = weights**2 @ (pairs.sum() - pairs - TRUE**2) + (weights @ TRUE) ** 2
    return single + shared / mechanism.sharing


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: f"{m.kind}-{len(m.spec())}")
def test_combine_keeps_the_collision_term(mechanism: Any) -> None:
    tally = mechanism.tally(mechanism.privatize(np.arange(400) % 3, ReplayCoins(b"c")))
    estimate = mechanism.estimate(tally, [2])
    assert 0 < estimate.value[0] < 1
    assert estimate.combine([[1.0]]).variance == pytest.approx(estimate.variance, rel=1e-9)
    without = mechanism.moments.variance(estimate.value) / 400
    assert (estimate.variance > without).all()


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: f"{m.kind}-{len(m.spec())}")
def test_merging_shards_equals_one_pass_and_weights_are_repeats(mechanism: Any) -> None:
    reports = mechanism.privatize(np.arange(60) % 20, ReplayCoins(b"shards"))
    whole = mechanism.tally(reports)
    parts = mechanism.tally(reports[:7]) + mechanism.tally(reports[7:]) + mechanism.tally(reports[:0])
    assert np.array_equal(whole.cells, parts.cells) and whole.n == parts.n
    weights = np.arange(60) % 4
    weighted = mechanism.tally(reports, weights)
    assert np.array_equal(weighted.cells, mechanism.tally(np.repeat(reports, weights)).cells)
    flat = mechanism.tally(reports, np.full(60, 3))
    assert mechanism.estimate(flat).value == pytest.approx(mechanism.estimate(whole).value, abs=1e-12)
    assert mechanism.estimate(flat).variance == pytest.approx(mechanism.estimate(whole).variance, rel=1e-9)


def test_many_rows_with_few_reports_are_counted_alike() -> None:
    mechanism = CMS(size=50, epsilon="2", rows=200, width=16, key=3)
    reports = mechanism.privatize(np.arange(150) % 50, ReplayCoins(b"sparse"))
    table = mechanism.tally(reports, np.arange(150)).cells.reshape(200, 17)
    expected = np.zeros((200, 17), np.int64)
    bits = np.unpackbits(reports["bits"], axis=1, count=16, bitorder="little")
    for row, line, weight in zip(reports["row"], bits, range(150), strict=True):
        expected[row] += weight * np.concatenate([[1], line])
    assert np.array_equal(table, expected)
    plain = mechanism.tally(reports).cells.reshape(200, 17)
    assert np.array_equal(plain[:, 0], np.bincount(reports["row"], minlength=200))


def test_worked_example_of_cms() -> None:
    """e^(epsilon/2) = 3, one row of two cells, six of ten reports set the cell of x: S = 7, estimate 4."""
    mechanism = CMS(size=9, epsilon="2.197224577336219382", rows=1, width=2, key=1)
    cell = mechanism.cell(0, 4)
    cells = np.array([10, 0, 0])
    cells[1 + cell] = 6
    counts = mechanism.estimate(Counts(mechanism, 10, cells, cells, 10, 10), [4]).counts
    assert counts == pytest.approx([4.0], abs=1e-9)


@pytest.mark.parametrize(("skip_zero", "expected"), [(True, -6.0), (False, -29 / 3)])
def test_worked_example_of_hcms(skip_zero: bool, expected: float) -> None:
    """e^epsilon = 3, one row of four cells, x in cell 1; reports (1,+) (2,-) (3,+) (1,+) (2,+)."""
    mechanism = HCMS(size=99, epsilon="1.098612288668109691", rows=1, width=4, key=1, skip_zero=skip_zero)
    x = next(value for value in range(99) if mechanism.cell(0, value) == 1)
    codes = [2 * row + sign for row, sign in ((1, 0), (2, 1), (3, 0), (1, 0), (2, 0))]
    tally = mechanism.tally(np.array(codes, mechanism.report_dtype))
    assert mechanism.estimate(tally, [x]).counts == pytest.approx([expected], abs=1e-9)


@pytest.mark.parametrize(("epsilon", "noise"), [("1", 3.92), ("2", 0.92), ("4", 0.181)])
def test_noise_per_user_of_cms_is_that_of_symmetric_unary_encoding(epsilon: str, noise: float) -> None:
    wide = CMS(size=10, epsilon=epsilon, rows=1, width=1 << 16, key=0)
    assert wide.variance_at_zero == pytest.approx(noise, rel=2e-3, abs=2e-3)


def test_large_domain_asks_for_candidates_and_empty_tally_has_no_data() -> None:
    mechanism = HCMS(size=1 << 64, epsilon="4", rows=64, width=256, key=9)
    tally = mechanism.tally(mechanism.privatize(np.full(5000, (1 << 64) - 1, np.uint64), ReplayCoins(b"x")))
    estimate = mechanism.estimate(tally, np.array([(1 << 64) - 1, 5], np.uint64))
    assert abs(estimate.value[0] - 1) < 6 * estimate.standard_error[0] and abs(estimate.value[1]) < 0.2
    with pytest.raises(InvalidSpec, match="name the candidates"):
        mechanism.estimate(tally)
    empty = mechanism.estimate(mechanism.tally(np.empty(0, mechanism.report_dtype)), [1, 2])
    assert not empty.has_data and np.isinf(empty.variance).all()


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"width": 1}, "width is 1"),
    ({"width": 12}, "power of two"),
    ({"rows": 0}, "rows is 0"),
    ({"key": 1 << 32}, "key is"),
    ({"rows": 1 << 20, "width": 1024}, "rows x width"),
    ({"size": 1}, "one-value domain"),
]


@pytest.mark.parametrize("kind", [CMS, HCMS])
@pytest.mark.parametrize(("fields", "message"), BAD_FIELDS)
def test_impossible_fields_are_refused(kind: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        kind(**({"size": 8, "epsilon": "1", "rows": 4, "width": 8, "key": 1} | fields))


def test_bad_values_and_reports_are_refused() -> None:
    cms, hcms, plain = SMALL
    for mechanism in SMALL:
        with pytest.raises(InvalidValue):
            mechanism.privatize_one(20, ReplayCoins(b""))
        with pytest.raises(InvalidValue):
            mechanism.privatize([20], ReplayCoins(b""))
        assert type(mechanism).from_spec(mechanism.spec()).digest == mechanism.digest
    report = np.zeros(1, cms.report_dtype)
    report["row"] = 3
    with pytest.raises(ReportRejected, match="1 of 1"):
        cms.tally(report)
    report["row"], report["bits"] = 0, 16
    with pytest.raises(ReportRejected):
        cms.tally(report)
    with pytest.raises(ReportRejected):
        hcms.tally(np.array([24], np.uint8))
    with pytest.raises(ReportRejected):
        hcms.tally(np.array([9], np.uint8))  # coefficient 0 of row 1
    assert plain.tally(np.array([9], np.uint8)).n == 1
    with pytest.raises(InvalidSpec, match="skip_zero"):
        HCMS(size=8, epsilon="1", rows=4, width=8, key=1, skip_zero=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="not enumerated"):
        CMS(size=8, epsilon="1", rows=4, width=32, key=1).all_reports()
