"""How the questions of a draft are asked: one of them, all of them, together, round by round, or beside public rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from tacit.core.compose import AllOf, OneOf, Questions
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.device.budget import Budget, Epsilon, Share
from tacit.errors import InvalidSpec
from tacit.tasks.analytics_task import ANALYTICS
from tacit.tasks.itemset_task import DEFAULT_K
from tacit.tasks.marginal_task import DEFAULT_K as DEFAULT_TABLE
from tacit.tasks.marginal_task import MARGINALS
from tacit.tasks.table import find_task
from tacit.tasks.task import Asked, Task
from tacit.wire.document import POLICIES, Plan, Question
from tacit.wire.rows import Rows

MAX_QUERIES = 64

Planned = tuple[str, Mechanism, Plan | None]
"""The policy, the mechanism, and the round where there are rounds."""


@dataclass(frozen=True)
class Wanted:
    """What a draft asks for."""

    questions: tuple[Question, ...]
    epsilon: Epsilon
    respondents: int
    fields: Mapping[str, Any]
    tasks: tuple[Task, ...]


def plan_policy(wanted: Wanted) -> Planned:
    """Policy, mechanism and round of a draft."""
    fields = wanted.fields
    if fields["queries"] and fields["rows"] is None:
        raise InvalidSpec("draft.queries are for drafts with rows: the SQL that the collection is planned for")
    if fields["rows"] is not None:
        return _beside_rows(wanted)
    if fields["policy"] == "joint":
        return _together(wanted)
    policy = fields["policy"] or ("single" if len(wanted.questions) == 1 else "one_of")
    rounds = _first_round(wanted)
    return (policy, *rounds) if rounds is not None else (policy, _each(wanted, policy), None)


def asked_of(questions: tuple[Question, ...]) -> Asked:
    """Questions as tasks see them."""
    return Asked(tuple(item.name for item in questions), tuple(item.domain for item in questions))


def wanted_k(given: Any) -> int:
    """How many questions a table may have that must be answered well."""
    k: Any = DEFAULT_TABLE if given is None else given
    if type(k) is not int:
        raise InvalidSpec("draft.k must be an integer: how many questions a table has that must be answered well")
    return k


def _beside_rows(wanted: Wanted) -> Planned:
    """Private columns beside public rows, planned for the queries that are named."""
    # The engine of SQL is loaded only where it is used.
    from tacit.tasks.analytics.documents import plan_table, table_schema

    fields, rows = wanted.fields, Rows.from_json(wanted.fields["rows"])
    if fields["k"] is not None:
        raise InvalidSpec("draft.k is not for drafts with rows; state queries instead")
    for question in wanted.questions:
        if question.task != ANALYTICS.name:
            raise InvalidSpec(f"draft: the task of '{question.name}' must be {ANALYTICS.name} in a draft with rows")
    asked = asked_of(wanted.questions)
    schema = table_schema(asked.names, asked.domains, rows.table)
    columns = [(column.name, column.type) for column in rows.columns]
    queries = _queries(fields["queries"] or [])
    policy, mechanism = plan_table(schema, columns, wanted.epsilon.text, wanted.respondents, queries)
    if fields["policy"] not in ("", None, policy):
        raise InvalidSpec(f'draft.policy: rows and queries ask for the policy "{policy}"; leave it out')
    return policy, mechanism, None


def _queries(given: Any) -> tuple[str, ...]:
    items: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [None]
    if len(items) > MAX_QUERIES or not all(isinstance(item, str) for item in items):
        raise InvalidSpec(f"draft.queries must be a list of up to {MAX_QUERIES} texts of SQL")
    return tuple(items)


def _together(wanted: Wanted) -> Planned:
    """All questions are attributes of one mechanism."""
    if len(wanted.questions) < 2:
        raise InvalidSpec('draft.policy: "joint" asks several questions together; leave it out for one')
    found = [find_task(question.task, wanted.tasks) for question in wanted.questions]
    others = [task.name for task in found if task.together is None or task is not found[0]]
    together = found[0].together
    if others or together is None:
        raise InvalidSpec(
            f"draft: questions that are asked together must all have the task {MARGINALS.name}, not {others[0]}"
        )
    k = wanted_k(wanted.fields["k"])
    return "joint", together.plan(asked_of(wanted.questions), wanted.epsilon, wanted.respondents, k), None


def _first_round(wanted: Wanted) -> tuple[Mechanism, Plan] | None:
    """The first round of an adaptive task, which must be asked alone; None for all other tasks."""
    k, respondents = wanted.fields["k"], wanted.respondents
    tasks = [(find_task(question.task, wanted.tasks), question.domain) for question in wanted.questions]
    adaptive = [(task, domain) for task, domain in tasks if task.steps is not None]
    if not adaptive:
        if k is not None:
            raise InvalidSpec(
                'draft.k is for tasks that look for the most frequent, such as items, and for the policy "joint"'
            )
        return None
    if len(tasks) > 1:
        named = adaptive[0][0].name
        raise InvalidSpec(
            f"draft.questions: {named} goes round by round and must be the only question; "
            "ask the other questions in a collection of their own"
        )
    task, domain = adaptive[0]
    looked_for: Any = DEFAULT_K if k is None else k
    if type(looked_for) is not int:
        raise InvalidSpec("draft.k must be an integer: how many are looked for")
    assert task.steps is not None
    asked = next(task.steps(domain, wanted.epsilon, looked_for, respondents))
    return asked.mechanism, Plan(task.method, looked_for, respondents, 1, round_target(asked.share, respondents))


def reports_each(policy: str, questions: int, respondents: int) -> int:
    """How many reports every question gets of so many respondents, about."""
    return max(1, respondents // questions) if policy == "one_of" else respondents


def round_target(share: float, respondents: int) -> int:
    """The number of reports at which a round of a plan closes by itself."""
    return max(1, ceil(share * respondents))


def _member(wanted: Wanted, question: Question, budget: Budget, n: int) -> Mechanism:
    """What the task of one question plans for n reports."""
    check()
    return find_task(question.task, wanted.tasks).plan(question.domain, budget, n)


def _each(wanted: Wanted, policy: str) -> Mechanism:
    """What every question's task plans, put together as the policy says."""
    questions, epsilon, n = wanted.questions, wanted.epsilon, wanted.respondents
    if policy not in POLICIES or (policy == "single") != (len(questions) == 1):
        raise InvalidSpec('draft.policy must be "single" for one question, else "one_of", "all_of" or "joint"')
    budget: Budget = Share(epsilon, f"1/{len(questions)}") if policy == "all_of" else epsilon
    group = reports_each(policy, len(questions), n)
    members = tuple(_member(wanted, question, budget, group) for question in questions)
    if policy == "single":
        return members[0]
    if policy == "one_of":
        return OneOf(family=Questions(mechanisms=members))
    joint = AllOf(members=members, epsilon=epsilon)
    # A log of reports grows for ever; where no joint table can be kept, the members' own tallies are.
    return joint if joint.state == "joint" else AllOf(members=members, epsilon=epsilon, state="members")
