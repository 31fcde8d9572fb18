"""The eight questions of the library are the mechanisms, tallies and tasks underneath, bit for bit."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit.core.sets import Sets
from tacit.device.numbers.budget import Epsilon
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.itemsets.task import ITEMSETS
from tacit.tasks.marginals.solve import solve_marginals
from tacit.tasks.mean import MEAN
from tacit.tasks.plans import drive
from tacit.tasks.ranges.ranges import solve_ranges
from tacit.tasks.ranges.task import RANGES
from tacit.tasks.task import QuestionTally

RNG = np.random.default_rng(20)
DRINKS = RNG.choice(["tea", "milk", "juice"], 400, p=[0.6, 0.3, 0.1]).tolist()
AGES = RNG.binomial(99, 0.4, 400).tolist()
BASKETS = [["a", "b"], ["a"], [], ["b", "c"]] * 100
PEOPLE = {"smoker": (RNG.random(400) < 0.3).tolist(), "sport": RNG.choice(["never", "often"], 400).tolist()}
ROWS = {"age": AGES, "os": RNG.choice(["ios", "win"], 400).tolist()}
QUERY = "SELECT COUNT(*) FROM t WHERE age < 50"


def coins() -> tacit.ReplayCoins:
    return tacit.ReplayCoins(b"library")


def test_a_histogram_is_the_estimate_of_the_planned_mechanism():
    found = tacit.histogram(DRINKS, epsilon=1, domain=["tea", "milk", "juice"], coins=coins())
    domain = tacit.Categories("value", ("tea", "milk", "juice"))
    mechanism = HISTOGRAM.plan(domain, Epsilon("1"), len(DRINKS))
    tally = mechanism.tally(mechanism.privatize(domain.encode_many(DRINKS), coins()))
    answer = HISTOGRAM.answer(domain, QuestionTally(mechanism, tally, tally.n))
    assert found.mechanism == mechanism and np.array_equal(found.tally.cells, tally.cells)
    assert np.array_equal(found.value, answer.raw.value)
    assert np.array_equal(found.interval(0.9), answer.raw.interval(0.9))
    assert np.array_equal(found.consistent.value, answer.consistent.value)
    assert not found.is_simulation and found.n == 400 and len(found) == 3


def test_a_mean_is_that_of_the_task_in_the_units_of_the_values():
    values = [0.25, 1.75, 2.5, 0.0] * 50
    found = tacit.mean(values, epsilon=1, low=0, high=2.5, coins=coins())
    domain = found.inquiry.domain
    assert (domain.low, domain.high, found.inquiry.decimals) == (0, 25_000, 4)
    mechanism = MEAN.plan(domain, Epsilon("1"), len(values))
    tally = mechanism.tally(mechanism.privatize([round(value * 10_000) for value in values], coins()))
    raw = MEAN.answer(domain, QuestionTally(mechanism, tally, tally.n)).raw
    assert found.value == pytest.approx(raw.value[0] / 10_000, rel=1e-15)
    assert found.interval() == pytest.approx([end[0] / 10_000 for end in raw.interval()], rel=1e-15)
    assert found.inquiry.expected_error == pytest.approx(mechanism.standard_error(200) / 10_000)
    assert found.to_rows()[0]["standard_error"] == pytest.approx(raw.standard_error[0] / 10_000, rel=1e-12)
    assert found.estimate is not None and found.estimate.value[0] == pytest.approx(found.value, rel=1e-12)


def test_ranges_and_quantiles_are_those_of_the_solved_tally():
    found = tacit.ranges(AGES, epsilon=2, low=0, high=99, coins=coins())
    mechanism = RANGES.plan(tacit.Integers("value", 0, 99), Epsilon("2"), 400)
    tally = mechanism.tally(mechanism.privatize(AGES, coins()))
    solved = solve_ranges(mechanism, tally)
    assert np.array_equal(found.value, solved.histogram().value)
    part = found.range(30, 50)
    # As everywhere, ranges are answered monotone; the unbiased share is the estimate beside.
    assert part.value[0] == solved.shares([30], [50]).value[0]
    assert part.estimate.value[0] == solved.ranges([30], [50]).value[0]
    assert np.array_equal(part.interval(), solved.shares([30], [50]).interval())
    assert found.range().value[0] == 1.0
    asked = tacit.quantiles(AGES, epsilon=2, shares=[0.5, 0.9], low=0, high=99, coins=coins())
    rows = [solved.quantile(share) for share in (0.5, 0.9)]
    assert asked.value.tolist() == [row["index"] for row in rows] == found.quantiles([0.5, 0.9]).value.tolist()
    assert asked.interval()[0].tolist() == [row["low"] for row in rows]


def test_quantiles_of_buckets_are_numbers_within_their_intervals():
    found = tacit.quantiles([0.1, 0.4, 0.45, 0.9] * 200, epsilon=4, shares=0.5, low=0, high=1, bins=10)
    low, high = found.interval()
    assert low[0] <= found.value[0] <= high[0] and found.inquiry.domain.edges[:2] == ("0", "0.1")


def test_the_upper_end_of_a_range_of_buckets_does_not_add_the_bucket_that_begins_there():
    found = tacit.ranges([0.5, 1.5, 2.5] * 50, epsilon=8, low=0, high=4, bins=4)
    last = {high: found.range(0, high).labels for high in (1, 2.0, 2.5, "3", 4)}
    assert last == {
        1: ["[0, 1) … [0, 1)"], 2.0: ["[0, 1) … [1, 2)"], 2.5: ["[0, 1) … [2, 3)"], "3": ["[0, 1) … [2, 3)"],
        4: ["[0, 1) … >= 4"],
    }  # fmt: skip
    # A range of one point is the bucket it lies in.
    assert found.range(2, 2).labels == ["[2, 3) … [2, 3)"]


def test_quantiles_have_no_columns_of_the_shares_they_were_read_from():
    found = tacit.quantiles(list("abcde") * 40, epsilon=2, domain=list("abcde"))
    assert list(found.to_pandas().columns) == ["share", "value", "low", "high"]


def test_days_may_be_written_out():
    days = pd.Series(pd.date_range("2024-01-01", periods=31).tolist() * 20)
    found = tacit.ranges(days, epsilon=2, low="2024-01-01", high="2024-01-31")
    assert not found.is_simulation and found.labels[30] == date(2024, 1, 31)
    assert found.range("2024-01-02", date(2024, 1, 3)).labels == ["2024-01-02 … 2024-01-03"]


def test_days_and_moments_of_one_column_are_labels_in_order():
    moments = pd.Series(pd.date_range("2024-01-01", periods=3, freq="h").tolist() * 20)
    labels = tacit.histogram(moments, epsilon=2).to_pandas()["value"]
    assert [str(label) for label in labels] == ["2024-01-01", "2024-01-01 01:00:00", "2024-01-01 02:00:00"]


def test_zeros_and_ones_are_shown_as_numbers():
    found = tacit.histogram([0, 1] * 20, epsilon=2)
    assert found.labels == [0, 1] and not any(isinstance(label, bool) for label in found.labels)


def test_scalars_of_arrays_are_values_like_others():
    found = tacit.itemsets([list(np.array([1, 2])), [np.int64(3)]] * 50, epsilon=4, domain=[1, 2, 3])
    assert found.n == 100
    asked = tacit.ask("histogram", epsilon=1, domain=[1, 2])
    assert asked.collect([asked.device(np.int64(2))]).n == 1


def test_a_row_of_a_frame_is_an_answer_to_all_questions():
    frame = pd.DataFrame(PEOPLE)
    asked = tacit.ask("marginals", epsilon=2, domain={"smoker": bool, "sport": ["never", "often"]})
    reports = [asked.device(frame.iloc[i]) for i in range(3)]
    assert asked.collect(reports).table(["smoker", "sport"]).n == 3


def test_an_alphabet_may_be_listed_in_any_order():
    found = tacit.heavy_hitters(["b1", "a2"] * 200, epsilon=6, k=2, alphabet="ab12", length=2)
    assert sorted(found.labels) == ["a2", "b1"]


def test_heavy_hitters_are_those_that_stand_out_in_the_walk():
    words = ["abba", "baab", "aa"] * 200 + ["abba"] * 400
    found = tacit.heavy_hitters(words, epsilon=6, k=3, alphabet="ab", length=4, coins=coins())
    assert found.labels[0] == "abba" and not found.is_simulation
    sure = found.answers.sure(0.05)
    assert np.array_equal(found.value, sure.estimate.value)
    nothing = tacit.heavy_hitters(words[:20], epsilon=0.1, k=3, coins=coins())
    assert len(nothing) == 0 and "nothing stands out" in repr(nothing) and len(nothing.to_pandas()) == 0
    assert nothing.inquiry.domain == tacit.Text("value", "lower", 4)


def test_itemsets_are_those_of_the_plan_driven_by_the_same_coins():
    found = tacit.itemsets(BASKETS, epsilon=4, k=3, domain=["a", "b", "c", "d"], coins=coins())
    domain, source = tacit.Items("items", ("a", "b", "c", "d")), coins()
    sets = Sets.of([domain.encode(basket) for basket in BASKETS])
    order = np.argsort(np.frombuffer(source.words(len(sets)), "<u8"), kind="stable")
    taken = [0.0]

    def put(question: Any) -> Any:
        start, stop = round(taken[0] * 400), round((taken[0] + question.share) * 400)
        taken[0] += question.share
        return question.mechanism.tally(question.mechanism.privatize(sets.take(order[start:stop]), source))

    result = drive(ITEMSETS.steps(domain, Epsilon("4"), 3, 400), put)
    assert found.value.tolist() == [row.frequency for row in result.rows]
    assert np.array_equal(found.interval(0.8), result.intervals(0.8))
    assert found.labels[0] in {("a",), ("b",)} and found.n == 400


def test_marginals_are_the_tables_of_the_solved_tally():
    domain = {"smoker": bool, "sport": ["never", "often"]}
    found = tacit.marginals(PEOPLE, epsilon=2, domain=domain, coins=coins())
    rows = np.stack([np.array(PEOPLE["smoker"], int), np.array([s == "often" for s in PEOPLE["sport"]], int)], axis=1)
    tally = found.mechanism.tally(found.mechanism.privatize(rows, coins()))
    table = solve_marginals(found.mechanism, tally).table([0, 1])
    assert np.array_equal(found.value, table.raw.value)
    assert np.array_equal(found.interval(), table.raw.interval())
    assert np.array_equal(found.table("sport", "smoker").value, table.raw.value)
    assert found.labels[1] == (False, "often")
    single = found.table("smoker")
    assert single.labels == [False, True] and single.names == ("smoker",)


def test_all_tables_of_three_columns_stand_one_below_the_other():
    frame = pd.DataFrame(PEOPLE | {"pet": ["cat", "none"] * 200})
    found = tacit.marginals(frame, epsilon=2)
    assert found.names == ("smoker", "sport", "pet") and len(found) == 12 and found.is_simulation
    assert found.labels[0] == (False, "never", None)
    assert list(found.to_pandas().columns[:4]) == ["smoker", "sport", "pet", "share"]


def test_sql_is_answered_as_by_a_connection_over_the_same_reports():
    found = tacit.table(ROWS, epsilon=2, private={"age": (0, 99)}, sql=QUERY, coins=coins())
    cell = found.answers.query(QUERY).cells()[0]
    # Sums are centred anew by every query, which moves the last bits.
    assert [found.value[0], found.interval()[0][0]] == pytest.approx([cell.estimate, cell.low], rel=1e-12)
    assert found.labels == ["COUNT(*)"]
    assert ".query(" in repr(tacit.table(ROWS, epsilon=2, private={"age": (0, 99)})) and ".query(" not in repr(found)
    wider = found.interval(0.99)
    assert wider[0][0] < cell.low
    grouped = found.query("SELECT os, COUNT(*) FROM t WHERE age < 50 GROUP BY os")
    assert grouped.names == ("os", "aggregate") and grouped.labels[0] == ("ios", "COUNT(*)")
    with pytest.raises(InvalidSpec, match="collect"):
        found.inquiry.answer(None)


DECLARED: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("histogram", {"domain": ["tea", "milk", "juice"]}, DRINKS),
    ("histogram", {"domain": [date(2026, 1, 1), date(2026, 1, 2)]}, [date(2026, 1, 1), date(2026, 1, 2)] * 3),
    ("histogram", {"domain": bool, "missing": "no answer"}, [True, None, False, True]),
    ("mean", {"low": 0, "high": 2.5}, [0.125, 2.5, 1.00005]),
    ("ranges", {"low": 0, "high": 99}, AGES),
    ("ranges", {"low": date(2026, 1, 1), "high": date(2026, 3, 1)}, [date(2026, 1, 9), date(2026, 3, 1)] * 3),
    ("quantiles", {"low": 0, "high": 100, "bins": 20}, [0.5, 99.5, 100] * 3),
    ("heavy_hitters", {"alphabet": "ab", "length": 4, "k": 2}, ["ab", "abba", "b", ""] * 10),
    ("itemsets", {"domain": ["a", "b", "c", "d"]}, BASKETS[:40]),
    ("marginals", {"domain": {"smoker": bool, "sport": ["never", "often"]}},
     [dict(zip(PEOPLE, row, strict=True)) for row in zip(*PEOPLE.values(), strict=True)][:60]),
    ("table", {"private": {"age": (0, 99), "state": ["CA", "NY"]}, "sql": QUERY},
     [{"age": age, "state": "CA"} for age in AGES[:60]]),
    ("table", {"private": {"age": (0, 99)}}, AGES[:60]),
]  # fmt: skip
"""A question as it is asked of people, with values of some of them."""


@pytest.mark.slow_cases("ranges1", "ranges0")
@pytest.mark.parametrize(("task", "declared", "values"), DECLARED, ids=[row[0] for row in DECLARED])
def test_what_devices_report_is_what_the_batch_reports(task: str, declared: dict[str, Any], values: list[Any]):
    """The device handed out as JSON, value by value, and the batch of all values draw the same bytes."""
    asked = tacit.ask(task, epsilon=1, n=200, **declared)
    device = tacit.LocalDevice.from_spec(json.loads(json.dumps(asked.device.spec())))
    source = coins()
    reports = [device(value, coins=source) for value in values]
    names = [scope.domain.name for scope in asked.scopes]
    listed = [values] if len(names) == 1 else [[value[name] for value in values] for name in names]
    columns = tuple(_column(task, items) for items in listed)
    encoded = asked.encode(columns) if task != "table" else _sql_values(asked, columns)
    batch = asked.mechanism.privatize(encoded, coins())
    assert b"".join(reports) == batch.tobytes()
    found = asked.collect(reports)
    assert found.n == len(values) == asked.collect(b"".join(reports)).n == asked.collect(batch).n
    assert repr(found) and not found.is_simulation


def _column(task: str, items: list[Any]) -> Any:
    from tacit.library.columns import column_of

    return column_of(task, items)


def _sql_values(asked: Any, columns: Any) -> Any:
    from tacit.sql.design.levels import answers_of

    pairs = zip(asked.scopes, columns, strict=True)
    return answers_of(asked._design(), np.stack([asked._indices(*pair) for pair in pairs], axis=1).astype(np.int64))


def test_rounds_are_asked_one_after_the_other():
    asked = tacit.ask("itemsets", epsilon=4, n=400, k=2, domain=["a", "b", "c", "d"])
    found = asked.collect([asked.device(["a"]) for _ in range(40)])
    rounds = 1
    while found.next is not None:
        assert len(found) == 0 and "round" in repr(found)
        now = found.next
        assert 0 < now.share < 1
        found, rounds = now.collect([now.device(["a"]) for _ in range(40)]), rounds + 1
    assert rounds >= 2 and found.labels[0] == ("a",) and found.n == 40 * rounds


def test_sql_rows_come_with_their_reports():
    asked = tacit.ask("table", epsilon=2, n=60, private={"age": (0, 99)}, public={"os": "text"}, sql=QUERY)
    reports = [asked.device(20) for _ in range(60)]
    public = {"os": ["ios"] * 60}
    for rows in (public, pd.DataFrame(public), pl.DataFrame(public), pa.table(public), [{"os": "ios"}] * 60):
        found = asked.collect(reports, rows)
        assert found.query("SELECT os, COUNT(*) FROM t WHERE age < 50 GROUP BY os").labels == [("ios", "COUNT(*)")]
    assert found.collect(reports, public).value[0] == pytest.approx(found.value[0], rel=1e-12)


def test_a_device_needs_no_numpy():
    asked = tacit.ask("histogram", epsilon=1, domain=["yes", "no"])
    code = (
        "import json, sys, tacit; device = tacit.LocalDevice.from_spec(json.loads(sys.stdin.read()));"
        "assert len(device('yes')) == 1; print('numpy' in sys.modules)"
    )
    spec = json.dumps(asked.device.spec())
    done = subprocess.run([sys.executable, "-c", code], input=spec, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


SAME: list[Callable[[list[Any]], Any]] = [
    list, tuple, np.array, lambda x: np.array(x, object), pd.Series, lambda x: pd.Series(x, dtype="category"),
    pl.Series, lambda x: pl.Series(x).cast(pl.Categorical), pa.array,
    lambda x: pa.chunked_array([x]), lambda x: iter(x),
]  # fmt: skip


@pytest.mark.parametrize("kind", SAME)
def test_every_kind_of_column_gives_the_same_finding(kind: Callable[[list[Any]], Any]):
    plain = tacit.histogram(DRINKS, epsilon=1, coins=coins())
    found = tacit.histogram(kind(DRINKS), epsilon=1, coins=coins())
    assert found.labels == plain.labels == ["juice", "milk", "tea"]
    assert np.array_equal(found.value, plain.value)


LABELS: list[tuple[Any, list[Any]]] = [
    ([3, 1, 2, 1], [1, 2, 3]),
    (np.array([3, 1, 2], np.uint8), [1, 2, 3]),
    (pd.Series([1.0, 2.0, 10.0]), [1, 2, 10]),  # Whole numbers as floats, as pandas makes them.
    ([True, True, False], [False, True]),
    ([True, True], [False, True]),
    (np.array(["2026-01-02", "2026-01-01"], "datetime64[ns]"), [date(2026, 1, 1), date(2026, 1, 2)]),
    (pd.to_datetime(pd.Series(["2026-01-02", "2026-01-01"])), [date(2026, 1, 1), date(2026, 1, 2)]),
    (pl.Series([date(2026, 1, 2), date(2026, 1, 1)]), [date(2026, 1, 1), date(2026, 1, 2)]),
    (pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["c", "b", "a"])), ["c", "b", "a"]),
    (pl.Series(["b", "a"], dtype=pl.Enum(["c", "b", "a"])), ["c", "b", "a"]),
    (pd.cut(pd.Series([5, 15, 25]), [0, 10, 20, 30]), ["(0, 10]", "(10, 20]", "(20, 30]"]),
    (pd.Series(pd.period_range("2026-01", periods=2, freq="M")), ["2026-01", "2026-02"]),
]


@pytest.mark.parametrize(("values", "labels"), LABELS, ids=str)
def test_labels_are_read_off_in_their_own_type_and_order(values: Any, labels: list[Any]):
    found = tacit.histogram(values, epsilon=1)
    assert found.labels == labels and [type(label) for label in found.labels] == [type(label) for label in labels]
    assert found.is_simulation and "simulation" in repr(found)


MISSING = [
    ["a", None, "b"], [1, None, 2], [True, None], np.array([1.0, np.nan]), pd.Series(["a", None]),
    pd.Series([1, None], dtype="Int64"), pd.to_datetime(pd.Series(["2026-01-01", None])), pl.Series(["a", None]),
    pd.Series(["a", None, "b"], dtype="category"), np.array(["2026-01-01", "NaT"], "datetime64[D]"),
]  # fmt: skip


def test_intervals_of_numbers_are_labels_in_order_and_can_be_declared():
    ages: Any = pd.cut(pd.Series(AGES), [-1, 30, 40, 99])
    found = tacit.ranges(ages, epsilon=1, domain=ages.cat.categories)
    assert not found.is_simulation and found.labels == ["(-1, 30]", "(30, 40]", "(40, 99]"]
    assert tacit.ranges(ages, epsilon=1).labels == found.labels


@pytest.mark.parametrize("values", MISSING, ids=str)
def test_missing_values_are_refused_by_name_or_have_an_answer(values: Any):
    with pytest.raises(InvalidValue, match=r"1 of \d values are missing.*missing='no answer'"):
        tacit.histogram(values, epsilon=1)
    found = tacit.histogram(values, epsilon=1, missing="no answer")
    assert found.labels[-1] == "no answer" and found.n == len(values)


def test_without_a_domain_nobody_can_be_asked():
    found = tacit.histogram(DRINKS, epsilon=1)
    for use in (lambda: found.device, lambda: found.collect(b"")):
        with pytest.raises(InvalidSpec, match="read off the values"):
            use()
    for task in ("histogram", "mean", "ranges", "quantiles", "heavy_hitters", "itemsets", "marginals", "table"):
        with pytest.raises(InvalidSpec, match=r"declare|private is missing"):
            tacit.ask(task, epsilon=1)


@pytest.mark.slow
def test_half_declared_ends_are_a_simulation():
    assert tacit.mean([1, 2, 3] * 9, epsilon=1, low=0).is_simulation
    assert tacit.ranges([1.5, 2.5, 3.5] * 9, epsilon=1).is_simulation
    assert tacit.marginals(PEOPLE, epsilon=1, domain={"smoker": bool}).is_simulation


def test_reports_that_are_none_are_refused():
    asked = tacit.ask("histogram", epsilon=1, domain=list("abc"))
    for reports in (["yes"], 7, [b"\xff"], [1, 2]):
        with pytest.raises(ReportRejected):
            asked.collect(reports)
    assert np.isinf(asked.collect([]).estimate.variance).all()


def test_epsilon_of_every_kind_of_number_makes_the_same_spec():
    wanted = tacit.GRR(size=4, epsilon="1").digest
    for epsilon in (1, 1.0, np.float64(1.0), np.float32(1), np.int64(1), "1.0", Epsilon("1")):
        asked = tacit.ask("histogram", epsilon=epsilon, domain=list("abcd"))
        assert tacit.GRR(4, epsilon).digest == asked.mechanism.digest == wanted
    assert tacit.GRR(4, np.float32(0.1)).spec()["epsilon"] == "0.1" == tacit.GRR(4, 0.1).spec()["epsilon"]
    with pytest.raises(InvalidSpec, match="canonical"):
        tacit.parse({"kind": "grr", "size": 4, "epsilon": 1.0})
