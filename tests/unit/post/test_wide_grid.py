"""Rectangles of large grids: the same answers as least squares over all cells, in bounded memory."""

import tracemalloc
from itertools import combinations_with_replacement
from math import prod

import numpy as np
import pytest

from tacit.core.asked import asked_levels
from tacit.device.numbers.budget import as_budget
from tacit.errors import InvalidSpec
from tacit.oracles.hadamard import HRR
from tacit.oracles.unary import OUE
from tacit.post.grids.grid import fit_grid
from tacit.post.grids.shape import GridShape, Heights
from tacit.post.grids.wide import MOST_WIDE, fit_wide
from tacit.post.trees.levels import Level, LevelSums
from tacit.tasks.ranges.grid_plan import GridPlanner, squares_within
from tacit.tasks.ranges.grid_task import MOST_RECTANGLES
from tacit.tasks.ranges.rectangles import Rectangles, levels_of
from tacit.testing.statistics import assert_unbiased, assert_variance

Told = dict[Heights, Level]


def told(shape: GridShape, asked: list[Heights], *, truth: np.ndarray | None = None) -> Told:
    """What members of these heights might have said; without noise where the true cells are given."""
    rng, found = np.random.default_rng(3), Told()
    for i, heights in enumerate(asked):
        nodes = prod(shape.nodes(heights))
        value = rng.normal(1 / nodes, 0.1, nodes) if truth is None else shape.sums(truth, heights)
        found[heights] = Level(0, value, HRR(size=max(2, nodes), epsilon="1").moments, 1 / (300 + 50 * i))
    return found


def some(sizes: Heights, count: int) -> tuple[list[Heights], list[Heights]]:
    """Random rectangles, the whole domain first."""
    rng = np.random.default_rng(4)
    ends = [np.sort(rng.integers(0, size, (2, count)), axis=0) for size in sizes]
    low = [(0,) * len(sizes), *(tuple(int(end[0, i]) for end in ends) for i in range(count))]
    high = [tuple(size - 1 for size in sizes), *(tuple(int(end[1, i]) for end in ends) for i in range(count))]
    return low, high


@pytest.mark.parametrize(("sizes", "fanouts"), [((8, 16), (2, 4)), ((9, 8), (3, 2)), ((4, 3, 8), (2, 3, 2))])
def test_complete_grids_have_the_answers_of_dense_least_squares(sizes: Heights, fanouts: Heights) -> None:
    shape = GridShape(sizes, fanouts)
    fanouts = tuple(f if f**top == size else 2 for f, top, size in zip(fanouts, shape.tops, sizes, strict=True))
    shape = GridShape(sizes, fanouts)
    members = told(shape, shape.every_height())
    dense = fit_grid(sizes, fanouts, members, respondents=5000.0)
    wide = fit_wide(sizes, fanouts, members, respondents=5000.0)
    low, high = some(sizes, 20)
    rows = np.array([shape.corner(*pair) for pair in zip(low, high, strict=True)])
    found, law = wide.boxes(low, high), dense.law(rows)
    assert np.allclose(wide.leaves, dense.leaves, atol=1e-12)
    assert np.allclose(found.value, rows @ dense.leaves, atol=1e-12)
    assert np.allclose(found.variance, dense.linear(rows), rtol=1e-9, atol=1e-15)
    assert np.allclose(wide.linear(rows), dense.linear(rows), rtol=1e-9, atol=1e-15)
    for name in ("slope", "curve", "step"):
        assert np.allclose(getattr(found.law, name), getattr(law, name), rtol=1e-9, atol=1e-15)


def test_ragged_grids_are_exact_without_noise_and_add_up_with_it() -> None:
    sizes, fanouts = (10, 7), (2, 4)
    shape = GridShape(sizes, fanouts)
    truth = np.random.default_rng(1).dirichlet(np.ones(70))
    exact = fit_wide(sizes, fanouts, told(shape, shape.every_height(), truth=truth), respondents=1000.0)
    assert np.allclose(exact.leaves, truth, atol=1e-12)
    noisy = fit_wide(sizes, fanouts, told(shape, shape.every_height()), respondents=1000.0)
    parts = noisy.boxes([(0, 0), (4, 0), (4, 3)], [(3, 6), (9, 2), (9, 6)])
    assert parts.value.sum() == pytest.approx(1, abs=1e-12)
    assert noisy.boxes([(0, 0)], [(9, 6)]).variance[0] == 0


def test_variances_of_ragged_grids_follow_from_the_coefficients() -> None:
    """The answer is linear in what the members say: coefficients by asking for one unit at a time."""
    sizes, fanouts, ends = (5, 7), (2, 3), ([(1, 2)], [(3, 6)])
    shape = GridShape(sizes, fanouts)
    members = told(shape, [(3, 0), (1, 1), (0, 2), (0, 0)])
    fit = fit_wide(sizes, fanouts, members, respondents=900.0)
    share = fit.boxes(*ends).value[0]
    variance = -(share - share**2) / 899
    for heights, level in members.items():
        moved: list[float] = []
        for unit in np.eye(len(level.value)):
            other = members | {heights: Level(0, level.value + unit, level.moments, level.scale)}
            moved.append(fit_wide(sizes, fanouts, other, respondents=900.0).boxes(*ends).value[0] - share)
        c, mass = np.array(moved), shape.sums(fit.leaves, heights)
        sums = (np.array([x]) for x in (c.sum(), c @ c, c @ mass, (c * c) @ mass))
        variance += level.variance(LevelSums(*sums), 900.0)[0]
    assert fit.boxes(*ends).variance[0] == pytest.approx(variance, rel=1e-9)
    assert fit.linear(shape.corner(ends[0][0], ends[1][0])[None, :])[0] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "runs", "power", "least"),
    [
        pytest.param((10, 7), 160, 2.0, 0.83, id="ragged-fast"),
        pytest.param((10, 7), 910, 1.3, 0.88, id="ragged", marks=pytest.mark.slow),
        pytest.param((8, 8), 910, 1.3, 0.88, id="complete", marks=pytest.mark.slow),
    ],
)
def test_wide_rectangles_are_unbiased_with_the_stated_variance(
    sizes: Heights, runs: int, power: float, least: float
) -> None:
    """False-alarm probability 1e-7 each; `power` times the variance fails. Intervals hold the truth as often as said.

    At most `least` of all intervals of 95 % by chance: below 1e-8 (binomial). Intervals of 70 % (fast) or 80 % (full)
    would pass with a probability below 2e-4.
    """
    n, rng = 3000, np.random.default_rng(9)
    mechanism = GridPlanner(sizes, 2).options(as_budget("2"), n)[0].mechanism
    asked = asked_levels(mechanism)
    assert asked is not None
    counts = rng.multinomial(n, rng.dirichlet(np.full(prod(sizes), 0.4)))
    low, high = [(1, 2), (3, 0)], [(6, 4), (sizes[0] - 1, 5)]
    table = counts.reshape(sizes) / n
    truth = np.array([table[a : c + 1, b : d + 1].sum() for (a, b), (c, d) in zip(low, high, strict=True)])
    fits = [fit_wide(sizes, asked.fanouts, levels_of(asked, mechanism.simulate_tally(counts, rng)), respondents=n)
            for _ in range(runs)]  # fmt: skip
    answers = [Rectangles(fit, n).rectangles(low, high) for fit in fits]
    errors = np.array([answer.value for answer in answers]) - truth
    stated = np.mean([answer.variance for answer in answers], axis=0)
    assert_unbiased(errors, stated)
    ends = np.array([answer.interval(0.95) for answer in answers])
    for i in range(2):
        assert_variance(errors[:, i], stated[i], must_reject=power)
        assert np.mean((ends[:, 0, i] <= truth[i]) & (truth[i] <= ends[:, 1, i])) > least


def test_a_thousand_by_a_thousand_cells_take_bounded_memory() -> None:
    sizes, fanouts = (1000, 1024), (4, 4)
    shape = GridShape(sizes, fanouts)
    truth = np.full(shape.cells, 1 / shape.cells)
    members = told(shape, [(5, 2), (3, 3), (2, 5), (1, 1), (0, 0)], truth=truth)
    tracemalloc.start()
    fit = fit_wide(sizes, fanouts, members, respondents=1e6)
    found = Rectangles(fit, 10**6).rectangles([(17, 3), (0, 512)], [(801, 700), (999, 1023)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 8 * shape.cells, "a few arrays of all cells"
    assert found.value == pytest.approx([785 * 698 / shape.cells, 0.5], abs=1e-9)
    assert np.isfinite(found.variance).all()
    marked = np.array([1.0, 0.0])
    assert found.variance_of(marked[None, :])[0] == pytest.approx(found.variance[0], rel=1e-9)


def test_every_planned_shape_has_a_fit() -> None:
    """Means and areas read the small fit alone: ragged trees of more cells than it takes are not planned for them."""
    budget = as_budget("2")
    for planner in (GridPlanner((700, 2), 1), GridPlanner((700, 2), 2, MOST_RECTANGLES)):
        planned = [option.shape for option in planner.options(budget, 10**5)]
        assert planned and all(shape.complete for shape in planned)
    assert not all(o.shape.complete for o in GridPlanner((70, 20), 2, MOST_RECTANGLES).options(budget, 10**5))


def test_what_nobody_was_asked_for_has_no_end_and_too_much_is_refused() -> None:
    sizes, fanouts = (8, 8), (2, 2)
    shape = GridShape(sizes, fanouts)
    fit = fit_wide(sizes, fanouts, told(shape, [(3, 0), (1, 1)]), respondents=500.0)
    found = fit.boxes([(0, 0), (2, 4), (1, 0), (0, 3)], [(7, 7), (5, 7), (1, 7), (7, 3)])
    assert np.isfinite(found.variance).tolist() == [True, True, False, True]
    assert np.isinf(fit.linear(shape.corner((1, 0), (1, 7))[None, :])[0])
    assert np.isinf(fit_wide(sizes, fanouts, {}, respondents=0.0).boxes([(0, 0)], [(1, 1)]).variance[0])
    with pytest.raises(InvalidSpec, match=str(MOST_WIDE)):
        fit_wide((2049, 1025), (2, 2), {}, respondents=1.0)
    signed = Level(0, np.zeros(4), OUE(size=4, epsilon="1").moments, 1.0, signed=True)
    with pytest.raises(InvalidSpec, match="signed"):
        fit_wide((2, 2), (2, 2), {(0, 0): signed}, respondents=1.0)


@pytest.mark.slow_cases("sizes1")
@pytest.mark.parametrize("sizes", [(1 << 12, 256), (1 << 19, 2)])
def test_planning_a_long_attribute_takes_memory_for_its_answers_not_for_pairs_of_them(sizes: tuple[int, int]) -> None:
    """A matrix of pairs has 128 MB for the first, and 2 TB for the second."""
    tracemalloc.start()
    try:
        options = GridPlanner(sizes, 2, MOST_RECTANGLES).options(as_budget("1"), 10**6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert options and peak < 64 << 20


@pytest.mark.parametrize(("size", "width"), [(1, 1), (6, 1), (6, 2), (6, 6), (16, 4)])
def test_squares_within_blocks_are_those_of_every_range(size: int, width: int) -> None:
    total = 0
    for first, last in combinations_with_replacement(range(size), 2):
        inside = [min(last, block + width - 1) - max(first, block) + 1 for block in range(0, size, width)]
        total += sum(max(0, count) ** 2 for count in inside)
    assert squares_within(size, width) == pytest.approx(total / (size * (size + 1) // 2))
