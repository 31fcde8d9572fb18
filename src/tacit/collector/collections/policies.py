"""Policies: how the questions of a draft are combined into one mechanism.

    single    one question                                      the question's own mechanism
    one_of    every respondent answers one, drawn at random     whole epsilon, 1/k of the reports per question
    all_of    every respondent answers all                      1/k of epsilon, all reports per question
    joint     all questions are attributes of one mechanism     tables across questions can be asked for

Adaptive tasks are asked round by round, and collections with rows ask private columns beside public ones. Shuffled
collections ask one question, by a mechanism whose reports fit the word that shufflers pass on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from tacit.core.compose import AllOf, OneOf, Questions
from tacit.core.mechanism import Mechanism
from tacit.core.patience import check
from tacit.device.numbers.budget import Budget, Epsilon, Share
from tacit.errors import InvalidSpec
from tacit.tasks.itemsets.task import DEFAULT_K
from tacit.tasks.marginals.task import DEFAULT_K as DEFAULT_TABLE
from tacit.tasks.marginals.task import MARGINALS
from tacit.tasks.rows import ANALYTICS
from tacit.tasks.table import find_task
from tacit.tasks.task import AdaptiveTask, JointQuestions, JointTask, PublicRows, QuestionTask, RowsTask, Task
from tacit.wire.document import POLICIES, PlanRound, Question
from tacit.wire.rows import Rows
from tacit.wire.shuffled import ShuffleTerms

# Every query of the draft is evaluated for every candidate design, so that their number bounds the time of planning.
MAX_QUERIES = 64

Planned = tuple[str, Mechanism, PlanRound | None]
"""The policy, the mechanism, and the first round of an adaptive task (else None)."""


@dataclass(frozen=True)
class Wanted:
    """The parsed parts of a draft that planning needs."""

    questions: tuple[Question, ...]
    epsilon: Epsilon
    respondents: int
    fields: Mapping[str, Any]
    tasks: tuple[Task, ...]


def plan_policy(wanted: Wanted) -> Planned:
    """Plan a draft: its policy, its mechanism and, for adaptive tasks, its first round; InvalidSpec if impossible."""
    fields = wanted.fields
    if fields["queries"] and fields["rows"] is None:
        raise InvalidSpec("draft.queries are for drafts with rows: the SQL that the collection is planned for")
    if fields["shuffle"] is not None:
        return _for_shufflers(wanted)
    if fields["rows"] is not None:
        return _beside_rows(wanted)
    if fields["policy"] == "joint":
        return _together(wanted)
    policy = fields["policy"] or ("single" if len(wanted.questions) == 1 else "one_of")
    rounds = _first_round(wanted)
    return (policy, *rounds) if rounds is not None else (policy, _each(wanted, policy), None)


def _for_shufflers(wanted: Wanted) -> Planned:
    """Plan a shuffled collection: one question, and a mechanism among the kinds that fit a word."""
    # Read first: terms that cannot be are the plainer error, and planning takes longer.
    ShuffleTerms.from_json(wanted.fields["shuffle"])
    if len(wanted.questions) != 1 or any(wanted.fields[name] is not None for name in ("rows", "k")):
        raise InvalidSpec("draft.shuffle: a shuffled collection has one question, without rows and without k")
    if wanted.fields["policy"] not in ("", None, "single"):
        raise InvalidSpec('draft.policy must be "single" in a shuffled collection; leave it out')
    question = wanted.questions[0]
    task = find_task(question.task, wanted.tasks)
    plan = task.plan_word or task.plan if isinstance(task, QuestionTask) else None
    mechanism = None if plan is None else plan(question.domain, wanted.epsilon, wanted.respondents)
    if mechanism is None or not mechanism.fits_word:
        raise InvalidSpec(
            f"draft.shuffle: {task.name} has no mechanism for '{question.name}' whose reports fit the 64-bit word that "
            "shufflers pass on; set the task to histogram, or leave shuffle out"
        )
    return "single", mechanism, None


def asked_of(questions: tuple[Question, ...]) -> JointQuestions:
    """Names and domains of questions, in the form that joint tasks take."""
    return JointQuestions(tuple(item.name for item in questions), tuple(item.domain for item in questions))


def wanted_k(given: Any) -> int:
    """The order of marginal tables that a joint mechanism is optimised for, from the draft's field k."""
    k: Any = DEFAULT_TABLE if given is None else given
    if type(k) is not int:
        raise InvalidSpec("draft.k must be an integer: how many questions a table has that must be answered well")
    return k


def _beside_rows(wanted: Wanted) -> Planned:
    """Plan private columns beside public rows, optimised for the SQL queries of the draft."""
    fields, rows = wanted.fields, Rows.from_json(wanted.fields["rows"])
    if fields["k"] is not None:
        raise InvalidSpec("draft.k is not for drafts with rows; state queries instead")
    for question in wanted.questions:
        if question.task != ANALYTICS.name:
            raise InvalidSpec(f"draft: the task of '{question.name}' must be {ANALYTICS.name} in a draft with rows")
    columns = tuple((column.name, column.type) for column in rows.columns)
    public = PublicRows(rows.table, columns, _queries(fields["queries"] or []))
    policy, mechanism = ANALYTICS.plan(asked_of(wanted.questions), public, wanted.epsilon, wanted.respondents)
    if fields["policy"] not in ("", None, policy):
        raise InvalidSpec(f'draft.policy: rows and queries ask for the policy "{policy}"; leave it out')
    return policy, mechanism, None


def _queries(given: Any) -> tuple[str, ...]:
    items: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [None]
    if len(items) > MAX_QUERIES or not all(isinstance(item, str) for item in items):
        raise InvalidSpec(f"draft.queries must be a list of up to {MAX_QUERIES} texts of SQL")
    return tuple(items)


def _together(wanted: Wanted) -> Planned:
    """Plan the policy "joint": all questions are attributes of one mechanism."""
    if len(wanted.questions) < 2:
        raise InvalidSpec('draft.policy: "joint" asks several questions together; leave it out for one')
    tasks = [find_task(question.task, wanted.tasks) for question in wanted.questions]
    task = tasks[0]
    if isinstance(task, RowsTask):
        raise InvalidSpec(f"{task.name}: {task.rule}")
    others = [other.name for other in tasks if not isinstance(other, JointTask) or other is not task]
    if others or not isinstance(task, JointTask):
        raise InvalidSpec(
            f"draft: questions that are asked together must all have the task {MARGINALS.name}, not {others[0]}"
        )
    k = wanted_k(wanted.fields["k"])
    return "joint", task.plan(asked_of(wanted.questions), wanted.epsilon, wanted.respondents, k), None


def _first_round(wanted: Wanted) -> tuple[Mechanism, PlanRound] | None:
    """The first round of an adaptive task, which must be asked alone; None for all other tasks."""
    k, respondents = wanted.fields["k"], wanted.respondents
    tasks = [find_task(question.task, wanted.tasks) for question in wanted.questions]
    task = next((task for task in tasks if isinstance(task, AdaptiveTask)), None)
    if task is None:
        if k is not None:
            raise InvalidSpec(
                'draft.k is for tasks that look for the most frequent, such as items, and for the policy "joint"'
            )
        return None
    if len(tasks) > 1:
        raise InvalidSpec(f"draft.questions: {task.name} {task.rule}")
    looked_for: Any = DEFAULT_K if k is None else k
    if type(looked_for) is not int:
        raise InvalidSpec("draft.k must be an integer: how many are looked for")
    # The plan is a generator: its first value is the first round. Later rounds are recomputed from the document.
    asked = next(task.steps(wanted.questions[0].domain, wanted.epsilon, looked_for, respondents))
    return asked.mechanism, PlanRound(task.method, looked_for, respondents, 1, round_target(asked.share, respondents))


def reports_each(policy: str, questions: int, respondents: int) -> int:
    """The expected number of reports per question from so many respondents."""
    return max(1, respondents // questions) if policy == "one_of" else respondents


def round_target(share: float, respondents: int) -> int:
    """The number of reports at which a round of a plan closes by itself."""
    return max(1, ceil(share * respondents))


def _member(wanted: Wanted, question: Question, budget: Budget, n: int) -> Mechanism:
    """The mechanism that the task of one question chooses for n reports."""
    check()
    task = find_task(question.task, wanted.tasks)
    if not isinstance(task, QuestionTask):
        raise InvalidSpec(f"{task.name}: {task.rule}")
    return task.plan(question.domain, budget, n)


def _each(wanted: Wanted, policy: str) -> Mechanism:
    """Plan every question by itself, and combine the mechanisms as the policy says."""
    questions, epsilon, n = wanted.questions, wanted.epsilon, wanted.respondents
    if policy not in POLICIES or (policy == "single") != (len(questions) == 1):
        raise InvalidSpec('draft.policy must be "single" for one question, else "one_of", "all_of" or "joint"')
    # Sequential composition: whoever answers all questions spends the sum of their epsilons.
    budget: Budget = Share(epsilon, f"1/{len(questions)}") if policy == "all_of" else epsilon
    group = reports_each(policy, len(questions), n)
    members = tuple(_member(wanted, question, budget, group) for question in questions)
    if policy == "single":
        return members[0]
    if policy == "one_of":
        return OneOf(family=Questions(mechanisms=members))
    joint = AllOf(members=members, epsilon=epsilon)
    # The joint table of many questions is too large for counts, and the alternative, a log of reports, grows without
    # bound. Then only the questions' own tallies are kept, and tables across questions cannot be asked for.
    return joint if joint.state == "joint" else AllOf(members=members, epsilon=epsilon, state="members")
