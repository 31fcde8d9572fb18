"""Answers are right without noise, honest with it, and absent below the minimum cohort."""

import io
import json

import numpy as np
import pyarrow.parquet
import pytest
from tests.service.memory import MemoryStore
from tests.service.plain import PLAIN, NoNoise, draft

from tacit.catalog import CATALOG
from tacit.collector.answers.answer import COLUMNS, answer, to_csv, to_parquet
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import Planner, publish_document
from tacit.collector.ports import NewBatch
from tacit.collector.service import Collector
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.mean import MEAN

AGE = {"name": "age", "text": "Age?", "task": "mean", "domain": {"kind": "integers", "low": 20, "high": 60, "step": 10}}


def plain_active(**changes) -> Active:
    collector = Collector(MemoryStore(), catalog=(*CATALOG, NoNoise), tasks=(PLAIN, MEAN))
    found = collector.find(publish_document(collector.store, collector.planner.plan(draft(**changes))[0]).id)
    collector.stop()
    return found


def noisy_active(**changes) -> Active:
    collector = Collector(MemoryStore())
    found = collector.find(publish_document(collector.store, Planner(CATALOG).plan(draft(**changes))[0]).id)
    collector.stop()
    return found


def tally(active: Active, values):
    return Total(active.mechanism.tally(active.mechanism.privatize(np.asarray(values), SystemCoins())))


def test_without_noise_answers_are_the_shares():
    active = plain_active()
    result = answer(active, tally(active, [0] * 6 + [1] * 3 + [2]), tasks=(PLAIN, MEAN))
    rows = result.questions[0]["rows"]
    assert [row["value"] for row in rows] == ["cat", "dog", "fish"]
    assert [row["raw"]["estimate"] for row in rows] == pytest.approx([0.6, 0.3, 0.1])
    assert [row["consistent"]["estimate"] for row in rows] == pytest.approx([0.6, 0.3, 0.1])
    assert (result.n, result.status, result.epsilon) == (10, "ok", "1")


@pytest.mark.parametrize(("n", "status"), [(0, "below_minimum_cohort"), (4, "below_minimum_cohort"), (5, "ok")])
def test_nothing_is_answered_below_the_minimum_cohort(n: int, status: str):
    active = plain_active()
    result = answer(active, tally(active, np.zeros(n, np.int64)), tasks=(PLAIN, MEAN))
    assert result.status == status
    assert bool(result.questions) == (status == "ok")
    assert to_csv(result).count("\n") == (4 if status == "ok" else 1)


def test_each_group_of_a_sampled_question_has_to_be_large_enough():
    colour = {"name": "colour", "text": "?", "domain": {"kind": "booleans"}}
    active = plain_active(questions=[colour, colour | {"name": "other"}], minimum_cohort=3)
    reports = np.zeros(4, active.dtype)
    reports["member"] = [0, 0, 0, 1]
    first, second = answer(active, Total(active.mechanism.tally(reports)), tasks=(PLAIN, MEAN)).questions
    assert (first["status"], first["n"]) == ("ok", 3)
    assert (second["status"], second["rows"]) == ("below_minimum_cohort", [])


def test_a_mean_is_on_the_scale_of_the_question():
    active = noisy_active(questions=[AGE], epsilon="8")
    mechanism = active.mechanism
    reports = mechanism.privatize(np.repeat([0, 4], 5000), SimulationCoins(1))
    question = answer(active, Total(mechanism.tally(reports))).questions[0]
    cell = question["rows"][0]["raw"]
    assert question["unit"] == "value"
    assert question["rows"][0]["consistent"] is None
    # Six standard errors: one false alarm in 5e8 runs, and the seed is fixed.
    assert abs(cell["estimate"] - 40) < 6 * cell["standard_error"] < 2


def test_intervals_widen_with_the_level_and_consistent_ones_stay_in_range():
    active = noisy_active()
    counted = tally(active, np.repeat([0, 1], [90, 10]))
    narrow, wide = (answer(active, counted, level=level).questions[0]["rows"] for level in (0.5, 0.999))
    for a, b in zip(narrow, wide, strict=True):
        assert b["raw"]["low"] < a["raw"]["low"] < a["raw"]["high"] < b["raw"]["high"]
        assert 0 <= b["consistent"]["low"] <= b["consistent"]["high"] <= 1
    assert sum(row["consistent"]["estimate"] for row in wide) == pytest.approx(1)


@pytest.mark.parametrize("level", [0, 1, -1, float("nan"), float("inf")])
def test_impossible_levels_are_refused(level: float):
    active = plain_active()
    with pytest.raises(InvalidSpec, match="level"):
        answer(active, tally(active, [0]), level=level, tasks=(PLAIN, MEAN))


def test_realised_epsilon_is_stated_and_within_the_declared_one():
    active = noisy_active()
    assert answer(active, tally(active, [0])).realised_epsilon == pytest.approx(1)
    assert answer(active, tally(active, [0])).realised_epsilon <= 1


def test_csv_and_parquet_say_the_same():
    active = plain_active(
        questions=[draft()["questions"][0] | {"domain": {"kind": "categories", "labels": ["=cmd()", "-1", "b"]}}]
    )
    result = answer(active, tally(active, [0] * 6 + [1] * 3 + [2]), tasks=(PLAIN, MEAN))
    lines = to_csv(result).splitlines()
    assert lines[0].split(",") == list(COLUMNS)
    assert "'=cmd()" in lines[1]  # not a formula in a spreadsheet
    assert ",-1," in lines[2]
    table = pyarrow.parquet.read_table(io.BytesIO(to_parquet(result))).to_pylist()
    assert [row["estimate"] for row in table] == pytest.approx([0.6, 0.3, 0.1])
    assert [row["value"] for row in table] == ["=cmd()", "-1", "b"]


def test_answers_are_plain_json_with_labels_of_combinations():
    age = {"kind": "integers", "name": "age", "low": 0, "high": 1, "step": 1}
    pair = {"kind": "product", "attributes": [{"kind": "booleans", "name": "smoker"}, age]}
    active = plain_active(questions=[{"name": "both", "text": "?", "domain": pair}])
    result = answer(active, tally(active, [3] * 5), tasks=(PLAIN, MEAN))
    rows = json.loads(json.dumps(result.to_json(), allow_nan=False))["questions"][0]["rows"]
    assert rows[3]["value"] == [True, 1]
    assert rows[3]["raw"]["estimate"] == 1


def test_answers_fold_what_is_waiting_first():
    store = MemoryStore()
    collector = Collector(store, catalog=(*CATALOG, NoNoise), tasks=(PLAIN, MEAN))
    active = collector.find(publish_document(store, collector.planner.plan(draft())[0]).id)
    for i in range(20):
        store.add_batches([NewBatch(active.id, bytes([i]) * 16, bytes([i % 3]), 1, {})])
    assert collector.answers(active.id, 0.95).n == 20
    assert store.fold_some(active.id, "main", lambda tally, batches: b"", 10) == 0
    collector.stop()


def test_answers_say_how_far_forged_reports_can_push_them():
    active = noisy_active()
    result = answer(active, tally(active, [0] * 600 + [1] * 300))
    influence, mechanism = result.questions[0]["influence"], active.mechanism
    assert influence["coalition_share"] == 0.01
    assert influence["coalition"] == pytest.approx(0.01 / float(mechanism.p - mechanism.q))
    assert 0 < influence["one_report"] < influence["coalition"]
    exported = to_csv(result).splitlines()
    assert float(exported[1].split(",")[COLUMNS.index("coalition_influence")]) == pytest.approx(influence["coalition"])
    # Of a mean it is in the unit of the question: one bit of 200 moves it by so much.
    number = noisy_active(questions=[AGE])
    mean = answer(number, tally(number, [1] * 200)).questions[0]["influence"]
    assert mean["coalition"] == pytest.approx(2 * mean["one_report"])
