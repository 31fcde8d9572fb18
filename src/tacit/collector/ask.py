"""Queries: what an analyst asks the answers of one question, as its task defines it."""

from collections.abc import Mapping
from typing import Any

from tacit.collector.active import Active
from tacit.collector.answer import BELOW, OK, parts_of
from tacit.collector.problems import Problem
from tacit.core.members import AnyTally
from tacit.errors import InvalidSpec
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import Task


def ask(
    active: Active,
    tally: AnyTally,
    question: str,
    query: str,
    given: Mapping[str, str],
    *,
    level: float = 0.95,
    tasks: tuple[Task, ...] = TASKS,
) -> dict[str, Any]:
    """The answer to a query; nothing but its status below the minimum cohort."""
    if not 0 < level < 1:
        raise InvalidSpec("level must be between 0 and 1, such as 0.95")
    asked = active.collection
    places = [i for i, item in enumerate(asked.questions) if item.name == question]
    if not places:
        raise Problem("not_found", "the collection has no such question")
    item = asked.questions[places[0]]
    found = find_task(item.task, tasks).query(query)
    for name in sorted(given.keys() - found.parameters.keys()):
        known = ", ".join(found.parameters) or "none"
        raise InvalidSpec(f"query {query}: unknown parameter '{name[:40]}', must be one of {known}")
    part = parts_of(asked, active.mechanism, tally)[places[0]]
    about = {"question": question, "query": query, "n": part.tally.n, "level": level}
    if min(part.tally.n, tally.n) < asked.minimum_cohort:
        return about | {"status": BELOW}
    return about | {"status": OK} | found.run(item.domain, part, given, level)
