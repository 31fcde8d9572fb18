"""Tables of collection documents: private columns by their domains, planned mechanisms, and designs read back."""

import json
from itertools import product
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("sqlglot")

from tacit.catalog import parse  # noqa: E402
from tacit.core.compose import OneOf  # noqa: E402
from tacit.core.statistics.simulated import GeneratorCoins  # noqa: E402
from tacit.device.domains.domain import Bits, Booleans, Categories, Domain, Ordered  # noqa: E402
from tacit.device.domains.reals import Buckets, Integers  # noqa: E402
from tacit.device.families.levels import Tree  # noqa: E402
from tacit.device.families.views import Views  # noqa: E402
from tacit.errors import InvalidQuery, InvalidSpec  # noqa: E402
from tacit.numeric.mean import OneBit  # noqa: E402
from tacit.oracles.grr import GRR  # noqa: E402
from tacit.oracles.local_hash import OLH  # noqa: E402
from tacit.post.grids.shape import GridShape  # noqa: E402
from tacit.sql.design.levels import answers_of, hi, hio, mg, sco  # noqa: E402
from tacit.sql.documents import (  # noqa: E402
    DOCUMENTED,
    best_reading,
    default_workload,
    design_of,
    plan_option,
    plan_table,
    table_schema,
)
from tacit.sql.engine.linked import collect_reports, link  # noqa: E402
from tacit.sql.engine.source import ValueSource  # noqa: E402
from tacit.sql.engine.terms import expected_variance, region_terms  # noqa: E402
from tacit.sql.open import open_table  # noqa: E402
from tacit.sql.schema.regions import corners  # noqa: E402
from tacit.sql.schema.schema import Schema  # noqa: E402
from tacit.wire.document import Collection, Question  # noqa: E402
from tacit.wire.rows import PublicColumn, Rows  # noqa: E402

AGE = Integers("age", 0, 99)
WEIGHT = Integers("weight", 40, 120, 5)
STATE = Categories("state", ("CA", "NY", "WA"), other="elsewhere")
MOOD = Ordered("mood", ("bad", "fair", "good", "great"))
INCOME = Buckets("income", ("0", "999.5", "5000"), open_above=True)
SMOKER = Booleans("smoker")
COLUMNS = [("x", "number"), ("os", "text"), ("day", "date"), ("flag", "boolean"), ("visits", "integer")]


def schema_of(*domains: Domain) -> Schema:
    return table_schema([domain.spec()["name"] for domain in domains], domains, "t")


def collection_of(schema: Schema, domains: tuple[Any, ...], policy: str, mechanism: Any) -> Collection:
    questions = tuple(Question(d.name, {"en": d.name}, d, "analytics") for d in domains)
    rows = Rows("t", tuple(PublicColumn(name, kind) for name, kind in COLUMNS))
    return Collection({"en": "T"}, {"en": "About"}, questions, policy, mechanism, rows=rows)


METHODS = ["auto", *DOCUMENTED]
QUICK = product([(AGE,), (SMOKER,), (INCOME, STATE)], METHODS)
THREE, FOUR = (WEIGHT, MOOD, SMOKER), (WEIGHT, MOOD, INCOME, SMOKER)
LONG = [(THREE, method) for method in METHODS if method != "auto"] + [(FOUR, method) for method in METHODS]


@pytest.mark.parametrize(
    ("domains", "method"),
    [*QUICK, (THREE, "auto"), *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG)],
)
@pytest.mark.slow_cases("domains32-auto", "domains48-auto")
def test_planned_mechanisms_go_into_documents_and_come_back(domains: tuple[Any, ...], method: str):
    schema = schema_of(*domains)
    try:
        policy, mechanism = plan_table(schema, COLUMNS, "2", 10_000, method=method)
    except InvalidSpec as error:
        assert len(domains) == 1 and method.startswith(("sco", "mg2", "hiocap", "quadtree", "wavelet2")), error
        return
    assert policy == ("single" if len(domains) == 1 else "all_of" if method == "sco" else policy)
    document = json.loads(json.dumps(collection_of(schema, domains, policy, mechanism).to_json()))
    collection = Collection.from_json(document)
    answers = {d.name: d.decode(0) if not isinstance(d, Buckets) else "1" for d in domains}
    report = collection.mechanism.privatize_one(collection.encode(answers), GeneratorCoins(np.random.default_rng(1)))
    read = parse(document["mechanism"])
    design = design_of(read, schema)
    assert link(design, read.decode(report * 3)).n == 3
    assert design.shape.sizes == schema.sizes


def test_a_device_and_a_row_answer_a_query():
    """Reports of devices, from answers to questions, are read as the values that they had."""
    domains = (AGE, STATE)
    schema = schema_of(*domains)
    policy, mechanism = plan_table(schema, COLUMNS, "8", 300, ["SELECT SUM(x) FROM t WHERE age < 30 AND state = 'CA'"])
    collection = collection_of(schema, domains, policy, mechanism)
    rng, coins = np.random.default_rng(5), GeneratorCoins(np.random.default_rng(6))
    drawn = zip(rng.integers(0, 60, 300), rng.choice(["CA", "Utah"], 300), strict=True)
    people = [{"age": int(a), "state": str(s)} for a, s in drawn]
    reports = mechanism.decode(b"".join(mechanism.privatize_one(collection.encode(p), coins) for p in people))
    rows = pa.table({"x": rng.gamma(2, 3, 300), "os": ["win"] * 300})
    table = open_table(schema, rows, design_of(mechanism, schema), reports)
    cell = table.query("SELECT COUNT(*) FROM t WHERE age < 30 AND state = 'elsewhere'").cells()[0]
    truth = sum(p["age"] < 30 and p["state"] == "Utah" for p in people)
    assert abs(cell.estimate - truth) < 6 * cell.standard_error  # 2e-9 by chance.


TREE = Tree(size=4, fanout=2, heights=(1, 0), mechanisms=(GRR(size=2, epsilon="2"), GRR(size=4, epsilon="2")))
PLAIN = [(GRR(size=4, epsilon="2"), "mg"), (OLH(size=4, epsilon="2"), "mg"), (OneOf(family=TREE), "hio")]


@pytest.mark.parametrize(("mechanism", "method"), PLAIN)
def test_single_questions_may_be_asked_plainly_or_by_a_tree(mechanism: Any, method: str):
    design = design_of(mechanism, schema_of(MOOD))
    assert design.method.removesuffix("_consistent") == method
    values = np.random.default_rng(1).integers(0, 4, (4000, 1))
    reports = mechanism.privatize(values[:, 0], GeneratorCoins(np.random.default_rng(2)))
    region = corners((4,), [(1, 2)])
    terms = region_terms(link(design, reports), region)
    spread = np.sqrt(max(terms.variance.sum(), 1.0))
    assert abs(terms.inside.sum() - region.holds(values).sum()) < 6 * spread


def test_views_of_marginals_are_read_as_flat_trees():
    """A collection of two-way marginals answers the same SQL."""
    family = Views(sizes=(4, 2), views=((0,), (0, 1)), mechanisms=(GRR(size=4, epsilon="4"), GRR(size=8, epsilon="4")))
    mechanism = OneOf(family=family)
    design = design_of(mechanism, schema_of(MOOD, SMOKER))
    assert set(design.places) == {(0, 1), (0, 0)}
    values = np.random.default_rng(1).integers(0, [4, 2], (3000, 2))
    reports = mechanism.privatize(values, GeneratorCoins(np.random.default_rng(2)))
    for region in (corners((4, 2), [(1, 2), (1, 1)]), corners((4, 2), [(0, 2), (0, 1)])):
        terms = region_terms(link(design, reports), region)
        spread = np.sqrt(terms.variance.sum())
        assert abs(terms.inside.sum() - region.holds(values).sum()) < 6 * spread


def test_mechanisms_that_do_not_fit_are_refused():
    with pytest.raises(InvalidSpec, match=r"columns of \[5\] values, the private columns have \[4\]"):
        design_of(GRR(size=5, epsilon="1"), schema_of(MOOD))
    with pytest.raises(InvalidSpec, match="must be one_of, grr or olh"):
        design_of(OneBit(epsilon="1", top=3), schema_of(MOOD))
    everything = hi(GridShape((4, 2), (2, 2)), "1").mechanism
    with pytest.raises(InvalidSpec):
        design_of(everything, schema_of(MOOD, SMOKER))
    with pytest.raises(InvalidSpec, match="SQL is answered over integers, categories"):
        schema_of(Bits("flags", 4))
    with pytest.raises(InvalidSpec, match="one value"):
        schema_of(AGE, Categories("planet", ("earth",)))
    with pytest.raises(InvalidSpec, match="must be one of auto, hio"):
        plan_table(schema_of(AGE, MOOD), COLUMNS, "1", 10, method="hi")
    with pytest.raises(InvalidSpec, match="must be one of integer, number"):
        plan_table(schema_of(AGE, MOOD), [("x", "money")], "1", 10)


def test_the_plan_follows_the_queries():
    schema = schema_of(AGE, MOOD)
    point = plan_option(schema, COLUMNS, "2", 10_000, ["SELECT COUNT(*) FROM t WHERE age = 3 AND mood = 'bad'"])
    assert point.design.method in ("mg", "hio_weighted", "hiocap2_weighted")
    wide = plan_option(schema, COLUMNS, "2", 10_000, ["SELECT SUM(x) FROM t WHERE age < 70 AND day > '2026-01-01'"])
    assert wide.variance < point.variance * 5 and wide.design.method != "mg"
    for wrong in ("SELECT SUM(x) FROM t WHERE agee < 70", "SELECT SUM(os) FROM t WHERE day > 'soon'"):
        with pytest.raises(InvalidQuery):
            plan_option(schema, COLUMNS, "2", 10_000, [wrong])


@pytest.mark.slow
def test_more_columns_than_a_grid_takes_are_asked_one_by_one():
    many = schema_of(*(Integers(f"d{i}", 0, 9) for i in range(9)))
    policy, mechanism = plan_table(many, COLUMNS, "8", 10_000)
    assert policy == "all_of" and design_of(mechanism, many).product
    eight = schema_of(*(Integers(f"d{i}", 0, 31) for i in range(8)))
    assert plan_table(eight, COLUMNS, "2", 10_000, method="hiocap2")[0] == "joint"


def test_the_reading_is_that_of_least_variance():
    schema = schema_of(Integers("age", 0, 63), SMOKER)
    workload = default_workload(schema)
    for fanout in (2, 4):
        plain = hio(schema.shape(fanout), "1")
        best = best_reading(plain, workload)
        assert best.method == "hio_consistent" and best.mechanism is plain.mechanism
        gain = [np.mean([expected_variance(d, region) for region in workload]) for d in (best, plain)]
        assert gain[0] < gain[1]
    two = schema_of(Integers("a", 0, 1023), Integers("b", 0, 1023))
    large, binary = hio(two.shape(4), "1"), hio(two.shape(2), "1")
    assert best_reading(large, default_workload(two)) is large
    assert best_reading(binary, default_workload(two)).method == "hio_haar"
    for lone in (mg(schema.shape(4), "1"), sco(schema.shape(4), "1")):
        assert best_reading(lone, workload) is lone


PEOPLE = {
    "weight": [40, 60, 65, 120], "state": ["CA", "NY", "Utah", "WA"], "mood": ["bad", "great", "good", "fair"],
    "income": [0, 999.5, 12, 1e6], "smoker": [True, False, True, True],
}  # fmt: skip
SCHEMA = schema_of(WEIGHT, STATE, MOOD, INCOME, SMOKER)


@pytest.fixture(scope="module")
def truth() -> Any:
    rows = pa.table({
        "x": [1.0, 2.0, 4.0, 8.0], "os": ["a", None, "b", "a"], "flag": [True, None, False, True],
        "day": pa.array([20454, 20455, None, 20457], pa.date32()),
    })  # fmt: skip
    values, design, rng = SCHEMA.indices(PEOPLE), sco(SCHEMA.shape(4), "8"), np.random.default_rng(2)
    reports = collect_reports(design, values, GeneratorCoins(rng), rng)
    return open_table(SCHEMA, rows, design, reports).with_source(ValueSource(values))


@pytest.mark.parametrize(
    ("condition", "total"),
    [
        ("weight < 61", 3),  # A constant between two steps.
        ("weight BETWEEN 41 AND 65", 6),
        ("weight = 65 OR weight <> 40 AND weight >= 120", 12),
        ("state = 'elsewhere'", 4),
        ("state IN ('CA', 'NY') OR state <> 'CA' AND state <> 'NY' AND state <> 'WA'", 7),
        ("mood > 'fair'", 6),
        ("mood BETWEEN 'fair' AND 'good'", 12),
        ("mood <> 'bad' AND NOT mood >= 'great'", 12),
        ("income < 999.5", 5),
        ("income >= 5000", 8),
        ("income >= 0 AND income < 5000", 7),
        ("income < 0", 0),
        ("income >= -3", 15),
        ("income = '[0, 999.5)' OR income IN ('>= 5000')", 13),
        ("smoker", 13),
        ("NOT smoker", 2),
        ("smoker = FALSE", 2),
        ("smoker <> 'true'", 2),
        ("smoker IS TRUE AND flag IS TRUE", 9),
        ("flag IS NOT TRUE", 6),
        ("NOT (flag IS FALSE)", 11),
        ("day >= '2026-01-02' AND smoker", 8),
        ("day IS NULL AND mood = 'good'", 4),
    ],
)
def test_private_columns_of_every_domain(truth: Any, condition: str, total: float):
    assert truth.query(f"SELECT SUM(x) FROM t WHERE {condition}").cells()[0].estimate == total


TRUE_WORDS = ("t", "TR", "tRue", "y", "ye", "YES", "on", "1", " \t\nOn ")
FALSE_WORDS = ("f", "fals", "False", "n", "no", "of", "OFF", "0", " 0 ")
NO_TRUTHS = ("", " ", "o", "tt", "truth", "10", "01", "maybe", "NULL", "\u00a0t")
CASTS = ("'{}'::bool", "('{}'::boolean)", "('{}')::boolean", "CAST('{}' AS BOOLEAN)", "boolean '{}'")


@pytest.mark.parametrize(("column", "totals"), [("smoker", (2, 13)), ("flag", (4, 9))], ids=["private", "public"])
def test_truth_values_are_read_as_postgresql_reads_them(truth: Any, column: str, totals: tuple[int, int]):
    def total(condition: str) -> float:
        return truth.query(f"SELECT SUM(x) FROM t WHERE {condition}").cells()[0].estimate

    for words, meant in ((TRUE_WORDS, True), (FALSE_WORDS, False)):
        for word in words:
            for constant in ("('{}')", *CASTS):
                assert total(f"{column} = {constant.format(word)}") == totals[meant], (constant, word)
            assert total(f"{column} <> '{word}'") == total(f"'{word}'::bool <> {column}") == totals[not meant]
        assert total(f"{column} IN ('{words[0]}', '{words[1]}', '{words[2]}'::boolean)") == totals[meant]
    assert total(f"{column} = 1{'0' * 5000}::bool") == total(f"{column} = CAST(TRUE AS boolean)") == totals[True]
    assert total(f"{column}::bool") == totals[True]
    assert total(f"{column} = 0::bool AND 't'::bool AND NOT ('off'::boolean)") == totals[False]


@pytest.mark.parametrize("column", ["smoker", "flag"])
def test_words_that_postgresql_does_not_read_as_truth_values_are_refused(truth: Any, column: str):
    for word in NO_TRUTHS:
        for constant in ("'{}'", *CASTS):
            with pytest.raises(InvalidQuery):
                truth.query(f"SELECT SUM(x) FROM t WHERE {column} = {constant.format(word)}")
    for wrong in (f"{column} = 1", f"{column} = 1.5::bool", f"{column} = os::bool"):
        with pytest.raises(InvalidQuery):
            truth.query(f"SELECT SUM(x) FROM t WHERE {wrong}")
    with pytest.raises(InvalidQuery, match="'maybe' is not a truth value; write TRUE or FALSE"):
        truth.query(f"SELECT SUM(x) FROM t WHERE {column} = 'maybe'::boolean")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("weight = 61", "from 40 to 120 in steps of 5, it is never 61"),
        ("state = 'Utah'", "What is not listed is counted as 'elsewhere'"),
        ("state < 'NY'", "labels without an order"),
        ("mood > 'goood'", "did you mean 'good'"),
        ("mood > 3", "not one of its labels"),
        ("income < 10", "10 lies inside a bucket of income; write 0 or 999.5"),
        ("income >= 6000", "lies inside a bucket of income; write 5000"),
        ("income <= 999.5", "write income < 999.5 or income >= 999.5, not <="),
        ("income BETWEEN 0 AND 999.5", "or BETWEEN"),
        ("income = 3", "known in buckets such as '[0, 999.5)'"),
        ("income < 'much'", "known in buckets"),
        ("smoker = 3", "true or false; write smoker, NOT smoker"),
        ("smoker < TRUE", "true or false"),
        ("smoker = 'maybe'", "true or false"),
        ("weight", "compare it with a number"),
    ],
)
def test_constants_that_do_not_fit_a_domain_are_refused(truth: Any, condition: str, said: str):
    with pytest.raises(InvalidQuery) as caught:
        truth.query(f"SELECT SUM(x) FROM t WHERE {condition}")
    assert said in str(caught.value)


def test_groups_are_sorted_by_their_own_order(truth: Any):
    def first(sql: str) -> list[Any]:
        return [row[0] for row in truth.query(sql).rows]

    assert first("SELECT mood, COUNT(*) FROM t GROUP BY mood ORDER BY mood DESC") == ["great", "good", "fair", "bad"]
    assert first("SELECT income, SUM(x) FROM t GROUP BY income") == ["[0, 999.5)", "[999.5, 5000)", ">= 5000"]
    assert first("SELECT smoker, SUM(x) FROM t GROUP BY smoker ORDER BY smoker") == [False, True]
    assert first("SELECT os, SUM(x) FROM t GROUP BY os") == ["a", "b", None]


def test_columns_describe_themselves():
    found = {d.name: (d.type, d.describe(), d.labels) for d in SCHEMA.dimensions}
    assert found["weight"] == ("integer", "40 to 120 in steps of 5", ())
    assert found["state"] == ("text", "4 labels", ("CA", "NY", "WA", "elsewhere"))
    assert found["mood"][1] == "4 labels in order"
    assert found["income"] == ("text", "[0, 999.5) to >= 5000, 3 buckets", ("[0, 999.5)", "[999.5, 5000)", ">= 5000"))
    assert found["smoker"] == ("boolean", "true or false", ())


def test_values_become_indices_as_devices_encode_them():
    for domain, values in ((WEIGHT, [40, 65, 120]), (STATE, ["NY", "Utah"]), (MOOD, ["good"]),
                           (INCOME, [0, 999.5, 4999.9, 10**9]), (SMOKER, [True, False])):  # fmt: skip
        dimension = schema_of(domain).dimensions[0]
        assert dimension.indices(values).tolist() == domain.encode_many(values)
    assert answers_of(mg(SCHEMA.shape(4), "1"), SCHEMA.indices(PEOPLE)).shape == (4,)
