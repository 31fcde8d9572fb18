"""Bad input: a clear error of the right class that names the rule, and never a private value."""

import re
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.core.mechanism import Oracle
from tacit.errors import InvalidSpec, InvalidValue, Overflow, ReportRejected, SpecMismatch, TacitError
from tacit.testing.examples import example

KINDS = [kind.kind for kind in tacit.CATALOG if issubclass(kind, Oracle) and hasattr(example(kind.kind, "1"), "size")]
"""Every frequency oracle over indices below a size; kinds over free values have tests of their own."""
UNARY = [tacit.SUE, tacit.OUE, tacit.RUE, tacit.THE]
SIZED = [tacit.GRR, *UNARY, tacit.BLH, tacit.OLH, tacit.HRR, tacit.HRRT, tacit.HRRSubspace]

BAD_EPSILON = [
    "0",
    "-1",
    "nan",
    "inf",
    "1e9",
    "1e0",  # exponents have no canonical text
    "1000000000",
    "0.0009",  # just below the least
    "32.000000000000000001",  # just above the greatest
    "1.0000000000000000001",  # 19 decimals
    "",
    "one",
    "\u0661",  # a decimal digit to Unicode, not on the wire
    "1\n2",
    "0x1",
    "+1",
    0,
    33.0,
    float("nan"),
    float("inf"),
    -1.0,
    1e-4,
    None,
    True,
    b"1",
    ["1"],
    {"of": "1"},
    {"of": "1", "share": 0.5},
    {"of": "1", "share": "3/2"},
    {"of": "1", "share": "1/0"},
    {"of": "0", "share": "1/2"},
    {"of": "1", "sampled": 0},
    {"of": "1", "sampled": "2"},
    {"of": "1", "sampled": 2, "share": "1/2"},
]


@pytest.mark.parametrize("epsilon", BAD_EPSILON, ids=repr)
def test_epsilon_is_refused(epsilon: Any):
    with pytest.raises(InvalidSpec, match=r"epsilon|share|sampled"):
        tacit.GRR(size=4, epsilon=epsilon)


def test_epsilon_is_refused_by_every_kind():
    for kind in KINDS:
        for epsilon in ("0", "-1", "nan", "1e9", 0.0, None):
            with pytest.raises(InvalidSpec):
                example(kind, epsilon)


def test_the_ends_of_the_range_are_accepted():
    for epsilon in ("0.001", "32", "32.000", "001.50"):
        assert tacit.GRR(size=4, epsilon=epsilon).holds()


BAD_SIZE = [0, 1, -1, -(2**70), 4.0, "four", None, True, 2.5, [4], np.float64(4)]


@pytest.mark.parametrize("size", BAD_SIZE, ids=repr)
@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: kind.kind)
def test_size_is_refused(kind: Any, size: Any):
    with pytest.raises(InvalidSpec, match=f"{kind.kind}: size"):
        kind(size=size, epsilon="1")


def test_a_domain_of_one_value_says_what_to_do():
    with pytest.raises(InvalidSpec, match=r"at least 2.*carries no information"):
        tacit.GRR(size=1, epsilon="1")


@pytest.mark.parametrize("kind", [tacit.GRR, tacit.HRR, tacit.HRRT, tacit.HRRSubspace], ids=lambda kind: kind.kind)
def test_a_domain_too_large_to_count_is_refused(kind: Any):
    with pytest.raises(InvalidSpec, match=r"size is 1099511627776, must be at most"):
        kind(size=1 << 40, epsilon="1")


@pytest.mark.parametrize("kind", UNARY, ids=lambda kind: kind.kind)
def test_bit_reports_end_at_two_to_the_sixteen(kind: Any):
    assert kind(size=1 << 16, epsilon="1").report_bits == 1 << 16
    with pytest.raises(InvalidSpec, match="size is 65537, must be at most 65536"):
        kind(size=(1 << 16) + 1, epsilon="1")


def test_local_hashing_ends_at_two_to_the_sixty_four():
    assert tacit.OLH(size=1 << 64, epsilon="1").size == 1 << 64
    with pytest.raises(InvalidSpec, match="size"):
        tacit.OLH(size=(1 << 64) + 1, epsilon="1")


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: tacit.OLH(size=9, epsilon="1", buckets=1), "buckets"),
        (lambda: tacit.OLH(size=9, epsilon="1", buckets=-3), "buckets"),
        (lambda: tacit.OLH(size=9, epsilon="1", buckets=2.5), "buckets"),
        (lambda: tacit.OLH(size=9, epsilon="1", state="memory"), "state"),
        (lambda: tacit.FLH(size=9, epsilon="1", pool=0, key=1), "pool"),
        (lambda: tacit.FLH(size=9, epsilon="1", pool=4, key=-1), "key"),
        (lambda: tacit.FLH(size=9, epsilon="1", pool=4, key=1.5), "key"),
        (lambda: tacit.RMP(size=9, epsilon="1", pool=0, key=1), "pool"),
        (lambda: tacit.THE(size=9, epsilon="1", theta="-1"), "theta"),
        (lambda: tacit.THE(size=9, epsilon="1", theta="nan"), "theta"),
        (lambda: tacit.THE(size=9, epsilon="1", theta=1.0), "theta"),
        (lambda: tacit.HRRT(size=8, epsilon="1", coefficients=8), "coefficients"),
        (lambda: tacit.HRRT(size=8, epsilon="1", coefficients=-1), "coefficients"),
        (lambda: tacit.HRRSubspace(size=8, epsilon="1", coefficients=4), "coefficients"),
        (lambda: tacit.HRR(size=8, epsilon="1", skip_zero="yes"), "skip_zero"),
    ],
)
def test_other_fields_are_refused_by_name(build: Any, field: str):
    with pytest.raises(InvalidSpec, match=field):
        build()


def test_a_published_spec_states_every_field_and_no_other():
    spec = tacit.OLH(size=9, epsilon="1").spec()
    for name in spec:
        with pytest.raises(InvalidSpec, match=name):
            tacit.parse({field: value for field, value in spec.items() if field != name})
    with pytest.raises(InvalidSpec, match="'seed'"):
        tacit.parse(spec | {"seed": 1})
    for nonsense in (None, [], "olh", {"kind": "nope"}, {"kind": 3}, {}):
        with pytest.raises(InvalidSpec, match="kind"):
            tacit.parse(nonsense)  # pyright: ignore


# Values: nothing of the value may show in the message, whatever its type.

SECRET = 987_654


OUTSIDE: list[Any] = [
    [SECRET],
    [-SECRET],
    [0, 1, SECRET],
    np.array([SECRET], np.uint64),
    [float(SECRET)],
    [0.5],
    [[0, 1], [1, 0]],
    [str(SECRET)],
    [None],
    [True],
    [SECRET + 0j],
    SECRET,
    0,
    [1 << 70],
]


@pytest.mark.parametrize("kind", KINDS)
def test_values_outside_the_domain_are_refused_and_never_shown(kind: str):
    mechanism = example(kind, "1")
    for values in OUTSIDE:
        with pytest.raises(InvalidValue) as caught:
            mechanism.privatize(values, tacit.SystemCoins())
        assert_silent(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_value_is_refused_in_the_same_way(kind: str):
    for value in (SECRET, -1, 2.0, 0.5, "2", None, True, [1], SECRET * 1.5):
        with pytest.raises(InvalidValue) as caught:
            example(kind, "1").privatize_one(value, tacit.SystemCoins())
        assert_silent(caught.value)


def assert_silent(error: BaseException | None) -> None:
    """No error of the chain shows the value."""
    while error is not None:
        assert str(SECRET)[:5] not in str(error)
        error = error.__cause__ or error.__context__


def test_the_first_value_beyond_the_domain_is_refused():
    for kind in KINDS:
        mechanism: Any = example(kind, "1")
        mechanism.privatize(np.array([mechanism.size - 1]), tacit.SystemCoins())
        with pytest.raises(InvalidValue):
            mechanism.privatize(np.array([mechanism.size]), tacit.SystemCoins())


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_is_a_batch(kind: str):
    mechanism = example(kind, "1")
    for nothing in ([], np.array([], np.int64), np.array([])):
        reports = mechanism.privatize(nothing, tacit.SystemCoins())
        assert len(reports) == 0
        assert (reports.dtype, reports.shape[1:]) == (mechanism.report_dtype.base, mechanism.report_dtype.shape)
        tally = mechanism.tally(reports)
        assert tally.is_empty and tally.n == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_tally_estimates_nothing(kind: str):
    """Zero with infinite variance inside, null with a status outside; never NaN."""
    mechanism = example(kind, "1")
    tally = mechanism.tally(mechanism.privatize([], tacit.SystemCoins()))
    for tallied in (tally, tally + tally):
        estimate = mechanism.estimate(tallied)
        assert (estimate.n, estimate.has_data) == (0, False)
        assert not estimate.value.any() and np.isinf(estimate.variance).all()
        assert {row["frequency"] for row in estimate.to_rows()} == {None}
        assert {row["status"] for row in estimate.to_rows()} == {"no_data"}
        combined = estimate.combine(np.ones(len(estimate)))
        assert not combined.has_data and np.isinf(combined.variance).all()
        low, high = estimate.interval(0.95)
        assert not np.isnan(low).any() and not np.isnan(high).any()


# Reports.


@pytest.mark.parametrize("kind", KINDS)
def test_reports_of_another_layout_are_refused(kind: str):
    mechanism = example(kind, "1")
    good = mechanism.privatize(np.zeros(4, int), tacit.SystemCoins())
    strangers = [
        np.zeros(4, np.int64),
        np.zeros(4, np.float64),
        np.zeros((4, 77), np.uint8),
        np.array(["a"]),
        np.zeros(4, [("a", "<u2")]),
        good[0],
        good[None],
        list(range(4)),
        None,
    ]
    for stranger in strangers:
        with pytest.raises(ReportRejected, match=mechanism.kind):
            mechanism.tally(stranger)  # pyright: ignore


@pytest.mark.parametrize("kind", KINDS)
def test_reports_out_of_range_are_counted_and_nothing_is_tallied(kind: str):
    """All bits set is out of range for every kind here except hashing and bits that fill their bytes."""
    mechanism = example(kind, "1")
    good = mechanism.privatize(np.zeros(5, int), tacit.SystemCoins())
    worst = mechanism.decode(b"\xff" * mechanism.report_dtype.itemsize)
    assert mechanism.valid(good).all()
    if mechanism.valid(worst).all():
        pytest.skip("every byte pattern is a report of this kind")
    with pytest.raises(ReportRejected, match="1 of 6 reports"):
        mechanism.tally(np.concatenate([good, worst]))
    with pytest.raises(ReportRejected, match="1 of 6 reports"):
        mechanism.tally(np.concatenate([good, worst]), np.arange(1, 7))


def test_edges_of_the_report_range():
    grr = tacit.GRR(size=5, epsilon="1")
    assert grr.valid(np.array([0, 4, 5, 255], np.uint8)).tolist() == [True, True, False, False]
    oue = tacit.OUE(size=5, epsilon="1")
    packed = np.array([[0b00011111], [0b00100000], [0]], np.uint8)  # Bit 5 is no value.
    assert oue.valid(packed).tolist() == [True, False, True]
    olh = tacit.OLH(size=5, epsilon="1")
    reports = np.zeros(2, olh.report_dtype)
    reports["bucket"] = [3, 4]  # g = 4
    assert olh.valid(reports).tolist() == [True, False]
    hrr = tacit.HRR(size=5, epsilon="1")  # order 8, rows 1 to 7, two signs each
    assert hrr.valid(np.arange(20, dtype=np.uint8)).sum() == 14
    assert not hrr.valid(np.array([0, 1], np.uint8)).any()  # The constant row is never sent.


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_no_whole_number_of_reports(kind: str):
    mechanism = example(kind, "1")
    width = mechanism.report_dtype.itemsize
    if width > 1:
        with pytest.raises(ReportRejected, match="multiple"):
            mechanism.decode(bytes(width + 1))
    assert len(mechanism.decode(b"")) == 0


# Weights and merging.


@pytest.mark.parametrize(
    "weights",
    [[1], [1, 2, 3, 4], [0.5, 0.5, 0.5], [[1, 2, 3]], ["1", "2", "3"], [None] * 3, 1, [True] * 3],
    ids=repr,
)
def test_weights_that_do_not_fit_are_refused(weights: Any):
    for kind in KINDS:
        mechanism = example(kind, "1")
        reports = mechanism.privatize([0, 1, 2], tacit.SystemCoins())
        with pytest.raises(SpecMismatch, match="weights"):
            mechanism.tally(reports, weights)


def test_weights_that_could_overflow_are_refused():
    mechanism = tacit.GRR(size=4, epsilon="1")
    reports = mechanism.privatize([0, 1], tacit.SystemCoins())
    for weights in ([1 << 31, 1], [-(1 << 31), 1], np.array([-(1 << 63), 0]), np.array([(1 << 64) - 1, 0], np.uint64)):
        with pytest.raises(Overflow, match="weights"):
            mechanism.tally(reports, weights)
    large = mechanism.tally(reports, [1 << 30, 1])
    total = large
    with pytest.raises(Overflow):
        for _ in range(8):
            total = total + large


def test_weights_that_sum_to_nothing_are_not_divided_by():
    mechanism = tacit.GRR(size=4, epsilon="1")
    reports = mechanism.privatize([0, 1], tacit.SystemCoins())
    for weights in ([0, 0], [1, -1]):
        try:
            estimate = mechanism.estimate(mechanism.tally(reports, weights))
        except TacitError:
            continue
        assert not np.isnan(estimate.value).any() and not np.isnan(estimate.variance).any()


DIFFERENT = [
    (tacit.GRR(size=4, epsilon="1"), tacit.GRR(size=4, epsilon="2"), "epsilon"),
    (tacit.GRR(size=4, epsilon="1"), tacit.GRR(size=5, epsilon="1"), "size"),
    (tacit.GRR(size=4, epsilon="1"), tacit.GRR(size=4, epsilon={"of": "1", "share": "1/2"}), "epsilon"),
    (tacit.SUE(size=8, epsilon="1"), tacit.OUE(size=8, epsilon="1"), "kind"),
    (tacit.OLH(size=8, epsilon="1"), tacit.OLH(size=8, epsilon="1", buckets=5), "buckets"),
    (tacit.OLH(size=8, epsilon="1"), tacit.OLH(size=8, epsilon="1", state="log"), "state"),
    (tacit.FLH(size=8, epsilon="1", pool=4, key=1), tacit.FLH(size=8, epsilon="1", pool=4, key=2), "key"),
    (tacit.HRR(size=8, epsilon="1"), tacit.HRR(size=8, epsilon="1", skip_zero=False), "skip_zero"),
]


@pytest.mark.parametrize(("here", "there", "field"), DIFFERENT, ids=lambda x: x if isinstance(x, str) else None)
def test_merging_different_specs_names_the_field(here: Any, there: Any, field: str):
    a, b = (m.tally(m.privatize([0, 1], tacit.SystemCoins())) for m in (here, there))
    for left, right in ((a, b), (b, a)):
        with pytest.raises(SpecMismatch, match=f"{field} is .* here and .* there") as caught:
            left + right
        assert re.search(here.digest[:6], str(caught.value))
    with pytest.raises(SpecMismatch, match=field):
        here.estimate(b)


def test_equal_specs_written_differently_are_the_same():
    a, b = tacit.GRR(size=4, epsilon="1"), tacit.GRR(size="4", epsilon="01.000")  # pyright: ignore
    assert (a.tally(a.privatize([1], tacit.SystemCoins())) + b.tally(b.privatize([2], tacit.SystemCoins()))).n == 2


def test_merging_weighted_and_plain_tallies_is_refused():
    for mechanism in (tacit.GRR(size=4, epsilon="1"), tacit.OLH(size=4, epsilon="1", state="log")):
        reports = mechanism.privatize([0, 1, 2], tacit.SystemCoins())
        plain, weighted = mechanism.tally(reports), mechanism.tally(reports, [1, 2, 3])
        for left, right in ((plain, weighted), (weighted, plain)):
            with pytest.raises(SpecMismatch, match="weighted"):
                left + right
        empty = mechanism.tally(reports[:0])
        assert (empty + weighted).is_weighted and (weighted + empty).is_weighted  # Nothing to disagree about.
        both = (empty + weighted) + (weighted + empty)
        assert (both.n, both.is_weighted) == (6, True)


# Estimates.


def test_a_huge_domain_needs_candidates():
    mechanism = tacit.OLH(size=1 << 40, epsilon="1")
    tally = mechanism.tally(mechanism.privatize([1 << 39], tacit.SystemCoins()))
    with pytest.raises(InvalidSpec, match="candidates"):
        mechanism.estimate(tally)
    assert len(mechanism.estimate(tally, [1 << 39, 0])) == 2
    for bad in ([1 << 40], [-1], [0.5], [[0, 1]]):
        with pytest.raises(InvalidValue):
            mechanism.estimate(tally, bad)
    assert len(mechanism.estimate(tally, [])) == 0


def test_intervals_and_sums_check_their_arguments():
    mechanism = tacit.GRR(size=4, epsilon="1")
    estimate = mechanism.estimate(mechanism.tally(mechanism.privatize([0, 1, 1], tacit.SystemCoins())))
    for level in (0, 1, -0.5, 95, float("nan")):
        with pytest.raises(InvalidSpec, match="level"):
            estimate.interval(level)
    for weights in ([1, 2], np.ones((2, 5))):
        with pytest.raises(InvalidSpec, match="weights"):
            estimate.combine(weights)


def test_every_error_belongs_to_the_tree():
    for error in (InvalidSpec, InvalidValue, ReportRejected, SpecMismatch, Overflow):
        assert issubclass(error, TacitError)
    for error in (InvalidSpec, InvalidValue, ReportRejected, SpecMismatch):
        assert issubclass(error, ValueError)
