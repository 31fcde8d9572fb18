"""The minimum cohort counts rows by their weight: no measure singles a person's noisy report out of a large cell."""

from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tests.unit.sql.test_segments import Memory  # noqa: E402

from tacit.core.statistics.simulated import GeneratorCoins  # noqa: E402
from tacit.sql.design.levels import hio  # noqa: E402
from tacit.sql.engine.linked import collect_reports  # noqa: E402
from tacit.sql.engine.weights import Weights, weights_of  # noqa: E402
from tacit.sql.schema.schema import Dimension, Schema  # noqa: E402
from tacit.sql.segments import SegmentCache, SegmentedTable  # noqa: E402

N, LEAST = 3000, 100
SCHEMA = Schema((Dimension("age", low=0, high=26),))
COLUMNS = [("uid", "integer"), ("income", "number"), ("dept", "text"), ("rich", "integer"), ("same", "number")]


def make_table(pieces: int = 3) -> SegmentedTable:
    """3,000 people of whom number 1 is one, with incomes that are log-normal, and few rich ones."""
    rng = np.random.default_rng(8)
    design = hio(SCHEMA.shape(3), "2")
    values = rng.integers(0, 27, (N, 1))
    reports = collect_reports(design, values, GeneratorCoins(rng), rng)
    rows = pa.table({
        "uid": np.arange(N), "income": rng.lognormal(10, 1, N), "dept": rng.choice(["a", "b"], N).tolist(),
        "rich": (np.arange(N) < 30).astype(np.int64), "same": np.full(N, 0.1),
    })  # fmt: skip
    parts = np.array_split(rng.permutation(N), pieces)
    segments = [Memory(f"s{i}", rows.take(pa.array(at)), reports[at]) for i, at in enumerate(parts)]
    return SegmentedTable(SCHEMA, design, COLUMNS, segments, SegmentCache(), least=LEAST)


TABLE = make_table()
SPIKE = "1/((uid-1)*(uid-1)+1e-12)"
RAISED = "100 + 1/((uid-1)*(uid-1)+1e-9)"


def statuses(sql: str) -> list[str]:
    return [cell.status for cell in TABLE.query(sql).cells()]


@pytest.mark.parametrize("function", ["SUM", "AVG", "VAR_POP", "VARIANCE", "STDDEV", "STDDEV_POP"])
@pytest.mark.parametrize(
    "measure",
    [SPIKE, f"0 - {SPIKE}", RAISED, "rich", "rich * income", "(uid - 1) / (uid - 1) * rich / (uid + 1e-9)"],
)
def test_a_measure_that_few_rows_carry_is_refused(function: str, measure: str):
    """A single row, its mirror image, one on top of a constant, and the thirty rows that have any."""
    # Of the raised measure, groups without that row hold the constant alone.
    for rest in ("", " GROUP BY dept")[: 1 if measure == RAISED else 2]:
        found = statuses(f"SELECT {function}({measure}) FROM t WHERE age < 9{rest}")
        assert set(found) == {"below_minimum_cohort"}, (found, rest)
    cell = TABLE.query(f"SELECT {function}({measure}) FROM t WHERE age < 9").cells()[0]
    assert {cell.estimate, cell.low, cell.high, cell.standard_error, cell.per_user_standard_error} == {None}


@pytest.mark.parametrize(
    "condition", ["uid = 1", "uid < 50", "uid = 1 OR uid = 2", "NOT uid <> 1", "uid * uid = 1", "uid IN (1, 7)"]
)
def test_conditions_that_pick_few_rows_are_refused_wherever_they_stand(condition: str):
    sql = [
        f"SELECT COUNT(*) FROM t WHERE age < 9 AND ({condition})",
        f"SELECT COUNT(*) FILTER (WHERE {condition}) FROM t WHERE age < 9",
        f"SELECT SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM t WHERE age < 9",
        f"SELECT AVG(income) FILTER (WHERE age < 9 AND ({condition})) FROM t",
    ]
    assert [statuses(text) for text in sql] == [["below_minimum_cohort"]] * 4


def test_what_is_refused_says_nothing_by_its_place_in_the_order():
    """Cells that are not told come last, in the order of their groups, whichever way the answer is sorted."""
    for way in ("", "DESC"):
        rows = TABLE.query(f"SELECT dept, rich, SUM({SPIKE}) AS s FROM t WHERE age < 9 GROUP BY 1, 2 ORDER BY s {way}")
        assert [row[:2] for row in rows.rows] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
        assert {row[2].status for row in rows.rows} == {"below_minimum_cohort"}


def test_ordinary_measures_are_answered():
    """Log-normal incomes (sigma 1) of 3,000 rows have an effective number of about 0.37 of them."""
    asked = "COUNT(*), SUM(income), AVG(income), AVG(same), SUM(same), AVG(uid), VARIANCE(uid), STDDEV(uid), SUM(0*uid)"
    for rest in ("", " AND uid >= 500"):
        assert set(statuses(f"SELECT {asked} FROM t WHERE age < 20{rest}")) == {"estimate"}
    assert set(statuses("SELECT dept, SUM(income), AVG(income) FROM t WHERE age < 20 GROUP BY dept")) == {"estimate"}
    assert TABLE.query("SELECT AVG(same) FROM t WHERE age < 20").cells()[0].estimate == pytest.approx(0.1)
    # Public alone: exact, whatever its weights.
    assert statuses(f"SELECT SUM({SPIKE}), AVG(rich) FROM t") == ["exact", "exact"]


def test_the_effective_number_of_rows_is_kishs():
    x = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 10.0, 0.0])
    found = weights_of(x, (None,), None, 1, len(x)).group(0)
    assert found.effective("count") == 8
    assert found.effective("sum") == pytest.approx(14**2 / 104)
    off = np.abs(x - x.mean())
    assert found.effective("avg") == pytest.approx(min(14**2 / 104, off.sum() ** 2 / (off**2).sum()))
    spread = min(off.sum() ** 2 / (off**2).sum(), (off**2).sum() ** 2 / (off**4).sum())
    assert found.effective("var_pop") == pytest.approx(spread)
    ones = weights_of(np.full(50, 0.3), (None,), None, 1, 50).group(0)
    assert {ones.effective(name) for name in ("count", "avg", "var_pop")} == {50.0}
    assert ones.effective("sum") == pytest.approx(50)


def test_weights_add_up_over_pieces_as_over_all_rows():
    """Moments to rounding, far from zero too; absolute deviations are at most those of all rows, and not much less."""
    rng = np.random.default_rng(2)
    x, codes = 1e6 + rng.gamma(2, 1, 4000), rng.integers(0, 3, 4000)
    whole: Any = weights_of(x, (None,), codes, 4, 4000)
    parts = [weights_of(x[at], (None,), codes[at], 4, len(at)) for at in np.array_split(np.arange(4000), 7)]
    total: Weights = parts[0]
    for part in parts[1:]:
        total = total + part
    assert np.array_equal(total.n, whole.n) and total.n[3] == 0
    assert np.allclose(total.moments[:5], whole.moments[:5], rtol=1e-6)
    least, most = total.moments[6][:3], whole.moments[6][:3]
    assert np.all(least <= most * (1 + 1e-12)) and np.all(least > 0.97 * most)
    polynomial = np.array([0.5, -1.0, 2.0])
    w = np.polynomial.polynomial.polyval(x[codes == 1] - 999_990, polynomial)
    assert total.group(1).squares(polynomial, 999_990) == pytest.approx(w @ w, rel=1e-6)
