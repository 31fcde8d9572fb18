"""How far one report can move answers: replacing it by others never moves a raw cell further, and nearly as far."""

from typing import Any

import numpy as np
import pytest
from tests.service.memory import MemoryStore

from tacit.collector.answers.answer import answer, to_rows
from tacit.collector.collections.parts import Total
from tacit.collector.collections.publish import publish_document
from tacit.collector.service import Collector
from tacit.simulate.coins import SimulationCoins

PET = {"name": "pet", "text": "Pet?", "domain": {"kind": "categories", "labels": ["cat", "dog", "none"]}}
TOWN = {"name": "town", "text": "Town?", "domain": {"kind": "categories", "labels": ["a", "b"]}}
AGE = {"name": "age", "text": "Age?", "domain": {"kind": "integers", "low": 0, "high": 63}, "task": "ranges"}
HOURS = {"name": "hours", "text": "Hours?", "domain": {"kind": "integers", "low": 2, "high": 12}, "task": "mean"}
N = 400

CASES: dict[str, tuple[dict[str, Any], float]] = {
    # The share of the stated reach that some replacement at least gets to.
    "histogram": ({"questions": [PET]}, 0.99),
    "mean": ({"questions": [HOURS]}, 0.99),
    # A bound over all sets of nodes, which reports of the crowd do not try all.
    "ranges": ({"questions": [AGE]}, 0.2),
    "joint": ({"questions": [PET, TOWN], "policy": "joint"}, 0.3),
}


def asked(more: dict[str, Any]) -> tuple[Any, Any]:
    collector = Collector(MemoryStore())
    draft = {"title": "T", "epsilon": "1", "minimum_cohort": 1, "respondents": N} | more
    active = collector.find(publish_document(collector.store, collector.planner.plan(draft)[0]).id)
    collector.stop()
    return active, active.mechanism


def cells(active: Any, tally: Any) -> list[dict[str, Any]]:
    found = answer(active, Total(tally))
    # Exports say the same as answers.
    assert all(row["coalition_influence"] > 0 and row["one_report_influence"] > 0 for row in to_rows(found))
    return found.questions


def reach_of(question: dict[str, Any]) -> float:
    """What replacing one report may move: 1 % of all are four reports."""
    return question["influence"]["coalition"] / (0.01 * N)


def members_of(reports: Any) -> Any:
    """Which member every report belongs to; a replacement is one of the same member."""
    names = reports.dtype.names or ()
    return reports["member"] if "member" in names else np.zeros(len(reports), np.int64)


@pytest.mark.slow_cases("joint")
@pytest.mark.parametrize("name", CASES)
def test_no_replacement_moves_a_cell_beyond_the_stated_reach(name: str) -> None:
    """Exact but for rounding, and for the weights of the fit, which do not depend on what reports say."""
    more, near = CASES[name]
    active, mechanism = asked(more)
    rng = np.random.default_rng(5)
    questions = active.collection.questions
    columns = [rng.integers(0, question.domain.size, N) for question in questions]
    values = np.column_stack(columns) if len(columns) > 1 else columns[0]
    reports = mechanism.privatize(values, SimulationCoins(3))
    member, furthest = members_of(reports), np.zeros(len(questions))
    before = cells(active, mechanism.tally(reports))
    for place in range(0, N, 7):
        changed = reports.copy()
        changed[0] = reports[place]
        if member[place] != member[0]:
            continue
        after = cells(active, mechanism.tally(changed))
        for k, (old, new) in enumerate(zip(before, after, strict=True)):
            pairs = zip(old["rows"], new["rows"], strict=True)
            furthest[k] = max(furthest[k], *(abs(a["raw"]["estimate"] - b["raw"]["estimate"]) for a, b in pairs))
            assert furthest[k] <= reach_of(old) * (1 + 1e-9) + 1e-12
    stated = np.array([reach_of(question) for question in before])
    assert float((furthest / stated).max()) >= near
