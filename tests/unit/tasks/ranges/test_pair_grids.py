"""Grids of pairs (TDG, HDG): numbers of intervals, agreement, rectangles of any attributes and their errors."""

from itertools import combinations
from math import exp, prod

import numpy as np
import pytest

from tacit import OUE, ReplayCoins
from tacit.core.asked import AskedLevels, asked_levels
from tacit.core.compose import OneOf
from tacit.core.patience import checked_by
from tacit.device.numbers.budget import as_budget
from tacit.errors import InvalidSpec
from tacit.post.grids.pairs import CutGrid, PairFit, agree, all_inside, respond
from tacit.post.grids.shape import GridShape
from tacit.simulate.rectangles import GridCrowd
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.grid_plan import grid_of
from tacit.tasks.ranges.options import Workshop
from tacit.tasks.ranges.pair_grids import PairRectangles, are_pairs
from tacit.tasks.ranges.pair_plan import (
    MOST_PAIR,
    MOST_SINGLE,
    pair_intervals,
    pair_options,
    rounded_intervals,
    shares_inside,
    single_intervals,
)
from tacit.tasks.ranges.rectangles import solve_rectangles


def paired(size: int, count: int, single: int, pair: int, epsilon: str) -> OneOf:
    """Grids with so many intervals of attributes and of pairs, all with OUE; `single` is 0 for TDG."""
    shape = GridShape((size,) * count, (2,) * count)
    wanted = [(item, pair) for item in combinations(range(count), 2)]
    wanted += [((a,), single) for a in range(count)] if single else []
    heights = sorted(
        (tuple((size // cut).bit_length() - 1 if a in item else top for a, top in enumerate(shape.tops))
         for item, cut in wanted), reverse=True,
    )  # fmt: skip
    oracles = [OUE(size=prod(shape.nodes(item)), epsilon=epsilon) for item in heights]
    return grid_of(shape, heights, oracles, (1,) * len(heights))


def levels(mechanism: OneOf) -> AskedLevels:
    asked = asked_levels(mechanism)
    assert asked is not None
    return asked


@pytest.mark.parametrize(
    ("n", "attributes", "epsilon", "expected"),
    [(1e6, 6, 0.2, (7.8, 1.6)), (1e6, 6, 1, (23.3, 3.7)), (1e6, 6, 2, (40.1, 5.6)), (1e5, 3, 1, (16.4, 2.8))],
)
def test_the_papers_numbers_of_intervals(
    n: float, attributes: int, epsilon: float, expected: tuple[float, float]
) -> None:
    groups = attributes + attributes * (attributes - 1) // 2
    noise = 4 * groups * exp(epsilon) / (n * (exp(epsilon) - 1) ** 2)
    assert (single_intervals(noise), pair_intervals(noise)) == pytest.approx(expected, abs=0.06)
    # They are minima of noise plus unevenness.
    single, pair = single_intervals(noise), pair_intervals(noise)
    for g in (0.9, 1.1):
        assert single * noise + (0.7 / single) ** 2 < g * single * noise + (0.7 / g / single) ** 2
        assert pair**2 * noise / 4 + (0.06 / pair) ** 2 < (g * pair) ** 2 * noise / 4 + (0.06 / g / pair) ** 2


def exact(truth: np.ndarray, single: int, pair: int) -> PairFit:
    """The fit of grids that were told the truth about a joint table."""
    sizes, grids = truth.shape, list[CutGrid]()
    wanted = [(item, pair) for item in combinations(range(truth.ndim), 2)] + [((a,), single) for a in range(truth.ndim)]
    for item, cut in wanted:
        margin = truth.sum(axis=tuple(a for a in range(truth.ndim) if a not in item))
        bounds = tuple(np.append(np.arange(0, sizes[a], sizes[a] // cut), sizes[a]) for a in item)
        for axis, bound in enumerate(bounds):
            margin = np.add.reduceat(margin, bound[:-1], axis=axis)
        grids.append(CutGrid(item, bounds, margin, 1.0))
    return PairFit(sizes, tuple(grids), 1e-9)


def test_true_grids_stay_as_they_are_and_answer_their_own_cells() -> None:
    rng = np.random.default_rng(1)
    truth = rng.dirichlet(np.ones(512)).reshape(8, 8, 8)
    fit = exact(truth, 8, 4)
    assert all(np.allclose(table, grid.value) for table, grid in zip(fit.tables, fit.grids, strict=True))
    # A range of one attribute, a rectangle of cells of a pair, everything.
    low, high = np.array([[0, 3, 0], [2, 0, 4], [0, 0, 0]]), np.array([[7, 6, 7], [5, 7, 5], [7, 7, 7]])
    wanted = [truth[:, 3:7].sum(), truth[2:6, :, 4:6].sum(), 1.0]
    assert fit.agreed.boxes(low, high) == pytest.approx(wanted, abs=1e-6)


def test_a_product_is_answered_exactly_for_any_attributes() -> None:
    """Independent attributes that are even inside their intervals: what is assumed holds, so there is no error."""
    sides = [np.repeat(shares, 2) / 2 for shares in np.random.default_rng(2).dirichlet(np.ones(4), 3)]
    truth = np.einsum("i,j,k->ijk", *sides)
    low, high = np.array([[1, 2, 3], [0, 5, 1]]), np.array([[6, 4, 3], [3, 7, 6]])
    wanted = [
        truth[tuple(slice(a, b + 1) for a, b in zip(*ends, strict=True))].sum() for ends in zip(low, high, strict=True)
    ]
    assert exact(truth, 4, 2).agreed.boxes(low, high) == pytest.approx(wanted, abs=1e-6)


def test_the_weighted_update_meets_all_grids_and_skips_what_is_empty() -> None:
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(16)).reshape(4, 4)
    truth[:, 3] = 0
    truth /= truth.sum()
    fine, coarse = np.arange(5), np.array([0, 2, 4])
    blocks = np.add.reduceat(np.add.reduceat(truth, coarse[:-1], axis=0), coarse[:-1], axis=1)
    found = respond((fine, truth.sum(axis=1)), (fine, truth.sum(axis=0)), (coarse, coarse, blocks), 1e-12)
    assert np.allclose(found.sum(axis=0), truth.sum(axis=0)) and np.allclose(found.sum(axis=1), truth.sum(axis=1))
    assert np.allclose(np.add.reduceat(np.add.reduceat(found, [0, 2], axis=0), [0, 2], axis=1), blocks)


def test_agreement_weighs_by_the_cells_summed() -> None:
    """One attribute in two halves: 0.6 from its own grid of 2 cells, 0.5 from a pair's of 4: weights 1 and 1/2."""
    own = CutGrid((0,), (np.array([0, 1, 2]),), np.array([0.6, 0.4]), 1.0)
    pair = CutGrid((0, 1), (np.array([0, 1, 2]),) * 2, np.full((2, 2), 0.25), 1.0)
    tables = agree([own, pair])
    assert tables[0] == pytest.approx(np.array([0.6 + 0.5 / 2, 0.4 + 0.5 / 2]) / 1.5)
    assert tables[1].sum(axis=1) == pytest.approx(tables[0]) and tables[1].sum(axis=0) == pytest.approx([0.5, 0.5])


def test_the_share_inside_all_has_the_largest_entropy() -> None:
    """Pairs of independent attributes give the product; nested ranges give the smallest."""
    half = np.array([0.5])
    even = {pair: np.array([0.25]) for pair in combinations(range(3), 2)}
    assert all_inside(even, [half] * 3, 1e-12) == pytest.approx([0.125])
    nested = {pair: half for pair in combinations(range(3), 2)}
    assert all_inside(nested, [half] * 3, 1e-12) == pytest.approx([0.5])


def normal_crowd(n: int, size: int, count: int, rho: float) -> tuple[GridCrowd, np.ndarray]:
    rng = np.random.default_rng(5)
    drawn = rng.multivariate_normal(np.zeros(count), np.full((count, count), rho) + (1 - rho) * np.eye(count), n)
    rows = np.clip((drawn / 8 + 0.5) * size, 0, size - 1).astype(np.int64)
    return GridCrowd.of_rows(rows, (size,) * count), rows


def half_ranges(size: int, bound: int, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.zeros((queries, 3), np.int64), np.full((queries, 3), size - 1)
    for q in range(queries):
        for a in rng.permutation(3)[:bound]:
            low[q, a] = rng.integers(0, size // 2 + 1)
            high[q, a] = low[q, a] + size // 2 - 1
    return low, high


@pytest.mark.parametrize(
    ("single", "pair", "bound", "expected"), [(16, 4, 2, 0.032), (16, 4, 3, 0.038), (0, 4, 2, 0.12)]
)
def test_mean_absolute_errors_on_correlated_normal_data(single: int, pair: int, bound: int, expected: float) -> None:
    """200,000 respondents, three attributes of 64 answers, rho 0.8, epsilon 1; the reference is a mean of 3 runs, which
    scatter by some 15 %: three runs here must be within 35 % of it.
    """
    crowd, rows = normal_crowd(200_000, 64, 3, 0.8)
    mechanism, errors, rng = paired(64, 3, single, pair, "1"), list[float](), np.random.default_rng(7)
    low, high = half_ranges(64, bound, 60, rng)
    truth = shares_inside(rows, low, high)
    for _ in range(3):
        fitted = solve_rectangles((64,) * 3, mechanism, crowd.tally(mechanism, rng))
        assert isinstance(fitted, PairRectangles)
        errors.append(float(np.abs(fitted.fit.agreed.boxes(low, high) - truth).mean()))
    assert np.mean(errors) == pytest.approx(expected, rel=0.35)


def test_intervals_hold_and_raw_answers_are_unbiased_at_the_cells() -> None:
    """Raw answers of one pair's cell: 200 draws, the mean within 5 standard errors (chance below 1e-6). Intervals at
    95 % are conservative: at least 90 % of 60 rectangles hold, and their mean width is below 0.6; it would be
    0.73 if the truth were anywhere that the cells allow.
    """
    crowd, rows = normal_crowd(20_000, 32, 3, 0.5)
    mechanism, rng = paired(32, 3, 8, 4, "2"), np.random.default_rng(11)
    one, other = [[8, 16, 0]], [[15, 23, 31]]
    truth = shares_inside(rows, np.array(one), np.array(other))[0]
    draws = [solve_rectangles((32,) * 3, mechanism, crowd.tally(mechanism, rng)) for _ in range(200)]
    found = [draw.raw(one, other) for draw in draws if isinstance(draw, PairRectangles)]
    values, stated = np.array([item.value[0] for item in found]), np.mean([item.variance[0] for item in found])
    assert abs(values.mean() - truth) < 5 * np.sqrt(stated / len(values))
    # A chi-square of 199 degrees leaves these bounds with probability below 1e-5.
    assert 0.6 < values.var(ddof=1) / stated < 1.5
    low, high = half_ranges(32, 3, 60, rng)
    answered = draws[0].rectangles(low.tolist(), high.tolist())
    down, up = answered.interval()
    held = (down <= shares_inside(rows, low, high)) & (shares_inside(rows, low, high) <= up)
    assert held.mean() >= 0.9 and np.mean(up - down) < 0.6 and answered.caution == "even_blocks"


def test_plans_have_integer_intervals_that_a_document_carries() -> None:
    """A size that is no power of two, and one with two answers."""
    best = pair_options((100, 50, 2), as_budget("1"), 50_000)[0]
    family = best.mechanism.spec()["family"]
    assert family["kind"] == "grid" and family["fanouts"] == [2, 2, 2] and len(family["heights"]) in (3, 6)
    assert are_pairs(levels(best.mechanism)) and best.error == 50_000 * max(best.errors) ** 2
    assert best.name.startswith(best.method) and 0 < best.between[0] <= best.rmse(1) < 0.2


def test_no_plan_has_tables_that_nobody_has_room_for() -> None:
    """Ten billion respondents at epsilon 8 would have thousands of intervals, and tables of gigabytes."""
    workshop = Workshop(as_budget("8"), 10**10, Workload("ranges"), even=True)
    found = [rounded_intervals(axes, workshop, 10**10 / 3, 1 << 20) for axes in (1, 2)]
    assert found == [MOST_SINGLE, MOST_PAIR]


def test_long_answers_can_be_given_up() -> None:
    """Whoever waits is asked in every sweep, and memory is that of one replay at a time."""
    crowd, _ = normal_crowd(2_000, 32, 3, 0.5)
    mechanism = paired(32, 3, 8, 4, "2")
    fitted = solve_rectangles((32,) * 3, mechanism, crowd.tally(mechanism, np.random.default_rng(1)))
    asked: list[int] = []
    with checked_by(lambda: asked.append(1)):
        fitted.rectangles([[1, 2, 3]], [[20, 21, 22]])
    # Every fit of 21: seven rounds of agreement, and at least one sweep for each of three pairs.
    assert len(asked) >= 21 * (7 + 3)


def test_what_is_refused_or_empty() -> None:
    mechanism = paired(16, 3, 8, 2, "1")
    empty = solve_rectangles((16,) * 3, mechanism, mechanism.tally(np.empty(0, mechanism.report_dtype)))
    assert isinstance(empty, PairRectangles) and not empty.rectangles([[0, 1, 2]], [[3, 4, 5]]).has_data
    for low, high, said in [
        ([[0, 0]], [[1, 1]], "of which there are 3"),
        ([[0, 0, 9]], [[1, 1, 16]], "outside the domain"),
        ([[0, 0, 9]], [[1, 1, 8]], "low is above high"),
    ]:
        with pytest.raises(InvalidSpec, match=said):
            empty.rectangles(low, high)
    with pytest.raises(InvalidSpec, match="bind the same one or two"):
        empty.raw([[1, 1, 1]], [[2, 2, 2]])
    # One member got no report: the others answer for it.
    values = np.zeros(50, np.int64)
    reports = mechanism.privatize(values, ReplayCoins(b"few"))
    some = mechanism.tally(reports[reports["member"] != reports["member"][0]])
    found = solve_rectangles((16,) * 3, mechanism, some).rectangles([[0, 0, 0]], [[7, 7, 7]])
    assert np.isfinite(found.variance).all() and 0 <= found.value[0] <= 1


def test_whole_grids_are_no_grids_of_pairs() -> None:
    shape = GridShape((4, 4), (2, 2))
    heights = ((2, 0), (1, 1), (0, 2), (0, 0))
    oracles = [OUE(size=prod(shape.nodes(item)), epsilon="1") for item in heights]
    assert not are_pairs(levels(grid_of(shape, heights, oracles, (1,) * 4)))
    assert are_pairs(levels(grid_of(shape, heights[:3], oracles[:3], (1,) * 3)))
