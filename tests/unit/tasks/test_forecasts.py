"""A forecast is about the mechanism that is published, also where the planner would choose another one today."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from tacit.device.domains.domain import Booleans, Categories, Strings
from tacit.device.domains.product import Product
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Epsilon
from tacit.numeric.rounded import Rounded
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE, SUE, THE
from tacit.post.grids.shape import GridShape
from tacit.simulate.marginals import simulate_tally
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.hitters.task import HEAVY_HITTERS
from tacit.tasks.marginals.methods import one_of_views
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.marginals.task import MARGINALS
from tacit.tasks.ranges.grid_plan import grid_of
from tacit.tasks.ranges.means import RANGE_MEANS, plan_range_means
from tacit.tasks.ranges.rectangles import solve_rectangles
from tacit.tasks.ranges.task import RANGES
from tacit.tasks.task import UNPLANNED, JointQuestions

N, BUDGET = 20_000, Epsilon("1")
GRID = Product((Integers("a", 0, 7), Integers("b", 0, 4)))


def picked(forecast: Any) -> list[str]:
    return [option["name"] for option in forecast.options if option["picked"]]


def of_planned_and_published(task: Any, domain: Any, published: Any, *k: int) -> tuple[Any, Any]:
    """The forecast of what the planner chooses, which says so, and that of another mechanism, which says that."""
    planned = task.plan(domain, BUDGET, N, *k)
    assert planned != published
    first, second = (task.forecast(domain, mechanism, N, *k) for mechanism in (planned, published))
    assert UNPLANNED not in first.why
    assert UNPLANNED in second.why and picked(second) == []
    return first, second


def shapes() -> "list[Any]":
    """One oracle over all combinations; a ragged grid of other heights and weights than are planned."""
    shape = GridShape(GRID.sizes, (2, 3))
    heights = ((2, 0), (1, 1), (0, 0))
    oracles = [SUE(size=int(np.prod(shape.nodes(item))), epsilon="1") for item in heights]
    return [SUE(size=GRID.size, epsilon="1"), grid_of(shape, heights, oracles, (1, 1, 3))]


@pytest.mark.parametrize("published", shapes(), ids=["flat", "grid"])
def test_rectangles(published: Any) -> None:
    """The forecast is the root mean variance of all rectangles that the published mechanism states on even data."""
    first, second = of_planned_and_published(RANGES, GRID, published)
    assert len(picked(first)) == 1
    tally = published.simulate_tally(np.full(GRID.size, N // GRID.size), np.random.default_rng(1))
    sides = [list(combinations(range(size + 1), 2)) for size in GRID.sizes]
    ends = [[(low, high - 1) for low, high in pair] for pair in product(*sides)]
    low, high = ([[side[end] for side in pair] for pair in ends] for end in (0, 1))
    stated = solve_rectangles(GRID.sizes, published, tally).rectangles(low, high).variance
    assert second.standard_error == pytest.approx(float(np.sqrt(stated.mean())), rel=0.02)
    assert second.standard_error > 1.05 * first.standard_error


def test_means_within_ranges() -> None:
    """Levels asked alike, with a noisier oracle: the planned forecast is no forecast of these."""
    domain = Product((Integers("key", 0, 15), Integers("number", 0, 10)))
    shape = GridShape((16, 11), (4, 2))
    heights = ((1, 0), (0, 0))
    oracles = [Rounded(top=10, inner=SUE(size=2 * keys, epsilon="1")) for keys in (4, 16)]
    first, second = of_planned_and_published(RANGE_MEANS, domain, grid_of(shape, heights, oracles, (1, 1)))
    assert "has the least expected error" in first.why
    assert second.standard_error > 1.05 * first.standard_error
    # What is planned for other numbers of respondents has nearly the same error.
    other = RANGE_MEANS.forecast(domain, plan_range_means(16, 10, BUDGET, 10), N)
    assert other.standard_error == pytest.approx(first.standard_error, rel=0.05)


def test_tables() -> None:
    """All pairs of four questions, with thresholds: the mean over tables of the variances that they state."""
    domains = (Booleans("a"), Categories("b", ("x", "y", "z")), Booleans("c"), Booleans("d"))
    asked = JointQuestions(tuple("abcd"), domains)
    pairs = list(combinations(range(4), 2))
    published = one_of_views(asked.sizes, pairs, lambda cells: THE(size=cells, epsilon="1"))
    first, second = of_planned_and_published(MARGINALS, asked, published, 2)
    assert len(picked(first)) == 1
    records = np.stack([np.random.default_rng(i).integers(0, size, N) for i, size in enumerate(asked.sizes)], axis=1)
    tally = simulate_tally(published, records, asked.sizes, np.random.default_rng(5))
    tables = [table.raw.variance for table in solve_marginals(published, tally).tables(pairs)]
    cells = np.mean([len(table) for table in tables])
    stated = float(np.sqrt(np.mean([table.sum() for table in tables]) / round(float(cells))))
    assert second.raw == pytest.approx(stated, rel=0.03)
    assert second.standard_error > 1.05 * first.standard_error


@pytest.mark.parametrize("published", [OUE(size=3, epsilon="1"), GRR(size=3, epsilon="2")], ids=["oue", "epsilon"])
def test_shares(published: Any) -> None:
    domain = Categories("c", ("a", "b", "c"))
    assert HISTOGRAM.forecast(domain, published, N).standard_error == published.standard_error(N)


def test_another_design_of_the_planned_kind_is_not_explained_by_the_plan() -> None:
    domain = Integers("i", 0, 199)
    planned: Any = HISTOGRAM.plan(domain, BUDGET, N)
    published = OLH(size=200, epsilon="1", buckets=2)
    assert HISTOGRAM.forecast(domain, planned, N).options
    found = HISTOGRAM.forecast(domain, published, N)
    assert (found.standard_error, found.why, found.options) == (published.standard_error(N), UNPLANNED, ())


def test_texts_that_are_looked_up() -> None:
    domain = Strings("word", key="k", max_bytes=20)
    published = OLH(size=domain.size, epsilon="1", buckets=2, state="log")
    assert HEAVY_HITTERS.forecast(domain, published, N).standard_error == published.standard_error(N)
