"""Answers to all questions of a collection, as plain data for JSON, CSV and Parquet.

Every value has a raw (unbiased) estimate and, where the task has one, a consistent estimate after post-processing,
both with standard errors and intervals. Below the minimum cohort there is only a status.
"""

import io
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arrays import F64
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total, parts_of
from tacit.collector.safe_csv import csv_text
from tacit.core.estimate import Estimate
from tacit.core.extras import load
from tacit.core.statistics.level import check_level, selected_level
from tacit.device.numbers.exact import log_upper
from tacit.integrity.influence import influence_cap, reach_json
from tacit.post.frequencies.methods import NAMES, Processed, find_method, hull, process
from tacit.tasks.plans import PlanResult
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import AdaptiveTask, Answer, JointTask, QuestionTally, QuestionTask, Task, plain_label
from tacit.wire.document import Question

OK, BELOW, ASKING, SQL = "ok", "below_minimum_cohort", "asking", "sql"
# Columns of CSV and Parquet downloads, in order; part of the public interface.
COLUMNS: tuple[str, ...] = (
    "question", "task", "unit", "value", "estimate", "standard_error", "low", "high",
    "consistent_estimate", "consistent_low", "consistent_high", "method", "reports", "level",
    "one_report_influence", "coalition_influence", "epsilon",
    "shuffled_epsilon", "shuffled_epsilon_others", "shuffled_delta",
)  # fmt: skip


@dataclass(frozen=True)
class CollectionAnswers:
    """The answers of a collection, as plain data."""

    id: str
    n: int
    epsilon: Any
    realised_epsilon: float
    level: float
    status: str
    questions: list[dict[str, Any]]
    shuffle: dict[str, Any] | None = None
    """Of a shuffled collection: what its reports keep, and against whom; see `shuffled_claim`."""

    def to_json(self) -> dict[str, Any]:
        """The JSON form; only shuffled collections have the field `shuffle`."""
        fields = dict(vars(self))
        return fields if self.shuffle is not None else {name: fields[name] for name in fields if name != "shuffle"}


def shuffled_claim(active: Active) -> dict[str, Any] | None:
    """What shuffled reports keep, as decimal text; None for collections that are not shuffled.

    `collector`: against the collector. `others`: against it and all other respondents, so that only fakes hide a
    report. `local`: against it and the shufflers. Where one party runs several roles, all three are the local one.
    """
    terms = active.collection.shuffle
    if terms is None:
        return None
    from tacit.wire.sessions import certificate_of

    certificate = certificate_of(active.collection)
    epsilon = dict(zip(("collector", "others", "local"), certificate.triple, strict=True))
    about = {"delta": certificate.delta, "respondents": certificate.n_min, "fakes": terms.fakes}
    return about | {"epsilon": epsilon, "mode": terms.mode, "roles_apart": active.collection.roles_apart}


def answer(
    active: Active, total: Total, *, level: float = 0.95, tasks: tuple[Task, ...] = TASKS, post: str | None = None
) -> CollectionAnswers:
    """Answer every question from the tally of a collection; `post` names a post-processing method to use instead."""
    if post is not None:
        find_method(post)
    check_level(level)
    asked = active.collection
    enough = total.n >= asked.least_reports
    questions = []
    if enough:
        pairs = zip(asked.questions, parts_of(asked, active.mechanism, total), strict=True)
        questions = [_answered(question, part, asked.minimum_cohort, level, tasks, post) for question, part in pairs]
    return _answers(active, total.n, level, OK if enough else BELOW, questions)


def _answers(active: Active, n: int, level: float, status: str, questions: list[dict[str, Any]]) -> CollectionAnswers:
    # The mechanism's probabilities are rounded to what devices can draw; the realised epsilon is that of the rounded
    # ones, and is itself rounded up, so that it never claims too much privacy.
    realised = float(log_upper(active.mechanism.realised_odds()))
    epsilon, claim = active.collection.epsilon, shuffled_claim(active)
    return CollectionAnswers(active.id, n, epsilon, realised, level, status, questions, claim)


def answer_plan(
    active: Active, result: PlanResult | None, *, level: float = 0.95, tasks: tuple[Task, ...] = TASKS
) -> CollectionAnswers:
    """The result of an adaptive plan; status "asking", and nothing else, until its last round is closed."""
    question = active.collection.questions[0]
    check_level(level)
    if result is None:
        return _answers(active, 0, level, ASKING, [])
    about: dict[str, Any] = {"name": question.name, "task": question.task, "text": question.text}
    task = find_task(question.task, tasks)
    # Only adaptive tasks publish rounds.
    assert isinstance(task, AdaptiveTask)
    estimates = task.answer(question.domain, result)
    cells = _cells(estimates.raw, result.intervals(level))
    rows = [
        {"value": label, "raw": cell, "consistent": None, "noise": row.noise}
        for label, cell, row in zip(estimates.raw.labels or [], cells, result.rows, strict=True)
    ]
    notes = {"notes": list(result.notes), "detectable": result.detectable}
    shown = about | {
        "n": result.respondents,
        "unit": estimates.unit,
        "method": estimates.method,
        "status": OK,
        "rows": rows,
    }
    return _answers(active, result.respondents, level, OK, [shown | notes])


def answer_rows(active: Active, n: int, *, level: float = 0.95) -> CollectionAnswers:
    """The answers of a collection with rows: its private columns, and that SQL is the way to query them."""
    asked = active.collection
    check_level(level)
    enough = n >= asked.minimum_cohort
    questions: list[dict[str, Any]] = [
        {"name": item.name, "task": item.task, "text": item.text, "n": n, "unit": "share", "method": SQL}
        | {"status": SQL, "rows": []}
        for item in asked.questions
    ]
    return _answers(active, n, level, OK if enough else BELOW, questions if enough else [])


def _answered(
    question: Question, part: QuestionTally, cohort: int, level: float, tasks: tuple[Task, ...], post: str | None
) -> dict[str, Any]:
    """The answer to one question; where respondents answer one of several, its own reports must reach the cohort."""
    about: dict[str, Any] = {"name": question.name, "task": question.task, "text": question.text, "n": part.tally.n}
    task = find_task(question.task, tasks)
    # Rounds and rows are answered by the functions above.
    assert isinstance(task, QuestionTask | JointTask)
    result = _with_method(task.answer(question.domain, part), post)
    about |= {"unit": result.unit, "method": result.method}
    # Without a finite variance (no report of some kind yet) there is no interval, and so no estimate to show.
    if part.tally.n < cohort or not np.isfinite(result.raw.variance).all():
        return about | {"status": BELOW, "rows": []}
    # Values that were listed for being high need wider intervals, so that as many as stated of those listed hold.
    wide = level if result.listed is None else selected_level(level, *result.listed)
    about |= {} if result.listed is None else {"adjusted_for_selection": True}
    raw = _cells(result.raw, result.raw.interval(wide))
    consistent = None if result.consistent is None else _cells(result.consistent, _consistent_interval(result, wide))
    labels = result.raw.labels if result.raw.labels is not None else range(len(raw))
    rows = [
        {"value": plain_label(label), "raw": raw[i], "consistent": None if consistent is None else consistent[i]}
        for i, label in enumerate(labels)
    ]
    return about | {"status": OK, "rows": rows, "influence": influence_of(result, part)}


def influence_of(result: Answer, part: QuestionTally) -> dict[str, Any] | None:
    """The most that one report, and a coalition of 1 %, can move any raw cell, in its unit; None where not known."""
    if result.reach is not None:
        return reach_json(result.reach, part.tally.n)
    cap = influence_cap(part.mechanism)
    plain = result.unit == "share" and len(result.raw) == getattr(part.mechanism, "size", 0)
    return cap.to_json(part.tally.n) if cap is not None and plain else None


def _with_method(result: Answer, post: str | None) -> Answer:
    """The answer with another post-processing method, if its own is one of the exchangeable ones."""
    if post is None or result.consistent is None or result.method not in NAMES:
        return result
    if find_method(post).name == result.method:
        # The task knows more than a list of shares: ranges are made monotone by the fit of their tree.
        return result
    processed = process(result.raw, post)
    return replace(result, consistent=processed.estimate, method=processed.method.name)


def _consistent_interval(result: Answer, level: float) -> tuple[F64, F64]:
    """An interval of a consistent estimate that keeps its coverage in spite of the bias of post-processing."""
    assert result.consistent is not None
    if result.method in NAMES:
        return Processed(find_method(result.method), result.raw, result.consistent).interval(level)
    return hull(result.raw.interval(level), result.consistent.interval(level))


def _cells(estimate: Estimate, interval: tuple[F64, F64]) -> list[dict[str, float]]:
    """Estimates with standard errors and intervals, a dictionary per cell."""
    low, high = interval
    names = ("estimate", "standard_error", "low", "high")
    columns = zip(*(column.tolist() for column in (estimate.value, estimate.standard_error, low, high)), strict=True)
    return [dict(zip(names, cells, strict=True)) for cells in columns]


def to_rows(answers: CollectionAnswers) -> list[dict[str, Any]]:
    """One flat row per value of every question, with the columns `COLUMNS`."""
    return [
        _flat(answers, question, row) for question in answers.questions for row in question["rows"]
    ]  # fmt: skip


def _flat(answers: CollectionAnswers, question: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    consistent: dict[str, Any] = row["consistent"] or {}
    about = {"question": question["name"], "task": question["task"], "unit": question["unit"]}
    return (
        about
        | {"value": as_text(row["value"])}
        | row["raw"]
        | {f"consistent_{name}": consistent.get(name) for name in ("estimate", "low", "high")}
        | {"method": question["method"], "reports": question["n"], "level": answers.level}
        | {"epsilon": as_text(answers.epsilon)}
        | _influence_cells(question.get("influence"))
        | _shuffled_cells(answers.shuffle)
    )


def _influence_cells(influence: dict[str, Any] | None) -> dict[str, float | None]:
    """The columns about how far reports can push an answer."""
    known = influence or {}
    return {"one_report_influence": known.get("one_report"), "coalition_influence": known.get("coalition")}


def _shuffled_cells(claim: dict[str, Any] | None) -> dict[str, str | None]:
    """The columns about shuffled reports; the local epsilon stands in `epsilon`."""
    if claim is None:
        return dict.fromkeys(("shuffled_epsilon", "shuffled_epsilon_others", "shuffled_delta"))
    collector, others = claim["epsilon"]["collector"], claim["epsilon"]["others"]
    return {"shuffled_epsilon": collector, "shuffled_epsilon_others": others, "shuffled_delta": claim["delta"]}


def as_text(value: Any) -> str:
    """A value as the text of a table cell: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def to_csv(answers: CollectionAnswers) -> str:
    """The rows as CSV with a header."""
    return csv_text([COLUMNS, *([row[name] for name in COLUMNS] for row in to_rows(answers))])


def to_parquet(answers: CollectionAnswers) -> bytes:
    """The rows as a Parquet file; needs the optional pyarrow."""
    pyarrow, parquet = load("pyarrow"), load("pyarrow.parquet")
    text = {"question", "task", "unit", "value", "method", "epsilon"} | set(COLUMNS[-3:])
    fields = [(name, pyarrow.string() if name in text else pyarrow.float64()) for name in COLUMNS]
    schema = pyarrow.schema([(n, pyarrow.int64() if n == "reports" else t) for n, t in fields])
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(to_rows(answers), schema), sink)
    return sink.getvalue()
