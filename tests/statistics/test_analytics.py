"""Simulated respondents against the exact variances of terms, local hashing included, and coverage of intervals.

Every assertion has a false-alarm probability of ALPHA = 1e-7 (two per design here, so 3e-6 for the file), and
`assert_variance` proves that a variance off by 1.3 would be refused.
"""

from typing import Any

import numpy as np
import pytest

from tacit.core.statistics.simulated import GeneratorCoins
from tacit.post.grids.shape import GridShape
from tacit.simulate.analytics import Rehearsal, rehearse
from tacit.sql.design.levels import Design, hi, hio, hio_consistent, hiocap, mg, quadtree, sc, sco, wavelet
from tacit.sql.engine.aggregate import AggregateCell, PowerSums, cell_of
from tacit.sql.engine.linked import collect
from tacit.sql.engine.terms import exact_terms, region_terms
from tacit.sql.engine.weights import weights_of
from tacit.sql.schema.regions import Region, corners, slab
from tacit.sql.schema.schema import Dimension, Schema
from tacit.testing.statistics import assert_unbiased, assert_variance

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

N, RUNS = 300, 950


def respondents(rng: np.random.Generator, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Skewed values, and a skewed measure that goes up with the first of them."""
    first = np.minimum(rng.geometric(0.08, N) - 1, sizes[0] - 1)
    rest = [rng.integers(0, size, N) for size in sizes[1:]]
    return np.stack([first, *rest], axis=1), rng.gamma(2, 3, N) * (1 + first / sizes[0])


CASES: dict[str, tuple[Design, Region]] = {
    "hio, one dimension": (hio(GridShape((60,), (4,)), "1"), slab((60,), 0, ((7, 41),))),
    "hio, unequal levels": (hio(GridShape((60,), (4,)), "2", weights=(1, 4, 2)), slab((60,), 0, ((3, 9), (20, 57)))),
    "hio, a box": (hio(GridShape((27, 8), (3, 8)), "1"), corners((27, 8), [(4, 20), (2, 2)])),
    "hio, a corner": (hio(GridShape((27, 8), (3, 8)), "1"), ~corners((27, 8), [(4, 26), (2, 7)])),
    "hiocap": (hiocap(GridShape((27, 8), (3, 8)), "1", 1), slab((27, 8), 0, ((4, 20),))),
    "consistent": (hio_consistent(GridShape((60,), (4,)), "1"), slab((60,), 0, ((7, 41),))),
    "quadtree": (quadtree(GridShape((16, 16), (4, 4)), "1"), corners((16, 16), [(1, 11), (2, 14)])),
    "wavelet": (wavelet(GridShape((60,), (4,)), "1"), slab((60,), 0, ((7, 41),))),
    "mg": (mg(GridShape((27, 8), (3, 8)), "1"), corners((27, 8), [(4, 8), (2, 3)])),
    "hi": (hi(GridShape((60,), (4,)), "2"), slab((60,), 0, ((7, 41),))),
    "sc": (sc(GridShape((27, 8), (3, 8)), "4"), corners((27, 8), [(4, 20), (2, 3)])),
    "sco": (sco(GridShape((27, 8), (3, 8)), "4"), corners((27, 8), [(4, 20), (2, 3)])),
}


@pytest.mark.parametrize("case", CASES)
def test_weighted_sums_have_their_exact_variance(case: str):
    design, region = CASES[case]
    assert any(oracle.kind == "olh" for group in design.groups for oracle in group.oracles)
    rng = np.random.default_rng(sum(map(ord, case)))
    values, x = respondents(rng, design.shape.sizes)
    exact = exact_terms(design, values, region)
    truth, variance = float(x @ exact.inside), float(x**2 @ exact.variance)
    # A row's term depends on its own report alone, so that all runs are rows of one collection.
    linked = collect(design, np.tile(values, (RUNS, 1)), GeneratorCoins(rng), rng)
    terms, rows = region_terms(linked, region), np.arange(RUNS * N) if linked.order is None else linked.order
    weights, run = x[rows % N], rows // N
    errors = np.bincount(run, weights * terms.inside, RUNS) - truth
    plugins = np.bincount(run, weights**2 * terms.variance, RUNS)
    assert_unbiased(errors[:, None], np.array([variance]))
    assert_variance(errors, np.full(RUNS, variance))
    # The plug-in varies much less than a squared error; its mean is within a few of its own standard errors.
    assert abs(plugins.mean() - variance) < 6 * plugins.std() / np.sqrt(RUNS) + 1e-9 * variance


def coverage(method: str, n: int, runs: int, domain: int = 64) -> np.ndarray:
    """Shares of nominal 95 % intervals of COUNT, SUM and AVG of a skewed measure that hold the truth.

    The first row is that of the exact plug-in variance, the second that of the respondents' own spread.
    """
    rng = np.random.default_rng(7)
    age = np.minimum(rng.geometric(0.03, n) - 1, domain - 1)
    hours = rng.lognormal(1.0, 1.0, n) * (1 + age / domain)
    rehearsal, truth = rehearsed({"age": age, "hours": hours}, runs, "2", domain, method)
    rows = rehearsal.collect(rng).query(f"SELECT run, {AGGREGATES} GROUP BY run").rows
    columns = [list(column) for column in zip(*rows, strict=True)][1:]
    wanted = [cell.estimate for cell in truth.query(f"SELECT {AGGREGATES}").cells()]
    covered = np.zeros((2, 3))
    for i, (cells, true) in enumerate(zip(columns, wanted, strict=True)):
        error = np.abs(np.array([cell.estimate for cell in cells]) - true)
        covered[0, i] = np.mean(error <= 1.959964 * np.array([cell.standard_error for cell in cells]))
        covered[1, i] = np.mean(error <= 1.959964 * np.array([cell.per_user_standard_error for cell in cells]))
    return covered


AGGREGATES = "COUNT(*), SUM(hours), AVG(hours) FROM t WHERE age BETWEEN 10 AND 50"


def rehearsed(
    columns: dict[str, np.ndarray], runs: int, epsilon: str, domain: int = 64, method: str = "hio"
) -> tuple[Rehearsal, Any]:
    """The same respondents over and over, told apart by a public column `run`; and one table of the truth."""
    schema, n = Schema((Dimension("age", low=0, high=domain - 1),)), len(columns["age"])
    told = {name: np.tile(column, runs) for name, column in columns.items()} | {"run": np.repeat(np.arange(runs), n)}
    many, one = (rehearse(pa.table(table), schema, epsilon=epsilon, queries=[], method=method, fanout=4)
                 for table in (told, columns))  # fmt: skip
    return many, one.truth()


def test_intervals_cover_the_truth_in_a_few_runs():
    """90 to 99.5 % over 300 runs, which a true 95 % leaves with probability 2e-4 below, 1e-4 above; seeds are fixed."""
    shares = coverage("hio", n=2000, runs=300)
    assert np.all((shares >= 0.90) & (shares <= 0.995)), shares


@pytest.mark.slow
def test_averages_under_public_or_private_are_covered_however_skewed_the_measure():
    """At least 92 % of 250 runs; a true 95 % falls below with probability 1.4 % (seeds are fixed), and the 87 % that
    an interval by the plug-in variance alone has here would pass with 1 %."""
    rng = np.random.default_rng(3)
    age = np.minimum(rng.geometric(0.03, 3000) - 1, 63)
    hours = rng.lognormal(3.0, 1.0, 3000) * (1 + age / 64)
    rehearsal, table = rehearsed({"age": age, "hours": hours, "os": rng.choice(["a", "b", "c"], 3000)}, 250, "4")
    sql = "AVG(hours) FROM t WHERE os = 'a' OR age < 3"
    truth = table.query(f"SELECT {sql}").cells()[0].estimate
    cells = [cell for _, cell in rehearsal.collect(rng).query(f"SELECT run, {sql} GROUP BY run").rows]
    low, high, estimate, error = np.array([[c.low, c.high, c.estimate, c.standard_error] for c in cells]).T
    assert np.mean((low <= truth) & (truth <= high)) >= 0.92
    assert np.mean(np.abs(estimate - truth) <= 1.96 * error) < 0.92


def noisy_cells(function: str, x: np.ndarray, noise: float, runs: int, rng: np.random.Generator) -> list[AggregateCell]:
    """An aggregate of rows that are all inside, with normal terms of a known variance, over and over."""
    weights = weights_of(x, (None,), None, 1, len(x)).group(0)
    powers = np.stack([x**k for k in range(5)])
    z = 1 + noise * rng.standard_normal((len(x), runs))
    values, squares, variances = (powers @ z).T, (powers @ z**2).T, noise**2 * powers.sum(axis=1)
    return [
        cell_of(function, function, PowerSums(len(x), weights, 0.0, value, variances, square), level=0.95)
        for value, square in zip(values, squares, strict=True)
    ]


@pytest.mark.slow
def test_variances_are_unbiased_and_averages_covered_where_the_count_errs():
    """400 rows of noise 3: the count errs by 15 %.

    VAR is within 5 standard errors of the truth over 8,000 runs (false-alarm probability 6e-7); the plain S2/N - AVG^2,
    2.25 % less, is 9 of them away. Of Fieller's intervals of AVG 94 to 96 % hold (a true 95 % leaves with 4e-5).
    """
    rng = np.random.default_rng(4)
    x = rng.normal(2, 1, 400)
    estimates = np.array([cell.estimate for cell in noisy_cells("var_pop", x, 3.0, 8000, rng)])
    error = estimates.std() / np.sqrt(len(estimates))
    assert abs(estimates.mean() - x.var()) < 5 * error
    assert 0.0225 * x.var() > 9 * error
    covered = [c.low <= x.mean() <= c.high for c in noisy_cells("avg", x, 3.0, 8000, rng) if c.low is not None]
    assert 0.94 < np.mean(covered) < 0.96


def test_deviations_are_given_where_the_variance_is_clear_of_zero_and_then_near_the_truth():
    """Whether they are given hardly depends on noise, so that those which are given are not the ones it made large."""
    rng = np.random.default_rng(5)
    x = rng.normal(2, 1, 400)
    clear = noisy_cells("stddev_pop", x, 3.0, 400, rng)
    assert np.mean([cell.status == "estimate" for cell in clear]) > 0.95
    good = np.array([[cell.low, cell.estimate, cell.high] for cell in clear if cell.estimate is not None])
    assert good[:, 1].mean() == pytest.approx(x.std(), rel=0.03)
    assert np.mean((good[:, 0] <= x.std()) & (x.std() <= good[:, 2])) > 0.92
    lost = noisy_cells("stddev_pop", rng.lognormal(0, 1, 400), 3.0, 400, rng)
    assert {cell.status for cell in lost} == {"insufficient_data"}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hio", "hio_consistent", "mg", "wavelet"])
def test_intervals_cover_the_truth(method: str):
    """93.5 to 97.5 % of nominal 95 % intervals over 2000 runs, by both variances, on a skewed measure.

    The share of 2000 runs varies by 0.49 %; it leaves a band of 93.5 to 97.5 % around a true 95 % with probability
    1e-3 below and 1e-7 above: seeds are fixed.
    """
    shares = coverage(method, n=4000, runs=2000)
    assert np.all((shares > 0.935) & (shares < 0.975)), (method, shares)
