"""Queries: what an analyst asks the answers of one question, as its task defines it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.collector.active import Active
from tacit.collector.answer import BELOW, OK, parts_of
from tacit.collector.problems import Problem
from tacit.core.members import AnyTally
from tacit.errors import InvalidSpec
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Part, Task
from tacit.wire.document import Question


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
    if not 0 < level < 1:
        raise InvalidSpec("level must be between 0 and 1, such as 0.95")
    item, part = question_of(active, tally, question)
    found = find_task(item.task, tasks).query(query)
    for name in sorted(given.keys() - found.parameters.keys()):
        known = ", ".join(found.parameters) or "none"
        raise InvalidSpec(f"query {query}: unknown parameter '{name[:40]}', must be one of {known}")
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
