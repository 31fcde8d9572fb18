"""Queries that tasks define, such as the share of a range: about one question, or several that were asked together."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit.collector.answers.answer import BELOW, OK, as_text, shuffled_claim
from tacit.collector.collections.active import Active
from tacit.collector.collections.parts import Total, parts_of
from tacit.collector.collections.policies import asked_of
from tacit.collector.safe_csv import csv_text
from tacit.core.compose import AllOf
from tacit.core.mechanism import Mechanism
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidQuery, InvalidSpec, MissingExtra
from tacit.hosting.problems import Problem
from tacit.oracles.grr import GRR
from tacit.tasks.marginals.joint import JOINT
from tacit.tasks.table import TASKS, find_task, queries_of
from tacit.tasks.task import QuestionTally, Task, find_query
from tacit.wire.document import Collection, Question


@contextmanager
def _as_query() -> Generator[None]:
    """Turn InvalidSpec into InvalidQuery: the collection exists and is fine, so the parameters must be wrong."""
    try:
        yield
    except (InvalidQuery, MissingExtra):
        # Both are subclasses of InvalidSpec, and mean what they say.
        raise
    except InvalidSpec as error:
        raise InvalidQuery(str(error)) from None


@_as_query()
def ask(
    active: Active,
    total: Total,
    question: str,
    query: str,
    given: Mapping[str, str],
    *,
    level: float = 0.95,
    tasks: tuple[Task, ...] = TASKS,
    other: tuple[Active, Total] | None = None,
) -> dict[str, Any]:
    """The answer to a query about one question; only a status below the minimum cohort.

    `other` is a second collection with the same question to compare with, which must reach its own cohort too.
    """
    check_level(level)
    item, part = question_of(active, total, question)
    task = find_task(item.task, tasks)
    found = find_query(queries_of(task), query, given, f"task {task.name}")
    about: dict[str, Any] = {"question": question, "query": query, "n": part.tally.n, "level": level}
    if (claim := shuffled_claim(active)) is not None:
        about |= {"shuffle": claim}
    # Both the question's own reports (fewer, if respondents answer one of several) and the collection's.
    enough = min(part.tally.n, total.n) >= active.collection.least_reports
    if other is not None:
        asked, second = question_of(*other, question)
        if asked.domain != item.domain or asked.task != item.task:
            raise InvalidSpec("other: the question has another domain or task there; compare equal questions")
        part = replace(part, other=second)
        enough = enough and min(second.tally.n, other[1].n) >= other[0].collection.least_reports
    if not enough:
        return about | {"status": BELOW}
    return about | {"status": OK} | found.run(item.domain, part, given, level)


def question_of(active: Active, total: Total, name: str) -> tuple[Question, QuestionTally]:
    """A question of a collection and its tally; Problem `not_found` if there is no such question."""
    parts = zip(active.collection.questions, parts_of(active.collection, active.mechanism, total), strict=True)
    for item, part in parts:
        if item.name == name:
            return item, part
    raise Problem("not_found", "the collection has no such question")


@_as_query()
def ask_joint(
    active: Active, total: Total, query: str, given: Mapping[str, str], *, level: float = 0.95
) -> dict[str, Any]:
    """The answer to a query about several questions together; only a status below the minimum cohort."""
    check_level(level)
    asked = active.collection
    found = find_query(JOINT, query, given, "joint")
    _check_together(asked, active.mechanism)
    about = {"query": query, "n": total.n, "level": level}
    if total.n < asked.minimum_cohort:
        return about | {"status": BELOW}
    part = QuestionTally(active.mechanism, total.tally, total.n, memo=total.memo)
    return about | {"status": OK} | found.run(asked_of(asked.questions), part, given, level)


def _check_together(asked: Collection, mechanism: Mechanism) -> None:
    """Problem `conflict` for collections whose reports hold no information about several questions at once."""
    if asked.policy not in ("joint", "all_of"):
        raise Problem(
            "conflict", 'no respondent was asked about several questions; publish a collection with the policy "joint"'
        )
    # With all_of every respondent answered all questions, but the joint counts exist only if the tally kept them.
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
