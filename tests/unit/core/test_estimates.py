"""Estimates and tallies: what is refused by name, and weights that sum to nothing or differ from each other."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.core.estimate import Estimate
from tacit.core.mechanism import MAX_REPORTS, Mechanism
from tacit.core.members import MemberCounts
from tacit.core.statistics.normal import normal_isf
from tacit.core.tally import Counts
from tacit.device.numbers.canonical import shortest_decimal
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, NoData, Overflow, ReportRejected, SpecMismatch
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_variance
from tacit.wire.files import TALLY_MAGIC, Writer, read_tally, write_tally
from tacit.wire.tallies import dump_tally

ZERO_SUM: list[tuple[Mechanism, Any]] = [
    (tacit.GRR(size=4, epsilon="1"), None),
    (tacit.DBitFlip(size=4, sampled=2, epsilon="1"), None),
    (tacit.OneBit(top=4, epsilon="1"), None),
    (tacit.DiscreteLaplace(top=4, epsilon="1"), None),
    (tacit.RAPPOR(bits=8, cohorts=1, key=7, epsilon="1"), [0, 1]),
    (tacit.FLH(size=4, pool=4, key=7, epsilon="1"), None),
]


@pytest.mark.parametrize(("mechanism", "candidates"), ZERO_SUM, ids=lambda case: getattr(case, "kind", ""))
def test_weights_that_sum_to_zero_have_no_shares(mechanism: Mechanism, candidates: Any):
    reports = mechanism.privatize([0, 1, 2, 3], ReplayCoins(b"zero"))
    with pytest.raises(NoData, match=f"{mechanism.kind}: the weights of the reports sum to zero"):
        mechanism.estimate(mechanism.tally(reports, [1, -1, 2, -2]), candidates)


def test_a_ratio_estimate_of_weighted_reports_states_their_variance():
    """False-alarm probability 1e-7 per assertion; with n in place of the effective n it would be 2.5 times off."""
    mechanism, rng = tacit.HRR(size=8, epsilon="1"), np.random.default_rng(1)
    values, weights = rng.integers(0, 5, 8000), np.where(rng.random(8000) < 0.2, 9, 1)
    truth = np.bincount(values, weights=weights, minlength=8) / weights.sum()
    coins = SimulationCoins(3)
    runs = [
        mechanism.estimate(mechanism.tally(mechanism.privatize(values, coins), weights), estimator="ratio")
        for _ in range(910)
    ]
    for cell in (0, 4, 7):
        errors = np.array([run.value[cell] for run in runs]) - truth[cell]
        assert_variance(errors, np.array([run.variance[cell] for run in runs]))


def test_uneven_weights_widen_the_population_interval():
    """Drawing respondents at random adds f(1 - f) times sum w^2/(sum w)^2, which is f(1 - f)/n for equal weights."""
    mechanism = tacit.GRR(size=2, epsilon="8")
    reports = mechanism.privatize([0, 1] * 200, ReplayCoins(b"weights"))
    for weights in (np.full(400, 7), np.repeat([1, 9], 200)):
        estimate = replace(mechanism.estimate(mechanism.tally(reports, weights)), law=None)  # Normal intervals.
        wide, narrow = (np.subtract(*estimate.interval(target=target)) for target in ("population", "respondents"))
        added = (wide**2 - narrow**2) / (2 * normal_isf(0.025)) ** 2
        plug_in = np.clip(estimate.value, 0, 1)
        np.testing.assert_allclose(added, plug_in * (1 - plug_in) * (weights**2).sum() / weights.sum() ** 2)


def test_a_group_with_weights_speaks_for_everybody_once():
    """Two questions to halves of 400 respondents of one weight: the population is sampled by all 400."""
    halves = tacit.Questions(mechanisms=(tacit.GRR(size=2, epsilon="8"),) * 2)
    mechanism = tacit.OneOf(family=halves)
    reports = mechanism.privatize([[0, 1], [1, 0]] * 200, ReplayCoins(b"halves"))
    for tally in (mechanism.tally(reports), mechanism.tally(reports, np.full(400, 7))):
        assert [part.effective for part in mechanism.estimate(tally)] == pytest.approx([400, 400])


@pytest.mark.parametrize("kind", [tacit.HRR(size=4, epsilon="1"), tacit.DBitFlip(size=4, sampled=2, epsilon="1")])
def test_an_unknown_estimator_is_not_taken_for_another(kind: Any):
    tally = kind.tally(kind.privatize([0, 1], ReplayCoins(b"")))
    with pytest.raises(InvalidSpec, match=r"estimator is 'best', must be one of .*horvitz_thompson"):
        kind.estimate(tally, estimator="best")


def test_unknown_targets_and_tables_are_refused():
    estimate: Any = Estimate(np.array([0.5]), np.array([0.1]), 10)
    with pytest.raises(InvalidSpec, match="target is 'world', must be one of respondents, population"):
        estimate.interval(target="world")
    with pytest.raises(InvalidSpec, match="kind is 'excel', must be one of rows, pandas, arrow"):
        estimate.to_table("excel")


def test_tables_hold_the_rows():
    estimate = Estimate(np.array([0.5, 0.25]), np.array([0.01, 0.04]), 10, labels=["yes", "no"])
    rows = estimate.to_rows()
    assert estimate.to_table() == rows
    assert estimate.to_table("pandas").to_dict("records") == rows
    assert estimate.to_table("arrow").to_pylist() == rows


def test_estimating_a_stranger_says_so():
    here, there = tacit.GRR(size=4, epsilon="1"), tacit.GRR(size=4, epsilon="2")
    with pytest.raises(SpecMismatch, match="cannot estimate this tally: epsilon is '1' here and '2' there"):
        here.estimate(there.tally(there.privatize([0], ReplayCoins(b""))))


@pytest.mark.parametrize("candidates", [[], [None], [None, None, None]])  # Too few, too few, too many.
def test_composed_estimates_need_candidates_for_every_member(candidates: Any):
    members = (tacit.GRR(size=3, epsilon="1"), tacit.GRR(size=4, epsilon="1"))
    for mechanism in (
        tacit.OneOf(family=tacit.Questions(mechanisms=members)),
        tacit.AllOf(members=members, epsilon="2"),
    ):
        tally = mechanism.tally(mechanism.privatize([[0, 0], [2, 3]], ReplayCoins(b"")))
        with pytest.raises(InvalidSpec, match=f"{mechanism.kind}: {len(candidates)} lists of candidates for 2 members"):
            mechanism.estimate(tally, candidates)


def test_cells_of_members_may_not_outgrow_their_bits():
    """The cells of SHE exceed the sum of the weights, so that alone does not bound them."""
    mechanism = tacit.SHE(size=2, epsilon="1")
    large = Counts(mechanism, 1, np.array([1, 1 << 61]), np.array([1, 1 << 61]), 1, 1)
    grid = MemberCounts.stack(mechanism, 1, {0: large}, large)
    with pytest.raises(Overflow, match="62 bits"):
        _ = grid + grid


def test_tallies_per_member_keep_in_files():
    """Written and read back; a file that states another number of reports, or cut bytes, is refused."""
    mechanism = tacit.OneOf(family=tacit.Questions(mechanisms=(tacit.GRR(size=3, epsilon="1"),)))
    tally: Any = mechanism.tally(mechanism.privatize([[0], [2]], ReplayCoins(b"")))
    stream = BytesIO()
    write_tally(stream, tally)
    again, domain = read_tally(BytesIO(stream.getvalue()), "a.tally")
    assert domain is None
    assert dump_tally(again) == dump_tally(tally)
    more: Any = mechanism.tally(mechanism.privatize([[1]], ReplayCoins(b"")))
    assert (again + more).n == 3  # type: ignore[operator]
    wrong = BytesIO()
    writer = Writer(wrong, TALLY_MAGIC, mechanism, state="members")
    writer.block(dump_tally(tally), 5)
    writer.close()
    with pytest.raises(ReportRejected, match="2 reports where 5"):
        read_tally(BytesIO(wrong.getvalue()), "a.tally")
    with pytest.raises(ReportRejected):
        read_tally(BytesIO(stream.getvalue()[:-1]), "a.tally")


HUGE: list[Mechanism] = [
    tacit.GRR(size=MAX_REPORTS + 1, epsilon="1"),
    tacit.HCMS(size=8, rows=2, width=MAX_REPORTS, key=7, epsilon="1"),
    tacit.HRRT(size=1 << 12, coefficients=2, epsilon="1"),
    tacit.HRRSubspace(size=1 << 12, coefficients=2, epsilon="1"),
    tacit.CMS(size=8, rows=2, width=32, key=7, epsilon="1"),
    tacit.RAPPOR(bits=21, cohorts=1, key=7, epsilon="1"),
]


@pytest.mark.parametrize("mechanism", HUGE, ids=lambda mechanism: mechanism.kind)
def test_large_report_spaces_are_not_enumerated(mechanism: Mechanism):
    with pytest.raises(InvalidSpec, match="the report space is not enumerated"):
        mechanism.all_reports()


def test_a_choice_without_options_names_the_size():
    with pytest.raises(InvalidSpec, match=r"no oracle fits a domain of 1 values$"):
        tacit.choose_oracle(size=1, epsilon="1", n=10)
    with pytest.raises(InvalidSpec, match="of 64 values with reports of at most 2 bits"):
        tacit.choose_oracle(size=64, epsilon="1", n=10, max_report_bits=2)


@pytest.mark.parametrize(
    ("text", "short"),
    [("1", "1"), ("01.50", "1.5"), ("0.0", "0"), ("-0.00", "0"), ("-1.0", "-1"), ("100", "100"), ("000.10", "0.1")],
)
def test_decimals_have_one_shortest_text(text: str, short: str):
    assert shortest_decimal(text) == short
