"""Stored tallies that no reports add up to are refused before a kernel or an estimate sees them."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.core.cell_rule import LIMIT, CellRule, exact_sums
from tacit.core.members import MemberCounts, PerMember
from tacit.core.tally import Counts, Log
from tacit.core.tally_check import check_tally
from tacit.device.families.compose import Questions
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import Overflow, ReportRejected
from tacit.testing.examples import example
from tacit.testing.laws import values_of
from tacit.wire.files import TALLY_MAGIC, Writer, read_tally

KINDS = [kind.kind for kind in tacit.CATALOG]
WEIGHTS = np.array([3, -2, 0, 7, 1, -5, 2, 11, 4, 1])


def tally_of(mechanism: Any, weights: Any = None) -> Any:
    values, coins = values_of(mechanism), ReplayCoins(b"tally")
    reports = b"".join(mechanism.privatize_one(values[i % len(values)], coins) for i in range(len(WEIGHTS)))
    return mechanism.tally(mechanism.decode(reports), weights)


def hashed(state: str = "log") -> Any:
    return tacit.OLH(size=8, epsilon="1", state=state)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_tallies_of_real_reports_pass(kind: str, weights: Any):
    mechanism = example(kind, "1")
    tally = tally_of(mechanism, weights)
    for part in (tally, tally + tally, mechanism.tally(mechanism.decode(b""))):
        check_tally(mechanism, part)


def counts_of(kind: str, weights: Any = None) -> list[Counts]:
    """The counts in the tally of a kind: itself, or the members'."""
    tally = tally_of(example(kind, "1"), weights)
    if isinstance(tally, PerMember):
        members = [tally.member(i) for i in range(len(tally.layout.block))]
        return [member for member in members if isinstance(member, Counts)]
    return [tally] if isinstance(tally, Counts) else []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_impossible_cells_are_refused_for_every_kind(kind: str, weights: Any):
    for tally in counts_of(kind, weights):
        for value in (-1, tally.total2 * 1000 + 2000, LIMIT - 1, -LIMIT, (1 << 63) - 1, -(1 << 63)):
            cells = tally.cells.copy()
            cells.flat[cells.size // 2] = value
            # A weighted tally may have negative sums; that of squares may not.
            forged = replace(tally, cells2=cells) if weights is not None else replace(tally, cells=cells, cells2=cells)
            with pytest.raises(ReportRejected, match="damaged"):
                check_tally(tally.mechanism, forged)
        for n in (-1, LIMIT, 1 << 64):
            with pytest.raises(ReportRejected, match="damaged"):
                check_tally(tally.mechanism, replace(tally, n=n))


def test_each_rule_says_what_is_wrong():
    grr, oue, hrr = tacit.GRR(size=4, epsilon="1"), tacit.OUE(size=4, epsilon="1"), tacit.HRR(size=4, epsilon="1")

    def forged(mechanism: Any, cells: list[int], n: int) -> Counts:
        array = np.array(cells)
        return Counts(mechanism, n, array, array, n, n)

    cases = [
        (forged(grr, [5, 6, 0, 0], 10), "do not add up"),
        (forged(grr, [11, 0, 0, 0], 10), "larger than its reports allow"),
        (forged(grr, [12, -2, 0, 0], 10), "a cell is negative"),
        (forged(oue, [10, 10, 10, 11], 10), "larger than its reports allow"),
        (forged(hrr, [1, 0, 9, 0, 0, 0, 0, 0], 10), "no report can reach"),
        (replace(forged(grr, [5, 5, 0, 0], 10), total=11), "totals are not the number of reports"),
        (forged(example("dbitflip", "1"), [6, 5, 4, 0, 5, 0, 0, 0, 0, 0], 10), "two cells"),
        (forged(example("cms", "1"), [6, 0, 0, 0, 0, 4, 0, 0, 5, 0], 10), "larger than its reports allow"),
        (forged(example("cms", "1"), [6, 0, 0, 0, 0, 5, 0, 0, 5, 0], 10), "do not add up"),
    ]
    for tally, words in cases:
        with pytest.raises(ReportRejected, match=words):
            check_tally(tally.mechanism, tally)


def test_weighted_sums_fit_their_squares():
    grr = tacit.GRR(size=2, epsilon="1")
    good = Counts(grr, 3, np.array([3, -1]), np.array([5, 1]), 2, 6)  # Weights 1, 2 and -1.
    check_tally(grr, good)
    for forged in (
        replace(good, cells=np.array([6, -4])),  # 6 > 5
        replace(good, cells=np.array([4, -2])),  # 4 and 5 differ modulo 2
        replace(good, n=1),  # One weight whose square is 6, and that is 2.
        replace(good, total=4),
        replace(good, cells=np.array([3, 1])),
        replace(good, cells2=np.array([5, 3])),
    ):
        with pytest.raises(ReportRejected, match="damaged"):
            check_tally(grr, forged)


def test_reports_of_a_log_are_checked_wherever_the_log_is():
    oracle = hashed()
    reports: Any = np.zeros(3, oracle.report_dtype)
    reports["bucket"] = [0, 1, 255]
    bad = Log(oracle, (reports,))
    pair = tacit.OneOf(family=Questions(mechanisms=(oracle, hashed("counts"))))
    empty = pair.tally(pair.decode(b""))
    inside = PerMember(pair, 3, empty.layout, ((bad,), *empty.parts[1:]))
    for mechanism, tally in ((oracle, bad), (pair, inside)):
        with pytest.raises(ReportRejected, match="1 of 3 reports are out of range"):
            check_tally(mechanism, tally)


def test_weights_of_a_log_are_checked():
    oracle = hashed()
    reports = np.zeros(2, oracle.report_dtype)
    with pytest.raises(ReportRejected, match="another number of weights"):
        check_tally(oracle, Log(oracle, (reports,), (np.ones(1, np.int64),)))
    for weight in (1 << 31, -(1 << 63), (1 << 63) - 1):
        with pytest.raises(Overflow):
            check_tally(oracle, Log(oracle, (reports,), (np.array([1, weight]),)))


def test_members_belong_together():
    one_of, all_of = example("one_of", "1"), example("all_of", "1")
    all_of = replace(all_of, state="members")
    for mechanism in (one_of, all_of):
        tally = tally_of(mechanism)
        with pytest.raises(ReportRejected, match="not as many"):
            check_tally(mechanism, replace(tally, n=tally.n + 1))
        part = tally.parts[0]
        mixed = MemberCounts(part.mechanism, part.n, part.cells, part.cells.copy(), part.total, part.total2)
        with pytest.raises(ReportRejected, match="some members are weighted"):
            check_tally(mechanism, replace(tally, parts=(mixed, *tally.parts[1:])))


def test_sums_of_forged_cells_are_exact():
    cells = np.full((2, 6), (1 << 62) - 1)
    assert exact_sums(cells).tolist() == [6 * ((1 << 62) - 1)] * 2
    wrapping = np.array([[LIMIT - 1, LIMIT - 1, LIMIT - 1, LIMIT - 1, 4 + 10]])  # 10 modulo 2^64
    assert CellRule(least=1, most=1).fault(np.array([10]), wrapping)
    assert CellRule(least=1, most=1).fault(np.array([LIMIT - 1]), wrapping) == (
        "the cells do not add up to what their reports give"
    )


def merged(tally: Any) -> Any:
    return tally + tally


def test_merging_never_wraps():
    grr = tacit.GRR(size=2, epsilon="1")
    big = (1 << 62) - 2
    cells, small = np.array([big, 0]), np.array([0, 0])
    for counts in (
        Counts(grr, 1, cells, small, 0, 0),  # The sums themselves, not their squares.
        Counts(grr, 1, -cells, small, 0, 0),
        Counts(grr, 1, small, cells, 0, 0),
        Counts(grr, 1, small, small.copy(), big, 0),
        Counts(grr, 1, small, small.copy(), -big, 0),
        Counts(grr, big, small, small, 0, 0),
    ):
        with pytest.raises(Overflow):
            merged(counts)
        lines = [np.array([number]) for number in (counts.n, counts.total, counts.total2)]
        squares = counts.cells[None] if counts.cells2 is counts.cells else counts.cells2[None]
        grid_cells = squares if counts.cells2 is counts.cells else counts.cells[None]
        with pytest.raises(Overflow):
            merged(MemberCounts(grr, lines[0], grid_cells, squares, lines[1], lines[2]))
    oracle = hashed()
    log = Log(oracle, (np.zeros(1, oracle.report_dtype),), (np.array([1 << 30]),))
    two = merged(log)
    with pytest.raises(Overflow):
        merged(two)


def test_weights_are_bounded_by_the_sum_of_their_squares():
    """One heavy weight among many light ones is no reason to refuse them all."""
    grr = tacit.GRR(size=2, epsilon="1")
    weights = np.ones(1 << 12, np.int64)
    weights[0] = 1 << 26
    assert grr.tally(np.zeros(1 << 12, np.uint8), weights).total2 == (1 << 52) + (1 << 12) - 1
    with pytest.raises(Overflow):
        grr.tally(np.zeros(4, np.uint8), np.full(4, 1 << 30))


@pytest.mark.parametrize("mechanism", [tacit.GRR(size=5, epsilon="1"), tacit.HRR(size=5, epsilon="1")])
def test_checked_reports_are_in_range_for_kinds_that_count_codes_too(mechanism: Any):
    with pytest.raises(ReportRejected, match="1 of 2 reports are out of range"):
        mechanism.check_reports(np.array([3, 200], mechanism.report_dtype))


@pytest.mark.parametrize("kind", ["hrr_t", "hrr_subspace"])
def test_transforms_of_heavy_weights_are_refused_before_they_wrap(kind: str):
    """A report tells several rows, so that the sum over all cells exceeds every cell."""
    cls: Any = {entry.kind: entry for entry in tacit.CATALOG}[kind]
    mechanism = cls(size=32, epsilon="1", coefficients=4)
    reports = mechanism.privatize(np.zeros(1, np.int64), ReplayCoins(b"heavy"))
    mechanism.estimate(mechanism.tally(reports, np.array([1 << 20])))
    with pytest.raises(Overflow):
        mechanism.estimate(mechanism.tally(reports, np.array([(1 << 31) - 1])))


@pytest.mark.parametrize(
    "mechanism",
    [
        tacit.OLH(size=1 << 60, epsilon="1", state="counts"),
        tacit.FLH(size=100, epsilon="32", pool=1 << 24, key=1),
        tacit.OneOf(family=Questions(mechanisms=(tacit.HRR(size=1 << 29, epsilon="1"),))),
    ],
    ids=lambda mechanism: mechanism.kind,
)
def test_a_forged_spec_cannot_ask_for_all_memory(mechanism: Any):
    stream = io.BytesIO()
    writer = Writer(stream, TALLY_MAGIC, mechanism, state="counts", weighted=False, total="0", total_squared="0")
    writer.block(bytes(800), 0)
    writer.close()
    with pytest.raises(ReportRejected, match="fewer cells"):
        read_tally(io.BytesIO(stream.getvalue()), "a.tally")
