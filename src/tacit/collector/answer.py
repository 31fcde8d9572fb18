"""Answers: every question raw and made consistent, with intervals; nothing below the minimum cohort."""

import io
import json
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit.collector.active import Active
from tacit.collector.safe_csv import csv_text
from tacit.core.compose import AllOf, OneOf
from tacit.core.estimate import Estimate
from tacit.core.extras import load
from tacit.core.level import check_level
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember
from tacit.device.exact import log_upper
from tacit.post.methods import NAMES, Processed, find_method, hull, process
from tacit.tasks.itemset_task import answer_of, intervals_of
from tacit.tasks.plans import Result
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Answer, Part, Task, plain_label
from tacit.wire.document import Collection, Question

F64 = npt.NDArray[np.float64]

OK, BELOW, ASKING, SQL = "ok", "below_minimum_cohort", "asking", "sql"
COLUMNS: tuple[str, ...] = (
    "question", "task", "unit", "value", "estimate", "standard_error", "low", "high",
    "consistent_estimate", "consistent_low", "consistent_high", "method", "reports", "level", "epsilon",
)  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """What a collection says, as plain data."""

    id: str
    n: int
    epsilon: Any
    realised_epsilon: float
    level: float
    status: str
    questions: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return dict(vars(self))


def answer(
    active: Active, tally: AnyTally, *, level: float = 0.95, tasks: tuple[Task, ...] = TASKS, post: str | None = None
) -> Answers:
    """Answer every question of a collection from its tally; `post` names a method other than the default."""
    if post is not None:
        find_method(post)
    check_level(level)
    asked = active.collection
    enough = tally.n >= asked.minimum_cohort
    questions = []
    if enough:
        pairs = zip(asked.questions, parts_of(asked, active.mechanism, tally), strict=True)
        questions = [_answered(question, part, asked.minimum_cohort, level, tasks, post) for question, part in pairs]
    return _answers(active, tally.n, level, OK if enough else BELOW, questions)


def _answers(active: Active, n: int, level: float, status: str, questions: list[dict[str, Any]]) -> Answers:
    realised = float(log_upper(active.mechanism.realised_odds()))
    return Answers(active.id, n, active.collection.epsilon, realised, level, status, questions)


def answer_plan(active: Active, result: Result | None, *, level: float = 0.95) -> Answers:
    """What an adaptive plan found; before its last round is closed, only that it is still asking."""
    asked, question = active.collection, active.collection.questions[0]
    check_level(level)
    if result is None:
        return _answers(active, 0, level, ASKING, [])
    about: dict[str, Any] = {"name": question.name, "task": question.task, "text": question.text}
    found = answer_of(question.domain, result, asked.plan.method if asked.plan else "")
    cells = _cells(found.raw, intervals_of(result, level))
    rows = [
        {"value": label, "raw": cell, "consistent": None, "noise": row.noise}
        for label, cell, row in zip(found.raw.labels or [], cells, result.rows, strict=True)
    ]
    notes = {"notes": list(result.notes), "detectable": result.detectable}
    shown = about | {"n": result.respondents, "unit": found.unit, "method": found.method, "status": OK, "rows": rows}
    return _answers(active, result.respondents, level, OK, [shown | notes])


def answer_rows(active: Active, n: int, *, level: float = 0.95) -> Answers:
    """What a collection of rows says without a query: which of its columns are private, and that SQL asks for them."""
    asked = active.collection
    check_level(level)
    enough = n >= asked.minimum_cohort
    questions: list[dict[str, Any]] = [
        {"name": item.name, "task": item.task, "text": item.text, "n": n, "unit": "share", "method": SQL}
        | {"status": SQL, "rows": []}
        for item in asked.questions
    ]
    return _answers(active, n, level, OK if enough else BELOW, questions if enough else [])


def parts_of(collection: Collection, mechanism: Mechanism, tally: AnyTally) -> list[Part]:
    """What every question of a collection got, as its policy says."""
    if collection.policy in ("single", "joint"):
        return [Part(mechanism, tally, tally.n, place=place) for place in range(len(collection.questions))]
    if isinstance(mechanism, OneOf) and isinstance(tally, PerMember):
        members = range(len(mechanism.family))
        return [Part(mechanism.member(i), tally.member(i), tally.n) for i in members]
    assert isinstance(mechanism, AllOf)
    joint = cast("Any", tally)
    return [Part(mechanism.member(i), mechanism.marginal(joint, i), tally.n) for i in range(len(mechanism.members))]


def _answered(
    question: Question, part: Part, cohort: int, level: float, tasks: tuple[Task, ...], post: str | None
) -> dict[str, Any]:
    """One question; where respondents answer one of several, its own group must be large enough too."""
    about: dict[str, Any] = {"name": question.name, "task": question.task, "text": question.text, "n": part.tally.n}
    task = find_task(question.task, tasks)
    result = _with_method(task.answer(question.domain, part), post)
    about |= {"unit": result.unit, "method": result.method}
    if part.tally.n < cohort or not np.isfinite(result.raw.variance).all():
        return about | {"status": BELOW, "rows": []}
    raw = _cells(result.raw, result.raw.interval(level))
    consistent = None if result.consistent is None else _cells(result.consistent, _consistent_interval(result, level))
    labels = result.raw.labels if result.raw.labels is not None else range(len(raw))
    rows = [
        {"value": plain_label(label), "raw": raw[i], "consistent": None if consistent is None else consistent[i]}
        for i, label in enumerate(labels)
    ]
    return about | {"status": OK, "rows": rows}


def _with_method(result: Answer, post: str | None) -> Answer:
    """The same answer made consistent by another method of the table, where one of them made it so."""
    if post is None or result.consistent is None or result.method not in NAMES:
        return result
    made = process(result.raw, post)
    return replace(result, consistent=made.estimate, method=made.method.name)


def _consistent_interval(result: Answer, level: float) -> tuple[F64, F64]:
    """The interval of a consistent share, which covers in spite of the bias."""
    assert result.consistent is not None
    if result.method in NAMES:
        return Processed(find_method(result.method), result.raw, result.consistent).interval(level)
    return hull(result.raw.interval(level), result.consistent.interval(level))


def _cells(estimate: Estimate, interval: tuple[F64, F64]) -> list[dict[str, float]]:
    """Every cell with its interval."""
    low, high = interval
    names = ("estimate", "standard_error", "low", "high")
    columns = zip(*(column.tolist() for column in (estimate.value, estimate.standard_error, low, high)), strict=True)
    return [dict(zip(names, cells, strict=True)) for cells in columns]


def to_rows(answers: Answers) -> list[dict[str, Any]]:
    """One flat row per value of every question, for tables."""
    return [
        _flat(answers, question, row) for question in answers.questions for row in question["rows"]
    ]  # fmt: skip


def _flat(answers: Answers, question: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    consistent: dict[str, Any] = row["consistent"] or {}
    about = {"question": question["name"], "task": question["task"], "unit": question["unit"]}
    return (
        about
        | {"value": as_text(row["value"])}
        | row["raw"]
        | {f"consistent_{name}": consistent.get(name) for name in ("estimate", "low", "high")}
        | {"method": question["method"], "reports": question["n"], "level": answers.level}
        | {"epsilon": as_text(answers.epsilon)}
    )


def as_text(value: Any) -> str:
    """A value in one cell of a table: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_csv(answers: Answers) -> str:
    """The rows as CSV with a header."""
    return csv_text([COLUMNS, *([row[name] for name in COLUMNS] for row in to_rows(answers))])


def to_parquet(answers: Answers) -> bytes:
    """The rows as a Parquet file; needs the optional pyarrow."""
    pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    text = {"question", "task", "unit", "value", "method", "epsilon"}
    fields = [(name, pyarrow.string() if name in text else pyarrow.float64()) for name in COLUMNS]
    schema = pyarrow.schema([(n, pyarrow.int64() if n == "reports" else t) for n, t in fields])
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(to_rows(answers), schema), sink)
    return sink.getvalue()
