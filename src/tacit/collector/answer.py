"""Answers: every question raw and made consistent, with intervals; nothing below the minimum cohort."""

import csv
import io
import json
from dataclasses import dataclass
from typing import Any, cast

from tacit.collector.active import Active
from tacit.core.estimate import Estimate
from tacit.device.exact import log_upper
from tacit.errors import InvalidSpec
from tacit.tasks.task import TASKS, Task, find_task
from tacit.wire.document import Question
from tacit.wire.tallies import AnyTally

OK, BELOW = "ok", "below_minimum_cohort"
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


def answer(active: Active, tally: AnyTally, *, level: float = 0.95, tasks: tuple[Task, ...] = TASKS) -> Answers:
    """Answer every question of a collection from its tally."""
    if not 0 < level < 1:
        raise InvalidSpec("level must be between 0 and 1, such as 0.95")
    asked = active.collection
    enough = tally.n >= asked.minimum_cohort
    questions = []
    if enough:
        made: Any = active.mechanism.estimate(tally)
        estimates = cast("list[Estimate]", made if isinstance(made, list) else [made])
        pairs = zip(asked.questions, estimates, strict=True)
        questions = [_answered(question, part, asked.minimum_cohort, level, tasks) for question, part in pairs]
    realised = float(log_upper(active.mechanism.realised_odds()))
    return Answers(active.id, tally.n, asked.epsilon, realised, level, OK if enough else BELOW, questions)


def _answered(
    question: Question, estimate: Estimate, cohort: int, level: float, tasks: tuple[Task, ...]
) -> dict[str, Any]:
    """One question; where respondents answer one of several, its own group must be large enough too."""
    about: dict[str, Any] = {"name": question.name, "task": question.task, "text": question.text, "n": estimate.n}
    task = find_task(question.task, tasks)
    result = task.answer(question.domain, estimate)
    about |= {"unit": result.unit, "method": result.method}
    if estimate.n < cohort:
        return about | {"status": BELOW, "rows": []}
    raw = _cells(result.raw, level)
    consistent = None if result.consistent is None else _cells(result.consistent, level, bounded=True)
    labels = result.raw.labels if result.raw.labels is not None else range(len(raw))
    rows = [
        {"value": _label(label), "raw": raw[i], "consistent": None if consistent is None else consistent[i]}
        for i, label in enumerate(labels)
    ]
    return about | {"status": OK, "rows": rows}


def _label(label: Any) -> Any:
    return [_label(part) for part in cast("tuple[Any, ...]", label)] if isinstance(label, tuple) else label


def _cells(estimate: Estimate, level: float, *, bounded: bool = False) -> list[dict[str, float]]:
    """Every cell with its interval; that of a consistent share ends at 0 and at 1."""
    low, high = estimate.interval(level)
    if bounded:
        low, high = low.clip(0, 1), high.clip(0, 1)
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
    value = row["value"]
    about = {"question": question["name"], "task": question["task"], "unit": question["unit"]}
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        about
        | {"value": shown}
        | row["raw"]
        | {f"consistent_{name}": consistent.get(name) for name in ("estimate", "low", "high")}
        | {"method": question["method"], "reports": question["n"], "level": answers.level}
        | {"epsilon": answers.epsilon if isinstance(answers.epsilon, str) else json.dumps(answers.epsilon)}
    )


def to_csv(answers: Answers) -> str:
    """The rows as CSV with a header; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in to_rows(answers):
        writer.writerow(row | {"value": _harmless(row["value"])})
    return text.getvalue()


def _harmless(value: str) -> str:
    starts = value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return "'" + value if starts and not _is_number(value) else value


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def to_parquet(answers: Answers) -> bytes:
    """The rows as a Parquet file; needs the optional pyarrow."""
    try:
        import pyarrow  # pyright: ignore
        import pyarrow.parquet  # pyright: ignore
    except ImportError:
        raise InvalidSpec("answers: Parquet needs pyarrow; install tacit with its extra 'arrow'") from None
    text = {"question", "task", "unit", "value", "method", "epsilon"}
    fields = [(name, pyarrow.string() if name in text else pyarrow.float64()) for name in COLUMNS]  # pyright: ignore
    schema = pyarrow.schema([(n, pyarrow.int64() if n == "reports" else t) for n, t in fields])  # pyright: ignore
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(to_rows(answers), schema), sink)  # pyright: ignore
    return sink.getvalue()
