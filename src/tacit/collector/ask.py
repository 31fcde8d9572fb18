"""Queries: what an analyst asks the answers of one question, as its task defines it, or of several together."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit.collector.active import Active
from tacit.collector.answer import BELOW, OK, as_text, parts_of
from tacit.collector.policies import asked_of
from tacit.collector.problems import Problem
from tacit.collector.safe_csv import csv_text
from tacit.core.compose import AllOf
from tacit.core.level import check_level
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.errors import InvalidQuery, InvalidSpec, MissingExtra
from tacit.oracles.grr import GRR
from tacit.tasks.joint import JOINT
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Part, Task, find_query
from tacit.wire.document import Collection, Question


@contextmanager
def _as_query() -> Generator[None]:
    """What a query cannot be is a mistake in the question; the collection, which can exist, does."""
    try:
        yield
    except (InvalidQuery, MissingExtra):
        raise
    except InvalidSpec as error:
        raise InvalidQuery(str(error)) from None


@_as_query()
def ask(
    active: Active,
    tally: AnyTally,
    question: str,
    query: str,
    given: Mapping[str, str],
    *,
    level: float = 0.95,
    tasks: tuple[Task, ...] = TASKS,
    other: tuple[Active, AnyTally] | None = None,
) -> dict[str, Any]:
    """The answer to a query; nothing but its status below the minimum cohort, of `other` too where two are compared."""
    check_level(level)
    item, part = question_of(active, tally, question)
    task = find_task(item.task, tasks)
    found = find_query(task.queries, query, given, f"task {task.name}")
    about = {"question": question, "query": query, "n": part.tally.n, "level": level}
    enough = min(part.tally.n, tally.n) >= active.collection.minimum_cohort
    if other is not None:
        asked, second = question_of(*other, question)
        if asked.domain != item.domain or asked.task != item.task:
            raise InvalidSpec("other: the question has another domain or task there; compare equal questions")
        part = replace(part, other=second)
        enough = enough and min(second.tally.n, other[1].n) >= other[0].collection.minimum_cohort
    if not enough:
        return about | {"status": BELOW}
    return about | {"status": OK} | found.run(item.domain, part, given, level)


def question_of(active: Active, tally: AnyTally, name: str) -> tuple[Question, Part]:
    """A question of a collection and what it got."""
    parts = zip(active.collection.questions, parts_of(active.collection, active.mechanism, tally), strict=True)
    for item, part in parts:
        if item.name == name:
            return item, part
    raise Problem("not_found", "the collection has no such question")


@_as_query()
def ask_joint(
    active: Active, tally: AnyTally, query: str, given: Mapping[str, str], *, level: float = 0.95
) -> dict[str, Any]:
    """The answer to a query about several questions; nothing but its status below the minimum cohort."""
    check_level(level)
    asked = active.collection
    found = find_query(JOINT, query, given, "joint")
    _check_together(asked, active.mechanism)
    about = {"query": query, "n": tally.n, "level": level}
    if tally.n < asked.minimum_cohort:
        return about | {"status": BELOW}
    part = Part(active.mechanism, tally, tally.n)
    return about | {"status": OK} | found.run(asked_of(asked.questions), part, given, level)


def _check_together(asked: Collection, mechanism: Mechanism) -> None:
    """Refuse collections whose reports say nothing about several questions at once."""
    if asked.policy not in ("joint", "all_of"):
        raise Problem(
            "conflict", 'no respondent was asked about several questions; publish a collection with the policy "joint"'
        )
    if isinstance(mechanism, AllOf):
        plain = all(isinstance(mechanism.member(i), GRR) for i in range(len(mechanism.members)))
        if mechanism.state == "members" or not plain:
            raise Problem(
                "conflict", "the answers of a respondent were counted question by question; "
                'publish a collection with the policy "joint"',
            )  # fmt: skip


def records_csv(answer: Mapping[str, Any]) -> str:
    """Synthetic records as CSV with a header; empty below the minimum cohort."""
    if "columns" not in answer:
        return ""
    return csv_text([answer["columns"], *([as_text(value) for value in row] for row in answer["rows"])])
